"""An sshd on loopback with keys of its own, and the `ssh` that reaches it as the host `far`."""

from __future__ import annotations

import getpass
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

PROGRAM = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
_SECONDS = 60.0


class FarHost:
    """A running sshd. `folder` holds its keys, and `bin`, the path of what it starts."""

    def __init__(self, folder: Path, home: Path) -> None:
        self.folder, self._home = folder, home
        self._port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    def set_up(self) -> None:
        """Writes keys and settings, and an `ssh` and a `tui-agent` into the folders `near` and `bin`."""
        for name in ("host", "user"):
            command = ("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.folder / name))
            subprocess.run(command, check=True)
        shutil.copy(self.folder / "user.pub", self.folder / "authorized_keys")
        for name in ("near", "bin"):
            (self.folder / name).mkdir()
        variables = {
            "PATH": f"{self.folder / 'bin'}:/usr/bin:/bin",
            "TUI_AGENT_HOME": str(self._home),
            "HOME": str(self.folder),
            "TUI_AGENT_START__KEEP_READY": "false",
            **{
                name: value
                for name, value in os.environ.items()
                if name.startswith(("TUI_AGENT_", "OPENAI_", "TMPDIR"))
            },
        }
        settings = {
            "Port": self._port,
            "ListenAddress": "127.0.0.1",
            "HostKey": self.folder / "host",
            "AuthorizedKeysFile": self.folder / "authorized_keys",
            "PidFile": "none",
            "StrictModes": "no",
            "UsePAM": "no",
            "PermitRootLogin": "prohibit-password",
            "SetEnv": " ".join(f"{name}={value}" for name, value in variables.items()),
        }
        (self.folder / "sshd_config").write_text(
            "".join(f"{name} {value}\n" for name, value in settings.items())
        )
        client = {
            "HostName": "127.0.0.1",
            "Port": self._port,
            "User": getpass.getuser(),
            "IdentityFile": self.folder / "user",
            "IdentitiesOnly": "yes",
            "StrictHostKeyChecking": "no",
            "UserKnownHostsFile": "/dev/null",
            "LogLevel": "ERROR",
        }
        (self.folder / "ssh_config").write_text(
            "Host far\n" + "".join(f"  {name} {value}\n" for name, value in client.items())
        )
        real = shutil.which("ssh")
        self._script("near/ssh", f'exec {real} -F {shlex.quote(str(self.folder / "ssh_config"))} "$@"')
        self.install()

    def install(self, version: str = "") -> None:
        """Installs the program on the far side; with `version`, one that gives itself out as that."""
        shown = f'[ "$*" = --version ] && echo "tui-agent {version}" && exit\n' if version else ""
        self._script("bin/tui-agent", f'{shown}exec {shlex.quote(sys.executable)} -m tui_agent "$@"')

    def share_a_connection(self) -> None:
        """Opens a connection that each `ssh` uses from now on, as `ControlMaster` does."""
        self._control_path()
        subprocess.run([self.folder / "near" / "ssh", "-fNM", "far"], check=True)

    @contextmanager
    def shared_connections(self) -> Generator[None]:
        """Has `ssh` keep and share its first connection."""
        self._control_path("ControlMaster auto", "ControlPersist 600")
        yield
        subprocess.run([self.folder / "near" / "ssh", "-O", "exit", "far"], check=True)

    def _control_path(self, *more: str) -> None:
        path = f"/tmp/tui-agent-{os.getpid()}-{self._port}"  # At most 108 bytes, with a suffix of ssh.
        with (self.folder / "ssh_config").open("a") as settings:
            settings.writelines(f"  {line}\n" for line in (f"ControlPath {path}", *more))

    def start(self) -> None:
        command = [str(PROGRAM), "-D", "-e", "-f", str(self.folder / "sshd_config")]
        self._process = subprocess.Popen(command, stderr=subprocess.DEVNULL, start_new_session=True)
        until = time.monotonic() + _SECONDS
        while True:
            with suppress(OSError), socket.create_connection(("127.0.0.1", self._port)):
                return
            assert self._process.poll() is None and time.monotonic() < until, "sshd did not start"
            time.sleep(0.02)

    def stop(self) -> None:
        """Ends the server; connections go on."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait()

    def drop(self) -> None:
        """Cuts all connections, as a lost line does: the processes of the server are killed."""
        for pid in _children(self._process.pid if self._process else 0):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _script(self, name: str, words: str) -> None:
        path = self.folder / name
        path.write_text(f"#!/bin/sh\n{words}\n")
        path.chmod(0o755)


@contextmanager
def far_host(folder: Path, home: Path) -> Generator[FarHost]:
    folder.mkdir()
    host = FarHost(folder, home)
    host.set_up()
    host.start()
    try:
        yield host
    finally:
        host.drop()
        host.stop()


def _children(parent: int) -> list[int]:
    """The processes of sshd for its connections, the deepest first."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError, IndexError):
                name, _, rest = (
                    (entry / "stat").read_text(errors="replace").partition(" (")[2].rpartition(") ")
                )
                if int(rest.split()[1]) == parent and name.startswith("sshd"):
                    found += [*_children(int(entry.name)), int(entry.name)]
    return found


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]
