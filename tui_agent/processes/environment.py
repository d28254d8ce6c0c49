"""Environments of child processes, by allow-list.

Most users' environments hold keys of other programs, database addresses and other secrets, which a child
could leak through a command or a log.
"""

from __future__ import annotations

import os
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: Locations, locale, Python's options.
_ANY = _words("""
    HOME USER LOGNAME PATH SHELL TMPDIR TEMP TMP TZ TZDIR LANG LANGUAGE LOCPATH LOCALE_ARCHIVE
    XDG_CONFIG_HOME XDG_CACHE_HOME XDG_DATA_HOME XDG_STATE_HOME XDG_RUNTIME_DIR XDG_CONFIG_DIRS XDG_DATA_DIRS
    LD_LIBRARY_PATH DYLD_LIBRARY_PATH DYLD_FALLBACK_LIBRARY_PATH NIX_LD NIX_LD_LIBRARY_PATH __CF_USER_TEXT_ENCODING
    PYTHONHOME PYTHONUTF8 PYTHONIOENCODING PYTHONHASHSEED PYTHONDONTWRITEBYTECODE PYTHONPYCACHEPREFIX PYTHONWARNINGS
    PYTHONDEVMODE PYTHONFAULTHANDLER PYTHONMALLOC PYTHONTRACEMALLOC PYTHONASYNCIODEBUG PYTHONUNBUFFERED
    PYTHONNOUSERSITE PYTHONOPTIMIZE PYTHONSAFEPATH PYTHONCOERCECLOCALE
""")
_ANY_FAMILIES = ("LC_*", "COV_CORE_*", "COVERAGE_*")
_WORKSPACE = _words("GIT_CONFIG_GLOBAL GIT_CONFIG_SYSTEM GIT_CONFIG_NOSYSTEM SUDO_UID")
_WORKSPACE_FAMILIES = ("WATCHFILES_*",)
#: Providers' addresses and credentials, as documented by litellm, and the keyring for login tokens.
_MODEL = _words("""
    HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY http_proxy https_proxy all_proxy no_proxy
    SSL_CERT_FILE SSL_CERT_DIR SSL_CERTIFICATE SSL_VERIFY SSL_SECURITY_LEVEL SSL_ECDH_CURVE REQUESTS_CA_BUNDLE
    CURL_CA_BUNDLE NIX_SSL_CERT_FILE AIOHTTP_TRUST_ENV TIKTOKEN_CACHE_DIR CUSTOM_TIKTOKEN_CACHE_DIR
    OPENAI_ORGANIZATION OPENAI_PROJECT OR_APP_NAME OR_SITE_URL AIMLAPI_KEY COMETAPI_KEY CLOUDFLARE_ACCOUNT_ID
    DATAROBOT_API_TOKEN DATAROBOT_ENDPOINT FIREWORKS_ACCOUNT_ID FIREWORKS_AI_TOKEN FRIENDLI_TOKEN HF_TOKEN
    HUGGINGFACE_TOKEN JINA_AI_TOKEN PREDIBASE_TENANT_ID REPLICATE_API_TOKEN RUNWAYML_API_SECRET SCW_SECRET_KEY
    TOGETHER_AI_TOKEN VOYAGE_AI_TOKEN VERCEL_OIDC_TOKEN CLOUDSDK_CONFIG GCLOUD_PROJECT
    DEFAULT_GOOGLE_APPLICATION_CREDENTIALS DEFAULT_VERTEXAI_LOCATION DEFAULT_VERTEXAI_PROJECT OLLAMA_HOST
    GRADIENT_AI_AGENT_ENDPOINT DBUS_SESSION_BUS_ADDRESS
""")
_SERVERS = _words("""
    HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY http_proxy https_proxy all_proxy no_proxy
    SSL_CERT_FILE SSL_CERT_DIR DBUS_SESSION_BUS_ADDRESS TUI_AGENT_HOME
""")
_MODEL_FAMILIES = (
    *(
        "*_API_KEY",
        "*_API_BASE",
        "*_API_VERSION",
        "*_BASE_URL",
        "ANTHROPIC_*",
        "AWS_*",
        "BEDROCK_*",
        "GOOGLE_*",
    ),
    *("AZURE_*", "VERTEX*", "WATSONX_*", "WX_*", "WML_URL", "DATABRICKS_*", "SNOWFLAKE_*", "GIGACHAT_*"),
    *("GITHUB_COPILOT_*", "CHATGPT_*", "XAI_*", "AICORE_*", "OCI_*", "LITELLM_*", "TUI_AGENT_*"),
)
#: Passes the user's unfiltered PATH to the workspace child.
WHOLE_PATH: Final = "TUI_AGENT_WHOLE_PATH"
_avoided: Final[set[str]] = set()
#: A child's only import path besides its Python.
_OURS = str(Path(__file__).parents[2])


def for_any() -> dict[str, str]:
    """Variables for every child: no keys, tokens or addresses; PYTHONPATH holds only this package."""
    return {**_chosen(_ANY, _ANY_FAMILIES), "PATH": search_path(), "PYTHONPATH": _OURS}


def for_workspace() -> dict[str, str]:
    """Adds git configuration, and the full PATH for trusted filters."""
    whole = os.environ.get("PATH", os.defpath)
    return {**_chosen(_WORKSPACE, _WORKSPACE_FAMILIES), WHOLE_PATH: whole}


def for_models() -> dict[str, str]:
    """Adds provider keys and addresses, proxies, certificates."""
    return _chosen(_MODEL, _MODEL_FAMILIES)


def for_servers() -> dict[str, str]:
    """Adds proxies, certificates, the keyring."""
    return _chosen(_SERVERS, ())


def avoid_programs_in(folder: str) -> None:
    """Excludes a folder from program lookup, unless it contains the user's home."""
    avoided = os.path.realpath(folder).rstrip("/") + "/"
    if not (os.path.realpath(os.path.expanduser("~")) + "/").startswith(avoided):
        _avoided.add(avoided)


def search_path(*, trusted: bool = False) -> str:
    """Omits relative entries and, unless `trusted`, excluded folders."""
    whole = os.environ.get(WHOLE_PATH) if trusted else None
    return os.pathsep.join(
        entry
        for entry in (whole or os.environ.get("PATH", os.defpath)).split(os.pathsep)
        if os.path.isabs(entry)
        and (trusted or not (os.path.realpath(entry) + "/").startswith(tuple(_avoided)))
    )


def _chosen(names: frozenset[str], families: tuple[str, ...]) -> dict[str, str]:
    return {
        name: value
        for name, value in os.environ.items()
        if name in names or any(fnmatchcase(name, family) for family in families)
    }
