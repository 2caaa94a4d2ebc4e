"""``biastransfer audit``."""

import argparse
import sys

WHAT = "audit a network, or one before and after finetuning, on pictures of one's own"
EXAMPLES = """\
  biastransfer audit --before efficientnet_lite0 --after best.safetensors \\
      --pictures my/pictures --out report.html
  biastransfer audit --before resnet50 --pictures my/pictures --out report.html --json audit.json \\
      --fail-on 'association:low>0.5'
  biastransfer audit --before squeezenet1_1 --pictures my/pictures --out report.html \\
      --roles attributes=old,young objects=car,bicycle random=anything

my/pictures holds a folder a class: man, woman, random, car, car+man, car+woman, … ; what stands behind a plus
sign is an attribute. A rule of --fail-on is on a bound of a 95 % interval:
association, association_before, association_change (sizes of d), bts, bts_intra, bts_inter; then :low or
:high; then <, <=, > or >= and a number. The status is 1 where a rule fails or cannot be decided."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command on ``parser``."""
    add = parser.add_argument
    add("--before", required=True, metavar="NAME_OR_FILE", help="as load_backbone takes it; a file: weights")
    add("--after", metavar="NAME_OR_FILE", help="after finetuning; without it, one network is audited alone")
    add("--pictures", required=True, metavar="FOLDER_OR_SET", help="a folder a class, or a set by name")
    add("--out", required=True, metavar="FILE", help="the report: one HTML file that needs nothing else")
    add("--json", metavar="FILE", help="the same numbers for a model card or a CI job")
    add("--fail-on", nargs="+", default=[], metavar="RULE", help="status 1 where one is met, see below")
    add(
        "--roles", nargs="+", metavar="KEY=NAMES", help="attributes=, objects=, random= (default: from names)"
    )
    add("--untrained", type=int, default=19, metavar="N", help="networks that never learned (default: 19)")
    add("--seed", type=int, default=0, help="of everything random (default: 0)")
    add("--maps", type=int, default=10, metavar="N", help="pictures with association maps (default: 10)")
    add("--resamples", type=int, default=2000, metavar="N", help="of the pictures (default: 2000)")
    add("--before-architecture", metavar="NAME", help="of a file that does not say what it holds")
    add("--after-architecture", metavar="NAME", help="of a file that does not say what it holds")
    add("--trust", action="store_true", help="code in the files may run (TorchScript, pickles)")
    add("--root", default="", metavar="PATH", help="with a set by name: its folder or tar")
    add("--scale", type=float, default=1.0, metavar="X", help="with a set scenes-…: of the paper's counts")


def run(given: argparse.Namespace) -> int:
    """Audit as ``given``; print the answer and the rules; return 1 where one fails."""
    from biastransfer.audit import audit

    options = {name: value for name, value in vars(given).items() if name != "command"}
    done = audit(options.pop("before"), options.pop("after"), **options, report=_say)
    print(*done.facts["answer"], sep="\n")
    for one in done.facts["rules"]:
        print(f"fail on {one['rule']}: {one['decision']} ({one['because']})")
    print(*(file for file in (done.html, done.json) if file), sep="\n")
    return 0 if done.passed else 1


def _say(stage: str) -> None:
    print(stage, file=sys.stderr, flush=True)  # beside the bars that a terminal shows, and into a log
