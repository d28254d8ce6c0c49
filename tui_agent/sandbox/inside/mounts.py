"""Mounts of a view: read-only binds, overlays and masks, which finally become the root."""

from __future__ import annotations

import ctypes
import os
import stat
import struct
import time

from tui_agent.sandbox.inside.kernel import (
    DETACH,
    HERE,
    MOUNT_SETATTR,
    NO_DEVICES,
    NO_EXEC,
    NO_SUID,
    PIVOT_ROOT,
    PRIVATE,
    READ_ONLY,
    Failed,
    attach,
    call,
    clone,
    libc,
    memory,
    new_mount,
    restrict,
    syscall,
)

DEVICES = ("null", "zero", "full", "random", "urandom")


class ViewMounts:
    def __init__(self, plan, seeds):
        self.plan, self.seeds, self.stage = plan, seeds, plan["stage"]

    def make(self):
        plan = self.plan
        call("private mounts", libc.mount, "none", "/", None, ctypes.c_ulong(PRIVATE), None)
        # Other mounts will cover the sources.
        shown = [(path, clone(path)) for path in plan["binds"]]
        shown += [(path, clone(source)) for path, source in plan["stores"]]
        lowers = [(path, clone(path)) for path in plan["overlays"]]
        kept = clone(plan["kept"]) if plan["kept"] else None
        home = clone(plan["home"][0]) if plan["home"] else None
        terminal = ["tty"] if plan["terminal"] else []
        devices = [(name, clone(f"/dev/{name}")) for name in (*DEVICES, *terminal)]
        attach(memory(1 << 24, 0o755), self.stage)
        layers = self._layers(lowers)
        if kept is not None:
            os.mkdir(self._below("/.lowerkept"))
            attach(kept, self._below("/.lowerkept"))
        overlays = [self._overlay(number) for number in range(len(lowers))]
        of_machine = [path for path in plan["links"] if path.count("/") == 1]
        for path in of_machine:
            os.symlink(plan["links"][path], self._below(path))
        for path, mode, _ in plan["folders"]:
            if not any(_is_below(path, bind) for bind in plan["binds"]):
                self._in_memory(path, mode)
        if home is not None:
            restrict(home, NO_SUID | NO_DEVICES, "home")
            self._attach(home, plan["home"][1])
        for path in set(plan["links"]).difference(of_machine):
            self._make_folder(os.path.dirname(path))
            os.symlink(plan["links"][path], self._below(path))
        for path, mount in shown:
            restrict(mount, READ_ONLY | NO_SUID | NO_DEVICES, f"read-only {path}")
            self._attach(self._without_sockets(mount) if path in plan["tools"] else mount, path)
            for inner, mode, _ in plan["folders"]:
                if _is_below(inner, path):
                    self._in_memory(inner, mode)
        for path, length in plan["texts"]:
            self._make_folder(os.path.dirname(path))
            with open(self._below(path), "wb") as file:
                file.write(self.seeds.read(length))
        for (path, _), mount in zip(lowers, overlays, strict=True):
            self._attach(mount, path)
        self._devices(devices)
        for path in plan["masks"]:
            self._mask(path)
        self._make_folder("/proc")
        attach(new_mount("proc", {}, NO_SUID | NO_DEVICES | NO_EXEC), self._below("/proc"))
        self._sysctl("user/max_user_namespaces", 0)
        self._sysctl("kernel/pid_max", max(plan["processes"] + 100, 400))
        self._become_root()
        return layers

    def _without_sockets(self, mount):
        """Shows the folder as a read-only overlay: a socket made in it later has no listener there."""
        if not stat.S_ISDIR(os.stat(mount).st_mode):
            return mount
        lower, empty = self._below("/.lowertool"), self._below("/.layers/none")
        for folder in (lower, empty):
            os.makedirs(folder, exist_ok=True)
        attach(mount, lower)
        plain = clone(lower)
        options = {"lowerdir": f"{empty}:{lower}", "userxattr": None}
        try:
            made = new_mount("overlay", options, READ_ONLY | NO_SUID | NO_DEVICES)
        except Failed:
            made = plain
        else:
            os.close(plain)
        call("hide the folder of a tool", libc.umount2, lower, DETACH)
        return made

    def _below(self, path):
        return self.stage + path

    def _make_folder(self, path):
        os.makedirs(self._below(path), 0o755, exist_ok=True)

    def _attach(self, mount, path):
        if stat.S_ISDIR(os.stat(mount).st_mode):
            self._make_folder(path)
        elif not os.path.lexists(self._below(path)):
            self._make_folder(os.path.dirname(path))
            os.close(os.open(self._below(path), os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o444))
        attach(mount, self._below(path))

    def _layers(self, lowers):
        folder = self._below("/.layers")
        os.mkdir(folder)
        attach(memory(self.plan["size"], 0o700), folder)
        for number, (_, mount) in enumerate(lowers):
            os.makedirs(f"{folder}/{number}/w")
            os.mkdir(f"{folder}/{number}/u")
            lower = self._below(f"/.lower{number}")
            os.mkdir(lower)
            attach(mount, lower)
            _be_like(lower, f"{folder}/{number}/u")
        for number, path, kind, mode, length in self.plan["seeds"]:
            content = self.seeds.read(length)
            planted = f"{folder}/{number}/s"
            os.makedirs(planted, exist_ok=True)
            plant(self._below(f"/.lower{number}"), planted, path, kind, mode, content)
        return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def _in_memory(self, path, mode):
        folder = self._below(f"/.layers/{path.replace('/', '|')}")
        os.mkdir(folder)
        os.chmod(folder, mode)
        self._make_folder(path)
        attach(clone(folder), self._below(path))

    def _overlay(self, number):
        folder = self._below(f"/.layers/{number}")
        lower = self._below(f"/.lower{number}")
        if self.plan["kept"] and number == len(self.plan["overlays"]) - 1:
            lower = f"{self._below('/.lowerkept')}:{lower}"
        if os.path.isdir(f"{folder}/s"):
            lower = f"{folder}/s:{lower}"
        options = {
            "lowerdir": lower,
            "upperdir": f"{folder}/u",
            "workdir": f"{folder}/w",
            "userxattr": None,
            "volatile": None,
        }
        return new_mount("overlay", options, NO_SUID | NO_DEVICES)

    def _devices(self, devices):
        self._make_folder("/dev")
        attach(memory(1 << 16, 0o755), self._below("/dev"))
        for name, mount in devices:
            self._attach(mount, f"/dev/{name}")
        os.mkdir(self._below("/dev/pts"))
        attach(
            new_mount("devpts", {"ptmxmode": "0666", "mode": "0620"}, NO_SUID | NO_EXEC),
            self._below("/dev/pts"),
        )
        self._in_memory("/dev/shm", 0o1777)
        links = {"ptmx": "pts/ptmx", "fd": "/proc/self/fd"}
        links |= {
            name: f"/proc/self/fd/{number}" for number, name in enumerate(("stdin", "stdout", "stderr"))
        }
        for name, target in links.items():
            os.symlink(target, self._below(f"/dev/{name}"))

    def _mask(self, path):
        place = self._below(path)
        if not os.path.lexists(place) or os.path.islink(place):
            return
        if os.path.isdir(place):
            attach(new_mount("tmpfs", {"size": "0", "mode": "555"}, READ_ONLY | NO_SUID | NO_DEVICES), place)
            return
        empty = self._below("/.empty")
        os.close(os.open(empty, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o444))
        mount = clone(empty)
        restrict(mount, READ_ONLY, f"mask {path}")
        attach(mount, place)

    def _sysctl(self, name, value):
        try:
            with open(self._below(f"/proc/sys/{name}"), "w") as file:
                file.write(str(value))
        except OSError:
            pass

    def _become_root(self):
        for number in range(len(self.plan["overlays"])):
            call("hide the folder", libc.umount2, self._below(f"/.lower{number}"), DETACH)
        if self.plan["kept"]:
            call("hide what is kept", libc.umount2, self._below("/.lowerkept"), DETACH)
        call("hide the layers", libc.umount2, self._below("/.layers"), DETACH)
        for name in os.listdir(self.stage):
            if name.startswith((".lower", ".layers")):
                os.rmdir(self._below(f"/{name}"))
        # Settings in /proc affect the machine.
        for path in ("/proc", ""):
            attributes = struct.pack("4Q", READ_ONLY, 0, 0, 0)
            syscall(
                f"read-only {path or '/'}",
                MOUNT_SETATTR,
                HERE,
                self.stage + path,
                0,
                attributes,
                len(attributes),
            )
        os.chdir(self.stage)
        syscall("pivot", PIVOT_ROOT, ".", ".")
        call("leave the old root", libc.umount2, ".", DETACH)
        os.chdir("/")


