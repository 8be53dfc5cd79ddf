"""`conformance why`: what looks wrong with an implementation, from traces of it and of the reference in a few telling
cells.

The reference is Linux TCP's algorithm of the same name, on the kernel that has it. Where that is not built, what the
documents say stands in its place, as far as it goes. Stack and reference are traced at the same time, each in a guest
of its own.
"""

import concurrent.futures
import contextlib
import dataclasses
import functools
import ipaddress
import json
import pathlib
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import rich.console

from conformance.catalogue import documents
from conformance.commands import trace
from conformance.commands.result import Document, document
from conformance.commands.status import ExitStatus
from conformance.engine import benches, runs
from conformance.engine.benches import Bench, Choice
from conformance.lab import job, topology, virtual
from conformance.model.diagnosis import feature_table, pcap, ranking
from conformance.model.diagnosis import flow as flows
from conformance.model.errors import UserError
from conformance.model.setting import Setting
from conformance.model.trial import Measurement, Outcome, Scheme
from conformance.reporting import drawing as figures
from conformance.reporting.text import progress
from conformance.reporting.text import why as showing
from conformance.support import files

#: traces of each cell with loss
USUAL_TRIALS = 3
_MOST_ALGORITHMS = 2
_PROTOCOLS = {"tcp": 6, "udp": 17}
#: an acknowledgement arrives when what it lets go is sent: by so much earlier, rounding never decides which was first
_KNOWN_FIRST_NS = 1000


class Captures(NamedTuple):
    """The captures of each trace: `sent` is of what the server put on its link, `came` of what came out of the queue.

    `server` is the server's address, in network byte order.
    """

    sent: str
    came: str
    server: bytes


@functools.cache
def captures() -> Captures:
    """Return what the telling cells' topology, which is the same for all, says of captures. Raises UserError."""
    network = topology.of(_settings()[feature_table.CLEAN])
    (segment,) = network.segments
    names = {interface: name for name, interface in network.taps.items()}
    came, sent = (names[interface] for interface in segment.queues)
    return Captures(sent=sent, came=came, server=ipaddress.ip_address(network.addresses["server"]).packed)


@dataclasses.dataclass(kw_only=True)
class Traced:
    """What came of the traces of one scheme: `flows` is {cell's name: {seed: Flow}}, `problems` are sentences."""

    scheme: Scheme
    flows: dict[str, dict[int, flows.Flow]]
    problems: list[str]
    unsupported: str | None = None
    #: of a kernel whose release does not say what it is: one with patches or parameters
    kernel: str | None = None

    @property
    def name(self) -> str:
        """Return the scheme's id, and its kernel's name where that says more."""
        return f"{self.scheme.id} on kernel {self.kernel}" if self.kernel else str(self.scheme.id)


