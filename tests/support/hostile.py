"""Repositories that want something run, or read, by whoever opens them; each in a folder of its own.

`ATTACKS` maps the name of an attack to what arms a repository with it. A command of the attacker's leaves a *canary*,
a file that holds the environment in which it ran. A repository of the person's lies beside it; its text `PRIVATE` is
not to come out. `fires` says whether git by itself falls for it; those attacks for which it does not are in `IDLE`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from msgspec import Struct
from support.trees import make_repository, make_tree, run_git

PRIVATE = "private-7f3a"
KEY = "sk-canary-9b1d"
FILES = {"a.txt": "one\n", "src/b.txt": "two\n", "src/c.py": "import os\n", ".gitignore": "*.log\n"}


class Ground(Struct):
    """Where an attack takes place: `root` is the hostile folder, which arming may move below `place`.

    `environment` is what the attacker has brought into the person's.
    """

    place: Path
    root: Path
    environment: dict[str, str] = {}

    @property
    def canary(self) -> Path:
        return self.place / "canary"

    @property
    def program(self) -> str:
        """A command that leaves the canary and hands on what it is given."""
        return str(self.place / "program")

    @property
    def private(self) -> Path:
        return self.place / "private"

    def config(self, *settings: tuple[str, str], file: str = "", repository: Path | None = None) -> None:
        where = ("--file", file) if file else ()
        for key, value in settings:
            run_git(repository or self.root, "config", *where, key, value)

    def attributes(self, line: str) -> None:
        (self.root / ".gitattributes").write_text(line + "\n")

    @property
    def ran(self) -> bool:
        return self.canary.exists()


Arm = Callable[[Ground], None]
ATTACKS: dict[str, Arm] = {}
#: Those that do nothing to who uses git for no more than `fires` does, or only keep it waiting.
IDLE: set[str] = set()


def prepared(place: Path) -> Ground:
    """A repository that is not armed yet, with changes to look at, and the person's own beside it."""
    root = make_repository(place / "root", FILES)
    make_repository(place / "private", {"notes.txt": PRIVATE + "\n", "src/b.txt": PRIVATE + "\n"})
    program = place / "program"
    program.write_text(f'#!/bin/sh\nenv > "{place}/canary"\ncat 2>/dev/null\n')
    program.chmod(0o755)
    return Ground(place, root)


def change(ground: Ground) -> None:
    """Let every tracked file differ from what git knows, so that git has to look at it."""
    for name in ("a.txt", "src/b.txt"):
        with suppress(OSError):
            path = ground.root / name
            path.write_text(path.read_text() + "more\n")
            os.utime(path, (1, 1))


def armed(attack: str, place: Path) -> Ground:
    ground = prepared(place)
    ATTACKS[attack](ground)
    change(ground)
    ground.canary.unlink(missing_ok=True)
    return ground


