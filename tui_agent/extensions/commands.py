"""Custom commands: Markdown files whose text replaces `/NAME ARGUMENTS` in a message."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from msgspec import Struct

from tui_agent.errors import TuiAgentError
from tui_agent.extensions.front_matter import parse
from tui_agent.extensions.names import model_of
from tui_agent.extensions.places import (
    MAX_BYTES,
    MAX_ENTRIES,
    NAME,
    ExtensionFolder,
    Origin,
    Problem,
    Unusable,
    entries,
    home_folder,
    read_text,
)
from tui_agent.extensions.trusted import TrustedFiles
from tui_agent.files.gate import Gate, read
from tui_agent.files.names import display_path
from tui_agent.files.numbers import whole_number
from tui_agent.files.text import clean

#: An argument by number, by position from 0, all of them, and an argument by name.
_ARGUMENT = re.compile(
    r"\$(?:\{ARGUMENTS\}|ARGUMENTS\[(?P<position>\d)\]|(?P<number>[1-9])(?!\w)|ARGUMENTS(?!\w)|(?P<name>[A-Za-z_]\w*))"
)
#: The output of a command. `!` inside a word, and after the backtick of other code, is text.
_COMMAND = re.compile(r"(?<!\S)!`([^`\n]+)`")

_OWN_FILE = re.compile(r"(?<!\S)@(?:~|\$HOME)/([^\s`'\"<>]+)")
MAX_FILES = 20

#: Runs a command in a view and returns its output.
RunCommand = Callable[[str], Awaitable[str]]


class Command(Struct, frozen=True):
    """A command. `key` is its name, or `ORIGIN:NAME` if an earlier one has the name. `model` is a configured model; ""
    for the one in use."""

    key: str
    description: str
    hint: str
    body: str
    origin: Origin
    path: Path
    model: str = ""
    #: Of its arguments.
    names: tuple[str, ...] = ()

    def own_files(self) -> tuple[str, list[str]]:
        """The files below the parent of `commands/` that it mentions as `@~/…`, in one text, and notices of others.
        Blocking."""
        if self.origin != "user":
            return "", []
        home, root = home_folder(), self.path.parents[self.key.count(":") + 1]
        texts, left_out = [], []
        for name in list(dict.fromkeys(found[1].rstrip(".,;:)") for found in _OWN_FILE.finditer(self.body)))[
            :MAX_FILES
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
    """All commands in order of precedence, the unusable ones, and models that are not among those that the person has
    configured. Blocking."""
    found: dict[str, Command] = {}
    problems: list[Problem] = []
    for place in places:
        for file in (path for path in entries(place.folder) if path.suffix == ".md"):
            if place.origin == "project" and not trusted.holds(file):
                continue
            if len(found) >= MAX_ENTRIES:
                return list(found.values()), [
                    *problems,
                    Problem(file, f"only {MAX_ENTRIES} commands are used"),
                ]
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
            model = model_of(document.text("model"), models)
            if model is None:
                wanted = display_path(document.text("model"))[:80]
                problems.append(Problem(file, f"the model {wanted}, which is not configured"))
            command = Command(key, words[:200], hint, document.body, place.origin, file, model or "", names)
            found.setdefault(key, command)
    return list(found.values()), problems


async def expanded(
    body: str, arguments: str, names: Sequence[str] = (), run: RunCommand | None = None
) -> str:
    """The text of a command with its arguments and, with `run`, the output of its commands, in one pass: inserted
    text is not expanded again."""
    try:
        words = shlex.split(arguments)
    except ValueError:  # An open quote.
        words = arguments.split()
    uses = False

    def inserted(found: re.Match[str], *, quoted: bool = False) -> str:
        nonlocal uses
        if (name := found["name"]) is not None and name not in names:
            return found[0]  # A variable of the text.
        uses = uses or not quoted
        if name is None and found["number"] is None and found["position"] is None:
            return shlex.join(words) if quoted else arguments
        position = found["position"] or "0"
        at = (
            names.index(name)
            if name
            else whole_number(found["number"] or position, 0) - bool(found["number"])
        )
        word = words[at] if at < len(words) else ""
        return shlex.quote(word) if quoted else word

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
