"""Proposing: what a reply would change becomes changes, todos and sub-tasks that the person decides about."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Sequence
from functools import partial

from msgspec.structs import replace

from tui_agent.answers.values import ChangeRequest, Refusal, Reply, TodoItem
from tui_agent.context.blocks import restored
from tui_agent.context.known import table_row
from tui_agent.edits.change import Change
from tui_agent.edits.joining import joined
from tui_agent.edits.proposals import CHANGES_NOTHING, Seen
from tui_agent.edits.proposals import propose as propose_change
from tui_agent.edits.texts import text_under
from tui_agent.errors import EditFailed, TuiAgentError
from tui_agent.files.gate import LOOKS_SECRET
from tui_agent.files.key_formats import MASK
from tui_agent.files.names import without_case
from tui_agent.files.text import decode
from tui_agent.store import events as e
from tui_agent.store.state import Todo
from tui_agent.turn.asking import changes_of
from tui_agent.turn.desk import Desk, Gathered
from tui_agent.turn.exchange import cut_off
from tui_agent.turn.reading import judge_now, text_on_disk
from tui_agent.turn.rebasing import on_newest
from tui_agent.turn.sending_back import SendingBack
from tui_agent.turn.splitting import split


async def propose(desk: Desk, gathered: Gathered, back: SendingBack) -> AsyncGenerator[e.Event, None]:
    """Everything in the reply that waits for a decision, each as an event; a fault hides no other.

    What the model may be asked for again is noted in `back`.
    """
    reply = gathered.reply
    if reply.cut:
        yield e.NoticeGiven("warning", _cut_notice(reply))
    for fault in (*reply.faults, *(_misread(call.name, call.fault) for call in reply.calls if call.fault)):
        yield e.NoticeGiven("warning", fault)
    before = desk.state().todos
    added = _new_todos(before, reply, gathered.turn)
    if added:
        yield e.TodosAdded(added)
    todos = (*before, *added)
    first = changes_of(desk, gathered.turn) + 1
    spelled: dict[str, str] = {}
    for number, request in enumerate(reply.changes, first):
        todo = _todo_id(request, reply, todos) or _todo_of_earlier(desk, gathered.turn, request.path)
        asked, request = request.path, await _under_its_name_now(desk, request)
        if asked != request.path:
            sentence = f"{asked} was renamed to {request.path}: the change to it is one to that file"
            yield e.NoticeGiven("info", sentence)
            yield e.ModelOwesNews(f"{sentence}.")
        if back.is_settled(desk, request.path):
            sentence = f"{request.path} was decided about meanwhile: what the model proposes anew is left out"
            yield e.NoticeGiven("info", sentence)
            yield e.ModelOwesNews(f"{sentence}.")
            continue
        change, may_come_back = await _change(desk, gathered.turn, number, request, todo, spelled)
        change = replace(change, asked=back.asked.get(change.path, 0))
        change = await _beside_sub_tasks(desk, change)
        yield e.ChangeProposed(change)
        if change.state == "failed":
            yield e.ModelOwesNews(f"Your change to {change.path} was not taken: {change.reason}")
        if may_come_back:
            back.note(change)
    for number, refusal in enumerate(reply.refused, first + len(reply.changes)):
        change, may_come_back = _refused(desk, gathered.turn, number, refusal)
        yield e.ChangeProposed(change)
        if may_come_back:
            back.note(change)
    for event in split(desk, gathered, reply):
        yield event


def _refused(desk: Desk, turn: int, number: int, refusal: Refusal) -> tuple[Change, bool]:
    """A change that could not be read, and whether asking the model again could help: not where no change may be."""
    why, may_come_back = refusal.why, True
    try:
        for path in filter(None, (refusal.path, refusal.rename_to)):
            desk.workspace.gate.place(path, "write")
    except TuiAgentError as error:
        why, may_come_back = str(error), False
    return Change(f"c{turn}.{number}", turn, refusal.path, "edit", "failed", reason=why), may_come_back


async def _beside_sub_tasks(desk: Desk, change: Change) -> Change:
    """The change with what sub-tasks have proposed for the same file, which does not give way to it."""
    open_changes = desk.state().review.open
    beside = next((other for other in open_changes if other.tasks and other.path == change.path), None)
    if beside is None or not change.is_open:
        return change
    read = partial(text_under, desk.blobs)
    both = await asyncio.to_thread(joined, beside, change, read, desk.blobs.hold_text)
    return both if both.state == "conflict" else await on_newest(desk, both)


async def _change(
    desk: Desk, turn: int, number: int, request: ChangeRequest, todo: str, spelled: dict[str, str]
) -> tuple[Change, bool]:
    """The change on the newest version of its file, and whether asking the model again could help it."""
    request = _as_in_the_file(request)
    try:
        if desk.workspace.gate.ignore_case:
            request = _as_on_disk(desk, request, spelled)
        base = await _base(desk, request)
        _check_sight(desk, request, base)
        change = await _proposed(desk, turn, number, request, todo, base)
        _check_masks(desk, change, base)
        may_come_back = True
        if change.state == "failed":
            change, may_come_back = await _on_what_is_there(desk, turn, number, request, todo, base, change)
        else:
            change = await on_newest(desk, change)
        return await asyncio.to_thread(_without_secrets, desk, change), may_come_back
    except TuiAgentError as error:
        failed = Change(
            f"c{turn}.{number}", turn, request.path, "edit", "failed", reason=str(error), todo=todo
        )
        return failed, False


async def _under_its_name_now(desk: Desk, request: ChangeRequest) -> ChangeRequest:
    """The request for the file that was renamed since the model saw it, by its new name.

    Whole content stays where it is meant to go by a model that was told of the new name.
    """
    entry = desk.state().known.files.get(request.path)
    if entry is None or await asyncio.to_thread(os.path.lexists, desk.workspace.root / request.path):
        return request
    if desk.look is not None:
        await desk.look()
    row = desk.state().conversation.rows.get(request.path)
    told = entry.freshness == "renamed" and row == table_row(entry, 0)
    path = desk.state().known.moved(request.path)
    if path == request.path or path == request.rename_to or (told and request.content is not None):
        return request
    return replace(request, path=path, then=tuple(replace(step, path=path) for step in request.then))


def _as_in_the_file(request: ChangeRequest) -> ChangeRequest:
    """The request without the marks that kept text from closing its block, where the model copied them."""
    return replace(
        request,
        content=request.content and restored(request.content),
        diff=request.diff and restored(request.diff),
        edits=tuple(
            replace(edit, search=restored(edit.search), replace=restored(edit.replace))
            for edit in request.edits
        ),
        then=tuple(_as_in_the_file(step) for step in request.then),
    )


def _check_sight(desk: Desk, request: ChangeRequest, base: tuple[str, str] | None) -> None:
    """Raise EditFailed for a change that could only be right by chance: the model was not shown what it changes."""
    if base is None:
        return
    entry = desk.state().known.entry(request.path)
    if entry is not None and entry.masked and request.content is not None:
        why = f"secrets in {request.path} were not shown to you, so its whole content cannot be replaced"
        raise EditFailed(why, "send the change as search and replace edits")
    sighted = entry is not None or request.content is not None or request.delete or request.rename_to
    if not sighted and desk.workspace.gate.place(request.path, "write").secret:
        raise EditFailed(f"{request.path} looks like a secret and was not shown to you", "ask for it first")


def _check_masks(desk: Desk, change: Change, base: tuple[str, str] | None) -> None:
    """Raise EditFailed where a change would write the mask itself in place of a secret."""
    entry = desk.state().known.entry(change.path)
    if entry is None or not entry.masked or base is None:
        return
    new = text_under(desk.blobs, change.new) or ""
    if new.count(MASK) > base[0].count(MASK):
        why = f"{MASK} stands for a secret in {change.path} that was not shown to you"
        raise EditFailed(why, "leave those places as they are, and edit around them")


def _without_secrets(desk: Desk, change: Change) -> Change:
    """The change as the model and a log may know it: no secret in its reason, and held for the person if its file is
    one. Blocking."""
    entry = desk.state().known.entry(change.path)
    secret = desk.workspace.gate.place(change.path, "write").secret
    if change.state == "failed" and entry is not None and entry.masked:
        secret = True
    judged = None if secret or change.state != "failed" else judge_now(desk, change.path)
    if judged is not None and judged.choice(desk.state().secrets) != "send":
        secret = True
    if not secret:
        return change
    if change.state == "failed":
        return replace(
            change, reason=change.reason.partition("\n")[0]
        )  # what follows is quoted from the file
    return replace(change, ask=change.ask or LOOKS_SECRET, reason=change.reason or LOOKS_SECRET)


def _as_on_disk(desk: Desk, request: ChangeRequest, spelled: dict[str, str]) -> ChangeRequest:
    """The request under the name that its file has on disk. One file has one name in a reply, kept in `spelled`.

    Raises PathRefused, or EditFailed for a second name that differs in case only.
    """
    path = desk.workspace.gate.place(request.path, "write").path
    name = spelled.setdefault(without_case(path), request.path)
    if name != request.path:
        raise EditFailed(
            f"{request.path} and {name} are one file here, where upper and lower case are the same",
            "send all that should become of it under one name",
        )
    return replace(request, path=path)


async def _on_what_is_there(
    desk: Desk,
    turn: int,
    number: int,
    request: ChangeRequest,
    todo: str,
    base: tuple[str, str] | None,
    failed: Change,
) -> tuple[Change, bool]:
    """What has no place in the version that the model saw may have one in the newest; near is not enough there."""
    now = await text_on_disk(desk, request.path)
    if now == base or now is None:
        return failed, failed.reason != CHANGES_NOTHING
    change = await _proposed(desk, turn, number, request, todo, now, "never")
    return (failed if change.state == "failed" else change), failed.reason != CHANGES_NOTHING


async def _proposed(
    desk: Desk,
    turn: int,
    number: int,
    request: ChangeRequest,
    todo: str,
    base: tuple[str, str] | None,
    seen: Seen | None = None,
) -> Change:
    text, md5 = base or (None, "")
    return await asyncio.to_thread(
        propose_change,
        request,
        turn,
        number,
        text,
        md5,
        desk.blobs.hold_text,
        near_threshold=desk.settings.review.near_threshold,
        seen=seen or _seen(desk, request.path),
        todo=todo,
    )


def _todo_of_earlier(desk: Desk, turn: int, path: str) -> str:
    """The todo of the change that this one takes the place of, where the model does not name it again."""
    earlier = (change for change in desk.state().review.changes if (change.turn, change.path) == (turn, path))
    return next((change.todo for change in reversed(list(earlier))), "")


def _seen(desk: Desk, path: str) -> Seen:
    entry = desk.state().known.entry(path)
    if entry is None:
        return "never"
    return "whole" if entry.whole else "part"


async def _base(desk: Desk, request: ChangeRequest) -> tuple[str, str] | None:
    """The text that the change starts from and its hash: what the model saw, else what is there now."""
    for path in filter(None, (request.path, request.rename_to)):
        desk.workspace.gate.place(path, "write")
    seen = _seen_version(desk, request)
    now = await text_on_disk(desk, request.path)
    if now is None and request.content is not None:
        return None  # the whole of a file that is not there (any more, after an undo say) makes it
    if seen and desk.blobs.has(seen):
        data = await asyncio.to_thread(desk.blobs.get, seen)
        return decode(data).text, seen
    return now


def _seen_version(desk: Desk, request: ChangeRequest) -> str:
    """The hash of the version that the change names, or else of the latest that the model saw."""
    known = desk.state().known
    names = known.names(request.path)
    versions = [touch.md5 for touch in known.touches if touch.path in names and touch.md5]
    if not versions:
        entry = known.entry(request.path)
        return entry.md5 if entry else ""
    named = request.base_hash.strip().lower()
    if not named:
        return versions[-1]
    return next((md5 for md5 in reversed(versions) if md5.startswith(named)), versions[-1])


def _new_todos(before: Sequence[Todo], reply: Reply, turn: int) -> tuple[Todo, ...]:
    """Todos with the same text stay what they are, these are added."""
    texts = {todo.text for todo in before}
    return tuple(
        Todo(f"t{turn}.{number}", item.text, item.ai_text, item.done, turn)
        for number, item in enumerate(_once(reply.todos or ()), len(before) + 1)
        if item.text not in texts
    )


def _once(items: Sequence[TodoItem]) -> list[TodoItem]:
    return list({item.text: item for item in items}.values())


def _todo_id(request: ChangeRequest, reply: Reply, todos: tuple[Todo, ...]) -> str:
    if request.todo_index is None or not 0 <= request.todo_index < len(reply.todos or ()):
        return ""
    text = (reply.todos or ())[request.todo_index].text
    return next((todo.id for todo in todos if todo.text == text), "")


def _cut_notice(reply: Reply) -> str:
    count = len(reply.changes)
    if not count:
        return f"{cut_off(reply.why)} before it was complete: send “continue” to ask for the rest"
    kept = "the one change of it that is complete is" if count == 1 else f"its {count} complete changes are"
    return f"{cut_off(reply.why)}: {kept} kept"


def _misread(name: str, fault: str) -> str:
    return f"The model's call of {name[:60]} could not be read, and it is told so: {fault.removeprefix('Error: ')}"
