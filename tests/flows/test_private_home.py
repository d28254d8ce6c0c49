"""What the program keeps is the person's alone: seen from outside, with a umask that would let everybody read it."""

from __future__ import annotations

import os
from pathlib import Path

from support.program import run
from support.recordings import recorded
from support.trees import make_tree


def test_everything_that_is_kept_is_closed_to_others(tmp_path: Path) -> None:
    work = make_tree(tmp_path / "work", {"a.py": "a = 1\n"})
    reply = '{"summary": "Done.", "fileChanges": [{"path": "a.py", "content": "a = 2\\n"}]}'
    replay = recorded(tmp_path / "replay.jsonl", ("Change a.py", reply), ("Change a.py", reply))
    home, record = tmp_path / "deep" / "home", tmp_path / "record.jsonl"
    data = tmp_path / "old" / "data"
    data.mkdir(parents=True)
    for folder in (data, data.parent):
        folder.chmod(0o755)
    before = os.umask(0)
    try:
        for where in (home, data.parent):
            words = ("run", "--apply", "all", "--replay", str(replay), "--record", str(record), "Change a.py")
            done = run(*words, folder=work, environment={"TUI_AGENT_HOME": str(where)})
            assert done.returncode == 0, done.stderr
            (work / "a.py").write_text("a = 1\n")
    finally:
        os.umask(before)
    kept = [*home.parent.rglob("*"), home.parent, *data.rglob("*"), data, record]
    assert len(kept) > 20
    modes = {str(path): path.stat().st_mode & 0o777 for path in kept}
    expected = {str(path): 0o700 if path.is_dir() else 0o600 for path in kept}
    assert modes == expected
    assert data.parent.stat().st_mode & 0o777 == 0o755, "a folder that the person made is left alone"
