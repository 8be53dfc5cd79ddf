"""`conformance adapter check`: check whether an adapter keeps the contract, clause by clause."""

import dataclasses
from typing import Annotated

from conformance.catalogue import documents
from conformance.commands.result import Result
from conformance.commands.status import ExitStatus
from conformance.engine import benches
from conformance.engine.benches import Choice
from conformance.guest import protocol, wire
from conformance.lab import job, reader, virtual
from conformance.lab.adapter import Adapter
from conformance.lab.manifest import SEVERAL_REQUESTS
from conformance.model.emulation import contract
from conformance.model.emulation.contract import ContractClause
from conformance.model.errors import UserError
from conformance.model.networks.place import Cell
from conformance.model.trials.trial import Scheme
from conformance.support.record import At, Record

_CELL, _TRANSFER_S = Cell(10, 20, 0), 4
_WALL_TIMEOUT_S = 300


class ContractClauseRecord(Record):
    clause: Annotated[str, At("name")]
    #: Null if it was not tried, or does not apply.
    kept: bool | None
    seen: Annotated[str, At("what")]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CheckedAdapter(Result):
    """The clauses of the contract, and whether the adapter keeps each."""

    SCHEMA = "adapter-check"

    scheme: Scheme
    clauses: Annotated[tuple[ContractClause, ...], list[ContractClauseRecord]] = ()
    #: Why no conclusion is possible, or null.
    fault: str | None = None

    @property
    def exit_status(self) -> ExitStatus:
        """DONE if every clause that was tried is kept, VIOLATES if one is broken, ERROR if nothing is known."""
        if self.fault is not None:
            return ExitStatus.ERROR
        broken = any(clause.kept is False for clause in self.clauses)
        return ExitStatus.VIOLATES if broken else ExitStatus.DONE


def compute(choice: Choice, algorithm: str | None) -> CheckedAdapter:
    """Try an adapter with an algorithm, by default with the first that it offers. Raises UserError."""
    bench = benches.find(choice)
    algorithm = algorithm or bench.adapter.first_algorithm()
    if why_not := bench.adapter.why_not(algorithm):
        raise UserError(why_not, "choose another with --algorithm")
    place = bench.place(algorithm)
    if place.why_not:
        raise UserError(place.why_not)
    scheme = bench.scheme(algorithm)
    (trial,) = bench.trials(algorithm, documents.profile(bench.profile, _CELL, transfer_s=_TRANSFER_S), [1])
    with virtual.one_guest(place.kernel, bench.adapter, trial, probe=True) as (guest, scratch):
        job.Feeder(scratch).feed_all([job.cell_of([trial])])
        events = list(virtual.events(guest, scratch, _WALL_TIMEOUT_S))
        console_text = (scratch / "console.log").read_text(errors="replace")
    faults = [e.message for e in events if isinstance(e, protocol.Fault | protocol.Unsupported)]
    network = next((e for e in events if isinstance(e, protocol.NetworkUp)), None)
    if faults or network is None or not any(isinstance(e, protocol.End) for e in events):
        last = faults or console_text.strip().splitlines()[-1:] or ["the guest printed nothing"]
        return CheckedAdapter(scheme=scheme, fault=str(last[0]))
    has_algorithms = bench.adapter.kernel_algorithms is None
    clauses = contract.clauses(
        reader.probed(events), trial, wire.to_json(network), has_algorithms, _version(bench.adapter)
    )
    return CheckedAdapter(scheme=scheme, clauses=tuple(clauses))


def _version(adapter: Adapter) -> int:
    """Return the highest version of the contract that both the server and the client that fetches from it keep."""
    if adapter.client is None:
        # If the manifest names another client for fetching, the stack's own need not keep the second version.
        return min(adapter.manifest.contract, SEVERAL_REQUESTS - 1 if adapter.manifest.client else SEVERAL_REQUESTS)
    return min(adapter.manifest.contract, adapter.client.manifest.contract)
