"""Proposes the changes of a reply, each on the newest version of its file."""

from __future__ import annotations

import asyncio
import os
from functools import partial

from msgspec.structs import replace

from tui_agent.answers.values import CHANGE_ENTRY, CHANGE_SECTION, CHANGE_WORDS, ChangeRequest, Refusal
from tui_agent.context.blocks import item, name, restored
from tui_agent.context.known_files import MAX_BYTES, table_row
from tui_agent.edits.change import UNNAMED, Change, text_under, texts_under
from tui_agent.edits.merge import joined, rebased
from tui_agent.edits.proposals import CHANGES_NOTHING, Seen
from tui_agent.edits.proposals import propose as propose_change
from tui_agent.errors import EditFailed, FileError, PathRefused, TuiAgentError
from tui_agent.files.gate import LOOKS_SECRET, find_secrets_in_file, read_for_person
from tui_agent.files.masking import MASK
from tui_agent.files.names import without_case
from tui_agent.files.operating_system import OTHER_NAMES, has_other_names
from tui_agent.files.text import decode, encode
from tui_agent.store import events as e
from tui_agent.tools.tool import Emit, Invocation, Tool, ToolContext, ToolResult, counted


async def text_on_disk(context: ToolContext, path: str) -> tuple[str, str] | None:
    try:
        data = await asyncio.to_thread(read_for_person, context.core.workspace.gate, path, MAX_BYTES)
    except PathRefused:
        raise
    except FileError:
        if context.core.workspace.gate.place(path, "read").exists:
            raise
        return None
    return await asyncio.to_thread(_store_text, context, data, context.unsaved_text(path))


def _store_text(context: ToolContext, data: bytes, newer: str | None) -> tuple[str, str]:
    text = decode(data)
    if newer is None:
        return text.text, context.core.blobs.hold(data)
    return newer, context.core.blobs.hold(encode(text, newer))


async def rebased_on_current(context: ToolContext, change: Change) -> Change:
    if not change.is_open:
        return change
    now = await text_on_disk(context, change.path)
    text, md5 = now or (None, "")
    if md5 == change.base:
        return change
    try:
        blobs = context.core.blobs
        base, new = await asyncio.to_thread(texts_under, blobs, change.base, change.new)
        return await asyncio.to_thread(rebased, change, base or "", new or "", text, md5, blobs.hold_text)
    except EditFailed:
        return change


async def run(call: Invocation, context: ToolContext, emit: Emit) -> ToolResult:
    turn, todos = context.turn, context.core.state.todos
    first = changes_of(context) + 1
    spelled: dict[str, str] = {}
    proposed: list[Change] = []
    resend: list[Change] = []
    for number, entry in enumerate(call.entries, first):
        if isinstance(entry, Refusal):
            # A failed change for an unreadable one, and whether to ask the model again: not if changes are
            # disabled, or if it names no file and can be an example
            why, may_come_back = entry.why, bool(entry.path)
            try:
                for path in filter(None, (entry.path, entry.rename_to)):
                    context.core.workspace.gate.place(path, "write")
            except TuiAgentError as error:
                why, may_come_back = str(error), False
            path = entry.path or UNNAMED
            change, again = (
                Change(f"c{turn}.{number}", turn, path, "edit", "failed", reason=why),
                may_come_back,
            )
        else:
            request = await _under_its_name_now(context, entry)
            if request.path != entry.path:
                what = f"{entry.path} was renamed to {request.path}; the change applies to that file"
                await _notify_both(what, emit)
            if request.path in context.progress.settled_paths:
                what = f"{request.path} was decided about meanwhile: what the model proposes now is left out"
                await _notify_both(what, emit)
                continue
            if request.todo_index is None or not 0 <= request.todo_index < len(call.todos):
                todo_id = ""
            else:
                text = call.todos[request.todo_index]
                todo_id = next((todo.id for todo in todos if todo.text == text), "")
            earlier = reversed(context.core.state.review.changes)
            same = (one.todo for one in earlier if (one.turn, one.path) == (turn, entry.path))
            todo = todo_id or next(same, "")
            change, again = await _change(context, turn, number, request, todo, spelled)
            change = replace(change, asked=context.progress.asked.get(change.path, 0))
            change = await _beside_sub_tasks(context, change)
            if entry.offered and change.state == "failed":
                await emit(e.NoticeGiven("info", f"{change.path} was not taken, for {entry.offered}"))
                continue
        await emit(e.ChangeProposed(change))
        if change.state == "failed" and not call.is_wire and not isinstance(entry, Refusal):
            await emit(e.ModelOwesNews(f"Your change to {change.path} was not taken: {change.reason}"))
        proposed.append(change)
        resend += [change] if again else []
    placed = [change for change in proposed if change.is_open and change.state != "conflict"]
    others = [change for change in proposed if change not in placed]
    lines = ["Proposed; the person decides:"] if placed else []
    lines += [f"- {name(change.path)}" for change in placed]
    if call.is_wire and others:
        lines += ["Not taken:", *(f"- {name(change.path)}: {item(change.reason)}" for change in others)]
    amount = (
        f"{counted(len(placed), 'file')}, +{sum(c.added for c in placed)} −{sum(c.removed for c in placed)}"
    )
    return ToolResult(
        "\n".join(lines) or "Nothing is proposed.", ok=not others, amount=amount, resend=tuple(resend)
    )


