"""Deliberate breaks of what the proofs try, by name: a proof that does not notice one of its own proves little.

A module `prove_*.py` lists in `SABOTAGES` those that it must notice; `make faults ARGS=sabotage` tries them.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager, nullcontext
from typing import Any
from unittest.mock import patch

from msgspec.structs import replace

#: By name: what is replaced, as module and attribute, and how what takes its place is made of it.
BREAKS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "log not synced": (
        "tui_agent.log.database.LogWriter.begin",
        lambda real: lambda self: _unsynced(self, real),
    ),
    "files not synced": ("tui_agent.files.operating_system.sync", lambda real: lambda descriptor: None),
    "half batches of other sessions left": (
        "tui_agent.session.session.repair_others",
        lambda real: lambda *given: [],
    ),
    "own half batches left": ("tui_agent.files.batch.heal", lambda real: lambda *given, **named: []),
    "halves of failed batches left": ("tui_agent.files.batch._undo", lambda real: lambda *given: None),
    "missing records not told": ("tui_agent.log.records.gap", lambda real: lambda before, number: []),
    "changes before a cut dropped": (
        "tui_agent.turn.reply._ReplyAnswer.is_worth_keeping",
        lambda real: lambda self: False,
    ),
    "cause of a cut not told": (
        "tui_agent.turn.reply._ReplyAnswer.finish",
        lambda real: lambda self, model: replace(real(self, model), why=""),
    ),
    "draft not kept": ("tui_agent.session.chat.Chat.set_draft", lambda real: lambda self, text: None),
    "typing not kept": ("tui_agent.session.chat.Chat.set_typed", lambda real: lambda self, place, text: None),
    "typing not written": ("tui_agent.log.log.Log.keep", lambda real: lambda self, *given: None),
    "waiting keys not kept": (
        "tui_agent.ui.keys.keyboard.Keyboard._store_later",
        lambda real: lambda self: None,
    ),
    "nothing opened again": ("tui_agent.ui.reopening._open", lambda real: _nothing),
    "keys wait for nothing": (
        "tui_agent.ui.keys.keyboard.Keyboard._busy",
        lambda real: lambda self, event: None,
    ),
    "answers of the terminal are keys": (
        "tui_agent.ui.terminal_input._key_sequence",
        lambda real: lambda text: real(text) or text[2:3],
    ),
}


async def _nothing(*given: Any) -> bool:
    return False


def _unsynced(writer: Any, begin: Any) -> None:
    writer.connection.execute("PRAGMA synchronous = OFF")
    begin(writer)


@contextmanager
def sabotaged(name: str) -> Generator[None]:
    """Break that; nothing if `name` is empty. Processes that are begun meanwhile find the name in their environment."""
    with ExitStack() as broken:
        if name:
            target, made = BREAKS[name]
            real = _found(target)
            broken.enter_context(patch(target, made(real)))
            for other in _users(real):
                broken.enter_context(patch.object(*other, made(real)))
            broken.enter_context(patch.dict(os.environ, PROOF_SABOTAGE=name))
        yield


def _found(target: str) -> Any:
    module, _, name = target.rpartition(".")
    try:
        found = __import__(module, fromlist=[name])
    except ModuleNotFoundError:  # of a class
        found = _found(module)
    return getattr(found, name)


def _users(real: Any) -> list[tuple[Any, str]]:
    """Modules that have imported it by its name."""
    import sys

    modules = [module for name, module in sys.modules.items() if name.startswith("tui_agent.")]
    return [
        (module, name)
        for module in modules
        for name, value in list(vars(module).items())
        if value is real and callable(real)
    ]


@contextmanager
def letters_wait() -> Generator[None]:
    """For the whole life of the program, as behind work that never ends."""
    from textual.events import Key

    from tui_agent.ui.keys.keyboard import Keyboard

    real, forever = Keyboard._busy, asyncio.Future[None](loop=asyncio.new_event_loop())
    held = lambda self, event: forever if isinstance(event, Key) and event.is_printable else real(self, event)  # noqa: E731
    with patch.object(Keyboard, "_busy", held):
        yield


if __name__ == "__main__":  # the program, with the break that its environment names
    from runpy import run_module

    waiting = letters_wait() if os.environ.get("PROOF_LETTERS_WAIT") else nullcontext()
    with sabotaged(os.environ.get("PROOF_SABOTAGE", "")), waiting:
        run_module("tui_agent", run_name="__main__", alter_sys=True)
