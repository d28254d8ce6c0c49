"""What Linux and macOS do differently with files: a sync that reaches the disk, and what a file has besides its bytes.

Both take open descriptors, so that nothing is led astray by a name.
"""

from __future__ import annotations

import errno
import fcntl
import os

#: On macOS a plain sync leaves the bytes in the drive's cache, where a power cut takes them.
_FULL_SYNC = getattr(fcntl, "F_FULLFSYNC", None)
#: What copyfile(3) calls access control lists and extended attributes.
_ACL, _ATTRIBUTES = 1 << 0, 1 << 2
#: A file system that has no attributes, one that we may not write, one that is gone again.
_NOT_OURS = (
    errno.ENOTSUP,
    errno.EPERM,
    errno.EACCES,
    getattr(errno, "ENOATTR", errno.ENODATA),
    errno.ENODATA,
)


def sync(descriptor: int) -> None:
    """Wait until a file or a folder is on the disk itself. Raises OSError."""
    if _FULL_SYNC is not None:
        try:
            fcntl.fcntl(descriptor, _FULL_SYNC)
            return
        except OSError:
            pass  # a file system that cannot, a network mount say
    os.fsync(descriptor)


def copy_attributes(source: int, target: int) -> None:
    """Give one file the extended attributes (tags) and access control lists of another. Raises OSError.

    What the file system does not have, or we may not set, is left out.
    """
    if hasattr(os, "listxattr"):
        _copy_each(source, target)
    else:
        _copy_all(source, target)


def _copy_each(source: int, target: int) -> None:
    try:
        names = os.listxattr(source)
    except OSError as error:
        _pass_over(error)
        return
    for name in names:
        try:
            os.setxattr(target, name, os.getxattr(source, name))
        except OSError as error:
            _pass_over(error)


def _copy_all(source: int, target: int) -> None:
    """By the C library of macOS, which Python has no function for."""
    import ctypes

    copy = getattr(ctypes.CDLL(None, use_errno=True), "fcopyfile", None)
    if copy is not None and copy(source, target, None, ctypes.c_uint32(_ACL | _ATTRIBUTES)) < 0:
        code = ctypes.get_errno()
        _pass_over(OSError(code, os.strerror(code)))


def _pass_over(error: OSError) -> None:
    if error.errno not in _NOT_OURS:
        raise error
