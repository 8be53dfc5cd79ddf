"""Published lines, zones and clauses have the same keys and digests as when they were recorded."""

import identities
import pytest

RECORDED = identities.recorded()


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(RECORDED["published"]))
def test_published_lines_keep_their_keys(name):
    assert identities.published(identities.published_files()[name]) == RECORDED["published"][name]


def test_profiles_keep_their_digests():
    assert identities.profiles() == RECORDED["profiles"]


@pytest.mark.slow
def test_zones_keep_the_digests_and_keys_of_their_settings():
    assert identities.zones() == RECORDED["zones"]


def test_clauses_keep_the_keys_of_their_settings():
    assert identities.clause_keys() == RECORDED["clauses"]
