import io
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from biastransfer.images import MAX_PIXELS, ImageReadError, check_header, read_rgb

RED, GREEN, BLUE, WHITE = [255, 0, 0], [0, 255, 0], [0, 0, 255], [255, 255, 255]


def saved(folder, image, name="a.png", **options):
    image.save(folder / name, **options)
    return folder / name


def corners(path):
    pixels = read_rgb(path)
    assert pixels.dtype == np.uint8
    assert pixels.flags.c_contiguous
    return pixels


@pytest.mark.parametrize(
    ("mode", "colour", "expected"),
    [
        ("1", 1, WHITE),
        ("L", 77, [77, 77, 77]),
        ("RGB", (10, 200, 30), [10, 200, 30]),
        ("RGBA", (255, 0, 0, 255), RED),
        ("RGBA", (255, 0, 0, 0), WHITE),
        ("RGBA", (0, 0, 0, 102), [153, 153, 153]),
        ("LA", (50, 0), WHITE),
        ("LA", (0, 51), [204, 204, 204]),
    ],
)
def test_png_modes_have_their_colours_on_white(tmp_path, mode, colour, expected):
    pixels = corners(saved(tmp_path, Image.new(mode, (3, 2), colour)))
    assert pixels.shape == (2, 3, 3)
    assert pixels[1, 2].tolist() == expected


@pytest.mark.parametrize(
    ("mode", "colour", "expected", "name", "options"),
    [
        ("CMYK", (0, 255, 255, 0), RED, "a.tif", {}),
        ("CMYK", (0, 0, 0, 128), [127, 127, 127], "a.tif", {}),
        ("CMYK", (255, 0, 255, 0), GREEN, "a.jpg", {"quality": 100}),  # Pillow writes Adobe's inverted form
        ("LAB", (255, 128, 128), WHITE, "a.tif", {}),
        ("YCbCr", (76, 85, 255), [254, 0, 0], "a.tif", {}),
        ("YCbCr", (76, 85, 255), [254, 0, 0], "a.jpg", {"quality": 100}),
    ],
)
def test_print_and_video_colours(tmp_path, mode, colour, expected, name, options):
    pixels = corners(saved(tmp_path, Image.new(mode, (8, 8), colour), name, **options))
    assert np.abs(pixels[4, 4].astype(int) - expected).max() <= 2


def test_an_adobe_cmyk_jpeg_is_marked_and_not_inverted(tmp_path):
    path = saved(tmp_path, Image.new("CMYK", (8, 8), (0, 0, 0, 0)), "a.jpg", quality=100)
    assert b"Adobe" in path.read_bytes()
    assert (corners(path) >= 254).all()


def test_a_cmyk_jpeg_without_adobes_marker_is_taken_as_it_stands(tmp_path):
    """What Pillow stored, 255 minus each ink, are then the inks: red becomes full cyan and black."""
    path = saved(tmp_path, Image.new("CMYK", (8, 8), (0, 255, 255, 200)), "a.jpg", quality=100)
    data = path.read_bytes()
    start = data.index(b"\xff\xee")
    (length,) = struct.unpack(">H", data[start + 2 : start + 4])
    path.write_bytes(data[:start] + data[start + 2 + length :])
    assert np.abs(corners(path)[4, 4].astype(int) - [0, 200, 200]).max() <= 2


def test_the_first_picture_of_a_stereo_pair_is_taken(tmp_path):
    pair = [Image.new("RGB", (8, 8), colour) for colour in ("red", "blue")]
    path = saved(tmp_path, pair[0], "a.mpo", save_all=True, append_images=pair[1:], quality=100)
    assert Image.open(path).format == "MPO"
    assert np.abs(corners(path)[4, 4].astype(int) - RED).max() <= 2


@pytest.mark.parametrize(
    ("bits", "row", "expected"),
    [
        (1, b"\x40", [0, 255]),
        (2, b"\x1b", [0, 85, 170, 255]),
        (4, b"\x07\x8f", [0, 119, 136, 255]),
    ],
)
def test_grey_of_few_bits_reaches_white(tmp_path, bits, row, expected):
    (tmp_path / "a.png").write_bytes(png_of(0, row, bits=bits, width=len(expected)))
    assert corners(tmp_path / "a.png")[0, :, 0].tolist() == expected


