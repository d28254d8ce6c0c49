"""What servers ask for during a call: pages to open, answers of the model, and pictures in results."""

from __future__ import annotations

import asyncio
import io
import json
from base64 import b64encode
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from PIL import Image
from support.repositories import repository
from support.sessions import ScriptedModel, calls, model_of, open_session
from support.tool_servers import BARE, program

from tui_agent.model.client import Abilities
from tui_agent.session.session import Session
from tui_agent.store.events import PermissionAsked

ALLOWED = 'permissions.allow=["*__*"]'
#: For `BARE`: a call sends a request to the client, and gives its answer.
REQUESTS = """
def called(id, params):
    send(id="q", method=METHOD, params=PARAMS)
    answer = json.loads(sys.stdin.readline())
    said = answer.get("result") or answer.get("error")
    send(id=id, result={"content": [{"type": "text", "text": json.dumps(said, sort_keys=True)}]})
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = tmp_path / "person"
    monkeypatch.setenv("HOME", str(folder))
    folder.mkdir()
    yield folder


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return repository(tmp_path / "work", {"a.py": "a\n"})


def server(folder: Path, method: str, params: Mapping[str, object], **more: object) -> str:
    source = BARE % f"METHOD = {method!r}\nPARAMS = {params!r}\n{REQUESTS}"
    return f"mcp.servers={json.dumps({'sums': {**program(folder / 'servers', source), **more}})}"


async def listed(root: Path, set_up: str) -> None:
    async with open_session(root, protocol="tools", overrides=(set_up,)) as session:
        await session.mcp.ready()
        await session.mcp.tools_of("sums")


async def result(session: Session) -> str:
    """Runs a turn; returns the result of its call."""
    await session.chat.submit("Go")
    await session.chat.finished()
    assert session.state.turn.ok, session.state.turn.error
    messages = model_of(session).requests[-1].messages
    return next(str(one["content"]) for one in messages if one["role"] == "tool")


SAMPLE = {
    "messages": [{"role": "user", "content": {"type": "text", "text": "Say a colour"}}],
    "systemPrompt": "Be brief",
    "maxTokens": 50,
}


async def test_a_server_uses_the_model_if_the_person_allows_it(root: Path, tmp_path: Path) -> None:
    set_up = server(tmp_path, "sampling/createMessage", SAMPLE, sampling=True)
    await listed(root, set_up)
    replies = [calls(("sums__plain", {})), calls(text="Green"), calls(text="Done.")]
    async with open_session(root, replies, protocol="tools", overrides=(set_up, ALLOWED)) as session:
        found = json.loads(await result(session))
        assert found["content"]["text"] == "Green" and found["role"] == "assistant"
        sampled = model_of(session).requests[1]
        assert [message["content"] for message in sampled.messages] == ["Be brief", "Say a colour"]
        assert not sampled.tools and sampled.most == 50
        assert "The model answered a text of the server sums" in session.state.notices.items[-1].text


async def test_sampling_is_refused_otherwise(root: Path, tmp_path: Path) -> None:
    set_up = server(tmp_path, "sampling/createMessage", SAMPLE)
    await listed(root, set_up)
    replies = [calls(("sums__plain", {})), calls(text="Done.")]
    async with open_session(root, replies, protocol="tools", overrides=(set_up, ALLOWED)) as session:
        assert "not supported" in await result(session)
        assert len(model_of(session).requests) == 2


async def test_a_flood_of_texts_is_refused(root: Path, tmp_path: Path) -> None:
    large = [{"role": "user", "content": {"type": "text", "text": "x" * 300_000}}]
    set_up = server(tmp_path, "sampling/createMessage", {**SAMPLE, "messages": large}, sampling=True)
    await listed(root, set_up)
    replies = [calls(("sums__plain", {})), calls(text="Done.")]
    async with open_session(root, replies, protocol="tools", overrides=(set_up, ALLOWED)) as session:
        assert "More than 200,000 characters" in await result(session)


async def test_sampling_stays_within_the_requests_of_the_prompt(root: Path, tmp_path: Path) -> None:
    set_up = server(tmp_path, "sampling/createMessage", SAMPLE, sampling=True)
    await listed(root, set_up)
    replies = [calls(("sums__plain", {})), calls(text="Green"), calls(text="Done.")]
    more = (set_up, ALLOWED, "limits.requests=1")
    async with open_session(root, replies, protocol="tools", overrides=more) as session:
        await session.chat.submit("Go")
        await session.chat.finished()
        assert len(model_of(session).requests) == 1


@pytest.mark.parametrize(("answer", "action"), [("yes", "accept"), ("decline", "decline")])
async def test_a_page_to_open_is_shown_with_its_whole_address(
    root: Path, tmp_path: Path, answer: str, action: str
) -> None:
    url = "https://login.example.com/authorize?client=1&token=" + "a" * 300
    page = {"mode": "url", "message": "Log in first", "url": url, "elicitationId": "1"}
    set_up = server(tmp_path, "elicitation/create", page)
    await listed(root, set_up)
    replies = [calls(("sums__plain", {})), calls(text="Done.")]
    more = (set_up, ALLOWED)
    async with open_session(root, replies, protocol="tools", overrides=more, interactive=True) as session:
        asked: list[PermissionAsked] = []
        given: list[asyncio.Task[None]] = []

        def reply(event: object, state: object) -> None:
            if isinstance(event, PermissionAsked):
                asked.append(event)
                given.append(asyncio.create_task(session.chat.permit(event.call, answer)))

        session.subscribe(reply)
        assert json.loads(await result(session)) == {"action": action}
        assert asked[0].shown == "sums asks: Log in first" and url in asked[0].preview


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "javascript:alert(1)", "https://a b", "https://" + "a" * 3_000]
)
async def test_another_address_is_declined_unasked(root: Path, tmp_path: Path, url: str) -> None:
    page = {"mode": "url", "message": "Open it", "url": url, "elicitationId": "1"}
    set_up = server(tmp_path, "elicitation/create", page)
    await listed(root, set_up)
    replies = [calls(("sums__plain", {})), calls(text="Done.")]
    more = (set_up, ALLOWED)
    async with open_session(root, replies, protocol="tools", overrides=more, interactive=True) as session:
        assert json.loads(await result(session)) == {"action": "decline"}


class SeeingModel(ScriptedModel):
    sees = True

    async def abilities(self, model: str) -> Abilities:
        return Abilities(model, 100_000, tools=True, known=True, sees=self.sees)


SHOWS = """
def called(id, params):
    send(id=id, result={"content": [{"type": "text", "text": "Here:"}, *PICTURES]})
