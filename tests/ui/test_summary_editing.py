"""The summary of older messages is read and edited on the screen."""

from __future__ import annotations

from pathlib import Path

from support.screens import on_screen


async def test_without_a_summary_it_says_so(tmp_path: Path) -> None:
    async with on_screen(tmp_path) as it:
        await it.press("ctrl+o", "J")
        await it.shows("No message was summarised yet")


async def test_the_words_that_are_kept_take_its_place(tmp_path: Path) -> None:
    kept: list[str] = []
    async with on_screen(tmp_path) as it:

        async def summary() -> str:
            return "Four questions."

        async def edit(text: str) -> bool:
            kept.append(text)
            return True

        it.session.chat.summary = summary  # type: ignore[method-assign]
        it.session.chat.edit_summary = edit  # type: ignore[method-assign]
        await it.press("ctrl+o", "J")
        await it.shows("Four questions.")
        await it.press(*"Yes. ", "ctrl+g")
        await it.until(lambda: kept)
        assert kept == ["Yes. Four questions."]
