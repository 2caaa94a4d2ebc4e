"""What a recipe is: one way to finetune, as data."""

import dataclasses
from dataclasses import dataclass, field

from biastransfer.backbones import Transform

_IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
_CLIP = ((0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711))
_STATISTICS = {"imagenet": _IMAGENET, "clip": _CLIP, "none": ((0.0,) * 3, (1.0,) * 3)}
_ALLOWED = {
    "schedule": ("constant", "cosine", "plateau"),
    "optimizer": ("sgd", "lars"),
    "monitor": ("mAP", "micro-F1"),
    "precision": ("fp32", "tf32", "bf16", "fp16"),
    "keep": ("best", "last"),
    "unknown": ("masked", "refused"),
    "normalisation": ("own", *_STATISTICS),
    "extraction": ("own", *_STATISTICS),
}


@dataclass(frozen=True)
class Recipe:
    """One way to finetune; every field is written into the checkpoint.

    Attributes
    ----------
    name : str
    epochs, batch_size : int
        Passes over the training split; pictures a step, on all ranks together (batches are made near equal,
        none is dropped).
    lr : float
        Peak learning rate; ``rates`` overrides it for the backbones it names.
    size : int or None
        Side of the training and validation pictures in pixels; None is the backbone's own size.
    schedule : str
        ``constant`` · ``cosine`` (to 0 over all steps, after a linear rise over the share ``warmup`` of
        them) · ``plateau`` (a tenth after ``patience`` epochs in which ``monitor`` did not rise).
    optimizer : str
        ``sgd`` · ``lars`` (layer-wise scaling also where weight decay is 0).
    monitor : str
        Validation metric that chooses the best epoch: ``mAP`` · ``micro-F1``.
    stop_after : int or None
        Stop after so many epochs without a better ``monitor``; None trains all epochs.
    flip, shift : float, int
        Augmentation of every training picture: mirrored with this probability, moved by up to so many pixels
        each way (edges reflected).
    precision : str
        ``fp32`` · ``bf16`` · ``fp16`` (mixed precision by autocast; fp16 scales gradients, on a GPU only) ·
        ``tf32`` (GPU only). All but fp32 are choices that move the numbers.
    max_train, max_val, max_test : int or None
        Use the first so many pictures of a split; None is all.
    notes : tuple of str
        Readings taken and what was measured.
    accumulate : int
        Forward passes that a step is divided into, where ``batch_size`` pictures do not fit into memory. The
        gradient stays that of the whole batch; batch norm sees the parts.
    keep : str
        The epoch whose weights the run keeps: ``best`` by ``monitor`` · ``last``.
    unknown : str
        Labels that are not known: ``masked`` · ``refused`` (the target must have been read without any).
    normalisation, extraction : str
        Statistics of the pixels in training, and later where the finetuned network is embedded: ``own``, the
        backbone's · ``imagenet`` · ``clip`` · ``none``.
    """

    name: str
    epochs: int
    lr: float
    batch_size: int = 16
    rates: dict[str, float] = field(default_factory=dict)
    size: int | None = None
    schedule: str = "constant"
    warmup: float = 0.0
    optimizer: str = "sgd"
    momentum: float = 0.9
    weight_decay: float = 1e-4
    monitor: str = "mAP"
    patience: int = 3
    stop_after: int | None = None
    flip: float = 0.5
    shift: int = 0
    precision: str = "fp32"
    max_train: int | None = None
    max_val: int | None = None
    max_test: int | None = None
    notes: tuple[str, ...] = ()
    accumulate: int = 1
    keep: str = "best"
    unknown: str = "masked"
    normalisation: str = "own"
    extraction: str = "own"

    def __post_init__(self) -> None:
        """Refuse settings that no loop could follow."""
        for key, values in _ALLOWED.items():
            if getattr(self, key) not in values:
                raise ValueError(f"{key} must be one of {', '.join(values)}; got {getattr(self, key)!r}.")
        for key in ("epochs", "batch_size", "lr", "accumulate"):
            if not getattr(self, key) > 0:
                raise ValueError(
                    f"{key} must be above 0; got {getattr(self, key)!r}. Give a positive number."
                )
        if self.accumulate > self.batch_size:
            raise ValueError(
                f"accumulate divides batch_size pictures; got {self.accumulate} parts of {self.batch_size}. "
                "Lower accumulate."
            )
        if not 0 <= self.flip <= 1 or self.shift < 0:
            raise ValueError(f"flip must be in 0..1 and shift ≥ 0; got {self.flip!r} and {self.shift!r}.")

    def rate(self, backbone: str) -> float:
        """Return the peak learning rate of a backbone."""
        return self.rates.get(backbone, self.lr)

    def seen(self, transform: Transform) -> Transform:
        """Return how pictures are prepared in training and validation, given the backbone's own transform."""
        transform = transform.with_size(self.size) if self.size else transform
        return with_statistics(transform, self.normalisation)

    def embedded(self, transform: Transform) -> Transform:
        """Return how pictures are prepared when the finetuned network is embedded, as its checkpoint says."""
        return with_statistics(transform, self.extraction)


def with_statistics(transform: Transform, statistics: str) -> Transform:
    """Return a transform with other statistics of the pixels, in [0, 1] and RGB order.

    Parameters
    ----------
    transform : Transform
    statistics : str
        ``own`` leaves it as it is; ``imagenet`` · ``clip`` · ``none`` (0 and 1).

    Examples
    --------
    >>> half = Transform(size=2, crop=1.0, interpolation="bilinear", mean=(0.5,) * 3, std=(0.5,) * 3)
    >>> with_statistics(half, "none").std
    (1.0, 1.0, 1.0)
    """
    if statistics == "own":
        return transform
    mean, std = _STATISTICS[statistics]
    return dataclasses.replace(transform, mean=mean, std=std, scale=1.0, bgr=False)
