"""Examines this machine: installed parts, detected services and problems; API keys by name only."""

from __future__ import annotations

import asyncio
import os
import platform
import re
import shutil
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Literal

from msgspec import Struct

from tui_agent import __version__
from tui_agent.errors import ChildFailed, ModelError, TuiAgentError, install_command
from tui_agent.git.process import run_git
from tui_agent.log.cleanup import CleanupResult, cleanup_summary, used
from tui_agent.model import servers
from tui_agent.model.child_model import LITELLM, ChildModel
from tui_agent.model.client import Abilities
from tui_agent.model.discovery import discover
from tui_agent.model.local import LocalModels
from tui_agent.model.login.store import LoginStore
from tui_agent.model.model_table import all_providers
from tui_agent.model.servers import ServerMemory
from tui_agent.sandbox.isolation import Rung, probe
from tui_agent.settings import trust
from tui_agent.settings.folders import Folders, why_not_writable
from tui_agent.settings.loading import LoadedSettings, load

#: Seconds for the model process to start on a slow machine.
START_TIMEOUT = 60.0
#: Tests litellm if no model is configured.
_ANY_MODEL = "openai/gpt-6-sol"
#: Dependencies missing from a slim installation.
_OPTIONAL = {
    "litellm": "providers without built-in support, and exact token counts",
    "pillow": "pictures in messages",
}
#: Status prefix of a responding local server.
_WORKS = "works "


class Helper(Struct, frozen=True):
    starts: bool
    seconds: float
    error: str = ""


class ModelReport(Struct, frozen=True):
    name: str
    planner: str
    known: bool
    window: int
    keys: tuple[str, ...]
    suggestions: dict[str, str]
    process: Helper
    #: Result of a test request to a local server; "" for other providers.
    works: str = ""
    variables: dict[str, dict[str, str]] = {}
    logins: tuple[str, ...] = ()
    #: Models by address of responding local servers.
    servers: dict[str, list[str]] = {}


class Report(Struct, frozen=True):
    """The output of `--json`."""

    ok: bool
    version: str
    surroundings: Machine
    folders: dict[str, str]
    writable: bool
    workspace: str
    trust: str
    model: ModelReport
    problems: tuple[str, ...]
    #: The isolation of commands, and why it is not stronger.
    trial: Rung = Rung("none")
    #: Bytes stored for undo and resume, and the limit of `sessions clean`.
    store: int = 0
    store_limit: int = 0


async def examine(workspace: Path, folders: Folders) -> Report:
    """Uses no network beyond this machine."""
    loaded = await asyncio.to_thread(load, folders, workspace, trust.is_trusted(workspace, folders))
    around = await asyncio.to_thread(surroundings)
    why = await asyncio.to_thread(why_not_writable, folders.data)
    model = await _model(loaded, folders)
    problems = [
        *around.problems,
        *([why] if why else []),
        *map(str, loaded.faults),
        *([model.process.error] if model.process.error else []),
    ]
    return Report(
        ok=not problems,
        version=__version__,
        surroundings=around,
        folders={name: str(getattr(folders, name)) for name in ("config", "data", "cache", "state")},
        writable=not why,
        workspace=str(workspace),
        trust=trust.trust_status(workspace, folders),
        model=model,
        problems=tuple(problems),
        trial=await probe(),
        store=await asyncio.to_thread(used, folders.data),
        store_limit=loaded.settings.undo.max_bytes,
    )


async def _model(loaded: LoadedSettings, folders: Folders) -> ModelReport:
    name = loaded.settings.model
    memory = ServerMemory(folders.state)
    found = await discover(memory=memory)
    process, abilities, works = await _process(
        name, LocalModels(ChildModel(), memory, loaded.settings.models.local_window)
    )
    serving: dict[str, list[str]] = {}
    for one in found:
        if address := servers.address_of(one.model, {**os.environ, **one.environment}):
            serving.setdefault(address, []).append(one.model)
    # A server may respond without a model list.
    if works.startswith(_WORKS) and (
        address := servers.address_of(name, {**memory.variables(name), **os.environ})
    ):
        named = serving.setdefault(address, [])
        named.extend([] if name in named else [name])
    return ModelReport(
        name=name,
        planner=loaded.settings.planner_model,
        known=bool(name) and abilities.known,
        window=loaded.settings.context.window or (abilities.window if name else 0),
        keys=key_names(os.environ),
        logins=tuple(name for name, login in LoginStore().names().items() if not login.ended),
        suggestions={one.model: one.because for one in found},
        variables={one.model: one.environment for one in found if one.environment},
        servers=serving,
        process=process,
        works=works,
    )


async def _process(name: str, model: LocalModels) -> tuple[Helper, Abilities, str]:
    begin = time.monotonic()
    try:
        async with asyncio.timeout(START_TIMEOUT):
            await model.inner.abilities(_ANY_MODEL)
        seconds = round(time.monotonic() - begin, 1)
        works = ""
        try:
            if name and (about := await model.test(name, {})):
                works = f"{_WORKS}({about})"
        except ModelError as error:
            works = str(error)
        return Helper(True, seconds), await model.abilities(name or _ANY_MODEL), works
    except (TuiAgentError, TimeoutError) as error:
        why = str(error) or f"it was not ready within {START_TIMEOUT:g} seconds"
        error_words = f"the model's process does not start: {why}"
        return Helper(False, round(time.monotonic() - begin, 1), error_words), Abilities(name), ""
    finally:
        await model.close()


