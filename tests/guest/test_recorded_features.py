"""What `python tests/score_why.py --record` kept of Linux's algorithms is what is read of their traces today.

Where this fails, what is read of a trace has changed, and mutants/why.json and zones/features.json are of before:
record them anew.
"""

import pytest
import score_why

from conformance.catalogue import documents, recorded_features
from conformance.commands import tracing
from conformance.engine import benches, runs
from conformance.kernel import store as kernels
from conformance.model.diagnosis import ranking
from conformance.support import paths

pytestmark = pytest.mark.guest

BUILT = {kernel.name for kernel in kernels.kernels()}


def recorded_of(algorithm):
    """The id of the scheme that was recorded. It measured the zones, too, where every machine builds its kernel."""
    recorded = recorded_features.find(algorithm)
    if recorded:
        return recorded.scheme
    (reference,) = documents.zone(paths.data("zones", algorithm, "heatmap.json")).references.values()
    return reference["scheme"]


@pytest.mark.parametrize("algorithm", ["cubic", *score_why.OWN_KERNELS])
def test_what_was_recorded_is_what_is_read(algorithm):
    if algorithm in score_why.OWN_KERNELS and algorithm not in BUILT:
        pytest.skip(f"no kernel {algorithm} is built")
    bench, recorded = benches.find(), recorded_of(algorithm)
    scheme = bench.scheme(algorithm).id
    if scheme != recorded:
        pytest.skip(f"{scheme} would be traced; {recorded} was recorded")
    found = tracing.traced(bench, algorithm, tracing.plan(algorithm, runs.seeds(3)))
    row = score_why.row(algorithm, ranking.readings(found.flows), found)
    assert row == score_why.recorded_rows()[algorithm]
