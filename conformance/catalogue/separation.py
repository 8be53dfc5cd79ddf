"""Find the cells that tell algorithms apart, because their zones' intervals do not overlap, and choose smoke cells."""

import itertools
from collections.abc import Iterable, Iterator, Sequence

from conformance.catalogue import derive, documents
from conformance.model.judging.zone import Interval, Zone
from conformance.model.networks.place import Cell
from conformance.support import schema

_SMOKE_CELLS = 12
#: a zone's id, and a cell of it
ZoneCell = tuple[str, Cell]


def gap(mine: Interval, theirs: Interval) -> float:
    """Return how far apart two intervals are, in widths of the first; zero or less if they overlap."""
    return max(mine.low - theirs.high, theirs.low - mine.high) / (mine.high - mine.low)


def apart(
    algorithms: Iterable[str], profile: str = "atc25"
) -> Iterator[tuple[str, str, str, int, list[tuple[Cell, float]]]]:
    """Yield (one, other, metric, number of common cells, [(cell, gap)] of those that tell them apart, widest first)."""
    for algorithm, other in itertools.combinations(algorithms, 2):
        for kind in documents.KINDS:
            mine, theirs = documents.zone_of(algorithm, kind, profile), documents.zone_of(other, kind, profile)
            common = [cell for cell in mine.cells if cell in theirs.intervals]
            gaps = [(cell, gap(mine.intervals[cell], theirs.intervals[cell])) for cell in common]
            widest = sorted((pair for pair in gaps if pair[1] > 0), key=lambda pair: -pair[1])
            yield algorithm, other, mine.metric, len(common), widest


def telling_features(zones: Iterable[Zone], others: Sequence[Zone]) -> list[ZoneCell]:
    """Return a few pairs (zone id, cell) of these zones whose intervals are apart from those of other algorithms.

    `zones` and `others` are of any metrics. The other algorithms take turns, and each adds the cheapest pair that
    is left: the one with the lowest bandwidth and, among those, the widest gap.
    """
    queues = []
    for algorithm in sorted({other.algorithm for other in others}):
        widths: dict[ZoneCell, float] = {}
        for mine in zones:
            for theirs in others:
                if theirs.algorithm == algorithm and theirs.metric == mine.metric:
                    for cell in set(mine.cells) & set(theirs.cells):
                        if not mine.intervals[cell].counted:
                            continue
                        widths[mine.id, cell] = gap(mine.intervals[cell], theirs.intervals[cell])
        telling = [feature for feature, width in widths.items() if width > 0]
        queues.append([f for *_, f in sorted((f[1].bandwidth_mbps, -widths[f], f[1], f[0], f) for f in telling)])
    chosen: list[ZoneCell] = []
    for rank in range(max((len(q) for q in queues), default=0)):
        for queue in queues:
            if rank < len(queue) and queue[rank] not in chosen and len(chosen) < _SMOKE_CELLS:
                chosen.append(queue[rank])
    return chosen


def choose_smoke_cells() -> list[Zone]:
    """Choose and write new smoke cells for all zones over the grid that ship, all metrics together; return Zones."""
    paths = [
        path
        for profile in documents.PROFILES.values()
        for kind in documents.KINDS
        for path in documents.zone_files(kind, profile)
    ]
    by_path = {path: schema.load("zone", path) for path in paths}
    zones = [documents.zone(path) for path in by_path]
    written = []
    for path, document in by_path.items():
        alike = [z for z in zones if z.profile_digest == document["profile_digest"]]
        of_algorithm = [z for z in alike if z.algorithm == document["algorithm"]]
        others = [z for z in alike if z.algorithm != document["algorithm"]]
        features = telling_features(of_algorithm, others)
        document["smoke"] = [cell.id for zone_id, cell in features if zone_id == document["id"]]
        written.append(derive.write(document, path))
    return written
