"""Runs tasks as a user does: `tui-agent run` in a process of its own, or one session with a message for each task.

Each run has a copy of the repository. A person says `continue` if the hidden tests do not pass yet.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from support.program import json_lines, of_type, run
from support.strict.server import StrictServer

from tests.tasks.model import ScriptedModel
from tests.tasks.task import Repository, Task, contents, judged, wrong_edits
from tui_agent import errors
from tui_agent.log import directory
from tui_agent.log.log import timed_events_of
from tui_agent.log.stats import Figures, figures_over_time
from tui_agent.session.opening import Opening, open_session

MODEL = "gpt-4.1"
#: Messages that a person writes for a task before giving it up.
MOST_TURNS = 4
PATIENCE_SECONDS = 900.0
#: A line that the person writes at the end of a file while the model works on it.
LINES = {"py": "# seen", "ts": "// seen", "go": "// seen", "sh": "# seen"}


@dataclass
class Outcome:
    """The result of a task: `solved` is None without a compiler; `turns` are messages of the person."""

    repository: str
    task: str
    solved: bool | None = False
    turns: int = 0
    requests: int = 0
    seconds: float = 0.0
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float | None = None
    questions: int = 0
    wrong: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    #: Sentences of messages that ended with an error.
    faults: list[str] = field(default_factory=list)
    #: Files in which a line that a person wrote beside the model is missing.
    lost: list[str] = field(default_factory=list)
    figures: Figures = field(default_factory=Figures)


def variables(home: Path, more: Mapping[str, str]) -> dict[str, str]:
    return {"TUI_AGENT_HOME": str(home), "CI": "true", "PYTHONDONTWRITEBYTECODE": "1", **more}


def arguments(repository: Repository, model: str, protocol: str) -> list[str]:
    checks = json.dumps([{"name": "tests", "command": repository.checks}])
    configured = ["--set", f"checks.commands={checks}"] if repository.checks else []
    return [
        "run",
        "--json",
        "--apply",
        "checked" if repository.checks else "all",
        "--model",
        model,
        "--protocol",
        protocol,
        *configured,
    ]


def meddler(root: Path, repository: Repository, written: list[str]) -> Callable[[str], None]:
    """A person who adds a line to a file that is being changed."""

    def meddle(path: str) -> None:
        line = LINES.get(path.rpartition(".")[2])
        if line and path not in written:
            with (root / path).open("ab") as file:
                file.write(f"{line}{chr(13) if repository.legacy else ''}\n".encode())
            written.append(path)

    return meddle


def headless(
    repository: Repository, task: Task, folder: Path, home: Path, seed: int, protocol: str
) -> Outcome:
    """One task by `tui-agent run`, with the scripted model behind a strict server."""
    root = repository.write(_fresh(folder / task.name))
    outcome, written = Outcome(repository.name, task.name), []
    model = ScriptedModel(repository.tasks, seed, meddle=meddler(root, repository, written))
    with StrictServer("openai", brain=model, model=MODEL) as server:
        one_task(repository, task, root, home, f"openai/{MODEL}", protocol, server.environment, outcome)
        outcome.faults += server.violations
    outcome.errors = list(dict.fromkeys(model.errors))
    outcome.lost = [path for path in written if "seen" not in (root / path).read_text("latin-1")]
    return outcome


def one_task(
    repository: Repository,
    task: Task,
    root: Path,
    home: Path,
    model: str,
    protocol: str,
    environment: Mapping[str, str],
    outcome: Outcome,
    most: int = MOST_TURNS,
) -> None:
    """Runs a task to its end with any model, and fills in the outcome."""
    words, begun = arguments(repository, model, protocol), time.monotonic()
    prompt, more, session = task.prompt, [], ""
    while outcome.turns < most:
        outcome.turns += 1
        done = run(
            *words,
            *more,
            prompt,
            folder=root,
            environment=variables(home, environment),
            patience=PATIENCE_SECONDS,
        )
        if not done.stdout:
            outcome.faults.append(done.stderr.strip()[-300:])
            break
        lines = json_lines(done)
        (root.parent / f"{root.name}-{outcome.turns}.jsonl").write_text(done.stdout)
        session = lines[0]["id"]
        outcome.requests += len(of_type(lines, "request"))
        if not lines[-1]["ok"]:
            outcome.faults.append(str(lines[-1]["error"]))
        outcome.solved = judged(repository, task, root)
        if outcome.solved is not False:
            break
        prompt, more = "continue", ["--session", session]
    outcome.seconds = time.monotonic() - begun
    outcome.wrong = wrong_edits(repository, task, root)
    if session:
        take(outcome, figures_of(home, session))


def figures_of(home: Path, session: str) -> Figures:
    log = directory.existing(home / "data", session) / directory.LOG
    return figures_over_time(timed_events_of(log, []), session)


def take(outcome: Outcome, figures: Figures) -> None:
    outcome.figures, outcome.questions = figures, figures.questions
    spent = [
        sum(count for (by, _), count in counts.items() if by == "session")
        for counts in (figures.tokens_in, figures.tokens_out)
    ]
    outcome.tokens_in, outcome.tokens_out = spent
    costs = [cost for (by, _), cost in figures.cost.items() if by == "session"]
    outcome.cost = None if any(by == "session" for by, _ in figures.unpriced) else sum(costs)


async def in_one_session(
    repository: Repository, folder: Path, home: Path, seed: int
) -> tuple[list[Outcome], Figures]:
    """All tasks of a repository in one session, by its interface: message, review, apply, next message."""
    root, written, outcomes = repository.write(_fresh(folder / repository.name)), [], []
    model = ScriptedModel(repository.tasks, seed, meddle=meddler(root, repository, written))
    checks = json.dumps([{"name": "tests", "command": repository.checks}])
    overrides = [f"model=openai/{MODEL}", *([f"checks.commands={checks}"] if repository.checks else [])]
    with (
        StrictServer("openai", brain=model, model=MODEL) as server,
        _environment(variables(home, server.environment)),
    ):
        session = await open_session(Opening(root, overrides=tuple(overrides)))
        try:
            await session.start_services()
            await session.files.ready()
            for task in repository.tasks:
                outcome, before, begun = Outcome(repository.name, task.name), model.requests, time.monotonic()
                used = session.state.usage.session
                prompt, files = task.prompt, contents(root)
                while outcome.turns < MOST_TURNS and outcome.solved is False:
                    outcome.turns += 1
                    await session.chat.submit(prompt)
                    await session.chat.finished()
                    await session.checks.settled()
                    if not session.state.turn.ok:
                        outcome.faults.append(session.state.turn.error)
                    try:
                        await session.review.apply()
                    except errors.TuiAgentError as error:
                        outcome.faults.append(str(error))
                    outcome.solved = judged(repository, task, root)
                    prompt = "continue"
                outcome.wrong = wrong_edits(repository, task, root, before=files)
                outcome.errors, model.errors = list(dict.fromkeys(model.errors)), []
                outcome.lost = [
                    path
                    for path in written
                    if (root / path).exists() and "seen" not in (root / path).read_text("latin-1")
                ]
                outcome.requests, outcome.seconds = model.requests - before, time.monotonic() - begun
                outcomes.append(outcome)
                outcome.tokens_in = session.state.usage.session.input - used.input
                outcome.tokens_out = session.state.usage.session.output - used.output
            name = session.state.session.id
        finally:
            await session.close()
        outcomes[-1].faults += server.violations
    return outcomes, figures_of(home, name)


@contextmanager
def _environment(values: Mapping[str, str]):
    kept = dict(os.environ)
    os.environ.update(values)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(kept)


def _fresh(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder
