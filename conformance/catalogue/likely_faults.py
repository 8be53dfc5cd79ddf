"""Name the likeliest faults of a BBRv3 from what clauses measured of it: each is a deviation of the adapter `document`.

Their signatures are plays of the document's stack in the networks of clauses (clauses/plays.json, which
`tests/record_plays.py` writes). So what was measured of deviations in guests is no part of them. Where a fault stands
in the draft, the adapter's source says: each function cites its section.
"""

import dataclasses
import functools
import hashlib
import pathlib
import re
from collections.abc import Mapping

from conformance.catalogue import clauses, deviation_record, deviations
from conformance.catalogue.deviation_record import HONEST
from conformance.model import digest as digests
from conformance.model.clauses import faults
from conformance.model.clauses.document import Clause
from conformance.model.clauses.faults import ClauseShares
from conformance.model.groups import grouped
from conformance.model.judging import statistics
from conformance.support import paths, record
from conformance.support.record import KeptDocument

#: a section of the draft in the comment above a function; a switch in a function's body
_SECTION, _SWITCH = re.compile(r"\s*///.*?(?<![\w.])(\d+(?:\.\d+)+)"), re.compile(r'"([a-z0-9.-]+)"')
#: what a line of a list says beside names
_SAID = re.compile(rb" # .*")
#: numbers of a section that are its chapter: 5.3.3 is ProbeBW, of which 5.3.3.9 has the code
_CHAPTER = 3
#: the most faults that a line names
_MOST = 3


class ClausePlays(KeptDocument):
    """What clauses measure of plays of the adapter `document` and its deviations (clauses/plays.json)."""

    SCHEMA = "clause-plays"

    #: The digest of the sources that were played.
    of: str
    #: By deviation, as adapters/document/src/deviations.txt names it, or `honest` for none; and by clause, where it
    #: differs from `honest`; null where it shows nothing.
    plays: dict[str, dict[str, float | None]]


def path() -> pathlib.Path:
    """Return where the plays are."""
    return paths.data("clauses", "plays.json")


def _sources() -> list[pathlib.Path]:
    return sorted(
        file for file in paths.data("adapters", "document", "src").rglob("*") if file.suffix in (".rs", ".txt")
    )


def digest() -> str:
    """Return the digest of what is played: the sources, the networks, and what states and clauses read of packets."""
    model = paths.PACKAGE / "model"
    readers = [model / "captures" / "states.py", *sorted((model / "clauses").glob("observables*.py"))]
    # What a list says about a deviation or a version plays nothing.
    played = b"".join(
        _SAID.sub(b"", file.read_bytes()) if file.suffix == ".txt" else file.read_bytes()
        for file in (*_sources(), *readers)
    )
    networks = {
        of: [clause.observable.name, clauses.setting(clause.network).to_json()] for of, clause in _draft().items()
    }
    return digests.of_value([hashlib.sha256(played).hexdigest(), networks])


@functools.cache
def plays() -> Mapping[str, Mapping[str, float]]:
    """Return {deviation, or HONEST: what clauses measured of its play}. Raises UserError."""
    recorded = record.read(ClausePlays, path()).plays
    merged = {name: {**recorded[HONEST], **differing} for name, differing in recorded.items()}
    return {
        name: {of: amount for of, amount in of_play.items() if amount is not None} for name, of_play in merged.items()
    }


@functools.cache
def _draft() -> Mapping[str, Clause]:
    specification = clauses.first_for("bbrv3")
    assert specification is not None  # it ships
    return {clause.id: clause for clause in specification.clauses}


def _shares(measured: Mapping[str, float], of_document: Mapping[str, float]) -> ClauseShares:
    by_id = _draft()
    return {
        of: faults.share(by_id[of].bound, amount, of_document[of])
        for of, amount in measured.items()
        if of in of_document and of in by_id
    }


@functools.cache
def _signatures() -> Mapping[str, ClauseShares]:
    """Return {deviation: ClauseShares of its play}. Of pairs of deviations, both are found alone."""
    honest = plays()[HONEST]
    return {name: _shares(of_play, honest) for name, of_play in plays().items() if name != HONEST and "+" not in name}


@functools.cache
def sections() -> Mapping[str, str]:
    """Return {deviation: the draft's first section whose function has its switch}."""
    by_switch: dict[str, str] = {}
    for file in _sources():
        if file.suffix != ".rs" or file.parent.name == "play":
            continue
        section = ""
        for line in file.read_text(encoding="utf-8").splitlines():
            if match := _SECTION.match(line):
                section = match[1]
            for switch in _SWITCH.findall(line) if section else ():
                by_switch[switch] = min(by_switch.get(switch, section), section)
    return {
        name: by_switch[deviation.switches[0]]
        for name, deviation in deviations.load().items()
        if deviation.switches[0] in by_switch
    }


def chapter(section: str) -> str:
    """Return the chapter of a section: 5.3.3 of 5.3.3.9."""
    return ".".join(section.split(".")[:_CHAPTER])


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LikelyFaults:
    """Deviations in one chapter of the draft, the likeliest first, and the violated clauses that they explain."""

    chapter: str
    names: tuple[str, ...]
    clauses: tuple[str, ...]

    def __str__(self) -> str:
        each, at = deviations.load(), sections()
        where = ", ".join(dict.fromkeys(at[name] for name in self.names))
        return f"{where}: {'; or '.join(str(each[name]) for name in self.names)}: {', '.join(self.clauses)}"


def ranked(measured: Mapping[str, float]) -> list[faults.Explanation]:
    """Return the faults that explain {clause's id: what it measured}, the likeliest first. Raises UserError."""
    honest = {of: statistics.median(amounts) for of, amounts in deviation_record.load()[HONEST].items()}
    return faults.likeliest(_shares(measured, honest), _signatures())


def by_chapter(measured: Mapping[str, float]) -> list[LikelyFaults]:
    """Return the same by the draft's chapters, with the first three faults of each. Raises UserError."""
    by = grouped((chapter(sections()[explanation.fault]), explanation) for explanation in ranked(measured))
    return [
        LikelyFaults(
            chapter=of, names=tuple(explanation.fault for explanation in explanations[:_MOST]),
            clauses=tuple(dict.fromkeys(id_ for explanation in explanations[:_MOST] for id_ in explanation.clauses)),
        )
        for of, explanations in by.items()
    ]  # fmt: skip
