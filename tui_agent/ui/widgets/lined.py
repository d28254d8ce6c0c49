"""A view that draws its own lines in the meanings of the theme: the base of lists, diffs and graphs."""

from __future__ import annotations

from typing import Any

from rich.style import Style
from textual.geometry import Region
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

_INKS = (
    "muted",
    "faint",
    "accent",
    "added",
    "removed",
    "stale",
    "running",
    "done",
    "failed",
    "warning",
    "error",
)


class Lined(ScrollView, can_focus=True):
    """A ScrollView with a style for every meaning; subclasses implement `render_line`.

    Nothing is mounted for a line, and nothing outside the visible region is drawn.
    """

    COMPONENT_CLASSES = {f"ink--{name}" for name in _INKS} | {
        "ink--strong",
        "ground--cursor",
        "ground--resting",
    }
    DEFAULT_CSS = (
        "Lined { scrollbar-size: 0 1; scrollbar-gutter: stable; overflow-x: hidden; background: transparent; }\n"
        + "\n".join(f"Lined > .ink--{name} {{ color: ${name}; }}" for name in _INKS)
        + """
    Lined > .ink--strong { text-style: bold; }
    Lined > .ground--cursor { background: $accent-surface; }
    Lined > .ground--resting { background: $cursor-line; }
    """
    )

    class Moved(Message):
        """The cursor is, or in a graph is to be, on what has this key."""

        def __init__(self, view: Lined, key: str) -> None:
            super().__init__()
            self.view = view
            self.key = key

        @property
        def control(self) -> Lined:
            return self.view

    class Chosen(Moved):
        """What the cursor is on was clicked."""

    class Marked(Moved):
        """The mark of a row or a node was clicked."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._plain = Style.null()
        self._inks: dict[str, Style] = {}

    @property
    def across(self) -> int:
        """The cells of a line that are seen, without the scrollbar."""
        return self.scrollable_content_region.width

    @property
    def down(self) -> int:
        """The lines that are seen at once."""
        return self.scrollable_content_region.height

    def ink(self, name: str) -> Style:
        """The foreground and weight that show a meaning; an empty name is plain text."""
        style = self._inks.get(name)
        if style is None:
            full = self.get_component_rich_style(f"ink--{name}") if name else self._plain
            style = Style(color=full.color, bold=full.bold, italic=full.italic, underline=full.underline)
            self._inks[name] = style
        return style

    def ground(self, name: str) -> Style:
        """The background of `ground--name`, blended with what lies under it."""
        style = self._inks.get(f"ground {name}")
        if style is None:
            full = self.get_component_rich_style(f"ground--{name}")
            style = Style(
                bgcolor=full.bgcolor, bold=full.bold, underline=full.underline, reverse=full.reverse
            )
            self._inks[f"ground {name}"] = style
        return style

    def scroll_to(self, x: float | None = None, y: float | None = None, **how: Any) -> None:
        """Scroll at once: every frame of an animation goes through the terminal, and keys would wait for it."""
        how["animate"] = False
        super().scroll_to(x, y, **how)

    def forget_drawn(self) -> None:
        """Called when colours changed: a subclass that keeps drawn lines drops them here."""

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._forget_styles()

    def render_lines(self, crop: Region) -> list[Strip]:
        # A focused pane may be another shade: what is blended with it is then blended again.
        plain = self.rich_style
        if plain != self._plain:
            self._plain = plain
            self._rich_style_cache.clear()
            self._forget_styles()
        ground = Style(color=plain.color, bgcolor=plain.bgcolor)
        return [strip.apply_style(ground) for strip in super().render_lines(crop)]

    def _forget_styles(self) -> None:
        self._inks.clear()
        self.forget_drawn()
