"""From an analysis set's name to its vectors under the networks of a run: where chapters 3 to 5 start."""

from collections.abc import Sequence
from pathlib import Path

from biastransfer import finetune, paths
from biastransfer.analysis_sets import load_set
from biastransfer.embed import Embedded, conditions, embed_classes, read_npz


def set_label(set_name: str, embeddings: str = "") -> str:
    """Return the name of a set in results: ``set_name``, or that of the file of own ``embeddings``."""
    return Path(embeddings).stem if embeddings else set_name


def scale_of_each(sets: Sequence[str], scales: Sequence[float], embeddings: str = "") -> dict[str, float]:
    """Return set → scale, one of ``scales`` for each of ``sets``; of own ``embeddings`` the one set they are.

    Raises
    ------
    ValueError
        If there are more or fewer scales than sets.
    """
    if embeddings:
        return {set_label("", embeddings): 1.0}
    if len(sets) != len(scales):
        raise ValueError(f"scales must have one value a set; got {list(scales)} for {', '.join(sets)}.")
    return dict(zip(sets, scales))


def embed_set(
    set_name: str,
    *,
    run: str,
    backbones: Sequence[str],
    finetuned: Sequence[str] = (),
    target: str = "scenes",
    seeds: Sequence[int] = (0,),
    untrained: int = 1,
    scale: float = 1.0,
    seed: int = 0,
    released: str = "",
    embeddings: str = "",
    batch_statistics: str = "estimated",
) -> Embedded:
    """Load a set and embed it under every network of a run, or read vectors made elsewhere.

    Parameters
    ----------
    set_name : str
        Kind of pictures and schema, such as ``"scenes-coco"``.
    run : str
        Whose checkpoints are used; ``"smoke"`` trains them where they are missing.
    backbones, finetuned, target, seeds, untrained
        As for `conditions`; pretrained networks are taken for all of `finetuned`.
    scale, seed : float, int
        Of the generated scenes.
    released : str
        Folder or tar of pictures, where they are not in ``data/raw``.
    embeddings : str
        An ``.npz`` for `read_npz`; then no picture is read and no network is run.
    batch_statistics : str
        Of the untrained networks, as for `embed_classes`.

    Returns
    -------
    Embedded
        Condition → class → (n, D) array.

    Raises
    ------
    FileNotFoundError, ValueError
        As `load_set`, `embed_classes` and `read_npz` raise them.
    """
    if embeddings:
        return read_npz(embeddings)
    finetune.ensure(run, finetuned, target, seeds)
    kind, schema = set_name.split("-")
    drawn = {"scale": scale, "seed": seed} if kind == "scenes" else {}
    pictures = load_set(kind, root=released or paths.raw(kind), schema=schema, **drawn)
    before = list(dict.fromkeys([*finetuned, *backbones]))
    networks = conditions(run, before, finetuned, target, seeds, untrained)
    return embed_classes(pictures, networks, run=run, batch_statistics=batch_statistics)
