"""One run at a time in one folder: locks that the system drops when their holder ends, however it ends."""

import contextlib
import fcntl
from collections.abc import Callable, Iterator
from pathlib import Path


@contextlib.contextmanager
def locked(
    path: Path, *, shared: bool = False, on_wait: Callable[[], object] = lambda: None
) -> Iterator[int]:
    """Hold a lock on a file for the length of a block; wait for it if another process holds it.

    What is yielded is the lock's file descriptor: a process that inherits it holds the lock as well.

    Parameters
    ----------
    path : Path
        The lock's file, made if it is not there; it stays, since removing it would let two processes in.
    shared : bool
        Whether others may hold it shared at the same time.
    on_wait : callable
        Called once when the lock is not free, before waiting.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    with open(path, "a") as file:
        try:
            fcntl.flock(file, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            on_wait()
            fcntl.flock(file, kind)
        yield file.fileno()