class Untraced(Exception):
    """There is nothing to compare; says why. `exit_status`: ERROR, or UNKNOWN for what is not supported."""

    def __init__(self, exit_status: ExitStatus, why_not: str) -> None:
        super().__init__(why_not)
        self.exit_status = exit_status


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The Report on an algorithm, or why there is none."""

    report: "Report | None"
    untraced: Untraced | None = None

    @property
    def exit_status(self) -> ExitStatus:
        """Say DONE if nothing looks wrong, VIOLATES if something does, ERROR or UNKNOWN if nobody knows."""
        if self.report is None:
            return self.untraced.exit_status if self.untraced else ExitStatus.ERROR
        return self.report.exit_status

    def to_json(self) -> Document:
        """Return a document of schemas/why.json."""
        if self.report is None:
            return document("why", self.exit_status, untraced=str(self.untraced))
        return self.report.to_json()


def compute(
    algorithm: str, choice: Choice, *, trials: int, first_seed: int, target: pathlib.Path | None, workers: int | None,
    console: rich.console.Console,
) -> Asked:  # fmt: skip
    """Trace an algorithm and its reference, and compare; the folder `target`, if any, keeps all. Raises UserError."""
    try:
        report = look(algorithm, choice, runs.seeds(trials, first_seed), target, console, workers)
    except Untraced as why_not:
        return Asked(report=None, untraced=why_not)
    if target:
        write(report, target / "why.json", target / "why.svg")
    return Asked(report=report)


def write(report: "Report", document: pathlib.Path, drawing: pathlib.Path) -> None:
    """Write the Report to two files: schemas/why.json, and an SVG. Raises UserError."""
    text = json.dumps(report.to_json(), indent=1, sort_keys=True) + "\n"
    files.write(document, text, files.OTHER_FOLDER)
    if figures.is_possible():
        files.write(drawing, showing.svg(report), files.OTHER_FOLDER)


def look(
    algorithm: str, choice: Choice, seeds: Sequence[int], target: pathlib.Path | None, console: rich.console.Console,
    workers: int | None = None,
) -> "Report":  # fmt: skip
    """Return the Report on an algorithm; the folder `target`, if any, gets what trials leave.

    Raises UserError, Untraced.
    """
    if choice.lab != "virtual":
        raise UserError("traces are taken in the virtual room only", "leave --lab out")
    if target:
        files.check_empty(target)
    bench = benches.find(choice)
    why_not = _why_not(bench, algorithm)
    if why_not:
        raise Untraced(ExitStatus.UNKNOWN, f"unsupported: {why_not}")
    roles = {"stack": bench}
    usual = benches.find(Choice())
    no_reference = _why_not(usual, algorithm)
    if not no_reference:
        roles["reference"] = usual
    total = sum(len(of) for of in _plan(seeds).values()) * len(roles)
    with progress.bar(console, "tracing", total=total, unit="traces") as bar:
        found = traced_all({role: (b, algorithm) for role, b in roles.items()}, seeds, target, bar, workers)
    ours, reference = found["stack"], found.get("reference")
    if ours.unsupported or not ours.flows:
        raise Untraced(
            ExitStatus.UNKNOWN if ours.unsupported else ExitStatus.ERROR,
            ours.unsupported or "; ".join(ours.problems) or "no trace was made",
        )
    if reference is not None and not reference.flows:
        why_not = "; ".join(reference.problems) or reference.unsupported
        raise Untraced(ExitStatus.ERROR, f"the reference: {why_not}")
    return Report(algorithm=algorithm, stack=ours, reference=reference, no_reference=no_reference)


def of_violations(algorithms: Iterable[str], choice: Choice, console: rich.console.Console) -> dict[str, "Report"]:
    """Return what looks wrong with the first few algorithms that violate a zone: {algorithm: Report}; show it, too.

    What cannot be said is no reason to fail, nor to hide the violation. An interrupt ends the search, and what was
    found by then is returned: the verdicts are complete without it.
    """
    algorithms, found = list(dict.fromkeys(algorithms)), {}
    for at, algorithm in enumerate(algorithms):
        again = f"`conformance why {algorithm}{choice.options()}`"
        if at == _MOST_ALGORITHMS:
            console.print(f"of {', '.join(algorithms[at:])}: {again} ...", soft_wrap=True)
            break
        try:
            found[algorithm] = look(algorithm, choice, runs.seeds(USUAL_TRIALS), None, console)
            showing.show(found[algorithm], console)
        except (UserError, Untraced) as why_not:
            console.print(f"{algorithm}: not known: {why_not}", soft_wrap=True)
        except KeyboardInterrupt:
            console.print(f"{algorithm}: interrupted; {again} asks again", soft_wrap=True)
            break
    return found


@dataclasses.dataclass(frozen=True, kw_only=True)
class Report:
    """The readings of a stack and of its reference, and the suspects. `no_reference`: why there is none."""

    algorithm: str
    stack: Traced
    reference: Traced | None
    no_reference: str | None = None

    @functools.cached_property
    def ours(self) -> Mapping[Any, Any]:
        """Return what was read from the stack's traces: {Feature: Reading}."""
        return dict(ranking.readings(self.stack.flows))

    @functools.cached_property
    def theirs(self) -> Mapping[Any, Any]:
        """Return what was read from the reference's traces, or what the documents say."""
        return dict(ranking.readings(self.reference.flows) if self.reference else ranking.documented(self.algorithm))

    @functools.cached_property
    def suspects(self) -> Sequence[ranking.Suspect]:
        """Return what looks wrong, the likeliest first."""
        return list(ranking.suspects(self.algorithm, self.ours, self.theirs))

    @property
    def problems(self) -> list[str]:
        """Return the traces that could not be looked at, as sentences."""
        return self.stack.problems + (self.reference.problems if self.reference else [])

    @property
    def exit_status(self) -> ExitStatus:
        """Say VIOLATES if anything looks wrong, else DONE."""
        return ExitStatus.VIOLATES if self.suspects else ExitStatus.DONE

    @property
    def against(self) -> str:
        """Return what the stack was compared with, in words."""
        if self.reference:
            return f"the reference {self.reference.name}"
        return f"what the documents say (no reference: {self.no_reference})"

    @property
    def compared(self) -> int:
        """Return how many features both have."""
        return len(self.ours.keys() & self.theirs.keys())

    def pcap_s(self, evidence: ranking.Evidence) -> list[tuple[str, int, float]]:
        """Return where to look in captures of what the stack sent: cell's id, seed, seconds since the first frame."""
        name = evidence.feature.cell
        found = self.stack.flows[name]
        return [(feature_table.CELLS[name][0].id, seed, found[seed].began_s + at) for seed, at in evidence.ours.seen]

    def to_json(self) -> Document:
        """Return a document of schemas/why.json."""
        return document("why", self.exit_status) | {
            "scheme": dataclasses.asdict(self.stack.scheme),
            "reference": dataclasses.asdict(self.reference.scheme) if self.reference else None,
            "suspects": [
                {
                    "label": suspect.label,
                    "weight": round(suspect.weight, 2),
                    "evidence": [self._evidence(evidence) for evidence in suspect.evidence],
                }
                for suspect in self.suspects
            ],
            "features": {
                feature.id: {"stack": _values(reading), "reference": _values(self.theirs.get(feature))}
                for feature, reading in self.ours.items()
            },
            "problems": self.problems,
        }

    def _evidence(self, evidence: ranking.Evidence) -> dict[str, Any]:
        return {
            "feature": evidence.feature.id,
            "score": round(evidence.score, 2),
            "sentence": evidence.sentence,
            "seen": [{"cell": cell, "seed": seed, "pcap_s": round(at, 6)} for cell, seed, at in self.pcap_s(evidence)],
        }


