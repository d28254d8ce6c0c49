"""Bundles: a changed file is loaded together with its imports and its tests."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import cache, partial

from tui_agent.context.file_contents import LoadedFile
from tui_agent.errors import TuiAgentError
from tui_agent.files.gate import UndecidedSecret, read
from tui_agent.files.text import decode
from tui_agent.store import events as e
from tui_agent.tools.context import Emit
from tui_agent.tools.load_files import LoadedFiles, admit, load, that_fit, with_decision
from tui_agent.turn.context import TurnContext
from tui_agent.workspace.import_resolver import Aliases, ImportRoots, aliases_for, imported
from tui_agent.workspace.symbols import language
from tui_agent.workspace.test_finder import find_tests

MAX_SOURCE_BYTES = 1024 * 1024
MAX_CONFIG_BYTES = 64 * 1024
MOST_SOURCES = 50


async def bundle(context: TurnContext, held: LoadedFiles, emit: Emit) -> LoadedFiles:
    """Companions of the files changed since the last request that are not in view, within the bundle
    limits."""
    settings, changed = context.settings.bundling, context.state().conversation.unbundled
    found = LoadedFiles()
    if not (settings.enabled and settings.max_files and changed):
        return found
    for path, why in (await companions(context, changed)).items():
        files = (*held.files, *found.files)
        if len(found.files) >= settings.max_files:
            break
        if any(file.path == path for file in files):
            continue
        try:
            file = await with_decision(context, partial(load, context, path, "bundle", why), emit)
        except UndecidedSecret as error:
            await emit(e.NoticeGiven("warning", str(error)))
        except TuiAgentError:
            continue  # A bundle is optional.
        else:
            if await _is_wanted(context, file, files):
                found = found.plus(await admit(context, file, emit))
    return found


async def companions(context: TurnContext, changed: Sequence[str]) -> dict[str, str]:
    """Returns paths with their reasons, tests first, then imports by distance."""
    settings = context.settings.bundling
    found: dict[str, str] = {}
    if settings.tests:
        tests = await asyncio.to_thread(find_tests, changed, context.workspace.index)
        found.update({test: f"Tests {path}" for path, places in tests.items() for test in places[:2]})
    if settings.imports:
        places = await asyncio.to_thread(_places, context)
        level = list(changed)
        seen = set(changed)
        for _ in range(settings.depth):
            level = await _imports_of(context, places, level[:MOST_SOURCES], seen, found)
    return {path: why for path, why in found.items() if path not in changed}


async def _imports_of(
    context: TurnContext, places: ImportRoots, sources: Sequence[str], seen: set[str], found: dict[str, str]
) -> list[str]:
    """Adds the direct imports of `sources` to `found` and returns the files for the next level."""
    further: list[str] = []
    for path in sources:
        name = "tsx" if path.endswith(".tsx") else language(path)
        text = await asyncio.to_thread(_source, context, path) if name else None
        if not text:
            continue
        written = await context.workspace.imports(name, text)
        for target in await asyncio.to_thread(imported, path, name, written, places):
            if target not in seen:
                seen.add(target)
                further.append(target)
                found.setdefault(target, f"Imported by {path}")
    return further


async def _is_wanted(context: TurnContext, file: LoadedFile, held: Sequence[LoadedFile]) -> bool:
    entry = context.state().known.files.get(file.path)
    known = entry is not None and entry.written_known and entry.written == file.md5
    if known or context.state().conversation.files.get(file.path) == file.md5:
        return False
    return bool((await that_fit(context, held, [file]))[0])


def _source(context: TurnContext, path: str) -> str | None:
    buffer = context.state().buffers.get(path)
    if buffer is not None and buffer.unsaved:
        return buffer.text
    return _text(context, path, MAX_SOURCE_BYTES)


def _text(context: TurnContext, path: str, limit: int) -> str | None:
    try:
        return decode(read(context.workspace.gate, path, limit)).text
    except TuiAgentError:
        return None


def _places(context: TurnContext) -> ImportRoots:
    index = context.workspace.index

    @cache
    def read_config(path: str) -> str | None:
        return _text(context, path, MAX_CONFIG_BYTES) if index.contains(path) else None

    @cache
    def aliases(path: str) -> Aliases:
        return aliases_for(path, read_config)

    found = index.named(["go.mod"])["go.mod"]
    modules = [
        (name, path.rpartition("/")[0]) for path in found if (name := _go_module(read_config(path) or ""))
    ]
    return ImportRoots(index, aliases, sorted(modules, key=lambda module: -len(module[0])))


def _go_module(text: str) -> str:
    line = next((line for line in text.splitlines() if line.startswith("module ")), "")
    return line.removeprefix("module ").partition("//")[0].strip().strip('"')
