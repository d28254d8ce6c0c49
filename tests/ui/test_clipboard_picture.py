"""The clipboard's picture in a message, through programs of the desktop; here they are scripts."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest
from PIL import Image
from support.screens import on_screen
from support.sessions import ScriptedModel
from textual import events

from tui_agent.errors import FileError
from tui_agent.model.client import Abilities
from tui_agent.session.session import Session
from tui_agent.ui import desktop as programs
from tui_agent.ui.desktop import keep_picture
from tui_agent.ui.widgets.prompt import Prompt


def png() -> bytes:
    written = io.BytesIO()
    Image.new("RGB", (40, 30), (200, 30, 30)).save(written, "PNG")
    return written.getvalue()


@pytest.fixture
def desktop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for programs on a desktop with Wayland and X11."""
    folder = tmp_path / "programs"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.setenv("WAYLAND_DISPLAY", "wayland-0")
    monkeypatch.setenv("DISPLAY", ":0")
    (tmp_path / "copied.png").write_bytes(png())
    return folder


def program(folder: Path, name: str, lines: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{lines}\n")
    (folder / name).chmod(0o755)


async def test_the_picture_is_kept_privately_each_in_a_file(desktop: Path, tmp_path: Path) -> None:
    program(desktop, "wl-paste", f'[ "$3" = image/png ] && exec cat {tmp_path}/copied.png')
    kept = [await keep_picture(tmp_path / "pictures") for _ in range(2)]
    assert [path.name for path in kept] == ["clipboard-1.png", "clipboard-2.png"]
    assert kept[0].read_bytes() == png() and os.stat(kept[0]).st_mode & 0o077 == 0


async def test_the_next_program_is_tried(desktop: Path, tmp_path: Path) -> None:
    program(desktop, "wl-paste", "echo no picture; exit 1")
    program(desktop, "xclip", f"exec cat {tmp_path}/copied.png")
    assert (await keep_picture(tmp_path / "pictures")).read_bytes() == png()


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("echo only words", "holds no picture"),
        ("exit 1", "holds no picture"),
        ("sleep 1000", "holds no picture"),
        ("printf '\\211PNG\\r\\n\\032\\n'; exec cat /dev/zero", "holds no picture"),
        ("kill -9 $$", "holds no picture"),
    ],
)
async def test_anything_but_a_picture_is_one_sentence(
    desktop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: str, said: str
) -> None:
    monkeypatch.setattr(programs, "WITHIN", 1.0)
    program(desktop, "wl-paste", lines)
    with pytest.raises(FileError, match=said):
        await keep_picture(tmp_path / "pictures")


async def test_without_a_program_the_sentence_names_one(desktop: Path, tmp_path: Path) -> None:
    with pytest.raises(FileError, match="install wl-paste or xclip"):
        await keep_picture(tmp_path / "pictures")


@pytest.mark.parametrize("how", ["word", "paste"])
async def test_it_is_put_into_the_message_and_sent(desktop: Path, tmp_path: Path, how: str) -> None:
    program(desktop, "wl-paste", f"exec cat {tmp_path}/copied.png")
    (tmp_path / "work").mkdir()

    class SeeingModel(ScriptedModel):
        async def abilities(self, model: str) -> Abilities:
            return Abilities(model, 100_000, known=True, sees=True)

    model = SeeingModel(["A red one."])

    def prepare(session: Session) -> None:
        session.models.model = model

    async with on_screen(tmp_path / "work", prepare=prepare) as it:
        if how == "word":
            await it.press(*"/paste", "enter")
        else:
            it.app.post_message(events.Paste(""))
        await it.until(lambda: "clipboard-1.png" in it.one(Prompt).text, "the mention")
        dropped = tmp_path / "my shot.png"
        for words in (f"{dropped} ", f"{tmp_path}/no such shot.png"):
            dropped.write_bytes(png())
            it.app.post_message(events.Paste(words))
        await it.until(lambda: f" '{dropped}' {tmp_path}/no such shot" in it.one(Prompt).text, "the path")
        await it.press(*"which colour?", "enter")
        await it.until(lambda: model.requests, "the request")
        (image,) = model.requests[0].messages[-1]["images"]  # Both files have the same picture.
        assert image["media_type"] == "image/png"
