//! ProbeBW: 5.3.3. Each state's gains are those of the table in 5.6.1, as no step sets them (EVIDENCE 4).

use super::*;

impl Bbr {
    /// 5.3.3.8.3 IsTimeToProbeBW
    fn is_time_to_probe_bw(&mut self) -> bool {
        if self.has_elapsed_in_phase(self.bw_probe_wait) || self.is_reno_coexistence_probe_time() {
            self.start_probe_bw_refill();
            return true;
        }
        false
    }

    /// 5.3.3.8.3 PickProbeWait
    fn pick_probe_wait(&mut self) {
        self.rounds_since_probe_up = self.random.int_between_0_and_1();
        self.bw_probe_wait = 2.0 + self.random.float_between_0_and_1();
    }

    /// 5.3.3.8.3 IsRenoCoexistenceProbeTime: in packets, EVIDENCE 6
    fn is_reno_coexistence_probe_time(&self) -> bool {
        let unit = if self.d.on("reno-in-bytes") { 1.0 } else { self.c.smss };
        let reno_rounds = self.target_inflight() / unit;
        let rounds = reno_rounds.min(63.0);
        self.rounds_since_probe_up as f64 >= rounds && !self.d.on("no-reno-time")
    }

    /// 5.3.3.8.3 TargetInflight
    pub(super) fn target_inflight(&self) -> Bytes {
        self.bdp.min(self.c.cwnd)
    }

    /// 5.3.3.9 EnterProbeBW
    pub(super) fn enter_probe_bw(&mut self) {
        self.cwnd_gain = DEFAULT_CWND_GAIN;
        self.start_probe_bw_down();
    }

    /// 5.3.3.9 StartProbeBW_DOWN
    pub(super) fn start_probe_bw_down(&mut self) {
        self.reset_congestion_signals();
        self.probe_up_acked_per_inc = INFINITY;
        self.pick_probe_wait();
        self.cycle_stamp = self.c.now;
        self.ack_phase = AckPhase::ProbeStopping;
        self.start_round();
        self.state = State::ProbeBwDown;
        self.pacing_gain = DOWN_PACING_GAIN;
        self.cwnd_gain = self.d.number("cwnd-gain", DEFAULT_CWND_GAIN);
    }

    /// 5.3.3.9 StartProbeBW_CRUISE
    pub(super) fn start_probe_bw_cruise(&mut self) {
        self.state = State::ProbeBwCruise;
        self.pacing_gain = 1.0;
        self.cwnd_gain = self.d.number("cwnd-gain", DEFAULT_CWND_GAIN);
    }

    /// 5.3.3.9 StartProbeBW_REFILL
    pub(super) fn start_probe_bw_refill(&mut self) {
        self.reset_short_term_model();
        self.bw_probe_up_rounds = 0;
        self.bw_probe_up_acked = 0.0;
        self.prev_probe_precautionary = false;
        self.ack_phase = AckPhase::Refilling;
        self.start_round();
        self.state = State::ProbeBwRefill;
        self.pacing_gain = 1.0;
        self.cwnd_gain = self.d.number("cwnd-gain", DEFAULT_CWND_GAIN);
    }

    /// 5.3.3.9 StartProbeBW_UP
    fn start_probe_bw_up(&mut self) {
        self.ack_phase = AckPhase::ProbeStarting;
        self.start_round();
        self.reset_full_bw();
        self.full_bw = self.rs.delivery_rate;
        self.state = State::ProbeBwUp;
        self.pacing_gain = self.d.number("up-gain", UP_PACING_GAIN);
        self.cwnd_gain = self.d.number("up-cwnd-gain", UP_CWND_GAIN);
        self.raise_inflight_longterm_slope();
    }

    /// 5.3.3.9 UpdateProbeBWCyclePhase
    pub(super) fn update_probe_bw_cycle_phase(&mut self) {
        if !self.full_bw_reached {
            return;
        }
        if self.d.on("longterm-is-flight") {
            let longest = if self.inflight_longterm == INFINITY { 0.0 } else { self.inflight_longterm };
            self.inflight_longterm = longest.max(self.c.inflight);
        }
        if self.adapt_long_term_model() {
            return;
        }
        match self.state {
            State::ProbeBwDown => {
                if !self.d.on("down-stays") && self.is_time_to_probe_bw() {
                    return;
                }
                if self.is_time_to_cruise() {
                    self.start_probe_bw_cruise();
                }
            }
            State::ProbeBwCruise => {
                self.is_time_to_probe_bw();
            }
            State::ProbeBwRefill => {
                if self.round_start {
                    self.is_bw_probe_sample = true;
                    self.start_probe_bw_up();
                }
            }
            State::ProbeBwUp => {
                if self.is_time_to_go_down() {
                    self.prev_probe_too_high = false;
                    self.start_probe_bw_down();
                }
            }
            State::Startup | State::Drain | State::ProbeRtt => {}
        }
    }

