"""Program that reads one picture from standard input and writes it in a form that providers accept.

A separate process with limits, because a small file can decode to gigabytes. Writes a line of JSON, then
the bytes: `{"media_type", "width", "height"}`, or `{"error"}` with a reason that continues "The picture
…". Arguments: the longest side in pixels, and the maximum bytes of the result.
"""

from __future__ import annotations

import io
import json
import resource
import sys

from tui_agent.errors import install_command
from tui_agent.files.numbers import whole_number

#: Bytes of memory, seconds of processor time, decoded pixels.
MEMORY, SECONDS, MOST_PIXELS = 1 << 30, 20, 100_000_000
_KEPT = {"PNG": "image/png", "JPEG": "image/jpeg", "GIF": "image/gif", "WEBP": "image/webp"}
#: Other formats, such as PostScript, would start programs.
_FORMATS = (*_KEPT, "BMP", "TIFF", "ICO")
_QUALITIES = (90, 75, 60, 40)


def main() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    most_side, most_bytes = (whole_number(word, 1) for word in sys.argv[1:3])
    data = sys.stdin.buffer.read()
    try:
        header, content = scaled(data, most_side, most_bytes)
    except ModuleNotFoundError:
        error = f"cannot be read without Pillow, which is not installed: {install_command('pillow')}"
        header, content = {"error": error}, b""
    except MemoryError:
        header, content = {"error": "needs too much memory"}, b""
    sys.stdout.buffer.write(json.dumps(header).encode() + b"\n" + content)


def scaled(data: bytes, most_side: int, most_bytes: int) -> tuple[dict[str, object], bytes]:
    """Returns the header and the content; of an animation, the first frame."""
    from PIL import Image, ImageOps

    Image.MAX_IMAGE_PIXELS = None
    try:
        image = Image.open(io.BytesIO(data), formats=_FORMATS)
        width, height = image.size
        if width * height > MOST_PIXELS:
            return {"error": f"is too large ({width:,} × {height:,} pixels)"}, b""
        animated = getattr(image, "n_frames", 1) > 1
        kind = image.format or ""
        if kind in _KEPT and not animated and max(width, height) <= most_side and len(data) <= most_bytes:
            image.load()
            return {"media_type": _KEPT[kind], "width": width, "height": height}, data
        image.draft("RGB", (most_side, most_side))
        frame = ImageOps.exif_transpose(image)
        frame.thumbnail((most_side, most_side))
    except (OSError, SyntaxError, ValueError, EOFError):  # Pillow raises each for broken files.
        return {"error": "cannot be read: it is broken, or not a picture"}, b""
    has_alpha = "A" in frame.getbands() or "transparency" in frame.info
    frame = frame.convert("RGBA" if has_alpha else "RGB")
    size = {"width": frame.width, "height": frame.height}
    written = io.BytesIO()
    frame.save(written, "PNG")
    if written.tell() <= most_bytes:
        return {"media_type": "image/png", **size}, written.getvalue()
    for quality in _QUALITIES:
        written = io.BytesIO()
        frame.convert("RGB").save(written, "JPEG", quality=quality)
        if written.tell() <= most_bytes:
            break
    return {"media_type": "image/jpeg", **size}, written.getvalue()


if __name__ == "__main__":
    main()