def _is_below(path, folder):
    return path.startswith(f"{folder}/") or path == folder


def _be_like(original, copy):
    there = os.stat(original)
    os.chmod(copy, stat.S_IMODE(there.st_mode))
    if (there.st_uid, there.st_gid) != (os.geteuid(), os.getegid()):
        try:
            os.chown(copy, there.st_uid, there.st_gid)
        except OSError:
            pass


def _own(original, copy):
    """Copies another user's file or folder as our own: the layer cannot store other owners."""
    try:
        there = os.lstat(original)
        if stat.S_ISDIR(there.st_mode):
            os.makedirs(copy, exist_ok=True)
            _be_like(original, copy)
        elif stat.S_ISREG(there.st_mode) and not os.path.lexists(copy):
            with open(original, "rb") as given, open(copy, "xb") as taken:
                while data := given.read(1 << 20):
                    taken.write(data)
            os.chmod(copy, stat.S_IMODE(there.st_mode))
            os.utime(copy, ns=(there.st_atime_ns, there.st_mtime_ns))
    except (FileNotFoundError, PermissionError):
        pass


def plant(lower, upper, path, kind, mode, content):
    """Adds a pending file ("file"), a deletion ("gone"), an empty file with the original's mode ("hidden"),
    or an own copy ("owned").
    """
    parts = path.split("/")
    for end in range(1, len(parts)):
        folder = "/".join(parts[:end])
        if not os.path.isdir(f"{upper}/{folder}"):
            if os.path.lexists(f"{upper}/{folder}"):
                os.unlink(f"{upper}/{folder}")
            os.mkdir(f"{upper}/{folder}")
            if os.path.isdir(f"{lower}/{folder}"):
                _be_like(f"{lower}/{folder}", f"{upper}/{folder}")
    place = f"{upper}/{path}"
    if kind == "owned":
        _own(f"{lower}/{path}", place)
        return
    try:
        there = os.lstat(f"{lower}/{path}")
    except (FileNotFoundError, NotADirectoryError):
        there = None
    if kind == "gone":
        if there is not None:
            os.mknod(place, stat.S_IFCHR, os.makedev(0, 0))
        return
    descriptor = os.open(place, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with open(descriptor, "wb") as file:
        file.write(content)
    is_file = there is not None and stat.S_ISREG(there.st_mode)
    os.chmod(place, mode if mode is not None else stat.S_IMODE(there.st_mode) if is_file else 0o644)
    # Python trusts a compiled file of equal second and size, and make one that is not older. Git needs its
    # index's real time to detect writes within a second.
    if kind == "file" and is_file and int(there.st_mtime) >= int(time.time()):
        os.utime(place, (there.st_mtime + 1, there.st_mtime + 1))
