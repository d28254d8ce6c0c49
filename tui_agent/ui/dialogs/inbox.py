"""The inbox: items that wait for the user, here and in other sessions."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from textual import events, work
from textual.content import Content

from tui_agent.control import remote, sockets
from tui_agent.control.server import question
from tui_agent.errors import SessionError, TuiAgentError
from tui_agent.store.state import OtherSession, State
from tui_agent.ui.dialogs.chooser import Chooser, ChooserRow, room_of
from tui_agent.ui.host import Choice, keys_of
from tui_agent.ui.panes.review_rows import ReviewPosition
from tui_agent.ui.safe_text import counted, label, parts
from tui_agent.ui.widgets.line_view import column
from tui_agent.ui.widgets.pane import Pane, save_place

if TYPE_CHECKING:
    from tui_agent.session.session import Session
    from tui_agent.ui.host import Host

#: States of other sessions, in the order of the list.
STATES = {
    "asks": "$warning",
    "failed": "$error",
    "checks failed": "$error",
    "has changes": "$accent",
    "done": "$success",
    "works": "$running",
    "idle": "$muted",
}
#: Maximum rows per kind of item; one more row has the number of the others.
MOST_OF_KIND = 5
_KEY, _STATE = 13, 14
WIDEST = 180


class InboxRow(NamedTuple):
    """`place` is the action that shows the item, `action` the next one on it."""

    id: str
    place: str
    action: str
    state: str
    colour: str
    words: str
    other: OtherSession | None = None
    #: The change at which the review opens.
    change: str = ""


def inbox_rows(state: State, others: Sequence[OtherSession]) -> Iterator[InboxRow]:
    review = "pane.review"
    asks, _ = question(state)
    if asks:
        place = "session.permission" if state.asked is not None else "pane.plan"
        yield InboxRow("asks", place, place, "asks", "$warning", asks)
    for kind, colour in (("conflict", "$warning"), ("failed", "$failed")):
        found = [change for change in state.review.changes if change.state == kind]
        most = MOST_OF_KIND if len(found) > MOST_OF_KIND + 1 else len(found)  # avoids *and 1 other*
        for change in found[:most]:
            why = change.reason.partition(":")[0] if kind == "conflict" else change.reason
            words = f"{change.path} · {why}" if why else change.path
            yield InboxRow(change.id, review, review, kind, colour, words, change=change.id)
        if more := len(found) - most:
            words = f"and {counted(more, 'other')}"
            yield InboxRow(f"more {kind}", review, review, kind, colour, words)
    for mark in state.check_marks:
        if mark.look == "failed":
            runs = "commands.list"
            yield InboxRow(f"check {mark.name}", runs, runs, "check failed", "$error", mark.words)
    if pending := state.review.open:
        files = counted(len({change.path for change in pending}), "file")
        words = f"{counted(state.review.undecided, 'change')} in {files}"
        apply = "changes.apply_all"
        yield InboxRow("changes", review, apply, "pending", "$accent", words, change=pending[0].id)
    tasks = "pane.subtasks"
    if ready := [task for task in state.subtasks.tasks if task.state == "ready" and not task.wanted]:
        words = f"{counted(len(ready), 'sub-task')} ready to start: {', '.join(task.id for task in ready)}"
        yield InboxRow("tasks", tasks, tasks, "waits", "$accent", words)
    for task in state.subtasks.tasks:
        if task.state == "failed":
            words = f"{task.id}: {task.reason}" if task.reason else task.id
            yield InboxRow(f"task {task.id}", tasks, tasks, "failed", "$failed", words)
    order = list(STATES)
    known = sorted(others, key=lambda it: (order.index(it.state) if it.state in order else len(order), it.id))
    for other in known:
        where = f"{other.host}:{other.workspace}" if other.host else os.path.basename(other.workspace)
        changes = f" · {counted(other.changes, 'file')}" if other.changes else ""
        asks = f" · {other.asks}" if other.asks else ""
        here = " · in another terminal" if other.attached else ""
        action = "inbox.answer" if other.asks else "chooser.choose"
        words = f"{where} · {other.title or other.id}{asks}{changes}{here}"
        name = f"{other.host}/{other.id}/{other.pid}"
        yield InboxRow(name, "", action, other.state, STATES.get(other.state, "$muted"), words, other)


class Inbox(Chooser):
    """Returns the chosen row and its action or place. The action's key also chooses the row."""

    ID = "inbox"
    DEFAULT_CSS = f"Inbox > Vertical {{ width: {WIDEST}; }}"

    def __init__(self, session: Session) -> None:
        super().__init__(
            "Inbox",
            self._rows_of,
            "type to filter",
            self._ask_hosts(),
            following=session.subscribe,
            first=lambda: self._at,
        )
        self._session = session
        self._hosts = session.loaded.settings.remote.hosts
        self._remote: list[OtherSession] = []
        #: Hosts without an answer so far, and errors of others.
        self._asked, self._faults = set(self._hosts), dict[str, str]()
        self._at = ""

    def hint(self) -> Content:
        answer = [("inbox.answer", "answers it")] if self._asking(self.rows().get(self._at)) else []
        keys = (("chooser.choose", "opens it"), *answer, ("dialog.close", "back"))
        return label(self.keys_for(*keys, gap=" · "))

    def needs_content(self, event: events.Event) -> bool:
        return False  # this machine's rows need no loading

    async def _ask_hosts(self) -> None:
        self._remote.clear()
        self._asked = set(self._hosts)
        self._follow()

        async def ask(host: str) -> None:
            try:
                found = await asyncio.to_thread(remote.sessions_of, host)
            except SessionError as error:
                self._faults[host] = str(error)
                found = []
            self._asked.discard(host)
            for line in found:
                with suppress(msgspec.ValidationError):  # another version's answer
                    self._remote.append(msgspec.convert(line, OtherSession))
            self._follow()

        await asyncio.gather(*map(ask, self._hosts))

    def on_key(self, event: events.Key) -> None:
        for row in self.rows().values():
            if row.other is None and self.matches(event, row.action):
                event.stop()
                self.dismiss((row, row.action))
                return

    def rows(self) -> dict[str, InboxRow]:
        others = (*self._session.state.others, *self._remote)
        return {row.id: row for row in inbox_rows(self._session.state, others)}

    def _show_facts(self) -> None:
        self._at = self.value
        self.say()

    @staticmethod
    def _asking(row: InboxRow | None) -> bool:
        return row is not None and (row.id == "asks" if row.other is None else bool(row.other.asks))

    def _rows_of(self, words: str) -> list[ChooserRow]:
        room = room_of(self.app.size.width, WIDEST)
        rows = [
            ChooserRow(
                row.id,
                parts(
                    (column(keys_of(self).shown(row.action), _KEY), "$accent"),
                    (column(row.state, _STATE), row.colour),
                    (column(row.words, max(room - _KEY - _STATE, 8)), "$text"),
                ),
            )
            for row in self.rows().values()
            if words.lower() in f"{row.state} {row.words}".lower()
        ]
        waits = [ChooserRow("", label(f"{host}: asking …", "$muted")) for host in sorted(self._asked)]
        faults = [ChooserRow("", label(fault, "$error")) for _, fault in sorted(self._faults.items())]
        return [*(rows or [ChooserRow("", label("Nothing waits for you", "$muted"))]), *waits, *faults]

    def choose(self, at: int | None) -> None:
        if row := self.rows().get(self.value):
            self.dismiss((row, row.place))

    @work(group="answer")
    async def action_answer(self) -> None:
        row = self.rows().get(self.value)
        if row is None or not self._asking(row):
            self.notify("It asks nothing", timeout=2)
            return
        if (other := row.other) is None:
            self.dismiss((row, row.place))
            return
        chosen = await self.app.push_screen_wait(answering(other, self._session))
        if not chosen:
            return
        self._session.chat.set_typed(f"inbox:{other.id}", "")
        try:
            if other.host:
                await asyncio.to_thread(remote.answer, other.host, other.id, chosen)
                self.fill(self._ask_hosts())
            else:
                place = sockets.SessionSocket(sockets.folder(), other.id, other.pid)
                await asyncio.to_thread(sockets.request, place, {"type": "answer", "text": chosen})
        except TuiAgentError as error:
            self.notify(str(error), severity="error", markup=False)


