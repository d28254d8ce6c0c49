"""Skills: folders with a `SKILL.md`, whose name and description are in the prompt and whose text the model
reads on demand."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from tui_agent.errors import PathRefused, TuiAgentError
from tui_agent.extensions.front_matter import parse
from tui_agent.extensions.places import (
    MAX_BYTES,
    MAX_ENTRIES,
    ExtensionFolder,
    Origin,
    Problem,
    Unusable,
    entries,
    is_inside,
    name_of,
    read_bytes,
    read_text,
)
from tui_agent.extensions.trusted import MAX_FILE, TrustedFiles
from tui_agent.files.gate import Gate, read
from tui_agent.files.names import display_path

FILE = "SKILL.md"
#: Maximum characters of a description, by the standard, and characters per token.
MAX_DESCRIPTION, LETTERS = 1_024, 4
#: Maximum number of files listed with a skill.
MAX_FILES = 100
#: Folders with thousands of files and no instructions.
_NO_SKILLS = frozenset((".git", "node_modules", "__pycache__", ".venv"))


class Skill(Struct, frozen=True):
    """A skill. `folder` is resolved; `key` is its name, or `project:NAME` if the person has another."""

    key: str
    name: str
    description: str
    folder: Path
    origin: Origin
    #: Whether the model's list leaves it out.
    hidden: bool = False
    takes_arguments: bool = False
    hint: str = ""
    arguments: tuple[str, ...] = ()


def read_skills(
    places: Sequence[ExtensionFolder], trusted: TrustedFiles
) -> tuple[list[Skill], list[Problem], list[Path]]:
    """All skills in order of precedence, the unusable ones, and folders that are not trusted. Blocking."""
    found: dict[str, Skill] = {}
    problems: list[Problem] = []
    withheld: list[Path] = []
    for place in places:
        for file in (path for path in entries(place.folder, 2, without=_NO_SKILLS) if path.name == FILE):
            folder = Path(os.path.realpath(file.parent))
            covered = entries(file.parent) if place.origin == "project" else ()
            if (changed := next((path for path in covered if not trusted.holds(path)), None)) is not None:
                try:
                    read_bytes(changed, place.root, MAX_FILE)
                    withheld.append(file)
                except Unusable as error:  # Trust cannot cover it.
                    problems.append(Problem(changed, error.why, called=file.parent.name))
                continue
            if len(found) >= MAX_ENTRIES:
                problems.append(Problem(file, f"only {MAX_ENTRIES} skills are used"))
                return list(found.values()), problems, withheld
            try:
                skill = _skill(file, folder, place)
            except Unusable as error:
                problems.append(Problem(file, error.why, error.line, file.parent.name))
                continue
            before = found.get(skill.name)
            if before is None:
                found[skill.name] = skill
            elif before.origin != skill.origin:
                key = f"{skill.origin}:{skill.name}"
                found.setdefault(key, replace(skill, key=key))
            elif before.folder != folder:
                problems.append(Problem(file, f"another skill has the name {skill.name}"))
    return list(found.values()), problems, withheld


def _skill(file: Path, folder: Path, place: ExtensionFolder) -> Skill:
    root = place.root if place.origin == "project" else folder
    document = parse(read_text(file, root))
    name = name_of(document.text("name"), file.parent.name)
    description = document.text("description")
    if not description:
        raise Unusable("its front matter has no description")
    names = document.items("arguments") or ()
    hint = document.text("argument-hint")
    takes = bool(names or hint) or "$ARGUMENTS" in document.body
    hidden = document.is_true("disable-model-invocation")
    return Skill(name, name, description[:MAX_DESCRIPTION], folder, place.origin, hidden, takes, hint, names)


def body(skill: Skill, trusted: TrustedFiles) -> str:
    """The text of a skill without its front matter, its folder, and its other files by name. Blocking.

    Raises TuiAgentError, for a workspace's skill also if it has changed since it was trusted.
    """
    text = file_of(skill, FILE, trusted)
    try:
        text = parse(text).body.replace("${CLAUDE_SKILL_DIR}", str(skill.folder))
    except Unusable as error:
        raise PathRefused(f"The skill {skill.key} cannot be used ({error.why})", "correct its file") from None
    names = [
        path.relative_to(skill.folder).as_posix()
        for path in entries(skill.folder, without=_NO_SKILLS)
        if is_inside(path, skill.folder)
    ]
    others = [display_path(name) for name in names if name != FILE]
    if not others:
        return text
    more = f" and {len(others) - MAX_FILES} more" if len(others) > MAX_FILES else ""
    where = f"Files of this skill, in {display_path(str(skill.folder))}, where commands can read them"
    return f"{text}\n\n{where}: {', '.join(others[:MAX_FILES])}{more}"


def hidden_config(config: Path, shown: Sequence[str]) -> list[str]:
    """The configuration folder, or all but its skills if they are shown."""
    if os.path.realpath(config / "skills") not in shown:
        return [str(config)]
    return [entry.path for entry in os.scandir(config) if entry.name != "skills"]


def file_of(skill: Skill, path: str, trusted: TrustedFiles) -> str:
    """Blocking. Raises PathRefused for a path outside or a secret, and FileError for a file that cannot be
    read."""
    data = read(Gate(skill.folder), path, MAX_BYTES)
    digest = hashlib.sha256(data).hexdigest()
    if skill.origin == "project" and not trusted.holds_bytes(skill.folder / path, digest):
        raise PathRefused(
            f"{display_path(path)} of the skill {skill.key} has changed since this workspace was trusted",
            "ask the person to look at it with “Trust this workspace”",
        )
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise PathRefused(
            f"{display_path(path)} of the skill {skill.key} is not text", "use another file"
        ) from None


class SkillLines(Struct, frozen=True):
    """The skills as the prompt lists them, and the names of those that have no room for their line."""

    lines: tuple[str, ...] = ()
    short: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


def listed(skills: Iterable[tuple[str, str]], tokens: int) -> SkillLines:
    """Lines for names and descriptions within a budget: whole lines first, then names alone."""
    room = tokens * LETTERS
    lines, short, left_out = [], [], []
    for name, description in skills:
        line = f"- {name}: {description}"
        if not short and not left_out and len(line) < room:
            lines.append(line)
            room -= len(line) + 1
        elif not left_out and len(name) + 2 < room:
            short.append(name)
            room -= len(name) + 2
        else:
            left_out.append(name)
    return SkillLines(tuple(lines), tuple(short), tuple(left_out))


def unknown(name: str, skills: Iterable[Skill]) -> TuiAgentError:
    names = ", ".join(skill.key for skill in skills) or "none"
    return PathRefused(f"There is no skill {display_path(name[:80])}", f"the skills are: {names}")
