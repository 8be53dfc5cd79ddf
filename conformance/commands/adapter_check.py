"""`conformance adapter check`: does an adapter keep the contract? A verdict for each clause."""

import rich.table
import rich.text

from conformance.catalogue import documents
from conformance.engine import benches
from conformance.guest import protocol, wire
from conformance.lab import job, virtual
from conformance.model.emulation import contract
from conformance.model.errors import UserError
from conformance.model.setting import Cell

_CELL, _TRANSFER_S = Cell(10, 20, 0), 4
_WALL_TIMEOUT_S = 300


def run(choice, algorithm, console):
    """Probe and show; returns the exit status: 0 every clause is kept, 1 one is broken, 3 nothing is known."""
    bench = benches.find(choice)
    algorithm = algorithm or bench.adapter.first_algorithm()
    if why_not := bench.adapter.why_not(algorithm):
        raise UserError(why_not, "name one that it has with --cca")
    place = bench.place(algorithm)
    if place.why_not:
        raise UserError(place.why_not)
    (trial,) = bench.trials(algorithm, documents.profile(bench.profile, _CELL, transfer_s=_TRANSFER_S), [1])
    with virtual.one_guest(place.kernel, bench.adapter, [[trial]], probe=True) as (guest, scratch):
        events = list(virtual.events(guest, scratch, _WALL_TIMEOUT_S))
        console_text = (scratch / "console.log").read_text(errors="replace")
    faults = [e.message for e in events if isinstance(e, protocol.Fault | protocol.Unsupported)]
    network = next((e for e in events if isinstance(e, protocol.Network)), None)
    if faults or network is None or not any(isinstance(e, protocol.End) for e in events):
        last = faults or console_text.strip().splitlines()[-1:] or ["the guest said nothing"]
        console.print(f"error: {last[0]}", soft_wrap=True)
        return 3
    found = contract.clauses(job.probed(events), trial, wire.to_json(network), bench.adapter.kernel_algorithms is None)
    _show(found, bench.scheme(algorithm), console)
    return 1 if any(clause.kept is False for clause in found) else 0


def _show(clauses, scheme, console):
    table = rich.table.Table(title=f"{scheme.stack} ({scheme.stack_version}), {scheme.algorithm}", title_justify="left")
    for name in ("clause", "kept", "seen"):
        table.add_column(name)
    for clause in clauses:
        mark = {True: ("yes", "green"), False: ("NO", "red"), None: ("not tried", "yellow")}[clause.kept]
        table.add_row(clause.name, rich.text.Text(*mark), clause.what)
    console.print(table)