def _values(reading: Any) -> dict[str, float] | None:
    if reading is None:
        return None
    return {name: round(getattr(reading, name), 4) for name in ("value", "low", "high", "spread")} | {"n": reading.n}


def traced_all(
    benches: Mapping[str, tuple[Bench, str]], seeds: Sequence[int], target: pathlib.Path | None = None,
    bar: progress.Bar | None = None, workers: int | None = None,
) -> dict[str, Traced]:  # fmt: skip
    """Return {role: Traced} of {role: (Bench, algorithm)}, each in a guest of its own, at most `workers` at a time.

    An exception here, such as an interrupt, ends the guests at once.
    """
    stop = threading.Event()
    guests: list[virtual.Group] = []

    def started(guest: virtual.Group) -> None:
        guests.append(guest)
        if stop.is_set():
            guest.end()

    with concurrent.futures.ThreadPoolExecutor(min(len(benches), workers or len(benches))) as executor:
        futures = {
            role: executor.submit(
                traced, bench, algorithm, seeds, target / role if target else None, bar, stop, started
            )
            for role, (bench, algorithm) in benches.items()
        }
        try:
            return {role: future.result() for role, future in futures.items()}
        except BaseException:
            stop.set()
            for guest in guests:
                guest.end()
            raise


def traced(
    bench: Bench, algorithm: str, seeds: Sequence[int], target: pathlib.Path | None = None,
    bar: progress.Bar | None = None, stop: threading.Event | None = None,
    on_start: Callable[[virtual.Group], None] = lambda guest: None,
) -> Traced:  # fmt: skip
    """Trace an algorithm in the telling cells, in one guest; `target` keeps what trials leave. Raises UserError."""
    plan = _plan(seeds)
    settings = _settings()
    names = {setting.cell: name for name, setting in settings.items()}
    batches = [bench.trials(algorithm, settings[name], of) for name, of in plan.items()]
    kernel = bench.place(algorithm).kernel
    special = kernel.name if kernel.patches or kernel.parameters else None
    found = Traced(scheme=bench.scheme(algorithm), flows={}, problems=[], kernel=special)
    with contextlib.closing(trace.take(kernel, bench.adapter, batches, "packets", stop, on_start)) as traces:
        for measurement, captured, folder in traces:
            if stop and stop.is_set():
                break
            setting, seed = measurement.trial.setting, measurement.trial.seed
            if measurement.outcome is Outcome.UNSUPPORTED:
                found.unsupported = f"unsupported: {measurement.message}"
                break
            where = f"{setting.cell.id}, seed {seed}"
            try:
                flow, full_s = _flow(measurement, captured, folder, _PROTOCOLS[bench.adapter.manifest.transport])
                found.flows.setdefault(names[setting.cell], {})[seed] = flow
                if full_s:
                    why = "its packets did not fit into the memory for captures"
                    found.problems.append(f"{found.name} at {where}, after {full_s:.1f} s: {why}")
            except UserError as why:
                found.problems.append(f"{found.name} at {where}: {why}")
            if target:
                trace.keep(folder, target / f"{setting.cell.id}-{seed}", measurement)
            if bar:
                bar.advance(f"{found.name} at {where}")
    return found


