"""A session: all that a front end can ask for, and the one place that says what happened.

Front ends read `state`, `subscribe`, and call the methods below; a method that fails raises a `TuiAgentError`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tui_agent.answers.values import NextStep  # noqa: F401
from tui_agent.edits.change import Diff, Pick
from tui_agent.store.events import Event
from tui_agent.store.state import ChatMessage, LayoutSlice, State

Listener = Callable[[Event, State], None]


class Session:
    state: State

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call `listener(event, state)` after each event; what comes back ends that."""
        raise NotImplementedError

    async def start_services(self) -> None:
        """Start the workspace child and the model child; call it after the first frame. Returns at once."""
        raise NotImplementedError

    async def close(self) -> None:
        """Stop what runs, keep what grows, end the children."""
        raise NotImplementedError

    # chat
    async def submit(self, text: str) -> None:
        """Begin a turn, or queue the message while one runs. Returns when it is on disk, not when it is done."""
        raise NotImplementedError

    async def stop(self) -> None:
        """Stop the running turn; what came so far is kept. Nothing happens when none runs."""
        raise NotImplementedError

    def set_draft(self, text: str) -> None: ...

    async def set_queue(self, queue: Sequence[str]) -> None: ...

    async def answer(self, action: str, path: str = "") -> None:
        """Answer the plan's open question: the path that `action` means, or nothing to let it go."""
        raise NotImplementedError

    async def earlier(self, before: int, count: int = 50) -> tuple[ChatMessage, ...]:
        """Up to `count` messages of the transcript from before message number `before`, oldest first."""
        raise NotImplementedError

    # review
    async def diff(self, change_id: str) -> Diff:
        raise NotImplementedError

    async def apply(self, picks: Sequence[Pick] = ()) -> None:
        """Write what was picked (nothing picked: all that is pending), all or nothing."""
        raise NotImplementedError

    async def skip(self, picks: Sequence[Pick] = ()) -> None:
        raise NotImplementedError

    async def undo(self, checkpoint: str = "") -> None:
        """Take back an apply: the one named, or the last that was not undone."""
        raise NotImplementedError

    async def redo(self, checkpoint: str = "") -> None:
        raise NotImplementedError

    # todos and sub-tasks
    async def add_todo(self, text: str) -> None: ...
    async def edit_todo(self, todo: str, text: str) -> None: ...
    async def toggle_todo(self, todo: str) -> None: ...
    async def remove_todo(self, todo: str) -> None: ...
    async def move_todo(self, todo: str, step: int) -> None: ...
    async def skip_subtask(self, task: str) -> None: ...

    # files and buffers
    def paths(self) -> Sequence[str]:
        """Every path of the index, sorted, with `/` between folders."""
        raise NotImplementedError

    def find(self, query: str, limit: int = 20) -> list[str]:
        """The paths most like `query`, best first: the `@` picker."""
        raise NotImplementedError

    async def open_file(self, path: str, line: int = 0) -> None:
        """Open a file in the editor and bring it to the front; `line` counts from 1, 0 is where it was."""
        raise NotImplementedError

    async def activate_buffer(self, path: str) -> None: ...
    def edit_buffer(self, path: str, text: str, cursor: tuple[int, int], anchor: tuple[int, int]) -> None: ...
    def move_cursor(self, path: str, cursor: tuple[int, int], anchor: tuple[int, int]) -> None: ...

    async def save_buffer(self, path: str, overwrite: bool = False) -> None:
        """Write an open file; refused with `Outdated` where the disk has moved on, unless `overwrite`."""
        raise NotImplementedError

    async def reload_buffer(self, path: str) -> None:
        """Take the text from disk; unsaved edits are given up."""
        raise NotImplementedError

    async def close_buffer(self, path: str, discard: bool = False) -> None:
        """Close an open file; refused while it has unsaved text, unless `discard`."""
        raise NotImplementedError

    # the screen
    def set_layout(self, layout: LayoutSlice) -> None: ...

    async def notice(self, text: str, level: str = "info") -> None:
        """Say something that is no part of the conversation."""
        raise NotImplementedError
