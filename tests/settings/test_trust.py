"""Trust in a workspace: given to what was looked at, and to nothing else."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from support.trees import make_repository, run_git

from tui_agent.errors import SettingsError
from tui_agent.settings import trust
from tui_agent.settings.folders import Folders, user_folders


@pytest.fixture
def folders() -> Folders:
    return user_folders()


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "work space"
    (folder / ".tui-agent" / "themes").mkdir(parents=True)
    (folder / ".tui-agent" / "settings.toml").write_text('theme = "theirs"\n')
    (folder / ".tui-agent" / "themes" / "theirs.toml").write_text("")
    return folder


def test_a_workspace_is_not_trusted_before_somebody_says_so(workspace, folders):
    assert trust.trust_status(workspace, folders) == "not trusted"
    entry = trust.trust(workspace, folders)
    assert sorted(entry.files) == [".tui-agent/settings.toml", ".tui-agent/themes/theirs.toml"]
    assert trust.is_trusted(workspace, folders)
    assert [one.path for one in trust.trusted(folders)] == [str(workspace.resolve())]


@pytest.mark.parametrize("name", ["settings.toml", "themes/theirs.toml", "new.toml"])
def test_a_file_that_changes_or_comes_along_takes_the_trust_away(workspace, folders, name):
    trust.trust(workspace, folders)
    (workspace / ".tui-agent" / name).write_text("# changed\n")
    assert trust.trust_status(workspace, folders) == "changed"
    assert not trust.is_trusted(workspace, folders)


def test_a_file_that_goes_takes_the_trust_away(workspace, folders):
    trust.trust(workspace, folders)
    (workspace / ".tui-agent" / "settings.toml").unlink()
    assert trust.trust_status(workspace, folders) == "changed"


def test_changing_back_is_trusted_again(workspace, folders):
    trust.trust(workspace, folders)
    file = workspace / ".tui-agent" / "settings.toml"
    before = file.read_text()
    file.write_text("")
    file.write_text(before)
    assert trust.is_trusted(workspace, folders)


def test_trust_belongs_to_the_resolved_path(workspace, folders, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(workspace)
    trust.trust(link, folders)
    assert trust.is_trusted(workspace, folders)
    moved = workspace.rename(tmp_path / "moved")
    assert not trust.is_trusted(moved, folders)


def test_trust_in_an_empty_workspace_ends_when_it_brings_something(tmp_path, folders):
    assert trust.trust_status(tmp_path, folders) == "nothing to trust"
    trust.trust(tmp_path, folders)
    assert trust.is_trusted(tmp_path, folders)
    (tmp_path / ".tui-agent").mkdir()
    (tmp_path / ".tui-agent" / "keys.toml").write_text("")
    assert trust.trust_status(tmp_path, folders) == "changed"


@pytest.mark.parametrize("place", [".tui-agent", ".tui-agent/settings.toml"])
def test_links_are_never_trusted(tmp_path, folders, place):
    outside = tmp_path / "outside"
    outside.mkdir()
    (tmp_path / "w").mkdir()
    link = tmp_path / "w" / place
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(outside)
    assert trust.trust_status(tmp_path / "w", folders) == "not trusted"
    with pytest.raises(SettingsError, match="plain files only"):
        trust.trust(tmp_path / "w", folders)


def test_revoking_is_said_once(workspace, folders):
    trust.trust(workspace, folders)
    assert trust.revoke(workspace, folders)
    assert not trust.revoke(workspace, folders)
    assert not trust.is_trusted(workspace, folders)


def test_a_broken_store_trusts_nothing(workspace, folders):
    trust.trust(workspace, folders)
    (folders.data / trust.STORE).write_text('{"workspaces": [{"path": 1}]}')
    assert trust.trusted(folders) == ()
    assert not trust.is_trusted(workspace, folders)


def test_the_store_is_private(workspace, folders):
    trust.trust(workspace, folders)
    assert (folders.data / trust.STORE).stat().st_mode & 0o777 == 0o600
    assert folders.data.stat().st_mode & 0o777 == 0o700


def test_a_store_that_cannot_be_written_is_one_sentence(workspace, tmp_path):
    (tmp_path / "file").write_text("")
    home = tmp_path / "file" / "home"
    with pytest.raises(SettingsError, match="cannot be written"):
        trust.trust(workspace, Folders(home, home, home, home))


def test_the_filters_of_the_repository_are_trusted_as_they_were_looked_at(tmp_path, folders):
    root = make_repository(tmp_path / "root", ["a.txt"])
    run_git(root, "config", "filter.upper.clean", "tr a-z A-Z")
    assert trust.trust_status(root, folders) == "not trusted"
    assert trust.trusted_filters(root, folders) == ""
    trust.trust(root, folders)
    assert trust.trusted_filters(root, folders) == trust.fingerprint(root) != ""
    run_git(root, "config", "filter.upper.clean", "sh ./theirs")
    assert trust.trusted_filters(root, folders) != trust.fingerprint(root)
    trust.revoke(root, folders)
    assert trust.trusted_filters(root, folders) == ""


def test_an_entry_from_before_filters_were_kept_trusts_none(tmp_path, folders):
    root = make_repository(tmp_path / "root", ["a.txt"])
    trust.trust(root, folders)
    store = folders.data / trust.STORE
    kept = msgspec.json.decode(store.read_bytes())
    del kept["workspaces"][0]["filters"]
    store.write_bytes(msgspec.json.encode(kept))
    assert trust.is_trusted(root, folders) and trust.trusted_filters(root, folders) == ""
