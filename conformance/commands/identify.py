"""`conformance identify`: which algorithm and version a stack behaves like, whatever name the stack gives it."""

import collections
import dataclasses
from collections.abc import Sequence
from typing import Any

from conformance.catalogue import documents
from conformance.commands import common
from conformance.commands.measuring import measure
from conformance.commands.result import Document, document
from conformance.commands.status import ExitStatus, of_outcomes, worst
from conformance.engine import benches, runs
from conformance.engine.benches import Choice
from conformance.model.errors import UserError
from conformance.model.judging.zone import Zone
from conformance.model.networks.place import Cell
from conformance.model.studies import identify as model
from conformance.model.studies.identify import Score
from conformance.model.studies.identify_rates import Rates, rates
from conformance.model.trials.trial import Measurement, Outcome, Scheme
from conformance.support.notes import Notes


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Identified:
    """The scores of a scheme, best first. `conclusion` is None if no algorithm fits clearly better than the others.

    `trouble`: the outcome and message of trials that failed or were not supported; there are no scores in that case.
    """

    called: str
    scheme: Scheme
    cells: int
    trials: int
    scores: tuple[Score, ...] = ()
    conclusion: str | None = None
    #: the congestion control that the kernel reports, in words
    exported: tuple[str, ...] = ()
    trouble: tuple[Outcome, str] | None = None
    #: how often such an identification is right, by simulation: of the references, and of other honest implementations
    rates: tuple[Rates, ...] = ()

    @property
    def contradicted(self) -> bool:
        """Whether the scheme was identified as something other than its name says."""
        known = [score.algorithm for score in self.scores]
        return self.conclusion is not None and model.contradicts(self.called, self.conclusion, known)

    @property
    def nearest(self) -> list[Score]:
        """The best score and those too close to it to tell them apart, best first; one if the best is clear."""
        return model.nearest(self.scores) if self.scores else []

    @property
    def exit_status(self) -> ExitStatus:
        """DONE if the stack behaves as its name says, VIOLATES if like another algorithm, UNKNOWN if none fits."""
        if self.trouble:
            return of_outcomes([self.trouble[0]])
        if self.conclusion is None:
            return ExitStatus.UNKNOWN
        return ExitStatus.VIOLATES if self.contradicted else ExitStatus.DONE

    def to_json(self) -> Document:
        """Return a document of schemas/identify.json."""
        return document(
            "identify", self.exit_status, called=self.called, scheme=common.scheme_json(self.scheme),
            cells=self.cells, trials=self.trials, conclusion=self.conclusion, contradicted=self.contradicted,
            nearest=[score.algorithm for score in self.nearest], scores=[_score(score) for score in self.scores],
            exported=list(self.exported), trouble=trouble_json(self.trouble),
            rates=[dataclasses.asdict(rates) for rates in self.rates],
        )  # fmt: skip


def trouble_json(trouble: tuple[Outcome, str] | None) -> dict[str, str] | None:
    """Return an outcome and its message as part of a document."""
    return trouble and {"outcome": str(trouble[0]), "message": trouble[1]}


def _score(score: Score) -> dict[str, Any]:
    return {
        "algorithm": score.algorithm,
        "features": score.features,
        "seen": score.seen,
        "inside": score.seen - len(score.misses),
        "share": score.share,
        "misses": [
            {"zone": m.zone_id, "metric": m.metric, "cell": m.cell.id, "median": m.value, "permitted": [m.low, m.high]}
            for m in score.misses
        ],
    }


def zones() -> list[Zone]:
    """Return the zones that identification rests on: one profile, and the same cells for each algorithm.

    Raises UserError if there are none, or if they differ in their profiles or cells.
    """
    found: list[Zone] = documents.all_zones("identify-*")
    if not found:
        raise UserError("this suite ships no zones to identify algorithms by", "derive them (docs/add-a-zone.md)")
    if len({zone.profile_digest for zone in found}) != 1:
        raise UserError("the identify zones belong to several profiles", "derive them from runs under one profile")
    for zone in found:
        every = {cell for other in found if other.metric == zone.metric for cell in other.cells}
        if lacking := sorted(every - set(zone.cells)):
            raise UserError(f"zone {zone.id} lacks {lacking[0].id}", "measure its reference there and derive it again")
    return found


def _cells(zones: Sequence[Zone]) -> list[Cell]:
    """Return every cell of these zones once, in the zones' order."""
    return list(dict.fromkeys(cell for zone in zones for cell in zone.cells))


