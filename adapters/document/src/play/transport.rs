//! A QUIC sender and receiver without bytes: RFC 9002's loss detection (section 6, appendix A) around the draft's sender,
//! and a receiver that acknowledges each second packet, at once after a gap or a mark, and after 25 ms otherwise.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use super::path::{HEADERS, Link, Path};
use crate::bbr::{Bbr, State};
use crate::connection::{Bytes, Connection, Rate, Seconds};
use crate::deviations::Deviations;
use crate::sender::Sender;

pub const SMSS: Bytes = 1452.0;
/// Of a packet's bytes: what is no header, tag or head of a frame.
const PAYLOAD: Bytes = 1416.0;
const MAX_ACK_DELAY: Seconds = 0.025;
const GRANULARITY: Seconds = 0.001;
const HANDSHAKE_PACKETS: u64 = 3;

/// What the application writes: (when, bytes), counted from the end of the handshake.
pub type Writes = Vec<(Seconds, Bytes)>;

/// What a transfer came to. Times count from the client's first packet.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    pub completion: Option<Seconds>,
    pub sent: u64,
    pub lost: u64,
    pub dropped: u64,
    pub delivered: Bytes,
    pub states: Vec<(Seconds, State)>,
    pub samples: Vec<Sample>,
    pub packets: Vec<Packet>,
    /// When each ACK arrived.
    pub acks: Vec<Seconds>,
}

/// A frame of the sender: when it was sent, and when it left the link, if it was not lost.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    pub sent: Seconds,
    pub bytes: Bytes,
    pub left: Option<Seconds>,
    pub is_marked: bool,
}

/// The sender after an ACK.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    pub at: Seconds,
    pub state: State,
    pub inflight: Bytes,
    pub cwnd: Bytes,
    pub pacing_rate: Rate,
    pub max_bw: Rate,
    pub bw: Rate,
    pub bw_shortterm: Rate,
    pub inflight_longterm: Bytes,
    pub inflight_shortterm: Bytes,
    pub min_rtt: Seconds,
    pub delivered: Bytes,
}

#[derive(Debug)]
enum Event {
    Queue(u64, bool),
    Arrive(u64, bool),
    Ack(Vec<u64>, Seconds, bool),
    DelayedAck(u64),
    LossTimer,
    Pace,
    Write(Bytes),
}

struct Play {
    sender: Sender,
    link: Link,
    events: BinaryHeap<Reverse<(Instant, u64)>>,
    kept: BTreeMap<u64, Event>,
    serial: u64,
    now: Seconds,
    // the sender's transport
    unsent: Bytes,
    probes: u32,
    next_id: u64,
    sizes: BTreeMap<u64, (Seconds, Bytes)>,
    declared_lost: BTreeMap<u64, (Seconds, Bytes)>,
    largest_acked: Option<u64>,
    srtt: Option<Seconds>,
    rttvar: Seconds,
    latest: Seconds,
    first_rtt_at: Seconds,
    pto_count: i32,
    last_sent: Seconds,
    loss_timer: u64,
    pace_timer: u64,
    // the receiver
    held: Vec<u64>,
    /// Received, and in no ACK that arrives.
    unreported: Vec<u64>,
    is_held_marked: bool,
    newest: Option<u64>,
    newest_at: Seconds,
    ack_timer: u64,
    received: Bytes,
    outcome: Outcome,
}

/// Nanoseconds: times order events, and floating point has no order of its own.
type Instant = u64;

fn instant(at: Seconds) -> Instant {
    (at * 1e9).round() as u64
}

