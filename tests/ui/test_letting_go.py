"""What is no longer shown is let go of: the interface must not grow with every turn."""

from __future__ import annotations

import gc
import weakref

from textual.app import App, ComposeResult
from textual.widgets import Static
from textual.widgets.text_area import TextAreaTheme

from tui_agent.store.files import Buffer
from tui_agent.ui.letting_go import mend_styles_cache
from tui_agent.ui.widgets.editor import Editor
from tui_agent.ui.widgets.syntax import SyntaxColours

SOURCE = "def value() -> int:\n    return 1\n"


class Small(App[None]):
    def get_css_variables(self) -> dict[str, str]:
        ours = dict.fromkeys(("cursor", "cursor-line", "selection", "muted", "faint"), "#303030")
        return {**super().get_css_variables(), **ours}

    def compose(self) -> ComposeResult:
        mend_styles_cache()
        yield Static("one", id="one")


async def test_the_drawn_lines_of_widgets_that_are_removed_go_with_them() -> None:
    async with Small().run_test() as pilot:
        drawn = []
        for number in range(12):
            widget = Static(f"line {number}")
            await pilot.app.mount(widget)
            await pilot.pause()
            drawn.append(weakref.ref(widget._styles_cache))
            await widget.remove()
        del widget
        await pilot.pause()
        gc.collect()
        alive = [number for number, cache in enumerate(drawn) if cache() is not None]
        assert len(alive) <= 2, f"{alive} of 12: what was drawn last may still be on its way out"


async def test_an_editor_lets_go_of_each_text_that_another_takes_the_place_of() -> None:
    async with Small().run_test() as pilot:
        editor = Editor(Buffer("a.py", text=SOURCE, revision=1), TextAreaTheme("plain"))
        await pilot.app.mount(editor)
        documents = []
        for number in range(3):
            documents.append(weakref.ref(editor.document))
            editor.take(Buffer("a.py", text=SOURCE * (number + 2), revision=number + 2))
            editor.load_text(SOURCE * (number + 9))
        await pilot.pause()
        gc.collect()
        assert [document() for document in documents] == [None, None, None]
        assert editor.text.startswith(SOURCE)
        last = editor.document
        await editor.remove()
        await pilot.pause()
        assert getattr(last, "_syntax_tree", None) is None, "nothing holds it once the editor is gone"


def test_the_colours_of_a_diff_hold_nothing_once_they_are_gone() -> None:
    colours = SyntaxColours(SOURCE.splitlines(keepends=True), "python", {})
    colours.of(0)
    parsed = weakref.ref(colours._found._editor)
    del colours
    gc.collect()
    assert parsed() is None


def test_the_editor_of_textual_still_needs_this() -> None:
    """Where it lets go of its texts by itself, what is done about it here can go."""
    from textual._tree_sitter import get_language
    from textual.document._syntax_aware_document import SyntaxAwareDocument

    grammar = get_language("python")
    assert grammar is not None
    document = SyntaxAwareDocument(SOURCE, grammar)
    kept = weakref.ref(document)
    del document
    gc.collect()
    assert kept() is not None
    kept()._syntax_tree = None  # ty: ignore[invalid-assignment]
