"""An audit from end to end, on pictures made here and networks that are small or fixed."""

import json
import re
from importlib import resources

import jsonschema
import numpy as np
import pytest
import torch
from PIL import Image

from biastransfer import checkpoints
from biastransfer.audit import audit, download_link
from biastransfer.backbones import load_backbone, replace_head
from biastransfer.cli import main

HOSTILE = '<script>alert(1)</script> & "it\'s" $x^2$\nnext | line ' + 60 * "long "
SMALL = {"untrained": 2, "maps": 1, "resamples": 100}
SCHEMA = json.loads(resources.files("biastransfer.audit").joinpath("audit.schema.json").read_text())
CLASSES = ["man", "woman", "random", "car", "car+man", "car+woman", "sports", "sports+man", "sports+woman"]


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    """One cache for the module: a network and a picture are never computed twice."""
    monkeypatch.setenv("BIASTRANSFER_CACHE", str(tmp_path_factory.getbasetemp() / "audit-cache"))


def make(folder, classes, n=4, tint=None):
    """Write n pictures a class: noise, with what `tint` gives a class added in one colour."""
    for place, name in enumerate(classes):
        (folder / name).mkdir(parents=True)
        for number in range(n):
            rng = np.random.default_rng(100 * place + number)
            coarse = rng.integers(0, 160, (6, 8, 3)) + np.array((tint or {}).get(name, [0, 0, 0]))
            pixels = np.clip(coarse, 0, 255).astype(np.uint8)
            Image.fromarray(pixels).resize((80, 64)).save(folder / name / f"{number}.png")
    return folder


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    return make(tmp_path_factory.mktemp("audit") / "my pictures", CLASSES)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    """SqueezeNet with every weight moved a little: what a short finetuning would leave."""
    backbone = replace_head(load_backbone("squeezenet1_1"), ("a", "b"))
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for value in backbone.module.parameters():
            value += 0.3 * value.std() * torch.randn(value.shape, generator=generator)
    return checkpoints.save(backbone, tmp_path_factory.mktemp("weights") / "mine.safetensors")


@pytest.fixture(scope="module")
def pair(pictures, checkpoint, tmp_path_factory):
    """The audit that most tests read: a network and its finetuned copy."""
    folder = tmp_path_factory.mktemp("pair")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BIASTRANSFER_CACHE", str(tmp_path_factory.getbasetemp() / "audit-cache"))
        files = {"out": folder / "report.html", "json": folder / "audit.json"}
        return audit("squeezenet1_1", checkpoint, pictures=pictures, **files, **SMALL)


def of(rows, **keys):
    return [row for row in rows if all(row[key] == value for key, value in keys.items())]


# ---- what a whole audit holds


def test_the_json_follows_its_schema_and_is_what_was_returned(pair):
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    read = json.loads(pair.json.read_text())
    jsonschema.validate(read, SCHEMA)
    assert read == pair.facts
    assert "NaN" not in pair.json.read_text()


