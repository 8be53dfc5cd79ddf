"""`conformance why`: what looks wrong with an implementation, from traces of it and of the reference in a few telling
cells.

The reference is Linux TCP's algorithm of the same name, on the kernel that has it. Where that is not built, what the
documents say stands in its place, as far as it goes. Stack and reference are traced at the same time, each in a guest
of its own.
"""

import concurrent.futures
import contextlib
import dataclasses
import json
import threading

from conformance.catalogue import documents
from conformance.commands import trace
from conformance.engine import benches, runs
from conformance.lab import job
from conformance.model.diagnosis import feature_table, pcap, ranking
from conformance.model.diagnosis import flow as flows
from conformance.model.errors import UserError
from conformance.model.trial import Outcome
from conformance.reporting.text import why as showing
from conformance.support import files

#: traces of each cell with loss
USUAL_TRIALS = 3
_MOST_ALGORITHMS = 2
_PROTOCOLS = {"tcp": 6, "udp": 17}
_SERVER = bytes((10, 0, 0, 3))
#: an acknowledgement arrives when what it lets go is sent: by so much earlier, rounding never decides which was first
_KNOWN_FIRST_NS = 1000
#: captures of each trace: what the server put on its link, and what came out of the queue
SENT, _CAME = "emulator-to_server", "emulator-to_client"


@dataclasses.dataclass(kw_only=True)
class Traced:
    """What came of the traces of one scheme: `flows` is {cell's name: {seed: Flow}}, `problems` are sentences."""

    scheme: object
    flows: dict
    problems: list
    unsupported: str | None = None
    #: of a kernel whose release does not say what it is: one with patches or parameters
    kernel: str | None = None

    @property
    def name(self):
        return f"{self.scheme.id} on kernel {self.kernel}" if self.kernel else self.scheme.id


class Untraced(Exception):
    """There is nothing to compare; says why. `exit_status`: 3 an error, 4 unsupported."""

    def __init__(self, exit_status, why_not):
        super().__init__(why_not)
        self.exit_status = exit_status


def run(algorithm, choice, *, trials, first_seed, target, console):
    """Returns the exit status: 0 nothing looks wrong, 1 something does, 3 an error, 4 unsupported. Raises UserError."""
    try:
        report = look(algorithm, choice, runs.seeds(trials, first_seed), target, console)
    except Untraced as why_not:
        console.print(str(why_not), soft_wrap=True)
        return why_not.exit_status
    showing.show(report, console)
    if target:
        write(report, target / "why.json", target / "why.svg")
        console.print(
            f"kept: {target}: why.json, why.svg, and what each trial left; times are seconds into its {SENT}.pcap",
            soft_wrap=True,
        )
    return 1 if report.suspects else 0


def write(report, document, drawing):
    """The Report to two files: schemas/why.json, and an SVG. Raises UserError."""
    text = json.dumps(report.to_json(), indent=1, sort_keys=True) + "\n"
    files.write(document, text, files.OTHER_FOLDER)
    files.write(drawing, showing.svg(report), files.OTHER_FOLDER)


def look(algorithm, choice, seeds, target, console):
    """The Report on an algorithm; the folder `target`, if any, gets what trials leave. Raises UserError, Untraced."""
    if choice.lab != "virtual":
        raise UserError("traces are taken in the virtual room only", "leave --lab out")
    if target:
        files.check_empty(target)
    bench = benches.find(choice)
    why_not = _why_not(bench, algorithm)
    if why_not:
        raise Untraced(4, f"unsupported: {why_not}")
    roles = {"stack": bench}
    usual = benches.find(benches.Choice())
    no_reference = _why_not(usual, algorithm)
    if not no_reference:
        roles["reference"] = usual
    with showing.progress(console, sum(len(of) for of in _plan(seeds).values()) * len(roles)) as bar:
        found = traced_all({role: (b, algorithm) for role, b in roles.items()}, seeds, target, bar)
    ours, reference = found["stack"], found.get("reference")
    if ours.unsupported or not ours.flows:
        raise Untraced(
            4 if ours.unsupported else 3, ours.unsupported or "; ".join(ours.problems) or "no trace was made"
        )
    if reference is not None and not reference.flows:
        raise Untraced(3, f"the reference: {'; '.join(reference.problems) or reference.unsupported}")
    return Report(algorithm=algorithm, stack=ours, reference=reference, no_reference=no_reference)


def of_violations(algorithms, choice, console):
    """What looks wrong with algorithms that violate a zone: {algorithm: Report} of the first few, which it shows.

    What cannot be said is no reason to fail, nor to hide the violation.
    """
    algorithms, found = list(dict.fromkeys(algorithms)), {}
    for algorithm in algorithms[:_MOST_ALGORITHMS]:
        try:
            found[algorithm] = look(algorithm, choice, runs.seeds(USUAL_TRIALS), None, console)
            showing.show(found[algorithm], console)
        except (UserError, Untraced) as why_not:
            console.print(f"{algorithm}: not known: {why_not}", soft_wrap=True)
    if rest := algorithms[_MOST_ALGORITHMS:]:
        console.print(f"of {', '.join(rest)}: `conformance why {rest[0]}{choice.options()}` ...", soft_wrap=True)
    return found


