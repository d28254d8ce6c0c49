"""Condensing: older messages become one summary by the model; where that fails the newest ones are kept."""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import AsyncGenerator, Sequence

from tui_agent.context import budget, memory
from tui_agent.context.blocks import inert, restored
from tui_agent.context.budget import Shares, emptied
from tui_agent.context.prompt import LEFT_OUT, SUMMARY
from tui_agent.edits.change import Change
from tui_agent.errors import EmptyReply, ModelError, TuiAgentError
from tui_agent.files.text import decode
from tui_agent.model.client import Message, ModelRequest
from tui_agent.store import events as e
from tui_agent.store.state import SentMessage, State
from tui_agent.turn.beginning import begin, keep
from tui_agent.turn.desk import Desk, Gathered
from tui_agent.turn.exchange import Answer, cut_off, exchange, open_request
from tui_agent.turn.instructing import instruct
from tui_agent.turn.limits import check_limits
from tui_agent.turn.remembering import memory_of

#: How much of a message the model that summarises gets to see, in characters.
MOST_OF_A_MESSAGE = 8000
CHARACTERS_A_TOKEN = 3
#: The share of the window that the messages to be summarised may fill.
SOURCE_SHARE = 0.6


async def condense(
    desk: Desk, gathered: Gathered, shares: Shares, room: int = 0, *, all_of_them: bool = False
) -> AsyncGenerator[e.Event, None]:
    """The conversation begins again with a summary of what is older and the newest messages as they were.

    Those may have `room` tokens, and no more than `KEPT_SHARE` of the window; the last exchange is kept at any size.
    With `all_of_them` no message is kept, but for one whose calls still wait for their results. A summary that
    fails is not asked for again in the same turn.
    """
    state = desk.state()
    sent = state.conversation.messages[1:]
    kept = await asyncio.to_thread(desk.sent.read, desk.blobs, sent)
    messages = [one.message for one in kept]
    if all_of_them:
        start = len(messages) - bool(state.conversation.open_calls)
    else:
        most = min(room, int(shares.window * budget.KEPT_SHARE))
        start = budget.newest(messages, [message.tokens for message in sent], most)
    if not start or (all_of_them and all(message.kind == "summary" for message in sent[:start])):
        return
    words: list[str] = []
    if not gathered.no_summary:
        async for event in _summarise(desk, gathered, messages[:start], shares, words):
            yield event
        gathered.no_summary = not words
    if words:
        yield e.SummaryMade(gathered.turn, words[0])
        text = f"{SUMMARY}\n\n{inert(words[0])}"
    else:
        start = budget.newest_share(messages, shares.keep_on_failure)
        yield e.SummaryMade(gathered.turn, "", kept=len(messages) - start, of=len(messages))
        text = LEFT_OUT
    summary = await _summary_message(desk, gathered, text)
    yield await begin(desk, gathered, "condensed", (summary, *sent[start:]))


async def edited(desk: Desk, gathered: Gathered, text: str) -> e.ConversationBegun | None:
    """The conversation with the person's words in place of the summary; None where there is no summary."""
    messages = desk.state().conversation.messages
    if not any(message.kind == "summary" for message in messages):
        return None
    summary = await _summary_message(desk, gathered, f"{SUMMARY}\n\n{inert(text)}")
    carried = [summary if message.kind == "summary" else message for message in messages[1:]]
    async for _ in instruct(desk, gathered):
        pass  # the texts in force go into the system prompt; what changed is told by the next turn
    return await begin(desk, gathered, "edited", carried)


async def _summarise(
    desk: Desk, gathered: Gathered, messages: Sequence[Message], shares: Shares, words: list[str]
) -> AsyncGenerator[e.Event, None]:
    """Ask the model for a summary, which goes into `words`; they stay empty where none came."""
    state = desk.state()
    text = _transcript(messages, int(shares.window * SOURCE_SHARE * CHARACTERS_A_TOKEN))
    request = ModelRequest(
        state.model.name,
        ({"role": "system", "content": desk.prompt_words["condense"]}, {"role": "user", "content": text}),
        purpose="condense",
        timeout=float(desk.settings.request_timeout),
    )
    tokens = sum((await desk.model.count(state.model.name, [text])).counts)
    check_limits(desk, tokens)
    paid = await open_request(desk, state.model.name, tokens, "condense")
    yield e.RequestSent(
        gathered.turn, "condense", tokens=tokens, estimated=True, model=state.model.name, paid=paid
    )
    answer = Answer()
    try:
        async for event in exchange(desk, request, paid, answer):
            yield event
        if answer.cut:
            raise ModelError(cut_off(answer.why), "only the newest messages are kept")
        if not answer.text.strip():
            raise EmptyReply("The summary is empty", "only the newest messages are kept")
        words.append(answer.text.strip())
    except ModelError as error:
        yield e.NoticeGiven("warning", f"Older messages could not be summarised: {error.what}")


def _transcript(messages: Sequence[Message], room: int) -> str:
    """The messages in words, without contents that gave way; of the oldest less, where all is too much."""
    parts = [f"[{message['role']}]\n{_words(emptied(message))}" for message in messages]
    while len(parts) > 1 and sum(map(len, parts)) > room:
        parts.pop(0)
    return "\n\n".join(parts)[-room:]


def _words(message: Message) -> str:
    calls = "\n".join(
        f"{call['function']['name']}({call['function']['arguments']})"
        for call in message.get("tool_calls") or ()
    )
    text = "\n".join(part for part in (str(message.get("content") or ""), calls) if part)
    return text if len(text) <= MOST_OF_A_MESSAGE else f"{text[:MOST_OF_A_MESSAGE]}\n[…]"


async def _summary_message(desk: Desk, gathered: Gathered, text: str) -> SentMessage:
    """What is certain is beside the summary, from state and word for word: the request, todos, what is pending."""
    state = desk.state()
    certain = memory.section(memory_of(state, gathered.turn))
    pending = await asyncio.to_thread(_pending, desk, state)
    content = "\n\n".join(part for part in (text, certain, pending) if part)
    (sent,), _ = await keep(desk, [{"role": "user", "content": content}])
    return sent


def words_of(content: str) -> str:
    """The summary alone, out of the message that holds it beside what is certain."""
    return restored(content.removeprefix(SUMMARY).partition(f"\n\n{memory.TITLE}")[0].strip())


def _pending(desk: Desk, state: State) -> str:
    diffs = [diff for change in state.review.open if (diff := _diff(desk, change))]
    return "Pending changes:\n" + inert("\n".join(diffs)) if diffs else ""


def _diff(desk: Desk, change: Change) -> str:
    try:
        before, after = (
            decode(desk.blobs.get(key)).text.splitlines(keepends=True) if key else []
            for key in (change.base, change.new)
        )
    except TuiAgentError:
        return f"{change.path}: {change.kind}"
    target = change.rename_to or change.path
    return (
        "".join(difflib.unified_diff(before, after, change.path, target)) or f"{change.path}: {change.kind}"
    )
