"""The adapter contract's clauses, from facts to verdicts, and once with a real guest."""

import copy
import types

import pytest
from helpers import facts, process, shown, trial

from conformance.commands import adapter_check
from conformance.commands.result import printed
from conformance.engine import benches
from conformance.model.emulation import contract
from conformance.reporting.text import setup
from conformance.support import paths, schema

RELABELLED = str(paths.PACKAGE.parent / "tests" / "stacks" / "relabelled" / "adapter.json")
NETWORK = {"kernel": "6.12.0", "sysctls": {}, "offload": {}}


RESULT = '{"bytes": 12500000, "completion_s": 1.0, "handshake_s": null}\n'
SEVERAL = (
    '{"bytes": 150000, "completion_s": 1.5, "handshake_s": 0.1, "requests": '
    "[[20000, 0.1, 0.15, 0.19], [30000, 0.2, 0.25, 0.3], [100000, 1.3, 1.4, 1.5]]}"
)
GOOD = {
    "unknown_algorithm": {"ready": False, "server": process(127)},
    "transfer": {"frames": {"frames": 400, "median_run": 3}, "written_outside": []},
    "wrong_port": {"ready": True, "ended": True, "client": process(1), "server": process(-15)},
    "wrong_authority": {"ready": True, "ended": True, "client": process(1), "server": process(-15)},
    "server_killed": {"ready": True, "early": None, "ended": True, "client": process(1), "server": process(-9)},
    "visits": {
        "ready": True, "missing": process(1), "status_of_dotted": 404, "broken_off": process(None),
        "whole": process(0, RESULT), "side_by_side": [process(0, RESULT)] * 2, "server": process(-15),
        "several": process(0, SEVERAL), "requested": ["20000 every 0.1", "30000 pause 1", "100000 pause 0"],
    },
    "server_ends": {"ready": True, "ended": True, "after_s": 0.01, "server": process(0)},
}  # fmt: skip


def judged(own_algorithms=True, version=2, **changes):
    probes = copy.deepcopy(GOOD)
    for name, change in changes.items():
        probes[name].update(change)
    known = {name: probes["transfer"].pop(name) for name in ("ready", "server", "client") if name in probes["transfer"]}
    probes["transfer"] |= facts(**known)
    return contract.clauses(probes, trial(), NETWORK, own_algorithms, version)


def test_an_adapter_that_keeps_the_contract():
    found = judged()
    assert len(found) == 13
    assert all(clause.kept is True for clause in found), [c for c in found if not c.kept]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"unknown_algorithm": {"ready": True, "server": process(None), "client": process(0)}}, "ready to serve"),
        ({"unknown_algorithm": {"server": process(1)}}, "status 1"),
        ({"unknown_algorithm": {"server": process(None)}}, "it was never ready to serve: still running"),
        ({"transfer": {"client": process(3, stderr="no route")}}, "ended with status 3: no route"),
        ({"transfer": {"frames": {"frames": 400, "median_run": 1400}}}, "1400"),
        ({"transfer": {"written_outside": ["/tmp/evil"]}}, "/tmp/evil"),
        ({"wrong_port": {"client": process(0)}}, "status 0"),
        ({"wrong_port": {"ended": False, "client": process(None)}}, "still running"),
        ({"wrong_authority": {"client": process(0, RESULT)}}, "printed a result line"),
        ({"server_killed": {"client": process(1, RESULT)}}, "printed a result line"),
        ({"visits": {"missing": process(0)}}, "status 0"),
        ({"visits": {"missing": process(1, RESULT)}}, "printed a result line"),
        ({"visits": {"missing": process(None)}}, "still running"),
        ({"visits": {"status_of_dotted": 200}}, "answered with 200"),
        ({"visits": {"side_by_side": [process(0, RESULT), process(1)]}}, "status 0 and status 1"),
        ({"visits": {"side_by_side": [process(0), process(0, RESULT)]}}, "status 0 without a result line and status 0"),
        ({"visits": {"whole": process(1)}}, "status 1"),
        ({"visits": {"whole": process(0)}}, "status 0 without a result line"),
        ({"visits": {"whole": process(None)}}, "still running"),
        ({"visits": {"several": process(1, stderr="the server closed it")}}, "status 1: the server closed it"),
        ({"visits": {"several": process(0)}}, "printed no valid result line"),
        ({"visits": {"several": process(0, RESULT)}}, "reports one body, but 3 were requested"),
        ({"visits": {"several": process(0, SEVERAL.replace("1.3", "0.4"))}}, "made request 3 at 0.400 s, early"),
        ({"server_ends": {"ended": False}}, "it did not"),
    ],
)
def test_each_clause_can_be_broken(changes, words):
    broken = [clause for clause in judged(**changes) if clause.kept is False]
    assert len(broken) == 1
    assert words in broken[0].what