def _settings() -> dict[str, Setting]:
    """Return {cell's name: Setting} of the telling cells. Raises UserError."""
    return {
        name: documents.profile(feature_table.PROFILE, cell, transfer_s=transfer_s)
        for name, (cell, transfer_s) in feature_table.CELLS.items()
    }


def _plan(seeds: Sequence[int]) -> dict[str, Sequence[int]]:
    """Return {cell's name: seeds}: where nothing is lost at random, seeds differ by microseconds of delay only."""
    return {name: seeds[:1] if cell.loss_pct == 0 else seeds for name, (cell, _) in feature_table.CELLS.items()}


def _flow(
    measurement: Measurement, captured: Mapping[str, tuple[int, int]], folder: pathlib.Path | None, protocol: int
) -> tuple[flows.Flow, float | None]:
    """Return the flow of one trace, and when its capture buffer filled, in seconds (None if it did not).

    A sender that never reduces its window fills the memory for captures; later packets are missing then. Raises
    UserError where there is no flow.
    """
    if measurement.outcome not in (Outcome.OK, Outcome.TIMEOUT):
        raise UserError(f"{measurement.outcome}: {measurement.message}")
    sent_name, came_name, server = captures()
    if folder is None or not captured.keys() >= {sent_name, came_name}:
        raise UserError("nothing was captured")
    entered, left = ((folder / f"{name}.pcap").read_bytes() for name in (sent_name, came_name))
    sent, asked = pcap.packets(entered, protocol, server)
    came, acknowledged = pcap.packets(left, protocol, server)
    sides = ((sent_name, sent, asked), (came_name, came, acknowledged))
    until_s = min((pcap.last_s(side) for name, *side in sides if captured[name][1]), default=None)
    if until_s is not None:
        sent, came, asked = ([p for p in packets if p.seconds <= until_s] for packets in (sent, came, asked))
    cell = measurement.trial.setting.cell
    off_ns = job.delay_off_ns(measurement.trial.seed, 0)
    one_way_s = cell.one_way_delay_ms / 1e3 + (off_ns - _KNOWN_FIRST_NS) / 1e9
    first_s = pcap.first_s(entered)
    found = flows.flow(
        sent, came, asked, one_way_s=one_way_s, bytes_per_s=cell.bandwidth_mbps * 1e6 / 8, first_s=first_s
    )
    return found, until_s and until_s - first_s


def _why_not(bench: Bench, algorithm: str) -> str | None:
    why_not: str | None = bench.adapter.why_not(algorithm) or bench.place(algorithm).why_not
    return why_not
