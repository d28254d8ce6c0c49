"""The commands for developers: what they need is there, and the lock is one to trust."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOCK = (ROOT / "requirements.lock").read_text()


def locked() -> dict[str, str]:
    """Each locked requirement, by name, with all that stands under it."""
    blocks = re.split(r"^(?=\S)", LOCK, flags=re.MULTILINE)
    return {match.group(1): block for block in blocks if (match := re.match(r"([a-z0-9._-]+)==", block))}


def copy_of_the_scripts(folder: Path) -> Path:
    """A folder that holds what set-up looks at, and an environment that seems to be there."""
    (folder / ".ci").mkdir(parents=True)
    shutil.copy(ROOT / ".ci" / "set-up", folder / ".ci")
    shutil.copy(ROOT / "Makefile", folder)
    (folder / "scripts").mkdir()
    for name in ("requirements.lock", "pyproject.toml", "scripts/tui-agent"):
        shutil.copy(ROOT / name, folder / name)
    return folder


def set_up(folder: Path, path: str) -> subprocess.CompletedProcess[str]:
    command = [str(folder / ".ci" / "set-up")]
    environ = {**os.environ, "PATH": path}
    return subprocess.run(
        command, cwd="/", env=environ, capture_output=True, text=True, timeout=60, check=False
    )


def tools(folder: Path, **programs: str) -> str:
    """A PATH on which only the shell's own tools and these programs, given as shell text, are found."""
    folder.mkdir()
    for name in ("sh", "awk", "cat", "cksum", "dirname", "head", "rm", "mkdir", "touch", "chmod", "pwd"):
        found = shutil.which(name)
        if found:
            (folder / name).symlink_to(found)
    for name, text in programs.items():
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
    return str(folder)


def test_the_lock_holds_a_hash_for_everything_and_no_address():
    assert len(locked()) > 50
    assert [name for name, block in locked().items() if "--hash=sha256:" not in block] == []
    assert "://" not in LOCK


def test_the_lock_covers_what_the_project_asks_for():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    asked = [*project["dependencies"], *project["optional-dependencies"]["dev"]]
    names = {re.split(r"[^A-Za-z0-9._-]", line)[0].lower() for line in asked}
    assert names - set(locked()) == set()


def test_every_target_says_what_it_does():
    makefile = (ROOT / "Makefile").read_text()
    declared = re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)
    assert declared
    described = re.findall(r"^([a-z-]+):.*## \S", makefile, re.MULTILINE)
    assert sorted(described) == sorted(declared.group(1).split())


def test_continuous_integration_is_check_and_then_test():
    lines = (ROOT / ".ci" / "run").read_text().splitlines()
    assert lines[-2:] == ["make check", "make test"]
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


def test_set_up_without_any_python_is_one_sentence(tmp_path):
    folder = copy_of_the_scripts(tmp_path / "a clone")
    done = set_up(folder, tools(tmp_path / "bin", python3="exit 1"))
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("set-up: Python 3.11 or newer was not found: install it")


def test_set_up_without_the_venv_module_is_one_sentence(tmp_path):
    folder = copy_of_the_scripts(tmp_path / "a clone")
    done = set_up(folder, tools(tmp_path / "bin", python3='[ "$1" = -c ]'))
    assert done.returncode == 1
    assert "install its venv module" in done.stderr.splitlines()[-1]


def test_set_up_with_uv_is_done_once_until_the_lock_the_launcher_or_the_folder_is_another(tmp_path):
    made = 'mkdir -p .venv/bin; for name in python tui-agent; do echo "#!/bin/sh" >.venv/bin/$name; '
    made += "chmod +x .venv/bin/$name; done; echo $* >>uv-was-asked"
    path = tools(tmp_path / "bin", python3="", uv=made)
    folder = copy_of_the_scripts(tmp_path / "a clone")

    def times_asked() -> int:
        assert set_up(folder, path).returncode == 0
        return (folder / "uv-was-asked").read_text().count("--require-hashes")

    assert [times_asked(), times_asked()] == [1, 1]
    os.utime(folder / "requirements.lock", (1, 1))
    assert times_asked() == 1
    (folder / "requirements.lock").write_text("")
    assert times_asked() == 2
    (folder / "scripts" / "tui-agent").write_text("#!/bin/sh\n")
    assert times_asked() == 3
    folder = folder.rename(tmp_path / "moved")
    assert times_asked() == 4
    assert (folder / "uv-was-asked").read_text().count("venv --quiet") == 2


def test_set_up_installs_the_lock_as_it_is_and_resolves_nothing(tmp_path):
    """Else a new release of a package can break a lock that has not changed."""
    made = 'mkdir -p .venv/bin; echo "echo \\$* >>installed" >.venv/bin/python; echo >.venv/bin/tui-agent; '
    made += "chmod +x .venv/bin/*"
    for number, programs in enumerate(
        ({"python3": made}, {"python3": "", "uv": f"echo $* >>installed; {made}"})
    ):
        folder = copy_of_the_scripts(tmp_path / f"clone {number}")
        done = set_up(folder, tools(tmp_path / f"bin{number}", **programs))
        assert done.returncode == 0, done.stderr
        lines = [line for line in (folder / "installed").read_text().splitlines() if " install " in line]
        locks = [found for line in lines if (found := re.search(r"--require-hashes -r (\S+)", line))]
        assert "".join(sorted("".join((folder / lock[1]).read_text() for lock in locks))) == "".join(
            sorted(LOCK)
        )
        assert len(lines) == len(locks) + 1, "and the project"
        assert [line for line in lines if "--no-deps" not in line] == []


@pytest.mark.parametrize("half", [0, 1])
def test_set_up_fails_if_one_half_of_the_lock_cannot_be_installed(tmp_path, half):
    python = f'case "$*" in *lock-{half}) exit 1; esac'
    made = f"mkdir -p .venv/bin; echo '{python}' >.venv/bin/python; echo >.venv/bin/tui-agent; chmod +x .venv/bin/*"
    folder = copy_of_the_scripts(tmp_path / "a clone")
    assert set_up(folder, tools(tmp_path / "bin", python3=made)).returncode == 1
    assert not (folder / ".venv" / "set-up-for").exists()
