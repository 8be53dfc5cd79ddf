"""Comparison with the published cells; the measurements are made up."""

import dataclasses
import statistics

import pytest
from helpers import CELL, measurements, of_trial

from conformance.catalogue import documents, scenarios
from conformance.commands import fidelity
from conformance.model.errors import UserError
from conformance.model.networks.place import Point
from conformance.model.trials.trial import Outcome
from conformance.support import paths

PUBLISHED = fidelity.published_cells()


def of(stack, values=(0.2, 0.4)):
    return measurements(values, stack=stack)


def test_each_implementation_is_compared_with_what_was_published_of_it():
    made = [m for stack in ("linux-tcp", "google-quiche", "cloudflare-quiche-0.24", "quinn") for m in of(stack)]
    rows = fidelity.compare(made, PUBLISHED)
    assert [row[0] for row in rows] == ["cubic/cloudflare-quiche-0.24", "cubic/google-quiche", "cubic"]
    assert [row[2] for row in rows] == pytest.approx([0.3] * 3)
    assert {row[3] for row in rows} == {
        PUBLISHED["cubic", name, CELL][0] for name in ("cloudflare-quiche", "google-quiche", "linux-tcp")
    }


def test_the_table_has_bias_rms_and_the_largest_difference():
    other = dataclasses.replace(CELL, loss_pct=2)
    lines = fidelity.table([("cubic", CELL, 0.5, 0.4), ("cubic", other, 0.1, 0.4)])
    assert [line.bandwidth_mbps for line in lines] == [10, None]
    for line in lines:
        assert (line.cells, line.worst_cell) == (2, other)
        assert (line.bias, line.rms, line.worst) == pytest.approx((-0.1, 0.2236, -0.3), abs=1e-4)


def test_the_table_of_the_findings_follows_from_the_zones():
    rows = []
    for name in ("CUBIC", "Reno", "BBRv1", "BBRv2", "BBRv3"):
        algorithm = name.lower()
        zone = documents.zone(documents.shipped_path(f"{algorithm}/heatmap"))
        ours = {cell: statistics.fmean(interval.basis.values) for cell, interval in zone.intervals.items()}
        both = [(cell, PUBLISHED.get((algorithm, "linux-tcp", cell))) for cell in ours]
        for line in fidelity.table((algorithm, cell, ours[cell], known[0]) for cell, known in both if known):
            at, common = line.worst_cell, f"{line.cells} | {line.bias:+.4f}"
            if line.bandwidth_mbps is None:
                rows.append(f"| **{name}** | {common} | **{line.rms:.4f}** | {fidelity.LIMITS[algorithm][0]:g} | |")
                continue
            worst = f"{line.worst:+.3f} at {at.one_way_delay_ms} ms, {at.loss_pct} %"
            rows.append(f"| {name}, {line.bandwidth_mbps:g} Mbit/s | {common} | {line.rms:.4f} | | {worst} |")
    assert "\n".join(rows) in (paths.data("docs") / "findings-fidelity.md").read_text(encoding="utf-8")


def test_unlike_runs_are_refused():
    with pytest.raises(UserError, match="results of cubic/quinn come from different runs"):
        fidelity.compare([*of("quinn"), *measurements([0.5], stack="quinn", lab_digest="8" * 16)], PUBLISHED)


def test_what_was_not_published_is_not_compared():
    """A short transfer and flows that share a network in that cell, and cells in which a trial did not complete."""

    def under(setting):
        return [of_trial(m, setting=setting) for m in of("linux-tcp")]

    others = [
        *under(documents.profile("startup", CELL)),
        *under(scenarios.setting("fairness", Point.parse("flows=2"))),
        *under(documents.profile(documents.PROFILES["tcp"], CELL, transfer_s=5)),
    ]
    assert fidelity.compare([*of("linux-tcp"), *others], PUBLISHED) == fidelity.compare(of("linux-tcp"), PUBLISHED)
    for outcome in (Outcome.TIMEOUT, Outcome.FAILED, Outcome.ERROR):
        bad = measurements([0.01], outcome=outcome)
        assert fidelity.compare([*of("linux-tcp"), *bad], PUBLISHED) == []
