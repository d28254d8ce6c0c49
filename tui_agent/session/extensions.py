"""Skills, commands and agents of a session, read when the first turn needs them.

The first request fixes the list of skills, since a changed prompt would cost the provider's cached
prefix.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from tui_agent.errors import SessionError
from tui_agent.files.names import display_path
from tui_agent.log.core import Core, call
from tui_agent.session.commands import Commands
from tui_agent.session.mcp_servers import McpServers
from tui_agent.store import events as e
from tui_agent.store.state import State

if TYPE_CHECKING:
    from tui_agent.extensions.files import Problem
    from tui_agent.extensions.markdown_files import AgentPrompt, Command, Skill
    from tui_agent.extensions.trusted import TrustedFiles

#: Seconds for a command in a command file, and maximum characters of its output.
COMMAND_WITHIN, MOST_OUTPUT = 60.0, 20_000
MOST_REASONS = 8
_CALLED = re.compile(r"/([\w.:-]+)(?:\s+(.*))?", re.DOTALL)


class Extensions:
    def __init__(self, core: Core, commands: Commands, servers: McpServers) -> None:
        self._core, self._commands, self._servers = core, commands, servers
        self._loading: asyncio.Task[None] | None = None
        self._trusted: TrustedFiles | None = None
        #: Omitted files by the word that would have called them.
        self._left_out: dict[str, Problem] = {}
        #: Words of the front end, which take precedence.
        self.built_in: frozenset[str] = frozenset()
        #: Empty until loaded.
        self.skills: dict[str, Skill] = {}
        self.commands: dict[str, Command] = {}
        self.agents: dict[str, AgentPrompt] = {}

    @property
    def state(self) -> State:
        return self._core.state

    @call(changes=False)
    def start(self) -> None:
        if self._loading is None:
            self._loading = asyncio.create_task(self._load(), name="extensions")

    @call(changes=False)
    async def read(self) -> None:
        self.start()
        assert self._loading is not None
        await asyncio.shield(self._loading)

    @call(changes=False)
    async def close(self) -> None:
        if self._loading is not None:
            self._loading.cancel()
            await asyncio.gather(self._loading, return_exceptions=True)

    @call(changes=False)
    async def ready(self) -> None:
        """Fixes the lists before a first request."""
        await self.read()
        if self.state.conversation.messages:
            return
        listed = tuple((skill.key, skill.description) for skill in self.skills.values() if not skill.hidden)
        if listed and not self.state.skills:
            await self._core.journal.record(e.SkillsListed(listed))
        if self.agents and not self.state.agents and self._core.settings.subtasks.max_depth:
            listed = tuple((agent.key, agent.description) for agent in self.agents.values())
            await self._core.journal.record(e.AgentsListed(listed))

    @call(changes=False)
    def names(self) -> dict[str, tuple[str, str]]:
        prompts = self._servers.prompts().items()
        found = {name: (words, f"prompt of {name.partition(':')[0]}") for name, words in prompts}
        for name, (kind, one) in self._reached().items():
            whose = "yours" if one.origin == "user" else "of this workspace"
            hint = f"{one.hint} · " if one.hint else ""
            found[name] = f"{hint}{one.description}", f"{kind}, {whose}"
        return found

    def _reached(self) -> dict[str, tuple[str, Command | Skill]]:
        found: dict[str, tuple[str, Command | Skill]] = {}
        for kind, things in (("command", self.commands), ("skill", self.skills)):
            for key, one in things.items():
                names = key, f"{one.origin}:{key}", f"{kind}:{key}"
                free = next((name for name in names if name not in found and name not in self.built_in), key)
                found[free] = kind, one
        return found

    @call(changes=False)
    def may_have(self, name: str) -> bool:
        """`True` until they are read, which this begins."""
        self.start()
        loaded = self._loading is not None and self._loading.done()
        return not loaded or name in self.names() or name in self._left_out

    @call(changes=False)
    async def skill(self, name: str, path: str = "") -> str:
        """Returns the skill's instructions, or its file `path`. Raises `TuiAgentError`."""
        from tui_agent.extensions import markdown_files

        found = self.skills.get(name)
        if found is None or self._trusted is None:
            raise markdown_files.unknown_skill(name, self.skills.values())
        if path:
            return await asyncio.to_thread(markdown_files.skill_file, found, path, self._trusted)
        return await asyncio.to_thread(markdown_files.skill_body, found, self._trusted)

    @call(changes=False)
    def model_of(self, text: str) -> str:
        called = _CALLED.fullmatch(text.strip())
        kind, found = self._reached().get(called[1], ("", None)) if called else ("", None)
        return self.commands[found.key].model if kind == "command" and found else ""

    @call(changes=False)
    async def expanded(self, text: str, check: Callable[[str], Awaitable[None]]) -> str:
        """The message of a command or skill, or the same text. `check` raises if a command of its text may not run.
        Raises `TuiAgentError`."""
        called = _CALLED.fullmatch(text.strip())
        if called is None:
            return text
        name, arguments = called[1], (called[2] or "").strip()
        reached = self._reached()
        origin, _, rest = name.partition(":")
        kind, found = reached.get(name) or reached.get(rest) or ("", None)
        if found is not None and (name in reached or found.origin == origin):
            from tui_agent.extensions.markdown_files import expanded

            if kind == "skill":
                skill, text = self.skills[found.key], await self.skill(found.key)
                if skill.takes_arguments:
                    text = await expanded(text, arguments, skill.arguments)
                else:
                    text = f"{text}\n\n{arguments}".strip()
                return f"Use this skill, {found.key}:\n\n{text}"
            command = self.commands[found.key]
            text = await expanded(command.body, arguments, command.names, partial(self._output, check))
            files, left_out = await asyncio.to_thread(command.own_files)
            await self._core.journal.record(*(e.NoticeGiven("warning", one) for one in left_out))
            return "\n\n".join(filter(None, (text, files)))
        if name in self._servers.prompts():
            return await self._servers.prompt(name, arguments)
        if name in self._left_out:
            raise SessionError(
                f"/{name} cannot be used ({self._left_out[name]})", "correct the file, or its name"
            )
        return text

    async def _output(self, check: Callable[[str], Awaitable[None]], command: str) -> str:
        await check(command)
        result = await self._commands.for_model(command, COMMAND_WITHIN)
        if not result.ok:
            raise SessionError(
                f"`{command}` of the command file ended with {result.status}",
                "correct the file, or the command",
            )
        return result.output.strip()[:MOST_OUTPUT]

    async def _load(self) -> None:
        await self._servers.read()
        sentences = await asyncio.to_thread(self._read)
        await self._core.journal.record(*(e.NoticeGiven("warning", one) for one in sentences))

    def _read(self) -> list[str]:
        from tui_agent.extensions.files import places
        from tui_agent.extensions.markdown_files import read_agents, read_commands, read_skills
        from tui_agent.extensions.trusted import TrustedFiles

        folders, root = self._core.folders, self._core.workspace.root
        of_skills, of_commands = places("skills", folders, root), places("commands", folders, root)
        of_agents = places("agents", folders, root)
        if not (of_skills or of_commands or of_agents):
            return []
        self._trusted = trusted = TrustedFiles(root, folders)
        skills, problems, withheld = read_skills(of_skills, trusted)
        commands, others = read_commands(of_commands, trusted, self._models())
        agents, more = read_agents(of_agents, trusted, self._models())
        self.agents = {agent.key: agent for agent in agents}
        self.skills = {skill.key: skill for skill in skills}
        roots = [str(place.root) for place in of_skills if place.origin == "user"]
        linked = [str(skill.folder) for skill in skills if skill.origin == "user"]
        self._commands.views.skills = (*roots, *linked) if linked else ()
        self.commands = {command.key: command for command in commands}
        left_out = (*problems, *others, *more)
        self._left_out = {problem.called: problem for problem in left_out if problem.called}
        said = _sentences(left_out)
        if other := [name for name, (_, one) in self._reached().items() if name != one.key]:
            names = ", ".join(f"/{name}" for name in other[:5])
            said.append(f"Names that are taken already are reached with their origin: {names}")
        if withheld:
            names = ", ".join(display_path(str(path.parent.name)) for path in withheld[:5])
            said.append(f"This workspace has untrusted skills ({names}): /trust shows them")
        return said

    def _models(self) -> list[str]:
        settings = self._core.settings
        named = self.state.model.name, settings.model, settings.planner_model, *settings.models.fallbacks
        return [name for name in dict.fromkeys(named) if name not in ("", "none")]


def _sentences(problems: Sequence[Problem]) -> list[str]:
    reasons: dict[str, list[Problem]] = {}
    for problem in problems:
        reasons.setdefault(problem.why, []).append(problem)
    said = []
    for why, found in reasons.items():
        names = ", ".join(display_path("/".join(one.path.parts[-2:])) for one in found[:20])
        more = f" and {len(found) - 20:,} more" if len(found) > 20 else ""
        said.append(f"Left out: {found[0] if len(found) == 1 else f'{why}: {names}{more}'}")
    rest = len(said) - MOST_REASONS
    return said if rest <= 0 else [*said[:MOST_REASONS], f"Left out for {rest} other reasons: more files"]
