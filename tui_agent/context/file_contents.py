"""File contents in the prompt, whole or in portions: `read_files` results and bundled files."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, islice

from msgspec import Struct
from msgspec.structs import force_setattr

from tui_agent.answers.plans import Range, in_words, within
from tui_agent.context.blocks import inert, json_inert, name
from tui_agent.context.known_files import LoadedBy
from tui_agent.files.text import PIECE, pieces

#: Lines shown before a place, in increasing steps; twice as many are shown after it.
_REACH = (2, 4, 8, 15, 30, 60, 120, 250, 500, 1_000, 2_000, 5_000, 20_000, 100_000)
#: Lines per word, and places in total; a more frequent word is ignored.
_MOST_LINES, _MOST_PLACES = 40, 60
_HEAD = 12
_MOST_NAMES, _MOST_OCCURRENCES = 100, 5_000
#: Bytes added per line by its number and line break; maximum bytes of a line.
_NUMBER, LONGEST = 7, 2_000
_WORD = re.compile(r"\w{3,80}")
_DEFINES = (
    r"\b(?:def|class|function|func|fn|struct|interface|type|enum|trait|impl|const|let|var|module|sub)\s+"
)


class PortionRequest(Struct, frozen=True):
    ranges: tuple[Range, ...] = ()
    hits: tuple[int, ...] = ()
    words: str = ""


class Portions:
    def __init__(self, text: str, wanted: PortionRequest) -> None:
        self._sizes: list[int] = []
        ends = [0]
        for piece in pieces(text):
            lines = piece.splitlines(keepends=True)
            self._sizes += [min(len(line.encode(errors="replace")), LONGEST) + _NUMBER for line in lines]
            ends.extend(accumulate(map(len, lines), initial=ends.pop()))
        del ends[0]
        self._asked = within(wanted.ranges, len(self._sizes))
        self._places: list[int] = []
        if not self._asked:
            named = _places(text, ends, wanted.words)
            self._places = list(dict.fromkeys([*wanted.hits, *named]))[:_MOST_PLACES]

    def fitting(self, room: int) -> tuple[Range, ...]:
        """Returns line ranges that fit in `room` bytes: requested ranges, otherwise the surroundings of
        search hits and definitions, otherwise the beginning.
        """
        sizes, asked, places = self._sizes, self._asked, self._places
        if asked:
            if len(asked) == 1 and asked[0][0] == asked[0][1]:
                return _around(sizes, [asked[0][0]], room) or _first(sizes, asked, room)
            return _first(sizes, asked, room)
        while places:
            if found := _around(sizes, places, room):
                return found
            places = places[: len(places) // 2]
        return _first(sizes, [(1, len(sizes))], room)


def _first(sizes: Sequence[int], ranges: Sequence[Range], room: int) -> tuple[Range, ...]:
    found = []
    for first, last in ranges:
        at = first
        while at <= last and sizes[at - 1] <= room:
            room -= sizes[at - 1]
            at += 1
        if at > first:
            found.append((first, at - 1))
        if at <= last:
            break
    return tuple(found)


def _around(sizes: Sequence[int], places: Sequence[int], room: int) -> tuple[Range, ...]:
    best: tuple[Range, ...] = ()
    for reach in _REACH:
        around = [(place - reach, place + 2 * reach) for place in places]
        ranges = within([(1, _HEAD), *around], len(sizes))
        if sum(sum(sizes[first - 1 : last]) for first, last in ranges) > room:
            break
        best = ranges
        if len(ranges) == 1 and ranges[0] == (1, len(sizes)):
            break
    return best


def _places(text: str, ends: Sequence[int], words: str) -> list[int]:
    """Returns lines that define the words, then lines that mention them, rarest first. `ends` are the end
    offsets of lines.
    """
    defined: list[tuple[int, list[int]]] = []
    named: list[tuple[int, list[int]]] = []
    for word in list(dict.fromkeys(_WORD.findall(words)))[:_MOST_NAMES]:
        at = list(islice(_occurrences(text, word), _MOST_OCCURRENCES))
        numbers = list(dict.fromkeys(bisect_right(ends, offset) + 1 for offset in at))
        definition = re.compile(rf"{_DEFINES}{re.escape(word)}\b|^\s*{re.escape(word)}\s*[:=(]")

        def defines(number: int, definition: re.Pattern[str] = definition) -> bool:
            begin = ends[number - 2] if number > 1 else 0
            return definition.search(text[begin : min(ends[number - 1], begin + LONGEST)]) is not None

        definitions = [number for number in numbers if defines(number)]
        if len(definitions) <= _MOST_LINES:
            defined.append((len(numbers), definitions))
        if len(numbers) <= _MOST_LINES:
            named.append((len(numbers), numbers))
    ranked = [*sorted(defined, key=lambda each: each[0]), *sorted(named, key=lambda each: each[0])]
    return [number for _, numbers in ranked for number in numbers]


def _occurrences(text: str, name: str) -> Iterator[int]:
    for begin in range(0, len(text), PIECE):
        after = begin
        while (at := text.find(name, after, begin + PIECE + len(name) - 1)) >= 0:
            after = at + len(name)
            if not _is_letter(text[at - 1 : at] if at else "") and not _is_letter(text[after : after + 1]):
                yield at


def _is_letter(character: str) -> bool:
    return character == "_" or character.isalnum()


BYTES_A_TOKEN = 4
NUMBER_BYTES = 5
MASKED = (
    "[masked] stands for secrets that are not shown: leave those places as they are, and edit around them"
)
IN_PART = "only these lines are shown, the others are there: ask for them with read_files and `lines`"


class LoadedFile(Struct, frozen=True):
    """`unsaved`: the text is from the editor and newer than the disk. `action` names the reason for loading.
    `md5` is of the bytes on disk, or as they would be saved.
    """

    path: str
    md5: str
    text: str
    size: int
    loaded_by: LoadedBy
    language: str = ""
    unsaved: bool = False
    action: str = ""
    #: `text` contains masks for secrets; `md5` and `size` refer to the unmasked file.
    masked: bool = False
    inode: int = 0
    #: The provider's id of the uploaded text, sent in its place.
    file_id: str = ""
    #: The lines shown, if not all; `text` is complete.
    ranges: tuple[Range, ...] = ()
    #: By line, if only a part is shown.
    outline: tuple[str, ...] = ()
    lines: int = -1

    def __post_init__(self) -> None:
        if self.lines < 0:
            force_setattr(self, "lines", sum(len(piece.splitlines()) for piece in pieces(self.text)))

    @property
    def view(self) -> str:
        """The hash, with the line ranges if incomplete."""
        return f"{self.md5}#{in_words(self.ranges)}" if self.ranges else self.md5

    @property
    def numbered(self) -> str:
        return numbered(self.text, self.ranges)


def cost(size: int, lines: int) -> int:
    return (size + NUMBER_BYTES * lines) // BYTES_A_TOKEN


def numbered(text: str, ranges: Sequence[Range] = ()) -> str:
    lines = [line for piece in pieces(text) for line in piece.splitlines()]
    if not ranges:
        return "\n".join(f"{number}: {line}" for number, line in enumerate(lines, 1))
    return "\n…\n".join(
        "\n".join(
            f"{number}: {_cut(lines[number - 1])}" for number in range(first, min(last, len(lines)) + 1)
        )
        for first, last in ranges
    )


def _cut(line: str) -> str:
    if len(line) <= LONGEST:
        return line
    return f"{line[:LONGEST]} [… {len(line) - LONGEST:,} characters left out]"


class FilesInPrompt(Struct, frozen=True):
    """Hashes by path; `attached` are in a later section of the same message."""

    sent: Mapping[str, str] = {}
    proposed: Mapping[str, str] = {}
    attached: Mapping[str, str] = {}

    def reference(self, file: LoadedFile) -> dict[str, object] | None:
        """Replaces the content; None if the content is not in view."""
        if self.sent.get(file.path) in (file.md5, file.view):
            return {"unchanged": True}
        if self.attached.get(file.path) == file.md5:
            return {"attached": True}
        if self.proposed.get(file.path) == file.md5 and file.loaded_by != "request":
            return {"asProposed": True}
        other = (
            next((path for path, md5 in self.sent.items() if md5 == file.md5), None) if file.size else None
        )
        return {"sameAs": other} if other else None


def read_files_result(files: Iterable[LoadedFile], in_view: FilesInPrompt) -> str:
    entries = []
    for file in files:
        entry: dict[str, object] = {"path": file.path, "md5": file.md5, "lines": file.lines}
        if file.ranges:
            entry |= {"shown": in_words(file.ranges), "part": IN_PART}
            if file.outline:
                entry["outline"] = [inert(line) for line in file.outline]
        if file.unsaved:
            entry["unsaved"] = True
        if file.masked:
            entry["masked"] = MASKED
        reference = in_view.reference(file)
        if reference is None:
            reference = {"fileId": file.file_id} if file.file_id else {"content": inert(file.numbered)}
        entries.append(entry | reference)
    return json_inert(json.dumps({"type": "read_files", "files": entries}, ensure_ascii=False))


def bundle_section(files: Sequence[LoadedFile]) -> str:
    if not files:
        return ""
    parts = []
    for file in files:
        facts = f"{file.size} bytes, {file.lines} lines, md5 {file.md5}"
        why = f"\n{name(file.action)}" if file.action else ""
        parts.append(f"### {name(file.path)} ({facts}){why}\n{inert(file.numbered)}")
    return "## AUTO-BUNDLED FILES\n" + "\n\n".join(parts)
