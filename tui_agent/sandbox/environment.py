"""Environment of commands: allowed variables, the user's tools on PATH, and git settings without
credentials.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, urlsplit

from tui_agent.files.git_folder import MOST_CONFIG, format_config, parse_config, read_regular
from tui_agent.files.lazy_regex import late
from tui_agent.files.masking import hits, hits_masked, masked
from tui_agent.files.operating_system import home_folder
from tui_agent.sandbox.inside.main import PROXY_PORT

_PASSED = ("PATH", "LANG", "LANGUAGE", "TERM", "COLORTERM", "TZ", "USER", "LOGNAME", "SHELL", "VIRTUAL_ENV")
#: Omits values with a key.
_NEEDED = """
    LC_* CONDA_PREFIX CONDA_DEFAULT_ENV PYENV_* NVM_DIR FNM_DIR FNM_MULTISHELL_PATH VOLTA_HOME PNPM_HOME
    BUN_INSTALL PROTO_HOME RYE_HOME JULIAUP_DEPOT_PATH JULIA_DEPOT_PATH GHCUP_INSTALL_BASE_PREFIX SDKMAN_DIR
    PIPX_HOME PRE_COMMIT_HOME PLAYWRIGHT_BROWSERS_PATH HOMEBREW_PREFIX HOMEBREW_CELLAR RUSTUP_HOME
    RUSTUP_TOOLCHAIN CARGO_HOME CARGO_BUILD_* CARGO_INCREMENTAL CARGO_PROFILE_* CARGO_TARGET_DIR GOROOT GOPATH
    JAVA_HOME DOTNET_ROOT DOTNET_CLI_* ASDF_* MISE_* CI NODE_ENV NODE_PATH NODE_OPTIONS GOFLAGS GOOS GOARCH
    GOEXPERIMENT GOWORK GOTMPDIR CGO_* RUSTFLAGS RUSTDOCFLAGS RUST_BACKTRACE RUST_LOG RUST_TEST_* RUST_MIN_STACK
    DJANGO_SETTINGS_MODULE DJANGO_CONFIGURATION FLASK_APP FLASK_ENV FLASK_DEBUG PYTHONPATH PYTHONWARNINGS
    PYTHONHASHSEED PYTHONUTF8 PYTHONIOENCODING PYTHONDONTWRITEBYTECODE PYTHONUNBUFFERED PYTHONPYCACHEPREFIX
    PYTEST_ADDOPTS PYTEST_PLUGINS PYTEST_DISABLE_PLUGIN_AUTOLOAD HYPOTHESIS_PROFILE COVERAGE_RCFILE COVERAGE_CORE
    RAILS_ENV RACK_ENV APP_ENV MIX_ENV RUBYOPT RUBYLIB GEM_HOME GEM_PATH BUNDLE_PATH BUNDLE_GEMFILE BUNDLE_WITHOUT
    PERL5LIB PHP_INI_SCAN_DIR CLASSPATH MAVEN_OPTS GRADLE_OPTS JAVA_OPTS JAVA_TOOL_OPTIONS LD_LIBRARY_PATH
    DYLD_LIBRARY_PATH LIBRARY_PATH CPATH C_INCLUDE_PATH CPLUS_INCLUDE_PATH PKG_CONFIG_PATH CMAKE_* CTEST_* CC CXX
    CFLAGS CXXFLAGS CPPFLAGS LDFLAGS MAKEFLAGS OMP_NUM_THREADS MPLBACKEND QT_QPA_PLATFORM SOURCE_DATE_EPOCH
    NO_COLOR
