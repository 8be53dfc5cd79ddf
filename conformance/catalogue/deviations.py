"""Read the deviations of the adapter `document`: faults that BBRs have or had, each of which it can be told to have."""

import dataclasses
import functools

from conformance.support import paths


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Deviation:
    """A fault of the draft's sender, or two at once: `no-headroom`."""

    name: str
    #: What it switches in the adapter's source.
    switches: tuple[str, ...]
    #: What the sender does: `CRUISE leaves no headroom`. Empty for two at once, which say this alone.
    does: str
    #: The stacks and versions that have or had it; empty if none is known.
    stacks: str
    #: The file or the page that says so.
    source: str

    def __str__(self) -> str:
        stacks = f", as in {self.stacks}" if self.stacks else ""
        return f"{self.does} ({self.name}{stacks})"


@functools.cache
def load() -> dict[str, Deviation]:
    """Return {name: Deviation}, as the adapter's deviations.txt lists them."""
    text = paths.data("adapters", "document", "src", "deviations.txt").read_text(encoding="utf-8")
    return {deviation.name: deviation for deviation in map(_deviation, text.splitlines())}


def _deviation(line: str) -> Deviation:
    head, _, about = line.partition(" # ")
    name, *switched = head.split()
    does, stacks, source = (part.strip() for part in about.split("|"))
    switches = tuple(switch.split("=")[0] for switch in switched) or (name,)
    return Deviation(name=name, switches=switches, does=does, stacks=stacks, source=source)
