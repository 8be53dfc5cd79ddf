"""Judge kinds of cells: how much a scheme gets in all cells of a kind, relative to a zone's bases.

One trial of a kind is a trial with one seed in each of its cells. Its value is the geometric mean, over the cells, of
what the scheme got relative to the reference's median there. So a kind has as many values as its cells have trials; a
basis has as many as the cell in which it has the fewest. These are made of its trials at random, as zones do not keep
seeds. Medians and rank sums of these values decide as they do in a cell (verdict.py). Spreads of single cells average
out, so a kind tells shifts that none of its cells does. Which trials of a basis meet is chance, so they meet PAIRINGS
times, and each time makes a basis: what violates does so by all of them.

So kinds are for BBR, whose trials of one seed have little in common: their mean over cells has 1.3 times the variance
that it would have if they met at random. Of CUBIC and Reno, under random loss from 20 ms on, it is seven times, of at
most ten (published lines, five trials in each of ten cells): losses of one seed are nearly the same in all cells.

Opposite deviations would cancel in a mean. So a second question asks whether a kind is even: whether its cells' medians
stand in the same ratio to the reference's. Honest stacks' ratios have a standard deviation of 0.04 (of their
logarithms), faults of 0.08 to 0.11. UNEVEN is permitted, and the null is a scheme with exactly that: the sum of
squares, divided by what UNEVEN and the spread of trials make of it, then follows chi-squared.
"""

import dataclasses
import functools
import itertools
import math
import statistics
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from conformance.model import digest
from conformance.model.groups import grouped
from conformance.model.judging import statistics as judging_statistics, verdict as verdicts, words
from conformance.model.judging.question import Key, MeasuredSettings, Named, Question, Rule, Witness
from conformance.model.judging.verdict import CONFIDENCE, Status, Verdict
from conformance.model.judging.zone import (
    AT_1_MS,
    MUCH_LOSS,
    NO_LOSS,
    NO_MARGIN,
    SOME_LOSS,
    SPACED,
    SPACED_NEAR,
    Basis,
    Interval,
    Margin,
    Zone,
    hull,
    kind_of,
)
from conformance.model.networks.place import Point
from conformance.model.networks.setting import Setting
from conformance.model.trials.trial import Measurement, Outcome

#: how often a basis' trials in different cells are brought together at random
PAIRINGS = 15
#: the standard deviation of the logarithms of cells' ratios that is permitted
UNEVEN = 0.06
#: the fewest cells whose evenness is judged
_FEW = 4
#: the least value that counts: below it, a logarithm would say more than the trial does
_LEAST = 1e-3
#: so many standard deviations hardly ever happen
_MUCH = 3.0
#: with fewer trials of a cell, nothing is known of their variance, nor an interval of their median
_TRIALS = 5
_LATE = "a transfer timed out"
_STAYS = ", which so few cells may be by chance: more trials would not help"
#: the variance of a median of n values, relative to that of a mean, of a normal distribution
_OF_MEDIAN = math.pi / 2

#: what is permitted if nothing can be said
_ANYTHING = Interval(low=0.0, high=math.inf, bases=(), margin=NO_MARGIN)

_Row = Sequence[float]
_Trials = Mapping[Setting, Sequence[Measurement]]


