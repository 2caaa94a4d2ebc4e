"""Perceived gender of the people in a picture, read from what its captions say."""

import re
from collections.abc import Iterable

MALE = frozenset({"male", "males", "boy", "boys", "man", "men", "gentleman", "gentlemen"})
FEMALE = frozenset({"female", "females", "girl", "girls", "woman", "women", "lady", "ladies"})

_APOSTROPHES = str.maketrans("’‘ʼ＇`´", "''''''")
_HYPHENS = str.maketrans(dict.fromkeys("‐‑﹣－", "-"))
# A word: letters and digits, joined by hyphens or apostrophes from within.
_WORD = re.compile(r"[^\W_]+(?:[-'][^\W_]+)*")


def caption_gender(captions: Iterable[str] | str, min_captions: int = 1) -> str | None:
    """Return the perceived gender that captions name: ``"man"``, ``"woman"``, ``"both"`` or None.

    Parameters
    ----------
    captions : iterable of str
        All captions of one picture (COCO has five).
    min_captions : int
        How many captions must name a gender for it to count (the literature takes 1 or 2).

    Returns
    -------
    str or None
        ``"both"`` as soon as any caption names each gender, whatever ``min_captions`` is; None where no
        gender is named in at least ``min_captions`` captions.

    Raises
    ------
    ValueError
        ``min_captions`` is not a whole number of at least 1.

    Notes
    -----
    Whole words in lower case, punctuation and the possessive 's dropped. A hyphenated compound is one
    word: "man-made" and "t-shirt" name nobody. The word lists are the ones of the captioning-bias
    literature (male, boy, man, gentleman; female, girl, woman, lady; and their plurals).

    Examples
    --------
    >>> caption_gender(["The man's car.", "A human beside a car"])
    'man'
    >>> caption_gender(["A man-made lake"]) is None
    True
    >>> caption_gender(["Two women.", "A lady and a boy"])
    'both'
    """
    if isinstance(min_captions, bool) or not isinstance(min_captions, int) or min_captions < 1:
        raise ValueError(f"min_captions must be a whole number of at least 1; got {min_captions!r}.")
    named = [_words(caption) for caption in ([captions] if isinstance(captions, str) else captions)]
    male = sum(bool(words & MALE) for words in named)
    female = sum(bool(words & FEMALE) for words in named)
    if male and female:
        return "both"
    if male >= min_captions:
        return "man"
    return "woman" if female >= min_captions else None


def _words(caption: str) -> set[str]:
    """Return the words of a caption in lower case, without possessive endings."""
    text = str(caption).translate(_APOSTROPHES).translate(_HYPHENS).lower()
    return {word.removesuffix("'s") for word in _WORD.findall(text)}
