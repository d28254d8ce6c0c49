"""What a command printed: head and tail are kept, escape sequences taken out, progress bars in their last state."""

from __future__ import annotations

import re
from collections import deque

from tui_agent.context.excerpts import head_and_tail
from tui_agent.trial.plan import MEGABYTE

#: Bytes that are kept of a longer output, at its beginning and at its end.
HEAD, TAIL = 5 * MEGABYTE, 5 * MEGABYTE
#: A command that prints more is ended.
MOST = 1024 * MEGABYTE
#: Bytes of an output, half at each end, of which something is shown.
_LOOKED_AT = 256_000
#: A sequence with a text of its own (a title, a link) that is not terminated ends at its line.
_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\n\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[ -/]*[0-~]|[\x80-\x9f]"
)
_COLOUR = re.compile(r"\x1b\[[0-9;:]*m")


class Output:
    """The output of one command, in bytes, as it comes."""

    def __init__(self) -> None:
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._in_tail = 0
        #: Bytes that were printed.
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
        """Bytes between head and tail that were not kept."""
        return self.size - len(self._head) - self._in_tail

    def content(self) -> bytes:
        """What is kept, with a line that says how much is missing."""
        tail = b"".join(self._tail)
        if not self.cut:
            return bytes(self._head) + tail
        return bytes(self._head) + f"\n[{self.cut:,} bytes are not kept]\n".encode() + tail

    def ends(self, size: int) -> tuple[bytes, int]:
        """So many bytes, half of them from each end with a line that says what is missing, and the lines left out."""
        kept = len(self._head) + self._in_tail
        if kept <= size:
            return self.content(), 0
        # not of `content`: copies of ten megabytes would hold up every other thread
        head, tail = bytes(self._head[: size // 2]), self._last(size // 2)
        # a line that is longer than an end of it is cut where the end is
        head = head[: head.rfind(b"\n") if b"\n" in head else None]
        tail = tail[tail.find(b"\n") + 1 :] if b"\n" in tail[:-1] else tail
        lines = self._head.count(b"\n") + sum(piece.count(b"\n") for piece in self._tail)
        left = max(0, lines - head.count(b"\n") - tail.count(b"\n"))
        missing = f"{left:,} lines" if left > 1 else f"{kept - len(head) - len(tail):,} bytes"
        return head + f"\n[{missing} left out]\n".encode() + tail, left

    def _last(self, size: int) -> bytes:
        """So many bytes from the end of what is kept."""
        pieces: deque[bytes] = deque()
        for piece in (*reversed(self._tail), self._head):
            pieces.appendleft(bytes(piece[-size:]))
            size -= len(pieces[0])
            if not size:
                break
        return b"".join(pieces)

    def last_line(self) -> str:
        """The last line that holds something, for the status line."""
        end = b"".join([bytes(self._head[-4096:]), *list(self._tail)[-2:]])[-4096:]
        lines = [line for line in plain(end.decode("utf-8", "replace")).splitlines() if line.strip()]
        return lines[-1].strip() if lines else ""


def printed(output: Output, letters: int) -> tuple[str, int, str]:
    """Head and tail of what was printed, in so many letters; lines left out; the same with its colours, "" without any.

    Blocking, a moment: of a long output only the ends are looked at.
    """
    content, left = output.ends(_LOOKED_AT)
    text = content.decode("utf-8", "replace")
    shown, cut = head_and_tail(plain(text), letters)
    coloured, _ = head_and_tail(plain(text, colours=True), 2 * letters)
    return shown, cut + left, coloured if "\x1b[" in coloured else ""


def plain(text: str, *, colours: bool = False) -> str:
    """The text as a terminal would show it in the end: no escape sequences (but colours, where they are wanted), of a
    line that was written over its last state, nothing that was taken back."""
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
