"""A request: the conversation as it was sent, and the one message that is new."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from tui_agent.context import editor, instructions, known, loaded, prompt
from tui_agent.context.editor import OpenFile
from tui_agent.context.folders import Listing
from tui_agent.context.instructions import ContextFile
from tui_agent.context.known import KnownFile, table_row
from tui_agent.context.prompt import as_sent
from tui_agent.model.client import Message, ModelRequest
from tui_agent.store.conversation import SentMessage
from tui_agent.store.events import RequestSent
from tui_agent.store.state import State
from tui_agent.tools.files import Loaded
from tui_agent.turn import task_report
from tui_agent.turn.context import TurnContext
from tui_agent.turn.conversation import Sizes, head_of, keep
from tui_agent.turn.conversation_cache import shared_beginning

GO_ON = "Here is what you asked for. Go on with the request."
NOTHING = "Nothing was found."
SEE_FIRST = "See the first result."
SEE_NEXT = "See the message that follows."
DECISION_FOLLOWS = "Shown to the person, who decides; the next message says what became of it."
NOT_ANSWERED = "The turn was stopped before this was answered: ask again if you still need it."
#: Calls that are answered with what they ask for; the others are for the person.
ANSWERED = frozenset({"read_files", "list_directory", "search_text"})
LEFT_OUT = ""


#: What a message costs beside its text, in tokens, with any provider.
AROUND_A_MESSAGE = 4


class Draft(Struct, frozen=True):
    """What the next request adds to the conversation."""

    query: str = ""
    #: The person asked to go on with what was being done.
    goes_on: bool = False
    loaded: Loaded = Loaded()
    listings: tuple[Listing, ...] = ()
    found: tuple[str, ...] = ()
    memory: str = ""
    #: What the editor shows, as far as it may be sent; with `excerpts` only a part of each file.
    opened: tuple[OpenFile, ...] = ()
    excerpts: bool = False
    #: The instruction and base files in force now.
    contexts: tuple[ContextFile, ...] = ()


class Composed(Struct, frozen=True):
    """A request, what it was made of, and the event that says what it added.

    `bytes` is the length of all that is sent.
    """

    draft: Draft
    request: ModelRequest
    event: RequestSent
    bytes: int

    @property
    def size(self) -> int:
        """In tokens, by our own count."""
        return self.event.tokens + AROUND_A_MESSAGE * len(self.request.messages)


async def compose(context: TurnContext, draft: Draft, state: State | None = None) -> Composed:
    """The next request of this turn, in today's state or another. The same material always gives the same bytes.

    The conversation has begun (see `window.fit`). With nothing new to say it goes out as it is.
    """
    state = state or context.state()
    before, head = state.conversation, head_of(context)
    kept = await asyncio.to_thread(context.sent.read, context.blobs, (*before.messages, *before.last))
    earlier, last = kept[: len(before.messages)], kept[len(before.messages) :]
    newest = _Newest(state, draft)
    # Files may be long: numbering their lines would stop the keyboard.
    new, sizes = await asyncio.to_thread(
        lambda: (newest.messages([one.message for one in earlier]), newest.sizes)
    )
    sent, exact = await keep(context, new, sizes)
    texts = [*(one.text for one in earlier), *await asyncio.to_thread(lambda: [*map(as_sent, new)])]
    everything = (*before.messages, *sent)
    share = shared_beginning([one.text for one in last], texts)
    event = RequestSent(
        turn=context.turn,
        purpose="main",
        messages=sent,
        files=newest.files,
        rows=newest.rows,
        blocks=newest.digests,
        contexts=newest.contexts,
        tasks=newest.tasks,
        uploads=tuple(file.file_id for file in draft.loaded.files if file.file_id),
        tokens=before.head_tokens + sum(message.tokens for message in everything),
        estimated=not exact,
        parts=parts_of(everything, before.head_tokens),
        prefix_share=round(share, 6),
        reset=before.restarts,
        model=state.model.name,
        protocol=state.model.protocol,
    )
    request = ModelRequest(
        model=state.model.name,
        messages=(*(one.message for one in earlier), *new),
        purpose="subtask" if context.part else "main",
        tools=head.tools,
        schema=head.schema,
        timeout=float(context.settings.request_timeout),
        files=context.provider_files.ids if context.provider_files else (),
    )
    return Composed(
        draft, request, event, sum(len(text.encode(errors="replace")) for text in (*texts, head.text))
    )


def parts_of(messages: Sequence[SentMessage], head: int) -> dict[str, int]:
    """Tokens by part; what is sent beside the messages counts as system."""
    files = sum(message.files for message in messages)
    rules = sum(message.instructions for message in messages)
    system = sum(m.tokens - m.files - m.instructions for m in messages if m.role == "system")
    total = sum(message.tokens for message in messages)
    return {
        "system": system + head,
        "instructions": rules,
        "files": files,
        "history": max(0, total - system - rules - files),
    }


class _Newest:
    """What the newest message says, and what is then in the conversation that was not before."""

    def __init__(self, state: State, draft: Draft) -> None:
        self._state = state
        self._draft = draft
        self._files, self._bundled = draft.loaded.asked_for, draft.loaded.bundled
        self._before = state.conversation
        opened = [replace(file, brief=draft.excerpts) for file in draft.opened]
        self.blocks = editor.blocks(opened)
        self._new_blocks = editor.new_blocks(self.blocks, self._before.blocks)
        self._attached = {
            file.path: file.md5
            for file in editor.attached(opened)
            if f"file:{file.path}" in self._new_blocks and editor.excerpt(file).whole
        }
        self._new_blocks |= {
            name: text
            for name, text in editor.references(opened, self._before.files).items()
            if name in self._new_blocks
        }
        self._gone_blocks = editor.gone_blocks(
            self.blocks, self._before.blocks, {buffer.path for buffer in state.buffers.open}
        )
        self._in_view = loaded.InView(self._before.files, _as_proposed(draft.loaded), self._attached)
        self.tasks = task_report.news(
            task_report.rows(state.subtasks.tasks, state.review.changes), self._before.tasks
        )
        self.rows = _rows(state, draft.goes_on and bool(draft.query))
        self._new_contexts, self._gone = instructions.news(draft.contexts, self._before.contexts)
        self.contexts = {file.path: file.md5 for file in self._new_contexts} | dict.fromkeys(self._gone, "")
        self.files = {file.path: file.md5 for file in (*self._bundled, *self._files)} | self._attached

    @property
    def digests(self) -> dict[str, str]:
        """What is remembered of the editor's blocks; of those that are no more, that it was said."""
        return {name: editor.digest(text) for name, text in self.blocks.items()} | dict.fromkeys(
            self._gone_blocks, ""
        )

    @property
    def sizes(self) -> Sizes:
        files = loaded.read_files_result(self._files, self._in_view) if self._files else ""
        blocks = sum(len(text) for name, text in self._new_blocks.items() if name.startswith("file:"))
        return Sizes(
            len(files) + len(loaded.bundle_section(self._bundled)) + blocks,
            len(instructions.section(self._new_contexts, self._gone)),
        )

    def messages(self, earlier: Sequence[Message]) -> list[Message]:
        """One user message, or the results of the calls that are still open and then, with a request, that.

        None where there is nothing to say.
        """
        calls = self._before.open_calls
        query = self._draft.query
        if not calls:
            text = self._text(query or (GO_ON if self._answers(earlier) else ""))
            return [{"role": "user", "content": text}] if text else []
        names, misread = prompt.call_names(earlier), self._before.misread
        if query:
            results = [
                misread.get(call) or (NOT_ANSWERED if names.get(call) in ANSWERED else DECISION_FOLLOWS)
                for call in calls
            ]
            return [*prompt.tool_results(calls, results), {"role": "user", "content": self._text(query)}]
        read = [call for call in calls if call not in misread]
        first = next((call for call in read if names.get(call) in ANSWERED), next(iter(read), ""))
        text = self._text("")
        if not first and text:
            return [
                *prompt.tool_results(calls, [misread[call] for call in calls]),
                {"role": "user", "content": text},
            ]
        text = text or NOTHING
        if any(file.file_id for file in self._files):
            # what is uploaded can be referred to in a person's message only, not in a result
            results = [
                misread.get(call) or (SEE_NEXT if names.get(call) in ANSWERED else DECISION_FOLLOWS)
                for call in calls
            ]
            return [*prompt.tool_results(calls, results), {"role": "user", "content": text}]
        return prompt.tool_results(
            calls,
            [
                misread.get(call) or (text if call == first else _beside(names.get(call, "")))
                for call in calls
            ],
        )

    def _answers(self, earlier: Sequence[Message]) -> bool:
        """Whether the model waits for what it asked for: its own words are the last that was said."""
        return bool(earlier) and earlier[-1]["role"] == "assistant"

    def _text(self, query: str) -> str:
        again = self._draft.loaded.again
        files = self._state.known.files
        rows = [
            _shown_row(files[path], self._state.turn.number, again.get(path), self._is_sent(path))
            for path in self.rows
            if path != LEFT_OUT
        ]
        news = prompt.News(
            query=query,
            rows=tuple(rows),
            left_out=self.rows.get(LEFT_OUT, ""),
            facts=(*self._before.untold, *self._draft.loaded.facts),
            listings=self._draft.listings,
            found="\n\n".join(self._draft.found),
            bundled=self._bundled,
            memory=self._draft.memory,
            sub_tasks=task_report.section(self.tasks),
            new_contexts=tuple(self._new_contexts),
            gone_contexts=tuple(self._gone),
            files=self._files,
            editor_blocks=self._new_blocks | self._gone_blocks,
        )
        return prompt.user_text(news, self._in_view)

    def _is_sent(self, path: str) -> bool:
        """Whether the text itself goes with this message."""
        return any(file.path == path for file in self._bundled) or any(
            file.path == path and self._in_view.reference(file) in (None, {"attached": True})
            for file in self._files
        )


