//! Restarting from idle: 5.4.

use super::*;

impl Bbr {
    /// 5.4.1 HandleRestartFromIdle
    pub(super) fn handle_restart_from_idle(&mut self) {
        if self.c.inflight != 0.0 || self.c.app_limited == 0.0 || self.d.on("no-idle-restart") {
            return;
        }
        self.idle_restart = true;
        self.extra_acked_interval_start = self.c.now;
        if self.is_in_a_probe_bw_state() {
            self.set_pacing_rate_with_gain(1.0);
        } else if self.state == State::ProbeRtt {
            self.check_probe_rtt_done();
        }
    }
}
