"""Tools of the person in their usual places: each runs in a view as it does outside, and nothing else is shown."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tui_agent.sandbox.environment import variables
from tui_agent.sandbox.isolation import runner_for
from tui_agent.sandbox.run import Run, RunResult
from tui_agent.sandbox.view_plan import plan

#: By manager: files with their text, where a program prints what lies beside it (`@`, its installation); links; and
#: folders of PATH. `~` is the home, `%` a folder outside of it.
PLACES: dict[str, tuple[dict[str, str], dict[str, str], list[str]]] = {
    "pipx": (
        {"~/.local/share/pipx/venvs/black/bin/black": "@", "~/.local/share/pipx/venvs/black/lib/x": "."},
        {"~/.local/bin/tool": "~/.local/share/pipx/venvs/black/bin/black"},
        ["~/.local/bin"],
    ),
    "npm prefix": (
        {"~/.npm-global/lib/node_modules/eslint/bin/e.js": "@", "~/.npm-global/lib/node_modules/eslint/lib/x": "."},
        {"~/.npm-global/bin/tool": "../lib/node_modules/eslint/bin/e.js"},
        ["~/.npm-global/bin"],
    ),
    "npm prefix with another name": (
        {"~/packages/lib/node_modules/eslint/bin/e.js": "@", "~/packages/lib/node_modules/eslint/lib/x": "."},
        {"~/packages/bin/tool": "../lib/node_modules/eslint/bin/e.js"},
        ["~/packages/bin"],
    ),
    "Homebrew": (
        {"%/brew/Cellar/jq/1/bin/tool": "@", "%/brew/Cellar/jq/1/lib/x": "."},
        {"%/brew/bin/tool": "../Cellar/jq/1/bin/tool"},
        ["%/brew/bin"],
    ),
    "conda": (
        {"~/miniconda3/envs/e/bin/tool": "@", "~/miniconda3/envs/e/lib/x": ".", "~/miniconda3/conda-meta/y": ""},
        {},
        ["~/miniconda3/envs/e/bin"],
    ),
    "conda elsewhere": (
        {"~/tools/conda/bin/tool": "@", "~/tools/conda/lib/x": ".", "~/tools/conda/conda-meta/y": ""},
        {},
        ["~/tools/conda/bin"],
    ),
    "Nix profile": (
        {"%/store/abc/bin/tool": "@", "%/store/abc/lib/x": "."},
        {"~/.nix-profile": "%/store/abc"},
        ["~/.nix-profile/bin"],
    ),
    "Poetry": (
        {"~/.local/share/pypoetry/venv/bin/poetry": "@", "~/.local/share/pypoetry/venv/lib/x": "."},
        {"~/.local/bin/tool": "~/.local/share/pypoetry/venv/bin/poetry"},
        ["~/.local/bin"],
    ),
    "Poetry's environments": (
        {"~/.cache/pypoetry/virtualenvs/a/bin/tool": "@", "~/.cache/pypoetry/virtualenvs/a/lib/x": "."},
        {},
        ["~/.cache/pypoetry/virtualenvs/a/bin"],
    ),
    "fnm": (
        {"~/.local/share/fnm/node-versions/v1/installation/bin/tool": "@",
         "~/.local/share/fnm/node-versions/v1/installation/lib/x": "."},
        {"%/multishells/1": "~/.local/share/fnm/node-versions/v1/installation"},
        ["%/multishells/1/bin"],
    ),
    "volta": ({"~/.volta/bin/tool": "@", "~/.volta/lib/x": "."}, {}, ["~/.volta/bin"]),
    "proto": ({"~/.proto/bin/tool": "@", "~/.proto/lib/x": "."}, {}, ["~/.proto/bin"]),
    "rye": (
        {"~/.rye/self/bin/rye": "@", "~/.rye/self/lib/x": "."},
        {"~/.rye/shims/tool": "../self/bin/rye"},
        ["~/.rye/shims"],
    ),
    "juliaup": (
        {"~/.julia/juliaup/julia-1/bin/julia": "@", "~/.julia/juliaup/julia-1/lib/x": "."},
        {"~/.juliaup/bin/tool": "~/.julia/juliaup/julia-1/bin/julia"},
        ["~/.juliaup/bin"],
    ),
    "ghcup": (
        {"~/.ghcup/ghc/9/bin/ghc": "@", "~/.ghcup/ghc/9/lib/x": "."},
        {"~/.ghcup/bin/tool": "../ghc/9/bin/ghc"},
        ["~/.ghcup/bin"],
    ),
    "dotnet": ({"~/.dotnet/tools/tool": "@", "~/.dotnet/lib/x": "."}, {}, ["~/.dotnet/tools"]),
    "sdkman": (
        {"~/.sdkman/candidates/java/21/bin/tool": "@", "~/.sdkman/candidates/java/21/lib/x": "."},
        {"~/.sdkman/candidates/java/current": "21"},
        ["~/.sdkman/candidates/java/current/bin"],
    ),
    "go by hand": ({"~/go1.22/bin/tool": "@", "~/go1.22/lib/x": "."}, {}, ["~/go1.22/bin"]),
    "a link to a script": ({"~/scripts/deploy.sh": "echo ."}, {"~/bin/tool": "~/scripts/deploy.sh"}, ["~/bin"]),
}  # fmt: skip
#: Where a program is not on the path, but what it reads.
READ = {
    "pre-commit": "~/.cache/pre-commit/repo1/hook",
    "Playwright": "~/.cache/ms-playwright/chromium-1/chrome",
    "NuGet": "~/.nuget/packages/a/1/a.dll",
    "Gradle": "~/.gradle/caches/modules-2/a.jar",
}
_SCRIPT = '#!/bin/sh\nplace=$(readlink -f "$0"); cat "${place%/*}/../lib/x"\n'


class Machine:
    """A home and a folder beside it, with a workspace."""

    def __init__(self, parent: Path) -> None:
        self.home, self.other, self.root = parent / "home", parent / "other", parent / "work"
        for folder in (self.home, self.other, self.root):
            folder.mkdir()

    def place(self, path: str) -> Path:
        return Path(path.replace("~", str(self.home)).replace("%", str(self.other)))

    def put(self, path: str, text: str) -> None:
        place = self.place(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(
            _SCRIPT if text == "@" else f"#!/bin/sh\n{text}\n" if text.startswith("echo") else text
        )
        place.chmod(0o755)

    async def run(self, command: str, *path: str) -> RunResult:
        folders = [*map(str, map(self.place, path)), "/usr/bin", "/bin"]
        environ = {"HOME": str(self.home), "PATH": ":".join(folders)}
        made = plan(self.root, environ=environ)
        chosen, _ = variables(str(self.root), made.places, environ)
        return await Run(30).alone(runner_for(made), ["/bin/sh", "-c", command], chosen)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.mark.parametrize("manager", PLACES)
async def test_a_tool_finds_what_belongs_to_it(machine: Machine, manager: str) -> None:
    files, links, path = PLACES[manager]
    for place, text in files.items():
        machine.put(place, text)
    for place, target in links.items():
        machine.place(place).parent.mkdir(parents=True, exist_ok=True)
        machine.place(place).symlink_to(str(machine.place(target)) if target[0] in "~%" else target)
    result = await machine.run("tool", *path)
    assert result.output.content().strip() == b".", result.output.content()


@pytest.mark.parametrize("tool", READ)
async def test_what_a_tool_reads_is_there(machine: Machine, tool: str) -> None:
    machine.put(READ[tool], "text")
    result = await machine.run(f"cat {machine.place(READ[tool])}")
    assert result.output.content() == b"text"


async def test_links_show_nothing_private(machine: Machine) -> None:
    """A link in a folder of PATH shows the file that it leads to, and not what lies beside it."""
    for path in (
        "~/notes/run.sh",
        "~/notes/diary",
        "~/.ssh/tool",
        "~/x.sh",
        "~/.config/a/y.sh",
        "~/.config/a/token",
    ):
        machine.put(path, "echo no")
    (machine.home / "bin").mkdir()
    for number, target in enumerate(("notes/run.sh", ".ssh/tool", "x.sh", ".config/a/y.sh", "notes", ".")):
        (machine.home / "bin" / f"link{number}").symlink_to(machine.home / target)
    result = await machine.run(f"cd {machine.home}; find . -type f | sort", "~/bin")
    shown = os.fsdecode(result.output.content()).split()
    assert shown == ["./.config/a/y.sh", "./notes/run.sh", "./x.sh"]


async def test_a_home_with_programs_of_its_own_can_be_written(machine: Machine) -> None:
    machine.put("~/bin/tool", "echo own")
    machine.put("~/diary", "text")
    result = await machine.run(
        "tool; cd; mkdir -p .cache/x; echo 1 > .cache/x/y; ls -A; cat .cache/x/y", "~/bin"
    )
    assert result.output.content().split() == [b"own", b".cache", b"bin", b"1"]
