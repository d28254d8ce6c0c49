"""Converts palettes from `themes/*.toml`, with a table per colour depth, to Textual themes with one variable
per meaning.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct
from rich.style import Style
from textual.color import Color, ColorParseError
from textual.theme import Theme

from tui_agent.settings.files import Unreadable, read_own, read_toml
from tui_agent.settings.folders import themes_folder

if TYPE_CHECKING:
    from textual.widgets.text_area import TextAreaTheme

DEFAULT = "dark"
LIGHT = "light"
NO_COLOUR = "no-colour"
Depth = Literal["colors", "colors-256", "colors-16"]
FULL: Depth = "colors"
_DEPTHS: dict[str, Depth] = {"256": "colors-256", "standard": "colors-16", "windows": "colors-16"}


def depth_of(color_system: str | None) -> Depth:
    """Full if Rich detects no colour system."""
    return _DEPTHS.get(color_system or "", FULL)


class Palette(Struct, frozen=True):
    """Colours by meaning. `faults` are sentences about invalid entries of the file."""

    name: str
    dark: bool
    colors: dict[str, str]
    faults: tuple[str, ...] = ()


def names(folders: Sequence[Path] = ()) -> list[str]:
    files = [path for folder in (themes_folder(), *folders) for path in folder.glob("*.toml")]
    return sorted({path.stem for path in files})


def load_palette(name: str, folders: Sequence[Path] = (), depth: Depth = FULL) -> Palette:
    for folder in (*reversed(folders), themes_folder()):
        path = folder / f"{name}.toml"
        if path.is_file():
            return _read(path, depth)
    shipped = _read(themes_folder() / f"{DEFAULT}.toml", depth)
    known = ", ".join(names(folders))
    fault = f"There is no theme {name!r}: choose one of {known}"
    return Palette(shipped.name, shipped.dark, shipped.colors, (fault,))


def theme_of(palette: Palette) -> Theme:
    colors = palette.colors
    return Theme(
        name=palette.name,
        dark=palette.dark,
        primary=colors["accent"],
        secondary=colors["person"],
        accent=colors["accent"],
        warning=colors["warning"],
        error=colors["error"],
        success=colors["done"],
        foreground=colors["text"],
        background=colors["background"],
        surface=colors["surface"],
        panel=colors["surface-raised"],
        variables={
            **{name: colors[meaning] for name, meaning in _TEXTUAL_COLOURS.items()},
            **_TEXTUAL_STYLES,
            # unfocused panes have a border only if pane and background have the same shade
            "edge": colors["line" if colors["background"] == colors["surface"] else "surface"],
            **colors,
        },
    )


def editor_theme(name: str, colors: Mapping[str, str]) -> TextAreaTheme:
    """Maps tree-sitter names to the palette's `syntax-…` entries."""
    from textual.widgets.text_area import TextAreaTheme

    def style(meaning: str, bold: bool = False, italic: bool = False) -> Style:
        return Style(color=colors[f"syntax-{meaning}"], bold=bold or None, italic=italic or None)

    styles = {
        **dict.fromkeys(_KEYWORDS, style("keyword")),
        **dict.fromkeys(("string", "string.documentation", "regex.punctuation.bracket"), style("string")),
        **dict.fromkeys(("number", "float"), style("number")),
        **dict.fromkeys(("boolean", "constant.builtin", "json.null", "yaml.field"), style("constant")),
        **dict.fromkeys(("function", "function.call", "method", "method.call", "tag"), style("function")),
        **dict.fromkeys(("type", "class", "type.class", "type.builtin", "toml.type"), style("type")),
        **dict.fromkeys(("operator", "regex.operator", "regex.punctuation.delimiter"), style("operator")),
        **dict.fromkeys(("variable", "parameter", "json.label"), style("variable")),
        **dict.fromkeys(("comment", "info_string"), style("comment", italic=True)),
        **dict.fromkeys(("heading", "heading.marker"), style("heading", bold=True)),
        **dict.fromkeys(("link", "link.uri", "link.label"), style("link")),
        "bold": Style(bold=True),
        "italic": Style(italic=True),
        "strikethrough": Style(strike=True),
        "inline_code": style("string"),
        "list.marker": style("keyword"),
    }
    return TextAreaTheme(name=name, syntax_styles=styles)


_KEYWORDS = (
    "keyword",
    "keyword.function",
    "keyword.return",
    "keyword.operator",
    "conditional",
    "repeat",
    "include",
    "exception",
)


def _read(path: Path, depth: Depth) -> Palette:
    try:
        if path.parent == themes_folder():
            found = _shipped(path.stem)
        else:
            found = read_toml(read_own(path.parents[1], path.parent.name, path.name).decode())
    except (OSError, UnicodeDecodeError, Unreadable) as error:
        return _filled(path.stem, True, {}, [f"The theme {path} cannot be read ({error}): correct it"], depth)
    colors = next((found[table] for table in (depth, FULL) if isinstance(found.get(table), dict)), {})
    texts = {name: color for name, color in colors.items() if isinstance(color, str)}
    return _filled(path.stem, bool(found.get("dark", True)), texts, [], depth)


def _filled(name: str, dark: bool, colors: dict[str, str], faults: list[str], depth: Depth) -> Palette:
    """Missing and invalid colours are those of the shipped palette."""
    shipped: dict[str, str] = _shipped("dark" if dark else "light")[depth]
    usable = {}
    for key, color in colors.items():
        with suppress(ColorParseError):
            Color.parse(color)
            usable[key] = color
    faults += [
        f"The theme {name} has a colour {key!r} that does not exist: see dark.toml for the names"
        for key in sorted(colors.keys() - shipped.keys())
    ]
    faults += [
        f"The theme {name} gives {key} = {colors[key]!r}, which is not a colour: write #rrggbb"
        for key in sorted(colors.keys() - usable.keys())
    ]
    return Palette(name, dark, {**shipped, **usable}, tuple(faults))


@cache
def _shipped(name: str) -> dict[str, Any]:
    """Cached: parsing takes 3 ms."""
    return tomllib.loads((themes_folder() / f"{name}.toml").read_text(encoding="utf-8"))


#: Variables of Textual's widgets by palette entry, and those that are styles.
_TEXTUAL_COLOURS = {
    "block-cursor-background": "accent-surface",
    "block-cursor-foreground": "text",
    "block-cursor-blurred-background": "surface-raised",
    "block-cursor-blurred-foreground": "text",
    "block-hover-background": "surface-raised",
    "border": "accent",
    "border-blurred": "line",
    "input-cursor-background": "cursor",
    "input-cursor-foreground": "background",
    "input-selection-background": "selection",
    "screen-selection-background": "selection",
    "scrollbar": "line",
    "scrollbar-hover": "faint",
    "scrollbar-active": "accent",
    "scrollbar-background": "surface",
    "scrollbar-background-hover": "surface",
    "scrollbar-background-active": "surface",
    "scrollbar-corner-color": "surface",
    "text-muted": "muted",
    "text-disabled": "faint",
    "link-color": "accent",
    "markdown-h1-color": "syntax-heading",
    "markdown-h2-color": "syntax-heading",
    "markdown-h3-color": "text",
}
_TEXTUAL_STYLES = {
    "block-cursor-text-style": "none",
    "link-style": "underline",
    "markdown-h2-text-style": "bold",
    "markdown-h3-text-style": "bold",
}
