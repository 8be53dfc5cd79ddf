"""Rank suspects: compare a stack's features (features.py) with those of the reference, in the same cells.

A feature's *score* is the difference between the two, divided by what they may differ by. That is the largest of the
feature's own tolerance, three times the larger of the two spreads over seeds, and, where losses are random, three times
the standard error of the medians. A score below 1 is no evidence. A label's suspect has the evidence of all features
with that label (feature_table.py), and the rank of the best.
"""

import dataclasses
import math
from collections.abc import Mapping

import numpy

from conformance.model.diagnosis import features
from conformance.model.diagnosis.feature_table import CLEAN, FEATURES, FEW, Feature, label_of
from conformance.model.diagnosis.flow import Flow
from conformance.model.diagnosis.samples import Samples

_TIMES = 3
#: of a normal distribution: the distance between its quartiles in sigmas; the median's standard error over the mean's
_QUARTILES_SIGMAS, _MEDIANS_ERROR = 1.349, 1.253
#: a score beyond this makes a suspect no likelier
_MOST_SCORE = 8
#: a sender that keeps more than this share of its window has kept all of it: it has no response, not another beta
KEPT_ALL = 0.93
_UNTOUCHED = {"kept": KEPT_ALL, "trough": 0.85}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Reading:
    """A feature's value over all samples of all seeds."""

    SHOWN = ("value", "low", "high", "spread", "n")

    value: float
    #: first quartile
    low: float
    #: third quartile
    high: float
    #: number of samples; 0 if a document gives the value
    n: int
    #: half the range over seeds
    spread: float
    #: (seed, seconds since the first packet) of a few samples near the value
    sightings: tuple[tuple[int, float], ...]

    def says(self, feature: Feature) -> str:
        """Return the value in words."""
        return feature.says.format(n=self.n, **self.numbers(feature))

    def numbers(self, feature: Feature) -> dict[str, str]:
        """Return value and quartiles as texts, by name."""
        return {name: f"{getattr(self, name):.{feature.digits}f}" for name in ("value", "low", "high")}


def read(feature: Feature, flows: Mapping[int, Flow]) -> Reading | None:
    """Return the Reading of a feature in {seed: Flow} of its cell; None if there are too few samples."""
    return of_samples(feature, {seed: getattr(features, feature.name)(flow) for seed, flow in flows.items()})


def of_samples(feature: Feature, by_seed: Mapping[int, Samples]) -> Reading | None:
    """Return the Reading of a feature in {seed: its samples}; None if there are too few."""
    visible = {seed: samples for seed, samples in by_seed.items() if len(samples)}
    if sum(len(samples) for samples in visible.values()) < feature.least:
        return None
    middle = numpy.mean if feature.mean else numpy.median
    each = [float(middle(samples.values)) for samples in visible.values()]
    values = numpy.concatenate([samples.values for samples in visible.values()])
    value = float(middle(values))
    near = sorted(
        (abs(v - value), seed, float(at))
        for seed, samples in visible.items()
        for v, at in zip(samples.values, samples.times_s, strict=True)
    )
    low, high = (float(x) for x in numpy.percentile(values, (25, 75)))
    return Reading(
        value=value, low=low, high=high, n=len(values), spread=(max(each) - min(each)) / 2,
        sightings=tuple((seed, at) for _, seed, at in near[:3]),
    )  # fmt: skip


def readings(flows: Mapping[str, Mapping[int, Flow]]) -> dict[Feature, Reading]:
    """Return {Feature: Reading}, without features that were not seen. `flows` is {cell's name: {seed: Flow}}."""
    read_of = {feature: read(feature, flows[feature.cell]) for feature in FEATURES if flows.get(feature.cell)}
    visible = {feature: reading for feature, reading in read_of.items() if reading is not None}
    kept = next((reading.value for feature, reading in visible.items() if feature.name == "kept"), None)
    return {
        feature: _divided(reading, kept) if feature.of_kept and kept is not None else reading
        for feature, reading in visible.items()
        if not feature.of_kept or (kept is not None and 0 < kept < KEPT_ALL)
    }