/// Plays a transfer until all is there, or so many seconds have passed.
pub fn play(path: &Path, writes: &Writes, seconds: Seconds, deviations: &Deviations, seed: u64, keep: bool) -> Outcome {
    let start = path.rtt / 2.0; // the client's first packet arrives
    let bbr = Bbr::new(Connection::new(start, SMSS), deviations.clone(), seed);
    let mut play = Play {
        sender: Sender::new(bbr),
        link: Link::new(path, seed.wrapping_mul(2).wrapping_add(1)),
        events: BinaryHeap::new(),
        kept: BTreeMap::new(),
        serial: 0,
        now: start,
        unsent: 0.0,
        probes: 0,
        next_id: 0,
        sizes: BTreeMap::new(),
        declared_lost: BTreeMap::new(),
        largest_acked: None,
        srtt: None,
        rttvar: 0.0,
        latest: 0.0,
        first_rtt_at: f64::INFINITY,
        pto_count: 0,
        last_sent: start,
        loss_timer: 0,
        pace_timer: 0,
        held: Vec::new(),
        unreported: Vec::new(),
        is_held_marked: false,
        newest: None,
        newest_at: 0.0,
        ack_timer: 0,
        received: 0.0,
        outcome: Outcome::default(),
    };
    play.outcome.states.push((start, play.sender.bbr.state));
    play.unsent = HANDSHAKE_PACKETS as f64 * PAYLOAD;
    let all = play.unsent + writes.iter().map(|(_, bytes)| bytes).sum::<Bytes>();
    for (at, bytes) in writes {
        play.at(start + path.rtt + at, Event::Write(*bytes));
    }
    play.transmit();
    while let Some(Reverse((at, serial))) = play.events.pop() {
        let at = at as f64 / 1e9;
        if at > seconds {
            break;
        }
        play.now = play.now.max(at);
        let event = play.kept.remove(&serial).unwrap();
        play.happens(event, serial, keep);
        if play.received >= all - 0.5 {
            play.outcome.completion = Some(play.now);
            break;
        }
    }
    play.outcome.delivered = play.received - HANDSHAKE_PACKETS as f64 * PAYLOAD;
    play.outcome
}

impl Play {
    fn at(&mut self, at: Seconds, event: Event) -> u64 {
        self.serial += 1;
        self.events.push(Reverse((instant(at), self.serial)));
        self.kept.insert(self.serial, event);
        self.serial
    }

    fn happens(&mut self, event: Event, serial: u64, keep: bool) {
        match event {
            Event::Queue(id, is_marked) => {
                let bytes = self.sizes.get(&id).map_or(SMSS, |(_, bytes)| *bytes);
                match self.link.queue(self.now, bytes) {
                    Some(leaves) => {
                        let packet = &mut self.outcome.packets[id as usize];
                        (packet.left, packet.is_marked) = (Some(leaves), is_marked);
                        self.at(leaves, Event::Arrive(id, is_marked));
                    }
                    None => self.outcome.dropped += 1,
                }
            }
            Event::Arrive(id, is_marked) => self.arrive(id, is_marked),
            Event::DelayedAck(token) if token == self.ack_timer => self.acknowledge(),
            Event::Ack(ids, delay, is_marked) => {
                self.outcome.acks.push(self.now);
                self.check_if_application_limited();
                self.on_ack(ids, delay, is_marked);
                self.finish(keep);
            }
            Event::LossTimer if serial == self.loss_timer => {
                self.check_if_application_limited();
                self.on_loss_timer();
                self.finish(keep);
            }
            Event::Pace if serial == self.pace_timer => self.transmit(),
            Event::Write(bytes) => {
                self.check_if_application_limited();
                self.unsent += bytes;
                self.transmit();
            }
            _ => {}
        }
    }

    fn check_if_application_limited(&mut self) {
        // What pacing holds back is not the application's limit.
        let has_unsent = self.unsent > 0.0 || self.sender.next_send_time() > self.now + 1e-9;
        self.sender.bbr.c.check_if_application_limited(has_unsent);
    }

