"""How well chains find what a model meant: over the packages that are installed here, and over REPO=… with its renames.

python tests/benchmarks/bench_finding.py [REFERENCES [SEEDS]]
"""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from figures import Figure, show
from wrong_references import Reference, chain, references

from tui_agent.answers.plans import FileAction
from tui_agent.planning.chain import completed, names_one, nearest, try_patterns
from tui_agent.workspace.index import Index
from tui_agent.workspace.syntax_trees import is_source_extension

REFERENCES, SEEDS = 400, 3
#: A package with fewer source files is no project to get lost in.
FEWEST = 30
MOST_PROJECTS = 24


@dataclass
class Tally:
    """What came of the chains: `ranks` counts hits by pattern, `wrong` those without the file that was meant."""

    chains: int = 0
    asked: int = 0
    failed: int = 0
    wrong: int = 0
    ranks: Counter[int] = field(default_factory=Counter)
    times: list[float] = field(default_factory=list)


async def tried(reference: Reference, index: Index, tally: Tally, *, show_all: bool) -> None:
    """One chain, as a turn would try_patterns it, and what came of it."""
    tally.chains += 1
    began = time.perf_counter()
    (action,) = completed([FileAction(reference.written, chain(reference.written))], index)
    last, crowded = None, False
    async for attempt in try_patterns(action, index):
        last = attempt
        crowded = crowded or (attempt.outcome == "too_broad" and names_one(attempt.pattern))
    tally.times.append(time.perf_counter() - began)
    if crowded and (last is None or last.outcome != "hit"):
        tally.asked += 1
        outcome = "asked: too many are called so"
    elif last is None or last.outcome != "hit":
        tally.failed += 1
        outcome = "failed"
    else:
        paths = last.paths
        if len(paths) > 1 and names_one(last.pattern):
            paths = nearest(action, paths)
            tally.asked += len(paths) > 1
        tally.ranks[last.index] += 1
        right = reference.meant in paths
        tally.wrong += not right
        outcome = "" if right else f"wrong: {', '.join(paths[:3])}"
    if outcome and show_all:
        print(f"  {reference.kind:<20} {reference.written} -> {reference.meant}: {outcome}")


def projects() -> dict[str, Index]:
    """Each installed package with enough source files, as if it were a workspace."""
    packages = Path(os.__file__).parent / "site-packages", *map(Path, sys.path)
    found: dict[str, list[str]] = {}
    for folder in dict.fromkeys(path for path in packages if path.name == "site-packages" and path.is_dir()):
        for package in sorted(path for path in folder.iterdir() if (path / "__init__.py").is_file()):
            paths = [
                path.relative_to(folder).as_posix()
                for path in package.rglob("*")
                if path.is_file() and is_source_extension(path.suffix[1:]) and "__pycache__" not in path.parts
            ]
            if len(paths) >= FEWEST:
                found[package.name] = paths
    names = sorted(found)
    chosen = random.Random(1).sample(names, min(MOST_PROJECTS, len(names)))
    return {name: Index(found[name]) for name in sorted(chosen)}


def renames(repository: Path, index: Index) -> list[Reference]:
    """Names that files had before, from the history: what a model that learned the older code would write."""
    command = ["git", "log", "--diff-filter=R", "--name-status", "--format=", "-M", "-n", "2000"]
    listed = subprocess.run(command, cwd=repository, check=True, capture_output=True, text=True).stdout
    pairs = [line.split("\t")[1:3] for line in listed.splitlines() if line.startswith("R")]
    return [
        Reference("renamed", old, new)
        for old, new in pairs
        if index.contains(new) and not index.contains(old)
    ]


def repository_index(repository: Path) -> Index:
    command = ["git", "ls-files", "-coz", "--exclude-standard"]
    listed = subprocess.run(command, cwd=repository, check=True, capture_output=True).stdout
    return Index(name.decode(errors="replace") for name in listed.split(b"\0") if name)


async def measure(made: Sequence[tuple[Reference, Index]], show_all: bool) -> dict[str, Tally]:
    tallies: dict[str, Tally] = defaultdict(Tally)
    for reference, index in made:
        for name in ("all", reference.kind):
            if name == "all":
                await tried(reference, index, tallies[name], show_all=show_all)
            else:
                await tried(reference, index, tallies[name], show_all=False)
    return tallies


def rows(tallies: dict[str, Tally]) -> list[Figure]:
    total = tallies["all"]
    ranks = ", ".join(f"{rank}: {count / total.chains:.1%}" for rank, count in sorted(total.ranks.items()))
    figures = [
        Figure("failed loads", 100 * total.failed / total.chains, 2, " %", f"of {total.chains} chains"),
        Figure("wrong file first", 100 * total.wrong / total.chains, 3, " %"),
        Figure("asked which of several", 100 * total.asked / total.chains, None, " %"),
        Figure(
            "a chain, the median",
            1000 * sorted(total.times)[total.chains // 2],
            None,
            " ms",
            f"hits by pattern {ranks}",
        ),
        Figure("a chain, the slowest", 1000 * max(total.times), None, " ms"),
    ]
    for kind, tally in sorted(tallies.items()):
        if kind != "all":
            note = f"of {tally.chains}; wrong first {100 * tally.wrong / tally.chains:.1f} %, asked {tally.asked}"
            figures.append(Figure(f"  {kind}: failed", 100 * tally.failed / tally.chains, None, " %", note))
    return figures


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else REFERENCES
    seeds = int(sys.argv[2]) if len(sys.argv) > 2 else SEEDS
    repository = os.environ.get("REPO", "")
    made: list[tuple[Reference, Index]] = []
    if repository:
        indexes = {Path(repository).name: repository_index(Path(repository))}
    else:
        indexes = projects()
    for seed in range(1, seeds + 1):
        for index in indexes.values():
            sources = [path for path in index.paths if is_source_extension(path.rpartition(".")[2])]
            made += [(one, index) for one in references(sources, count // len(indexes), seed)]
    if repository:
        (index,) = indexes.values()
        made += [(one, index) for one in renames(Path(repository), index)]
    print(f"{len(indexes)} projects, {sum(map(len, indexes.values())):,} files, {seeds} seeds")
    show(rows(asyncio.run(measure(made, bool(os.environ.get("SHOW"))))))


if __name__ == "__main__":
    main()
