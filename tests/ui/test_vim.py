"""Vim keys in the editor: modes, counts, registers, repetition, and a text that nobody may change."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from support.screens import Driven, on_screen

from tui_agent.ui.editor.code_editor import Editor
from tui_agent.ui.panes.buffers import BuffersPane
from tui_agent.ui.widgets.prompt import Prompt

TEXT = "def fetch(url):\n    return get(url)\n\nlast = 1\n"

#: Text, keys from its start in normal mode, and the result.
COMMANDS = (
    ("a b c", "wx.", "a c"),
    ("aa bb cc", "dw..", ""),
    ("a\nb\nc\nd", "dd2.", "d"),
    ("one two", "cwX<w.", "X X"),
    ("ab", "3ix<", "xxxab"),
    ("a\nb", "Ay<j.", "ay\nby"),
    ("a\nb", "2oz<", "a\nz\nz\nb"),
    ("abc", "xxxu", "c"),
    ("abc", "xu\x12", "bc"),
    ("a\nb\nc", "Vjd", "c"),
    ("a\nb\nc", "Vd", "b\nc"),
    ("one two", "wviwU", "one TWO"),
    ("a(b,\n(c), d)e", "fbdi(", "a()e"),
    ("a(b, c)", "f(d%", "a"),
    ("a.b;c d", "dW", "d"),
    ("a b", "gUw", "A b"),
    ("a\nb", ">j", "    a\n    b"),
    ("    a", "<<", "a"),
    ("a\nb", '"ayyj"ap', "a\nb\na"),
    ("a\nb", '"ayyj"Ayy"ap', "a\nb\na\nb"),
    ("a b", 'yw"_dwP', "a b"),
    ("a x b x", "fx;x", "a x b "),
    ("a\n\nb\nc", "}dd", "a\nb\nc"),
    ("a\nb\n\nc", "dap", "c"),
    ("a\nb\nc", "3J", "a b c"),
    ("one two", "wbD", ""),
    ("one two", "$ged$", "on"),
    ("one two", "yiwwviwp", "one one"),
    ("'a' \"b\"", 'fbci"x<', "'a' \"x\""),
    ("a\nb\nc", "999999999dd", ""),
    ("a\nb\nc", "j" + "9" * 60 + "dd", "a"),
    ("abc", "100000x", ""),
    ("ab", "yl100000000p", "a" * 100_001 + "b"),
    ("ab", "qa@ax", "b"),
    ("a\nb\nc", "VjJ", "a b\nc"),
    ("a\n\n  )b\nc ", "3J", "a)b\nc "),
    ("\n a\nb", "J", "a\nb"),
    ("a\nb\n\nc", "vipd", "\nc"),
    ("f(a, b)\ng[1]", "ci(x<", "f(x)\ng[1]"),
    ("f(a)\ng[1]", "di[", "f(a)\ng[]"),
    ("a b", "di(x", " b"),
    ("a b c d", "d2aw", "c d"),
    ("a b c d", "2diw", "b c d"),
    ("a  b c", "ldaw", "a c"),
    ("    pass", "wdaw", "    "),
    ("f(a(b))", "fbd2i(", "f()"),
    ("a 'b' c", "fbda'", "a c"),
    ("a\n\nb\n\nc", "2dap", "c"),
    ("a\n\nb", "Gdap", "a"),
    ("one two\nthree", "jdb", "one \nthree"),
    ("a b\nc\n\nd", "d}", "\nd"),
    ("a b\nc\n\nd", "wd}", "a \n\nd"),
    ("a\nb\n\nc", "Gd{", "a\nb\nc"),
    ("a\n\nb", "Gdb", "a\nb"),
    ("  a b\nc\n\nd", "wd}p", "\n  a b\nc\nd"),
    ("a b\nc", "jcbX<", "a X\nc"),
    ("a\nb", "jdh", "a\nb"),
    ("one two\n\nx", "wy}P", "one twotwo\n\nx"),
)


async def open_text(it: Driven, text: str) -> Editor:
    (it.session.workspace.root / "a.txt").write_text(text)
    await it.session.files.open("a.txt")
    await it.until(lambda: any(one.revision >= 0 for one in it.screen.query(Editor)), "the text")
    await it.press("f4")
    pane = it.pane("buffers")
    assert isinstance(pane, BuffersPane) and pane.editor is not None
    return pane.editor


def pressed(keys: str) -> list[str]:
    other = {"<": "escape", "\x12": "ctrl+r"}
    return [other.get(key, key) for key in keys]


async def test_commands_in_the_editor(tmp_path: Path) -> None:
    async with on_screen(tmp_path, keys="vim") as it:
        editor = await open_text(it, "start")
        for text, keys, wanted in COMMANDS:
            editor.text = text
            raw = keys.replace("<<", "{shift}")
            names = [one for part in raw.split("{shift}") for one in [*pressed(part), "<", "<"]][:-2]
            editor.focus()
            await it.press(*names)
            assert editor.text == wanted, (text, keys)
            await it.press("escape")


async def test_the_mode_is_on_the_screen_and_nothing_is_typed_in_normal_mode(tmp_path: Path) -> None:
    async with on_screen(tmp_path, keys="vim") as it:
        editor = await open_text(it, TEXT)
        await it.shows("NORMAL")
        await it.press("Z", "tab", "ctrl+k", "é")
        assert editor.text == TEXT
        await it.press("2", "d")
        await it.shows("NORMAL  2d")
        await it.press("escape")
        await it.press("q", "a")
        await it.shows("Macros are not supported")
        await it.press("V")
        await it.shows("VISUAL LINE")
        await it.press("escape", "i")
        await it.shows("INSERT")
        await it.press("x", "escape")
        assert editor.text == f"x{TEXT}"


async def test_a_register_reaches_the_prompt(tmp_path: Path) -> None:
    async with on_screen(tmp_path, keys="vim") as it:
        await open_text(it, TEXT)
        await it.press("w", "y", "w", "f7", "escape", "p")
        assert it.one(Prompt).text == "fetch"


async def test_a_text_that_is_read_only_is_not_changed(tmp_path: Path) -> None:
    async with on_screen(tmp_path, keys="vim") as it:
        editor = await open_text(it, TEXT)
        editor.read_only = True
        for keys in ("x", "dd", "p", "ix", "ox", "J", "~", "ra", ">>", "."):
            await it.press(*keys)
            assert editor.text == TEXT, keys
        await it.press("j", "w")
        assert editor.cursor_location == (1, 4)


async def test_a_very_long_line(tmp_path: Path) -> None:
    async with on_screen(tmp_path, keys="vim") as it:
        editor = await open_text(it, "a")
        editor.text = "word (" * 20_000
        await it.press("$", "b", "g", "e", "%", "d", "i", "(", "d", "0")
        assert editor.text.startswith("(") and len(editor.text) < 20


@pytest.mark.parametrize("module", ["tui_agent.ui.panes.chat", "tui_agent.ui.panes.buffers"])
def test_the_default_keys_load_nothing_of_vim(module: str) -> None:
    code = f"import sys, {module}; print([name for name in sys.modules if 'editor.vim' in name])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


#: Text, keys from its start in normal mode with ¶ for Enter, and where the cursor is then.
SEARCHES = (
    ("a b a\nb a", "/b¶", (0, 2)),
    ("a b a\nb a", "/b¶n", (1, 0)),
    ("a b a\nb a", "/b¶nn", (0, 2)),
    ("a b a\nb a", "/b¶N", (1, 0)),
    ("a b a\nb a", "?a¶", (1, 2)),
    ("a b a\nb a", "?a¶n", (0, 4)),
    ("one oneness one", "*", (0, 12)),
    ("one oneness one", "#", (0, 12)),
    ("a.b axb a.b", "/a.b¶", (0, 8)),
    ("a (b", "/(¶", (0, 2)),
    ("ab\n  cd\nef", "jlmajj'a", (1, 2)),
    ("ab\n  cd\nef", "jllmaj0`a", (1, 2)),
    ("a\nb\nc", ":3¶", (2, 0)),
    ("a\nb\nc", ":99999999999¶", (2, 0)),
    ("a b", "/x¶", (0, 0)),
    ("a b", "/bx\x08¶", (0, 2)),
    ("a b", "/b<", (0, 0)),
)


async def test_searches_and_marks(tmp_path: Path) -> None:
    other = {"¶": "enter", "<": "escape", "\x08": "backspace"}
    async with on_screen(tmp_path, keys="vim") as it:
        editor = await open_text(it, "start")
        for text, keys, wanted in SEARCHES:
            editor.text = text
            editor.focus()
            await it.press(*(other.get(key, key) for key in keys))
            assert editor.cursor_location == wanted, (text, keys)
            assert editor.text == text, keys
            await it.press("escape")


async def test_a_search_extends_a_selection_and_failures_are_said(tmp_path: Path) -> None:
    async with on_screen(tmp_path, keys="vim") as it:
        editor = await open_text(it, "one two xyz")
        await it.press(*"v/xy", "enter", "d")
        assert editor.text == "yz"
        await it.press(*"/nothing", "enter")
        await it.shows("Not found: nothing")
        await it.press(*"'z")
        await it.shows("There is no mark z")
        await it.press(*":bogus", "enter")
        await it.shows("There is no :bogus")
        await it.press(*":w")
        await it.shows("NORMAL  :w")


async def test_typed_commands_save_close_and_open(tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_text("other\n")
    async with on_screen(tmp_path, keys="vim") as it:
        await open_text(it, "one\n")
        await it.press("x", *":w", "enter")
        await it.until(lambda: (tmp_path / "a.txt").read_text() == "ne\n", "the file saved")
        await it.press("x", *":wq", "enter")
        await it.until(lambda: it.session.state.buffers.get("a.txt") is None, "the file closed")
        assert (tmp_path / "a.txt").read_text() == "e\n"
        await it.session.files.open("a.txt")
        await it.until(lambda: any(one.revision >= 0 for one in it.screen.query(Editor)), "the text")
        await it.press("f4", *":e b.txt", "enter")
        await it.until(lambda: it.session.state.buffers.active == "b.txt", "the other file")
