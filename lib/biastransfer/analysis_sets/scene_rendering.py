"""Drawing many scenes to picture files: on two processes where that pays, the same bytes on any number."""

import concurrent.futures
import io
import multiprocessing
import os
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from .scene_drawing import draw_scene
from .scene_records import Record, record

_PAYS_FROM = 48  # scenes; below, starting processes takes longer than it saves


@dataclass(frozen=True)
class Job:
    """A scene to draw: what it is called by (``key``), its content and seed, its side in pixels, its file."""

    key: tuple
    content: tuple[str, ...]
    seed: tuple[int, ...]
    size: int
    file: Path


def render(jobs: Sequence[Job], workers: int = 2) -> list[Record]:
    """Draw every job's scene into its file and return what is annotated of it, in the order of the jobs.

    Processes are forked where the platform allows it safely (Linux) and there are enough scenes for two.
    """
    workers = min(workers, os.cpu_count() or 1)
    if len(jobs) < _PAYS_FROM or workers < 2 or sys.platform != "linux":
        return [_draw(job) for job in jobs]
    context = multiprocessing.get_context("fork")
    with concurrent.futures.ProcessPoolExecutor(workers, context, _end_with, (os.getpid(),)) as pool:
        return list(pool.map(_draw, jobs, chunksize=16))


def jpeg_bytes(image) -> bytes:
    """Return an (H, W, 3) uint8 array as a JPEG file: quality 95, colour not subsampled."""
    buffer = io.BytesIO()
    Image.fromarray(image).save(buffer, "JPEG", quality=95, subsampling=0)
    return buffer.getvalue()


def _end_with(parent: int) -> None:
    """End this process soon after its parent ended, which, killed, cannot say so."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _draw(job: Job) -> Record:
    scene = draw_scene(job.content, job.seed, job.size)
    job.file.write_bytes(jpeg_bytes(scene.image))
    return record(job.key, scene)
