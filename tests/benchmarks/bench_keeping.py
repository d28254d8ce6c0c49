"""From a key to the disk: how long what is typed is in memory only, by one clock, the screen's own pauses included."""

from __future__ import annotations

import asyncio
import os
import random
import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec
from figures import Figure, show
from support.screens import Driven, on_screen

from tui_agent.log.database import LogWriter
from tui_agent.log.records import EventBody

#: Keys that are pressed in each pane, and the most that the slowest of a hundred may take, in seconds.
KEYS, LIMIT = 150, 1.0


class Kept:
    """When each text came to the disk: `texts` holds (key, text, time at which its transaction was synced)."""

    def __init__(self) -> None:
        self.texts: list[tuple[str, str, float]] = []
        self._waiting: list[tuple[str, str]] = []

    def watch(self, writer: LogWriter) -> None:
        keep, commit = writer.keep, writer.commit

        def kept(key: str, body: EventBody) -> int:
            self._waiting.append((key, str(msgspec.json.decode(body.data).get("text", ""))))
            return keep(key, body)

        def committed() -> None:
            commit()
            now = time.monotonic()
            self.texts += [(key, text, now) for key, text in self._waiting]
            self._waiting.clear()

        writer.keep, writer.commit = kept, committed


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TUI_AGENT_HOME"] = str(Path(folder) / "home")
        work = Path(folder) / "work"
        work.mkdir()
        (work / "a.txt").write_text("\n" * 2000)
        show(asyncio.run(_measured(work)))


async def _measured(work: Path) -> list[Figure]:
    kept = Kept()
    async with on_screen(work) as it:
        log: Any = it.session.storage.log
        kept.watch(log._writer)
        await it.press("f7")
        chat = await _typed(it, kept, "draft")
        await it.session.files.open("a.txt")
        await it.pilot.pause()
        await it.press("f4")
        editor = await _typed(it, kept, "buffer:a.txt")
    return [_figure("chat", chat), _figure("editor", editor)]


async def _typed(it: Driven, kept: Kept, key: str) -> list[float]:
    """Type letters at a person's pace; for each, the time from its key to the sync of a record that has it."""
    chance, pressed = random.Random(7), []
    for _ in range(KEYS):
        pressed.append(time.monotonic())
        await it.press("x")
        await asyncio.sleep(chance.choice([0.0, 0.02, 0.08, 0.15, 0.4]))
    deadline = time.monotonic() + 10
    while not any(name == key and text.count("x") >= KEYS for name, text, _ in kept.texts):
        assert time.monotonic() < deadline, f"what was typed never came to the disk: {key}"
        await asyncio.sleep(0.05)
    return [
        next(at for name, text, at in kept.texts if name == key and text.count("x") > number) - begun
        for number, begun in enumerate(pressed)
    ]


def _figure(where: str, times: list[float]) -> Figure:
    worst = sorted(times)[int(len(times) * 0.99) - 1]
    note = f"slowest {max(times) * 1000:.0f} ms of {len(times)} keys"
    return Figure(
        f"from a key in the {where} to the disk, 99 of 100", worst * 1000, LIMIT * 1000, " ms", note
    )


if __name__ == "__main__":
    main()
