//! BBRv3 as draft-ietf-ccwg-bbr has it: a function for each of the draft's, under its section and name, a file for each
//! part of the state machine. `draft.json` beside `src` has a digest of each section and block of the text that this was
//! written from. Where that text is silent or contradicts itself, "EVIDENCE" refers to a decision in EVIDENCE.txt.

mod control;
mod drain;
mod idle;
mod loss;
mod model;
mod probe_bw;
mod probe_rtt;
mod startup;
mod undo;

use crate::connection::{Bytes, Connection, Packet, Rate, Report, Seconds};
use crate::deviations::Deviations;
use crate::filter::MaxFilter;
use crate::random::Random;
use crate::rate::RateSample;

/// 5.1.1
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum State {
    Startup,
    Drain,
    ProbeBwDown,
    ProbeBwCruise,
    ProbeBwRefill,
    ProbeBwUp,
    ProbeRtt,
}

/// 2.14
#[derive(Clone, Copy, Debug, PartialEq)]
enum AckPhase {
    Init,
    Refilling,
    ProbeStarting,
    ProbeFeedback,
    ProbeStopping,
}

/// 2.5
const STARTUP_PACING_GAIN: f64 = 2.77;
const DRAIN_PACING_GAIN: f64 = 0.5;
const PACING_MARGIN_PERCENT: f64 = 1.0;
/// 5.3.3.1, 5.3.3.5 and 5.6.1, without names
const DOWN_PACING_GAIN: f64 = 0.9;
const UP_PACING_GAIN: f64 = 1.25;
const UP_CWND_GAIN: f64 = 2.25;
/// 2.6
const DEFAULT_CWND_GAIN: f64 = 2.0;
/// 2.8
const LOSS_THRESH: f64 = 0.02;
const BETA: f64 = 0.7;
const HEADROOM: f64 = 0.15;
const MIN_PIPE_CWND_PACKETS: f64 = 4.0;
/// 2.11, in ProbeBW cycles
const MAX_BW_FILTER_LEN: u64 = 2;
/// 2.12, in rounds
const EXTRA_ACKED_FILTER_LEN: u64 = 10;
/// 2.16.1
const MIN_RTT_FILTER_LEN: Seconds = 10.0;
/// 2.16.2
const PROBE_RTT_CWND_GAIN: f64 = 0.5;
const PROBE_RTT_DURATION: Seconds = 0.2;
const PROBE_RTT_INTERVAL: Seconds = 5.0;
/// 5.3.1.2
const FULL_BW_GROWTH: f64 = 1.25;
const FULL_BW_ROUNDS: f64 = 3.0;
/// 5.3.1.3
const STARTUP_FULL_LOSS_CNT: f64 = 6.0;
const INFINITY: f64 = f64::INFINITY;

/// Variables of 2.5 to 2.16 ("BBR."), and with them C. and RS., to which all steps have access (2).
#[derive(Clone, Debug)]
pub struct Bbr {
    pub c: Connection,
    rs: RateSample,
    d: Deviations,
    random: Random,
    pub state: State,
    pacing_gain: f64,
    cwnd_gain: f64,
    round_count: u64,
    round_start: bool,
    next_round_delivered: Bytes,
    idle_restart: bool,
    drain_start_round: u64,
    pub max_bw: Rate,
    pub bw_shortterm: Rate,
    pub bw: Rate,
    pub min_rtt: Seconds,
    bdp: Bytes,
    extra_acked: Bytes,
    offload_budget: Bytes,
    max_inflight: Bytes,
    pub inflight_longterm: Bytes,
    pub inflight_shortterm: Bytes,
    bw_latest: Rate,
    inflight_latest: Bytes,
    max_bw_filter: MaxFilter,
    cycle_count: u64,
    extra_acked_interval_start: Seconds,
    extra_acked_delivered: Bytes,
    extra_acked_filter: MaxFilter,
    full_bw_reached: bool,
    full_bw_now: bool,
    full_bw: Rate,
    full_bw_count: u32,
    ack_phase: AckPhase,
    is_bw_probe_sample: bool,
    is_loss_in_round: bool,
    loss_round_delivered: Bytes,
    loss_round_start: bool,
    bw_probe_up_acked: Bytes,
    probe_up_acked_per_inc: Bytes,
    bw_probe_up_rounds: u32,
    rounds_since_probe_up: u64,
    bw_probe_wait: Seconds,
    cycle_stamp: Seconds,
    prev_probe_too_high: bool,
    prev_probe_precautionary: bool,
    undo_state: Option<State>,
    undo_bw_shortterm: Rate,
    undo_inflight_shortterm: Bytes,
    undo_inflight_longterm: Bytes,
    min_rtt_stamp: Seconds,
    probe_rtt_min_delay: Seconds,
    probe_rtt_min_stamp: Seconds,
    probe_rtt_expired: bool,
    probe_rtt_done_stamp: Option<Seconds>,
    probe_rtt_round_done: bool,
    prior_cwnd: Bytes,
    // What the draft leaves to the transport, or describes and does not name: see `loss.rs`.
    is_in_loss_recovery: bool,
    recovery_start: Seconds,
    lost_ranges: f64,
    last_lost: Option<u64>,
    has_rtt: bool,
    rate_before: Rate,
}

