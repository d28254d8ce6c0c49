"""The `structured` dialect: one JSON object, read while it streams and checked when it is whole."""

from __future__ import annotations

import re

from tui_agent.answers import objects
from tui_agent.answers.escapes import has_half, joined
from tui_agent.answers.items import KEYS, Items
from tui_agent.answers.mend import camel
from tui_agent.answers.prose import summary_of
from tui_agent.answers.scan import JsonScan
from tui_agent.answers.schema import Schema
from tui_agent.answers.values import Delta, Reply

__all__ = ["Delta", "StructuredReader"]

_AT_START = re.compile(r"\[?\s{0,9}(?:`{3,4}(?:json[c5]?)?[ \t]{0,9}\r?\n\s{0,99})?\[?\s{0,9}\{")
_MAY_START = re.compile(r"\[?\s{0,9}(?:`{0,4}|`{3,4}[jsonc5]{0,5}[ \t]{0,9}\r?\n?\s{0,99})\[?\s{0,9}")
_IN_PROSE = re.compile(r"\{\s{0,40}[\"'](?:" + "|".join(KEYS) + r")[\"']\s{0,9}:")
#: The end of what came so far, where it may be the beginning of a fence or of an object.
_MAY_BE = re.compile(
    r"\s{0,9}(?:[`~]{1,4}\w{0,9}\s{0,40})?(?:\{\s{0,40}(?:[\"'][A-Za-z]{0,20}(?:[\"']\s{0,9})?)?)?[\ud800-\udbff]?\Z"
)
_HOLD = 160
_FENCE_LINE = re.compile(r"\s*(?:`{3,4}|~{3,4})\w*\s*\Z")


class StructuredReader:
    """Takes the text piece by piece; `response` is the schema to check with.

    The summary and the message come out of `feed` as they grow. Reading costs the same for each character,
    whatever came before it: nothing is parsed twice until `finish` parses the whole once.
    """

    def __init__(self, response: Schema | None = None) -> None:
        self._response = response
        self._pieces: list[str] = []
        self._held = ""
        self._passed = 0
        self._said_prose = False
        self._start = -1
        self._scan: JsonScan | None = None
        self._gap = False
        #: What of the summary and the message has been on the screen, in pieces.
        self._words: dict[str, list[str]] = {"summary": [], "message": []}

    def feed(self, text: str) -> list[Delta]:
        """The new text of summary and message that this piece brought."""
        self._pieces.append(text)
        if self._scan is not None:
            return self._spaced(self._scanned(text))
        self._held += text
        return self._before()

    @property
    def held(self) -> int:
        """How many characters wait for the next piece before it can be said what they are."""
        return len(self._held)

    def _before(self) -> list[Delta]:
        """Prose, until the object begins."""
        if not self._said_prose:
            self._drop_space()
            match = _AT_START.match(self._held)
            if match:
                return self._begin(match.end() - 1)
            if _MAY_START.fullmatch(self._held):
                return []
        match = _IN_PROSE.search(self._held)
        if match:
            prose = _FENCE_LINE.sub("", self._held[: match.start()])
            return [*self._say(prose), *self._begin(match.start())]
        tail = _MAY_BE.search(self._held, max(0, len(self._held) - _HOLD))
        cut = tail.start() if tail else len(self._held)
        said = self._say(self._held[:cut])
        self._passed += cut
        self._held = self._held[cut:]
        return said

    def _drop_space(self) -> None:
        bare = self._held.lstrip(" \t\r\n\ufeff")
        self._passed += len(self._held) - len(bare)
        self._held = bare

    def _say(self, prose: str) -> list[Delta]:
        if not prose:
            return []
        self._said_prose = True
        return [Delta("message", joined(prose))]

    def _begin(self, at: int) -> list[Delta]:
        self._start = self._passed + at
        self._scan = JsonScan()
        self._gap = self._said_prose
        held, self._held = self._held[at:], ""
        return self._spaced(self._scanned(held))

    def _scanned(self, text: str) -> list[Delta]:
        deltas = self._scan.feed(text) if self._scan else []
        for delta in deltas:
            self._words[delta.part].append(delta.text)
        return deltas

    def _spaced(self, deltas: list[Delta]) -> list[Delta]:
        """A blank line between the prose before the object and the message in it."""
        for number, delta in enumerate(deltas):
            if self._gap and delta.part == "message":
                self._gap = False
                return [*deltas[:number], Delta("message", "\n\n" + delta.text), *deltas[number + 1 :]]
        return deltas

    def finish(self, cut: bool) -> Reply:
        """The whole reply; `cut` says that the stream ended before the model did. Never raises."""
        text = "".join(self._pieces)
        read = objects.read_at(text, self._start) if self._start >= 0 else objects.ReadObject({})
        if not read.found or not _is_reply(read):
            begun = cut and read.found and not read.value
            return self._prose(read.before if begun else joined(text), cut, read)
        return self._object(text, read, cut)

    def _object(self, text: str, read: objects.ReadObject, cut: bool) -> Reply:
        items = Items(self._response)
        items.faults.extend(_faults(read, cut))
        value = {camel(key): entry for key, entry in read.value.items()}
        for key in KEYS[2:]:
            if key in value:
                items.take(key, value[key])
            elif key in read.repaired and key != "fileChanges":
                items.take(key, read.repaired[key])
        said = {part: "".join(pieces) for part, pieces in self._words.items()} if not read.complete else {}
        before = joined(read.before)
        message = _words(read, "message", said)
        summary = _words(read, "summary", said)
        items.take_prose("\n\n".join((before, message, joined(read.after))), cut or not read.complete)
        whole = "\n\n".join(part for part in (before, message, joined(read.after)) if part.strip())
        return items.reply(
            summary or summary_of(whole), whole, cut or (not read.complete and not read.faults)
        )

    def _prose(self, text: str, cut: bool, read: objects.ReadObject) -> Reply:
        items = Items(self._response)
        items.faults.extend(read.faults)
        items.take_prose(text, cut)
        return items.reply(summary_of(text), text.strip(), cut)


def _is_reply(read: objects.ReadObject) -> bool:
    """Whether the object is ours; in prose, a lone `message` may be an example that is shown."""
    keys = [key for key in KEYS if key in read.value or key in read.repaired or key == read.opened]
    if read.before or read.after:
        keys = [key for key in keys if key != "message"]
    return bool(keys)


def _words(read: objects.ReadObject, key: str, said: dict[str, str]) -> str:
    for value in (read.value.get(key), said.get(key), read.repaired.get(key)):
        if isinstance(value, str) and value:
            return joined(value) if has_half(value) else value
    return ""


def _faults(read: objects.ReadObject, cut: bool) -> list[str]:
    faults = list(read.faults)
    if read.complete:
        return faults
    if not faults and not cut:
        faults.append("The JSON ended before it was closed.")
    if read.opened in KEYS[2:]:
        kept = read.value.get(read.opened)
        number = len(kept) + 1 if isinstance(kept, list) else 1
        faults.append(f"{read.opened}: entry {number} was not finished and is dropped.")
    return faults
