"""The conversation as sent: its beginning, the session's memory, and the summary that replaces older
messages.

If a summary fails, the newest messages are kept.
"""

from __future__ import annotations

import asyncio
import difflib
import json
import platform
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from hashlib import md5
from types import MappingProxyType
from typing import Any, Literal, cast

from msgspec import Struct
from msgspec.structs import replace

from tui_agent.answers import schema as reply_schema
from tui_agent.context import budget, file_contents, memory, prompt
from tui_agent.context.blocks import inert, name, restored
from tui_agent.context.budget import TokenShares, emptied
from tui_agent.context.file_contents import LoadedFile
from tui_agent.context.known_files import KnownFile, freshness_mark
from tui_agent.context.memory import ACTIVE_TURNS, MOST, Memory, TodoNote, asks_to_go_on, section
from tui_agent.context.prompt import LEFT_OUT, SUMMARY, ContextFile, as_sent, outline
from tui_agent.errors import EmptyReply, ModelError, TuiAgentError
from tui_agent.files.numbers import whole_number
from tui_agent.files.text import decode
from tui_agent.model import model_table
from tui_agent.model.client import ModelRequest
from tui_agent.model.parts import (
    CallPart,
    Message,
    TextPart,
    ThinkingPart,
    calls_of,
    message_of,
    parts_of,
    text_of,
)
from tui_agent.settings.loading import SYSTEM
from tui_agent.store import events as e
from tui_agent.store.conversation import SentMessage
from tui_agent.store.state import Batch, State
from tui_agent.tools.tool import Emit, functions, prompt_sections, unheard
from tui_agent.turn.context import TurnContext
from tui_agent.turn.exchange import Answer, check_limits, cut_off, exchange, mask_in_thread, open_request
from tui_agent.turn.instructions import instruct

#: Share of the window for the section; minimum characters per token.
SHARE, LEAST_CHARACTERS_A_TOKEN = 0.12, 2
BATCH_NAMED = 20


def remembered(state: State, turn: int, again: Mapping[str, KnownFile] = MappingProxyType({})) -> str:
    """For a turn that continues earlier work. `again` are files as they were before this turn reloaded them."""
    room = int(state.model.window * SHARE * LEAST_CHARACTERS_A_TOKEN) or MOST
    return section(memory_of(state, turn, again), min(MOST, room))


def memory_of(state: State, turn: int, again: Mapping[str, KnownFile] = MappingProxyType({})) -> Memory:
    files = sorted(state.known.files.values(), key=lambda entry: entry.path)
    found: defaultdict[int, dict[str, None]] = defaultdict(dict)
    for point in state.review.checkpoints:
        if not point.undone:
            found[point.turn].update(dict.fromkeys(step.path for step in point.files))
    return Memory(
        turn=turn,
        request=last_request(state),
        summary=next(
            (gist for m in reversed(state.chat.messages) if m.kind == "agent" and (gist := m.gist)), ""
        ),
        todos=tuple(TodoNote(todo.text, todo.details, todo.done) for todo in state.todos),
        batches=tuple(map(_progress, state.batches)),
        pending=tuple(dict.fromkeys(change.path for change in state.review.open)),
        stale={entry.path: _mark(entry, False) for entry in files if entry.stale}
        | {path: _mark(entry, True) for path, entry in again.items() if entry.stale},
        modified={turn: tuple(paths) for turn, paths in found.items()},
        active=tuple(
            entry.path for entry in files if max(entry.seen_turn, entry.modified_turn) >= turn - ACTIVE_TURNS
        ),
    )


def _progress(batch: Batch) -> str:
    waits = (
        f"; {len(batch.left)} wait for the next: {', '.join(batch.left[:BATCH_NAMED])}" if batch.left else ""
    )
    waits += " …" if len(batch.left) > BATCH_NAMED else ""
    now = f"; {len(batch.now)} go with this request" if batch.now else ""
    return f"{batch.name}: {batch.done} of {batch.total} files are done{now}{waits}. What is asked for: {batch.request}"


