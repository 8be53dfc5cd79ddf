"""Which violations are looked at, in which guests, and what is said about violations that cannot be."""

import dataclasses

import helpers
import pytest
import record_traits
import score_why
import senders

from conformance.catalogue import documents, recorded_features, scenarios
from conformance.commands import blame, tracing
from conformance.engine import benches
from conformance.engine.benches import Choice
from conformance.lab import job
from conformance.model.diagnosis.blame import Blame, Cause, FlowTraits, NotAttributed
from conformance.model.diagnosis.feature_table import FEW
from conformance.model.errors import UserError
from conformance.model.networks.place import Cell
from conformance.reporting.text.progress import ConsoleNotes
from conformance.support.console import Console

CELL = Cell.parse("10mbps-20ms-1pct")


def violation(kind="heatmap", cell=CELL, algorithm="reno", profile="packets", factor=0.8):
    zone = documents.zone_of(algorithm, kind, profile if kind in documents.KINDS else "atc25")
    middle = zone.intervals[cell].basis.median
    return blame.Violation(zone=zone, place=cell, values=(factor * middle,) * 5)


@pytest.fixture
def traced(monkeypatch):
    """Replace stacks by a simulated sender of small packets; return {role: {cell: seeds}} of the traces asked for."""
    asked = {}

    def traced_all(schemes, plans, *, under, bar, workers, budget_s):
        asked.update(plans)
        found = {}
        for role, plan in plans.items():
            assert len({setting.profile for setting in under[role].values()}) == 1
            size = 700 if role.startswith("stack") else senders.FULL_BYTES
            sender = senders.Sender(full_bytes=size, ssthresh=20, packets=2000, lost=senders.every(150))
            flow = senders.flow(sender, bytes_per_s=1.25e7, queue_packets=1000)
            flows = {name: dict.fromkeys(seeds, flow) for name, seeds in plan.items()}
            found[role] = tracing.Traced(scheme=helpers.scheme("reno"), flows=flows, problems=[])
        return found

    monkeypatch.setattr(tracing, "traced_all", traced_all)
    monkeypatch.setattr(tracing, "why_not", lambda bench, algorithm: None)
    monkeypatch.setattr(benches, "find", lambda choice: choice)
    return asked


QUINN = Choice(stack="quinn")


def look(*violations, choice=QUINN):
    return blame.of_violations(violations, choice, ConsoleNotes(Console()))


def test_stack_and_reference_are_traced_in_the_cell_and_where_losses_are_few(traced):
    one = violation(factor=0.5)
    found = look(one)[one.key]
    assert isinstance(found, Blame) and found.cause is Cause.PACKET_SIZE
    assert {role: dict(plan) for role, plan in traced.items()} == {
        f"{who} reno {profile}": {name: range(1, 1 + blame.TRIALS)}
        for who in ("stack", "reference")
        for profile, name in (("packets", CELL.id), ("", FEW))
    }


def test_a_rate_at_a_point_is_taken_apart_in_a_guest_of_its_own(traced):
    zone = documents.zone_of("bbrv3", "spaced-losses")
    places = list(zone.intervals)[:2]
    one, other = (violation("spaced-losses", place, "bbrv3", factor=0.5) for place in places)
    assert all(isinstance(cause, Blame) for cause in look(one, other).values())
    assert {role: dict(plan) for role, plan in traced.items()} == {
        f"{who} bbrv3 spaced-losses {place.id}": {place.id: range(1, 1 + blame.TRIALS)}
        for place in places
        for who in ("stack", "reference")
    }


def test_what_takes_two_trials_or_more_packets_than_a_trace_has_room_for_is_not_captured(monkeypatch):
    zone = documents.zone_of("bbrv3", "spaced-losses")
    one = violation("spaced-losses", next(iter(zone.intervals)), "bbrv3")
    scenario = scenarios.find("after-start-up")
    waits = scenario.setting(scenario.parse("rate_mbps=5"))
    monkeypatch.setattr(blame.scenarios, "setting", lambda name, point: waits)
    assert one.why_not == "after-start-up waits for a state, which takes two trials"
    monkeypatch.setattr(blame.trace, "flow_of", lambda setting, flow: (0, 0))
    monkeypatch.setattr(job, "_MOST_TRACED_BYTES", 1000)
    assert "more than the 0 MB that a trace has room for" in one.why_not


