"""The user's key: what builds remember is sealed with it, so that nobody else can make it up.

In: the environment. Out: 32 bytes. Not done here: sealing (``ingot_artifacts.store.trust``,
``engine.cache.unchanged``).

The key decides what is believed and no byte of what is made: without it, or with another,
everything is built again and comes out the same. It lies outside of the cache: who can write there
must not find it there. Imports nothing that takes time.
"""

import os
import stat

TYPE_CHECKING = False  # `typing` costs milliseconds
if TYPE_CHECKING:
    from ingot_compiler.ir.errors import UserError

KEY_BYTES = 32
# NOFOLLOW: what a link points to is somebody else's choice. NONBLOCK: a pipe does not hold us up.
_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


def key_path() -> str:
    """Return where the key is: ``$XDG_STATE_HOME/ingot/key``, else ``~/.local/state/ingot/key``."""
    base = os.environ.get("XDG_STATE_HOME", "")
    # The XDG specification: a relative path is invalid and is ignored.
    return os.path.join(
        base if os.path.isabs(base) else os.path.expanduser("~/.local/state"), "ingot", "key"
    )


def user_key() -> bytes:
    """Return the key; it is made when it is first asked for.

    Raises:
        UserError: it is not the user's alone, damaged, or cannot be made.
    """
    path = key_path()
    try:
        return _read(path)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise _cannot("read", path, error) from error
    try:
        _make(path)
        return _read(path)
    except OSError as error:
        raise _cannot("made", path, error) from error


def known_key() -> bytes:
    """Return the key for what writes nothing; where none can be had, a random one, with which
    nothing holds."""
    try:
        return _read(key_path())
    except Exception:  # noqa: BLE001  # what is wrong with the key is told by whoever needs it
        return os.urandom(KEY_BYTES)


def _read(path: str) -> bytes:
    descriptor = os.open(path, _READ)
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
            raise _not_private(path, found)
        key = os.read(descriptor, KEY_BYTES + 1)
    finally:
        os.close(descriptor)
    if len(key) != KEY_BYTES:
        raise _damaged(path, len(key))
    return key


def _make(path: str) -> None:
    """Write a new key, on the disk before it has its name: a lost one makes every cache useless.
    Who was faster is right."""
    folder = os.path.dirname(path)
    os.makedirs(folder, 0o700, exist_ok=True)
    temporary = f"{path}.{os.urandom(8).hex()}.part"
    descriptor = os.open(temporary, _WRITE, 0o600)
    try:
        os.write(descriptor, os.urandom(KEY_BYTES))
        os.fsync(descriptor)
        try:
            os.link(temporary, path)
        except FileExistsError:
            return
    finally:
        os.close(descriptor)
        os.unlink(temporary)
    _sync_folder(folder)


def _sync_folder(folder: str) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _not_private(path: str, status: os.stat_result) -> "UserError":
    from ingot_compiler.ir.errors import UserError

    why = (
        f"expected a file of user {os.geteuid()} with mode 0600, got one of user {status.st_uid} "
        f"with mode {stat.S_IMODE(status.st_mode):04o}; whoever knows the key can make up what a "
        "build remembers"
    )
    do = "delete it: a new one is made, and what caches remember is made again"
    return UserError("the key that seals the cache is not private", path, why, do)


def _damaged(path: str, size_bytes: int) -> "UserError":
    from ingot_compiler.ir.errors import UserError

    why = f"expected {KEY_BYTES} bytes, got {'more' if size_bytes > KEY_BYTES else size_bytes}"
    do = "delete it: a new one is made, and what caches remember is made again"
    return UserError("the key that seals the cache is damaged", path, why, do)


def _cannot(what: str, path: str, error: OSError) -> "UserError":
    from ingot_compiler.ir.errors import UserError
    from ingot_runtime.option_ref import OptionRef

    do = (
        "make its folder writable for you, name another one by XDG_STATE_HOME, or share the cache (",
        OptionRef("cache-shared"),
        ")",
    )
    why = error.strerror or str(error)
    return UserError(f"the key that seals the cache cannot be {what}", path, why, do)
