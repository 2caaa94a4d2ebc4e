"""Where published weights lie on this machine, and one clear sentence where they do not."""

import contextlib
import dataclasses
import hashlib
import os
import sys
import threading
import urllib.error
import urllib.request
from pathlib import Path

import torch

from biastransfer import paths

_PATIENCE = 1.5  # seconds that the model hub has to answer


@dataclasses.dataclass(frozen=True)
class Weights:
    """Published weights.

    Attributes
    ----------
    file : str
        Their name below `paths.weights`, by which PyTorch's cache knows them too.
    digest : str
        How their hash begins, ``"sha256:0676ba61"`` or ``"md5:a04e12f8"``; empty where none was published.
    hub : str
        Repository on the Hugging Face hub that has the same weights; empty if none is known.
    hub_files : tuple of str
        The file's possible names there, the preferred first.
    get : str
        How to come by the file; where it is empty, the hub is asked for it.
    """

    file: str
    digest: str = ""
    hub: str = ""
    hub_files: tuple[str, ...] = ("model.safetensors", "pytorch_model.bin")
    get: str = ""


def find(weights: Weights, name: str) -> Path:
    """Return the file with the weights: in ``data/raw/weights``, in a cache, else from the hub.

    Parameters
    ----------
    weights : Weights
    name : str
        The backbone's name, for the message.

    Returns
    -------
    path

    Raises
    ------
    FileNotFoundError
        If the file is nowhere and the hub, for weights that only it has, is not asked (``HF_HUB_OFFLINE``) or
        does not answer within two seconds; the message names the file, its place and how to get it.
    ValueError
        If the file does not have the published hash.
    """
    for path in (paths.weights(weights.file), *_caches(weights.file)):
        if path.is_file():
            _check(path, weights.digest)
            return path
    if weights.hub and (found := _from_hub(weights)):
        return found
    get = weights.get or f"save {weights.hub_files[0]} of https://huggingface.co/{weights.hub} there"
    raise FileNotFoundError(
        f"{name} needs its weights as {paths.weights(weights.file)}, which is not there; {get}, put the file "
        "there yourself, or pass weights=PATH."
    )


def identity(path: Path, weights: Weights | None) -> str:
    """Return how the hash of the file ``path`` begins, and whether as published for ``weights``."""
    algorithm, _, expected = (weights.digest if weights else "").rpartition(":")
    algorithm = algorithm or "sha256"
    found = _digest(path, algorithm)
    if not expected:
        return f"{algorithm} {found[:8]}…"
    same = "as published" if found.startswith(expected) else f"not the published {expected[:8]}…"
    return f"{algorithm} {found[:8]}…, {same}"


def _caches(file: str) -> list[Path]:
    """Return where PyTorch, timm and OpenAI's CLIP keep what they download."""
    clip = Path(os.path.expanduser("~")) / ".cache" / "clip"
    return [Path(torch.hub.get_dir()) / "checkpoints" / file, clip / file]


def _check(path: Path, digest: str) -> None:
    algorithm, _, expected = digest.rpartition(":")
    if expected and not (found := _digest(path, algorithm)).startswith(expected):
        raise ValueError(
            f"{path} must have the published {algorithm}, {expected[:8]}…; it has {found[:8]}…. "
            "Fetch it again, or pass weights=PATH to use your own file on purpose."
        )


def _digest(path: Path, algorithm: str) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, algorithm).hexdigest()


def _from_hub(weights: Weights) -> Path | None:
    """Return a file of the Hugging Face hub: from its cache, else downloaded if nothing else gets it."""
    from huggingface_hub import constants, hf_hub_download, try_to_load_from_cache
    from huggingface_hub.utils import disable_progress_bars

    for file in weights.hub_files:
        if isinstance(cached := try_to_load_from_cache(weights.hub, file), str):
            return Path(cached)
    if weights.get or constants.HF_HUB_OFFLINE:
        return None
    if not sys.stderr.isatty():
        disable_progress_bars()
    for file in weights.hub_files:
        status = _answer(f"{constants.ENDPOINT}/{weights.hub}/resolve/main/{file}")
        if status is None:
            return None
        if status < 400:
            # whatever still goes wrong ends in the one sentence of `find`: the file is not there
            with contextlib.suppress(Exception):
                return Path(hf_hub_download(weights.hub, file))
    return None


def _answer(address: str) -> int | None:
    """Return the status that an address answers in time, None without an answer.

    The hub's own client would try again and again for most of a minute. The question is asked aside, since
    looking up a name alone can hang for long.
    """
    answers: list[int] = []

    def ask():
        request = urllib.request.Request(address, method="HEAD")
        with contextlib.suppress(OSError):
            try:
                with urllib.request.urlopen(request, timeout=_PATIENCE) as answer:
                    answers.append(answer.status)
            except urllib.error.HTTPError as error:
                answers.append(error.code)

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(_PATIENCE)
    return answers[0] if answers else None
