"""False alarms of masking: 20 ordinary projects, each with a .env of its own kind.

The projects are packages that are installed here. A case holds if the one secret of the .env is masked wherever it is
printed, and nothing else of the project is: neither in its files nor in what its programs would print of its settings.
"""

from __future__ import annotations

import importlib.util
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.proofs.tally import Tally
from tui_agent.files.known_secrets import KnownSecrets

#: A value that nobody else has.
SECRET = "vT3q-Xw8Lp2Zr9Kd6Nh1Bs"
LARGEST, MOST = 400_000, 6_000_000
#: The package that stands for the project, and its .env with SECRET in the place of "?".
PROJECTS: dict[str, str] = {
    "textual": "TEXTUAL_THEME=textual-dark TEXTUAL_LOG=textual.log COLORTERM=truecolor APP_NAME=stopwatch API_TOKEN=?",
    "httpx": "HTTPX_LOG_LEVEL=debug SSL_CERT_FILE=/etc/ssl/cert.pem BASE_URL=https://www.example.org BEARER_TOKEN=?",
    "rich": "FORCE_COLOR=1 COLUMNS=100 THEME=monokai AUTHOR='Will McGugan' CONSOLE_STYLE=bold_magenta ACCESS_KEY=?",
    "aiohttp": "HOST=0.0.0.0 PORT=8080 COOKIE_NAME=AIOHTTP_SESSION REDIS=redis://cache.internal:6379/0 COOKIE_SECRET=?",
    "pydantic": "PROJECT_NAME=pydantic ENVIRONMENT=production PASSWORD_FIELD=hashed_password VALIDATE=True AUTH_KEY=?",
    "_pytest": "PYTEST_ADDOPTS=--strict-markers PYTHONHASHSEED=random TOKEN_TYPE=session TZ=Europe/London SECRET=?",
    "botocore": "AWS_DEFAULT_REGION=us-east-1 AWS_PROFILE=default S3_BUCKET=my-example-bucket AWS_SECRET_ACCESS_KEY=?",
    "huggingface_hub": "HF_HOME=~/.cache/huggingface MODEL=bert-base-uncased REPO=facebook/bart-large-cnn HF_TOKEN=?",
    "openai": "OPENAI_MODEL=gpt-4o-mini OPENAI_BASE_URL=https://api.openai.com/v1 ORG=org-example OPENAI_API_KEY=?",
    "litellm": "LITELLM_MODE=PRODUCTION PROXY_ADMIN_ID=default_user_id STORE_MODEL_IN_DB=True LITELLM_MASTER_KEY=?",
    "hypothesis": "HYPOTHESIS_PROFILE=default DATABASE=postgresql://localhost/hypothesis DEADLINE=none DB_PASSWORD=?",
    "setuptools": "SETUPTOOLS_USE_DISTUTILS=local DIST_EXTRA_CONFIG=setup.cfg VERSION=68.2.2 TWINE_PASSWORD=?",
    "pip": "PIP_INDEX_URL=https://pypi.org/simple PIP_DISABLE_PIP_VERSION_CHECK=1 KEYRING=subprocess PIP_TOKEN=?",
    "jinja2": "TEMPLATES=templates/default AUTOESCAPE=select_autoescape LOCALE=en_US.UTF-8 SESSION_SECRET=?",
    "pygments": "STYLE=solarized-light FORMATTER=terminal256 LEXER=python-traceback ENCODING=iso-8859-15 SIGNING_KEY=?",
    "click": "COMPLETE_VAR=_FOO_BAR_COMPLETE PAGER='less -FRX' PASSWORD_PROMPT=confirmation_prompt DEPLOY_TOKEN=?",
    "jsonschema": "DRAFT=draft2020-12 SCHEMA_URL=https://json-schema.org/draft/2020-12/schema META=unused PASSWD=?",
    "attr": "ATTRS_MODE=define KW_ONLY=false SECRET_FIELD_NAME=metadata COMMIT=9fceb02d0ae598e95dc970b74767f197 KEY=?",
    "asyncio": "PYTHONASYNCIODEBUG=1 LOOP=uvloop.EventLoopPolicy WORKERS=4 KEY_PREFIX=asyncio:tasks: BROKER_SECRET=?",
    "email": "SMTP_HOST=smtp.example.com SMTP_PORT=587 FROM='Postmaster <postmaster@example.com>' SMTP_PASSWORD=?",
}


def prove(tally: Tally, scale: float) -> None:
    """All projects, or with a smaller `scale` every so many-th."""
    for package, settings in list(PROJECTS.items())[:: max(1, round(1 / scale))]:
        spec = importlib.util.find_spec(package)
        if spec is None or not spec.submodule_search_locations:
            sys.stderr.write(f"{package} is skipped: it is not installed\n")
            continue
        with tempfile.TemporaryDirectory(prefix="tui-agent-ordinary-") as folder:
            root = Path(folder) / "work"
            shutil.copytree(
                spec.submodule_search_locations[0],
                root / package,
                ignore=shutil.ignore_patterns("__pycache__", "*.so", "*.exe"),
            )
            (root / ".env").write_text(_one_a_line(settings.replace("=?", f"={SECRET}")))
            known = KnownSecrets(str(root))
            known.look()
            printed = settings.replace("=?", "")
            tally.case(
                "what the project prints of its settings", known.masked(printed) == printed, what=package
            )
            hidden = SECRET not in known.masked(f"connected with {SECRET}")
            tally.case("the secret of the .env is masked", hidden, what=package)
            for path, text in _texts(root / package):
                tally.case("files of the project", known.masked(text) == text, what=f"{package}: {path}")


def _one_a_line(settings: str) -> str:
    """The settings, one a line; a value in quotes may have spaces."""
    lines, rest = "", settings
    while rest:
        name, _, rest = rest.partition("=")
        if rest.startswith("'"):
            value, _, rest = rest[1:].partition("'")
            lines += f"{name}='{value}'\n"
        else:
            value, _, rest = rest.partition(" ")
            lines += f"{name}={value}\n"
        rest = rest.lstrip()
    return lines


def _texts(folder: Path) -> Iterator[tuple[Path, str]]:
    room = MOST
    for path in sorted(folder.rglob("*")):
        if path.is_file() and (size := path.stat().st_size) < min(LARGEST, room):
            room -= size
            yield path.relative_to(folder), path.read_bytes().decode("utf-8", "replace")
