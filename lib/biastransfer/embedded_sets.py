"""From an analysis set's name to its vectors under the networks of a run: where chapters 3 to 5 start."""

from collections.abc import Sequence
from pathlib import Path

from biastransfer import finetune, paths
from biastransfer.analysis_sets import load_set
from biastransfer.embed import Embedded, conditions, embed_classes, read_npz
from biastransfer.images import without_folder

KINDS = ("scenes", "released")  # of pictures that have a schema


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
    layer: str | None = None,
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
    layer : str, optional
        As for `embed_classes`; default the pooled penultimate layer.

    Returns
    -------
    Embedded
        Condition → class → (n, D) array. What could not be embedded is printed, as are the cache's notes.

    Raises
    ------
    FileNotFoundError, ValueError
        As `load_set`, `embed_classes` and `read_npz` raise them.
    """
    if embeddings and layer:
        raise ValueError(f"own vectors have no layers; got layer={layer!r} for {embeddings}. Leave it out.")
    if embeddings:
        return read_npz(embeddings)
    kind, dash, schema = set_name.partition("-")
    if not dash or kind not in KINDS:
        raise ValueError(
            f"a set must be named <kind>-<schema>, kind {' or '.join(KINDS)}; got {set_name!r}. "
            "scenes-coco is one."
        )
    finetune.ensure(run, finetuned, target, seeds)
    drawn = {"scale": scale, "seed": seed} if kind == "scenes" else {}
    pictures = load_set(kind, root=released or paths.raw(kind), schema=schema, **drawn)
    before = list(dict.fromkeys([*finetuned, *backbones]))
    networks = conditions(run, before, finetuned, target, seeds, untrained)
    embedded = embed_classes(pictures, networks, run=run, layer=layer, batch_statistics=batch_statistics)
    for line in (*lost(embedded), *embedded.notes):
        print(line)
    return embedded


def lost(embedded: Embedded) -> list[str]:
    """Say in one line each which pictures could not be embedded and are left out under every network.

    Parameters
    ----------
    embedded : Embedded

    Returns
    -------
    list of str
        How many, then each with the reason, without its folder; empty when none is lost.
    """
    lines = []
    for row in embedded.failed.drop_duplicates("file").itertuples():
        said, name = without_folder(row.reason, row.file), Path(row.file).name
        lines.append(f"  {said}" if said.startswith(name) else f"  {name}, {row.backbone}: {said}")
    return [f"pictures that could not be embedded and are left out: {len(lines)}", *lines] if lines else []
