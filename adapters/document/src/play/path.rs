//! A modelled path: losses, then the delay, then a queue before a link, then the way back. In the suite's order of tc.

use crate::connection::{Bytes, Rate, Seconds};
use crate::random::Random;

/// Ethernet's, IPv4's and UDP's headers.
pub const HEADERS: Bytes = 14.0 + 20.0 + 8.0;
const FRAME: Bytes = 1514.0;

#[derive(Clone, Debug)]
pub struct Path {
    /// (from when, bytes a second); the first is from 0 on. 0 holds everything.
    pub rates: Vec<(Seconds, Rate)>,
    /// There and back, without a queue.
    pub rtt: Seconds,
    pub queue: Discipline,
    /// Share of packets lost at random.
    pub loss: f64,
    /// Share of ACKs lost at random; what they said is in the next.
    pub ack_loss: f64,
    pub drops: Vec<Window>,
    pub marks: Vec<Window>,
    /// Packets that come later, by so many seconds, than those sent after them.
    pub late: Vec<(Window, Seconds)>,
    /// ACKs come together, each so many seconds, from when on; 0: they do not.
    pub slot: (Seconds, Seconds),
    /// (from when, how many seconds longer packets take to the queue)
    pub delays: Vec<(Seconds, Seconds)>,
    pub ack_drops: Vec<Window>,
    /// The bucket of a policer, which stands in the queue's place.
    pub police: Option<Bytes>,
}

/// The first `some` of each `of` packets that are sent in the time.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    pub from: Seconds,
    pub to: Seconds,
    pub some: u64,
    pub of: u64,
}

#[derive(Clone, Copy, Debug)]
pub enum Discipline {
    /// So many bytes, one frame at least.
    Tail(Bytes),
    /// The testbed's: limit 4 BDP, thresholds at a third and all of a BDP, adaptive.
    Red,
}

#[derive(Debug)]
pub struct Link {
    path: Path,
    random: Random,
    counts: Vec<u64>,
    red: Red,
    /// When each packet that is in the queue, or on the wire, has left.
    waiting: std::collections::VecDeque<(Seconds, Bytes)>,
    free: Seconds,
    /// A policer's bucket, and when it was last filled.
    tokens: Bytes,
    filled: Seconds,
}

impl Link {
    pub fn new(path: &Path, seed: u64) -> Self {
        let bdp = path.rates[0].1 * path.rtt;
        Self {
            counts: vec![0; path.drops.len() + path.marks.len() + path.late.len() + path.ack_drops.len()],
            tokens: path.police.unwrap_or(0.0),
            filled: 0.0,
            red: Red::new(bdp, path.rates[0].1),
            random: Random::new(seed),
            waiting: Default::default(),
            free: 0.0,
            path: path.clone(),
        }
    }

    fn counts_out(&mut self, at: usize, window: Window, now: Seconds) -> bool {
        if now < window.from || now >= window.to {
            return false;
        }
        self.counts[at] += 1;
        (self.counts[at] - 1) % window.of < window.some
    }

    /// Returns when a packet that is sent now comes to the queue, and whether it is marked; None if it is lost before.
    pub fn enters(&mut self, now: Seconds) -> Option<(Seconds, bool)> {
        let drops = self.path.drops.clone();
        let is_dropped = drops.iter().enumerate().any(|(at, drop)| self.counts_out(at, *drop, now));
        let marks = self.path.marks.clone();
        let is_marked =
            marks.iter().enumerate().any(|(at, mark)| self.counts_out(drops.len() + at, *mark, now));
        let late = self.path.late.clone();
        let before = drops.len() + marks.len();
        let by = late.iter().enumerate().find(|(at, (window, _))| self.counts_out(before + at, *window, now));
        let comes = now + since(&self.path.delays, now) + self.path.rtt / 2.0 + by.map_or(0.0, |(_, (_, by))| *by);
        let is_lost = self.path.loss > 0.0 && self.random.float_between_0_and_1() < self.path.loss;
        (!is_dropped && !is_lost).then_some((comes, is_marked))
    }

    /// Returns when a packet that comes to the queue now has left the link; None if the queue drops it.
    pub fn queue(&mut self, now: Seconds, bytes: Bytes) -> Option<Seconds> {
        while self.waiting.front().is_some_and(|(leaves, _)| *leaves <= now) {
            self.waiting.pop_front();
        }
        let size = bytes + HEADERS;
        if let Some(burst) = self.path.police {
            let rate = since(&self.path.rates, now);
            self.tokens = burst.min(self.tokens + rate * (now - self.filled));
            self.filled = now;
            if self.tokens < size {
                return None;
            }
            self.tokens -= size;
            return Some(now);
        }
        let backlog: Bytes = self.waiting.iter().map(|(_, bytes)| bytes).sum();
        let is_dropped = match self.path.queue {
            // The first is on the wire and no longer in the queue.
            Discipline::Tail(most) => {
                backlog - self.waiting.front().map_or(0.0, |(_, bytes)| *bytes) + size > most.max(FRAME)
            }
            Discipline::Red => self.red.drops(now, backlog, size, &mut self.random),
        };
        if is_dropped {
            return None;
        }
        let leaves = self.sends_until(self.free.max(now), size);
        self.free = leaves;
        self.waiting.push_back((leaves, size));
        Some(leaves)
    }

