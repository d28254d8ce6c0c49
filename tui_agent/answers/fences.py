"""One fence in the prose of an answer: a form inside it, a whole file, or only something that is shown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice

from tui_agent.answers import blocks, foreign, names, patches, unified
from tui_agent.answers.findings import Findings
from tui_agent.answers.lines import Inside, Lines
from tui_agent.answers.values import ChangeRequest

OPENING = re.compile(r"([ \t]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)?)(`{3,}|~{3,})[ \t]*(.*)")
DIFF_LANGUAGES = frozenset({"diff", "patch", "udiff", "git", "apply_patch"})
#: What is shown in these is output or something to type, not a file.
_OUTPUT = frozenset({"console", "output", "shell-session", "log"})
_PLAIN = frozenset({"text", "plaintext"})
_MARKDOWN = frozenset({"markdown", "md", "mdx"})
#: How many lines that could mean something are looked at where a few are enough.
_FEW = 200


def opens(line: str) -> re.Match[str] | None:
    """The opening of a fence, at any indentation and behind the mark of a list: what is before it, mark, words."""
    match = OPENING.match(line)
    return None if match is None or ("`" in match[2] and "`" in match[3]) else match


class Fence:
    """A fence that line `at` opens; `label` is the line of prose above it."""

    def __init__(self, lines: Lines, at: int, label: str, findings: Findings) -> None:
        opening = OPENING.match(lines.all[at])
        assert opening is not None
        self.at, self.label = at, label
        self.mark, self.info = opening[2], opening[3].strip()
        self.language = self.info.split(maxsplit=1)[0].lower() if self.info else ""
        self.named = names.in_info(self.info)
        before = opening[1]
        self.prefix = " " * len(before.expandtabs(4)) if before.strip() else before
        self.text = lines
        self.lines: Sequence[str] = Inside(lines.all, self.prefix) if self.prefix else lines.all
        self.findings = findings
        self.begin = lines.below(at + 1)

    def read(self) -> int:
        """Take what is in it; the line after it."""
        nested: list[int] = []
        for number in self.text.hot_from(self.at + 1):
            words = self._words(number)
            if words == "":
                return self._without_form(number, nested)
            if words:
                nested.append(number)
            elif form := self._form(number):
                return self._with_form(form, number)
        self._never_closed()
        return len(self.text)

    def closes(self, at: int) -> bool:
        """Whether the fence is over at the line: it closes it, or is indented less than it."""
        line = self.lines[at]
        return line == Inside.LESS or self._of_kind(line) == ""

    def _words(self, at: int) -> str | None:
        """The words behind a fence of this kind, empty for one that closes this one; None for any other line."""
        line = self.lines[at]
        return self._of_kind(self.text.all[at].lstrip() if line == Inside.LESS else line)

    def _of_kind(self, line: str) -> str | None:
        other = OPENING.match(line) if line[:4].lstrip()[:1] == self.mark[0] else None
        if other is None or other[2][0] != self.mark[0] or len(other[2]) < len(self.mark) or other[1].strip():
            return None
        return other[3].strip()

    def _form(self, at: int) -> str:
        """Which form of edit begins at the line; none where it is part of some program's output."""
        line = self.lines[at]
        if patches.begins_envelope(line):
            return "patch"
        if blocks.begins(line):
            return "block"
        output = self.language in _OUTPUT or self.language in _PLAIN
        shown = output and self.begin < at
        return "diff" if not shown and unified.begins(self.lines, at) else ""

    # ── with a form inside ───────────────────────────────────────────────────────────────────────────────

    def _with_form(self, form: str, at: int) -> int:
        if form == "patch" and not self.named:
            return self._patches(at)
        if form == "block":
            return self._blocks()
        mail = self.lines[self.begin].startswith(("From ", "Index: "))
        if self.begin < at and self.language not in DIFF_LANGUAGES and not mail:
            why = "a fence holds a change among other text, so what is meant is not certain"
            self.findings.refuse(self.named or names.in_sure_label(self.label), why)
            return self._end(at) + 1
        return self._patches(at) if form == "patch" else self._diff()

    def _end(self, at: int) -> int:
        """The line that closes the fence."""
        return next((number for number in self.text.hot_from(at) if self.closes(number)), len(self.text))

    def _patches(self, at: int) -> int:
        """One envelope or several; what else the fence holds is the command that they are given to."""
        end = self.findings.envelope(self.lines, at, self.closes)
        for number in self.text.hot_from(end):
            if number < end:
                continue
            if self.closes(number):
                return number + 1
            if patches.begins_envelope(self.lines[number]):
                end = self.findings.envelope(self.lines, number, self.closes)
        return end

    def _diff(self) -> int:
        found, end = unified.in_fence(self.lines, self.at + 1, self.closes)
        named = self.named or names.in_label(self.label) or names.mentioned(self.label)
        closed = end < len(self.text)
        last = (found[-1].path if found else "") or named
        if not closed:
            self.findings.unfinished(last, "the fenced block" if last else "the fenced block for a diff")
        elif self.lines[end] == Inside.LESS and not opens(self.text.all[end]):
            self.findings.refuse(last, "its diff is indented less than the fence around it")
        elif found and foreign.is_markdown(last) and found[-1].short:
            why = "its diff has fewer lines than its `@@` line says, and its fence may end at one of the file's own"
            self.findings.refuse(last, why)
        else:
            if not found:
                self.findings.refuse(named, "a fenced diff holds no change")
            self.findings.sections(found, named)
            return end + 1
        self.findings.sections(found[:-1], named)
        return end + 1

    def _blocks(self) -> int:
        """Search/replace blocks; a line between them may name the file of those below it."""
        path = self.named or names.in_label(self.label) or names.mentioned(self.label)
        found: list[blocks.Block] = []
        at = self.begin
        while at < len(self.text) and not self.closes(at):
            line = self.lines[at]
            if blocks.begins(line):
                block = blocks.read(self.lines, at, self.text.hot_from(at + 1))
                found.append(block)
                if block.open:
                    at = self._end(at + 1)
                    break
                at = block.end
            elif not line.strip():
                at += 1
            elif named := names.in_label(line):
                if found:
                    self.findings.blocks(path, found)
                path, found = named, []
                at += 1
            else:
                found.append(blocks.Block(at, None, "the fence holds other text beside its blocks"))
                at = self._next_block(at + 1)
        if at >= len(self.text) and not (found and found[-1].open):
            self.findings.unfinished(path, "the fenced block")
        elif found:
            self.findings.blocks(path, found)
        return at + 1

    def _next_block(self, at: int) -> int:
        hot = self.text.hot_from(at)
        return next((n for n in hot if self.closes(n) or blocks.begins(self.lines[n])), len(self.text))

    # ── without one ──────────────────────────────────────────────────────────────────────────────────────

    def _without_form(self, end: int, nested: Sequence[int]) -> int:
        """A whole file where a path is named, else only something that is shown."""
        if self.language in DIFF_LANGUAGES and not self.named.endswith((".diff", ".patch")):
            return self._diff()
        path = "" if self.language in _OUTPUT else self.named
        labelled = not self.named and self.language not in _OUTPUT | _PLAIN
        if labelled:
            path = names.in_sure_label(self.label)
        if not path:
            self._say_what_is_hidden(end, nested)
            return end + 1
        size = len(self.prefix)
        text = "".join(self.text.all[number][size:] + "\n" for number in range(self.at + 1, end))
        if doubt := self._doubt(path, end, nested):
            self.findings.refuse(path, doubt)
        elif form := foreign.edit_form(path, text):
            self.findings.refuse(path, f"“{form[:60]}” looks like the beginning of an edit, not of the file")
        else:
            self.findings.items.append(ChangeRequest(path, content=text, fenced=True, labelled=labelled))
        return end + 1

    def _doubt(self, path: str, end: int, nested: Sequence[int]) -> str:
        """Why it is not certain that the fence holds the whole text of the file; empty where it is."""
        if nested:
            return "the fence holds fences itself, so its end is not certain; put a longer fence around it"
        inside = range(self.at + 1, end)
        if self.prefix and any(self.lines[number] == Inside.LESS for number in inside):
            return "some of its lines are indented less than the fence around them"
        closing = self.text.all[end]
        if len(closing) - len(closing.lstrip()) > len(self.prefix):
            return "the line that closes its fence is indented otherwise, so its end is not certain"
        if not self._ends_surely(path, end):
            return (
                "another fence may follow inside it, so its end is not certain; put a longer fence around it"
            )
        return ""

    def _ends_surely(self, path: str, end: int) -> bool:
        """Whether the line that closes the fence cannot be one inside of it that opens another.

        Then another bare fence would follow, and the line below would be its text.
        """
        words = (self._words(number) for number in islice(self.text.hot_from(end + 1), _FEW))
        follows = next((found for found in words if found is not None), None)
        bare = follows == "" or (follows is None and self.findings.cut)
        below = end + 1 < len(self.text) and bool(self.text.all[end + 1].strip())
        if foreign.is_markdown(path) or self.language in _MARKDOWN:
            return not bare and not below
        return not (bare and below)

    def _never_closed(self) -> None:
        """It runs to the end of the answer: nothing below it is read, which is said where that is a change."""
        is_diff = self.language in DIFF_LANGUAGES
        path = self.named or ("" if is_diff else names.in_sure_label(self.label))
        if path or is_diff:
            self.findings.unfinished(path, "the fenced block" if path else "the fenced block for a diff")
        else:
            self._say_what_is_hidden(len(self.text), list(self._inner()))

    def _inner(self) -> Iterator[int]:
        return (number for number in self.text.hot_from(self.at + 1) if self._words(number))

    def _say_what_is_hidden(self, end: int, nested: Sequence[int]) -> None:
        """A fence that names no file can hide a change: a fence inside that does, or a marker that is not exact."""
        for number in nested:
            if inner := names.in_info(self._words(number) or ""):
                self.findings.refuse(inner, "its fence is inside another one, which names no file")
        for number in islice(self.text.hot_from(self.at + 1), _FEW):
            line = self.text.all[number].strip()
            if number >= end or self.language in _OUTPUT:
                return
            if blocks.resembles(line) or unified.begins_hunk(line) or line == patches.BEGIN:
                what = f"“{line[:60]}” in a fence looks like a change in a form that cannot be read"
                self.findings.refuse(names.in_sure_label(self.label), what)
                return
