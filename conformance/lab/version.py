"""Determine the lab version: the version of the suite's own code with which a result was made.

A result depends on code that runs in the guest or writes the guest's job. The *source digest* covers the bytes of all
those files, so a changed comment changes it; the *lab version* changes only when results do. Golden trials decide
(tests/golden/attest.py, `make attest`): if they come out as recorded, the present sources are *attested* to give the
present version's results, and `version.json` next to this module says so. Sources that are not attested are a version
of their own, named by their digest, so that their results are not taken for those of another version.
"""

import functools
import hashlib
import json
import pathlib

from conformance.model import digest as digests
from conformance.support import paths

#: Files that decide what a trial measures. tests/unit/lab/test_lab_version.py checks this list against what the lab
#: imports.
SOURCES = (
    "conformance/bond/*",
    "conformance/guest/*.py",
    "conformance/lab/adapter.py",
    "conformance/lab/calibrations.py",
    "conformance/lab/captures.py",
    "conformance/lab/job.py",
    "conformance/lab/load.py",
    "conformance/lab/manifest.py",
    "conformance/lab/own_program.py",
    "conformance/lab/pki.py",
    "conformance/lab/proxy.py",
    "conformance/lab/reader.py",
    "conformance/lab/topology.py",
    "conformance/lab/two_passes.py",
    "conformance/lab/virtual.py",
    "conformance/model/diagnosis/flow.py",
    "conformance/model/diagnosis/pcap.py",
    "conformance/model/emulation/*.py",
    "conformance/load/*",
    "conformance/model/networks/bond.py",
    "conformance/model/captures/delivery.py",
    "conformance/model/networks/client_plan.py",
    "conformance/model/networks/flow_group.py",
    "conformance/model/networks/legacy.py",
    "conformance/model/networks/impairments.py",
    "conformance/model/networks/instants.py",
    "conformance/model/networks/links.py",
    "conformance/model/networks/network.py",
    "conformance/model/captures/packets.py",
    "conformance/model/networks/place.py",
    "conformance/model/networks/proxy.py",
    "conformance/model/networks/rate_trace.py",
    "conformance/model/records.py",
    "conformance/model/networks/schedule.py",
    "conformance/model/networks/setting.py",
    "conformance/model/captures/states.py",
    "conformance/proxy/*",
    "topologies/*.py",
)
VERSION_FILE = pathlib.Path(__file__).with_name("version.json")


def source_digest() -> str:
    """Return the digest of the names and bytes of SOURCES."""
    total = hashlib.sha256()
    for pattern in SOURCES:
        base = paths.PACKAGE.parent if pattern.startswith("conformance") else paths.data()
        for file in sorted(base.glob(pattern)):
            total.update(file.name.encode() + b"\0" + file.read_bytes())
    return total.hexdigest()[: digests.DIGITS]


def lab_version() -> str:
    """Return the attested version of the present sources, or their own digest if they are not attested."""
    present = source_digest()
    version, attested = _attestation()
    return version if present == attested else present


def attest(version: str) -> None:
    """Record that the present sources give the results of `version`."""
    about = {"version": version, "attested_sources": source_digest()}
    VERSION_FILE.write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")
    _attestation.cache_clear()


@functools.cache
def _attestation() -> tuple[str, str]:
    about = json.loads(VERSION_FILE.read_text(encoding="utf-8"))
    return about["version"], about["attested_sources"]


def current_version() -> str:
    """Return the version that attested sources have, whether or not the present ones are attested."""
    return _attestation()[0]