def test_the_numbers_are_those_of_the_library(pair, pictures, checkpoint):
    from biastransfer.association import association_test, change_of_effect
    from biastransfer.embed import embed
    from biastransfer.similarity import inter_class, items
    from biastransfer.transfer import bias_transfer

    stages = [load_backbone("squeezenet1_1"), load_backbone(checkpoint)]
    vectors = [
        {name: embed(one, sorted((pictures / name).iterdir())).vectors for name in CLASSES} for one in stages
    ]
    sets = ("man", "woman", "car", "sports")
    for stage, z in zip(("before", "after"), vectors):
        [found] = of(pair.facts["associations"], stage=stage)
        test = association_test(*(z[name] for name in sets), alternative="two-sided")
        assert [found[key] for key in "XYAB"] == list(sets)
        assert found["effect_size"] == pytest.approx(test.effect_size, abs=1e-9)
        assert (found["p"], found["low"]) == pytest.approx((test.p, test.low), abs=1e-9)
        assert found["p_holm"] == pytest.approx(min(1, 2 * test.p) if found["p"] <= 0.5 else 1, abs=0.5)
        [close] = of(pair.facts["similarities"], stage=stage, classes=["car+man", "car"])
        assert close["value"] == pytest.approx(inter_class(z["car+man"], z["car"]), abs=1e-9)
    intra, inter = items(CLASSES)
    for kind, listed in (("intra", intra), ("inter", inter)):
        [found] = of(pair.facts["transfer"], kind=kind)
        score = bias_transfer(*vectors, listed, resamples=100, seed=0)
        assert found["r"] == pytest.approx(score.r, abs=1e-12)
        assert found["n_items"] == len(listed)
        assert (found["low"], found["high"]) == pytest.approx((score.low, score.high), abs=0.05)
    [change] = pair.facts["changes"]
    before, after = (of(pair.facts["associations"], stage=s)[0]["effect_size"] for s in ("before", "after"))
    assert change["change"] == pytest.approx(after - before)
    both = [[z[name] for name in sets] for z in vectors]
    expected = change_of_effect(*both)
    assert [change[key] for key in ("change", "low", "high", "p")] == pytest.approx(list(expected), abs=1e-6)
    stands = [row["p_holm"] < 0.05 for row in pair.facts["associations"]]
    neither = change["verdict"] in ("none shown", "changed, neither stands")
    assert (change["verdict"].startswith("survives"), neither) == (all(stands), not any(stands))


def test_holm_is_over_both_stages(pair):
    from biastransfer.stats import holm

    rows = pair.facts["associations"]
    assert [row["p_holm"] for row in rows] == pytest.approx(list(holm([row["p"] for row in rows])))
    assert {row["n_tests"] for row in rows} == {2}


def test_untrained_networks_stand_beside_every_number(pair):
    for table in ("similarities", "transfer", "associations"):
        for row in pair.facts[table]:
            assert row["n_untrained"] == 2
            assert row["untrained_low"] <= row["untrained_median"] <= row["untrained_high"]
    assert pair.facts["nulls"]["missing"] == {}
    assert {row["p_untrained"] for row in pair.facts["associations"]} <= {1 / 3, 2 / 3, 1}


def test_what_can_be_detected_and_shown_is_stated(pair):
    from biastransfer.nulls import detectable_effect

    said = " ".join(pair.facts["cannot_show"])
    assert f"|d| = {detectable_effect(4, 4):.2f}" in said
    assert "Classes of fewer than 5 pictures" in said
    assert "One finetuning is one draw" in said


def test_the_report_needs_nothing_else_and_names_no_folder(pair, pictures, checkpoint):
    page = pair.html.read_text()
    assert re.findall(r'(?:src|href)="(?!data:|#)', page) == []
    assert "<script" not in page
    assert "default-src 'none'" in page
    assert not re.search(r"https?://|@import", re.sub(r"data:[\w/+;,=.-]+", "", page))
    for written in (page, pair.json.read_text()):
        for folder in (pictures.parent, checkpoint.parent, pair.html.parent):
            assert str(folder) not in written
    assert pair.facts["networks"]["after"]["name"] == "mine.safetensors"


def test_the_report_holds_answer_limits_and_maps(pair):
    page = pair.html.read_text()
    assert all(sentence.replace("'", "&#39;") in page for sentence in pair.facts["answer"])
    assert "<title>Audit: squeezenet1_1 and mine.safetensors</title>" in page
    assert "perceived gender" in page.split('id="limits"')[1]
    [shown] = pair.facts["maps"]
    assert shown["methods"] == ["sliding_patch", "gradcam"]
    assert page.count("data:image/jpeg;base64,") == 5
    assert page.count("data:image/svg+xml;base64,") == 3


