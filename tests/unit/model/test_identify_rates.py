"""How often `identify` is right, as docs/findings-zones.md says and the command prints."""

import pytest

from conformance.commands import identify
from conformance.model.studies.identify_rates import rates


@pytest.mark.slow
@pytest.mark.parametrize("trials", [1, 3])
def test_identification_is_hardly_ever_wrong_and_a_reference_is_named(trials):
    itself, another = (rates(identify.zones(), trials, spread) for spread in (False, True))
    assert itself.right + itself.inconclusive + itself.wrong == pytest.approx(1)
    assert itself.right >= 0.95 and itself.wrong == 0
    assert another.wrong <= 0.01
    # An independent implementation is often nearest to no algorithm, which is the price of never being wrong.
    assert 0.4 <= another.right < itself.right


def test_the_same_is_said_each_time():
    ours = [zone for zone in identify.zones() if zone.algorithm in ("cubic", "bbrv1")]
    assert rates(ours, 2, True, runs=5) == rates(ours, 2, True, runs=5)
