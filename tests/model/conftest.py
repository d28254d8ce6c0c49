"""One real model child and one provider for all tests that need them."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio
from support.asking import SECRET
from support.provider import Provider, dead_url

from tui_agent.model.child import ChildModel, ModelStatus

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


@pytest.fixture(scope="session")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a spy in the child writes every address that anything there looks up or connects to."""
    folder = tmp_path_factory.mktemp("spy")
    (folder / "sitecustomize.py").write_text(SPY)
    return folder / "log"


@pytest.fixture(scope="session")
def statuses() -> list[ModelStatus]:
    return []


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def model(server: Provider, log: Path, statuses: list[ModelStatus]) -> AsyncGenerator[ChildModel, None]:
    """One child for all the tests of it: litellm takes seconds to import."""
    environment = {
        **server.environment,
        "OPENAI_API_KEY": SECRET,
        "HOSTED_VLLM_API_BASE": dead_url(),
        "ANTHROPIC_API_KEY": "test",
        "SPY_LOG": str(log),
        "PYTHONPATH": os.pathsep.join((str(log.parent), str(Path(__file__).parents[2]))),
    }
    model = ChildModel(environment=environment, on_status=statuses.append)
    await model.start()
    yield model
    await model.close()


@pytest.fixture
def provider(server: Provider) -> Provider:
    server.reset()
    return server
