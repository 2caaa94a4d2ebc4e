"""The pictures of the experiment: twins with a man and with a woman to train on, and an analysis set."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from biastransfer import paths
from biastransfer.analysis_sets.generated import drawing_code
from biastransfer.analysis_sets.scene_formats import whole_folder
from biastransfer.analysis_sets.scene_rendering import Job, render
from biastransfer.analysis_sets.scene_target import CATEGORIES, FOCAL, target_content

SIZE = 160  # side of the pictures in pixels: networks of this experiment see less
LABELS = ("gender", "person")
_MAN = dict.fromkeys(FOCAL, 1.0)  # the skew at which every person is a man
_TRAIN, _ANALYSIS = 3, 4  # streams of draws; analysis sets and targets elsewhere have 1 and 2


@dataclass(frozen=True)
class Pool:
    """Training pictures in pairs of twins that differ in the person only.

    Attributes
    ----------
    contents : tuple of tuple of str
        What the picture with the man holds, its object in second place; one a pair.
    files : (n, 2) array of str
        The picture with the man, and with the woman.
    """

    contents: tuple[tuple[str, ...], ...]
    files: np.ndarray

    @property
    def objects(self) -> np.ndarray:
        """Return the planted object of each pair."""
        return np.array([content[1] for content in self.contents])

    def labels(self, who: np.ndarray, kind: str = "gender") -> np.ndarray:
        """Return what the pictures of one dose are labelled with.

        Parameters
        ----------
        who : (n,) bool array
            Whether each pair gives the picture with the man.
        kind : {"gender", "person"}
            ``gender``: man and woman are classes, as in Open Images. ``person``: one class for both, as in
            COCO, so that no label tells them apart.

        Returns
        -------
        (n, K) float32 array of 0 and 1
            Columns as `classes`.
        """
        columns = classes(kind)
        named = [
            {("man" if man else "woman") if kind == "gender" else "person", *content[1:]}
            for man, content in zip(who, self.contents, strict=True)
        ]
        return np.array([[name in one for name in columns] for one in named], np.float32)


def classes(kind: str) -> tuple[str, ...]:
    """Return the names of the target's classes for a ``kind`` of labels, ``gender`` or ``person``."""
    if kind not in LABELS:
        raise ValueError(f"labels must be one of {', '.join(LABELS)}; got {kind!r}.")
    return (*(("man", "woman") if kind == "gender" else ("person",)), *CATEGORIES[1:])


def draw_pool(pairs: int, *, seed: int = 0) -> Pool:
    """Draw the training pictures, or find them where they were drawn before.

    Parameters
    ----------
    pairs : int
        Scenes of each of the twelve objects, each with a man and as the same scene with a woman. All hold a
        person: scenes without people teach a network that objects go with nobody.
    seed : int
        Non-negative.

    Returns
    -------
    Pool

    Raises
    ------
    ValueError
        No pair.
    """
    if pairs < 1:
        raise ValueError(f"every object needs a pair; got {pairs}. Raise the number of pairs.")
    contents: list[tuple[str, ...]] = []
    count, index = dict.fromkeys(FOCAL, 0), 0
    while len(contents) < pairs * len(FOCAL):
        content = target_content("train", index, seed, _MAN)
        if content[0] == "man" and count[content[1]] < pairs:
            count[content[1]] += 1
            contents.append(content)
        index += 1
    named = [(k, who, (who, *content[1:])) for k, content in enumerate(contents) for who in ("man", "woman")]
    jobs = [(f"{k:05d}-{who}", content, (seed, _TRAIN, k)) for k, who, content in named]
    files = _drawn({"kind": "planted pool", "pairs": pairs, "seed": seed}, jobs)
    return Pool(tuple(contents), np.array(files).reshape(-1, 2))


def draw_analysis(objects: Sequence[str], each: int, *, seed: int = 0) -> dict[str, list[str]]:
    """Draw the analysis set: ``each`` pictures of every class, or find them.

    Parameters
    ----------
    objects : sequence of str
        Each gives three classes: without people, ``+man`` and ``+woman``. The k-th of the last two are twins,
        as are the k-th of man and woman.
    each : int
        Pictures a class, at least 2.
    seed : int
        Non-negative.

    Returns
    -------
    dict of str to list of str
        Class → files; man, woman, random first.

    Raises
    ------
    ValueError
        Fewer than two pictures a class.
    """
    if each < 2:
        raise ValueError(f"every class needs at least 2 pictures; got {each}. Raise the number of pictures.")
    names = ["man", "woman", "random", *objects, *(f"{o}+{who}" for o in objects for who in ("man", "woman"))]
    jobs = []
    for name in names:
        twins = name.replace("woman", "man")  # gender takes part in no draw
        for k in range(each):
            content = tuple(reversed(name.split("+")))
            jobs.append((f"{name}-{k:04d}", content, (seed, _ANALYSIS, *twins.encode(), k)))
    files = _drawn({"kind": "planted analysis", "objects": list(objects), "each": each, "seed": seed}, jobs)
    return {name: files[place * each : (place + 1) * each] for place, name in enumerate(names)}


def _drawn(settings: dict, jobs: list[tuple]) -> list[str]:
    """Draw pictures into a folder named by what they are, unless they are there; return their files."""
    told = "-".join(
        str(value).replace(" ", "-") for value in settings.values() if not isinstance(value, list)
    )
    listed = "-".join(name for value in settings.values() if isinstance(value, list) for name in value)
    folder = paths.raw("planted", f"{told}{listed and '-' + listed}-{drawing_code()}".replace(" ", "-"))
    with whole_folder(folder, settings) as partial:
        if partial is not None:
            render([Job((), content, seed, SIZE, _file(partial, name)) for name, content, seed in jobs])
    return [str(_file(folder, name)) for name, *_ in jobs]


def _file(folder: Path, name: str) -> Path:
    return folder / f"{name.replace(' ', '-')}.jpg"
