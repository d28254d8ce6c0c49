"""No command reads a secret of the folder, whatever name it has and wherever it lies, but what the person shows."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.disguises import CANARY, DISGUISES, PRIVATE_KEY
from support.privileges import unprivileged
from support.sessions import open_session, reply
from support.views import Runner, in_view, on_a_copy, text

from tui_agent.files import folder_scan
from tui_agent.files import secret_files as judge_module
from tui_agent.files.secret_files import SecretFiles
from tui_agent.sandbox import environment
from tui_agent.sandbox.hidden_files import HiddenFiles
from tui_agent.sandbox.isolation import WITHOUT
from tui_agent.session.session import Session

SETTINGS = f"USER=me\nPASSWORD={CANARY}\n"
TOKEN = f"first = 1\ntoken = 'ghp_{CANARY}x9'\n"
#: Prints all that can be read below a folder, plain, turned round and in Base64.
EVERYTHING = (
    "(chmod -R u+rwX . ; find . -type f -print -exec cat {} + ; find . -type f -exec rev {} + ; cat $(find .))"
    " | tr -d '\\000'"
)

needs_opt = pytest.mark.skipif(not os.access("/opt", os.W_OK), reason="only root may write to /opt")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "work"
    root.mkdir()
    (root / "a.py").write_text("print(1)\n")
    return root


async def output(session: Session, command: str) -> str:
    await session.commands.run(command, allowed=True)
    await session.commands.ended()
    return session.state.commands.results[-1].output


def notices(session: Session) -> str:
    return "\n".join(notice.text for notice in session.state.notices.items)


# ── names, links, contents ───────────────────────────────────────────────────────────────────────────────


def _put(path: str, content: str = SETTINGS) -> Callable[[Path], object]:
    def make(root: Path) -> None:
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(content)

    return make


def _link_to_folder(root: Path) -> None:
    _put("plain/values.txt")(root)
    (root / ".aws").symlink_to("plain")


def _linked_from_elsewhere(root: Path) -> None:
    _put("values.dat")(root)
    (root / "deep").mkdir()
    (root / "deep" / ".env").symlink_to("../values.dat")


def _hard_link_out(root: Path) -> None:
    outside = root.parent / "outside"
    outside.mkdir()
    (outside / ".env").write_text(SETTINGS)
    os.link(outside / ".env", root / "notes.txt")


def _stray_environment(root: Path) -> None:
    _put("conf/.env")(root)
    _put("conf/pyvenv.cfg", "home = /usr\n")(root)


def _closed(root: Path, path: str, content: str) -> None:
    _put(path, content)(root)
    (root / path.partition("/")[0]).chmod(0o000)


PLACES: dict[str, Callable[[Path], object]] = {
    **{kind: lambda root, put=put: put(root, "notes.txt") for kind, put in DISGUISES.items()},
    "a link to its folder": _link_to_folder,
    "a link from elsewhere": _linked_from_elsewhere,
    "a hard link from outside": _hard_link_out,
    "beside pyvenv.cfg": _stray_environment,
    **{
        f"a token in {encoding}": lambda root, encoding=encoding: (root / "notes.txt").write_bytes(
            TOKEN.encode(encoding)
        )
        for encoding in ("utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-be")
    },
    "a token in other letters": lambda root: (root / "notes.txt").write_bytes(b"\xe4\xf6\n" + TOKEN.encode()),
    **{
        path: _put(path)
        for path in (
            "vendor/.env",
            "vendor/bundle/credentials.yml",
            "node_modules/one/.npmrc.bak",
            "node_modules/one/deep/.npmrc",
            "target/id_rsa",
            ".venv/lib/python3.11/site-packages/.pypirc",
            ".git/git-crypt/keys/default",
            ".git/hooks/.env",
            ".git/.git-credentials",
            ".git/annex/creds/here",
        )
    },
    "a registry's password": _put(".yarnrc.yml", f"nodeLinker: pnp\nnpmAuthToken: {CANARY}\n"),
    "a token in vendor": _put("vendor/notes.txt", TOKEN),
    "a token in .git": _put(".git/info/notes", TOKEN),
    "a closed file": lambda root: _closed(root, "notes.txt", TOKEN),
    "a closed folder": lambda root: _closed(root, "deep/.env", SETTINGS),
}


@pytest.mark.parametrize("kind", PLACES)
async def test_no_command_reads_a_secret_under_any_disguise(root: Path, kind: str) -> None:
    PLACES[kind](root)
    printed = text(await in_view(root, EVERYTHING))
    assert "a.py" in printed
    assert CANARY not in printed and CANARY[::-1] not in printed


async def test_nor_on_a_copy(root: Path) -> None:
    for number, put in enumerate(DISGUISES.values()):
        (root / f"{number}").mkdir()
        put(root / f"{number}", "notes.txt")
    _hard_link_out(root)
    printed = text(await on_a_copy(root, EVERYTHING))
    assert "a.py" in printed
    assert CANARY not in printed and CANARY[::-1] not in printed


async def test_what_dependencies_ship_can_be_read(root: Path) -> None:
    for folder in (
        "node_modules/tls/test",
        "vendor/tls/testdata",
        ".venv/lib/python3.11/site-packages/certifi",
    ):
        for name in ("cacert.pem", "test.key", "server.p12"):
            _put(f"{folder}/{name}", PRIVATE_KEY)(root)
    assert text(await in_view(root, "cat $(find . -name '*.*' -type f) | grep -c BEGIN")) == "9\n"


# ── what changes ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("watched", [False, True])
def test_what_is_written_later_is_found(root: Path, monkeypatch: pytest.MonkeyPatch, watched: bool) -> None:
    """In place, with an older time too; by another name; taken out again."""
    monkeypatch.setattr(judge_module, "WATCHED_FROM", 1 if watched else 1_000_000)
    monkeypatch.setattr(judge_module, "CHILD_FROM", 1 if watched else 1_000_000)
    (root / "deep").mkdir()
    for name in ("notes.txt", "deep/other.txt"):
        (root / name).write_text("nothing in here at all\n" * 5)
        os.utime(root / name, (1, 1))
    files = HiddenFiles(str(root))
    assert files.paths() == []
    assert files.paths() == []
    for name in ("notes.txt", "deep/other.txt"):
        there = (root / name).stat()
        with open(root / name, "r+") as file:
            file.write(TOKEN)
        os.utime(root / name, ns=(there.st_atime_ns, there.st_mtime_ns))
    assert files.paths() == ["deep/other.txt", "notes.txt"]
    (root / "deep").rename(root / "moved")
    (root / "notes.txt").write_text("nothing in here at all\n" * 5)
    assert files.paths() == ["moved/other.txt"]
    (root / "moved" / "other.txt").rename(root / "moved" / "again.txt")
    assert files.paths() == ["moved/again.txt"]


def test_a_file_that_goes_while_its_folder_is_read_hides_no_other(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / ".env").write_text(SETTINGS)
    (root / "b.tmp").write_text("")

    def scandir(place: str) -> object:
        entries = list(os.scandir(place))
        (root / "b.tmp").unlink(missing_ok=True)
        return contextlib.nullcontext(entries)

    monkeypatch.setattr(folder_scan, "os", SimpleNamespace(**vars(os) | {"scandir": scandir}))
    assert [one.path for one in SecretFiles(root).found()] == [".env"]


def test_a_folder_whose_time_was_put_back_is_looked_at_again(root: Path) -> None:
    """As `rsync` and `tar` do it."""
    files = SecretFiles(root)
    os.utime(root, (1, 1))
    while files._folders.get("") is None or files._folders[""].changed is None:
        files.scan()  # until its time is an old one
    (root / ".env").write_text(SETTINGS)
    os.utime(root, (1, 1))
    assert [one.path for one in files.found()] == [".env"]


def test_a_file_that_was_there_before_the_secret_with_its_bytes_is_one(root: Path) -> None:
    (root / "deep").mkdir()
    (root / "deep" / "notes.txt").write_text(SETTINGS)
    files = SecretFiles(root)
    os.utime(root / "deep", (1, 1))
    while not files._folders or files._folders["deep"].changed is None:
        assert files.found() == ()
    shutil.copy(root / "deep" / "notes.txt", root / ".env")
    assert [(one.path, one.by) for one in files.found()] == [(".env", ".env"), ("deep/notes.txt", ".env")]


def test_what_its_owner_may_not_read_is_hidden_since_a_command_may_open_it() -> None:
    with unprivileged() as root:
        _put("locked/deep/.env")(root)
        _put("half/notes.txt", TOKEN)(root)
        _put("closed.txt", TOKEN)(root)
        _put("open.txt", "plain\n")(root)
        files = HiddenFiles(str(root))
        assert files.paths() == ["closed.txt", "half/notes.txt", "locked/deep/.env"]
        for path, mode in {"locked": 0o000, "half": 0o300, "closed.txt": 0o200}.items():
            (root / path).chmod(mode)
        assert files.paths() == HiddenFiles(str(root)).paths() == ["closed.txt", "half", "locked"]
        (root / "closed.txt").chmod(0o600)
        (root / "closed.txt").write_text("nothing in here at all\n")
        assert files.paths() == ["half", "locked"]


def test_a_secret_that_was_moved_or_copied_stays_one_under_its_new_name(root: Path) -> None:
    (root / ".env").write_text(SETTINGS)
    (root / ".env.example").write_text(SETTINGS)
    files = SecretFiles(root)
    assert [one.path for one in files.found()] == [".env"]
    (root / ".env").rename(root / "x.txt")
    shutil.copy(root / "x.txt", root / "y.txt")
    assert [(one.path, one.why, one.by) for one in files.found()] == [
        ("x.txt", "origin", ".env"),
        ("y.txt", "origin", ".env"),
    ]


async def test_a_key_for_tests_is_empty_and_it_is_said_how_to_show_it(root: Path) -> None:
    for path in (".env", "tests/certs/server.key"):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(PRIVATE_KEY)
    async with open_session(root, [reply()]) as session:
        assert await output(session, "cat tests/certs/server.key .env") == ""
        (told,) = [line for line in notices(session).splitlines() if "server.key" in line]
        assert "trial.reveal" in told and ".env" not in told
    async with open_session(root, [reply()], overrides=('trial.reveal=["tests/*"]',)) as session:
        assert await output(session, "cat tests/certs/server.key .env") == PRIVATE_KEY
        assert "nothing in tests" not in notices(session)


# ── what is pending ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", [".env", "id_rsa", "conf/passwords.txt"])
async def test_a_pending_or_applied_rename_shows_no_secret(root: Path, name: str) -> None:
    """In the turn that renames it, in the next one, in a check, and after somebody changed it."""
    _put(name)(root)
    renames = reply("Renamed.", fileChanges=[{"path": name, "renameTo": "x.txt"}])
    replies = [renames, reply("Nothing.")]
    async with open_session(root, replies) as session:
        await session.chat.submit("rename it")
        await session.chat.finished()
        assert [change.kind for change in session.state.review.open] == ["rename"]
        show = f"cat x.txt {name}; rev x.txt; base64 x.txt; ls"
        told = [await output(session, show)]
        await session.chat.submit("and now?")
        await session.chat.finished()
        told.append(await output(session, show))
        result, _ = await session.commands.for_check(show, "trial", 20.0)
        told.append(result.output)
        await session.review.apply([*picks_of(session)])
        assert (root / "x.txt").exists()
        (root / "x.txt").write_text(f"{SETTINGS}MORE=1\n")
        told.append(await output(session, show))
        for printed in told:
            assert "x.txt" in printed
            assert CANARY not in printed and CANARY[::-1] not in printed


def picks_of(session: Session) -> list:
    from tui_agent.edits.change import Pick

    return [Pick(change.id, None, change.version) for change in session.state.review.open]


async def test_pending_text_with_a_key_is_masked_and_its_rest_is_there(root: Path) -> None:
    change = {"path": "new.txt", "content": TOKEN}
    async with open_session(root, [reply("Adds it.", fileChanges=[change])]) as session:
        await session.chat.submit("add it")
        await session.chat.finished()
        printed = await output(session, "cat new.txt; rev new.txt")
        assert "first = 1" in printed
        assert CANARY not in printed and CANARY[::-1] not in printed


# ── what the person shows ────────────────────────────────────────────────────────────────────────────────


async def test_what_the_person_reveals_is_there_and_each_glob_says_what_it_shows(root: Path) -> None:
    for path in (".env", "deep/.env.test", "deep/id_rsa"):
        _put(path)(root)
    _put("notes.txt", TOKEN)(root)
    _put("other.txt", TOKEN)(root)
    (root / "link.dat").symlink_to(".env")
    async with open_session(root, overrides=('trial.reveal=["**/.env*", ".env", "notes.txt"]',)) as session:
        printed = await output(
            session, "rev .env deep/.env.test link.dat notes.txt; echo; rev deep/id_rsa other.txt"
        )
        shown, hidden = printed.split("\n\n") if "\n\n" in printed else (printed, "")
        assert shown.count(CANARY[::-1]) == 4
        assert CANARY[::-1] not in hidden
        told = notices(session)
        assert "Commands may read deep/.env.test, since trial.reveal has **/.env*" in told
        assert "Commands may read notes.txt, since trial.reveal has notes.txt" in told
        assert "Commands see the keys in other.txt masked" in told
        await output(session, "true")
        assert notices(session).count("since trial.reveal has notes.txt") == 1


# ── the home, tools, and the machine ─────────────────────────────────────────────────────────────────────


@needs_opt
async def test_on_a_copy_the_folder_itself_is_not_there(
    monkeypatch: pytest.MonkeyPatch, below_opt: Path
) -> None:
    """Even below a folder of the machine that commands may read."""
    monkeypatch.setenv(WITHOUT, "overlay,bubblewrap")
    root = below_opt / "work"
    root.mkdir()
    _put(".env")(root)
    _put("a.txt", "plain\n")(root)
    async with open_session(root) as session:
        printed = await output(session, f"cat a.txt; cat {root}/.env {root}/a.txt; ls {below_opt}")
        assert printed.startswith("plain\n")
        assert CANARY not in printed


@needs_opt
@pytest.mark.parametrize("runner", [in_view, on_a_copy])
async def test_a_home_in_a_folder_of_the_machine_is_empty_but_for_tools(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, below_opt: Path, runner: Runner
) -> None:
    home = below_opt / "home"
    for path in (".ssh/id_rsa", "notes.txt", ".local/bin/tool"):
        _put(path)(home)
    _put(".local/bin/tool", "#!/bin/sh\necho from a tool\n")(home)
    (home / ".local/bin/tool").chmod(0o755)
    monkeypatch.setenv("HOME", str(home))
    root = tmp_path / "work"
    root.mkdir()
    printed = text(
        await runner(root, f"cat {home}/.ssh/id_rsa {home}/notes.txt; {home}/.local/bin/tool; echo x > ~/y")
    )
    assert CANARY not in printed
    assert "from a tool" in printed
    assert not (home / "y").exists()


@needs_opt
@pytest.mark.parametrize("runner", [in_view, on_a_copy])
async def test_private_files_of_the_machine_are_not_there(
    tmp_path: Path, below_opt: Path, runner: Runner
) -> None:
    deep = below_opt / "one" / "two" / "three" / "four"
    _put("private.txt")(deep)
    _put("public.txt", "public\n")(deep)
    _put("closed/x.txt")(deep)
    _put("app/.env")(below_opt)
    (deep / "private.txt").chmod(0o600)
    (deep / "closed").chmod(0o700)
    root = tmp_path / "work"
    root.mkdir()
    printed = text(await runner(root, f"cat {deep}/*.txt {deep}/closed/x.txt {below_opt}/app/.env"))
    assert "public" in printed
    assert CANARY not in printed


STORES = [
    ".local/share/uv/credentials/credentials.toml",
    ".local/bin/.env",
    ".local/share/pnpm/.npmrc",
    ".nvm/.npmrc",
    ".pyenv/.netrc",
    ".m2/settings.xml",
    ".m2/settings-security.xml",
    ".npm/_logs/one.log",
    ".rustup/deep/er/.pypirc",
    "bin/.condarc",
    ".cache/pip/pip.conf",
    "tools/.composer/auth.json",
    "tools/.conda/tokens.json",
    "tools/.gem/credentials",
    "go/pkg/mod/x/.netrc",
]


@pytest.mark.parametrize("runner", [in_view, on_a_copy])
async def test_stores_of_keys_in_folders_of_tools_are_not_there(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, runner: Runner
) -> None:
    home, root = tmp_path / "home", tmp_path / "work"
    root.mkdir()
    for path in STORES:
        _put(path)(home)
    config = f'[remote "origin"]\n\turl = https://me:{CANARY}@example.org/x\n[core]\n\tbare = true\n'
    for folder in (".cargo/git/db/one", ".pyenv/.git", "go/pkg/mod/cache/vcs/one"):
        _put(f"{folder}/config", config)(home)
        _put(f"{folder}/HEAD", "ref: refs/heads/main\n")(home)
    _put(".local/bin/cacert.pem", "public\n")(home)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", f"{home}/tools:{os.environ['PATH']}")
    (root / ".npmrc").write_text(SETTINGS)
    printed = text(await runner(root, f"cd {home}; cat .local/bin/cacert.pem; {EVERYTHING}"))
    assert printed.startswith("public")
    assert CANARY not in printed and CANARY[::-1] not in printed


def test_addresses_in_settings_of_git_hold_no_password(tmp_path: Path) -> None:
    _put("config", f'[remote "x"]\n\turl = https://me:p@{CANARY}@example.org/x.git\n')(tmp_path)
    _put("config.old", f'[remote "x"]\n\turl = https://me:a/b@{CANARY}@example.org/x.git\n')(tmp_path)
    _put("config.worktree", f'[remote "x"]\n\turl = https://example.org/x.git?token={CANARY}\n')(tmp_path)
    paths = environment.files_of(str(tmp_path))
    assert len(paths) == 3
    for path in paths:
        told = environment.visible_settings(path)
        assert CANARY.encode() not in told
        assert b"https://example.org/x.git" in told


@pytest.fixture
def below_opt() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir="/opt", prefix="tui-agent-test-") as name:
        os.chmod(name, 0o755)
        yield Path(name)
