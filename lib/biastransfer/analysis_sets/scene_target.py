"""The finetuning target made of scenes: multi-label, gender goes with objects by a known skew."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from .scene_formats import whole_folder, write_coco
from .scene_records import coco_id
from .scene_rendering import Job, render

# Objects whose company with men and women can be skewed, and objects that are in no relation to gender.
FOCAL = (
    "car", "bicycle", "dog", "cat", "horse", "handbag", "umbrella", "sports ball", "skateboard", "surfboard",
    "refrigerator", "laptop",
)  # fmt: skip
CONTEXT = ("stop sign", "chair", "potted plant", "clock", "teddy bear", "book")
CATEGORIES = ("person", *FOCAL, *CONTEXT)
# Non-zero by default, so that finetuning has something to adopt; the skews sum to 0, so that men and women
# are equally many and the context objects go with both alike.
DEFAULT_SKEW = {
    "car": 0.8, "skateboard": 0.6, "sports ball": 0.6, "laptop": 0.4, "bicycle": 0.2,
    "handbag": -0.8, "refrigerator": -0.6, "umbrella": -0.6, "cat": -0.4, "horse": -0.2,
}  # fmt: skip
SPLITS = ("train", "val", "test")
_STREAM = 2  # analysis sets draw from stream 1: no picture of theirs can be in a target
_PEOPLE = 0.6


def write_target(
    root: Path | str,
    *,
    n_train: int = 600,
    n_val: int = 200,
    n_test: int = 200,
    skew: Mapping[str, float] | None = None,
    seed: int = 0,
    size: int = 256,
) -> Path:
    """Write a multi-label finetuning target in COCO format and return its folder.

    Parameters
    ----------
    root : path
        The target's own folder: ``annotations/instances_{train,val,test}.json``, ``captions_….json``,
        ``images/``. Written whole or not at all; nothing is done where it is there with the same parameters.
    n_train, n_val, n_test : int
        Pictures a split, at least 1. The first n pictures of a split do not depend on n.
    skew : mapping from an object of `FOCAL` to a number in [-1, 1], optional
        s makes P(man | the object occurs with a person) = (1 + s) / 2: 1 is always a man, -1 always a woman.
        Objects left out have skew 0; None takes `DEFAULT_SKEW`, ``{}`` is a target without skew.
    seed : int
        Non-negative.
    size : int
        Side of the pictures in pixels.

    Raises
    ------
    ValueError
        An object that cannot be skewed, a skew outside [-1, 1], a split without pictures.
    FileExistsError
        ``root`` holds something else, or a target of other parameters.

    Notes
    -----
    One to four objects a picture, a person in 60 %. A picture with a person holds exactly one focal object,
    so that every skew holds exactly and separately, and up to three context objects, which take no skew. Two
    skews differ only in which twin is drawn: content, places, background and light of picture i are the same
    at every skew, and a picture that has the same gender at both is the same file.
    """
    root = Path(root)
    skew = _checked(skew)
    counts = dict(zip(SPLITS, (n_train, n_val, n_test)))
    if min(counts.values()) < 1 or seed < 0:
        raise ValueError(
            f"every split needs a picture and the seed must not be negative; got {counts}, seed {seed}."
        )
    settings = {"kind": "target", **counts, "skew": skew, "seed": seed, "size": size}
    with whole_folder(root, settings) as folder:
        if folder is None:
            return root
        (folder / "images").mkdir()
        jobs = [
            _job(folder, split, index, skew, seed, size) for split in SPLITS for index in range(counts[split])
        ]
        records = render(jobs)
        for split in SPLITS:
            write_coco(folder, [one for one in records if one.key[1] == split], CATEGORIES, split)
    return root


def target_content(split: str, index: int, seed: int, skew: Mapping[str, float]) -> tuple[str, ...]:
    """Return what picture ``index`` of a ``split`` holds at a ``seed``; ``skew`` decides gender only.

    Examples
    --------
    >>> contents = [target_content("train", i, 0, {"car": 1.0}) for i in range(200)]
    >>> {content[0] for content in contents if "car" in content and content[0] in ("man", "woman")}
    {'man'}
    """
    rng = np.random.default_rng(np.random.SeedSequence((seed, _STREAM, SPLITS.index(split), index, 1)))
    coin, someone = rng.random(), rng.random() < _PEOPLE
    if not someone:
        number = rng.choice(4, p=(0.3, 0.35, 0.2, 0.15)) + 1
        return tuple(rng.permutation(FOCAL + CONTEXT)[:number].tolist())
    focal = FOCAL[rng.integers(len(FOCAL))]
    more = rng.permutation(CONTEXT)[: rng.choice(4, p=(0.4, 0.3, 0.2, 0.1))].tolist()
    gender = "man" if coin < (1 + skew.get(focal, 0.0)) / 2 else "woman"
    return (gender, focal, *more)


def _job(folder: Path, split: str, index: int, skew: Mapping[str, float], seed: int, size: int) -> Job:
    content = target_content(split, index, seed, skew)
    key = ("target", split, seed, index, content[0])
    file = folder / "images" / f"{coco_id(key):012d}.jpg"
    return Job(key, content, (seed, _STREAM, SPLITS.index(split), index, 0), size, file)


def _checked(skew: Mapping[str, float] | None) -> dict[str, float]:
    skew = DEFAULT_SKEW if skew is None else skew
    if unknown := sorted(set(skew) - set(FOCAL)):
        raise ValueError(
            f"only focal objects can be skewed; got {', '.join(unknown)}. Known: {', '.join(FOCAL)}"
        )
    for name, value in skew.items():
        if isinstance(value, bool) or not -1 <= value <= 1:
            raise ValueError(
                f"a skew must be a number from -1 (women only) to 1 (men only); got {name}: {value!r}"
            )
    return {name: float(skew[name]) for name in FOCAL if name in skew}
