"""Text searched for the model in the files of the workspace."""

from __future__ import annotations

import asyncio
import fnmatch
import re
from collections.abc import Iterator, Sequence

from tui_agent.answers.values import SearchRequest
from tui_agent.context.blocks import inert, item, name
from tui_agent.errors import TuiAgentError
from tui_agent.files.disclosure import Decisions, judge
from tui_agent.files.gate import Gate, is_secret, read
from tui_agent.files.key_formats import hits_masked
from tui_agent.files.text import TextFile, decode
from tui_agent.tools.context import ToolContext

MAX_PLACES = 50
MAX_SEARCHED_BYTES = 1024 * 1024
MAX_LINE = 200


async def search_text(context: ToolContext, request: SearchRequest) -> str:
    """The places where a text is found, as a section of the next message."""
    title = f"## SEARCH RESULTS\n“{name(request.pattern)}”" + (
        f" in {name(request.glob)}" if request.glob else ""
    )
    try:
        expression = re.compile(request.pattern if request.regex else re.escape(request.pattern))
    except re.error as error:
        return f"{title}\nnot an expression that can be searched: {item(str(error))}"
    places = await asyncio.to_thread(
        _search,
        context.workspace.gate,
        context.workspace.index.paths,
        expression,
        request.glob,
        context.state().secrets,
    )
    return f"{title}\n" + ("\n".join(places) or "found nowhere")


def _search(
    gate: Gate, paths: Sequence[str], expression: re.Pattern[str], glob: str, decisions: Decisions
) -> list[str]:
    places: list[str] = []
    for path in paths:
        if is_secret(path) or (glob and not fnmatch.fnmatchcase(path, glob)):
            continue
        try:
            data = read(gate, path, MAX_SEARCHED_BYTES)
            file = decode(data)
        except TuiAgentError:
            continue  # what cannot be read has no places; a search names only what it found
        if not any(_fitting(file.text, expression)):
            continue
        for number, line in _fitting(_searchable(path, data, file, decisions), expression):
            places.append(f"{name(path)}:{number}: {inert(line.strip()[:MAX_LINE])}")
            if len(places) >= MAX_PLACES:
                return [*places, f"… the first {MAX_PLACES} places"]
    return places


def _fitting(text: str, expression: re.Pattern[str]) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.splitlines(), 1):
        if expression.search(line[: MAX_LINE * 10]):
            yield number, line


def _searchable(path: str, data: bytes, file: TextFile, decisions: Decisions) -> str:
    """The text as the model may know it: to be told where a secret matches would be to be told the secret."""
    judged = judge(path, data, file, named=False)
    match judged.choice(decisions):
        case "send":
            return file.text
        case "leave":
            return ""
    return hits_masked(file.text, judged.hits)