def _mark(entry: KnownFile, again: bool) -> str:
    return freshness_mark(entry, again).removeprefix("⚠️ Yes ")


def last_request(state: State) -> str:
    """Ignores "continue"."""
    said = [message for message in state.chat.messages if message.kind == "person"]
    real = [message.text for message in said if not asks_to_go_on(message.text, message.turn)]
    if real:
        return real[-1]
    return next((text for text in reversed(state.input.history) if not asks_to_go_on(text, 2)), "")


SMALL = "small:"
#: The common models' cost of a large image, in tokens.
IMAGE_TOKENS = 1_600
#: Characters of one message in a summary request.
MOST_OF_A_MESSAGE = 8000
CHARACTERS_A_TOKEN = 3
#: Share of the window for the messages to summarise.
SOURCE_SHARE = 0.6
#: Shares of the window for a summary and for the pending changes beside it; tokens of an unknown window.
SUMMARY_SHARE, PENDING_SHARE, UNKNOWN_WINDOW = 0.15, 0.1, 8_000
#: Consecutive failures after which a model is not asked for a summary again.
MOST_FAILED_SUMMARIES = 2
#: Tokens of the list of skills in the prompt, and of that of agents.
LIST_TOKENS = 2_000
Why = Literal["first", "model", "files", "condensed", "edited"]


class Head(Struct, frozen=True):
    tools: tuple[dict[str, Any], ...] = ()
    schema: dict[str, Any] | None = None

    @property
    def text(self) -> str:
        return json.dumps([self.tools, self.schema]) if self.tools or self.schema else ""

    @property
    def digest(self) -> str:
        return md5(self.text.encode(), usedforsecurity=False).hexdigest()


def needs_begin(state: State) -> bool:
    sent, model = state.conversation, state.model
    if not sent.messages or (sent.model, sent.protocol) != (model.name, model.protocol):
        return True
    if sent.head and model.small != sent.head.startswith(SMALL):
        return True
    head = sent.head.removeprefix(SMALL)
    # If the provider does not enforce the schema, the system prompt contains it.
    return model.protocol == "structured" and not model.takes_schema and head not in ("", Head().digest)


def accepts_previous_items(state: State) -> bool:
    sent, model = state.conversation, state.model
    return sent.protocol == model.protocol and model_table.family(sent.model) == model_table.family(
        model.name
    )


def head_of(context: TurnContext) -> Head:
    state = context.core.state
    if state.model.protocol == "tools":
        return Head(tools=tuple(functions(context.tools)))
    return Head(schema=reply_schema.strict(context.schema) if state.model.takes_schema else None)


async def begin(
    context: TurnContext,
    contexts: Sequence[ContextFile],
    why: Why,
    carried: Sequence[SentMessage] = (),
    working: Sequence[LoadedFile] = (),
) -> e.ConversationBegun:
    state, head = context.core.state, head_of(context)
    words = await mask_in_thread(context, [await _system(context, contexts, working)])
    read = len(file_contents.read_files_result(working, file_contents.FilesInPrompt())) if working else 0
    sizes = Sizes(read, sum(len(prompt.instruction_block(file)) for file in contexts))
    system, _ = await keep(context, words, [sizes])
    counted = await context.model.count(state.model.name, [head.text])
    return e.ConversationBegun(
        turn=context.turn,
        why=why,
        messages=(*system, *carried),
        files={file.path: file.view for file in working},
        contexts={file.path: file.md5 for file in contexts},
        model=state.model.name,
        protocol=state.model.protocol,
        head=SMALL + head.digest if state.model.small else head.digest,
        # A local server compiles the schema to a grammar; the model does not read it.
        head_tokens=counted.counts[0] if head.text and not (state.model.server and head.schema) else 0,
        open_calls=state.conversation.open_calls if why not in ("first", "model") else (),
    )


class Sizes(Struct, frozen=True):
    """In characters."""

    files: int = 0
    instructions: int = 0


