"""What commands get of the person's variables; without a keyboard and a network, what needs them fails at once."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from support.views import in_view, text

from tui_agent.sandbox.environment import NO_KEYBOARD, omitted_variables, variables
from tui_agent.sandbox.run import FolderRunner, Run
from tui_agent.sandbox.view_plan import MEGABYTE, Limits

PYTHON = shlex.quote(sys.executable)
#: What an editor does that finds no terminal: it takes its standard error for one, and waits.
EDITOR = (
    "import os, select; os.read(0, 1); os.close(0); os.dup(2); print('opened', flush=True); "
    "select.select([0], [], [])"
)

ENTERS = [
    ("DJANGO_SETTINGS_MODULE", "shop.settings.test", "shop.settings.test"),
    ("PYTHONPATH", "/work/lib", "/work/lib"),
    ("NODE_ENV", "test", "test"),
    ("CI", "true", "true"),
    ("GOFLAGS", "-mod=vendor", "-mod=vendor"),
    ("LD_LIBRARY_PATH", "/opt/lib", "/opt/lib"),
    ("CMAKE_PREFIX_PATH", "/opt/qt", "/opt/qt"),
    ("DATABASE_URL", "postgres://me:hunter2@db:5432/shop?x=1", "postgres://me@db:5432/shop?x=1"),
    ("TEST_DATABASE_URL", "sqlite:///test.db", "sqlite:///test.db"),
    ("REDIS_URL", "redis://:hunter2@localhost:6379/0", "redis://localhost:6379/0"),
    ("DATABASE_URL", "mysql+pymysql://me:a@b@db/shop", "mysql+pymysql://me@db/shop"),
    ("DATABASE_URL", "postgres://db/shop?user=me&password=hunter2", "postgres://db/shop"),
    ("DATABASE_URL", "https://hooks.example/T0/hunter2", None),
    ("DATABASE_URL", "host=db password=hunter2", None),
    ("JAVA_OPTS", "-Dpassword=hunter2", None),
    ("NPM_TOKEN", "hunter2", None),
    ("MY_OWN", "1", None),
]


@pytest.mark.parametrize(("name", "value", "enters"), ENTERS)
def test_what_tests_need_enters_without_passwords(name: str, value: str, enters: str | None) -> None:
    chosen, _ = variables("/work", {}, {name: value})
    assert chosen.get(name) == enters
    assert "hunter2" not in str(chosen)


def test_what_did_not_enter_is_known_by_name_without_what_belongs_to_the_desktop() -> None:
    environ = {"NPM_TOKEN": "x", "MY_OWN": "1", "CI": "1", "DISPLAY": ":0", "XDG_SEAT": "0", "OLDPWD": "/"}
    chosen, _ = variables("/work", {}, environ)
    assert omitted_variables(environ, chosen) == ["MY_OWN", "NPM_TOKEN"]


def test_package_managers_are_told_to_be_offline_unless_there_is_a_network() -> None:
    names = (
        "npm_config_offline",
        "PIP_NO_INDEX",
        "UV_OFFLINE",
        "CARGO_NET_OFFLINE",
        "GOPROXY",
        "YARN_ENABLE_NETWORK",
    )
    offline, _ = variables("/work", {}, {})
    assert set(names) <= offline.keys()
    online, _ = variables("/work", {}, {}, offline=False)
    assert not set(names) & online.keys()


OFFLINE = {
    "npm": ("npx --no-install no-such-tool", "ENOTCACHED"),
    "cargo": ("printf '[dependencies]\nserde = \"1\"\n' >> Cargo.toml; cargo check", "offline"),
    "go": ("go get example.org/x", "GOPROXY=off"),
    "pip": (f"{PYTHON} -m pip install no-such-package", "No matching distribution"),
}


#: An environment made by uv has no pip.
MISSING = {tool for tool in OFFLINE if not (find_spec("pip") if tool == "pip" else shutil.which(tool))}


@pytest.mark.parametrize("tool", sorted(OFFLINE.keys() - MISSING))
async def test_package_managers_fail_at_once(tmp_path: Path, tool: str) -> None:
    (tmp_path / "package.json").write_text("{}")
    (tmp_path / "go.mod").write_text("module example.org/y\n\ngo 1.20\n")
    (tmp_path / "Cargo.toml").write_text('[package]\nname = "y"\nversion = "0.1.0"\nedition = "2021"\n')
    (tmp_path / "src").mkdir()
    (tmp_path / "src/lib.rs").touch()
    command, said = OFFLINE[tool]
    result = await in_view(tmp_path, command)
    assert result.status not in (0, 127)
    assert said in text(result), text(result)


async def test_a_program_that_waits_for_a_keyboard_is_ended(tmp_path: Path) -> None:
    result = await in_view(tmp_path, f"{PYTHON} -c {shlex.quote(EDITOR)}; echo went on")
    assert result.how == "keyboard"
    assert text(result).startswith("opened\n")
    assert text(result).endswith("went on\n")


async def test_the_same_in_the_folder_itself(tmp_path: Path) -> None:
    command = f"{PYTHON} -c {shlex.quote(EDITOR)}; true"
    result = await Run(60).alone(
        FolderRunner(str(tmp_path)), ["/bin/sh", "-c", command], {**os.environ, **NO_KEYBOARD}
    )
    assert result.how == "keyboard"


@pytest.mark.parametrize("place", ["view", "folder"])
async def test_git_opens_no_editor(tmp_path: Path, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_EDITOR", "sleep 600 #")
    monkeypatch.setenv("GIT_SEQUENCE_EDITOR", "sleep 600 #")
    git = "git -c user.name=a -c user.email=a@example.org -c core.editor='sleep 600'"
    commands = f"git init -q; echo 1 > f; git add f; {git} commit -qm one; echo 2 > f; {git} commit -qam two"
    asks = f"{git} commit --amend; echo $?; {git} rebase -i HEAD~1; echo $?"
    if place == "view":
        result = await in_view(tmp_path, f"{commands}; {asks}", timeout=60)
    else:
        result = await Run(60).alone(
            FolderRunner(str(tmp_path)),
            ["/bin/sh", "-c", f"{commands}; {asks}"],
            {**os.environ, **NO_KEYBOARD},
        )
    assert result.how == "exit"
    assert text(result).count("problem with the editor") == 2


FORKS = """
import os, time
held = bytearray(os.urandom(1 << 20)) * 150
for _ in range(4):
    if not os.fork():
        time.sleep(SECONDS + 0.1)
        os._exit(0)
time.sleep(SECONDS)
"""


async def test_memory_that_programs_share_counts_once(tmp_path: Path) -> None:
    """Five programs with 150 MB that only one of them took: less than 400 MB."""
    (tmp_path / "forks.py").write_text(FORKS.replace("SECONDS", "0.8"))
    result = await in_view(tmp_path, f"{PYTHON} forks.py", limits=Limits(memory=400 * MEGABYTE))
    assert result.how == "exit"
    written = FORKS.replace("os.fork():", "os.fork():\n        held[::4096] = bytes(len(held[::4096]))")
    (tmp_path / "forks.py").write_text(written.replace("SECONDS", "30"))  # it is ended long before
    result = await in_view(tmp_path, f"{PYTHON} forks.py", limits=Limits(memory=400 * MEGABYTE))
    assert result.how == "memory"