async def _notify_both(sentence: str, emit: Emit) -> None:
    await emit(e.NoticeGiven("info", sentence))
    await emit(e.ModelOwesNews(f"{sentence}."))


def changes_of(context: ToolContext) -> int:
    return sum(change.turn == context.turn for change in context.core.state.review.changes)


async def _beside_sub_tasks(context: ToolContext, change: Change) -> Change:
    open_changes = context.core.state.review.open
    beside = next((other for other in open_changes if other.tasks and other.path == change.path), None)
    if beside is None or not change.is_open:
        return change
    read = partial(text_under, context.core.blobs)
    both = await asyncio.to_thread(joined, beside, change, read, context.core.blobs.hold_text)
    return both if both.state == "conflict" else await rebased_on_current(context, both)


async def _change(
    context: ToolContext, turn: int, number: int, request: ChangeRequest, todo: str, spelled: dict[str, str]
) -> tuple[Change, bool]:
    request = request.with_texts(restored)  # Escapes kept text from closing its block.
    try:
        if context.core.workspace.gate.ignore_case:
            # Replaces the path with its spelling on disk; `spelled` holds the names used in this reply.
            # Raises `PathRefused`, and `EditFailed` for a second name that differs only in case
            path = context.core.workspace.gate.place(request.path, "write").path
            name = spelled.setdefault(without_case(path), request.path)
            if name != request.path:
                raise EditFailed(
                    f"{request.path} and {name} are one file here, where upper and lower case are the same",
                    "send all that should become of it under one name",
                )
            request = replace(request, path=path)
        base = await _base(context, request)
        if base is not None:
            entry = context.core.state.known.entry(request.path)
            if entry is not None and entry.masked and request.content is not None:
                why = f"secrets in {request.path} were not shown to you, so its whole content cannot be replaced"
                raise EditFailed(why, "send the change as search and replace edits")
            sighted = entry is not None or request.content is not None or request.delete or request.rename_to
            if not sighted and context.core.workspace.gate.place(request.path, "write").secret:
                raise EditFailed(
                    f"{request.path} looks like a secret and was not shown to you", "ask for it first"
                )
        if (base is None or MASK not in base[0]) and any(MASK in text for text in request.texts):
            why = f"{MASK} stands for a secret that was not shown to you, and is never written to a file"
            raise EditFailed(why, "leave those places as they are, and edit around them")
        change = await _proposed(context, turn, number, request, todo, base)
        entry = context.core.state.known.entry(change.path)
        if base is not None and entry is not None and entry.masked:
            new = text_under(context.core.blobs, change.new) or ""
            if new.count(MASK) > base[0].count(MASK):
                why = f"{MASK} stands for a secret in {change.path} that was not shown to you"
                raise EditFailed(why, "leave those places as they are, and edit around them")
        may_come_back = True
        if change.state == "failed":
            may_come_back = change.reason != CHANGES_NOTHING
            now = await text_on_disk(context, request.path)
            if now is not None and now != base:
                later = await _proposed(context, turn, number, request, todo, now, "never")
                change = change if later.state == "failed" else later
        else:
            change = await rebased_on_current(context, change)
        return await asyncio.to_thread(_as_shown, context, change), may_come_back
    except TuiAgentError as error:
        failed = Change(
            f"c{turn}.{number}", turn, request.path, "edit", "failed", reason=str(error), todo=todo
        )
        return failed, False


