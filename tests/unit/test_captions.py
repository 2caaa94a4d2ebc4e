import json

import pytest

from biastransfer.analysis_sets import caption_gender


@pytest.mark.parametrize(
    ("caption", "expected"),
    [
        ("A man rides a wave", "man"),
        ("MEN at work.", "man"),
        ("the gentlemen's club", "man"),
        ("A boy's bike", "man"),
        ("the boys' room", "man"),
        ("(man)", "man"),
        ('"Man," she said', "man"),
        ("man/child", "man"),
        ("a man—standing", "man"),
        ("a man’s hat", "man"),
        ("A woman.", "woman"),
        ("two ladies", "woman"),
        ("girl, smiling", "woman"),
        ("female athlete", "woman"),
        ("a man and a woman", "both"),
        ("a human being", None),
        ("a snowman", None),
        ("the German shepherd", None),
        ("a man-made lake", None),
        ("a man‑made lake", None),
        ("a woman-owned shop", None),
        ("mankind, womanly, manly", None),
        ("guy and mother", None),  # not in the literature's lists
        ("", None),
    ],
)
def test_one_caption(caption, expected):
    assert caption_gender([caption]) == expected
    assert caption_gender(caption) == expected


@pytest.mark.parametrize(
    ("male", "female", "least", "expected"),
    [
        (1, 0, 1, "man"),
        (1, 0, 2, None),
        (2, 0, 2, "man"),
        (0, 2, 2, "woman"),
        (4, 1, 2, "both"),
        (0, 0, 1, None),
    ],
)
def test_how_many_captions_have_to_say_it(male, female, least, expected):
    captions = ["a man"] * male + ["a woman"] * female + ["a tree"] * (5 - male - female)
    assert caption_gender(captions, min_captions=least) == expected
    assert caption_gender(reversed(captions), least) == expected


def test_a_caption_that_repeats_a_word_counts_once():
    assert caption_gender(["man man man"], min_captions=2) is None


@pytest.mark.parametrize("least", [0, -1, 1.0, True, "1"])
def test_min_captions_must_be_a_whole_number(least):
    with pytest.raises(ValueError, match=r"min_captions must be a whole number of at least 1; got"):
        caption_gender(["a man"], least)


def test_a_plain_second_reading_agrees_on_5000_real_pictures(shared_data):
    """Every official val2017 caption, read again by splitting at white space and stripping punctuation."""
    said = {}
    for one in json.loads((shared_data / "captions_val2017.json").read_text())["annotations"]:
        said.setdefault(one["image_id"], []).append(one["caption"])
    male = {"male", "boy", "man", "gentleman", "boys", "men", "males", "gentlemen"}
    female = {"female", "girl", "woman", "lady", "girls", "women", "females", "ladies"}
    differ = 0
    for captions in said.values():
        words = {
            word.strip(".,;:!?\"'()[]`").removesuffix("'s").rstrip("'")
            for caption in captions
            for word in caption.lower().replace("/", " ").split()
        }
        expected = {(True, True): "both", (True, False): "man", (False, True): "woman"}.get(
            (bool(words & male), bool(words & female))
        )
        differ += caption_gender(captions) != expected
    assert len(said) == 5000
    assert differ <= 5  # words run together: "man,holding", "woman&"
