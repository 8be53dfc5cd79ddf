"""`conformance split measure`: measure paths of two segments, with or without a proxy between them."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from conformance.catalogue import documents
from conformance.commands import common
from conformance.commands.measuring import measure
from conformance.commands.result import Result
from conformance.commands.status import ExitStatus, of_outcomes
from conformance.engine import benches, runs
from conformance.engine.benches import Choice, Means
from conformance.lab import proxy as proxies
from conformance.model.judging import seeds, statistics
from conformance.model.networks.place import parse_path
from conformance.model.networks.setting import Setting
from conformance.model.split import split_paths
from conformance.model.trials.trial import Measurement, Outcome, Scheme

#: bandwidth of the representative paths that zones have (split_zone.py: those of the smallest grid)
_BANDWIDTH_MBPS = 10


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PathRates:
    """Throughput over a path in Mbit/s. If a transfer timed out, its throughput is known only to be below its value."""

    median: float
    smallest: float
    largest: float
    timed_out: bool
    #: the median over the bandwidth of the narrower link
    utilization: float


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredPath:
    """The trials of one path, whose id has the client's segment first."""

    SHOWN = ("path=setting.id", "mbps=rates", "trouble")

    setting: Setting
    measurements: tuple[Measurement, ...]

    @property
    def bad(self) -> Measurement | None:
        """The first trial that failed or was not supported, errors first; None if there is none."""
        return common.bad(self.measurements)

    @property
    def trouble(self) -> list[common.Trouble]:
        """Outcome and message of every trial that failed or was not supported, without duplicates."""
        return sorted(
            {
                common.Trouble(outcome=m.outcome, message=m.message or "")
                for m in self.measurements
                if m.outcome in common.BAD
            }
        )

    @property
    def rates(self) -> PathRates | None:
        """The throughput; null if a trial failed or was not supported: missing is never zero."""
        if self.bad:
            return None
        bandwidth = self.setting.cell.bandwidth_mbps
        rates = [m.utilization * bandwidth for m in self.measurements if m.utilization is not None]
        median = float(statistics.median(rates))
        timed_out = any(m.outcome is Outcome.TIMEOUT for m in self.measurements)
        return PathRates(
            median=median, smallest=min(rates), largest=max(rates), timed_out=timed_out, utilization=median / bandwidth
        )


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredPaths(Result):
    """The paths that were measured with one scheme."""

    SCHEMA = "split-measure"

    scheme: Scheme
    #: The program that splits connections; null if none does.
    proxy: str | None
    trials: int
    paths: tuple[MeasuredPath, ...]

    @property
    def exit_status(self) -> ExitStatus:
        """DONE if everything was measured, ERROR if a trial failed, UNKNOWN if the algorithm is not supported."""
        return of_outcomes(m.outcome for path in self.paths for m in path.measurements)


def compute(
    algorithm: str, paths: Sequence[str], choice: Choice, means: Means, *, proxy: str,
    proxy_options: Mapping[str, Any], queue_sized_by: str, overrides: Mapping[str, Any], trials: int,
    profile: str | None, first_seed: int = seeds.JUDGED,
) -> MeasuredPaths:  # fmt: skip
    """Measure each of `paths` (ids such as 10mbps-20ms-0pct+50mbps-60ms-1pct, the client's segment first).

    If none is named, measure the representative paths that zones have, as references for zones (docs/add-a-zone.md).
    `proxy_options`: fields of a Proxy; `overrides`: see documents.profile(). Raises UserError.
    """
    representative = split_paths.representative_paths(_BANDWIDTH_MBPS).values()
    segments = [parse_path(path) for path in paths] or [path.segments for path in representative]
    through = proxies.choose(proxy, **proxy_options)
    bench = benches.find(choice)
    common.require_offered(bench, algorithm)
    settings = [
        documents.path(profile or bench.profile, pair, through, queue_sized_by, **overrides)
        for pair in dict.fromkeys(segments)
    ]
    work = [(algorithm, setting) for setting in settings]
    measurements = {key[1]: ms for key, ms in measure(bench, work, runs.seeds(trials, first_seed), means)}
    return MeasuredPaths(
        scheme=bench.scheme(algorithm), proxy=through.program if through else None, trials=trials,
        paths=tuple(MeasuredPath(setting=setting, measurements=tuple(measurements[setting])) for setting in settings),
    )  # fmt: skip
