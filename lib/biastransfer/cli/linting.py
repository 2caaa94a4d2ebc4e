"""``biastransfer lint``."""

import argparse

from biastransfer import paths

WHAT = "check an analysis set: copies, imbalance, damage, licences"
EXAMPLES = """\
  biastransfer lint --folder my/pictures
  biastransfer lint --set released-openimages --root path/to/analysis_sets --training my/training

errors distort numbers, warnings may, notes inform"""
_WIDEST = 60  # characters of ids in the printed table; the CSV has all


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command on ``parser``."""
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--set", dest="set_name", metavar="SET", help="by name, as scenes-coco")
    which.add_argument("--folder", metavar="FOLDER", help="pictures of one's own, one folder a class")
    add = parser.add_argument
    add("--root", default="", metavar="PATH", help="with --set: its folder or tar (default: below data/raw)")
    add(
        "--scale",
        type=float,
        default=1.0,
        metavar="X",
        help="with --set scenes-…: of the paper's counts (default: 1)",
    )
    add("--seed", type=int, default=0, help="with --set (default: 0)")
    add("--training", metavar="FOLDER", help="pictures that a model is trained on: none should be in the set")
    add("--headers-only", action="store_true", help="decode no picture: quick, finds no near-duplicates")
    add("--csv", metavar="FILE", help="write the findings there, with all ids")


def run(given: argparse.Namespace) -> int:
    """Print what the linter finds in what was ``given``; return 1 where an error is among it."""
    from biastransfer.analysis_sets import load_set, picture_files
    from biastransfer.analysis_sets.lint import lint
    from biastransfer.analysis_sets.named import load_named

    paths.check_writable(given.csv, "--csv")
    if given.folder:
        if given.root:
            raise ValueError(
                f"--root must be left out beside --folder, it belongs to --set; got {given.root}."
            )
        pictures = load_set("folder", root=given.folder)
    else:
        pictures = load_named(given.set_name, root=given.root, scale=given.scale, seed=given.seed)
    training = picture_files.below(given.training) if given.training else None
    if given.training and not training:
        raise FileNotFoundError(f"--training must be a folder with pictures; {given.training} holds none.")
    found = lint(pictures, training=training, near=not given.headers_only)
    if given.csv:
        paths.write_csv(found, given.csv)
    n, classes = len(pictures.items), len(pictures.classes)
    sizes = f"{n} picture{'' if n == 1 else 's'} in {classes} class{'' if classes == 1 else 'es'}"
    print(f"{pictures.name}: {sizes}")
    if len(found):
        ids = [one if len(one) <= _WIDEST else f"{one[: _WIDEST - 1]}…" for one in found["ids"]]
        shown = found.assign(ids=ids)[["severity", "check", "class", "n", "ids", "what"]]
        print(shown.to_string(index=False))
    numbers = {name: int((found["severity"] == name).sum()) for name in ("error", "warning", "note")}
    print(", ".join(f"{n} {name}{'' if n == 1 else 's'}" for name, n in numbers.items()))
    return int(numbers["error"] > 0)
