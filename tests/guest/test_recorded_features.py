"""The readings of Linux's algorithms that `python tests/score_why.py --record` kept equal those of traces today.

With another nginx or OpenSSL than the goldens', losses fall on other packets: then the two are only alike, as `why`
compares them. So they are if a user's kernel is not the one that the zones rest on, to the byte.

If this fails, traces are read differently than when mutants/why.json and zones/features.json were written. Record them
anew.
"""

import helpers
import pytest
import score_why
import trials

from conformance.catalogue import documents, recorded_features
from conformance.commands import tracing
from conformance.engine import benches, runs
from conformance.model.diagnosis import ranking

pytestmark = pytest.mark.guest


@pytest.mark.parametrize(
    "algorithm", ["cubic", *(pytest.param(name, marks=pytest.mark.thorough) for name in score_why.OWN_KERNELS)]
)
def test_what_was_recorded_is_what_is_read(algorithm):
    kept = recorded_features.find(algorithm)
    recorded = kept.scheme if kept else helpers.reference_scheme(algorithm)
    bench = benches.find()
    scheme = bench.scheme(algorithm).id
    if scheme != recorded:  # also if the kernel is not built
        pytest.skip(f"{scheme} would be traced; {recorded} was recorded")
    found = tracing.traced(bench, algorithm, tracing.plan(algorithm, runs.seeds(3)))
    row, before = score_why.row(algorithm, ranking.readings(found.flows), found), score_why.recorded_rows()[algorithm]
    assert not ranking.suspects(algorithm, *map(score_why.readings, (row, before)))
    if bench.adapter.version == trials.recorded()["tcp-cubic"]["trial"]["scheme"]["stack_version"] and (
        algorithm not in score_why.OWN_KERNELS or bench.scheme(algorithm).kernel_digest in _kernels_of_zones(algorithm)
    ):
        assert _rounded(row) == _rounded(before)


def _kernels_of_zones(algorithm):
    """Return the digests of the kernels that an algorithm's heatmap rests on."""
    zone = documents.zone_of(algorithm, "heatmap", "packets")
    return {reference.get("kernel_digest") for reference in zone.references.values()}


def _rounded(part):
    """Return a part of a row without what the order of a sum decides: a slope of zero is some 1e-16."""
    if isinstance(part, dict):
        return {name: _rounded(of) for name, of in part.items()}
    return round(part, 9) if isinstance(part, float) else part