def test_the_most_telling_picture_is_the_one_whose_association_moved_most(pair, pictures, checkpoint):
    from biastransfer.embed import embed

    others = [
        (f"{name}/{file.name}", file) for name in CLASSES[2:] for file in sorted((pictures / name).iterdir())
    ]
    moved = []
    for one in (load_backbone("squeezenet1_1"), load_backbone(checkpoint)):
        unit = {}
        for name in ("man", "woman"):
            z = embed(one, sorted((pictures / name).iterdir())).vectors
            unit[name] = z / np.linalg.norm(z, axis=1, keepdims=True)
        z = embed(one, [file for _, file in others]).vectors
        z = z / np.linalg.norm(z, axis=1, keepdims=True)
        s = (z @ unit["man"].T).mean(1) - (z @ unit["woman"].T).mean(1)
        moved.append((s - np.median(s)) / s.std(ddof=1))
    size = np.abs(moved[1] - moved[0])
    [shown] = pair.facts["maps"]
    assert shown["id"] == others[int(size.argmax())][0]
    assert shown["telling"] == pytest.approx(size.max(), rel=1e-4)


def test_the_same_call_writes_the_same_bytes(pictures, tmp_path):
    said = []
    for name in ("one", "two"):
        files = {"out": tmp_path / f"{name}.html", "json": tmp_path / f"{name}.json"}
        done = audit("thumbnail", pictures=pictures, **files, **SMALL)
        said.append((done.html.read_bytes(), done.json.read_bytes()))
    assert said[0] == said[1]


# ---- one network, equal networks, different ones, black boxes


def test_one_network_alone(pictures, tmp_path):
    done = audit("thumbnail", pictures=pictures, out=tmp_path / "r.html", json=tmp_path / "r.json", **SMALL)
    jsonschema.validate(json.loads(done.json.read_text()), SCHEMA)
    assert done.facts["networks"]["after"] is None
    assert done.facts["transfer"] == done.facts["changes"] == []
    assert "One network was audited alone" in done.facts["answer"][1]
    assert "association_after" not in done.facts["maps"][0]


def test_before_equal_to_after_says_so(pictures, tmp_path):
    done = audit("thumbnail", "thumbnail", pictures=pictures, out=tmp_path / "r.html", **SMALL)
    assert [row["r"] for row in done.facts["transfer"]] == [1, 1]
    assert [row["low"] for row in done.facts["transfer"]] == [1, 1]
    assert done.facts["networks"]["same_embedding"]
    assert "is 1 by construction" in done.facts["answer"][1]
    assert "Before and after give the same embeddings" in done.html.read_text()
    assert "no weights below its head" in done.facts["nulls"]["missing"]["before"]
    assert "No untrained network stands beside" in done.facts["answer"][2]


def test_a_head_alone_that_was_finetuned_is_the_same_embedding(pictures, tmp_path):
    other = checkpoints.save(
        replace_head(load_backbone("squeezenet1_1"), ("x", "y")), tmp_path / "h.safetensors"
    )
    done = audit("squeezenet1_1", other, pictures=pictures, out=tmp_path / "r.html", **SMALL | {"maps": 0})
    assert done.facts["networks"]["same_embedding"]
    assert done.facts["maps"] == []


def test_different_architectures_are_compared_and_said_to_be(pictures, tmp_path):
    done = audit("thumbnail", "squeezenet1_1", pictures=pictures, out=tmp_path / "r.html", **SMALL)
    assert not done.facts["networks"]["one_architecture"]
    assert "different architectures (thumbnail and squeezenet1_1)" in " ".join(done.facts["cannot_show"])
    assert "built differently" in done.html.read_text()
    counts = {row["stage"]: row["n_untrained"] for row in done.facts["associations"]}
    assert counts == {"before": 0, "after": 2}


def test_a_network_that_gives_every_picture_the_same_numbers_is_reported(pictures, tmp_path):
    backbone = load_backbone("squeezenet1_1")
    with torch.no_grad():
        for value in backbone.module.parameters():
            value.zero_()
        for name, value in backbone.module.named_parameters():
            if name.endswith("bias"):
                value.fill_(1.0)
    file = checkpoints.save(backbone, tmp_path / "flat.safetensors")
    done = audit("squeezenet1_1", file, pictures=pictures, out=tmp_path / "r.html", **SMALL | {"maps": 0})
    assert {row["effect_size"] for row in of(done.facts["associations"], stage="after")} == {None}
    assert "No association could be computed after" in done.facts["answer"][2]


