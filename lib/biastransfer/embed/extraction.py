"""Pictures through a network: decoded, resized, batched, pooled at one layer."""

import dataclasses
import hashlib
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from tqdm import tqdm

from biastransfer import distributed
from biastransfer.backbones import Backbone, Transform, forward_layer
from biastransfer.backbones.batches import to_batch
from biastransfer.embed.folding import fold_batch_norm
from biastransfer.images import ImageReadError, decode_rgb, picture_bytes
from biastransfer.prefetch import ahead

_CHUNK = 1024  # pictures a cache file: what a killed run loses at most
_BATCH = {"cpu": 8, "cuda": 128}  # on a CPU larger activations leave the caches


def extract(
    backbone: Backbone, layer: str | None, files: dict[str, str], batch_size: int | None, device: str | None
) -> Iterator[dict[str, np.ndarray | str]]:
    """Run pictures through a network, decoding as it goes, so that memory holds a few batches at a time.

    Parameters
    ----------
    backbone : Backbone
        Left as it is: the network runs as a copy in eval mode.
    layer : str or None
        As for `forward_layer`.
    files : dict of str to str
        SHA-256 of a picture's bytes → its file. The same on every rank; each computes its share.
    batch_size : int or None
        Pictures a forward pass; default 4 on a CPU, 128 on a GPU.
    device : str or None
        Default ``"cuda"`` where there is one, else ``"cpu"``.

    Yields
    ------
    dict of str to (D,) float32 array or str
        For up to 1,024 pictures at a time, in the order of ``files`` and on every rank: SHA-256 → the
        vector, or the reason why there is none.
    """
    if not files:
        return
    run, where, batch_size = prepared(backbone, layer, batch_size, device)
    names, rank, ranks = list(files), distributed.rank(), distributed.size()
    chunks = [names[start : start + _CHUNK] for start in range(0, len(names), _CHUNK)]
    shares = [{name: files[name] for name in chunk[rank::ranks]} for chunk in chunks]
    quiet = rank > 0 or not sys.stderr.isatty()
    with tqdm(total=sum(map(len, shares)), desc=backbone.name, disable=quiet) as bar:
        for chunk, share in zip(chunks, shares):
            found: dict[str, np.ndarray | str] = {}
            for part in _computed(run, share, backbone.transform, batch_size, where):
                found |= part
                bar.update(len(part))
            merged = {name: result for part in distributed.gathered(found) for name, result in part.items()}
            yield {name: merged[name] for name in chunk}


def prepared(backbone: Backbone, layer: str | None, batch_size: int | None, device: str | None):
    """Return a function from input to vectors, its device and its batch size.

    Parameters
    ----------
    backbone, layer, batch_size, device
        As for `extract`.
    """
    where = _place(device)
    batch_size = batch_size or _BATCH[where.type if where.type in _BATCH else "cuda"]
    return _runner(backbone, layer, where), where, batch_size


def _place(device: str | None) -> torch.device:
    if device is None:
        device = "cuda" if torch.cuda.is_available() else "cpu"
    place = torch.device(device)
    own = place.type == "cuda" and place.index is None and distributed.size() > 1
    return torch.device("cuda", distributed.local_rank()) if own else place


def _computed(run, files: dict[str, str], transform: Transform, batch_size: int, device: torch.device):
    """Yield what becomes of the pictures, a batch at a time; a thread decodes the next ones meanwhile."""
    with ahead(_batches(files, transform, batch_size, device)) as batches:
        for names, batch, failed in batches:
            vectors = run(batch) if names else ()
            yield failed | {
                name: vector if np.isfinite(vector).all() else "its embedding is not finite"
                for name, vector in zip(names, vectors)
            }


def _batches(files: dict[str, str], transform: Transform, batch_size: int, device: torch.device):
    """Yield names of pictures, their input, and the reasons of those that could not be read before them."""
    names: list[str] = []
    pictures: list[np.ndarray] = []
    failed: dict[str, str] = {}
    last = next(reversed(files), None)
    for name, result in _decoded(files, transform, device):
        if isinstance(result, str):
            failed[name] = result
        else:
            names.append(name)
            pictures.append(result)
        if name == last or len(names) == batch_size:
            # always a full batch: kernels are chosen by shape, so a vector would else depend, in its last
            # digits, on how many other pictures the cache happened to lack
            full = pictures + pictures[-1:] * (batch_size - len(pictures))
            yield names, to_batch(np.stack(full), transform, device) if names else None, failed
            names, pictures, failed = [], [], {}


def _decoded(files: dict[str, str], transform: Transform, device: torch.device):
    """Yield each picture's name and its pixels, or the reason why there are none."""

    def one(entry: tuple[str, str]) -> tuple[str, np.ndarray | str]:
        name, file = entry
        try:
            return name, transform.resized(_decode(file, name))
        except ImageReadError as error:
            return name, str(error)

    if device.type == "cpu":  # the network needs the cores; more threads would only get in its way
        yield from map(one, files.items())
        return
    with ThreadPoolExecutor(distributed.cores()) as pool:
        yield from pool.map(one, files.items())


def _decode(file: str, sha256: str) -> np.ndarray:
    """Decode a picture if its bytes are still those that were hashed, else the cache would lie."""
    data = picture_bytes(file)
    if hashlib.sha256(data).hexdigest() != sha256:
        raise ImageReadError(f"{file}: a picture must not change while it is embedded; it did. Run again.")
    return decode_rgb(data, file)


def _runner(backbone: Backbone, layer: str | None, device: torch.device) -> Callable:
    """Return a function from input (N, 3, size, size) to vectors (N, D) float32."""

    def forward(module, x):
        return forward_layer(dataclasses.replace(backbone, module=module), x, layer)

    size = backbone.transform.size
    noise = np.random.default_rng(0).integers(0, 256, (1, size, size, 3), dtype=np.uint8)
    example = to_batch(noise, backbone.transform, next(backbone.module.parameters()).device)
    # folded where the weights are, then moved: the copy leaves the caller's network alone
    module = fold_batch_norm(backbone.module, forward, example)
    module = module.to(device, memory_format=torch.channels_last)

    def run(x: torch.Tensor) -> np.ndarray:
        # TF32, which a GPU's convolutions take by default, moves values by 1e-3: no change but speed
        with torch.inference_mode(), torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
            return forward(module, x).float().cpu().numpy()

    return run
