"""Reading a finetuning target from COCO instances files (scenes, COCO itself, LVIS) or from Open Images."""

from pathlib import Path

import msgspec
import numpy as np

from biastransfer.analysis_sets.coco_json import Annotation, Category, Picture, decode
from biastransfer.finetune import openimages_target
from biastransfer.finetune.targets import Target, check_max_train, draw_order, make_target


class _Picture(Picture):
    neg_category_ids: list[int] | None = None


class _Instances(msgspec.Struct):
    images: list[_Picture]
    annotations: list[Annotation]
    categories: list[Category]


def load_target(
    root,
    *,
    shares=(0.6, 0.2, 0.2),
    seed: int = 0,
    max_train: int | None = None,
    reading: str = "verified",
) -> Target:
    """Read a finetuning target in COCO's or Open Images' format from a folder.

    Parameters
    ----------
    root : path
        Holds ``annotations/instances_{train,val,test}.json`` (a year may follow, as in
        ``instances_train2017.json``) and the pictures in ``images/``, ``images/<split>/``, ``<split>/`` or
        beside them. Or Open Images' CSV files and pictures, see `openimages_target.read`.
    shares : tuple of three float
        Train, val and test shares where the folder has a single ``instances.json``.
    seed : int
        Of the draws.
    max_train : int, optional
        Draw so many of the training pictures (`targets.draw_order`), for the question what a target's size
        changes. A smaller number is part of a larger one of the same seed. `prepare_target` draws them from
        those that are left after an exclusion.
    reading : {"verified", "released"}
        Of Open Images' labels, see `openimages_target.read`; COCO has one reading.

    Returns
    -------
    Target
        Classes in the order of their category ids (Open Images: of the class descriptions), splits in the
        order of the picture ids.

    Raises
    ------
    FileNotFoundError
        No such folder, no annotation file, or a listed picture that is not there (named; of Open Images
        such pictures are left out and counted in the notes).
    ValueError
        A file that is not COCO JSON, splits with different categories, a ``max_train`` below 1, or what
        `make_target` refuses.

    Notes
    -----
    A class is present when any annotation of it exists, crowds included; all others are absent, as COCO
    labels its 80 classes exhaustively. Pictures that follow LVIS (``neg_category_ids``) are known to lack
    those classes only: all others are unknown (NaN) and masked. Without a test file, half of val (drawn by
    seed) becomes test, so that the epoch is never chosen on the pictures that score it; with one
    ``instances.json``, its pictures are drawn into the shares.
    """
    check_max_train(max_train)
    root = Path(root)
    if not root.is_dir():
        raise FileNotFoundError(f"the target's folder must exist; {str(root)!r} does not. Write or fetch it.")
    found = {name: file for name in ("train", "val", "test") if (file := _annotations(root, name))}
    whole = root / "annotations" / "instances.json"
    if not found and not whole.is_file() and openimages_target.is_open_images(root):
        names, parts, notes = openimages_target.read(root, max_train=max_train, seed=seed, reading=reading)
    else:
        names, parts, notes = _coco(root, found, whole, shares, seed)
        parts["train"], said = _fewer(parts["train"], max_train, seed)
        notes = [*notes, *said]
    if "test" not in parts:
        (parts["val"], parts["test"]) = _cut(parts["val"], (0.5, 0.5), seed)
        notes.append("no test file: half of val, drawn by seed, is the test split")
    return make_target(names, parts["train"], parts["val"], parts["test"], notes=notes)


def _coco(root: Path, found: dict[str, Path], whole: Path, shares, seed: int):
    """Return the class names, the parts and what to note of COCO files."""
    if not found and whole.is_file():
        return _drawn(root, whole, shares, seed)
    if not {"train", "val"} <= set(found):
        raise FileNotFoundError(
            f"annotations/instances_train.json and instances_val.json (or one instances.json), or Open "
            f"Images' CSV files, must lie in {str(root)!r}; found {sorted(found) or 'neither'}. Write the "
            "target or give its folder."
        )
    read = {name: _read(root, name, file) for name, file in found.items()}
    names = read["train"][0]
    for name, (theirs, *_) in read.items():
        if theirs != names:
            raise ValueError(
                f"all splits must list the same categories; train has {len(names)} and {name} "
                f"{len(theirs)}, different: {sorted(set(names) ^ set(theirs))[:5]}. Use one release."
            )
    return names, {name: part for name, (_, part) in read.items()}, []


