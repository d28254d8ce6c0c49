"""Filterable lists about the session, its configuration and this machine."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator, Sequence
from typing import TYPE_CHECKING

from textual.app import App

from tui_agent import __version__
from tui_agent.errors import TuiAgentError
from tui_agent.log import catalog, directory
from tui_agent.log.log import timed_events_of
from tui_agent.settings.loading import setting_lines
from tui_agent.store.commands import CommandsSlice
from tui_agent.ui.dialogs.chooser import Chooser, ChooserRow
from tui_agent.ui.dialogs.dialog import TextDialog
from tui_agent.ui.graph.facts import dollars, short_count
from tui_agent.ui.safe_text import clean, counted, one_line, parts
from tui_agent.ui.widgets.command_output import outcome

if TYPE_CHECKING:
    from tui_agent.session.session import Session
    from tui_agent.ui.host import Host

Fact = tuple[str, str]
_INKS = {"ok": "$success", "note": "$warning", "problem": "$error"}


async def _choose(
    app: App[object],
    title: str,
    facts: Sequence[Fact] | Coroutine[None, None, Sequence[Fact]],
    to_type: str = "type to filter",
) -> str | None:
    found: list[Fact] = []

    async def get() -> None:
        found.extend(await facts if isinstance(facts, Coroutine) else facts)

    def rows(words: str) -> list[ChooserRow]:
        width = max((len(name) for name, _ in found), default=0)
        return [
            ChooserRow(
                name, parts((f"{one_line(name):<{width}}  ", _INKS.get(name, "$accent")), one_line(text))
            )
            for name, text in found
            if words.strip().lower() in f"{name} {text}".lower()
        ]

    return await app.push_screen_wait(Chooser(title, rows, to_type, get()))


async def show_settings(app: App[object], session: Session) -> None:
    lines = (line.partition(" = ") for line in setting_lines(session.loaded))
    await _choose(app, "Settings", [(name, value) for name, _, value in lines])


async def show_status(app: App[object], session: Session) -> None:
    await _choose(app, "Status", list(status_facts(session)))


def status_facts(session: Session) -> Iterator[Fact]:
    state = session.state
    yield "tui-agent", __version__
    yield "session", f"{state.session.id} {state.session.name}".rstrip()
    yield "folder", f"{session.workspace.root}{'' if state.session.trusted else ', not trusted'}"
    if state.workspace.is_repository:
        yield "branch", state.workspace.branch
    yield "model", session.models.name or "none"
    yield "planner", state.model.planner or session.loaded.settings.planner_model or "the model"
    yield "mode", session.mode
    yield "sub-tasks", f"{len(state.subtasks.tasks)}, begin: {session.loaded.settings.subtasks.begin}"
    window = f" of {state.model.window:,}" if state.model.window else ""
    yield "context", f"{state.usage.context:,} tokens{window}"
    used = state.usage.session
    price = "" if used.cost is None else f", {dollars(used.cost) or '$0'}"
    yield "this session", f"{short_count(used.input)} tokens in, {short_count(used.output)} out{price}"
    yield (
        "changes",
        f"{state.review.undecided} to decide, applied {counted(len(state.review.checkpoints), 'time')}",
    )
    yield "checks", ", ".join(mark.words for mark in state.check_marks) or "none ran"
    yield "skills", str(len(session.extensions.skills) or "none")
    yield "servers", ", ".join(server.name for server in session.mcp.servers if server.on) or "none"
    if state.input.goal:
        yield "goal", state.input.goal


async def show_doctor(app: App[object], session: Session) -> None:
    async def get() -> list[Fact]:
        from tui_agent.session.doctor import examine, report_lines

        try:
            return list(report_lines(await examine(session.workspace.root, session.folders)))
        except TuiAgentError as error:
            return [("problem", str(error))]

    await _choose(app, "Installation", get())


async def show_stats(app: App[object], session: Session) -> None:
    await _choose(app, "Statistics of this folder's sessions", asyncio.to_thread(_figures, session))


def _figures(session: Session) -> list[Fact]:
    """Blocking."""
    from tui_agent.log.stats import Figures, figures_over_time

    data, total = session.folders.data, Figures()
    for entry in catalog.list_sessions(data, session.workspace.root):
        try:
            log = directory.existing(data, entry.id) / directory.LOG
            total = total.plus(figures_over_time(timed_events_of(log, []), entry.id))
        except TuiAgentError:
            continue
    return list(total.in_words())


async def choose_instructions(app: App[object], session: Session) -> None:
    files = [
        (
            file.path,
            f"ignored: {file.left_out}" if file.left_out else f"{file.why}, {file.tokens:,} tokens",
        )
        for file in session.state.instructions
    ]
    none = [("none", "no files yet: the first message loads AGENTS.md and similar files; /init proposes one")]
    chosen = await _choose(app, "Instructions of the model", files or none, "{choose} opens the file")
    if chosen and files:
        await session.files.open(chosen)


async def show_servers(app: App[object], session: Session) -> None:
    async def get() -> list[Fact]:
        await session.mcp.read()
        facts = []
        for server in session.mcp.servers:
            offer = session.mcp.offers.get(server.name)
            tools = counted(len(offer.tools), "tool") if offer else "not listed yet"
            theirs = " · of this workspace" if server.origin == "project" else ""
            facts.append((server.name, f"{'on' if server.on else 'off'} · {tools} · {server.shown}{theirs}"))
        none = [("none", "write [mcp.servers.NAME] in your settings, or run `tui-agent mcp import`")]
        return [*(facts or none), *(("left out", sentence) for sentence in session.mcp.problems)]

    await _choose(app, "MCP servers", get())


async def choose_hooks(app: App[object], session: Session) -> None:
    from tui_agent.extensions.hooks import switch

    await session.hooks.read()
    hooks = session.hooks.all
    facts = [(hook.name, f"{hook.off or 'on'} · {hook.shown}") for hook in hooks]
    none = [("none", "write [hooks.NAME] in your settings, or bring them in ~/.claude/settings.json")]
    problems = [("left out", sentence) for sentence in session.hooks.problems]
    hint = "{choose} switches one of a settings.json on or off"
    chosen = await _choose(app, "Hooks", [*(facts or none), *problems], hint)
    hook = next((one for one in hooks if one.name == chosen), None)
    if hook is None:
        return
    if hook.origin == "user":
        await session.notice(
            f"{hook.name} is yours: `enabled = false` in [hooks.{hook.name}] switches it off"
        )
        return
    root, folders = session.workspace.root, session.folders
    hook = await asyncio.to_thread(switch, root, folders, hook.name, bool(hook.off))
    await session.hooks.again()
    await session.notice(f"{hook.name} is {'off' if hook.off else 'on'}: {hook.shown}")


async def choose_agent(app: App[object], session: Session) -> None:
    async def get() -> list[Fact]:
        await session.extensions.read()
        programs = await asyncio.to_thread(session.outside_agents.summaries)
        prompts = [
            (key, f"prompt for sub-tasks · {agent.model or 'the model in use'} · {agent.description}")
            for key, agent in session.extensions.agents.items()
        ]
        return [*prompts, *((name, f"program · {words}") for name, words in programs.items())]

    chosen = await _choose(app, "Agents: prompts for sub-tasks, and programs", get(), "{choose} uses one")
    if chosen:
        is_prompt = chosen in session.extensions.agents
        session.chat.set_draft(
            f"Let the agent {chosen} do a sub-task: " if is_prompt else f"/agent {chosen} "
        )


async def choose_skill(app: App[object], session: Session) -> None:
    async def get() -> list[Fact]:
        await session.extensions.read()
        skills = session.extensions.skills.items()
        return [(name, skill.description) for name, skill in skills] or none

    none = [("none", "write .agents/skills/NAME/SKILL.md here, or in your home folder for all folders")]
    chosen = await _choose(app, "Skills", get(), "{choose} inserts one into the prompt")
    if chosen in session.extensions.skills:
        session.chat.set_draft(f"/{chosen} ")


async def show_commands(app: Host, session: Session) -> None:
    if not session.state.commands.running and not session.state.commands.results:
        await session.notice("No command has run yet: type one in the chat, such as !pytest", "info")
        return
    choose = app.keys.shown("chooser.choose")
    while chosen := await app.push_screen_wait(
        Chooser(
            f"Commands: {choose} shows the output",
            lambda words: command_rows(session.state.commands, words),
            following=session.subscribe,
        )
    ):
        await app.push_screen_wait(TextDialog("Output", _output(session, chosen), keep=""))


async def _output(session: Session, command: str) -> str | None:
    try:
        return clean(await asyncio.to_thread(session.commands.whole_output, command))
    except TuiAgentError as error:
        await session.notice(str(error), "warning")
        return None


def command_rows(commands: CommandsSlice, words: str) -> list[ChooserRow]:
    rows = [
        ChooserRow("", parts(("● ", "$running"), f"{one.command}  ", (one.line, "$muted")))
        for one in reversed(commands.running)
        if words.lower() in one.command.lower()
    ]
    for one in reversed(commands.results):
        if words.lower() in one.command.lower():
            mark = ("✓ ", "$success") if one.ok else ("✗ ", "$error")
            rows.append(
                ChooserRow(one.id, parts(mark, f"{one.command}  ", (" · ".join(outcome(one)), "$muted")))
            )
    return rows
