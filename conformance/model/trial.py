"""Scheme, Trial, Measurement: what is run, and what came of it.

A Trial is a pure function of its fields: the same Trial gives the same Measurement, byte for byte, apart
from `host`, which holds what depends on the machine (wall time). Its `key` is therefore what results are
stored under.
"""

import dataclasses
import enum
import functools

from conformance.model import digest
from conformance.model.metrics import METRICS
from conformance.model.setting import Setting


@dataclasses.dataclass(frozen=True, kw_only=True)
class Scheme:
    """Algorithm, implementation and version under test, e.g. bbrv1/linux-tcp/6.12.117."""

    algorithm: str
    stack: str
    stack_version: str
    stack_digest: str
    kernel: str
    kernel_release: str
    kernel_digest: str

    @property
    def id(self):
        return f"{self.algorithm}/{self.stack}/{self.kernel_release}"


@functools.lru_cache(maxsize=4096)
def _canonical(part):
    """What of a Setting or a Scheme goes into keys. Remembered: reports ask for the keys of ten thousands of trials."""
    if isinstance(part, Setting):
        return digest.canonical(part.to_json())
    # Names and versions are for people; digests say what really ran.
    names = ("kernel", "kernel_release", "stack_version")
    return digest.canonical({k: v for k, v in dataclasses.asdict(part).items() if k not in names})


@dataclasses.dataclass(frozen=True, kw_only=True)
class Trial:
    """One transfer to be made. `lab_digest` covers the suite's own code that runs in the guest."""

    setting: Setting
    scheme: Scheme
    seed: int
    room: str
    lab_digest: str

    @property
    def key(self):
        rest = digest.canonical([self.seed, self.room, self.lab_digest])
        return digest.of_bytes(f"[{_canonical(self.setting)},{_canonical(self.scheme)},{rest[1:]}".encode())

    def to_json(self):
        return {
            "setting": self.setting.to_json(),
            "scheme": dataclasses.asdict(self.scheme),
            "seed": self.seed,
            "room": self.room,
            "lab_digest": self.lab_digest,
        }

    @classmethod
    def from_json(cls, data):
        return cls(
            setting=Setting.from_json(data["setting"]),
            scheme=Scheme(**data["scheme"]),
            seed=data["seed"],
            room=data["room"],
            lab_digest=data["lab_digest"],
        )


class Outcome(enum.StrEnum):
    """How a trial ended. Only OK and TIMEOUT say anything about the stack's congestion control."""

    OK = "ok"
    #: the transfer was still running when its virtual time was over: utilization is an upper bound
    TIMEOUT = "timeout"
    #: the stack does not offer this algorithm (exit status 127, or the kernel lacks it)
    UNSUPPORTED = "unsupported"
    #: the emulator, the guest or the adapter failed: nothing is known about the stack
    ERROR = "error"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Measurement:
    """A Trial and what was seen. `metrics` and `evidence` are empty where the outcome is not OK or TIMEOUT."""

    trial: Trial
    outcome: Outcome
    message: str | None = None
    metrics: dict = dataclasses.field(default_factory=dict)
    evidence: dict = dataclasses.field(default_factory=dict)
    host: dict = dataclasses.field(default_factory=dict)

    def to_json(self):
        return {
            "schema": "measurement/1",
            "key": self.trial.key,
            "trial": self.trial.to_json(),
            "outcome": str(self.outcome),
            "message": self.message,
            "metrics": self.metrics,
            "evidence": self.evidence,
            "host": self.host,
        }

    @classmethod
    def from_json(cls, data):
        return cls(
            trial=Trial.from_json(data["trial"]),
            outcome=Outcome(data["outcome"]),
            message=data["message"],
            metrics=data["metrics"],
            evidence=data["evidence"],
            host=data["host"],
        )

    @property
    def utilization(self):
        """Goodput over bottleneck bandwidth, or None; an upper bound where the outcome is TIMEOUT."""
        return self.metrics.get("utilization")

    @property
    def setting(self) -> Setting:
        return self.trial.setting

    def value(self, metric: str) -> float | None:
        """Return the value of a metric by its name in the table (model/metrics.py), or None where it was not seen."""
        return METRICS[metric].of(self)