def _fewer(part, most: int | None, seed: int):
    """Return the first ``most`` pictures in the order of the seed's draw, and what to note."""
    files, labels = part
    if most is None or most >= len(files):
        return part, []
    chosen = sorted(draw_order(seed, files)[:most])
    note = f"train: {most} pictures drawn by seed {seed}"
    return ([files[i] for i in chosen], labels[chosen]), [note]


def _annotations(root: Path, split: str) -> Path | None:
    """Return instances_<split>.json, or the last instances_<split><year>.json."""
    files = sorted((root / "annotations").glob(f"instances_{split}*.json"))
    return next((file for file in files if file.stem == f"instances_{split}"), files[-1] if files else None)


def _drawn(root: Path, whole: Path, shares, seed: int):
    names, part = _read(root, "", whole)
    train, val, test = _cut(part, shares, seed)
    note = "one instances.json: pictures drawn by seed into {:.0%} train, {:.0%} val, {:.0%} test".format(
        *shares
    )
    return names, {"train": train, "val": val, "test": test}, [note]


def _cut(part, shares, seed: int) -> list:
    """Draw a part's pictures into shares; each keeps the part's order."""
    files, labels = part
    order = np.random.default_rng([seed, len(files)]).permutation(len(files))
    edges = np.round(np.cumsum(shares)[:-1] / np.sum(shares) * len(files)).astype(int)
    return [([files[i] for i in sorted(chosen)], labels[sorted(chosen)]) for chosen in np.split(order, edges)]


def _read(root: Path, split: str, file: Path):
    """Return the class names and (files, labels) of one instances file."""
    content = decode(file, _Instances)
    categories = sorted(content.categories, key=lambda c: c.id)
    column = {category.id: k for k, category in enumerate(categories)}
    images = sorted(content.images, key=lambda image: image.id)
    row = {image.id: n for n, image in enumerate(images)}
    labels = np.zeros((len(images), len(categories)), dtype=np.float32)
    for n, image in enumerate(images):
        if image.neg_category_ids is not None:
            if unknown := set(image.neg_category_ids) - set(column):
                raise ValueError(
                    f"{str(file)!r}: neg_category_ids must name listed categories; picture {image.id} has "
                    f"{min(unknown)}. Is the file whole?"
                )
            labels[n] = np.nan
            labels[n, [column[c] for c in image.neg_category_ids]] = 0
    for annotation in content.annotations:
        if annotation.image_id not in row or annotation.category_id not in column:
            raise ValueError(
                f"{str(file)!r}: every annotation must name a listed picture and category; got picture "
                f"{annotation.image_id}, category {annotation.category_id}. Is the file whole?"
            )
        labels[row[annotation.image_id], column[annotation.category_id]] = 1
    for image in images:
        if Path(image.file_name).is_absolute() or ".." in Path(image.file_name).parts:
            raise ValueError(
                f"{str(file)!r}: a picture's file_name must be a path below the target's folder; got "
                f"{image.file_name!r}. Correct it."
            )
    folder = _folder(root, split, file, images)
    return tuple(c.name for c in categories), ([str(folder / image.file_name) for image in images], labels)


def _folder(root: Path, split: str, file: Path, images: list[_Picture]) -> Path:
    """Return the folder that holds all of a split's pictures, or raise naming the first missing one."""
    year = file.stem.removeprefix("instances_")
    folders = [
        root / "images",
        root / "images" / year,
        root / "images" / split,
        root / year,
        root / split,
        root,
    ]
    if not images:
        return root / "images"
    folder = next((f for f in folders if (f / images[0].file_name).is_file()), None)
    if folder is None:
        raise FileNotFoundError(
            f"{images[0].file_name!r} of {file.name} must lie in images/, images/{year}/ or {year}/ of "
            f"{str(root)!r}; it does not. Fetch or write the pictures."
        )
    for image in images:
        if not (folder / image.file_name).is_file():
            raise FileNotFoundError(
                f"{image.file_name!r} of {file.name} must lie in {str(folder)!r}; it does not."
            )
    return folder
