"""The sample project: real, tested, and copied clean, wherever it is copied."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from support.rehearsal_scenes import TIMEOUTS

from tui_agent.errors import FileError
from tui_agent.rehearsal import FOLDER, copy_project


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return copy_project(tmp_path / "shop")


def git(folder: Path, *words: str) -> str:
    return subprocess.run(
        ["git", *words], cwd=folder, check=True, capture_output=True, text=True, timeout=20
    ).stdout


def run_its_tests(folder: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-B", "-m", "unittest"],
        cwd=folder,
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert result.returncode == 0, result.stderr
    assert "Ran 10 tests" in result.stderr


def apply_first_scene(folder: Path) -> None:
    for change in TIMEOUTS.answer["fileChanges"]:
        file = folder / change["path"]
        text = file.read_text(encoding="utf-8")
        for edit in change["edits"]:
            assert text.count(edit["search"]) == 1
            text = text.replace(edit["search"], edit["replace"])
        file.write_text(text, encoding="utf-8")


def test_its_own_tests_pass_before_and_after_the_recorded_change(project: Path) -> None:
    run_its_tests(project)
    apply_first_scene(project)
    run_its_tests(project)


def test_the_recorded_change_gives_both_calls_their_timeout(project: Path) -> None:
    program = """
from shop.clients.orders_v2 import OrdersClient
from shop.clients.payments import PaymentsClient
def send(request, *, timeout=None):
    print(request.method, timeout)
    return {"id": "A-1", "customer": "Mara", "lines": [], "accepted": True, "reference": "p-1"}
PaymentsClient("https://p.test", send).charge(OrdersClient("https://o.test", send).fetch("A-1"))
"""

    def calls() -> list[str]:
        command = [sys.executable, "-B", "-c", program]
        return subprocess.run(command, cwd=project, check=True, capture_output=True, text=True).stdout.split()

    assert calls() == ["GET", "None", "POST", "None"]
    apply_first_scene(project)
    assert calls() == ["GET", "10.0", "POST", "10.0"]


def test_the_recorded_change_is_three_hunks_in_two_files(project: Path) -> None:
    apply_first_scene(project)
    assert git(project, "diff", "--name-only").split() == [
        "shop/clients/orders_v2.py",
        "shop/clients/payments.py",
    ]
    assert git(project, "diff", "-U0").count("\n@@ ") == 3


def test_a_copy_is_a_clean_repository_with_one_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    project = copy_project(tmp_path / "with space")
    monkeypatch.delenv("GIT_DIR")
    assert git(project, "status", "--porcelain", "--branch") == "## main\n"
    assert (
        git(project, "log", "--format=%an <%ae> %s")
        == "Bookshop <bookshop@example.com> A bookshop's client\n"
    )
    assert not (tmp_path / "elsewhere").exists()


def test_a_copy_holds_every_file_and_nothing_an_installer_left(project: Path) -> None:
    def files(folder: Path) -> set[str]:
        every = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
        return {str(path) for path in every if not {".git", "__pycache__"} & set(path.parts)}

    assert files(project) == files(FOLDER / "project")
    assert len(files(project)) > 12
    assert not list(project.rglob("__pycache__"))


def test_without_git_the_copy_is_plain_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "no programs here"))
    project = copy_project(tmp_path / "shop")
    assert (project / "shop" / "retry.py").is_file()
    assert not (project / ".git").exists()


def test_each_copy_has_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    first, second = copy_project(), copy_project()
    assert first != second
    assert {first.parent, second.parent} == {tmp_path.resolve()}
    assert first.name.startswith("tui-agent-demo-")
    assert first.stat().st_mode & 0o077 == 0


def test_a_place_that_cannot_be_written_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(FileError, match="The sample project cannot be copied to"):
        copy_project(tmp_path / "file" / "shop")
