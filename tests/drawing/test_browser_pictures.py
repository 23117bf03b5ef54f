"""A step as an SVG file and the animation as a GIF file, made by a page in a real browser and by the command line."""

from __future__ import annotations

import base64
import io
import os
import re
import time
from pathlib import Path
from xml.etree import ElementTree

import pytest

from unisono import draw
from unisono.cli.main import main
from unisono.drawing import picture
from unisono.errors import UsageError

pytestmark = pytest.mark.slow

Image = pytest.importorskip("PIL.Image", reason="the frames of a GIF are decoded with Pillow")
SVG = "{http://www.w3.org/2000/svg}"
SIZE = (960, 600)
# A picture as SVG and as the page paints it: the part of the pixels that differ by more than a sixth of the range,
# without texts, whose edges are painted differently; and the texts of both with their places.
COMPARED = """
    const [position, theme, done] = arguments;
    (async () => {
        const made = unisono.picture({ theme });
        const svg = new DOMParser().parseFromString(made.svg(position), "image/svg+xml").documentElement;
        const { width, height } = made.room;
        const pixels = (paint) => {
            const pen = Object.assign(document.createElement("canvas"), made.room).getContext("2d");
            paint(pen);
            return pen.getImageData(0, 0, width, height).data;
        };
        const place = (text, { x }) => [text, x];
        const shown = document.body.appendChild(document.importNode(svg, true));
        const written = [...shown.querySelectorAll("text:not([fill=none])")].map((one) => {
            const x = new DOMPoint(one.x.baseVal[0].value, one.y.baseVal[0].value).matrixTransform(one.getCTM());
            return place(one.textContent, x);
        });
        shown.remove();
        for (const one of svg.querySelectorAll("text")) one.remove();
        const image = new Image();
        image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg.outerHTML)}`;
        await image.decode();
        const painted = [];
        const one = pixels((pen) => pen.drawImage(image, 0, 0));
        const other = pixels((pen) => {
            pen.strokeText = () => {};
            pen.fillText = (text, x, y) => {
                painted.push(place(text, new DOMPoint(x, y).matrixTransform(pen.getTransform())));
            };
            made.paint(pen, position);
        });
        let far = 0;
        for (let at = 0; at < one.length; at += 4) {
            if ([0, 1, 2].some((channel) => Math.abs(one[at + channel] - other[at + channel]) > 42)) far += 1;
        }
        const order = ([one, x], [other, y]) => (one < other ? -1 : one > other ? 1 : x - y);
        done([(4 * far) / one.length, written.sort(order), painted.sort(order)]);
    })().catch((error) => done([`${error.stack}`]));
"""


def texts(svg):
    """Return the texts of a picture, which has neither scripts nor anything that it loads."""
    root = ElementTree.fromstring(svg)
    assert root.tag == f"{SVG}svg"
    assert {one.tag.removeprefix(SVG) for one in root.iter()} <= {
        "svg", "title", "desc", "text", "path", "rect", "clipPath", "image",
    }  # fmt: skip
    for one in root.iter():
        assert not [name for name in one.attrib if name.startswith("on")]
        assert one.attrib.get("href", "data:image/png").startswith("data:image/png")
    return [one.text for one in root.iter(f"{SVG}text")]


def described(svg):
    """Return the title and the description of a picture."""
    root = ElementTree.fromstring(svg)
    return root.findtext(f"{SVG}title"), root.findtext(f"{SVG}desc")


@pytest.fixture
def downloads(browser, tmp_path):
    """Return a function that waits for a file that the page saves."""
    folder = tmp_path / "downloads"
    folder.mkdir()
    browser.driver.execute_cdp_cmd(
        "Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(folder), "eventsEnabled": False}
    )

    def saved(name):
        from selenium.webdriver.support.wait import WebDriverWait

        WebDriverWait(browser.driver, 60, poll_frequency=0.05).until(lambda _: (folder / name).is_file())
        return (folder / name).read_bytes()

    return saved


