"""What tests of the site share."""

import pytest
from helpers import results_file

from conformance.reporting.html import site
from conformance.results.source import Source


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return results_file(tmp_path_factory.mktemp("results") / "results.jsonl")


@pytest.fixture(scope="module")
def built(results, tmp_path_factory):
    return site.write(Source([results]), tmp_path_factory.mktemp("site")).parent
