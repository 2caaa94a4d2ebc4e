"""``biastransfer fetch``."""

import argparse
from collections.abc import Mapping

from biastransfer import paths

WHAT = "fetch annotations, pictures and weights: resumed, checked, and only what is needed"
EXAMPLES = """\
  biastransfer fetch --list
  biastransfer fetch weights big-lama
  biastransfer fetch --set curated-coco
  biastransfer fetch coco --set released-coco --released path/to/analysis_sets
  biastransfer fetch --target openimages train validation --most 20000"""
_PATIENCE = ("mirror", "workers", "retries", "timeout", "connect_timeout")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command on ``parser``."""
    add = parser.add_argument
    add("names", nargs="*", metavar="NAME", help="files or groups of data/sources.toml")
    add("--list", action="store_true", help="print what can be fetched, and stop")
    add("--set", dest="set_name", metavar="SET", help="annotations, and the pictures that this set needs")
    add("--target", nargs="+", metavar="WORD", help="a data set and splits: all pictures of these splits")
    add("--most", type=int, metavar="N", help="with --target: the N training pictures that max_train draws")
    add(
        "--released", default="", metavar="PATH", help="the authors' lists (folder or tar), for released-coco"
    )
    add("--cap", type=int, metavar="N", help="with --set: pictures a class (default: as the notebooks)")
    add("--seed", type=int, default=0, help="of the choice (default: 0)")
    add("--spare", action="store_true", help="with --set: also those that come next, for a review by eye")
    add("--root", metavar="FOLDER", help="where all of it goes (default: data/raw)")
    add("--folder", metavar="FOLDER", help="where annotations lie and pictures of --set or --target go")
    add("--mirror", metavar="URL", help="takes the place of scheme and host of every address")
    add("--workers", type=int, default=8, metavar="N", help="files at the same time (default: 8)")
    add("--retries", type=int, default=5, metavar="N", help="after a failure that may pass (default: 5)")
    add("--timeout", type=float, default=30.0, metavar="S", help="seconds until a stall is one (default: 30)")
    add("--connect-timeout", type=float, default=1.3, metavar="S", help="for a host to answer (default: 1.3)")
    add("--csv", metavar="FILE", help="write how each file ended there")


def run(given: argparse.Namespace) -> int:
    """Fetch what was ``given``; return 1 where a file did not come."""
    from biastransfer import fetch

    if given.list:
        _print_sources(*fetch.load_sources())
        return 0
    if not (given.names or given.set_name or given.target):
        raise ValueError("name what to fetch: files or groups, --set or --target; --list prints all names.")
    paths.check_writable(given.csv, "--csv")
    patience = {name: getattr(given, name) for name in _PATIENCE}
    where = {"root": given.root, "folder": given.folder, **patience}
    reports = []
    if given.names:
        reports.append(fetch.fetch(given.names, root=given.root, **patience))
    if given.set_name:
        options = {"seed": given.seed} | ({} if given.cap is None else {"cap": given.cap})
        chosen = {"released": given.released, "spare": given.spare, "options": options}
        reports.append(fetch.fetch_set(given.set_name, **chosen, **where))
    if given.target:
        data, *splits = given.target
        reports.append(fetch.fetch_splits(data, splits, most=given.most, seed=given.seed, **where))
    for report in reports:
        print(*report.sentences(), sep="\n")
    if given.csv:
        import pandas as pd

        paths.write_csv(pd.concat([report.table() for report in reports]), given.csv)
    return int(any(report.failed for report in reports))


def _print_sources(files: Mapping, pictures: Mapping) -> None:
    for name, one in files.items():
        size = f"{one.bytes / 1e6:,.0f} MB" if one.bytes else "size not published"
        print(f"{name}  [{', '.join(one.group)}]  {size}\n    {one.use}; licence: {one.licence}")
    for name, one in pictures.items():
        print(f"--target {name} {' '.join(one.splits)}\n    {one.use}; licence: {one.licence}")
