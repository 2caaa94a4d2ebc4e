"""A set under several networks: condition → class → vectors, the same pictures in the same rows."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pandas as pd

from biastransfer import paths
from biastransfer.backbones import Backbone, load_backbone
from biastransfer.embed.pictures import Embeddings, embed
from biastransfer.embed.untrained import normalise

UNTRAINED = "random"  # the backbone whose seeds are networks of their own
STATISTICS = ("estimated", "initial")


class Condition(NamedTuple):
    """One network of a run; ``stage`` is pretrained or finetuned; before finetuning target is "" and seed 0.

    The backbone ``"random"`` is never trained: its seeds are that many networks with other initial weights.
    """

    backbone: str
    stage: str
    target: str
    seed: int


class Embedded(dict):
    """A set's vectors: condition → class → (n, D) array, the same pictures in the same rows everywhere.

    ``.failed`` has a row (backbone, stage, target, seed, file, reason) for each picture that a condition
    could not embed and that was therefore dropped in all; ``.notes`` holds the cache's notes.
    """

    failed: pd.DataFrame
    notes: tuple[str, ...]


def conditions(
    run: str,
    backbones: Sequence[str],
    finetuned: Sequence[str],
    target: str,
    seeds: Sequence[int],
    untrained: int = 1,
) -> list[Condition]:
    """Return the conditions of a run: ``backbones`` pretrained, then ``finetuned`` on a target for each seed.

    Parameters
    ----------
    run : str
        Name of the run; the conditions of all runs look alike.
    backbones, finetuned : sequence of str
        Names of `list_backbones`.
    target : str
        Name of the finetuning target.
    seeds : sequence of int
        Seeds of the finetunings.
    untrained : int
        Networks that ``"random"`` among `backbones` stands for: seeds 0 to ``untrained`` − 1.

    Returns
    -------
    list of Condition

    Examples
    --------
    >>> conditions("smoke", ["random"], ["squeezenet1_1"], "scenes", [0])[1]
    Condition(backbone='squeezenet1_1', stage='finetuned', target='scenes', seed=0)
    """
    before = [
        Condition(name, "pretrained", "", seed)
        for name in dict.fromkeys(backbones)
        for seed in range(untrained if name == UNTRAINED else 1)
    ]
    return before + [Condition(name, "finetuned", target, seed) for name in finetuned for seed in seeds]


def embed_classes(
    analysis_set,
    conditions: Sequence[Condition],
    *,
    run: str,
    layer: str | None = None,
    batch_statistics: str = "estimated",
) -> Embedded:
    """Embed a set under each condition and give its vectors by class: what all measures eat.

    Parameters
    ----------
    analysis_set : AnalysisSet
    conditions : sequence of Condition
        From `conditions`.
    run : str
        Whose checkpoints the finetuned conditions use.
    layer : str, optional
        As for `forward_layer`.
    batch_statistics : str
        Of the untrained networks: "estimated" from 32 of the set's pictures, or "initial" (0 and 1).

    Returns
    -------
    Embedded
        Condition → class, in the set's order → (n, D) float32 array.

    Raises
    ------
    FileNotFoundError
        If a checkpoint is missing; the message says which parameters of notebook 02 make it.
    ValueError
        If no picture of a class could be embedded, or `batch_statistics` is unknown.
    """
    if batch_statistics not in STATISTICS:
        raise ValueError(f"batch_statistics must be one of {', '.join(STATISTICS)}; got {batch_statistics!r}")
    files = analysis_set.items["file"].tolist() if batch_statistics == "estimated" else []
    found = {
        condition: embed(_network(condition, run, files), analysis_set, layer) for condition in conditions
    }
    return by_class(analysis_set, found)


def by_class(analysis_set, found: Mapping[Condition, Embeddings]) -> Embedded:
    """Sort the vectors of a set under several networks by class, what one of them lacks left out in all.

    Parameters
    ----------
    analysis_set : AnalysisSet
    found : mapping of Condition to Embeddings
        From `embed`, of that set.

    Returns
    -------
    Embedded
        As `embed_classes` gives it.

    Raises
    ------
    ValueError
        If no picture of a class could be embedded.
    """
    failed = [result.failed.assign(**condition._asdict()) for condition, result in found.items()]
    embedded = Embedded()
    embedded.failed = pd.concat(failed, ignore_index=True)[[*Condition._fields, "file", "reason"]]
    embedded.notes = tuple(note for result in found.values() for note in result.notes)
    names = analysis_set.items["class"].to_numpy()
    whole = ~analysis_set.items["file"].isin(embedded.failed["file"]).to_numpy()
    for name in analysis_set.classes:
        if not whole[names == name].any():
            raise ValueError(
                f"class {name!r} must have at least one picture that can be embedded; "
                f"all {(names == name).sum()} failed, the first because: {embedded.failed['reason'].iloc[0]}"
            )
    for condition, result in found.items():
        kept = {name: (names == name)[result.rows] & whole[result.rows] for name in analysis_set.classes}
        embedded[condition] = {name: result.vectors[rows] for name, rows in kept.items()}
    return embedded


def _network(condition: Condition, run: str, files: Sequence[str]) -> Backbone:
    """Load the network of a condition; an untrained one with the batch statistics of some files, if any."""
    if condition.stage == "pretrained":
        backbone = load_backbone(condition.backbone, seed=condition.seed)
        untrained = condition.backbone == UNTRAINED
        return normalise(backbone, files) if untrained else backbone
    path = paths.checkpoint(run, condition.backbone, condition.target, condition.seed)
    if not path.is_file():
        raise FileNotFoundError(
            f"there is no checkpoint {path}; make it with notebook 02 and the parameters run={run!r}, "
            f"backbone={condition.backbone!r}, target={condition.target!r}, seed={condition.seed}"
        )
    return load_backbone(path)
