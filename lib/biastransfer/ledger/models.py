"""Which of our networks is which of the paper's (Table 1)."""

import re

import pandas as pd

from biastransfer.published import load

# Our name without punctuation. BiT fine-tuned on ImageNet-1k, ResNet50's second weights and MoCo v2 are other
# networks: the paper cites ImageNet-21k, the first weights and the first MoCo: our names mean these.
_OURS = {
    "ResNet18": r"resnet18(imagenet1kv1|tvin1k)?",
    "ResNet50": r"resnet50(imagenet1kv1|tvin1k)?",
    "BiT-M-R50x1": r"bitmr50x1|resnetv250x1bit(googin21k)?",
    "CLIP-ViT-B/32": r"(clip)?(openai)?vitb32(quickgelu)?(openai)?|vitbasepatch32clipquickgelu224openai",
    "SimCLR ResNet50": r"simclr(resnet50)?(1x)?(\d+ep)?",
    "MoCo ResNet50": r"moco(v1)?(resnet50)?(200ep)?",
}


def same_model(ours: str, theirs: str) -> bool:
    """Return whether our network is the one that the paper names.

    Parameters
    ----------
    ours : str
        Name of a backbone in a run's results.
    theirs : str
        Name in Table 1.

    Examples
    --------
    >>> same_model("moco_resnet50", "MoCo ResNet50"), same_model("moco_resnet50_v2_800", "MoCo ResNet50")
    (True, False)
    """
    plain = re.sub(r"[^a-z0-9]", "", ours.lower())
    return bool(re.fullmatch(_OURS.get(theirs, "$"), plain))


def models(found: pd.DataFrame) -> pd.DataFrame:
    """Return Table 1 with the names under which runs hold the same networks, then the networks of our own.

    Parameters
    ----------
    found : DataFrame
        As `measured` returns it.

    Returns
    -------
    DataFrame
        Columns `model`, `pretraining_dataset`, `pretraining`, `architecture` as printed; `runs` that hold it.
    """
    held = found[found["model"] != ""].groupby("model", sort=True)["run"].agg(lambda run: _listed(run))
    table = load("table1").drop(columns="table")
    table["runs"] = [
        "; ".join(f"{name} ({runs})" for name, runs in held.items() if same_model(name, model)) or "none"
        for model in table["model"]
    ]
    own = [name for name in held.index if not any(same_model(name, model) for model in table["model"])]
    rows = pd.DataFrame({"model": own, "runs": [held[name] for name in own]})
    return pd.concat([table, rows], ignore_index=True).fillna("not in Table 1")


def _listed(names) -> str:
    return ", ".join(dict.fromkeys(names))
