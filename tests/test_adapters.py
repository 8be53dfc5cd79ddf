"""The manifests that ship, without building or running anything of theirs."""

import os

import pytest

from conformance import paths, schema
from conformance.lab import manifest

MANIFESTS = sorted(paths.data("adapters").glob("*/adapter.json"))


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.parent.name)
def test_a_shipped_manifest_is_complete(path):
    data = schema.load("adapter", path)
    assert data["name"] == path.parent.name
    assert os.access(path.parent / data["program"], os.X_OK)
    if "build" in data:
        assert os.access(path.parent / data["build"]["program"], os.X_OK)
    # Whoever runs another root file system cannot know what is in it.
    assert ("algorithms" in data) + ("kernel_algorithms" in data) == (not data.get("rootfs"))
    assert data["packages"], "a user who lacks something must be told what to install"
    if "client" in data:
        client = schema.load("adapter", paths.data("adapters", data["client"], "adapter.json"))
        assert client["transport"] == data["transport"]


def test_there_is_a_stack_of_each_transport():
    transports = {schema.load("adapter", path)["transport"] for path in MANIFESTS}
    assert transports == {"tcp", "udp"}


def test_a_client_only_adapter_offers_no_algorithm():
    assert schema.load("adapter", paths.data("adapters", "h3-client", "adapter.json"))["algorithms"] == {}
    assert "h3-client" in [about.name for about in manifest.shipped()]
