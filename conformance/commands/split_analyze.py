"""`conformance split analyze`: where a connection-splitting proxy would help each scheme, from end-to-end results."""

import dataclasses
import time

from conformance.commands import split_published as study
from conformance.model import grid as grids
from conformance.model import grouping
from conformance.model.errors import UserError
from conformance.model.split import interpolation as between
from conformance.model.split import split_paths, split_rates
from conformance.reporting.text import split as report
from conformance.results import store

#: cells are of one segment; results of two-segment topologies are what predictions are compared with, not made from
_TOPOLOGY = "one_segment"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Chosen:
    """Which of the results to look at; None, or none, is all of them."""

    algorithms: tuple[str, ...] = ()
    stack: str | None = None
    kernel: str | None = None
    profile: str | None = None
    transfer_s: float | None = None

    def __contains__(self, measurement):
        setting, scheme = measurement.trial.setting, measurement.trial.scheme
        return (
            setting.topology == _TOPOLOGY
            and (not self.algorithms or scheme.algorithm in self.algorithms)
            and self.stack in (None, scheme.stack)
            and self.kernel in (None, scheme.kernel, scheme.kernel_release, scheme.kernel_digest)
            and self.profile in (None, setting.profile)
            and self.transfer_s in (None, setting.transfer_s)
        )


def load(results, chosen=Chosen()):
    """{scheme's id: {cell: measurements}} of result files. Raises UserError where there is nothing, or unlike runs."""
    everything = store.read(*results)
    own = [m for m in everything if m in chosen]
    if not own:
        there = sorted({f"{m.trial.scheme.id} under {m.trial.setting.profile}" for m in everything})
        raise UserError(
            f"no such results in {', '.join(map(str, results))}", f"there is {', '.join(there) or 'nothing'}"
        )
    return dict(sorted(grouping.by_scheme(own).items()))


def analyze(results, *, chosen, grid, path, interpolated, timeouts, timeout_s, published, target, console):
    """Show the table of filters by class, and bars of representative paths or of `path` alone. Raises UserError.

    `interpolated`: in the place of cells that were not measured, those between their neighbours. `timeout_s`: as if
    transfers had been given up then. `published`: compare with the published study. `target`: also draw the bars there.
    """
    one_path = None if path is None else split_paths.Path.parse(path)
    among = split_paths.paths(grids.cells(grid))
    if not among:
        raise UserError(f"grid {grid!r} holds no path of two segments", "the cell they compose to must be in it, too")
    if target is not None and target.suffix not in report.FIGURES:
        raise UserError(f"--out {target}: no such kind of figure", f"name it {' or '.join(report.FIGURES)}")
    measured = load(results, chosen)
    if timeout_s is not None:
        measured = {
            scheme: {cell: list(split_rates.cut_off(found, timeout_s)) for cell, found in cells.items()}
            for scheme, cells in measured.items()
        }
    rates = {scheme: split_rates.Rates.medians(cells, timeouts) for scheme, cells in measured.items()}
    transfer_s = next(iter(next(iter(measured.values())).values()))[0].trial.setting.transfer_s
    report.show_measured(measured, console)
    if one_path is not None:
        drawn = [one_path]
    else:
        bandwidth = None if grid == "full" else min(path.bandwidth_mbps for path in among)
        drawn = [path for path in split_paths.representative_paths(bandwidth).values() if path in set(among)]
        began = time.perf_counter()
        everything = {scheme: [split_rates.predict(p, of) for p in among] for scheme, of in rates.items()}
        took_s = time.perf_counter() - began
        console.print(f"{len(among)} paths x {len(rates)} schemes predicted in {took_s:.2f} s", soft_wrap=True)
        report.show_table(everything, transfer_s, console, f"grid {grid}")
        if published:
            if grid == "full":
                report.show_counts(study.beside_counts(everything, study.counts()), console)
            for table, bandwidths in study.beside_cells(rates, study.rates()):
                report.show_table(table, transfer_s, console, f"published cells, {_mbps(bandwidths)}")
    if interpolated:
        report.show_errors({scheme: between.leave_one_out(of.low) for scheme, of in rates.items()}, console)
    predictions = {path: {scheme: predict(path, of, interpolated) for scheme, of in rates.items()} for path in drawn}
    report.show_bars(predictions, transfer_s, console)
    if target is not None:
        report.draw(predictions, transfer_s, target)
        console.print(f"figure: {target}", soft_wrap=True)
    return 0


def _mbps(bandwidths):
    return f"{' and '.join(f'{bandwidth:g}' for bandwidth in bandwidths)} Mbit/s"


def predict(path, rates, interpolated=False):
    """The Prediction for a path; `interpolated`: with rates between the cells where they were not measured.

    A path of measured cells that the grid's rules compose to a measured one is predicted from these alone. Else its
    segments are composed exactly.
    """
    made = split_rates.predict(path, rates)
    if not interpolated or not (made.split is None or made.end_to_end is None):
        return made
    path = dataclasses.replace(path, exact=True)
    bounds = {}
    for name in ("low", "high"):
        known = getattr(rates, name)
        found = {cell: between.interpolate(known, cell) for cell in path.cells}
        bounds[name] = {cell: rate for cell, rate in found.items() if rate is not None}
    return split_rates.predict(path, dataclasses.replace(rates, **bounds))