def test_a_palette_with_an_alpha_channel(tmp_path):
    image = Image.new("PA", (2, 1))
    image.putpalette([255, 0, 0, 0, 0, 255] + [0] * 762)
    image.putpixel((0, 0), (0, 255))
    image.putpixel((1, 0), (1, 51))
    assert corners(saved(tmp_path, image, "a.tif"))[0].tolist() == [RED, [204, 204, 255]]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0, 257, 32896, 65535], [0, 1, 128, 255]),
        ([0, 128, 256, 300], [0, 0, 1, 1]),
        ([40000] * 4, [156] * 4),
    ],
)
@pytest.mark.parametrize("name", ["a.png", "a.tif"])
def test_16_bit_is_scaled_by_its_range_and_never_clipped(tmp_path, values, expected, name):
    path = saved(tmp_path, Image.fromarray(np.array([values], dtype=np.uint16)), name)
    pixels = corners(path)
    assert pixels[0].tolist() == [[value] * 3 for value in expected]


def test_16_bit_big_endian_and_maps(tmp_path):
    values = np.array([[0, 257, 65535]], dtype=">u2")
    path = saved(tmp_path, Image.frombytes("I;16B", (3, 1), values.tobytes()), "a.tif")
    assert corners(path)[0, :, 0].tolist() == [0, 1, 255]
    (tmp_path / "a.pgm").write_bytes(b"P5 3 1 65535\n" + values.tobytes())
    assert corners(tmp_path / "a.pgm")[0, :, 0].tolist() == [0, 1, 255]


def test_transparent_16_bit_grey_lies_on_white(tmp_path):
    path = saved(tmp_path, Image.fromarray(np.array([[0, 257]], dtype=np.uint16)), transparency=0)
    assert corners(path)[0, :, 0].tolist() == [255, 1]


@pytest.mark.parametrize(
    ("dtype", "values", "expected"),
    [
        (np.int32, [0, 257, 65535], [0, 1, 255]),  # 16 bits in a 32-bit file
        (np.int32, [0, 1_000_000, 2_000_000], [0, 128, 255]),  # stretched
        (np.int32, [-100, 0, 100], [0, 128, 255]),
        (np.float32, [0.0, 0.5, 1.0], [0, 128, 255]),
        (np.float32, [0.0, 100.0, 255.0], [0, 100, 255]),
        (np.float32, [-1.0, 0.0, 1.0], [0, 128, 255]),
        (np.float32, [-3.0, -3.0, -3.0], [0, 0, 0]),
    ],
)
def test_32_bit_and_float_grey(tmp_path, dtype, values, expected):
    path = saved(tmp_path, Image.fromarray(np.array([values], dtype=dtype)), "a.tif")
    assert corners(path)[0, :, 0].tolist() == expected


def test_12_bit_tiff_is_scaled_by_its_own_range(tmp_path):
    pixels = bytes([0xFF, 0xF8, 0x00, 0x00, 0x00, 0x00])  # 4095, 2048, 0, 0: two pixels in three bytes
    tags = [(256, 4), (257, 1), (258, 12), (259, 1), (262, 1), (273, 8), (277, 1), (278, 1), (279, 6)]
    directory = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in tags)
    head = b"II*\0" + struct.pack("<I", 14) + pixels
    (tmp_path / "a.tif").write_bytes(head + struct.pack("<H", len(tags)) + directory + b"\0" * 4)
    assert corners(tmp_path / "a.tif")[0, :, 0].tolist() == [255, 128, 0, 0]


