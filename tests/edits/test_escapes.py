"""Text that was escaped once too often is refused, and ordinary text with the same signs is not."""

from __future__ import annotations

from typing import Any

import pytest

from tui_agent.answers.values import ChangeRequest, EditHunk
from tui_agent.edits.change import Change
from tui_agent.edits.proposals import propose

BASE = "if a < b:\n    show(a)\n"


def change(path: str = "a.py", base: str | None = BASE, **form: Any) -> Change:
    return propose(ChangeRequest(path, **form), 1, 1, base, "base" if base else "", lambda text: "new")


@pytest.mark.parametrize(
    ("search", "replace"),
    [
        ("    show(a)\n", "    if a &lt; c:\n        show(b)\n"),
        ("    show(a)\n", "    show(a)\\n    show(b)\\n    show(c)\\n"),
        ("    show(a)\n", "    x: List&lt;String&gt; = a &amp;&amp; b\n"),
        ("if a &lt; b:\n", "if a &lt;= b:\n"),
        ("    show(a)\n", "    if c:\\n\\tshow(a)\n"),
        ("    show(a)\n", "    show(&quot;b&quot;)\n"),
        ("    show(a)\n", "    b = &#39;x&#39;\n"),
        ("    show(a)\n", '    x = f():\\n    return \\"x\\"\n'),
        ("    show(a)\n", "#include &lt;stdio.h&gt;\n"),
        ("if a < b:\\n    show(a)\\n", "if a < c:\\n    show(a)\\n"),
    ],
)
def test_what_is_escaped_twice_is_refused_with_a_sentence(search: str, replace: str) -> None:
    failed = change(edits=(EditHunk(search, replace),))
    assert failed.state == "failed" and "escaped once too often" in failed.reason


def test_a_file_that_is_escaped_twice_is_refused() -> None:
    assert change(content="import os\\n\\ndef f():\\n    return 1\\n").state == "failed"
    assert change(base=None, content="import os\\n\\ndef f():\\n    return 1\\n").state == "failed"


@pytest.mark.parametrize(
    ("path", "new"),
    [
        ("a.py", "text = text.replace('<', '&lt;') + \"a\\n\\n  b\\n\"\n"),
        ("a.py", "# if a &lt; b\n"),
        ("a.js", "s.replace(/\\n\\t/g, '&quot;')\n"),
        ("a.sh", 'echo \\"a\\" \\n\n'),
        ("a.html", "<p>if a &lt; b &amp;&amp; c</p>\n"),
        ("a.py", "x = a & b\nprint('\\n')\n"),
        ("a.md", "a\\n  b\\n  c\\n\n"),
    ],
)
def test_ordinary_text_is_not(path: str, new: str) -> None:
    assert change(path, edits=(EditHunk("    show(a)\n", new),)).state == "pending"
