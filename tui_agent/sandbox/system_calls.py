"""System calls refused in views: a classic BPF filter that returns "not permitted"."""

from __future__ import annotations

import os
import struct

#: Numbers on x86-64 and 64-bit ARM: mounts, namespaces, keys, other processes' memory, the clock.
_CALLS = {
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "open_tree_attr": (467, 467),
    "unshare": (272, 97),
    "setns": (308, 268),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "userfaultfd": (323, 282),
    "open_by_handle_at": (304, 265),
    "name_to_handle_at": (303, 264),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "syslog": (103, 116),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "adjtimex": (159, 171),
    "clock_adjtime": (305, 266),
    "vhangup": (153, 58),
}
_SOCKET, _PAIR, _IOCTL = (41, 198), (53, 199), (16, 29)
#: Process creation, and its flags for new namespaces, which are refused.
_CLONE, _CLONE3, _NEW_SPACES = (56, 220), (435, 435), 0x7E020000
#: ioctl: inserts characters into a terminal's input.
_TYPING = (0x5412, 0x541C)
#: Unix, IPv4, IPv6, netlink. Other families bypass the view's network.
_FAMILIES = (1, 2, 10, 16)
#: Unnamed socket pairs: streams and sequenced packets.
_PAIRS = (1, 5)
_LOAD, _EQUAL, _AT_LEAST, _MASK, _RETURN = 0x20, 0x15, 0x35, 0x54, 0x06
_ALLOW, _DENY = 0x7FFF0000, 0x00050000 | 1
#: ENOSYS: programs fall back to the older call. Filters cannot inspect the newer call's arguments.
_MISSING = 0x00050000 | 38
_NUMBER, _MACHINE, _FIRST, _SECOND = 0, 4, 16, 24


def refused(*, sockets: bool = True) -> bytes:
    """Empty if this system's call numbers are unknown. Without its own network, a view has no `sockets`
    except connected pairs."""
    column = {"x86_64": 0, "aarch64": 1}.get(os.uname().machine)
    if column is None:
        return b""
    code = [(_LOAD, 0, 0, _MACHINE), (_EQUAL, 1, 0, (0xC000003E, 0xC00000B7)[column]), (_RETURN, 0, 0, _DENY)]
    code.append((_LOAD, 0, 0, _NUMBER))
    if column == 0:  # the same calls under other numbers (x32)
        code += [(_AT_LEAST, 0, 1, 0x40000000), (_RETURN, 0, 0, _DENY)]
    for numbers in _CALLS.values():
        code += [(_EQUAL, 0, 1, numbers[column]), (_RETURN, 0, 0, _DENY)]
    code += [(_EQUAL, 0, 1, _CLONE3[column]), (_RETURN, 0, 0, _MISSING)]
    spaces = [(_LOAD, 0, 0, _FIRST), (_MASK, 0, 0, _NEW_SPACES), (_EQUAL, 1, 0, 0), (_RETURN, 0, 0, _DENY)]
    code += [(_EQUAL, 0, len(spaces) + 1, _CLONE[column]), *spaces, (_RETURN, 0, 0, _ALLOW)]
    typing = [(_LOAD, 0, 0, _SECOND)]
    for request in _TYPING:
        typing += [(_EQUAL, 0, 1, request), (_RETURN, 0, 0, _DENY)]
    typing.append((_RETURN, 0, 0, _ALLOW))
    code += [(_EQUAL, 0, len(typing), _IOCTL[column]), *typing]
    families = _only([(_LOAD, 0, 0, _FIRST)], _FAMILIES if sockets else ())
    code += [(_EQUAL, 0, len(families), _SOCKET[column]), *families]
    if not sockets:
        pairs = _only([(_LOAD, 0, 0, _SECOND), (_MASK, 0, 0, 0xF)], _PAIRS)
        code += [(_EQUAL, 0, len(pairs), _PAIR[column]), *pairs]
    code.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("HBBI", *step) for step in code)


def _only(code: list[tuple[int, int, int, int]], values: tuple[int, ...]) -> list[tuple[int, int, int, int]]:
    for value in values:
        code += [(_EQUAL, 0, 1, value), (_RETURN, 0, 0, _ALLOW)]
    return [*code, (_RETURN, 0, 0, _DENY)]
