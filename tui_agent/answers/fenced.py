"""Changes in the prose of an answer: one pass over its lines yields changes, refusals with their reason, or prose.

What looks like a change and cannot be read with certainty is never content: it is refused by name, or said.
"""

from __future__ import annotations

import re

from msgspec import Struct

from tui_agent.answers import blocks, fences, foreign, names, patches, unified
from tui_agent.answers.findings import Findings
from tui_agent.answers.lines import Lines
from tui_agent.answers.values import ChangeRequest, Refusal

_QUOTED = re.compile(r"[ \t]*>[ \t>]*")
_FILE_LINE = re.compile(r"\*\*\* (?:Add|Update|Delete) File:[ \t]*(\S.*)")


class Found(Struct, frozen=True):
    """What a text holds. `faults` are sentences about all that cannot be read, that of `refused` files too."""

    changes: tuple[ChangeRequest, ...] = ()
    faults: tuple[str, ...] = ()
    refused: tuple[Refusal, ...] = ()


def changes(text: str, cut: bool = False) -> Found:
    """The changes in a prose answer, in their order; `cut` says that its end is missing."""
    scan = _Scan(text.replace("\r\n", "\n"), cut)
    scan.read()
    made: list[ChangeRequest] = []
    refused: list[Refusal] = []
    faults: dict[str, None] = {}
    for item in scan.findings.items:
        match item:
            case ChangeRequest() if item.delete and item.path in scan.findings.dropped:
                pass  # what should take its place is missing
            case ChangeRequest():
                made.append(item)
            case Refusal():
                refused.append(item)
                faults[item.sentence] = None
            case str():
                faults[item] = None
    return Found(tuple(made), tuple(faults), tuple(refused))


class _Scan:
    """One pass over the lines outside of fences."""

    def __init__(self, text: str, cut: bool) -> None:
        self.lines = Lines(text)
        self.findings = Findings(cut)
        #: The first line that belongs to nothing that was read.
        self.floor = 0
        self._never_closed: set[str] = set()

    def read(self) -> None:
        if excess := self.lines.excess:
            self.findings.refuse("", f"the answer has {excess}, and none in so many is read")
            return
        at = 0
        while (at := self.lines.next_hot(at)) < len(self.lines):
            at = self._line(at)

    def _label(self, at: int) -> str:
        return self.lines.above(at, self.floor)

    def _line(self, at: int) -> int:
        """Read what begins in the line; the line after it."""
        lines = self.lines.all
        line = lines[at]
        if fences.opens(line):
            end = fences.Fence(self.lines, at, self._label(at), self.findings).read()
        elif patches.begins_envelope(line):
            end = self.findings.envelope(lines, at, None)
        elif unified.begins(lines, at):
            end = self._diff(at)
        elif blocks.begins(line):
            end = self._block(at)
        else:
            self._say_what_resembles(at, line)
            return self._tag(at, line)
        self.floor = end
        return end

    def _diff(self, at: int) -> int:
        found, end = unified.in_prose(self.lines.all, at)
        if self.findings.cut and not self._goes_on_after(end):
            self.findings.say("The diff in the answer was not finished; its last file is dropped.")
            found = found[:-1]
        self.findings.sections(found)
        return max(end, at + 1)

    def _goes_on_after(self, end: int) -> bool:
        """Whether something follows the diff that is not the beginning of more of it, as far as it came."""
        at, last = self.lines.below(end), self.lines.last()
        if at != last - 1:
            return at < last
        return not any(begin.startswith(self.lines.all[at]) for begin in ("@@ ", "diff --git ", "--- "))

    def _block(self, at: int) -> int:
        label = self._label(at)
        block = blocks.read(self.lines.all, at, self.lines.hot_from(at + 1))
        self.findings.blocks(names.in_label(label) or names.mentioned(label), [block])
        return at + 1 if block.open else block.end

    def _say_what_resembles(self, at: int, line: str) -> None:
        """Say what looks like a change and is none that can be read."""
        quoted = None if line.lstrip().startswith(">>>>>") else _QUOTED.match(line)
        bare = line[quoted.end() :] if quoted else line.strip()
        fence = fences.opens(bare) if quoted else None
        if header := _FILE_LINE.match(bare):
            why = f"its patch does not begin with a line `{patches.BEGIN}`"
            self.findings.refuse(names.plain(header[1].rstrip()), why)
        elif fence and (names.in_info(fence[3]) or fence[3].strip().lower() in fences.DIFF_LANGUAGES):
            self.findings.refuse("", "it is quoted, and what is quoted is not read")
        elif (
            blocks.resembles(bare)
            or unified.begins_hunk(bare)
            or bare.startswith("diff --git ")
            or bare.rstrip() == patches.BEGIN
        ):
            what = f"“{bare[:60].strip()}” looks like the beginning of a change in a form that cannot be read"
            self.findings.refuse(names.in_sure_label(self._label(at)), what)

    def _tag(self, at: int, line: str) -> int:
        """Pass over a change that is wrapped in tags, and say so; the line after it."""
        found = foreign.tag(line)
        if found is None or found.closing:
            return at + 1
        lines = self.lines.all
        below = self.lines.below(at + 1)
        if below < len(lines) and patches.begins_envelope(lines[below]):
            return below  # only a wrapping
        path = found.path or next(filter(None, map(foreign.path_inside, lines[at : at + 4])), "")
        path = path if names.is_path(path) else ""
        if not found.sure:
            path = path or names.in_sure_label(self._label(at))
            marked = below < len(lines) and (blocks.resembles(lines[below]) or unified.begins(lines, below))
            if not path and not marked:
                return at + 1
        end = self._closing_tag(at, found.name)
        if end is None and not path:
            return at + 1
        self.findings.refuse(
            names.plain(path), f"it is wrapped in <{found.name}>, a form that is not read here"
        )
        self.floor = at + 1 if end is None else end + 1
        return self.floor

    def _closing_tag(self, at: int, name: str) -> int | None:
        if f"</{name}>" in self.lines.all[at]:
            return at
        if name in self._never_closed:
            return None
        for number in self.lines.hot_from(at + 1):
            if self.lines.all[number].lstrip().startswith(f"</{name}"):
                return number
        self._never_closed.add(name)
        return None
