"""What a reply calls for: its changes, todos and sub-tasks are proposed, and what it asks for is found."""

from __future__ import annotations

import asyncio

from tui_agent.answers.plans import FileAction
from tui_agent.answers.values import Reply
from tui_agent.context.known import LoadedBy
from tui_agent.edits.change import Change
from tui_agent.planning.near_names import completed
from tui_agent.store import events as e
from tui_agent.tools.chains import carried_over, find_files, named_once, renamed
from tui_agent.tools.context import Emit
from tui_agent.tools.files import Loaded
from tui_agent.tools.list_directory import list_directories
from tui_agent.tools.propose_changes import Rules
from tui_agent.tools.propose_changes import propose as propose_changes
from tui_agent.tools.search_text import search_text
from tui_agent.tools.set_todos import add_todos
from tui_agent.tools.spawn_subtasks import propose_sub_tasks
from tui_agent.turn.context import TurnContext
from tui_agent.turn.exchange import cut_off
from tui_agent.turn.request import Draft


async def propose(context: TurnContext, reply: Reply, rules: Rules, emit: Emit) -> tuple[Change, ...]:
    """Everything in the reply that waits for a decision; the changes that the model may be asked for again."""
    if reply.cut:
        await emit(e.NoticeGiven("warning", _cut_notice(reply)))
    for fault in (*reply.faults, *(_misread(call.name, call.fault) for call in reply.calls if call.fault)):
        await emit(e.NoticeGiven("warning", fault))
    await add_todos(context, reply.todos or (), emit)
    may_come_back = await propose_changes(context, reply, rules, emit)
    await propose_sub_tasks(context, reply.sub_tasks, emit)
    return may_come_back


async def answer(context: TurnContext, reply: Reply, emit: Emit) -> Draft:
    """What the reply asks for: files by chains, listings, places where a text is found."""
    taken = {slot.action.name for slot in context.state().plan.actions}
    carried = carried_over(context)
    files = await asyncio.to_thread(completed, reply.files, context.workspace.index)
    actions = named_once(renamed(context, [*carried, *files]), taken)
    if actions:
        await emit(e.ActionsAdded(actions))
    wanted: list[tuple[FileAction, LoadedBy]] = [
        (action, "mention" if action in carried else "request") for action in actions
    ]
    loaded = await find_files(context, wanted, (), emit)
    listings = await list_directories(context, reply.directories, emit)
    await emit(e.PhaseChanged("finding"))
    found = tuple([await search_text(context, search) for search in reply.searches])
    return Draft(loaded=loaded.plus(Loaded(facts=listings.facts)), listings=listings.found, found=found)


def _cut_notice(reply: Reply) -> str:
    count = len(reply.changes)
    if not count:
        return f"{cut_off(reply.why)} before it was complete: send “continue” to ask for the rest"
    kept = "the one change of it that is complete is" if count == 1 else f"its {count} complete changes are"
    return f"{cut_off(reply.why)}: {kept} kept"


def _misread(name: str, fault: str) -> str:
    return f"The model's call of {name[:60]} could not be read, and it is told so: {fault.removeprefix('Error: ')}"
