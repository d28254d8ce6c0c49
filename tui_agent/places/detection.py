"""Finds places that a folder describes: a compose service, a dev container, a Containerfile."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

from tui_agent.settings.files import read_small
from tui_agent.settings.schema import PlaceSettings

COMPOSE = ("compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml")
DEV_CONTAINERS = (".devcontainer/devcontainer.json", ".devcontainer.json")
CONTAINERFILES = ("Containerfile", "Dockerfile")
_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,39}")
_PATH = re.compile(r"/[\w./-]{0,200}")
_MOUNT = re.compile(r"- *[\"']?\./?:(/[\w./-]{1,200})")


def found_in(root: Path) -> tuple[str, PlaceSettings] | None:
    """Returns the file and its place, if the machine has a program for it. Blocking."""
    engine = next((name for name in ("docker", "podman") if shutil.which(name)), "")
    for names, read in ((DEV_CONTAINERS, _dev_container), (COMPOSE, _service), (CONTAINERFILES, _built)):
        for name in names:
            try:
                text = read_small(root / name).decode("utf-8", "replace")
            except OSError:
                continue
            if (place := read(text, engine, root)) is not None:
                return name, place
    return None


def _dev_container(text: str, engine: str, root: Path) -> PlaceSettings | None:
    if shutil.which("devcontainer"):
        return PlaceSettings("dev", "devcontainer exec --workspace-folder . {command}", copy="bundle")
    try:
        found = json.loads(re.sub(r"(?m)^\s*//.*$", "", text))
    except (ValueError, RecursionError):
        return None
    image = found.get("image") if isinstance(found, dict) else None
    if not engine or not isinstance(image, str) or not re.fullmatch(r"[\w./:@-]{1,200}", image):
        return None
    run = f"{engine} run --rm -i -v {{view}}:/workspace -w /workspace {image} sh -c {{command}}"
    return PlaceSettings("dev", run)


def _service(text: str, engine: str, root: Path) -> PlaceSettings | None:
    services = [*_services(text)] if engine else []
    wanted = [one for one in services if one[1]] or [one for one in services if one[2]]
    if not wanted:
        return None
    name, target, _ = wanted[0]
    run = f"{engine} compose run --rm -T -v {{view}}:{target or '/app'} {name} sh -c {{command}}"
    return PlaceSettings(name, run)


def _services(text: str) -> Iterator[tuple[str, str, bool]]:
    inside, indent, name, target, built = False, 0, "", "", False
    for line in [*text.splitlines(), "end:"]:
        words, depth = line.strip(), len(line) - len(line.lstrip(" "))
        if not words or words.startswith("#"):
            continue
        if depth == 0 or (inside and depth == indent):
            if name:
                yield name, target, built
            name, target, built = "", "", False
        if depth == 0:
            inside, indent = words == "services:", 0
        elif inside:
            indent = indent or depth
            if depth == indent and (found := _NAME.match(words)) and words.endswith(":"):
                name = found[0] if found[0] == words[:-1] else ""
            elif match := _MOUNT.match(words):
                target = match[1]
            built = built or words.startswith("build:")


def _built(text: str, engine: str, root: Path) -> PlaceSettings | None:
    name = re.sub(r"[^a-z0-9_.-]", "-", root.name.lower()).strip("-.")
    if not engine or not _NAME.fullmatch(name):
        return None
    folders = [
        line.split(None, 1)[1].strip() for line in text.splitlines() if re.match(r"(?i)WORKDIR\s+\S", line)
    ]
    folder = next((one for one in reversed(folders) if _PATH.fullmatch(one)), "/app")
    run = f"{engine} run --rm -i -v {{view}}:{folder} -w {folder} {shlex.quote(name)} sh -c {{command}}"
    return PlaceSettings(name, run)
