"""Syntax colours for the lines in view: Textual's editor asks line by line, the tree is queried by the chunk.

Querying the whole tree after each key takes time that grows with the file (35 ms at 500 lines); a chunk takes
about a millisecond at any size.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from textual.widgets import TextArea

CHUNK = 24
Highlight = tuple[int, int | None, str]


class LineHighlights(defaultdict[int, list[Highlight]]):
    """Stands in for the editor's own map of lines to colours; `clear` forgets what was queried."""

    def __init__(self, editor: TextArea) -> None:
        super().__init__(list)
        self._editor = editor

    def __bool__(self) -> bool:
        """Always worth asking: what is not there yet is queried when it is."""
        return True

    def __missing__(self, row: int) -> list[Highlight]:
        first = row - row % CHUNK
        for line in range(first, first + CHUNK):
            self[line] = []
        self._query(first, first + CHUNK)
        return self[row]

    def _query(self, first: int, end: int) -> None:
        query = self._editor._highlight_query
        if not query:
            return
        captures = self._editor.document.query_syntax_tree(query, (first, 0), (end, 0))
        for name, nodes in captures.items():
            for node in nodes:
                (top, left), (bottom, right) = node.start_point, node.end_point
                for line in range(max(top, first), min(bottom + 1, end)):
                    start = left if line == top else 0
                    self[line].append((start, right if line == bottom else None, name))
