"""What the text claims is held against the tables, with numbers that can be counted by hand."""

import pytest

from biastransfer import published, published_claims


def test_claims_carry_counts_from_the_tables():
    said = published_claims.claims().set_index("where")
    nine = published.load("table9")
    ours = nine[nine["model"].isin(["SimCLR ResNet50", "MoCo ResNet50"])]
    assert f"{(ours['p'] < 0.05).sum()} of their 24 tests" in said.loc["§12", "tables_say"]
    assert said.loc["§12", "carried"] == "no"
    assert "0.783 or 0.800" in said.loc["Figure 3", "tables_say"]
    assert "23 of 24" in said.loc["Tables 3, 4", "tables_say"]


def test_no_two_models_are_apart_after_correction_when_errors_are_independent():
    apart = published_claims.pairs_apart()
    assert apart["pairs"].tolist() == [15, 15, 15, 15]
    assert apart["apart_holm"].sum() == 0


def test_shared_items_can_only_help():
    alone, shared = published_claims.pairs_apart(0.0), published_claims.pairs_apart(0.8)
    assert (shared["apart"] >= alone["apart"]).all()
    assert (shared["largest_z"] > alone["largest_z"]).all()


def test_correlation_of_errors_is_checked():
    with pytest.raises(ValueError, match=r"correlation must lie in \[0, 1\); got 1"):
        published_claims.pairs_apart(1)
