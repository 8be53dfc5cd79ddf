"""Judge the clauses of the adapter contract by what the probes saw (conformance/guest/probe.py)."""

import dataclasses
import json
from collections.abc import Iterator, Mapping

from conformance.model.emulation import client_report, facts as trial_facts, request_facts
from conformance.model.emulation.credibility import Facts
from conformance.model.networks.flow_group import Flows, Request
from conformance.model.trials.trial import Outcome, Trial

#: length in bytes of a run of equal bytes that means plain text if most frames have one: a body of zeros sent in the
#: clear has such runs in most frames, the padding of a handshake in only one or two
_PLAIN_RUN_BYTES = 16
_UNSUPPORTED = 127
#: the first version of the contract that has several requests on one connection
_WITH_REQUESTS = 2
#: the lowest HTTP status that means that a request failed
_CLIENT_ERROR = 400


@dataclasses.dataclass(frozen=True, kw_only=True)
class ContractClause:
    """The judgment of a clause. `kept` is None if that is left open, as the clause was not tried or does not apply.

    `what` says what was seen, or why it is left open.
    """

    name: str
    kept: bool | None
    what: str


def clauses(
    probes: Mapping[str, Facts], trial: Trial, network: Facts, own_algorithms: bool, version: int
) -> list[ContractClause]:
    """Judge every clause. `probes`: {name of a probe: its facts}; `trial`: the Trial that the transfer amounts to.

    `own_algorithms`: whether the stack brings its own congestion control, and so must know which algorithms it has.
    `version`: the version of the contract that server and client both keep, according to their manifests.
    """
    return [
        _unknown(probes["unknown_algorithm"], own_algorithms),
        *_transfer(probes["transfer"], trial, network),
        _must_fail("a client whose port nobody listens on fails", probes["wrong_port"]),
        _must_fail("a client that trusts another authority refuses the server", probes["wrong_authority"]),
        _must_fail("a client whose server is killed fails", probes["server_killed"]),
        *_visits(probes["visits"]),
        _several(probes["visits"], version),
        _ends(probes["server_ends"]),
    ]


def _unknown(facts: Facts, own_algorithms: bool) -> ContractClause:
    name = "an unknown algorithm ends with status 127"
    if not own_algorithms:
        return ContractClause(name=name, kept=None, what="the harness sets the kernel's algorithm")
    statuses = [process["exit_status"] for process in (facts.get("server"), facts.get("client")) if process]
    if _UNSUPPORTED in statuses:
        return ContractClause(name=name, kept=True, what="127")
    how = "it was ready to serve" if facts["ready"] else "it was never ready to serve"
    return ContractClause(name=name, kept=False, what=f"{how}: {', '.join(map(_status, statuses))}")


def _transfer(facts: Facts, trial: Trial, network: Facts) -> Iterator[ContractClause]:
    """Judge the transfer itself, its report, its encryption and what it leaves behind."""
    uncalibrated = dict.fromkeys(("rate_mbps", "delays_ms", "loss_sent", "loss_lost"))
    measured = trial_facts.measurement(trial, facts, {**network, "calibration": [uncalibrated]}, {})
    ok = measured.outcome is Outcome.OK
    yield ContractClause(
        name="a transfer works, and its report agrees with counters and clock", kept=ok,
        what="{bytes} bytes in {completion_s:.3f} s".format(**measured.metrics) if ok else measured.message or "",
    )  # fmt: skip
    if not ok:
        for name in ("bytes on the wire are encrypted", "nothing is written outside the scratch folder"):
            yield ContractClause(name=name, kept=None, what="there is no transfer to examine")
        return
    frames = facts["frames"]
    yield ContractClause(
        name="bytes on the wire are encrypted",
        kept=frames["median_run"] < _PLAIN_RUN_BYTES if frames["frames"] else None,
        what=f"longest run of equal bytes in a frame: {frames['median_run']} (median of {frames['frames']} frames)",
    )
    outside = facts["written_outside"]
    yield ContractClause(
        name="nothing is written outside the scratch folder", kept=not outside, what=", ".join(outside) or "nothing"
    )


