"""All guests together take no more memory than this process may use."""

import contextlib
import dataclasses
import threading
import time
import types

import pytest
from helpers import trial

from conformance.catalogue import documents, scenarios
from conformance.commands import tracing
from conformance.guest import capture
from conformance.lab import allowance, cores, endings, job, virtual
from conformance.model.diagnosis import pcap
from conformance.model.errors import UserError
from conformance.model.networks.place import Cell
from conformance.support import limits


def of(setting):
    return dataclasses.replace(trial(), setting=setting)


#: trials that `why` traces, with the heads of their packets; and scenarios on whose smoke points guests grew most
TELLING = [(of(setting), "heads") for setting in tracing.settings().values()]
POINTS = ("short-flows", "fairness")


@pytest.fixture
def machine(monkeypatch):
    """Return a function that sets how much memory this process may use, in MB."""

    def allow(memory_mb):
        monkeypatch.setattr(limits, "memory_mb", lambda: memory_mb)
        monkeypatch.setattr(allowance, "OURS", allowance.Allowance())

    return allow


def together(needs, guests):
    """Ask for each of `needs` (MB) in this order; return the most that was held at once, and the order.

    No memory is given back before `guests` of them are held and all have asked.
    """
    ours, held, most, order = allowance.OURS, [], [], []
    changed, all_asked = threading.Condition(), threading.Event()

    def one(needed):
        with ours.hold(needed), changed:
            held.append(needed)
            order.append(needed)
            most.append((sum(held), len(held)))
            changed.notify_all()
            changed.wait_for(lambda: len(most) >= guests, 20)
            changed.release()
            all_asked.wait(20)
            time.sleep(0.01)
            changed.acquire()
            held.remove(needed)

    threads = [threading.Thread(target=one, args=(needed,)) for needed in needs]
    for number, thread in enumerate(threads, 1):
        thread.start()
        while len(ours._waiting) + len(order) < number:
            time.sleep(0.001)
    all_asked.set()
    for thread in threads:
        thread.join(20)
    return max(most), order


@pytest.mark.parametrize(
    ("memory_mb", "guests_of_cells", "guests_that_trace"), [(192, 1, 1), (256, 1, 1), (512, 3, 2), (None, 6, 6)]
)
def test_as_many_guests_as_memory_allows(machine, memory_mb, guests_of_cells, guests_that_trace):
    machine(memory_mb)
    tracing_mb = max(allowance.needed_mb(*one) for one in TELLING)
    for needed_mb, guests in ((allowance.needed_mb(trial()), guests_of_cells), (tracing_mb, guests_that_trace)):
        (most_mb, at_once), _ = together([needed_mb] * 6, guests)
        assert at_once == guests
        if memory_mb is not None and at_once > 1:
            assert most_mb + limits.OWN_MB <= memory_mb


def test_one_that_does_not_fit_beside_others_waits_and_runs_alone(machine):
    machine(256)
    (_, at_once), order = together([100, 500, 20], 1)
    assert at_once == 1
    # No other guest overtakes it, however little it needs, or else it would wait for ever.
    assert order == [100, 500, 20]


def test_waiting_can_be_interrupted(machine):
    machine(256)
    cancelled = threading.Event()
    cancelled.set()
    interrupted = pytest.raises(UserError, match="interrupted while waiting for memory")
    with allowance.OURS.hold(144), interrupted, allowance.OURS.hold(144, cancelled):
        raise AssertionError("memory was lent")
    with allowance.OURS.hold(144):
        assert allowance.OURS.lent_mb == 144


def test_what_was_lent_comes_back_after_an_error(machine):
    machine(256)
    with contextlib.suppress(ZeroDivisionError), allowance.OURS.hold(144):
        raise ZeroDivisionError
    assert allowance.OURS.lent_mb == 0


def test_a_guest_holds_its_memory_before_it_waits_for_a_core(machine, monkeypatch, tmp_path):
    machine(256)
    seen = []

    @contextlib.contextmanager
    def core(cancelled):
        seen.append(allowance.OURS.lent_mb)
        yield 0

    class Guest:
        def end(self):
            seen.append(allowance.OURS.lent_mb)

    monkeypatch.setattr(cores, "one_core", core)
    monkeypatch.setattr(job, "write", lambda *_, **__: None)
    monkeypatch.setattr(virtual, "boot", lambda *_, **__: Guest())
    traced, how = TELLING[0]
    with virtual.one_guest(None, types.SimpleNamespace(name="linux-tcp"), traced, trace=how):
        pass
    assert seen == [allowance.needed_mb(traced, how)] * 2
    assert allowance.OURS.lent_mb == 0


def test_points_need_more_than_cells_and_captures_more_than_heads():
    cell = allowance.needed_mb(trial())
    points = [of(scenarios.setting(name, point)) for name in POINTS for point in scenarios.find(name).grid("smoke")]
    assert points and all(cell < allowance.needed_mb(point) < 256 for point in points)
    traced = of(documents.profile("identify", Cell(10, 40, 0), transfer_s=30))
    heads, packets = (allowance.needed_mb(traced, how) for how in ("heads", "packets"))
    # The table in docs/containers.md has these numbers.
    assert (cell, heads, packets) == (128, 181, 341)
    # Captures of heads take a quarter of what whole captures take.
    assert heads - cell == pytest.approx((packets - cell) / 4, abs=1)


def test_the_heads_that_are_captured_are_all_that_is_read_of_a_packet():
    assert pcap._TELLING.stop <= capture.HEAD_BYTES
    assert capture.HEADS_BLOCK_BYTES % capture._FRAME_BYTES == 0


@pytest.mark.parametrize(("killed_after", "says"), [(4, "memory was short"), (3, "run the cell again")])
def test_a_guest_that_was_killed_as_memory_was_short_says_so(machine, monkeypatch, tmp_path, killed_after, says):
    machine(256)
    monkeypatch.setattr(limits, "killed_for_memory", lambda: killed_after)
    with allowance.OURS.hold(300):
        said = endings.why_it_ended(-9, tmp_path, 3)
    assert says in said and "SIGKILL" in said
    assert ("256 MB are allowed here; allow 412 MB or more (a container's --memory)" in said) == (killed_after > 3)
