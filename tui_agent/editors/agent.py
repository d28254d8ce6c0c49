"""The agent for an editor, by the Agent Client Protocol (agentclientprotocol.com), with the official SDK.

Each session is a process without a terminal, so it outlives the editor and can be attached in a terminal.
Changes of a turn are proposed to the editor with their diffs, one by one, and written when it agrees.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
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
from tui_agent.editors.session_link import Line, SessionLink, pictures_of
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
#: By the names of our tools.
_KINDS: dict[str, Any] = {
    "read_files": "read",
    "list_directory": "search",
    "search_text": "search",
    "find_files": "search",
    "propose_changes": "edit",
    "run_command": "execute",
    "fetch_page": "fetch",
    "set_todos": "think",
}
_CHOICES: tuple[tuple[str, str, Any], ...] = (
    ("apply", "Apply", "allow_once"),
    ("apply all", "Apply all changes of this turn", "allow_always"),
    ("skip", "Skip", "reject_once"),
    ("skip all", "Skip all changes of this turn", "reject_always"),
)
#: Bytes of a picture, and its types.
_MOST_PICTURE = 20_000_000
_PICTURES = {"image/png": "png", "image/jpeg": "jpg", "image/gif": "gif", "image/webp": "webp"}
_PAGE = 50


class EditorAgent:
    """Serves one editor. `data` is the folder of sessions."""

    def __init__(self, data: Path) -> None:
        self._data = data
        self._links: dict[str, SessionLink] = {}
        self._cancelled: set[str] = set()
        self._prompting: set[str] = set()
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
        for message in await asyncio.to_thread(lambda: messages_of(events_of(log, []))):
            text = message.text or message.summary
            if text and message.kind in ("person", "agent"):
                block = s.TextContentBlock(text=text, type="text")
                chunk: Any = (
                    s.UserMessageChunk(content=block, session_update="user_message_chunk")
                    if message.kind == "person"
                    else s.AgentMessageChunk(content=block, session_update="agent_message_chunk")
                )
                await self._client.session_update(session_id=session_id, update=chunk)
        asyncio.get_running_loop().call_soon(self._announce, link.id, about)
        return s.LoadSessionResponse(modes=_modes(about), config_options=_options(about))

    async def resume_session(self, session_id: str, cwd: str, **_: Any) -> s.ResumeSessionResponse:
        about = await (await self._resumed(cwd, session_id)).request("describe")
        return s.ResumeSessionResponse(modes=_modes(about), config_options=_options(about))

    async def list_sessions(
        self, cwd: str | None = None, cursor: str | None = None, **_: Any
    ) -> s.ListSessionsResponse:
        at = int(cursor) if cursor and cursor.isascii() and cursor.isdecimal() and len(cursor) < 9 else 0
        found = await asyncio.to_thread(catalog.list_sessions, self._data, Path(cwd) if cwd else None)
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
        if not link.state.get("attached"):
            with suppress(SessionError):
                await link.request("quit")
        await self._forget(session_id)
        return s.CloseSessionResponse()

    async def set_session_mode(self, session_id: str, mode_id: str, **_: Any) -> s.SetSessionModeResponse:
        await self._request(session_id, "mode", mode=mode_id)
        return s.SetSessionModeResponse()

    async def set_config_option(
        self, config_id: str, session_id: str, value: str | bool, **_: Any
    ) -> s.SetSessionConfigOptionResponse:
        if config_id not in ("mode", "model") or not isinstance(value, str):
            raise _invalid("There are the options mode and model")
        await self._request(session_id, config_id, **{"mode" if config_id == "mode" else "name": value})
        about = await self._request(session_id, "describe")
        return s.SetSessionConfigOptionResponse(config_options=_options(about) or [])

    async def prompt(self, session_id: str, prompt: Sequence[Any], **_: Any) -> s.PromptResponse:
        link = self._link(session_id)
        if session_id in self._prompting:
            raise _invalid("This session answers another prompt: cancel it first")
        self._prompting.add(session_id)
        self._cancelled.discard(session_id)
        try:
            text = await asyncio.to_thread(self._text_of, session_id, prompt)
            link.discard()
            try:
                await link.request("submit", text=text)
                return await _Turn(self._client, link, lambda: session_id in self._cancelled).answered()
            except SessionError as error:
                raise _refused(error) from error
        finally:
            self._prompting.discard(session_id)

    async def cancel(self, session_id: str, **_: Any) -> None:
        self._cancelled.add(session_id)
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
        """Raises `RequestError` for an unknown block."""
        parts: list[str] = []
        for block in prompt:
            match block:
                case s.TextContentBlock(text=text):
                    parts.append(text)
                case s.ResourceContentBlock(uri=uri):
                    parts.append(_mention(uri))
                case s.EmbeddedResourceContentBlock(resource=s.TextResourceContents(uri=uri, text=text)):
                    parts.append(f"{_mention(uri)}\n{fenced(text)}\n")
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
        folder = pictures_of(session_id, self._data)
        make_private(folder)
        path = folder / f"editor-{abs(hash(content)):x}.{_PICTURES[kind]}"
        write_private(path, content)
        return f'@"{path}"'


class _Turn:
    """One prompt: lines of the session become updates until the turn ends and its changes are decided."""

    def __init__(self, client: Client, link: SessionLink, is_cancelled: Any) -> None:
        self._client, self._link, self._is_cancelled = client, link, is_cancelled
        self._asked: str | None = None
        self._questions: set[asyncio.Task[None]] = set()
        self._changes: dict[str, str] = {}

    async def answered(self) -> s.PromptResponse:
        """Raises `SessionError` if the session ends, or the turn fails."""
        usage, finished = None, None
        try:
            async for line in self._link.lines():
                await self._show(line)
                if line["type"] == "finished":
                    finished = line
                    break
        finally:
            for task in self._questions:
                task.cancel()
        if finished is None:
            raise SessionError("the session has ended", "begin another")
        used = finished["usage"]
        usage = s.Usage(
            input_tokens=used["input"],
            output_tokens=used["output"],
            total_tokens=used["input"] + used["output"],
            cached_read_tokens=used["cached"],
            thought_tokens=used.get("thinking"),
        )
        about = await self._link.request("describe")
        cost = s.Cost(amount=used["cost"], currency="USD") if used["cost"] is not None else None
        await self._update(
            s.UsageUpdate(
                used=about["context"], size=about["window"], cost=cost, session_update="usage_update"
            )
        )
        if self._is_cancelled():
            return s.PromptResponse(stop_reason="cancelled", usage=usage)
        if not finished["ok"]:
            if finished.get("limit"):
                return s.PromptResponse(stop_reason="max_turn_requests", usage=usage)
            raise SessionError(str(finished["error"] or "the turn failed"), "send it again")
        await self._decide()
        return s.PromptResponse(stop_reason="cancelled" if self._is_cancelled() else "end_turn", usage=usage)

    async def _show(self, line: Line) -> None:
        match line:
            case {"type": "delta", "text": str(text)}:
                await self._say(text)
            case {"type": "thought", "text": str(text)}:
                block = s.TextContentBlock(text=text, type="text")
                await self._update(s.AgentThoughtChunk(content=block, session_update="agent_thought_chunk"))
            case {"type": "notice", "level": "warning" | "error", "text": str(text)}:
                await self._say(f"\n\n_{text}_\n\n")
            case {"type": "plan", "actions": actions}:
                names = [str(one.get("name") or one.get("path")) for one in actions]
                await self._call("plan", f"Plan: {', '.join(names)[:200]}", "think")
            case {"type": "file_loaded", "path": str(path), "lines": lines}:
                await self._call(f"read {path}", f"Read {path} ({lines} lines)", "read", path)
            case {"type": "tool", "id": str(name), "name": str(tool), "ok": ok, "arguments": arguments}:
                title = f"{tool} {arguments}"[:200]
                await self._call(name, title, _KINDS.get(tool, "other"), ok=bool(ok))
            case {"type": "command_result", "id": str(name), "exit": status, "output": str(output)}:
                await self._call(f"command {name}", f"exit {status}", "execute", text=output, ok=status == 0)
            case {"type": "check", "name": str(name), "state": state}:
                await self._call(f"check {name}", f"Check {name}: {state}", "execute", ok=state == "passed")
            case {"type": "change", "id": str(name), "state": str(state)}:
                self._changes[name] = state
            case {"type": "response", "todos": [*todos]} if todos:
                await self._plan(todos)
            case {"type": "state"}:
                self._ask(line)

    def _ask(self, state: Line) -> None:
        if state.get("asks") and state["asks"] != self._asked:
            task = asyncio.create_task(self._answer(str(state["asks"]), list(state.get("choices") or [])))
            self._questions.add(task)
            task.add_done_callback(self._questions.discard)
        self._asked = state.get("asks")

    async def _answer(self, question: str, choices: list[str]) -> None:
        kinds: dict[str, Any] = {"once": "allow_once", "session": "allow_always", "always": "allow_always"}
        names = {"once": "Yes", "session": "Yes, in this session", "always": "Always", "no": "No"}
        options = [
            s.PermissionOption(
                option_id=str(number),
                name=names.get(choice, choice),
                kind="reject_once" if choice == "no" else kinds.get(choice, "allow_once"),
            )
            for number, choice in enumerate(choices, 1)
        ]
        if "no" not in choices:
            options.append(s.PermissionOption(option_id="skip", name="Skip", kind="reject_once"))
        call = s.ToolCallUpdate(tool_call_id="question", title=question, kind="other", status="pending")
        outcome = await self._permission(call, options)
        no = str(choices.index("no") + 1) if "no" in choices else ""
        with suppress(SessionError):  # answered elsewhere, or stopped
            await self._link.request("answer", text=no if outcome in ("", "skip") else outcome)

    async def _decide(self) -> None:
        for name in [name for name, state in self._changes.items() if state in ("pending", "merged")]:
            found = await self._link.request("change", change=name)
            path = Path(str(self._link.state["workspace"]), found["rename_to"] or found["path"])
            diff = s.FileEditToolCallContent(
                path=str(path), old_text=found["old"], new_text=found["new"] or "", type="diff"
            )
            known: dict[str, Any] = {
                "tool_call_id": f"change {name}",
                "title": f"{'Delete' if found['new'] is None else 'Change'} {found['path']}",
                "kind": "delete" if found["new"] is None else "edit",
                "content": [diff],
                "locations": [s.ToolCallLocation(path=str(path))],
            }
            await self._update(s.ToolCallStart(**known, status="pending", session_update="tool_call"))
            options = [
                s.PermissionOption(option_id=key, name=words, kind=kind) for key, words, kind in _CHOICES
            ]
            choice = await self._permission(s.ToolCallUpdate(**known, status="pending"), options)
            if not choice:
                return  # they stay pending
            verb, _, every = choice.partition(" ")
            ok = True
            try:
                await self._link.request(verb, changes=[] if every else [name])
            except SessionError as error:
                ok = False
                await self._say(f"\n\n_{error}_\n\n")
            done = "completed" if ok and verb == "apply" else "failed"
            await self._update(
                s.ToolCallProgress(
                    tool_call_id=f"change {name}", status=done, session_update="tool_call_update"
                )
            )
            if every or self._is_cancelled():
                return

    async def _permission(self, call: s.ToolCallUpdate, options: list[s.PermissionOption]) -> str:
        """Returns the chosen option's id, or ""."""
        answer = await self._client.request_permission(
            session_id=self._link.id, tool_call=call, options=options
        )
        known = {option.option_id for option in options}
        chosen = answer.outcome.option_id if isinstance(answer.outcome, s.AllowedOutcome) else ""
        return chosen if chosen in known else ""

    async def _plan(self, todos: list[Any]) -> None:
        entries = [
            s.PlanEntry(
                content=str(todo.get("text")),
                priority="medium",
                status="completed" if todo.get("done") else "pending",
            )
            for todo in todos
        ]
        await self._update(s.AgentPlanUpdate(entries=entries, session_update="plan"))

    async def _call(
        self, name: str, title: str, kind: Any, path: str = "", text: str = "", ok: bool = True
    ) -> None:
        block = s.TextContentBlock(text=text[-20_000:], type="text")
        await self._update(
            s.ToolCallStart(
                tool_call_id=name,
                title=title,
                kind=kind,
                status="completed" if ok else "failed",
                content=[s.ContentToolCallContent(content=block, type="content")] if text else None,
                locations=[s.ToolCallLocation(path=str(Path(str(self._link.state.get("workspace")), path)))]
                if path
                else None,
                session_update="tool_call",
            )
        )

    async def _say(self, text: str) -> None:
        block = s.TextContentBlock(text=text, type="text")
        await self._update(s.AgentMessageChunk(content=block, session_update="agent_message_chunk"))

    async def _update(self, update: Any) -> None:
        await self._client.session_update(session_id=self._link.id, update=update)


def _folder(cwd: str) -> Path:
    path = Path(cwd)
    if not path.is_absolute() or not path.is_dir():
        raise _invalid("It is not an absolute path of a folder")
    return path


def _mention(uri: str) -> str:
    parts = urlsplit(uri)
    return f'@"{unquote(parts.path)}"' if parts.scheme == "file" else uri


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
