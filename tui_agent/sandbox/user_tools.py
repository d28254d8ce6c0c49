"""The user's tools: PATH, link targets in it, and locations of version managers."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

#: Readable by every program; the only visible system folders.
SYSTEM = (
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix", "/snap", "/sys",
)  # fmt: skip
#: Below the home, by user of the folder.
_PLACES = """
    .local/bin .local/lib bin
    .local/share/uv .local/share/mise .mise .asdf .local/share/rtx .proto .pixi
    .local/share/pipx .local/pipx .local/share/pypoetry .poetry .cache/pypoetry/virtualenvs .local/share/virtualenvs
    .local/share/hatch .rye .pyenv miniconda3 anaconda3 miniforge3 mambaforge micromamba .local/share/mamba .conda/envs
    .nvm .fnm .local/share/fnm .volta .nodenv .n n .npm-global .npm-packages .local/share/pnpm .bun .deno .yarn/bin
    .linuxbrew .nix-profile .local/state/nix/profile .rustup .cargo/bin .juliaup .julia/juliaup .ghcup .cabal/bin
    .stack/programs .dotnet .sdkman .jenv .jabba .rbenv .rvm .gem .local/share/gem go/bin sdk .goenv .opam .elan
    .swiftly .krew/bin .pub-cache/bin .foundry .phpbrew .phpenv .plenv perl5 .local/share/coursier .wasmtime .wasmer
    .cache/ms-playwright .cache/puppeteer .cache/Cypress .cache/selenium
"""
_ELSEWHERE = ("/home/linuxbrew/.linuxbrew",)
NAMED = tuple(
    """VIRTUAL_ENV CONDA_PREFIX MAMBA_ROOT_PREFIX PYENV_ROOT PIPX_HOME POETRY_HOME RYE_HOME NVM_DIR FNM_DIR VOLTA_HOME
    PNPM_HOME N_PREFIX BUN_INSTALL PROTO_HOME ASDF_DIR ASDF_DATA_DIR MISE_DATA_DIR RUSTUP_HOME GOROOT JAVA_HOME
    SDKMAN_DIR GHCUP_INSTALL_BASE_PREFIX DOTNET_ROOT HOMEBREW_PREFIX PLAYWRIGHT_BROWSERS_PATH JULIAUP_DEPOT_PATH
    GEM_HOME OPAMROOT""".split()  # noqa: SIM905
)
#: Package managers' caches below the home. Writes are discarded.
_CACHES = """
    .cache/pip .cache/uv .cache/pre-commit .npm .cargo/registry .cargo/git go/pkg/mod .cache/go-build .m2 .cache/yarn
    .yarn/berry .nuget/packages .gradle/caches .gradle/wrapper .ivy2/cache .cache/coursier .cache/deno .hex .mix
    .cache/rebar3 .cache/composer .composer/cache .stack/snapshots .cabal/packages .cabal/store .julia/packages
    .julia/artifacts .julia/registries .julia/compiled .cache/ccache .ccache .cache/sccache .cache/zig
"""
#: The variable, and the folder below it.
_NAMED_CACHES = (
    ("PIP_CACHE_DIR", ""), ("UV_CACHE_DIR", ""), ("npm_config_cache", ""), ("CARGO_HOME", "registry"),
    ("CARGO_HOME", "git"), ("GOMODCACHE", ""), ("GOCACHE", ""), ("PRE_COMMIT_HOME", ""), ("NUGET_PACKAGES", ""),
)  # fmt: skip
#: Companions of a program folder in its parent.
_BESIDE = (
    "lib", "lib64", "libexec", "share", "include", "pkg", "src", "api", "test", "misc", "jmods", "conf", "opt",
    "Cellar", "packages", "vendor", "VERSION", "go.env", "release", "node_modules",
)  # fmt: skip
#: Program folders, and markers in the parent that identify an installation.
_OF_PROGRAMS = ("bin", "sbin", "shims", "condabin", "libexec")
_WHOLE = ("pyvenv.cfg", "conda-meta", "Cellar", "etc/profile.d/conda.sh", "lib/node_modules")
#: Never visible because of a link or PATH entry.
_PRIVATE = frozenset(
    {".ssh", ".gnupg", ".aws", ".kube", ".docker", ".password-store", ".mozilla", ".thunderbird"}
)
_MIXED = ("/.config", "/.local", "/.local/share", "/.cache")
_TOO_MUCH = frozenset(
    {"/", "/home", "/root", "/tmp", "/var", "/run", "/srv", "/mnt", "/media", "/var/lib", "/var/tmp"}
)
#: Links followed per folder.
_MOST_LINKS = 2_000


class Tools(NamedTuple):
    """folders: readable, outermost only. links: links on the way, by path."""

    folders: list[str]
    links: dict[str, str]


def tools(root: str, home: str, environ: Mapping[str, str], more: Iterable[str]) -> Tools:
    """Tools outside the system and the workspace. Blocking. home: "" if visible anyway; otherwise its tools
    are found even inside a system folder."""
    path = [one.rstrip("/") for one in environ.get("PATH", "").split(":") if one.startswith("/")]
    named = [environ[name] for name in NAMED if environ.get(name)]
    chosen = [sys.base_prefix, sys.prefix, *more]
    usual = [*_ELSEWHERE, *(f"{home}/{name}" for name in _PLACES.split() if home)]
    usual = [place for place in usual if os.path.lexists(place)]
    wanted = [*path, *named, *chosen, *usual]
    own = {os.path.realpath(one) for one in chosen}
    crossed = [one for place in (*path, *named, *usual) for one in _crossed(place)]
    for folder in dict.fromkeys(map(os.path.realpath, path)):
        if not is_below(folder, SYSTEM) or folder == "/usr/local/bin" or (home and is_below(folder, [home])):
            led = _led_to(folder)
            wanted += led.folders
            crossed += led.links
    found: list[str] = []
    for one in sorted({os.path.realpath(one) for one in wanted if one.startswith("/")}, key=len):
        shown = is_below(one, SYSTEM) and not (home and is_below(one, [home]))
        if shown or is_below(one, (root, *found)) or not _fits(one, root, home, one in own):
            continue
        found.append(one)
    links = {link: os.path.realpath(link) for link in dict.fromkeys(crossed)}
    return Tools(found, {link: to for link, to in links.items() if _is_needed(link, to, root, home, found)})


def _is_needed(link: str, target: str, root: str, home: str, found: Sequence[str]) -> bool:
    there = is_below(link, (root, *found)) or (
        is_below(link, SYSTEM) and not (home and is_below(link, [home]))
    )
    return not there and is_below(target, (*SYSTEM, *found))


def _fits(path: str, root: str, home: str, own: bool) -> bool:
    """Exists and may be visible: no ancestor of the home or workspace, no key store."""
    if path in _TOO_MUCH or (home and is_below(home, [path])) or is_below(root, [path]):
        return False
    inner = path[len(home) :].split("/") if home and is_below(path, [home]) else []
    if not own and (not _PRIVATE.isdisjoint(inner) or "/".join(inner) in _MIXED):
        return False
    try:
        status = os.stat(path)
    except OSError:
        return False
    if stat.S_ISREG(status.st_mode):
        return os.access(path, os.R_OK)
    return stat.S_ISDIR(status.st_mode) and os.access(path, os.R_OK | os.X_OK)


def _crossed(path: str) -> list[str]:
    place = ""
    for part in path.split("/")[1:]:
        place += f"/{part}"
        if os.path.islink(place):
            return (
                [place] if place not in ("/bin", "/sbin", "/lib", "/lib64") and os.path.isdir(place) else []
            )
    return []


class _ProgramLinks(NamedTuple):
    """A program folder's installation, those its links point to, and intermediate links."""

    changed: int
    folders: list[str]
    links: list[str]


