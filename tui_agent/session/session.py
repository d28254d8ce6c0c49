"""A session: the interface of front ends, and the only source of events. Calls raise a `TuiAgentError`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import replace as with_fields
from functools import cached_property, partial
from typing import TYPE_CHECKING, Literal

from tui_agent.edits.change import Change, Checkpoint
from tui_agent.errors import FileError, SessionError, TuiAgentError
from tui_agent.files.known_secrets import KnownSecrets
from tui_agent.log.core import Core, call
from tui_agent.log.journal import SLOW, Journal
from tui_agent.log.snapshot import SnapshotWriter
from tui_agent.log.storage import mark_closed
from tui_agent.model.client import Model
from tui_agent.model.rate_limit import Allowance
from tui_agent.processes.background import start_task
from tui_agent.review.open_files import OpenFiles
from tui_agent.review.review import Review
from tui_agent.review.writer import repair_others
from tui_agent.session.auto_apply import Goals, auto_apply
from tui_agent.session.chat import Chat
from tui_agent.session.checks import Checks
from tui_agent.session.commands import Commands
from tui_agent.session.extensions import Extensions
from tui_agent.session.files import Files, FreshnessWatch
from tui_agent.session.hooks import EndReason, Hooks
from tui_agent.session.mcp_servers import McpServers
from tui_agent.session.models import ModelAccess
from tui_agent.session.preparation import Preparation
from tui_agent.session.running_commands import interrupted
from tui_agent.session.turns import Turns, interruption_events
from tui_agent.settings.loading import Prompts
from tui_agent.settings.schema import Mode
from tui_agent.store import events as e
from tui_agent.store.events import Listener
from tui_agent.store.state import LayoutSlice, State, Todo
from tui_agent.subtasks import copies
from tui_agent.subtasks.subtasks import SubTasks, lost_run_events
from tui_agent.tools.tool import SessionCalls
from tui_agent.turn.context import ConversationCache, Texts, TurnContext

if TYPE_CHECKING:
    from tui_agent.session.agent_turns import AgentTurns
    from tui_agent.session.outside_agents import OutsideAgents
    from tui_agent.subtasks.parent import Parent, RunSession, SubTaskPart
    from tui_agent.web.pages import Pages
    from tui_agent.workspace.workspace import FileChange


class Todos:
    """Methods raise `SessionError` for an unknown id."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    @property
    def state(self) -> State:
        return self._journal.store.state

    @call(changes=True)
    async def add(self, text: str) -> None:
        turn = self.state.turn.number
        taken = {todo.id for todo in self.state.todos}
        number = next(n for n in range(1, len(taken) + 2) if f"m{n}" not in taken)
        await self._journal.record(e.TodosAdded((Todo(f"m{number}", text.strip(), turn=turn),)))

    @call(changes=True)
    async def edit(self, todo: str, text: str) -> None:
        found = self._named(todo)
        await self._journal.record(e.TodoChanged(todo, text.strip(), found.done))

    @call(changes=True)
    async def toggle(self, todo: str) -> None:
        found = self._named(todo)
        await self._journal.record(e.TodoChanged(todo, found.text, not found.done))

    @call(changes=True)
    async def remove(self, todo: str) -> None:
        self._named(todo)
        await self._journal.record(e.TodoRemoved(todo))

    @call(changes=True)
    async def move(self, todo: str, step: int) -> None:
        """Moves within the list; up if negative."""
        at = self.state.todos.index(self._named(todo))
        place = max(0, min(len(self.state.todos) - 1, at + step))
        if place != at:
            await self._journal.record(e.TodoMoved(todo, place))

    def _named(self, todo: str) -> Todo:
        found = next((item for item in self.state.todos if item.id == todo), None)
        if found is None:
            raise SessionError(f"There is no todo {todo}", "choose one from the list")
        return found


CARRY_OUT = "Carry out the plan above."
INIT = (
    # "Write" and "the readme": the built-in planner would ask about other words if the files are missing.
    "Write an AGENTS.md at the top of this folder for agents that work here, or improve the one that is there: the "
    "commands that build, test and check, how the code is arranged, and the conventions that a newcomer needs. Read "
    "the readme, the build files and some of the code first. Be brief, and write only facts that you saw."
)
#: Shown before the session is stored.
STILL_RUNS = "waiting for running work to end"


