"""Run inside a view, by its own Python: tries what a command must not be able to do, and prints what it could.

python probes.py OUTSIDE_PORT OUTSIDE_SOCKET OUTSIDE_PID SECRET_FILE
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

PORT, SOCKET, PID, SECRET = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4]
libc = ctypes.CDLL(None, use_errno=True)


def checked(result: int) -> None:
    if result < 0:
        raise OSError(ctypes.get_errno(), "refused")


def write(path: str) -> Callable[[], object]:
    return lambda: Path(path).write_text("x")


def read(path: str) -> Callable[[], object]:
    def something() -> None:
        if not Path(path).read_bytes():
            raise FileNotFoundError(path)

    return something


def connect(family: int, address: Any) -> None:
    with socket.socket(family) as line:
        line.settimeout(2)
        line.connect(address)


def vsock() -> None:
    socket.socket(40, socket.SOCK_STREAM)


def typing() -> None:
    import fcntl
    import termios

    master, slave = os.openpty()
    del master
    fcntl.ioctl(slave, termios.TIOCSTI, b"x")


def seen_processes() -> None:
    names = [name for name in os.listdir("/proc") if name.isdigit()]
    if len(names) <= 3:
        raise OSError("nobody else is here")


TRIES: dict[str, Callable[[], object]] = {
    "write /etc": write("/etc/tui-agent-probe"),
    "write /usr": write("/usr/tui-agent-probe"),
    "write the root": write("/tui-agent-probe"),
    "write the kernel's settings": write("/proc/sys/kernel/core_pattern"),
    "write the kernel's trigger": write("/proc/sysrq-trigger"),
    "write /sys": write("/sys/kernel/uevent_helper"),
    "read a key of the person": read(SECRET),
    "read a secret of the workspace": read(".env"),
    "read passwords": read("/etc/shadow"),
    "read the environment of the first process": read("/proc/1/environ"),
    "leave by the first process": lambda: os.listdir("/proc/1/root/"),
    "connect to the machine's loopback": lambda: connect(socket.AF_INET, ("127.0.0.1", PORT)),
    "connect to the network": lambda: connect(socket.AF_INET, ("192.0.2.1", 9)),
    "connect to a socket of the machine": lambda: connect(socket.AF_UNIX, SOCKET),
    "connect to an abstract socket": lambda: connect(socket.AF_UNIX, f"\0{SOCKET}"),
    "connect to the virtual machine's host": vsock,
    "see other processes": seen_processes,
    "signal another process": lambda: os.kill(PID, 0),
    "signal the first process": lambda: (os.kill(1, signal.SIGKILL), checked(-1)),
    "mount": lambda: checked(libc.mount(b"none", b"/tmp", b"tmpfs", 0, None)),
    "unmount": lambda: checked(libc.umount2(b"/proc", 2)),
    "new users": lambda: checked(libc.unshare(0x10000000)),
    "another root": lambda: os.chroot("/tmp"),
    "a device": lambda: os.mknod("/tmp/device", 0o60600, os.makedev(254, 0)),
    "keys of the session": lambda: checked(
        libc.syscall(250 if os.uname().machine == "x86_64" else 219, 0, -3, 0)
    ),
    "the machine's name": lambda: socket.sethostname("probe"),
    "type into a terminal": typing,
    "higher priority": lambda: os.nice(-5),
}


def could() -> list[str]:
    found = []
    for name, attempt in TRIES.items():
        try:
            attempt()
        except (OSError, SystemError):
            continue
        found.append(name)
    return found


if __name__ == "__main__":
    sys.stdout.write(json.dumps(could()) + "\n")
