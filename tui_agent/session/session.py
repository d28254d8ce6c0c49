"""A session: all that a front end can ask for, and the one place that says what happened.

Front ends read `state`, `subscribe`, and call the methods below; a method that fails raises a `TuiAgentError`.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace as with_fields
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from tui_agent.answers import schema
from tui_agent.errors import FileError, NoModel, SessionError, TuiAgentError
from tui_agent.log import recovery
from tui_agent.log.journal import Journal
from tui_agent.log.shortcuts import Shortcuts
from tui_agent.log.storage import Storage
from tui_agent.model.client import Model, Reaching
from tui_agent.model.pacing import Allowance, Pace, PacedModel
from tui_agent.model.provider_files import ProviderFiles, TakesFiles
from tui_agent.review.decisions import Decisions
from tui_agent.review.open_files import OpenFiles
from tui_agent.review.unfinished import SAVE, settle_others
from tui_agent.session.chat_calls import ChatCalls
from tui_agent.session.commands import Commands, interrupted
from tui_agent.session.file_calls import FileCalls
from tui_agent.session.models import is_chosen
from tui_agent.session.review_calls import ReviewCalls
from tui_agent.session.todo_calls import TodoCalls
from tui_agent.session.todo_list import TodoList
from tui_agent.session.turns import Turns, left_off
from tui_agent.session.watching import Watching
from tui_agent.settings.folders import Folders, config_folder
from tui_agent.settings.loading import LoadedSettings
from tui_agent.store import events as e
from tui_agent.store.state import LayoutSlice, State
from tui_agent.store.store import Listener
from tui_agent.subtasks import copies
from tui_agent.subtasks.subtasks import SubTasks, left_running
from tui_agent.turn.context import TurnContext
from tui_agent.turn.conversation_cache import ConversationCache
from tui_agent.turn.exchange import chosen
from tui_agent.turn.texts import Texts
from tui_agent.workspace.workspace import Workspace

if TYPE_CHECKING:
    from tui_agent.log.exchanges import Exchange
    from tui_agent.subtasks.parent import Capacity, Parent

SYSTEM_PROMPT = "system-prompt.json"
PLANNING_PROMPT = "planning-prompt.json"


class SubTaskPart(Struct, frozen=True):
    """What makes a session that of a sub-task's run: its hand-over, and what it shares with its parent."""

    handover: str
    capacity: Capacity
    requests: Allowance


