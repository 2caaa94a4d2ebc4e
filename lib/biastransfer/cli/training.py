"""``biastransfer finetune``."""

import argparse

WHAT = "finetune a backbone on a target, as notebook 02 does"
EXAMPLES = """\
  biastransfer finetune --backbone resnet18 --target scenes --recipe demo
  torchrun --nproc-per-node 2 -m -- biastransfer.cli finetune --backbone resnet50 \\
      --target coco --root data/raw/coco --recipe coco --seed 1 --run paper

killed at any moment, the same command goes on where it was"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command on ``parser``."""
    add = parser.add_argument
    add("--backbone", required=True, metavar="NAME", help="as load_backbone takes it")
    add("--target", default="scenes", metavar="NAME", help="what it is finetuned on (default: scenes)")
    add(
        "--recipe",
        default="demo",
        metavar="NAME",
        help="demo, smoke …; coco, openimages: the paper's (default: demo)",
    )
    add("--seed", type=int, default=0, help="of head, order and augmentation (default: 0)")
    add(
        "--run",
        default="own",
        metavar="NAME",
        help="of the folders of results and checkpoints (default: own)",
    )
    add("--root", default="", metavar="FOLDER", help="of the target (default: below data/raw/targets)")
    add(
        "--max-train",
        type=int,
        metavar="N",
        help="draw N of the training pictures, of those that --exclude leaves",
    )
    add(
        "--exclude", nargs="+", default=[], metavar="SET", help="sets whose pictures are kept out of training"
    )
    add("--roots", nargs="+", default=[], metavar="PATH", help="a folder or tar of each of these sets")
    add("--no-likeness", action="store_true", help="with --exclude: do not look for near-duplicates")
    add("--device", metavar="NAME", help="cpu, cuda, cuda:1 … (default: a GPU where there is one)")
    add("--restart", action="store_true", help="do not go on with an interrupted training")


def run(given: argparse.Namespace) -> int:
    """Finetune as ``given`` and print each epoch and what came of it."""
    from biastransfer import distributed, paths
    from biastransfer.embedded_sets import load_sets
    from biastransfer.finetune import finetune, load_trainable, prepare_target, summary

    paths.results(given.run)  # what cannot be, before minutes are spent on the target
    backbone = load_trainable(given.backbone, given.recipe)
    distributed.start(given.device)
    options = {"exclude": load_sets(given.exclude, given.roots), "near": not given.no_likeness}
    if given.max_train is not None:
        options["max_train"] = given.max_train
    target = prepare_target(given.run, given.target, root=given.root, **options)
    named = {"run": given.run, "target_name": given.target, "recipe": given.recipe, "seed": given.seed}
    how = {"device": given.device, "resume": not given.restart, "report": _say}
    trained = finetune(backbone, target, **named, **how)
    if distributed.is_first():
        row = summary(trained.history).iloc[0]
        _say(*trained.notes)
        best, epochs = int(row["best_epoch"]), int(row["epochs"])
        _say(f"{given.backbone}, seed {given.seed}: best epoch {best} of {epochs}")
        scores = ("val_map", "validation mAP"), ("test_map", "test mAP"), ("test_chance", "chance")
        _say(", ".join(f"{label} {row[name]:.3f}" for name, label in scores))
        _say(f"{trained.device} ({trained.why}), {trained.seconds:.0f} s: {trained.best}")
    return 0


def _say(*sentences: str) -> None:
    for sentence in sentences:
        print(sentence, flush=True)  # a line an epoch, also into a file
