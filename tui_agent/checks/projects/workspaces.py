"""Narrows commands of multi-package workspaces to changed packages and their dependents."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import NamedTuple

from tui_agent.checks.projects.files import Project, is_inside, table, words
from tui_agent.checks.projects.languages import go_modules, go_packages
from tui_agent.checks.projects.node import DELEGATES, everywhere, package_globs, package_manager

#: Packages of a workspace, and of a command.
MOST_PACKAGES, MOST_NAMED = 500, 30
_NAME = re.compile(r"(?:@[\w.-]+/)?[\w][\w.-]*", re.ASCII)
_NODE_DEPENDENCIES = ("dependencies", "devDependencies", "peerDependencies", "optionalDependencies")
_CARGO_DEPENDENCIES = ("dependencies", "dev-dependencies", "build-dependencies")
_CARGO = re.compile(r"cargo (?:test|clippy|check|nextest run)\b")
_AROUND = frozenset(("run", "workspaces", "foreach", "recursive"))
_SCRIPT = re.compile(r"(?:npm|pnpm|yarn)(?: run)? ([\w:.-]+)")


class Package(NamedTuple):
    """`folder` is "" for the top."""

    name: str
    folder: str
    needs: frozenset[str]


def narrowed(command: str, project: Project, paths: Iterable[str]) -> str:
    """Returns the command for the packages of these files and their dependents. Unchanged if the manifests
    do not determine it, a file is in no package, or the command is not for a workspace. Blocking.
    """
    paths = list(paths)
    if _CARGO.match(command) and re.search(r" --(?:workspace|all)(?= |$)", command):
        if found := _affected(paths, _cargo_packages(project)):
            named = " ".join(f"-p {package.name}" for package in found)
            return re.sub(r" --(?:workspace|all)(?= |$)", f" {named}", command, count=1)
    elif command.startswith(("go test ./", "go vet ./")) and project.has("go.work"):
        if found := _affected(paths, _go_packages(project)):
            said = [word for word in command.split() if not word.startswith("./")]
            return " ".join([*said, *(go_packages(package.folder) for package in found)])
    elif (
        package_globs(project)
        and (script := _script_of_all(command, project))
        and (found := _affected(paths, _node_packages(project)))
    ):
        return _node(project, package_manager(project), script, found) or command
    return command


def in_all_packages(command: str, project: Project) -> str:
    """Runs a workspace's script in every package even if one fails; "" if the command does so, or is another
    one. Blocking.
    """
    manager = package_manager(project)
    if manager not in ("pnpm", "yarn") or not package_globs(project):
        return ""
    script = _script_of_all(command, project)
    if script and manager == "pnpm":
        return everywhere(manager, script, project)
    packages = _node_packages(project) if script else []
    return _node(project, manager, script, packages) if packages else ""


def _affected(paths: Iterable[str], packages: list[Package]) -> list[Package]:
    """Returns the packages of these files and all dependents; none if a file is in no package, or if they are
    all or too many.
    """
    wanted: set[str] = set()
    for path in paths:
        inside = [one for one in packages if one.folder and path.startswith(f"{one.folder}/")]
        if not inside:
            return []
        wanted.add(max(inside, key=lambda one: len(one.folder)).name)
    while more := {one.name for one in packages if one.name not in wanted and one.needs & wanted}:
        wanted |= more
    found = [one for one in packages if one.name in wanted]
    return found if len(found) <= MOST_NAMED and len(found) < len(packages) else []


def _folders(project: Project, globs: Iterable[str], manifest: str) -> list[str]:
    found: dict[str, None] = {}
    left_out = list[str]()
    for glob in globs:
        if glob.startswith("!"):
            left_out.append(glob[1:].removeprefix("./").rstrip("/"))
            continue
        parts = glob.removeprefix("./").rstrip("/").split("/")
        if not is_inside("/".join(parts)) or "**" in parts[:-1]:
            continue
        at = [""]
        for part in ["*" if part == "**" else part for part in parts]:
            below = []
            for folder in at:
                names = project.matching(folder or ".", part) if re.search(r"[*?\[{]", part) else [part]
                below += [
                    f"{folder}/{name}" if folder else name for name in names if not name.startswith(".")
                ]
            at = below[:MOST_PACKAGES]
        found |= dict.fromkeys(folder for folder in at if project.has(f"{folder}/{manifest}"))
    return [folder for folder in found if not any(fnmatchcase(folder, one) for one in left_out)]


# ── cargo ────────────────────────────────────────────────────────────────────────────────────────────────


def _cargo_packages(project: Project) -> list[Package]:
    top = project.toml("Cargo.toml")
    workspace = table(top.get("workspace"))
    excluded = [f"!{one}" for one in words(workspace.get("exclude"))]
    folders = _folders(project, [*words(workspace.get("members")), *excluded], "Cargo.toml")
    found = []
    at_top = [""] if "package" in top else []
    for folder in [*at_top, *folders][:MOST_PACKAGES]:
        manifest = project.toml(f"{folder}/Cargo.toml" if folder else "Cargo.toml")
        name = table(manifest.get("package")).get("name")
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            return []
        tables = [manifest, *map(table, table(manifest.get("target")).values())]
        needs = {
            table(value).get("package", key)
            for one in tables
            for group in _CARGO_DEPENDENCIES
            for key, value in table(one.get(group)).items()
        }
        found.append(Package(name, folder, frozenset(one for one in needs if isinstance(one, str))))
    return found


# ── Go ───────────────────────────────────────────────────────────────────────────────────────────────────


def _go_packages(project: Project) -> list[Package]:
    found = []
    for folder in go_modules(project)[:MOST_PACKAGES]:
        text = re.sub(r"//[^\n]*", "", project.lines(f"{folder}/go.mod" if folder else "go.mod"))
        name = re.search(r"^module\s+(\S+)", text, re.MULTILINE)
        if name is None:
            return []
        needs = re.findall(r"^(?:require)?[ \t]{0,40}([\w.~/-]+)\s+v\S+", text, re.MULTILINE)
        found.append(Package(name[1].strip('"'), folder, frozenset(needs)))
    return found


# ── npm, pnpm, yarn ──────────────────────────────────────────────────────────────────────────────────────


def _script_of_all(command: str, project: Project) -> str:
    if DELEGATES.fullmatch(command):
        said = [word for word in command.split()[1:] if word not in _AROUND and not word.startswith("-")]
        return said[0] if len(said) == 1 else ""
    named = _SCRIPT.fullmatch(command)
    said = table(project.json("package.json").get("scripts")).get(named[1]) if named else None
    if isinstance(said, str) and DELEGATES.fullmatch(said.strip()):
        return _script_of_all(said.strip(), project)
    return ""


def _node_packages(project: Project) -> list[Package]:
    found = []
    for folder in _folders(project, package_globs(project), "package.json")[:MOST_PACKAGES]:
        manifest = project.json(f"{folder}/package.json")
        name = manifest.get("name")
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            return []
        needs = {key for group in _NODE_DEPENDENCIES for key in table(manifest.get(group))}
        found.append(Package(name, folder, frozenset(needs)))
    return found


def _node(project: Project, manager: str, script: str, packages: list[Package]) -> str:
    having = [
        shlex.quote(package.name)
        for package in packages
        if script in table(project.json(f"{package.folder}/package.json").get("scripts"))
    ]
    if not having:
        return ""
    if manager == "pnpm":
        return f"pnpm {' '.join(f'--filter {name}' for name in having)} --no-bail --no-sort --if-present run {script}"
    if manager == "yarn":
        each = [f"yarn workspace {name} run {script}" for name in having]
        all_of_them = "; ".join(["failed=0", *(f"{one} || failed=1" for one in each), "exit $failed"])
        return each[0] if len(each) == 1 else f"sh -c {shlex.quote(all_of_them)}"
    return f"npm run {script} {' '.join(f'-w {name}' for name in having)} --if-present"