def _must_fail(name: str, facts: Facts) -> ContractClause:
    if not facts["ready"]:
        return ContractClause(name=name, kept=None, what="the server was never ready")
    if facts.get("early") is not None:
        return ContractClause(name=name, kept=None, what="the transfer was over too soon")
    if not facts["ended"]:
        return ContractClause(name=name, kept=False, what="it was still running minutes later")
    status, claimed = facts["client"]["exit_status"], _claims_a_result(facts["client"]["stdout"])
    kept = status != 0 and not claimed
    return ContractClause(
        name=name, kept=kept, what=_status(status) + (", and it printed a result line" if claimed else "")
    )


def _visits(facts: Facts) -> Iterator[ContractClause]:
    """Judge how one server answers several clients, one after another and at the same time."""
    names = (
        "a path that is not a file is answered with an error",
        'a path with ".." leads nowhere',
        "a transfer works after an earlier one was broken off",
        "two transfers work side by side",
    )
    if not facts["ready"]:
        yield from (ContractClause(name=name, kept=None, what="the server was never ready") for name in names)
        return
    missing, dotted, whole = facts["missing"], facts["status_of_dotted"], facts["whole"]
    yield _must_fail(names[0], {"ready": True, "ended": missing["exit_status"] is not None, "client": missing})
    yield ContractClause(
        name=names[1],
        kept=None if dotted is None else dotted >= _CLIENT_ERROR,
        what="tried only if the server answers HTTP/1.1" if dotted is None else f"it was answered with {dotted}",
    )
    yield _must_work(names[2], whole)
    yield _must_work(names[3], *facts["side_by_side"])


def _must_work(name: str, *visits: Facts) -> ContractClause:
    claims = [_claims_a_result(visit["stdout"]) for visit in visits]
    ends = [visit["exit_status"] for visit in visits]
    said = [
        _status(end) + ("" if claimed or end != 0 else " without a result line")
        for end, claimed in zip(ends, claims, strict=True)
    ]
    return ContractClause(name=name, kept=all(claims) and set(ends) == {0}, what=" and ".join(said))


def _claims_a_result(text: str) -> bool:
    try:
        return "completion_s" in json.loads(text.strip().splitlines()[-1])
    except (ValueError, IndexError, TypeError, RecursionError):
        return False


def _several(facts: Facts, version: int) -> ContractClause:
    """Judge several requests on one connection. Contract 1 does not require them: for it, only say what happened."""
    name = "several requests on one connection are answered"
    if not facts["ready"]:
        return ContractClause(name=name, kept=None, what="the server was never ready")
    client = facts["several"]
    requests = tuple(map(Request.parse, facts["requested"]))
    report = client_report.report_of(client["stdout"])
    if client["exit_status"] != 0:
        problem = f"the client ended with {_status(client['exit_status'])}{client_report.said(client)}"
    elif report is None:
        problem = "the client printed no valid result line"
    else:
        lie = request_facts.lie(Flows(name="several", ends=("client", "server"), requests=requests), report)
        problem = f"the client {lie}" if lie else ""
    if not problem:
        beyond = f"; contract {_WITH_REQUESTS} asks for no more" if version < _WITH_REQUESTS else ""
        return ContractClause(name=name, kept=True, what=f"{len(requests)} bodies, with a pause of a second{beyond}")
    if version < _WITH_REQUESTS:
        return ContractClause(name=name, kept=None, what=f"contract {version} does not require it: {problem}")
    return ContractClause(name=name, kept=False, what=problem)


def _ends(facts: Facts) -> ContractClause:
    name = "a server ends within a second of SIGTERM"
    if not facts["ready"]:
        return ContractClause(name=name, kept=None, what="the server was never ready")
    return ContractClause(
        name=name, kept=facts["ended"], what=f"{facts['after_s']:.2f} s" if facts["ended"] else "it did not"
    )


def _status(status: int | None) -> str:
    return "still running" if status is None else f"status {status}"
