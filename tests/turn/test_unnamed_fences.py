"""A fence that names no file, and resembles one that the model has seen or may be a new one, waits for the person."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.sessions import open_session
from support.trees import make_tree

from tui_agent.edits.change import Pick

CODE = "".join(f"def name_{number}():\n    return {number}\n\n\n" for number in range(6))
NEW = CODE.replace("return 3", "return 33")
DIFF = "@@ -13,2 +13,2 @@\n def name_3():\n-    return 3\n+    return 33\n"


MORE = "I think of `docs/n.py`:\n\n```python\nx = 1\n```\n\nand of `m.py`:\n\n```python\ny = 2\n```\n"


@pytest.mark.parametrize(
    "text", [f"It is now:\n\n```python\n{NEW}```\n", f"So:\n\n```diff\n{DIFF}```\n{MORE}"]
)
async def test_a_fence_that_resembles_a_file_is_offered(tmp_path: Path, text: str) -> None:
    root = make_tree(tmp_path / "work", {"m.py": CODE, "other.py": "x = 1\n"})
    async with open_session(root, [text]) as session:
        await session.chat.submit("Look at @m.py and @other.py")
        await session.chat.finished()
        change, *more = session.state.review.changes
        assert [(one.path, one.kind, "may be its text" in one.ask) for one in more] == (
            [("docs/n.py", "create", True)] if MORE in text else []
        )
        assert (change.path, change.state, "without a file name" in change.ask) == ("m.py", "pending", True)
        await session.review.apply()
        assert (root / "m.py").read_text() == CODE, "it is never part of all"
        await session.review.apply([Pick(change.id)])
        assert (root / "m.py").read_text() == NEW