@dataclasses.dataclass(frozen=True)
class KindRule(Rule):
    """A question about all cells of a kind together."""

    zone: Zone = dataclasses.field(hash=False)
    kind: str
    cells: tuple[Point, ...]
    noun: ClassVar[str] = "kinds of cells of"
    #: what stands after the kind's name
    suffix: ClassVar[str] = ""

    @property
    def id(self) -> str:
        return self.zone.id

    @property
    def place(self) -> Named:
        return Named(f"{slug(self.kind)}{self.suffix}")

    @property
    def where(self) -> str:
        return f"{self.kind}{self.suffix.replace('-', ', ')}"

    @property
    def version(self) -> str:
        return self.zone.algorithm_version

    @property
    def judgeable(self) -> bool:
        return self.kind not in self.zone.shown

    @property
    def selection(self) -> tuple[str, str]:
        return "-k", self.place.id

    def members(self, keys: Iterable[Key]) -> set[Hashable]:
        return {(self.id, self.place)}

    def judge(self, measured: MeasuredSettings, family: int, more: bool) -> Verdict:
        trials = {setting: measurements for setting, measurements in measured.items() if measurements}
        if not self.judgeable:
            return self._verdict(Status.NOT_JUDGED, self.zone.shown[self.kind])
        if len(trials) < len(self.cells):
            return self._verdict(Status.ERROR, "nothing was measured")
        every = [m for measurements in trials.values() for m in measurements]
        n = min(map(len, trials.values()))
        if obstacle := verdicts.obstacle(f"zone {self.id}", self.zone.profile, self.zone.digest_at, every):
            return self._verdict(*obstacle, n=n)
        if unknown := [m for m in every if self.zone.value(m) is None]:
            if all(m.outcome is Outcome.TIMEOUT for m in unknown):
                return self._verdict(Status.INCONCLUSIVE, f"{_LATE}, so its {self.zone.metric} is not known", n=n)
            return self._verdict(Status.ERROR, f"{self.zone.metric} has no value in some trials", n=n)
        return self._compare(trials, n, family, more)

    def _compare(self, trials: _Trials, n: int, family: int, more: bool) -> Verdict:
        raise NotImplementedError

    def _verdict(self, status: Status, reason: str, permitted: Interval = _ANYTHING, **rest: Any) -> Verdict:
        return Verdict(
            status=status, zone_id=self.id, place=self.place, reason=reason, permitted=permitted, **rest
        )  # fmt: skip

    def ratios(self, measured: MeasuredSettings) -> dict[Point, float]:
        """Return {cell: the median there relative to the reference's} of the cells that have values."""
        by_cell = {}
        for setting, measurements in measured.items():
            if values := self._values(measurements):
                by_cell[setting.point] = _floored(statistics.median(values)) / self._reference(setting, measurements)
        return by_cell

    def _reference(self, setting: Setting, measurements: Sequence[Measurement]) -> float:
        """Return the reference's median in a cell, with packets of the size in these trials."""
        permitted, _ = verdicts.permitted_to(self.zone.intervals[setting.point], measurements)
        return _floored(permitted.basis.median)

    def witness(self, measured: MeasuredSettings) -> Witness | None:
        """Return the cell that is farthest from the others' ratio of 1, with its values."""
        ratios = self.ratios(measured)
        if not ratios:
            return None
        far = max(ratios, key=lambda cell: self._far(ratios, cell))
        (measurements,) = (measurements for setting, measurements in measured.items() if setting.point == far)
        return far, tuple(self._values(measurements))

    def _values(self, measurements: Sequence[Measurement]) -> list[float]:
        return [amount for m in measurements if (amount := self.zone.value(m)) is not None]

    def _far(self, ratios: Mapping[Point, float], cell: Point) -> float:
        up = math.log(ratios[cell])
        return up if statistics.fmean(map(math.log, ratios.values())) > 0 else -up

    def cells_in_words(self, measured: MeasuredSettings) -> str:
        """Return the ratio of each cell, the least first."""
        ratios = sorted(self.ratios(measured).items(), key=lambda pair: pair[1])
        return ", ".join(f"{cell.id} {ratio:.2f}" for cell, ratio in ratios)