def compute(
    cca: str, choice: Choice, *, trials: int, first_seed: int, results: str, workers: int | None,
    notes: Notes,
) -> Identified:  # fmt: skip
    """Measure a stack and score it against every algorithm; progress goes to `notes`. Raises UserError."""
    ours = zones()
    cells = _cells(ours)
    bench = benches.find(choice)
    common.require_offered(bench, cca)
    work = [(cca, documents.profile(ours[0].profile, cell)) for cell in cells]
    measured = measure(bench, work, runs.seeds(trials, first_seed), results, workers, notes)
    found = {setting.cell: measurements for (_, setting), measurements in measured}
    identified = Identified(called=cca, scheme=bench.scheme(cca), cells=len(cells), trials=trials)
    for outcome in common.BAD:
        bad = collections.Counter(m.message for ms in found.values() for m in ms if m.outcome is outcome)
        if bad:
            return dataclasses.replace(identified, trouble=(outcome, str(bad.most_common(1)[0][0])))
    scores = model.scores(ours, found, cca)
    exported = {_exported(m) for measurements in found.values() for m in measurements} - {None}
    return dataclasses.replace(
        identified,
        scores=tuple(scores),
        conclusion=model.conclusion(scores),
        exported=tuple(sorted(words for words in exported if words)),
        rates=tuple(rates(ours, trials, spread) for spread in (False, True)),
    )


def _exported(measurement: Measurement) -> str | None:
    about = measurement.evidence.get("congestion_control")
    if about is None:
        return None
    name = str(about["name"])
    bbr = about.get("bbr")
    if not bbr:
        return name
    seen = bbr["versions_with_the_gains_seen"]
    gains = f"gains of version {' or '.join(map(str, seen))}" if seen else "gains of no known version"
    return f"{name}, version {bbr['exported_version']} (with {gains})"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """How often one algorithm was identified correctly, not at all, and wrongly; `trouble`: why it was not measured."""

    scheme: Scheme
    right: int = 0
    inconclusive: int = 0
    wrong: int = 0
    trouble: tuple[Outcome, str] | None = None

    @property
    def exit_status(self) -> ExitStatus:
        """VIOLATES if the algorithm was ever taken for another."""
        if self.trouble:
            return of_outcomes([self.trouble[0]])
        return ExitStatus.VIOLATES if self.wrong else ExitStatus.DONE


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """Counts of correct and wrong identifications of every known algorithm."""

    trials: int
    cells: int
    tallies: tuple[Tally, ...]

    @property
    def exit_status(self) -> ExitStatus:
        """DONE if no identification was wrong and every algorithm was measured."""
        return worst(tally.exit_status for tally in self.tallies)

    def to_json(self) -> Document:
        """Return a document of schemas/identify-check.json."""
        return document(
            "identify-check", self.exit_status, trials=self.trials, cells=self.cells,
            algorithms=[
                {
                    "scheme": common.scheme_json(tally.scheme), "right": tally.right,
                    "inconclusive": tally.inconclusive, "wrong": tally.wrong, "trouble": trouble_json(tally.trouble),
                }
                for tally in self.tallies
            ],
        )  # fmt: skip


def compute_check(
    choice: Choice, *, trials: int, first_seed: int, results: str, workers: int | None, notes: Notes
) -> Checked:
    """Identify every algorithm that has identify zones `trials` times, from one trial a cell; count the results.

    Raises UserError.
    """
    ours = zones()
    algorithms = sorted({zone.algorithm for zone in ours})
    cells = _cells(ours)
    bench = benches.find(choice)
    work = [(algorithm, documents.profile(ours[0].profile, cell)) for algorithm in algorithms for cell in cells]
    measured = measure(bench, work, runs.seeds(trials, first_seed), results, workers, notes)
    found = {(algorithm, setting.cell): measurements for (algorithm, setting), measurements in measured}
    tallies = []
    for algorithm in algorithms:
        own = {cell: found[algorithm, cell] for cell in cells}
        tallies.append(_tally(ours, algorithm, bench.scheme(algorithm), own, trials))
    return Checked(trials=trials, cells=len(cells), tallies=tuple(tallies))


def _tally(
    zones: Sequence[Zone], algorithm: str, scheme: Scheme, found: dict[Cell, Sequence[Measurement]], trials: int
) -> Tally:
    if bad := common.bad(m for measurements in found.values() for m in measurements):
        return Tally(scheme=scheme, trouble=(bad.outcome, bad.message or ""))
    names = collections.Counter(
        model.conclusion(model.scores(zones, {cell: [made[at]] for cell, made in found.items()}))
        for at in range(trials)
    )
    right, none = names[algorithm], names[None]
    return Tally(scheme=scheme, right=right, inconclusive=none, wrong=names.total() - right - none)
