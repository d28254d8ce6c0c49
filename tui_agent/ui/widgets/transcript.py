"""The transcript: a window of messages that follows the newest, unless the person has scrolled up."""

from __future__ import annotations

from typing import Protocol

from textual.containers import VerticalScroll
from textual.message import Message
from textual.widgets import Static

from tui_agent.store.state import ChatMessage, ReviewSlice, State
from tui_agent.ui.sink import parts
from tui_agent.ui.widgets.messages import LiveReply, MessageBlock, Reasoning, facts_of

#: How many messages stand in the widget when it is opened, come with a page, and may stand in it at most.
FIRST, PAGE, MOST = 30, 20, 90


class Source(Protocol):
    """What has a transcript: a session, as far as it matters here."""

    @property
    def state(self) -> State: ...

    async def earlier(self, before: int, count: int = 50) -> tuple[ChatMessage, ...]: ...


class NewBelow(Static):
    """Says how much came below what is in view; a click goes there."""

    class Clicked(Message):
        pass

    def __init__(self) -> None:
        super().__init__("", id="new-below", markup=False)
        self.display = False

    def show(self, count: int) -> None:
        self.display = count > 0
        self.update(parts(f"↓ {count} new"))

    def on_click(self) -> None:
        self.post_message(self.Clicked())


class Transcript(VerticalScroll, can_focus=True):
    class Behind(Message):
        """So many messages came below the part in view."""

        def __init__(self, count: int) -> None:
            super().__init__()
            self.count = count

    def __init__(self, source: Source) -> None:
        super().__init__(id="transcript")
        self._source = source
        self._blocks: dict[int, MessageBlock] = {}
        self._live: LiveReply | None = None
        self._unfolded = False
        self._paging = False
        self._behind = 0

    def on_mount(self) -> None:
        self.anchor()

    @property
    def following(self) -> bool:
        """Whether the newest message is in view and stays there."""
        return not self.max_scroll_y or self.scroll_y >= self.max_scroll_y - 1

    def follow(self) -> None:
        """Go to the newest message and stay with what comes."""
        self._say_behind(0)
        self.anchor()
        self.scroll_end(animate=False)

    # ── showing ──────────────────────────────────────────────────────────────────────────────────────────

    def show(self, state: State) -> None:
        messages = state.chat.messages
        newest = max(self._blocks, default=0)
        for message in messages:
            block = self._blocks.get(message.number)
            if block:
                block.show_facts(facts_of(message, state.review))
        fresh = [message for message in messages if message.number > newest]
        if not self._blocks:
            fresh = fresh[-FIRST:]
        if fresh:
            self._add(fresh, state.review)
        self._show_live(state)

    def _add(self, messages: list[ChatMessage], review: ReviewSlice) -> None:
        followed = self.following
        if self._live is not None and messages[-1].kind != "person":
            self._live.remove()
            self._live = None
        blocks = [self._block(message, review) for message in messages]
        self.mount(*blocks)
        if followed:
            self._trim()
        else:
            self._say_behind(self._behind + len(blocks))

    def _block(self, message: ChatMessage, review: ReviewSlice) -> MessageBlock:
        block = MessageBlock(message, facts_of(message, review), self._unfolded)
        self._blocks[message.number] = block
        return block

    def _show_live(self, state: State) -> None:
        reply = state.reply
        if reply.summary or reply.message or reply.reasoning:
            if self._live is None:
                self._live = LiveReply()
                self.mount(self._live)
            self._live.grow(reply)
        elif self._live is not None:
            self._live.remove()
            self._live = None

    def _trim(self) -> None:
        """Take the oldest out of the widget; they come back by scrolling."""
        for number in sorted(self._blocks)[: -MOST if len(self._blocks) > MOST else 0]:
            self._blocks.pop(number).remove()

    def _say_behind(self, count: int) -> None:
        if count != self._behind:
            self._behind = count
            self.post_message(self.Behind(count))

    def unfold_reasoning(self) -> None:
        self._unfolded = not self._unfolded
        for reasoning in self.query(Reasoning):
            reasoning.unfold(self._unfolded)

    # ── older messages ───────────────────────────────────────────────────────────────────────────────────

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        if self._behind and self.following:
            self._say_behind(0)
        oldest = min(self._blocks, default=1)
        if new_value <= 0 < self.max_scroll_y and oldest > 1 and not self._paging:
            self._paging = True
            self.run_worker(self._page(oldest))

    async def _page(self, before: int) -> None:
        """Put a page of older messages above, and keep in view what was."""
        height = self.virtual_size.height
        older = await self._source.earlier(before, PAGE)
        newer = self._blocks
        self._blocks = {}
        blocks = [self._block(message, self._source.state.review) for message in older]
        self._blocks.update(newer)
        if blocks:
            await self.mount(*blocks, before=0)
        self.call_after_refresh(self._keep_view, height)

    def _keep_view(self, height: int) -> None:
        self.scroll_to(y=self.virtual_size.height - height, animate=False, immediate=True)
        self._paging = False
