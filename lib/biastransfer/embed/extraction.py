"""Pictures through a network: decoded, resized, batched, pooled at one layer."""

import dataclasses
import hashlib
import sys
from collections.abc import Callable, Iterator

import numpy as np
import torch
from tqdm import tqdm

from biastransfer.backbones import Backbone, forward_layer
from biastransfer.embed.folding import fold_batch_norm
from biastransfer.images import ImageReadError, decode_rgb, picture_bytes


def extract(
    backbone: Backbone, layer: str | None, files: dict[str, str], batch_size: int, device: str | None
) -> Iterator[tuple[str, np.ndarray | str]]:
    """Run pictures through a network, decoding as it goes, so that memory holds one batch at a time.

    Parameters
    ----------
    backbone : Backbone
        Left as it is: the network runs as a copy in eval mode.
    layer : str or None
        As for `forward_layer`.
    files : dict of str to str
        SHA-256 of a picture's bytes → its file.
    batch_size : int
        Pictures a forward pass.
    device : str or None
        Default ``"cuda"`` where there is one, else ``"cpu"``.

    Yields
    ------
    sha256 : str
    result : (D,) float32 array or str
        The vector, or the reason why there is none.
    """
    if not files:
        return
    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    run = _runner(backbone, layer, device)
    batch: list[tuple[str, np.ndarray]] = []
    last = next(reversed(files))
    for name, file in tqdm(files.items(), desc=backbone.name, disable=not sys.stderr.isatty()):
        try:
            batch.append((name, backbone.transform.resized(_decode(file, name))))
        except ImageReadError as error:
            yield name, str(error)
        if batch and (len(batch) == batch_size or name == last):
            # always a full batch: kernels are chosen by shape, so a vector would else depend, in its last
            # digits, on how many other pictures the cache happened to lack
            pictures = [picture for _, picture in batch]
            vectors = run(np.stack(pictures + pictures[-1:] * (batch_size - len(batch))))
            for (done, _), vector in zip(batch, vectors):
                yield done, vector if np.isfinite(vector).all() else "its embedding is not finite"
            batch = []


def _decode(file: str, sha256: str) -> np.ndarray:
    """Decode a picture if its bytes are still those that were hashed, else the cache would lie."""
    data = picture_bytes(file)
    if hashlib.sha256(data).hexdigest() != sha256:
        raise ImageReadError(f"{file}: a picture must not change while it is embedded; it did. Run again.")
    return decode_rgb(data, file)


def _runner(backbone: Backbone, layer: str | None, device: str) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function from resized pictures (N, size, size, 3) uint8 to vectors (N, D) float32."""

    def forward(module, x):
        return forward_layer(dataclasses.replace(backbone, module=module), x, layer)

    def inputs(pictures):
        # a transposed view of (N, H, W, 3) is what PyTorch calls channels_last: nothing is copied
        x = torch.from_numpy(pictures).to(device).permute(0, 3, 1, 2).to(torch.float32).div_(255)
        return backbone.transform.normalise(x)

    size = backbone.transform.size
    example = inputs(np.random.default_rng(0).integers(0, 256, (1, size, size, 3), dtype=np.uint8))
    # folded where the weights are, then moved: the copy leaves the caller's network alone
    module = fold_batch_norm(backbone.module, forward, example.to(next(backbone.module.parameters()).device))
    module = module.to(device, memory_format=torch.channels_last)

    def run(pictures):
        # TF32, which a GPU's convolutions take by default, moves values by 1e-3: no change but speed
        with torch.inference_mode(), torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
            return forward(module, inputs(pictures)).float().cpu().numpy()

    return run
