"""What commands say before a plan is carried out."""

import pytest

from conformance.catalogue import documents
from conformance.commands.measuring import amount
from conformance.model.judging.session import plan


@pytest.mark.parametrize(
    ("grid", "trials", "most", "words"),
    [
        ("full", 99, 99, "150 cells, 99 trials each: 14,850 trials"),
        ("10mbps", 5, 20, "30 cells, 5 to 20 trials each: 150 to 600 trials"),
        ("10mbps-20ms-1pct", 5, 5, "1 cell, 5 trials each: 5 trials"),
    ],
)
def test_the_amount_of_work_is_told(grid, trials, most, words):
    work = [("cubic", documents.profile("atc25", cell)) for cell in documents.cells(grid)]
    assert amount(plan(trials=trials, most_trials=most, work=work)) == words
