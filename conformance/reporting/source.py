"""What reports are made from: result files, read once, and the few whole lines of them that are drawn later.

Ten schemes of 150 cells and 20 trials are 240 MB of lines, most of it traces and counters. What stays in memory is
what verdicts need; a line that is shown in full is read again from where it stands.
"""

import dataclasses
import hashlib
import math
import pathlib

from conformance import schema, store
from conformance.model.errors import UserError

#: what of the interface counters Measurement.value() needs
_COUNTERS = ("tx_bytes", "rx_bytes")


@dataclasses.dataclass(frozen=True, kw_only=True)
class File:
    """One results file, by name (where it lies is nobody's business) and content."""

    name: str
    digest: str
    trials: int


class Source:
    """Measurements without traces, of one or more result files; of trials made twice the last counts."""

    def __init__(self, paths):
        """Raises UserError where a file cannot be read, has a broken line, or where there are no results at all."""
        found, files, shared = {}, [], {}
        for path in dict.fromkeys(pathlib.Path(p) for p in paths):
            trials = 0
            for number, at, measurement in store.scan(path):
                found[measurement.trial.key] = path, at, _lean(measurement, shared, f"{path}:{number}")
                trials += 1
            with open(path, "rb") as f:
                digest = hashlib.file_digest(f, "sha256").hexdigest()[:16]
            files.append(File(name=path.name, digest=digest, trials=trials))
        if not found:
            raise UserError(f"no results in {', '.join(str(p) for p in paths)}", "run `make conformance` first")
        self.files = tuple(files)
        self.measurements = [measurement for _, _, measurement in found.values()]
        self._where = {key: (path, at) for key, (path, at, _) in found.items()}

    def whole(self, measurement):
        """The same Measurement with all its evidence, traces included. Raises UserError."""
        return store.read_at(*self._where[measurement.trial.key])


def _lean(measurement, shared, where):
    """Without what verdicts do not need; equal settings and schemes become one object. Raises UserError."""
    try:
        return _without_most(measurement, shared)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        # What the schema says of it is the better message; to check every line by it would take minutes.
        schema.check("measurement", measurement.to_json(), where)
        raise UserError(f"{where}: {type(error).__name__}: {error}") from None


def _without_most(measurement, shared):
    trial = measurement.trial
    if not all(isinstance(text, str) for text in (*vars(trial.scheme).values(), trial.setting.profile, trial.room)):
        raise TypeError("a name that is not text")
    for name, value in measurement.metrics.items():
        if value is not None and (type(value) not in (int, float) or not math.isfinite(value)):
            raise ValueError(f"/metrics/{name} is {value!r}, not a number")
    trial = dataclasses.replace(
        trial,
        setting=shared.setdefault(trial.setting, trial.setting),
        scheme=shared.setdefault(trial.scheme, trial.scheme),
    )
    interfaces = {
        side: {name: {key: int(counters[key]) for key in _COUNTERS} for name, counters in by_name.items()}
        for side, by_name in measurement.evidence.get("interfaces", {}).items()
        if side in ("server", "client")
    }
    evidence = {"interfaces": interfaces} if interfaces else {}
    return dataclasses.replace(measurement, trial=trial, evidence=evidence, host={})
