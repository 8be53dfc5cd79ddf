"""Define Scheme, Trial and Measurement: what is tested, one run of it, and what came out.

A Trial is a pure function of its fields: where a stack's programs and libraries are the same, the same Trial gives the
same Measurement, byte for byte, apart from `host`, which holds what depends on the machine (wall time). So results are
stored under its `key`.
"""

import dataclasses
import enum
import functools
import re
from collections.abc import Mapping, Sequence
from typing import Any, Self

from conformance.model import digest
from conformance.model.metrics.table import METRICS
from conformance.model.networks.setting import Setting

#: separator in a stack's version before the name of a client that is not the stack's own
CLIENT = "; client "
#: the same with the name that follows; a stack's own text may mention a client, too
_OTHER_CLIENT = re.compile(rf"{CLIENT}(\S+)(?: \(|$)")
#: separator before the working trees that a stack was built with (quinn-proto@1a2b3c, ...); they come before a client
WITH_TREES = "; with "
#: the name of the adapter of the kernel's own TCP; its variants are linux-tcp-h2, ...
KERNEL_STACK = "linux-tcp"
#: what counts as a version in a stack's own text: 0.11.19, v1.40, 1.1.1w, that of kwik-0.10.8; not the 9 of libngtcp2-9
_VERSION = re.compile(
    r"(?<![\w.+~-])(?:(?P<name>[A-Za-z]\w*(?:-[A-Za-z]\w*)*)-)?"
    r"v?(?P<version>\d{1,10}(?:\.\d{1,10}){1,3}[a-z0-9]{0,8})(?![\w.])"
)
_WORD = re.compile(r"[A-Za-z]{3,}")
#: digits of a digest that are enough to tell a few builds apart
SHORT_DIGEST = 8


#: the version at the end of a stack's name: ngtcp2-1.11 is another version of the stack ngtcp2
_OF_VERSION = re.compile(r"-\d[\d.]*$")


def family_of(stack: str) -> str:
    """Return the name of a stack without its version."""
    return _OF_VERSION.sub("", stack)


def is_version(text: str) -> bool:
    """Return whether what a stack says can be its version, and is not a shell's message that a program is missing."""
    return "not found" not in text


def is_in_kernel(stack: str) -> bool:
    """Return whether a stack of this name is the kernel's TCP."""
    return stack == KERNEL_STACK or stack.startswith(f"{KERNEL_STACK}-")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Scheme:
    """What is under test: an algorithm, its implementation and that implementation's version.

    The kernel's TCP has the kernel's version, such as bbrv1/linux-tcp/6.12.117. A stack in user space has its own, such
    as cubic/quinn/0.11.19, whatever kernel carries its packets.
    """

    SHOWN = ("id", "algorithm", "stack", "stack_version", "stack_digest", "kernel_release", "kernel_digest")

    algorithm: str
    stack: str
    stack_version: str
    stack_digest: str
    kernel: str
    kernel_release: str
    kernel_digest: str

    @property
    def id(self) -> str:
        """It is algorithm/stack/version."""
        return f"{self.algorithm}/{self.stack}/{self.version}"

    @property
    def in_kernel(self) -> bool:
        """Whether the kernel's TCP is under test.

        Result lines do not say so, and those of older labs never will. So the adapter's name decides, here and nowhere
        else.
        """
        return is_in_kernel(self.stack)

    @property
    def version(self) -> str:
        """The version of the implementation, short: the kernel's release, or the stack's own.

        What a stack says of its version is untrusted, long, and names libraries, too. The version is what looks like
        one after a word of the stack's name, else the first that looks like one, else the stack's digest, which tells
        builds apart.
        """
        if self.in_kernel:
            return self.kernel_release
        stated = self.stack_version.split(CLIENT)[0].split(WITH_TREES)[0]
        matches = _VERSION.finditer(stated)
        versions = [(m["version"], (stated[: m.start()] + (m["name"] or "")).lower()) for m in matches]
        names = [word.lower() for word in _WORD.findall(self.stack)]
        behind = [(version, (before.split(",")[-1].split() or [""])[-1]) for version, before in versions]
        by_name = [version for version, word in behind if word in (*names, self.stack)]
        by_part = [version for version, word in behind if any(name in word for name in names)]
        version = next(
            iter((*by_name, *by_part, *(version for version, _ in versions))), self.stack_digest[:SHORT_DIGEST]
        )
        # Another version of the part that has the stack's name is the stack's version.
        parts = [tree.partition("@") for tree in self.trees]
        version = next((at.removeprefix("v") for name, _, at in parts if name == self.stack and "." in at), version)
        return "+".join((version, *(f"{name}@{at}" for name, _, at in parts if name != self.stack or "." not in at)))

    @property
    def client(self) -> str | None:
        """The name of the adapter whose client fetched; None if that was the stack's own client."""
        other = _OTHER_CLIENT.search(self.stack_version)
        return other and other[1]

    @property
    def client_and_version(self) -> str | None:
        """The client's name ("own": the stack's), with the version of ngtcp2 if stated; None if nothing is said."""
        if CLIENT not in self.stack_version:
            return None
        stated = self.stack_version.rpartition(f"{CLIENT}{self.client or ''}")[2].split(", ")
        versions = (_VERSION.search(part) for part in stated if "ngtcp2" in part)
        return " ".join((self.client or "own", *(version["version"] for version in versions if version)))

    @property
    def not_offered(self) -> str:
        """How the message begins of a trial in which a program ended with status 127."""
        return f"{self.stack} does not offer {self.algorithm}"

    @property
    def trees(self) -> tuple[str, ...]:
        """The working trees that the stack was built with, such as quinn-proto@1a2b3c; none if it is a release."""
        trees = self.stack_version.split(CLIENT)[0].partition(WITH_TREES)[2]
        return tuple(filter(None, trees.split(", ")))


