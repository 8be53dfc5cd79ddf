"""Which kernel a stack's trials run on."""

import types

import pytest

from conformance.engine import benches
from conformance.kernel import store as kernels
from conformance.model.errors import UserError


@pytest.mark.parametrize("stack", ["linux-tcp", "udp"])
def test_all_stacks_run_on_the_default_kernel_whatever_others_are_built(monkeypatch, tmp_path, stack):
    built = [
        kernels.Kernel(name=name, digest=name, release=name, source="s", patches=(), binary=tmp_path / "linux")
        for name in ("6.12", "7.2", "default")
    ]
    monkeypatch.setattr(kernels, "kernels", lambda: built)
    if stack == "udp":
        manifest = types.SimpleNamespace(transport="udp", rootfs=False)
        adapter = types.SimpleNamespace(manifest=manifest, name="q", version="1", digest="d", kernel=lambda _: None)
        monkeypatch.setattr(benches.adapters, "load", lambda *_: adapter)
    assert benches.find(benches.Choice(stack=stack)).scheme("cubic").kernel == "default"
    assert benches.find(benches.Choice(stack=stack, kernel="7.2")).scheme("cubic").kernel == "7.2"


@pytest.mark.parametrize("name", ["stack", "client", "kernel", "interop_rootfs"])
def test_an_empty_choice_is_not_the_default(name):
    """A script's variable may be unset, and the default would be another stack or kernel than was meant."""
    option = name.replace("_", "-")
    with pytest.raises(UserError, match=f"--{option} is empty; give it a value, or leave it out"):
        benches.find(benches.Choice(**{name: ""}))
