"""Changes in prose: one pass over the lines yields changes, refusals with reasons, and prose.

Refuses text that resembles a change but is ambiguous. A fence contains an edit format, a whole file, or
an excerpt.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace

from tui_agent.answers import examples, file_names, markers, unified
from tui_agent.answers.markers import DedentedLines, Findings, Lines
from tui_agent.answers.values import ChangeRequest, EditHunk, Refusal, ShownText, Use
from tui_agent.files.lazy_regex import late

_QUOTED = late(r"[ \t]*>[ \t>]*")
_FILE_LINE = late(r"(?i)\*\*\*[ \t]*[a-z]{3,9}[ \t]+file[ \t]*:[ \t]*(\S.*)")
_OPENING = late(r"([ \t]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)?)(`{3,}|~{3,})[ \t]*(.*)")
_DIFFS = frozenset({"diff", "patch", "udiff", "git", "apply_patch"})
_OUTPUT = frozenset({"console", "output", "shell-session", "log"})
_PLAIN = frozenset({"text", "plaintext"})
_MARKDOWN = frozenset({"markdown", "md", "mdx"})
_FEWEST_SHOWN = 3
#: Lines above a diff, and their maximum length, searched for a commit header.
_HEAD, _WIDEST = 12, 400
_MOST_JUDGED = 1_000
_FEW = 200


def _opens(line: str) -> re.Match[str] | None:
    match = _OPENING.match(line)
    return None if match is None or ("`" in match[2] and "`" in match[3]) else match


class _Fence:
    """Opened at line `at`; `label` is the prose above."""

    def __init__(self, lines: Lines, at: int, label: str, findings: Findings) -> None:
        opening = _OPENING.match(lines.all[at])
        assert opening is not None
        self.at, self.label = at, label
        self.mark, self.info = opening[2], opening[3].strip()
        self.language = self.info.split(maxsplit=1)[0].lower() if self.info else ""
        self.named = file_names.in_info(self.info)
        before = opening[1]
        self.prefix = " " * len(before.expandtabs(4)) if before.strip() else before
        self.text = lines
        self.lines: Sequence[str] = DedentedLines(lines.all, self.prefix) if self.prefix else lines.all
        self.findings = findings
        self.shown: list[ShownText] = []
        self.begin = lines.below(at + 1)

    def read(self) -> int:
        nested: list[int] = []
        for number in self.text.hot_from(self.at + 1):
            words = self._words(number)
            if words == "":
                return self._without_form(number, nested)
            if words:
                nested.append(number)
                continue
            line = self.lines[number]
            if markers.begins_block(line):
                return self._blocks()
            is_patch = markers.begins_envelope(line)
            if is_patch and not self.named:
                return self._patches(number)
            shown = self.language in _OUTPUT or (self.language in _PLAIN and self.begin < number)
            if not is_patch and (shown or not unified.begins(self.lines, number)):
                continue
            mail = self.lines[self.begin].startswith(("From ", "Index: "))
            if self.begin < number and self.language not in _DIFFS and not mail:
                why = "a code block mixes a change with other text"
                self.findings.refuse(self.named or file_names.in_sure_label(self.label), why)
                return self._end(number) + 1
            return self._patches(number) if is_patch else self._diff()
        self._never_closed()
        return len(self.text)

    def closes(self, at: int) -> bool:
        line = self.lines[at]
        return line == DedentedLines.LESS or self._of_kind(line) == ""

    def _words(self, at: int) -> str | None:
        line = self.lines[at]
        return self._of_kind(self.text.all[at].lstrip() if line == DedentedLines.LESS else line)

    def _of_kind(self, line: str) -> str | None:
        other = _OPENING.match(line) if line[:4].lstrip()[:1] == self.mark[0] else None
        if other is None or other[2][0] != self.mark[0] or len(other[2]) < len(self.mark) or other[1].strip():
            return None
        return other[3].strip()

    def _end(self, at: int) -> int:
        return next((number for number in self.text.hot_from(at) if self.closes(number)), len(self.text))

    def _patches(self, at: int) -> int:
        """Reads envelopes; other lines are the command that receives them."""
        end = self.findings.envelope(self.lines, at, self.closes)
        for number in self.text.hot_from(end):
            if number < end:
                continue
            if self.closes(number):
                return number + 1
            if markers.begins_envelope(self.lines[number]):
                end = self.findings.envelope(self.lines, number, self.closes)
        return end

    def _diff(self) -> int:
        found, end = unified.read(self.lines, self.at + 1, closes=self.closes)
        named = self.named or file_names.in_any_label(self.label)
        closed = end < len(self.text)
        last = (found[-1].path if found else "") or named
        if not closed:
            self.findings.unfinished(last, "the fenced block" if last else "the fenced block for a diff")
        elif self.lines[end] == DedentedLines.LESS and not _opens(self.text.all[end]):
            self.findings.refuse(last, "its diff is indented less than its code block")
        elif found and markers.is_markdown(last) and found[-1].short:
            why = "its diff has fewer lines than its `@@` line says, and its fence may end at one of the file's own"
            self.findings.refuse(last, why)
        else:
            if not found and named:
                self.findings.refuse(named, "a diff in a code block contains no change")
            if named or any(section.path or section.fault for section in found):
                self.findings.sections(found, named)
            else:
                self._show(end, tuple(hunk for section in found for hunk in section.hunks))
            return end + 1
        self.findings.sections(found[:-1], named)
        return end + 1

    def _blocks(self) -> int:
        """Reads search/replace blocks; a line between them may name the next file."""
        path = self.named or file_names.in_any_label(self.label)
        found: list[markers.Block] = []
        at = self.begin
        while at < len(self.text) and not self.closes(at):
            line = self.lines[at]
            if markers.begins_block(line):
                block = markers.read_block(self.lines, at, self.text.hot_from(at + 1))
                found.append(block)
                if block.open:
                    at = self._end(at + 1)
                    break
                at = block.end
            elif not line.strip():
                at += 1
            elif named := file_names.in_label(line):
                if found:
                    self.findings.blocks(path, found)
                path, found = named, []
                at += 1
            else:
                found.append(markers.Block(at, None, "the code block contains text besides its edits"))
                hot = self.text.hot_from(at + 1)
                at = next(
                    (n for n in hot if self.closes(n) or markers.begins_block(self.lines[n])), len(self.text)
                )
        if at >= len(self.text) and not (found and found[-1].open):
            self.findings.unfinished(path, "the fenced block")
        elif found:
            self.findings.blocks(path, found)
        return at + 1

    def _without_form(self, end: int, nested: Sequence[int]) -> int:
        if self.language in _DIFFS and not self.named.endswith((".diff", ".patch")):
            return self._diff()
        path = "" if self.language in _OUTPUT else self.named
        labelled = not self.named and self.language not in _OUTPUT | _PLAIN
        if labelled:
            path = file_names.in_sure_label(self.label) or file_names.announced(self.label)
            if not path and self.begin + 1 < len(self.text):
                script = self.lines[self.begin].startswith("#!")
                path = file_names.in_comment(self.lines[self.begin + bool(script)])
            path = path if path and file_names.fits(self.language, path) else ""
        if not path:
            self._say_what_is_hidden(end, nested)
            if self.language not in _OUTPUT:
                hint = ""
                if self.language not in _PLAIN and not self._doubt(path, end, nested):
                    hint = file_names.hinted(self.info) or file_names.hinted(self.label)
                    if not hint and self.begin < len(self.text):
                        hint = file_names.hinted_in_comment(self.lines[self.begin])
                self._show(end, path=hint if hint and file_names.fits(self.language, hint) else "")
            return end + 1
        text = self._text(end)
        if doubt := self._doubt(path, end, nested):
            self.findings.refuse(path, doubt)
        elif form := markers.edit_form(path, text):
            self.findings.refuse(path, f"“{form[:60]}” looks like an edit, not like the content of the file")
        else:
            self.findings.items.append(ChangeRequest(path, content=text, fenced=True, labelled=labelled))
        return end + 1

    def _text(self, end: int) -> str:
        size = len(self.prefix)
        return "".join(self.text.all[number][size:] + "\n" for number in range(self.at + 1, end))

    def _show(self, end: int, diff: tuple[EditHunk, ...] | None = None, path: str = "") -> None:
        if (path or end - self.at > _FEWEST_SHOWN) and len(self.shown) < _FEW:
            self.shown.append(ShownText(self._text(end), diff, path))

    def _doubt(self, path: str, end: int, nested: Sequence[int]) -> str:
        if nested:
            return "the fence holds fences itself, so its end is uncertain; put a longer fence around it"
        inside = range(self.at + 1, end)
        if self.prefix and any(self.lines[number] == DedentedLines.LESS for number in inside):
            return "some of its lines are indented less than the code block"
        closing = self.text.all[end]
        if len(closing) - len(closing.lstrip()) > len(self.prefix):
            return "the end of its code block has another indentation"
        words = (self._words(number) for number in islice(self.text.hot_from(end + 1), _FEW))
        follows = next((found for found in words if found is not None), None)
        bare = follows == "" or (follows is None and self.findings.cut)
        below = end + 1 < len(self.text) and bool(self.text.all[end + 1].strip())
        is_markdown = markers.is_markdown(path) or self.language in _MARKDOWN
        if (bare or below) if is_markdown else (bare and below):
            return "another fence may follow inside it, so its end is uncertain; put a longer fence around it"
        return ""

    def _never_closed(self) -> None:
        is_diff = self.language in _DIFFS
        path = self.named or ("" if is_diff else file_names.in_sure_label(self.label))
        if path or is_diff:
            self.findings.unfinished(path, "the fenced block" if path else "the fenced block for a diff")
        else:
            inner = [number for number in self.text.hot_from(self.at + 1) if self._words(number)]
            self._say_what_is_hidden(len(self.text), inner)

    def _say_what_is_hidden(self, end: int, nested: Sequence[int]) -> None:
        for number in nested:
            if inner := file_names.in_info(self._words(number) or ""):
                self.findings.refuse(inner, "its code block is inside another one without a file name")
        for number in islice(self.text.hot_from(self.at + 1), _FEW):
            line = self.text.all[number].strip()
            if number >= end or self.language in _OUTPUT:
                return
            if markers.resembles_change(line):
                what = f"“{line[:60]}” in a code block looks like a change in an unsupported format"
                self.findings.refuse(file_names.in_sure_label(self.label), what)
                return


class ProseChanges(Struct, frozen=True):
    """`faults` are sentences about all unreadable parts, including `refused` files. `offered` are changes
    marked as examples or history; `shown` are fences without a file name. `spans` covers all hidden text.
    """

    changes: tuple[ChangeRequest, ...] = ()
    faults: tuple[str, ...] = ()
    refused: tuple[Refusal, ...] = ()
    offered: tuple[ChangeRequest, ...] = ()
    shown: tuple[ShownText, ...] = ()
    spans: tuple[tuple[int, int, Use], ...] = ()


def changes(text: str, cut: bool = False) -> ProseChanges:
    """`cut`: the answer is truncated."""
    scan = _Scan(text.replace("\r\n", "\n"), cut)
    scan.read()
    made: list[ChangeRequest] = []
    refused: list[Refusal] = []
    offered: list[ChangeRequest] = []
    faults: dict[str, None] = {}
    for item in scan.findings.items:
        match item:
            case ChangeRequest() if item.delete and item.path in scan.findings.dropped:
                pass
            case ChangeRequest() if item.offered:
                offered.append(item)
            case ChangeRequest():
                made.append(item)
            case Refusal():
                refused.append(item)
                faults[item.sentence] = None
            case str():
                faults[item] = None
    ends = (found.end() for found in re.finditer("\n", text)) if scan.taken else ()
    starts = [0, *ends, len(text)]
    last = len(starts) - 1
    spans = [(starts[begin], starts[min(end, last)], use) for begin, end, use in scan.taken]
    return ProseChanges(
        tuple(made), tuple(faults), tuple(refused), tuple(offered), tuple(scan.shown), tuple(spans)
    )


class _Scan:
    def __init__(self, text: str, cut: bool) -> None:
        self.lines = Lines(text)
        self.findings = Findings(cut)
        self.floor = 0
        self.shown: list[ShownText] = []
        self.taken: list[tuple[int, int, Use]] = []
        self._never_closed: set[str] = set()

    def read(self) -> None:
        if excess := self.lines.excess:
            self.findings.refuse("", f"the answer has {excess}, and none in so many is read")
            return
        lines, at = self.lines.all, 0
        shown = False
        while (at := self.lines.next_hot(at)) < len(lines):
            items, begin, floor = self.findings.items, at, self.floor
            count = len(items)
            at = self._line(at)
            if len(items) == count:
                continue
            before, shown = shown, False
            if count < _MOST_JUDGED:
                above = "\n".join(line[:_WIDEST] for line in lines[max(floor, begin - _HEAD) : begin])
                head = "\n".join(line[:_WIDEST] for line in lines[begin : begin + _HEAD])
                below = self.lines.below(at)
                after = lines[below].strip() if below < len(lines) else ""
                said = examples.classify_intro(above)
                shown = said or (said is None and before) or examples.is_example("", after)
                shown = shown or examples.is_commit(above, head)
            if shown:
                offered = "the answer presents it as an example or as an earlier version"
                items[count:] = [
                    replace(item, offered=offered) if isinstance(item, ChangeRequest) else item
                    for item in items[count:]
                    if isinstance(item, ChangeRequest) or (isinstance(item, Refusal) and item.path)
                ]
            uses = {type(item): None for item in items[count:]}
            use: Use = "change" if ChangeRequest in uses else "refusal" if uses else "shown"
            self.taken.append((begin, at, use))

    def _label(self, at: int) -> str:
        return self.lines.above(at, self.floor)

    def _line(self, at: int) -> int:
        lines = self.lines.all
        line = lines[at]
        if _opens(line):
            fence = _Fence(self.lines, at, self._label(at), self.findings)
            end = fence.read()
            self.shown += fence.shown
        elif markers.begins_envelope(line):
            end = self.findings.envelope(lines, at, None)
        elif unified.begins(lines, at):
            end = self._diff(at)
        elif markers.begins_block(line):
            label = self._label(at)
            blocks = [markers.read_block(lines, at, self.lines.hot_from(at + 1))]
            while (
                not blocks[-1].open
                and (below := self.lines.below(blocks[-1].end)) < len(lines)
                and markers.begins_block(lines[below])
            ):
                at = below
                blocks.append(markers.read_block(lines, at, self.lines.hot_from(at + 1)))
            self.findings.blocks(file_names.in_any_label(label), blocks)
            end = at + 1 if blocks[-1].open else blocks[-1].end
        else:
            return self._refuse_other(at, line)
        self.floor = end
        return end

    def _diff(self, at: int) -> int:
        found, end = unified.read(self.lines.all, at, bare=True)
        below, last = self.lines.below(end), self.lines.last()
        goes_on = below < last
        if below == last - 1:
            # the last line can be a part of a header
            line = self.lines.all[below]
            goes_on = not any(begin.startswith(line) for begin in ("@@ ", "diff --git ", "--- "))
        if self.findings.cut and not goes_on:
            self.findings.items.append("The diff in the answer was not finished; its last file is discarded.")
            found = found[:-1]
        self.findings.sections(found)
        return max(end, at + 1)

    def _refuse_other(self, at: int, line: str) -> int:
        """Refuses other formats, and whole tags around a change."""
        quoted = None if line.lstrip().startswith(">>>>>") else _QUOTED.match(line)
        bare = line[quoted.end() :] if quoted else line.strip()
        fence = _opens(bare) if quoted else None
        if header := _FILE_LINE.match(bare):
            why = f"its patch does not begin with a line `{markers.BEGIN}`"
            self.findings.refuse(file_names.plain(header[1].rstrip()), why)
        elif fence and (file_names.in_info(fence[3]) or fence[3].strip().lower() in _DIFFS):
            self.findings.refuse("", "it is quoted")
        elif markers.resembles_change(bare) or bare.startswith("diff --git "):
            what = f"“{bare[:60].strip()}” looks like a change in an unsupported format"
            self.findings.refuse(file_names.in_sure_label(self._label(at)), what)
        found = markers.tag(line)
        if found is None or found.closing:
            return at + 1
        lines = self.lines.all
        below = self.lines.below(at + 1)
        if below < len(lines) and markers.begins_envelope(lines[below]):
            return below
        path = found.path or next(filter(None, map(markers.path_inside, lines[at : at + 4])), "")
        path = path if file_names.is_path(path) else ""
        if not found.sure:
            path = path or file_names.in_sure_label(self._label(at))
            marked = below < len(lines) and (
                markers.resembles_block(lines[below]) or unified.begins(lines, below)
            )
            if not path and not marked:
                return at + 1
        closing = f"</{found.name}"
        if f"{closing}>" in lines[at]:
            end = at
        elif found.name in self._never_closed:
            end = None
        else:
            hot = self.lines.hot_from(at + 1)
            end = next((number for number in hot if lines[number].lstrip().startswith(closing)), None)
            if end is None:
                self._never_closed.add(found.name)
        if end is None and not path:
            return at + 1
        self.findings.refuse(
            file_names.plain(path), f"it is wrapped in <{found.name}>, a form that is not read here"
        )
        self.floor = at + 1 if end is None else end + 1
        return self.floor