class Report:
    """The readings of a stack and of its reference, and the suspects. `no_reference`: why there is none."""

    def __init__(self, *, algorithm, stack, reference, no_reference=None):
        self.no_reference = no_reference
        self.algorithm, self.stack, self.reference = algorithm, stack, reference
        self.ours = ranking.readings(stack.flows)
        self.theirs = ranking.readings(reference.flows) if reference else ranking.documented(algorithm)
        self.suspects = ranking.suspects(algorithm, self.ours, self.theirs)
        self.problems = stack.problems + (reference.problems if reference else [])

    @property
    def against(self):
        """What the stack was compared with, in words."""
        if self.reference:
            return f"the reference {self.reference.name}"
        return f"what the documents say (no reference: {self.no_reference})"

    @property
    def compared(self):
        """How many features both have."""
        return len(self.ours.keys() & self.theirs.keys())

    def pcap_s(self, evidence):
        """[(cell's id, seed, seconds since the first frame)] where to look at it in the stack's captures SENT.pcap."""
        name = evidence.feature.cell
        found = self.stack.flows[name]
        return [(feature_table.CELLS[name][0].id, seed, found[seed].began_s + at) for seed, at in evidence.ours.seen]

    def to_json(self):
        """A document of schemas/why.json."""
        return {
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

    def _evidence(self, evidence):
        return {
            "feature": evidence.feature.id,
            "score": round(evidence.score, 2),
            "sentence": evidence.sentence,
            "seen": [{"cell": cell, "seed": seed, "pcap_s": round(at, 6)} for cell, seed, at in self.pcap_s(evidence)],
        }


def _values(reading):
    if reading is None:
        return None
    return {name: round(getattr(reading, name), 4) for name in ("value", "low", "high", "spread")} | {"n": reading.n}


def traced_all(benches, seeds, target=None, bar=None):
    """{role: Traced}, of {role: (Bench, algorithm)}; each in a guest of its own, as many at a time as there are
    cores.
    """
    stop = threading.Event()
    with concurrent.futures.ThreadPoolExecutor(len(benches)) as executor:
        futures = {
            role: executor.submit(traced, bench, algorithm, seeds, target / role if target else None, bar, stop)
            for role, (bench, algorithm) in benches.items()
        }
        try:
            return {role: future.result() for role, future in futures.items()}
        except BaseException:
            stop.set()
            raise


def traced(bench, algorithm, seeds, target=None, bar=None, stop=None):
    """The Traced of an algorithm in the telling cells, in one guest; `target` keeps what trials leave. Raises
    UserError.
    """
    plan = _plan(seeds)
    settings = {
        name: documents.profile(feature_table.PROFILE, cell, transfer_s=transfer_s)
        for name, (cell, transfer_s) in feature_table.CELLS.items()
    }
    names = {setting.cell: name for name, setting in settings.items()}
    batches = [bench.trials(algorithm, settings[name], of) for name, of in plan.items()]
    kernel = bench.place(algorithm).kernel
    special = kernel.name if kernel.patches or kernel.parameters else None
    found = Traced(scheme=bench.scheme(algorithm), flows={}, problems=[], kernel=special)
    with contextlib.closing(trace.take(kernel, bench.adapter, batches, "packets")) as traces:
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
                bar.one_more(f"{found.name} at {where}")
    return found


def _plan(seeds):
    """{cell's name: seeds}: where nothing is lost at random, seeds differ by microseconds of delay only."""
    return {name: seeds[:1] if cell.loss_pct == 0 else seeds for name, (cell, _) in feature_table.CELLS.items()}


def _flow(measurement, captured, folder, protocol):
    """The Flow of one trace, and after how many seconds its captures were full, None of most. Raises UserError where
    there is none.

    A sender that never reduces fills the memory for captures, which keep what came first.
    """
    if measurement.outcome not in (Outcome.OK, Outcome.TIMEOUT):
        raise UserError(f"{measurement.outcome}: {measurement.message}")
    if folder is None or not captured.keys() >= {SENT, _CAME}:
        raise UserError("nothing was captured")
    entered, left = ((folder / f"{name}.pcap").read_bytes() for name in (SENT, _CAME))
    sent, asked = pcap.packets(entered, protocol, _SERVER)
    came, acknowledged = pcap.packets(left, protocol, _SERVER)
    until_s = min(
        (pcap.last_s(side) for name, *side in ((SENT, sent, asked), (_CAME, came, acknowledged)) if captured[name][1]),
        default=None,
    )
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


def _why_not(bench, algorithm):
    return bench.adapter.why_not(algorithm) or bench.place(algorithm).why_not