def report_lines(report: Report) -> Iterator[tuple[Literal["ok", "note", "problem"], str]]:
    around, model = report.surroundings, report.model
    yield "ok", f"tui-agent {report.version}, Python {around.python}, {around.platform}"
    names = [name for name in around.packages if not name.startswith("tree-sitter-")]  # too many to list
    yield "ok", ", ".join(f"{name} {around.packages[name]}" for name in names if around.packages[name])
    for name, purpose in _OPTIONAL.items():
        if name in names and not around.packages[name]:
            command = install_command(LITELLM if name == "litellm" else name)
            yield "note", f"{name} is not installed; it is needed for {purpose}: {command}"
    if around.git:
        yield "ok", around.git
    yield "ok", around.terminal.in_words()
    yield "ok", "folders: " + ", ".join(f"{name} {path}" for name, path in report.folders.items())
    yield "ok", f"workspace {report.workspace}: {report.trust}"
    over = report.store > report.store_limit
    kept = cleanup_summary(CleanupResult(report.store, report.store), report.store_limit)
    yield "note" if over else "ok", kept.replace("--yes", "`tui-agent sessions clean --yes`")
    yield "note" if report.trial.why else "ok", report.trial.in_words()
    if model.process.starts:
        yield "ok", f"the model's process starts in {model.process.seconds} s"
    yield ("ok", f"keys: {', '.join(model.keys)}") if model.keys else ("note", "no key in the environment")
    if model.logins:
        yield "ok", f"logins: {', '.join(model.logins)}"
    if not model.name:
        model_line = "note", "no model is configured: set `model`, or use --model NAME"
    elif model.works:
        model_line = (
            ("ok" if model.works.startswith(_WORKS) else "note"),
            f"model {model.name}: {model.works}",
        )
    elif not model.known and not model.window:
        model_line = "note", f"model {model.name}: litellm does not know it; set context.window to its size"
    else:
        model_line = "ok", f"model {model.name}, {model.window:,} tokens"
    yield model_line
    for name, because in model.suggestions.items():
        variables = "".join(f"{key}={value} " for key, value in model.variables.get(name, {}).items())
        yield "note", f"could be used: {variables}tui-agent --model {name} ({because})"
    for problem in report.problems:
        yield "problem", problem


_NAME = re.compile(r"[A-Za-z0-9._-]+")
_GIT_TIMEOUT = 5.0


class TerminalReport(Struct, frozen=True):
    """`columns` and `lines` are 0 without a terminal."""

    name: str
    is_terminal: bool
    columns: int
    lines: int
    colours: int
    encoding: str
    multiplexer: str = ""

    def in_words(self) -> str:
        size = f"{self.columns}×{self.lines}" if self.is_terminal else "output is not a terminal"
        inside = f", inside {self.multiplexer}" if self.multiplexer else ""
        colours = f"{self.colours:,} colours" if self.colours else "no colour"
        return f"terminal {self.name or 'without a name'}, {size}, {colours}, {self.encoding}{inside}"


class Machine(Struct, frozen=True):
    python: str
    platform: str
    packages: dict[str, str | None]
    git: str
    terminal: TerminalReport
    problems: tuple[str, ...]


def surroundings() -> Machine:
    installed, git = packages(), git_version()
    problems = [
        f"the package {name} is missing: reinstall tui-agent"
        for name, version in installed.items()
        if not version and name not in _OPTIONAL
    ]
    if not git:
        problems.append("git was not found: install it; changes are merged and saved with it")
    return Machine(
        python=platform.python_version(),
        platform=f"{platform.system()} {platform.machine()}",
        packages=installed,
        git=git,
        terminal=terminal(os.environ),
        problems=tuple(problems),
    )


def packages() -> dict[str, str | None]:
    """Requirements of the installed distribution, without extras."""
    from importlib import metadata  # with its readers of mails and archives it takes 1.4 MB

    try:
        required = metadata.requires("tui-agent") or []
    except metadata.PackageNotFoundError:
        return {"tui-agent": None}
    names = [found.group() for line in required if "extra ==" not in line and (found := _NAME.match(line))]
    versions = dict[str, str | None].fromkeys(names)
    for name in names:
        with suppress(metadata.PackageNotFoundError):
            versions[name] = metadata.version(name)
    return versions


def git_version() -> str:
    try:
        done = run_git(os.getcwd(), ("--version",), {}, seconds=_GIT_TIMEOUT)
    except ChildFailed:
        return ""
    return done.text if done.ok else ""


def terminal(environ: Mapping[str, str]) -> TerminalReport:
    is_terminal = sys.stdout.isatty()
    columns, lines = shutil.get_terminal_size((0, 0)) if is_terminal else (0, 0)
    term = environ.get("TERM", "")
    if environ.get("NO_COLOR") or term in ("", "dumb"):
        colours = 0
    elif environ.get("COLORTERM", "").lower() in ("truecolor", "24bit"):
        colours = 16_777_216
    else:
        colours = 256 if "256color" in term else 16
    return TerminalReport(
        name=environ.get("TERM", ""),
        is_terminal=is_terminal,
        columns=columns,
        lines=lines,
        colours=colours,
        encoding=str(getattr(sys.stdout, "encoding", None) or "").lower(),
        multiplexer="tmux" if environ.get("TMUX") else "screen" if environ.get("STY") else "",
    )


def key_names(environ: Mapping[str, str]) -> tuple[str, ...]:
    names = (name for provider in all_providers() for name in provider.keys)
    return tuple(dict.fromkeys(name for name in names if environ.get(name)))
