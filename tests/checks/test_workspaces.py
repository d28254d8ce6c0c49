"""In a workspace of several packages only those that changed, and those that use them, are checked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from checks.test_detection import write

from tui_agent.checks.detection import found_in
from tui_agent.checks.projects.files import Project
from tui_agent.checks.projects.workspaces import narrowed

#: Each uses the one before it; the last stands alone.
USES = {"core": [], "api": ["core"], "web": ["api"], "tool": []}


def cargo() -> dict[str, str]:
    files = {
        f"crates/{name}/Cargo.toml": f"[package]\nname = '{name}'\n[dependencies]\n"
        + "".join(f"{one} = {{ path = '../{one}' }}\n" for one in uses)
        for name, uses in USES.items()
    }
    return {"Cargo.toml": "[workspace]\nmembers = ['crates/*']\n", **files}


def go() -> dict[str, str]:
    files = {
        f"crates/{name}/go.mod": f"module x.org/{name} // it\n\nrequire (\n"
        + "".join(f"\tx.org/{one} v0.0.0\n" for one in uses)
        + ")\n"
        for name, uses in USES.items()
    }
    return {"go.work": "use (\n" + "".join(f"\t./crates/{name}\n" for name in USES) + ")\n", **files}


def node(**top: str) -> dict[str, str]:
    files = {
        f"crates/{name}/package.json": json.dumps(
            {
                "name": f"@x/{name}",
                "scripts": {} if name == "web" else {"test": "x"},
                "devDependencies": {f"@x/{one}": "*" for one in uses},
            }
        )
        for name, uses in USES.items()
    }
    return {"package.json": json.dumps({"workspaces": ["crates/*"]}), **files, **top}


PNPM = {"package.json": "{}", "pnpm-lock.yaml": "", "pnpm-workspace.yaml": "packages:\n  - crates/*\n"}
ROOT_SCRIPT = json.dumps({"workspaces": ["./crates/*"], "scripts": {"test": "npm run test --workspaces"}})

#: The files of a workspace, what changed, and the command of its found check.
WORKSPACES: dict[str, tuple[dict[str, str], list[str], str]] = {
    "cargo": (cargo(), ["crates/api/src/a.rs"], "cargo test --quiet --no-fail-fast -p api -p web"),
    "cargo, one that stands alone": (
        cargo(),
        ["crates/tool/src/a.rs"],
        "cargo test --quiet --no-fail-fast -p tool",
    ),
    "cargo, all of them": (
        cargo(),
        ["crates/core/a.rs", "crates/tool/a.rs"],
        "cargo test --quiet --no-fail-fast --workspace",
    ),
    "cargo, a file of none": (
        cargo(),
        ["crates/api/a.rs", "Cargo.lock"],
        "cargo test --quiet --no-fail-fast --workspace",
    ),
    "cargo, and the package at the top": (
        {
            **cargo(),
            "Cargo.toml": "[workspace]\nmembers = ['crates/*']\n[package]\nname = 'top'\n"
            "[dependencies]\nweb = { path = 'crates/web' }\n",
        },
        ["crates/api/a.rs"],
        "cargo test --quiet --no-fail-fast -p top -p api -p web",
    ),
    "cargo, a file of the package at the top": (
        {**cargo(), "Cargo.toml": "[workspace]\nmembers = ['crates/*']\n[package]\nname = 'top'\n"},
        ["src/lib.rs"],
        "cargo test --quiet --no-fail-fast --workspace",
    ),
    "go, and the module at the top": (
        {
            "go.work": "use (\n\t.\n\t./a\n\t./b\n)\n",
            "go.mod": "module x.org/top\nrequire x.org/a v0.0.0\n",
            "a/go.mod": "module x.org/a\n",
            "b/go.mod": "module x.org/b\n",
        },
        ["a/a.go"],
        "go test ./... ./a/...",
    ),
    "go": (go(), ["crates/api/a.go"], "go test ./crates/api/... ./crates/web/..."),
    "go, a file of none": (
        go(),
        ["go.work"],
        "go test ./crates/core/... ./crates/api/... ./crates/web/... ./crates/tool/...",
    ),
    "npm": (node(), ["crates/api/a.js"], "npm run test -w @x/api --if-present"),
    "npm, by the script at the top": (
        node(**{"package.json": ROOT_SCRIPT}),
        ["crates/core/a.js"],
        "npm run test -w @x/api -w @x/core --if-present",
    ),
    "npm, a test of its own at the top": (
        node(**{"package.json": json.dumps({"workspaces": ["crates/*"], "scripts": {"test": "jest"}})}),
        ["crates/core/a.js"],
        "npm test",
    ),
    "yarn": (
        node(**{"yarn.lock": ""}),
        ["crates/core/a.js"],
        "sh -c 'failed=0; yarn workspace @x/api run test || failed=1; yarn workspace @x/core run test || failed=1; "
        "exit $failed'",
    ),
    "pnpm": (
        node(**PNPM),
        ["crates/api/a.js"],
        "pnpm --filter @x/api --no-bail --no-sort --if-present run test",
    ),
    "a name that is none": (
        node(**{"crates/core/package.json": '{"name": "x; curl y"}'}),
        ["crates/api/a.js"],
        "npm run test --workspaces --if-present",
    ),
    "folders outside": (
        {"package.json": '{"workspaces": ["../*", "/etc/*"]}'},
        ["a.js"],
        "npm run test --workspaces --if-present",
    ),
}


@pytest.mark.parametrize("name", WORKSPACES)
def test_only_packages_that_changed_and_those_that_use_them_are_checked(name: str, tmp_path: Path) -> None:
    files, changed, expected = WORKSPACES[name]
    write(tmp_path, files)
    (check,) = found_in(tmp_path)
    assert narrowed(check.command, Project(tmp_path), changed) == expected
