"""Pictures that the user names in a message: found, scaled by another process, and sent beside the text."""

from __future__ import annotations

import asyncio
import os
import re
import stat
import sys
from base64 import b64encode
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote

import msgspec
from msgspec import Struct

from tui_agent.errors import FileError, ModelError, PathRefused
from tui_agent.files.text import escaped
from tui_agent.model.parts import Message
from tui_agent.processes.ending import end
from tui_agent.processes.environment import for_any
from tui_agent.store import events as e
from tui_agent.tools.tool import Emit
from tui_agent.turn.context import TurnContext

#: SVG is text.
ENDINGS = frozenset((".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".tif", ".tiff", ".ico"))
#: Bytes of a file, pictures of a message, seconds to scale one.
MOST_BYTES, MOST_PICTURES, SCALED_WITHIN = 50 << 20, 20, 30.0
#: Pixels of a side, and bytes before base64: the most that no provider scales down or refuses.
MOST_SIDE, MOST_SENT = 1568, 3_500_000
#: Pixels of a token, by the rule of the provider that documents one.
PIXELS_A_TOKEN = 750
_END = r"\.(?:png|jpe?g|gif|webp|bmp|tiff?|ico)"
_AFTER = r"(?=[.,;:!?)]*(?:\s|\Z))"
#: A mention, and paths as terminals paste dragged files: quoted, escaped, or as an address. The only spaces that they
#: quote are those of ASCII, and the names of screenshots have others.
_NAMED = re.compile(
    rf"""(?<![\w@])@"(?P<quoted>[^"\n]+{_END})"|(?<![\w@])@(?P<mention>[^ \t\r\n"']+{_END})(?![\w/])"""
    rf"""|(?<!\S)'(?P<dragged>(?:/|~/)(?:[^'\n]|'\\'')+{_END})'{_AFTER}"""
    rf"""|(?<!\S)"(?P<double>(?:/|~/)[^"\n]+{_END})"{_AFTER}"""
    rf"""|(?<!\S)(?:file://)?(?P<path>(?:/|~/)(?:[^ \t\r\n\\'"]|\\.)+{_END}){_AFTER}""",
    re.IGNORECASE,
)


#: Beginnings of paths that can lead out of the workspace.
OUTSIDE = ("/", "~/")
_MENTION = re.compile(r"""(?<![\w@])@(?:"([^"\n]{1,500})"|([^\s"'@]{1,500}))""")
#: Characters of a message searched for mentions; bytes of a file that show that it is binary.
MOST_SEARCHED, FIRST_BYTES = 30_000, 8192


class Picture(Struct, frozen=True):
    name: str
    media_type: str
    width: int
    height: int
    data: str

    @property
    def tokens(self) -> int:
        return max(1, self.width * self.height // PIXELS_A_TOKEN)

    @property
    def image(self) -> dict[str, str]:
        return {"media_type": self.media_type, "data": self.data, "tokens": str(self.tokens)}

    @property
    def label(self) -> str:
        return f"{escaped(self.name)}, {self.width} × {self.height}"


class _Header(Struct, frozen=True):
    media_type: str = ""
    width: int = 0
    height: int = 0
    error: str = ""


class PicturedRequest(Struct, frozen=True):
    """`words` has no labels, for the planner."""

    text: str
    words: str
    attachments: tuple[str, ...]
    pictures: tuple[Picture, ...] = ()


async def take_pictures(
    context: TurnContext, request: str, attachments: Sequence[str], emit: Emit, typed: str
) -> PicturedRequest:
    """Only the words that the user `typed` can name pictures outside the workspace.

    Raises `FileError` for an unreadable picture or another binary file, and `ModelError` if the model cannot see.
    """
    plain = PicturedRequest(request, request, tuple(attachments))
    mentions = [one[1] or one[2] for one in _MENTION.finditer(request[:MOST_SEARCHED])]
    if mentions or attachments:
        await asyncio.to_thread(_refuse_binary, context, [*mentions, *attachments])
    if not attachments and not any(ending in request.lower() for ending in ENDINGS):
        return plain
    found: dict[Path, str] = {}
    named: dict[str, Path] = {}
    for match in _NAMED.finditer(request):
        name = next(value for value in match.groupdict().values() if value)
        if name.startswith(OUTSIDE) and match[0] not in typed:
            continue
        if match["path"]:
            name = unquote(name) if match[0].startswith("file://") else re.sub(r"\\(.)", r"\1", name)
        elif match["dragged"]:
            name = name.replace(r"'\''", "'")
        if (place := await asyncio.to_thread(_place, context, name)) is not None:
            found.setdefault(place, name)
            named[match[0]] = place
    attached = {
        path: None
        if context.part and path.startswith(OUTSIDE)
        else await asyncio.to_thread(_place, context, path)
        for path in attachments
    }
    found = {place: path for path, place in attached.items() if place is not None} | found
    if not found:
        return plain
    await _check_sees(context, [*found.values()])
    if len(found) > MOST_PICTURES:
        raise FileError(
            f"{len(found)} pictures are too many for one message", f"send {MOST_PICTURES} at most"
        )
    pictures = {place: await _read(place, name) for place, name in found.items()}
    text = words = request
    for written, place in named.items():
        text = text.replace(written, f"[picture: {pictures[place].label}]")
        words = words.replace(written, "a picture")
    shown = {*named.values()}
    labels = [f"[picture: {one.label}]" for place, one in pictures.items() if place not in shown]
    for one in pictures.values():
        await emit(e.NoticeGiven("info", f"Picture {one.label}: about {one.tokens} tokens", in_chat=True))
    rest = tuple(path for path, place in attached.items() if place is None)
    return PicturedRequest("\n\n".join([text, *labels]), words, rest, tuple(pictures.values()))


async def pictures_of_result(context: TurnContext, paths: Sequence[str]) -> tuple[Picture, ...]:
    found: list[Picture] = []
    try:
        await _check_sees(context, [Path(path).name for path in paths])
        found += [await _read(Path(path), Path(path).name) for path in paths[:MOST_PICTURES]]
    except (FileError, ModelError) as error:
        await context.calls.notify(f"A picture of a result is not shown to the model: {error}")
    return tuple(found)


def with_pictures(message: Message, pictures: Sequence[Picture], earlier: Sequence[Message]) -> Message:
    sent = {image["data"] for one in earlier for image in one.get("images") or ()}
    images = {picture.data: picture.image for picture in pictures if picture.data not in sent}
    return {**message, "images": [*images.values()]} if images else message


async def _check_sees(context: TurnContext, names: Sequence[str]) -> None:
    model = context.core.state.model.name
    abilities = await context.model.abilities(model)
    if abilities.known and not abilities.sees:
        named = ", ".join(map(escaped, names))
        raise ModelError(
            f"{model} does not see pictures; nothing was sent",
            f"choose a model that does (/model), or leave out {named}",
        )


def _place(context: TurnContext, name: str) -> Path | None:
    if Path(name).suffix.lower() not in ENDINGS:
        return None
    if name.startswith(OUTSIDE):
        place = Path(os.path.realpath(os.path.expanduser(name)))
    else:
        place = context.core.workspace.gate.place(name, "read").absolute
    if not os.path.lexists(place):
        return None
    if not place.is_file():
        raise FileError(
            f"The picture {escaped(name)} is not a regular file; nothing was sent",
            "name another, or leave it out",
        )
    return place


def _refuse_binary(context: TurnContext, mentions: Sequence[str]) -> None:
    gate = context.core.workspace.gate
    for name in dict.fromkeys(one.rstrip(".,;:!?)") for one in mentions):
        if not name or Path(name).suffix.lower() in ENDINGS:
            continue
        try:
            place = gate.place(name.removeprefix("./"), "read")
            if not place.exists or place.secret or not place.absolute.is_file():
                continue
            with place.absolute.open("rb") as file:
                first = file.read(FIRST_BYTES)
        except (PathRefused, OSError):
            continue
        if b"\0" in first and not first.startswith((b"\xff\xfe", b"\xfe\xff", b"\0\0\xfe\xff")):
            raise FileError(
                f"{escaped(name)} is neither text nor a picture; nothing was sent",
                "convert it to text, or leave it out",
            )


async def _read(place: Path, name: str) -> Picture:
    data = await asyncio.to_thread(_content, place, name)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "tui_agent.turn.picture_scaler", str(MOST_SIDE), str(MOST_SENT)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={**for_any(), "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    try:
        async with asyncio.timeout(SCALED_WITHIN):
            out, _ = await process.communicate(data)
        line, _, content = out.partition(b"\n")
        header = msgspec.json.decode(line, type=_Header)
    except (TimeoutError, msgspec.DecodeError):
        header, content = _Header(error="cannot be decoded within the limits of time and memory"), b""
    finally:
        if process.returncode is None:
            await end(process)
    if header.error:
        raise FileError(f"The picture {escaped(name)} {header.error}", "convert it, or leave it out")
    return Picture(name, header.media_type, header.width, header.height, b64encode(content).decode())


def _content(place: Path, name: str) -> bytes:
    try:
        descriptor = os.open(place, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise FileError(f"{escaped(name)} is not a file", "name a picture")
            if status.st_size > MOST_BYTES:
                size = status.st_size >> 20
                raise FileError(
                    f"The picture {escaped(name)} is too large ({size} MB)",
                    f"send {MOST_BYTES >> 20} MB at most",
                )
            return file.read(MOST_BYTES)
    except OSError as error:
        raise FileError(
            f"The picture {escaped(name)} cannot be read ({error.strerror})", "check its permissions"
        ) from error