@pytest.mark.filterwarnings("ignore:.*torch.jit.*:FutureWarning")
def test_a_torchscript_program_has_no_untrained_copy_and_needs_trust(pictures, tmp_path):
    class Means(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = torch.nn.Parameter(torch.ones(3, 8, 8))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return (torch.nn.functional.adaptive_avg_pool2d(x, 8) * self.scale).flatten(1)

    file = tmp_path / "box.pt"
    torch.jit.script(Means()).save(str(file))
    with pytest.raises(ValueError, match=r"before: .*box\.pt is a TorchScript.*pass trust=True \(--trust\)"):
        audit(file, pictures=pictures, out=tmp_path / "r.html")
    done = audit(file, pictures=pictures, out=tmp_path / "r.html", trust=True, **SMALL)
    assert "cannot be initialised anew" in done.facts["nulls"]["missing"]["before"]
    assert done.facts["networks"]["before"]["architecture"] == "TorchScript"
    assert "cannot be initialised anew" in done.html.read_text()


# ---- other attributes, roles, odd sets


def test_other_attributes_than_gender_and_hostile_names(tmp_path):
    old = "-" + HOSTILE.replace("/", "∕")[:200]
    classes = [
        old,
        "young",
        "anything",
        "car",
        f"car+{old}",
        "car+young",
        "tree",
        f"tree+{old}",
        "tree+young",
    ]
    folder = make(tmp_path / "own", classes)
    roles = {"random": ["anything"]}
    done = audit(
        "thumbnail", pictures=folder, out=tmp_path / "r.html", json=tmp_path / "r.json", roles=roles, **SMALL
    )
    jsonschema.validate(json.loads(done.json.read_text()), SCHEMA)
    assert done.facts["roles"]["attributes"] == [old, "young"]
    [row] = done.facts["associations"]
    assert (row["X"], row["Y"], row["A"], row["B"]) == (old, "young", "car", "tree")
    page = done.html.read_text()
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert [f"car+{old}", "car"] in [one["classes"] for one in done.facts["similarities"]]


def test_colour_that_follows_an_attribute_is_found_with_its_direction(tmp_path):
    """Men and cars on red, women and trees on blue: colour and layout alone must say so."""
    red, blue = [90, 0, 0], [0, 0, 90]
    tints = {"man": red, "car": red, "woman": blue, "tree": blue}
    folder = make(tmp_path / "own", ["man", "woman", "car", "car+man", "tree", "tree+woman"], 6, tints)
    rules = ["association:low>0.5", "association:high<0.5", "bts:high<0.3"]
    done = audit("thumbnail", pictures=folder, out=tmp_path / "r.html", fail_on=rules, **SMALL)
    [row] = done.facts["associations"]
    assert row["low"] > 1
    assert "where man lies nearer to car than woman does" in done.facts["answer"][0]
    assert "1 of 1 associations stand" in done.facts["answer"][0]
    assert [one["decision"] for one in done.facts["rules"]] == ["failed", "passed", "undecided"]
    assert not done.passed


def test_a_set_with_one_attribute_is_reported_without_associations(tmp_path):
    folder = make(tmp_path / "own", ["man", "random", "car", "car+man", "sports", "sports+man"])
    done = audit("thumbnail", "squeezenet1_1", pictures=folder, out=tmp_path / "r.html", **SMALL)
    assert done.facts["associations"] == done.facts["changes"] == done.facts["maps"] == []
    assert "compares two attributes, and the set has one, man" in done.facts["answer"][0]
    assert "2 untrained networks stand beside the similarities alone" in done.facts["answer"][2]
    assert done.facts["transfer"][1]["n_items"] == 4


def test_a_set_whose_names_say_nothing_is_reported_without_associations(tmp_path):
    folder = make(tmp_path / "own", ["cats", "dogs"], 1)
    done = audit("thumbnail", pictures=folder, out=tmp_path / "r.html", **SMALL)
    assert "compares two attributes, and the set shows none" in done.facts["answer"][0]
    assert [row["value"] for row in done.facts["similarities"]] == [None, None]
    pair = audit("thumbnail", "thumbnail", pictures=folder, out=tmp_path / "r.html", **SMALL)
    assert {row["r"] for row in pair.facts["transfer"]} == {None}
    assert "Bias transfer scores over classes" not in pair.html.read_text()
    given = audit(
        "thumbnail", pictures=folder, out=tmp_path / "r.html", roles=["attributes=cats,dogs"], **SMALL
    )
    assert given.facts["roles"]["given"]
    assert "an association needs two objects to compare; the set has 0" in given.facts["answer"][0]


def test_pictures_in_two_classes_small_classes_and_damage_are_said(pictures, tmp_path):
    folder = make(tmp_path / "own", CLASSES[:7], 2)
    (folder / "woman" / "0.png").write_bytes((folder / "man" / "0.png").read_bytes())
    damaged = (folder / "car" / "1.png").read_bytes()
    (folder / "car" / "1.png").write_bytes(damaged[: len(damaged) // 2])
    done = audit("thumbnail", pictures=folder, out=tmp_path / "r.html", json=tmp_path / "r.json", **SMALL)
    said = " ".join(done.facts["cannot_show"])
    assert "1 picture stands in two classes" in said
    assert "car (1)" in said
    [lost] = done.facts["pictures"]["lost"]
    assert lost["file"] == "1.png"
    assert str(tmp_path) not in done.html.read_text() + done.json.read_text()
    assert "error" in {row["severity"] for row in done.facts["pictures"]["findings"]}


def test_equal_findings_of_several_classes_are_one_line_of_the_report(pair):
    findings = pair.facts["pictures"]["findings"]
    assert {row["check"] for row in findings} == {"small class", "licence gap"}
    assert len(findings) == 2 * len(CLASSES)
    page = pair.html.read_text()
    assert "worth knowing about the set: 2 findings<" in page
    assert page.count("no licence is stated") == 1
    [line] = [line for line in page.splitlines() if "fewer than 10 pictures" in line]
    assert ", ".join(CLASSES) in line or ", ".join(sorted(CLASSES)) in line
    assert '<td class="n">36</td>' in line


# ---- the command, and what it cannot take


def test_the_command_prints_answer_and_rules_and_its_status_tells(pictures, tmp_path, capsys):
    words = [
        "audit",
        "--before",
        "thumbnail",
        "--after",
        "thumbnail",
        "--pictures",
        str(pictures),
        "--untrained",
        "0",
    ]
    words += ["--maps", "0", "--resamples", "100", "--out", str(tmp_path / "r.html")]
    assert main([*words, "--fail-on", "bts:low<0.9"]) == 0
    said, progress = capsys.readouterr()
    assert "is 1 by construction" in said
    assert "fail on bts:low<0.9: passed" in said
    assert progress.splitlines() == [
        "before: thumbnail, 36 pictures",
        "after: thumbnail, 36 pictures",
        "similarities, associations and scores, 100 resamples of the pictures",
        "the pictures themselves: copies, imbalance, damage",
    ]
    assert main([*words, "--fail-on", "bts:low>=0.9", "association:high<9"]) == 1
    assert (
        "fail on bts:low>=0.9: failed (intra-class: 95 % interval 1.000 to 1.000; 2 of 2"
        in capsys.readouterr().out
    )


def test_the_library_tells_each_stage_to_whom_asks_and_prints_nothing(pictures, tmp_path, capsys):
    told = []
    audit("squeezenet1_1", pictures=pictures, out=tmp_path / "r.html", **SMALL | {"report": told.append})
    assert told[:3] == [
        "before: squeezenet1_1, 36 pictures",
        "untrained network 1 of 2: squeezenet1_1",
        "untrained network 2 of 2: squeezenet1_1",
    ]
    assert told[4] == "maps of picture 1 of 1"
    audit("squeezenet1_1", pictures=pictures, out=tmp_path / "r.html", **SMALL)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"before": "resnet51x"}, "before: unknown backbone 'resnet51x'; known: efficientnet_lite0"),
        ({"before": ""}, "before must name a network or a file; got none"),
        (
            {"fail_on": ["association>0.5"]},
            "a rule must have the form of association:low>0.5; got 'association>0.5'",
        ),
        ({"fail_on": ["d:low>0.5"]}, "a rule must be on one of association, .*; got 'd'"),
        (
            {"fail_on": ["bts:value<0.5"]},
            "must be on a bound of the 95 % interval, low or high, .*; got 'value'",
        ),
        (
            {"roles": ["genders=man"]},
            "a role is written KEY=NAME,NAME with KEY attributes, objects, random; got",
        ),
        ({"roles": {"genders": ["man"]}}, "roles must be attributes, objects, random; got 'genders'"),
        (
            {"roles": ["attributes=man,wman"]},
            "attributes must be classes of the set; got 'wman'. It has man, woman",
        ),
        ({"roles": ["random=man,car"]}, "random must be one class; got man, car"),
        (
            {"roles": ["attributes=man,woman,car"]},
            "two attributes are compared; the set has 3: man, woman, car",
        ),
        ({"roles": ["objects=man,car"]}, "a class has one role; 'man' has two"),
        ({"untrained": -1}, "untrained must be at least 0; got -1"),
        ({"out": "."}, r"out \(--out\) must be a file to write; . is a folder. Name a file in it"),
        (
            {"json": f"{__file__}/a.json"},
            r"json \(--json\) must be a file that can be written; .*a.json cannot be \(Not a directory\)",
        ),
        ({"out": 300 * "a"}, r"out \(--out\) must be .*; a+ cannot be \(File name too long\). Name a file"),
        (
            {"root": "sets"},
            r"root \(--root\) must be left out beside a folder of pictures: .* got 'sets' and",
        ),
        ({"roles": ["attributes=man,man"]}, "a class has one role; 'man' is named twice"),
        ({"out": "one.html", "json": "./one.html"}, "out and json must be two files; both are one.html"),
        ({"before_architecture": "resnet18"}, "got the name 'thumbnail'. Leave before_architecture out"),
        ({"seed": -1}, "seed must be at least 0; got -1"),
        ({"resamples": 10}, "resamples must be at least 100; got 10"),
        ({"pictures": "no-such"}, "pictures must be a folder or the name of a set; no-such is no folder"),
    ],
)
def test_what_cannot_be_is_said_in_one_sentence(pictures, tmp_path, change, message):
    call = {"before": "thumbnail", "pictures": pictures, "out": tmp_path / "r.html"} | change
    told = []
    with pytest.raises(ValueError, match=message):
        audit(call.pop("before"), **call, report=told.append)
    assert told == [], "before any network runs"
    assert not (tmp_path / "r.html").exists()