"""
_ADDRESSES = (
    "*DATABASE_URL", "*DATABASE_URI", "DB_URL", "*POSTGRES_URL", "*POSTGRESQL_URL", "*MYSQL_URL", "*REDIS_URL",
    "*MONGO_URL", "*MONGO_URI", "*MONGODB_URL", "*MONGODB_URI", "*AMQP_URL", "*RABBITMQ_URL", "*BROKER_URL",
)  # fmt: skip
_STORES = late(
    r"(?:postgres(?:ql)?|mysql|mariadb|sqlite3?|rediss?|mongodb|amqps?|mssql|oracle|cockroach(?:db)?|clickhouse|"
    r"memory|unix)(?:\+\w{1,20})?"
)
_WORD_OF_SECRETS = late(r"pass(?:word|wd|phrase)|secret|token|credential|api_?key|private_?key", re.I)
#: Requires a literal entry of the user.
_TOLD = ("*KEY*", "*TOKEN*", "*SECRET*", "*PASSWORD*", "SSH_AUTH_SOCK", "DBUS_*", "DISPLAY", "DOCKER_HOST")
#: Without a terminal, editors and prompts fail at once.
NO_KEYBOARD: Final[dict[str, str]] = {
    **dict.fromkeys(
        (
            "EDITOR", "VISUAL", "GIT_EDITOR", "GIT_SEQUENCE_EDITOR", "HGEDITOR", "SVN_EDITOR", "JJ_EDITOR", "FCEDIT",
            "KUBE_EDITOR", "SUDO_EDITOR", "SYSTEMD_EDITOR", "GH_EDITOR", "BUNDLER_EDITOR",
        ),
        "false",
    ),
    **dict.fromkeys(
        ("PAGER", "GIT_PAGER", "MANPAGER", "GH_PAGER", "SYSTEMD_PAGER", "AWS_PAGER", "BAT_PAGER", "PSQL_PAGER"), "cat"
    ),
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_MERGE_AUTOEDIT": "no",
    "DEBIAN_FRONTEND": "noninteractive",
}  # fmt: skip
_FIXED = {
    **NO_KEYBOARD,
    **dict.fromkeys(("GIT_ASKPASS", "SSH_ASKPASS", "SUDO_ASKPASS", "BROWSER"), "false"),
    "PIP_NO_INPUT": "1",
    "COREPACK_ENABLE_DOWNLOAD_PROMPT": "0",
    "TUI_AGENT_TRIAL": "1",
    "GIT_DISCOVERY_ACROSS_FILESYSTEM": "1",
}
#: Package managers fail at once instead of retrying for a minute.
OFFLINE: Final[dict[str, str]] = {
    "npm_config_offline": "true",
    "npm_config_audit": "false",
    "npm_config_fund": "false",
    "npm_config_update_notifier": "false",
    "npm_config_fetch_retries": "0",
    "YARN_ENABLE_NETWORK": "0",
    "YARN_ENABLE_TELEMETRY": "0",
    "COREPACK_ENABLE_NETWORK": "0",
    "PIP_NO_INDEX": "1",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "UV_OFFLINE": "1",
    "CARGO_NET_OFFLINE": "true",
    "GOPROXY": "off",
    "GOTOOLCHAIN": "local",
    "COMPOSER_DISABLE_NETWORK": "1",
    "HEX_OFFLINE": "1",
    "CONDA_OFFLINE": "true",
    "MAVEN_ARGS": "-o",
    "HF_HUB_OFFLINE": "1",
    "PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD": "1",
    "PUPPETEER_SKIP_DOWNLOAD": "1",
    "DO_NOT_TRACK": "1",
}
PROXIED: Final[dict[str, str]] = {
    **dict.fromkeys(
        ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"),
        f"http://127.0.0.1:{PROXY_PORT}",
    ),
    **dict.fromkeys(("NO_PROXY", "no_proxy"), "localhost,127.0.0.1,::1"),
    "NODE_USE_ENV_PROXY": "1",
}
VIRTUAL = (".venv", "venv")
_OF_DESKTOP = """
    _ PWD OLDPWD SHLVL HOME TMPDIR TEMP TMP HIST* LS_COLORS LESS* XDG_* DBUS_* SSH_* GPG_* DISPLAY WAYLAND_*
    WINDOWID XAUTHORITY TERM_* VTE_* KITTY_* ALACRITTY_* ITERM_* TMUX* STY ZELLIJ* WT_* WSL* PS1 PS2 PROMPT* MAIL
    LOGNAME DESKTOP_* GNOME_* KDE_* GTK_* QT_* SESSION_MANAGER INVOCATION_ID JOURNAL_STREAM SYSTEMD_*
    MEMORY_PRESSURE_* EDITOR VISUAL PAGER *_EDITOR *_PAGER TUI_AGENT_* VIRTUAL_ENV_PROMPT PYTHON_BASIC_REPL OSTYPE
    MACHTYPE HOSTNAME HOSTTYPE COLUMNS LINES
