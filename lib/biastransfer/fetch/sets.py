"""A set by its name: its annotations, then the pictures that it needs and no others."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from biastransfer import paths
from biastransfer.analysis_sets.named import CAPS

from . import needed_coco, needed_openimages
from .fetching import fetch, fetch_pictures
from .outcomes import FetchReport
from .sources import load_sources

SETS = ("curated-coco", "curated-openimages", "released-coco")


def fetch_set(
    set_name: str,
    *,
    root: Path | str | None = None,
    folder: Path | str | None = None,
    released: Path | str = "",
    spare: bool = False,
    options: dict | None = None,
    sources: Path | str | None = None,
    **network,
) -> FetchReport:
    """Fetch what an analysis set is made of.

    Parameters
    ----------
    set_name : {"curated-coco", "curated-openimages", "released-coco"}
        As `analysis_sets.named.load_named` takes it.
    root : path-like, optional
        Otherwise ``data/raw``.
    folder : path-like, optional
        Of the data set's annotations and pictures; otherwise ``coco`` or ``openimages`` below ``root``, where
        the annotations are fetched first.
    released : path-like
        The authors' lists, for ``released-coco``.
    spare : bool
        Also the pictures that would come next by the caps.
    options : dict, optional
        Of the curation; otherwise those of `load_named`, its cap and seed 0.
    sources : path-like, optional
        Another list of sources.
    **network
        mirror, workers, retries, timeout, connect_timeout, backoff: see `fetch`.

    Returns
    -------
    FetchReport
        Annotations, where they were asked for, then pictures; notes on entries that needed looking up.

    Raises
    ------
    ValueError
        Another set, or an option that the set does not have.
    FileNotFoundError
        No annotations in ``folder``, or no lists in ``released``.
    """
    if set_name not in SETS:
        raise ValueError(
            f"a set to fetch must be one of {', '.join(SETS)}; got {set_name!r}. Scenes are drawn, and the "
            "released Open Images pictures come with their lists."
        )
    kind, schema = set_name.split("-")
    place = load_sources(sources)[1][schema]
    base = (paths.raw() if root is None else Path(root)) / place.path if folder is None else Path(folder)
    before = FetchReport(())
    if kind == "released":
        wanted = needed_coco.released(Path(released), base, place)
    else:
        if folder is None:
            before = fetch([schema], root=root, sources=sources, **network)
            if before.failed:
                return before
        find = needed_coco.curated if schema == "coco" else needed_openimages.curated
        wanted = find(base, place, spare=spare, **{"cap": CAPS[schema], "seed": 0} | (options or {}))
    return _joined(before, fetch_pictures(wanted.pictures, base, **network), wanted.notes)


def fetch_splits(
    schema: str,
    splits: Sequence[str],
    *,
    root: Path | str | None = None,
    folder: Path | str | None = None,
    most: int | None = None,
    seed: int = 0,
    sources: Path | str | None = None,
    **network,
) -> FetchReport:
    """Fetch the pictures of a finetuning target, one by one.

    Parameters
    ----------
    schema : {"coco", "openimages", "openimages-v4"}
    splits : sequence of str
        COCO: train2017, val2017, for which the archives ``coco-train2017`` and ``coco-val2017`` are quicker;
        Open Images: train, validation, test.
    root, folder, sources, **network
        As in `fetch_set`.
    most, seed : int
        So many training pictures of Open Images, drawn as the target draws them.

    Returns
    -------
    FetchReport

    Raises
    ------
    ValueError
        An unknown data set or split.
    FileNotFoundError
        No annotations in ``folder``.
    """
    places = load_sources(sources)[1]
    if schema not in places:
        raise ValueError(f"pictures must be of {', '.join(places)}; got {schema!r}.")
    place = places[schema]
    if unknown := [one for one in splits if one not in place.splits]:
        raise ValueError(f"splits of {schema} must be {', '.join(place.splits)}; got {', '.join(unknown)}.")
    if schema == "coco" and most is not None:
        raise ValueError(f"a COCO target needs every picture of its splits; got most = {most}. Leave it out.")
    base = (paths.raw() if root is None else Path(root)) / place.path if folder is None else Path(folder)
    before = FetchReport(()) if folder else fetch([schema], root=root, sources=sources, **network)
    if before.failed:
        return before
    if schema == "coco":
        wanted = needed_coco.whole_splits(base, place, splits)
    else:
        wanted = needed_openimages.splits_of_target(base, place, splits, most=most, seed=seed)
    return _joined(before, fetch_pictures(wanted.pictures, base, **network), wanted.notes)


def _joined(one: FetchReport, other: FetchReport, notes: tuple[str, ...]) -> FetchReport:
    return replace(one, outcomes=one.outcomes + other.outcomes, notes=notes)
