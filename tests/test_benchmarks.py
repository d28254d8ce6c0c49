"""What the benchmarks are asked for: peers beside ours, by name, where they are installed; without a word none."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

HERE = Path(__file__).parent


@pytest.fixture
def peers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """The module, where `codex` alone is installed."""
    (tmp_path / "codex").write_text("#!/bin/sh\n")
    (tmp_path / "codex").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    spec = importlib.util.spec_from_file_location("peers", HERE / "benchmarks" / "peers.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "peers", module)
    spec.loader.exec_module(module)
    return module


def test_peers_are_measured_only_where_they_are_named_and_installed(peers: ModuleType) -> None:
    def names(asked: str) -> tuple[list[str], list[str]]:
        found, missing = peers.asked_for(asked)
        return [peer.name for peer in found], missing

    everybody = [peer.name for peer in peers.PEERS]
    assert names("") == ([], [])
    assert names("claude, codex") == (["codex"], ["claude"])
    assert names("all") == (["codex"], [name for name in everybody if name != "codex"])
    with pytest.raises(SystemExit, match="no peer vim: PEERS takes codex, claude"):
        peers.asked_for("vim codex")


def test_a_peer_is_started_towards_the_provider_with_a_home_of_its_own(
    peers: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", "the person's")
    url, home = "http://127.0.0.1:1/v1", tmp_path / "home"
    for peer in peers.PEERS:
        env = peer.prepare(url, home, tmp_path / "shop")
        told = [*peer.command(url), *env.values(), *(p.read_text() for p in home.rglob("*") if p.is_file())]
        assert any("127.0.0.1:1" in word for word in told), peer.name
        assert env["HOME"] == str(home) and "GEMINI_API_KEY" not in env
