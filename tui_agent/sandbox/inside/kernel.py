"""Linux system calls without Python functions."""

from __future__ import annotations

import _socket
import ctypes
import errno
import fcntl
import os
import struct

NEW_SPACES = 0x00020000 | 0x08000000 | 0x10000000 | 0x20000000  # mounts, IPC, users, processes
NEW_NETWORK = 0x40000000
OPEN_TREE, MOVE_MOUNT, FSOPEN, FSCONFIG, FSMOUNT, MOUNT_SETATTR = 428, 429, 430, 431, 432, 442
PIVOT_ROOT, KEYCTL, CAPSET = (41, 219, 91) if os.uname().machine == "aarch64" else (155, 250, 126)
READ_ONLY, NO_SUID, NO_DEVICES, NO_EXEC = 1, 2, 4, 8
RECURSIVE, EMPTY_PATH, HERE = 0x8000, 0x1000, -100
DETACH = 2
DEATH_SIGNAL, DUMPABLE, SECCOMP, DROP_BOUNDING, NO_NEW_PRIVILEGES = 1, 4, 22, 24, 38
PRIVATE = (1 << 18) | (1 << 14)  # recursive
#: CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_FSETID: root's rights on others' files.
FOR_ROOT = 0b11011

#: Files and folders in memory.
MOST_NAMES = 1_000_000

libc = ctypes.CDLL(None, use_errno=True)


class Failed(Exception):
    """A step refused by the kernel."""


def call(step, function, *arguments):
    """Raises `Failed` with the step and the error number."""
    given = [a.encode("utf-8", "surrogateescape") if isinstance(a, str) else a for a in arguments]
    result = function(*given)
    if result < 0:
        raise Failed(step, ctypes.get_errno())
    return result


def syscall(step, number, *arguments):
    values = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    return call(step, libc.syscall, ctypes.c_long(number), *values)


def prctl(option, *arguments):
    call(f"prctl {option}", libc.prctl, option, *(ctypes.c_ulong(each) for each in arguments))


def clone(path):
    """Returns a detached, recursive copy of the mount."""
    return syscall(f"open {path}", OPEN_TREE, HERE, path, 1 | os.O_CLOEXEC | RECURSIVE)


def new_mount(kind, options, attributes=0):
    """Returns the descriptor of a new, detached file system."""
    context = syscall(f"new {kind}", FSOPEN, kind, 1)
    for key, value in options.items():
        how = 0 if value is None else 1
        syscall(f"{kind} {key}", FSCONFIG, context, how, key, value, 0)
    syscall(f"create {kind}", FSCONFIG, context, 6, None, None, 0)
    mount = syscall(f"mount {kind}", FSMOUNT, context, 1, attributes)
    os.close(context)
    return mount


def restrict(mount, attributes, step):
    wanted = struct.pack("4Q", attributes, 0, 0, 0)
    syscall(step, MOUNT_SETATTR, mount, "", EMPTY_PATH | RECURSIVE, wanted, len(wanted))


def attach(mount, path):
    syscall(f"attach {path}", MOVE_MOUNT, mount, "", HERE, path, 4)
    os.close(mount)


def memory(size, mode):
    """Returns a detached tmpfs; the number of inodes bounds its kernel memory."""
    options = {"size": str(size), "nr_inodes": str(MOST_NAMES), "mode": f"{mode:o}"}
    return new_mount("tmpfs", options, NO_SUID | NO_DEVICES)


def map_own_ids(user, group):
    write("/proc/self/setgroups", "deny")
    write("/proc/self/uid_map", f"{user} {user} 1")
    write("/proc/self/gid_map", f"{group} {group} 1")


def map_users():
    """Enters new namespaces with unchanged user ids: all for root, otherwise the own one."""
    if os.geteuid():
        user, group = os.geteuid(), os.getegid()
        call("new namespaces", libc.unshare, NEW_SPACES)
        map_own_ids(user, group)
        return
    ours, waits = os.pipe()
    outside, pid = os.getpid(), os.fork()
    if pid == 0:
        os.close(waits)
        os.read(ours, 1)
        try:
            for kind in ("uid_map", "gid_map"):
                with open(f"/proc/self/{kind}") as file:
                    ranges = [line.split() for line in file]
                write(f"/proc/{outside}/{kind}", "".join(f"{first} {first} {n}\n" for first, _, n in ranges))
        except Failed:
            os._exit(1)
        os._exit(0)
    os.close(ours)
    call("new namespaces", libc.unshare, NEW_SPACES)
    os.close(waits)
    if os.waitpid(pid, 0)[1]:
        raise Failed("map users", errno.EPERM)


def write(path, text):
    try:
        with open(path, "w") as file:
            file.write(text)
    except OSError as error:
        raise Failed(f"write {path}", error.errno) from None


def loopback_up():
    one = _socket.socket(_socket.AF_INET, _socket.SOCK_DGRAM, 0)
    fcntl.ioctl(one.fileno(), 0x8914, struct.pack("16sh14x", b"lo", 0x1 | 0x40))
    one.close()


def received(line, size, most):
    text, parts, _, _ = line.recvmsg(size, _socket.CMSG_LEN(4 * most))
    descriptors = []
    for _, _, data in parts:
        descriptors += struct.unpack(f"{len(data) // 4}i", data[: len(data) // 4 * 4])
    return text, descriptors


def drop_capabilities(plan):
    """Drops all but root's rights on files for good, and installs the system call filter."""
    kept = FOR_ROOT if os.geteuid() == 0 and plan["isolated"] == "overlay" else 0
    for capability in range(64):
        if not kept >> capability & 1:
            libc.prctl(DROP_BOUNDING, capability, 0, 0, 0)
    header = struct.pack("Ii", 0x20080522, 0)
    syscall("capabilities", CAPSET, header, struct.pack("6I", kept, kept, 0, 0, 0, 0))
    syscall("keyring", KEYCTL, 1, None)
    prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    code = bytes.fromhex(plan["filter"])
    if code:
        held = ctypes.create_string_buffer(code, len(code))
        program = struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(held))
        call("system call filter", libc.prctl, SECCOMP, ctypes.c_ulong(2), program)