@dataclasses.dataclass(frozen=True)
class Amount(KindRule):
    """How much a scheme gets in cells of a kind."""

    @functools.cached_property
    def permitted(self) -> Interval:
        """What is permitted of the geometric mean."""
        margins = [self.zone.intervals[cell].margin for cell in self.cells]
        widest = max(margins, key=lambda margin: margin.relative)
        margin = Margin(relative=widest.relative, absolute=0.0, set_by=widest.set_by)
        names = [basis.reference for basis in self.zone.intervals[self.cells[0]].bases]
        pairs = itertools.product(names, range(PAIRINGS))
        bases = tuple(basis for name, pairing in pairs if (basis := self._basis(name, pairing)) is not None)
        low, high = hull(bases, margin)
        return Interval(low=low, high=high, bases=bases, margin=margin)

    def in_units(self) -> Interval:
        """Return what is permitted of the geometric mean of the metric itself, not relative to the reference's."""
        permitted = self.permitted
        logs = (math.log(_floored(self.zone.intervals[cell].basis.median)) for cell in self.cells)
        mean = math.exp(statistics.fmean(logs))
        bases = tuple(basis.scaled(mean) for basis in permitted.bases)
        low, high = permitted.low * mean, permitted.high * mean
        return dataclasses.replace(permitted, low=low, high=high, bases=bases, counted=self.judgeable)

    def _basis(self, name: str, pairing: int) -> Basis | None:
        """Return one basis of all cells, by one pairing of its trials; None if it is not a basis of each."""
        rows: list[_Row] = []
        for cell in self.cells:
            permitted = self.zone.intervals[cell]
            values = next((basis.values for basis in permitted.bases if basis.reference == name), ())
            if not values:
                return None
            # The values are sorted; the least in one cell need not have the seeds of the least in another.
            order = sorted(range(len(values)), key=lambda at: digest.of_value([name, cell.id, at, pairing]))
            drawn = [values[at] for at in order]
            rows.append([_floored(amount) / _floored(permitted.basis.median) for amount in drawn])
        return Basis.of(name, _means(rows, min(map(len, rows))))

    def _compare(self, trials: _Trials, n: int, family: int, more: bool) -> Verdict:
        rows, late = [], [False] * n
        for setting, measurements in trials.items():
            reference = self._reference(setting, measurements)
            rows.append([_floored(self.zone.value(m) or 0.0) / reference for m in measurements])
            late = [was or m.outcome is Outcome.TIMEOUT for was, m in zip(late, measurements, strict=False)]
        return self.compare(rows, late, family, more)

    def of_values(self, values: Mapping[Point, Sequence[float]], late: Sequence[bool], family: int) -> Verdict:
        """Return the verdict on trials of full packets that gave these values in each cell; no trials follow."""
        medians = {cell: _floored(self.zone.intervals[cell].basis.median) for cell in self.cells}
        rows = [[_floored(amount) / medians[cell] for amount in values[cell]] for cell in self.cells]
        return self.compare(rows, late, family, more=False)

    def compare(self, rows: Sequence[_Row], late: Sequence[bool], family: int, more: bool) -> Verdict:
        """Return the verdict on trials' ratios to the reference's medians, a row for each cell; `late`: timed out."""
        permitted = self.permitted
        values = _means(rows, len(late))
        compared = verdicts.compare_medians(self.zone.metric, permitted, values, late, more)
        verdict = self._verdict(permitted=permitted, what=f"{self.zone.metric}, relative", **compared)
        return verdicts.by_chance(verdict, family)

    def fewest(self, family: int, least: int = 1) -> int:
        return verdicts.fewest(self.permitted, family, least)

    def lines(self, verdict: Verdict, before: str | None = None) -> list[tuple[str, str]]:
        if verdict.value is None:
            return []
        return [
            (
                "measured",
                f"{verdict.value:.3f} of the reference's {self.zone.metric}, in the mean of {len(self.cells)} cells"
                f" (median of {verdict.n} trials of each; {words.interval(verdict)})",
            ),
            ("permitted", words.permitted(verdict, before)),
            ("basis", words.basis(verdict.permitted, before)),
        ]


