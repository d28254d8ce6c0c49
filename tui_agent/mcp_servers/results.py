"""The result of a server's tool as text, and long results as files."""

from __future__ import annotations

import base64
import json
import os
import secrets
from pathlib import Path
from typing import Any

from tui_agent.files.private import make_private, open_private
from tui_agent.files.text import clean, one_line, size_in_words

#: Bytes of a result that are sent as they are; of a longer one the beginning and the end.
WHOLE, HEAD, TAIL = 100_000, 20_000, 10_000
#: Characters of an encoded picture, and pictures of one result.
MAX_PICTURE, MAX_PICTURES = 14_000_000, 5
_ENDINGS = {"image/jpeg": "jpg", "image/gif": "gif", "image/webp": "webp", "image/bmp": "bmp"}


def text_of(parts: list[Any], structured: Any) -> str:
    """Pictures, sounds and other bytes are named."""
    found = [_part(part) for part in parts]
    if not any(found) and structured is not None:
        found = [json.dumps(structured, ensure_ascii=False, indent=1)]
    return clean("\n".join(words for words in found if words))


def _part(part: Any) -> str:
    kind = getattr(part, "type", "")
    if kind == "text":
        return part.text
    if kind == "resource":
        return resource_text(part.resource)
    if kind == "resource_link":
        return f"[resource {one_line(str(part.uri))}: {one_line(part.name or '')}]"
    data, mime = getattr(part, "data", ""), getattr(part, "mime_type", "")
    hidden = "" if kind == "image" else ", which is not shown"
    return f"[{one_line(str(mime or kind))}, {size_in_words(len(data) * 3 // 4)}{hidden}]"


def pictures_of(parts: list[Any], folder: str, name: str) -> list[str]:
    """Pictures without known bytes, and those above the limits, are left out. Blocking."""
    found: list[str] = []
    for part in parts:
        if getattr(part, "type", "") != "image" or len(part.data) > MAX_PICTURE or len(found) >= MAX_PICTURES:
            continue
        try:
            data = base64.b64decode(part.data, validate=True)
        except ValueError:
            continue
        if path := _stored(
            data, folder, f"{name}-{secrets.token_hex(3)}.{_ENDINGS.get(part.mime_type, 'png')}"
        ):
            found.append(path)
    return found


def resource_text(resource: Any) -> str:
    """The text of a resource; bytes are named only."""
    text = getattr(resource, "text", None)
    if isinstance(text, str):
        return text
    size = size_in_words(len(getattr(resource, "blob", "")) * 3 // 4)
    return f"[{one_line(str(resource.uri))}: {one_line(resource.mime_type or 'bytes')}, {size}, not shown]"


def kept(text: str, folder: str, name: str) -> dict[str, Any]:
    """Blocking."""
    data = text.encode(errors="replace")
    if len(data) <= WHOLE:
        return {"text": text, "kept": "", "bytes": len(data)}
    where = _stored(data, folder, f"{name}-{secrets.token_hex(3)}.txt")
    head, tail = data[:HEAD].decode(errors="ignore"), data[-TAIL:].decode(errors="ignore")
    left = size_in_words(len(data) - HEAD - TAIL)
    about = f"[… {left} of {size_in_words(len(data))} are left out here …]"
    return {"text": f"{head}\n{about}\n{tail}", "kept": where, "bytes": len(data)}


def _stored(data: bytes, folder: str, name: str) -> str:
    """The path of a new file, or "" if it cannot be written."""
    path = Path(folder) / name
    try:
        make_private(path.parent)
        with os.fdopen(
            open_private(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW), "wb"
        ) as file:
            file.write(data)
        return str(path)
    except OSError:
        return ""
