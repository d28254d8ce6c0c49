"""Hooks: commands that run at events, from the user's settings and from the `settings.json` of other agents.

Hooks of a `settings.json` are off until the user switches them on by name, exactly as they are written;
those of a workspace also need its trust. A change switches a hook off.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import shlex
import signal
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tui_agent.errors import SettingsError
from tui_agent.extensions.files import SHARED, Unusable, digest_of, entries, home_folder, is_inside
from tui_agent.extensions.names import narrowing
from tui_agent.extensions.trusted import (
    HOOK_FILES,
    MAX_FILE,
    SCRIPTS,
    Switches,
    TrustedFiles,
    hook_files,
    hooks_of,
)
from tui_agent.files.text import escaped, one_line
from tui_agent.processes.environment import for_any
from tui_agent.settings.files import Unreadable
from tui_agent.settings.folders import Folders
from tui_agent.settings.schema import HookEvent, HookSettings

#: Switched-on hooks, in the data folder; the place of the home folder's hooks.
STORE, HOME = "hooks.json", "~"
OFF = "off until you switch it on"
#: Maximum number of hooks of one file, and seconds of a hook.
MAX_HOOKS, MAX_SECONDS = 100, 600.0
#: Events whose matcher fits a name; others ignore it.
MATCHED = (
    "PreToolUse",
    "PermissionRequest",
    "PostToolUse",
    "PostToolUseFailure",
    "PreCompact",
    "PostCompact",
    "SessionStart",
    "SessionEnd",
    "StopFailure",
    "SubagentStart",
    "SubagentStop",
    "Notification",
)
#: Has the workspace's folder, as existing hooks expect.
FOLDER_VARIABLE = "CLAUDE_PROJECT_DIR"
Origin = Literal["user", "home", "project"]
_UNTRUSTED = "This workspace defines untrusted hooks"
_FOLDER = f"${{{FOLDER_VARIABLE}}}"
_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,63}", re.ASCII)
_PLAIN = re.compile(r"[\w ,|-]*", re.ASCII)


class Hook(Struct, frozen=True):
    """`origin` is home for `~/.claude/settings.json` and its like; `off` is why it does not run."""

    name: str
    settings: HookSettings
    origin: Origin = "user"
    off: str = ""

    @property
    def shown(self) -> str:
        it = self.settings
        named = " ".join(filter(None, (it.event, it.matcher, it.rule, "in the background" * it.background)))
        return one_line(f"{named}: {it.command}")

    def fits(self, *names: str) -> bool:
        matcher = self.settings.matcher
        if matcher in ("", "*") or self.settings.event not in MATCHED:
            return True
        if _PLAIN.fullmatch(matcher):
            return bool({part.strip() for part in re.split("[|,]", matcher)}.intersection(names))
        return any(re.search(matcher, name) for name in names)

    def fingerprint(self, root: Path) -> str:
        """Blocking."""
        files = {name: digest_of(root / name, root, MAX_FILE) for name in sorted(named_files(self, root))}
        text = msgspec.json.encode([self.name, replace(self.settings, enabled=True), files])
        return hashlib.sha256(text).hexdigest()


class ConfiguredHooks(Struct, frozen=True):
    hooks: tuple[Hook, ...] = ()
    problems: tuple[str, ...] = ()


def may_have_any(own: Mapping[str, HookSettings], workspace: Path) -> bool:
    return bool(own) or any(os.path.lexists(path) for path in (*_home_files(), *_files(workspace)))


def configured(own: Mapping[str, HookSettings], workspace: Path, folders: Folders) -> ConfiguredHooks:
    """Returns the user's hooks, then those of their `settings.json` files, then a trusted workspace's.
    Blocking.
    """
    root = Path(os.path.realpath(workspace))
    found: list[Hook] = []
    problems: list[str] = []
    for name, settings in own.items():
        why = (
            _why_unusable(settings) if _NAME.fullmatch(name) else "its name has other characters than letters"
        )
        if why:
            problems.append(f"The hook {escaped(name)[:60]} of your settings is left out: {why}")
        elif settings.enabled:
            found.append(Hook(name, settings))
        else:
            found.append(Hook(name, settings, off="off in your settings"))
    home_hooks, faults = _of_files(_home_files(), home_folder(), "home")
    problems += faults
    found += _switched(home_hooks, Switches(folders, STORE).of(HOME), root)
    theirs, faults = of_workspace(root)
    if theirs or faults:
        trusted = TrustedFiles(root, folders)
        covered = [path for name in SCRIPTS for path in entries(root / name)]
        if not all(map(trusted.holds, [*hook_files(root), *covered])):
            said = f"{_UNTRUSTED}: /trust shows them"
            return ConfiguredHooks(tuple(found), (*problems, said))
        found += _switched(theirs, Switches(folders, STORE).of(str(root)), root)
    return ConfiguredHooks(tuple(found), (*problems, *faults))


def _switched(hooks: list[Hook], on: Mapping[str, str], root: Path) -> Iterator[Hook]:
    for hook in hooks:
        if on.get(hook.name) == hook.fingerprint(root):
            yield hook
        else:
            changed = hook.name in on
            yield replace(hook, off="changed since you switched it on" if changed else OFF)


def of_workspace(root: Path) -> tuple[list[Hook], list[str]]:
    """Returns the hooks that a workspace's files name, trusted or not, and sentences about unusable ones.
    Blocking.
    """
    return _of_files(_files(root), root, "project")


def switch(workspace: Path, folders: Folders, name: str, on: bool) -> Hook:
    """Switches a hook of a `settings.json` on, exactly as it is now, or off. Raises SettingsError. Blocking."""
    root = Path(os.path.realpath(workspace))
    found = configured({}, root, folders)
    hook = next((one for one in found.hooks if one.name == name), None)
    if hook is None:
        names = ", ".join(one.name for one in found.hooks) or "none"
        untrusted = next(
            (one for one in found.problems if one.startswith(_UNTRUSTED)), f"the hooks are: {names}"
        )
        raise SettingsError(f"There is no hook {escaped(name)[:60]} to switch", untrusted)
    place = HOME if hook.origin == "home" else str(root)
    Switches(folders, STORE).turn(place, name, hook.fingerprint(root) if on else "")
    return replace(hook, off="" if on else OFF)


def named_files(hook: Hook, root: Path) -> Iterator[str]:
    text = re.sub(rf"\$(?:{FOLDER_VARIABLE}\b|\{{{FOLDER_VARIABLE}\}})", str(root), hook.settings.command)
    try:
        words = shlex.split(text)
    except ValueError:
        words = text.split()
    for word in words:
        path = root / os.path.expanduser(word)
        if len(word) < 4_096 and "\0" not in word and os.path.isfile(path) and is_inside(path, root):
            yield os.path.relpath(os.path.realpath(path), root)


def _home_files() -> list[Path]:
    return [home_folder() / name / "settings.json" for name in SHARED]


def _files(root: Path) -> list[Path]:
    return [] if root == home_folder() else [root / name for name in HOOK_FILES]


def _of_files(files: list[Path], root: Path, origin: Origin) -> tuple[list[Hook], list[str]]:
    hooks: list[Hook] = []
    problems: list[str] = []
    counts: dict[str, int] = {}
    for path in files:
        if not os.path.lexists(path):
            continue
        shown = one_line(str(path.relative_to(root)))
        try:
            table = hooks_of(path, Path(os.path.realpath(root)))
        except (Unreadable, Unusable) as error:
            problems.append(f"Hooks of {shown} are left out: {getattr(error, 'why', error)}")
            continue
        for event, group in _groups(table):
            for entry in group.get("hooks") or ():
                counts[event] = counts.get(event, 0) + 1
                name = f"{origin}.{event}-{counts[event]}"
                try:
                    settings = _settings(event, group.get("matcher"), entry)
                except ValueError as error:
                    problems.append(f"{shown}: the hook {escaped(name)[:80]} is left out: {error}")
                    continue
                if len(hooks) < MAX_HOOKS:
                    hooks.append(Hook(name, settings, origin))
    return hooks, problems


def _groups(table: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for event, groups in list(table.items())[:MAX_HOOKS]:
        for group in groups[:MAX_HOOKS] if isinstance(groups, list) else ():
            if isinstance(group, dict) and isinstance(group.get("hooks", []), list):
                yield event, group


def _settings(event: str, matcher: Any, entry: Any) -> HookSettings:
    if event not in get_args(HookEvent):
        raise ValueError("its event does not exist here")
    kind = entry.get("type", "command") if isinstance(entry, dict) else ""
    if kind != "command":
        shown = escaped(str(kind))[:40] or "none"
        raise ValueError(f"its type is {shown}, and only hooks of the type command run here")
    if entry.get("shell", "bash") != "bash":
        raise ValueError("its shell is not bash")
    command, args = entry.get("command"), entry.get("args")
    if args is not None and isinstance(command, str):
        if not isinstance(args, list) or not all(isinstance(one, str) for one in args):
            raise ValueError("its args are not a list of texts")
        # a shell line in which the folder's variable is still expanded
        command = shlex.join([command, *args]).replace(_FOLDER, f"'\"{_FOLDER}\"'")
    values = {
        "event": event,
        "command": command,
        "matcher": matcher or "",
        "rule": entry.get("if") or "",
    }
    values["background"] = bool(entry.get("async") or entry.get("asyncRewake"))
    if (seconds := entry.get("timeout")) is not None:
        number = isinstance(seconds, int | float)
        values["timeout"] = max(1.0, min(seconds, MAX_SECONDS)) if number else seconds
    try:
        found = msgspec.convert(values, HookSettings)
    except msgspec.ValidationError as error:
        raise ValueError(one_line(str(error))) from None
    if why := _why_unusable(found):
        raise ValueError(why)
    return found


def _why_unusable(settings: HookSettings) -> str:
    if "\0" in settings.command:
        return "its command holds a NUL character"
    try:
        re.compile(settings.matcher if settings.matcher != "*" else "")
    except (re.error, RecursionError, OverflowError):
        return "its matcher is not an expression"
    if settings.rule and not narrowing([settings.rule]).tools:
        return f"its rule {escaped(settings.rule)[:80]} names no tool that exists here"
    return ""


#: Bytes that a hook prints; more ends it.
MAX_OUTPUT = 1_000_000
MAX_TEXT = 10_000
#: Existing hooks are written for bash.
SHELL = "/bin/bash" if os.path.exists("/bin/bash") else "/bin/sh"
BLOCKS = 2
#: Seconds for the output of a hook that has ended, if another process still holds it open.
AFTERWARDS = 0.5
#: Events whose plain output is a text for the model.
_PLAIN_TEXT = ("SessionStart", "UserPromptSubmit")
#: Events whose answer decides about a call.
_OF_CALLS = ("PreToolUse", "PermissionRequest")


class HookResult(Struct, frozen=True):
    """- failed: the reason why the answer does not count, as the end of a sentence.
    - blocked: the reason, or "".
    - verdict: `allow`, `ask` or "" for a call.
    - updated: replaces the input of a call.
    - context: text for the model; message: text for the user.
    - stop: the reason to end the turn.
    """

    failed: str = ""
    blocked: str = ""
    verdict: str = ""
    updated: dict[str, Any] | None = None
    context: str = ""
    message: str = ""
    stop: str = ""


def environment(hook: Hook, root: Path) -> dict[str, str]:
    """Without keys for a workspace's hooks."""
    whole = dict(os.environ) if hook.origin != "project" else for_any()
    if hook.origin == "project":
        whole.pop("PYTHONPATH", None)
    return {**whole, FOLDER_VARIABLE: str(root)}


