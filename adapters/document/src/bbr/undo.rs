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
