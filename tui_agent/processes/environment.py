"""What of our environment a child gets: what its kind needs by name, and nothing else of it.

Keys of other programs, addresses of databases and the like are in most people's environments. A child that has none of
them can leak none of them, whatever it is made to run or to write into a log.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: What any program needs to run as it would for the person: where things are, in which language, how Python behaves.
_ANY = _words("""
    HOME USER LOGNAME PATH SHELL TMPDIR TEMP TMP TZ TZDIR LANG LANGUAGE LOCPATH LOCALE_ARCHIVE
    XDG_CONFIG_HOME XDG_CACHE_HOME XDG_DATA_HOME XDG_STATE_HOME XDG_RUNTIME_DIR XDG_CONFIG_DIRS XDG_DATA_DIRS
    LD_LIBRARY_PATH DYLD_LIBRARY_PATH DYLD_FALLBACK_LIBRARY_PATH NIX_LD NIX_LD_LIBRARY_PATH __CF_USER_TEXT_ENCODING
    PYTHONHOME PYTHONUTF8 PYTHONIOENCODING PYTHONHASHSEED PYTHONDONTWRITEBYTECODE PYTHONPYCACHEPREFIX PYTHONWARNINGS
    PYTHONDEVMODE PYTHONFAULTHANDLER PYTHONMALLOC PYTHONTRACEMALLOC PYTHONASYNCIODEBUG PYTHONUNBUFFERED
    PYTHONNOUSERSITE PYTHONOPTIMIZE PYTHONSAFEPATH PYTHONCOERCECLOCALE
""")
_ANY_FAMILIES = ("LC_*", "COV_CORE_*", "COVERAGE_*")
#: Where git finds the person's own settings, and how the folder is watched.
_WORKSPACE = _words("GIT_CONFIG_GLOBAL GIT_CONFIG_SYSTEM GIT_CONFIG_NOSYSTEM SUDO_UID")
_WORKSPACE_FAMILIES = ("WATCHFILES_*",)
#: How providers are reached and how they know the person, as litellm's documentation names it; and the way to the
#: keyring, which may hold tokens of logins.
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
#: The variable in which the workspace child finds the person's PATH as it was.
WHOLE_PATH: Final = "TUI_AGENT_WHOLE_PATH"
#: Folders that other people fill, each with a slash at its end.
_avoided: Final[set[str]] = set()
#: The folder that holds the package: all that a child imports from besides its Python.
_OURS = str(Path(__file__).parents[2])


def for_any(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """What every child gets: no key, no token, no address, and of Python's path our own package alone."""
    environ = os.environ if environ is None else environ
    return {**_chosen(environ, _ANY, _ANY_FAMILIES), "PATH": search_path(environ), "PYTHONPATH": _OURS}


def for_workspace(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """What the child that runs git and watches the folder gets besides; the whole PATH for filters that are trusted."""
    environ = os.environ if environ is None else environ
    return {**_chosen(environ, _WORKSPACE, _WORKSPACE_FAMILIES), WHOLE_PATH: environ.get("PATH", os.defpath)}


def for_models(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """What the child that talks to providers gets besides: their keys and addresses, proxies, certificates."""
    return _chosen(environ, _MODEL, _MODEL_FAMILIES)


def avoid_programs_in(folder: str) -> None:
    """Never take a program from this folder. One that holds the person's home may hold the person's programs."""
    avoided = os.path.realpath(folder).rstrip("/") + "/"
    if not (os.path.realpath(os.path.expanduser("~")) + "/").startswith(avoided):
        _avoided.add(avoided)


def search_path(environ: Mapping[str, str] | None = None, *, trusted: bool = False) -> str:
    """Where programs are looked for: the PATH without what is relative or, unless `trusted`, in an avoided folder."""
    environ = os.environ if environ is None else environ
    whole = environ.get(WHOLE_PATH) if trusted else None
    return os.pathsep.join(
        entry
        for entry in (whole or environ.get("PATH", os.defpath)).split(os.pathsep)
        if os.path.isabs(entry) and (trusted or not _is_avoided(entry))
    )


def _is_avoided(entry: str) -> bool:
    return (os.path.realpath(entry) + "/").startswith(tuple(_avoided))


def _chosen(
    environ: Mapping[str, str] | None, names: frozenset[str], families: tuple[str, ...]
) -> dict[str, str]:
    return {
        name: value
        for name, value in (os.environ if environ is None else environ).items()
        if name in names or any(fnmatchcase(name, family) for family in families)
    }