def test_a_file_that_is_no_checkpoint(pictures, tmp_path):
    for name, message in (
        ("a.safetensors", "after: .*a.safetensors"),
        ("a.pth", r"after: .*holds; pass after_architecture=NAME \(--after-architecture NAME"),
    ):
        (tmp_path / name).write_bytes(b"no weights at all")
        with pytest.raises(ValueError, match=message):
            audit("thumbnail", tmp_path / name, pictures=pictures, out=tmp_path / "r.html")
    with pytest.raises(FileNotFoundError, match=r"after: .*gone\.safetensors"):
        audit("thumbnail", tmp_path / "gone.safetensors", pictures=pictures, out=tmp_path / "r.html")


def test_an_empty_folder_and_a_class_without_pictures(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="must hold one folder a class; it holds no folder"):
        audit("thumbnail", pictures=tmp_path / "empty", out=tmp_path / "r.html")
    (tmp_path / "empty" / "man").mkdir()
    with pytest.raises(ValueError, match="every class must have a picture; 'man' has none"):
        audit("thumbnail", pictures=tmp_path / "empty", out=tmp_path / "r.html")


def test_a_link_holds_the_file_itself(tmp_path):
    (tmp_path / "a&b.json").write_text("{}")
    link = download_link(tmp_path / "a&b.json")
    assert link == '<a download="a&amp;b.json" href="data:application/json;base64,e30=">a&amp;b.json</a>'
