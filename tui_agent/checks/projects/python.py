"""Python: tests and linters, if no file states the command."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from itertools import chain, islice

from tui_agent.checks.projects.files import Project, table
from tui_agent.checks.projects.plain_commands import PlainCommand, has_environment
from tui_agent.checks.projects.runners import PYTHON
from tui_agent.checks.projects.tasks import hooks

#: Test files read to detect the framework.
_MOST_FILES = 5
#: Tests as functions, or files that import pytest.
_PYTEST = re.compile(r"^(?:async )?def test_|^(?:import|from) pytest\b", re.MULTILINE)


def python_checks(project: Project, told: Collection[str]) -> Iterator[PlainCommand]:
    """`told`: kinds with a known command."""
    tools = table(project.toml("pyproject.toml").get("tool"))
    if "python tests" not in told:
        yield from _tests(project, tools)
    ruff = table(tools.get("ruff"))
    formats_only = "format" in ruff and set(ruff) <= {"format", "line-length", "target-version"}
    if ("ruff" in tools and not formats_only) or project.has("ruff.toml", ".ruff.toml"):
        yield PlainCommand("ruff", "ruff", "ruff check --quiet --output-format concise .", PYTHON)
    elif project.has(".flake8") or any(
        "flake8" in project.sections(name) for name in ("setup.cfg", "tox.ini")
    ):
        yield PlainCommand("flake8", "flake8", "flake8", PYTHON)
    yield from _mypy(project, tools)
    if "ty" in tools or project.has("ty.toml"):
        yield PlainCommand("ty", "ty", "ty check", PYTHON)
    if "pyright" in tools or project.has("pyrightconfig.json"):
        yield PlainCommand("pyright", "pyright", "pyright", PYTHON)
    elif "basedpyright" in tools:
        yield PlainCommand("pyright", "basedpyright", "basedpyright", PYTHON)


def _tests(project: Project, tools: dict[str, object]) -> Iterator[PlainCommand]:
    before = "" if has_environment(project) or not project.has("poetry.lock") else "poetry run "
    in_folders = (project.below(folder, "test_*.py", "*_test.py") for folder in ("tests", "test"))
    files = list(islice(chain(project.matching(".", "test_*.py"), *in_folders), _MOST_FILES))
    settings = (
        "pytest" in tools
        or project.has("pytest.ini", ".pytest.ini", "pytest.toml")
        or "tool:pytest" in project.sections("setup.cfg")
        or "pytest" in project.sections("tox.ini")
    )
    django = project.has("manage.py") and "DJANGO_SETTINGS_MODULE" in project.text("manage.py")
    if settings or project.has("conftest.py", "tests/conftest.py", "test/conftest.py"):
        yield PlainCommand("python tests", "pytest", f"{before}pytest -q")
    elif project.has("runtests.py", "tests/runtests.py"):
        folder = "" if project.has("runtests.py") else "cd tests && "
        yield PlainCommand("python tests", "runtests", f"{folder}{before}python runtests.py")
    elif django:
        yield PlainCommand("python tests", "django", f"{before}python manage.py test")
    elif any(_PYTEST.search(project.text(path)) for path in files) or _needs_pytest(project):
        if files or project.has_folder("tests"):
            yield PlainCommand("python tests", "pytest", f"{before}pytest -q")
    elif files and not project.has("tox.ini", "noxfile.py", "tox.toml"):
        folder = files[0].partition("/")[0]
        start = f" -s {folder}" if "/" in files[0] and not project.has(f"{folder}/__init__.py") else ""
        yield PlainCommand("python tests", "unittest", f"{before}python -m unittest discover -q{start}")


def _needs_pytest(project: Project) -> bool:
    names = ("pyproject.toml", "setup.cfg", "setup.py", "tox.ini", "noxfile.py", "requirements-dev.txt")
    more = (
        "requirements.txt",
        "dev-requirements.txt",
        "requirements/dev.txt",
        "requirements/test.txt",
        "Pipfile",
    )
    return any(re.search(r"\bpytest\b", project.text(name)) for name in (*names, *more))


def _mypy(project: Project, tools: dict[str, object]) -> Iterator[PlainCommand]:
    """`mypy` alone if its settings list the files, by default with the project's package."""
    settings: dict[str, object] = table(tools.get("mypy"))
    configured = "mypy" in tools or "mypy" in hooks(project)
    for name in ("mypy.ini", ".mypy.ini", "setup.cfg"):
        sections = project.sections(name)
        if "mypy" in sections:
            configured = True
            settings = {**settings, **sections["mypy"]}
    if not configured:
        return
    named = any(settings.get(key) for key in ("files", "packages", "modules"))
    yield PlainCommand("mypy", "mypy", "mypy" if named else f"mypy {_package(project)}", PYTHON)


def _package(project: Project) -> str:
    name = table(project.toml("pyproject.toml").get("project")).get("name")
    if isinstance(name, str) and re.fullmatch(r"[\w.-]{1,80}", name):
        module = name.replace("-", "_").lower()
        for folder in (f"src/{module}", module):
            if project.has(f"{folder}/__init__.py"):
                return "src" if folder.startswith("src/") else folder
    return "src" if project.has_folder("src") else "."
