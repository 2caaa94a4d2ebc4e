"""The paper's conclusions (§8 and abstract): what its tables give, and what runs can and cannot answer."""

import pandas as pd

from biastransfer.published import association_tests, transfer_scores

from .models import same_model
from .printed import SETS, TARGETS

PLAIN = "ResNet50"  # supervised on the pictures and with the architecture of the two self-supervised networks
SELF_SUPERVISED = ("MoCo ResNet50", "SimCLR ResNet50")
LARGE = "BiT-M-R50x1"  # supervised on ImageNet-21k
NEW_BIASES = ("CLIP-ViT-B/32", "ResNet50", "MoCo ResNet50")  # those that §8, 2 names


def claims(found: pd.DataFrame) -> pd.DataFrame:
    """Hold the paper's conclusions against its own tables and against runs.

    Parameters
    ----------
    found : DataFrame
        As `measured` returns it.

    Returns
    -------
    DataFrame
        `part` ("claims"), `table` (the section), `cell` (the claim in our words), `quantity` (what is
        counted), `theirs` (that, from the printed tables), `printed` (the same in words), `ours` (that, from
        the runs; NaN where they lack the networks or targets), `tolerance`, `verdict` and `reason`: what the
        runs can and cannot say. The verdict is on what was observed; it does not say why.
    """
    scores, tests = _printed_scores(), _printed_tests()
    ours, d = _measured(found, "r"), _measured(found, "d")
    rows = [
        _size(scores, ours, found),
        _new_biases(tests, d, found),
        _less_biased(tests, d, found),
        _fewer_kept(scores, ours, found),
        _large_keeps(scores, ours, found),
    ]
    return pd.DataFrame(rows).assign(part="claims")


def _printed_scores():
    frame = transfer_scores().rename(columns={"kind": "item", "r": "value"})
    return frame.assign(target=frame["target"].map(TARGETS))[["model", "item", "target", "value"]]


def _printed_tests():
    frame = association_tests().rename(columns={"d": "value"})
    return frame.assign(item=frame["concept_a"] + "|" + frame["concept_b"])[
        ["model", "item", "stage", "value"]
    ]


def _measured(found, quantity):
    """Return what runs measured of the paper's networks and pictures, under the paper's names."""
    part = found[(found["quantity"] == quantity) & found["set"].isin(list(SETS.values()))]
    part = part[(part["stage"] == "pretrained") | part["target"].isin(list(TARGETS.values()))]
    names = {*SELF_SUPERVISED, *NEW_BIASES, LARGE, "ResNet18"}
    theirs = [next((name for name in names if same_model(own, name)), None) for own in part["model"]]
    return part.assign(model=theirs).dropna(subset="model")


def _entry(where, claim, counted, theirs, says, ours, reason, threshold, ran):
    """Return one claim; ours agrees when it lies on the side of the threshold on which theirs does."""
    same = (ours > threshold) == (theirs > threshold)
    verdict = ("not comparable" if ran else "not run") if pd.isna(ours) else "agrees" if same else "differs"
    return {
        **{"table": where, "cell": claim, "quantity": counted, "printed": says, "theirs": theirs, "run": ""},
        **{"ours": ours, "tolerance": f"same side of {threshold:g}", "verdict": verdict, "reason": reason},
    }


def _size(printed, ours, found):
    share, n = _lower_on_open_images(printed)
    own, pairs = _lower_on_open_images(ours)
    sizes = _sizes(found)
    reason = f"runs finetune on {'; '.join(sizes)}" if sizes else "no run given finetunes"
    if pairs:
        reason += (
            f"; {pairs} pairs on these two targets, which differ in classes and pictures as well as size"
        )
    else:
        few = "one target says nothing about size" if len(sizes) < 2 else "targets other than the paper's two"
        reason += f": {few}; a size effect needs doses of one target" if sizes else ""
    claim = "Associations are kept less on the larger Open Images than on COCO"
    says = f"{round(share * n)} of {n} scores are lower on Open Images"
    return _entry("§8, 1", claim, "share of scores lower", share, says, own, reason, 0.5, bool(sizes))


def _lower_on_open_images(scores):
    wide = scores.pivot_table("value", ["model", "item"], "target").reindex(columns=list(TARGETS.values()))
    wide = wide.dropna()
    return (wide["openimages"] < wide["coco"]).mean() if len(wide) else float("nan"), len(wide)


