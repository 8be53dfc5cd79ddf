//! Loss recovery that turns out to have been for nothing: 5.5.11.

use super::*;

impl Bbr {
    /// 5.5.11.1 SaveStateUponLoss
    pub(super) fn save_state_upon_loss(&mut self) {
        self.save_cwnd();
        self.undo_state = None;
        self.undo_bw_shortterm = self.bw_shortterm;
        self.undo_inflight_shortterm = self.inflight_shortterm;
        self.undo_inflight_longterm = self.inflight_longterm;
    }

    /// 5.2.5, and 5.6.4.4: an undo ends loss recovery, too.
    pub(super) fn on_spurious(&mut self) {
        if self.d.on("no-undo") {
            return;
        }
        self.handle_spurious_loss_detection();
        self.is_in_loss_recovery = false;
    }

    /// 5.5.11.2 HandleSpuriousLossDetection
    fn handle_spurious_loss_detection(&mut self) {
        self.restore_cwnd();
        self.is_loss_in_round = false;
        self.reset_full_bw();
        self.bw_shortterm = self.bw_shortterm.max(self.undo_bw_shortterm);
        self.inflight_shortterm = self.inflight_shortterm.max(self.undo_inflight_shortterm);
        self.inflight_longterm = self.inflight_longterm.max(self.undo_inflight_longterm);
        if self.undo_state == Some(State::Startup) && self.state != State::Startup {
            self.full_bw_reached = false;
            if self.state != State::ProbeRtt {
                self.enter_startup();
            }
        } else if self.undo_state == Some(State::ProbeBwUp)
            && self.state != State::ProbeBwUp
            && self.state != State::ProbeRtt
        {
            self.start_probe_bw_refill();
        }
        self.undo_state = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 5.2.3: an ACK of nothing but packets that were taken for lost sets rate and window, too.
    #[test]
    fn an_undo_sets_the_rate_and_the_window_of_the_model_that_it_restores() {
        let mut bbr = Bbr::new(Connection::new(0.0, 1000.0), Deviations::of("bbrv3").unwrap(), 1);
        (bbr.full_bw_reached, bbr.state) = (true, State::ProbeBwCruise);
        (bbr.pacing_gain, bbr.cwnd_gain) = (1.0, 2.0);
        (bbr.max_bw, bbr.bw_shortterm, bbr.bw, bbr.min_rtt) = (1e6, 5e5, 5e5, 0.1);
        (bbr.undo_bw_shortterm, bbr.prior_cwnd) = (INFINITY, 1e9);
        bbr.on_report(&Report { is_spurious: true, ..Report::default() });
        assert_eq!((bbr.bw, bbr.c.pacing_rate, bbr.c.cwnd), (1e6, 0.99e6, 2e5));
    }
}
