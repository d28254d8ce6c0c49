"""What the model child knows, whom it talks to, and what happens when it dies."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import aclosing
from pathlib import Path

import pytest
from support.asking import MODEL, answer, answering, request, text
from support.provider import Answer, Provider

from tui_agent.errors import (
    Unreachable,
)
from tui_agent.model.child_model import ChildModel, ModelStatus, Transport
from tui_agent.model.client import (
    EndChunk,
    TextChunk,
    TokenCount,
)

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_what_is_known_of_models(model: ChildModel, transport: Transport) -> None:
    known = await model.abilities("anthropic/claude-sonnet-4-5")
    assert known.known and known.tools and known.cache_marks
    assert known.schema is (transport == "auto"), "litellm asks Claude for a schema in a form of its own"
    assert known.window == 200_000
    unknown = await model.abilities(MODEL)
    assert (unknown.known, unknown.window, unknown.tools, unknown.schema) == (False, 0, False, False)


async def test_counting_is_exact_with_the_models_own_vocabulary(model: ChildModel) -> None:
    counted = await model.count("openai/gpt-4o", ["hello world", "", "<|endoftext|>"], wait=True)
    assert (counted.counts, counted.exact) == ((2, 0, 7), True)
    assert (await model.count("anthropic/claude-sonnet-4-5", ["hello world"])).exact is False


async def test_a_server_that_is_not_there(model: ChildModel) -> None:
    with pytest.raises(Unreachable, match=r"hosted_vllm/x cannot be reached: .* and HOSTED_VLLM_API_BASE"):
        await answer(model, request(model="hosted_vllm/x"))


def niceness(pid: int) -> dict[str, int]:
    """How far each thread of a process is lowered, by its id."""
    tasks = Path(f"/proc/{pid}/task")
    if not tasks.exists():  # macOS tells of processes only
        return {str(pid): os.getpriority(os.PRIO_PROCESS, pid)}
    stats = {task.name: (task / "stat").read_text().rpartition(")")[2].split() for task in tasks.iterdir()}
    return {name: int(fields[16]) for name, fields in stats.items()}


async def test_no_thread_of_the_child_is_ever_lowered(provider: Provider) -> None:
    """What is lowered once stays so for an ordinary user, and a busy machine then starves every answer."""
    provider.answer("here")
    model = ChildModel(environment=provider.environment)
    await model.start()
    seen: set[int] = set()

    def look(status: str) -> None:
        if model.pid is not None:
            seen.update(niceness(model.pid).values())

    async for chunk in model.stream(request()):
        look(str(chunk))
    await model.count("openai/gpt-4o", ["hello"], wait=True)
    look("warm")
    await model.close()
    assert seen == {os.nice(0)}


def libraries(pid: int | None) -> str:
    """The files that a process has loaded, where the system tells."""
    maps = Path(f"/proc/{pid}/maps")
    return maps.read_text() if maps.exists() else "_ssl"


async def test_an_answer_that_goes_directly_loads_neither_litellm_nor_a_vocabulary(
    provider: Provider,
) -> None:
    provider.answer("here")
    model = ChildModel(environment=provider.environment, model=MODEL)
    await model.start()
    assert text(await answer(model)) == "here"
    assert await model.count("openai/gpt-4o", ["twelve bytes"]) == TokenCount((3,), exact=False)
    assert (await model.abilities("openai/gpt-4o")).known
    loaded = libraries(model.pid)
    await model.close()
    assert "_ssl" in loaded
    assert "pydantic_core" not in loaded, "which litellm imports"
    assert "_tiktoken" not in loaded


async def test_nothing_is_asked_for_but_on_loopback(model: ChildModel, provider: Provider, log: Path) -> None:
    provider.answer("ok")
    assert text(await answer(model, request(model="openai/gpt-4o"))) == "ok"
    await model.abilities("gemini/gemini-2.5-pro")
    await model.count("openai/gpt-4o", ["hello"], wait=True)
    lines = (await asyncio.to_thread(log.read_text)).splitlines()
    assert any(str(provider.port) in line for line in lines), "the request itself is seen"
    assert {line for line in lines if "'127.0.0.1'" not in line} == set()


@pytest.mark.parametrize("transport", ["auto"], indirect=True)  # what dies is the process, whoever asks in it
async def test_a_child_that_dies_in_the_middle_says_so_and_comes_back(
    model: ChildModel, provider: Provider, statuses: list[ModelStatus]
) -> None:
    """Until it counts again counts are estimates."""
    provider.answer("warm", Answer("one two", hang_after=1), "again")
    assert text(await answer(model)) == "warm"
    pid = model.pid
    assert pid is not None
    async with aclosing(answering(model)) as stream:
        assert await anext(stream) == TextChunk("one")
        os.kill(pid, signal.SIGKILL)
        end = await anext(stream)
    assert isinstance(end, EndChunk)
    assert (end.reason, end.why) == (
        "cut",
        "The model process was ended by signal 9 during the answer",
    )
    assert statuses == ["starting", "ready", "failed"]
    assert await model.count("openai/gpt-4o", ["twelve bytes"]) == TokenCount((3,), exact=False)
    assert text(await answer(model)) == "again"
    assert model.pid != pid
    assert statuses[:4] == ["starting", "ready", "failed", "starting"]


#: Bytes that a child may keep after a paste of 10 MB. Without a message it has about 25 MB.
MOST_KEPT = 45_000_000


def proportional(pid: int | None) -> int:
    """Bytes of memory of a process, with its share of what processes share."""
    rows = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(row.split()[1]) * 1024 for row in rows if row.startswith("Pss:"))


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="memory is measured on Linux")
async def test_the_child_keeps_no_pasted_text(provider: Provider) -> None:
    provider.answer("seen")
    model = ChildModel(environment=provider.environment, retries=0)
    await model.start()
    assert text(await answer(model, request(messages=({"role": "user", "content": "word " * 2_000_000},))))
    deadline = asyncio.get_running_loop().time() + 60
    while (kept := proportional(model.pid)) > MOST_KEPT:
        assert asyncio.get_running_loop().time() < deadline, kept
        await asyncio.sleep(0.1)
    await model.close()
