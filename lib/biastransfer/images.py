"""One picture file to RGB, or an error that names the file and says what to do."""

import io
import warnings
from pathlib import Path

import numpy as np
from PIL import Image, ImageChops, ImageFile, UnidentifiedImageError

MAX_PIXELS = 100_000_000  # 100 megapixels, 300 MB as RGB: more than any camera in COCO or Open Images
_ORIENTATION_TAG = 0x0112
_BITS_TAG = 258  # TIFF's BitsPerSample
_DRAWINGS = {"EPS": "a PostScript drawing", "WMF": "a Windows drawing"}  # Pillow hands them to other programs
_WHITE = 255.0

# Pillow warns of large pictures, odd EXIF and palettes: the limit here is our own, the rest is read right.
# A filter and not catch_warnings, which is not safe in the threads that decode pictures.
warnings.filterwarnings("ignore", module=r"PIL\.")


class ImageReadError(ValueError):
    """A picture file that cannot be read; the message names the file, what is wrong and what to do."""


def read_rgb(path: Path | str) -> np.ndarray:
    """Read one picture as 8-bit RGB.

    Parameters
    ----------
    path : path-like
        Any format Pillow reads. Of an animation or a multi-page file the first frame is taken.

    Returns
    -------
    ndarray of uint8, shape (H, W, 3)
        Upright (EXIF orientation applied), transparency laid on white.

    Raises
    ------
    ImageReadError
        The file is missing, empty, truncated, not a picture, or has more than ``MAX_PIXELS`` pixels.

    Notes
    -----
    16-bit grey is divided by 257, so that 65535 becomes 255 (Pillow's own conversion clips), 12-bit TIFF grey
    by 4095/255. 32-bit integers within 0…65535 are read as 16-bit, floats within 0…1 as shares of white and
    within 0…255 as 8-bit values; any other range is stretched from its minimum to its maximum. CMYK is
    converted without a colour profile, (255 − C)(255 − K)/255; the inversion of JPEGs with Adobe's marker is
    undone, one without the marker is taken as it stands.
    Embedded colour profiles are ignored, as the usual loaders of these backbones ignore them.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "grey.png"
    >>> Image.fromarray(np.array([[0, 257, 65535]], dtype=np.uint16)).save(file)
    >>> read_rgb(file)[0, :, 0].tolist()
    [0, 1, 255]
    """
    return decode_rgb(picture_bytes(path), path)


def decode_rgb(data: bytes, path: Path | str) -> np.ndarray:
    """Decode a picture file's bytes as `read_rgb` does; ``path`` is what an error names.

    Raises
    ------
    ImageReadError
        As for `read_rgb`.
    """
    try:
        image = _open(data, path)
        image.load()
        pixels = _upright(_rgb(image), _orientation(image))
    except (ImageReadError, MemoryError):  # too little memory is no fault of the picture
        raise
    except Exception as problem:  # decoders raise OSError, SyntaxError, struct.error, EOFError, …
        raise ImageReadError(
            f"{_name(path)}: a picture file must decode whole; it is truncated or damaged ({problem}). "
            "Fetch or export it again, or take it out of the set."
        ) from problem
    return np.require(pixels, requirements=["C", "W"])


def check_header(path: Path | str) -> tuple[int, int]:
    """Return (width, height) from a picture's header without decoding it.

    Raises
    ------
    ImageReadError
        As for `read_rgb`, except for damage that only decoding shows.
    """
    return _open(picture_bytes(path), path).size


