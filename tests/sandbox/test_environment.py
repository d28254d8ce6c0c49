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

from tui_agent.sandbox.environment import (
    NO_KEYBOARD,
    caches,
    files_of,
    is_below,
    omitted_variables,
    own_folder,
    programs,
    tools,
    variables,
    visible_settings,
)
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
    ("DATABASE_URL", "postgres://db/shop?sslmode=require#x", "postgres://db/shop?sslmode=require"),
    ("DATABASE_URL", "sqlite+aiosqlite:///a.db", "sqlite+aiosqlite:///a.db"),
    ("DATABASE_URL", "postgresql:///shop?password=hunter2", "postgresql:///shop"),
    ("DATABASE_URL", "mysql:///x?charset=utf8", "mysql:///x?charset=utf8"),
    ("DATABASE_URL", "sqlite:a.db?mode=ro", "sqlite:a.db?mode=ro"),
    ("DATABASE_URL", "postgres://[", None),
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


@pytest.mark.parametrize(
    ("name", "more", "enters"),
    [
        ("MY_OWN", ("MY_*",), True),
        ("MY_OWN", ("YOUR_*",), False),
        ("MY_KEY", ("MY_*",), False),
        ("MY_KEY", ("OTHER", "MY_KEY"), True),
        ("DISPLAY", ("D*",), False),
        ("LC_ALL", (), True),
        ("LANG", (), True),
    ],
)
def test_a_name_enters_by_itself_and_by_a_pattern_unless_it_is_one_of_a_key(
    name: str, more: tuple[str, ...], enters: bool
) -> None:
    chosen, _ = variables("/work", {"HOME": "/h"}, {name: "1", "HOME": "/other"}, more)
    assert (name in chosen, chosen["HOME"], chosen["PATH"]) == (enters, "/h", os.defpath)


@pytest.mark.parametrize(
    ("made", "active", "found"),
    [
        ((".venv/bin/", ".venv/pyvenv.cfg"), False, ".venv"),
        (("venv/bin/", "venv/pyvenv.cfg"), False, "venv"),
        (("venv/bin/", "venv/pyvenv.cfg", ".venv/pyvenv.cfg"), False, "venv"),
        ((".venv/bin/",), False, ""),
        ((".venv/bin/", ".venv/pyvenv.cfg"), True, ""),
    ],
)
def test_the_environment_of_a_folder_is_first_on_the_path_unless_one_is_active(
    tmp_path: Path, made: tuple[str, ...], active: bool, found: str
) -> None:
    for path in made:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).mkdir() if path.endswith("/") else (tmp_path / path).touch()
    environ = {"PATH": "/usr/bin", **({"VIRTUAL_ENV": "/v"} if active else {})}
    chosen, name = variables(str(tmp_path), {}, environ)
    assert name == found
    path = f"{tmp_path}/{found}/bin:/usr/bin" if found else "/usr/bin"
    assert chosen["PATH"] == path
    assert chosen.get("VIRTUAL_ENV") == ("/v" if active else f"{tmp_path}/{found}" if found else None)


@pytest.mark.parametrize(
    ("path", "folders", "below"),
    [
        ("/a/b", ("/a",), True),
        ("/a", ("/a",), True),
        ("/ab", ("/a",), False),
        ("/a/b", ("/x", "/a/"), True),
        ("/a", ("/",), True),
        ("/a", ("/a/b",), False),
        ("/a", (), False),
    ],
)
def test_what_is_below_a_folder(path: str, folders: tuple[str, ...], below: bool) -> None:
    assert is_below(path, folders) is below


def test_programs_are_found_by_path_with_their_installation(tmp_path: Path) -> None:
    home = tmp_path / "home"
    for path in ("home/bin", "other/tool/bin", "other/plain", "env", "other/sbin"):
        (tmp_path / path).mkdir(parents=True)
    (tmp_path / "link").symlink_to("other/tool/bin")
    folders = [home / "bin", tmp_path / "other/tool/bin", tmp_path / "other/plain", tmp_path / "other/sbin"]
    path = ":".join(
        ["relative/bin", "/usr/bin", "/usr/local/bin", *map(str, folders), str(tmp_path / "link")]
    )
    environ = {"HOME": str(home), "PATH": path, "VIRTUAL_ENV": str(tmp_path / "env"), "GOROOT": ""}
    ours = {os.path.realpath(one) for one in (sys.prefix, sys.base_prefix)}
    expected = {
        *ours,
        "/usr/bin",
        "/usr/local/bin",
        *map(str, folders),
        str(tmp_path / "other/tool"),
        str(tmp_path / "other"),
        str(tmp_path / "env"),
    }
    assert programs(environ) == sorted(expected - {"/usr", "/usr/local"})


