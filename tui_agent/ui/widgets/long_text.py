"""What makes Textual's editor quick in a long file whose lines are not wrapped.

Its own code sums over all lines for each line it draws, and measures all lines after each key.
"""

from __future__ import annotations

from heapq import nlargest

from rich.cells import cell_len
from textual.document._wrapped_document import WrappedDocument

#: So many of the longest lines, by characters, are measured in cells.
_MEASURED = 64


class CountedDocument(WrappedDocument):
    """Knows its height without adding anything up: there is one entry for each line that can be drawn."""

    @classmethod
    def of(cls, wrapped: WrappedDocument) -> CountedDocument:
        """The same wrapping, with nothing computed again."""
        counted = cls.__new__(cls)
        counted.__dict__ = wrapped.__dict__
        return counted

    @property
    def height(self) -> int:
        return len(self._offset_to_line_info)


def widest(lines: list[str], tab_width: int) -> int:
    """Cells of the widest line; wide letters count double, tabs as they are drawn."""
    longest = nlargest(_MEASURED, lines, key=len)
    return max((cell_len(line.expandtabs(tab_width)) for line in longest), default=0)
