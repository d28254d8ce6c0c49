"""Settings of places, and the processes that a command left."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from tui_agent.store.event import Event
from tui_agent.store.state import State

#: The beginning of a command line that no other test has.
SLEEP = f"sleep 9{os.getpid()}"

#: A tiny image, made of a static busybox.
IMAGE = "localhost/tui-agent-test"


def places(*found: Mapping[str, object]) -> tuple[str, ...]:
    return (f"places={json.dumps(found)}",)


def running(words: str) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if line.startswith(words):
            found.append(line)
    return found


def all_ended(words: str) -> None:
    """Waits until no process with this command line is left."""
    until = time.monotonic() + 10
    while running(words):
        assert time.monotonic() < until, running(words)
        time.sleep(0.05)


def when_printed(line: str, event: asyncio.Event) -> Callable[[Event, State], None]:
    """A listener that sets `event` if a running command printed this as its last line."""

    def look(_: Event, state: State) -> None:
        if any(one.line == line for one in state.commands.running):
            event.set()

    return look


#: The engines that are tried, where they are installed and run.
ENGINES = ("podman", "docker")


def container_words(folder: Path, engine: str = "podman") -> tuple[list[str], str]:
    """The words that run a container of `IMAGE`, and the reason if the engine cannot."""
    program, shell = shutil.which(engine), shutil.which("busybox")
    if not program or not shell:
        return [], f"{engine} and a static busybox are not installed"
    if engine == "docker":
        asked = subprocess.run([program, "info"], capture_output=True, timeout=60, check=False)
        if asked.returncode or b"\nServer:\n ERROR" in asked.stdout:
            return [], "no daemon of docker runs"
    (folder / "bin").mkdir()
    (folder / "tmp").mkdir()
    shutil.copy(shell, folder / "bin" / "busybox")
    for name in subprocess.check_output([shell, "--list"], text=True).split():
        if name != "busybox":
            (folder / "bin" / name).symlink_to("busybox")
    packed = folder.parent / "image.tar"
    subprocess.run(["tar", "-C", str(folder), "-cf", str(packed), "."], check=True)
    quiet = ["-q"] if engine == "podman" else []
    subprocess.run([program, "import", *quiet, str(packed), IMAGE], capture_output=True, check=False)
    why = ""
    for more in ([], ["--ulimit", "nofile=1024:1024", "--ulimit", "nproc=4096:4096"]):
        for runtime in ([], ["--runtime", "runc"]):
            words = [program, *runtime, "run", "--rm", "--network", "none", *more]
            tried = subprocess.run(
                [*words, IMAGE, "true"], capture_output=True, text=True, timeout=60, check=False
            )
            if tried.returncode == 0:
                return words, ""
            why = tried.stderr.strip()[-300:]
    return [], f"{engine} cannot run a container here: {why}"
