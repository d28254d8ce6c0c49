"""Real projects: their checks are found, a right change passes beside a red test, a wrong one is reported and mended.

For each of `projects.toml`, as its package registry has it, `tui-agent run --apply checked` asks a server on loopback.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))

import msgspec  # noqa: E402
from projects.registries import NotHere, RealProject, as_it_was, listed, made_ready  # noqa: E402
from support.openai_wire import Answer  # noqa: E402
from support.program import json_lines, of_type, run  # noqa: E402
from support.provider import Provider  # noqa: E402
from support.sessions import open_session  # noqa: E402

from tests.proofs.tally import WHOLE, Part, Tally  # noqa: E402
from tui_agent.checks.comparison import finding  # noqa: E402
from tui_agent.checks.formats import Outcome  # noqa: E402
from tui_agent.session.baselines import BaselineResult  # noqa: E402
from tui_agent.settings.schema import CheckCommand  # noqa: E402

#: Seconds for one run: some projects are built six times in it.
PATIENCE_SECONDS = 1_800
FOUND, BESIDE_RED, MENDED = "found", "right beside a red test", "wrong, told, mended"


def prove(tally: Tally, scale: float, part: Part = WHOLE) -> None:
    projects = listed()
    rows = [("project", "checks", "as it is")] if part.number == 1 else []
    with tempfile.TemporaryDirectory() as home:
        os.environ["TUI_AGENT_HOME"] = home
        for project in part.of(projects[: max(1, round(len(projects) * scale))]):
            folder = made_ready(project)
            if isinstance(folder, NotHere):
                rows.append((project.name, "not fetched", folder.why))
                continue
            rows += _try(tally, project, folder)
    tally.figures(rows)


def _try(tally: Tally, project: RealProject, folder: Path) -> list[tuple[str, str, str]]:
    as_it_was(folder)
    found = asyncio.run(_tried(folder))
    tests = [(check, result) for check, result in found if project.check in check.command]
    told = [f"{check.command}: {result.words}" for check, result in found]
    right = bool(tests) and all(_as_outside(folder, check, result) for check, result in found)
    _say(f"{project.name}: {'; '.join(told)}")
    tally.case(project.name, right, column=FOUND, what="; ".join(told) or "nothing")
    # as a person would, who sees which of them cannot run
    kept = [check for check, result in found if result.state in ("passed", "failed")]
    if kept:
        _beside_red(tally, project, folder, kept)
        _mended(tally, project, folder, kept)
    as_it_was(folder)
    return [(project.name, f"`{check.command}`", result.state) for check, result in found]


def _as_outside(folder: Path, check: CheckCommand, result: BaselineResult) -> bool:
    """Whether a check says of the folder as it is what the same command says outside of a view; one whose program is
    not installed does not count against it."""
    environment = {**os.environ, "PATH": f"{folder}/.venv/bin:{os.environ['PATH']}"}
    done = subprocess.run(
        check.command, shell=True, cwd=folder, env=environment, check=False, text=True, errors="replace",
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    as_it_was(folder)
    if result.state == "missing":
        return done.returncode in (1, 126, 127)
    outside = finding(done.returncode == 0, done.returncode, done.stdout, Outcome())
    known = outside.failed or len(outside.failures) or None
    return result.state == ("passed" if outside.ok else "failed") and result.failures == (
        None if outside.ok else known
    )


async def _tried(folder: Path) -> list[tuple[CheckCommand, BaselineResult]]:
    """The checks that are found, each with what it says of the folder as it is."""
    async with open_session(folder) as session:
        return [
            (one.check, await session.checks.attempt(one.check))
            for one in await asyncio.to_thread(session.checks.listed)
        ]


def _beside_red(tally: Tally, project: RealProject, folder: Path, checks: Sequence[CheckCommand]) -> None:
    file, before, after = project.red
    text = (folder / file).read_text()
    (folder / file).write_text(text.replace(before, after, 1))
    status, lines, requests = _run(project, folder, checks, project.right)
    written = project.right in (folder / project.path).read_text()
    said = [(line["name"], line["state"], line["new"], line["old"]) for line in of_type(lines, "check")]
    saw = any(line["old"] != 0 for line in of_type(lines, "check"))
    held = (status, written, saw, requests) == (0, True, True, 1)
    if not held:
        _say(f"{project.name}: beside red: exit {status}, {said}, {_error(lines)}")
    tally.case(project.name, held, column=BESIDE_RED, what=f"exit {status}, {said}, {_error(lines)}")
    as_it_was(folder)


def _mended(tally: Tally, project: RealProject, folder: Path, checks: Sequence[CheckCommand]) -> None:
    status, lines, requests = _run(project, folder, checks, project.wrong, project.right)
    written = project.right in (folder / project.path).read_text()
    said = [(line["name"], line["state"], line["new"], line["old"]) for line in of_type(lines, "check")]
    failed = any(line["state"] == "failed" and line["repair"] == 0 for line in of_type(lines, "check"))
    held = (status, written, failed, requests) == (0, True, True, 2)
    if not held:
        _say(f"{project.name}: mended: exit {status}, {said}, {_error(lines)}")
    tally.case(project.name, held, column=MENDED, what=f"exit {status}, {said}, {_error(lines)}")
    as_it_was(folder)


def _run(
    project: RealProject, folder: Path, checks: Sequence[CheckCommand], *texts: str
) -> tuple[int, list[dict[str, Any]], int]:
    """The exit status, what was printed, and the number of requests."""
    with Provider() as provider:
        for text in texts:
            change = {"path": project.path, "edits": [{"search": project.before, "replace": text}]}
            provider.answer(Answer(json.dumps({"summary": "Changed.", "fileChanges": [change]})))
        done = run(
            "run", "--json", "--apply", "checked", "--model", "openai/test-model", "--protocol", "structured",
            "--set", f"checks.commands={msgspec.json.encode(checks).decode()}", "--set", "planner_model=none",
            "--set", "commands.timeout=300",
            f"Write it differently in {project.path}", folder=folder, environment=provider.environment,
            patience=PATIENCE_SECONDS,
        )  # fmt: skip
        requests = len(provider.requests)
    lines: list[dict[str, Any]] = []
    with suppress(ValueError):
        lines = json_lines(done)
    return done.returncode, lines, requests


def _error(lines: Sequence[dict[str, Any]]) -> str:
    return str(lines[-1].get("error", ""))[:300] if lines else "no output"


def _say(words: str) -> None:
    sys.stderr.write(f"{words}\n")
