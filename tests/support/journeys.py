"""A session that works with strict servers through everything that rewrites its history; a seed decides all of it.

outcome = await travel(folder, ("anthropic", "claude-opus-5-5", "auto"), seed=1)
assert outcome.faults == []
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from support.repositories import repository
from support.strict import Call, Reply, Say, StrictServer, Think, View
from support.strict.reply import Part

from tui_agent.log.transfer import fork
from tui_agent.model.client import Model, ModelRequest
from tui_agent.session import opening
from tui_agent.session.opening import Opening
from tui_agent.session.session import Session

#: Provider and model of each kind of journey, and the transport.
KINDS: tuple[tuple[str, str, str], ...] = (
    ("openai", "gpt-5.4", "auto"),
    ("openai", "gpt-6-sol", "auto"),
    ("openai", "gpt-5.3-codex", "auto"),
    ("openai", "gpt-4.1", "auto"),
    ("anthropic", "claude-opus-5-5", "auto"),
    ("anthropic", "claude-sonnet-5-5", "auto"),
    ("anthropic", "claude-opus-4-8", "auto"),
    ("anthropic", "claude-sonnet-4-6", "auto"),
    ("anthropic", "claude-haiku-4-5", "auto"),
    ("gemini", "gemini-3-pro-preview", "auto"),
    ("gemini", "gemini-2.5-flash", "auto"),
    ("deepseek", "deepseek-v4-pro", "auto"),
    ("mistral", "mistral-medium-latest", "auto"),
    ("mistral", "devstral-latest", "auto"),
    ("openrouter", "google/gemini-3-pro", "auto"),
    ("openrouter", "anthropic/claude-opus-5.5", "auto"),
    ("openrouter", "openai/gpt-5.4", "auto"),
    ("groq", "openai/gpt-oss-120b", "auto"),
    ("xai", "grok-4.5", "auto"),
    ("moonshot", "kimi-k3", "auto"),
    ("zai", "glm-5.3", "auto"),
    ("minimax", "MiniMax-M3", "auto"),
    ("dashscope", "qwen3-max", "auto"),
    ("anthropic", "claude-opus-5-5", "litellm"),
    ("anthropic", "claude-sonnet-4-6", "litellm"),
    ("openai", "gpt-4.1", "litellm"),
    ("gemini", "gemini-3-flash-preview", "litellm"),
    ("deepseek", "deepseek-v4-pro", "litellm"),
    ("mistral", "mistral-medium-latest", "litellm"),
    ("openrouter", "anthropic/claude-opus-5.5", "litellm"),
    ("groq", "openai/gpt-oss-120b", "litellm"),
)
PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
PATIENCE_SECONDS = 60.0
FILES = {f"{name}.py": f"def {name}(url):\n    return get(url)\n" * 30 for name in ("api", "client", "store")}
#: Requests that look for a local server: the strict servers are on loopback, the providers are not.
_PROBES = ("GET /api/version", "anthropic-version: header is required")


class Author:
    """Decides replies as a model would that reads, changes, errs, splits work and thinks in between.

    The same seed and the same request give the same reply.
    """

    def __init__(self, seed: str) -> None:
        self._seed = seed

    def __call__(self, view: View) -> Reply:
        made = Random(f"{self._seed}:{view.turns}:{len(view.results)}:{view.text[-200:]}")
        word = f"{made.randrange(10**9):09}"
        if not view.tools:
            return Reply((Think(f"Thought {word}."), Say(self._without_tools(view, word))))
        names = [name for name, _ in view.results]
        if "Split" in view.text and "spawn_subtasks" not in names:
            task = {"id": f"p{word}", "goal": "Part of the work", "files": ["api.py"], "autoExecute": True}
            return Reply(
                (Think(f"Split {word}."), Say(f"Parts {word}."), Call("spawn_subtasks", {"subTasks": [task]}))
            )
        if not names or (len(names) < 2 and made.random() < 0.4):
            return Reply(self._look(made, word))
        if "propose_changes" not in names and made.random() < 0.7:
            change = {"path": f"new_{word}.py", "content": f"VALUE = {word}\n" * 20}
            listed: tuple[Part, ...] = (
                (Call("list_directory", {"requests": [{"path": "."}]}),) if made.random() < 0.5 else ()
            )
            return Reply((Think(f"Change {word}."), Call("propose_changes", {"changes": [change]}), *listed))
        thought: tuple[Part, ...] = (Think(f"End {word}."),) if made.random() < 0.8 else ()
        return Reply((*thought, Say(f"Done {word}.")))

    def _look(self, made: Random, word: str) -> tuple[Part, ...]:
        """Calls at once, some of which fail, with thinking before and between."""
        file = {
            "type": "file",
            "name": "A file",
            "patterns": [made.choice([*FILES, "missing.py"])],
            "required": False,
        }
        calls: list[Part] = [
            Call("read_files", {"actions": [file | {"fallbackAction": "skip"}]}),
            Call("search_text", {"pattern": made.choice(["def", "nothing like it", "get"])}),
            Call("list_directory", {"requests": [{"path": made.choice([".", "absent"])}]}),
        ]
        made.shuffle(calls)
        chosen = calls[: made.randint(1, 3)]
        between: tuple[Part, ...] = (Think(f"Also {word}."),) if made.random() < 0.5 else ()
        return (Think(f"Look {word}."), Say(f"I look {word}."), *between, *chosen)

    def _without_tools(self, view: View, word: str) -> str:
        if "patterns" in view.system:
            action = {
                "type": "file",
                "name": "The file",
                "patterns": ["api.py"],
                "reason": word,
                "required": False,
            }
            return json.dumps({"actions": [action | {"fallbackAction": "skip"}]})
        if view.schema or "JSON object of this schema" in view.system:
            change = {"path": f"new_{word}.py", "content": f"VALUE = {word}\n" * 20}
            return json.dumps({"summary": f"Done {word}.", "fileChanges": [change]})
        return f"Summary {word}: the files were looked at and changed."


@dataclass
class Journey:
    """The outcome of a journey: broken rules, failed turns, and counts that differ from the servers'."""

    violations: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    losses: list[str] = field(default_factory=list)
    requests: int = 0
    usage: tuple[int, int, int] = (0, 0, 0)
    counted: tuple[int, int, int] = (0, 0, 0)
    cost: float | None = None

    @property
    def faults(self) -> list[str]:
        wrong = [] if self.usage == self.counted else [f"counted {self.usage}, the server {self.counted}"]
        return [*self.violations, *self.failures, *wrong]


async def travel(folder: Path, kind: tuple[str, str, str], seed: int, steps: int = 6) -> Journey:
    """Run a session of `steps` random steps with the model of `kind`. `folder` is empty and of this journey alone."""
    provider, model, transport = kind
    made, outcome = Random(f"{kind}:{seed}"), Journey()
    author = Author(f"{kind}:{seed}")
    other = made.choice([one for one in KINDS if one[0] != provider and one[2] == transport])
    workspace = repository(folder / "work", FILES)
    with ExitStack() as stack:
        server = stack.enter_context(StrictServer(provider, brain=author, model=model))
        second = stack.enter_context(StrictServer(other[0], brain=author, model=other[1]))
        variables = {**second.environment, **server.environment, "TUI_AGENT_HOME": str(folder / "home")}
        stack.enter_context(environment(variables))
        name = f"{provider}/{model}"
        settings = [
            f"model={name}",
            f"models.transport={transport}",
            "subtasks.begin=auto",
            f"planner_model={made.choice(['', 'none'])}",
            f"protocol={made.choices(['auto', 'structured'], [4, 1])[0]}",
            f"effort={made.choice(['auto', 'auto', 'none', 'low', 'medium', 'high', 'max'])}",
        ]
        session = await opened(workspace, settings)
        kinds = [
            "turn",
            "turn",
            "resume",
            "compact",
            "apply",
            "fork",
            "switch",
            "split",
            "draft",
            "picture",
            "effort",
        ]
        plan = ["turn", *made.choices(kinds, k=steps - 2), "turn"]
        pictures = []  # asked beside the session, which does not count them
        for number, step in enumerate(plan):
            async with asyncio.timeout(PATIENCE_SECONDS):
                await session.subtasks.settled()
                await session.chat.finished()
            match step:
                case "resume" | "fork":
                    taken = session.state.session.id
                    await session.close()
                    if step == "fork":
                        taken = fork(folder / "home" / "data", taken).id
                    session = await opened(workspace, settings, taken)
                case "compact":
                    if len(session.state.conversation.messages) > 2:
                        await session.chat.compact()
                case "apply":
                    if session.state.review.open:
                        await session.review.apply()
                case "effort":
                    await session.models.set_effort(made.choice(["none", "low", "high", "max"]))
                case "draft":
                    (workspace / "api.py").write_text(f"# {number}\n")
                    await session.review.draft_commit(await session.review.commit_plan())
                case "picture":
                    before = len(server.counted)
                    await _picture(session, name)
                    pictures += server.counted[before:]
                case "switch":
                    await session.models.choose(f"{other[0]}/{other[1]}")
                    await _turn(session, f"Look at number {number}", outcome)
                    await session.models.choose(name)
                case _:
                    words = "Split the work" if step == "split" else f"Please do number {number} in api.py"
                    await _turn(session, words, outcome)
        async with asyncio.timeout(PATIENCE_SECONDS):
            await session.subtasks.settled()
            await session.chat.finished()
        used = session.state.usage.session
        await session.close()
        for one in (server, second):
            outcome.violations += [it for it in one.violations if not any(probe in it for probe in _PROBES)]
            outcome.losses += one.losses
            outcome.requests += len(one.requests)
        counted = [it for it in (*server.counted, *second.counted) if not any(it is one for one in pictures)]
        outcome.counted = tuple(sum(it[key] for it in counted) for key in ("input", "output", "cached"))
        outcome.usage, outcome.cost = (used.input, used.output, used.cached), used.cost
    return outcome


async def opened(workspace: Path, settings: Sequence[str], session: str = "") -> Session:
    opened = await opening.open_session(Opening(workspace, overrides=tuple(settings), session=session))
    await opened.start_services()
    await opened.files.ready()
    return opened


async def _turn(session: Session, words: str, outcome: Journey) -> None:
    await session.chat.submit(words)
    async with asyncio.timeout(PATIENCE_SECONDS):
        await session.chat.finished()
    if not session.state.turn.ok:
        outcome.failures.append(f"{words}: {session.state.turn.error}")


async def _picture(session: Session, name: str) -> None:
    """A picture as a part of a message; how a person attaches one is not built yet."""
    image = {"media_type": "image/png", "data": PICTURE}
    message = {"role": "user", "content": "Look at this", "images": [image]}
    model: Model = session.models.model
    async for _ in model.stream(ModelRequest(name, (message,), effort="low")):
        pass


@contextmanager
def environment(values: Mapping[str, str]) -> Generator[None]:
    before = dict(os.environ)
    os.environ.update(values)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
