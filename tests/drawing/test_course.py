"""The course: every lesson is complete in both languages, and its texts agree with the programs."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from unisono import find, play, prove, simulate
from unisono.drawing.course import COURSE, find_page, lesson_page, race, ring, write_course
from unisono.drawing.course.contents import PLACES
from unisono.drawing.course.recorded import Recording, size_text
from unisono.drawing.course.trace import Trace
from unisono.errors import UsageError

NAMES = [place.page.name for place in PLACES]
DOCS = Path(__file__).parent.parent.parent / "docs"
CHINESE = re.compile("[\u4e00-\u9fff]")
TITLES = [
    "What a rank is", "Reduce and broadcast", "The ring", "Why 2(p−1)/p", "Trees and doubling", "Hierarchy",
    "Training on many ranks", "A race on a simulated network",
]  # fmt: skip


@pytest.fixture(scope="module")
def drawn():
    """Return every page of the course by its name."""
    return {place.page.name: place.page.draw() for place in PLACES}


def caption(drawn, name, number, language="en"):
    return getattr(drawn[name].captions[number].words, language)


def test_the_course_has_eight_lessons_in_order():
    assert [lesson.title.en for lesson in COURSE] == TITLES
    assert [place.page.name for place in PLACES if place.number == 7] == [
        "data-parallel", "tensor-parallel", "zero3", "experts",
    ]  # fmt: skip
    assert len(set(NAMES)) == len(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_every_page_has_title_story_captions_and_a_question_in_both_languages(drawn, name):
    place, page = find_page(name), drawn[name]
    assert 3 <= len(page.captions) <= 6
    assert len(page.question.choices) >= 3
    question = page.question
    texts = [
        place.lesson.title, place.lesson.story, place.page.title, place.page.story, question.words, question.answer,
        *(each.words for each in page.captions),
    ]  # fmt: skip
    for text in texts:
        assert all(text)
        assert not CHINESE.search(text.en)
    for text in [question.words, question.answer, *(each.words for each in page.captions)]:
        assert CHINESE.search(text.zh)
        assert text.en.count("`") == text.zh.count("`")
        assert text.en[0].isupper() or text.en[0].isdigit()
        assert text.en[-1] in ".?)"
        assert text.zh[-1] in "。？）"


@pytest.mark.parametrize("name", NAMES)
def test_both_languages_state_the_same_numbers(drawn, name):
    def numbers(text):
        return sorted(re.findall(r"[0-9]+(?:[./][0-9]+)?", re.sub(r"(?<=[0-9]),(?=[0-9]{3})", "", text)))

    question = drawn[name].question
    for text in [each.words for each in drawn[name].captions] + [question.answer, *question.choices]:
        assert set(numbers(text.zh)) == set(numbers(text.en)), text


@pytest.mark.parametrize("name", NAMES)
def test_captions_refer_to_moments_that_exist_in_the_order_of_the_page(drawn, name):
    page = drawn[name]
    assert page.captions[0].at == 0
    views = [json.dumps(each.view, sort_keys=True) for each in page.captions]
    for view in dict.fromkeys(views):
        moments = [each.at for each, seen in zip(page.captions, views, strict=True) if seen == view]
        assert moments == sorted(set(moments))
        assert moments[0] >= 0
        assert moments[-1] <= page.last
    if page.by_steps:
        assert all(each.at == int(each.at) for each in page.captions)


def test_the_next_chain_visits_all_pages_and_the_previous_chain_goes_back(tmp_path):
    lessons = list(write_course(tmp_path, None, "index.html", lambda path: None))
    assert [lesson["name"] for lesson in lessons] == [lesson.name for lesson in COURSE]

    def frame(file):
        text = (tmp_path / file).read_text(encoding="utf-8")
        found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
        return json.loads(found[1])["settings"]["course"]

    for way, start, end in (("next", 0, -1), ("previous", -1, 0)):
        visited, file = [], PLACES[start].file
        while True:
            here = frame(file)
            visited.append((here["lesson"], here["name"]))
            if here[way] is None:
                break
            file = here[way]["file"]
        expected = [(place.number, place.page.name) for place in PLACES]
        assert visited == (expected if way == "next" else expected[::-1])
        assert file == PLACES[end].file


def test_a_page_that_is_drawn_alone_has_no_links_and_names_the_next_one():
    _, page = lesson_page("five", "en")
    course = json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])["settings"]["course"]
    assert course["home"] is None
    assert course["next"]["file"] is None
    assert course["next"]["name"] == "halves"


@pytest.mark.parametrize("name", NAMES)
def test_a_page_is_small_and_self_contained(drawn, name):
    _, page = lesson_page(name)
    assert len(page.encode()) < 400_000
    assert set(re.findall(r"https?://[^\s\"'<>)]+", page)) <= {"http://www.w3.org/2000/svg"}


def test_names_and_numbers_find_lessons_and_a_mistyped_name_gets_a_hint():
    assert [find_page(number).lesson for number in range(1, 9)] == list(COURSE)
    assert find_page("3") == find_page("ring") == find_page("five")
    assert find_page("halves").number == 3
    with pytest.raises(UsageError, match="did you mean 'doubling'"):
        find_page("dubling")


# The answers, computed in another way than by the texts.


def test_two_ranks_wait_in_the_first_step_of_lesson_1(drawn):
    question = drawn["rank"].question
    assert "Ranks 2 and 3" in question.choices[question.right].en


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("reduce", find("reduce/tree").schedule(8)),
        ("tree", find("tree").schedule(1024)),
    ],
)
def test_steps_in_answers_are_those_of_the_schedule(drawn, name, answer):
    question = drawn[name].question
    assert question.choices[question.right].en == str(prove(answer).levels)


def test_reduce_and_broadcast_together_have_the_messages_of_the_tree(drawn):
    question = drawn["broadcast"].question
    assert question.choices[question.right].en == str(prove(find("tree").schedule(4)).messages)


def test_on_the_ring_all_ranks_hold_all_sums_after_the_last_step_and_none_before(drawn):
    frames = list(play("ring", [np.array([10**r] * 5) for r in range(5)], record=True).frames())
    complete = [
        [all(cell is not None and cell.values == 11111 for cell in row) for row in frame.rows] for frame in frames
    ]
    assert not any(any(ranks) for ranks in complete[:8])
    assert all(complete[8])
    question = drawn["five"].question
    assert question.choices[question.right].en == "All of them, after step 8."
    trace = Trace.of("ring", 5)
    assert [ring.whole_on(trace, level) for level in (7, 8)] == [[], [0, 1, 2, 3, 4]]


def test_the_captions_of_the_ring_state_what_the_player_computes(drawn):
    frames = list(play("ring", [np.arange(5) + rank for rank in range(5)], record=True).frames())
    assert "Rank 1 now holds e0+e1" in caption(drawn, "five", 1)
    assert frames[1].rows[1][4].values.item() == (4 + 0) + (4 + 1)
    assert f"rank 0 has chunk a: {frames[4].rows[0][0].values.item()}" in caption(drawn, "five", 3)
    assert "[10, 15, 20, 25, 30]" in caption(drawn, "five", 5)
    assert "[10, 15, 20, 25, 30]" in caption(drawn, "five", 5, "zh")


def test_bus_bandwidth_in_lesson_4_is_that_of_bench(drawn):
    question = drawn["busbw"].question
    assert question.choices[question.right].en == f"{30 * 2 * 7 / 8} GB"


def test_a_ring_over_two_hosts_sends_more_between_them_than_hierarchy(drawn):
    """Counted from the programs: every message between ranks 0 to 3 and ranks 4 to 7."""

    def crossing(name, **options):
        schedule = find(name).schedule(8, **options)
        sent = [
            (rank, op.other)
            for rank in range(8)
            for step in schedule.program(rank)
            for op in step
            if op.kind == "send"
        ]
        return sum((src < 4) != (dst < 4) for src, dst in sent)

    assert Fraction(crossing("ring"), crossing("hierarchical", node=4)) == Fraction(7, 4)
    question = drawn["hosts"].question
    assert question.choices[question.right].en == "1.75 times as much."


def test_zero3_sends_half_as_much_again_as_ddp(drawn):
    question = drawn["zero3"].question
    assert question.answer.en.startswith("1.50 times")
    assert question.choices[question.right].en.startswith("Half as much again")
    assert "fall to 1/4 just before the update" in question.answer.en
    ddp, zero3 = (
        size_text(max(map(allocated, Recording.of(name).data["moments"]))) for name in ("data_parallel", "zero3")
    )
    assert f"allocates at most {zero3}; with DDP it is {ddp}." in question.answer.en


def allocated(moment):
    """Return the bytes that rank 0 has allocated at a moment."""
    return sum(map(sum, moment["held"][0])) + moment["empty"][0]


def test_the_busiest_expert_is_the_right_answer(drawn):
    question = drawn["experts"].question
    assert question.choices[question.right].en == "Rank 1"
    assert "16, 18, 16 and 14 rows" in caption(drawn, "experts", 3)


def test_the_winners_of_the_race_are_those_of_the_simulator(drawn):
    def fastest(nbytes):
        return min(race.RACERS, key=lambda name: simulate(find(name).schedule(8), nbytes, race.NETWORK).time_s)

    assert fastest(race.SHORT) == fastest(race.TINY) == "recursive_doubling"
    assert fastest(race.LONG) == "rabenseifner"
    assert caption(drawn, "race", 1).startswith("Recursive doubling is done")
    assert caption(drawn, "race", 4).startswith("Rabenseifner wins")
    question = drawn["race"].question
    assert question.choices[question.right].en == "No: rabenseifner for the gradients, recursive doubling for 8 B."


def test_on_a_short_vector_a_call_and_its_steps_explain_the_times_of_all_racers(drawn):
    levels = [prove(find(name).schedule(8)).levels for name in race.RACERS]
    times = [simulate(find(name).schedule(8), race.SHORT, race.NETWORK).time_s for name in race.RACERS]
    call_s, step_s = race.parts_of_time(levels, times)
    assert times == pytest.approx([call_s + count * step_s for count in levels], rel=0.02)
    assert f"fixed cost of {call_s * 1e6:.2g} µs; at this size each step adds {step_s * 1e6:.2g} µs" in caption(
        drawn, "race", 1
    )


def test_between_the_captions_of_the_network_only_far_messages_move(drawn):
    _, away, back, _ = (each.at for each in drawn["links"].captions)
    found = simulate(find("hierarchical").schedule(16, node=8), race.HOSTS_BYTES, race.NETWORK, timeline=True)
    far = found.timeline.source // 8 != found.timeline.target // 8
    middle = (away + back) / 2 / 100 * found.time_s
    moving = (found.timeline.leave_s[0] <= middle) & (middle < found.timeline.done_s[0])
    assert moving.any()
    assert not (moving & ~far).any()


@pytest.mark.parametrize(("file", "language"), [("course.md", "en"), ("course.zh.md", "zh")])
def test_the_document_lists_every_lesson_and_page_and_plans_ninety_minutes(file, language):
    text = (DOCS / file).read_text(encoding="utf-8")
    for number, lesson in enumerate(COURSE, 1):
        (row,) = re.findall(rf"^\| {number} \| .*$", text, re.MULTILINE)
        assert getattr(lesson.title, language) in row
        assert re.findall("`([a-z0-9-]+)`", row) == [page.name for page in lesson.pages]
    plan = [tuple(map(int, found)) for found in re.findall(r"^\| (\d+)–(\d+) \| \d \|", text, re.MULTILINE)]
    assert [end for _, end in plan[:-1]] == [start for start, _ in plan[1:]]
    assert (plan[0][0], plan[-1][1], len(plan)) == (0, 90, 8)
