"""Suggestions for misspelt names."""

import pytest

from conformance.support.spelling import did_you_mean, mend

KNOWN = ("cubic", "reno", "bbrv1", "bbrv2", "bbrv3")


@pytest.mark.parametrize(
    ("typed", "meant"), [("cubik", "cubic"), ("bbr3", "bbrv3"), ("Reno", "reno"), ("newreno", "reno")]
)
def test_a_close_name_is_suggested(typed, meant):
    assert did_you_mean(typed, KNOWN) == f"did you mean {meant}?"


def test_all_names_that_begin_with_it_are_suggested():
    assert did_you_mean("bbr", KNOWN) == "did you mean bbrv1, bbrv2 or bbrv3?"
    assert did_you_mean("cub", KNOWN) == "did you mean cubic?"
    assert did_you_mean("cl001", ["CL001", "CL002"]) == "did you mean CL001?"
    assert did_you_mean("", KNOWN) is None
    assert did_you_mean("x", [f"x{at}" for at in range(6)]) is None


def test_nothing_is_suggested_where_nothing_is_close():
    assert did_you_mean("nothing", KNOWN) is None
    assert mend("nothing", KNOWN, "choose another") == "choose another"
    assert mend("cubik", KNOWN, "it offers cubic") == "did you mean cubic? it offers cubic"
