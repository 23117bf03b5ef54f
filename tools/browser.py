"""Drive a real browser: Debian's Chromium through its driver."""

from __future__ import annotations

import base64
import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

MISSING = (
    "SKIPPED, NOT TESTED IN A BROWSER: Chromium or its driver is missing (apt-get install chromium chromium-driver)"
)
SWITCHES = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--lang=en-US",
)  # fmt: skip

SCRIPT_LIMIT_S = 120  # on a busy machine

# Keys without a character, as WebDriver encodes them.
TAB, ENTER, SHIFT, ESCAPE = "\ue004", "\ue007", "\ue008", "\ue00c"
END, HOME, LEFT, RIGHT, DOWN = "\ue010", "\ue011", "\ue012", "\ue014", "\ue015"


def is_there() -> bool:
    """Tell whether a browser and its driver are installed."""
    return all(shutil.which(name) for name in ("chromium", "chromedriver"))


@contextlib.contextmanager
def running(profile: Path) -> Iterator[Browser]:
    """Start a browser with a separate profile, and quit it afterwards."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for switch in (*SWITCHES, f"--user-data-dir={profile}"):
        options.add_argument(switch)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    driver.set_script_timeout(SCRIPT_LIMIT_S)
    try:
        yield Browser(driver)
    finally:
        driver.quit()


class Browser:
    """A running browser, with the actions that tests need."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver
        self.set_up()

    def set_up(self, width: int = 1280, height: int = 900, *, dark: bool = False, motion: bool = False) -> None:
        """Set the size of the window and the preferences of the user; without motion, a step takes no time."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        preferences = [
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
            {"name": "prefers-reduced-motion", "value": "no-preference" if motion else "reduce"},
        ]
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": preferences})

    def open(self, path: Path, link: str = "") -> None:
        """Open a page from its file and wait until it is ready; fail if it writes to the console."""
        self.driver.get("about:blank")
        self.driver.get_log("browser")
        self.driver.get(path.as_uri() + link)
        self.wait_for("document.documentElement.dataset.ready === 'true'")
        assert self.complaints() == []

    def complaints(self) -> list[str]:
        """Return what the page has written to the console since the last call."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def run(self, code: str, *values: Any) -> Any:
        """Return the value of a JavaScript expression."""
        return self.driver.execute_script(f"return {code}", *values)

    def wait_for(self, condition: str) -> None:
        """Wait until a JavaScript condition holds."""
        from selenium.webdriver.support.wait import WebDriverWait

        WebDriverWait(self.driver, 30, poll_frequency=0.02).until(lambda _: self.run(condition))

    def press(self, *keys: str) -> None:
        """Press keys; they go to the focused element."""
        from selenium.webdriver.common.action_chains import ActionChains

        ActionChains(self.driver, duration=0).send_keys(*keys).perform()

    def press_with_shift(self, key: str) -> None:
        """Press a key while Shift is held."""
        from selenium.webdriver.common.action_chains import ActionChains

        ActionChains(self.driver, duration=0).key_down(SHIFT).send_keys(key).key_up(SHIFT).perform()

    def click(self, selector: str) -> None:
        """Click an element."""
        self.run("document.querySelector(arguments[0]).click()", selector)

    def text(self, selector: str) -> str:
        """Return the text of an element."""
        return self.run("document.querySelector(arguments[0]).textContent", selector)

    def cut_off(self) -> list[str]:
        """Return the texts that do not fit into their elements; a page wider than its window counts as one."""
        return self.run("""[
            ...(document.documentElement.scrollWidth > innerWidth ? ["the page"] : []),
            ...[...document.querySelectorAll("h1, h2, h3, p, li, dt, dd, output, label, button, .key")]
                .filter((one) => one.offsetParent && !one.closest(".hidden") && one.clientWidth)
                .filter((one) => one.scrollWidth > one.clientWidth + 1)
                .map((one) => one.textContent),
        ]""")

    def choose(self, selector: str, value: str) -> None:
        """Choose from a list, or move a slider, as a user does."""
        self.run(
            "(() => { const it = document.querySelector(arguments[0]); it.value = arguments[1];"
            "for (const kind of ['input', 'change']) it.dispatchEvent(new Event(kind, {bubbles: true})); })()",
            selector,
            value,
        )

    def step(self) -> float:
        """Return the current step of the page."""
        return self.run("unisono.state.get('step')")

    def frames_per_second(self, seconds: float = 2.0) -> float:
        """Play, and return the number of frames painted per second."""
        code = """
            const [seconds, done] = arguments;
            const { player, state } = unisono;
            state.set({ playing: true });
            requestAnimationFrame(() => {
              const [began, before] = [performance.now(), player.frames];
              setTimeout(() => {
                const passed = (performance.now() - began) / 1000;
                const frames = player.frames - before;
                player.stop();
                done(frames / passed);
              }, seconds * 1000);
            });
        """
        return float(self.driver.execute_async_script(code, seconds))

    def picture(self, path: Path, *, whole: bool = False) -> None:
        """Write a screenshot to a PNG file; ``whole``: of the page, not only of the window."""
        options: dict[str, Any] = {}
        if whole:
            size = self.run("[innerWidth, document.documentElement.scrollHeight]")
            clip = {"x": 0, "y": 0, "width": size[0], "height": size[1], "scale": 1}
            options = {"captureBeyondViewport": True, "clip": clip}
        shot = self.driver.execute_cdp_cmd("Page.captureScreenshot", options)
        path.write_bytes(base64.b64decode(shot["data"]))