def _sizes(found):
    trained = found[found["quantity"] == "epochs"].drop_duplicates(["target", "note"])
    return [
        f"{target} ({note})" if note else target for target, note in zip(trained["target"], trained["note"])
    ]


def _new_biases(printed, ours, found):
    share, n = _growing(printed)
    claim = "Finetuning on larger data introduces new biases: CLIP, ResNet50 and MoCo on Open Images"
    says = f"{round(share * n)} of their {n} |d| grow with finetuning; Table 9 has no COCO column to compare"
    reason = _missing(found, "d", ours, NEW_BIASES, "before and after finetuning on Open Images")
    own = _growing(ours)[0]
    return _entry("§8, 2", claim, "share of |d| that grow", share, says, own, reason, 0.5, _ran(found, "d"))


def _growing(tests):
    named = tests[tests["model"].isin(NEW_BIASES)].assign(size=tests["value"].abs())
    wide = named.pivot_table("size", ["model", "item"], "stage").reindex(columns=["pretrained", "finetuned"])
    wide = wide.dropna()
    return (wide["finetuned"] > wide["pretrained"]).mean() if len(wide) else float("nan"), len(wide)


def _less_biased(printed, ours, found):
    means, own = _mean_size(printed), _mean_size(ours)
    gap = means[SELF_SUPERVISED[0]] - means[PLAIN]
    claim = "Self-supervised pretraining can lead to less biased associations: MoCo"
    named = ", ".join(f"{name} {means[name]:.2f}" for name in (*SELF_SUPERVISED, PLAIN))
    says = f"mean |d| before finetuning: {named}; ResNet50 has the same architecture and pictures"
    reason = _missing(found, "d", ours, (*SELF_SUPERVISED, PLAIN), "before finetuning")
    value = own.get(SELF_SUPERVISED[0], float("nan")) - own.get(PLAIN, float("nan"))
    counted = "mean |d|, MoCo minus ResNet50"
    return _entry("§8, 3", claim, counted, gap, says, value, reason, 0, _ran(found, "d"))


def _mean_size(tests):
    return (
        tests[tests["stage"] == "pretrained"]
        .assign(value=tests["value"].abs())
        .groupby("model")["value"]
        .mean()
    )


def _fewer_kept(printed, ours, found):
    share, n, own = *_above(printed, PLAIN), _above(ours, PLAIN)[0]
    claim = "Fewer associations of a self-supervised network are transferred"
    says = f"{round(share * n)} of {n} scores of MoCo and SimCLR lie below ResNet50's"
    reason = _missing(found, "r", ours, (*SELF_SUPERVISED, PLAIN), "finetuned on COCO and Open Images")
    return _entry("§8, 3", claim, "share of scores below", share, says, own, reason, 0.5, _ran(found, "r"))


def _large_keeps(printed, ours, found):
    share, n, own = *_above(printed, LARGE), _above(ours, LARGE)[0]
    claim = "Supervised networks trained on ImageNet-21k keep their associations more, whatever the target"
    says = f"{round(share * n)} of {n} scores of MoCo and SimCLR lie below BiT's"
    reason = _missing(found, "r", ours, (*SELF_SUPERVISED, LARGE), "finetuned on COCO and Open Images")
    return _entry(
        "abstract, 1", claim, "share of scores below", share, says, own, reason, 0.5, _ran(found, "r")
    )


def _above(scores, network):
    """Return the share of self-supervised scores below the network's on the same items, and how many."""
    wide = scores.pivot_table("value", ["item", "target"], "model")
    pairs = [wide[network] - wide[name] for name in SELF_SUPERVISED if {network, name} <= set(wide)]
    gaps = pd.concat([pd.Series(dtype=float), *pairs]).dropna()
    return (gaps > 0).mean() if len(gaps) else float("nan"), len(gaps)


def _ran(found, quantity):
    return bool((found["quantity"] == quantity).any())


def _missing(found, quantity, ours, needed, how):
    """Say which of the networks that the claim is about the runs lack on the paper's pictures."""
    lacking = [name for name in needed if name not in set(ours["model"])]
    if not lacking:
        return f"runs hold {', '.join(needed)}; one network of a kind cannot speak for the kind"
    ran = list(dict.fromkeys(found.loc[found["quantity"] == quantity, "model"]))
    held = f"; runs hold {', '.join(ran)}" if ran else ""
    return f"needs {', '.join(lacking)} on the paper's pictures, {how}{held}"