def png_of(colour_type, samples, *, bits=16, width=None):
    """Write a PNG by hand, one row, of 16-bit samples or of bytes as they are."""

    def chunk(name, content):
        return (
            struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
        )

    channels = {0: 1, 2: 3, 4: 2, 6: 4}[colour_type]
    head = struct.pack(">IIBBBBB", width or len(samples) // channels, 1, bits, colour_type, 0, 0, 0)
    row = zlib.compress(b"\0" + (samples if bits < 16 else np.array(samples, dtype=">u2").tobytes()))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", row) + chunk(b"IEND", b"")


@pytest.mark.parametrize(
    ("colour_type", "samples", "expected"),
    [
        (2, [0, 257, 65535], [[0, 1, 255]]),
        (4, [257, 65535, 0, 0], [[1, 1, 1], WHITE]),
        (6, [257, 514, 65535, 65535, 0, 0, 0, 0], [[1, 2, 255], WHITE]),
    ],
)
def test_16_bit_colour_and_alpha(tmp_path, colour_type, samples, expected):
    (tmp_path / "a.png").write_bytes(png_of(colour_type, samples))
    assert corners(tmp_path / "a.png")[0].tolist() == expected


def test_float_pixels_that_are_not_numbers_are_an_error(tmp_path):
    path = saved(tmp_path, Image.fromarray(np.array([[0, np.nan]], dtype=np.float32)), "a.tif")
    with pytest.raises(ImageReadError, match=r"a\.tif: .*not finite"):
        read_rgb(path)


def test_palettes_with_and_without_transparency(tmp_path):
    image = Image.new("P", (2, 1))
    image.putpalette([255, 0, 0, 0, 0, 255] + [0] * 762)
    image.putdata([0, 1])
    assert corners(saved(tmp_path, image))[0].tolist() == [RED, BLUE]
    assert corners(saved(tmp_path, image, "b.png", transparency=1))[0].tolist() == [RED, WHITE]
    half = saved(tmp_path, image, "c.png", transparency=bytes([255, 51]))
    assert corners(half)[0].tolist() == [RED, [204, 204, 255]]


def test_a_transparent_colour_of_grey_and_rgb_lies_on_white(tmp_path):
    grey = Image.fromarray(np.array([[7, 9]], dtype=np.uint8))
    assert corners(saved(tmp_path, grey, transparency=7))[0, :, 0].tolist() == [255, 9]
    colour = Image.fromarray(np.array([[[1, 2, 3], [4, 5, 6]]], dtype=np.uint8))
    assert corners(saved(tmp_path, colour, "b.png", transparency=(1, 2, 3)))[0].tolist() == [WHITE, [4, 5, 6]]


@pytest.mark.parametrize("name", ["a.gif", "a.webp", "a.png", "a.tif"])
def test_the_first_frame_is_taken(tmp_path, name):
    frames = [Image.new("RGB", (4, 4), colour) for colour in ("red", "blue", "lime")]
    options = {"lossless": True} if name.endswith("webp") else {}
    frames[0].save(tmp_path / name, save_all=True, append_images=frames[1:], **options)
    assert corners(tmp_path / name)[2, 2].tolist() == RED


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("name", ["a.png", "a.tif", "a.webp"])
def test_exif_turned_pictures_stand_upright(tmp_path, orientation, name):
    upright = np.arange(2 * 3 * 3, dtype=np.uint8).reshape(2, 3, 3) * 10
    turn = {  # what a camera held that way stores, by the definition of the tag
        1: lambda a: a,
        2: lambda a: a[:, ::-1],
        3: lambda a: a[::-1, ::-1],
        4: lambda a: a[::-1],
        5: lambda a: a.transpose(1, 0, 2),
        6: lambda a: np.rot90(a, 1),
        7: lambda a: a[::-1, ::-1].transpose(1, 0, 2),
        8: lambda a: np.rot90(a, -1),
    }
    exif = Image.Exif()
    exif[0x0112] = orientation
    stored = Image.fromarray(np.ascontiguousarray(turn[orientation](upright)))
    options = {"lossless": True} if name.endswith("webp") else {}
    path = saved(tmp_path, stored, name, exif=exif, **options)
    np.testing.assert_array_equal(corners(path), upright)


def test_a_16_bit_picture_is_turned_too(tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6
    path = saved(tmp_path, Image.fromarray(np.array([[257, 514]], dtype=np.uint16)), exif=exif)
    assert corners(path)[:, 0, 0].tolist() == [1, 2]


def test_damaged_exif_does_not_lose_the_picture(tmp_path):
    path = saved(tmp_path, Image.new("RGB", (8, 8), "red"), "a.jpg", exif=b"Exif\0\0garbage")
    assert corners(path).shape == (8, 8, 3)


def test_capital_suffix_unicode_and_newline_in_the_name(tmp_path):
    for name in ("A.JPG", "été ☀.png", "01ab\n.webp"):
        Image.new("RGB", (4, 4), "white").save(tmp_path / name)
        assert (read_rgb(tmp_path / name) == 255).all()


def noisy_png() -> bytes:
    noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(noise).save(buffer, "PNG")
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "must not be empty; it has 0 bytes"),
        (b"<!DOCTYPE html><html>404</html>", "this is a web page, so the download failed"),
        (b'<?xml version="1.0"?>\n<svg xmlns="x"></svg>', "this is an SVG drawing. Export it as PNG"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\n", "this is a PostScript drawing"),
        (b"version https://git-lfs.github.com/spec/v1", "Git LFS pointer"),
        (b"hello, no picture", "a format that Pillow reads; its first bytes are b'hello, n'"),
        (noisy_png()[:5000], "must decode whole; it is truncated or damaged"),
        (noisy_png()[:20], "Fetch or export it again|a format that Pillow reads"),
    ],
)
def test_what_is_no_picture_is_named_with_what_to_do(tmp_path, content, message):
    path = tmp_path / "bad\n.png"
    path.write_bytes(content)
    with pytest.raises(ImageReadError, match=message) as caught:
        read_rgb(path)
    assert "bad\\n.png" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["a.jpg", "a.webp", "a.gif", "a.tif", "a.bmp"])