@functools.lru_cache(maxsize=4096)
def _canonical(part: Setting | Scheme) -> str:
    """Return the canonical JSON of what goes into keys of a Setting or a Scheme.

    It is cached, as reports ask for the keys of tens of thousands of trials.
    """
    if isinstance(part, Setting):
        return digest.canonical(part.to_json())
    # Names and versions are for people; digests say what really ran.
    names = ("kernel", "kernel_release", "stack_version")
    return digest.canonical({k: v for k, v in dataclasses.asdict(part).items() if k not in names})


#: (scheme, room, version of the lab): trials with the same are judged together
RunKey = tuple[Scheme, str, str]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Trial:
    """One transfer to be made. `lab_digest` covers the suite's own code that runs in the guest."""

    setting: Setting
    scheme: Scheme
    seed: int
    room: str
    lab_digest: str

    @property
    def run(self) -> RunKey:
        """What trials must have in common to be judged together: scheme, room and version of the lab."""
        return self.scheme, self.room, self.lab_digest

    @property
    def key(self) -> str:
        rest = digest.canonical([self.seed, self.room, self.lab_digest])
        return digest.of_bytes(f"[{_canonical(self.setting)},{_canonical(self.scheme)},{rest[1:]}".encode())

    def to_json(self) -> dict[str, Any]:
        return {
            "setting": self.setting.to_json(),
            "scheme": dataclasses.asdict(self.scheme),
            "seed": self.seed,
            "room": self.room,
            "lab_digest": self.lab_digest,
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        return cls(
            setting=Setting.from_json(document["setting"]),
            scheme=Scheme(**document["scheme"]),
            seed=document["seed"],
            room=document["room"],
            lab_digest=document["lab_digest"],
        )


class Outcome(enum.StrEnum):
    """How a trial ended. Only OK and TIMEOUT say anything about the stack's congestion control.

    FAILED says that the stack does not do its work there, if another stack does (model/judging/failing.py).
    """

    OK = "ok"
    #: the transfer was still running when its virtual time was over: utilization is an upper bound
    TIMEOUT = "timeout"
    #: the stack's programs ended, broke off or stayed silent although the emulator is sound: see Control
    FAILED = "failed"
    #: the stack does not offer this algorithm (exit status 127, or the kernel lacks it)
    UNSUPPORTED = "unsupported"
    #: the emulator, the guest or the adapter failed: nothing is known about the stack
    ERROR = "error"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Control:
    """Whether another stack gets through a network in which this one failed: one of the same transport, with the same
    client if that is not the stack's own.

    `trials`: {seed: Outcome} of its trials in the same setting, among them the one with the failed trial's seed.
    """

    scheme: str
    trials: Mapping[int, Outcome]

    @property
    def failures(self) -> frozenset[int]:
        """The seeds with which it does not get through either."""
        return frozenset(seed for seed, outcome in self.trials.items() if outcome not in (Outcome.OK, Outcome.TIMEOUT))

    def to_json(self) -> dict[str, Any]:
        return {"scheme": self.scheme, "trials": {str(seed): str(outcome) for seed, outcome in self.trials.items()}}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        trials = {int(seed): Outcome(outcome) for seed, outcome in document["trials"].items()}
        return cls(scheme=document["scheme"], trials=trials)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Measurement:
    """A Trial and what was seen.

    `metrics` (of all judged flows together), `flows` and `links` are empty unless the outcome is OK or TIMEOUT.
    """

    trial: Trial
    outcome: Outcome
    message: str | None = None
    metrics: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    evidence: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    host: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    #: a record for each flow, and one for each direction of each link
    flows: Sequence[Mapping[str, Any]] = ()
    links: Sequence[Mapping[str, Any]] = ()
    #: if the setting asks for them: the packets of the tested group's first flow (model/captures/packets.py)
    packets: Mapping[str, Any] | None = None
    #: if the stack failed and there is another stack: what became of that one
    control: Control | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "schema": "measurement/1",
            "key": self.trial.key,
            "trial": self.trial.to_json(),
            "outcome": str(self.outcome),
            "message": self.message,
            "metrics": self.metrics,
            "evidence": self.evidence,
            "host": self.host,
            "flows": list(self.flows),
            "links": list(self.links),
            **({} if self.packets is None else {"packets": self.packets}),
            **({} if self.control is None else {"control": self.control.to_json()}),
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        return cls(
            trial=Trial.from_json(document["trial"]),
            outcome=Outcome(document["outcome"]),
            message=document["message"],
            metrics=document["metrics"],
            evidence=document["evidence"],
            host=document["host"],
            flows=tuple(document.get("flows", ())),
            links=tuple(document.get("links", ())),
            packets=document.get("packets"),
            control=Control.from_json(document["control"]) if "control" in document else None,
        )

    @property
    def utilization(self) -> float | None:
        """Goodput over bottleneck bandwidth, or None; an upper bound if the outcome is TIMEOUT."""
        return self.value("utilization")

    @property
    def never_came(self) -> bool:
        """Whether the schedule waited for a state that never began: no error, but the trial shows nothing."""
        return "never_came" in self.evidence

    @property
    def settled(self) -> bool:
        """Whether the trial need not be made again: nothing went wrong but the stack, and another stack was tried."""
        is_made_again = self.outcome is Outcome.ERROR or (self.outcome is Outcome.FAILED and self.control is None)
        return self.never_came or not is_made_again

    @property
    def offers(self) -> bool | None:
        """Whether the stack offers the algorithm, as far as this trial tells."""
        if self.outcome is Outcome.UNSUPPORTED and (self.message or "").startswith(self.scheme.not_offered):
            return False
        return None if self.outcome in (Outcome.UNSUPPORTED, Outcome.ERROR) else True

    @property
    def counted(self) -> bool:
        """Whether it says what was counted beside its metrics; lines that were published for a study do not."""
        return bool(self.evidence) or any(flow.get("arrived_packets") is not None for flow in self.flows)

    @property
    def setting(self) -> Setting:
        return self.trial.setting

    @property
    def scheme(self) -> Scheme:
        return self.trial.scheme

    @property
    def packet_bytes(self) -> float | None:
        """Mean payload of the packets that reached the client, in bytes; None if packets were not counted."""
        flow = next((flow for flow in self.flows if flow["judged"]), {})
        size, packets = flow.get("bytes"), flow.get("arrived_packets")
        return size / packets if size and packets else None

    def value(self, metric: str) -> float | None:
        """Return the value of a metric by its name in the table (table.py), or None if it was not seen."""
        return METRICS[metric].value(self)
