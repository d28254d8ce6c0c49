"""Content of the next request besides the plan's files, in sending order."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial

from msgspec.structs import replace

from tui_agent.context import known_files, memory
from tui_agent.context.file_contents import LoadedFile
from tui_agent.errors import ModelError, TuiAgentError
from tui_agent.store import events as e
from tui_agent.tools.context import Emit
from tui_agent.tools.load_files import LoadedFiles, admit, batches_of, leave_out, load_files, that_fit
from tui_agent.tools.load_files import load as load_file
from tui_agent.turn.bundles import bundle
from tui_agent.turn.context import TurnContext
from tui_agent.turn.conversation import needs_begin
from tui_agent.turn.editor_context import add_open_files
from tui_agent.turn.instructions import instruct
from tui_agent.turn.memory import remembered
from tui_agent.turn.request import Draft

#: Turns after which a seen file is no longer read again automatically.
RECENT_TURNS = 1


async def load(context: TurnContext, draft: Draft, emit: Emit) -> Draft:
    """Checks for changed files, reads them again, and adds bundles, memory and instructions."""
    if context.look is not None:
        await context.look()
    if draft.query:
        draft = replace(draft, goes_on=memory.asks_to_go_on(draft.query, context.turn))
    draft = await _fitting(context, draft, emit)
    draft = await read_again(context, draft, emit)
    bundled = await bundle(context, draft.everything, emit)
    draft = replace(draft, loaded=draft.loaded.plus(bundled))
    loaded = draft.everything
    section = ""
    if draft.query and draft.goes_on:
        written = context.state().input.memory
        section = (
            memory.titled(written) if written else remembered(context.state(), context.turn, loaded.again)
        )
        await emit(e.MemoryBuilt(context.turn, section))
    opened = await add_open_files(context, {file.path for file in loaded.files}, emit)
    contexts = await instruct(context, loaded.asked_for, emit)
    most = context.settings.known.max_files
    dropped = known_files.overflow(context.state().known.files, most, _needed_paths(context, loaded))
    if dropped:
        await emit(e.KnownFilesDropped(dropped))
    draft = replace(draft, memory=section, opened=opened, contexts=contexts)
    return await upload(context, draft, emit)


async def _fitting(context: TurnContext, draft: Draft, emit: Emit) -> Draft:
    """Omits requested files that do not fit; earlier calls take precedence."""
    asked_for = [file for one in draft.answered for file in one.result.loaded.files]
    files = list({file.path: file for file in asked_for}.values())
    if len(draft.answered) < 2 or not files:
        return draft
    _, rest = await that_fit(context, draft.loaded.files, files)
    if not rest:
        return draft
    paths = [file.path for file in rest]
    waits = any(file.action in batches_of(context.state()) for file in rest)
    facts = await leave_out("", paths, len(files), emit, made_room=draft.everything, waits=waits)
    draft = draft.changed(partial(LoadedFiles.without, paths=paths))
    return replace(draft, loaded=draft.loaded.plus(LoadedFiles(facts=facts)))


async def read_again(context: TurnContext, draft: Draft, emit: Emit) -> Draft:
    """Reloads stale files the turn needs: seen recently, with an open change, or changed since they were
    loaded.

    Skips files with exactly the proposed text, which the model knows.
    """
    state = context.state()
    asked_for = draft.everything.asked_for
    moved = {file.path for file in asked_for if _is_outdated(context, file.path, file.md5)}
    if moved:
        draft = draft.changed(partial(LoadedFiles.without, paths=moved))
    recent = memory.ACTIVE_TURNS if draft.goes_on else RECENT_TURNS
    pending = {change.path for change in state.review.open}
    for entry in list(state.known.files.values()):
        if not entry.stale and (entry.freshness == "fresh" or entry.written_known):
            continue
        seen = max(entry.seen_turn, entry.modified_turn)
        needed = entry.path in moved or entry.path in pending or seen >= context.turn - recent
        path = entry.renamed_to if entry.freshness == "renamed" else entry.path
        if not needed or entry.freshness == "deleted" or _is_known_by_new_name(context, path, entry):
            continue
        held = draft.everything.files
        more = await load_files(context, [path], entry.loaded_by, held, emit, ranges=entry.ranges)
        draft = replace(draft, loaded=draft.loaded.plus(more))
    return draft


def _is_outdated(context: TurnContext, path: str, md5: str) -> bool:
    entry = context.state().known.files.get(path)
    return entry is not None and entry.md5 == md5 and entry.stale


def _is_known_by_new_name(context: TurnContext, path: str, entry: known_files.KnownFile) -> bool:
    return path != entry.path and path in context.state().known.files


def _needed_paths(context: TurnContext, loaded: LoadedFiles) -> Collection[str]:
    state = context.state()
    paths = {buffer.path for buffer in state.buffers.open}
    paths.update(change.path for change in state.review.open)
    paths.update(file.path for file in loaded.files)
    return paths


async def upload(context: TurnContext, draft: Draft, emit: Emit) -> Draft:
    """Uploads new files to the provider's file storage, if enabled; the request then refers to them.

    After a failure, files are sent as text, with one notice per model.
    """
    state, store = context.state(), context.provider_files
    model = state.model.name
    if store is None or model in store.refused:
        return draft
    in_view = state.conversation.files
    if state.conversation.uploads and (state.conversation.uploads_ended or needs_begin(state)):
        in_view = {}
        before = await _uploaded_before(context, draft.everything.files, emit)
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


async def _uploaded_before(context: TurnContext, held: Sequence[LoadedFile], emit: Emit) -> LoadedFiles:
    """Reloads files uploaded to another provider or by another process, as far as they fit."""
    state, found = context.state(), LoadedFiles()
    there = {file.path for file in held}
    for path in state.conversation.files:
        entry = state.known.files.get(path)
        if entry is None or path in there or entry.freshness in ("deleted", "renamed"):
            continue
        try:
            file = await load_file(context, path, entry.loaded_by)
        except TuiAgentError:
            continue  # The table marks unreadable files.
        if (await that_fit(context, (*held, *found.files), [file]))[0]:
            found = found.plus(await admit(context, file, emit))
    return found
