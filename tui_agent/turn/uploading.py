"""Handing what was found to the provider's own store of files, where the person turned that on."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from msgspec.structs import replace

from tui_agent.errors import ModelError, TuiAgentError
from tui_agent.store import events as e
from tui_agent.turn.beginning import needs_begin
from tui_agent.turn.desk import Desk, Gathered
from tui_agent.turn.reading import load, see, that_fit


async def upload(desk: Desk, gathered: Gathered) -> AsyncGenerator[e.Event, None]:
    """Upload the files that go with the next request and are new; the request then refers to them.

    After a failure the text is in the prompt, and a notice says so, once for each model.
    """
    state, store = desk.state(), desk.provider_files
    model = state.model.name
    if store is None or model in store.refused:
        return
    in_view = state.conversation.files
    if state.conversation.uploads and (state.conversation.uploads_ended or needs_begin(state)):
        in_view = {}
        async for event in _take_up(desk, gathered):
            yield event
    for place, file in enumerate(gathered.files):
        if file.file_id or not file.text:
            continue
        if in_view.get(file.path) == file.md5 and not store.has(model, file.md5):
            continue
        try:
            file_id = await store.upload(model, file.path, file.md5, file.text)
        except ModelError as error:
            sentence = f"{file.path} could not be uploaded ({error.what}): files are sent as text"
            yield e.NoticeGiven("warning", sentence)
            return
        gathered.files[place] = replace(file, file_id=file_id)


async def _take_up(desk: Desk, gathered: Gathered) -> AsyncGenerator[e.Event, None]:
    """What stood at another provider, or in another process's name, goes with the next request, as far as it fits."""
    state = desk.state()
    there = {file.path for file in (*gathered.files, *gathered.bundled)}
    for path in state.conversation.files:
        entry = state.known.files.get(path)
        if entry is None or path in there or entry.freshness in ("deleted", "renamed"):
            continue
        try:
            file = await load(desk, path, entry.loaded_by)
        except TuiAgentError:
            continue  # what cannot be read now is marked in the table
        if (await that_fit(desk, gathered, [file]))[0]:
            for event in see(desk, gathered, file):
                yield event
