"""Expressions that are compiled late: what they give, and compiling them ahead of a first use."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tui_agent.files import lazy_regex
from tui_agent.files.lazy_regex import compile_in, late
from tui_agent.session.preparation import READING

ROOT = Path(__file__).parents[2]


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The patterns that are compiled from now on."""
    seen: list[str] = []
    compile_ = re.compile
    monkeypatch.setattr(
        lazy_regex.re, "compile", lambda *source: (seen.append(source[0]), compile_(*source))[1]
    )
    yield seen


def test_it_is_compiled_once_at_the_first_use(compiled: list[str]) -> None:
    pattern = late(r"(a)(b)?", re.IGNORECASE)
    assert compiled == []
    found = pattern.match("AB")
    assert found is not None and found.groups() == ("A", "B")
    assert pattern.sub("x", "abA") == "xx"
    assert compiled == [r"(a)(b)?"]


def test_those_of_a_package_are_compiled_ahead(monkeypatch: pytest.MonkeyPatch, compiled: list[str]) -> None:
    ours, others = ModuleType("ahead.one"), ModuleType("aside.one")
    vars(ours)["ONE"], vars(others)["ONE"] = late("one"), late("other")
    for module in (ours, others):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    compile_in("ahead.", "none.")
    assert compiled == ["one"]
    assert vars(ours)["ONE"].search("one") and compiled == ["one"]


def test_what_is_compiled_ahead_of_a_first_message_is_there() -> None:
    assert all((ROOT / name.strip(".").replace(".", "/")).is_dir() for name in READING)


def test_each_of_the_product_has_no_fault() -> None:
    """One that is compiled late would show it to a person, not to whoever imports it."""
    using = [
        path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".")
        for path in (ROOT / "tui_agent").rglob("*.py")
        if "lazy_regex import" in path.read_text()
    ]
    assert len(using) > 10
    for name in using:
        importlib.import_module(name)
    compile_in("tui_agent.")
