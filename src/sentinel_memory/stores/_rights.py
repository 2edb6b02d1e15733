"""The rights of files, and which owners' files are trusted.

In a folder that everybody may write in, only files of the caller are used, and no links, since
anybody may have put them there. In any other folder its owner and its group vouch for its files.

A file that takes the place of another gets its rights: owner, group, mode, access-control list
(of the POSIX kind, which Linux keeps in an extended attribute). Set-id bits are never taken over:
the new file has other content, and perhaps another owner.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from contextlib import suppress
from typing import Final, NamedTuple

__all__ = [
    "NOT_SUPPORTED",
    "Rights",
    "give_rights",
    "make_private",
    "may_change",
    "refuse_foreign",
    "refuse_planted_link",
    "rights_of",
]

NOT_SUPPORTED: Final = frozenset(
    getattr(errno, name)
    for name in ("ENOLCK", "ENOSYS", "ENOTSUP", "EOPNOTSUPP")
    if hasattr(errno, name)
)
_ACL: Final = "system.posix_acl_access"
_ACL_GROUP, _ACL_MASK = 0x04, 0x10  # ACL_GROUP_OBJ and ACL_MASK of acl(5)
_NO_ACL: Final = NOT_SUPPORTED | {getattr(errno, "ENODATA", errno.ENOSYS)}
_ACL_REFUSED: Final = NOT_SUPPORTED | {errno.EPERM, errno.EINVAL}


class Rights(NamedTuple):
    """The rights of a file: owner, group, mode without set-id bits, access-control list."""

    user: int
    group: int
    mode: int
    acl: bytes | None


def refuse_planted_link(path: str, folder: str, *, last: bool) -> None:
    """Refuse the link at ``path`` if everybody may write in its folder.

    A link to a folder on the way to the file (not ``last``) is refused only if another user made
    it.
    """
    if os.stat(folder).st_mode & stat.S_IWOTH and (last or _is_foreign(os.lstat(path))):
        raise PermissionError(
            errno.EPERM,
            "a symbolic link in a folder that everybody may write in is not followed;"
            " give the path that it stands for",
            path,
        )


def _is_foreign(status: os.stat_result) -> bool:
    return hasattr(os, "geteuid") and status.st_uid != os.geteuid()


def refuse_foreign(status: os.stat_result, path: str) -> None:
    """Refuse a file of somebody else in a folder that everybody may write in."""
    if _is_foreign(status) and os.stat(os.path.dirname(path)).st_mode & stat.S_IWOTH:
        raise PermissionError(
            errno.EPERM,
            "it belongs to another user, in a folder that everybody may write in, so anybody"
            " may have put it there; use a folder of your own or of your group",
            path,
        )


def make_private(fd: int) -> None:
    """Give a file just made the mode 600, whatever the umask is."""
    if stat.S_IMODE(os.fstat(fd).st_mode) != 0o600 and hasattr(os, "fchmod"):
        os.fchmod(fd, 0o600)


def rights_of(fd: int) -> Rights:
    """The rights of the open file ``fd``."""
    status = os.fstat(fd)
    return Rights(status.st_uid, status.st_gid, status.st_mode & 0o777, _acl_of(fd))


def give_rights(fd: int, like: Rights) -> None:
    """Give the open file ``fd`` the rights ``like``.

    Owner, group and access-control list are kept where the system allows it. Where it does not,
    nobody gets more rights than before: if the group cannot be kept, the new group gets only the
    rights that both the old group and all others had.
    """
    group_kept = _give_owner(fd, os.fstat(fd), like)
    mode, acl = like.mode, like.acl
    # With a list, the group bits of the mode are its mask.
    listed = None if acl is None else _entry(acl, _ACL_GROUP) & _entry(acl, _ACL_MASK)
    group_bits = mode >> 3 & 7 if listed is None else listed
    if not group_kept:
        group_bits &= mode & 7
        acl = None if acl is None else _with_entry(acl, _ACL_GROUP, group_bits)
    given = _give_acl(fd, acl)
    if acl is None or not given:
        # The bits of the group; with a list, they are its mask.
        mode = mode & ~0o070 | (group_bits if given or acl is not None else 0) << 3
    if mode != stat.S_IMODE(os.fstat(fd).st_mode) and hasattr(os, "fchmod"):
        os.fchmod(fd, mode)


def may_change(status: os.stat_result) -> bool:
    """Whether this process may change the rights of the file."""
    return hasattr(os, "geteuid") and os.geteuid() in (0, status.st_uid)


def _give_owner(fd: int, own: os.stat_result, like: Rights) -> bool:
    """Whether the group of the file is now that of ``like``."""
    if (own.st_uid, own.st_gid) == (like.user, like.group) or not hasattr(os, "fchown"):
        return True
    for owner in (like.user, -1):  # -1: a user who may not give a file away may keep its group
        with suppress(OSError):
            os.fchown(fd, owner, like.group)
            return True
    return own.st_gid == like.group


def _acl_of(fd: int) -> bytes | None:
    if sys.platform != "linux":
        return None
    try:
        return os.getxattr(fd, _ACL)
    except OSError as error:
        if error.errno in _NO_ACL:
            return None
        raise


def _give_acl(fd: int, acl: bytes | None) -> bool:
    """Whether the file now has this list, and no other that its folder gave it."""
    if sys.platform != "linux":
        return acl is None
    if acl == _acl_of(fd):
        return True
    try:
        if acl is None:
            os.removexattr(fd, _ACL)
        else:
            os.setxattr(fd, _ACL, acl)
    except OSError as error:
        if error.errno not in _ACL_REFUSED:
            raise
        return False
    return True


def _entry(acl: bytes, tag: int) -> int:
    """The permissions, 0 to 7, in the entry of that tag: all if there is none."""
    at = _position(acl, tag)
    return 7 if at is None else acl[at + 2] & 7


def _with_entry(acl: bytes, tag: int, permissions: int) -> bytes:
    at = _position(acl, tag)
    return acl if at is None else acl[: at + 2] + bytes([permissions]) + acl[at + 3 :]


def _position(acl: bytes, tag: int) -> int | None:
    """The offset of the entry of that tag; entries of 8 bytes, tag first, follow a header of 4."""
    for at in range(4, len(acl) - 7, 8):
        if int.from_bytes(acl[at : at + 2], "little") == tag:
            return at
    return None
