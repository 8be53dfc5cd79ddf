"""The deviations of the adapter `document`: each is a mutant, and what it cites of this repository is there."""

import re

from conformance.catalogue import deviations
from conformance.support import paths, schema

#: what each is said to do, who has or had it, and where that is said
DEVIATIONS = {
    name: ": ".join(filter(None, (deviation.does, deviation.stacks, deviation.source)))
    for name, deviation in deviations.load().items()
}


def test_the_mutants_manifest_has_each_deviation_with_its_citation():
    """A deviation is one line of deviations.txt; this manifest follows from it."""
    manifest = schema.load("adapter", paths.data("mutants", "document", "adapter.json"))
    reference = {"bbrv3": manifest["algorithms"]["bbrv3"]}
    assert manifest["algorithms"] == reference | {
        f"bbrv3+{name}": {"called": f"bbrv3+{name}", "evidence": cited} for name, cited in DEVIATIONS.items()
    }


def test_each_deviation_that_is_not_made_up_cites_a_page_or_a_file_of_the_repository():
    for name, cited in DEVIATIONS.items():
        files = re.findall(r"(?:adapters|docs)/[\w./-]+", cited)
        assert files or "https://" in cited or cited.endswith(": made up"), name
        for file in files:
            assert paths.data(*file.rstrip(".,;").split("/")).is_file(), f"{name}: {file}"


def test_there_are_forty_deviations_and_pairs_of_them():
    pairs = {name for name in DEVIATIONS if "+" in name}
    assert len(DEVIATIONS) - len(pairs) >= 40
    assert pairs and all(set(pair.split("+")) <= set(DEVIATIONS) for pair in pairs)
