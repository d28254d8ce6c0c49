"""Repositories and tasks of the benchmark, and how a task is judged.

A task has the words of a person, hidden tests, and for the scripted model `skills`: how it recognises a text that it
is shown and how it changes it. A skill has no path; its words are words of the person.
"""

from __future__ import annotations

import fnmatch
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]
#: TypeScript's compiler, which `make tasks` installs; version 7 has no interface for JavaScript.
TYPESCRIPT = ROOT / "build" / "tasks" / "node_modules" / "typescript"
Swaps = tuple[tuple[str, str], ...]
JUDGE_SECONDS = 300.0


@dataclass(frozen=True)
class Skill:
    """How a model changes a text: by `swaps` (pattern, replacement), in the first try of a careless one by `slip`.

    `word` is searched for; `seen` matches the text; `guess` is the name of a file that the words of the task suggest.
    With `glob`, all files that match are changed. A skill may delete or rename instead.
    """

    word: str
    seen: str
    guess: str
    swaps: Swaps = ()
    slip: Swaps = ()
    glob: str = ""
    deletes: bool = False
    rename: tuple[str, str] = ("", "")

    def recognises(self, text: str) -> bool:
        return re.search(self.seen, text, re.MULTILINE) is not None

    def changed(self, text: str, *, careless: bool = False) -> str:
        for pattern, replacement in self.slip if careless and self.slip else self.swaps:
            text = re.sub(pattern, replacement, text, flags=re.MULTILINE)
        return text


@dataclass(frozen=True)
class Task:
    """`may_change` are globs of the files that the task concerns; a change of another file is a wrong edit."""

    name: str
    prompt: str
    hidden: str
    may_change: tuple[str, ...]
    skills: tuple[Skill, ...] = ()
    creates: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Repository:
    """Files of a fixture and its tasks. `checks` is the command that its owner would configure."""

    name: str
    language: str
    tasks: tuple[Task, ...]
    checks: str = ""
    git: bool = True
    legacy: bool = False
    #: Folders of further modules, so that names occur more than once.
    filler: tuple[str, ...] = ()

    def files(self) -> dict[str, bytes]:
        text = (FOLDER / "repositories" / f"{self.name}.txt").read_text()
        blocks = re.split(r"^=== (.+)\n", text, flags=re.MULTILINE)
        found = dict(zip(blocks[1::2], blocks[2::2], strict=True)) | _filler(self)
        if self.legacy:
            return {path: text.replace("\n", "\r\n").encode("latin-1") for path, text in found.items()}
        return {path: text.encode() for path, text in found.items()}

    def write(self, root: Path) -> Path:
        for path, content in self.files().items():
            place = root / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
        if self.git:
            who = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "core.autocrlf=false")
            for words in (("init", "-q"), ("add", "-A"), (*who, "commit", "-qm", "Begin")):
                subprocess.run(("git", *words), cwd=root, check=True, capture_output=True)
        return root


def _filler(repository: Repository) -> dict[str, str]:
    """Modules with plausible names in each folder, many of which occur in several folders."""
    names = ("config", "types", "errors", "client", "cache", "format", "report", "index", "models", "queue")
    templates = {
        "python": ("py", '"""Parts of {folder}."""\n\n\ndef {folder}_{name}(value):\n    return value\n'),
        "typescript": (
            "ts",
            "export function {folder}{name}(value: string): string {{\n  return value;\n}}\n",
        ),
        "go": (
            "go",
            "package {folder}\n\n// {Name} returns its value.\n"
            "func {Name}(value string) string {{\n\treturn value\n}}\n",
        ),
    }
    made: dict[str, str] = {}
    for number, place in enumerate(repository.filler):
        ending, template = templates[
            "go" if place.startswith("internal") else "typescript" if "src/f" in place else "python"
        ]
        folder = place.rpartition("/")[2]
        for name in names[number % 3 :]:
            made[f"{place}/{name}.{ending}"] = template.format(folder=folder, name=name, Name=name.title())
    return made


def judged(repository: Repository, task: Task, root: Path) -> bool | None:
    """Whether the hidden tests pass; None if this machine has no compiler for the language."""
    language = "typescript" if task.hidden.startswith("// node") else repository.language
    variables = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "GOFLAGS": "-mod=mod", "GO111MODULE": "on"}
    hidden = root.parent / f"{root.name}-hidden"
    hidden.mkdir(exist_ok=True)
    match language:
        case "go":
            if not shutil.which("go"):
                return None
            test = root / "hidden" / "hidden_test.go"
            test.parent.mkdir()
            test.write_text(task.hidden)
            command = ["go", "test", "./..."]
        case "typescript":
            if not shutil.which("node") or not (TYPESCRIPT / "lib" / "typescript.js").exists():
                return None
            test = hidden / "hidden.cjs"
            test.write_text(task.hidden)
            command = ["node", str(FOLDER / "typescript.cjs"), str(TYPESCRIPT), str(root), str(test)]
        case _:
            test = hidden / "hidden.py"
            test.write_text(task.hidden)
            command = [sys.executable, str(test)]
            variables["PYTHONPATH"] = os.pathsep.join((str(root), str(root / "src")))
    done = subprocess.run(
        command, cwd=root, env=variables, capture_output=True, timeout=JUDGE_SECONDS, check=False
    )
    if language == "go":
        shutil.rmtree(test.parent)
    return done.returncode == 0


def contents(root: Path) -> dict[str, bytes]:
    """The files below a folder, without those of git and Python."""
    found = {}
    for folder, names, files in os.walk(root):
        names[:] = [name for name in names if name not in (".git", "__pycache__")]
        for name in files:
            path = Path(folder, name)
            found[path.relative_to(root).as_posix()] = path.read_bytes()
    return found


def wrong_edits(
    repository: Repository, task: Task, root: Path, before: Mapping[str, bytes] | None = None
) -> list[str]:
    """Files that changed although the task does not concern them, or whose line ends or tabs were lost."""
    before, after = before or repository.files(), contents(root)
    wrong = []
    for path in sorted(before.keys() | after.keys()):
        if before.get(path) == after.get(path):
            continue
        concerned = any(fnmatch.fnmatch(path, glob) for glob in task.may_change)
        new = after.get(path, b"")
        kept = not repository.legacy or (b"\n" not in new.replace(b"\r\n", b"") and b"\n    " not in new)
        if not (concerned and kept):
            wrong.append(path)
    return wrong