_ANSWERS = {
    "once": "Allow this once",
    "session": "Allow exactly this for the rest of that session",
    "always": "Allow exactly this in that workspace, always",
    "no": "Do not allow it",
}


def answering(other: OtherSession, session: Session) -> Chooser:
    """Returns the number of an answer, or typed text, stored until it is sent."""
    place = f"inbox:{other.id}"

    def rows(words: str) -> Iterable[ChooserRow]:
        session.chat.set_typed(place, words)
        if typed := words.strip():
            yield ChooserRow(typed, label(f"Answer “{typed}”"))
        else:
            for number, choice in enumerate(other.choices, 1):
                yield ChooserRow(str(number), label(f"{number}  {_ANSWERS.get(choice, choice)}"))

    hint, typed = "{choose} selects, or type an answer", session.state.input.typed.get(place, "")
    return Chooser(other.asks or "", lambda words: list(rows(words)), hint, text=typed)


async def show_inbox(app: Host, session: Session) -> None:
    chosen: tuple[InboxRow, str] | None = await app.push_screen_wait(Inbox(session))
    if chosen is None:
        return
    row, action = chosen
    if (other := row.other) is not None:
        await app.switch(Choice(other.id, attach=True, host=other.host))
        return
    if row.change:
        save_place(session, "review", ReviewPosition(row.change).saved())
    app.screen.post_message(Pane.ActionAsked(action))