@dataclasses.dataclass(frozen=True)
class Evenness(KindRule):
    """Whether all cells of a kind stand in one ratio to the reference."""

    suffix: ClassVar[str] = "-even"

    def _compare(self, trials: _Trials, n: int, family: int, more: bool) -> Verdict:
        if n < _TRIALS:
            return self._verdict(Status.INCONCLUSIVE, f"{n} trials of each cell are too few to tell", n=n)
        if any(m.outcome is Outcome.TIMEOUT for of_cell in trials.values() for m in of_cell):
            return self._verdict(Status.INCONCLUSIVE, f"{_LATE}, so only a bound is known", n=n)
        ratios = self.ratios(trials)
        references = [self.zone.intervals[cell].basis for cell in ratios]
        # Variances are averaged over the cells: a few trials of one cell say little of its own.
        ours = statistics.fmean(_variance(self._values(of_cell)) / len(of_cell) for of_cell in trials.values())
        theirs = statistics.fmean(_variance(basis.values) / basis.n for basis in references)
        of_trials = _OF_MEDIAN * (ours + theirs)
        spread = statistics.variance(map(math.log, ratios.values()))
        degrees = len(ratios) - 1
        p = judging_statistics.chi_squared_above(degrees * spread / (UNEVEN**2 + of_trials), degrees)
        unevenness = math.sqrt(max(spread - of_trials, 0.0))

        def verdict(status: Status, reason: str, **rest: Any) -> Verdict:
            permitted = Interval(low=0.0, high=UNEVEN, bases=(), margin=NO_MARGIN)
            return self._verdict(status, reason, permitted, n=n, value=unevenness, what="unevenness", **rest)

        if p <= 1 - CONFIDENCE:
            uneven = f"uneven (measured / reference): {self.cells_in_words(trials)}"
            judged = verdicts.by_chance(verdict(Status.VIOLATES, uneven, p=p), family)
            # Further trials move the root of the spread along one direction only.
            moved = _MUCH * math.sqrt(_OF_MEDIAN * ours / degrees)
            most = degrees * ((math.sqrt(spread) + moved) / UNEVEN) ** 2
            never = judging_statistics.chi_squared_above(most, degrees) > verdicts.level(family)
            if not never or unevenness - moved <= UNEVEN:
                return judged
            return dataclasses.replace(judged, reason=f"{uneven}{_STAYS}", hidden=True)
        if p >= CONFIDENCE:
            return verdict(Status.CONFORMS, "even", sure=True)
        if unevenness <= UNEVEN:
            return verdict(*verdicts.undecided_inside(False))
        return verdict(Status.INCONCLUSIVE, "outside, but not clear of its bound: more trials needed")

    def _far(self, ratios: Mapping[Point, float], cell: Point) -> float:
        return abs(math.log(ratios[cell]) - statistics.median(map(math.log, ratios.values())))

    def fewest(self, family: int, least: int = 1) -> int:
        return max(least, _TRIALS)

    def lines(self, verdict: Verdict, before: str | None = None) -> list[tuple[str, str]]:
        if verdict.value is None:
            return []
        return [
            (
                "measured",
                f"standard deviation {verdict.value:.3f} of the logarithms of cells' ratios: {verdict.reason}",
            ),
            ("permitted", f"at most {UNEVEN:g}"),
        ]


def named(text: str) -> Named | None:
    """Return the place that a question about a kind has by this name; None if there is none."""
    known = {f"{slug(kind)}{rule.suffix}" for kind in _KINDS for rule in _RULES}
    return Named(text) if text in known else None


def slug(kind: str) -> str:
    """Return the name of a kind in ids."""
    return kind.replace(" % of loss", "pct").replace(" ", "-")


_RULES: tuple[type[KindRule], ...] = (Amount, Evenness)
_KINDS = (NO_LOSS, AT_1_MS, SOME_LOSS, MUCH_LOSS, SPACED, SPACED_NEAR)


def by_kind(zone: Zone, cells: Iterable[Point]) -> dict[str, tuple[Point, ...]]:
    """Return {kind: its cells} of cells of a zone, in order."""
    kinds = grouped((kind_of(cell, zone.metric), cell) for cell in cells)
    return {kind: tuple(of_kind) for kind, of_kind in kinds.items()}


def ask(zone: Zone, settings: Iterable[Setting], algorithm: str | None = None) -> list[Question]:
    """Ask about the kinds of cells of a zone in these settings, all of cells: how much, and how even.

    A kind that is only shown is one question, which is not judged.
    """
    at = {setting.point: setting for setting in settings}
    return [
        Question(
            rule=rule, algorithm=algorithm or zone.algorithm, settings=tuple(at[cell] for cell in rule.cells)
        )
        for rule in rules(zone, at)
    ]  # fmt: skip


def rules(zone: Zone, cells: Iterable[Point]) -> Iterator[KindRule]:
    """Yield the rules about the kinds that cells of a zone are of."""
    for kind, of_kind in by_kind(zone, cells).items():
        amount = Amount(zone, kind, of_kind)
        yield amount
        if amount.judgeable and len(of_kind) >= _FEW:
            yield Evenness(zone, kind, of_kind)


def _floored(amount: float) -> float:
    return max(amount, _LEAST)


def _means(rows: Sequence[_Row], n: int) -> list[float]:
    """Return the geometric mean over rows of each of the first n columns."""
    return [math.exp(statistics.fmean(math.log(row[at]) for row in rows)) for at in range(n)]


def _variance(values: Sequence[float]) -> float:
    """Return the variance of the logarithms, from the middle half, which a stray trial does not move.

    Of n values of a normal distribution, the middle half as taken here has 1 - 1.45 / n of the variance, within 1 %
    from five values on (400,000 drawn for each of twelve n from 5 to 60).
    """
    low, _, high = statistics.quantiles([math.log(_floored(amount)) for amount in values], n=4, method="inclusive")
    return ((high - low) / 1.349) ** 2 / (1 - 1.45 / len(values))
