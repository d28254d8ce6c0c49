"""Finds places that a folder describes: a service of compose, a dev container, a Containerfile."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

from tui_agent.settings.files import read_small
from tui_agent.settings.schema import PlaceSettings

COMPOSE = ("compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml")
DEV_CONTAINERS = (
    ".devcontainer/devcontainer.json",
    ".devcontainer.json",
    ".devcontainer/*/devcontainer.json",
)
CONTAINERFILES = ("Containerfile", "Dockerfile")
_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,39}")
_PATH = re.compile(r"/[\w./-]{0,200}")
_IMAGE = re.compile(r"[\w./:@-]{1,200}")
#: A comment or a comma before a bracket, outside strings.
_NOT_JSON = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/|,(?=\s*[}\]])', re.DOTALL)
#: A key of a compose file, with what follows it.
_KEY = re.compile(r"(- +)?[\"']?([\w.-]+)[\"']? *:(?: +(.*))?$")
#: Mounts of the folder in a list of volumes: in one line, and the source of a longer form.
_FOLDER = r"(?:\./?|\$PWD|\$\{PWD(?::-\.)?\})"
_MOUNT_IN_LINE = re.compile(rf"[\[,] *[\"']?{_FOLDER}:(/[\w./-]{{1,200}})")
_MOUNT, _SOURCE = re.compile(rf"- *[\"']?{_FOLDER}:(/[\w./-]{{1,200}})"), re.compile(_FOLDER)


def found_in(root: Path) -> tuple[str, PlaceSettings] | None:
    """The file and the place it describes, if the machine has a program for it. Blocking."""
    engine = next((name for name in ("docker", "podman") if shutil.which(name)), "")
    for names, read in ((DEV_CONTAINERS, _dev_container), (COMPOSE, _service), (CONTAINERFILES, _built)):
        for pattern in names:
            for path in sorted(islice(root.glob(pattern), 20)):
                try:
                    text = read_small(path).decode("utf-8-sig", "replace")
                except OSError:
                    continue
                if (place := read(text, engine, path, root)) is not None:
                    return path.relative_to(root).as_posix(), place
    return None


def _dev_container(text: str, engine: str, path: Path, root: Path) -> PlaceSettings | None:
    if shutil.which("devcontainer"):
        return PlaceSettings("dev", "devcontainer exec --workspace-folder . {command}", copy="bundle")
    try:
        without = _NOT_JSON.sub(lambda match: match[1] or "", text)
        found = json.loads(_NOT_JSON.sub(lambda match: match[1] or "", without))
    except (ValueError, RecursionError):
        return None
    if not engine or not isinstance(found, dict):
        return None
    folder = str(found.get("workspaceFolder", "")).replace("${localWorkspaceFolderBasename}", root.name)
    folder = folder if _PATH.fullmatch(folder) else ""
    image, service, files = (found.get(key) for key in ("image", "service", "dockerComposeFile"))
    if isinstance(image, str) and _IMAGE.fullmatch(image):
        folder = folder or "/workspace"
        run = f"{engine} run --rm -i -v {{view}}:{folder} -w {folder} {image} sh -c {{command}}"
        return PlaceSettings("dev", run)
    files = [files] if isinstance(files, str) else files
    if not isinstance(service, str) or not _NAME.fullmatch(service) or not isinstance(files, list):
        return None
    named = [os.path.normpath(path.relative_to(root).parent / str(one)) for one in files]
    if not named or not all(re.fullmatch(r"\w[\w./-]*|\.\w[\w./-]*", one) for one in named):
        return None
    for one in named if not folder else ():
        with suppress(OSError):
            services = _services(read_small(root / one).decode("utf-8-sig", "replace"))
            folder = next((target for name, target, _ in services if name == service and target), folder)
    if not (program := _compose(engine)):
        return None
    compose = " ".join([program, *(f"-f {one}" for one in named)])
    folder = folder or "/workspace"
    run = f"{compose} run --rm -T -v {{view}}:{folder} -w {folder} {service} sh -c {{command}}"
    return PlaceSettings("dev", run)


def _service(text: str, engine: str, path: Path, root: Path) -> PlaceSettings | None:
    services = [*_services(text)] if engine else []
    wanted = [one for one in services if one[1]] or [one for one in services if one[2]]
    if not wanted or not (compose := _compose(engine)):
        return None
    name, target, built_at = wanted[0]
    folder = target or built_at
    run = f"{compose} run --rm -T -v {{view}}:{folder} -w {folder} {name} sh -c {{command}}"
    return PlaceSettings(name, run)


def _compose(engine: str) -> str:
    """Empty if the engine has no compose of version 2. Of two mounts on one path, such as the copy and what the file
    names, `docker-compose` of version 1 takes either, and `podman-compose` fails.
    """
    with suppress(OSError, subprocess.TimeoutExpired):
        asked = (engine, "compose", "version")
        if b"Docker Compose" in subprocess.run(asked, capture_output=True, timeout=5.0, check=False).stdout:
            return f"{engine} compose"
    return ""


def _services(text: str) -> Iterator[tuple[str, str, str]]:
    inside, indent, name, target, source, built, folder = False, 0, "", "", False, False, "/app"
    for line in [*text.splitlines(), "end:"]:
        words, depth = re.sub(r"(?:^|\s)#.*", "", line).strip(), len(line) - len(line.lstrip(" "))
        if not words:
            continue
        key = _KEY.match(words)
        if depth == 0 or (inside and depth == indent):
            if name:
                yield name, target, folder if built else ""
            name, target, source, built, folder = "", "", False, False, "/app"
        if depth == 0:
            inside, indent = key is not None and key[2] == "services", 0
        elif inside:
            indent = indent or depth
            if depth == indent:
                is_map = key is not None and (not key[3] or key[3].startswith("&"))
                name = key[2] if key and is_map and _NAME.fullmatch(key[2]) else ""
            elif match := _MOUNT.match(words):
                target = target or match[1]
            elif key:
                value = (key[3] or "").strip("\"'")
                if key[2] == "volumes" and (match := _MOUNT_IN_LINE.search(value)):
                    target = target or match[1]
                source = (
                    value != "" and _SOURCE.fullmatch(value) is not None
                    if key[2] == "source"
                    else source and not key[1]
                )
                if key[2] == "target" and source and _PATH.fullmatch(value):
                    target = target or value
                elif key[2] == "working_dir" and _PATH.fullmatch(value):
                    folder = value
                built = built or key[2] == "build"


def _built(text: str, engine: str, path: Path, root: Path) -> PlaceSettings | None:
    name = re.sub(r"[^a-z0-9_.-]", "-", root.name.lower()).strip("-.")
    if not engine or not _NAME.fullmatch(name):
        return None
    last = re.split(r"(?im)^FROM\s", text)[-1]
    folders = [found[1] for found in re.finditer(r"(?im)^WORKDIR\s+[\"']?(\S+?)/?[\"']?\s*$", text)]
    folder = next((one for one in reversed(folders) if _PATH.fullmatch(one)), "/app")
    # An entry point of its own gets the command as its arguments.
    shell, image = (
        ("--entrypoint sh ", f"{name} -c")
        if re.search(r"(?im)^ENTRYPOINT\s", last)
        else ("", f"{name} sh -c")
    )
    run = f"{engine} run --rm -i {shell}-v {{view}}:{folder} -w {folder} {image} {{command}}"
    return PlaceSettings(name, run)
