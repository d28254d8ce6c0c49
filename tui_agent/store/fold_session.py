"""Folding what belongs to the session as a whole: its name, its model, its input, notices, the layout."""

from __future__ import annotations

from msgspec.structs import replace

from tui_agent.store import events as e
from tui_agent.store.fold_turn import say
from tui_agent.store.state import ChatMessage, Notice, NoticesSlice, SessionSlice, State

NOTICES_KEPT = 50


def _started(state: State, event: e.SessionStarted) -> State:
    session = SessionSlice(
        id=event.id, workspace=event.workspace, replay=event.replay, rehearsal=event.rehearsal
    )
    return replace(state, session=session)


def _opened(state: State, event: e.SessionOpened) -> State:
    session = replace(
        state.session, trusted=event.trusted, read_only=event.read_only, not_kept=event.not_kept
    )
    # nobody saw what became of the folder meanwhile
    checks = replace(state.checks, running=(), outdated="the session was opened again")
    return replace(state, session=session, checks=checks if state.checks.results else state.checks)


def _keeping(state: State, event: e.KeepingChanged) -> State:
    return replace(state, session=replace(state.session, not_kept=event.not_kept))


def _waiting(state: State, event: e.WaitingChanged) -> State:
    return replace(state, session=replace(state.session, waits_for=event.waits_for))


def _renamed(state: State, event: e.SessionRenamed) -> State:
    return replace(state, session=replace(state.session, name=event.name))


def _model(state: State, event: e.ModelChosen) -> State:
    model = replace(
        state.model,
        name=event.name,
        planner=event.planner,
        protocol=event.protocol,
        window=event.window,
        window_known=event.window_known,
        takes_schema=event.takes_schema,
        priced=event.priced,
        server=event.server,
        slots=event.slots,
    )
    return replace(state, model=model)


def _effort(state: State, event: e.EffortChosen) -> State:
    efforts = {**state.model.efforts, event.model: event.effort}
    return replace(state, model=replace(state.model, efforts=efforts))


def _model_status(state: State, event: e.ModelStatusChanged) -> State:
    return replace(state, model=replace(state.model, status=event.status))


def _notice(state: State, event: e.NoticeGiven) -> State:
    total = state.notices.total + 1
    items = (*state.notices.items, Notice(total, event.level, event.text))[-NOTICES_KEPT:]
    state = replace(state, notices=NoticesSlice(items, total))
    if not event.in_chat:
        return state
    return say(state, ChatMessage(0, "note", state.turn.number, event.text, level=event.level))


def _layout(state: State, event: e.LayoutChanged) -> State:
    return replace(state, layout=event.layout)


def _index(state: State, event: e.IndexChanged) -> State:
    workspace = replace(
        state.workspace,
        files=event.files,
        indexing=not event.complete,
        revision=state.workspace.revision + 1,
    )
    return replace(state, workspace=workspace)


def _watch(state: State, event: e.WatchChanged) -> State:
    return replace(state, workspace=replace(state.workspace, watching=event.watching))


def _git(state: State, event: e.GitStatusRead) -> State:
    workspace = replace(
        state.workspace,
        is_repository=event.is_repository,
        branch=event.branch,
        ahead=event.ahead,
        behind=event.behind,
        marks=event.marks,
    )
    return state if workspace == state.workspace else replace(state, workspace=workspace)


def _typing(state: State, event: e.TypingChanged) -> State:
    typed = {place: text for place, text in state.input.typed.items() if place != event.place}
    if event.text:
        typed[event.place] = event.text
    return replace(state, input=replace(state.input, typed=typed))


def _draft(state: State, event: e.DraftChanged) -> State:
    return replace(state, input=replace(state.input, draft=event.text))


def _pasted(state: State, event: e.PasteKept) -> State:
    pastes = {**state.input.pastes, event.line: event.blob}
    return replace(state, input=replace(state.input, pastes=pastes))


def _queued(state: State, event: e.MessageQueued) -> State:
    return replace(state, input=replace(state.input, queue=(*state.input.queue, event.text)))


def _queue(state: State, event: e.QueueChanged) -> State:
    return replace(state, input=replace(state.input, queue=event.queue))


FOLDS = {
    e.SessionStarted: _started,
    e.SessionOpened: _opened,
    e.KeepingChanged: _keeping,
    e.WaitingChanged: _waiting,
    e.SessionRenamed: _renamed,
    e.ModelChosen: _model,
    e.EffortChosen: _effort,
    e.ModelStatusChanged: _model_status,
    e.NoticeGiven: _notice,
    e.LayoutChanged: _layout,
    e.IndexChanged: _index,
    e.WatchChanged: _watch,
    e.GitStatusRead: _git,
    e.DraftChanged: _draft,
    e.TypingChanged: _typing,
    e.PasteKept: _pasted,
    e.MessageQueued: _queued,
    e.QueueChanged: _queue,
}
