//! Between a transport and the draft: packets under way, what one ACK or timer says of them, and when the next may leave.
//! noq-proto (`host.rs`) and the model without a network (`play`) drive the same sender.

use std::collections::VecDeque;

use crate::bbr::Bbr;
use crate::connection::{Bytes, Packet, Report, Seconds};

#[derive(Debug)]
pub struct Sender {
    pub bbr: Bbr,
    /// In the order in which they were sent.
    packets: VecDeque<Packet>,
    report: Report,
    is_due: bool,
    next_send_time: Seconds,
    /// The transport had a packet to send that the window kept back.
    pub is_window_in_the_way: bool,
}

impl Sender {
    pub fn new(bbr: Bbr) -> Self {
        Self {
            next_send_time: bbr.c.now,
            bbr,
            packets: VecDeque::new(),
            report: Report::default(),
            is_due: false,
            is_window_in_the_way: false,
        }
    }

    pub fn sent(&mut self, now: Seconds, bytes: Bytes, packet_id: u64) {
        self.packets.push_back(self.bbr.on_transmit(now, packet_id, bytes));
    }

    pub fn window_is_in_the_way(&mut self) {
        self.is_window_in_the_way = true;
        self.bbr.note_cwnd_limited();
    }

    /// Numbers of different spaces may be equal in the handshake, so `is_it` tells which is meant.
    fn take(&mut self, packet_id: u64, is_it: impl Fn(&Packet) -> bool) -> Option<Packet> {
        let at = self.packets.iter().position(|packet| packet.packet_id == packet_id && is_it(packet))?;
        let packet = self.packets.remove(at)?;
        self.bbr.c.inflight = (self.bbr.c.inflight - packet.bytes).max(0.0);
        self.is_due = true;
        Some(packet)
    }

    pub fn acknowledged(&mut self, packet_id: u64, is_it: impl Fn(&Packet) -> bool) {
        if let Some(packet) = self.take(packet_id, is_it) {
            self.report.acked.push(packet);
        }
    }

    pub fn lost(&mut self, packet_id: u64, is_it: impl Fn(&Packet) -> bool) {
        if let Some(packet) = self.take(packet_id, is_it) {
            self.report.lost.push(packet);
        }
    }

    pub fn in_persistent_congestion(&mut self) {
        self.report.is_persistent_congestion = true;
    }

    pub fn marked(&mut self) {
        self.report.is_marked = true;
    }

    pub fn spurious(&mut self) {
        self.report.is_spurious = true;
        self.is_due = true;
    }

    /// Keys that are thrown away take their packets with them, unsaid.
    pub fn set_inflight(&mut self, bytes: Bytes) {
        self.bbr.c.inflight = bytes;
        if bytes == 0.0 {
            self.packets.clear();
        }
    }

    /// Plays what was written down since the last time, once the RTT is the new one: RFC 9002, A.7.
    pub fn finish(&mut self, now: Seconds, srtt: Option<Seconds>) {
        if !std::mem::take(&mut self.is_due) {
            return;
        }
        let report = std::mem::take(&mut self.report);
        self.bbr.c.now = now;
        self.bbr.c.srtt = srtt;
        self.bbr.on_report(&report);
    }

    /// When pacing lets the next packet leave.
    pub fn next_send_time(&self) -> Seconds {
        self.next_send_time
    }

    /// 5.6.2, C.next_send_time. Packets of a quantum leave together, once the first is due: P.send_time is Now().
    pub fn paced(&mut self, now: Seconds, bytes: Bytes) {
        let rate = if self.bbr.is_unpaced() { f64::INFINITY } else { self.bbr.c.pacing_rate.max(1.0) };
        self.next_send_time = self.next_send_time.max(now) + bytes / rate;
    }
}