    /// When a packet that begins to be sent at a time has been sent, as the rate changes.
    fn sends_until(&self, from: Seconds, bytes: Bytes) -> Seconds {
        let (mut at, mut rest) = (from, bytes);
        loop {
            let rate = since(&self.path.rates, at);
            let change = self.path.rates.iter().map(|(since, _)| *since).find(|since| *since > at);
            match change {
                Some(change) if rate * (change - at) < rest => {
                    rest -= rate * (change - at);
                    at = change;
                }
                _ => return at + rest / rate,
            }
        }
    }

    /// When an ACK that is sent now arrives; None if it is lost.
    pub fn acknowledges(&mut self, now: Seconds) -> Option<Seconds> {
        let before = self.path.drops.len() + self.path.marks.len() + self.path.late.len();
        let ack_drops = self.path.ack_drops.clone();
        if ack_drops.iter().enumerate().any(|(at, drop)| self.counts_out(before + at, *drop, now)) {
            return None;
        }
        if self.path.ack_loss > 0.0 && self.random.float_between_0_and_1() < self.path.ack_loss {
            return None;
        }
        let arrives = now + self.path.rtt / 2.0;
        let (slot, since) = self.path.slot;
        Some(if slot > 0.0 && arrives >= since { (arrives / slot).ceil() * slot } else { arrives })
    }
}

/// What holds at a time, of (from when, what).
fn since(changes: &[(Seconds, f64)], now: Seconds) -> f64 {
    changes.iter().rev().find(|(since, _)| *since <= now).map_or(0.0, |(_, what)| *what)
}

/// Linux's RED with `adaptive`, as the suite sets it up (conformance/model/emulation/shaping.py).
#[derive(Debug)]
struct Red {
    limit: Bytes,
    low: Bytes,
    high: Bytes,
    weight: f64,
    /// Bytes that leave while the queue is empty, by the time that an average packet takes.
    rate: Rate,
    average: f64,
    empty_since: Option<Seconds>,
    most: f64,
    count: i64,
    draw: f64,
    adapted: Seconds,
}

impl Red {
    fn new(bdp: Bytes, rate: Rate) -> Self {
        let limit = (4.0 * bdp).floor().max(48_000.0);
        let high = (limit / 4.0).floor();
        let low = (high / 3.0).floor();
        let burst = (1.0 + low / 1000.0).floor();
        // tc's tc_red_eval_ewma: the smallest log W at which the burst passes
        let weight_log = (1..32)
            .find(|log| {
                let weight = 0.5f64.powi(*log);
                let a = burst + 1.0 - low / 1000.0;
                a < (1.0 - (1.0 - weight).powf(burst)) / weight
            })
            .unwrap_or(9);
        Self {
            limit,
            low,
            high,
            weight: 0.5f64.powi(weight_log),
            rate,
            average: 0.0,
            empty_since: Some(0.0),
            most: 0.02,
            count: -1,
            draw: 0.0,
            adapted: 0.0,
        }
    }

    fn drops(&mut self, now: Seconds, backlog: Bytes, size: Bytes, random: &mut Random) -> bool {
        while now >= self.adapted + 0.5 {
            self.adapted += 0.5;
            let span = self.high - self.low;
            if self.average > self.low + 0.6 * span && self.most <= 0.5 {
                self.most += (self.most / 4.0).min(0.01);
            } else if self.average < self.low + 0.4 * span && self.most >= 0.01 {
                self.most *= 0.9;
            }
        }
        if backlog == 0.0 {
            let idle = now - self.empty_since.unwrap_or(now);
            self.average *= (1.0 - self.weight).powf(idle * self.rate / 1000.0);
        }
        self.average += (backlog - self.average) * self.weight;
        self.empty_since = Some(now + (backlog + size) / self.rate);
        if self.average < self.low {
            self.count = -1;
        } else if self.average >= self.high {
            self.count = -1;
            return true; // harddrop
        } else {
            self.count += 1;
            if self.count > 0 {
                let share = (self.average - self.low) / (self.high - self.low) * self.most;
                if share * self.count as f64 >= self.draw {
                    self.count = 0;
                    self.draw = random.float_between_0_and_1();
                    return true;
                }
            } else {
                self.draw = random.float_between_0_and_1();
            }
        }
        backlog + size > self.limit
    }
}
