"""Each pane and the whole, at three sizes and in three depths of colour, as they are kept in `tests/snapshots`."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.scenes import COMPARED, COMPARED_AT, kept_texts, text_of
from support.scenes import pictures as scene_pictures
from support.snapshots import Span, differences, kept, pictures, read, svg


async def test_the_screen_is_as_it_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TUI_AGENT_REPLAY_SPEED", "0")
    before, told = kept(), ["not drawn"]
    # On a loaded machine a picture can be taken between two lines of the transcript.
    for attempt in ("first", "second"):
        drawn = await pictures(tmp_path / attempt)
        told = [
            f"{name}: {line}"
            for name in sorted(drawn.keys() | before)
            for line in differences(before.get(name, []), drawn[name].lines if name in drawn else [])
        ]
        if not told:
            break
    assert not told, "\n".join(["The screen differs; if it should, `make snapshots`:", *told[:60]])


@pytest.mark.parametrize("name", COMPARED)
async def test_a_scene_has_the_kept_text_at_three_sizes(name: str) -> None:
    before = {key: text for key, text in kept_texts().items() if key.startswith(f"{name}-")}
    assert len(before) == len(COMPARED_AT)
    for _ in range(2):  # a loaded machine can draw a line late
        drawn = await scene_pictures(name, COMPARED_AT, variants=False)
        now = {key: text_of(picture) for key, picture in drawn.items()}
        if now == before:
            break
    assert now == before, "if it should differ, `make snapshots`"


def test_what_differs_is_told_line_by_line() -> None:
    red, green = "fill: #ff0000", "fill: #00ff00; font-weight: bold"
    lines = [[Span(0, red, "a < b")], [Span(0, "", "  "), Span(2, red, "c")], []]
    assert read(svg(lines, 10)) == lines
    assert differences(lines, lines) == []
    word = [[Span(0, red, "a > b")], *lines[1:]]
    assert differences(lines, word) == ["line 1", "  kept a < b", "  now  a > b"]
    style = [lines[0], [Span(0, "", "  "), Span(2, green, "c")], []]
    assert differences(lines, style)[0] == "line 2"
    assert differences(lines, style)[2].endswith(f"'c' {green}")
