"""Which events a setting makes happen, and that the changes that builds are compared under make all of them happen."""

import pytest

from conformance.catalogue import clauses, documents, scenarios
from conformance.model.clauses import changes
from conformance.model.diagnosis.feature_table import label_of
from conformance.model.networks import events
from conformance.model.networks.place import Cell, Point


@pytest.mark.parametrize(
    ("scenario", "point", "happens"),
    [
        ("events", "event=none,delay_ms=20,seconds=6", []),
        ("events", "event=marks,delay_ms=20,seconds=6", [events.MARKS]),
        ("events", "event=marks-all,delay_ms=20,seconds=6", [events.MARKS]),
        ("events", "event=bleached,delay_ms=20,seconds=6", []),
        ("events", "event=outage-100ms,delay_ms=20,seconds=6", [events.OUTAGE]),
        ("events", "event=held-1s,delay_ms=20,seconds=6", [events.OUTAGE]),
        ("events", "event=heavy-loss-2s,delay_ms=20,seconds=6", []),
        ("events", "event=reordered-5,delay_ms=20,seconds=6", [events.DISORDER]),
        ("marks", "marks=codel", [events.MARKS]),
        ("marks", "marks=all", [events.MARKS]),
        ("pauses", "before=idle-6s,sender=stack,unused_window=decays", [events.IDLE]),
        ("pauses", "before=slow,sender=stack,unused_window=decays", []),
        ("bonded", "reordering=off,batch=10,rates=1:1", [events.DISORDER]),
        ("bonded", "reordering=on,batch=10,rates=1:1", []),
        ("migration", "rebind=address", [events.MOVE]),
        ("migration", "rebind=port", []),
        ("queues", "queue=codel", []),
    ],
)
def test_what_happens_in_scenarios(scenario, point, happens):
    assert sorted(events.of(scenarios.setting(scenario, Point.parse(point)))) == happens


def test_nothing_happens_in_cells():
    assert not events.of(documents.profile("identify", Cell(10, 20, 3)))


@pytest.mark.parametrize("algorithm", ["cubic", "reno", "bbrv1", "bbrv3"])
def test_every_event_happens_where_builds_are_compared(algorithm):
    networks = {f.cell for f in changes.COMPARED if label_of(f, algorithm) is not None}
    happened = [events.of(clauses.setting(changes.COMPARED_NETWORKS[name])) for name in networks]
    assert frozenset().union(*happened) == set(events.EVENTS)
