//! Losses: 5.5.10; and when loss recovery begins and ends, which the draft leaves to the transport (5.6.4.4): as RFC 9002,
//! 7.3.2, has it (EVIDENCE 11).

use super::*;

impl Bbr {
    /// 5.2.4, and 5.6.4.4 on entering recovery
    pub(super) fn on_losses(&mut self, report: &Report) {
        if let Some(newest) = report.lost.last() {
            if !self.is_in_loss_recovery && newest.send_time > self.recovery_start {
                self.on_enter_fast_recovery();
            }
            let (before, ranges) = (self.c.lost, self.lost_ranges);
            for packet in &report.lost {
                self.c.lost = packet.bytes + if self.d.on("each-lost-alone") { before } else { self.c.lost };
                if !self.d.on("last-lost-only") || packet.packet_id == newest.packet_id {
                    self.handle_lost_packet(packet);
                }
            }
            self.c.lost = before + report.lost.iter().map(|packet| packet.bytes).sum::<Bytes>();
            if self.d.on("losses-by-ack") {
                self.lost_ranges = ranges + 1.0;
            }
            if report.is_persistent_congestion {
                self.on_enter_rto();
            }
        }
        // 3.7: a CE mark is a loss to the model, of the newest packet acknowledged (EVIDENCE 12).
        if report.is_marked && !self.d.on("deaf-to-ce") {
            let newest = report.acked.iter().max_by(|a, b| a.send_time.total_cmp(&b.send_time));
            if let Some(packet) = newest {
                self.c.lost += packet.bytes;
                self.handle_lost_packet(packet);
            }
        }
    }

    /// RFC 9002, 7.3.2: recovery ends once a packet that was sent in it is acknowledged.
    pub(super) fn leave_loss_recovery(&mut self, report: &Report) {
        if self.is_in_loss_recovery && report.acked.iter().any(|packet| packet.send_time > self.recovery_start) {
            self.is_in_loss_recovery = false;
            self.restore_cwnd();
        }
    }

    /// 5.5.10.2 IsInflightTooHigh: every QUIC connection has selective acknowledgements
    pub(super) fn is_inflight_too_high(&self, rs: &RateSample) -> bool {
        if self.d.on("two-bursts") && self.lost_ranges < 2.0 || self.d.on("four-lost") && rs.lost < 4.0 * self.c.smss {
            return false;
        }
        rs.lost > rs.tx_in_flight * self.loss_thresh()
    }

    fn loss_thresh(&self) -> f64 {
        self.d.number("loss-threshold", LOSS_THRESH)
    }

    /// 5.5.10.2 HandleInflightTooHigh
    fn handle_inflight_too_high(&mut self, rs: &RateSample) {
        self.prev_probe_too_high = true;
        self.is_bw_probe_sample = false;
        if !rs.is_app_limited {
            self.inflight_longterm = rs.tx_in_flight.max(self.target_inflight() * BETA);
        }
        if self.state == State::ProbeBwUp {
            self.undo_state = Some(State::ProbeBwUp);
            self.start_probe_bw_down();
        }
    }

    /// 5.5.10.2 NoteLoss: what recovery saved when it began is kept, EVIDENCE 17
    fn note_loss(&mut self) {
        if !self.is_loss_in_round {
            self.loss_round_delivered = self.c.delivered;
            if !self.is_in_loss_recovery {
                self.save_state_upon_loss();
            }
        }
        self.is_loss_in_round = true;
    }

    /// 5.5.10.2 HandleLostPacket: RS of a copy, EVIDENCE 2
    fn handle_lost_packet(&mut self, packet: &Packet) {
        self.note_loss();
        if self.last_lost.is_none_or(|last| packet.packet_id != last + 1) {
            self.lost_ranges += 1.0; // 5.3.1.3
        }
        self.last_lost = Some(packet.packet_id);
        if !self.is_bw_probe_sample {
            return;
        }
        let mut rs = self.rs;
        rs.tx_in_flight = packet.tx_in_flight;
        rs.lost = self.c.lost - packet.lost;
        rs.is_app_limited = packet.is_app_limited;
        if self.is_inflight_too_high(&rs) {
            rs.tx_in_flight = self.inflight_at_loss(&rs, packet);
            self.handle_inflight_too_high(&rs);
        }
    }

    /// 5.5.10.2 InflightAtLoss
    fn inflight_at_loss(&self, rs: &RateSample, packet: &Packet) -> Bytes {
        let size = packet.bytes;
        let inflight_prev = rs.tx_in_flight - size;
        let lost_prev = rs.lost - size;
        let loss_thresh = self.loss_thresh();
        let lost_prefix = (loss_thresh * inflight_prev - lost_prev) / (1.0 - loss_thresh);
        inflight_prev + lost_prefix
    }

    /// 5.5.10.3 UpdateLatestDeliverySignals
    pub(super) fn update_latest_delivery_signals(&mut self) {
        self.loss_round_start = false;
        self.bw_latest = self.bw_latest.max(self.rs.delivery_rate);
        self.inflight_latest = self.inflight_latest.max(self.rs.delivered);
        if self.rs.prior_delivered >= self.loss_round_delivered {
            self.loss_round_delivered = self.c.delivered;
            self.loss_round_start = true;
        }
    }

    /// 5.5.10.3 AdvanceLatestDeliverySignals
    pub(super) fn advance_latest_delivery_signals(&mut self) {
        if self.loss_round_start {
            self.bw_latest = self.rs.delivery_rate;
            self.inflight_latest = self.rs.delivered;
        }
    }

    /// 5.5.10.3 ResetCongestionSignals
    pub(super) fn reset_congestion_signals(&mut self) {
        self.is_loss_in_round = false;
        self.bw_latest = 0.0;
        self.inflight_latest = 0.0;
    }

    /// 5.5.10.3 UpdateCongestionSignals
    pub(super) fn update_congestion_signals(&mut self) {
        self.update_max_bw();
        if !self.loss_round_start {
            return;
        }
        self.adapt_lower_bounds_from_congestion();
        self.is_loss_in_round = self.d.on("each-round-lossy");
    }

    /// 5.5.10.3 AdaptLowerBoundsFromCongestion
    fn adapt_lower_bounds_from_congestion(&mut self) {
        if self.is_probing_bw() {
            return;
        }
        if self.is_loss_in_round && !self.d.on("loss-ignored") {
            self.init_lower_bounds();
            self.loss_lower_bounds();
        }
    }

    /// 5.5.10.3 InitLowerBounds
    fn init_lower_bounds(&mut self) {
        if self.bw_shortterm == INFINITY {
            self.bw_shortterm = self.max_bw;
        }
        if self.inflight_shortterm == INFINITY {
            self.inflight_shortterm = self.c.cwnd;
        }
    }

    /// 5.5.10.3 LossLowerBounds
    fn loss_lower_bounds(&mut self) {
        let beta = self.d.number("beta", BETA);
        if self.d.on("cuts-blindly") {
            self.bw_shortterm *= beta;
            self.inflight_shortterm *= beta;
            return;
        }
        self.bw_shortterm = self.bw_latest.max(beta * self.bw_shortterm);
        self.inflight_shortterm = self.inflight_latest.max(beta * self.inflight_shortterm);
    }

    /// 5.5.10.3 ResetShortTermModel
    pub(super) fn reset_short_term_model(&mut self) {
        self.bw_shortterm = INFINITY;
        self.inflight_shortterm = INFINITY;
    }

    /// 5.5.10.3 BoundBWForModel
    pub(super) fn bound_bw_for_model(&mut self) {
        self.bw = self.max_bw.min(self.bw_shortterm);
    }
}