def test_no_loss_alone_shows_bbrs_response(traced):
    look(violation(algorithm="bbrv1"))
    assert list(traced) == ["stack bbrv1 packets", "reference bbrv1 packets"]


def test_few_are_looked_at_the_cheapest_of_each_zone_first():
    zone = documents.zone_of("reno", "heatmap", "atc25")
    many = [violation(cell=cell, profile="atc25") for cell in reversed(zone.cells)]
    further = [violation("identify-utilization", cell=documents.zone_of("reno", "identify-utilization").cells[0])]
    chosen = blame.choose([*many, *further])
    assert [one.zone.id for one in chosen] == ["reno/heatmap", "reno/identify-utilization", "reno/heatmap"]
    assert {one.place.bandwidth_mbps for one in chosen} == {10}


def test_what_is_no_rate_or_not_the_flows_own_is_not_attributed(traced):
    beside = violation("competing", cell=documents.zone_of("reno", "competing").cells[0])
    nothing = dataclasses.replace(violation(), values=(0.0,) * 5)
    found = look(violation("loss"), beside, nothing)
    assert [one.sentence for one in found.values()] == [
        "not attributed: lost_pct is not a rate",
        "not attributed: neither a split path nor a cell's flow beside a rival is examined",
        "not attributed: nothing was transferred",
    ]
    assert not traced


def test_what_cannot_be_made_again_is_not_attributed_and_hides_nothing(traced, monkeypatch):
    one = violation()

    def refuse(*_, **__):
        raise UserError("no guest kernel 6.1", "build it")

    monkeypatch.setattr(tracing, "traced_all", refuse)
    assert "no guest kernel 6.1" in look(one)[one.key].sentence

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(tracing, "traced_all", interrupt)
    assert look(one)[one.key] == NotAttributed("interrupted")
    monkeypatch.setattr(tracing, "why_not", lambda bench, algorithm: "its kernel is not built")
    assert look(one)[one.key] == NotAttributed("its kernel is not built")


def test_traces_that_were_not_made_in_time_are_said(traced, monkeypatch):
    monkeypatch.setattr(tracing, "traced_all", lambda *_, **__: {})
    one = violation()
    assert look(one)[one.key] == NotAttributed("no trace of the stack was made in time")


@pytest.mark.parametrize("algorithm", score_why.OWN_KERNELS)
def test_what_was_recorded_stands_in_for_a_kernel_that_is_not_built(traced, monkeypatch, algorithm):
    monkeypatch.setattr(tracing, "why_not", lambda bench, of: None if bench == QUINN else "its kernel is not built")
    inside = violation(algorithm=algorithm, factor=0.5)
    outside = dataclasses.replace(inside, place=Cell.parse("10mbps-20ms-2pct"))
    waits = FlowTraits(waiting=0.5, payload_bytes=1448, window_limited=1)
    recorded = dataclasses.replace(recorded_features.find(algorithm), traits={("packets", CELL.id): [waits]})
    monkeypatch.setattr(blame.recorded_features, "find", {algorithm: recorded}.get)
    attributed = look(inside, outside)
    assert list(traced) == [f"stack {algorithm} packets"]
    found = attributed[inside.key]
    assert isinstance(found, Blame) and found.waiting == (0.0, 0.5) and found.recovery.value == pytest.approx(2)
    assert "no trials are recorded there" in attributed[outside.key].sentence


@pytest.mark.parametrize("algorithm", score_why.OWN_KERNELS)
def test_the_record_has_each_cell_of_the_usual_profile_that_can_be_asked_for(algorithm):
    traits = recorded_features.find(algorithm).traits
    assert set(traits) == {("packets", cell) for cell in record_traits.settings(algorithm)}
    assert {len(trials) for trials in traits.values()} == {blame.TRIALS}
