//! Sends a connection's packets when they are due. quiche says when that is and leaves the waiting to its caller.
//!
//! quiche counts time per burst (`send_quantum`), so packets are made a burst at a time, and a little before their time:
//! a late wake-up then delays a burst but not the ones behind it.

use crate::socket::Socket;
use quiche::Connection;
use std::collections::VecDeque;
use std::io::Result;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// How far ahead of their time packets are made. tokio-quiche looks as far, and up to 5 ms with bbr2_gcongestion.
const AHEAD: Duration = Duration::from_millis(1);
/// What one UDP message may hold.
const BURST_PACKETS: usize = 65_507 / crate::DATAGRAM_BYTES;

/// Packets that leave together: all of one size, the last may be shorter.
struct Burst {
    at: Instant,
    to: SocketAddr,
    size: usize,
    bytes: Vec<u8>,
}

impl Burst {
    fn packets(&self) -> usize {
        self.bytes.len().div_ceil(self.size)
    }

    fn takes(&self, at: Instant, to: SocketAddr, size: usize) -> bool {
        let is_even = self.bytes.len() % self.size == 0;
        is_even && size <= self.size && at == self.at && to == self.to
    }
}

#[derive(Default)]
pub struct Outbox {
    bursts: VecDeque<Burst>,
}

impl Outbox {
    /// When it wants to be called again, if nothing arrives before.
    pub fn next(&self) -> Option<Instant> {
        self.bursts.front().map(|burst| burst.at)
    }

    /// Makes what the connection allows now, sends what is due.
    pub fn flush(&mut self, quic: &mut Connection, socket: &mut Socket) -> Result<()> {
        let now = Instant::now();
        self.fill(quic, now);
        while self.bursts.front().is_some_and(|burst| burst.at <= now) {
            let burst = self.bursts.pop_front().unwrap();
            socket.send(&burst.bytes, burst.size, burst.to)?;
        }
        Ok(())
    }

    fn fill(&mut self, quic: &mut Connection, now: Instant) {
        let mut packet = [0; crate::DATAGRAM_BYTES];
        loop {
            let most = (quic.send_quantum() / crate::DATAGRAM_BYTES).clamp(1, BURST_PACKETS);
            let is_full = self.bursts.back().is_none_or(|last| last.packets() >= most);
            if is_full && self.bursts.back().is_some_and(|last| last.at > now + AHEAD) {
                return;
            }
            let release = self.release_time(quic, now);
            // An error closes the connection, which the caller sees.
            let Ok((size, info)) = quic.send(&mut packet) else { return };
            let at = release.unwrap_or(info.at).max(now);
            match self.bursts.back_mut() {
                Some(last) if !is_full && last.takes(at, info.to, size) => last.bytes.extend_from_slice(&packet[..size]),
                _ => self.bursts.push_back(Burst { at, to: info.to, size, bytes: packet[..size].to_vec() }),
            }
        }
    }

    /// When the next packet may leave, where only that is right: with bbr2_gcongestion, `at` is the time of the packet
    /// *after* the one that it comes with. Packets that it lets through in a burst go with the one before.
    fn release_time(&self, quic: &Connection, now: Instant) -> Option<Instant> {
        let release = quic.get_next_release_time().filter(|_| quic.gcongestion_enabled() == Some(true))?;
        let last = self.bursts.back().map_or(now, |burst| burst.at);
        Some(if release.can_burst() { last } else { release.time(now).unwrap_or(now) })
    }
}
