"""Lines that stand for what was left out of a whole text, and lines that only look like them."""

from __future__ import annotations

import pytest

from tui_agent.answers.placeholders import placeholder
from tui_agent.answers.values import ChangeRequest
from tui_agent.edits.forms import propose
from tui_agent.errors import EditFailed

BASE = "".join(f"line_{number} = {number}\n" for number in range(50))
LEFT_OUT = [
    "...",
    "# ...",
    "# (unchanged)",
    "/* unchanged */",
    "# same as before",
    "<rest of the file>",
    "# existing implementation",
    "# ---- snip ----",
    "# etc.",
    "// ... existing code ...",
    "<!-- rest of the page -->",
    "-- rest unchanged",
    "# Rest der Datei",
    "# 其余代码不变",
    "// … reste du fichier",
    "    # ... rest of the function ...",
    "[rest of the file unchanged]",
    "(remaining code)",
    "// other methods remain the same",
    "# keep existing imports",
    "; unchanged",
    "{/* ... */}",
    "/* ... */",
    "// rest of file omitted for brevity",
    "... rest of file ...",
    "def f(): ...  # unchanged",
    "function g() { /* same as before */ }",
    "# The rest of the code stays the same.",
    "-------- snip --------",
    "# 40 more lines",
    "REM unchanged",
    "% unchanged",
    "    pass  # same as before",
    "# [existing code]",
    "# no changes below",
    "// unchanged code",
    "# previous code here",
    "# … remaining methods …",
    "# <existing code>",
    "(* unchanged *)",
    "{- rest of the module -}",
    "# ... (rest of the code remains unchanged)",
    "// [...]",
    "# [...]",
    "// (...)",
    "# unverändert",
    "... (unchanged)",
]
WORDS = [
    "x = ...",
    "# The rest of the week is free",
    "return rest",
    "# keep in mind",
    "# other notes",
    "total = existing + 1",
    "print('...')",
    "const {a, ...rest} = b;",
    "...rest,",
    "...this.other)",
    "...existing.map((one) => one),",
    "# Keep the rest of the list sorted, as before.",
    "# other callers rely on the same lock",
    "# etcd is used here",
    "# previous version was 2",
    "# The original author is Bob",
    "# Cut the string",
    "# existing users get a mail",
    "# Same as before_request in Flask",
    "'unchanged'",
    "status = 'unchanged'  # a state",
    "# lines 3 to 5",
    "# Remaining time in seconds",
    "# Keep the order stable",
    "from . import x",
    "logger.info('Loading ...')",
    "# Loading...",
    "return  # nothing",
    "# Wait for the rest of the workers",
    "# Other files are ignored",
    "# unchanged files are skipped",
    "# copy the rest of the arguments",
]


@pytest.mark.parametrize("line", LEFT_OUT)
def test_a_line_that_stands_for_more_is_refused(line: str) -> None:
    new = f"{BASE}{line}\nx = 1\n"
    assert placeholder("m.py", BASE, new) == line.strip()
    with pytest.raises(EditFailed, match="leaves something out"):
        propose(ChangeRequest("m.py", content=new), BASE)
    assert not placeholder("m.py", f"{BASE}{line}\n", new), "the file has it"


@pytest.mark.parametrize("line", WORDS)
def test_other_lines_are_text(line: str) -> None:
    new = f"{BASE}{line}\nx = 1\n"
    assert not placeholder("m.py", BASE, new)
    assert propose(ChangeRequest("m.py", content=new), BASE).new_text == new


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("m.pyi", "def f(): ...\n...\n"),
        ("m.py", "class P(Protocol):\n    def f(self):\n        ...\n\n    x: int\n"),
        ("m.py", "@overload\ndef f(x: int) -> int:\n    ...\n@overload\ndef f(x): ...\n"),
        ("m.py", 'def f():\n    """Doc."""\n    ...\n'),
        ("m.py", '"""\n>>> for x in y:\n...     pass\n...\n"""\n'),
        ("README.md", "one\n...\ntwo\n"),
        ("a.ts", "f(...xs)\n"),
        ("c.yml", "a: 1\n...\n"),
    ],
)
def test_dots_that_are_code_are_no_placeholder(path: str, text: str) -> None:
    assert not placeholder(path, BASE, text)


def test_a_new_file_made_of_a_placeholder_is_refused() -> None:
    for remark in ("# ... existing code ...", "// rest of the file", "<!-- existing content -->"):
        with pytest.raises(EditFailed, match="leaves something out"):
            propose(ChangeRequest("n.py", content=f"{remark}\ndef f(): pass\n"), None)
    for text in ("# ...\n", "# etc.\n", "...\n", "# unchanged\n"):
        assert propose(ChangeRequest("n.py", content=text), None).new_text == text
