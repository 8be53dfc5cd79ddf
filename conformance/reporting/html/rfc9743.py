"""Answer the criteria of RFC 9743 (Specifying New Congestion Control Algorithms, BCP 133) with measurements.

The RFC sets no thresholds but asks a community to evaluate, so nothing here is a verdict. Each criterion
(rfc9743_criteria.py) gets figures if results bear on it: those of a flow alone or beside a rival over a grid of cells,
of flows that share a scenario's network, and of clauses whose verdicts are recorded. Otherwise the criterion says what
cannot be measured, and why.
"""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set

from conformance.catalogue import clause_record, clauses, own_kind
from conformance.catalogue.clause_record import ClauseEntry
from conformance.model.groups import grouped
from conformance.model.judging import statistics
from conformance.model.metrics.table import METRICS
from conformance.model.networks.place import Point
from conformance.model.trials.trial import Measurement, Scheme
from conformance.reporting import recorded
from conformance.reporting.heatmaps import Series
from conformance.reporting.html import rfc9743_figures as figures
from conformance.reporting.html.rfc9743_criteria import CRITERIA, NOT, Criterion

#: {scheme: its name in reports}
Names = Mapping[Scheme, str]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SchemeRow:
    """Figures of one scheme. `where`: a profile, a scenario or a clause; `series`: set if a page is about it."""

    scheme: str
    where: str
    #: {column: text}
    texts: Mapping[str, str]
    series: Series | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CriterionTable:
    """Figures of one kind."""

    rows: Sequence[SchemeRow]

    @property
    def columns(self) -> list[str]:
        """All columns that any row has."""
        return list(dict.fromkeys(name for row in self.rows for name in row.texts))


@dataclasses.dataclass(frozen=True, kw_only=True)
class CriterionFigures:
    """A Criterion with the figures that the results have for it."""

    criterion: Criterion
    tables: tuple[CriterionTable, ...]

    @property
    def status(self) -> str:
        """The criterion's status; "not measured" if these results lack all the figures that it could have."""
        return self.criterion.status if self.tables or not self.criterion.has_figures else NOT


def answers(
    all_series: Sequence[Series], names: Names, measurements: Iterable[Measurement] = ()
) -> list[CriterionFigures]:
    """Return one CriterionFigures for each criterion, in the RFC's order. `names` has all schemes. Raises UserError."""
    runs = _runs(measurements)
    record = clause_record.load()
    return [
        CriterionFigures(
            criterion=criterion,
            tables=tuple(
                CriterionTable(rows=rows)
                for rows in (
                    _of_series(criterion, all_series, names),
                    list(_of_scenarios(criterion, runs, names)),
                    _of_clauses(criterion, record, {scheme.id for scheme in names}),
                )
                if rows
            ),
        )
        for criterion in CRITERIA
    ]  # fmt: skip


def _of_series(criterion: Criterion, all_series: Sequence[Series], names: Names) -> list[SchemeRow]:
    if criterion.figures is None:
        return []
    fitting = [series for series in all_series if (series.setting.rival is not None) == criterion.shared]
    return [
        SchemeRow(scheme=names[series.scheme], where=series.setting.profile, texts=texts, series=series)
        for series in fitting
        if (texts := criterion.figures(series))
    ]


#: {(scheme, scenario): {point: measurements}}
Runs = Mapping[tuple[Scheme, str], Mapping[Point, Sequence[Measurement]]]


def _runs(measurements: Iterable[Measurement]) -> Runs:
    by_run = grouped(((m.scheme, m.setting.profile), m) for m in measurements if not m.setting.of_profile)
    return {run: grouped((m.setting.point, m) for m in of_run) for run, of_run in by_run.items()}


def _of_scenarios(criterion: Criterion, runs: Runs, names: Names) -> Iterator[SchemeRow]:
    """Yield a row for each scheme and scenario: the median, least and greatest of its points' medians over trials."""
    for (scheme, scenario), of_points in sorted(runs.items(), key=lambda item: (item[0][1], item[0][0].id)):
        if scenario not in criterion.scenarios:
            continue
        texts = {
            **{METRICS[name].title: text for name in criterion.metrics if (text := _span(criterion, of_points, name))},
            **{
                f"{METRICS[name].title} of others": text
                for name in criterion.others
                if (text := _span(criterion, of_points, name, others=True))
            },
        }
        if texts:
            judged = next(iter(of_points.values()))[0].setting.network.tested
            where = scenario if judged.algorithm is None else f"{scenario} (flows of {judged.algorithm})"
            yield SchemeRow(scheme=names[scheme], where=where, texts=texts)


def _span(
    criterion: Criterion, of_points: Mapping[Point, Sequence[Measurement]], name: str, others: bool = False
) -> str | None:
    """Return the span of a metric's medians at the points, as text: of judged flows, or of the `others`.

    A point where a trial has no value has no median: flows that do not converge take longer than any that do.
    """
    metric, medians = METRICS[name], []
    for measured in of_points.values():
        network = measured[0].setting.network
        if not criterion.network(network):
            continue
        if not others:
            by_group = [[own_kind.value(measurement, name) for measurement in measured]]
        else:
            groups = [group.name for group in network.flows if not group.judged]
            by_group = [[metric.of(measurement, group) for measurement in measured] for group in groups]
        of_groups = [[value for value in values if value is not None] for values in by_group]
        if known := [value for values in of_groups if len(values) == len(measured) for value in values]:
            medians.append(statistics.median(known))
    return figures.span(medians, f".{metric.digits}f", metric.suffix, "points")


def _of_clauses(criterion: Criterion, record: Sequence[ClauseEntry], schemes: Set[str]) -> list[SchemeRow]:
    """Return the verdicts of clauses/record.json on the criterion's clauses, for the schemes with these ids.

    Other recorded schemes are left out, since a report is only about what was measured for it. Mutants are left out, as
    they are no stacks.
    """
    by_id = {clause.id: clause for clause in clauses.all_clauses()}
    return [
        SchemeRow(
            scheme=entry.scheme, where=f"{clause.id} ({clause.source})",
            texts={
                "observable": clause.observable.title, "measured": recorded.value(clause, entry),
                "permitted": entry.about.permitted, "recorded verdict": str(entry.verdict),
            },
        )
        for clause in map(by_id.__getitem__, criterion.clauses)
        for entry in record
        if entry.clause == clause.id and entry.scheme in schemes and not entry.is_of_mutant
    ]  # fmt: skip
