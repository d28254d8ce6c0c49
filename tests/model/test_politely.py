"""An import that makes room for others until somebody waits for it."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import pytest

from tui_agent.model.worker import LONGEST_PAUSE, ThrottledImports


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of modules that nobody has imported yet."""
    names = [f"never_seen_{tmp_path.name}_{number}".replace("-", "_") for number in range(4)]
    for name in names:
        (tmp_path / f"{name}.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    return names


def test_it_pauses_before_each_module_until_somebody_waits(modules: list[str]) -> None:
    pauses: list[float] = []
    politely = ThrottledImports(pauses.append)
    with politely.importing():
        __import__(modules[0])
        __import__(modules[1])
        assert len(pauses) == 2
        assert all(0 <= pause <= LONGEST_PAUSE for pause in pauses)
        politely.hurry()
        __import__(modules[2])
        assert len(pauses) == 2
    __import__(modules[3])
    assert politely not in sys.meta_path


def test_imports_of_other_threads_are_not_held_up(modules: list[str]) -> None:
    pauses: list[float] = []
    with ThrottledImports(pauses.append).importing():
        other = threading.Thread(target=__import__, args=(modules[0],))
        other.start()
        other.join()
    assert pauses == []
    assert modules[0] in sys.modules
