"""Source locations in an output: stack traces, assertions, compiler messages."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import lru_cache
from itertools import takewhile

from tui_agent.checks.reports import json_report
from tui_agent.files.lazy_regex import late
from tui_agent.files.numbers import whole_number
from tui_agent.store.commands import Place

#: Locations, and paths looked up.
MOST_PLACES, MOST_LOOKED_FOR = 50, 2_000
#: Characters, split between beginning and end.
MOST_READ = 1 << 20
_ANSI = late(r"\x1b\[[0-9;:?]{0,60}[@-~]")
#: Path and line as tools write them; each path is scanned once: `a.py:3`, `a.ts(3,5)`, `a.java:[3,5]`,
#: `"a.py", line 3`, `a.php on line 3`, `a.cs:line 3`, `a_test.dart 3:5`, `a.js: Unexpected token (3:5)`.
_LOCATED = late(
    r"(?<![\w./@+~\\-])(?P<path>[\w./@+~-]{1,400}|(?<=\")[^\"\n:]{1,400}(?=\"))"
    r"(?:"
    r":(?:line )?(?P<colon>\d{1,9})(?!\d)"
    r"|[\"']?,? (?:on |at )?lines? (?P<word>\d{1,9})"
    r"|: (?:(?P<shell>\d{1,9}):|line (?P<named>\d{1,9})[:,])"
    r"|\((?P<round>\d{1,9})(?:,\d{1,9})?\)"
    r"|:\[(?P<square>\d{1,9}),\d{1,9}\]"
    r"|[ \t]{1,80}(?P<apart>\d{1,9}):\d{1,9}(?!\d)"
    r"|: [^\n:()]{1,80} \((?P<behind>\d{1,9}):\d{1,9}\)"
    r")"
)
#: The method before a Java, Kotlin or Scala file; its package gives the folders.
_METHOD = late(r"(?<![\w.$])(?P<package>(?:[a-z_]\w{0,80}\.){1,20})[\w$.<>]{1,200}\($")
#: A line that is only a path, and a line with a position in that file.
_ALONE = late(r"^(?P<path>[\w./@+~-]{1,400})$")
_POSITION = late(r"^[ \t]{1,8}(?P<line>\d{1,9}):\d{1,9}[ \t]{1,8}(?:error|warning|✖|⚠|✘)")


def places(output: str, find: Callable[[str], str]) -> list[Place]:
    """Returns distinct locations in the project's files, in order.

    `find` maps a path in the output to a workspace-relative path, or "".
    """
    looked_for = 0

    @lru_cache(maxsize=MOST_LOOKED_FOR)
    def file_of(path: str) -> str:
        nonlocal looked_for
        looked_for += 1
        return find(path) if looked_for <= MOST_LOOKED_FOR else ""

    found: dict[Place, None] = {}
    for path, line in _located(output):
        if file := file_of(path):
            found[Place(file, line)] = None
            if len(found) == MOST_PLACES:
                break
    return list(found)


def _located(output: str) -> Iterator[tuple[str, int]]:
    if report := json_report(output):
        yield from ((_cleaned(one.path), one.line) for one in report.failed if one.path and one.line)
    if len(output) > 2 * MOST_READ:
        output = f"{output[:MOST_READ]}\n{output[-MOST_READ:]}"
    above = ""
    for text in _ANSI.sub("", output).split("\n"):
        text = text.rstrip()
        if above and (position := _POSITION.match(text)):
            yield above, whole_number(position["line"])
            continue
        if alone := _ALONE.match(text):
            above = _cleaned(alone["path"])
        elif not text:
            above = ""
        for match in _LOCATED.finditer(text):
            line = next(match[key] for key in _LINES if match[key])
            start = match.start()
            package = (
                _METHOD.search(text[max(0, start - 300) : start]) if text[start - 1 : start] == "(" else None
            )
            path = _cleaned(match["path"])
            if package and "/" not in path:
                path = f"{package['package'].replace('.', '/')}{path}"
            if path:
                yield path, whole_number(line)


#: An assertion or error, as test runners print it, and the lines searched for it before and behind a place.
_SAID = late(
    r"^[ \t>|]*(?:E +)?(?P<said>(?:assert\b|[Ee]xpected\b|expect\(|[\w.:]{0,80}(?:Error|Exception|Failure|Failed)\b"
    r"|[Aa]ssertion\b|panic:|error(?:\[\w+\])?:).{0,400})"
)
_PYTESTS = late(r"^E +\S")
_BEFORE, _BEHIND = 12, 6
#: Longest name and assertion, in characters, and places that get one.
_LONGEST, _MOST_SAID = 240, 8


def said_at(output: str, places: Sequence[Place], names: Sequence[str]) -> tuple[str, ...]:
    """For each place the name of its test, if one of `names`, and the assertion printed beside it: `test_a:
    assert 1 == 2`; "" if the output has neither."""
    lines = _ANSI.sub("", output[-MOST_READ:]).split("\n")
    short = {
        re.split(r"::|[\s(/]", name.rstrip(")"))[-1] if "::" in name else name.split(" ")[0] for name in names
    }
    return tuple(_said(lines, place, short) for place in places[:_MOST_SAID])


def _said(lines: Sequence[str], place: Place, names: Collection[str]) -> str:
    file = place.path.rsplit("/", 1)[-1]
    there = re.compile(rf"{re.escape(file)}\W{{1,3}}(?:line )?{place.line}\b(?P<rest>.*)")
    hit = ((at, there.search(line)) for at, line in enumerate(lines) if file in line)
    at, found = next((one for one in hit if one[1]), (-1, None))
    if found is None:
        return ""
    above, below = lines[max(0, at - _BEFORE) : at][::-1], lines[at + 1 : at + 1 + _BEHIND]
    near = [
        *filter(_PYTESTS.match, above),  # they precede their place
        *takewhile(str.strip, below),
        *takewhile(str.strip, above),
    ]
    rest = found["rest"].lstrip(" :,()")
    hits = (hit["said"] for line in near if (hit := _SAID.match(line)))
    said = rest if " " in rest and not rest.startswith("in ") else next(hits, "")
    around = " ".join(lines[max(0, at - 40) : at + _BEHIND])
    named = {name: around.rfind(name) for name in names if name}
    name = max(named, key=lambda one: named[one], default="")
    words = [name if name and named[name] >= 0 else "", said.strip()]
    return ": ".join(word for word in words if word)[:_LONGEST]


_STEPS = late(r"^(?:\.{1,2}/){1,100}")
_LINES = ("colon", "word", "shell", "named", "round", "square", "apart", "behind")


def _cleaned(path: str) -> str:
    path = f"/{path[5:].lstrip('/')}" if path.startswith("file:/") else path
    path = re.sub(r"^/{2,10}", "/", path)
    return _STEPS.sub("", path)
