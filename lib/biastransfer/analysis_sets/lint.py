"""What is wrong, or worth knowing, about an analysis set before anything is measured on it."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import pandas as pd

from .copies import alike, same_bytes, same_id, sketches
from .likeness import near_pairs
from .manifest import NO_PICTURE, AnalysisSet

COLUMNS = ["check", "severity", "class", "n", "share", "ids", "what"]
_SMALL = 10  # pictures: below this an interval over pictures says next to nothing
_IMBALANCE = 5.0  # largest class over smallest
_PROBLEMS = {"missing file", "empty file", "unreadable"}
_FLAGS = {
    "a group-of box": "group-of share",
    "a depiction (drawing, statue, toy)": "depiction share",
    "a view from inside": "inside share",
}


def lint(
    analysis_set: AnalysisSet,
    *,
    training: AnalysisSet | Iterable[Path | str] | None = None,
    near: bool = True,
) -> pd.DataFrame:
    """Check an analysis set.

    Parameters
    ----------
    analysis_set : AnalysisSet
        What to check.
    training : AnalysisSet or iterable of path-like, optional
        Pictures that a model is trained on, none of which should be in the set.
    near : bool
        Also decode every picture: near-duplicates, and damage that headers do not show.

    Returns
    -------
    DataFrame
        One row a finding: check, severity ("error" distorts numbers, "warning" may, "note" is for
        information), class, n (pictures), share (of the class, 0…1, NaN where it has no meaning), ids
        (joined by ";"), what (a sentence). A check without a finding has no row.

    Notes
    -----
    Two pictures are near-duplicates when their 64-bit gradient hashes differ in at most 6 bits and their
    16 × 16 colour thumbnails by at most 12 of 255 (root mean square): re-encoded, resized or slightly
    retouched copies, not two pictures of one kind.
    """
    items = analysis_set.items
    rows = [*_file_rows(analysis_set), *_hash_rows(items), *_size_rows(items), *_licence_rows(items)]
    rows += _flag_rows(analysis_set.report)
    trained = _training(training)
    copied, known = _training_rows(items, trained)
    rows += copied
    if near:
        drawn, damaged = _sketches(items.drop_duplicates("file"))
        rows += _by_class(damaged, "unreadable", "error", "the file does not decode")
        rows += _near_rows(items, drawn)
        rows += _near_training(items[~items["id"].isin(known)], trained)
    return pd.DataFrame(rows, columns=COLUMNS)


def _row(check, severity, name, n, share, ids, what) -> tuple:
    return (check, severity, name, int(n), float(share), ";".join(map(str, ids)), what)


def _by_class(found: pd.DataFrame, check: str, severity: str, what: str) -> list[tuple]:
    """Return one row a class for pictures that a check found."""
    return [
        _row(check, severity, name, len(part), float("nan"), part["id"], what)
        for name, part in found.groupby("class", sort=False)
    ]


def _file_rows(analysis_set: AnalysisSet) -> list[tuple]:
    """Return the classes and the files that the set lost when it was loaded, from its report."""
    report = analysis_set.report
    counts = analysis_set.counts
    empty = report.loc[report["decision"] == NO_PICTURE, "class"]
    return [
        _row(NO_PICTURE, "warning", one, 0, float("nan"), [], "the class is left out") for one in empty
    ] + [
        _row(
            one.decision, "warning", name, one.n, one.n / (one.n + counts.get(name, 0)), [one.ids], one.reason
        )
        for one, name in zip(report.itertuples(), report["class"])
        if one.decision in _PROBLEMS
    ]


def _hash_rows(items: pd.DataFrame) -> list[tuple]:
    """Return pictures whose very bytes stand twice: in two classes, or twice in one."""
    rows = []
    for _, part in items[items.duplicated("sha256", keep=False)].groupby("sha256"):
        names = list(dict.fromkeys(part["class"]))
        ids = dict.fromkeys(part["id"])
        if len(names) > 1:
            what = "the same file stands in each of these classes"
            rows.append(
                _row("in two classes", "error", " | ".join(names), len(part), float("nan"), ids, what)
            )
        if len(part) > len(names):
            what = "the same file stands more than once in a class"
            rows.append(_row("twice", "error", " | ".join(names), len(part), float("nan"), part["id"], what))
    return sorted(rows, key=lambda row: (row[0], row[2], row[5]))


def _size_rows(items: pd.DataFrame) -> list[tuple]:
    counts = items["class"].value_counts()
    rows = [
        _row("small class", "warning", name, n, float("nan"), [], f"fewer than {_SMALL} pictures")
        for name, n in counts.reindex(dict.fromkeys(items["class"])).items()
        if n < _SMALL
    ]
    if len(counts) and counts.max() / counts.min() >= _IMBALANCE:
        least, most = counts.idxmin(), counts.idxmax()
        what = f"{most} has {counts.max() / counts.min():.1f} times as many pictures as {least}"
        rows.append(
            _row("size imbalance", "warning", f"{least} | {most}", counts.min(), float("nan"), [], what)
        )
    return rows


def _licence_rows(items: pd.DataFrame) -> list[tuple]:
    bare = items[items["licence"].isna() | (items["licence"].astype(str).str.strip() == "")]
    sizes = items["class"].value_counts()
    return [
        _row("licence gap", "note", name, len(part), len(part) / sizes[name], [], "no licence is stated")
        for name, part in bare.groupby("class", sort=False)
    ]


def _flag_rows(report: pd.DataFrame) -> list[tuple]:
    """Return how many pictures curation left out for group-of, depiction and inside boxes."""
    looked_at = report.loc[report["decision"].isin(["kept", "excluded", *_PROBLEMS]), "n"].sum()
    return [
        _row(
            _FLAGS[one.reason], "note", "", one.n, one.n / looked_at, [], "left out of the pictures looked at"
        )
        for one in report.itertuples()
        if one.reason in _FLAGS
    ]


def _training_rows(items: pd.DataFrame, trained: Sequence[str]) -> tuple[list[tuple], set[str]]:
    """Return the pictures that a model is trained on, by bytes and by id, and their ids."""
    by_bytes = {row for row, _ in same_bytes(items, trained)}
    by_id = {row for row, _ in same_id(items, trained)} - by_bytes
    check = "in the training split"
    return [
        *_by_class(items.iloc[sorted(by_bytes)], check, "error", "the same file is in the training pictures"),
        *_by_class(items.iloc[sorted(by_id)], check, "error", "a training picture has the same id"),
    ], set(items["id"].iloc[sorted(by_bytes | by_id)])


def _sketches(items: pd.DataFrame) -> tuple[dict[str, tuple], pd.DataFrame]:
    """Return {file: sketch} and the items whose files do not decode."""
    drawn = dict(zip(items["file"], sketches(items["file"].tolist())))
    return {file: one for file, one in drawn.items() if one is not None}, items[
        [drawn[file] is None for file in items["file"]]
    ]


def _near_rows(items: pd.DataFrame, drawn: dict[str, tuple]) -> list[tuple]:
    """Return pairs of different files that look alike."""
    usable = items[items["file"].isin(list(drawn))].reset_index(drop=True)
    looks = [drawn[file] for file in usable["file"]]
    names, ids, hashes = (usable[column].tolist() for column in ("class", "id", "sha256"))
    rows = []
    for one, other in near_pairs(looks):
        if hashes[one] == hashes[other]:  # the same bytes: said already
            continue
        across = names[one] != names[other]
        check = "near-duplicate in two classes" if across else "near-duplicate"
        name = f"{names[one]} | {names[other]}" if across else names[one]
        rows.append(
            _row(check, "warning", name, 2, float("nan"), [ids[one], ids[other]], "the two look alike")
        )
    return rows


def _near_training(items: pd.DataFrame, trained: Sequence[str]) -> list[tuple]:
    """Return pictures of the set that look like a training picture of other bytes and another id."""
    if not trained or items.empty:
        return []
    close = sorted({row for row, _ in alike(items, trained)[0]})
    what = "a training picture looks alike"
    return _by_class(items.iloc[close], "near-duplicate in the training split", "warning", what)


def _training(training: AnalysisSet | Iterable[Path | str] | None) -> list[str]:
    if training is None:
        return []
    return [str(one) for one in (training.items["file"] if isinstance(training, AnalysisSet) else training)]
