//! Pacing rate, send quantum and window: 5.6. When a packet leaves (C.next_send_time, 5.6.2) is `sender.rs`.

use super::*;

impl Bbr {
    /// 5.6.2 InitPacingRate
    pub(super) fn init_pacing_rate(&mut self) {
        let srtt = self.c.srtt.unwrap_or(0.001);
        let nominal_bandwidth = self.c.initial_cwnd / srtt;
        self.c.pacing_rate = self.d.number("startup-gain", STARTUP_PACING_GAIN) * nominal_bandwidth;
    }

    /// 5.6.2 SetPacingRateWithGain: EVIDENCE 7
    pub(super) fn set_pacing_rate_with_gain(&mut self, pacing_gain: f64) {
        let margin_percent = self.d.number("pacing-margin", PACING_MARGIN_PERCENT);
        let rate = pacing_gain * self.bw * (100.0 - margin_percent) / 100.0;
        if self.full_bw_reached && !self.d.on("rate-kept") || rate > self.c.pacing_rate {
            self.c.pacing_rate = rate;
        }
    }

    /// 5.6.2 SetPacingRate
    pub(super) fn set_pacing_rate(&mut self) {
        self.set_pacing_rate_with_gain(self.pacing_gain);
    }

    /// 5.6.3 SetSendQuantum
    pub(super) fn set_send_quantum(&mut self) {
        let quantum = (self.c.pacing_rate * 0.001).min(65536.0);
        self.c.send_quantum = quantum.max(self.d.number("burst-packets", 2.0) * self.c.smss);
    }

    /// 5.6.4.2 BDPMultiple
    fn bdp_multiple(&mut self, gain: f64) -> Bytes {
        if self.min_rtt == INFINITY {
            return self.c.initial_cwnd;
        }
        self.bdp = self.bw * self.min_rtt;
        gain * self.bdp
    }

    /// 5.6.4.2 QuantizationBudget
    fn quantization_budget(&self, inflight_cap: Bytes) -> Bytes {
        let mut inflight_cap = inflight_cap.max(self.offload_budget).max(self.min_pipe_cwnd());
        if self.state == State::ProbeBwUp {
            inflight_cap += 2.0 * self.c.smss;
        }
        inflight_cap
    }

    /// 5.6.4.2 Inflight
    pub(super) fn inflight(&mut self, gain: f64) -> Bytes {
        self.update_offload_budget();
        let inflight_cap = self.bdp_multiple(gain * self.d.number("inflight-gain", 1.0));
        self.quantization_budget(inflight_cap)
    }

    /// Inflight of two arguments, which 5.3.3.9 has and nothing defines: EVIDENCE 8
    pub(super) fn inflight_at(&self, bw: Rate, gain: f64) -> Bytes {
        if self.min_rtt == INFINITY {
            return self.quantization_budget(self.c.initial_cwnd);
        }
        self.quantization_budget(gain * self.d.number("inflight-gain", 1.0) * bw * self.min_rtt)
    }

    /// 5.6.4.2 UpdateMaxInflight
    fn update_max_inflight(&mut self) {
        self.update_offload_budget();
        let mut inflight_cap = self.bdp_multiple(self.cwnd_gain);
        inflight_cap += self.extra_acked;
        self.max_inflight = self.quantization_budget(inflight_cap);
    }

    /// 2.8, BBR.MinPipeCwnd
    pub(super) fn min_pipe_cwnd(&self) -> Bytes {
        self.d.number("minimum-packets", MIN_PIPE_CWND_PACKETS) * self.c.smss
    }

    /// 5.6.4.4 OnEnterRTO: QUIC's nearest is persistent congestion, and 1 a packet (EVIDENCE 13)
    pub(super) fn on_enter_rto(&mut self) {
        if self.d.on("no-persistent-congestion") {
            return;
        }
        self.save_cwnd();
        self.save_state_upon_loss();
        self.c.cwnd = self.c.inflight + self.c.smss;
        self.is_in_loss_recovery = true;
        self.recovery_start = self.c.now;
    }

    /// 5.6.4.4 OnEnterFastRecovery
    pub(super) fn on_enter_fast_recovery(&mut self) {
        self.save_cwnd();
        self.save_state_upon_loss();
        self.is_in_loss_recovery = true;
        self.recovery_start = self.c.now;
        if self.d.on("loss-cuts-window") {
            self.c.cwnd = (self.c.inflight + self.rs.newly_acked).max(self.min_pipe_cwnd());
        }
    }

    /// 5.6.4.4 SaveCwnd
    pub(super) fn save_cwnd(&mut self) {
        if !self.is_in_loss_recovery && self.state != State::ProbeRtt {
            self.prior_cwnd = self.c.cwnd;
        } else {
            self.prior_cwnd = self.prior_cwnd.max(self.c.cwnd);
        }
    }

    /// 5.6.4.4 RestoreCwnd
    pub(super) fn restore_cwnd(&mut self) {
        self.c.cwnd = self.c.cwnd.max(self.prior_cwnd);
    }

    /// 5.6.4.5 ProbeRTTCwnd: EVIDENCE 8 and 14
    pub(super) fn probe_rtt_cwnd(&mut self) -> Bytes {
        let gain = self.d.number("probe-rtt-gain", PROBE_RTT_CWND_GAIN);
        self.bdp_multiple(gain).max(self.min_pipe_cwnd())
    }

    /// 5.6.4.5 BoundCwndForProbeRTT
    fn bound_cwnd_for_probe_rtt(&mut self) {
        if self.state == State::ProbeRtt {
            self.c.cwnd = self.c.cwnd.min(self.probe_rtt_cwnd());
        }
    }

    /// 5.6.4.6 SetCwnd
    pub(super) fn set_cwnd(&mut self) {
        self.update_max_inflight();
        if self.full_bw_reached {
            self.c.cwnd = (self.c.cwnd + self.rs.newly_acked).min(self.max_inflight);
        } else if self.c.cwnd < self.max_inflight || self.c.delivered < self.c.initial_cwnd {
            self.c.cwnd += self.rs.newly_acked;
        }
        self.c.cwnd = self.c.cwnd.max(self.min_pipe_cwnd());
        self.bound_cwnd_for_probe_rtt();
        self.bound_cwnd_for_model();
    }

    /// 5.6.4.7 BoundCwndForModel: without inflight_longterm in Drain, EVIDENCE 22
    fn bound_cwnd_for_model(&mut self) {
        let mut cap = INFINITY;
        if self.is_in_a_probe_bw_state() && self.state != State::ProbeBwCruise {
            let is_bound = self.state != State::ProbeBwUp || !self.d.on("up-unbounded");
            cap = if is_bound { self.inflight_longterm } else { INFINITY };
        } else if self.state == State::ProbeRtt || self.state == State::ProbeBwCruise {
            cap = self.inflight_with_headroom();
        }
        if self.state != State::ProbeBwCruise || !self.d.on("cruise-unbounded") {
            cap = cap.min(self.inflight_shortterm);
        }
        cap = cap.max(self.min_pipe_cwnd());
        self.c.cwnd = self.c.cwnd.min(cap);
    }
}