def test_every_format_cut_short_is_an_error(tmp_path, name):
    noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    path = saved(tmp_path, Image.fromarray(noise), name)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(ImageReadError, match=r"Fetch or export it again|Pillow reads"):
        read_rgb(path)


def test_truncation_is_found_even_when_another_library_told_pillow_to_ignore_it(tmp_path, monkeypatch):
    monkeypatch.setattr("PIL.ImageFile.LOAD_TRUNCATED_IMAGES", True)
    (tmp_path / "a.png").write_bytes(noisy_png()[:5000])
    with pytest.raises(ImageReadError, match="truncated"):
        read_rgb(tmp_path / "a.png")


@pytest.mark.parametrize("side", [11_000, 40_000])
def test_a_decompression_bomb_is_refused_by_its_header(tmp_path, side):
    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    good = noisy_png()
    chunk = b"IHDR" + header
    crc = struct.pack(">I", zlib.crc32(chunk))
    (tmp_path / "bomb.png").write_bytes(good[:12] + chunk + crc + good[33:])
    with pytest.raises(
        ImageReadError, match=rf"bomb\.png: a picture must have at most {MAX_PIXELS:,} pixels"
    ):
        read_rgb(tmp_path / "bomb.png")
    with pytest.raises(ImageReadError, match="at most"):
        check_header(tmp_path / "bomb.png")


def test_a_missing_file_and_a_folder_are_named(tmp_path):
    with pytest.raises(ImageReadError, match=r"gone\.png: .*Check the path"):
        read_rgb(tmp_path / "gone.png")
    with pytest.raises(ImageReadError, match="directory"):
        read_rgb(tmp_path)


def test_the_header_gives_width_and_height(tmp_path):
    assert check_header(saved(tmp_path, Image.new("L", (5, 3)))) == (5, 3)


def test_released_pictures_read(shared_data):
    for file in sorted((shared_data / "coco-mini" / "images").glob("*.jpg"))[:20]:
        expected = np.asarray(Image.open(file).convert("RGB"))
        np.testing.assert_array_equal(read_rgb(file), expected)


def test_pixels_can_be_written_to(tmp_path):
    file = tmp_path / "grey.png"
    Image.new("RGB", (3, 2), (1, 2, 3)).save(file)
    pixels = read_rgb(file)
    pixels[0, 0] = 9
    assert pixels[0, 0].tolist() == [9, 9, 9]
