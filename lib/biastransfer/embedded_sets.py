"""From an analysis set's name to its vectors under the networks of a run: where chapters 3 to 5 start."""

from collections.abc import Sequence
from pathlib import Path

from biastransfer import finetune
from biastransfer.analysis_sets import AnalysisSet
from biastransfer.analysis_sets.named import load_named
from biastransfer.embed import Embedded, conditions, embed_classes, read_npz
from biastransfer.images import without_folder


def set_label(set_name: str, embeddings: str = "") -> str:
    """Return the name of a set in results: ``set_name``, or that of the file of own ``embeddings``."""
    return Path(embeddings).stem if embeddings else set_name


def sources_of_each(
    sets: Sequence[str], scales: Sequence[float] = (), roots: Sequence[str] = (), embeddings: str = ""
) -> dict[str, dict]:
    """Return set → where its pictures come from, as `embed_set` takes it.

    Parameters
    ----------
    sets : sequence of str
        Names of sets.
    scales : sequence of float
        One a set, or none.
    roots : sequence of str
        A folder or tar a set, or none.
    embeddings : str
        Own vectors: then the one set is what they are.

    Returns
    -------
    dict of str to dict

    Raises
    ------
    ValueError
        If there are some scales or roots, but not one a set.
    """
    if embeddings:
        return {set_label("", embeddings): {"embeddings": embeddings}}
    given = {"scales": scales, "roots": roots}
    for name, values in given.items():
        if values and len(values) != len(sets):
            raise ValueError(
                f"{name} must have one value a set, or none; got {list(values)} for {', '.join(sets)}."
            )
    singular = {name.removesuffix("s"): values for name, values in given.items() if values}
    return {one: {key: values[at] for key, values in singular.items()} for at, one in enumerate(sets)}


def load_sets(sets: Sequence[str], roots: Sequence[str] = ()) -> list[AnalysisSet]:
    """Load sets by their names, each from its folder or tar in ``roots``; without any, from ``data/raw``."""
    return [load_named(name, **source) for name, source in sources_of_each(sets, roots=roots).items()]


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
    root: str = "",
    embeddings: str = "",
    batch_statistics: str = "estimated",
    layer: str | None = None,
) -> Embedded:
    """Load a set and embed it under every network of a run, or read vectors made elsewhere.

    Parameters
    ----------
    set_name : str
        Kind of pictures and schema, such as ``"scenes-coco"``: see `load_named`.
    run : str
        Whose checkpoints are used; ``"smoke"`` trains them where they are missing.
    backbones, finetuned, target, seeds, untrained
        As for `conditions`; pretrained networks are taken for all of `finetuned`.
    scale, seed, root
        As for `load_named`.
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
        As `load_named`, `embed_classes` and `read_npz` raise them.
    """
    if embeddings and layer:
        raise ValueError(f"own vectors have no layers; got layer={layer!r} for {embeddings}. Leave it out.")
    if embeddings:
        return read_npz(embeddings)
    pictures = load_named(set_name, root=root, scale=scale, seed=seed)
    finetune.ensure(run, finetuned, target, seeds)
    before = list(dict.fromkeys([*finetuned, *backbones]))
    networks = conditions(run, before, finetuned, target, seeds, untrained)
    embedded = embed_classes(pictures, networks, run=run, layer=layer, batch_statistics=batch_statistics)
    for line in (*lost(embedded), *embedded.notes):
        print(line)
    return embedded


def embed_layers(
    set_name: str, layers: Sequence[str], *, finetuned: Sequence[str], seeds: Sequence[int], **options
) -> dict[str, Embedded]:
    """Embed a set at several layers of one network, before finetuning and after it with one seed.

    Parameters
    ----------
    set_name : str
        As for `embed_set`.
    layers : sequence of str
        Names of layers, as for `forward_layer`; the order stays.
    finetuned, seeds : sequence
        Of which the first is taken.
    **options
        As for `embed_set`; other networks in them are left out.

    Returns
    -------
    dict of str to Embedded
        Layer → vectors.
    """
    one = options | {"backbones": [], "finetuned": finetuned[:1], "seeds": seeds[:1]}
    return {layer: embed_set(set_name, layer=layer, **one) for layer in layers}


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