def test_caches_are_existing_folders_that_no_other_folder_has(tmp_path: Path) -> None:
    home = tmp_path / "home"
    for path in ("home/.cache/pip", "home/.npm", "home/cargo/git", "home/go/pkg/mod", "named"):
        (tmp_path / path).mkdir(parents=True)
    (home / ".m2").write_text("a file")
    (home / ".hex").symlink_to(tmp_path / "named")
    environ = {
        "CARGO_HOME": str(home / "cargo"),
        "PIP_CACHE_DIR": f"{tmp_path}/named/",
        "UV_CACHE_DIR": "relative",
        "GOCACHE": str(home),
        "npm_config_cache": str(home / ".npm"),
    }
    found = caches(str(home), environ, [str(home / "go")])
    assert found == [
        str(home / ".cache/pip"),
        str(home / ".npm"),
        str(tmp_path / "named"),
        str(home / "cargo/git"),
    ]
    assert [own_folder(str(home / name)) for name in (".npm", ".m2", ".hex", "x")] == [
        True,
        False,
        False,
        False,
    ]


SETTINGS = """\
[user]
\tname = me
\tsigningkey = 1234
[credential]
\thelper = store
[commit]
\tgpgsign = true
\ttemplate = t.txt
[remote "origin"]
\turl = https://me:p@ss/word@host:8080/x?private_token=1#y
\tproxy = http://me@proxy
[http]
\textraheader = x
[core]
\tfilemode = true
\tsshcommand = ssh -i key
[tag]
\tgpgSign = true
"""


def test_settings_of_git_keep_what_commands_need_without_addresses_of_keys(tmp_path: Path) -> None:
    (tmp_path / "config").write_text(SETTINGS)
    shown = visible_settings(str(tmp_path / "config")).decode()
    for kept in ("name = ", "template = ", "url = ", "filemode = ", "https://host:8080/x"):
        assert kept in shown
    for hidden in ("1234", "store", "gpg", "pass", "p@ss", "private", "#y", "proxy", "extraheader", "ssh"):
        assert hidden not in shown.lower()
    assert visible_settings(str(tmp_path / "missing")) == b""
    (tmp_path / "config").write_text("[broken")
    assert visible_settings(str(tmp_path / "config")) == b""


def test_settings_of_a_git_folder_include_those_of_work_trees_and_submodules(tmp_path: Path) -> None:
    listed = [
        "config",
        "config.worktree",
        "worktrees/w/config.worktree",
        "modules/m/config",
        "modules/m/modules/n/config",
    ]
    others = [
        "description",
        "objects/config",
        "modules/m/objects/config",
        "modules/m/hooks/config",
        "refs/config",
    ]
    for path in (*listed, *others):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
    (tmp_path / "config.d").mkdir()
    assert sorted(files_of(str(tmp_path))) == sorted(str(tmp_path / path) for path in listed)


@pytest.mark.parametrize(
    ("program", "beside", "shown"),
    [
        ("t/lib/node_modules/e/bin/e.js", (), ["t/lib/node_modules"]),
        ("t/tool", (), ["t/tool"]),
        ("t/bin/tool", (), ["t/bin"]),
        ("t/bin/tool", ("t/lib", "t/other", "t/VERSION"), ["t/bin", "t/lib", "t/VERSION"]),
        ("t/bin/tool", ("t/pyvenv.cfg", "t/lib"), ["t"]),
        ("t/vendor/bin/tool", (), ["t/vendor"]),
        (".local/bin/tool", (".local/share", ".local/lib/a"), [".local/bin", ".local/lib"]),
    ],
)
def test_what_belongs_to_a_linked_program(
    tmp_path: Path, program: str, beside: tuple[str, ...], shown: list[str]
) -> None:
    for path in (program, *beside):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch(mode=0o755)
    (tmp_path / "links").mkdir()
    (tmp_path / "links/tool").symlink_to(tmp_path / program)
    found = tools(str(tmp_path / "work"), "", {"PATH": str(tmp_path / "links")}, ()).folders
    below = {path for path in found if path.startswith(str(tmp_path))}
    assert below == {str(tmp_path / path) for path in ("links", *shown)}


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