def picture_bytes(path: Path | str) -> bytes:
    """Return a picture file's bytes.

    Raises
    ------
    ImageReadError
        The file is missing, cannot be opened, or is empty.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as problem:
        raise ImageReadError(
            f"{_name(path)}: a picture file must exist and be readable; {problem.strerror or problem}. "
            "Check the path and its permissions."
        ) from problem
    if not data:
        raise ImageReadError(
            f"{_name(path)}: a picture file must not be empty; it has 0 bytes. "
            "Fetch it again, or take it out of the set."
        )
    return data


def without_folder(message: str, path: Path | str) -> str:
    """Return a ``message`` about ``path`` with the bare file name: a page is published, the disk is not.

    Examples
    --------
    >>> without_folder("/pictures/a.png: it has 0 bytes", "/pictures/a.png")
    'a.png: it has 0 bytes'
    """
    return message.replace(_name(path), _name(Path(path).name))


def _open(data: bytes, path: Path | str) -> Image.Image:
    """Open the header; turn every way in which that fails into one sentence."""
    if ImageFile.LOAD_TRUNCATED_IMAGES:  # some libraries set it for everyone: half-grey pictures would pass
        ImageFile.LOAD_TRUNCATED_IMAGES = False
    try:
        image = Image.open(io.BytesIO(data))
    except Image.DecompressionBombError as problem:
        raise ImageReadError(_too_large(path, str(problem))) from problem
    except UnidentifiedImageError as problem:
        raise ImageReadError(f"{_name(path)}: {_what_it_is(data)}") from problem
    except MemoryError:
        raise
    except Exception as problem:
        raise ImageReadError(
            f"{_name(path)}: the header of a picture file must be whole; it is damaged ({problem}). "
            "Fetch or export it again, or take it out of the set."
        ) from problem
    if image.format in _DRAWINGS:
        what = f"a picture must be made of pixels; this is {_DRAWINGS[image.format]}. Export it as PNG."
        raise ImageReadError(f"{_name(path)}: {what}")
    width, height = image.size
    if width * height > MAX_PIXELS:
        raise ImageReadError(_too_large(path, f"{width} × {height}"))
    return image


def _what_it_is(data: bytes) -> str:
    """Say what a file that is no picture seems to be, from its first bytes."""
    head = data[:2048].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if b"<svg" in head:
        return "a picture must be made of pixels; this is an SVG drawing. Export it as PNG."
    if head.startswith((b"<!doctype html", b"<html", b"<head", b"<?xml")):
        return (
            "a picture file must hold a picture; this is a web page, so the download failed. Fetch it again."
        )
    if head.startswith(b"version https://git-lfs"):
        return "a picture file must hold a picture; this is a Git LFS pointer. Run `git lfs pull`."
    return (
        f"a picture file must have a format that Pillow reads; its first bytes are {data[:8]!r}. "
        "Convert it to PNG or JPEG, or take it out of the set."
    )


def _too_large(path: Path | str, came: str) -> str:
    return (
        f"{_name(path)}: a picture must have at most {MAX_PIXELS:,} pixels; got {came}. "
        "Scale it down, or take it out of the set."
    )


def _name(path: Path | str) -> str:
    """Return the file's path on one line: released names contain newlines."""
    return str(path).replace("\n", "\\n").replace("\r", "\\r")


def _rgb(image: Image.Image) -> np.ndarray:
    """Return (H, W, 3) uint8 from a loaded picture of any mode, transparency on white."""
    if image.mode.startswith("I") or image.mode == "F":
        return _deep_grey(image)
    if image.mode in ("RGBa", "La"):  # premultiplied alpha
        image = image.convert("RGBA" if image.mode == "RGBa" else "LA")
    if image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info:
        rgba = np.asarray(image.convert("RGBA"), dtype=np.float64)
        alpha = rgba[..., 3:] / 255.0
        return np.rint(rgba[..., :3] * alpha + _WHITE * (1.0 - alpha)).astype(np.uint8)
    if image.mode == "CMYK" and image.format == "JPEG" and "adobe" not in image.info:
        image = ImageChops.invert(image)  # Pillow inverts every JPEG of four colours
    return np.asarray(image.convert("RGB"))


def _deep_grey(image: Image.Image) -> np.ndarray:
    """Return RGB from 16-bit, 32-bit integer or float grey, scaled instead of clipped."""
    values = np.asarray(image).astype(np.float64)
    if not np.isfinite(values).all():
        raise ValueError("pixels that are not finite numbers")
    low, high = (float(values.min()), float(values.max())) if values.size else (0.0, 0.0)
    if image.mode.startswith("I") and low >= 0 and high <= 65535:
        grey = np.minimum(values / _grey_range(image) * 255.0, 255.0)
    elif image.mode == "F" and low >= 0 and high <= 255:
        grey = values * 255.0 if high <= 1 else values
    else:
        grey = (values - low) / (high - low or 1.0) * 255.0
    see_through = image.info.get("transparency")
    if isinstance(see_through, int):
        grey = np.where(values == see_through, _WHITE, grey)
    return np.repeat(np.rint(grey).astype(np.uint8)[..., None], 3, axis=2)


def _grey_range(image: Image.Image) -> int:
    """Return the value of white: 65535, less where a TIFF says that its grey has fewer bits."""
    tags = getattr(image, "tag_v2", {})
    bits = tags.get(_BITS_TAG, (16,))[0]
    return 2**bits - 1 if 8 < bits < 16 else 65535


def _orientation(image: Image.Image) -> int:
    """Return the EXIF (or XMP) orientation 1…8; unreadable EXIF counts as upright."""
    try:
        value = int(image.getexif().get(_ORIENTATION_TAG, 1))
    except Exception:  # damaged EXIF beside an intact picture
        return 1
    return value if 1 <= value <= 8 else 1


def _upright(pixels: np.ndarray, orientation: int) -> np.ndarray:
    """Undo an EXIF orientation on an (H, W, 3) array."""
    if orientation >= 5:  # stored with rows and columns exchanged
        pixels = pixels.transpose(1, 0, 2)
        orientation = {5: 1, 6: 2, 7: 3, 8: 4}[orientation]
    if orientation == 2:
        return pixels[:, ::-1]
    if orientation == 3:
        return pixels[::-1, ::-1]
    return pixels[::-1] if orientation == 4 else pixels
