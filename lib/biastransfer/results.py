"""The tidy tables of a run, one file a table and set: written whole, read back as they were."""

from collections.abc import Iterable

import pandas as pd

from biastransfer import paths


def write(run: str, set_name: str, **tables: pd.DataFrame) -> None:
    """Write tables of one set to ``data/results/<run>/<table>-<set>.csv``.

    Parameters
    ----------
    run, set_name : str
        Name of the run and of the set.
    **tables : DataFrame
        By their names, such as ``transfer``.
    """
    for name, table in tables.items():
        paths.write_csv(table, paths.results(run, f"{name}-{set_name}.csv"))


def read(run: str, name: str, sets: Iterable[str]) -> pd.DataFrame:
    """Read a table of some sets, one below the other.

    Parameters
    ----------
    run, name : str
        Name of the run and of the table.
    sets : iterable of str
        At least one.

    Returns
    -------
    DataFrame
        Empty cells are missing; words such as "none" stay words.

    Raises
    ------
    FileNotFoundError
        If the run has not written the table of a set.
    """
    files = [paths.results(run, f"{name}-{one}.csv") for one in sets]
    for file in files:
        if not file.is_file():
            raise FileNotFoundError(
                f"the run {run!r} must have written {file.name}; it is not in {file.parent}. "
                "Compute it first: execute the page with committed = False."
            )
    parts = [pd.read_csv(file, keep_default_na=False, na_values=[""]) for file in files]
    return pd.concat(parts, ignore_index=True)
