"""What benchmarks found, kept for the book: a ratio a row, with the machine that it was measured on.

Each benchmark calls `keep` for a ratio and `write(__file__)` at its end; the page *Benchmarks* shows them.
"""

import datetime
import os
import platform
import subprocess
import sys
from pathlib import Path

import pandas as pd

from biastransfer import paths

ROWS: list[dict] = []


def keep(what: str, value: float, must: str = "", note: str = "") -> None:
    """Keep one figure: what over what, its value, what it must be, and what else there is to know."""
    ROWS.append({"what": what, "value": float(f"{value:.4g}"), "must": must, "note": note})


def ratio(what: str, value: float, must: str = "", note: str = "") -> None:
    """Print a figure beside what it must be, and keep it."""
    said = f"must be {must}" if must else "for comparison"
    print(f"{what}: {value:.3g} ({said}{'; ' if note else ''}{note})")
    keep(what, value, must, note)


def write(file: str, **settings) -> Path:
    """Write what was kept to ``data/results/benchmarks/<file's name>.csv``, whole; return its path.

    ``settings`` are those of the benchmark, such as its clock.
    """
    torch = sys.modules.get("torch")
    facts = {
        "machine": machine(),
        "threads": torch.get_num_threads() if torch else "",
        "load": round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else "",
        "settings": ", ".join(f"{name} {value}" for name, value in settings.items()),
        "versions": f"Python {platform.python_version()}" + (f", torch {torch.__version__}" if torch else ""),
        "commit": commit(),
        "date": datetime.date.today().isoformat(),
    }
    frame = pd.DataFrame(ROWS).assign(**facts)
    return paths.write_csv(frame, paths.results("benchmarks", f"{Path(file).stem}.csv"))


def machine() -> str:
    """Name the processor, how many there are, and the memory."""
    name, memory = platform.processor() or platform.machine(), ""
    if Path("/proc/cpuinfo").is_file():
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        name = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), name)
    if hasattr(os, "sysconf"):
        memory = f", {os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') / 2**30:.0f} GiB"
    return f"{name}, {os.cpu_count()} processors{memory}"


def commit() -> str:
    """Return the checkout's short commit, or "no git"."""
    command = ["git", "rev-parse", "--short", "HEAD"]
    try:
        done = subprocess.run(command, cwd=paths.root(), capture_output=True, text=True, check=True)
    except (OSError, subprocess.SubprocessError):
        return "no git"
    return done.stdout.strip()
