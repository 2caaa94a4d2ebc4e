"""Curation of full-size annotation files against the usual way, in one run: seconds and peak memory.

Files of the size of Open Images' training boxes (14.6 million) and of COCO's training instances (860,001 with
their outlines) are generated in a temporary folder, read in processes of their own, and deleted.

    python benchmarks/curation.py [--rounds 3] [--share 1.0]
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

BOXES, PICTURES = 14_610_229, 1_743_042
COCO_BOXES, COCO_PICTURES = 860_001, 118_287
# file: seconds and MiB allowed on a machine where the usual way (pandas; pycocotools, which is json and an
# index) takes the seconds in PEER_SECONDS; a ratio to that way holds on any machine
LIMITS = {"openimages": (2.5, 500), "coco": (1.5, 700)}
PEER_SECONDS = {"openimages": 6.0, "coco": 17.7}
PEERS = {"openimages": "pandas", "coco": "json"}
BOX_FILE, INSTANCES = "train-annotations-bbox.csv", "instances_train2017.json"


def write_boxes(folder, share):
    """Write a box file block by block; classes as unequal as they are in Open Images."""
    import numpy as np
    import polars as pl

    from biastransfer.analysis_sets.openimages_classes import roles

    rng = np.random.default_rng(0)
    ours = [mid for mid, _ in roles()]
    mids = pl.Series(rng.permutation([*ours, *(f"/m/0{k:05x}" for k in range(601 - len(ours)))]))
    weights = 1 / np.arange(1, 602)
    names = rng.permutation(int(PICTURES * share)).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    flags = {
        "IsOccluded": 0.66,
        "IsTruncated": 0.25,
        "IsGroupOf": 0.06,
        "IsDepiction": 0.05,
        "IsInside": 0.001,
    }
    with open(folder / BOX_FILE, "wb") as file:
        for block, ids in enumerate(np.array_split(names, 16)):
            n = int(BOXES * share) // 16
            text = pl.Series([f"{one:016x}" for one in ids.tolist()])
            x, y = (np.sort(rng.random((n, 2), dtype=np.float32), axis=1) for _ in range(2))
            sides = {"XMin": x[:, 0], "XMax": x[:, 1], "YMin": y[:, 0], "YMax": y[:, 1]}
            table = {
                "ImageID": text.gather(np.sort(rng.integers(0, len(ids), n))),
                "Source": pl.repeat("xclick", n, eager=True),
                "LabelName": mids.gather(rng.choice(601, n, p=weights / weights.sum())),
                "Confidence": pl.repeat(1, n, eager=True),
                **sides,
                **{name: (rng.random(n) < p).astype(np.int8) for name, p in flags.items()},
            }
            pl.DataFrame(table).write_csv(file, include_header=block == 0, float_precision=6)


def write_instances(folder, share):
    """Write an instances file with outlines of up to 90 numbers, crowds' as run lengths."""
    import numpy as np

    rng = np.random.default_rng(0)
    boxes, pictures = int(COCO_BOXES * share), int(COCO_PICTURES * share)
    ids = np.sort(rng.choice(581_929, pictures, replace=False)).tolist()
    outlines = [
        "[[" + ",".join(f"{v:.2f}" for v in rng.random(n) * 600) + "]]" for n in rng.integers(12, 91, 2000)
    ]
    runs = '{"counts": [' + ",".join(map(str, range(100))) + '], "size": [427, 640]}'
    names = ["person", "car", "stop sign", "surfboard", "refrigerator", *(f"thing {k}" for k in range(75))]
    at = np.sort(rng.integers(0, pictures, boxes)).tolist()
    category, outline = rng.integers(1, 81, boxes).tolist(), rng.integers(0, 2000, boxes).tolist()
    sides, crowd = (rng.random((boxes, 4)) * 300).tolist(), (rng.random(boxes) < 0.012).tolist()
    with open(folder / INSTANCES, "w", encoding="utf-8") as file:
        file.write('{"info": {}, "licenses": [], "images": [')
        file.write(", ".join(
            f'{{"license": 4,"file_name": "{one:012d}.jpg","coco_url": "http://a.org/train2017/{one:012d}.jpg",'
            f'"height": 427,"width": 640,"date_captured": "2013-11-14 11:18:45","id": {one}}}'
            for one in ids
        ))  # fmt: skip
        file.write('], "annotations": [')
        for k in range(boxes):
            drawn = runs if crowd[k] else outlines[outline[k]]
            box = ",".join(f"{v:.2f}" for v in sides[k])
            file.write(
                f'{", " if k else ""}{{"segmentation": {drawn},"area": 1.5,"iscrowd": {int(crowd[k])},'
                f'"image_id": {ids[at[k]]},"bbox": [{box}],"category_id": {category[k]},"id": {k + 1}}}'
            )
        listed = [{"supercategory": "x", "id": k, "name": name} for k, name in enumerate(names, 1)]
        file.write('], "categories": ' + json.dumps(listed) + "}")


def openimages(folder):
    """Give each picture its class, choose 150 a class, count every decision."""
    import polars as pl

    from biastransfer.analysis_sets import choosing, openimages
    from biastransfer.analysis_sets.decisions import tabulate_decisions
    from biastransfer.analysis_sets.openimages_files import find

    def work():
        facts = openimages.describe(find(folder))
        choice = choosing.choose(facts.with_columns(file=pl.lit("a.jpg")), "openimages", cap=150)
        tabulate_decisions(choice.made, [])
        return len(facts), int((facts["reason"] != choosing.NO_CLASS).sum())

    return work


