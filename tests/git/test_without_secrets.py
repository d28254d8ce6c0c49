"""The stores of a history without its secrets: each exists, or the history is hidden with the reason."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from support.repositories import git

from tui_agent.git.object_stores import HistoryRequest
from tui_agent.git.without_secrets import answer


@pytest.mark.parametrize("packed", [True, False])
def test_a_store_that_cannot_be_put_in_place_hides_the_history(tmp_path: Path, packed: bool) -> None:
    work = tmp_path / "work"
    work.mkdir()
    git(work, "init", "-q")
    (work / ".env").write_text("DB_PASSWORD=hunter2-Horse\n")
    (work / "a.txt").write_text("one\n")
    git(work, "add", "-A", "-f")
    git(work, "commit", "-qm", "one")
    if packed:
        git(work, "gc", "-q")
    asked = HistoryRequest(str(work), str(tmp_path / "cache"), [b".env"])
    (made,) = answer(asked).repositories
    stores = [Path(path.decode()) for path in made.stores]
    assert stores and all(store.is_dir() for store in stores)
    for store in stores:
        place = store / "pack" if (store / "pack").is_dir() else store
        shutil.rmtree(place)
        place.write_text("in the way")
    told = answer(asked)
    assert not told.repositories and told.gone == [str(work / ".git/objects").encode()]
    assert "could not be searched for secrets" in told.why
