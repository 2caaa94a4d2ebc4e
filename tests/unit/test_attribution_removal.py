"""Fills: what is outside the mask stays, batches change nothing, colours are those the name says."""

import numpy as np
import pytest
import torch

from biastransfer.attribution.imputation import impute_linearly
from biastransfer.attribution.inpainter_network import InpainterNet, save_weights
from biastransfer.attribution.removal import FILLS, IMAGENET, INPAINTERS, PIXELS, Space, make_fill

SIZE = 48
pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit.script:FutureWarning")


class Halves(torch.nn.Module):
    """Signature of big-lama.pt: answers grey where the mask is 1, the picture elsewhere, halved."""

    def forward(self, image: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        if image.shape[2] % 8 != 0 or image.shape[3] % 8 != 0:
            raise ValueError("sides must be multiples of 8")
        return (image * (1 - mask) + 0.25 * mask) / 2


class Widens(torch.nn.Module):
    def forward(self, image: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return torch.cat([image, image], 3)


class Breaks(torch.nn.Module):
    def forward(self, image: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return image / 0 - image / 0


class EightBit(torch.nn.Module):
    def forward(self, image: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return image * 255


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Stand-ins for the two in-painters that read a file."""
    folder = tmp_path_factory.mktemp("weights")
    torch.jit.script(Halves()).save(str(folder / "halves.pt"))
    torch.manual_seed(0)
    save_weights(InpainterNet(), folder / "net.safetensors", {})
    return {"lama": folder / "halves.pt", "scenes-inpainter": folder / "net.safetensors"}


@pytest.fixture
def made(files):
    def make(name, **settings):
        path = {"path": files[name]} if name in files else {}
        return make_fill(name, **path, **settings)

    return make


@pytest.fixture(scope="module")
def pictures():
    return torch.from_numpy(np.random.default_rng(0).random((3, 3, SIZE, SIZE), dtype=np.float32))


@pytest.fixture(scope="module")
def masks():
    masks = torch.zeros(3, 1, SIZE, SIZE, dtype=torch.bool)
    masks[0, 0, 10:30, 5:33] = True
    masks[1, 0] = torch.from_numpy(np.random.default_rng(1).random((SIZE, SIZE)) < 0.4)
    masks[2, 0, :, :20] = True
    return masks


every_fill = pytest.mark.parametrize("name", list(FILLS))


@every_fill
@pytest.mark.parametrize("space", [PIXELS, IMAGENET], ids=["pixels", "normalised"])
def test_outside_the_mask_nothing_changes(made, name, space, pictures, masks):
    values = space.values(pictures)
    filled = made(name, space=space)(values, masks)
    outside = (~masks).expand_as(values)
    assert torch.equal(filled[outside], values[outside])
    assert filled.dtype == values.dtype
    assert not torch.equal(filled, values)


@every_fill
def test_batch_and_order_change_no_value(made, name, pictures, masks):
    fill = made(name)
    together = fill(pictures, masks)
    for k in range(3):
        assert torch.equal(fill(pictures[k], masks[k]), together[k])
    assert torch.equal(fill(pictures.flip(0), masks.flip(0)), together.flip(0))


@every_fill
def test_one_picture_takes_many_masks_and_one_mask_many_pictures(made, name, pictures, masks):
    fill = made(name)
    many_masks = torch.stack([fill(pictures[0], mask) for mask in masks])
    assert torch.equal(fill(pictures[0], masks), many_masks)
    assert torch.equal(fill(pictures[:1].expand(3, -1, -1, -1), masks), many_masks)
    many_pictures = torch.stack([fill(one, masks[0]) for one in pictures])
    assert torch.equal(fill(pictures, masks[0, 0]), many_pictures)


@every_fill
def test_empty_mask_gives_the_picture_and_the_input_is_left_alone(made, name, pictures, masks):
    fill, before = made(name), pictures.clone()
    assert torch.equal(fill(pictures, torch.zeros_like(masks)), pictures)
    fill(pictures, masks)
    assert torch.equal(pictures, before)


@pytest.mark.parametrize("name", INPAINTERS)
def test_in_painters_fill_a_full_mask_with_the_mean_colour(made, name, pictures):
    filled = made(name)(pictures[0], torch.ones(SIZE, SIZE))
    assert torch.equal(filled, torch.tensor([0.485, 0.456, 0.406])[:, None, None].expand_as(filled))


@pytest.mark.parametrize("name", [name for name in FILLS if name != "zero"])
def test_normalised_space_gives_the_normalised_fill(made, name, pictures, masks):
    pixels = made(name)(pictures, masks)
    normalised = made(name, space=IMAGENET)(IMAGENET.values(pictures), masks)
    tolerance = 0.02 if name == "telea" else 2e-4  # Telea rounds to 8 bits: a border may fall either way
    torch.testing.assert_close(normalised, IMAGENET.values(pixels), atol=tolerance, rtol=0)


def test_colours_are_what_their_names_say(pictures, masks):
    hole = masks[0]
    colours = {
        ("zero", PIXELS): (0, 0, 0),
        ("zero", IMAGENET): (0.485, 0.456, 0.406),
        ("black", PIXELS): (0, 0, 0),
        ("black", IMAGENET): (0, 0, 0),
        ("mean", PIXELS): (0.485, 0.456, 0.406),
        ("mean", IMAGENET): (0.485, 0.456, 0.406),
    }
    for (name, space), colour in colours.items():
        values = make_fill(name, space=space)(space.values(pictures[0]), hole)
        if name == "zero":
            assert (values[:, hole[0]] == 0).all()
        shown = space.pixels(values)[:, hole[0]].T
        torch.testing.assert_close(
            shown, torch.tensor(colour, dtype=torch.float32).expand_as(shown), atol=1e-6, rtol=0
        )


def test_zero_works_on_values_of_any_range():
    values = torch.full((3, 4, 4), -7.0)
    assert make_fill("zero")(values, torch.eye(4)).tolist() == (values * (1 - torch.eye(4))).tolist()


def test_blur_is_scipys_gaussian_of_the_whole_picture(pictures):
    from scipy.ndimage import correlate1d

    x = np.arange(-5, 6)
    weights = np.exp(-(x**2) / 50) / np.exp(-(x**2) / 50).sum()
    expected = correlate1d(pictures[0].double().numpy(), weights, axis=1, mode="mirror")
    expected = correlate1d(expected, weights, axis=2, mode="mirror")
    blurred = make_fill("blur")(pictures[0], torch.ones(SIZE, SIZE))
    np.testing.assert_allclose(blurred.numpy(), expected, atol=1e-6)


def test_noise_and_road_follow_the_seed_and_noise_has_imagenets_moments():
    grey, hole = torch.full((3, 224, 224), 0.5), torch.zeros(224, 224)
    hole[10:150, 20:160] = 1
    for name in ("noise", "road"):
        one, same, other = (make_fill(name, seed=seed)(grey, hole) for seed in (1, 1, 2))
        assert torch.equal(one, same)
        assert not torch.equal(one, other)
    noise = make_fill("noise", seed=3)(grey, torch.ones(224, 224)).flatten(1)
    # 50,176 draws a channel: four standard errors of the mean are .0041; clipping moves both a little
    torch.testing.assert_close(noise.mean(1), torch.tensor([0.485, 0.456, 0.406]), atol=0.008, rtol=0)
    torch.testing.assert_close(noise.std(1), torch.tensor([0.229, 0.224, 0.225]), atol=0.012, rtol=0)


def plane(size=32):
    y, x = np.mgrid[:size, :size] / size
    return np.stack([0.2 + 0.5 * x, 0.7 - 0.3 * y, 0.1 + 0.2 * x + 0.4 * y])


def test_linear_imputation_is_exact_on_constants_and_inner_planes():
    rng = np.random.default_rng(0)
    holes = rng.random((32, 32)) < 0.7
    constant = np.full((2, 32, 32), 0.3)
    np.testing.assert_allclose(impute_linearly(np.where(holes, 9.0, constant), holes), constant, atol=1e-12)
    inner = np.zeros((32, 32), bool)
    inner[1:-1, 1:-1] = holes[1:-1, 1:-1]
    np.testing.assert_allclose(impute_linearly(np.where(inner, 9.0, plane()), inner), plane(), atol=1e-12)


def test_linear_imputation_by_hand():
    """Two missing neighbours: a = (9 − weights of b) …, solved on paper from 1/6 and 1/12."""
    values = np.zeros((1, 3, 4))
    values[0, :, 3] = 1  # the last column is 1, the rest 0
    missing = np.zeros((3, 4), bool)
    missing[1, 1:3] = True
    # b (right) = a/6 + (1/12 + 1/6 + 1/12)·1 and a = b/6: b = (1/3) / (1 − 1/36) = 12/35, a = 2/35
    filled = impute_linearly(values, missing)
    np.testing.assert_allclose(filled[0, 1], [0, 2 / 35, 12 / 35, 1], atol=1e-14)


def test_linear_imputation_lets_present_neighbours_share_the_weight_at_the_edge():
    values, missing = np.array([[[9.0, 3.0], [6.0, 12.0]]]), np.array([[True, False], [False, False]])
    # 1/6 and 1/6 for the direct, 1/12 for the diagonal neighbour, of 5/12 in all
    assert impute_linearly(values, missing)[0, 0, 0] == pytest.approx((3 / 6 + 6 / 6 + 12 / 12) / (5 / 12))


def test_road_without_noise_is_the_linear_imputation(masks):
    picture = torch.from_numpy(plane(SIZE)).float()
    filled = make_fill("road", noise=0)(picture, masks[0])
    torch.testing.assert_close(filled, picture, atol=1e-6, rtol=0)


@pytest.mark.parametrize("name", ["telea", "road", "blur"])
def test_a_constant_picture_stays_constant(name, masks):
    grey = torch.full((3, SIZE, SIZE), 128 / 255)
    settings = {"noise": 0} if name == "road" else {}
    torch.testing.assert_close(make_fill(name, **settings)(grey, masks[0]), grey, atol=1e-6, rtol=0)


def test_lama_sees_ones_in_the_hole_and_sides_mirrored_to_multiples_of_eight(files):
    fill = make_fill("lama", path=files["lama"])
    picture, hole = torch.full((3, 13, 21), 0.5), torch.zeros(13, 21)
    hole[3, 4] = 1
    filled = fill(picture, hole)
    assert filled[:, 3, 4].tolist() == [0.125] * 3
    assert torch.equal(filled[:, hole == 0], picture[:, hole == 0])


@pytest.mark.parametrize(
    ("module", "message"),
    [
        (Widens, r"must return the size it was given, \(1, 3, 8, 8\); got \(1, 3, 8, 16\)"),
        (Breaks, "must return finite pixels; got NaN or infinity"),
        (EightBit, r"must return pixels in \[0, 1\]; got .* to 255 .*divides by 255"),
    ],
)
def test_lama_that_answers_wrongly_is_an_error(tmp_path, module, message):
    torch.jit.script(module()).save(str(tmp_path / "wrong.pt"))
    fill = make_fill("lama", path=tmp_path / "wrong.pt")
    with pytest.raises(ValueError, match=message):
        fill(torch.ones(3, 8, 8), torch.eye(8))


def test_lama_file_is_looked_for_and_checked(tmp_path, monkeypatch):
    monkeypatch.setenv("BIASTRANSFER_ROOT", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"none at .*big-lama\.pt.* fetch big-lama. .MD5 e3aa4aaa"):
        make_fill("lama")
    published = tmp_path / "data" / "raw" / "weights" / "big-lama.pt"
    published.parent.mkdir(parents=True)
    torch.jit.script(Halves()).save(str(published))
    with pytest.raises(
        ValueError, match=r"must have MD5 e3aa4aaa15225a33ec84f9f4bc47e500; got .* Fetch it again"
    ):
        make_fill("lama")
    (tmp_path / "page.pt").write_text("<html>")
    with pytest.raises(ValueError, match=r"page\.pt must be a TorchScript file"):
        make_fill("lama", path=tmp_path / "page.pt")


def test_own_callable_is_checked_and_kept_inside_the_mask(pictures, masks):
    filled = make_fill(lambda images, masks: images + 1)(pictures, masks)
    assert torch.equal(filled, torch.where(masks, pictures + 1, pictures))
    shapes = []
    make_fill(lambda images, masks: shapes.append((images.shape, masks.shape)) or images)(pictures[0], masks)
    assert shapes == [((3, 3, SIZE, SIZE), (3, 1, SIZE, SIZE))]
    again = make_fill(make_fill("mean"))
    assert torch.equal(again(pictures, masks), make_fill("mean")(pictures, masks))


@pytest.mark.parametrize(
    ("fill", "message"),
    [
        (
            lambda images, masks: images[..., :-1],
            r"must return images of shape \(3, 3, 48, 48\); got \(3, 3, 48, 47\)",
        ),
        (lambda images, masks: "picture", "must return images of shape .*; got str from the fill given"),
        (lambda images, masks: images * float("nan"), "must return finite values; got NaN or infinity"),
    ],
)
def test_own_callable_that_answers_wrongly_is_an_error(fill, message, pictures, masks):
    with pytest.raises(ValueError, match=message):
        make_fill(fill)(pictures, masks)


@pytest.mark.parametrize(
    ("images", "masks", "message"),
    [
        (torch.zeros(8, 8, 3), torch.zeros(8, 8), r"\(3, H, W\); got \(8, 8, 3\). Put the channels first"),
        (
            torch.zeros(3, 8, 8, dtype=torch.uint8),
            torch.zeros(8, 8),
            "floating point tensor; got torch.uint8",
        ),
        (np.zeros((3, 8, 8)), torch.zeros(8, 8), "floating point tensor; got ndarray"),
        (torch.full((3, 8, 8), torch.nan), torch.zeros(8, 8), "images must be finite"),
        (torch.zeros(3, 8, 8), torch.zeros(8, 9), r"with H, W = \(8, 8\); got \(8, 9\)"),
        (torch.zeros(2, 3, 8, 8), torch.zeros(2, 8, 8), r"\(1, H, W\) or \(H, W\).* got \(2, 8, 8\)"),
        (torch.zeros(3, 8, 8), torch.full((8, 8), 0.5), "0 .kept. and 1 .removed. only. Threshold"),
        (
            torch.zeros(2, 3, 8, 8),
            torch.zeros(3, 1, 8, 8),
            "one mask a picture, or one of either; got 2 and 3",
        ),
    ],
)
def test_wrong_input_is_an_error(images, masks, message):
    with pytest.raises(ValueError, match=message):
        make_fill("mean")(images, masks)


@pytest.mark.parametrize("name", INPAINTERS)
def test_in_painters_want_pixels(made, name):
    with pytest.raises(ValueError, match=rf"{name} needs pixels in \[0, 1\]; got -2 to -2.*space=Space"):
        made(name)(torch.full((3, 8, 8), -2.0), torch.eye(8))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: make_fill("gray"), "unknown fill 'gray'; known: zero, black, mean"),
        (lambda: make_fill("blur", radius=3), "fill 'blur' has no setting radius; known: kernel, sigma"),
        (lambda: make_fill("zero", seed=1, kernel=3), "fill 'zero' has no setting kernel; known: none"),
        (
            lambda: make_fill(lambda i, m: i, sigma=1),
            "settings belong to named fills; got a callable and sigma",
        ),
        (lambda: make_fill("blur", kernel=4), "odd kernel and a sigma above 0; got 4 and 5"),
        (lambda: make_fill("telea", radius=0), "radius must be from 1 to 100 pixels; got 0"),
        (lambda: make_fill("road", noise=-1), "noise must be at least 0; got -1"),
        (lambda: Space((0, 0, 0), (1, 0, 1)), "three positive std; got"),
        (
            lambda: make_fill("blur")(torch.zeros(3, 5, 5), torch.ones(5, 5)),
            "at least 6 pixels a side; got .5, 5.",
        ),
        (
            lambda: impute_linearly(np.zeros((1, 2, 2)), np.ones((2, 2), bool)),
            "at least one pixel must be there",
        ),
        (lambda: impute_linearly(np.zeros((2, 2)), np.ones((2, 2), bool)), r"values must be \(C, H, W\)"),
    ],
)
def test_wrong_settings_are_errors(call, message):
    with pytest.raises(ValueError, match=message):
        call()
