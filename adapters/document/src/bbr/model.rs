//! The model of the path but for losses: rounds, bandwidth, aggregation; 5.5.1 to 5.5.9.

use super::*;

impl Bbr {
    /// 5.5.1 InitRoundCounting
    pub(super) fn init_round_counting(&mut self) {
        self.next_round_delivered = 0.0;
        self.round_start = false;
        self.round_count = 0;
    }

    /// 5.5.1 UpdateRound: P is the newest packet acknowledged
    fn update_round(&mut self) {
        if self.rs.prior_delivered >= self.next_round_delivered {
            self.start_round();
            self.round_count += 1;
            self.rounds_since_probe_up += 1;
            self.round_start = true;
        } else {
            self.round_start = false;
        }
    }

    /// 5.5.1 StartRound
    pub(super) fn start_round(&mut self) {
        self.next_round_delivered = if self.d.on("rounds-by-ack") { self.rs.prior_delivered } else { self.c.delivered };
    }

    /// 5.5.5 UpdateMaxBw
    pub(super) fn update_max_bw(&mut self) {
        self.update_round();
        let rate = self.rs.delivery_rate * self.d.number("bandwidth-factor", 1.0);
        let is_app_limited = self.rs.is_app_limited && !self.d.on("app-limited-counts");
        if rate > 0.0 && (rate >= self.max_bw || !is_app_limited) {
            self.max_bw = self.max_bw_filter.update(rate, self.cycle_count, MAX_BW_FILTER_LEN);
        }
    }

    /// 5.5.6 AdvanceMaxBwFilter
    pub(super) fn advance_max_bw_filter(&mut self) {
        if !self.d.on("bandwidth-kept") {
            self.cycle_count += 1;
        }
    }

    /// 5.5.8.2 UpdateOffloadBudget, of QUIC
    pub(super) fn update_offload_budget(&mut self) {
        self.offload_budget = self.d.number("offload-quanta", 1.0) * self.c.send_quantum;
    }

    /// 5.5.9 UpdateACKAggregation
    pub(super) fn update_ack_aggregation(&mut self) {
        let interval = self.c.now - self.extra_acked_interval_start;
        let mut expected_delivered = self.bw * interval;
        if self.extra_acked_delivered <= expected_delivered {
            self.extra_acked_delivered = 0.0;
            self.extra_acked_interval_start = self.c.now;
            expected_delivered = 0.0;
        }
        self.extra_acked_delivered += self.rs.newly_acked;
        let extra = (self.extra_acked_delivered - expected_delivered).min(self.c.cwnd);
        let filter_len = if self.full_bw_reached { EXTRA_ACKED_FILTER_LEN } else { 1 };
        self.extra_acked = self.extra_acked_filter.update(extra, self.round_count, filter_len);
        if self.d.on("no-extra-acked") {
            self.extra_acked = 0.0;
        } else if self.d.on("extra-acked-of-one-ack") {
            self.extra_acked = self.rs.newly_acked;
        }
    }
}