def test_a_button_and_a_key_save_the_step_as_svg(browser, written_page, downloads):
    browser.open(written_page("ring"), "#step=3&lang=en")
    assert browser.text(".savers") == "SaveSVGGIF"
    browser.click("#save-svg")
    svg = downloads("all_reduce-ring-5-step3.svg").decode()
    written = texts(svg)
    assert {"all-reduce · ring · 5 ranks", "Step 3 of 8 · reduce-scatter"} <= set(written)
    assert {f"rank {rank}" for rank in range(5)} <= set(written)
    assert {"a0", "b0+b2+b3+b4", "e0+e1+e2+e3"} <= set(written)
    title, said = described(svg)
    assert title == "all-reduce · ring · 5 ranks: Step 3 of 8 · reduce-scatter"
    assert said.startswith("Each chunk makes one trip around the ring")
    browser.run("unisono.state.set({ step: 8, lang: 'zh' })")
    assert browser.text(".savers") == "保存SVGGIF"  # the bar has been filled again
    browser.press("s")
    assert "第 8 步，共 8 步 · all-gather" in texts(downloads("all_reduce-ring-5-step8.svg").decode())
    assert browser.complaints() == []


@pytest.mark.parametrize(
    ("names", "size", "link", "theme"),
    [
        (["ring"], 5, "#step=3", "light"),
        (["ring"], 5, "#step=3", "dark"),
        (["hierarchical"], 8, "#step=2.5", "light"),  # messages are in transit
        (["tree"], 7, "#step=1&rank=2&numbers=1", "dark"),
        (["rabenseifner"], 13, "#step=3", "light"),
        (["ring"], 64, "#step=40", "dark"),
        (["all_to_all/bruck"], 6, "#step=2&layout=matrix", "light"),
        (["ring", "tree", "direct"], 5, "#by=step&step=2", "dark"),
    ],
)
def test_the_svg_shows_what_the_page_paints(browser, written_page, names, size, link, theme):
    browser.open(written_page(*names, size=size), link)
    position = browser.run("unisono.state.get('step')")
    far, *named = browser.driver.execute_async_script(COMPARED, position, theme)
    assert len(named) == 2, far
    assert [text for text, _ in named[0]] == [text for text, _ in named[1]]
    assert [x for _, x in named[0]] == pytest.approx([x for _, x in named[1]], abs=0.2)
    assert far < 0.003
    before, after = (browser.run("unisono.picture({}).svg(arguments[0])", at) for at in (0, position))
    assert before != after


def test_the_theme_of_the_page_is_that_of_its_pictures(browser, written_page):
    browser.set_up(dark=True)
    browser.open(written_page("ring", size=3), "#step=1")
    surface = browser.run("getComputedStyle(document.documentElement).getPropertyValue('--surface').trim()")
    dark = browser.run("unisono.picture({ theme: document.documentElement.dataset.theme }).svg(1)")
    assert f'fill="{surface}"' in dark
    assert browser.run("document.documentElement.dataset.theme") == "dark"  # paintsOf has restored it
    assert f'fill="{surface}"' not in browser.run("unisono.picture({ theme: 'light' }).svg(1)")


