"""Tool that searches text in files."""

from __future__ import annotations

import asyncio
import fnmatch
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

from msgspec import Struct

from tui_agent.answers.values import SearchRequest
from tui_agent.context.blocks import inert, item, name
from tui_agent.context.known_files import MAX_BYTES
from tui_agent.errors import TooLarge, TuiAgentError
from tui_agent.files.gate import Decisions, Gate, find_secrets, read
from tui_agent.files.masking import hits_masked
from tui_agent.files.sensitive_paths import is_secret
from tui_agent.files.text import decode
from tui_agent.store.events import PhaseChanged
from tui_agent.tools.permission import refusal_of_path
from tui_agent.tools.tool import Emit, Invocation, Tool, ToolContext, ToolResult, counted

MAX_PLACES = 50
#: A larger file is searched last, up to `MOST_LARGE` bytes in total.
MAX_SEARCHED_BYTES = 4 * 1024 * 1024
MOST_LARGE = 128 * 1024 * 1024
MAX_LINE = 200
NAMED = 10
#: Timeout of a regular expression per line.
MATCH_SECONDS = 1.0


async def run(call: Invocation, context: ToolContext, emit: Emit) -> ToolResult:
    await emit(PhaseChanged("finding"))
    found = [await search_text(context, request) for request in call.entries]
    for path, line in (hit for one in found for hit in one.hits):
        context.progress.hits.setdefault(path, []).append(line)
    return ToolResult(
        "\n\n".join(one.section for one in found),
        ok=not any(one.error for one in found),
        amount=counted(sum(len(one.places) for one in found), "place"),
    )


class TextSearch(Struct, frozen=True):
    request: SearchRequest
    places: tuple[str, ...] = ()
    error: str = ""
    hits: tuple[tuple[str, int], ...] = ()
    #: Paths that contain the pattern, if no text does.
    named: tuple[str, ...] = ()

    @property
    def section(self) -> str:
        where = f" in {name(self.request.glob)}" if self.request.glob else ""
        found = self.error or "\n".join(self.places) or "found nowhere"
        if self.named:
            found += f" in a file; paths that contain it: {', '.join(map(name, self.named))}"
        return f"## SEARCH RESULTS\n“{name(self.request.pattern)}”{where}\n{found}"


async def search_text(context: ToolContext, request: SearchRequest) -> TextSearch:
    import regex

    rules = context.core.settings.permissions
    paths = [
        path for path in context.core.workspace.index.paths if not refusal_of_path(rules, TOOL.name, path)
    ]
    try:
        expression = regex.compile(request.pattern) if request.regex else None
        places, hits = await asyncio.to_thread(
            search_files,
            context.core.workspace.gate,
            paths,
            request,
            expression,
            context.core.state.secrets,
        )
    except regex.error as error:
        return TextSearch(request, error=f"not an expression that can be searched: {item(str(error))}")
    except TimeoutError:
        return TextSearch(request, error=f"stopped: the expression took over {MATCH_SECONDS:g} s on one line")
    sought = "" if places or request.regex else request.pattern.strip().lower()
    named = [path for path in paths if sought in path.lower()][:NAMED] if len(sought) > 2 else []
    return TextSearch(request, tuple(places), hits=tuple(hits), named=tuple(named))


def search_files(
    gate: Gate,
    paths: Sequence[str],
    request: SearchRequest,
    expression: Any,
    decisions: Decisions,
) -> tuple[list[str], list[tuple[str, int]]]:
    """Returns places in words, and their paths and line numbers. Blocking."""
    fitting = [
        path
        for path in paths
        if not is_secret(path) and (not request.glob or fnmatch.fnmatchcase(path, request.glob))
    ]
    places: list[str] = []
    hits: list[tuple[str, int]] = []
    large: list[str] = []
    missed: list[str] = []
    left = MOST_LARGE
    for path, is_large in chain(((path, False) for path in fitting), ((path, True) for path in large)):
        if is_large and left <= 0:
            missed.append(path)
            continue
        try:
            data = read(gate, path, MAX_BYTES if is_large else MAX_SEARCHED_BYTES)
            left -= len(data) if is_large else 0
            file = decode(data)
        except TooLarge:
            if not is_large:
                large.append(path)
            continue
        except TuiAgentError:
            continue
        if next(_found(file.text, request, expression), None) is None:
            continue
        judged = find_secrets(path, data, file, named=False)
        choice = judged.choice(decisions)
        if choice == "leave":
            continue
        shown = file.text if choice == "send" else hits_masked(file.text, judged.hits)
        for number, line in _found(shown, request, expression):
            places.append(f"{name(path)}:{number}: {inert(line)}")
            hits.append((path, number))
            if len(places) >= MAX_PLACES:
                return [*places, f"… the first {MAX_PLACES} places"], hits
    if missed:
        places.append(f"… not searched, since they are large: {', '.join(map(name, missed[:NAMED]))}")
    return places, hits


def _found(text: str, request: SearchRequest, expression: Any) -> Iterator[tuple[int, str]]:
    if request.regex:
        for number, line in enumerate(text.splitlines(), 1):
            if found := expression.search(line[: MAX_LINE * 10], timeout=MATCH_SECONDS, concurrent=True):
                yield number, _around(line, found.start())
        return
    at, number, begin = text.find(request.pattern), 1, 0
    while at >= 0:
        lines = text[begin : at + 1].splitlines(keepends=True)
        number += len(lines) - 1
        begin = at + 1 - len(lines[-1])
        line, *_ = text[begin : at + MAX_LINE].splitlines()
        yield number, _around(line, at - begin)
        at = text.find(request.pattern, max(at + 1, begin + len(line)))


def _around(line: str, at: int) -> str:
    begin = max(0, at - MAX_LINE // 4) if at > MAX_LINE // 2 else 0
    return f"{'… ' if begin else ''}{line[begin : begin + MAX_LINE].strip()}"


TOOL = Tool(
    name="search_text",
    key="searches",
    words="Find text in the files of the workspace.",
    entry={
        "type": "object",
        "properties": {
            "pattern": {"type": "string", "minLength": 1},
            "glob": {"type": "string", "description": "Only in paths that fit, such as src/**/*.py."},
            "regex": {"type": "boolean"},
        },
        "required": ["pattern"],
    },
    example={"pattern": "fetch(", "glob": "src/**"},
    place=50,
    run=run,
    seconds=60.0,
    targets=lambda call: tuple(request.glob or "**" for request in call.entries),
    line=lambda call: ", ".join(f"“{request.pattern}”" for request in call.entries),
)
