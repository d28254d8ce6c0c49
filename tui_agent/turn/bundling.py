"""Bundling: with a changed file come the files that it imports and its tests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from functools import cache, partial

from tui_agent.context.loaded import LoadedFile
from tui_agent.errors import TuiAgentError
from tui_agent.files.gate import read
from tui_agent.files.judging import Undecided
from tui_agent.files.text import decode
from tui_agent.store import events as e
from tui_agent.turn.desk import Desk, Gathered
from tui_agent.turn.reading import load, see, that_fit
from tui_agent.turn.secrets import decided
from tui_agent.workspace.companions import Places, imported
from tui_agent.workspace.languages import language
from tui_agent.workspace.tests_of import find_tests
from tui_agent.workspace.tsconfig import Aliases, aliases_for

MAX_SOURCE_BYTES = 1024 * 1024
MAX_CONFIG_BYTES = 64 * 1024
MOST_SOURCES = 50


async def bundle(desk: Desk, gathered: Gathered) -> AsyncGenerator[e.Event, None]:
    """What belongs to the files that were changed since the last request and is not in view, within its limits."""
    settings, changed = desk.settings.bundling, desk.state().conversation.unbundled
    if not (settings.enabled and settings.max_files and changed):
        return
    for path, why in (await companions(desk, changed)).items():
        if len(gathered.bundled) >= settings.max_files:
            return
        if any(file.path == path for file in (*gathered.files, *gathered.bundled)):
            continue
        loaded: list[LoadedFile] = []
        try:
            async for event in decided(desk, gathered, partial(load, desk, path, "bundle", why), loaded):
                yield event
        except Undecided as error:
            yield e.NoticeGiven("warning", str(error))
        except TuiAgentError:
            continue  # a bundle is an offer, not a promise
        for file in loaded:
            if await _is_wanted(desk, gathered, file):
                for event in see(desk, gathered, file):
                    yield event


async def companions(desk: Desk, changed: Sequence[str]) -> dict[str, str]:
    """Paths, tests first, then imports by their distance, each with the sentence why."""
    settings = desk.settings.bundling
    found: dict[str, str] = {}
    if settings.tests:
        tests = await asyncio.to_thread(find_tests, changed, desk.workspace.index)
        found.update({test: f"Tests {path}" for path, places in tests.items() for test in places[:2]})
    if settings.imports:
        places = await asyncio.to_thread(_places, desk)
        level = list(changed)
        seen = set(changed)
        for _ in range(settings.depth):
            level = await _imports_of(desk, places, level[:MOST_SOURCES], seen, found)
    return {path: why for path, why in found.items() if path not in changed}


async def _imports_of(
    desk: Desk, places: Places, sources: Sequence[str], seen: set[str], found: dict[str, str]
) -> list[str]:
    """One level further: what `sources` import goes into `found`; the files to look into next."""
    further: list[str] = []
    for path in sources:
        name = _grammar(path)
        text = await asyncio.to_thread(_source, desk, path) if name else None
        if not text:
            continue
        written = await desk.workspace.imports(name, text)
        for target in await asyncio.to_thread(imported, path, name, written, places):
            if target not in seen:
                seen.add(target)
                further.append(target)
                found.setdefault(target, f"Imported by {path}")
    return further


async def _is_wanted(desk: Desk, gathered: Gathered, file: LoadedFile) -> bool:
    """Whether the model does not have this text yet, and there is room for it."""
    entry = desk.state().known.files.get(file.path)
    known = entry is not None and entry.written_known and entry.written == file.md5
    if known or desk.state().conversation.files.get(file.path) == file.md5:
        return False
    return bool((await that_fit(desk, gathered, [file]))[0])


def _grammar(path: str) -> str:
    return "tsx" if path.endswith(".tsx") else language(path)


def _source(desk: Desk, path: str) -> str | None:
    """The newest text: what is unsaved in the editor, else the disk."""
    buffer = desk.state().buffers.get(path)
    if buffer is not None and buffer.unsaved:
        return buffer.text
    return _text(desk, path, MAX_SOURCE_BYTES)


def _text(desk: Desk, path: str, limit: int) -> str | None:
    try:
        return decode(read(desk.workspace.gate, path, limit)).text
    except TuiAgentError:
        return None


def _places(desk: Desk) -> Places:
    index = desk.workspace.index

    @cache
    def read_config(path: str) -> str | None:
        return _text(desk, path, MAX_CONFIG_BYTES) if index.contains(path) else None

    @cache
    def aliases(path: str) -> Aliases:
        return aliases_for(path, read_config)

    found = index.named(["go.mod"])["go.mod"]
    modules = [
        (name, path.rpartition("/")[0]) for path in found if (name := _go_module(read_config(path) or ""))
    ]
    return Places(index, aliases, sorted(modules, key=lambda module: -len(module[0])))


def _go_module(text: str) -> str:
    line = next((line for line in text.splitlines() if line.startswith("module ")), "")
    return line.removeprefix("module ").partition("//")[0].strip().strip('"')