def test_a_key_saves_the_animation_as_gif(browser, written_page, downloads):
    browser.open(written_page("ring", size=2))
    browser.press("g")
    gif = Image.open(io.BytesIO(downloads("all_reduce-ring-2.gif")))
    frames = browser.run("unisono.frames()")
    assert [frame["position"] for frame in frames][:: len(frames) // 2] == [0, 1, 2]
    assert gif.size == SIZE
    assert 5 < gif.n_frames <= len(frames)
    durations, ends = 0, []
    for at in range(gif.n_frames):
        gif.seek(at)
        durations += gif.info["duration"]
        if at in (0, gif.n_frames - 1):
            ends.append(gif.convert("RGB").tobytes())
    assert gif.info["loop"] == 0
    assert durations == 10 * sum(frame["hundredths"] for frame in frames)
    for position, shown in zip((0, 2), ends, strict=True):
        painted = browser.run(
            "(() => { const made = unisono.picture({}); const canvas = document.createElement('canvas');"
            "Object.assign(canvas, made.room); const pen = canvas.getContext('2d'); made.paint(pen, arguments[0]);"
            "return canvas.toDataURL().split(',')[1]; })()",
            position,
        )
        whole = Image.open(io.BytesIO(base64.b64decode(painted))).convert("RGB").tobytes()
        far = sum(abs(one - other) > 24 for one, other in zip(whole, shown, strict=True))
        assert far < 0.002 * len(whole)  # there are 255 colours
    assert browser.text("#save-gif") == "GIF"
    assert [one for one in browser.complaints() if "willReadFrequently" not in one] == []


@pytest.mark.parametrize(
    ("steps", "frames"), [(0, 1), (1, 11), (8, 81), (126, 379), (198, 397), (420, 421), (2046, 411)]
)
def test_long_animations_have_fewer_frames_per_step(browser, written_page, steps, frames):
    browser.open(written_page("ring", size=2))
    made = browser.run(
        "(() => { const { levels } = unisono.scene; unisono.scene.levels = arguments[0];"
        "const made = unisono.frames(); unisono.scene.levels = levels; return made; })()",
        steps,
    )
    positions = [frame["position"] for frame in made]
    assert len(made) == frames
    assert positions == sorted(set(positions))
    assert (positions[0], positions[-1]) == (0, steps)


def test_pages_of_the_course_have_pictures_with_their_captions(browser, gallery):
    for page, said in (
        ("lesson-3-five.html", "Every rank passes on the chunk that it has just added to."),
        ("lesson-3-halves.html", "The first two pictures split an all-reduce in two"),
        ("lesson-8-links.html", "Two DGX H100, 8 GPUs each"),
    ):
        browser.open(gallery.parent / page, "#step=2&lang=en")
        svg = browser.run("unisono.picture({ caption: unisono.captionAt }).svg(unisono.state.get('step'))")
        assert said in described(svg)[1]
        assert said.split()[0] in " ".join(texts(svg))
        assert browser.run("unisono.frames().at(-1).position") >= 6
    browser.open(gallery.parent / "lesson-7-zero3.html")
    assert browser.run("document.querySelector('.savers').childElementCount") == 0


def test_python_and_the_command_line_make_pictures(browser, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["draw", "ring", "-n", "5", "--step", "3", "--lang", "en", "-o", "ring-step3.svg"]) == 0
    svg = (tmp_path / "ring-step3.svg").read_text(encoding="utf-8")
    assert {"Step 3 of 8 · reduce-scatter", "b0+b2+b3+b4"} <= set(texts(svg))
    assert re.fullmatch(r"all_reduce/ring · 5: ring-step3.svg \(\d+ KB\)\n", capsys.readouterr().out)
    drawing = draw("ring", size=2, step=1, rank=1, language="zh")
    dark = drawing.svg(theme="dark")
    assert "第 1 步，共 2 步 · reduce-scatter" in texts(dark)
    assert texts(dark) == texts(drawing.svg())
    assert dark != drawing.svg()
    gif = Image.open(drawing.save("two.gif"))
    assert gif.size == SIZE
    assert gif.n_frames > 5
    with pytest.raises(UsageError, match="has no stage") as raised:
        draw(lesson="zero3").svg()
    assert raised.value.id == "drawing.no_picture"
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == ["ring-step3.svg", "two.gif"]


def test_without_a_browser_an_error_says_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setattr(picture, "find_browser", lambda: None)
    with pytest.raises(UsageError, match=r"open it in any browser and choose SVG below the stage"):
        draw("ring", size=2).save(tmp_path / "ring.svg")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(UsageError, match=r"theme='sepia'; expected 'light' or 'dark'"):
        draw("ring", size=2).svg(theme="sepia")


def test_a_browser_that_hangs_is_ended(monkeypatch, tmp_path):
    slow = tmp_path / "chromium"
    slow.write_text(f"#!/bin/sh\nsleep 60 & echo $! > {tmp_path}/pid\nwait\n", encoding="utf-8")
    slow.chmod(0o755)
    monkeypatch.setattr(picture, "find_browser", lambda: str(slow))
    monkeypatch.setattr(picture, "LIMIT_S", 1)
    with pytest.raises(UsageError, match="did not make the SVG within 1 s"):
        draw("ring", size=2).svg()
    pid = int((tmp_path / "pid").read_text())
    for _ in range(100):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").split()[2]
        if state == "Z":  # it has ended; its status has not been read yet
            return
        time.sleep(0.02)
    raise AssertionError(f"the browser is still running: {state}")
