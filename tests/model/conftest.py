"""One real model child and one provider for all tests that need them."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio
from support.asking import SECRET
from support.provider import Provider, dead_url

from tui_agent.model.child_model import ChildModel, ModelStatus, Transport

SPY = """
import os, sys
log = os.open(os.environ["SPY_LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
def spy(event, args):
    if event == "socket.connect":
        os.write(log, f"{args[1]!r}\\n".encode())
    elif event == "socket.getaddrinfo":
        os.write(log, f"{args[:2]!r}\\n".encode())
sys.addaudithook(spy)
"""


@pytest.fixture(scope="session")
def server() -> Iterator[Provider]:
    with Provider() as provider:
        yield provider


@pytest.fixture(scope="session", params=["auto", "litellm"])
def transport(request: pytest.FixtureRequest) -> Transport:
    """How the provider is reached: every test of the child is one of both ways."""
    return request.param


@pytest.fixture(scope="session")
def log(tmp_path_factory: pytest.TempPathFactory, transport: Transport) -> Path:
    """Where a spy in the child writes every address that anything there looks up or connects to."""
    folder = tmp_path_factory.mktemp("spy")
    (folder / "sitecustomize.py").write_text(SPY)
    return folder / "log"


@pytest.fixture(scope="session")
def statuses(transport: Transport) -> list[ModelStatus]:
    return []


def environment(server: Provider) -> dict[str, str]:
    """Every provider is the one on loopback, but for one that is not there."""
    names = ("DEEPSEEK", "XAI", "GROQ", "OPENROUTER", "HOSTED_VLLM", "LM_STUDIO")
    return {
        **server.environment,
        **{f"{name}_API_BASE": server.url for name in names},
        **{f"{name}_API_KEY": f"key-of-{name}" for name in names},
        "OPENAI_API_KEY": SECRET,
        "ANTHROPIC_API_KEY": "test",
    }


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def model(
    server: Provider, log: Path, statuses: list[ModelStatus], transport: Transport
) -> AsyncGenerator[ChildModel, None]:
    """One child for all the tests of a transport: litellm takes seconds to import."""
    variables = {
        **environment(server),
        "HOSTED_VLLM_API_BASE": dead_url(),
        "SPY_LOG": str(log),
        "PYTHONPATH": os.pathsep.join((str(log.parent), str(Path(__file__).parents[2]))),
    }
    model = ChildModel(environment=variables, on_status=statuses.append, transport=transport)
    await model.start()
    yield model
    await model.close()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def both(server: Provider) -> AsyncGenerator[tuple[ChildModel, ChildModel], None]:
    """A child that asks directly and one that asks through litellm."""
    direct = ChildModel(environment=environment(server), transport="auto")
    other = ChildModel(environment=environment(server), transport="litellm")
    yield direct, other
    await direct.close()
    await other.close()


@pytest.fixture
def provider(server: Provider) -> Provider:
    server.reset()
    return server
