"""The agent for an editor, over the Agent Client Protocol (agentclientprotocol.com).

Each session is a process without a terminal, so it outlives the editor and can be attached in a terminal.
Changes of a turn are proposed to the editor with their diffs, one by one, and written when it agrees.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import os
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from acp import PROTOCOL_VERSION, RequestError
from acp import schema as s
from acp.interfaces import Client

from tui_agent import __version__
from tui_agent.context.blocks import fenced
from tui_agent.editors.editor_turn import EditorTurn, Line, SessionLink
from tui_agent.errors import SessionError, TuiAgentError
from tui_agent.files.private import make_private, write_private
from tui_agent.log import catalog, directory
from tui_agent.log.log import events_of
from tui_agent.log.snapshot import messages_of

MODES = (
    ("ask", "Ask", "Answers and plans; changes nothing and runs no command."),
    ("edit", "Edit", "Proposes changes, which you apply."),
    ("auto", "Auto", "Applies changes that pass all checks."),
)
#: Maximum bytes of a picture, and its types.
_MOST_PICTURE = 20_000_000
_PICTURES = {"image/png": "png", "image/jpeg": "jpg", "image/gif": "gif", "image/webp": "webp"}
_PAGE = 50


class EditorAgent:
    """Serves one editor. `data` is the folder of sessions."""

    def __init__(self, data: Path) -> None:
        self._data = data
        self._links: dict[str, SessionLink] = {}
        #: Running prompts, by session.
        self._turns: dict[str, EditorTurn] = {}
        self._client: Client

    def on_connect(self, conn: Client) -> None:
        self._client = conn

    async def initialize(
        self, protocol_version: int, client_capabilities: Any = None, client_info: Any = None, **_: Any
    ) -> s.InitializeResponse:
        return s.InitializeResponse(
            protocol_version=min(protocol_version, PROTOCOL_VERSION) or PROTOCOL_VERSION,
            agent_info=s.Implementation(name="tui-agent", title="tui-agent", version=__version__),
            agent_capabilities=s.AgentCapabilities(
                load_session=True,
                prompt_capabilities=s.PromptCapabilities(image=True, embedded_context=True),
                session_capabilities=s.SessionCapabilities(
                    list=s.SessionListCapabilities(),
                    resume=s.SessionResumeCapabilities(),
                    close=s.SessionCloseCapabilities(),
                ),
            ),
            auth_methods=[
                s.TerminalAuthMethod(
                    id="set-up",
                    name="Choose a model",
                    description="Opens tui-agent in a terminal to log in, enter a key or choose a local server.",
                    args=["--set-up"],
                    type="terminal",
                ),
                s.AuthMethodAgent(
                    id="settings",
                    name="Use the model of the settings",
                    description="`model` in settings.toml.",
                ),
            ],
        )

    async def authenticate(self, method_id: str, **_: Any) -> s.AuthenticateResponse:
        if method_id not in ("set-up", "settings"):
            raise _invalid(f"There is no method {method_id[:40]!r}")
        return s.AuthenticateResponse()

    async def new_session(self, cwd: str, **_: Any) -> s.NewSessionResponse:
        link = await self._begun(SessionLink.begin(_folder(cwd)))
        about = await link.request("describe")
        if not about["model"]:
            with suppress(SessionError):
                await link.request("quit")
            await self._forget(link.id)
            raise RequestError.auth_required(
                {"reason": "No model is chosen: choose one with tui-agent in a terminal"}
            )
        asyncio.get_running_loop().call_soon(self._announce, link.id, about)
        return s.NewSessionResponse(session_id=link.id, modes=_modes(about), config_options=_options(about))

    async def load_session(self, cwd: str, session_id: str, **_: Any) -> s.LoadSessionResponse:
        link = await self._resumed(cwd, session_id)
        about = await link.request("describe")
        log = directory.existing(self._data, session_id) / directory.LOG
        shown = EditorTurn(self._client, link)
        for message in await asyncio.to_thread(lambda: messages_of(events_of(log, []))):
            await shown.repeat(message)
        await shown.plan(about["todos"])
        asyncio.get_running_loop().call_soon(self._announce, link.id, about)
        return s.LoadSessionResponse(modes=_modes(about), config_options=_options(about))

    async def resume_session(self, session_id: str, cwd: str, **_: Any) -> s.ResumeSessionResponse:
        link = await self._resumed(cwd, session_id)
        about = await link.request("describe")
        asyncio.get_running_loop().call_soon(self._announce, link.id, about)
        return s.ResumeSessionResponse(modes=_modes(about), config_options=_options(about))

    async def list_sessions(
        self, cwd: str | None = None, cursor: str | None = None, **_: Any
    ) -> s.ListSessionsResponse:
        if cursor and not (cursor.isascii() and cursor.isdecimal() and len(cursor) < 9):
            raise _invalid("There is no such page of the list")
        at = int(cursor or 0)
        listed = await asyncio.to_thread(
            lambda: catalog.list_sessions(self._data, Path(cwd).resolve() if cwd else None)
        )
        found = [entry for entry in listed if entry.turns]
        shown = [
            s.SessionInfo(
                session_id=entry.id,
                cwd=str(entry.workspace),
                title=entry.title[:200] or None,
                updated_at=datetime.fromtimestamp(entry.updated, UTC).isoformat(),
            )
            for entry in found[at : at + _PAGE]
        ]
        after = str(at + _PAGE) if len(found) > at + _PAGE else None
        return s.ListSessionsResponse(sessions=shown, next_cursor=after)

    async def close_session(self, session_id: str, **_: Any) -> s.CloseSessionResponse:
        """Ends the session, unless a terminal shows it."""
        link = self._link(session_id)
        if session_id in self._turns:
            self._turns[session_id].cancel()
        if not link.state.get("attached"):
            with suppress(SessionError):
                await link.request("quit")
        await self._forget(session_id)
        return s.CloseSessionResponse()

    async def set_session_mode(self, session_id: str, mode_id: str, **_: Any) -> s.SetSessionModeResponse:
        if mode_id not in (key for key, _, _ in MODES):
            raise _invalid(f"There is no mode {mode_id[:40]!r}")
        await self._request(session_id, "mode", mode=mode_id)
        return s.SetSessionModeResponse()

    async def set_config_option(
        self, config_id: str, session_id: str, value: str | bool, **_: Any
    ) -> s.SetSessionConfigOptionResponse:
        offered = _options(await self._request(session_id, "describe"))
        option = next((one for one in offered if one.id == config_id), None)
        if option is None or value not in (one.value for one in option.options):
            raise _invalid("There are the options mode and model, with the values that they list")
        await self._request(session_id, config_id, **{"mode" if config_id == "mode" else "name": value})
        about = await self._request(session_id, "describe")
        return s.SetSessionConfigOptionResponse(config_options=_options(about))

    async def prompt(self, session_id: str, prompt: Sequence[Any], **_: Any) -> s.PromptResponse:
        link = self._link(session_id)
        if session_id in self._turns:
            raise _invalid("This session answers another prompt: cancel it first")
        self._turns[session_id] = turn = EditorTurn(self._client, link)
        try:
            text = await asyncio.to_thread(self._text_of, session_id, prompt)
            if not text.strip():
                raise _invalid("The prompt is empty")
            link.is_heard = True
            try:
                await link.request("submit", text=text)
                if turn.is_cancelled:  # Its stop may have arrived before the message.
                    await link.request("stop")
                return await turn.answered()
            except SessionError as error:
                raise _refused(error) from error
        finally:
            del self._turns[session_id]
            link.discard()

    async def cancel(self, session_id: str, **_: Any) -> None:
        if session_id in self._turns:
            self._turns[session_id].cancel()
        with suppress(RequestError):
            await self._request(session_id, "stop")

    async def ext_method(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        raise RequestError.method_not_found(method)

    async def ext_notification(self, method: str, params: dict[str, Any]) -> None:
        """Ignored: none is known."""

    async def close(self) -> None:
        for session in list(self._links):
            await self._forget(session)

    async def _resumed(self, cwd: str, session_id: str) -> SessionLink:
        try:
            directory.existing(self._data, session_id)
        except TuiAgentError:
            raise RequestError.resource_not_found(session_id[:100]) from None
        await self._forget(session_id)
        return await self._begun(SessionLink.resume(session_id, _folder(cwd)))

    async def _begun(self, opening: Any) -> SessionLink:
        try:
            link = await opening
        except (TuiAgentError, OSError) as error:
            raise _refused(error) from error
        self._links[link.id] = link
        return link

    async def _forget(self, session_id: str) -> None:
        if (link := self._links.pop(session_id, None)) is not None:
            await link.close()

    async def _request(self, session_id: str, kind: str, **fields: Any) -> Line:
        try:
            return await self._link(session_id).request(kind, **fields)
        except SessionError as error:
            raise _refused(error) from error

    def _link(self, session_id: str) -> SessionLink:
        if session_id not in self._links:
            raise RequestError.resource_not_found(session_id[:100])
        return self._links[session_id]

    def _announce(self, session_id: str, about: Line) -> None:
        commands = [
            s.AvailableCommand(name=one["name"], description=one["description"] or one["name"])
            for one in about["commands"]
        ]
        update = s.AvailableCommandsUpdate(
            available_commands=commands, session_update="available_commands_update"
        )
        task = asyncio.ensure_future(self._client.session_update(session_id=session_id, update=update))
        task.add_done_callback(lambda done: done.cancelled() or done.exception())

    def _text_of(self, session_id: str, prompt: Sequence[Any]) -> str:
        parts: list[str] = []
        for block in prompt:
            match block:
                case s.TextContentBlock(text=text):
                    parts.append(text)
                case s.ResourceContentBlock(uri=uri):
                    parts.append(_mention(uri))
                case s.EmbeddedResourceContentBlock(resource=s.TextResourceContents(uri=uri, text=text)):
                    parts.append(f"{_mention(uri)}\n{fenced(text)}\n")
                case s.EmbeddedResourceContentBlock(
                    resource=s.BlobResourceContents(uri=uri, blob=data, mime_type=kind)
                ):
                    parts.append(
                        self._picture(session_id, data, kind) if kind in _PICTURES else _mention(uri)
                    )
                case s.ImageContentBlock(data=data, mime_type=kind):
                    parts.append(self._picture(session_id, data, kind))
                case _:
                    raise _invalid("Text, links, text resources and images are understood")
        return " ".join(part for part in parts if part)

    def _picture(self, session_id: str, data: str, kind: str) -> str:
        try:
            content = base64.b64decode(data, validate=True)
        except (binascii.Error, ValueError):
            content = b""
        if not content or len(content) > _MOST_PICTURE or kind not in _PICTURES:
            raise _invalid("Send PNG, JPEG, GIF or WebP of at most 20 MB in base64")
        folder = directory.folder_of(self._data, session_id) / "pictures"
        make_private(folder)
        path = folder / f"editor-{abs(hash(content)):x}.{_PICTURES[kind]}"
        write_private(path, content)
        return f'@"{path}"'


def _folder(cwd: str) -> Path:
    path = Path(cwd)
    if not path.is_absolute() or not path.is_dir():
        raise _invalid("It is not an absolute path of a folder")
    return path


def _mention(uri: str) -> str:
    """A mention of the file, or the address of anything else. Blocking."""
    try:
        parts = urlsplit(uri)
    except ValueError as error:
        raise _invalid(f"{uri[:100]!r} is not an address ({error})") from error
    path = unquote(parts.path)
    is_file = parts.scheme == "file" and path.isprintable() and '"' not in path and os.path.exists(path)
    return f'@"{path}"' if is_file else uri


def _modes(about: Line) -> s.SessionModeState:
    modes = [s.SessionMode(id=key, name=name, description=words) for key, name, words in MODES]
    return s.SessionModeState(current_mode_id=about["mode"], available_modes=modes)


def _options(about: Line) -> list[Any]:
    modes = [
        s.SessionConfigSelectOption(value=key, name=name, description=words) for key, name, words in MODES
    ]
    models = [s.SessionConfigSelectOption(value=name, name=name) for name in about["models"]]
    return [
        s.SessionConfigOptionSelect(
            id="mode", name="Mode", category="mode", type="select", current_value=about["mode"], options=modes
        ),
        s.SessionConfigOptionSelect(
            id="model",
            name="Model",
            category="model",
            type="select",
            current_value=about["model"],
            options=models,
        ),
    ]


def _invalid(sentence: str) -> RequestError:
    return RequestError(-32602, sentence)


def _refused(error: Exception) -> RequestError:
    return RequestError(-32603, str(error))
