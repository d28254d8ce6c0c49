"""Custom commands: Markdown files whose text replaces `/NAME ARGUMENTS` in a message."""

from __future__ import annotations

import re
import shlex
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from msgspec import Struct

from tui_agent.extensions.front_matter import parse
from tui_agent.extensions.names import model_of
from tui_agent.extensions.places import (
    MAX_ENTRIES,
    NAME,
    ExtensionFolder,
    Origin,
    Problem,
    Unusable,
    entries,
    read_text,
)
from tui_agent.extensions.trusted import TrustedFiles
from tui_agent.files.names import display_path
from tui_agent.files.numbers import whole_number

#: Arguments by number, all of them, and the output of a command.
_PLACES = re.compile(r"\$(?:(?P<number>[1-9])|(?P<all>ARGUMENTS))(?!\w)|!`(?P<command>[^`\n]+)`")
_IN_COMMAND = re.compile(r"\$(?:([1-9])|(ARGUMENTS))(?!\w)")

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
            hint = document.text("argument-hint")
            model = model_of(document.text("model"), models)
            if model is None:
                wanted = display_path(document.text("model"))[:80]
                problems.append(Problem(file, f"the model {wanted}, which is not configured"))
            command = Command(key, words[:200], hint, document.body, place.origin, file, model or "")
            found.setdefault(key, command)
    return list(found.values()), problems


async def expanded(command: Command, arguments: str, run: RunCommand) -> str:
    """The text of a command with its arguments and the output of its commands, in one pass: inserted text
    is not expanded again."""
    try:
        words = shlex.split(arguments)
    except ValueError:  # An open quote.
        words = arguments.split()
    parts: list[str] = []
    at, uses = 0, False
    for place in _PLACES.finditer(command.body):
        parts.append(command.body[at : place.start()])
        at = place.end()
        if place["command"]:
            parts.append(await run(_IN_COMMAND.sub(lambda one: _quoted(one, words), place["command"])))
            continue
        uses = True
        number = place["number"]
        parts.append(arguments if not number else _word(words, number))
    text = "".join([*parts, command.body[at:]]).strip()
    return text if uses or not arguments else f"{text}\n\n{arguments}"


def _quoted(place: re.Match[str], words: Sequence[str]) -> str:
    return shlex.join(words) if place[2] else shlex.quote(_word(words, place[1]))


def _word(words: Sequence[str], number: str) -> str:
    """ "" if it is missing."""
    at = whole_number(number, 0)
    return words[at - 1] if at <= len(words) else ""