"""


def shows(folder: Path, *pictures: str) -> str:
    parts = [{"type": "image", "data": data, "mimeType": "image/png"} for data in pictures]
    source = BARE % f"PICTURES = {parts!r}\n{SHOWS}"
    return f"mcp.servers={json.dumps({'sums': program(folder / 'servers', source)})}"


def png() -> str:
    written = io.BytesIO()
    Image.new("RGB", (40, 30), (0, 90, 0)).save(written, "PNG")
    return b64encode(written.getvalue()).decode()


@pytest.mark.parametrize("sees", [True, False])
async def test_pictures_of_a_result_are_sent_to_a_model_that_sees(
    root: Path, tmp_path: Path, sees: bool
) -> None:
    set_up = shows(tmp_path, png())
    await listed(root, set_up)
    model = SeeingModel([calls(("sums__plain", {})), calls(text="Done.")], "tools")
    model.sees = sees

    def prepare(session: Session) -> None:
        session.models.model = model

    async with open_session(root, protocol="tools", overrides=(set_up, ALLOWED), prepare=prepare) as session:
        assert "Here:\n[image/png, 1" in await result(session)
        images = [one for message in model.requests[-1].messages for one in message.get("images") or ()]
        assert [one["data"] for one in images] == ([png()] if sees else [])
        said = "\n".join(notice.text for notice in session.state.notices.items)
        assert ("is not shown to the model" in said) is not sees


async def test_a_broken_picture_of_a_result_is_a_notice(root: Path, tmp_path: Path) -> None:
    set_up = shows(tmp_path, b64encode(b"\x89PNG\r\n\x1a\nbroken").decode(), "no base64!")
    await listed(root, set_up)
    model = SeeingModel([calls(("sums__plain", {})), calls(text="Done.")], "tools")

    def prepare(session: Session) -> None:
        session.models.model = model

    async with open_session(root, protocol="tools", overrides=(set_up, ALLOWED), prepare=prepare) as session:
        await result(session)
        assert "is not shown to the model" in session.state.notices.items[-1].text
        assert not any(message.get("images") for message in model.requests[-1].messages)
