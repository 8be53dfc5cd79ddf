"""Turn the captures that a guest made of a trial into the packets that its measurement keeps."""

import dataclasses
import functools
import ipaddress
import math
import pathlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from conformance.guest.topology import rebound
from conformance.lab import job, topology
from conformance.model.emulation import moves
from conformance.model.errors import UserError
from conformance.model.networks.setting import Setting
from conformance.model.trials.trial import KERNEL_STACK, Measurement, Outcome

if TYPE_CHECKING:
    from conformance.model.diagnosis.pcap import Frames

#: IP's numbers of the protocols that adapters name
PROTOCOLS = {"tcp": 6, "udp": 17}
_SAYS_SOMETHING = (Outcome.OK, Outcome.TIMEOUT)


class Captures(NamedTuple):
    """The names of a trial's captures: `sent` has what the server put on its link, `came` what left the queue.

    `server` and `clients` are addresses in network byte order; `clients` is empty in a cell, whose client is alone.
    `moves`: the client is to get another address or port on the way, of which `clients` has the address, too.
    """

    sent: str
    came: str
    server: bytes
    clients: tuple[bytes, ...]
    moves: bool


@functools.cache
def captures_of(setting: Setting, stack: str = KERNEL_STACK, traced: job.FlowOf | None = None) -> Captures:
    """Return where a flow's packets are captured, by default those of the tested group's first flow."""
    group, flow = traced or (setting.network.flows.index(setting.network.tested), 0)
    place = topology.place(job.network_job_of(setting, stack))
    receivers = place.receivers[group]
    server = _address(place.senders[group].address)
    moving = moves.asked(setting.network, setting.network.flows[group])
    if job.is_detailed(setting):
        return Captures("emulator-to_server", "emulator-to_client", server, (), moving)
    client = receivers[min(flow, len(receivers) - 1)].address
    addresses = (client, rebound(client)) if moving else (client,)
    return Captures("sent", "came", server, tuple(map(_address, addresses)), moving)


def _address(address: str) -> bytes:
    return ipaddress.ip_address(address).packed


def with_packets(
    measurement: Measurement, folder: pathlib.Path | None, unseen: Mapping[str, int], transport: str
) -> Measurement:
    """Return a measurement with the packets that a guest left in `folder`.

    `unseen`: {capture: frames that did not fit}. Of captures that were cut, the beginning is kept, which shows some
    observables. If the packets cannot be read, the measurement becomes an error. A measurement that says nothing about
    the stack is returned as it is.
    """
    if measurement.outcome not in _SAYS_SOMETHING:
        return measurement
    try:
        packets = _packets(measurement.trial.setting, folder, unseen, transport)
    except UserError as error:
        return _error(measurement, f"packets: {error}")
    return dataclasses.replace(measurement, packets=packets)


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
        if lost := sum(unseen.values()):
            raise UserError(f"{lost} frames did not fit into the guest's memory for captures")
        sent, came, answers = _captured(measurement.trial.setting, folder, transport)
        arrivals = delivery.of_flow(network, sent.packets, came.packets, answers.packets, elapsed_s)
    except UserError as error:
        return _error(measurement, f"delivery: {error}")
    at = next(at for at, flow in enumerate(measurement.flows) if flow["group"] == network.tested.name)
    flows = [dict(flow) for flow in measurement.flows]
    flows[at]["delivery"] = arrivals
    return dataclasses.replace(measurement, flows=tuple(flows))


def _error(measurement: Measurement, message: str) -> Measurement:
    return Measurement(trial=measurement.trial, outcome=Outcome.ERROR, message=message, host=measurement.host)


def _packets(
    setting: Setting, folder: pathlib.Path | None, unseen: Mapping[str, int], transport: str
) -> Mapping[str, object]:
    from conformance.model.captures import packets

    sent, came, answers = _captured(setting, folder, transport, captures_of(setting).clients)
    if not sum(unseen.values()):
        return packets.matched(sent, came, answers).to_json()
    # Each capture holds the first frames of its interface, so both are whole until the first of them was full.
    names = captures_of(setting)[:2]
    pairs = zip(names, (sent, came), strict=True)
    end_s = min((float(of.seconds[-1]) for name, of in pairs if unseen.get(name) and len(of)), default=math.inf)
    held = (of.chosen(of.seconds <= end_s) for of in (sent, came, answers))
    return packets.matched(*held).whose_fate_is_known().to_json()


def _captured(
    setting: Setting,
    folder: pathlib.Path | None,
    transport: str,
    clients: tuple[bytes, ...] = (),
) -> tuple["Frames", "Frames", "Frames"]:
    """Return the server's packets, those of them that came to the client, and the client's packets.

    `clients`: the addresses whose packets count, none for all. Raises UserError.
    """
    from conformance.model.diagnosis import pcap

    sent_name, came_name, server, _, moving = captures_of(setting)
    if folder is None or not folder.is_dir():
        raise UserError("no packets were captured", "they are captured in the virtual room only")
    try:
        entered, left = ((folder / f"{name}.pcap").read_bytes() for name in (sent_name, came_name))
    except OSError as error:
        raise UserError(f"cannot read a capture: {error.strerror}") from None
    sent, answers = pcap.frames(entered, PROTOCOLS[transport], server, clients, moving)
    came, _ = pcap.frames(left, PROTOCOLS[transport], server, clients, moving)
    return sent, came, answers