async def _under_its_name_now(context: ToolContext, request: ChangeRequest) -> ChangeRequest:
    """Whole contents keep their path if the model knew the new name."""
    entry = context.core.state.known.files.get(request.path)
    if entry is None or await asyncio.to_thread(os.path.lexists, context.core.workspace.root / request.path):
        return request
    if context.calls.look is not None:
        await context.calls.look()
    row = context.core.state.conversation.rows.get(request.path)
    told = entry.freshness == "renamed" and row == table_row(entry, 0)
    path = context.core.state.known.moved(request.path)
    if path == request.path or path == request.rename_to or (told and request.content is not None):
        return request
    return replace(request, path=path, then=tuple(replace(step, path=path) for step in request.then))


def _as_shown(context: ToolContext, change: Change) -> Change:
    """Asks about a file with a secret or other names; a failed change quotes nothing of a secret one."""
    place = context.core.workspace.gate.place(change.path, "write")
    entry = context.core.state.known.entry(change.path)
    if change.state == "failed":
        if not place.secret and not (entry is not None and entry.masked):
            newer = context.unsaved_text(change.path)
            try:
                judged = find_secrets_in_file(context.core.workspace.gate, change.path, MAX_BYTES, newer)
            except TuiAgentError:
                return change
            if judged.choice(context.core.state.secrets) == "send":
                return change
        return replace(change, reason=change.reason.partition("\n")[0])
    if place.secret:
        return replace(change, ask=change.ask or LOOKS_SECRET, reason=change.reason or LOOKS_SECRET)
    if change.ask or context.part or not has_other_names(context.core.workspace.root / place.path):
        return change
    return replace(change, ask=OTHER_NAMES, reason=change.reason or OTHER_NAMES)


async def _proposed(
    context: ToolContext,
    turn: int,
    number: int,
    request: ChangeRequest,
    todo: str,
    base: tuple[str, str] | None,
    seen: Seen | None = None,
) -> Change:
    text, md5 = base or (None, "")
    entry = context.core.state.known.entry(request.path)
    if seen is None:
        seen = "never" if entry is None else "whole" if entry.whole else "part"
    return await asyncio.to_thread(
        propose_change,
        request,
        turn,
        number,
        text,
        md5,
        context.core.blobs.hold_text,
        near_threshold=context.core.settings.review.near_threshold,
        seen=seen,
        shown=entry.shown if entry is not None else (),
        todo=todo,
    )


async def _base(context: ToolContext, request: ChangeRequest) -> tuple[str, str] | None:
    for path in filter(None, (request.path, request.rename_to)):
        context.core.workspace.gate.place(path, "write")
    known = context.core.state.known
    names, entry = known.names(request.path), known.entry(request.path)
    versions = [touch.md5 for touch in known.touches if touch.path in names and touch.md5]
    if not versions and entry is not None:
        versions = [entry.md5]
    named = request.base_hash.strip().lower()
    seen = next((md5 for md5 in reversed(versions) if md5.startswith(named)), (versions or [""])[-1])
    now = await text_on_disk(context, request.path)
    if now is None and request.content is not None:
        return None  # Whole content creates a missing file, for example after an undo.
    if seen and context.core.blobs.has(seen):
        data = await asyncio.to_thread(context.core.blobs.get, seen)
        return decode(data).text, seen
    return now


TOOL = Tool(
    name="propose_changes",
    key="fileChanges",
    parameter="changes",
    words=CHANGE_WORDS,
    entry=CHANGE_ENTRY,
    example={
        "path": "api.py",
        "todoIndex": 0,
        "baseHash": "9a906fd5909d",
        "edits": [{"search": "fetch(url)", "replace": "fetch(url, timeout=5)"}],
    },
    section=CHANGE_SECTION,
    place=20,
    run=run,
    proposes=True,
    answers=False,
    parallel=False,
    targets=lambda call: tuple(
        path for entry in call.entries for path in (entry.path, entry.rename_to or "") if path
    ),
    line=lambda call: ", ".join(dict.fromkeys(entry.path for entry in call.entries)),
)
