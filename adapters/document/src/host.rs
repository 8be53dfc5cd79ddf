//! noq-proto as the transport: what it tells a congestion controller, to the sender. It tells some of it while it handles
//! an ACK and before its RTT is the new one, so the sender only writes it down until `serve` calls `finish`.

use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use noq_proto::RttEstimator;
use noq_proto::congestion::{Controller, ControllerFactory, ControllerMetrics};

use crate::bbr::Bbr;
use crate::connection::{Bytes, Connection, Seconds};
use crate::deviations::Deviations;
use crate::sender::Sender;

/// A connection's sender, with the time at which the program began: that of the draft's Now().
#[derive(Clone, Debug)]
pub struct Shared {
    sender: Arc<Mutex<Sender>>,
    start: Instant,
}

impl Shared {
    pub fn lock(&self) -> MutexGuard<'_, Sender> {
        self.sender.lock().unwrap()
    }

    pub fn seconds(&self, at: Instant) -> Seconds {
        at.duration_since(self.start).as_secs_f64()
    }
}

impl Controller for Shared {
    fn on_packet_sent(&mut self, now: Instant, bytes: u16, number: u64) {
        let now = self.seconds(now);
        self.lock().sent(now, bytes.into(), number);
    }

    fn on_cwnd_limited(&mut self) {
        self.lock().window_is_in_the_way();
    }

    fn on_ack(&mut self, _: Instant, sent: Instant, bytes: u64, number: u64, _: bool, _: &RttEstimator) {
        let (sent, bytes) = (self.seconds(sent), bytes as Bytes);
        self.lock().acknowledged(number, |packet| packet.send_time == sent && packet.bytes == bytes);
    }

    fn on_end_acks(&mut self, _: Instant, inflight: u64, _: bool, _: Option<u64>) {
        self.lock().set_inflight(inflight as Bytes);
    }

    fn on_packet_lost(&mut self, bytes: u16, number: u64, _: Instant) {
        self.lock().lost(number, |packet| packet.bytes == Bytes::from(bytes));
    }

    fn on_congestion_event(&mut self, _: Instant, _: Instant, is_persistent: bool, is_ecn: bool, _: u64, _: u64) {
        let mut sender = self.lock();
        if is_persistent {
            sender.in_persistent_congestion();
        }
        if is_ecn {
            sender.marked();
        }
    }

    fn on_spurious_congestion_event(&mut self) {
        self.lock().spurious();
    }

    /// Datagrams have one size from the first on (`serve`).
    fn on_mtu_update(&mut self, _: u16) {}

    fn window(&self) -> u64 {
        self.lock().bbr.c.cwnd as u64
    }

    /// noq-proto's own pacer is told to hold nothing back: `serve` paces.
    fn metrics(&self) -> ControllerMetrics {
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = self.window();
        metrics.pacing_rate = Some(1 << 50);
        metrics
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        self.lock().bbr.c.initial_cwnd as u64
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

pub struct Factory {
    start: Instant,
    deviations: Deviations,
    last: Mutex<Option<Shared>>,
}

impl Factory {
    pub fn new(deviations: Deviations) -> Arc<Self> {
        Arc::new(Self { start: Instant::now(), deviations, last: Mutex::new(None) })
    }

    /// The sender of the path that was made last, once.
    pub fn take(&self) -> Option<Shared> {
        self.last.lock().unwrap().take()
    }
}

impl ControllerFactory for Factory {
    fn build(self: Arc<Self>, now: Instant, mtu: u16) -> Box<dyn Controller> {
        let now = now.duration_since(self.start).as_secs_f64();
        let bbr = Bbr::new(Connection::new(now, mtu.into()), self.deviations.clone(), seed());
        let shared = Shared { sender: Arc::new(Mutex::new(Sender::new(bbr))), start: self.start };
        *self.last.lock().unwrap() = Some(shared.clone());
        Box::new(shared)
    }
}

/// A guest answers getrandom(2) from the trial's seed.
fn seed() -> u64 {
    let mut seed = [0u8; 8];
    unsafe { libc::getrandom(seed.as_mut_ptr().cast(), 8, 0) };
    u64::from_le_bytes(seed)
}