def test_what_could_not_be_tried_is_neither_kept_nor_broken():
    never = judged(wrong_port={"ready": False, "server": process(2)}, transfer={"ready": False, "server": process(2)})
    assert [clause.kept for clause in never].count(None) == 3
    assert [c.kept for c in judged(visits={"ready": False})].count(None) == 5
    assert [c.kept for c in judged(visits={"status_of_dotted": None})].count(None) == 1
    assert judged(own_algorithms=False)[0].kept is None
    assert [c.kept for c in judged(server_killed={"early": 0})].count(None) == 1
    assert [c.kept for c in judged(transfer={"frames": {"frames": 0, "median_run": None}})].count(None) == 1


def test_the_first_version_of_the_contract_asks_for_one_body_only():
    found = {clause.name: clause for clause in judged(version=1, visits={"several": process(0, RESULT)})}
    several = found["several requests on one connection are answered"]
    assert several.kept is None
    assert several.what.startswith("contract 1 does not require it: the client reports one body")
    assert "contract 2 asks for no more" in judged(version=1)[-2].what
    assert "contract 2" not in judged(version=2)[-2].what


@pytest.mark.parametrize(
    ("server", "named", "client", "version"),
    [(1, "h3-client", 2, 1), (2, "h3-client", 2, 2), (2, "other", 1, 1), (2, "h3-client", None, 1), (2, None, None, 2)],
)
def test_the_version_is_that_of_server_and_client(server, named, client, version):
    """If an adapter names another one's client, its own client follows the contract's first version."""
    other = client and types.SimpleNamespace(manifest=types.SimpleNamespace(contract=client))
    about = types.SimpleNamespace(contract=server, client=named)
    assert adapter_check._version(types.SimpleNamespace(manifest=about, client=other)) == version


def checked(stack):
    found = adapter_check.compute(benches.Choice(stack=stack), None)
    schema.check("adapter-check", printed(found), "adapter-check")
    return found.exit_status, shown(setup.show_clauses, found)


@pytest.mark.guest
@pytest.mark.parametrize("stack", ["linux-tcp", pytest.param(RELABELLED, marks=pytest.mark.thorough)])
def test_good_adapters_keep_every_clause(stack):
    status, text = checked(stack)
    assert status == 0, text
    assert "NO" not in text


@pytest.mark.guest
def test_a_careless_adapter_is_caught(tmp_path):
    """It uses no TLS, accepts any algorithm and any authority, and writes files where they do not belong."""
    folder = tmp_path / "careless"
    folder.mkdir(mode=0o755)
    (folder / "adapter.json").write_text(
        '{"contract": 1, "name": "careless", "title": "t", "program": "stack", "transport": "tcp",'
        ' "algorithms": {"cubic": {"called": "cubic", "evidence": "none"}}}'
    )
    program = folder / "stack"
    program.write_text(CARELESS)
    program.chmod(0o755)
    status, text = checked(str(folder / "adapter.json"))
    assert status == 1
    for words in ("it was ready to serve", "median of", "/tmp/careless", "printed a result line", "it did not"):
        assert words in text, text


CARELESS = r"""#!/usr/bin/python3 -IS
import os, signal, socket, sys, time
size, here = int(os.environ.get("CC_BYTES", 0)), (os.environ.get("CC_ADDRESS"), int(os.environ.get("CC_PORT", 0)))
if sys.argv[1] == "describe":
    print('{"version": "1"}')
elif sys.argv[1] == "server":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    open("/tmp/careless", "w").close()
    listener = socket.create_server(here)
    while True:
        connection = listener.accept()[0]
        connection.sendall(bytes(size))
        connection.close()
else:
    start, received = time.monotonic(), 0
    connection = socket.create_connection(here)
    while data := connection.recv(1 << 16):
        received += len(data)
    print('{"bytes": %d, "completion_s": %f, "handshake_s": null}' % (received, time.monotonic() - start))
"""