class Session(ChatCalls, ReviewCalls, FileCalls, TodoCalls):
    """One session of one workspace. Belongs to the loop that made it."""

    def __init__(
        self,
        *,
        journal: Journal,
        storage: Storage,
        loaded: LoadedSettings,
        folders: Folders,
        workspace: Workspace,
        start_folder: str,
        model: Model,
        model_name: str,
        interactive: bool,
        part: SubTaskPart | None = None,
    ) -> None:
        self.journal = journal
        self.storage = storage
        self.loaded = loaded
        self.folders = folders
        self.model = model
        self.model_name = model_name
        self._pace = Pace()
        self._part = part
        self.requests = part.requests if part else Allowance(loaded.settings.limits.requests)
        self.start_folder = start_folder
        self._interactive = interactive
        self._opening_notices: list[str] = []
        self._saying: set[asyncio.Task[None]] = set()
        self._lost = set(storage.lost)
        self._look_later = False
        shapes = schema.load(config_folder())
        self._schema, self._planning_schema = shapes.response, shapes.planning
        self._planning_words = json.loads((config_folder() / PLANNING_PROMPT).read_text(encoding="utf-8"))
        self._words = json.loads((config_folder() / SYSTEM_PROMPT).read_text(encoding="utf-8"))
        self.workspace = workspace
        self._texts, self._sent = Texts(), ConversationCache()
        self._provider_files: ProviderFiles | None = None
        self._open_files = OpenFiles(journal, self.workspace, storage.folder / SAVE)
        self._watching = Watching(journal, self.workspace, self._open_files)
        self.workspace.listen(
            on_index=self._watching.on_index,
            on_batch=self._watching.on_batch,
            on_status=self._watching.on_status,
            on_watch=self._watching.on_watch,
            on_notice=self._watching.on_notice,
        )
        self._decisions = Decisions(journal, self.workspace, storage.blobs, self._open_files, storage.folder)
        if part is not None:  # its repository is the person's, and its applies are nobody's to undo
            self._decisions.versions.keep_none()
        self._cleaning: asyncio.Task[None] | None = None
        self._todos = TodoList(journal)
        self._turns = Turns(journal, self._turn_context, self._get_ready, self.go_on_unattended)
        self._shortcuts = Shortcuts(journal, storage.log.path, storage.since) if storage.log else None
        self.commands = Commands(journal, workspace, storage.blobs, self._decisions, loaded.settings)
        self.subtasks = SubTasks(journal, loaded.settings, self._parent, self._renew_requests)
        self.subscribe(self._on_event)

    @property
    def state(self) -> State:
        return self.journal.store.state

    @property
    def log_path(self) -> Path | None:
        """Where what happened can be read; None where it is in memory alone."""
        return self.storage.log.path if self.storage.log else None

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call `listener(event, state)` after each event; what comes back ends that."""
        return self.journal.store.subscribe(listener)

    async def start_services(self) -> None:
        """Start the workspace child and the model child; call it after the first frame. Returns at once.

        What there is to say about the opening itself is said now, when somebody listens.
        """
        await self.tell_opening()
        if self._look_later:
            self._look_later = False
            await self._watching.look_at_everything()
        self.workspace.start()
        if self.model_name:
            await self.model.start()
        # Half of what a session imports is only for turns: not before the first frame, and not at the first Enter.
        await asyncio.to_thread(import_module, "tui_agent.turn.turn")
        await asyncio.to_thread(import_module, "tui_agent.subtasks.scheduler")
        if self.storage.lock is not None:
            await copies.clear(self.folders.data, self.state.session.id, self.workspace.child)
        if self.storage.log is not None and self._cleaning is None:
            self._cleaning = asyncio.create_task(self._clean(), name="cleaning")

    async def tell_opening(self) -> None:
        """Say what there is to say about the opening itself, once."""
        sentences, self._opening_notices = self._opening_notices, []
        await self.journal.record(*(e.NoticeGiven("warning", sentence) for sentence in sentences))

    async def wait_for_files(self) -> None:
        """Wait until the index is complete."""
        await self.workspace.ready()

    async def close(self, within: float | None = None) -> None:
        """Stop what runs, end the children, keep what grows, and release the session.

        A fault in one of these keeps none from the others. What has not ended `within` so many seconds is left as
        it is: the session is kept and released all the same.
        """
        async with AsyncExitStack() as last:  # what was pushed first ends last
            if self.storage.lock is not None:
                last.callback(self.storage.lock.release)
            if self.storage.log is not None:
                last.push_async_callback(asyncio.to_thread, recovery.sign, self.storage.log.path)
            last.push_async_callback(self.journal.close)
            last.push_async_callback(asyncio.to_thread, self.storage.blobs.flush)
            try:
                async with asyncio.timeout(within):
                    await self._wind_down()
            except TimeoutError:
                pass

    async def _wind_down(self) -> None:
        async with AsyncExitStack() as last:
            if self._shortcuts is not None:
                last.push_async_callback(self._shortcuts.close)
            last.push_async_callback(self.model.close)
            last.push_async_callback(self._take_back_uploads)
            last.push_async_callback(self.workspace.close)
            last.push_async_callback(self._watching.close)
            if self._cleaning is not None:
                last.push_async_callback(asyncio.wait, [self._cleaning])
            last.push_async_callback(self._decisions.versions.settled)
            last.push_async_callback(self._turns.stop)
            last.push_async_callback(self.commands.close)
            last.push_async_callback(self.subtasks.close)

    # ── the screen ───────────────────────────────────────────────────────────────────────────────────────

    def set_layout(self, layout: LayoutSlice) -> None:
        """What the person made of the screen; kept within a second."""
        if layout != self.state.layout:
            self.journal.grow(e.LayoutChanged(layout))

    async def choose_model(self, name: str, environment: Mapping[str, str] | None = None) -> None:
        """Answer with another model from the next request on, which is a reset. Raises a `ModelError`.

        `environment` are the variables by which it is reached, where it needs any.
        """
        if self.state.session.rehearsal:
            raise SessionError(
                "The rehearsal answers from its recording", "start `tui-agent --model NAME` for a real model"
            )
        self.model_name = name.strip()
        if environment and isinstance(self.model, Reaching):
            await self.model.reach(environment)
        await self.model.start()
        await self._get_ready()

    async def rename(self, name: str) -> None:
        """Give the session a name."""
        await self.journal.record(e.SessionRenamed(name))

    async def sent(self) -> list[Exchange]:
        """What the model was sent and what it answered, in order. Empty where nothing is storage."""
        from tui_agent.log.exchanges import exchanges
        from tui_agent.log.log import events_of

        path = self.log_path
        if path is None:
            return []
        lost: list[str] = []
        found = await asyncio.to_thread(lambda: list(exchanges(events_of(path, lost), self.storage.blobs)))
        await self._say_lost(lost)
        return found

    async def notice(self, text: str, level: Literal["info", "warning", "error"] = "info") -> None:
        """Say something that does not belong to the conversation."""
        await self.journal.record(e.NoticeGiven(level, text))

    # ── for whoever opens it ─────────────────────────────────────────────────────────────────────────────

    async def take_up(self) -> None:
        """After a resume: end the turn that a crash left open, read the open files, look at what changed."""
        turn = self.state.turn
        if turn.running:
            sentence = "Interrupted: what had come so far is here; send “continue” to go on."
            ended = e.TurnEnded(turn.number, False, sentence, "Interrupted", stopped=True)
            await self.journal.record(*left_off(self.state), ended)
        await self.journal.record(*left_running(self.state), *interrupted(self.state.commands.running))
        if self.state.conversation.uploads and not self.state.conversation.uploads_ended:
            await self.journal.record(e.UploadsEnded())
            if store := self._store_of_files():
                store.adopt(self.state.model.name, self.state.conversation.uploads)
        self.say_at_start(await self._decisions.heal())
        await self.settle_others()
        await self._open_files.restore()
        self._look_later = True  # when somebody listens, and after the first frame

    def say_what_is_held(self) -> None:
        """From now on say so when texts are in memory only, because the disk does not take them."""
        loop = asyncio.get_running_loop()

        def tell(error: FileError) -> None:
            sentence = f"What the model sees is kept in memory only, {error}"
            loop.call_soon_threadsafe(
                lambda: self._saying.add(loop.create_task(self.notice(sentence, "warning")))
            )

        self.storage.blobs.on_held = tell

    async def settle_others(self) -> None:
        """Settle what other sessions of this folder, killed in the middle, left half done."""
        if self.storage.lock is not None:
            own, root = self.storage.folder, self.workspace.root
            self.say_at_start(await asyncio.to_thread(settle_others, self.folders.data, root, own))

    def say_at_start(self, sentences: Sequence[str]) -> None:
        """Warnings that `start_services` gives, when a front end is there to show them."""
        self._opening_notices += sentences

    def describe(self, started_from: Path | None) -> None:
        """Keep what the list of sessions shows of this one up to date."""
        log = self.storage.log
        if log is None:
            return
        log.set_meta(workspace=str(self.workspace.root), started_from=str(started_from or ""))

        def note(event: e.Event, state: State) -> None:
            match event:
                case e.TurnStarted(turn, request):
                    first = {"first_request": request[:200]} if turn == 1 else {}
                    log.set_meta(turns=turn, updated=time.time(), **first)
                case e.TurnEnded():
                    log.set_meta(updated=time.time())
                case e.SessionRenamed(name):
                    log.set_meta(name=name)

        self.subscribe(note)

    def _on_event(self, event: e.Event, state: State) -> None:
        match event:
            case e.ModelChosen(name=name):
                self.model_name = name  # a fallback that a turn took stays
            case e.TurnStarted():
                self._renew_requests()

    async def go_on_unattended(self) -> None:
        """With autonomy `auto` and `auto_apply` write what is proposed; what must be asked about stays."""
        settings = self.loaded.settings
        if settings.autonomy != "auto" or not settings.auto_apply or not self.state.review.open:
            return
        try:
            await self.apply()
        except TuiAgentError as error:
            await self.notice(str(error), "warning")

    def _parent(self) -> Parent:
        """What sub-tasks use of this session."""
        from tui_agent.session.child import open_child
        from tui_agent.subtasks.parent import Capacity, Parent
        from tui_agent.tools.propose_changes import on_newest

        settings = self.loaded.settings
        capacity = self._part.capacity if self._part else Capacity(settings.subtasks.max_parallel)
        return Parent(
            journal=self.journal,
            storage=self.storage,
            workspace=self.workspace,
            settings=settings,
            data=self.folders.data,
            requests=self.requests,
            capacity=capacity,
            open_child=lambda task, copy, part: open_child(self, task, copy, part, capacity),
            on_newest=lambda change: on_newest(self._turn_context(), change),
            after_run=self.go_on_unattended,
        )

    async def stop_everything(self) -> None:
        """Stop the turn and all sub-tasks, both at once."""
        await asyncio.gather(self.stop(), self.subtasks.stop_all(), self.commands.stop())

    def paced_model(self) -> PacedModel:
        """The model at the pace that all have to keep who ask it. What a sub-task asks its parent's model counts."""
        return PacedModel(self.model, self._pace, None if self._part else self.requests)

    def _renew_requests(self) -> None:
        """The person has asked for something: as many requests as a prompt may make, from now on."""
        if self._part is None:
            self.requests.renew()

    async def _say_lost(self, lost: Sequence[str]) -> None:
        """Say once that a record cannot be read: opening does not look at those that a snapshot stands for."""
        fresh = [sentence for sentence in lost if sentence not in self._lost]
        self._lost.update(fresh)
        await self.journal.record(*(e.NoticeGiven("warning", sentence) for sentence in fresh))

    def _turn_context(self) -> TurnContext:
        return TurnContext(
            state=lambda: self.state,
            settings=self.loaded.settings,
            workspace=self.workspace,
            model=self.paced_model(),
            blobs=self.storage.blobs,
            prompt_words=self._words,
            reply_schema=self._schema,
            start_folder=self.start_folder,
            requests=self.requests,
            ask=self._turns.ask if self._interactive else None,
            decided=self._turns.decided,
            provider_files=self._store_of_files(),
            look=self._watching.look_at_known,
            texts=self._texts,
            sent=self._sent,
            user_folder=self.folders.config,
            planning_words=self._planning_words,
            planning_schema=self._planning_schema,
            part=self._part.handover if self._part else "",
        )

    async def _clean(self) -> None:
        from tui_agent.log.cleanup import keep_within

        said = await asyncio.to_thread(keep_within, self.folders.data, self.loaded.settings.undo.max_bytes)
        if said:
            await self.notice(said)
        await copies.clear_leftovers(self.folders.data, self.workspace.child)

    async def _draft(self, changes: str) -> str:
        from tui_agent.turn.commit_message import draft_message

        await self._get_ready()
        apart = with_fields(
            self._turn_context(), model=PacedModel(self.model, self._pace), requests=Allowance()
        )
        return await draft_message(apart, changes, self.journal.record)

    def _store_of_files(self) -> ProviderFiles | None:
        """Where files are uploaded; None where that is off, or nothing there could take them."""
        wanted = self.loaded.settings.files_api == "on"
        if self._provider_files is None and wanted and isinstance(self.model, TakesFiles):
            self._provider_files = ProviderFiles(self.model)
        return self._provider_files

    async def _take_back_uploads(self) -> None:
        if self._provider_files is None:
            return
        sentence = await self._provider_files.close()
        left = [e.NoticeGiven("warning", sentence)] if sentence else []
        ended = [e.UploadsEnded()] if self.state.conversation.uploads else []
        await self.journal.record(*left, *ended)

    async def _get_ready(self) -> None:
        """Know the model: its name, its dialect, its window. Raises `NoModel` or another `ModelError`."""
        name = self.model_name
        if not name:
            raise NoModel(
                "No model is configured",
                "start with --model NAME, set `model` in settings.toml, or try `tui-agent demo`",
            )
        event = chosen(self.loaded.settings, name, await self.model.abilities(name))
        if not is_chosen(self.state.model, event):
            await self.journal.record(event)