class _Run(asyncio.SubprocessProtocol):
    """Collects a hook's output by stream; has futures of its end and of the end of its output.

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
    """Runs a hook in `folder`; `root` is the workspace. Raises only on cancellation, which ends it."""
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
    printed = (data.decode(errors="replace").strip() for data in run.printed.values())
    return answer_of(hook.settings.event, transport.get_returncode() or 0, *printed)


def answer_of(event: str, status: int, printed: str, errors: str) -> HookResult:
    if status == BLOCKS:
        return HookResult(blocked=errors[:MAX_TEXT] or "no reason was given")
    if status:
        why = f"ended by signal {-status}" if status < 0 else f"ended with status {status}"
        last = next((line for line in reversed(errors.splitlines()) if line.strip()), "")
        return HookResult(failed=f"{why} ({one_line(last)[:200]})" if last else why)
    if not printed.startswith("{"):
        return HookResult(context=printed[:MAX_TEXT] if event in _PLAIN_TEXT else "")
    try:
        found = msgspec.json.decode(printed, type=_Answer)
    except (msgspec.DecodeError, RecursionError) as error:
        return HookResult(failed=f"printed JSON that cannot be used ({one_line(str(error))[:200]})")
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
        message=(found.system_message or "")[:MAX_TEXT],
        stop=stop or (blocked if given.interrupt else ""),
    )


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
