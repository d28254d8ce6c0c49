"""Edits as models write them: every form and dialect, disturbed as models disturb them; read back and judged."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Literal

from support.edit_files import Case, Hunk, case, name
from support.shapes import FUNCTIONS, RESPONSE

from tui_agent.answers.structured_reader import StructuredReader
from tui_agent.answers.tools_reader import ToolsReader
from tui_agent.answers.values import Reply
from tui_agent.edits.proposals import propose
from tui_agent.model.client import CallChunk

Line = tuple[str, str]
Verdict = Literal["right", "refused", "wrong", "wrong depth", "silent"]


@dataclass
class Block:
    """One hunk as it is about to be written: lines with their marks (space, `-`, `+`), and where it begins."""

    marked: list[Line]
    start: int
    #: How many lines more or less the ones before it have made.
    moved: int = 0

    def side(self, without: str) -> list[str]:
        return [text for mark, text in self.marked if mark != without]

    @property
    def old(self) -> list[str]:
        return self.side("+")

    @property
    def new(self) -> list[str]:
        return self.side("-")


@dataclass
class Written:
    """What a model writes, before it has a form; a disturbance changes it."""

    case: Case
    blocks: list[Block]
    #: Done to every line of a search text, and of what replaces it.
    search: Callable[[int, str], str] = field(default=lambda _, line: line)
    replaced: Callable[[int, str], str] = field(default=lambda _, line: line)
    #: Done to the lines of a diff, marks included, and to its headers.
    diff_line: Callable[[str, str], str] = field(default=lambda mark, text: mark + text)
    header: Callable[[list[int]], list[int]] = field(default=lambda numbers: numbers)
    #: Done to the whole reply.
    reply: Callable[[str], str] = field(default=lambda text: text)
    cut: bool = False
    #: False if nobody can say whether the new lines are meant to have what the disturbance gave them too.
    certain: bool = True


def written(draw: Random, one: Case) -> Written:
    """The edits with up to three lines of context around each; those whose context touches are one."""
    around = draw.choice((0, 1, 2, 3, 3))
    groups: list[list[Hunk]] = []
    for hunk in one.hunks:
        if groups and hunk.start - groups[-1][-1].end <= 2 * around + 1:
            groups[-1].append(hunk)
        else:
            groups.append([hunk])
    blocks = []
    moved = 0
    for group in groups:
        blocks.append(_block(one, group, around, moved))
        moved += sum(len(hunk.new) - len(hunk.old) for hunk in group)
    return Written(one, blocks)


def _block(one: Case, group: list[Hunk], around: int, moved: int) -> Block:
    first = max(0, group[0].start - around)
    last = min(len(one.lines), group[-1].end + around)
    if not "".join([*one.lines[first : group[0].start], *group[0].old]).strip():
        first = max(0, group[0].start - 3)
    marked: list[Line] = []
    at = first
    for hunk in group:
        marked += [(" ", text) for text in one.lines[at : hunk.start]]
        marked += [("-", text) for text in hunk.old] + [("+", text) for text in hunk.new]
        at = hunk.end
    return Block([*marked, *((" ", text) for text in one.lines[at:last])], first, moved)


# How it is written


def _blocks(it: Written) -> str:
    parts = [f"{it.case.path}\n```"]
    for block in it.blocks:
        search, new = _both_texts(it, block)
        parts.append(f"<<<<<<< SEARCH\n{search}=======\n{new}>>>>>>> REPLACE")
    return "Here it is.\n\n" + "\n".join(parts) + "\n```\n"


def _both_texts(it: Written, block: Block) -> tuple[str, str]:
    numbers = range(block.start, block.start + len(block.old) + len(block.new))
    search = [it.search(number, line) for number, line in zip(numbers, block.old, strict=False)]
    new = [it.replaced(number, line) for number, line in zip(numbers, block.new, strict=False)]
    return "".join(line + "\n" for line in search), "".join(line + "\n" for line in new)


def _edits(it: Written, ended: bool) -> dict[str, object]:
    pairs = [_both_texts(it, block) for block in it.blocks]
    if not ended:
        pairs = [(_unended(old), _unended(new)) if new else (old, new) for old, new in pairs]
    return {"path": it.case.path, "edits": [{"search": old, "replace": new} for old, new in pairs]}


def _unended(text: str) -> str:
    return text.removesuffix("\n").removesuffix("\r")


def _diff(it: Written) -> str:
    path = it.case.path
    return f"--- a/{path}\n+++ b/{path}\n" + _hunk_lines(it, numbered=True)


def _hunk_lines(it: Written, numbered: bool) -> str:
    lines: list[str] = []
    for block in it.blocks:
        old, new = len(block.old), len(block.new)
        numbers = [block.start + (old > 0), old, block.start + block.moved + (new > 0), new]
        numbers = it.header(numbers)
        lines.append("@@ -{},{} +{},{} @@".format(*numbers) if numbered else "@@")
        at = block.start
        for mark, text in block.marked:
            done = it.replaced if mark == "+" else it.search
            lines.append(it.diff_line(mark, done(at, text)))
            at += 1
    return "".join(line + "\n" for line in lines)


def _envelope(it: Written) -> str:
    body = _hunk_lines(it, numbered=False)
    return f"*** Begin Patch\n*** Update File: {it.case.path}\n{body}*** End Patch\n"


def _structured(*changes: dict[str, object]) -> str:
    return json.dumps(
        {"summary": "Done.", "message": "As asked.", "fileChanges": changes}, ensure_ascii=False
    )


def _tools(*changes: dict[str, object]) -> str:
    return json.dumps({"changes": changes}, ensure_ascii=False)


def _whole(it: Written) -> str:
    """The whole file, as far as the blocks as they are now change it."""
    return "".join(line + "\n" for line in it.case.wanted_lines)


#: Each form gives what is streamed; those of the tools dialect are the arguments of a call.
FORMS: dict[str, Callable[[Written], str]] = {
    "edits": lambda it: _structured(_edits(it, ended=False)),
    "edits, lines ended": lambda it: _structured(_edits(it, ended=True)),
    "edits in a call": lambda it: _tools(_edits(it, ended=True)),
    "diff": lambda it: _structured({"path": it.case.path, "diff": _diff(it)}),
    "diff in a call": lambda it: _tools({"path": it.case.path, "diff": _hunk_lines(it, numbered=True)}),
    "patch in `diff`": lambda it: _structured({"path": it.case.path, "diff": _envelope(it)}),
    "blocks in prose": _blocks,
    "diff in a fence": lambda it: f"As asked.\n\n```diff\n{_diff(it)}```\n\nDone.\n",
    "diff in prose": lambda it: f"As asked.\n\n{_diff(it)}\nThat is all.\n",
    "patch in prose": lambda it: f"As asked.\n\n{_envelope(it)}",
    "content": lambda it: _structured({"path": it.case.path, "content": _whole(it)}),
    "file in a fence": lambda it: f"As asked.\n\n```text {it.case.path}\n{_whole(it)}```\n".replace(
        "```text ", "```python "
    ),
}
DIFFS = frozenset(one for one in FORMS if "diff" in one or "patch" in one)
WHOLE = frozenset({"content", "file in a fence"})


# What goes wrong


def _shift(draw: Random, it: Written) -> None:
    depths = [
        len(line) - len(line.lstrip()) for block in it.blocks for _, line in block.marked if line.strip()
    ]
    less = min(depths, default=0)
    tabs = any("\t" in line for block in it.blocks for _, line in block.marked)
    if less and draw.random() < 0.6:
        change = lambda line: line[less:] if line.strip() else line  # noqa: E731
    else:
        more = "\t" if tabs else draw.choice(("  ", "    ", " ", "   "))
        change = lambda line: more + line if line.strip() else line  # noqa: E731
    _each(it, lambda mark, line: change(line))


def _each(it: Written, change: Callable[[str, str], str]) -> None:
    for block in it.blocks:
        block.marked = [(mark, change(mark, line)) for mark, line in block.marked]


def _tabs(draw: Random, it: Written) -> None:
    level = _level(it.case.lines)
    _indented(
        it,
        lambda _, line: re.sub(
            r"^ +", lambda found: "\t" * (len(found[0]) // level) + " " * (len(found[0]) % level), line
        ),
    )


def _level(lines: Sequence[str]) -> int:
    """How many blanks one level of a file has: 2 if a fifth of its indented lines could not have 4."""
    depths = [len(line) - len(line.lstrip(" ")) for line in lines if line.startswith(" ") and line.strip()]
    odd = sum(depth % 4 != 0 for depth in depths)
    return 2 if odd > len(depths) / 5 else 4


def _indented(it: Written, change: Callable[[str, str], str]) -> None:
    """Every line of the blocks in which a line that is searched for changes too, so that the two can be compared."""
    for block in it.blocks:
        if any(change(" ", line) != line for line in block.old if line.strip()):
            block.marked = [(mark, change(mark, line)) for mark, line in block.marked]


def _wider(draw: Random, it: Written) -> None:
    """Four blanks a level for two, or two for four."""
    lines = [line for block in it.blocks for _, line in block.marked if line.strip()]
    if _level(it.case.lines) == 4 and any((len(line) - len(line.lstrip(" "))) % 4 > 1 for line in lines):
        return  # two depths would become one
    if _level(it.case.lines) == 2:
        _indented(it, lambda _, line: re.sub(r"^ +", lambda found: found[0] * 2, line))
    else:
        _indented(it, lambda _, line: re.sub(r"^( {4})+", lambda found: found[0][::2], line))


def _first_line(draw: Random, it: Written) -> None:
    """The first line of a search text, and what takes its place, lack their indentation."""
    for block in it.blocks:
        mark, line = block.marked[0]
        new = next((n for n, (sign, _) in enumerate(block.marked) if sign != "-"), None)
        worded = sum(bool(one.strip()) for one in block.old)
        if (
            not line.strip()
            or mark == "+"
            or worded < 2
            or any(sign == "+" and one[:1].strip() for sign, one in block.marked)
        ):
            continue  # with one line, or a blank one, nobody can say how deep the others are
        block.marked[0] = mark, line.lstrip()
        if mark == "-" and new is not None:
            block.marked[new] = block.marked[new][0], block.marked[new][1].lstrip()


def _one(draw: Random, it: Written, marks: str, change: Callable[[str], str]) -> bool:
    """One line with such a mark, changed; whether there is one that the change makes different."""
    places = [
        (block, number)
        for block in it.blocks
        for number, (mark, line) in enumerate(block.marked)
        if mark in marks and line.strip()
    ]
    if not places:
        return False
    block, number = draw.choice(places)
    mark, line = block.marked[number]
    block.marked[number] = mark, change(line)
    return block.marked[number][1] != line


def _stray(draw: Random, it: Written) -> None:
    if draw.random() < 0.6:
        _one(draw, it, " -", lambda line: " " + line)
    else:
        _one(draw, it, " -", lambda line: line[1:] if line[:1] == " " else line)


def _trailing(draw: Random, it: Written) -> None:
    marks = draw.choice((" ", " -", " -+"))
    it.certain = "+" not in marks
    _each(it, lambda mark, line: line + "  " if mark in marks and line.strip() else line)


def _look_alikes(draw: Random, it: Written) -> None:
    table = str.maketrans({"'": "\u2019", '"': "\u201d", "-": "\u2013"})
    for block in it.blocks:
        seen = any(line.translate(table) != line for mark, line in block.marked if mark != "+")
        marks = " -+" if seen and draw.random() < 0.6 else " -"
        it.certain = it.certain and "+" not in marks
        block.marked = [
            (mark, line.translate(table) if mark in marks else line) for mark, line in block.marked
        ]


def _spaces(draw: Random, it: Written) -> None:
    quoted = {
        line for block in it.blocks for _, line in block.marked if re.search(r"['\"`#]|//|^\s*\*", line)
    }
    before = {line for block in it.blocks for _, line in block.marked}
    _one(draw, it, " -", lambda line: re.sub(r"(?<=[\w,]) (?=\w)", "  ", line, count=1))
    after = {line for block in it.blocks for _, line in block.marked}
    it.certain = not quoted & (before - after)  # inside of a string blanks count


def _commas(draw: Random, it: Written) -> None:
    _one(draw, it, " -", lambda line: line.rstrip(",;") if line[-1] in ",;" else line.replace(", ", " , ", 1))


def _numbers(draw: Random, it: Written) -> None:
    style = draw.choice(("{}: ", "{} | ", "{}\t"))
    it.search = lambda number, line: style.format(number + 1) + line
    if draw.random() < 0.6:
        it.replaced = it.search


def _crlf(draw: Random, it: Written) -> None:
    _each(it, lambda _, line: line + "\r")


def _forgotten(draw: Random, it: Written) -> None:
    places = [
        (block, number)
        for block in it.blocks
        if block.old and block.old[0].strip() and block.old[-1].strip()
        for number, (mark, line) in enumerate(block.marked)
        if mark == " "
        and (line.strip() or (number + 1 < len(block.marked) and block.marked[number + 1][1].strip()))
        and all(
            any(sign != "+" for sign, _ in part)
            for part in (block.marked[:number], block.marked[number + 1 :])
        )
    ]
    if places:
        block, number = draw.choice(places)
        kept = list(block.marked)
        it.certain = all(mark == " " for mark, _ in kept[max(0, number - 1) : number + 2])
        del block.marked[number]
        if _times(it.case.lines, block.old):
            block.marked = kept  # without the line it is another place


def _misquoted(draw: Random, it: Written) -> None:
    def other(line: str) -> str:
        words = re.findall(r"[A-Za-z_]{3,}", line)
        return line.replace(draw.choice(words), name(draw) + "_misquoted", 1) if words else line

    _one(draw, it, " ", other)


def _line_numbers(draw: Random, it: Written) -> None:
    """All too high or too low by as much, or each by something else; never those of a twin."""
    by = draw.randrange(-9, 30)
    if any(_times(it.case.lines, block.old) != 1 for block in it.blocks):
        return
    each = draw.random() < 0.5
    it.header = lambda numbers: [
        max(1, numbers[0] + (draw.randrange(-9, 30) if each else by)),
        numbers[1],
        max(1, numbers[2] + by),
        numbers[3],
    ]


def _counts(draw: Random, it: Written) -> None:
    it.header = lambda numbers: [
        numbers[0],
        numbers[1] + draw.randrange(1, 5),
        numbers[2],
        numbers[3] + draw.randrange(1, 4),
    ]


def _unmarked(draw: Random, it: Written) -> None:
    every = draw.random() < 0.5
    it.diff_line = lambda mark, text: (
        text if mark == " " and text[:1] not in "-+" and (every or draw.random() < 0.5) else mark + text
    )


def _after_marks(draw: Random, it: Written) -> None:
    it.diff_line = lambda mark, text: f"{mark} {text}"


def _other_name(draw: Random, it: Written) -> None:
    """A name, a number or a string of the lines that are searched for is another, which the file does not have."""
    new = draw.choice((f"{name(draw)}_elsewhere", "987", "x9"))

    def other(line: str) -> str:
        found = list(re.finditer(r"\w+", line))
        one = draw.choice(found) if found else None
        return line[: one.start()] + new + line[one.end() :] if one else line

    _one(draw, it, " -", other)


def _one_letter(draw: Random, it: Written) -> None:
    """A name or a number of the lines that are searched for has a letter more or less."""

    def other(line: str) -> str:
        found = [one for one in re.finditer(r"\w+", line) if len(one[0]) > 1]
        one = draw.choice(found) if found else None
        if one is None:
            return line
        word = one[0][:-1] if draw.random() < 0.5 else one[0] + one[0][-1]
        return line[: one.start()] + word + line[one.end() :]

    _one(draw, it, " -", other)


def _cut(draw: Random, it: Written, told: bool = False) -> None:
    share = draw.random()
    it.reply = lambda text: text[: int(len(text) * share)]
    it.cut = told or draw.random() < 0.5


def _joined(draw: Random, it: Written) -> None:
    """Two lines of what is searched for are written as one."""
    for block in it.blocks:
        for at in range(len(block.marked) - 1):
            (mark, line), (other, more) = block.marked[at : at + 2]
            joined = f"{line.rstrip()} {more.strip()}"
            if mark == other == "-" and line.rstrip().endswith(("(", ",", "{")) and joined not in block.new:
                block.marked[at : at + 2] = [("-", joined)]
                return


@dataclass(frozen=True)
class Disturbance:
    """What a model gets wrong. `apart` says that the lines asked for are not in the file any more."""

    change: Callable[[Random, Written], None]
    forms: frozenset[str] = frozenset(FORMS) - WHOLE
    apart: bool = False


_BY_LINE = frozenset(FORMS) - WHOLE
_PAIRS = _BY_LINE - DIFFS
DISTURBANCES: dict[str, Disturbance] = {
    "as it should be": Disturbance(lambda draw, it: None, frozenset(FORMS)),
    "another indentation": Disturbance(_shift, _PAIRS),
    "tabs": Disturbance(_tabs, _PAIRS),
    "another width": Disturbance(_wider, _PAIRS),
    "first line bare": Disturbance(_first_line, _PAIRS),
    "stray blank": Disturbance(_stray),
    "blanks at line ends": Disturbance(_trailing),
    "look-alikes": Disturbance(_look_alikes),
    "blanks inside": Disturbance(_spaces),
    "commas": Disturbance(_commas),
    "line-number prefixes": Disturbance(_numbers, _PAIRS),
    "carriage returns": Disturbance(_crlf),
    "forgotten line": Disturbance(_forgotten),
    "misquoted line": Disturbance(_misquoted, apart=True),
    "wrong line numbers": Disturbance(_line_numbers, DIFFS),
    "wrong counts": Disturbance(_counts, DIFFS),
    "context without its blank": Disturbance(_unmarked, DIFFS),
    "a blank after each mark": Disturbance(_after_marks, DIFFS),
    "another name": Disturbance(_other_name, apart=True),
    "one letter": Disturbance(_one_letter, apart=True),
    "joined lines": Disturbance(_joined),
    "cut": Disturbance(_cut, frozenset(FORMS)),
    "twins": Disturbance(lambda draw, it: None),
    "made already": Disturbance(lambda draw, it: None),
}
#: Disturbances after which exactly one place is still meant.
PLACED = frozenset(
    name
    for name, one in DISTURBANCES.items()
    if not one.apart and name not in ("cut", "twins", "made already")
)


#: What share of the cases in which the lines that are searched for stand in the file once comes out right, at least.
#: Of the others nothing is to be found, or it is not certain what is meant.
FLOORS = {
    "as it should be": 0.98,
    "another indentation": 0.96,
    "tabs": 0.95,
    "another width": 0.94,
    "first line bare": 0.91,
    "stray blank": 0.91,
    "blanks at line ends": 0.64,
    "look-alikes": 0.76,
    "blanks inside": 0.96,
    "commas": 0.96,
    "line-number prefixes": 0.95,
    "carriage returns": 0.97,
    "forgotten line": 0.74,
    "wrong line numbers": 0.97,
    "wrong counts": 0.95,
    "context without its blank": 0.87,
    "a blank after each mark": 0.97,
    "joined lines": 0.96,
    "twins": 0.96,
}


# Reading and judging


@dataclass(frozen=True)
class Tried:
    """One case: what was asked for, in which form, how it was disturbed, and what came of it."""

    form: str
    disturbance: str
    verdict: Verdict
    #: Whether the lines that are searched for stand in the file exactly once.
    unique: bool
    base: str
    wanted: str
    reply: str
    result: str
    reason: str = ""


def tried(
    draw: Random,
    form: str,
    kind: str,
    make: Callable[[Random, bool], Case] = case,
    wrapped: Callable[[str], str] = lambda reply: reply,
) -> Tried:
    """A file and an edit of it, random ones if `make` gives no others, in that form, disturbed in that way, read and
    placed. What the model wrote around it comes with `wrapped`."""
    while True:
        one = make(draw, kind == "twins")
        it = written(draw, one)
        unique = all(_times(one.lines, block.old) == 1 for block in it.blocks)
        before = [list(block.marked) for block in it.blocks]
        if kind == "cut" and form == "diff in prose":
            _cut(draw, it, told=True)  # its end is that of a shorter diff, if nobody says more
        else:
            DISTURBANCES[kind].change(draw, it)
        same = before == [block.marked for block in it.blocks]
        if not _asks_elsewhere(it, kind, before):
            break
    reply = it.reply(wrapped(FORMS[form](it)))
    base = one.wanted if kind == "made already" else one.base
    read = read_back(reply, it.cut, in_call=form.endswith("in a call"))
    result, reason = placed(read, one.path, base)
    apart = (
        DISTURBANCES[kind].apart and not same and all(_times(one.lines, b.old) == 0 for b in it.blocks[:1])
    )
    verdict = _judged(one, it, kind, base, result, reason, apart)
    if verdict == "wrong" and form.startswith("edits") and result == _as_written(read, base):
        verdict = "right"
    return Tried(form, kind, verdict, unique and it.certain, base, one.wanted, reply, result or "", reason)


def _as_written(read: Reply, base: str) -> str | None:
    """The file after edits whose search text is in it, exactly once, even if by accident: then that is asked for."""
    for edit in (edit for change in read.changes for edit in change.edits):
        if base.count(edit.old) != 1:
            return None
        ended = edit.old.endswith("\n") and edit.new and not edit.new.endswith("\n")
        base = base.replace(edit.old, edit.new + ("\n" if ended else ""))
    return base


def _asks_elsewhere(it: Written, kind: str, before: list[list[Line]]) -> bool:
    """Whether what is searched for now is, exactly, other lines of the file: then those are asked for."""
    if kind == "made already":
        return any(_times(it.case.wanted_lines, _worded(block.old)) for block in it.blocks)
    lines = list(it.case.lines)
    if kind == "commas" and any(
        {line for mark, line in block.marked if mark == "-"}.intersection(block.new) for block in it.blocks
    ):
        return True  # the line is said to stay, and keeps what the file has
    return any(
        block.marked != marked
        and any(lines[at : at + len(block.old)] == block.old for at in range(len(lines)) if at != block.start)
        for block, marked in zip(it.blocks, before, strict=True)
    )


def _worded(lines: list[str]) -> list[str]:
    """Without the blank lines at both ends."""
    while lines and not lines[0].strip():
        lines = lines[1:]
    while lines and not lines[-1].strip():
        lines = lines[:-1]
    return lines


def _times(lines: Sequence[str], wanted: Sequence[str]) -> int:
    """How often these lines stand in the file, whatever their indentation."""
    bare, want = [line.strip() for line in lines], [line.strip() for line in wanted]
    if not "".join(want):
        return 0
    return sum(bare[at : at + len(want)] == want for at in range(len(bare) - len(want) + 1))


def read_back(reply: str, cut: bool = False, in_call: bool = False) -> Reply:
    """The reply as a turn reads it, in pieces."""
    size = max(len(reply) // 3, 1)
    pieces = [reply[at : at + size] for at in range(0, len(reply), size)]
    if in_call:
        calls = ToolsReader(RESPONSE, FUNCTIONS)
        calls.call(CallChunk(0, "id", "propose_changes"))
        for piece in pieces:
            calls.call(CallChunk(0, arguments=piece))
        return calls.finish(cut)
    reader = StructuredReader(RESPONSE, FUNCTIONS)
    for piece in pieces:
        reader.feed(piece)
    return reader.finish(cut)


def placed(reply: Reply, path: str, base: str) -> tuple[str | None, str]:
    """What the file becomes by the changes of a reply, None (and the reason) where one of them is refused."""
    kept: dict[str, str] = {}

    def put(text: str) -> str:
        digest = hashlib.md5(text.encode()).hexdigest()
        kept[digest] = text
        return digest

    result: str | None = None
    for number, request in enumerate(reply.changes, 1):
        there = base if request.path == path else None
        change = propose(request, 1, number, there, put(base) if there is not None else "", put)
        if change.state == "failed":
            return None, change.reason
        if request.path != path or change.kind != "edit":
            return f"another change: {request}", ""
        if change.ask:
            return None, change.ask
        result = kept[change.new]
    if result is None:
        told = [*reply.faults, *(f"offered: {one.path}" for one in reply.offered if one.path == path)]
        return None, " ".join(told)
    return result, ""


def _judged(
    one: Case, it: Written, kind: str, base: str, result: str | None, reason: str, apart: bool
) -> Verdict:
    if result is None:
        return "refused" if reason or kind == "cut" else "silent"
    if kind == "made already":
        return "right" if result == base else "wrong"
    if result == one.wanted and not apart:
        return "right"
    if kind == "cut" and result == base:
        return "refused"
    ours, theirs = ([line.strip() for line in text.split("\n")] for text in (result, one.wanted))
    return "wrong depth" if ours == theirs and not apart else "wrong"


def foreign_lines(one: Tried) -> list[str]:
    """Lines of the result that are neither the file's nor the model's, but for the white space in front of them."""
    reply = read_back(one.reply, in_call=one.form.endswith("in a call"))
    ours = {line.lstrip() for text in _texts(reply) for line in text.replace("\r", "").split("\n")}
    if one.disturbance == "line-number prefixes":
        ours |= {re.sub(r"^\d+(?:: | \| |\t)", "", line).lstrip() for line in ours}
    known, became = ({*text.replace("\r", "").split("\n")} for text in (one.base, one.result))
    return [line for line in became - known if line.lstrip() not in ours]


def _texts(reply: Reply) -> Iterator[str]:
    for change in reply.changes:
        for request in (change, *change.then):
            yield from (request.content or "", *(edit.new for edit in request.edits))
            yield from (line for hunk in request.diff for line in hunk.added)


__all__ = [
    "DISTURBANCES",
    "FLOORS",
    "FORMS",
    "PLACED",
    "Tried",
    "Verdict",
    "foreign_lines",
    "replace",
    "tried",
]
