//! BBR.min_rtt and ProbeRTT: 5.3.4.

use super::*;

impl Bbr {
    /// 5.3.4.3 UpdateMinRTT
    pub(super) fn update_min_rtt(&mut self) {
        let now = self.c.now;
        let interval = self.d.number("probe-rtt-interval", PROBE_RTT_INTERVAL);
        self.probe_rtt_expired = now > self.probe_rtt_min_stamp + interval;
        if let Some(rtt) = self.rs.rtt
            && (rtt < self.probe_rtt_min_delay * self.d.number("rtt-renews", 1.0) || self.probe_rtt_expired)
        {
            self.probe_rtt_min_delay = rtt;
            self.probe_rtt_min_stamp = now;
        }
        let min_rtt_expired = now > self.min_rtt_stamp + self.d.number("min-rtt-filter", MIN_RTT_FILTER_LEN);
        if self.probe_rtt_min_delay < self.min_rtt || min_rtt_expired {
            self.min_rtt = self.probe_rtt_min_delay;
            self.min_rtt_stamp = self.probe_rtt_min_stamp;
        }
        if self.d.on("latest-rtt") {
            self.min_rtt = self.rs.rtt.unwrap_or(self.min_rtt);
        }
    }

    /// 5.3.4.3 CheckProbeRTT
    pub(super) fn check_probe_rtt(&mut self) {
        if self.state != State::ProbeRtt
            && self.probe_rtt_expired
            && !self.idle_restart
            && !self.d.on("no-probe-rtt")
        {
            self.save_cwnd(); // before the state is another: EVIDENCE 5
            self.enter_probe_rtt();
            self.probe_rtt_done_stamp = None;
            self.ack_phase = AckPhase::ProbeStopping;
            self.start_round();
        }
        if self.state == State::ProbeRtt {
            self.handle_probe_rtt();
        }
        if self.rs.delivered > 0.0 && !self.d.on("idle-restart-kept") {
            self.idle_restart = false;
        }
    }

    /// 5.3.4.3 EnterProbeRTT
    fn enter_probe_rtt(&mut self) {
        self.state = State::ProbeRtt;
        self.pacing_gain = 1.0;
        self.cwnd_gain = self.d.number("probe-rtt-gain", PROBE_RTT_CWND_GAIN);
    }

    /// 5.3.4.3 HandleProbeRTT
    fn handle_probe_rtt(&mut self) {
        self.c.mark_connection_app_limited();
        if self.probe_rtt_done_stamp.is_none() && self.c.inflight <= self.probe_rtt_cwnd() {
            let duration = self.d.number("probe-rtt-duration", PROBE_RTT_DURATION);
            self.probe_rtt_done_stamp = Some(self.c.now + duration);
            self.probe_rtt_round_done = false;
            self.start_round();
        } else if self.probe_rtt_done_stamp.is_some() {
            if self.round_start {
                self.probe_rtt_round_done = true;
            }
            if self.probe_rtt_round_done {
                self.check_probe_rtt_done();
            }
        }
    }

    /// 5.3.4.3 CheckProbeRTTDone
    pub(super) fn check_probe_rtt_done(&mut self) {
        if self.probe_rtt_done_stamp.is_some_and(|done| self.c.now > done) && !self.d.on("probe-rtt-stays") {
            self.probe_rtt_min_stamp = self.c.now;
            self.restore_cwnd();
            self.exit_probe_rtt();
        }
    }

    /// 5.3.4.4 ExitProbeRTT
    fn exit_probe_rtt(&mut self) {
        self.reset_short_term_model();
        if self.full_bw_reached {
            self.start_probe_bw_down();
            self.start_probe_bw_cruise();
        } else {
            self.enter_startup();
        }
    }
}
