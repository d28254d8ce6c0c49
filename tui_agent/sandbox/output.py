"""Output of a command: head and tail, without escape sequences; progress bars as their last state."""

from __future__ import annotations

import re
from collections import deque

from tui_agent.context.blocks import head_and_tail
from tui_agent.sandbox.view_plan import MEGABYTE

#: Bytes kept of a longer output.
HEAD, TAIL = 5 * MEGABYTE, 5 * MEGABYTE
#: Beyond this, commands are terminated.
MOST = 1024 * MEGABYTE
#: Bytes from which the display is computed, half from each end.
_LOOKED_AT = 256_000
#: An unterminated sequence with text (a title, a link) ends at its line.
_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\n\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[ -/]*[0-~]|[\x80-\x9f]"
)
_COLOUR = re.compile(r"\x1b\[[0-9;:]*m")


class Output:
    """Output of one command so far, in bytes."""

    def __init__(self) -> None:
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._in_tail = 0
        #: Bytes printed.
        self.size = 0

    def add(self, data: bytes) -> None:
        self.size += len(data)
        room = HEAD - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        if data:
            self._tail.append(data)
            self._in_tail += len(data)
            while self._in_tail - len(self._tail[0]) >= TAIL:
                self._in_tail -= len(self._tail.popleft())

    @property
    def cut(self) -> int:
        """Bytes dropped between head and tail."""
        return self.size - len(self._head) - self._in_tail

    def content(self) -> bytes:
        """Returns the kept output, with a line that states the missing bytes."""
        tail = b"".join(self._tail)
        if not self.cut:
            return bytes(self._head) + tail
        return bytes(self._head) + f"\n[{self.cut:,} bytes are not kept]\n".encode() + tail

    def ends(self, size: int) -> tuple[bytes, int]:
        """`size` bytes, half from each end, with a line about the omission, and the number of omitted lines."""
        kept = len(self._head) + self._in_tail
        if kept <= size:
            return self.content(), 0
        # Not `content`: copying ten megabytes would block other threads.
        head, tail = bytes(self._head[: size // 2]), self._last(size // 2)
        # A line longer than a half is cut at the limit.
        head = head[: head.rfind(b"\n") if b"\n" in head else None]
        tail = tail[tail.find(b"\n") + 1 :] if b"\n" in tail[:-1] else tail
        lines = self._head.count(b"\n") + sum(piece.count(b"\n") for piece in self._tail)
        left = max(0, lines - head.count(b"\n") - tail.count(b"\n"))
        missing = f"{left:,} lines" if left > 1 else f"{kept - len(head) - len(tail):,} bytes"
        return head + f"\n[{missing} left out]\n".encode() + tail, left

    def _last(self, size: int) -> bytes:
        pieces: deque[bytes] = deque()
        for piece in (*reversed(self._tail), self._head):
            pieces.appendleft(bytes(piece[-size:]))
            size -= len(pieces[0])
            if not size:
                break
        return b"".join(pieces)

    def last_line(self) -> str:
        """Returns the last non-empty line."""
        end = b"".join([bytes(self._head[-4096:]), *list(self._tail)[-2:]])[-4096:]
        lines = [line for line in plain(end.decode("utf-8", "replace")).splitlines() if line.strip()]
        return lines[-1].strip() if lines else ""


def printed(output: Output, letters: int) -> tuple[str, int, str]:
    """Head and tail in `letters` characters, the number of omitted lines, and the same text with colours (""
    if none). Blocking, briefly."""
    content, left = output.ends(_LOOKED_AT)
    text = content.decode("utf-8", "replace")
    shown, cut = head_and_tail(plain(text), letters)
    coloured, _ = head_and_tail(plain(text, colours=True), 2 * letters)
    return shown, cut + left, coloured if "\x1b[" in coloured else ""


def plain(text: str, *, colours: bool = False) -> str:
    """Returns the text as a terminal would finally show it: without escape sequences (except `colours`),
    overwritten and erased text."""
    text = _ESCAPES.sub(lambda found: found[0] if colours and _COLOUR.fullmatch(found[0]) else "", text)
    if "\r" in text or "\b" in text:
        text = "\n".join(map(_last_state, text.replace("\r\n", "\n").split("\n")))
    return text.replace("\x00", "").replace("\x07", "")


def _last_state(line: str) -> str:
    parts = [part for part in line.split("\r") if part]
    line = parts[-1] if parts else ""
    if "\b" not in line:
        return line
    shown: list[str] = []
    for letter in line:
        if letter != "\b":
            shown.append(letter)
        elif shown:
            shown.pop()
    return "".join(shown)
