"""The `tools` dialect: function calls for all that is done, plain text for the person."""

from __future__ import annotations

import json
from typing import Any

from msgspec.structs import replace

from tui_agent.answers import lenient_json, objects
from tui_agent.answers.lenient_json import joined
from tui_agent.answers.reply_builder import ReplyBuilder, summary_of
from tui_agent.answers.schema import FUNCTIONS, SEARCH, Schema
from tui_agent.answers.values import Delta, Reply, ToolCall
from tui_agent.model.client import CallChunk


class _Call:
    """One function call while its pieces come."""

    def __init__(self) -> None:
        self.id = ""
        self.name = ""
        self.pieces: list[str] = []


class ToolsReader:
    """Takes text and pieces of calls as they come; `response` is the schema to check with.

    A call without an id, or with that of another, gets one that begins with `prefix`.
    """

    def __init__(self, response: Schema | None = None, prefix: str = "call") -> None:
        self._response = response
        self._prefix = prefix
        self._text: list[str] = []
        self._half = ""
        self._calls: list[_Call] = []
        self._by_index: dict[int, _Call] = {}

    def text(self, piece: str) -> list[Delta]:
        """Plain text is the message."""
        self._text.append(piece)
        piece = self._half + piece
        self._half = piece[-1] if piece and "\ud800" <= piece[-1] <= "\udbff" else ""
        said = piece[:-1] if self._half else piece
        return [Delta("message", joined(said))] if said else []

    def call(self, chunk: CallChunk) -> None:
        """A piece of a call. A second id under an index that is taken begins another call."""
        call = self._by_index.get(chunk.index)
        if call is None or (chunk.id and call.id and chunk.id != call.id):
            call = self._by_index[chunk.index] = _Call()
            self._calls.append(call)
        call.id = call.id or chunk.id
        call.name = call.name or chunk.name
        if chunk.arguments:
            call.pieces.append(chunk.arguments)

    def finish(self, cut: bool) -> Reply:
        """The whole reply; `cut` says that the stream ended before the model did. Never raises."""
        text = joined("".join(self._text))
        message = text.strip()
        builder = ReplyBuilder(self._response)
        self._name_calls()
        calls = [self._read(call, builder, cut) for call in self._calls]
        builder.take_prose(text, cut)
        return replace(builder.reply(summary_of(message), message, cut), calls=tuple(calls))

    def _name_calls(self) -> None:
        """Each call gets an id of its own, under which it is answered."""
        taken: set[str] = set()
        for number, call in enumerate(self._calls, 1):
            if not call.id or call.id in taken:
                call.id = f"{self._prefix}_{number}"
            taken.add(call.id)

    def _read(self, call: _Call, builder: ReplyBuilder, cut: bool) -> ToolCall:
        raw = "".join(call.pieces).strip()
        before, taken = len(builder.faults), builder.count
        value, whole, strict = _arguments(raw, call.name, cut, builder.faults)
        if call.name == SEARCH:
            if whole:
                builder.take_search(value)
        elif call.name not in FUNCTIONS:
            called = (
                f"There is no function {call.name[:60]!r}" if call.name.strip() else "The call has no name"
            )
            builder.faults[before:] = [f"{called}; there are {_names()}."]
        else:
            parameter, key = FUNCTIONS[call.name]
            if whole and not value:
                builder.faults.append(f"{call.name}: the arguments are empty; `{parameter}` is needed.")
            _take(value, parameter, key, call.name, builder)
        arguments = raw if strict else json.dumps(value)
        fault = "" if whole and builder.count > taken else " ".join(builder.faults[before:])
        if fault:
            del builder.faults[before:]
            fault = _told(fault, builder.count - taken)
        return ToolCall(call.id, call.name or "unknown", arguments, fault)


def _told(fault: str, taken: int) -> str:
    if not taken:
        return f"Error: {fault} Nothing of this call was done. Correct it and send it again."
    first = "the first item was" if taken == 1 else f"the first {taken} items were"
    return f"Error: {fault} Of this call {first} taken. Send the others again."


def _take(value: dict[str, Any], parameter: str, key: str, name: str, builder: ReplyBuilder) -> None:
    entries = value.get(parameter)
    if entries is None and value:
        others = [entry for entry in value.values() if isinstance(entry, list)]
        entries = others[0] if len(value) == 1 and others else [value]
    if entries is None and not value:
        return
    builder.take(key, entries, f"{name}.{parameter}")


def _arguments(raw: str, name: str, cut: bool, faults: list[str]) -> tuple[dict[str, Any], bool, bool]:
    """The arguments as an object, whether they are whole, and whether they were one in strict JSON."""
    if not raw:
        return {}, not cut, False
    try:
        value = objects.decoded(raw)
        strict = raw.isprintable() or _is_strict(raw)  # no line break that could be inside a string
        if isinstance(value, str):
            value, strict = objects.decoded(value), False
    except (ValueError, RecursionError):
        return *_lenient(raw, name, cut, faults), False
    if isinstance(value, list) and name in FUNCTIONS:
        value, strict = {FUNCTIONS[name][0]: value}, False
    if isinstance(value, dict):
        return value, True, strict
    faults.append(f"{name}: the arguments are not an object.")
    return {}, False, False


def _is_strict(raw: str) -> bool:
    try:
        objects.decoded(raw, strict=True)
    except (ValueError, RecursionError):
        return False
    return True


def _lenient(raw: str, name: str, cut: bool, faults: list[str]) -> tuple[dict[str, Any], bool]:
    start = raw.find("{")
    read = lenient_json.read(raw, start) if start >= 0 else lenient_json.Lenient(None, 0, False, 0)
    value = read.value if isinstance(read.value, dict) else {}
    if read.whole:
        return value, True
    if cut and read.fault < 0:
        faults.append(f"{name}: the call was cut off; what was not finished is dropped.")
    else:
        faults.append(
            f"{name}: the arguments are not valid JSON; only what is complete before that was read."
        )
    return value, False


def _names() -> str:
    return ", ".join([*FUNCTIONS, SEARCH])
