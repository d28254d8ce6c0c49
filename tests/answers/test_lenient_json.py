"""Mistakes in JSON: the certain ones are read, at the first other one reading ends."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tui_agent.answers import lenient_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**12), 10**12) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1,}', {"a": 1}),
        ('{"a": [1, 2,],}', {"a": [1, 2]}),
        ('{"a": "x\ny\tz"}', {"a": "x\ny\tz"}),
        ("{'a': 'it \"is\"'}", {"a": 'it "is"'}),
        ("{a: true, b: False, c: None}", {"a": True, "b": False, "c": None}),
        ('{"a": 1, // why\n "b": /* what */ 2}', {"a": 1, "b": 2}),
        (r'{"a": "\d+ \'x\' \u00e9"}', {"a": "\\d+ 'x' é"}),
        ('{"a": [{"b": 1} {"b": 2}] "c": 3}', {"a": [{"b": 1}, {"b": 2}], "c": 3}),
        ('\ufeff{"a": 1}', {"a": 1}),
        ('{"a": 1.5e3}', {"a": 1500.0}),
        (r'{"a": "\ud83d\ude00", }', {"a": "😀"}),
    ],
)
def test_certain_mistakes_are_read(text: str, value: Any) -> None:
    read = lenient_json.read(text)
    assert (read.value, read.whole, read.fault) == (value, True, -1)


@pytest.mark.parametrize(
    "text",
    [
        '{"a": [{"c": "x"}, {"c": "print("hi")"}]}',
        '{"a": [{"c": "x"}, {"c": "say "," done"}]}',
        '{"a": [{"c": "x"}, {"c": "y" "d": 1}]}',
        '{"a": [{"c": "x"}, {"c": nonsense}]}',
        '{"a": [{"c": "x"}, {"c": "y"]]}',
    ],
)
def test_an_uncertain_mistake_ends_the_reading_before_its_entry(text: str) -> None:
    read = lenient_json.read(text)
    assert not read.whole
    assert read.fault > 0
    assert read.value == {"a": [{"c": "x"}]}
    assert read.opened in ("a", "")


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(VALUES)
def test_what_json_writes_is_read_as_json_reads_it(value: Any) -> None:
    text = json.dumps({"value": value})
    assert lenient_json.read(text).value == json.loads(text)


@given(VALUES, st.data())
def test_a_prefix_never_holds_what_the_whole_does_not(value: Any, data: st.DataObject) -> None:
    whole = {"first": value, "list": [{"n": 1, "v": value}, {"n": 2, "v": value}]}
    text = json.dumps(whole)
    read = lenient_json.read(text[: data.draw(st.integers(0, len(text) - 1))])
    assert not read.whole
    for key, entry in (read.value or {}).items():
        assert (
            entry == whole[key] or (key == "list" and entry == whole["list"][: len(entry)]) or key == "first"
        )


@given(st.text(alphabet="{}[]\",:'\\ab1 \n/*tn-"))
def test_no_text_breaks_it(text: str) -> None:
    lenient_json.read(text)


@pytest.mark.parametrize("sign", ["[", '{"a":', "[{"])
def test_what_is_nested_too_deep_is_refused_and_not_followed(sign: str) -> None:
    read = lenient_json.read(sign * 1_000_000)
    assert not read.whole
    assert read.end <= (lenient_json.MAX_DEPTH + 1) * len(sign)


def test_a_number_without_end_is_no_number() -> None:
    assert not lenient_json.read('{"a": ' + "9" * 100_000 + "}").whole
