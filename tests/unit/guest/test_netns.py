"""What is said of a sysctl that a kernel does not take."""

import pytest

from conformance.guest import netns


def test_a_value_that_the_kernel_refuses_is_named(monkeypatch):
    monkeypatch.setattr(netns, "_sysctl_file", lambda name: "/dev/full")
    with pytest.raises(RuntimeError, match=r"this kernel refuses 'x' for net.ipv4.tcp_rmem: No space left on device"):
        netns.set_sysctls(None, {"net.ipv4.tcp_rmem": "x"})
