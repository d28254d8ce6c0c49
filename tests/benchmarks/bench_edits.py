"""Edits of random files in every form, disturbed: what came of them, with a seed that stays; and what each step takes.

The time of a step is told in yardsticks, a fixed piece of work in plain Python that is measured beside it: a machine
that is slow, or has other things to do, is so for both.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from random import Random

from figures import Figure, show
from support.edit_replies import DISTURBANCES, FORMS, PLACED, tried
from support.edit_requests import by_diff
from support.shapes import FUNCTIONS as TOOL_FUNCTIONS
from support.shapes import RESPONSE

from tui_agent.answers.structured_reader import StructuredReader
from tui_agent.answers.tools_reader import ToolsReader
from tui_agent.answers.values import ChangeRequest, EditHunk
from tui_agent.edits.change import compose, hunks
from tui_agent.edits.forms import propose

ROUNDS = 4
SEED = 13
#: Functions of eight lines in the file, and those of them that are changed.
FUNCTIONS, CHANGED = 625, 60
PAIRS = 9


def function(number: int, new: str = "") -> list[str]:
    return [
        f"def function_{number}(value, other={number}):",
        f'    """Doc of {number}."""',
        f"    if value > {number}:",
        f"        return compute(value, {number}) + other{new}",
        f"    for item in values_{number}:",
        f"        total_{number} += item * {number}",
        f"    return total_{number}",
        "",
    ]


def edit(number: int, form: Callable[[str], str] = str) -> EditHunk:
    old, new = ("".join(form(line) + "\n" for line in function(number, added)[:6]) for added in ("", " + 1"))
    return EditHunk(old, new)


TEXT = "\n".join(line for number in range(FUNCTIONS) for line in function(number)) + "\n"
PLACES = range(0, FUNCTIONS, FUNCTIONS // CHANGED)
NEW = propose(ChangeRequest("a.py", edits=tuple(map(edit, PLACES))), TEXT).new_text or ""
EDITS = [edit(number) for number in PLACES]
DIFF = "".join(
    f"@@ -{number * 8 + 1},6 +{number * 8 + 1},6 @@\n"
    + "".join(f" {line}\n" for line in function(number)[:3])
    + f"-{function(number)[3]}\n+{function(number, ' + 1')[3]}\n"
    + "".join(f" {line}\n" for line in function(number)[4:6])
    for number in PLACES
)
WORDS = "Some words of a line as long as those that models write, with `code` in it.\n\n- a bullet\n\n"
BLOCKS = "".join(f"<<<<<<< SEARCH\n{one.old}=======\n{one.new}>>>>>>> REPLACE\n" for one in EDITS)
JSON = json.dumps(
    {
        "summary": "S",
        "fileChanges": [
            {"path": "a.py", "edits": [{"search": one.old, "replace": one.new} for one in EDITS]}
        ],
    }
)
PARTS = hunks(TEXT, NEW)


def read_json() -> None:
    reader = StructuredReader(RESPONSE)
    for at in range(0, len(JSON), 40):
        reader.feed(JSON[at : at + 40])
    assert reader.finish(False).changes


def read_prose(text: str) -> None:
    reader = ToolsReader(RESPONSE, TOOL_FUNCTIONS)
    for at in range(0, len(text), 40):
        reader.feed(text[at : at + 40])
    assert reader.finish(False).changes


def place(form: Callable[[str], str] = str) -> Callable[[], object]:
    request = ChangeRequest("a.py", edits=tuple(edit(number, form) for number in PLACES))
    return lambda: propose(request, TEXT)


#: What is measured, and the most yardsticks that it may take.
STEPS: dict[str, tuple[Callable[[], object], float]] = {
    "60 edits read, in JSON": (read_json, 0.25),
    "60 blocks read, in prose": (lambda: read_prose(f"{WORDS}a.py\n```\n{BLOCKS}```\n"), 0.25),
    "a diff of 60 hunks read": (
        lambda: read_prose(f"{WORDS}```diff\n--- a/a.py\n+++ b/a.py\n{DIFF}```\n"),
        0.18,
    ),
    "60 edits placed in 5,000 lines": (place(), 0.8),
    "60 edits placed, indented otherwise": (place(lambda line: f"  {line}"), 1.9),
    "60 edits placed, blanks at line ends": (place(lambda line: f"{line} "), 1.4),
    "a diff of 60 hunks placed": (lambda: propose(by_diff(DIFF), TEXT), 0.9),
    "hunks of 5,000 lines": (lambda: hunks(TEXT, NEW), 1.2),
    "half of the hunks composed": (lambda: compose(TEXT, PARTS, range(0, len(PARTS), 2)), 0.12),
}


def yardstick() -> None:
    counts: dict[int, int] = {}
    for number in range(100_000):
        counts[number % 997] = counts.get(number % 997, 0) + number


def spent(step: Callable[[], object]) -> float:
    begin = time.thread_time()
    step()
    return time.thread_time() - begin


def steps() -> list[Figure]:
    figures = []
    for name, (step, most) in STEPS.items():
        step()
        pairs = [(spent(yardstick), spent(step)) for _ in range(PAIRS)]
        share = statistics.median(ours / bare for bare, ours in pairs)
        note = f"{min(ours for _, ours in pairs) * 1000:.1f} ms"
        figures.append(Figure(name, share, most, " yardsticks", note))
    return figures


def main() -> None:
    began = time.thread_time()
    cases = [
        tried(Random(f"{SEED}/{name}/{form}/{number}"), form, name)
        for name, kind in DISTURBANCES.items()
        for form in FORMS
        if form in kind.forms
        for number in range(ROUNDS)
    ]
    taken = (time.thread_time() - began) / len(cases)
    once = [case for case in cases if case.unique and case.disturbance in PLACED]
    right = sum(case.verdict == "right" for case in once)
    wrong = [case for case in cases if case.verdict not in ("right", "refused")]
    deep = sum(case.verdict == "wrong depth" for case in wrong)
    show(
        [
            Figure(f"wrong of {len(cases):,} disturbed edits", len(wrong) - deep, 0),
            Figure("new lines at a wrong depth", deep, 0),
            Figure(
                "not right where one place exists",
                100 - 100 * right / len(once),
                7,
                " %",
                f"{right:,} of {len(once):,} right",
            ),
            Figure("an edit drawn, written, read and placed", taken * 1000, 20, " ms"),
            *steps(),
        ]
    )


if __name__ == "__main__":
    main()
