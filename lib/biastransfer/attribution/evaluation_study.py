"""The attribution chapter's programme: one network evaluated and checked, as tidy tables."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from scipy import stats

from biastransfer import paths
from biastransfer.attribution.evaluation import Evaluation, run_evaluation
from biastransfer.attribution.evaluation_checks import robustness_rows, sanity_rows
from biastransfer.attribution.evaluation_pictures import SCENES, chapter_pictures
from biastransfer.attribution.pictures import PictureSet
from biastransfer.attribution.removal_probe import COLUMNS, WHATS, removal_signal
from biastransfer.backbones import Backbone, load_backbone
from biastransfer.finetune.prepare import ensure

__all__ = [
    "CURVES", "METRICS", "PLAIN", "SWEEPS", "TABLES", "Programme", "attribution_study", "chapter_network",
    "chapter_pictures", "maps_of", "mean_curves",
]  # fmt: skip

TABLES = ("", "_curves", "_robustness", "_sanity", "_signal", "_skipped")  # behind "attribution"
PLAIN = "mean"  # the fill that in-painting is held against
CURVES = ("deletion", "insertion")
METRICS = (
    *CURVES, "saliency", "localisation", "localisation_best", "pointing_game", "mass_inside_boxes",
    "mass_inside_mask",
)  # fmt: skip
SWEEPS = (
    "SP patch, wide",
    "SP patch, narrow",
    "LIME seed",
    "LIME superpixels",
    "MP blur",
    "MP mask size",
)
_PAINTED = ("sliding_patch", "lime", "meaningful_perturbation")  # the paper's -G variants
_UNCHECKED = (
    "meaningful_perturbation",
    "rise",
    "gaussian_map",
)  # by the sanity check: slow, or a second control
_SIDE = 224  # of the pictures that sizes in pixels are meant for
_PAIRS = 10  # of scenes that the probe sees, for each picture that is checked


@dataclass(frozen=True)
class Programme:
    """What is evaluated, and how much of it.

    Attributes
    ----------
    methods : tuple of str
        Names of `methods.METHODS`.
    inpainter : str
        The in-painter, a name of `removal.FILLS`. The paper's three methods remove with mean grey, blur and
        it, others with mean grey alone; deletion with all three.
    stride : int
        Of the sliding patch, in pixels of a picture of 224; 3 in the paper.
    lime_samples, mp_steps : int
        500 and 300 in the paper. RISE takes four times as many masks as LIME; 4,000 in its paper.
    points : int
        Steps of a curve; 28 in the paper.
    checked : int
        Pictures, from the first, on which sweeps and sanity check are run; the probe of what is left after
        removal sees ten times as many pairs of scenes.
    gradient_samples : int
        Points of integrated gradients and pictures of SmoothGrad.
    values : int
        Values of each sweep, from its first.
    output : str
        As for `scores.class_score`.
    seed : int
    """

    methods: Sequence[str]
    inpainter: str
    stride: int = 28
    lime_samples: int = 100
    mp_steps: int = 60
    points: int = 28
    checked: int = 2
    gradient_samples: int = 20
    values: int = 3
    output: str = "probability"
    seed: int = 0

    def settings(self, side: int) -> dict[str, dict]:
        """Return methods and their settings for pictures of ``side`` pixels."""
        sized = {
            "sliding_patch": {"stride": max(1, round(self.stride * side / _SIDE))},
            "lime": {"n_samples": self.lime_samples},
            "meaningful_perturbation": {"steps": self.mp_steps, "blur_radius": 10 * side / _SIDE},
            "rise": {"n_samples": 4 * self.lime_samples},
            "integrated_gradients": {"n_steps": self.gradient_samples},
            "smoothgrad": {"n_samples": self.gradient_samples},
        }
        return {name: sized.get(name, {}) for name in self.methods}

    def measures(self, side: int, *, masks: bool) -> dict[str, dict]:
        """Return metrics and their settings for pictures of ``side`` pixels, with or without ``masks``."""
        step = {"step": max(1, round(side * side / self.points))}
        names = [name for name in METRICS if masks or name != "mass_inside_mask"]
        return {name: step if name in CURVES else {} for name in names}

    @property
    def fills(self) -> dict[str, list[str]]:
        """Return what each method removes with."""
        every = [PLAIN, "blur", self.inpainter]
        return {name: every if name in _PAINTED else [PLAIN] for name in self.methods}


def chapter_network(
    backbone: str, source: str, *, run: str, size: int = 0, seed: int = 0
) -> tuple[Backbone, str]:
    """Return the network that is explained, and what its outputs are.

    Parameters
    ----------
    backbone : str
    source : {"scenes", "photographs"}
        Scenes are explained with the network that ``run`` finetuned on them, photographs with the pretrained
        one.
    run : str
        ``"smoke"`` finetunes where no checkpoint is there.
    size : int
        Side of the pictures in pixels; 0 is the network's own.
    seed : int
        Of the finetuning.

    Returns
    -------
    backbone : Backbone
    output : str
        As for `scores.class_score`: scenes have several labels a picture.
    """
    if source == SCENES:
        ensure(run, [backbone], SCENES, [seed])
    loaded = load_backbone(paths.checkpoint(run, backbone, SCENES, seed) if source == SCENES else backbone)
    sized = replace(loaded, transform=loaded.transform.with_size(size or loaded.transform.size))
    return sized, "sigmoid" if source == SCENES else "probability"


def attribution_study(
    backbone: Backbone, pictures: PictureSet, targets: str | Mapping, programme: Programme
) -> dict[str, pd.DataFrame]:
    """Evaluate a network's heat maps and return tables.

    Parameters
    ----------
    backbone : Backbone
    pictures : PictureSet
    targets : str or mapping
        As for `evaluation.run_evaluation`.
    programme : Programme

    Returns
    -------
    dict of str to DataFrame
        attribution (rows as `evaluation.evaluate` returns them), attribution_curves (mean curves),
        attribution_robustness and attribution_sanity (rows), attribution_signal (`removal_probe`),
        attribution_skipped. Values are rounded to six decimals, seconds to three.
    """
    masks = any(one.masks for one in pictures.pictures)
    metrics = programme.measures(backbone.transform.size, masks=masks)
    deletion = {"deletion": [PLAIN, "blur", programme.inpainter]}
    done = maps_of(backbone, pictures, targets, programme, metrics=metrics, metric_fills=deletion)
    curves = pd.concat([done.curves(name) for name in CURVES])
    few = pictures.pictures[: programme.checked]
    options = {"targets": targets, "output": programme.output, "seed": programme.seed}
    methods = programme.settings(backbone.transform.size)
    checked = {name: one for name, one in methods.items() if name not in _UNCHECKED}
    compared = {name: [PLAIN, programme.inpainter] for name in _PAINTED}
    probed = [
        removal_signal(
            backbone, deletion["deletion"], what=what, n=_PAIRS * programme.checked, seed=programme.seed
        )
        for what in (WHATS if programme.checked else ())
    ]
    tables = {
        "": done.rows,
        "_curves": mean_curves(curves),
        "_robustness": robustness_rows(
            backbone, few, methods, compared, sweeps=SWEEPS, most=programme.values, fold=True, **options
        ),
        "_sanity": sanity_rows(backbone, few, checked, {}, **options),
        "_signal": pd.concat(probed or [pd.DataFrame(columns=COLUMNS)], ignore_index=True),
        "_skipped": pictures.skipped,
    }  # fmt: skip
    return {f"attribution{name}": _rounded(table) for name, table in tables.items()}


def maps_of(
    backbone: Backbone,
    pictures,
    targets: str | Mapping,
    programme: Programme,
    *,
    metrics=(),
    metric_fills=None,
) -> Evaluation:
    """Return the evaluation that a programme asks for, or its maps alone.

    Parameters
    ----------
    backbone, pictures, targets, metrics, metric_fills
        As for `evaluation.run_evaluation`.
    programme : Programme
    """
    methods = programme.settings(backbone.transform.size)
    options = {"targets": targets, "output": programme.output, "seed": programme.seed, "fold": True}
    return run_evaluation(
        backbone, pictures, methods, programme.fills, metrics, metric_fills=metric_fills, **options
    )


def mean_curves(curves: pd.DataFrame, *, level: float = 0.95) -> pd.DataFrame:
    """Return the mean over pictures of the curves of `Evaluation.curves`.

    Parameters
    ----------
    curves : DataFrame
        Rows of points; the pictures must share their fractions.
    level : float
        Coverage aimed at.

    Returns
    -------
    DataFrame
        method, fill, setting, metric, metric_fill, fraction, mean, low, high (Student's t over pictures, cut
        at 0 and 1 where all scores lie there), n.
    """
    keys = ["method", "fill", "setting", "metric", "metric_fill", "fraction"]
    found = curves.dropna(subset="score").groupby(keys, sort=False)["score"].agg(["mean", "std", "count"])
    found = found.reset_index().rename(columns={"count": "n"})
    half = stats.t.ppf((1 + level) / 2, np.maximum(found["n"] - 1, 1)) * found["std"] / np.sqrt(found["n"])
    bounds = (0, 1) if curves["score"].between(0, 1).all() else (None, None)
    found["low"], found["high"] = (found["mean"] - half).clip(*bounds), (found["mean"] + half).clip(*bounds)
    return found[[*keys, "mean", "low", "high", "n"]]


def _rounded(table: pd.DataFrame) -> pd.DataFrame:
    places = {name: 3 if "seconds" in name else 6 for name in table.select_dtypes("float")}
    return table.round(places)