def _divided(reading: Reading, by: float) -> Reading:
    return dataclasses.replace(
        reading, **{name: getattr(reading, name) / by for name in ("value", "low", "high", "spread")}
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Evidence:
    """One feature that differs, by `score` times what it may; `ours` and `theirs` (the reference's) are Readings."""

    feature: Feature
    label: str
    score: float
    ours: Reading
    theirs: Reading

    @property
    def weight(self) -> float:
        return min(self.score, _MOST_SCORE) * self.feature.weight

    @property
    def sentence(self) -> str:
        """What was measured, what the reference did, and what the difference would mean."""
        feature, ours = self.feature, self.ours
        meaning = feature.above if ours.value > self.theirs.value else feature.below
        meaning = meaning.format(**ours.numbers(feature))
        # A value that a document gives was never measured.
        who = "the reference" if self.theirs.n else "the document"
        return f"{ours.says(feature)}, {who} {self.theirs.value:.{feature.digits}f}: {meaning}"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Suspect:
    """A possible cause of a violation, with its Evidence, the heaviest first."""

    label: str
    evidence: tuple[Evidence, ...]

    @property
    def weight(self) -> float:
        return self.evidence[0].weight


def suspects(algorithm: str, ours: Mapping[Feature, Reading], theirs: Mapping[Feature, Reading]) -> list[Suspect]:
    """Return the Suspects, the likeliest first; none if nothing differs. `ours`, `theirs` are {Feature: Reading}."""
    by_label: dict[str, list[Evidence]] = {}
    for feature in ours:
        if feature in theirs:
            label = _label(feature, algorithm, ours[feature], theirs[feature])
            score = difference(feature, ours[feature], theirs[feature])
            if label and score >= 1:
                evidence = Evidence(
                    feature=feature, label=label, score=score, ours=ours[feature], theirs=theirs[feature]
                )
                by_label.setdefault(label, []).append(evidence)
    ranked = [
        Suspect(label=label, evidence=tuple(sorted(evidences, key=lambda e: -e.weight)))
        for label, evidences in by_label.items()
    ]
    return sorted(ranked, key=lambda suspect: -suspect.weight)


def difference(feature: Feature, ours: Reading, theirs: Reading) -> float:
    """Return the score of a feature; see the module's docstring."""
    if feature.only_above and ours.value <= theirs.value:
        return 0.0
    a, b = ours, theirs
    if feature.ratio:
        if min(ours.value, theirs.value) <= 0:
            # Zero has no logarithm; but there is no doubt either: one side shows none of it at all.
            return 0.0 if ours.value == theirs.value else float(_MOST_SCORE)
        a, b = _logarithm(ours), _logarithm(theirs)
    tolerance = math.log(feature.tolerance) if feature.ratio else feature.tolerance
    noise = 0.0 if feature.cell == CLEAN else math.hypot(_standard_error(a), _standard_error(b))
    return abs(a.value - b.value) / max(tolerance, _TIMES * max(a.spread, b.spread), _TIMES * noise)


def _logarithm(reading: Reading) -> Reading:
    """Return the Reading of the logarithm, with spread and quartiles as shares of the value."""
    value = math.log(reading.value)
    half = (reading.high - reading.low) / 2 / reading.value
    return dataclasses.replace(
        reading, value=value, low=value - half, high=value + half, spread=reading.spread / reading.value
    )


def _standard_error(reading: Reading) -> float:
    """Return the standard error of the median of a Reading's samples: 1.253 sigma / sqrt(n).

    Sigma comes from the quartiles, as for a normal distribution.
    """
    sigma = (reading.high - reading.low) / _QUARTILES_SIGMAS
    return _MEDIANS_ERROR * sigma / math.sqrt(reading.n) if reading.n else 0.0


def _label(feature: Feature, algorithm: str, ours: Reading, theirs: Reading) -> str | None:
    label = label_of(feature, algorithm)
    if label == "beta" and ours.value > _UNTOUCHED[feature.name]:
        return "response"
    return label


#: {(feature, cell): value that the documents give}, used if there is no reference to measure. For BBR these are few: a
#: version that probes seldom has its highest gain for less than a twentieth of the time, ProbeRTT has no least number,
#: and Linux's BBR, with an initial window of ten packets, sends 13 in what counts as the first round trip here.
_BBR: Mapping[tuple[str, str], float] = {
    ("start_up_growth", CLEAN): 2,  # draft-cardwell-iccrg-bbr-congestion-control-02, 4.3.1.1: it doubles
}
_LOSS_BASED: Mapping[tuple[str, str], float] = {
    ("initial_window", CLEAN): 10,
    ("start_up_growth", CLEAN): 2,  # RFC 5681, 3.1; RFC 9002, 7.3.1
    ("responded", FEW): 1,  # RFC 5681, 3.2; RFC 9002, 7.3.2
    ("responded", CLEAN): 1,
}
_DOCUMENTS: Mapping[str, Mapping[tuple[str, str], float]] = {
    "cubic": {**_LOSS_BASED, ("kept", FEW): 0.7},  # RFC 9438, 4.6
    # RFC 5681, 3.1 and 3.2: growth of a packet per round trip, and half of the window
    "reno": {**_LOSS_BASED, ("kept", FEW): 0.5, ("growth", FEW): 1, ("half_time_share", CLEAN): 0.5},
    # draft-cardwell-iccrg-bbr-congestion-control-02, 4.3.4.1: ProbeBW's highest gain; 4.3.5: ProbeRTT every 10 s
    "bbrv1": {**_BBR, ("rate_high", CLEAN): 1.25, ("dips_per_10_s", CLEAN): 1},
    "bbrv2": _BBR,
    "bbrv3": _BBR,
}


def documented(algorithm: str) -> dict[Feature, Reading]:
    """Return {Feature: Reading} of the values that the documents give for an algorithm; empty for an unknown one."""
    said = _DOCUMENTS.get(algorithm, {})
    return {
        feature: Reading(value=value, low=value, high=value, n=0, spread=0.0, sightings=())
        for feature in FEATURES
        if (value := said.get((feature.name, feature.cell))) is not None
    }
