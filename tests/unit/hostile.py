"""Hostile input, one attempt a function: what is handed to which reader, and what has to happen.

`test_hostile.py` holds every outcome; ``python tests/hostile_table.py`` writes the table that the book shows.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

REFUSED, HANDLED = "refused", "handled"


@dataclass(frozen=True)
class Attempt:
    """One input to one reader; ``act`` makes it in an empty folder, reads it and says what came of it."""

    kind: str
    what: str
    reader: str
    outcome: str
    says: str  # what the error, or the account of what was done, has to say: a regular expression
    act: Callable[[Path], str]


ATTEMPTS: list[Attempt] = []


def attempt(kind: str, what: str, reader: str, *, refused: str = "", handled: str = "", argument=()):
    """Register a function as an attempt that must be refused, or handled, with these words."""

    def register(act):
        given = (argument,) if argument != () else ()
        outcome = REFUSED if refused else HANDLED
        ATTEMPTS.append(
            Attempt(kind, what, reader, outcome, refused or handled, lambda folder: act(folder, *given))
        )
        return act

    return register


def happened(one: Attempt, folder: Path) -> tuple[str, str]:
    """Return (outcome, sentence) of an attempt made in a folder; other errors are raised."""
    here = folder / "given"
    here.mkdir(parents=True)
    try:
        outcome, sentence = HANDLED, one.act(here)
    except (ValueError, OSError) as error:  # what the library raises for input; a KeyError is no answer
        outcome, sentence = REFUSED, str(error)
    shown = " ".join(sentence.replace(f"{here}/", "").replace(str(here), "the folder").split())
    return outcome, re.sub(r"[0-9a-f]{16,}", "…", shown)
