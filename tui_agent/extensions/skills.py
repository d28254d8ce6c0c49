"""Skills: folders with a `SKILL.md`, whose name and description are in the prompt and whose text the model
reads on demand."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import Struct

from tui_agent.errors import PathRefused, TuiAgentError
from tui_agent.extensions.front_matter import parse
from tui_agent.extensions.places import (
    MAX_BYTES,
    MAX_ENTRIES,
    NAME,
    ExtensionFolder,
    Origin,
    Problem,
    Unusable,
    entries,
    is_inside,
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


class Skill(Struct, frozen=True):
    """A skill. `folder` is resolved; `key` is its name, or `project:NAME` if the person has another."""

    key: str
    name: str
    description: str
    folder: Path
    origin: Origin


def read_skills(
    places: Sequence[ExtensionFolder], trusted: TrustedFiles
) -> tuple[list[Skill], list[Problem], list[Path]]:
    """All skills in order of precedence, the unusable ones, and folders that are not trusted. Blocking."""
    found: dict[str, Skill] = {}
    problems: list[Problem] = []
    withheld: list[Path] = []
    for place in places:
        for file in (path for path in entries(place.folder, 2) if path.name == FILE):
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
                found.setdefault(key, Skill(key, skill.name, skill.description, folder, skill.origin))
            elif before.folder != folder:
                problems.append(Problem(file, f"another skill has the name {skill.name}"))
    return list(found.values()), problems, withheld


def _skill(file: Path, folder: Path, place: ExtensionFolder) -> Skill:
    root = place.root if place.origin == "project" else folder
    document = parse(read_text(file, root))
    name = document.text("name") or folder.name
    if not NAME.fullmatch(name) or ":" in name:
        raise Unusable(f"{display_path(name[:80])} is not a name of letters, digits, - and _")
    description = document.text("description")
    if not description:
        raise Unusable("its front matter has no description")
    return Skill(name, name, description[:MAX_DESCRIPTION], folder, place.origin)


def body(skill: Skill, trusted: TrustedFiles) -> str:
    """The text of a skill without its front matter, and its other files by name. Blocking.

    Raises TuiAgentError, for a workspace's skill also if it has changed since it was trusted.
    """
    text = file_of(skill, FILE, trusted)
    try:
        text = parse(text).body
    except Unusable as error:
        raise PathRefused(f"The skill {skill.key} cannot be used ({error.why})", "correct its file") from None
    names = [
        path.relative_to(skill.folder).as_posix()
        for path in entries(skill.folder)
        if is_inside(path, skill.folder)
    ]
    others = [display_path(name) for name in names if name != FILE]
    if not others:
        return text
    more = f" and {len(others) - MAX_FILES} more" if len(others) > MAX_FILES else ""
    return f"{text}\n\nFiles of this skill: {', '.join(others[:MAX_FILES])}{more}"


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
