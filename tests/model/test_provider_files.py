"""Files at the provider, through the real child: uploaded once, referred to, deleted; a failure falls back to text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest
from support.provider import Answer, Provider, ToolCall
from support.sessions import open_session

from tui_agent.errors import ModelError
from tui_agent.model.child_model import ChildModel
from tui_agent.model.local import ProviderFiles
from tui_agent.session.session import Session

pytestmark = pytest.mark.asyncio(loop_scope="session")
MODEL = "openai/test-model"


class KeptOpen:
    """The child that the tests share: a session must not end it."""

    def __init__(self, model: ChildModel) -> None:
        self._model = model

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    async def upload(self, model: str, name: str, text: str) -> str:
        return await self._model.upload(model, name, text)

    async def delete_files(self, model: str, ids: list[str]) -> None:
        await self._model.delete_files(model, ids)

    async def close(self) -> None: ...


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "api.py").write_text("def fetch():\n    return 1\n")
    return folder


def opened(workspace: Path, model: ChildModel, **options: Any) -> Any:
    def use(session: Session) -> None:
        cast(Any, session).models.model = KeptOpen(model)

    settings = ("files_api=on", "planner_model=none", f"model={MODEL}")
    return open_session(workspace, prepare=use, overrides=settings, **options)


async def turn(session: Session, request: str = "Look at api.py") -> None:
    await session.chat.submit(request)
    await session.chat.finished()
    assert session.state.turn.ok, session.state.turn.error


async def test_what_is_found_is_uploaded_once_referred_to_and_deleted_at_the_end(
    workspace: Path, model: ChildModel, provider: Provider
) -> None:
    provider.otherwise = Answer('{"summary": "Seen."}')
    async with opened(workspace, model) as session:
        await turn(session)
        assert [b"def fetch" in raw for raw in provider.files.values()] == [True]
        text, part = provider.requests[-1].body["messages"][-1]["content"]
        assert part == {"type": "file", "file": {"file_id": "file-1"}}
        assert '"fileId": "file-1"' in text["text"] and "def fetch" not in text["text"]
        await turn(session, "Look at api.py again")
        assert provider.uploads == 1
        first, second = (request.body["messages"] for request in provider.requests)
        assert json.dumps(second).startswith(json.dumps(first)[:-1])
        session_id = session.state.session.id
    assert provider.files == {}
    async with opened(workspace, model, session=session_id) as session:
        await turn(session, "Once more")
        sent = json.dumps(provider.requests[-1].body["messages"])
        assert "file-1" not in sent and "def fetch" not in sent
        assert provider.requests[-1].body["messages"][-1]["content"][1]["file"] == {"file_id": "file-2"}
        assert provider.uploads == 2
        assert session.state.conversation.why == "files"
        await turn(session, "And once more")
        before, after = (json.dumps(request.body["messages"]) for request in provider.requests[-2:])
        assert after.startswith(before[:-1])


async def test_what_a_call_asks_for_is_uploaded_too(
    workspace: Path, model: ChildModel, provider: Provider
) -> None:
    asks = {"actions": [{"type": "file", "name": "api", "patterns": ["api.py"]}]}
    provider.answer(Answer(calls=(ToolCall("read_files", asks),)), "Seen.", "Still seen.")
    async with opened(workspace, model, protocol="tools") as session:
        await turn(session, "Hello")
        *_, result, message = provider.requests[-1].body["messages"]
        assert (result["role"], result["content"]) == ("tool", "See the message that follows.")
        assert message["content"][1] == {"type": "file", "file": {"file_id": "file-1"}}
        assert "def fetch" not in json.dumps(provider.requests[-1].body) and provider.uploads == 1
        await turn(session, "And now?")
        before, after = (json.dumps(request.body["messages"]) for request in provider.requests[-2:])
        assert after.startswith(before[:-1])


async def test_a_provider_that_takes_no_files_gets_text_and_it_is_said_once(
    workspace: Path, model: ChildModel, provider: Provider
) -> None:
    provider.otherwise = Answer('{"summary": "Seen."}')
    provider.takes_files = False
    async with opened(workspace, model) as session:
        await turn(session)
        await turn(session, "And again")
        assert "def fetch" in provider.requests[0].last_text
        said = [notice.text for notice in session.state.notices.items if "uploaded" in notice.text]
        assert len(said) == 1 and "sent as text" in said[0]


async def test_a_model_whose_provider_has_no_files_says_so(model: ChildModel, provider: Provider) -> None:
    store = ProviderFiles(model)
    with pytest.raises(ModelError, match="no files"):
        await store.upload("ollama/llama3", "a.py", "0" * 32, "x")
    assert store.refused == {"ollama/llama3"} and store.ids == () and provider.uploads == 0