    fn transmit(&mut self) {
        while self.unsent > 0.0 || self.probes > 0 {
            if self.sender.next_send_time() > self.now + 1e-9 {
                self.pace_timer = self.at(self.sender.next_send_time(), Event::Pace);
                return;
            }
            let quantum = (self.sender.bbr.c.send_quantum / SMSS).floor().max(1.0) as u64;
            let mut left = 0.0;
            for _ in 0..quantum {
                if self.probes == 0 && self.sender.bbr.c.inflight + SMSS > self.sender.bbr.c.cwnd {
                    self.sender.window_is_in_the_way();
                    break;
                }
                if self.unsent <= 0.0 && self.probes == 0 {
                    break;
                }
                self.probes = self.probes.saturating_sub(1);
                let payload = self.unsent.clamp(1.0, PAYLOAD); // a probe with nothing to say is a PING
                self.unsent = (self.unsent - payload).max(0.0);
                let bytes = payload + SMSS - PAYLOAD;
                self.send(bytes);
                left += bytes;
            }
            if left == 0.0 {
                return;
            }
            self.sender.paced(self.now, left);
        }
    }

    fn send(&mut self, bytes: Bytes) {
        let id = self.next_id;
        self.next_id += 1;
        self.sender.sent(self.now, bytes, id);
        self.sizes.insert(id, (self.now, bytes));
        self.last_sent = self.now;
        self.outcome.sent += 1;
        self.outcome.packets.push(Packet { sent: self.now, bytes: bytes + HEADERS, left: None, is_marked: false });
        if let Some((comes, is_marked)) = self.link.enters(self.now) {
            self.at(comes, Event::Queue(id, is_marked));
        } else {
            self.outcome.dropped += 1;
        }
        self.set_loss_timer();
    }

    // ---- the receiver

    fn arrive(&mut self, id: u64, is_marked: bool) {
        let is_gap = id != self.newest.map_or(0, |newest| newest + 1);
        if self.newest.is_none_or(|newest| id > newest) {
            self.newest = Some(id);
            self.newest_at = self.now;
        }
        let bytes = self.sizes.get(&id).or_else(|| self.declared_lost.get(&id));
        if let Some((_, bytes)) = bytes {
            self.received += bytes - (SMSS - PAYLOAD);
        }
        self.held.push(id);
        self.is_held_marked |= is_marked;
        if self.held.len() >= 2 || is_gap || is_marked {
            self.acknowledge();
        } else {
            let token = self.serial + 1;
            self.ack_timer = token;
            self.at(self.now + MAX_ACK_DELAY, Event::DelayedAck(token));
        }
    }

    fn acknowledge(&mut self) {
        self.ack_timer = 0;
        self.unreported.append(&mut self.held);
        if self.unreported.is_empty() {
            return;
        }
        if let Some(arrives) = self.link.acknowledges(self.now) {
            let ids = std::mem::take(&mut self.unreported);
            let is_marked = std::mem::take(&mut self.is_held_marked);
            self.at(arrives, Event::Ack(ids, self.now - self.newest_at, is_marked));
        }
    }

    // ---- RFC 9002

    fn on_ack(&mut self, ids: Vec<u64>, delay: Seconds, is_marked: bool) {
        let mut newest: Option<(u64, Seconds)> = None;
        let had_lost = !self.declared_lost.is_empty();
        for id in ids {
            if let Some((_, bytes)) = self.declared_lost.remove(&id) {
                self.unsent = (self.unsent - bytes + SMSS - PAYLOAD).max(0.0); // it was there after all
                if had_lost && self.declared_lost.is_empty() {
                    self.sender.spurious();
                }
            }
            if let Some((sent, _)) = self.sizes.remove(&id) {
                self.sender.acknowledged(id, |_| true);
                if newest.is_none_or(|(newest, _)| id > newest) {
                    newest = Some((id, sent));
                }
            }
        }
        let Some((id, sent)) = newest else { return };
        if is_marked {
            self.sender.marked();
        }
        if self.largest_acked.is_none_or(|largest| id > largest) {
            self.largest_acked = Some(id);
            self.update_rtt(self.now - sent, delay);
        }
        self.pto_count = 0;
        self.detect_lost_packets(true);
    }

