"""The model's reply: sends the request and parses the streamed response.

An unnamed fence that resembles a known file, or can be a new file, becomes a change the user must accept
with a separate key.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress

from msgspec.structs import replace

from tui_agent.answers import file_names
from tui_agent.answers.structured_reader import StructuredReader
from tui_agent.answers.tools_reader import ToolsReader
from tui_agent.answers.values import ChangeRequest, Reply, ShownText
from tui_agent.edits import forms
from tui_agent.edits.change import text_under
from tui_agent.errors import (
    BadKey,
    ContextTooLong,
    EditFailed,
    EmptyReply,
    LimitReached,
    ModelError,
    RateLimited,
    Refused,
    SchemaRefused,
    TuiAgentError,
    Unreachable,
)
from tui_agent.model.client import CallChunk, Chunk, ReasoningChunk, TextChunk
from tui_agent.model.parts import CallPart, Message, Part, TextPart, message_of
from tui_agent.model.servers import sizes_in
from tui_agent.store import events as e
from tui_agent.tools.load_files import window_of
from tui_agent.tools.propose_changes import changes_of
from tui_agent.tools.tool import Emit
from tui_agent.turn.compaction import EarlierMessages, fit_to_window
from tui_agent.turn.context import TurnContext
from tui_agent.turn.conversation import keep
from tui_agent.turn.exchange import (
    MOST_LETTERS,
    Answer,
    check_limits,
    exchange,
    known_again,
    next_model,
    open_request,
)
from tui_agent.turn.request import ComposedRequest, Draft

#: A change's `"path": "…"`. Escaped quotes inside a text do not match.
_NAMED = re.compile(r'(?<!\\)"(fileChanges|changes|path)"\s*:\s*(?:\[|("(?:[^"\\]|\\.){1,300}"))')
#: Characters kept for the next chunk, in case a name is split.
_KEPT = 400


class StreamedPaths:
    def __init__(self) -> None:
        self.paths: dict[str, None] = {}
        self._tail = ""
        self._in_changes = False

    def take(self, text: str) -> str:
        looked = self._tail + text
        newest, end = "", 0
        for found in _NAMED.finditer(looked):
            end = found.end()
            if found[1] != "path":
                self._in_changes = True
            elif self._in_changes and found[2]:
                try:
                    newest = str(json.loads(found[2]))
                except ValueError:
                    newest = found[2][1:-1]
                self.paths.pop(newest, None)
                self.paths[newest] = None
        self._tail = looked[max(end, len(looked) - _KEPT) :]
        return newest


#: Limits of the comparison: fences, files, characters per file.
MOST_FENCES, MOST_FILES, MOST_FENCE_LETTERS = 20, 200, 200_000
#: A shorter file resembles too many others.
FEWEST_LINES = 4
WHY = "a code block without a file name resembles it"
WHY_NEW = "a code block may be its text, but the answer does not say so"


async def resembling(context: TurnContext, reply: Reply) -> tuple[ChangeRequest, ...]:
    if not reply.shown:
        return ()
    known = context.core.state.known.files
    taken = {file_names.plain(one.path) for one in (*reply.changes, *reply.refused, *reply.offered)}
    seen = {
        path: entry.md5
        for path, entry in known.items()
        if not entry.masked and entry.md5 and path not in taken
    }

    def compare() -> tuple[ChangeRequest, ...]:
        files: dict[str, str] = {}
        for path, md5 in list(seen.items())[-MOST_FILES:]:
            text = text_under(context.core.blobs, md5) if context.core.blobs.has(md5) else None
            if text and len(text) <= MOST_FENCE_LETTERS:
                files[path] = text
        found = (
            _request(one, files) or (None if one.path in taken else _new(context, one))
            for one in reply.shown[:MOST_FENCES]
        )
        return tuple({one.path: one for one in found if one}.values())

    return await asyncio.to_thread(compare)


def _request(shown: ShownText, files: Mapping[str, str]) -> ChangeRequest | None:
    if len(shown.text) > MOST_FENCE_LETTERS:
        return None
    fitting, fence = [], _lines(shown.text)
    for path, text in files.items():
        if shown.diff is not None:
            request = ChangeRequest(path, diff=shown.diff, offered=WHY)
            with suppress(EditFailed):
                if forms.propose(request, text, forms.NEVER_NEAR).new_text not in (None, text):
                    fitting.append(request)
            continue
        file = _lines(text)
        if fence == file or file.total() < FEWEST_LINES:
            continue
        if 2 * (file & fence).total() > max(file.total(), fence.total() // 2):
            fitting.append(ChangeRequest(path, content=shown.text, fenced=True, labelled=True, offered=WHY))
    return fitting[0] if len(fitting) == 1 else None


def _new(context: TurnContext, shown: ShownText) -> ChangeRequest | None:
    if not shown.path or shown.diff is not None:
        return None
    try:
        place = context.core.workspace.gate.place(shown.path, "write")
    except TuiAgentError:
        return None
    if os.path.lexists(context.core.workspace.root / place.path):
        return None
    return ChangeRequest(place.path, content=shown.text, fenced=True, labelled=True, offered=WHY_NEW)


def _lines(text: str) -> Counter[str]:
    return Counter(bare for line in text.splitlines() if (bare := line.strip()))


#: Maximum size of each retry of an oversized request, relative to the refused one.
LESS = (0.8, 0.5)
#: Usable share of a window reported by a provider, whose token count differs from ours.
NEARLY = 0.9
MOST_CHANGES = 1_000
#: OpenAI's limit for a message of a conversation.
MOST_KEPT_CALLS = 128
MOST_FAULTS = 100


async def ask(context: TurnContext, draft: Draft, earlier: EarlierMessages, emit: Emit) -> Reply:
    """Repeats a request refused as too long in smaller sizes. If the model is unreachable or overloaded,
    uses the next of `models.fallbacks`. Raises a `ModelError` without a reply.
    """
    failed: dict[str, ModelError] = {}
    size = _Size(context)
    while True:
        try:
            composed = await fit_to_window(context, draft, earlier, size.ceiling, emit)
            draft = composed.draft
        except ContextTooLong:
            if size.refusal is None:
                raise
            await emit(e.NoticeGiven("info", "The request cannot be made any smaller"))
            raise size.refusal from None
        except (Unreachable, RateLimited, BadKey) as error:
            await _next_model(context, error, failed, emit)
            size = _Size(context)
            continue
        try:
            reply = await _ask_once(context, composed, earlier, emit)
            if draft.doubt:
                await emit(e.NoticeGiven("warning", draft.doubt))
            return reply
        except LimitReached:
            if context.requests.why and not context.part and not context.requests.told:
                context.requests.told = True
                await emit(e.NoticeGiven("warning", f"{context.requests.why}: no more requests are sent"))
            raise
        except (ContextTooLong, SchemaRefused) as error:
            await emit(e.RequestWithdrawn(context.turn))
            if context.core.state.reply.letters:  # A truncated request invalidates the partial reply.
                await emit(e.ReplyGrew(context.turn, "", ""))
            known = await known_again(context, emit)
            window, asked = sizes_in(error.what)
            if not known and window:
                known = int(NEARLY * window * (composed.size / asked if asked > window else 1))
            context.progress.costs.clear()
            if isinstance(error, ContextTooLong):
                size.reduce(composed.size, error, known)
        except (Unreachable, RateLimited, BadKey) as error:
            await _next_model(context, error, failed, emit)
            size = _Size(context)


class _Size:
    """The size limit of a request in tokens, reduced after each refusal."""

    def __init__(self, context: TurnContext) -> None:
        # A replay has no window limit.
        self.ceiling = sys.maxsize if context.core.state.session.replay else window_of(context.core.state)
        self.refusal: ContextTooLong | None = None
        self._less = list(LESS)

    def reduce(self, size: int, refusal: ContextTooLong, known: int = 0) -> None:
        """Reduces to at most `known` if the server reported its window. Raises `refusal` after the last
        attempt.
        """
        if not self._less:
            raise refusal
        self.ceiling, self.refusal = int(size * self._less.pop(0)), refusal
        if known:
            self.ceiling = min(self.ceiling, known)


async def _next_model(
    context: TurnContext, error: ModelError, failed: dict[str, ModelError], emit: Emit
) -> None:
    """Raises the first error without a fallback."""
    if isinstance(error, BadKey) and not failed:
        raise error
    failed[context.core.state.model.name] = error
    another = await next_model(context, failed)
    if another is None:
        if len(failed) > 1:
            await emit(e.NoticeGiven("warning", f"{error.what}. There is no other model to ask"))
        raise next(iter(failed.values())) from None
    await emit(e.RequestWithdrawn(context.turn))
    await emit(e.NoticeGiven("warning", f"{error.what}. {another.name} is used instead from now on"))
    await emit(another)
    context.progress.costs.clear()  # Each model counts its own tokens.


async def _ask_once(
    context: TurnContext, composed: ComposedRequest, earlier: EarlierMessages, emit: Emit
) -> Reply:
    tokens = round(composed.event.tokens * context.core.state.usage.scale)
    check_limits(context, tokens)
    model = composed.request.model
    paid = await open_request(context, model, tokens, "main")
    await emit(replace(composed.event, paid=paid))
    answer = _ReplyAnswer(context, composed.event.protocol == "tools", composed.calls)
    context.sent.note_sent()
    await exchange(context, composed.request, paid, answer, emit)
    earlier.add(composed.event)
    reply = await asyncio.to_thread(answer.finish, model)
    if shown := await resembling(context, reply):
        reply = replace(reply, offered=(*reply.offered, *shown))
    (sent,), _ = await keep(context, [answer.message(reply)])
    first = changes_of(context) + 1
    count = len(reply.changes) + len(reply.refused)
    ids = tuple(f"c{context.turn}.{number}" for number in range(first, first + count))
    await emit(
        e.ReplyRead(
            turn=context.turn,
            summary=reply.summary,
            message=reply.message,
            reasoning=answer.thoughts,
            sent=sent,
            open_calls=tuple(call.id for call in reply.calls),
            changes=ids,
            todos=reply.todos or (),
            sub_tasks=reply.sub_tasks,
            next_steps=reply.next_steps,
            cut=reply.cut,
            faults=reply.faults,
            why=reply.why,
        )
    )
    return reply


class _ReplyAnswer(Answer):
    def __init__(self, context: TurnContext, tools: bool, earlier_calls: frozenset[str]) -> None:
        self._context = context
        self._tools = tools
        self._earlier_calls = earlier_calls
        self.forget()

    def forget(self) -> None:
        super().forget()
        self.reasoning = ""
        self._writing = StreamedPaths()
        schema, state = self._context.schema, self._context.core.state
        self.reader = (
            ToolsReader(
                schema,
                self._context.functions,
                f"call_{state.turn.number}_{state.turn.step}",
                self._earlier_calls,
                calls_as_text=bool(state.model.server or state.session.replay),
            )
            if self._tools
            else StructuredReader(schema, self._context.functions)
        )

    def take(self, chunk: Chunk) -> list[e.Event]:
        before = self.letters
        super().take(chunk)
        letters = self.letters - before
        match chunk:
            case TextChunk(text):
                shown = [e.ReplyStreamed(delta.part, delta.text) for delta in self.reader.feed(text)]
                hidden = letters - sum(len(event.text) for event in shown)
                begun = "" if self._tools else self._writing.take(text)
                return [*shown, self._hidden(hidden, begun)] if hidden > 0 or begun else [*shown]
            case CallChunk():
                self.reader.call(chunk)
                return [self._hidden(letters, self._writing.take(chunk.arguments))]
            case ReasoningChunk(text):
                self.reasoning += text
                return [e.ReplyStreamed("reasoning", text, letters)]
        return []

    def _hidden(self, letters: int, begun: str) -> e.ReplyStreamed:
        return e.ReplyStreamed("", "", letters, begun, len(self._writing.paths) if begun else 0)

    @property
    def thoughts(self) -> str:
        return "\n\n".join(part for part in (self.reasoning, self.reader.thought.strip()) if part)

    def is_worth_keeping(self) -> bool:
        return bool(self.reader.finish(cut=True).changes)

    def finish(self, model: str) -> Reply:
        """Keeps the complete parts of a cut reply. Raises `Refused` and `EmptyReply`."""
        reply = self.reader.finish(cut=self.cut)
        faults = list(reply.faults)
        if self.letters > MOST_LETTERS:
            faults.append(
                f"The answer had more than {MOST_LETTERS:,} letters: what came after them was not read."
            )
        if (count := len(reply.changes)) > MOST_CHANGES:
            faults.append(f"The answer held {count:,} changes: the first {MOST_CHANGES:,} were taken.")
        if (count := len(reply.calls)) > MOST_KEPT_CALLS:
            faults.append(
                f"The answer had {count:,} calls: only the first {MOST_KEPT_CALLS} of them were taken."
            )
        if (count := len(faults)) > MOST_FAULTS:
            more = f"{count - MOST_FAULTS:,} more faults of the answer are not listed."
            faults = [*faults[:MOST_FAULTS], more]
        reply = replace(
            reply,
            changes=reply.changes[:MOST_CHANGES],
            refused=reply.refused[:MOST_CHANGES],
            calls=reply.calls[:MOST_KEPT_CALLS],
            faults=tuple(faults),
        )
        if self.end and self.end.reason == "refused" and not reply.changes:
            raise Refused(f"{model} declined to answer", "reword the request, or choose another model")
        native = isinstance(self.reader, StructuredReader) and self.reader.has_calls
        if not self.text.strip() and not reply.calls and not native:
            why = f" ({self.why[:1].lower()}{self.why[1:]})" if self.why else ""
            raise EmptyReply(
                f"{model} sent an empty answer{why}", "send the request again, or choose another model"
            )
        return replace(reply, why=self.why if reply.cut else "")

    def message(self, reply: Reply) -> Message:
        came = self.end.parts if self.end else ()
        parts: list[Part] = [] if came else [TextPart(self.text)] if self.text else []
        calls = list(reply.calls)
        for part in came:
            if not isinstance(part, CallPart):
                parts.append(part)
            elif not self._tools:  # Calls of tools that were not offered are text.
                parts.append(TextPart(f"{part.name}({part.arguments})"))
            elif calls:
                call = calls.pop(0)
                parts.append(replace(part, id=call.id, name=call.name, arguments=call.arguments))
        parts += [CallPart(call.id, call.name, call.arguments) for call in calls]
        return message_of(parts, self.end.origin if self.end else None)
