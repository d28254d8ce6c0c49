"""Sessions against local servers whose windows are small: what does not fit is seen, named and recovered from."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from support.local_servers import NAMES, LocalFake, WireModel, local_server
from support.sessions import open_session, reply

from tui_agent.model.local import LocalModels
from tui_agent.model.servers import Kind, ServerMemory
from tui_agent.session.session import Session
from tui_agent.store import events as e

CHATS = ("/v1/chat/completions", "/api/chat")


def answering(messages: list[dict[str, Any]]) -> str:
    return json.dumps(reply("It reads a file, and says what is in it. " * 8))


def wire_of(session: Session) -> WireModel:
    local = session.models.model
    assert isinstance(local, LocalModels) and isinstance(local.inner, WireModel)
    return local.inner


@asynccontextmanager
async def served(
    workspace: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: Kind,
    *,
    most: int = 32_768,
    limits: tuple[str, ...] = (),
    **options: Any,
) -> AsyncGenerator[tuple[Session, LocalFake]]:
    """A session with a model of such a server."""
    async with local_server(kind, answer=answering, **options) as server:
        name, variable, behind = NAMES[kind]
        monkeypatch.setenv(variable, server.root + behind)

        def prepare(session: Session) -> None:
            session.models.model = LocalModels(WireModel(), ServerMemory(workspace.parent), most)
            session.models.name = name

        overrides = (f"model={name}", "protocol=structured", "planner_model=", *limits)
        async with open_session(workspace, prepare=prepare, overrides=overrides) as session:
            yield session, server


async def turns(session: Session, many: int) -> list[str]:
    """Ask about a file after the other; the errors of those turns that failed."""
    failed = []
    for number in range(many):
        await session.chat.submit(f"What does part{number}.py do?")
        await session.chat.finished()
        failed += [] if session.state.turn.ok else [session.state.turn.error]
    return failed


@pytest.mark.parametrize(
    ("kind", "window"),
    [("Ollama", 4096), ("LM Studio", 2048), ("llama.cpp", 8192), ("llama-cpp-python", 2048), ("vLLM", 4096)],
)
async def test_a_session_never_gets_stuck(
    kind: Kind, window: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    for number in range(6):
        (work / f"part{number}.py").write_text(
            f"def part_{number}(url):\n    return get(url, {number})\n" * 25
        )
    async with served(work, monkeypatch, kind, window=window, most=window) as (session, server):
        assert await turns(session, 6) == []
        tells = kind != "llama-cpp-python"
        assert server.over == (0 if tells else 1), (
            "only a server that hides its window is asked too much, once"
        )
        model = session.state.model
        assert (model.server, model.window, model.window_known) == (kind, window, True)
        bodies = [body for _, path, body in server.asked if path in CHATS and len(body["messages"]) > 1]
        shown = [number for number in range(6) if any(f"def part_{number}" in str(body) for body in bodies)]
        assert len(shown) >= 5, "the files that were asked about were in view"
        asked = bodies[-1]
        told = {"Ollama": ("options",), "llama.cpp": ("cache_prompt", "return_progress")}.get(kind, ())
        assert all(asked[name] for name in told), "what the server wants to be told"
        most = [request.most for request in wire_of(session).requests]
        assert bool(most[-1]) == (kind != "vLLM"), "an end is set where the server needs one"
        assert model.planner == ("" if kind == "vLLM" else "none")
        assert session.state.usage.session.cost == 0.0


@pytest.mark.parametrize(("kind", "status"), [("llama.cpp", 500), ("llama-cpp-python", 400), ("vLLM", 400)])
async def test_a_schema_that_is_refused_within_a_turn_is_left_out_from_then_on(
    kind: Kind, status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    async with served(work, monkeypatch, kind, window=32_768, refusal=status) as (session, server):
        await session.models.get_ready()
        assert session.state.model.takes_schema
        server.constrains = False
        seen: list[e.Event] = []
        session.subscribe(lambda event, state: seen.append(event))
        assert await turns(session, 2) == []
        bodies = [body for _, path, body in server.asked if path in CHATS and len(body["messages"]) > 1]
        held = ["response_format" in body for body in bodies]
        assert held[0] and not any(held[1:]) and len(held) > 2, "asked once, and not again"
        assert not any(isinstance(event, e.RetryCounted) for event in seen)
        assert "fileChanges" in str(bodies[-1]["messages"][0]), "the prompt describes it now"
        ((_, kept),) = ServerMemory(tmp_path)._read().models.items()
        assert kept.schema == "none", "also for the next session"


async def test_what_a_server_leaves_out_in_silence_is_noticed_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "part0.py").write_text("def part_0(url):\n    return get(url, 0)\n" * 400)
    async with served(work, monkeypatch, "Ollama", window=2048, obeys=False) as (session, server):
        assert await turns(session, 1) == []
        model = session.state.model
        assert server.over and (model.window, model.window_known) == (2048, True)
        notices = [notice.text for notice in session.state.notices.items]
        assert any(text.startswith("part0.py: the model sees lines 1-") for text in notices), notices
        over = server.over
        assert await turns(session, 2) == [] and server.over == over, "once is enough"


async def test_a_local_server_costs_nothing_so_that_no_limit_of_money_stops_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with served(
        tmp_path, monkeypatch, "LM Studio", window=32_768, limits=("limits.turn_cost=0.01",)
    ) as it:
        assert await turns(it[0], 1) == []
        assert (it[0].state.usage.session.cost, it[0].state.model.priced) == (0.0, True)
