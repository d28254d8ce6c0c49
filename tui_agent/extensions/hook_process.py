"""One run of a hook: a shell command with JSON on standard input, within limits, and the answer that it prints."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from tui_agent.extensions.hooks import FOLDER_VARIABLE, Hook
from tui_agent.files.text import one_line
from tui_agent.processes.environment import for_any

#: Maximum bytes that a hook prints; more ends it.
MAX_OUTPUT = 1_000_000
#: Maximum characters of a reason or of a text for the model.
MAX_TEXT = 10_000
#: Existing hooks are written for bash.
SHELL = "/bin/bash" if os.path.exists("/bin/bash") else "/bin/sh"
#: Exit status that blocks.
BLOCKS = 2
#: Seconds for the output of a hook that has ended, if another process still holds it open.
AFTERWARDS = 0.5
#: Events whose plain output is a text for the model.
_PLAIN_TEXT = ("SessionStart", "UserPromptSubmit")
#: Events whose answer decides about a call.
_OF_CALLS = ("PreToolUse", "PermissionRequest")


class HookResult(Struct, frozen=True):
    """The answer of one hook.

    - failed: the reason why the answer does not count, as the end of a sentence.
    - blocked: the reason for blocking; "" if it does not block.
    - verdict: `allow`, `ask` or "" for a call.
    - updated: the input of a call in place of its own.
    - context: text for the model; said: text for the person.
    - stop: the reason to end the turn.
    """

    failed: str = ""
    blocked: str = ""
    verdict: str = ""
    updated: dict[str, Any] | None = None
    context: str = ""
    said: str = ""
    stop: str = ""


def environment(hook: Hook, root: Path) -> dict[str, str]:
    """Returns the whole environment for the person's hooks, and no keys for a workspace's hooks."""
    whole = dict(os.environ) if hook.origin != "project" else for_any()
    if hook.origin == "project":
        whole.pop("PYTHONPATH", None)
    return {**whole, FOLDER_VARIABLE: str(root)}


class _Run(asyncio.SubprocessProtocol):
    """What a hook prints, by stream, and futures of its end and of the end of its output.

    `Process.wait` of asyncio also waits for the output, which a program in the background holds open.
    """

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.printed: dict[int, bytearray] = {1: bytearray(), 2: bytearray()}
        self.ended: asyncio.Future[None] = loop.create_future()
        self.closed: asyncio.Future[None] = loop.create_future()
        self.too_much = False

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self.printed[fd] += data
        if len(self.printed[fd]) > MAX_OUTPUT and not self.too_much:
            self.too_much = True
            self.process_exited()

    def process_exited(self) -> None:
        if not self.ended.done():
            self.ended.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.closed.done():
            self.closed.set_result(None)


async def run_hook(hook: Hook, fields: Mapping[str, Any], folder: Path, root: Path) -> HookResult:
    """Runs a hook in `folder`; `root` is the workspace. Never raises but for cancellation, which ends it."""
    try:
        transport, run = await asyncio.get_running_loop().subprocess_exec(
            _Run,
            *(SHELL, "-c", hook.settings.command),
            cwd=folder,
            env=environment(hook, root),
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        return HookResult(failed=f"could not be started ({getattr(error, 'strerror', None) or error})")
    try:
        feed = transport.get_pipe_transport(0)
        if isinstance(feed, asyncio.WriteTransport):
            feed.write(msgspec.json.encode(fields))
            feed.write_eof()
        async with asyncio.timeout(hook.settings.timeout):
            await run.ended
        if not run.too_much:
            await asyncio.wait([run.closed], timeout=AFTERWARDS)
    except TimeoutError:
        return HookResult(failed=f"was ended after its time limit, {hook.settings.timeout:g} s")
    finally:
        if transport.get_returncode() is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(transport.get_pid(), signal.SIGKILL)
        transport.close()
    if run.too_much:
        return HookResult(failed=f"was ended because it printed more than {MAX_OUTPUT // 1_000_000} MB")
    return answer_of(hook.settings.event, transport.get_returncode() or 0, *map(_text, run.printed.values()))


def _text(data: bytearray) -> str:
    return data.decode(errors="replace").strip()


def answer_of(event: str, status: int, printed: str, errors: str) -> HookResult:
    """The meaning of an exit status and of what was printed."""
    if status == BLOCKS:
        return HookResult(blocked=errors[:MAX_TEXT] or "no reason was given")
    if status:
        why = f"ended by signal {-status}" if status < 0 else f"ended with status {status}"
        last = next((line for line in reversed(errors.splitlines()) if line.strip()), "")
        return HookResult(failed=f"{why} ({one_line(last)[:200]})" if last else why)
    if not printed.startswith("{"):
        return HookResult(context=printed[:MAX_TEXT] if event in _PLAIN_TEXT else "")
    try:
        return _answer(event, msgspec.json.decode(printed, type=_Answer))
    except (msgspec.DecodeError, RecursionError) as error:
        return HookResult(failed=f"printed JSON that cannot be used ({one_line(str(error))[:200]})")


class _Decision(Struct, rename="camel"):
    behavior: str = ""
    message: str | None = None
    updated_input: dict[str, Any] | None = None
    interrupt: bool = False


class _Specific(Struct, rename="camel"):
    permission_decision: str | None = None
    permission_decision_reason: str | None = None
    additional_context: str | None = None
    updated_input: dict[str, Any] | None = None
    decision: _Decision | None = None


class _Answer(Struct, rename="camel"):
    continue_: bool = msgspec.field(default=True, name="continue")
    stop_reason: str | None = None
    system_message: str | None = None
    decision: str | None = None
    reason: str | None = None
    additional_context: str | None = None
    hook_specific_output: _Specific | None = None


def _answer(event: str, found: _Answer) -> HookResult:
    own = found.hook_specific_output or _Specific()
    given = own.decision or _Decision()
    none = "no reason was given"
    reason = (own.permission_decision_reason or given.message or found.reason or none)[:MAX_TEXT]
    decision = own.permission_decision or given.behavior or found.decision or ""
    verdict = {"allow": "allow", "approve": "allow", "ask": "ask"}.get(decision, "")
    blocked = reason if decision in ("block", "deny") else ""
    stop = "" if found.continue_ else (found.stop_reason or none)[:MAX_TEXT]
    return HookResult(
        blocked=blocked,
        verdict=verdict if event in _OF_CALLS else "",
        updated=(own.updated_input or given.updated_input) if event in _OF_CALLS else None,
        context=(own.additional_context or found.additional_context or "")[:MAX_TEXT],
        said=(found.system_message or "")[:MAX_TEXT],
        stop=stop or (blocked if given.interrupt else ""),
    )