def fires(ground: Ground) -> bool:
    """Whether a person who uses git by itself in there, with the attacker's environment, has the damage."""
    who = {f"GIT_{role}_{what}": "x@x" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    environment = {**os.environ, **who, "HOME": str(ground.place), **ground.environment}
    told = b""
    for words in (
        *(["show", "HEAD"], ["status"], ["diff"], ["diff", "HEAD"], ["ls-files", "-o"], ["add", "-A"]),
        *(["commit", "-q", "-m", "x", "--allow-empty"], ["checkout", "-q", "-f", "HEAD", "--", "."]),
        *(["worktree", "add", "-q", "--detach", str(ground.place / "tree")], ["status"]),
    ):
        with suppress(subprocess.TimeoutExpired):
            told += subprocess.run(
                ["git", *words],
                cwd=ground.root,
                env=environment,
                capture_output=True,
                stdin=subprocess.DEVNULL,
                timeout=5,
                check=False,
            ).stdout
    return ground.ran or PRIVATE.encode() in told or b"notes.txt" in told


def _attack(name: str, *, idle: bool = False) -> Callable[[Arm], Arm]:
    def keep(arm: Arm) -> Arm:
        ATTACKS[name] = arm
        if idle:
            IDLE.add(name)
        return arm

    return keep


def _settings(name: str, settings: Mapping[str, str], attributes: str = "", *, idle: bool = False) -> None:
    """An attack that is made of settings alone; `@` in a value is the attacker's command."""

    def arm(ground: Ground) -> None:
        ground.config(*((key, value.replace("@", ground.program)) for key, value in settings.items()))
        if attributes:
            ground.attributes(attributes)

    _attack(name, idle=idle)(arm)


_settings("filter: clean", {"filter.evil.clean": "@"}, "* filter=evil")
_settings("filter: name with =", {"filter.a=b.clean": "@"}, "* filter=a=b")
_settings("filter: name with dots", {"filter.a.b.clean.clean": "@"}, "* filter=a.b.clean")
_settings("filter: name with quotes", {'filter.a"b\\c.clean': "@"}, '* filter=a"b\\c')
_settings("filter: process", {"filter.evil.process": "@", "filter.evil.required": "true"}, "* filter=evil")
_settings("filter: smudge", {"filter.evil.smudge": "@"}, "* filter=evil")
_settings("filter: key in capitals", {"FILTER.evil.CLEAN": "@"}, "* filter=evil")
_settings("filter: file name in the command", {"filter.evil.clean": "@ %f"}, "*.txt filter=evil")
_settings("fsmonitor", {"core.fsmonitor": "@", "core.fsmonitorHookVersion": "1"})
_settings("diff: external", {"diff.external": "@"})
_settings("diff: driver", {"diff.evil.command": "@"}, "* diff=evil")
_settings("diff: textconv", {"diff.evil.textconv": "@"}, "* diff=evil")
_settings("merge driver", {"merge.evil.driver": "@ %A", "merge.default": "evil"}, "* merge=evil", idle=True)
_settings("signing program", {"commit.gpgSign": "true", "gpg.program": "@", "user.signingKey": "x"})
_settings(
    "signing by ssh",
    {"commit.gpgSign": "true", "gpg.format": "ssh", "gpg.ssh.program": "@", "user.signingKey": "key::x"},
)
_settings("editor", {"core.editor": "@", "sequence.editor": "@"}, idle=True)
_settings("pager", {"core.pager": "@", "pager.status": "@", "pager.diff": "@"}, idle=True)
_settings("alias", {"alias.status": "!@", "alias.ls-files": "!@", "alias.x": "!@"}, idle=True)
_settings("credential helper", {"credential.helper": "!@", "core.askPass": "@"}, idle=True)
_settings(
    "proxy and transport", {"core.gitProxy": "@", "core.sshCommand": "@", "remote.x.vcs": "@"}, idle=True
)
_settings("pack objects hook", {"uploadpack.packObjectsHook": "@"}, idle=True)
_settings("interactive filter", {"interactive.diffFilter": "@", "difftool.x.cmd": "@"}, idle=True)
_settings("auto gc", {"gc.auto": "1", "gc.recentObjectsHook": "@", "maintenance.auto": "true"}, idle=True)
_settings("submodule update", {"submodule.recurse": "true", "submodule.x.update": "!@"}, idle=True)


@_attack("hooks in the repository")
def _hooks(ground: Ground) -> None:
    _fill_hooks(ground, ground.root / ".git/hooks")


@_attack("hooks elsewhere")
def _hooks_elsewhere(ground: Ground) -> None:
    _fill_hooks(ground, ground.root / "hooks")
    ground.config(("core.hooksPath", "hooks"))


def _fill_hooks(ground: Ground, folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    for name in (
        *("pre-commit", "post-commit", "commit-msg", "prepare-commit-msg", "post-checkout", "pre-auto-gc"),
        *("reference-transaction", "post-index-change", "fsmonitor-watchman", "post-merge", "post-rewrite"),
    ):
        shutil.copy(ground.program, folder / name)


@_attack("worktree configuration")
def _worktree_config(ground: Ground) -> None:
    ground.config(("extensions.worktreeConfig", "true"), ("core.repositoryFormatVersion", "1"))
    ground.config(("filter.evil.clean", ground.program), file=str(ground.root / ".git/config.worktree"))
    ground.attributes("* filter=evil")


@_attack("worktree configuration: fsmonitor")
def _worktree_fsmonitor(ground: Ground) -> None:
    ground.config(("extensions.worktreeConfig", "true"))
    ground.config(("core.fsmonitor", ground.program), file=str(ground.root / ".git/config.worktree"))


def _included(condition: str) -> Arm:
    def arm(ground: Ground) -> None:
        more = ground.root / ".git/more"
        ground.config(
            ("filter.evil.clean", ground.program), ("core.fsmonitor", ground.program), file=str(more)
        )
        ground.config((condition.replace("@", str(ground.root)), str(more)))
        ground.attributes("* filter=evil")

    return arm


_attack("include")(_included("include.path"))
_attack("include by folder")(_included("includeIf.gitdir:@/.path"))
_attack("include by branch")(_included("includeIf.onbranch:main.path"))


@_attack("include of a file in the work tree")
def _include_inside(ground: Ground) -> None:
    make_tree(ground.root, {"gitconfig": f'[filter "evil"]\n\tclean = {ground.program}\n'})
    ground.config(("include.path", "../gitconfig"))
    ground.attributes("* filter=evil")


@_attack("attributes in the repository")
def _info_attributes(ground: Ground) -> None:
    ground.config(("filter.evil.clean", ground.program))
    (ground.root / ".git/info/attributes").write_text("* filter=evil\n")


@_attack("attributes elsewhere")
def _attributes_elsewhere(ground: Ground) -> None:
    (ground.place / "attributes").write_text("* filter=evil\n")
    ground.config(
        ("filter.evil.clean", ground.program), ("core.attributesFile", str(ground.place / "attributes"))
    )


def _submodule(ground: Ground) -> Path:
    """A submodule that is checked out in the repository, with a change in it."""
    module = make_repository(ground.place / "module", {"m.txt": "m\n", "a.txt": "m\n"})
    run_git(ground.root, "submodule", "--quiet", "add", str(module), "sub")
    run_git(ground.root, "commit", "-q", "-m", "with a submodule")
    inner = ground.root / "sub"
    (inner / ".gitattributes").write_text("* filter=evil\n")
    (inner / "m.txt").write_text("changed\n")
    os.utime(inner / "m.txt", (1, 1))
    return inner


@_attack("submodule: filter")
def _submodule_filter(ground: Ground) -> None:
    ground.config(("filter.evil.clean", ground.program), repository=_submodule(ground))


@_attack("submodule: fsmonitor, never ignored")
def _submodule_monitor(ground: Ground) -> None:
    ground.config(("core.fsmonitor", ground.program), repository=_submodule(ground))
    ground.config(("submodule.sub.ignore", "none"), file=".gitmodules")
    ground.config(("submodule.sub.ignore", "none"), ("diff.ignoreSubmodules", "none"))


@_attack("submodule: worktree configuration")
def _submodule_worktree(ground: Ground) -> None:
    inner = _submodule(ground)
    ground.config(("extensions.worktreeConfig", "true"), repository=inner)
    there = str(ground.root / ".git/modules/sub/config.worktree")
    ground.config(("filter.evil.clean", ground.program), file=there)


@_attack("submodule: git folder in its place")
def _submodule_folder(ground: Ground) -> None:
    inner = _submodule(ground)
    (inner / ".git").unlink()
    shutil.copytree(ground.root / ".git/modules/sub", inner / ".git")
    run_git(ground.root, "config", "--file", "sub/.git/config", "--unset", "core.worktree")
    ground.config(("filter.evil.clean", ground.program), repository=inner)


@_attack("repository inside")
def _inside(ground: Ground) -> None:
    inner = make_repository(ground.root / "inner", {"i.txt": "i\n", ".gitattributes": "* filter=evil\n"})
    ground.config(("filter.evil.clean", ground.program), ("core.fsmonitor", ground.program), repository=inner)
    (inner / "i.txt").write_text("changed\n")
    run_git(ground.root, "-c", "advice.addEmbeddedRepo=false", "add", "inner")
    run_git(ground.root, "commit", "-q", "-m", "with another inside")


@_attack("bare repository inside", idle=True)
def _bare_inside(ground: Ground) -> None:
    bare = ground.root / "src/data.git"
    run_git(ground.root, "init", "-q", "--bare", str(bare))
    ground.config(
        ("core.fsmonitor", ground.program), ("alias.status", "!" + ground.program), file=str(bare / "config")
    )


@_attack("bare repository as the folder")
def _bare_root(ground: Ground) -> None:
    bare = ground.place / "bare"
    bare.mkdir()
    shutil.copytree(ground.root / ".git", bare, dirs_exist_ok=True)
    make_tree(bare, {"a.txt": "one\n", "src/b.txt": "two\n"})
    _fill_hooks(ground, bare / "hooks")
    ground.config(
        *(("core.bare", "false"), ("core.worktree", str(bare)), ("core.fsmonitor", ground.program)),
        file=str(bare / "config"),
    )
    ground.root = bare


def _partial(settings: Mapping[str, str]) -> Arm:
    """A clone without blobs, whose remote is what the settings make of it."""

    def arm(ground: Ground) -> None:
        source = ground.root
        run_git(source, "config", "uploadpack.allowFilter", "true")
        run_git(source, "config", "uploadpack.allowAnySHA1InWant", "true")
        clone = ground.place / "clone"
        run_git(ground.place, "clone", "-q", "--filter=blob:none", f"file://{source}", str(clone))
        (source / "a.txt").write_text("newer\n")
        run_git(source, "commit", "-q", "-am", "newer")
        run_git(clone, "fetch", "-q")
        run_git(clone, "update-ref", "refs/heads/main", "origin/main")
        ground.root = clone
        ground.config(*((key, value.replace("@", ground.program)) for key, value in settings.items()))

    return arm


_attack("partial clone: ext address")(
    _partial({"remote.origin.url": "ext::@", "protocol.ext.allow": "always", "protocol.allow": "always"})
)
_attack("partial clone: ssh command")(
    _partial({"remote.origin.url": "ssh://localhost/x", "core.sshCommand": "@"})
)
_attack("partial clone: upload pack")(_partial({"remote.origin.uploadpack": "@"}))
_attack("partial clone: git proxy")(
    _partial({"remote.origin.url": "git://localhost/x", "core.gitProxy": "@"})
)
_attack("partial clone: never answers")(
    _partial({"remote.origin.uploadpack": "sh -c '@ </dev/null; sleep 30' x"})
)
_attack("partial clone: by extension")(
    _partial(
        {"extensions.partialClone": "origin", "remote.origin.promisor": "", "remote.origin.uploadpack": "@"}
    )
)


@_attack("work tree elsewhere")
def _work_tree(ground: Ground) -> None:
    ground.config(("core.worktree", str(ground.private)))
    _fill_hooks(ground, ground.root / ".git/hooks")


@_attack("pointer to a hostile git folder")
def _pointer(ground: Ground) -> None:
    ground.config(("filter.evil.clean", ground.program), ("core.fsmonitor", ground.program))
    ground.attributes("* filter=evil")
    os.rename(ground.root / ".git", ground.place / "elsewhere")
    (ground.root / ".git").write_text(f"gitdir: {ground.place}/elsewhere\n")


@_attack("pointer to a private repository")
def _pointer_private(ground: Ground) -> None:
    shutil.rmtree(ground.root / ".git")
    (ground.root / ".git").write_text(f"gitdir: {ground.private}/.git\n")


@_attack("link to a private repository")
def _link_private(ground: Ground) -> None:
    shutil.rmtree(ground.root / ".git")
    (ground.root / ".git").symlink_to(ground.private / ".git")


@_attack("shared folder of a private repository")
def _common_private(ground: Ground) -> None:
    (ground.root / ".git/commondir").write_text(f"{ground.private}/.git\n")


@_attack("objects and refs of a private repository")
def _links_private(ground: Ground) -> None:
    for name in ("objects", "refs"):
        shutil.rmtree(ground.root / ".git" / name)
        (ground.root / ".git" / name).symlink_to(ground.private / ".git" / name)
    (ground.root / ".git/index").unlink()


@_attack("branch and alternates of a private repository")
def _branch_private(ground: Ground) -> None:
    (ground.root / ".git/objects/info").mkdir(exist_ok=True)
    (ground.root / ".git/objects/info/alternates").write_text(f"{ground.private}/.git/objects\n")
    branch = ground.root / ".git/refs/heads/main"
    branch.unlink()
    branch.symlink_to(ground.private / ".git/refs/heads/main")
    (ground.root / ".git/index").unlink()


@_attack("index of a private repository", idle=True)
def _index_private(ground: Ground) -> None:
    (ground.root / ".git/index").unlink()
    (ground.root / ".git/index").symlink_to(ground.private / ".git/index")


@_attack("alternates with a command", idle=True)
def _alternates(ground: Ground) -> None:
    other = make_repository(ground.place / "other", ["o.txt"])
    _fill_hooks(ground, other / ".git/hooks")
    (ground.root / ".git/objects/info").mkdir(exist_ok=True)
    (ground.root / ".git/objects/info/alternates").write_text(f"{other}/.git/objects\n")
    ground.config(("core.alternateRefsCommand", ground.program))


@_attack("grafts and replaced objects")
def _grafts(ground: Ground) -> None:
    head = run_git(ground.root, "rev-parse", "HEAD")
    blob, other = (
        run_git(ground.root, "rev-parse", "HEAD:a.txt"),
        run_git(ground.root, "rev-parse", "HEAD:src/b.txt"),
    )
    run_git(ground.root, "replace", blob, other)
    (ground.root / ".git/info/grafts").write_text(f"{head}\n")
    ground.config(("core.fsmonitor", ground.program))


@_attack("linked worktree of a hostile repository")
def _linked(ground: Ground) -> None:
    ground.attributes("* filter=evil")
    run_git(ground.root, "add", "-A")
    run_git(ground.root, "commit", "-q", "-m", "attributes")
    run_git(ground.root, "worktree", "add", "-q", str(ground.place / "linked"), "-b", "side")
    ground.config(("filter.evil.clean", ground.program), ("core.fsmonitor", ground.program))
    _fill_hooks(ground, ground.root / ".git/hooks")
    ground.root = ground.place / "linked"


@_attack("folder below the top")
def _below(ground: Ground) -> None:
    ground.config(("filter.evil.clean", ground.program), ("core.fsmonitor", ground.program))
    ground.attributes("* filter=evil")
    make_tree(ground.root, {"src/a.txt": "one\n"})
    run_git(ground.root, "-c", "core.fsmonitor=false", "-c", "filter.evil.clean=cat", "add", "-A")
    ground.root = ground.root / "src"


@_attack("folder of another owner", idle=True)
def _owner(ground: Ground) -> None:
    ground.config(("filter.evil.clean", ground.program), ("core.fsmonitor", ground.program))
    ground.attributes("* filter=evil")
    if os.geteuid() == 0:
        for folder, folders, files in os.walk(ground.root):
            for name in (".", *folders, *files):
                os.chown(os.path.join(folder, name), 12345, 12345, follow_symlinks=False)


@_attack("filter of the person's own, attributes of the repository's")
def _persons_filter(ground: Ground) -> None:
    settings = ground.place / ".gitconfig"
    run_git(ground.root, "config", "--file", str(settings), "filter.lfs.clean", ground.program)
    run_git(ground.root, "config", "--file", str(settings), "filter.lfs.smudge", ground.program)
    ground.environment = {"GIT_CONFIG_GLOBAL": str(settings)}
    ground.attributes("*.txt filter=lfs")


def _variables(name: str, variables: Mapping[str, str], attributes: str = "") -> None:
    def arm(ground: Ground) -> None:
        ground.environment = {
            key: value.replace("@", ground.program).replace("%", str(ground.private))
            for key, value in variables.items()
        }
        if attributes:
            ground.attributes(attributes)

    _attack(name)(arm)


_variables(
    "environment: settings one by one",
    {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "filter.evil.clean", "GIT_CONFIG_VALUE_0": "@"},
    "* filter=evil",
)
_variables("environment: settings", {"GIT_CONFIG_PARAMETERS": "'core.fsmonitor'='@'"})
_variables("environment: programs", {"GIT_EXTERNAL_DIFF": "@", "GIT_EDITOR": "@", "GIT_SSH_COMMAND": "@"})
_variables("environment: another repository", {"GIT_DIR": "%/.git", "GIT_WORK_TREE": "%"})
_variables(
    "environment: another index", {"GIT_INDEX_FILE": "%/.git/index", "GIT_OBJECT_DIRECTORY": "%/.git/objects"}
)


@_attack("environment: trace into a file")
def _trace(ground: Ground) -> None:
    ground.environment = {"GIT_TRACE": str(ground.canary), "GIT_TRACE2_EVENT": str(ground.canary)}


@_attack("settings: trace into a file", idle=True)
def _trace_settings(ground: Ground) -> None:
    ground.config(("trace2.eventTarget", str(ground.canary)), ("trace2.normalTarget", str(ground.canary)))


@_attack("a git of the folder's own")
def _own_git(ground: Ground) -> None:
    for folder in (ground.root, ground.root / "bin"):
        folder.mkdir(exist_ok=True)
        shutil.copy(ground.program, folder / "git")
    ground.environment = {"PATH": os.pathsep.join(("", ".", str(ground.root / "bin"), os.environ["PATH"]))}


def _pipe(name: str, path: str, *, idle: bool = True) -> None:
    """A pipe in the place of a file: who opens it waits forever."""

    def arm(ground: Ground) -> None:
        place = ground.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.unlink(missing_ok=True)
        os.mkfifo(place)

    _attack(name, idle=idle)(arm)


_pipe("pipe: index", ".git/index")
_pipe("pipe: HEAD", ".git/HEAD")
_pipe("pipe: config", ".git/config")
_pipe("pipe: packed refs", ".git/packed-refs")
_pipe("pipe: branch", ".git/refs/heads/main")
_pipe("pipe: another ref", ".git/refs/heads/zoo")
_pipe("pipe: excludes", ".git/info/exclude")
_pipe("pipe: alternates", ".git/objects/info/alternates")
_pipe("pipe: ignore file", ".gitignore")
_pipe("pipe: ignore file below", "src/deep/.gitignore")
_pipe("pipe: attributes", ".gitattributes")
_pipe("pipe: submodules", ".gitmodules")


@_attack("no repository: pipe for an ignore file", idle=True)
def _plain_pipe(ground: Ground) -> None:
    shutil.rmtree(ground.root / ".git")
    (ground.root / ".gitignore").unlink()
    os.mkfifo(ground.root / ".gitignore")


@_attack("no repository: another above", idle=True)
def _above(ground: Ground) -> None:
    shutil.rmtree(ground.root / ".git")
    run_git(ground.place, "init", "-q")
    run_git(ground.place, "config", "core.worktree", str(ground.private))
    run_git(ground.place, "config", "core.fsmonitor", ground.program)


def names() -> Iterator[str]:
    yield from ATTACKS
