"""Palettes are files of meanings; a broken one is said and filled from the shipped one."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from tui_agent.settings.folders import themes_folder
from tui_agent.ui import themes
from tui_agent.ui.themes import Depth, depth_of, editor_theme, load_palette, names, theme_of

UI = Path(themes.__file__).parent
SHIPPED = ["dark", "high-contrast", "light", "no-colour"]


def test_the_shipped_palettes() -> None:
    assert names() == SHIPPED


DEPTHS = ("colors", "colors-256", "colors-16")
ALL = [(name, depth) for name in SHIPPED for depth in DEPTHS]


@pytest.mark.parametrize(("name", "depth"), ALL)
def test_each_names_every_meaning(name: str, depth: Depth) -> None:
    with (themes_folder() / f"{name}.toml").open("rb") as file:
        colors = tomllib.load(file)[depth]
    palette = load_palette(name, depth=depth)
    assert palette.faults == ()
    assert set(colors) == set(palette.colors) == set(load_palette("dark").colors)


#: What text can lie on; what is a line, or a word that is switched off; all others are text.
GROUNDS = (
    "background", "surface", "surface-raised", "overlay", "accent-surface", "cursor-line", "selection",
    "added-surface", "added-word", "removed-surface", "removed-word",
)  # fmt: skip
FAINT = ("faint", "line")
FAINT_ON = ("background", "surface", "surface-raised", "overlay", "accent-surface", "cursor-line")


@pytest.mark.parametrize(("name", "depth"), ALL)
def test_everything_can_be_read_on_every_ground(name: str, depth: Depth) -> None:
    """4.5:1 for each text on each ground, 3:1 for lines and what is switched off (WCAG 2.2, 1.4.3 and 1.4.11)."""
    from textual.color import Color

    colors = {key: Color.parse(value) for key, value in load_palette(name, depth=depth).colors.items()}
    texts = [key for key in colors if key not in (*GROUNDS, *FAINT, "cursor")]
    flat = colors["added-surface"] == colors["surface"]  # changed lines have the colour of their kind there
    pairs = [
        (text, ground, 4.5)
        for text in texts
        for ground in GROUNDS
        if not ground.endswith("-word") or text == (ground.removesuffix("-word") if flat else "text")
    ]
    pairs += [(text, ground, 3.0) for text in FAINT for ground in FAINT_ON]
    pairs.append(("background", "cursor", 4.5))
    short = [pair for pair in pairs if contrast(colors[pair[0]], colors[pair[1]]) < pair[2]]
    assert short == []


@pytest.mark.parametrize("name", SHIPPED)
def test_changed_rows_and_words_differ_from_their_ground(name: str) -> None:
    """1.3:1, so that a mark rests neither on bold nor on the sign alone."""
    from textual.color import Color

    colors = {key: Color.parse(value) for key, value in load_palette(name).colors.items()}
    for kind in ("added", "removed"):
        row, word = colors[f"{kind}-surface"], colors[f"{kind}-word"]
        assert contrast(row, colors["surface"]) >= 1.3 and contrast(word, row) >= 1.3, kind


@pytest.mark.parametrize("depth", ["colors-256", "colors-16"])
@pytest.mark.parametrize("name", ["dark", "light", "high-contrast"])
def test_unchanged_code_never_has_the_colour_of_a_change(name: str, depth: Depth) -> None:
    colors = load_palette(name, depth=depth).colors
    syntax = {color for key, color in colors.items() if key.startswith("syntax-")}
    assert not syntax & {colors["added"], colors["removed"]}


@pytest.mark.parametrize(("depth", "system"), [("colors-256", "256"), ("colors-16", "standard")])
@pytest.mark.parametrize("name", ["dark", "light", "high-contrast"])
def test_colours_survive_where_there_are_few(name: str, depth: Depth, system: str) -> None:
    """As the terminal gets them, red, green and the accent are three colours, and none of them is a grey."""
    from rich.color import Color, ColorSystem

    numbers = {"256": ColorSystem.EIGHT_BIT, "standard": ColorSystem.STANDARD}
    assert depth_of(system) == depth
    colors = load_palette(name, depth=depth).colors
    sent = {
        key: Color.parse(colors[key]).downgrade(numbers[system]) for key in ("added", "removed", "accent")
    }
    assert len({color.number for color in sent.values()}) == 3
    for color in sent.values():
        red, green, blue = color.get_truecolor()
        assert max(red, green, blue) - min(red, green, blue) > 30


def contrast(one, other) -> float:
    """The contrast ratio of WCAG 2."""
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(color) -> float:
    parts = [
        part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in color.normalized
    ]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def test_the_palette_without_colours_has_none() -> None:
    for depth in DEPTHS:
        for name, color in load_palette("no-colour", depth=depth).colors.items():
            red, green, blue = (color[i : i + 2] for i in (1, 3, 5))
            assert red == green == blue, (depth, name)


def test_style_sheets_use_variables_only() -> None:
    for sheet in UI.rglob("*.tcss"):
        assert not re.search(r"#[0-9a-fA-F]{3,8}\b|rgb\(", _values(sheet.read_text())), sheet


def test_every_variable_of_the_style_sheets_exists() -> None:
    theme = theme_of(load_palette("dark"))
    known = theme.to_color_system().generate() | theme.variables
    for source in [*UI.rglob("*.tcss"), *UI.rglob("*.py")]:
        used = set(re.findall(r"[:\s]\$([a-z][a-z0-9-]*)", _values(source.read_text())))
        assert used <= set(known), source


def _values(text: str) -> str:
    """The declarations of a style sheet, without selectors."""
    return "\n".join(re.findall(r"[\w-]+:[^;{}]*;", text))


def test_an_unknown_theme_is_said_and_the_default_used() -> None:
    palette = load_palette("solar")
    assert palette.name == "dark"
    assert palette.faults == (f"There is no theme 'solar': choose one of {', '.join(SHIPPED)}",)


def test_a_theme_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(
        '[colors]\naccent = "#ff0000"\nacent = "#00ff00"\nadded = "greenish"\n'
    )
    palette = load_palette("mine", [tmp_path])
    assert palette.colors["accent"] == "#ff0000"
    assert palette.colors["added"] == load_palette("dark").colors["added"]
    assert len(palette.faults) == 2
    assert "acent" in palette.faults[0] and "greenish" in palette.faults[1]


def test_a_broken_theme_is_the_shipped_one(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text("colors = [")
    palette = load_palette("mine", [tmp_path])
    assert palette.colors == load_palette("dark").colors
    assert "cannot be read" in palette.faults[0]


def test_code_is_coloured_from_the_palette() -> None:
    palette = load_palette("dark")
    keyword = editor_theme("dark", palette.colors).syntax_styles["keyword"]
    assert keyword.color is not None
    assert keyword.color.name == palette.colors["syntax-keyword"]