    /// Section 5.3
    fn update_rtt(&mut self, latest: Seconds, delay: Seconds) {
        self.latest = latest;
        let Some(srtt) = self.srtt else {
            self.srtt = Some(latest);
            self.rttvar = latest / 2.0;
            self.first_rtt_at = self.now;
            return;
        };
        let delay = delay.min(MAX_ACK_DELAY);
        let adjusted = if latest - delay >= self.sender.bbr.c.min_rtt { latest - delay } else { latest };
        self.rttvar += ((srtt - adjusted).abs() - self.rttvar) / 4.0;
        self.srtt = Some(srtt + (adjusted - srtt) / 8.0);
    }

    fn loss_delay(&self) -> Seconds {
        (9.0 / 8.0 * self.srtt.unwrap_or(self.latest).max(self.latest)).max(GRANULARITY)
    }

    fn pto(&self) -> Seconds {
        self.srtt.map_or(0.999, |srtt| srtt + (4.0 * self.rttvar).max(GRANULARITY) + MAX_ACK_DELAY)
    }

    /// A.10, and 7.6.2
    fn detect_lost_packets(&mut self, is_ack: bool) {
        let Some(largest) = self.largest_acked else { return };
        let too_old = self.now - self.loss_delay() + 1e-9;
        let lost: Vec<(u64, Seconds, Bytes)> = self
            .sizes
            .range(..largest)
            .filter(|(id, (sent, _))| *id + 3 <= largest || *sent <= too_old)
            .map(|(id, (sent, bytes))| (*id, *sent, *bytes))
            .collect();
        // As noq-proto has it: what was sent more than two probe timeouts ago stays lost.
        let (two_pto, now) = (2.0 * self.pto(), self.now);
        self.declared_lost.retain(|_, (sent, _)| now - *sent <= two_pto);
        for (id, sent, bytes) in &lost {
            self.sizes.remove(id);
            self.declared_lost.insert(*id, (*sent, *bytes));
            self.sender.lost(*id, |_| true);
            self.unsent += bytes - (SMSS - PAYLOAD);
            self.outcome.lost += 1;
        }
        while self.declared_lost.len() > 4096 {
            self.declared_lost.pop_first();
        }
        if let (Some(first), Some(last)) = (lost.iter().find(|(_, sent, _)| *sent > self.first_rtt_at), lost.last())
            && is_ack
            && last.1 - first.1 > 3.0 * self.pto()
        {
            self.sender.in_persistent_congestion();
        }
        self.set_loss_timer();
    }

    /// A.8
    fn set_loss_timer(&mut self) {
        self.loss_timer = 0;
        let Some((_, (oldest, _))) = self.sizes.first_key_value() else { return };
        let is_overtaken = self.largest_acked.is_some_and(|largest| self.sizes.range(..largest).next().is_some());
        let at = if is_overtaken {
            oldest + self.loss_delay()
        } else {
            self.last_sent + self.pto() * 2f64.powi(self.pto_count.min(16))
        };
        self.loss_timer = self.at(at.max(self.now), Event::LossTimer);
    }

    /// A.9
    fn on_loss_timer(&mut self) {
        let is_overtaken = self.largest_acked.is_some_and(|largest| self.sizes.range(..largest).next().is_some());
        if is_overtaken {
            self.detect_lost_packets(false);
        } else if !self.sizes.is_empty() {
            self.pto_count += 1;
            self.probes = 2;
            self.set_loss_timer();
        }
    }

    fn finish(&mut self, keep: bool) {
        self.sender.finish(self.now, self.srtt);
        let bbr = &self.sender.bbr;
        if self.outcome.states.last().is_some_and(|(_, state)| *state != bbr.state) {
            self.outcome.states.push((self.now, bbr.state));
        }
        if keep {
            self.outcome.samples.push(Sample {
                at: self.now,
                state: bbr.state,
                inflight: bbr.c.inflight,
                cwnd: bbr.c.cwnd,
                pacing_rate: bbr.c.pacing_rate,
                max_bw: bbr.max_bw,
                bw: bbr.bw,
                bw_shortterm: bbr.bw_shortterm,
                inflight_longterm: bbr.inflight_longterm,
                inflight_shortterm: bbr.inflight_shortterm,
                min_rtt: bbr.min_rtt,
                delivered: bbr.c.delivered,
            });
        }
        self.transmit();
    }
}
