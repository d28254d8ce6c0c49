"""Pages of the web for a session."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable

from msgspec import Struct

from tui_agent.errors import ChildFailed
from tui_agent.processes.child import ChildProcess

#: Seconds for a page; pages kept for reading on.
WITHIN, KEPT = 60.0, 8


class Page(Struct, frozen=True):
    """`text` is Markdown."""

    url: str
    title: str
    text: str
    cut: bool


def _reader() -> ChildProcess:
    return ChildProcess("tui_agent.web.page_reader", name="web")


class Pages:
    """The child process runs from the first page to `close`."""

    def __init__(self, reader: Callable[[], ChildProcess] = _reader) -> None:
        self._reader = reader
        self._child: ChildProcess | None = None
        self._kept: OrderedDict[str, Page] = OrderedDict()

    async def read(self, url: str, *, again: bool = False) -> Page:
        """With `again`, returns the kept page. Raises `TuiAgentError`."""
        if again and url in self._kept:
            return self._kept[url]
        if self._child is None:
            self._child = self._reader()
        try:
            found = await self._child.ask("read", {"url": url}, timeout=WITHIN)
        except (ChildFailed, asyncio.CancelledError):
            # The next page does not wait for the rest of this one.
            await self.close()
            raise
        page = Page(**found)
        self._kept[url] = page
        self._kept.move_to_end(url)
        if len(self._kept) > KEPT:
            self._kept.popitem(last=False)
        return page

    async def close(self) -> None:
        if self._child is not None:
            child, self._child = self._child, None
            await child.close()