"""


def variables(
    root: str,
    places: Mapping[str, str],
    environ: Mapping[str, str],
    more: Iterable[str] = (),
    *,
    offline: bool = True,
) -> tuple[dict[str, str], str]:
    """Returns the variables, and the relative path of the virtual environment that was put first on PATH (""
    if none).

    - places: HOME and TMPDIR.
    - more: names or patterns from `trial.env`; patterns match no keys and no desktop service addresses.
    - offline: tells package managers that there is no network.
    """
    wanted = tuple(more)
    chosen: dict[str, str] = {}
    for name, value in environ.items():
        if (given := _passed(name, value, wanted)) is not None:
            chosen[name] = given
    chosen |= {**_FIXED, **(OFFLINE if offline else {}), **places}
    chosen.setdefault("PATH", os.defpath)
    if "VIRTUAL_ENV" in chosen:
        return chosen, ""
    for name in VIRTUAL:
        folder = os.path.join(root, name)
        if os.path.exists(f"{folder}/pyvenv.cfg") and os.path.isdir(f"{folder}/bin"):
            chosen |= {"VIRTUAL_ENV": folder, "PATH": f"{folder}/bin:{chosen['PATH']}"}
            return chosen, name
    return chosen, ""


def omitted_variables(environ: Mapping[str, str], chosen: Mapping[str, str]) -> list[str]:
    return sorted(
        name
        for name in environ
        if name not in chosen and not any(fnmatchcase(name, pattern) for pattern in _OF_DESKTOP.split())
    )


def _passed(name: str, value: str, more: tuple[str, ...]) -> str | None:
    if name in more or name in _PASSED:
        return value
    if any(fnmatchcase(name, pattern) for pattern in _TOLD):
        return None
    if any(fnmatchcase(name, pattern) for pattern in more):
        return value
    if any(fnmatchcase(name, pattern) for pattern in _ADDRESSES):
        return _without_password(value)
    if any(fnmatchcase(name, pattern) for pattern in _NEEDED.split()):
        return None if _WORD_OF_SECRETS.search(value) or masked(value) != value else value
    return None


def _without_password(address: str) -> str | None:
    try:
        parts = urlsplit(address)
        parsed = parse_qsl(parts.query, keep_blank_values=True)
    except ValueError:
        return None
    if not _STORES.fullmatch(parts.scheme.lower()):
        return None
    if not parts.netloc and not parts.query:
        return address if masked(address) == address else None
    user, at, host = parts.netloc.rpartition("@")
    user, _, _ = user.partition(":")
    query = parts.query if not any(_WORD_OF_SECRETS.search(name) for name, _ in parsed) else ""
    # `urlunsplit` leaves the slashes of an empty host out.
    slashes = "//" if parts.netloc or address[len(parts.scheme) + 1 :].startswith("//") else ""
    place = f"{user}{at}{host}" if user else host
    clean = f"{parts.scheme}:{slashes}{place}{parts.path}" + (f"?{query}" if query else "")
    return clean if masked(clean) == clean else None


#: System folders, readable by every program; others are hidden.
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
_CACHES = """
    .cache/pip .cache/uv .cache/pre-commit .npm .cargo/registry .cargo/git go/pkg/mod .cache/go-build .m2 .cache/yarn
    .yarn/berry .nuget/packages .gradle/caches .gradle/wrapper .ivy2/cache .cache/coursier .cache/deno .hex .mix
    .cache/rebar3 .cache/composer .composer/cache .stack/snapshots .cabal/packages .cabal/store .julia/packages
    .julia/artifacts .julia/registries .julia/compiled .cache/ccache .ccache .cache/sccache .cache/zig
