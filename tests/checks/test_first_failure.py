"""A check whose command ends at the first failure would hide a new failure behind an old one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from checks.test_detection import write
from checks.test_workspaces import PNPM, node

from tui_agent.checks.detection import ended_early, going_on
from tui_agent.checks.projects.files import Project

COMMANDS = {
    "pytest -x": "pytest",
    "cd a && python -m pytest -vxs --sw -k 'a -x b' -rx || :": "cd a && python -m pytest -vs -k 'a -x b' -rx || :",
    "py.test --maxfail 1 -qx": "py.test -q",
    "sh -c 'pytest --exitfirst a'": "sh -c 'pytest a'",
    "python -m unittest -f a": "python -m unittest a",
    "python manage.py test --failfast": "python manage.py test",
    "go test -failfast ./...": "go test ./...",
    "cargo test -- --nocapture": "cargo test --no-fail-fast -- --nocapture",
    "cargo test --no-fail-fast": "cargo test --no-fail-fast",
    "cargo nextest run --fail-fast": "cargo nextest run --no-fail-fast",
    "rspec --fail-fast=2 spec": "rspec spec",
    "vendor/bin/phpunit --stop-on-failure": "vendor/bin/phpunit",
    "ctest --test-dir b --stop-on-failure": "ctest --test-dir b",
    "./mvnw -o test": "./mvnw --fail-at-end -o test",
    "gradle --continue test": "gradle --continue test",
    "npx jest --bail 1 src": "npx jest src",
    "turbo run test": "turbo run test --continue",
    "mypy -x": "mypy -x",
    "make test": "make test",
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_check_goes_on_after_a_failure(command: str, tmp_path: Path) -> None:
    assert going_on(command, Project(tmp_path)) == COMMANDS[command]


def test_a_package_script_goes_on_after_a_failure(tmp_path: Path) -> None:
    scripts = {"test": "tsc && mocha -b", "unit": "jest", "all": "jest --bail && eslint ."}
    write(tmp_path, {"package.json": json.dumps({"scripts": scripts, "jest": {"bail": 1}})})
    project = Project(tmp_path)
    assert going_on("npm test", project) == "npm test -- --no-bail"
    assert going_on("npm test -- --no-bail", project) == "npm test -- --no-bail"
    assert going_on("npm test -- a.js", project) == "npm test -- a.js --no-bail"
    assert going_on("yarn unit", project) == "yarn unit --bail=0"
    assert going_on("npm run all", project) == "npm run all"


def test_every_package_of_a_workspace_is_checked_even_if_one_fails(tmp_path: Path) -> None:
    """pnpm leaves out those that use a failed one, and yarn all behind it."""
    write(tmp_path / "pnpm", node(**PNPM))
    write(tmp_path / "yarn", node(**{"yarn.lock": "", ".yarnrc.yml": ""}))
    write(tmp_path / "npm", node())
    everywhere = "pnpm -r --no-bail --no-sort --if-present run test"
    assert going_on("pnpm -r test", Project(tmp_path / "pnpm")) == everywhere
    each = "; ".join(f"yarn workspace @x/{name} run test || failed=1" for name in ("api", "core", "tool"))
    for command in ("yarn workspaces run test", "yarn workspaces foreach -A run test"):
        assert going_on(command, Project(tmp_path / "yarn")) == f"sh -c 'failed=0; {each}; exit $failed'"
    command = "npm run test --workspaces --if-present"
    assert going_on(command, Project(tmp_path / "npm")) == command


def test_an_early_end_is_recognised() -> None:
    assert ended_early("a\n!!!!!!!!!! stopping after 1 failures !!!!!!!!!!\n1 failed in 0.1s")
    assert not ended_early("1 failed, 2 passed in 0.1s")
