"""Environment variables of commands: an allow-list and the user's additions."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Final
from urllib.parse import parse_qsl, urlsplit, urlunsplit

from tui_agent.files.lazy_regex import late
from tui_agent.files.masking import masked
from tui_agent.sandbox.inside.main import PROXY_PORT

_PASSED = ("PATH", "LANG", "LANGUAGE", "TERM", "COLORTERM", "TZ", "USER", "LOGNAME", "SHELL", "VIRTUAL_ENV")
#: Tools, and variables for tests. Values with a key are omitted.
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
#: Databases and queues, passed without passwords.
_ADDRESSES = (
    "*DATABASE_URL", "*DATABASE_URI", "DB_URL", "*POSTGRES_URL", "*POSTGRESQL_URL", "*MYSQL_URL", "*REDIS_URL",
    "*MONGO_URL", "*MONGO_URI", "*MONGODB_URL", "*MONGODB_URI", "*AMQP_URL", "*RABBITMQ_URL", "*BROKER_URL",
)  # fmt: skip
_STORES = late(
    r"(?:postgres(?:ql)?|mysql|mariadb|sqlite3?|rediss?|mongodb|amqps?|mssql|oracle|cockroach(?:db)?|clickhouse|"
    r"memory|unix)(?:\+\w{1,20})?"
)
_WORD_OF_SECRETS = late(r"pass(?:word|wd|phrase)|secret|token|credential|api_?key|private_?key", re.I)
#: Passed only if the user listed them literally.
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
#: Desktops, logins and shells, which no project needs.
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
    """None for other values."""
    try:
        parts = urlsplit(address)
        parsed = parse_qsl(parts.query, keep_blank_values=True)
    except ValueError:
        return None
    if not _STORES.fullmatch(parts.scheme.lower()):
        return None
    if not parts.netloc and not parts.query:  # A file.
        return address if masked(address) == address else None
    user, at, host = parts.netloc.rpartition("@")
    user, _, _ = user.partition(":")
    query = parts.query if not any(_WORD_OF_SECRETS.search(name) for name, _ in parsed) else ""
    clean = urlunsplit(parts._replace(netloc=f"{user}{at}{host}" if user else host, query=query, fragment=""))
    return clean if masked(clean) == clean else None