async def keep(
    context: TurnContext,
    messages: Sequence[Message],
    sizes: Sequence[Sizes] = (),
    held: Sequence[str] = (),
) -> tuple[tuple[SentMessage, ...], bool]:
    """Returns messages as stored, and whether the count of tokens is exact. `held` are keys of stored texts."""
    counted = await context.model.count(
        context.core.state.model.name, [_countable(message) for message in messages]
    )
    blobs = held or await asyncio.to_thread(
        lambda: [context.core.blobs.hold_text(as_sent(message)) for message in messages]
    )
    kept = []
    for message, blob, tokens, size in zip(
        messages, blobs, counted.counts, sizes or [None] * len(messages), strict=True
    ):
        tokens += sum(
            whole_number(one.get("tokens", ""), IMAGE_TOKENS) for one in message.get("images") or ()
        )
        words = _countable(message)
        if size is None:
            stands_for_older = message["role"] == "user" and words.startswith((SUMMARY, LEFT_OUT))
            kind = "summary" if stands_for_older else ""
            kept.append(SentMessage(message["role"], blob, tokens, kind=kind))
        else:
            characters = max(1, len(words))
            files = min(tokens, tokens * size.files // characters)
            rules = min(tokens - files, tokens * size.instructions // characters)
            kept.append(SentMessage(message["role"], blob, tokens, files, rules))
    return tuple(kept), counted.exact


def _countable(message: Message) -> str:
    if message["role"] != "assistant":
        return text_of(message)
    words = []
    for part in parts_of(message):
        match part:
            case CallPart(id, name, arguments):
                words.append(f"{id} {name} {arguments}")
            case TextPart(text) | ThinkingPart(text):
                words.append(text)
    return "\n".join(words)


async def _system(
    context: TurnContext, contexts: Sequence[ContextFile], working: Sequence[LoadedFile]
) -> Message:
    state = context.core.state
    dialect = cast(prompt.Dialect, state.model.protocol)
    place = prompt.Environment(
        root=str(context.core.workspace.root),
        start_folder=context.start_folder,
        system=platform.system(),
        outline=await asyncio.to_thread(
            outline, context.core.workspace.index, context.core.settings.outline_tokens
        )
        if not state.model.small
        else "",
    )
    needs_words = dialect == "structured" and not state.model.takes_schema and not state.model.small
    words = context.prompts[SYSTEM]
    sections = prompt_sections(context.tools, dialect, example=not state.model.takes_schema)
    heading = "# Skills\nRead a skill with use_skill before work that it describes."
    skills = await _listed(context, state.skills, ("use_skill", "skill", heading))
    heading = (
        "# Agents\nA sub-task can name one as its `agent`, which has a prompt, a model and tools of its own."
    )
    agents = await _listed(context, state.agents, ("spawn_subtasks", "agent", heading))
    servers, listed = "", state.server_tools
    if listed.by_name and not state.model.small:
        from tui_agent.tools.server_tools import prompt_section

        servers, left_out = prompt_section(listed, context.core.settings.tools.off)
        if left_out:
            await context.calls.notify(
                f"{left_out:,} tools of servers have no room in the prompt: the model finds them with describe_tool"
            )
    lines = [f"- {name(one.name)}: {inert(one.run)}" for one in context.core.settings.places if one.model]
    places = "\n".join(["# Places\n`place` of a command can be one of these:", *lines]) if lines else ""
    sections = [*sections, *filter(None, (skills, agents, servers, places))]
    if state.model.small and (short := words.get("small", {}).get(dialect)):
        words, sections = {"sections": [{"text": short}]}, []
    return prompt.system_message(
        words,
        dialect,
        context.schema if needs_words else None,
        place,
        contexts,
        working,
        context.part,
        sections,
    )


async def _listed(context: TurnContext, named: Sequence[tuple[str, str]], use: tuple[str, str, str]) -> str:
    tool, noun, words = use
    if not named or all(one.name != tool for one in context.tools):
        return ""
    from tui_agent.extensions.markdown_files import skill_lines

    found = skill_lines([(name, inert(description)) for name, description in named], LIST_TOKENS)
    if found.short or found.left_out:
        count = len(found.short) + len(found.left_out)
        await context.calls.notify(
            f"The descriptions of {count} {noun}{'s' * (count > 1)} have no room in the prompt: remove some {noun}s"
        )
    more = [f"More {noun}s: {', '.join(found.short)}"] if found.short else []
    return "\n".join([words, *found.lines, *more])


def as_plain_text(messages: Sequence[Message]) -> list[Message]:
    """Converts function calls to text, for another model or dialect."""
    carried: list[Message] = []
    for message in messages:
        match message["role"]:
            case "user":
                carried.append(message)
            case "assistant":
                parts = [text_of(message), *(call.arguments for call in calls_of(message))]
                carried.append(message_of([TextPart("\n\n".join(filter(None, parts)))]))
            case "tool":
                carried.append({"role": "user", "content": message["content"]})
    return carried


async def condense(
    context: TurnContext,
    contexts: Sequence[ContextFile],
    shares: TokenShares,
    emit: Emit,
    *,
    room: int = 0,
    all_of_them: bool = False,
    summarise: bool = True,
    again: bool = False,
    most_kept: int = sys.maxsize,
) -> bool:
    """Restarts the conversation with a summary and the newest messages. Returns False if a requested summary
    failed. The kept messages have at most `room` tokens and `KEPT_SHARE` of the window; the last exchange
    is kept at any size. `all_of_them` keeps only a message with unanswered calls. Without a summary,
    `keep_on_failure` messages are kept, or all if that was done before (`again`), with at most
    `most_kept` tokens.
    """
    state = context.core.state
    sent = state.conversation.messages[1:]
    kept = await asyncio.to_thread(context.sent.read, context.core.blobs, sent)
    messages = [one.message for one in kept]
    if all_of_them:
        start = len(messages) - bool(state.conversation.open_calls)
    else:
        most = min(room, int(shares.window * budget.KEPT_SHARE))
        start = budget.newest(messages, [message.tokens for message in sent], most)
    if not start or (all_of_them and all(message.kind == "summary" for message in sent[:start])):
        return True
    failed = context.sent.no_summary
    asks = summarise and not state.model.small  # Its summary would fill its own window.
    asks = asks and failed.get(state.model.name, 0) < MOST_FAILED_SUMMARIES
    words = await _summarise(context, messages[:start], shares, emit) if asks else ""
    if asks:
        failed[state.model.name] = 0 if words else failed.get(state.model.name, 0) + 1
    if words:
        await emit(e.SummaryMade(context.turn, words))
        text = f"{SUMMARY}\n\n{inert(words)}"
    else:
        first = int(sent[0].kind == "summary")  # An earlier summary is merged with further messages.
        start = 0 if again else first + budget.newest_share(messages[first:], shares.keep_on_failure)
        start = budget.newest_within(messages, [message.tokens for message in sent], most_kept, start)
        if not start:
            return False
        await emit(e.SummaryMade(context.turn, "", kept=len(messages) - start, of=len(messages)))
        text = LEFT_OUT
    summary = await _summary_message(context, text)
    await emit(await begin(context, contexts, "condensed", (summary, *sent[start:])))
    return bool(words)


async def edit_summary(context: TurnContext, text: str, emit: Emit) -> bool:
    messages = context.core.state.conversation.messages
    if not any(message.kind == "summary" for message in messages):
        return False
    summary = await _summary_message(context, f"{SUMMARY}\n\n{inert(text)}")
    carried = [summary if message.kind == "summary" else message for message in messages[1:]]
    # The system prompt contains the current texts; the next turn reports changes.
    contexts = await instruct(context, (), unheard)
    await emit(await begin(context, contexts, "edited", carried))
    return True


async def _summarise(
    context: TurnContext, messages: Sequence[Message], shares: TokenShares, emit: Emit
) -> str:
    model = context.core.state.model.name
    room = int(shares.window * SOURCE_SHARE * CHARACTERS_A_TOKEN)
    parts = []
    for message in map(emptied, messages):
        calls = (f"{call.name}({call.arguments})" for call in calls_of(message))
        words = "\n".join(part for part in (text_of(message), *calls) if part)
        cut = "\n[…]" if len(words) > MOST_OF_A_MESSAGE else ""
        parts.append(f"[{message['role']}]\n{words[:MOST_OF_A_MESSAGE]}{cut}")
    while len(parts) > 1 and sum(map(len, parts)) > room:
        parts.pop(0)
    text = "\n\n".join(parts)[-room:]
    request = ModelRequest(
        model,
        (
            {"role": "system", "content": context.prompts[SYSTEM]["condense"]},
            {"role": "user", "content": text},
        ),
        purpose="condense",
        timeout=float(context.core.settings.request_timeout),
        effort="none",
    )
    tokens = sum((await context.model.count(model, [text])).counts)
    check_limits(context, tokens)
    paid = await open_request(context, model, tokens, "condense")
    await emit(e.RequestSent(context.turn, "condense", tokens=tokens, estimated=True, model=model, paid=paid))
    answer = Answer()
    try:
        await exchange(context, request, paid, answer, emit)
        if answer.cut:
            raise ModelError(cut_off(answer.why), "only the newest messages are used")
        if not answer.text.strip():
            raise EmptyReply("The summary is empty", "only the newest messages are used")
    except ModelError as error:
        await emit(e.NoticeGiven("warning", f"Older messages could not be summarised: {error.what}"))
        return ""
    return answer.text.strip()


async def _summary_message(context: TurnContext, text: str) -> SentMessage:
    state = context.core.state
    certain = remembered(state, context.turn)
    pending = await asyncio.to_thread(_pending, context, state)
    window = state.model.window or UNKNOWN_WINDOW
    text = await within(context, text, int(window * SUMMARY_SHARE))
    pending = await within(context, pending, int(window * PENDING_SHARE))
    content = "\n\n".join(part for part in (text, certain, pending) if part)
    (sent,), _ = await keep(context, await mask_in_thread(context, [{"role": "user", "content": content}]))
    return sent


async def within(context: TurnContext, text: str, most: int) -> str:
    found, room = text, len(text)
    while room > 0:
        tokens = (await context.model.count(context.core.state.model.name, [found])).counts[0]
        if tokens <= most:
            return found
        room = min(int(room * most / tokens * 0.9), room - 1)
        found = memory.shortened(text, room)
    return ""


async def shorten_summaries(context: TurnContext, most: int, emit: Emit) -> None:
    messages = context.core.state.conversation.messages[1:]
    kept = await asyncio.to_thread(context.sent.read, context.core.blobs, messages)
    carried = []
    for one, sent in zip(kept, messages, strict=True):
        if sent.kind == "summary" and sent.tokens > most:
            words = await within(context, text_of(one.message), most)
            (new,), _ = await keep(context, [{"role": "user", "content": words or LEFT_OUT}])
            carried.append(replace(new, kind="summary"))
        else:
            carried.append(sent)
    if carried != list(messages):
        contexts = await instruct(context, (), unheard)
        await emit(await begin(context, contexts, "condensed", carried))


async def drop_conversation(context: TurnContext, emit: Emit) -> None:
    """Also drops unanswered calls."""
    contexts = await instruct(context, (), unheard)
    begun = await begin(context, contexts, "condensed")
    await emit(replace(begun, open_calls=()))


def words_of(content: str) -> str:
    return restored(content.removeprefix(SUMMARY).partition(f"\n\n{memory.TITLE}")[0].strip())


def _pending(context: TurnContext, state: State) -> str:
    diffs = []
    for change in state.review.open:
        diff = ""
        with suppress(TuiAgentError):
            before, after = (
                decode(context.core.blobs.get(key)).text.splitlines(keepends=True) if key else []
                for key in (change.base, change.new)
            )
            target = change.rename_to or change.path
            diff = "".join(difflib.unified_diff(before, after, change.path, target))
        diffs.append(diff or f"{change.path}: {change.kind}")
    return "Pending changes:\n" + inert("\n".join(diffs)) if diffs else ""
