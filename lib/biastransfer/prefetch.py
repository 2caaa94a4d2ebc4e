"""Work done ahead of its use by one thread: the next batches are decoded while the network computes."""

import contextlib
import queue
import threading
from collections.abc import Iterable, Iterator


@contextlib.contextmanager
def ahead(items: Iterable, depth: int = 3) -> Iterator[Iterator]:
    """Run an iterable in a thread of its own, a few items ahead of whoever uses them.

    Parameters
    ----------
    items : iterable
        Its items come in its own order; all of its code runs in the one thread, so that a random generator
        that only it uses gives the numbers it would give without a thread.
    depth : int
        Finished items that wait, at most; memory holds one more.

    Yields
    ------
    iterator
        Of the same items; an error of ``items`` is raised where its item would have come. When the block is
        left, however it is left, the thread is stopped and has ended.

    Examples
    --------
    >>> with ahead(range(3)) as numbers:
    ...     list(numbers)
    [0, 1, 2]
    """
    made: queue.Queue = queue.Queue(depth)
    stopped = threading.Event()

    def offer(entry) -> bool:
        while not stopped.is_set():
            with contextlib.suppress(queue.Full):
                made.put(entry, timeout=0.05)
                return True
        return False

    def work() -> None:
        try:
            for item in items:
                if not offer((item, None)):
                    return
            offer((None, StopIteration()))
        except BaseException as error:  # whatever it is, it belongs to the thread that waits
            offer((None, error))

    def take() -> Iterator:
        while True:
            item, error = made.get()
            if isinstance(error, StopIteration):
                return
            if error is not None:
                raise error
            yield item

    thread = threading.Thread(target=work, name="ahead", daemon=True)
    thread.start()
    try:
        yield take()
    finally:
        stopped.set()
        thread.join()
