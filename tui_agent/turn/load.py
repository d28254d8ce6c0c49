"""Content of the next request besides the plan's files, in sending order. A changed file is loaded together
with its imports and its tests.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Sequence
from functools import cache, partial

from msgspec.structs import replace

from tui_agent.context import editor, known_files, memory
from tui_agent.context.editor import OpenFile
from tui_agent.errors import ModelError, TuiAgentError
from tui_agent.files.gate import (
    Decisions,
    Gate,
    UndecidedSecret,
    find_secrets,
    read,
)
from tui_agent.files.masking import Hit, hits_masked
from tui_agent.files.sensitive_paths import is_secret
from tui_agent.files.text import TextFile, decode, md5
from tui_agent.store import events as e
from tui_agent.store.files import Buffer, BuffersSlice
from tui_agent.tools.load_files import (
    admit,
    ask_about_secret,
    batches_of,
    known_file,
    leave_out,
    load_files,
    that_fit,
    with_decision,
)
from tui_agent.tools.load_files import load as load_file
from tui_agent.tools.tool import Emit, LoadedFiles
from tui_agent.turn.context import TurnContext
from tui_agent.turn.conversation import needs_begin, remembered
from tui_agent.turn.instructions import instruct
from tui_agent.turn.request import Draft
from tui_agent.workspace.related_files import Aliases, ImportRoots, aliases_for, find_tests, imported
from tui_agent.workspace.syntax_trees import language

MAX_SOURCE_BYTES = 1024 * 1024
MAX_CONFIG_BYTES = 64 * 1024
MOST_SOURCES = 50


async def bundle(context: TurnContext, held: LoadedFiles, emit: Emit) -> LoadedFiles:
    """Loads imports and tests of files changed since the last request, if not in view."""
    settings, changed = context.core.settings.bundling, context.core.state.conversation.unbundled
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
            file = await with_decision(context, partial(load_file, context, path, "bundle", why), emit)
        except UndecidedSecret as error:
            await emit(e.NoticeGiven("warning", str(error)))
        except TuiAgentError:
            continue
        else:
            entry = context.core.state.known.files.get(file.path)
            known = context.core.state.conversation.files.get(file.path) == file.md5 or (
                entry is not None and entry.written_known and entry.written == file.md5
            )
            if not known and (await that_fit(context, files, [file]))[0]:
                found = found.plus(await admit(context, file, emit))
    return found


async def companions(context: TurnContext, changed: Sequence[str]) -> dict[str, str]:
    """Returns paths with reasons, tests first, then imports by distance."""
    settings = context.core.settings.bundling
    found: dict[str, str] = {}
    if settings.tests:
        tests = await asyncio.to_thread(find_tests, changed, context.core.workspace.index)
        found.update({test: f"Tests {path}" for path, places in tests.items() for test in places[:2]})
    if settings.imports:
        places = await asyncio.to_thread(_places, context)
        level = list(changed)
        seen = set(changed)
        for _ in range(settings.depth):
            sources, level = level[:MOST_SOURCES], []
            for path in sources:
                name = "tsx" if path.endswith(".tsx") else language(path)
                text = await asyncio.to_thread(_source, context, path) if name else None
                if not text:
                    continue
                written = await context.core.workspace.imports(name, text)
                for target in await asyncio.to_thread(imported, path, name, written, places):
                    if target not in seen:
                        seen.add(target)
                        level.append(target)
                        found.setdefault(target, f"Imported by {path}")
    return {path: why for path, why in found.items() if path not in changed}


def _source(context: TurnContext, path: str) -> str | None:
    buffer = context.core.state.buffers.get(path)
    if buffer is not None and buffer.unsaved:
        return buffer.text
    return _text(context, path, MAX_SOURCE_BYTES)


def _text(context: TurnContext, path: str, limit: int) -> str | None:
    try:
        return decode(read(context.core.workspace.gate, path, limit)).text
    except TuiAgentError:
        return None


def _places(context: TurnContext) -> ImportRoots:
    index = context.core.workspace.index

    @cache
    def read_config(path: str) -> str | None:
        return _text(context, path, MAX_CONFIG_BYTES) if index.contains(path) else None

    @cache
    def aliases(path: str) -> Aliases:
        return aliases_for(path, read_config)

    modules = []
    for path in index.named(["go.mod"])["go.mod"]:
        lines = (read_config(path) or "").splitlines()
        line = next((line for line in lines if line.startswith("module ")), "")
        if name := line.removeprefix("module ").partition("//")[0].strip().strip('"'):
            modules.append((name, path.rpartition("/")[0]))
    return ImportRoots(index, aliases, sorted(modules, key=lambda module: -len(module[0])))


async def add_open_files(context: TurnContext, taken: Collection[str], emit: Emit) -> tuple[OpenFile, ...]:
    """Records unknown contents as known files. `taken` are paths in the request."""
    while True:
        state = context.core.state
        if not state.buffers.open:
            return ()
        judging = asyncio.to_thread(_open_files, context.core.workspace.gate, state.buffers, state.secrets)
        files, undecided = await judging
        if not undecided or context.ask is None:
            break
        await ask_about_secret(context, undecided[0], emit)
    for error in undecided:
        await emit(e.NoticeGiven("warning", str(error)))
    state = context.core.state
    new = editor.new_blocks(editor.blocks(files), state.conversation.blocks)
    for file in editor.attached(files):
        before = state.known.files.get(file.path)
        if f"file:{file.path}" not in new or file.path in taken:
            continue
        if before is not None:
            whole = editor.excerpt(file).whole and not file.masked
            changed = before.md5 != file.md5
            adds = (whole and changed) if before.whole else (whole or changed)
            if not adds:
                continue
        try:
            loaded = await load_file(context, file.path, "buffer")
        except TuiAgentError:
            continue
        if loaded.text == file.text:
            entry = known_file(loaded, context.turn, before)
            entry = replace(entry, whole=entry.whole and editor.excerpt(file).whole)
            await emit(e.FileLoaded(entry, at=time.time()))
    return tuple(files)


def _open_files(
    gate: Gate, buffers: BuffersSlice, decisions: Decisions
) -> tuple[list[OpenFile], list[UndecidedSecret]]:
    found: list[OpenFile] = []
    undecided: list[UndecidedSecret] = []
    for buffer in buffers.open:
        if buffer.note:
            continue
        try:
            secret = gate.place(buffer.path, "read").secret
        except TuiAgentError:
            secret = is_secret(buffer.path)
        if secret:
            continue
        data = buffer.mark + buffer.text.encode(buffer.encoding, errors="surrogatepass")
        judged = find_secrets(
            buffer.path, data, TextFile(buffer.text, buffer.encoding, buffer.mark), named=False
        )
        try:
            text, hits = judged.shown(decisions)
        except UndecidedSecret as error:
            undecided.append(error)
        except TuiAgentError:
            continue
        else:
            digest = md5(data) if buffer.unsaved else buffer.disk
            found.append(_open_file(buffer, text, hits, digest, buffer.path == buffers.active))
    return found, undecided


def _open_file(buffer: Buffer, text: str, hits: Sequence[Hit], digest: str, active: bool) -> OpenFile:
    first, last = sorted((buffer.cursor, buffer.anchor))
    lines = buffer.text.splitlines(keepends=True)
    start, end = (sum(map(len, lines[:line])) + column for line, column in (first, last))
    within = [
        Hit(max(hit.start, start) - start, min(hit.end, end) - start, hit.what)
        for hit in hits
        if hit.start < end and hit.end > start
    ]
    return OpenFile(
        path=buffer.path,
        text=text,
        md5=digest,
        line=buffer.cursor[0] + 1,
        selection=hits_masked(buffer.text[start:end], within),
        first=first[0] + 1,
        last=last[0] + (last[1] > 0 or last[0] == first[0]),
        unsaved=buffer.unsaved,
        active=active,
        mtime=buffer.mtime,
        masked=bool(hits),
    )


#: A seen file is read again automatically only for so many turns.
RECENT_TURNS = 1


async def load(context: TurnContext, draft: Draft, emit: Emit) -> Draft:
    if context.calls.look is not None:
        await context.calls.look()
    if draft.query:
        draft = replace(draft, goes_on=memory.asks_to_go_on(draft.query, context.turn))
    draft = await _fitting(context, draft, emit)
    draft = await read_again(context, draft, emit)
    bundled = await bundle(context, draft.everything, emit)
    draft = replace(draft, loaded=draft.loaded.plus(bundled))
    loaded = draft.everything
    section = ""
    if draft.query and draft.goes_on:
        written = context.core.state.input.memory
        section = (
            memory.titled(written) if written else remembered(context.core.state, context.turn, loaded.again)
        )
        await emit(e.MemoryBuilt(context.turn, section))
    opened = await add_open_files(context, {file.path for file in loaded.files}, emit)
    contexts = await instruct(context, loaded.asked_for, emit)
    state = context.core.state
    used = (*state.buffers.open, *state.review.open, *loaded.files)
    most = context.core.settings.known.max_files
    if dropped := known_files.overflow(state.known.files, most, {one.path for one in used}):
        await emit(e.KnownFilesDropped(dropped))
    draft = replace(draft, memory=section, opened=opened, contexts=contexts)
    return await upload(context, draft, emit)


async def _fitting(context: TurnContext, draft: Draft, emit: Emit) -> Draft:
    asked_for = [file for one in draft.answered for file in one.result.loaded.files]
    files = list({file.path: file for file in asked_for}.values())
    if len(draft.answered) < 2 or not files:
        return draft
    _, rest = await that_fit(context, draft.loaded.files, files)
    if not rest:
        return draft
    paths = [file.path for file in rest]
    waits = any(file.action in batches_of(context.core.state) for file in rest)
    facts = await leave_out("", paths, len(files), emit, made_room=draft.everything, waits=waits)
    draft = draft.changed(partial(LoadedFiles.without, paths=paths))
    return replace(draft, loaded=draft.loaded.plus(LoadedFiles(facts=facts)))


async def read_again(context: TurnContext, draft: Draft, emit: Emit) -> Draft:
    """Skips files with exactly the proposed text, which the model knows."""
    state = context.core.state
    asked_for, known = draft.everything.asked_for, state.known.files
    moved = {
        file.path
        for file in asked_for
        if (entry := known.get(file.path)) is not None and entry.md5 == file.md5 and entry.stale
    }
    if moved:
        draft = draft.changed(partial(LoadedFiles.without, paths=moved))
    recent = memory.ACTIVE_TURNS if draft.goes_on else RECENT_TURNS
    pending = {change.path for change in state.review.open}
    for entry in list(known.values()):
        if not entry.stale and (entry.freshness == "fresh" or entry.written_known):
            continue
        seen = max(entry.seen_turn, entry.modified_turn)
        needed = entry.path in moved or entry.path in pending or seen >= context.turn - recent
        path = entry.renamed_to if entry.freshness == "renamed" else entry.path
        if (
            not needed
            or entry.freshness == "deleted"
            or (path != entry.path and path in context.core.state.known.files)
        ):
            continue
        held = draft.everything.files
        more = await load_files(context, [path], entry.loaded_by, held, emit, ranges=entry.ranges)
        draft = replace(draft, loaded=draft.loaded.plus(more))
    return draft


async def upload(context: TurnContext, draft: Draft, emit: Emit) -> Draft:
    """After a failure, files are sent as text, with one notice per model."""
    state, store = context.core.state, context.provider_files
    model = state.model.name
    if store is None or model in store.refused:
        return draft
    in_view = state.conversation.files
    if state.conversation.uploads and (state.conversation.uploads_ended or needs_begin(state)):
        in_view = {}
        held, before = draft.everything.files, LoadedFiles()
        there = {file.path for file in held}
        for path in state.conversation.files:
            entry = state.known.files.get(path)
            if entry is None or path in there or entry.freshness in ("deleted", "renamed"):
                continue
            try:
                file = await load_file(context, path, entry.loaded_by)
            except TuiAgentError:
                continue
            if (await that_fit(context, (*held, *before.files), [file]))[0]:
                before = before.plus(await admit(context, file, emit))
        draft = replace(draft, loaded=draft.loaded.plus(before))
    ids: dict[str, str] = {}
    for file in draft.everything.asked_for:
        known_there = in_view.get(file.path) == file.md5 and not store.has(model, file.md5)
        if file.path in ids or file.file_id or file.ranges or not file.text or known_there:
            continue
        try:
            ids[file.path] = await store.upload(model, file.path, file.md5, file.text)
        except ModelError as error:
            sentence = f"{file.path} could not be uploaded ({error.what}): files are sent as text"
            await emit(e.NoticeGiven("warning", sentence))
            break

    def with_ids(loaded: LoadedFiles) -> LoadedFiles:
        files = [
            replace(file, file_id=ids[file.path]) if file.path in ids and file.loaded_by != "bundle" else file
            for file in loaded.files
        ]
        return replace(loaded, files=tuple(files))

    return draft.changed(with_ids) if ids else draft
