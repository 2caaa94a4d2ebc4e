"""Every metric by name: which way is better, what it needs, and the function."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from biastransfer.attribution.faithfulness import deletion, insertion, road
from biastransfer.attribution.localisation import localise
from biastransfer.attribution.pointing import mass_inside, pointing_game
from biastransfer.attribution.saliency import saliency

NEEDS = ("score", "boxes", "masks")


@dataclass(frozen=True)
class Metric:
    """One metric.

    Attributes
    ----------
    title : str
        What tables and figures call it, without the arrow.
    direction : str
        ``"↑"`` or ``"↓"``: which way is better.
    needs : str
        ``"score"``: ``measure(score, image, heatmap, …)``; ``"boxes"``: ``measure(heatmap, boxes)``;
        ``"masks"``: ``measure(heatmap, mask)``. A picture without them has no value, which is said.
    measure : callable
        Returns a frozen result with ``value`` and ``reason``.
    filled : bool
        Whether it removes pixels and so takes ``fill``, ``fill_settings``, ``space`` and ``seed``.
    probability : bool
        Whether the score must be a probability.
    """

    title: str
    direction: str
    needs: str
    measure: Callable
    filled: bool = False
    probability: bool = False

    @property
    def label(self) -> str:
        """The title with its direction, as in "Deletion AUC ↓"."""
        return f"{self.title} {self.direction}"


METRICS: dict[str, Metric] = {
    "deletion": Metric("Deletion AUC", "↓", "score", deletion, filled=True),
    "insertion": Metric("Insertion AUC", "↑", "score", insertion, filled=True),
    "road": Metric("ROAD gap", "↑", "score", road, filled=True),
    "saliency": Metric("Saliency metric", "↓", "score", saliency, probability=True),
    "localisation": Metric("Localisation error", "↓", "boxes", localise),
    "localisation_best": Metric("Localisation error, best box", "↓", "boxes", partial(localise, rule="best")),
    "pointing_game": Metric("Pointing game", "↑", "boxes", pointing_game),
    "mass_inside_boxes": Metric("Mass inside the boxes", "↑", "boxes", mass_inside),
    "mass_inside_mask": Metric("Mass inside the mask", "↑", "masks", mass_inside),
    "pointing_game_mask": Metric("Pointing game, mask", "↑", "masks", pointing_game),
}
