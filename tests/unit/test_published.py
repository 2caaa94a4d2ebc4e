"""The printed tables are whole, and the re-analysis gives what hand and SciPy give."""

import numpy as np
import pytest
from scipy import stats as scipy_stats

from biastransfer import published

ROWS = {1: 6, 2: 24, 3: 12, 4: 12, 5: 13, 6: 16, 7: 6, 8: 6, 9: 72}


@pytest.mark.parametrize(("number", "rows"), ROWS.items())
def test_every_table_has_its_rows(number, rows):
    assert len(published.load(f"table{number}")) == rows


def test_analysis_sets_add_up():
    assert published.load("table5")["n"].sum() == 206
    assert published.load("table6")["n"].sum() == 1925


def test_table_2_repeats_table_9():
    keys = ["model", "concept_a", "concept_b", "stage"]
    nine = published.load("table9").set_index(keys)
    two = published.load("table2").set_index(keys)
    assert (nine.loc[two.index, ["d", "p"]] == two[["d", "p"]]).all(axis=None)


def test_numbers_of_the_text_that_tables_repeat():
    text = published.load("text").set_index("id")["value"]
    bit = published.load("table3").query("model == 'BiT-M-R50x1'").set_index("kind")["r"]
    assert text["T12"] == bit["intra"]
    assert text["T14"] != bit["inter"], "Figure 3 prints .791 where Table 3 prints .8"
    four = published.load("table4").set_index(["model", "kind"])["r"]
    assert text["T16"] == four["CLIP-ViT-B/32", "intra"]
    assert text["T17"] == four["MoCo ResNet50", "inter"]


def test_unknown_table_is_named():
    with pytest.raises(ValueError, match="unknown table 'table10'; known: table1"):
        published.load("table10")


def test_one_printed_transfer_p_does_not_follow_from_its_r():
    scores = published.transfer_scores()
    assert scores.loc[~scores["agrees"], ["table", "model", "kind"]].to_numpy().tolist() == [
        ["4", "BiT-M-R50x1", "intra"]
    ]
    n = scores["n_items"].to_numpy()
    r = scores["r_attainable"].to_numpy()
    t = r * np.sqrt((n - 2) / (1 - r**2))
    np.testing.assert_allclose(scores["p_t"], 2 * scipy_stats.t.sf(np.abs(t), n - 2), rtol=1e-12)
    np.testing.assert_allclose(r, scores["r"], atol=5.1e-4)


@pytest.mark.parametrize(
    ("n", "r", "p"),
    [(7, 0.714, 0.0881), (8, 0.714, 0.0576), (8, 0.952, 0.0011), (9, 0.867, 0.0045), (12, 0.343, 0.2762)],
)
def test_exact_p_at_the_printed_sizes(n, r, p):
    scores = published.transfer_scores().query("n_items == @n and r == @r")
    np.testing.assert_allclose(scores["p_exact"], p, atol=5e-5)


def test_families_of_the_72_tests():
    counts = published.family_counts().set_index(["correction", "sides"])["significant"]
    assert counts["none", "one-sided"] == 35
    assert counts["Benjamini–Hochberg", "one-sided"] == 32
    assert counts["Benjamini–Yekutieli", "one-sided"] == 25
    assert counts["Holm", "one-sided"] == 23
    assert [
        counts[c, "two-sided"] for c in ("none", "Benjamini–Hochberg", "Benjamini–Yekutieli", "Holm")
    ] == [
        43,
        38,
        30,
        24,
    ]
    assert published.family_counts()["opposite"].dropna().tolist() == [11]


def test_printed_p_that_do_not_fit_their_d():
    tests = published.association_tests()
    assert tests.loc[~tests["fits"], "d"].tolist() == [0.346, 0.372]
    np.testing.assert_allclose(tests.loc[~tests["fits"], "p_z"], [0.0014, 0.0006], atol=5e-5)


def test_interval_of_a_correlation():
    low, high = published.correlation_interval(0.5, 28)
    half = 1.959963985 * np.sqrt(1.125 / 25)
    assert np.arctanh(low) == pytest.approx(np.arctanh(0.5) - half)
    assert np.arctanh(high) == pytest.approx(np.arctanh(0.5) + half)
    assert published.correlation_interval(1.0, 9) == (1.0, 1.0)
    assert np.isnan(published.correlation_interval(0.5, 3)).all()


def test_items_needed_gives_the_promised_power():
    n = published.items_needed(0.2, r=0.8)
    gap = np.arctanh(0.8) - np.arctanh(0.6)
    error = np.sqrt((1 + 0.32) / (n - 3) + (1 + 0.18) / (n - 3))
    assert scipy_stats.norm.cdf(gap / error - 1.959963985) >= 0.8
    error = np.sqrt((1 + 0.32) / (n - 4) + (1 + 0.18) / (n - 4))
    assert scipy_stats.norm.cdf(gap / error - 1.959963985) < 0.8
