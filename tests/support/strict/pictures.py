"""Pictures in a request: what is wrong with base64 data and its media type."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Literal

_SIGNS = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF8": "image/gif",
    b"RIFF": "image/webp",
}
MEDIA_TYPES = tuple(_SIGNS.values())
_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+);base64,(.*)", re.DOTALL)
Wrong = Literal["", "media_type", "base64", "mismatch", "broken"]


def kind_of(data: bytes) -> str:
    """The media type of bytes by their first; "" if they are no picture."""
    return next((kind for sign, kind in _SIGNS.items() if data.startswith(sign)), "")


def wrong_with(data: object, media_type: object) -> Wrong:
    """The reason to refuse a picture; "" if there is none."""
    if media_type not in MEDIA_TYPES:
        return "media_type"
    try:
        raw = base64.b64decode(str(data), validate=True)
    except (binascii.Error, ValueError):
        return "base64"
    kind = kind_of(raw)
    if not kind:
        return "broken"
    return "" if kind == media_type else "mismatch"


def wrong_with_url(url: object) -> Wrong:
    """The same of a data URL; other addresses are taken as they are, because nothing is loaded."""
    if not isinstance(url, str):
        return "base64"
    if url.startswith(("https://", "http://")):
        return ""
    found = _DATA_URL.fullmatch(url)
    return wrong_with(found[2], found[1]) if found else "base64"