class Session:
    """Bound to the event loop that created it. `part` marks a sub-task's run; `open_child` and `open_placed`
    open those. `prompts` include those of a trusted workspace.
    """

    def __init__(
        self,
        core: Core,
        *,
        start_folder: str,
        model: Model,
        model_name: str,
        interactive: bool,
        open_child: Callable[..., Awaitable[RunSession]],
        open_placed: Callable[..., Awaitable[RunSession | None]],
        prompts: Prompts,
        part: SubTaskPart | None = None,
    ) -> None:
        self.core = core
        self.journal, self.workspace, self.storage, self.loaded, self.folders = core
        storage, workspace = core.storage, core.workspace
        self.start_folder = start_folder
        self._interactive = interactive
        self._part = part
        self._open_child, self._open_placed = open_child, open_placed
        self.models = ModelAccess(core, model, model_name, shared=part.requests if part else None)
        self._opening_notices: list[str] = []
        self._saying: set[asyncio.Task[None]] = set()
        self._look_later = False
        self._cleaning: asyncio.Task[None] | None = None
        self.prompts = prompts
        self._texts, self._sent = Texts(), ConversationCache()
        #: Never sent to a model; from the folder and the original of a copy.
        copied = part.folder if part else None
        self.secrets = KnownSecrets(str(workspace.root), str(copied or ""), judge=workspace.gate.secrets)
        self._open_files = OpenFiles(core)
        self._freshness = freshness = FreshnessWatch(core, self._open_files)
        #: `None` for a session in memory.
        self.log_path = own = storage.log.path if storage.log else None
        self._shortcuts = SnapshotWriter(core.journal, own, storage.since) if own else None
        self._preparation = Preparation(core, self.models, self._turn_context)
        self._turns = turns = Turns(
            core.journal,
            self._turn_context,
            get_ready=self._preparation.end,
            begins=lambda: asyncio.gather(self.extensions.ready(), self.mcp.ready()),
            tell_level=self.models.notify_level,
            submitted=self._submitted,
            stopping=lambda: self.hooks.stop(),
            after=self._after_turn,
        )
        look = freshness.check_known_files
        self.chat = Chat(core, turns, context=self._turn_context, apart=self._apart, look=look)
        self.files = Files(core, self._open_files, freshness)
        self.review = Review(
            core,
            self._open_files,
            look=self._look,
            complete=turns.batch_complete,
            ask_again=self._ask_again,
            draft=self._draft,
        )
        if part is not None:
            self.review.keep_no_versions()  # a sub-task's applies are not undone
        self.todos = Todos(core.journal)
        self.subtasks = SubTasks(core, self._parent, self.models.renew)
        self.commands = Commands(core, self.review, self.secrets, copied)
        self.mcp = McpServers(core, self.notice)
        self.extensions = Extensions(core, self.commands, self.mcp)
        self.mcp.sample_with(self._sample)
        #: The session's own model while a command's model answers, and that model.
        self._lent_model = "", ""
        self.hooks = Hooks(core, part=part is not None)
        self.review.before_apply = self.hooks.before_apply
        self.checks = Checks(core, self.commands, unasked=part is None)
        freshness.listen(self._on_batch)

    @property
    def state(self) -> State:
        return self.journal.store.state

    @property
    def only(self) -> tuple[Mapping[str, tuple[str, ...]], ...]:
        return self._part.only if self._part else ()

    @cached_property
    def outside_agents(self) -> OutsideAgents:
        from tui_agent.session.outside_agents import OutsideAgents

        return OutsideAgents(self.core, self.review, self.commands.views)

    @cached_property
    def agent_turns(self) -> AgentTurns:
        from tui_agent.session.agent_turns import AgentTurns

        return AgentTurns(self.outside_agents)

    @cached_property
    def goals(self) -> Goals:
        return Goals(self.core, self.chat, self.checks)

    @cached_property
    def pages(self) -> Pages:
        from tui_agent.web.pages import Pages

        return Pages()

    @call(changes=True)
    async def delegate(self, name: str, prompt: str) -> None:
        """Raises `SessionError` during a turn and in mode `ask`."""
        if self.mode == "ask":
            raise SessionError("Agents change files, but the mode is ask", "change the mode first")
        await self._turns.submit_to(self.agent_turns.steps(name, prompt), prompt)

    async def _submitted(self, text: str, unasked: bool) -> str:
        wanted = self.extensions.model_of(text)
        now, (before, lent) = self.models.name, self._lent_model
        if wanted and wanted != now:
            self._lent_model = (before if lent == now else now), wanted
            await self.notice(f"{wanted} answers this message, as its command says")
            await self.models.choose(wanted)
        elif lent and not (wanted or unasked):
            self._lent_model = "", ""
            if now == lent:
                await self.models.choose(before)
        return await self.hooks.submitted(text, unasked)

    async def _look(self) -> None:
        await self._freshness.find_renamed()
        if "outside_agents" in self.__dict__:
            await self.outside_agents.catch_up()

    def _on_batch(self, changes: Sequence[FileChange]) -> None:
        self.checks.on_batch(changes)
        self.review.on_batch(changes)
        self.commands.on_batch(changes)
        if "outside_agents" in self.__dict__:
            self.outside_agents.on_batch(changes)

    @call(changes=False)
    def subscribe(self, listener: Listener) -> Callable[[], None]:
        return self.journal.store.subscribe(listener)

    @call(changes=False)
    async def start_services(self) -> None:
        """Returns immediately. Call after the first frame."""
        await self.notify_opening()
        self.workspace.start()
        if self._look_later:
            self._look_later = False
            await self._freshness.check_everything()
        await self.models.find_key()
        await self.models.notify_retirement()
        self._preparation.start(interactive=self._interactive)
        if self.storage.lock is not None:
            await copies.clear(self.folders.data, self.state.session.id, self.workspace.child)
        if self.storage.log is not None and self._cleaning is None:
            self._cleaning = asyncio.create_task(self._clean(), name="cleaning")
        if self._interactive:
            self.commands.views.start_scan()
            await self.checks.offer()
            await self.commands.places.offer()
            self.mcp.start()
            self.extensions.start()
        self.hooks.start()

    @call(changes=False)
    async def notify_opening(self) -> None:
        sentences, self._opening_notices = self._opening_notices, []
        await self.journal.record(*(e.NoticeGiven("warning", sentence) for sentence in sentences))

    @call(changes=False)
    async def close(
        self,
        within: float | None = None,
        say: Callable[[str], object] = lambda words: None,
        reason: EndReason = "other",
    ) -> None:
        """A failed step does not affect the others. Steps not finished `within` seconds are abandoned; the
        session is still stored and released. `say` receives a message for steps over one second.
        """
        if self.storage.log is not None:
            self.storage.log.sync_at_end()

        def tell(event: e.Event, _: State) -> None:
            if isinstance(event, e.WaitingChanged):
                say(event.waits_for)

        async with AsyncExitStack() as last:
            last.callback(self.subscribe(tell))
            say(self.state.session.waits_for)
            last.enter_context(self.journal.waits.on(SLOW))
            if self.storage.lock is not None:
                last.callback(self.storage.lock.release)
            if self.storage.log is not None:
                last.push_async_callback(asyncio.to_thread, mark_closed, self.storage.log.path)
            last.push_async_callback(self.journal.close)
            last.push_async_callback(asyncio.to_thread, self.storage.blobs.flush)
            with suppress(TimeoutError):
                async with asyncio.timeout(within), AsyncExitStack() as work:
                    work.enter_context(self.journal.waits.on(STILL_RUNS))
                    if self._shortcuts is not None:
                        work.push_async_callback(self._shortcuts.close)
                    work.push_async_callback(self._end_children)
                    work.push_async_callback(self._freshness.close)
                    if self._cleaning is not None:
                        work.push_async_callback(asyncio.wait, [self._cleaning])
                    work.push_async_callback(self.review.close)
                    work.push_async_callback(self._turns.stop)
                    work.push_async_callback(self.chat.close)
                    work.push_async_callback(self.commands.close)
                    work.push_async_callback(self.checks.close)
                    work.push_async_callback(self.hooks.close, reason)
                    work.push_async_callback(self.extensions.close)
                    work.push_async_callback(self.subtasks.close)
                    if "pages" in self.__dict__:
                        work.push_async_callback(self.pages.close)
                    if "outside_agents" in self.__dict__:
                        work.push_async_callback(self.outside_agents.close)
                    if "agent_turns" in self.__dict__:
                        work.push_async_callback(self.agent_turns.close)

    async def _end_children(self) -> None:
        async def end_model() -> None:
            async with AsyncExitStack() as last:
                last.push_async_callback(self.models.close)
                last.push_async_callback(self._preparation.close)
                last.push_async_callback(self.models.end_uploads)

        ending = self.workspace.close(), end_model(), self.mcp.close()
        ended = await asyncio.gather(*ending, return_exceptions=True)
        for fault in filter(None, ended):
            raise fault

    @call(changes=False)
    def set_layout(self, layout: LayoutSlice) -> None:
        if layout != self.state.layout:
            self.journal.grow(e.LayoutChanged(layout))

    @call(changes=True)
    async def rename(self, name: str) -> None:
        await self.journal.record(e.SessionRenamed(name))

    @property
    def mode(self) -> Mode:
        return self.core.mode

    @call(changes=True)
    async def set_mode(self, mode: Mode) -> None:
        if mode != self.mode:
            await self.journal.record(e.ModeChosen(mode))

    @call(changes=True)
    async def carry_out(self) -> None:
        """Begins a turn in mode `edit`. Raises `SessionError` without a plan."""
        if not self.state.has_plan or self.mode != "ask":
            raise SessionError("There is no plan to carry out", "ask for one in mode ask first")
        await self.set_mode("edit")
        await self.chat.submit(CARRY_OUT)

    @call(changes=True)
    async def propose_instructions(self) -> None:
        self.models.check()
        await self.chat.submit(INIT)

    @call(changes=True)
    async def rewind(self, turn: int) -> str:
        """Restores files to before a message, all or none. Returns the id of a copy of the session at that
        time. Raises `SessionError` and `EditFailed`.
        """
        from tui_agent.log.transfer import fork, moved_since

        if self.state.turn.running:
            raise SessionError("A turn is running", "wait, or stop it")
        if self.log_path is None:
            raise SessionError("This session is only in memory", "undo the applies one by one")
        done: list[Checkpoint] = []
        try:
            for point in await asyncio.to_thread(moved_since, self.log_path, turn):
                await (self.review.redo if point.undone else self.review.undo)(point.id)
                done.append(point)
        except TuiAgentError:
            for point in reversed(done):
                await (self.review.undo if point.undone else self.review.redo)(point.id)
            raise
        return (await asyncio.to_thread(fork, self.folders.data, self.state.session.id, turn - 1)).id

    @call(changes=False)
    async def notice(self, text: str, level: Literal["info", "warning", "error"] = "info") -> None:
        """Adds no message to the conversation."""
        await self.journal.record(e.NoticeGiven(level, text))

    @call(changes=False)
    async def resume(self) -> None:
        turn = self.state.turn
        if turn.running:
            sentence = "Interrupted: all so far is saved; send “continue” to resume it."
            ended = e.TurnEnded(turn.number, False, sentence, "Interrupted", stopped=True)
            await self.journal.record(*interruption_events(self.state), ended)
        await self.journal.record(*lost_run_events(self.state), *interrupted(self.state.commands.running))
        await self.models.forget_uploads()
        self.start_warnings(await self.review.heal())
        await self.settle_others()
        await self._open_files.restore()
        self._look_later = True  # after the first frame, when listeners exist

    @call(changes=False)
    def warn_about_unwritten(self) -> None:
        """Reports texts that stay in memory because the disk rejects them."""
        loop = asyncio.get_running_loop()

        def tell(error: FileError) -> None:
            sentence = f"Files that the model sees are only in memory, {error}"
            loop.call_soon_threadsafe(lambda: start_task(self._saying, self.notice(sentence, "warning")))

        self.storage.blobs.on_held = tell

    @call(changes=False)
    async def settle_others(self) -> None:
        if self.storage.lock is not None:
            own, root = self.storage.folder, self.workspace.root
            self.start_warnings(await asyncio.to_thread(repair_others, self.folders.data, root, own))

    @call(changes=False)
    def start_warnings(self, sentences: Sequence[str]) -> None:
        self._opening_notices += sentences

    async def _after_turn(self) -> str:
        if not await self.hooks.proposed():
            await self._auto_apply()
        following = await self.hooks.turn_ended()
        return following or (await self.goals.judge() if self.state.input.goal else "")

    async def _auto_apply(self) -> None:
        await auto_apply(self.core, self.checks, self.review)

    def _parent(self) -> Parent:
        from tui_agent.subtasks.parent import Capacity, Parent
        from tui_agent.tools.propose_changes import rebased_on_current

        settings = self.core.settings
        capacity = self._part.capacity if self._part else Capacity(settings.subtasks.max_parallel)
        return Parent(
            journal=self.journal,
            storage=self.storage,
            workspace=self.workspace,
            settings=settings,
            data=self.folders.data,
            requests=self.models.requests,
            capacity=capacity,
            open_child=partial(self._open_child, self, capacity=capacity),
            open_placed=partial(self._open_placed, self),
            on_newest=lambda change: rebased_on_current(self._turn_context(), change),
            after_run=self._auto_apply,
        )

    @call(changes=True)
    async def stop_everything(self) -> None:
        stops = self.chat.stop(), self.subtasks.stop_all(), self.stop_commands(), self.hooks.stop()
        await asyncio.gather(*stops)

    @call(changes=True)
    async def stop_commands(self) -> None:
        if self.state.input.goal:  # whose checks run between two turns
            await self.goals.pursue("")
        await self.checks.stop()
        await self.commands.stop()

    def _ask_again(self, changes: Sequence[Change]) -> None:
        from tui_agent.turn.continuation import may_ask_again

        conflicts = [change for change in changes if may_ask_again(change)]
        if conflicts and self.mode != "ask" and self.models.name and not self.state.session.rehearsal:
            self._turns.ask_again(conflicts)

    def _turn_context(self) -> TurnContext:
        return TurnContext(
            core=self.core,
            model=self.models.paced(),
            prompts=self.prompts.words,
            start_folder=self.start_folder,
            requests=self.models.requests,
            provider_files=self.models.files(),
            texts=self._texts,
            sent=self._sent,
            secrets=self.secrets,
            part=self._part.handover if self._part else "",
            only=self.only,
            ask=self._turns.ask if self._interactive else None,
            calls=SessionCalls(
                decided=self._turns.decided,
                look=self._freshness.check_known_files,
                run_command=self.commands.for_model,
                isolation=self.commands.isolation,
                run_checks=self.checks.run,
                read_skill=self.extensions.skill,
                read_page=lambda url, again: self.pages.read(url, again=again),
                expand=self.extensions.expanded,
                resources=self.mcp.with_resources,
                servers=self.mcp.calls,
                hooks=self.hooks.calls,
                notify=lambda text: self.notice(text, "warning"),
            ),
        )

    async def _clean(self) -> None:
        from tui_agent.log.cleanup import keep_within

        said = await asyncio.to_thread(keep_within, self.folders.data, self.core.settings.undo.max_bytes)
        if said:
            await self.notice(said)
        await copies.clear_leftovers(self.folders.data, self.workspace.child)

    async def _draft(self, changes: str) -> str:
        from tui_agent.turn.beside import draft_message

        return await draft_message(await self._apart(), changes, self.journal.record)

    async def _sample(self, system: str, messages: Sequence[dict[str, str]], most: int) -> str:
        from tui_agent.turn.beside import answer_server

        return await answer_server(self._turn_context(), system, messages, most, self.journal.record)

    async def _apart(self) -> TurnContext:
        await self.models.get_ready()
        return with_fields(self._turn_context(), model=self.models.without_limit(), requests=Allowance())
