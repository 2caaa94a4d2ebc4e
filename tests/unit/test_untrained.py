"""Networks that never learned: batch statistics of the pictures at hand, and the fixed thumbnail."""

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from biastransfer.backbones import Backbone, Transform, forward_layer, load_backbone
from biastransfer.embed import embed
from biastransfer.embed.untrained import normalise


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("BIASTRANSFER_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(0)
    made = [tmp_path / f"{index}.png" for index in range(5)]
    for file in made:
        Image.fromarray(rng.integers(0, 256, (8, 8, 3), dtype=np.uint8)).save(file)
    return [str(file) for file in made]


def toy():
    torch.manual_seed(0)
    module = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout(0.5))
    transform = Transform(8, 1.0, "bilinear", (0.5,) * 3, (0.5,) * 3)
    return Backbone("toy", module.eval(), transform, 4, ("embedding",), "", (), {"embedding": "3"}, "")


def test_batch_statistics_are_those_of_the_pictures(files):
    backbone = toy()
    found = normalise(backbone, files)
    x = torch.stack([backbone.transform(np.asarray(Image.open(file))) for file in files])
    with torch.no_grad():
        maps = backbone.module[0](x)
    assert torch.allclose(found.module[1].running_mean, maps.mean((0, 2, 3)), atol=1e-6)
    assert torch.allclose(found.module[1].running_var, maps.var((0, 2, 3)), atol=1e-6)
    assert torch.equal(found.module[0].weight, backbone.module[0].weight)
    assert not found.module.training
    assert backbone.module[1].running_mean.eq(0).all()


def test_kept_statistics_give_the_same_vectors(files):
    first = embed(normalise(toy(), files), files, cache=False).vectors
    again = normalise(toy(), files)
    assert np.array_equal(embed(again, files, cache=False).vectors, first)
    assert embed(normalise(toy(), files), files).computed == 5
    assert embed(again, files).computed == 0  # one key: the cache of embeddings stays valid


def test_unreadable_pictures_are_passed_over_and_too_few_change_nothing(files, tmp_path):
    (tmp_path / "bad.png").write_bytes(b"not a picture")
    whole, with_bad = (
        normalise(toy(), files),
        normalise(toy(), [*files, str(tmp_path / "bad.png"), "gone.png"]),
    )
    assert torch.allclose(with_bad.module[1].running_mean, whole.module[1].running_mean)
    assert normalise(toy(), files[:1]).module[1].running_mean.eq(0).all()


def test_thumbnail_by_hand():
    backbone = load_backbone("thumbnail")
    white, black = torch.ones(1, 3, 64, 64), torch.zeros(1, 3, 64, 64)
    half = torch.cat([white[..., :32], black[..., :32]], dim=-1)
    a, b, c = (forward_layer(backbone, x)[0] for x in (white, black, half))
    # thumbnails opposite, histograms disjoint: −1 and 0; half: thumbnails at right angles, √½ of a histogram
    assert [float(torch.cosine_similarity(a, z, dim=0)) for z in (a, b, c)] == pytest.approx(
        [1, -0.5, 0.5**1.5]
    )
    assert a.shape == (backbone.dim,)
    assert float(a @ a) == pytest.approx(2)
    assert backbone.transform(np.full((10, 10, 3), 255, np.uint8)).max() == 1


def test_thumbnail_does_not_depend_on_the_seed_or_on_the_batch(files):
    one = embed(load_backbone("thumbnail", seed=1), files, cache=False, batch_size=2)
    assert np.allclose(one.vectors, embed(load_backbone("thumbnail"), files, cache=False).vectors, atol=1e-6)
    assert one.vectors.shape == (5, 832)
