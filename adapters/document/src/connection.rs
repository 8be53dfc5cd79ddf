//! What the draft's steps read and write of a transport connection ("C.") and of a packet ("P."), and what a transport
//! reports: draft-ietf-ccwg-bbr, 2.2, 2.4 and 4.1.2.1. Volumes are bytes, times seconds, rates bytes a second.

pub type Seconds = f64;
pub type Bytes = f64;
pub type Rate = f64;

/// 4.1.2.1.2, per-packet state; `bytes` is P.size.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    pub packet_id: u64,
    pub bytes: Bytes,
    pub send_time: Seconds,
    pub delivered: Bytes,
    pub delivered_time: Seconds,
    pub first_send_time: Seconds,
    pub lost: Bytes,
    pub is_app_limited: bool,
    pub tx_in_flight: Bytes,
}

/// 2.2, 2.4 and 4.1.2.1.1, per-connection state.
#[derive(Clone, Debug)]
pub struct Connection {
    pub now: Seconds,
    pub smss: Bytes,
    pub initial_cwnd: Bytes,
    pub delivered: Bytes,
    pub delivered_time: Seconds,
    pub first_send_time: Seconds,
    pub lost: Bytes,
    pub inflight: Bytes,
    /// 0 if the connection is not limited by its application.
    pub app_limited: Bytes,
    pub srtt: Option<Seconds>,
    pub min_rtt: Seconds,
    /// C.delivered when the window was last used in full: see `Bbr::is_cwnd_limited`.
    pub cwnd_limited_at: Bytes,
    pub cwnd: Bytes,
    pub pacing_rate: Rate,
    pub send_quantum: Bytes,
}

impl Connection {
    pub fn new(now: Seconds, smss: Bytes) -> Self {
        let initial_cwnd = initial_cwnd(smss);
        Self {
            now,
            smss,
            initial_cwnd,
            delivered: 0.0,
            delivered_time: now,
            first_send_time: now,
            lost: 0.0,
            inflight: 0.0,
            app_limited: 0.0,
            srtt: None,
            min_rtt: f64::INFINITY,
            cwnd_limited_at: f64::NEG_INFINITY,
            cwnd: initial_cwnd, // 5.6.4.1
            pacing_rate: 0.0,
            send_quantum: 2.0 * smss, // EVIDENCE 23
        }
    }

    /// 4.1.2.4 CheckIfApplicationLimited: the application has nothing more to send, and neither window nor pacing is in its way.
    pub fn check_if_application_limited(&mut self, has_unsent: bool) {
        if !has_unsent && self.inflight < self.cwnd {
            self.mark_connection_app_limited();
        }
    }

    /// 4.1.2.4 MarkConnectionAppLimited
    pub fn mark_connection_app_limited(&mut self) {
        self.app_limited = (self.delivered + self.inflight).max(1.0);
    }
}

/// C.InitialCwnd, the transport's: RFC 9002, 7.2.
fn initial_cwnd(smss: Bytes) -> Bytes {
    (10.0 * smss).min((2.0 * smss).max(14720.0))
}

/// All that one ACK, or one timer, says.
#[derive(Default, Debug)]
pub struct Report {
    pub acked: Vec<Packet>,
    /// In the order of their numbers.
    pub lost: Vec<Packet>,
    /// RFC 9002, 7.6.2: of the packets sent over three probe timeouts none arrived.
    pub is_persistent_congestion: bool,
    /// More CE marks than before.
    pub is_marked: bool,
    /// All packets of a loss episode arrived after all.
    pub is_spurious: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_initial_window_is_rfc_9002s() {
        assert_eq!(initial_cwnd(1200.0), 12000.0);
        assert_eq!(initial_cwnd(1452.0), 14520.0);
        assert_eq!(initial_cwnd(1500.0), 14720.0);
        assert_eq!(initial_cwnd(9000.0), 18000.0);
    }
}