    /// 5.3.3.9 IsInAProbeBWState
    pub(super) fn is_in_a_probe_bw_state(&self) -> bool {
        matches!(
            self.state,
            State::ProbeBwDown | State::ProbeBwCruise | State::ProbeBwRefill | State::ProbeBwUp
        )
    }

    /// 5.3.3.9 IsTimeToCruise
    fn is_time_to_cruise(&self) -> bool {
        if self.d.on("down-one-rtt") && self.has_elapsed_in_phase(self.min_rtt) {
            return true;
        }
        if self.c.inflight > self.inflight_with_headroom() && !self.d.on("no-headroom") {
            return false;
        }
        self.c.inflight <= self.inflight_at(self.max_bw, 1.0)
    }

    /// 5.3.3.9 IsTimeToGoDown
    fn is_time_to_go_down(&mut self) -> bool {
        let is_precautionary = self.prev_probe_too_high && !self.d.on("not-precautionary");
        if is_precautionary && self.has_reached_inflight_longterm() {
            self.prev_probe_precautionary = true;
            return true;
        }
        if self.is_cwnd_limited() && self.c.cwnd >= self.inflight_longterm {
            self.reset_full_bw();
            self.full_bw = self.rs.delivery_rate;
        } else if self.full_bw_now {
            return true;
        }
        self.d.on("up-one-rtt-too-long") && self.rs.rtt.is_some_and(|rtt| rtt > 1.25 * self.min_rtt)
    }

    /// 5.3.3.6, where 5.3.3.9 has C.inflight >= BBR.inflight_longterm: EVIDENCE 21
    fn has_reached_inflight_longterm(&self) -> bool {
        self.c.inflight + self.rs.newly_acked + self.c.smss > self.inflight_longterm
    }

    /// 5.3.3.9 IsProbingBW
    pub(super) fn is_probing_bw(&self) -> bool {
        matches!(self.state, State::Startup | State::ProbeBwRefill | State::ProbeBwUp)
    }

    /// 5.3.3.9 HasElapsedInPhase
    fn has_elapsed_in_phase(&self, interval: Seconds) -> bool {
        self.c.now > self.cycle_stamp + interval
    }

    /// 5.3.3.9 InflightWithHeadroom
    pub(super) fn inflight_with_headroom(&self) -> Bytes {
        if self.inflight_longterm == INFINITY {
            return INFINITY;
        }
        if self.d.on("no-headroom") {
            return self.inflight_longterm;
        }
        let headroom = self.c.smss.max(self.d.number("headroom", HEADROOM) * self.inflight_longterm);
        (self.inflight_longterm - headroom).max(self.min_pipe_cwnd())
    }

    /// 5.3.3.9 RaiseInflightLongtermSlope
    fn raise_inflight_longterm_slope(&mut self) {
        let growth_this_round = (1u64 << self.bw_probe_up_rounds) as f64;
        self.bw_probe_up_rounds = (self.bw_probe_up_rounds + 1).min(30);
        self.probe_up_acked_per_inc = (self.c.cwnd / growth_this_round).max(self.c.smss);
    }

    /// 5.3.3.9 ProbeInflightLongtermUpward
    fn probe_inflight_longterm_upward(&mut self) {
        if !self.is_cwnd_limited() || self.c.cwnd < self.inflight_longterm || self.d.on("inflight-kept") {
            return;
        }
        self.bw_probe_up_acked += self.rs.newly_acked;
        if self.bw_probe_up_acked >= self.probe_up_acked_per_inc {
            let delta = (self.bw_probe_up_acked / self.probe_up_acked_per_inc).floor();
            let taken = if self.d.on("up-rest-kept") { delta } else { delta * self.probe_up_acked_per_inc };
            self.bw_probe_up_acked -= taken;
            self.inflight_longterm += delta * self.c.smss;
        }
        if self.round_start {
            self.raise_inflight_longterm_slope();
        }
    }

    /// 5.3.3.9 AdaptLongTermModel
    fn adapt_long_term_model(&mut self) -> bool {
        if self.ack_phase == AckPhase::ProbeStarting && self.round_start {
            self.ack_phase = AckPhase::ProbeFeedback;
        }
        if self.ack_phase == AckPhase::ProbeStopping && self.round_start {
            self.is_bw_probe_sample = false;
            if !self.d.on("filter-by-round") {
                self.ack_phase = AckPhase::Init;
            }
            if self.is_in_a_probe_bw_state() && !self.rs.is_app_limited {
                self.advance_max_bw_filter();
            }
            if self.is_in_a_probe_bw_state() && self.prev_probe_precautionary && !self.prev_probe_too_high {
                self.start_probe_bw_refill();
                return true;
            }
        }
        if !self.is_inflight_too_high(&self.rs) {
            if self.inflight_longterm == INFINITY {
                return false;
            }
            if self.rs.tx_in_flight > self.inflight_longterm && !self.d.on("inflight-kept") {
                self.inflight_longterm = self.rs.tx_in_flight;
            }
            if self.state == State::ProbeBwUp {
                self.probe_inflight_longterm_upward();
            }
        }
        false
    }
}
