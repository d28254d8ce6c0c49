"""Skills, agents and commands: Markdown files with front matter."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from tui_agent.errors import PathRefused, TuiAgentError
from tui_agent.extensions.files import (
    MAX_BYTES,
    MAX_ENTRIES,
    NAME,
    Document,
    ExtensionFolder,
    Origin,
    Problem,
    Unusable,
    entries,
    home_folder,
    is_inside,
    name_of,
    parse,
    places,
    read_bytes,
    read_text,
)
from tui_agent.extensions.names import model_of, narrowing
from tui_agent.extensions.trusted import MAX_FILE, TrustedFiles
from tui_agent.files.gate import Gate, read
from tui_agent.files.names import display_path
from tui_agent.files.numbers import whole_number
from tui_agent.files.text import clean, one_line
from tui_agent.settings.folders import Folders

FILE = "SKILL.md"
#: Characters of a description, by the standard; characters per token.
MAX_DESCRIPTION = 1_024
LETTERS = 4
MAX_FILES = 100
#: Folders with thousands of files and no instructions.
_NO_SKILLS = frozenset((".git", "node_modules", "__pycache__", ".venv"))


class Skill(Struct, frozen=True):
    """`folder` is resolved; `key` is its name, or `project:NAME` if the user has another."""

    key: str
    name: str
    description: str
    folder: Path
    origin: Origin
    hidden: bool = False
    takes_arguments: bool = False
    hint: str = ""
    arguments: tuple[str, ...] = ()


def read_skills(
    places: Sequence[ExtensionFolder], trusted: TrustedFiles
) -> tuple[list[Skill], list[Problem], list[Path]]:
    """Returns all skills in order of precedence, the unusable ones, and folders that are not trusted.
    Blocking.
    """
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
            root = place.root if place.origin == "project" else folder
            try:
                document, name, description = _introduced(file, root, file.parent.name)
            except Unusable as error:
                problems.append(Problem(file, error.why, error.line, file.parent.name))
                continue
            names = document.items("arguments") or ()
            hint = document.text("argument-hint")
            takes = bool(names or hint) or "$ARGUMENTS" in document.body
            hidden = document.is_true("disable-model-invocation")
            skill = Skill(name, name, description, folder, place.origin, hidden, takes, hint, names)
            before = found.get(skill.name)
            if before is None:
                found[skill.name] = skill
            elif before.origin != skill.origin:
                key = f"{skill.origin}:{skill.name}"
                found.setdefault(key, replace(skill, key=key))
            elif before.folder != folder:
                problems.append(Problem(file, f"another skill has the name {skill.name}"))
    return list(found.values()), problems, withheld


def _introduced(file: Path, root: Path, file_name: str) -> tuple[Document, str, str]:
    """With its name and description. Raises Unusable."""
    document = parse(read_text(file, root))
    name = name_of(document.text("name"), file_name)
    description = document.text("description")
    if not description:
        raise Unusable("its front matter has no description")
    return document, name, description[:MAX_DESCRIPTION]


def skill_body(skill: Skill, trusted: TrustedFiles) -> str:
    """Returns the text of a skill without its front matter, its folder, and its other files by name.
    Blocking.

    Raises TuiAgentError, for a workspace's skill also if it has changed since it was trusted.
    """
    text = skill_file(skill, FILE, trusted)
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
    """Returns the configuration folder, or all but its skills if they are shown."""
    if os.path.realpath(config / "skills") not in shown:
        return [str(config)]
    return [entry.path for entry in os.scandir(config) if entry.name != "skills"]


def skill_file(skill: Skill, path: str, trusted: TrustedFiles) -> str:
    """Blocking. Raises PathRefused for a path outside or a secret, and FileError for an unreadable file."""
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
    """Skills as the prompt lists them, and the names of those without room for a line."""

    lines: tuple[str, ...] = ()
    short: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


def skill_lines(skills: Iterable[tuple[str, str]], tokens: int) -> SkillLines:
    """Returns lines for names and descriptions within a budget: whole lines first, then names alone."""
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


def unknown_skill(name: str, skills: Iterable[Skill]) -> TuiAgentError:
    names = ", ".join(skill.key for skill in skills) or "none"
    return PathRefused(f"There is no skill {display_path(name[:80])}", f"the skills are: {names}")


class AgentPrompt(Struct, frozen=True):
    """`key` is its name, or `project:NAME` if the user has another.

    - model: a configured model; "" for the one in use.
    - tools: its tools, with patterns of commands or paths (none: any); None for all.
    - off: tools that it lacks.
    """

    key: str
    description: str
    prompt: str
    origin: Origin
    path: Path
    model: str = ""
    tools: dict[str, tuple[str, ...]] | None = None
    off: tuple[str, ...] = ()


def read_agents(
    places: Sequence[ExtensionFolder], trusted: TrustedFiles, models: Sequence[str]
) -> tuple[list[AgentPrompt], list[Problem]]:
    """Returns all agents in order of precedence, and problems: unusable files, and omitted tools and models.
    Blocking.
    """
    found: dict[str, AgentPrompt] = {}
    problems: list[Problem] = []
    for place, file in _trusted_files(places, trusted):
        if len(found) >= MAX_ENTRIES:
            problems.append(Problem(file, f"only {MAX_ENTRIES} agents are used"))
            break
        try:
            document, name, description = _introduced(file, place.root, file.stem)
        except Unusable as error:
            problems.append(Problem(file, error.why, error.line))
            continue
        before = found.get(name)
        if before is not None and before.origin == place.origin:
            problems.append(Problem(file, f"another agent has the name {name}"))
            continue
        key = name if before is None else f"{place.origin}:{name}"
        written = document.items("tools", "allowed-tools", "allowedTools")
        named = None if written is None or tuple(written) == ("*",) else narrowing(written)
        banned = narrowing(document.items("disallowedTools", "disallowed-tools") or ())
        if missing := [*(named.left_out if named else ()), *banned.left_out]:
            tools = display_path(", ".join(missing))[:200]
            problems.append(Problem(file, f"these tools do not exist here: {tools}"))
        model, wrong = _model(document, models)
        problems += [Problem(file, why) for why in wrong]
        tools, off = named.tools if named else None, tuple(banned.tools)
        prompt = document.body.strip()
        found.setdefault(key, AgentPrompt(key, description, prompt, place.origin, file, model, tools, off))
    return list(found.values()), problems


def _trusted_files(
    places: Sequence[ExtensionFolder], trusted: TrustedFiles
) -> Iterator[tuple[ExtensionFolder, Path]]:
    for place in places:
        for file in entries(place.folder):
            if file.suffix == ".md" and (place.origin != "project" or trusted.holds(file)):
                yield place, file


def _model(document: Document, models: Sequence[str]) -> tuple[str, list[str]]:
    """Returns the configured model, "" for the one in use, and problems."""
    name = document.text("model")
    model = model_of(name, models)
    wrong = [f"the model {display_path(name)[:80]}, which is not configured"] if model is None else []
    return model or "", wrong


def described(workspace: Path, folders: Folders) -> dict[str, str]:
    """A line about each skill, command and agent of a workspace, trusted or not, by file. Blocking."""
    root = Path(os.path.realpath(workspace))
    everything = TrustedFiles(root, folders, everything=True)
    skills, commands, agents = (
        [place for place in places(kind, folders, root) if place.origin == "project"]
        for kind in ("skills", "commands", "agents")
    )
    found = {
        skill.folder / FILE: f"skill {skill.key}: {skill.description}"
        for skill in read_skills(skills, everything)[0]
    }
    for command in read_commands(commands, everything)[0]:
        runs = "".join(f", runs {one[0][1:]}" for one in _COMMAND.finditer(command.body))
        found[command.path] = f"command /{command.key}{runs}: {command.description}"
    for agent in read_agents(agents, everything, ())[0]:
        found[agent.path] = f"agent {agent.key}: {agent.description}"
    return {os.path.relpath(path, root): one_line(words) for path, words in found.items()}


#: An argument by number, by position from 0, all of them, and an argument by name.
_ARGUMENT = re.compile(
    r"\$(?:\{ARGUMENTS\}|ARGUMENTS\[(?P<position>\d)\]|(?P<number>[1-9])(?!\w)|ARGUMENTS(?!\w)|(?P<name>[A-Za-z_]\w*))"
)
_GIVEN = re.compile(r"([A-Z][A-Z0-9_]*)=(.*)", re.DOTALL)
#: Longer arguments are split at spaces: the time for quotes grows with the square of a word's length.
_MOST_QUOTED = 10_000
#: The output of a command. `!` inside a word, and after the backtick of other code, is text, as is a longer command.
_COMMAND = re.compile(r"(?<!\S)!`([^`\n]{1,4000})`")

_OWN_FILE = re.compile(r"(?<!\S)@(?:~|\$HOME)/([^\s`'\"<>]+)")
MAX_COMMAND_FILES = 20

RunCommand = Callable[[str], Awaitable[str]]


class Command(Struct, frozen=True):
    """`key` is its name, or `ORIGIN:NAME` if an earlier one has the name. `model` is a configured model; ""
    for the one in use.
    """

    key: str
    description: str
    hint: str
    body: str
    origin: Origin
    path: Path
    model: str = ""
    names: tuple[str, ...] = ()

    def own_files(self) -> tuple[str, list[str]]:
        """Returns the files below the parent of `commands/` that it mentions as `@~/…`, in one text, and
        notices of others. Blocking.
        """
        if self.origin != "user":
            return "", []
        home, root = home_folder(), self.path.parents[self.key.count(":") + 1]
        texts, left_out = [], []
        for name in list(dict.fromkeys(found[1].rstrip(".,;:)") for found in _OWN_FILE.finditer(self.body)))[
            :MAX_COMMAND_FILES
        ]:
            try:
                data = read(Gate(root), os.path.relpath(home / name, root), MAX_BYTES)
                texts.append(f"## FILE ~/{name}\n{clean(data.decode('utf-8-sig'))}")
            except UnicodeDecodeError:
                left_out.append(f"{display_path(f'~/{name}')} of /{self.key} is left out: it is not text")
            except TuiAgentError as error:
                left_out.append(f"{display_path(f'~/{name}')} of /{self.key} is left out: {error.what}")
        return "\n\n".join(texts), left_out


def read_commands(
    places: Sequence[ExtensionFolder], trusted: TrustedFiles, models: Sequence[str] = ()
) -> tuple[list[Command], list[Problem]]:
    """Returns all commands in order of precedence, unusable ones, and models that the user has not
    configured. Blocking.
    """
    found: dict[str, Command] = {}
    problems: list[Problem] = []
    for place, file in _trusted_files(places, trusted):
        if len(found) >= MAX_ENTRIES:
            problems.append(Problem(file, f"only {MAX_ENTRIES} commands are used"))
            break
        name = ":".join(file.relative_to(place.folder).with_suffix("").parts)
        try:
            if not NAME.fullmatch(name):
                raise Unusable("its name may contain only letters, digits, - and _")
            document = parse(read_text(file, place.root))
        except Unusable as error:
            problems.append(Problem(file, error.why, error.line, name))
            continue
        key = name if name not in found else f"{place.origin}:{name}"
        words = document.text("description") or document.body.strip().partition("\n")[0]
        hint, names = document.text("argument-hint"), document.items("arguments") or ()
        model, wrong = _model(document, models)
        problems += [Problem(file, why) for why in wrong]
        found.setdefault(
            key, Command(key, words[:200], hint, document.body, place.origin, file, model, names)
        )
    return list(found.values()), problems


def _in_shell(found: re.Match[str], words: Sequence[str]) -> str:
    """Escapes the words for the quotes that surround the match in its shell text."""
    match _open_quote(found.string[: found.start()]):
        case '"':
            return re.sub(r'[\\$`"]', r"\\\g<0>", " ".join(words))
        case "'":
            return " ".join(words).replace("'", r"'\''") if any(words) else found[0]
    return shlex.join(words)


def _open_quote(text: str) -> str:
    """The quote that is open at the end of a shell text, or ""."""
    levels, at = [""], 0
    while at < len(text):
        letter, now = text[at], levels[-1]
        if letter == "\\" and now != "'":
            at += 1
        elif (letter == now and now) or (letter == ")" and not now and len(levels) > 1):
            levels.pop()
        elif now != "'" and (letter == '"' or (letter == "'" and not now)):
            levels.append(letter)
        elif letter == "(" and now != "'" and (not now or text[at - 1 : at] == "$"):
            levels.append("")
        at += 1
    return levels[-1]


async def expanded(
    body: str, arguments: str, names: Sequence[str] = (), run: RunCommand | None = None
) -> str:
    """Inserts arguments and, with `run`, the output of commands, in one pass: inserted text is not expanded
    again.
    """
    try:
        words = shlex.split(arguments) if len(arguments) <= _MOST_QUOTED else arguments.split()
    except ValueError:  # an open quote
        words = arguments.split()
    uses = False
    # `NAME=value`, as prompts of Codex take them.
    given = {pair[1]: pair[2] for word in words if (pair := _GIVEN.fullmatch(word))}

    def inserted(found: re.Match[str], *, quoted: bool = False) -> str:
        nonlocal uses
        if (name := found["name"]) is not None and name not in (*names, *given):
            return found[0]  # a variable of the text
        uses = uses or not quoted
        if name in given:
            return _in_shell(found, [given[name]]) if quoted else given[name]
        if name is None and found["number"] is None and found["position"] is None:
            return _in_shell(found, words) if quoted else arguments
        position = found["position"] or "0"
        at = (
            names.index(name)
            if name
            else whole_number(found["number"] or position, 0) - bool(found["number"])
        )
        word = words[at] if at < len(words) else ""
        return _in_shell(found, [word]) if quoted else word

    parts: list[str] = []
    at = 0
    for command in _COMMAND.finditer(body):
        if run is None:
            break
        parts.append(_ARGUMENT.sub(inserted, body[at : command.start()]))
        parts.append(await run(_ARGUMENT.sub(lambda found: inserted(found, quoted=True), command[1])))
        at = command.end()
    text = "".join([*parts, _ARGUMENT.sub(inserted, body[at:])]).strip()
    return text if uses or not arguments else f"{text}\n\n{arguments}"
