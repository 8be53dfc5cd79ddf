"""The keys and digests that published results and zones are found by: they stay, whatever form a setting has in code.

RECORDED holds them as they were while a setting was either a cell or a network. `test_identities.py` compares.
`test_lists.py` does the same for the names of tests.

python tests/golden/identities.py       record anew; the difference in the file says what would be lost
"""

import json
import pathlib

from conformance.catalogue import clauses, documents, scenarios
from conformance.model import digest
from conformance.model.networks.place import Cell
from conformance.model.trials.trial import Scheme, Trial
from conformance.results import store
from conformance.support import paths

RECORDED = pathlib.Path(__file__).with_name("identities.json")
_SCHEME = Scheme(
    algorithm="cubic", stack="a-stack", stack_version="1.0", stack_digest="0" * 16, kernel="default",
    kernel_release="7.2.11", kernel_digest="1" * 16,
)  # fmt: skip
_CELL = Cell(10, 20, 1)


def recorded():
    return json.loads(RECORDED.read_text())


def published_files():
    """Return {name below reports/published: path} of all files of published lines."""
    folder = paths.data("reports", "published")
    return {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*.jsonl.xz"))}


def published(path):
    """Return (number, digest) of the keys of a published file's lines, in order."""
    keys = [measurement.trial.key for _, _, measurement in store.scan(path)]
    return {"lines": len(keys), "keys": digest.of_value(keys)}


def key_in(setting):
    """Return the key of a trial of a made-up scheme in a setting."""
    return Trial(setting=setting, scheme=_SCHEME, seed=1, room="virtual", lab_digest="2" * 16).key


def profiles():
    """Return {name of a profile: its digest, and a key in it}."""
    settings = {name: documents.profile(name, _CELL) for name in documents.profile_names()}
    return {name: {"digest": found.profile_digest, "key": key_in(found)} for name, found in settings.items()}


def zones():
    """Return {id of a zone over cells or points: its digest, and a digest of the keys in all of its places}."""
    read = {path: json.loads(path.read_text()) for path in sorted(paths.data("zones").glob("*/*.json"))}
    judging = [documents.zone(path) for path, document in read.items() if "metric" in document]
    return {
        zone.id: {
            "digest": zone.profile_digest,
            "keys": digest.of_value([key_in(scenarios.setting(zone.profile, place)) for place in zone.places]),
        }
        for zone in judging
    }


def clause_keys():
    """Return {id of a clause: the key in its setting}."""
    each = (clause for specification in clauses.specifications() for clause in specification.clauses)
    return {clause.id: key_in(clauses.setting(clause.network)) for clause in each}


def main():
    about = {
        "published": {name: published(path) for name, path in published_files().items()},
        "profiles": profiles(),
        "zones": zones(),
        "clauses": clause_keys(),
    }
    RECORDED.write_text(json.dumps(about, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
