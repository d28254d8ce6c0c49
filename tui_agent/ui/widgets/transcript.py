"""The transcript: a window of messages that follows the newest unless the user scrolls up."""

from __future__ import annotations

from collections.abc import Coroutine, Iterator
from typing import Any, NamedTuple, Protocol

from textual import events
from textual.containers import VerticalScroll
from textual.geometry import Size
from textual.layout import Layout
from textual.message import Message
from textual.timer import Timer

from tui_agent.store.state import ChatMessage, ReviewSlice, State
from tui_agent.ui.host import keys_of
from tui_agent.ui.textual_patches.grown_widgets import LaidOutOnce
from tui_agent.ui.widgets.command_output import FoldLine
from tui_agent.ui.widgets.messages import MessageBlock, Reasoning, TextBlock, blocks_of, facts_of


class ScrollPosition(NamedTuple):
    """Number of the topmost visible message, and of its lines above the view."""

    message: int
    line: int = 0

    def saved(self) -> dict[str, Any]:
        return {"message": self.message, "line": self.line}


def read_position(saved: object, total: int) -> ScrollPosition | None:
    """`None` means following the newest message."""
    if not isinstance(saved, dict):
        return None
    message, line = saved.get("message"), saved.get("line", 0)
    if not isinstance(message, int) or not isinstance(line, int) or not 1 <= message <= total:
        return None
    return ScrollPosition(message, max(line, 0))


