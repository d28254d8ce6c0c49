"""Streams the summary and message of an incomplete JSON reply."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from msgspec.structs import replace

from tui_agent.answers import lenient_json, schema, text_calls, thinking_tags
from tui_agent.answers.examples import Fences, is_example, surrounding_text
from tui_agent.answers.lenient_json import has_half, joined, unescaped
from tui_agent.answers.reply_builder import KEYS, ReplyBuilder
from tui_agent.answers.schema import Function, Schema
from tui_agent.answers.text_calls import CallFilter, CallsInText, TextCall, looks_like_a_change
from tui_agent.answers.thinking_tags import ThoughtFilter, without_end
from tui_agent.answers.tools_reader import CallPieces, message_of, offer, offer_wrapped, take_call
from tui_agent.answers.values import Delta, JoinedPieces, Ledger, Refusal, Reply
from tui_agent.model.client import CallChunk

_SIGN = re.compile(r'["{}\[\],:]')
_NESTED = re.compile(r'"(?:[^"\\]++|\\.)*+"|"|[{\[]++|[}\]]', re.DOTALL)
_INSIDE = re.compile(r'(?:[^"\\]++|\\u[0-9a-fA-F]{4}|\\[^u])*+', re.DOTALL)
_PART: dict[str, Literal["summary", "message"]] = {"summary": "summary", "message": "message"}
_ESCAPE_LENGTH = 6
#: Values scanned for summary and message, which are first in a reply.
MOST_NESTED = 100_000
_KEY_LENGTH = 32


class JsonScan:
    """Tracks strings and brackets in linear time, without validation. Holds back only an incomplete escape."""

    def __init__(self) -> None:
        self.done = False
        self._left = MOST_NESTED
        self._held = ""
        self._half = ""
        self._depth = 0
        self._key = ""
        self._key_comes = False
        self._inside: Literal["", "key", "part", "other"] = ""

    def feed(self, piece: str) -> list[Delta]:
        text, at = self._held + piece, 0
        self._held = ""
        found: list[Delta] = []
        while at < len(text) and not self.done:
            at = self._string(text, at, found) if self._inside else self._between(text, at)
        return found

    def _between(self, text: str, at: int) -> int:
        if self._depth > 1:
            return self._nested(text, at)
        match = _SIGN.search(text, at)
        if match is None:
            return len(text)
        match match[0]:
            case '"':
                if self._depth != 1:
                    self._inside = "other"
                elif self._key_comes:
                    self._inside, self._key = "key", ""
                else:
                    self._inside = "part" if self._key in _PART else "other"
            case "{" | "[":
                self._depth += 1
                self._key_comes = self._depth == 1
            case "}" | "]":
                self._depth -= 1
                self.done = self._depth <= 0
            case "," if self._depth == 1:
                self._key_comes = True
            case ":" if self._depth == 1:
                self._key_comes = False
        return match.end()

    def _nested(self, text: str, at: int) -> int:
        depth = self._depth
        for match in _NESTED.finditer(text, at):
            self._left -= 1
            if self._left < 0:
                self.done = True
                break
            sign = match[0]
            if sign in "}]":
                depth -= 1
                if depth == 1:
                    self._depth = 1
                    return match.end()
            elif sign == '"':
                self._depth, self._inside = depth, "other"
                return match.end()
            elif sign[0] != '"':
                depth += len(sign)
        self._depth = depth
        return len(text)

    def _string(self, text: str, at: int, found: list[Delta]) -> int:
        match = _INSIDE.match(text, at)
        end = match.end() if match else at
        if end < len(text) and text[end] == "\\":
            if len(text) - end < _ESCAPE_LENGTH:
                self._held = text[end:]
                self._take(text[at:end], found)
                return len(text)
            end += 2
            self._take(text[at:end], found)
            return end
        self._take(text[at:end], found)
        if end < len(text):
            if self._inside == "part":
                self._emit_text(self._half, found)
                self._half = ""
            self._inside = ""
        return end + 1

    def _take(self, raw: str, found: list[Delta]) -> None:
        if self._inside == "key":
            self._key = (self._key + raw)[:_KEY_LENGTH]
        elif self._inside == "part":
            text = self._half + unescaped(raw)
            self._half = text[-1] if text and "\ud800" <= text[-1] <= "\udbff" else ""
            self._emit_text(text[:-1] if self._half else text, found)

    def _emit_text(self, text: str, found: list[Delta]) -> None:
        if text:
            found.append(Delta(_PART[self._key], joined(text)))


_AT_START = re.compile(r"\[?\s{0,9}(?:`{3,4}(?:json[c5]?)?[ \t]{0,9}\r?\n\s{0,99})?\[?\s{0,9}\{")
_MAY_START = re.compile(r"\[?\s{0,9}(?:`{0,4}|`{3,4}[jsonc5]{0,5}[ \t]{0,9}\r?\n?\s{0,99})\[?\s{0,9}")
_IN_PROSE = re.compile(r"\{\s{0,40}[\"'](?:" + "|".join(KEYS) + r")[\"']\s{0,9}:")
_MAY_BE = re.compile(
    r"\s{0,9}(?:[`~]{1,4}\w{0,9}\s{0,40})?(?:\{\s{0,40}(?:[\"'][A-Za-z]{0,20}(?:[\"']\s{0,9})?)?)?[\ud800-\udbff]?\Z"
)
_HOLD = 160
_FENCE_LINE = re.compile(r"\s*(?:`{3,4}|~{3,4})\w*\s*\Z")


class StructuredReader:
    """Streams in constant time per character; only `finish` parses the whole text."""

    def __init__(self, response: Schema | None = None, functions: Sequence[Function] = ()) -> None:
        self._response = response
        self._functions = {function.name: function for function in functions}
        self._keys = tuple((response or {}).get("properties", KEYS))
        self._raw: list[str] = []
        self._pieces: list[str] = []
        self._held = ""
        self._passed = 0
        self._said_prose = False
        self._start = -1
        self._scan: JsonScan | None = None
        self._gap = False
        self._thoughts = ThoughtFilter()
        self._calls = CallFilter(self._functions)
        #: Possible even if no functions were offered.
        self._native = CallPieces()
        self._summary = ""
        self.thought = ""
        self._words: dict[str, list[str]] = {"summary": [], "message": []}

    def feed(self, text: str) -> list[Delta]:
        self._raw.append(text)
        text = self._thoughts.feed(text)
        thought = self._thoughts.new_thought()
        thoughts = [Delta("reasoning", joined(thought))] if thought else []
        self._pieces.append(text)
        if self._scan is not None:
            return [*thoughts, *self._spaced(self._scanned(text))]
        self._held += text
        return [*thoughts, *self._before()]

    def call(self, chunk: CallChunk) -> None:
        self._native.add(chunk)

    @property
    def has_calls(self) -> bool:
        return bool(self._native.calls)

    def _take_calls(self, builder: ReplyBuilder) -> None:
        for call in self._native.calls:
            take_call(TextCall(call.name, call.arguments), self._functions, builder)

    @property
    def held(self) -> int:
        return len(self._held)

    def _before(self) -> list[Delta]:
        if not self._said_prose:
            bare = self._held.lstrip(" \t\r\n\ufeff")
            self._passed += len(self._held) - len(bare)
            self._held = bare
            match = _AT_START.match(self._held)
            if match:
                return self._begin(match.end() - 1)
            if _MAY_START.fullmatch(self._held):
                return []
        match = _IN_PROSE.search(self._held)
        if match:
            prose = _FENCE_LINE.sub("", self._held[: match.start()])
            return [*self._emit_text(prose), *self._begin(match.start())]
        tail = _MAY_BE.search(self._held, max(0, len(self._held) - _HOLD))
        cut = tail.start() if tail else len(self._held)
        said = self._emit_text(self._held[:cut])
        self._passed += cut
        self._held = self._held[cut:]
        return said

    def _emit_text(self, prose: str) -> list[Delta]:
        if not prose:
            return []
        self._said_prose = True
        said = self._calls.feed(prose)
        return [Delta("message", joined(said))] if said else []

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
        for number, delta in enumerate(deltas):
            if self._gap and delta.part == "message":
                self._gap = False
                return [*deltas[:number], Delta("message", "\n\n" + delta.text), *deltas[number + 1 :]]
        return deltas

    def finish(self, cut: bool) -> Reply:
        """`cut`: the stream ended early. Never raises."""
        ledger = Ledger(joined("".join(self._raw)))
        aside = thinking_tags.extract_thoughts(ledger)
        self.thought = aside.text
        left = ledger.left()
        text = without_end(left.text)
        scan = self
        if text != "".join(self._pieces):
            scan = StructuredReader(self._response, tuple(self._functions.values()))
            scan.feed(text)
            if held := scan._thoughts.rest():
                scan._pieces.append(held)
                scan._held += held
                scan._before()
        read = lenient_json.read_at(text, scan._start) if scan._start >= 0 else lenient_json.ReadObject({})
        beside = bool(read.before or read.after)
        about = read.found and any(
            key in read.value or key in read.repaired or key == read.opened
            for key in {*self._keys, *KEYS}
            if key != "message" or not beside
        )
        if about and beside:
            about = not Fences(text).quotes(scan._start) and not is_example(
                *surrounding_text(text, read.begin, read.end)
            )
        if about and read.before and text_calls.explicit(read.before):
            about = not text_calls.find(text, self._functions).calls
        if about:
            reply = self._object(left, read, cut, scan._words, aside)
        else:
            begun = cut and read.found and not read.value
            upto = len(text) if not begun else read.begin
            reply = self._prose(ledger, left, text[:upto], cut, read, aside)
        return replace(reply, spans=ledger.spans)

    def _object(
        self,
        left: JoinedPieces,
        read: lenient_json.ReadObject,
        cut: bool,
        words: dict[str, list[str]],
        aside: thinking_tags.Thoughts,
    ) -> Reply:
        builder = ReplyBuilder(self._response)
        self._take_calls(builder)
        builder.faults.extend(read.faults)
        if not read.complete and not read.faults and not cut:
            builder.faults.append("The JSON ended before it was closed.")
        if not read.complete and read.opened in self._keys[2:]:
            kept = read.value.get(read.opened)
            number = len(kept) + 1 if isinstance(kept, list) else 1
            builder.faults.append(f"{read.opened}: entry {number} is incomplete and was discarded.")
        keys = [key for key in KEYS if key not in self._keys and (key in read.value or key in read.repaired)]
        off = [f"There is no `{key}` here; there are {', '.join(self._keys)}." for key in keys]
        builder.faults.extend(off)
        value = text_calls.own_keys(read.value)
        builder.faults.extend(
            f"There is no `{key[:60]}` here: it is not read."
            for key in schema.unknown_properties(value, (*self._keys, *KEYS))
        )
        but = list(schema.commanding_properties(value, self._keys))
        for key in self._keys[2:]:
            if key in value:
                builder.take(key, value[key], but=but if key == "fileChanges" else ())
            elif key in read.repaired and key != "fileChanges":
                builder.take(key, read.repaired[key])
        left.claim(read.begin, read.end, "call")
        before, after, said = self._beside(left, read, builder)
        pieces = {part: "".join(pieces) for part, pieces in words.items()} if not read.complete else {}
        message = "\n\n".join(part for part in (_words(read, "message", pieces), *said) if part)
        summary = _words(read, "summary", pieces)
        builder.read_prose(left.ledger.left(), message, cut or not read.complete)
        if not (builder.changes or builder.refused) and looks_like_a_change(after, self._functions):
            builder.refuse(Refusal("", "what looks like a change in it follows a reply without any"))
        offer_wrapped(aside.wrapped, self._functions, self._response, builder)
        whole = "\n\n".join(part for part in (before, message, after) if part.strip())
        return builder.reply(summary, whole, cut or (not read.complete and not read.faults))

    def _beside(
        self, left: JoinedPieces, read: lenient_json.ReadObject, builder: ReplyBuilder
    ) -> tuple[str, str, list[str]]:
        """Returns the text before and after the object without calls and further replies, and the messages
        in them.
        """
        if not (read.before or read.after):
            return read.before, read.after, []
        texts = (left.text[: read.begin], left.text[read.end :])
        said: list[str] = []
        kept: list[str] = []
        for offset, text in zip((0, read.end), texts, strict=True):
            found = text_calls.find(text, self._functions)
            said += self._take_found(found, builder)
            pieces, at = [], 0
            for begin, end in sorted(found.taken):
                left.claim(offset + begin, offset + end, "call")
                pieces.append(text[at:begin])
                at = end
            kept.append("".join([*pieces, text[at:]]))
        return kept[0].strip(" \t\r\n["), without_end(kept[1]).strip(), said

    def _take_found(self, found: CallsInText, builder: ReplyBuilder) -> list[str]:
        said = []
        for one in (*found.calls, *found.replies):
            if one.shown:
                offer(one, self._functions, self._response, builder)
            elif isinstance(one, TextCall):
                take_call(one, self._functions, builder)
            else:
                said.append(builder.read_reply(one.value))
        self._summary = next((summary for summary, _ in said if summary), "")
        return [message for _, message in said if message]

    def _prose(
        self,
        ledger: Ledger,
        left: JoinedPieces,
        text: str,
        cut: bool,
        read: lenient_json.ReadObject,
        aside: thinking_tags.Thoughts,
    ) -> Reply:
        builder = ReplyBuilder(self._response)
        self._take_calls(builder)
        found = text_calls.find(text, self._functions)
        for begin, end in found.taken:
            left.claim(begin, end, "call")
        left.claim(len(text), len(left.text), "call")
        said = self._take_found(found, builder)
        if not (found.calls or found.replies or found.fault):
            builder.faults.extend(read.faults)
        message = "\n\n".join(part.strip() for part in (message_of(ledger), *said) if part.strip())
        builder.add_changes_in_prose(found, ledger, cut, aside.unfinished)
        offer_wrapped(aside.wrapped, self._functions, self._response, builder)
        return builder.reply(self._summary, message, cut)


def _words(read: lenient_json.ReadObject, key: str, said: dict[str, str]) -> str:
    for value in (read.value.get(key), said.get(key), read.repaired.get(key)):
        if isinstance(value, str) and value:
            return joined(value) if has_half(value) else value
    return ""
