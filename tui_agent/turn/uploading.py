"""Handing what was found to the provider's own store of files (P7), where the person turned that on."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from msgspec.structs import replace

from tui_agent.errors import ModelError
from tui_agent.store import events as e
from tui_agent.turn.desk import Desk, Gathered


async def upload(desk: Desk, gathered: Gathered) -> AsyncGenerator[e.Event, None]:
    """Upload the files that go with the next request and are new; the request then refers to them.

    After a failure the text stands in the prompt, and a notice says so, once for each model.
    """
    state, store = desk.state(), desk.provider_files
    model = state.model.name
    if store is None or model in store.refused:
        return
    for place, file in enumerate(gathered.files):
        if file.file_id or not file.text or state.conversation.files.get(file.path) == file.md5:
            continue
        try:
            file_id = await store.upload(model, file.path, file.md5, file.text)
        except ModelError as error:
            sentence = f"{file.path} could not be uploaded ({error.what}): files are sent as text"
            yield e.NoticeGiven("warning", sentence)
            return
        gathered.files[place] = replace(file, file_id=file_id)
