"""The C library's allocator, told to keep what a forward pass frees: the next pass takes it again."""

import ctypes
import functools
import os
import sys

_TRIM, _MMAP = -1, -3  # M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of malloc.h
_KEPT, _LARGE = 512 * 2**20, 256 * 2**20  # bytes
_OWN = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TOP_PAD_", "GLIBC_TUNABLES")


@functools.cache
def keep_freed_memory() -> bool:
    """Let this process keep up to 512 MiB of freed memory, and tell whether it now does.

    Otherwise glibc gives large blocks back after every layer and the kernel hands out, and clears, new pages
    for the next: a third of a small network's time on a CPU. Values do not change. Nothing is done on
    another C library, or where the environment sets one of glibc's own variables (MALLOC_TRIM_THRESHOLD_,
    MALLOC_MMAP_THRESHOLD_, MALLOC_TOP_PAD_, GLIBC_TUNABLES): whoever set it has the last word.
    """
    if not sys.platform.startswith("linux") or any(os.environ.get(name) for name in _OWN):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    return bool(mallopt(_MMAP, _LARGE)) and bool(mallopt(_TRIM, _KEPT))