"""
_NAMED_CACHES = (
    ("PIP_CACHE_DIR", ""), ("UV_CACHE_DIR", ""), ("npm_config_cache", ""), ("CARGO_HOME", "registry"),
    ("CARGO_HOME", "git"), ("GOMODCACHE", ""), ("GOCACHE", ""), ("PRE_COMMIT_HOME", ""), ("NUGET_PACKAGES", ""),
)  # fmt: skip
_BESIDE = (
    "lib", "lib64", "libexec", "share", "include", "pkg", "src", "api", "test", "misc", "jmods", "conf", "opt",
    "Cellar", "packages", "vendor", "VERSION", "go.env", "release", "node_modules",
)  # fmt: skip
#: Program folders; markers in the parent that identify an installation.
_OF_PROGRAMS = ("bin", "sbin", "shims", "condabin", "libexec")
_WHOLE = ("pyvenv.cfg", "conda-meta", "Cellar", "etc/profile.d/conda.sh", "lib/node_modules")
#: Hidden even if a link or PATH entry names them.
_PRIVATE = frozenset(
    {".ssh", ".gnupg", ".aws", ".kube", ".docker", ".password-store", ".mozilla", ".thunderbird"}
)
_MIXED = ("/.config", "/.local", "/.local/share", "/.cache")
_TOO_MUCH = frozenset(
    {"/", "/home", "/root", "/tmp", "/var", "/run", "/srv", "/mnt", "/media", "/var/lib", "/var/tmp"}
)
_MOST_LINKS = 2_000


class Tools(NamedTuple):
    """folders: readable, outermost only. links: links on the way."""

    folders: list[str]
    links: dict[str, str]


def tools(root: str, home: str, environ: Mapping[str, str], more: Iterable[str]) -> Tools:
    """Returns tools outside the system and the workspace. Blocking. home: "" if visible anyway; otherwise
    its tools are found even inside a system folder.
    """
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
    needed: dict[str, str] = {}
    for link in dict.fromkeys(crossed):
        target = os.path.realpath(link)
        shown = is_below(link, SYSTEM) and not (home and is_below(link, [home]))
        if not shown and not is_below(link, (root, *found)) and is_below(target, (*SYSTEM, *found)):
            needed[link] = target
    return Tools(found, needed)


def _fits(path: str, root: str, home: str, own: bool) -> bool:
    """Whether it exists and may be visible: no ancestor of the home or workspace, no key store."""
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
    """A program folder's installation, those of its links, and intermediate links."""

    changed: int
    folders: list[str]
    links: list[str]


_LED: dict[str, _ProgramLinks] = {}


def _led_to(folder: str) -> _ProgramLinks:
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
            program = os.path.realpath(place)
            above, in_modules, _ = program.partition("/node_modules/")
            inside = os.path.dirname(program)
            if in_modules:
                folders.add(f"{above}/node_modules")
            elif os.path.basename(inside) in _OF_PROGRAMS:
                folders.update(_installation(inside))
            else:
                folders.add(program)
    _LED[folder] = led = _ProgramLinks(changed, sorted(folders), sorted(links))
    return led


def _installation(folder: str) -> list[str]:
    above, name = os.path.split(folder)
    if name not in _OF_PROGRAMS:
        return [folder]
    if os.path.basename(above) == "vendor" or any(os.path.exists(f"{above}/{sign}") for sign in _WHOLE):
        return [folder, above]
    if os.path.basename(above) == ".local":
        return [folder, f"{above}/lib"]
    return [folder, *(f"{above}/{name}" for name in _BESIDE if os.path.exists(f"{above}/{name}"))]


def caches(home: str, environ: Mapping[str, str], others: Sequence[str]) -> list[str]:
    named = [os.path.join(environ[name], below) for name, below in _NAMED_CACHES if environ.get(name)]
    wanted = [f"{home}/{name}" for name in _CACHES.split()] + [path.rstrip("/") for path in named]
    there = dict.fromkeys(path for path in wanted if path.startswith("/") and own_folder(path))
    return [path for path in there if not is_below(path, others) and path != home]


