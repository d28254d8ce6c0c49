"""Pictures in a message: found, sent once, or refused."""

from __future__ import annotations

import io
import zlib
from base64 import b64decode
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image
from support.repositories import repository
from support.sessions import ScriptedModel, model_of, open_session

from tui_agent.model.client import Abilities
from tui_agent.session.session import Session
from tui_agent.settings.folders import user_folders
from tui_agent.turn.picture_scaler import scaled
from tui_agent.turn.pictures import MOST_SENT, MOST_SIDE
from tui_agent.turn.turn import run


def picture(kind: str = "PNG", size: tuple[int, int] = (40, 30), **options: object) -> bytes:
    written = io.BytesIO()
    Image.new("RGB", size, (200, 30, 30)).save(written, kind, **options)
    return written.getvalue()


class SeeingModel(ScriptedModel):
    sees = True

    async def abilities(self, model: str) -> Abilities:
        return Abilities(model, 100_000, known=True, sees=self.sees)


@pytest.fixture
async def session(tmp_path: Path) -> AsyncGenerator[Session]:
    """A session whose model sees, and answers five times."""
    root = repository(tmp_path / "work", {"a.py": "a\n"})
    model = SeeingModel(["Done."] * 5)
    async with open_session(root, prepare=lambda it: setattr(it.models, "model", model)) as session:
        yield session


async def images(session: Session, message: str) -> list[bytes]:
    """The pictures that a message sends."""
    await session.chat.submit(message)
    await session.chat.finished()
    assert session.state.turn.ok, session.state.turn.error
    return [b64decode(one["data"]) for one in model_of(session).requests[-1].messages[-1].get("images", ())]


async def test_a_dragged_file_is_found_as_terminals_write_it(tmp_path: Path, session: Session) -> None:
    written = {
        "Shot 10.04\u202fAM.png": "{folder}/Shot\\ 10.04\u202fAM.png",
        "it's mine.png": "'{folder}/it'\\''s mine.png'",
        "a b.png": "'{folder}/a b.png',",
        "a%b é.png": "file://{folder}/a%25b%20%C3%A9.png.",
        "a(1).png": "{folder}/a\\(1\\).png)",
    }
    for number, name in enumerate(written):
        (tmp_path / name).write_bytes(picture(size=(10 + number, 10)))
    found = await images(session, f"Look at {' '.join(written.values()).format(folder=tmp_path)} please")
    assert found == [picture(size=(10 + number, 10)) for number in range(len(written))]


async def test_only_words_of_the_person_name_pictures_outside_the_workspace(
    tmp_path: Path, session: Session
) -> None:
    """Not the text of a command, a hook's reason to go on, or a goal that a model wrote for a sub-task."""
    private = tmp_path / "private.png"
    private.write_bytes(picture(size=(9, 9)))
    (session.workspace.root / "mine.png").write_bytes(picture())
    settings = user_folders().config
    (settings / "commands").mkdir(parents=True)
    (settings / "commands/look.md").write_text(f"Look at {private} and @mine.png, $ARGUMENTS\n")
    assert await images(session, "/look well") == [picture()]
    assert await images(session, f"/look {private}") == [picture(size=(9, 9))]
    context = session._turn_context()
    for its_context, unasked in ((context, True), (replace(context, part="Your part."), False)):
        other = tmp_path / f"other-{unasked}.png"
        other.write_bytes(picture(size=(8, 8)))
        given = (str(other),) if its_context.part else ()
        await run(its_context, f"Look at {other}", given, session.journal.record, unasked=unasked)
        assert "images" not in model_of(session).requests[-1].messages[-1]


