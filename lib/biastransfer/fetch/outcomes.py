"""What came of a fetch: each file's end, and all of it in few sentences."""

from dataclasses import dataclass

import pandas as pd

from .network import UNREACHABLE

COLUMNS = ["file", "status", "bytes", "seconds", "reason"]
STATUSES = ("fetched", "present", "resumed", "failed")


@dataclass(frozen=True)
class Outcome:
    """How one file ended: ``status`` is one of `STATUSES`, ``reason`` says why it failed."""

    file: str
    status: str
    bytes: int
    seconds: float
    reason: str = ""


@dataclass(frozen=True)
class FetchReport:
    """What came of each file that was asked for, in the order of asking; ``notes`` on entries looked up."""

    outcomes: tuple[Outcome, ...]
    notes: tuple[str, ...] = ()

    @property
    def failed(self) -> tuple[Outcome, ...]:
        """The files that did not come."""
        return tuple(one for one in self.outcomes if one.status == "failed")

    @property
    def counts(self) -> dict[str, int]:
        """Files a status."""
        return {name: sum(one.status == name for one in self.outcomes) for name in STATUSES}

    def table(self) -> pd.DataFrame:
        """Return one row a file: file (below the root), status, bytes (that it has), seconds, reason."""
        rows = [[getattr(one, name) for name in COLUMNS] for one in self.outcomes]
        return pd.DataFrame(rows, columns=COLUMNS)

    def sentences(self) -> list[str]:
        """Return what came of it all, the notes, and one sentence a reason for failing with its files."""
        said = [", ".join(f"{n} {name}" for name, n in self.counts.items() if n) or "nothing to fetch"]
        said += [f"{one}." for one in self.notes]
        reasons: dict[str, list[str]] = {}
        hosts: dict[str, None] = {}
        for one in self.failed:
            if one.reason.endswith(UNREACHABLE):
                hosts[one.reason.removesuffix(UNREACHABLE)] = None
            else:
                reasons.setdefault(one.reason, []).append(one.file)
        for reason, files in reasons.items():
            more = f" and {len(files) - 3} more" if len(files) > 3 else ""
            said.append(f"{', '.join(files[:3])}{more}: {reason}.")
        return said + ([f"{', '.join(hosts)}{UNREACHABLE}."] if hosts else [])
