"""find_files: paths that fit a glob, the newest first, bounded, in either dialect."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from support.sessions import calls, model_of, open_session, reply
from support.trees import make_tree

from tui_agent.model.parts import text_of

GLOBS = [{"glob": "src/**/*.py", "limit": 2}, {"glob": "*.md"}, {"glob": "../x"}]


@pytest.mark.parametrize("protocol", ["tools", "structured"])
async def test_the_newest_come_first_and_the_rest_is_counted(tmp_path: Path, protocol: str) -> None:
    root = make_tree(
        tmp_path / "work",
        {f"src/m{n}.py": "x\n" for n in range(4)} | {"build/x.py": "", ".gitignore": "build\n"},
    )
    for age, name in enumerate(("m2", "m0", "m3", "m1")):
        os.utime(root / f"src/{name}.py", (1_000_000 - age, 1_000_000 - age))
    asked: Any = (
        calls(*(("find_files", one) for one in GLOBS))
        if protocol == "tools"
        else reply("Looks.", findFiles=GLOBS)
    )
    async with open_session(root, [asked, reply("Done.")], protocol=protocol) as session:
        await session.chat.submit("Which files are new?")
        await session.chat.finished()
        assert session.state.turn.ok, session.state.turn.error
        told = [text_of(message) for message in model_of(session).requests[1].messages[-3:]]
        text = "\n".join(told)
        assert "Files that fit src/**/*.py\nsrc/m2.py\nsrc/m0.py\n… 2 more" in text
        assert "Files that fit *.md\nnone" in text and "not a glob" in text and "build" not in text
        if protocol == "tools":
            assert [("*.md" in one) for one in told] == [False, True, False], "each has its own result"
