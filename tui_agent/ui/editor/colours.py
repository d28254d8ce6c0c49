"""Syntax colours and search highlights of an editor's lines."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from rich.style import Style
from textual.widgets.text_area import TextAreaTheme
from tree_sitter import Query

from tui_agent.edits.search import Occurrence
from tui_agent.ui.editor.documents import CodeDocument
from tui_agent.ui.editor.writing_area import StyledOnce, WritingArea
from tui_agent.ui.widgets.syntax import LineHighlights


class EditorColours(LineHighlights):
    """Colours by line of the document, and highlights by line of the whole text."""

    def __init__(self, area: WritingArea) -> None:
        super().__init__(self)
        self._area = area
        #: Styles by tree-sitter capture name.
        self.styles: Mapping[str, Style] = MappingProxyType({})
        self._found: Sequence[Occurrence] = ()

    @property
    def colour_query(self) -> Query | None:
        """The highlight query, or `None` for text without colours."""
        return self.document.query if isinstance(self.document, CodeDocument) else None

    @property
    def document(self) -> Any:
        return self._area.document

    def use(self, theme: TextAreaTheme) -> None:
        self.styles = theme.syntax_styles
        self._area.register_theme(StyledOnce.like(theme))
        self._area.theme = theme.name
        self._area.notify_style_update()

    def mark(self, found: Sequence[Occurrence]) -> None:
        """Highlights `found`, which must be in order."""
        if self._found or found:
            self._found = found
            self._area.refresh()

    def marks(self, row: int) -> tuple[tuple[int, int], ...]:
        """Returns the highlighted columns of a line of the whole text."""
        found = self._found
        here = found[bisect_left(found, (row,)) : bisect_left(found, (row + 1,))]
        return tuple((one.start, one.end) for one in here)