def messages_around(stand: ScrollPosition, total: int, count: int) -> tuple[int, int]:
    """First and last of about `count` messages, two thirds of them below the position."""
    last = min(stand.message + count - count // 3, total)
    return max(1, min(stand.message - count // 3, last - count + 1)), last


#: Newest messages drawn immediately at startup: about a screenful.
AT_ONCE = 6
#: Messages mounted at startup, added per page, and kept at most.
FIRST, PAGE, MOST = 30, 20, 50
#: Seconds of inactivity before the scroll position is reported.
TOLD_AFTER = 0.5


class Source(Protocol):
    @property
    def state(self) -> State: ...

    async def earlier(self, before: int, count: int = 50) -> tuple[ChatMessage, ...]: ...


class Transcript(VerticalScroll, LaidOutOnce, can_focus=True):
    """A contiguous range of messages. If it ends before the newest, more are loaded at both ends."""

    class PositionChanged(Message):
        """The user scrolled. `None` means following the newest message."""

        def __init__(self, stand: ScrollPosition | None) -> None:
            super().__init__()
            self.stand = stand

    class BlockAsked(Message):
        """Request on the selected block: `copy`, `open` or `leave`."""

        def __init__(self, block: TextBlock, what: str) -> None:
            super().__init__()
            self.block = block
            self.what = what

    class BlockSelected(Message):
        def __init__(self, block: TextBlock | None) -> None:
            super().__init__()
            self.block = block

    class NewMessagesBelow(Message):
        def __init__(self, count: int) -> None:
            super().__init__()
            self.count = count

    def __init__(self, source: Source, stand: ScrollPosition | None = None) -> None:
        super().__init__(id="transcript")
        self._source = source
        self._blocks: dict[int, MessageBlock] = {}
        self._live: MessageBlock | None = None
        self._unfolded = False
        self._paging = False
        #: Whether messages exist below the last mounted one.
        self._apart = False
        self._behind = 0
        #: Position to restore until the user scrolls: late layout moves the content below.
        self._back_to = stand
        self._going_back = False
        self._told = stand
        self._timer: Timer | None = None
        #: Size and position at the last user scroll, restored after a resize.
        self._seen: tuple[Size, ScrollPosition | None] = Size(), None
        self._chosen: TextBlock | None = None
        #: Whether the first resize mounts older messages.
        self._fills_late = False

    def on_mount(self) -> None:
        self.anchor()
        if self._back_to is not None:
            self.release_anchor()
        self.screen.screen_layout_refresh_signal.subscribe(self, lambda _: self._go_back())

    def pre_layout(self, layout: Layout) -> None:
        """Measures visible and nearby messages first on a width change."""
        first, reach = self.scroll_y, self.outer_size.height
        for block, top, end in self._lines_of_blocks():
            block.near = top - first < 2 * reach and -reach < end - first

    def _lines_of_blocks(self) -> Iterator[tuple[MessageBlock, int, int]]:
        """Lines are those of the last layout. `virtual_region` would lay the screen out after each scroll."""
        top, live = 0, filter(None, [self._live])
        for block in [*(self._blocks[number] for number in sorted(self._blocks)), *live]:
            end = top + block.outer_size.height
            yield block, top, end
            top = end + 1

    @property
    def following(self) -> bool:
        at_the_end = not self.max_scroll_y or self.scroll_y >= self.max_scroll_y - 1
        return at_the_end and not self._apart and self._back_to is None

    def on_resize(self) -> None:
        size, stand = self._seen
        if stand is not None and size != self.size:
            self._back_to = stand
            self._go_back()
        self._seen = self.size, stand
        if self._fills_late:
            self._fills_late = False
            self.call_after_refresh(self._fill)

    def page(self, screenfuls: int) -> None:
        y = self.scroll_y + screenfuls * self.scrollable_content_region.height
        self.scroll_to(y=y, animate=False, immediate=True)

    def follow(self) -> None:
        self._back_to = None
        self._seen = self.size, None
        if self._apart:
            for block in self._blocks.values():
                block.remove()
            self._blocks = {}
            self._apart = False
            self.show(self._source.state)
        self._say_behind(0)
        self.anchor()
        self.scroll_end(animate=False)

    def go_to(self, number: int) -> None:
        self.release_anchor()
        self._back_to = ScrollPosition(number)
        self._seen = self.size, self._back_to
        if number in self._blocks:
            self._go_back()
            return
        for block in self._blocks.values():
            block.remove()
        self._blocks = {}
        self._page_once(self._draw_around(self._back_to))

    def walk(self) -> None:
        """Selects the newest block, of an answer its text or code."""
        found = self._all_blocks()
        if found:
            self.focus()
            spoken = [block for block in found if block.message == found[-1].message and block.line < 0]
            self._choose((spoken or found)[-1])

    def _all_blocks(self) -> list[TextBlock]:
        drawn = (self._blocks[number].message for number in sorted(self._blocks))
        return [block for message in drawn if message is not None for block in blocks_of(message)]

    def _choose(self, block: TextBlock | None) -> None:
        if self._chosen is not None:
            self.screen.clear_selection()
        if block != self._chosen:
            self.post_message(self.BlockSelected(block))
        self._chosen = block
        code = block is not None and block.code
        region = self._blocks[block.message].select_code(block.text) if block is not None and code else None
        seen = region is not None
        if region is not None:
            self.scroll_to_region(region, animate=False)
        for number, one in self._blocks.items():
            chosen = block is not None and block.message == number
            one.set_class(chosen and block is not None and block.line < 0 and not seen, "-chosen")
            for line in one.query(FoldLine):
                line.set_class(chosen and line is self._line_of(block), "-chosen")
        if block is not None and not seen:
            widget = self._line_of(block) or self._blocks[block.message]
            self.scroll_to_widget(widget, animate=False)

    def _line_of(self, block: TextBlock | None) -> FoldLine | None:
        return self._blocks[block.message].fold_line(block.line) if block is not None else None

    def on_blur(self) -> None:
        self._choose(None)

    def on_key(self, event: events.Key) -> None:
        block, keys = self._chosen, keys_of(self)
        if block is None:
            return
        names = ("unfold", "previous", "next", "copy", "open", "leave")
        meant = next((name for name in names if keys.matches(event.key, f"blocks.{name}")), "")
        if not meant:
            return
        event.stop()
        event.prevent_default()
        if meant in ("previous", "next"):
            found = self._all_blocks()
            at = found.index(block) if block in found else len(found)
            self._choose(found[max(0, min(len(found) - 1, at + (1 if meant == "next" else -1)))])
        elif meant == "unfold" and (line := self._line_of(block)) is not None:
            self.release_anchor()
            line.action_press()
            self.call_after_refresh(self.scroll_to_widget, line, animate=False, top=True)
        else:
            self.post_message(self.BlockAsked(block, "leave" if meant == "unfold" else meant))

    def show(self, state: State) -> None:
        messages = state.chat.messages
        newest = max(self._blocks, default=0)
        for message in messages:
            block = self._blocks.get(message.number)
            if block:
                block.show_facts(facts_of(message, state.review))
                block.show_calls(message)
        if not self._blocks and self._back_to is not None:
            self._page_once(self._draw_around(self._back_to))
            return
        if self._apart:
            self._say_behind(state.chat.total - newest)
            return
        fresh = [message for message in messages if message.number > newest]
        if not self._blocks and len(fresh) > AT_ONCE:
            fresh = fresh[-AT_ONCE:]
            self.call_after_refresh(self._fill)
        if fresh:
            self._add(fresh, state.review)
        asked = (m.number for m in state.chat.messages if m.kind == "person" and m.turn == state.plan.turn)
        question = self._blocks.get(max(asked, default=0))
        if question is not None:
            question.show_plan(state.plan)
        reply = state.reply
        if reply.summary or reply.message or reply.reasoning:
            if self._live is None:
                self._live = MessageBlock(unfolded=self._unfolded)
                self.mount(self._live)
            self._live.grow(reply)
        elif self._live is not None:
            self._live.remove()
            self._live = None

    def _fill(self) -> None:
        oldest = min(self._blocks, default=1)
        self._fills_late = not self.size
        if oldest > 1 and self.virtual_size.height < 2 * self.size.height:
            self._page_once(self._page(oldest))

    def _add(self, messages: list[ChatMessage], review: ReviewSlice) -> None:
        """A streamed response becomes its message in place."""
        followed = self.following
        live = self._live
        reply = next((message for message in messages if message.kind == "agent"), None)
        above = messages
        if live is not None and reply is not None:
            at = messages.index(reply)
            above = messages[:at]
            self._live = None
            self._blocks[reply.number] = live
            live.finish(reply, facts_of(reply, review))
            if messages[at + 1 :]:
                self.mount(*(self._block(message, review) for message in messages[at + 1 :]))
        if above:
            self.mount(*(self._block(message, review) for message in above), before=live)
        if followed:
            for number in sorted(self._blocks)[: -MOST if len(self._blocks) > MOST else 0]:
                self._blocks.pop(number).remove()
        else:
            self._say_behind(self._behind + len(messages))

    def _block(self, message: ChatMessage, review: ReviewSlice) -> MessageBlock:
        block = MessageBlock(message, facts_of(message, review), self._unfolded)
        self._blocks[message.number] = block
        return block

    def _say_behind(self, count: int) -> None:
        if count != self._behind:
            self._behind = count
            self.post_message(self.NewMessagesBelow(count))

    def unfold_reasoning(self) -> None:
        self._unfolded = not self._unfolded
        for reasoning in self.query(Reasoning):
            reasoning.unfold(self._unfolded)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        if not self._going_back and self._seen[0] in (Size(), self.size):
            self._back_to = None
            if self._timer is None:
                self._timer = self.set_timer(TOLD_AFTER, self._post_position)
            self._seen = self.size, self.scroll_place
        if self._behind and self.following:
            self._say_behind(0)
        oldest, newest = min(self._blocks, default=1), max(self._blocks, default=0)
        if new_value <= 0 < self.max_scroll_y and oldest > 1:
            self._page_once(self._page(oldest))
        if self._apart:
            self.release_anchor()
            if new_value >= self.max_scroll_y - 1:
                last = min(newest + PAGE, self._source.state.chat.total)
                self._page_once(self._draw(newest + 1, last))

    def _page_once(self, page: Coroutine[None, None, None]) -> None:
        if self._paging:
            page.close()
        else:
            self._paging = True
            self.run_worker(page)

    async def _page(self, before: int) -> None:
        height = None if self.following else self.virtual_size.height
        older = await self._source.earlier(before, PAGE)
        newer = self._blocks
        self._blocks = {}
        blocks = [self._block(message, self._source.state.review) for message in older]
        self._blocks.update(newer)
        if blocks:
            await self.mount(*blocks, before=0)
        self.call_after_refresh(self._keep_view, height)

    def _keep_view(self, height: int | None) -> None:
        if height is not None:
            self.scroll_to(y=self.virtual_size.height - height, animate=False, immediate=True)
        self._paging = False

    async def _draw(self, first: int, last: int) -> None:
        state = self._source.state
        messages = tuple(message for message in state.chat.messages if first <= message.number <= last)
        if len(messages) < last - first + 1:
            messages = await self._source.earlier(last + 1, last - first + 1)
        if messages:
            await self.mount(*(self._block(message, state.review) for message in messages))
        else:
            self._back_to = None
        state = self._source.state
        self._apart = bool(self._blocks) and max(self._blocks) < state.chat.messages[-1].number
        self._paging = False
        self.show(state)

    @property
    def scroll_place(self) -> ScrollPosition | None:
        if self._back_to is not None or self.following:
            return self._back_to
        first = round(self.scroll_y)
        return next(
            (
                ScrollPosition(block.message.number, max(first - top, 0))
                for block, top, end in self._lines_of_blocks()
                if block.message is not None and end > first
            ),
            None,
        )

    def _post_position(self) -> None:
        self._timer = None
        if self.scroll_place != self._told:
            self._told = self.scroll_place
            self.post_message(self.PositionChanged(self._told))

    async def _draw_around(self, stand: ScrollPosition) -> None:
        await self._draw(*messages_around(stand, self._source.state.chat.total, FIRST))
        if stand.message not in self._blocks:
            self.follow()  # unreadable

    def _go_back(self) -> None:
        block = self._blocks.get(self._back_to.message) if self._back_to else None
        if block is None or self._back_to is None or not block.size:
            return
        region = block.virtual_region
        self._going_back = True
        self.scroll_to(y=region.y + min(self._back_to.line, region.height - 1), animate=False, immediate=True)
        self._going_back = False
