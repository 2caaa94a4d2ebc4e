"""A whole audit against embedding its pictures with every network that it uses, in one run.

    python benchmarks/audit.py [--before efficientnet_lite0] [--after efficientnet_lite1] [--untrained 19]

Embedding goes from picture files to vectors without a cache, for both networks, their untrained copies (with
batch statistics of the pictures) and colour and layout. The audit then does all of it in an empty cache. The
maps' own passes are timed apart. Prints what is left as a ratio; it must be ≤ 1.3 after 20 s are granted.
"""

import argparse
import os
import tempfile
import time
from pathlib import Path

import numpy as np
import record
import torch
from PIL import Image

from biastransfer.analysis_sets import load_set
from biastransfer.audit import audit
from biastransfer.audit.maps import explain, telling
from biastransfer.audit.networks import embed_all, load_networks
from biastransfer.audit.roles import find_roles
from biastransfer.backbones import initialise_anew, load_backbone
from biastransfer.embed import embed
from biastransfer.embed.untrained import normalise

CLASSES = ["man", "woman", "random", *(f"{o}{a}" for o in ("car", "sports") for a in ("", "+man", "+woman"))]
GRANTED = 20  # seconds


def photographs(folder: Path, count: int) -> Path:
    """Write JPEGs of 340 × 256 pixels, a folder a class."""
    rng = np.random.default_rng(0)
    for index in range(count):
        place = folder / CLASSES[index % len(CLASSES)]
        place.mkdir(parents=True, exist_ok=True)
        coarse = Image.fromarray(rng.integers(0, 256, (24, 32, 3), dtype=np.uint8))
        coarse.resize((340, 256), Image.Resampling.BICUBIC).save(place / f"{index:04d}.jpg", quality=90)
    return folder


def embed_everything(before: str, after: str, files: list[str], untrained: int) -> None:
    """Embed with each network of the audit, nothing remembered."""
    networks = [load_backbone(name) for name in dict.fromkeys([before, after])]
    for one in [*networks, load_backbone("thumbnail")]:
        embed(one, files, cache=False)
    for one in networks:
        for seed in range(untrained):
            embed(normalise(initialise_anew(one, seed), files), files, cache=False)


def taken(clock, work):
    started = clock()
    result = work()
    return clock() - started, result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", default="efficientnet_lite0")
    parser.add_argument("--after", default="efficientnet_lite1")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--untrained", type=int, default=19)
    parser.add_argument("--maps", type=int, default=10)
    parser.add_argument("--processor-time", action="store_true", help="on a busy machine")
    given = parser.parse_args()
    clock = time.process_time if given.processor_time else time.perf_counter
    pair = (given.before, given.after)
    with tempfile.TemporaryDirectory() as made:
        folder = photographs(Path(made, "pictures"), given.count)
        known = load_set("folder", root=folder)
        os.environ["BIASTRANSFER_CACHE"] = str(Path(made, "statistics"))
        files = known.items["file"].tolist()
        embedding, _ = taken(clock, lambda: embed_everything(*pair, files, given.untrained))
        os.environ["BIASTRANSFER_CACHE"] = str(Path(made, "cache"))
        options = {"untrained": given.untrained, "maps": given.maps}
        whole, _ = taken(clock, lambda: audit(*pair, pictures=folder, out=Path(made, "r.html"), **options))
        networks = load_networks(*pair)
        vectors = embed_all(networks, known, find_roles(known.classes), given.untrained)
        maps, _ = taken(clock, lambda: explain(networks, vectors, telling(vectors), given.maps))
    print(
        f"{given.before} and {given.after}, {given.count} pictures, {given.untrained} untrained each, "
        f"{torch.get_num_threads()} threads, load {os.getloadavg()[0]:.1f}, {clock.__name__}; seconds:"
    )
    print(f"  embedding with every network {embedding:.1f}, whole audit {whole:.1f}, of it maps {maps:.1f}")
    left = whole - maps
    print(f"audit without maps / embedding: {left / embedding:.2f}; with {GRANTED} s granted:", end=" ")
    print(f"{(left - GRANTED) / embedding:.2f} (must be ≤ 1.3)")
    record.keep(f"audit without maps, {GRANTED} s granted / embedding", (left - GRANTED) / embedding, "≤ 1.3")
    record.write(__file__, pictures=given.count, untrained=given.untrained, clock=clock.__name__)


if __name__ == "__main__":
    main()