_LED: dict[str, _ProgramLinks] = {}


def _led_to(folder: str) -> _ProgramLinks:
    """Cached until the folder's entries change."""
    try:
        changed = os.stat(folder).st_mtime_ns
        known = _LED.get(folder)
        if known is not None and known.changed == changed:
            return known
        found = [entry.path for entry in os.scandir(folder) if entry.is_symlink()][:_MOST_LINKS]
        places = {os.path.normpath(os.path.join(folder, os.readlink(path))) for path in found}
    except OSError:
        return _ProgramLinks(0, [], [])
    folders, links = set(_installation(folder)), set()
    for place in places:
        if os.path.dirname(place) != folder and os.path.isfile(place) and os.access(place, os.X_OK):
            links.update(_crossed(place))
            folders.update(_installed(os.path.realpath(place)))
    _LED[folder] = led = _ProgramLinks(changed, sorted(folders), sorted(links))
    return led


def _installed(program: str) -> list[str]:
    parts = program.split("/")
    if "node_modules" in parts:
        return ["/".join(parts[: parts.index("node_modules") + 1])]
    folder = os.path.dirname(program)
    return _installation(folder) if os.path.basename(folder) in _OF_PROGRAMS else [program]


def _installation(folder: str) -> list[str]:
    above, name = os.path.split(folder)
    if name not in _OF_PROGRAMS:
        return [folder]
    if os.path.basename(above) == "vendor" or any(os.path.exists(f"{above}/{sign}") for sign in _WHOLE):
        return [folder, above]
    if os.path.basename(above) == ".local":  # other contents do not belong to tools
        return [folder, f"{above}/lib"]
    return [folder, *(f"{above}/{name}" for name in _BESIDE if os.path.exists(f"{above}/{name}"))]


def caches(home: str, environ: Mapping[str, str], others: Sequence[str]) -> list[str]:
    """Returns existing caches outside `others`. Blocking."""
    named = [os.path.join(environ[name], below) for name, below in _NAMED_CACHES if environ.get(name)]
    wanted = [f"{home}/{name}" for name in _CACHES.split()] + [path.rstrip("/") for path in named]
    there = dict.fromkeys(path for path in wanted if path.startswith("/") and own_folder(path))
    return [path for path in there if not is_below(path, others) and path != home]


def programs(environ: Mapping[str, str]) -> list[str]:
    wanted = [sys.base_prefix, sys.prefix, *(environ[name] for name in NAMED if environ.get(name))]
    home = os.path.realpath(environ.get("HOME") or "/nonexistent")
    for path in environ.get("PATH", "").split(":"):
        above = os.path.dirname(path.rstrip("/"))
        whole = os.path.basename(path) in ("bin", "sbin") and (above != home or is_below(home, SYSTEM))
        wanted += [path, *([above] if whole else ())]
    found = {os.path.realpath(path) for path in wanted if path.startswith("/")}
    return sorted(path for path in found if path not in ("/", *SYSTEM, "/usr/local"))


def is_below(path: str, folders: Iterable[str]) -> bool:
    return any(path == folder or path.startswith(f"{folder.rstrip('/')}/") for folder in folders)


def own_folder(path: str) -> bool:
    """Whether it is an existing, readable folder, not a link."""
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode) and os.access(path, os.R_OK | os.X_OK)
    except OSError:
        return False
