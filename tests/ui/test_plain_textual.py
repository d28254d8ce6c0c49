"""The screen on plain Textual: every patch skipped, or one because a private name that it needs is missing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from support.terminal_program import Program, running

from tui_agent.ui.textual_patches.guard import missing

#: Each patch by the name in the debug log, and a statement that takes away a private name that it needs.
LOST = {
    "component styles": "from textual.dom import DOMNode; del DOMNode._get_component_classes",
    "notices": "from textual.widgets import _toast; del _toast.ToastHolder",
    "one notice": "from textual.app import App; del App._unnotify",
    "strip caches": "from textual.strip import Strip; Strip.__init__ = lambda self: None",
    "styles cache": "from textual._styles_cache import StylesCache; del StylesCache.get_inner_outer",
    "drawn lines": "from textual._styles_cache import StylesCache; del StylesCache.clear",
    "tall widgets": "from textual._spatial_map import SpatialMap; del SpatialMap.insert",
    "timers": "from textual.timer import Timer; Timer.__init__ = lambda self: None",
    "lines of an editor": "from textual.widgets import TextArea; del TextArea._render_line",
    "unwrapped rows": "from textual.widgets.text_area import WrappedDocument as W; del W.wrap_range",
    "keys first": "from textual.screen import Screen; del Screen._compositor_refresh",
    "spans": "from textual import _compositor; del _compositor.CompositorUpdate",
    "rows of a screen": "from textual import _context; del _context.visible_screen_stack",
    "key sequences": "from textual._xterm_parser import XTermParser as X; del X._sequence_to_key_events",
    "typed keys": "from textual.app import App; del App._check_bindings",
    "fatal errors": "from textual.app import App; del App._fatal_error",
    "plain display": "from textual.app import App; del App._begin_update",
    "quiet": "import textual.message_pump as m; m.MessagePump.__init__ = m.MessagePump._get_message = "
    "m.MessagePump._peek_message = m.MessagePump._close_messages = lambda self: None",
    "focus styles": "from textual.screen import Screen; del Screen._update_focus_styles",
    "lost focus": "from textual.screen import Screen; del Screen._reset_focus",
    "laid out once": "from textual.widget import Widget; del Widget._size_updated",
    "grown widgets": "from textual.widget import Widget; del Widget._size_updated",
}
#: In a child of its own for each lost name: imports every patch and asks those that are asked late.
_TRY = """
import io, logging, os, sys
import textual.app, textual.screen, textual.widgets, textual.widgets.text_area, textual.widgets._toast
import textual._styles_cache, textual._spatial_map, textual._compositor, textual._xterm_parser, textual.css.stylesheet
import textual.drivers.linux_driver
for patch, statement in {lost!r}.items():
    reader, writer = os.pipe()
    if os.fork():
        os.close(writer)
        said = open(reader).read()
        os.wait()
        lines = {{line for line in said.splitlines() if f"patched, {{patch}}: " in line}}
        print(patch, "|", *lines, "TRACE" * ("Error" in said))
        continue
    os.dup2(writer, 1), os.dup2(writer, 2)
    try:
        exec(statement)
        logging.basicConfig()
        from tui_agent.ui import textual_patches
        textual_patches.apply()
        from tui_agent.ui.textual_patches import driver, fatal_errors, focus_styles, grown_widgets, keys_first
        from tui_agent.ui.textual_patches import lost_focus, notices, plain_display, quiet, screen_rows, sequences
        from tui_agent.ui.textual_patches import text_area_lines, typed_keys, unwrapped_rows
        sequences.known(), screen_rows._known(), quiet._known()
        if patch in ("one notice", "drawn lines"):
            from tui_agent.ui.textual_patches import styles_cache
            app = object.__new__(textual.app.App)
            notices.dismiss_notices(app, lambda shown: shown) if patch == "one notice" else None
            styles_cache.forget_lines(app, 0) if patch == "drawn lines" else None
    except BaseException:
        import traceback
        traceback.print_exc()
    finally:
        os._exit(0)
"""


def test_each_patch_is_skipped_with_a_line_in_the_log_if_a_name_is_missing() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _TRY.format(lost=LOST)],
        capture_output=True,
        text=True,
        check=True,
        timeout=100,
    )
    told = dict(line.split(" | ", 1) for line in done.stdout.splitlines())
    assert [patch for patch in LOST if "patched, " not in told[patch] or "TRACE" in told[patch]] == [], told


def test_the_screen_works_with_every_patch_skipped(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It opens, takes what is typed, sends, shows the answer, applies, scrolls and quits."""
    monkeypatch.setenv("TUI_AGENT_PATCHES", "none")
    with running(Program("demo", folder=tmp_path, home=home)) as program:
        program.shows("Send the message")
        program.type(b"\r")
        program.shows("F8 apply all")
        program.type(b"\x1b[15~")  # F5 is the review
        program.until(lambda: "Enter send" not in program.text, "the focus in the review")
        program.type(b"a")
        program.shows("3 of 15")  # it is applied
        program.type(b"\x1b[18~\x1b[5~typed")  # F7 is the chat, page up scrolls it
        program.shows("typed")
        program.type(b"\x03")
        program.shows("again to quit")
        program.type(b"\x03")
        program.until(lambda: program.process.poll() is not None, "the end")
        assert program.process.returncode == 0


def test_a_class_that_grows_while_it_is_inspected() -> None:
    """Another thread, which imports, can add a member at any moment."""

    class Grows:
        def __getattr__(self, name: str) -> object:
            setattr(Owner, f"_{name}", None)
            raise AttributeError(name)

        def __call__(self) -> None: ...

    class Owner:
        _grows = Grows()
        _kept = 1

    assert missing(Owner, "_kept") == ""
    assert missing(Owner, "_other") == "Owner has no _other"