async def test_pictures_are_sent_once_beside_the_words_and_shown_as_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = repository(tmp_path / "work", {"a.py": "a\n"})
    (root / "shot.png").write_bytes(picture())
    outside = tmp_path / "my shot.jpg"
    outside.write_bytes(picture("JPEG", (20, 10)))
    model = SeeingModel(["One.", "Two."])
    async with open_session(root, prepare=lambda session: setattr(session.models, "model", model)) as session:
        await session.chat.submit(f"Look at @shot.png and {str(outside).replace(' ', chr(92) + ' ')}")
        await session.chat.finished()
        assert session.state.turn.ok, session.state.turn.error
        message = model.requests[0].messages[-1]
        assert [one["media_type"] for one in message["images"]] == ["image/png", "image/jpeg"]
        assert b64decode(message["images"][0]["data"]) == picture()
        assert "[picture: shot.png, 40 × 30]" in message["content"]
        assert "my shot.jpg, 20 × 10]" in message["content"] and chr(92) not in message["content"]
        notes = [one.text for one in session.state.chat.messages if one.kind == "note"]
        assert notes[0] == "Picture shot.png, 40 × 30: about 1 tokens"
        assert not session.state.plan.actions
        await session.chat.submit("Again @shot.png")
        await session.chat.finished()
        assert "images" not in model.requests[1].messages[-1]
        assert model.requests[1].messages[: len(model.requests[0].messages)] == model.requests[0].messages


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("words.png", b"only words", "cannot be read: it is broken, or not a picture"),
        ("cut.png", picture(size=(400, 300))[:-40], "cannot be read"),
        ("cut.jpg", picture("JPEG", (400, 300))[:300], "cannot be read"),
        ("paper.pdf", b"%PDF-1.7\0\1", ""),
        ("photo.heic", b"\0\0\0\x18ftypheic", ""),
        ("script.ico", b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "cannot be read"),
    ],
)
async def test_what_is_no_picture_is_one_sentence(
    tmp_path: Path, name: str, content: bytes, said: str
) -> None:
    root = repository(tmp_path / "work", {"a.py": "a\n"})
    (root / name).write_bytes(content)
    model = SeeingModel([])
    async with open_session(root, prepare=lambda session: setattr(session.models, "model", model)) as session:
        await session.chat.submit(f"Look at @{name}")
        await session.chat.finished()
        wanted = f"The picture {name} {said}" if said else f"{name} is neither text nor a picture"
        assert wanted in session.state.turn.error and not model.requests
        await session.chat.submit("Look at it", [name])
        await session.chat.finished()
        assert wanted in session.state.turn.error and not model.requests


async def test_nothing_is_sent_to_a_model_that_does_not_see(tmp_path: Path) -> None:
    root = repository(tmp_path / "work", {"a.py": "a\n"})
    (root / "shot.png").write_bytes(picture())
    model = SeeingModel([])
    model.sees = False
    async with open_session(root, prepare=lambda session: setattr(session.models, "model", model)) as session:
        await session.chat.submit("Look at @shot.png")
        await session.chat.finished()
        assert "does not see pictures; nothing was sent" in session.state.turn.error
        assert not model.requests


@pytest.mark.parametrize(
    ("data", "kind", "size"),
    [
        (picture(size=(3000, 10)), "image/png", (1568, 5)),
        (picture("BMP"), "image/png", (40, 30)),
        (picture("GIF", save_all=True, append_images=[Image.new("RGB", (40, 30))]), "image/png", (40, 30)),
    ],
)
def test_it_is_scaled_and_converted(data: bytes, kind: str, size: tuple[int, int]) -> None:
    header, content = scaled(data, MOST_SIDE, MOST_SENT)
    assert header == {"media_type": kind, "width": size[0], "height": size[1]}
    assert Image.open(io.BytesIO(content)).size == size


def test_it_is_compressed_to_the_most_bytes_and_a_huge_one_is_refused() -> None:
    noise = Image.effect_noise((600, 600), 90)
    written = io.BytesIO()
    noise.save(written, "PNG")
    header, content = scaled(written.getvalue(), MOST_SIDE, 200_000)
    assert header["media_type"] == "image/jpeg" and len(content) <= 200_000
    head = picture("PNG")
    fields = b"IHDR" + (30_000).to_bytes(4, "big") * 2 + head[24:29]
    huge = head[:12] + fields + zlib.crc32(fields).to_bytes(4, "big") + head[33:]
    assert "is too large (30,000 × 30,000 pixels)" in str(scaled(huge, MOST_SIDE, MOST_SENT)[0])


async def test_a_picture_above_the_limit_is_refused_before_it_is_read(tmp_path: Path) -> None:
    root = repository(tmp_path / "work", {"a.py": "a\n"})
    with (root / "large.png").open("wb") as file:
        file.write(picture())
        file.truncate(51 << 20)
    model = SeeingModel([])
    async with open_session(root, prepare=lambda session: setattr(session.models, "model", model)) as session:
        await session.chat.submit("Look at @large.png")
        await session.chat.finished()
        assert "The picture large.png is too large (51 MB)" in session.state.turn.error and not model.requests


async def test_an_svg_is_sent_as_the_text_that_it_is(tmp_path: Path) -> None:
    svg = '<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>\n'
    root = repository(tmp_path / "work", {"logo.svg": svg})
    model = SeeingModel(["Done."])
    async with open_session(root, prepare=lambda session: setattr(session.models, "model", model)) as session:
        await session.chat.submit("Look at @logo.svg")
        await session.chat.finished()
        message = model.requests[0].messages[-1]
        assert "images" not in message and "alert(1)" in message["content"]


def test_a_picture_of_30_000_pixels_width_is_scaled() -> None:
    header, content = scaled(picture(size=(30_000, 3)), MOST_SIDE, MOST_SENT)
    assert (header["width"], header["height"]) == (1568, 1) and len(content) <= MOST_SENT
