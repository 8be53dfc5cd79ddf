//! Drain: 5.3.2.

use super::*;

impl Bbr {
    /// 5.3.2 EnterDrain
    pub(super) fn enter_drain(&mut self) {
        self.state = State::Drain;
        self.pacing_gain = self.d.number("drain-gain", DRAIN_PACING_GAIN);
        self.cwnd_gain = DEFAULT_CWND_GAIN;
        self.drain_start_round = self.round_count;
    }

    /// 5.3.2 CheckDrainDone
    pub(super) fn check_drain_done(&mut self) {
        if self.state != State::Drain {
            return;
        }
        let is_late = self.round_count > self.drain_start_round + 3 && !self.d.on("drain-unbounded");
        if self.c.inflight <= self.inflight(1.0) || is_late || self.d.on("no-drain") {
            self.enter_probe_bw();
        }
    }
}