def programs(environ: Mapping[str, str]) -> list[str]:
    wanted = [sys.base_prefix, sys.prefix, *(environ[name] for name in NAMED if environ.get(name))]
    home = home_folder(environ)
    for path in environ.get("PATH", "").split(":"):
        above = os.path.dirname(path.rstrip("/"))
        whole = os.path.basename(path) in ("bin", "sbin") and (above != home or is_below(home, SYSTEM))
        wanted += [path, *([above] if whole else ())]
    found = {os.path.realpath(path) for path in wanted if path.startswith("/")}
    return sorted(path for path in found if path not in ("/", *SYSTEM, "/usr/local"))


def is_below(path: str, folders: Iterable[str]) -> bool:
    return any(path == folder or path.startswith(f"{folder.rstrip('/')}/") for folder in folders)


def own_folder(path: str) -> bool:
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode) and os.access(path, os.R_OK | os.X_OK)
    except OSError:
        return False


#: Relative to the home.
OF_PERSON = (".gitconfig", ".config/git/config")
#: Copied whole: no address, key, or credential program.
_HARMLESS = frozenset(
    {"advice", "alias", "apply", "blame", "branch", "checkout", "clean", "color", "column", "commit", "diff"}
    | {"extensions", "feature", "fetch", "format", "gc", "grep", "i18n", "index", "init", "log", "merge"}
    | {"pack", "pull", "push", "rebase", "rerere", "safe", "stash", "status", "tag", "filter", "mergetool"}
)
_KEPT = {
    "core": frozenset(
        {
            "repositoryformatversion",
            "bare",
            "worktree",
            "filemode",
            "symlinks",
            "ignorecase",
            "precomposeunicode",
        }
        | {
            "autocrlf",
            "eol",
            "safecrlf",
            "quotepath",
            "abbrev",
            "excludesfile",
            "attributesfile",
            "hookspath",
        }
        | {
            "sparsecheckout",
            "sparsecheckoutcone",
            "logallrefupdates",
            "whitespace",
            "editor",
            "untrackedcache",
        }
    ),
    "user": frozenset({"name", "email"}),
    "remote": frozenset(
        {"url", "pushurl", "fetch", "push", "tagopt", "mirror", "promisor", "partialclonefilter"}
    ),
    "submodule": frozenset({"url", "path", "active", "branch", "update", "ignore"}),
    "lfs": frozenset({"repositoryformatversion"}),
}
#: A password may contain `@` and `/`; a host is followed only by a port.
_USER = re.compile(r"(?<=://)(?:[^/\s:]*:(?!\d+/)\S*@|[^/?#\s]*@)")
_QUERY = re.compile(r"(://[^\s?#]*)[?#]\S*")
#: Signing needs a key.
_SIGNS = ("commit.gpgsign", "tag.gpgsign", "push.gpgsign", "tag.forcesignannotated")


def visible_settings(path: str) -> bytes:
    try:
        entries = parse_config(read_regular(path, MOST_CONFIG).decode(errors="surrogateescape"))
    except (OSError, ValueError):
        return b""
    harmless: list[tuple[str, str]] = []
    for key, value in entries:
        section, name = key.partition(".")[0], key.rpartition(".")[2]
        if key not in _SIGNS and (section in _HARMLESS or name in _KEPT.get(section, ())):
            harmless.append((key, _QUERY.sub(r"\1", _USER.sub("", value))))
    text = format_config(harmless).decode(errors="surrogateescape")
    return hits_masked(text, hits(text)).encode(errors="surrogateescape")


def files_of(git_folder: str) -> list[str]:
    """Returns settings in a git folder, its work trees and submodules, and their copies."""
    found = [entry.path for entry in os.scandir(git_folder) if entry.name.startswith("config")]
    for inner in ("worktrees", "modules"):
        for folder, folders, names in os.walk(f"{git_folder}/{inner}"):
            found += [f"{folder}/{name}" for name in names if name.startswith("config")]
            folders[:] = [name for name in folders if name not in ("objects", "refs", "logs", "hooks")]
    return [path for path in found if os.path.isfile(path)]
