"""Turn the captures that a guest made of a trial into the packets that its measurement keeps."""

import dataclasses
import functools
import ipaddress
import pathlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from conformance.lab import job
from conformance.model.errors import UserError
from conformance.model.networks.setting import Setting
from conformance.model.trials.trial import Measurement, Outcome

if TYPE_CHECKING:
    from conformance.model.diagnosis.pcap import Packet

#: IP's numbers of the protocols that adapters name
PROTOCOLS = {"tcp": 6, "udp": 17}
#: if flows share a network: names of the captures of the tested group's first flow
SHARED_SENT, SHARED_CAME = "sent", "came"
#: the server's address in cells (topologies/network.py)
_CELLS_SERVER = "10.0.0.3"
_SAYS_SOMETHING = (Outcome.OK, Outcome.TIMEOUT)


class Captures(NamedTuple):
    """The names of a trial's captures: `sent` has what the server put on its link, `came` what left the queue.

    `server` is the server's address in network byte order; `client` is the client's, or None if there is one client.
    """

    sent: str
    came: str
    server: bytes
    client: bytes | None = None


@functools.cache
def captures_of(setting: Setting) -> Captures:
    """Return where the packets of a setting's trials are captured. Raises UserError."""
    if job.is_detailed(setting):
        return Captures(sent="emulator-to_server", came="emulator-to_client", server=_address(_CELLS_SERVER))
    group = setting.network.flows.index(setting.network.tested)
    return Captures(SHARED_SENT, SHARED_CAME, _address(f"10.0.{group}.1"), _address(f"10.1.{group}.1"))


def _address(text: str) -> bytes:
    return ipaddress.ip_address(text).packed


def with_packets(
    measurement: Measurement, folder: pathlib.Path | None, unseen: Mapping[str, int], transport: str
) -> Measurement:
    """Return a measurement with the packets that a guest left in `folder`.

    `unseen`: {capture: frames that did not fit}. If packets are missing, the measurement becomes an error, since an
    incomplete record must not be judged. A measurement that says nothing about the stack is returned as it is.
    """
    if measurement.outcome not in _SAYS_SOMETHING:
        return measurement
    try:
        found = _packets(measurement.trial.setting, folder, unseen, transport)
    except UserError as error:
        return _error(measurement, f"packets: {error}")
    return dataclasses.replace(measurement, packets=found)


def with_delivery(
    measurement: Measurement,
    folder: pathlib.Path | None,
    unseen: Mapping[str, int],
    transport: str,
    elapsed_s: float,
) -> Measurement:
    """Return a measurement with the times at which the bytes of the tested group's first flow arrived.

    delivery.py derives these times. They exist for TCP only: in QUIC, it cannot be seen from outside which bytes
    a packet has. If packets are missing, the measurement becomes an error.
    """
    network = measurement.trial.setting.network
    if measurement.outcome not in _SAYS_SOMETHING or transport != "tcp":
        return measurement
    from conformance.model.captures import delivery

    try:
        sent, came, asked = _captured(measurement.trial.setting, folder, unseen, transport)
        found = delivery.of_flow(network, sent, came, asked, elapsed_s)
    except UserError as error:
        return _error(measurement, f"delivery: {error}")
    at = next(at for at, flow in enumerate(measurement.flows) if flow["group"] == network.tested.name)
    flows = [dict(flow) for flow in measurement.flows]
    flows[at]["delivery"] = found
    return dataclasses.replace(measurement, flows=tuple(flows))


def _error(measurement: Measurement, message: str) -> Measurement:
    return Measurement(trial=measurement.trial, outcome=Outcome.ERROR, message=message, host=measurement.host)


def _packets(
    setting: Setting, folder: pathlib.Path | None, unseen: Mapping[str, int], transport: str
) -> Mapping[str, object]:
    from conformance.model.captures import packets

    sent, came, asked = _captured(setting, folder, unseen, transport)
    return packets.matched(sent, came, asked, captures_of(setting).client).to_json()


def _captured(
    setting: Setting, folder: pathlib.Path | None, unseen: Mapping[str, int], transport: str
) -> tuple[list["Packet"], list["Packet"], list["Packet"]]:
    """Return the server's packets, those of them that came to the client, and the client's packets.

    Raises UserError.
    """
    from conformance.model.diagnosis import pcap

    sent_name, came_name, server, _ = captures_of(setting)
    if folder is None or not folder.is_dir():
        raise UserError("no packets were captured", "they are captured in the virtual room only")
    if lost := sum(unseen.values()):
        raise UserError(f"{lost} frames did not fit into the guest's memory for captures")
    try:
        entered, left = ((folder / f"{name}.pcap").read_bytes() for name in (sent_name, came_name))
    except OSError as error:
        raise UserError(f"cannot read a capture: {error.strerror}") from None
    sent, asked = pcap.packets(entered, PROTOCOLS[transport], server)
    came, _ = pcap.packets(left, PROTOCOLS[transport], server)
    return sent, came, asked