impl Bbr {
    /// 5.2.1 OnInit
    pub fn new(c: Connection, d: Deviations, seed: u64) -> Self {
        let now = c.now;
        let mut bbr = Self {
            random: Random::new(seed),
            rs: RateSample::default(),
            state: State::Startup,
            pacing_gain: 0.0,
            cwnd_gain: 0.0,
            round_count: 0,
            round_start: false,
            next_round_delivered: 0.0,
            idle_restart: false,
            drain_start_round: 0,
            max_bw: 0.0,
            bw_shortterm: INFINITY,
            bw: 0.0,
            min_rtt: c.srtt.unwrap_or(INFINITY),
            bdp: 0.0,
            extra_acked: 0.0,
            offload_budget: 0.0,
            max_inflight: 0.0,
            inflight_longterm: INFINITY,
            inflight_shortterm: INFINITY,
            bw_latest: 0.0,
            inflight_latest: 0.0,
            max_bw_filter: MaxFilter::default(),
            cycle_count: 0,
            extra_acked_interval_start: now,
            extra_acked_delivered: 0.0,
            extra_acked_filter: MaxFilter::default(),
            full_bw_reached: false,
            full_bw_now: false,
            full_bw: 0.0,
            full_bw_count: 0,
            ack_phase: AckPhase::Init,
            is_bw_probe_sample: false,
            is_loss_in_round: false,
            loss_round_delivered: 0.0, // EVIDENCE 9
            loss_round_start: false,
            bw_probe_up_acked: 0.0,
            probe_up_acked_per_inc: INFINITY,
            bw_probe_up_rounds: 0,
            rounds_since_probe_up: 0,
            bw_probe_wait: 0.0,
            cycle_stamp: 0.0,
            prev_probe_too_high: false,
            prev_probe_precautionary: false,
            undo_state: None,
            undo_bw_shortterm: 0.0,
            undo_inflight_shortterm: 0.0,
            undo_inflight_longterm: 0.0,
            min_rtt_stamp: now,
            probe_rtt_min_delay: INFINITY, // EVIDENCE 9
            probe_rtt_min_stamp: now,      // EVIDENCE 9
            probe_rtt_expired: false,
            probe_rtt_done_stamp: None,
            probe_rtt_round_done: false,
            prior_cwnd: 0.0,
            is_in_loss_recovery: false,
            recovery_start: f64::NEG_INFINITY,
            lost_ranges: 0.0,
            last_lost: None,
            has_rtt: c.srtt.is_some(),
            rate_before: 0.0,
            c,
            d,
        };
        bbr.reset_congestion_signals();
        bbr.reset_short_term_model();
        bbr.init_round_counting();
        bbr.reset_full_bw();
        bbr.init_pacing_rate();
        bbr.enter_startup();
        bbr
    }

    /// 5.2.2 OnTransmit, then 4.1.2.2 OnPacketSent; and 2.2, C.is_cwnd_limited.
    pub fn on_transmit(&mut self, now: Seconds, packet_id: u64, bytes: Bytes) -> Packet {
        self.c.now = now;
        self.handle_restart_from_idle();
        let packet = self.c.on_packet_sent(packet_id, bytes);
        if self.c.inflight + self.c.smss > self.c.cwnd {
            self.note_cwnd_limited();
        }
        packet
    }

    pub fn note_cwnd_limited(&mut self) {
        self.c.cwnd_limited_at = self.c.delivered;
    }

    /// 2.2 C.is_cwnd_limited: a packet-timed round trip (5.5.1) lasts until a packet that was sent later is acknowledged.
    fn is_cwnd_limited(&self) -> bool {
        self.c.cwnd_limited_at >= self.rs.prior_delivered
    }

    pub fn is_unpaced(&self) -> bool {
        self.d.on("unpaced")
    }

    /// 5.2.3 to 5.2.5, in the order of EVIDENCE 3: what was acknowledged is counted, then an undo, then losses.
    pub fn on_report(&mut self, report: &Report) {
        self.rs = RateSample::default(); // 4.1.2.3 InitRateSample
        for packet in &report.acked {
            self.c.update_rate_sample(&mut self.rs, packet);
        }
        if report.is_spurious {
            self.on_spurious();
        }
        self.on_losses(report);
        if !report.acked.is_empty() {
            self.update_on_ack(report);
        } else if report.is_spurious {
            // 5.2.3, "On every ACK": this one has no rate sample (EVIDENCE 3).
            self.bound_bw_for_model();
            self.update_control_parameters();
        }
    }

    /// 5.2.3 UpdateOnACK
    fn update_on_ack(&mut self, report: &Report) {
        let mut rs = self.rs;
        self.c.generate_rate_sample(&mut rs);
        if self.d.on("bandwidth-by-acks") && rs.ack_elapsed > 0.0 {
            rs.delivery_rate = rs.delivered / rs.ack_elapsed;
        }
        self.rs = rs;
        if self.d.on("rate-of-the-ack-before") {
            std::mem::swap(&mut self.rs.delivery_rate, &mut self.rate_before);
        }
        if !self.has_rtt && self.c.srtt.is_some() {
            self.has_rtt = true;
            if !self.d.on("initial-rate-kept") {
                self.init_pacing_rate(); // EVIDENCE 10
            }
        }
        self.update_model_and_state();
        self.leave_loss_recovery(report);
        self.update_control_parameters();
    }

    /// 5.2.3 UpdateModelAndState
    fn update_model_and_state(&mut self) {
        self.update_latest_delivery_signals();
        self.update_congestion_signals();
        self.update_ack_aggregation();
        self.check_full_bw_reached();
        self.check_startup_done();
        self.check_drain_done();
        self.update_probe_bw_cycle_phase();
        self.update_min_rtt();
        self.check_probe_rtt();
        self.advance_latest_delivery_signals();
        self.bound_bw_for_model();
    }

    /// 5.2.3 UpdateControlParameters
    fn update_control_parameters(&mut self) {
        self.set_pacing_rate();
        self.set_send_quantum();
        self.set_cwnd();
    }
}