def _as_proposed(files: Loaded) -> Mapping[str, str]:
    """Files read again that are exactly what the model proposed, and that it knows whole, by path."""
    again = files.again.items()
    return {path: entry.written for path, entry in again if entry.written_known and entry.whole}


def _rows(state: State, all_of_them: bool) -> dict[str, str]:
    """The table's rows that differ from what was last told, by path; `(this turn)` and `read again` are not changes."""
    rows = {path: table_row(entry, 0) for path, entry in state.known.files.items()}
    left_out = known.left_out_line(len(state.known.dropped))
    if left_out:
        rows[LEFT_OUT] = left_out
    told: Mapping[str, str] = {} if all_of_them else state.conversation.rows
    return {path: row for path, row in rows.items() if told.get(path) != row}


def _shown_row(entry: KnownFile, turn: int, before: KnownFile | None, sent: bool) -> str:
    """A file that is read again keeps its mark in the message that carries it."""
    if before is None:
        return table_row(entry, turn)
    marked = replace(
        entry, freshness=before.freshness, modified_turn=before.modified_turn, written_known=False
    )
    return table_row(replace(marked, renamed_to=before.renamed_to), turn, again=sent)


def _beside(name: str) -> str:
    return SEE_FIRST if name in ANSWERED else DECISION_FOLLOWS
