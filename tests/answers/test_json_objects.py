"""A long object is decoded in pieces, with the result of decoding it at once."""

from __future__ import annotations

import json
import random

import pytest
from support.shapes import FUNCTIONS

from tui_agent.answers import lenient_json
from tui_agent.answers.lenient_json import find_object
from tui_agent.answers.tools_reader import ToolsReader
from tui_agent.model.client import CallChunk


def test_a_long_object_is_the_same_as_decoded_at_once() -> None:
    chance = random.Random(5)
    words = ["a", "}, {", "]},", '"},', "\\", "é", "line\nline", "{[", ""]

    def value(depth: int) -> object:
        match chance.randrange(6 if depth else 4):
            case 0 | 1:
                return "".join(chance.choices(words, k=chance.randrange(6)))
            case 2 | 3:
                return chance.choice([1, -2.5e3, True, None])
            case 4:
                return [value(depth - 1) for _ in range(chance.randrange(5))]
            case _:
                return {chance.choice(words): value(depth - 1) for _ in range(chance.randrange(4))}

    for separators in ((", ", ": "), (" ,\n ", " : ")):
        entries = [{"path": value(0), "edits": [value(3)] * 3, "other": value(2)} for _ in range(3_000)]
        text = json.dumps({"summary": "S", "fileChanges": entries}, separators=separators)
        assert len(text) > 300_000
        assert find_object(text, ["summary"]).value == json.loads(text)


@pytest.mark.parametrize(
    "value", [1, "a, ]}, b", [], {}, {"path": "a", "edits": [{"search": "x", "replace": "y"}]}]
)
def test_no_step_decodes_much_of_a_long_list(value: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """The decoder lets nobody else run, so that a long list is decoded slice by slice, whatever its values are."""
    sizes = []

    class Decoder(json.JSONDecoder):
        def raw_decode(self, s: str, idx: int = 0) -> tuple[object, int]:
            found, end = super().raw_decode(s, idx)
            sizes.append(end - idx)
            return found, end

    monkeypatch.setattr(lenient_json, "_LOOSE", Decoder(strict=False))
    many = 1_000_000 // len(json.dumps(value))
    values = [value] * min(many, 100_000)
    found = find_object(json.dumps({"summary": "S", "fileChanges": values}), ["summary"]).value["fileChanges"]
    assert len(found) == len(values)
    assert 0 < max(sizes) <= 60_000
    sizes.clear()
    reader = ToolsReader(None, FUNCTIONS)
    reader.call(CallChunk(0, "call_1", "propose_changes", json.dumps({"changes": values})))
    assert reader.finish(cut=False).calls
    assert 0 < max(sizes) <= 60_000


def test_entries_beyond_all_that_is_read_are_counted_and_not_kept() -> None:
    """So many objects would hold up the collector, which looks at all of them in one step."""
    entry = {"path": "a", "edits": [{"search": "x", "replace": "y"}]}
    read = find_object(json.dumps({"summary": "S", "fileChanges": [entry] * 50_000}), ["summary"])
    entries = read.value["fileChanges"]
    assert len(entries) == 50_000
    assert entries[: lenient_json.MOST_KEPT] == [entry] * lenient_json.MOST_KEPT
    assert sum(one is not None for one in entries) < lenient_json.MOST_KEPT + 2_000
