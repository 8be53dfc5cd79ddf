//! Startup, and the estimators of a full pipe: 5.3.1.

use super::*;

impl Bbr {
    /// 5.3.1.1 EnterStartup
    pub(super) fn enter_startup(&mut self) {
        self.state = State::Startup;
        self.pacing_gain = self.d.number("startup-gain", STARTUP_PACING_GAIN);
        self.cwnd_gain = self.d.number("startup-cwnd-gain", DEFAULT_CWND_GAIN);
    }

    /// 5.3.1.1 CheckStartupDone
    pub(super) fn check_startup_done(&mut self) {
        self.check_startup_high_loss();
        if self.state == State::Startup && self.full_bw_reached {
            self.enter_drain();
        }
    }

    /// 5.3.1.2 ResetFullBW
    pub(super) fn reset_full_bw(&mut self) {
        self.full_bw = 0.0;
        self.full_bw_count = 0;
        self.full_bw_now = false;
    }

    /// 5.3.1.2 CheckFullBWReached
    pub(super) fn check_full_bw_reached(&mut self) {
        let is_app_limited = self.rs.is_app_limited && !self.d.on("app-limited-counts");
        let is_due = self.round_start || self.d.on("growth-each-ack");
        if self.full_bw_now || !is_due || is_app_limited {
            return;
        }
        if self.rs.delivery_rate >= self.full_bw * self.d.number("full-bw-growth", FULL_BW_GROWTH) {
            self.reset_full_bw();
            self.full_bw = self.rs.delivery_rate;
            return;
        }
        if !self.round_start {
            return;
        }
        self.full_bw_count += 1;
        let rounds = if self.state == State::Startup { "startup-rounds" } else { "up-rounds" };
        self.full_bw_now = f64::from(self.full_bw_count) >= self.d.number(rounds, FULL_BW_ROUNDS);
        if self.full_bw_now {
            self.full_bw_reached = true;
        }
    }

    /// 5.3.1.3, CheckStartupHighLoss, which is prose: EVIDENCE 11
    fn check_startup_high_loss(&mut self) {
        let ranges = self.lost_ranges;
        if !self.loss_round_start {
            return;
        }
        self.lost_ranges = 0.0;
        if (self.state == State::Startup || self.d.on("startup-check-always"))
            && self.is_in_loss_recovery
            && ranges >= self.d.number("startup-losses", STARTUP_FULL_LOSS_CNT)
            && self.is_inflight_too_high(&self.rs)
        {
            self.undo_state = Some(State::Startup);
            self.full_bw_reached = true;
            self.inflight_longterm = self.bdp.max(self.inflight_latest);
        }
    }
}
