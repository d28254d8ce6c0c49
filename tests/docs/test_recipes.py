"""The recipes of `docs/extending.md`, applied to a copy of the package: their tests pass there, and not before."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COPIED = (
    "tui_agent",
    "config",
    "themes",
    "tests/support",
    "tests/conftest.py",
    "tests/checks/outputs",
    "pyproject.toml",
)
RECIPES = dict(
    section.split("\n", 1)
    for section in (ROOT / "docs" / "extending.md").read_text("utf-8").split("\n## ")[1:]
)


def blocks(recipe: str, kind: str) -> list[str]:
    return re.findall(rf"^```(?:{kind})\n(.*?)^```$", recipe, re.DOTALL | re.MULTILINE)


def edited(folder: Path, diff: str) -> None:
    """Apply edits whose places are found by their text: each must be there exactly once."""
    for part in re.split(r"^--- ", diff, flags=re.MULTILINE)[1:]:
        name = part.partition("\n")[0]
        path = folder / name.strip()
        text = path.read_text("utf-8")
        for hunk in re.split(r"^@@\n", part, flags=re.MULTILINE)[1:]:
            lines = [(line[:1] or " ", line[1:]) for line in hunk.splitlines()]
            old = "".join(f"{line}\n" for mark, line in lines if mark != "+")
            new = "".join(f"{line}\n" for mark, line in lines if mark != "-")
            assert text.count(old) == 1, f"{name}: found {text.count(old)} times:\n{old}"
            text = text.replace(old, new)
        path.write_text(text, "utf-8")


def written(folder: Path, block: str) -> str:
    """Write a block to the file that its first line names."""
    name = block.partition("\n")[0].removeprefix("# ").strip()
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(block, "utf-8")
    return name


def run_tests(folder: Path, *tests: str) -> tuple[int, str]:
    """How pytest ends with these tests in the copy, and what it says."""
    command = [sys.executable, "-m", "pytest", "-n", "0", "-p", "no:cacheprovider", "--assert=plain", *tests]
    environment = {**os.environ, "PYTHONPATH": str(folder), "COLUMNS": "200"}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(("title", "most"), [("An answer form", 2), ("A setting", 2), ("An event", 1)])
def test_a_common_change_touches_few_files(title: str, most: int) -> None:
    """Besides tests, and the code that uses a setting."""
    edits = "".join(blocks(RECIPES[title], "diff"))
    changed = set(re.findall(r"^--- (?!tests/|tui_agent/headless/)(\S+)", edits, re.M))
    added = [block for block in blocks(RECIPES[title], "python|toml") if not block.startswith("# tests/")]
    assert 0 < len(changed) + len(added) <= most, changed


@pytest.mark.timeout(400)
def test_each_recipe_works_on_a_copy_of_the_package(tmp_path: Path) -> None:
    others = [name for recipe in RECIPES.values() for name in re.findall(r"^Also run: `(.+)`$", recipe, re.M)]
    for name in (*COPIED, *others):
        source, target = ROOT / name, tmp_path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target)
        else:
            shutil.copy2(source, target)
    written_now = {title: blocks(recipe, "python|toml") for title, recipe in RECIPES.items()}
    proofs = [written(tmp_path, found[-1]) for found in written_now.values()]
    assert len(proofs) == len(others) == 10 and all(proof.startswith("tests/") for proof in proofs)
    _, before = run_tests(tmp_path, *proofs, "--tb=no", "--timeout=15", "--timeout-method=signal")
    assert all(re.search(rf"^(?:FAILED|ERROR) {proof}", before, re.M) for proof in proofs), before
    for title, recipe in RECIPES.items():
        for block in written_now[title][:-1]:
            written(tmp_path, block)
        for diff in blocks(recipe, "diff"):
            edited(tmp_path, diff)
    status, after = run_tests(tmp_path, *proofs, *others)
    assert status == 0, after