def openimages_peer(folder):
    """Read the file and say for each picture which of the set's classes are boxed."""
    import pandas as pd

    from biastransfer.analysis_sets.openimages_classes import roles

    def work():
        table = pd.read_csv(folder / BOX_FILE)
        boxed = table[table["LabelName"].isin([mid for mid, _ in roles()])]
        return table["ImageID"].nunique(), boxed.groupby("ImageID")["LabelName"].agg(set).size

    return work


def coco(folder):
    """Read pictures and boxes, give each picture its class, choose 50 a class, count every decision."""
    from biastransfer.analysis_sets import choosing
    from biastransfer.analysis_sets.coco import describe
    from biastransfer.analysis_sets.coco_files import read_instances
    from biastransfer.analysis_sets.decisions import tabulate_decisions

    def work():
        pictures, boxes = read_instances([folder / INSTANCES])
        pictures = pictures.assign(captions=[()] * len(pictures), file="a.jpg")
        pictures["id"] = [f"{one:012d}" for one in pictures["id"]]
        facts = choosing.assign(describe(pictures, boxes, 1, 0.02, 0.02, "exclude"))
        tabulate_decisions(choosing.choose(facts, "coco", cap=50).made, [])
        large = boxes[(boxes["category"] == "car") & ~boxes["crowd"] & (boxes["share"] >= 0.02)]
        return len(pictures), large["picture"].nunique()

    return work


def coco_peer(folder):
    """Load the file, index it as pycocotools does, find the pictures with a large car."""

    def work():
        with open(folder / INSTANCES, encoding="utf-8") as text:
            data = json.load(text)
        names = {one["id"]: one["name"] for one in data["categories"]}
        boxes, shown, numbered = defaultdict(list), defaultdict(list), {}
        for one in data["annotations"]:
            boxes[one["image_id"]].append(one)
            numbered[one["id"]] = one
        pictures = {one["id"]: one for one in data["images"]}
        for one in data["annotations"]:
            shown[one["category_id"]].append(one["image_id"])
        large = sum(
            any(
                names[box["category_id"]] == "car"
                and not box["iscrowd"]
                and box["bbox"][2] * box["bbox"][3] / (one["width"] * one["height"]) >= 0.02
                for box in boxes[one["id"]]
            )
            for one in pictures.values()
        )
        return len(pictures), large

    return work


def child(name, folder):
    """Run one reading; print its seconds, seconds of processors, peak memory in MiB and what it found."""
    work = globals()[name](Path(folder))
    start, busy = time.perf_counter(), time.process_time()
    found = work()
    seconds, busy = time.perf_counter() - start, time.process_time() - busy
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 1024)
    if Path("/proc/self/status").is_file():  # there ru_maxrss starts at what the parent held when it forked
        lines = Path("/proc/self/status").read_text().splitlines()
        peak = next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))
    print(json.dumps([seconds, peak, busy, *map(int, found)]))


def measured(name, folder):
    done = subprocess.run(
        [sys.executable, __file__, "--child", name, str(folder)], check=True, capture_output=True, text=True
    )
    return json.loads(done.stdout)


def compare(kind, folder, rounds):
    """Print both ways' medians, interleaved, as ratios to the limits and to the peer."""
    import record  # here: what the children import counts as their memory

    pairs = [(measured(kind, folder), measured(f"{kind}_peer", folder)) for _ in range(rounds)]
    for ours, theirs in pairs:
        if ours[3:] != theirs[3:]:
            raise ValueError(
                f"both ways must find the same; {kind}: {ours[3:]}, {PEERS[kind]}: {theirs[3:]}."
            )
    for column, (what, unit) in enumerate((("time", "s"), ("peak memory", "MiB"), ("processors", "s"))):
        mine, peer = (statistics.median(one[way][column] for one in pairs) for way in (0, 1))
        limit = LIMITS[kind][column] if column < 2 else None
        allowed = f"{mine / limit:6.2f} of the allowed {limit} {unit}" if limit else " " * 31
        against = f"{mine / peer:6.3f} of {PEERS[kind]} ({peer:.2f} {unit})"
        print(f"{kind + ', ' + what:24s} {mine:8.2f} {unit:3s} {allowed:31s} {against}")
        timed = unit == "s"
        if limit:
            note = (
                f"{limit} s where {PEERS[kind]} takes {PEER_SECONDS[kind]} s; here {peer:.1f} s"
                if timed
                else ""
            )
            record.keep(f"{kind}, {what} / {limit} {unit}", mine / limit, "" if timed else "≤ 1", note)
        must = f"≤ {LIMITS[kind][0] / PEER_SECONDS[kind]:.3f}" if limit and timed else ""
        record.keep(f"{kind}, {what} / {PEERS[kind]}", mine / peer, must)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--share", type=float, default=1.0, help="of the full size; limits hold at 1")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.child:
        return child(*chosen.child)
    import record

    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    with tempfile.TemporaryDirectory() as place:
        for kind, write in (("openimages", write_boxes), ("coco", write_instances)):
            folder = Path(place, kind)
            folder.mkdir()
            write(folder, chosen.share)
            size = sum(file.stat().st_size for file in folder.iterdir()) / 2**20
            print(f"{kind}: a file of {size:,.0f} MiB")
            compare(kind, folder, chosen.rounds)
    record.write(__file__, share=chosen.share)
    return None


if __name__ == "__main__":
    main()
