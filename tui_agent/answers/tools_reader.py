"""The `tools` dialect: function calls for actions, plain text for the user."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any

from msgspec.structs import replace

from tui_agent.answers import lenient_json, schema, text_calls, thinking_tags
from tui_agent.answers.lenient_json import joined
from tui_agent.answers.reply_builder import ReplyBuilder
from tui_agent.answers.schema import Function, Schema, by_path
from tui_agent.answers.text_calls import CallFilter, TextCall, TextReply
from tui_agent.answers.thinking_tags import ThoughtFilter, without_end
from tui_agent.answers.values import Delta, Ledger, Reply, ToolCall
from tui_agent.model.client import CallChunk

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST_NAME = 64
_MOST_SENT_BACK = 2_000


class _Call:
    def __init__(self, name: str = "", arguments: str = "") -> None:
        self.id = ""
        self.name = name
        self.pieces: list[str] = [arguments] if arguments else []
        self.repeated = False

    @property
    def arguments(self) -> str:
        return "".join(self.pieces)


class CallPieces:
    def __init__(self) -> None:
        self.calls: list[_Call] = []
        self._by_index: dict[int, _Call] = {}

    def add(self, chunk: CallChunk) -> None:
        """A second id under a used index begins another call."""
        call = self._by_index.get(chunk.index)
        if call is None or (chunk.id and call.id and chunk.id != call.id):
            call = self._by_index[chunk.index] = _Call()
            self.calls.append(call)
        call.id = call.id or chunk.id
        call.name = call.name or chunk.name
        if chunk.arguments:
            call.pieces.append(chunk.arguments)


class ToolsReader:
    """`calls_as_text`: the server sends calls as text; otherwise such calls are only offered. A call with a
    missing, duplicate or `taken` id gets one that begins with `prefix`.
    """

    def __init__(
        self,
        response: Schema | None,
        functions: Sequence[Function],
        prefix: str = "call",
        taken: Collection[str] = (),
        calls_as_text: bool = True,
    ) -> None:
        self._taken = taken
        self._calls_as_text = calls_as_text
        self._response = response
        self._functions = {function.name: function for function in functions}
        self._prefix = prefix
        self._text: list[str] = []
        self._half = ""
        self._native = CallPieces()
        self._thoughts = ThoughtFilter()
        self._calls_in_text = CallFilter(self._functions)
        self.thought = ""

    def feed(self, piece: str) -> list[Delta]:
        self._text.append(piece)
        piece = self._thoughts.feed(piece)
        thought = self._thoughts.new_thought()
        thoughts = [Delta("reasoning", joined(thought))] if thought else []
        piece = self._half + piece
        self._half = piece[-1] if piece and "\ud800" <= piece[-1] <= "\udbff" else ""
        said = self._calls_in_text.feed(piece[:-1] if self._half else piece)
        return [*thoughts, Delta("message", joined(said))] if said else thoughts

    def call(self, chunk: CallChunk) -> None:
        self._native.add(chunk)

    def finish(self, cut: bool) -> Reply:
        ledger = Ledger(joined("".join(self._text)))
        aside = thinking_tags.extract_thoughts(ledger)
        self.thought = aside.text
        builder = ReplyBuilder(self._response)
        left = ledger.left()
        found = text_calls.find(left.text, self._functions)
        for begin, end in found.taken:
            left.claim(begin, end, "call")
        done = [call for call in found.calls if not self._only_offered(call)]
        made = [*self._native.calls, *(_Call(call.name, call.arguments) for call in done)]
        seen: set[str] = set()
        for number, call in enumerate(made, 1):
            call.repeated = bool(call.id) and call.id in seen
            seen.add(call.id)
            if not call.id or call.repeated or call.id in self._taken:
                call.id = f"{self._prefix}_{number}"
                seen.add(call.id)
        last = self._native.calls[-1] if self._native.calls else None
        calls = tuple(self._read(call, builder, cut and call is last) for call in made)
        said = [builder.read_reply(reply.value) for reply in found.replies if not self._only_offered(reply)]
        said += [
            offer(other, self._functions, self._response, builder)
            for other in (*found.calls, *found.replies)
            if self._only_offered(other)
        ]
        message = "\n\n".join(
            part.strip() for part in (message_of(ledger), *(words for _, words in said)) if part.strip()
        )
        builder.add_changes_in_prose(found, ledger, cut, aside.unfinished)
        offer_wrapped(aside.wrapped, self._functions, self._response, builder)
        summary = next((words for words, _ in said if words), "")
        return replace(builder.reply(summary, message, cut), calls=calls, spans=ledger.spans)

    def _only_offered(self, found: TextCall | TextReply) -> bool:
        return found.shown or not self._calls_as_text

    def _read(self, call: _Call, builder: ReplyBuilder, cut: bool) -> ToolCall:
        raw = call.arguments.strip()
        name = _NOT_IN_NAMES.sub("_", call.name.strip())[:_LONGEST_NAME] or "unknown"
        function = self._functions.get(call.name)
        own = ReplyBuilder(self._response)
        if function is None:
            called = (
                f"There is no function {call.name[:60]!r}" if call.name.strip() else "The call has no name"
            )
            own.faults.append(f"{called}; there are {', '.join(self._functions)}.")
            value, whole, strict = {}, False, False
        elif call.repeated:
            own.faults.append("It has the id of another call.")
            value, whole, strict = {}, False, False
        else:
            value, whole, strict = _arguments(raw, function, cut, own.faults)
            _take(value, function, whole, own)
        builder.add(own)
        arguments = raw if strict else json.dumps(value)
        if not own.count and len(arguments) > _MOST_SENT_BACK:
            arguments = json.dumps({"left_out": f"{len(arguments):,} characters"})
        fault = ""
        if not own.count:
            fault = (
                f"Error: {' '.join(own.faults)} Nothing in this call was done. Correct it and send it again."
            )
        elif not whole:
            taken = "the first item was" if own.count == 1 else f"the first {own.count} items were"
            fault = f"Error: {' '.join(own.faults)} Of this call {taken} taken. Send the others again."
        entries = own.reply("", "", False).entries(function.key) if function and own.count else ()
        return ToolCall(call.id, name, arguments, fault, entries, tuple(own.faults))


def message_of(ledger: Ledger) -> str:
    return without_end(ledger.left(("thought", "call")).text)


def offer(
    found: TextCall | TextReply,
    functions: Mapping[str, Function],
    response: Schema | None,
    builder: ReplyBuilder,
) -> tuple[str, str]:
    """Offers the changes of a call or reply in text, and reports the rest. Returns its summary and message."""
    own, said = ReplyBuilder(response), ("", "")
    if isinstance(found, TextReply):
        said = own.read_reply(found.value)
        name = "a reply"
    else:
        take_call(found, functions, own)
        name = f"a call of {found.name[:60]}"
    why = "is shown as an example" if found.shown else "is written as text"
    builder.offer(own, f"{name} {why} in the answer")
    return ("", "") if found.shown else said


def offer_wrapped(
    wrapped: Sequence[thinking_tags.HiddenSpan],
    functions: Mapping[str, Function],
    response: Schema | None,
    builder: ReplyBuilder,
) -> None:
    for one in wrapped:
        found, ledger = text_calls.find(one.text, functions), Ledger(one.text)
        left = ledger.left()
        own = ReplyBuilder(response)
        for begin, end in found.taken:
            left.claim(begin, end, "call")
        for call in found.calls:
            take_call(call, functions, own)
        for reply in found.replies:
            own.read_reply(reply.value)
        own.read_prose(ledger.left(), "", False)
        builder.offer(own, f"what is inside <{one.tag[:60]}> may not be meant")


def take_call(call: TextCall, functions: Mapping[str, Function], builder: ReplyBuilder) -> None:
    function = functions.get(call.name)
    if function is None:
        builder.faults.append(f"There is no function {call.name[:60]!r} here.")
        return
    value, whole, _ = _arguments(call.arguments, function, False, builder.faults)
    _take(value, function, whole, builder)


def _take(value: dict[str, Any], function: Function, whole: bool, builder: ReplyBuilder) -> None:
    if not function.parameter:
        if whole and value.pop(_MORE, None):
            builder.faults.append(f"{function.name}: more than one object is sent as its arguments.")
        elif whole:
            builder.take_one(function.key, value, function.name)
        return
    if whole and not value:
        builder.faults.append(f"{function.name}: the arguments are empty; `{function.parameter}` is needed.")
    entries = by_path(value.get(function.parameter)) if function.parameter in value else None
    if entries is None and value:
        others = [entry for entry in value.values() if isinstance(entry, list)]
        entries = others[0] if len(value) == 1 and others else [value]
    if entries is None and not value:
        return
    but = (
        list(schema.commanding_properties(value, (function.parameter,)))
        if function.parameter in value
        else []
    )
    builder.take(function.key, entries, f"{function.name}.{function.parameter}", but)


def _arguments(
    raw: str, function: Function, cut: bool, faults: list[str]
) -> tuple[dict[str, Any], bool, bool]:
    if not raw:
        return {}, not cut, False
    try:
        value = lenient_json.decoded(raw)
        strict = raw.isprintable()  # printable text has no line breaks
        if not strict:
            with suppress(ValueError, RecursionError):
                lenient_json.decoded(raw, strict=True)
                strict = True
        if isinstance(value, str):
            value, strict = lenient_json.decoded(value), False
    except (ValueError, RecursionError):
        return *_lenient(raw, function, cut, faults), False
    if isinstance(value, list) and function.parameter:
        value, strict = {function.parameter: value}, False
    if isinstance(value, dict):
        return value, True, strict
    faults.append(f"{function.name}: the arguments are not an object.")
    return {}, False, False


def _lenient(raw: str, function: Function, cut: bool, faults: list[str]) -> tuple[dict[str, Any], bool]:
    name = function.name
    start = min((at for at in (raw.find("{"), raw.find("[")) if at >= 0), default=-1)
    found: list[dict[str, Any]] = []
    while start >= 0:
        read = lenient_json.read(raw, start)
        value = read.value
        if isinstance(value, list) and function.parameter:
            value = {function.parameter: value}
        if isinstance(value, dict):
            found.append(value)
        if not read.whole:
            if cut and read.fault < 0:
                faults.append(f"{name}: the call was cut off; what was not finished is dropped.")
            else:
                faults.append(
                    f"{name}: the arguments are not valid JSON; only what is complete before that was read."
                )
            return _as_one(found, function), False
        between = _BETWEEN.match(raw, read.end)
        start = between.end() if between else -1
    if not found:
        faults.append(f"{name}: the arguments are not valid JSON.")
    return _as_one(found, function), bool(found)


_BETWEEN = re.compile(r"[\s;,]*(?=[{\[])")
_MORE = "a second object"


def _as_one(found: Sequence[dict[str, Any]], function: Function) -> dict[str, Any]:
    if len(found) < 2:
        return found[0] if found else {}
    if not function.parameter:
        return {**found[0], _MORE: True}
    entries: list[Any] = []
    rest: dict[str, Any] = {}
    for value in found:
        several = value.get(function.parameter, value)
        entries += several if isinstance(several, list) else [several]
        rest |= {k: v for k, v in value.items() if k != function.parameter and several is not value}
    return {**rest, function.parameter: entries}
