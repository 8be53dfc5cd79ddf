//! Delivery rate samples: draft-ietf-ccwg-bbr, 4.1.2. Steps that only read and write C. and RS., and no state of BBR.

use crate::connection::{Bytes, Connection, Packet, Rate, Seconds};

/// 2.3 and 4.1.2.1.3, "RS."; its default is 4.1.2.3, InitRateSample.
#[derive(Clone, Copy, Debug, Default)]
pub struct RateSample {
    pub has_data: bool,
    pub prior_delivered: Bytes,
    pub is_app_limited: bool,
    pub interval: Seconds,
    pub delivered: Bytes,
    pub delivery_rate: Rate,
    /// None is the draft's -1.
    pub rtt: Option<Seconds>,
    pub newly_acked: Bytes,
    pub tx_in_flight: Bytes,
    pub lost: Bytes,
    send_elapsed: Seconds,
    pub ack_elapsed: Seconds,
    last_acked_packet_id: u64,
    /// P.lost of the newest packet; RS.lost can only be told once this ACK's losses are counted.
    prior_lost: Bytes,
}

impl Connection {
    /// 4.1.2.2 OnPacketSent: C.inflight is still without the packet (EVIDENCE 22).
    pub fn on_packet_sent(&mut self, packet_id: u64, bytes: Bytes) -> Packet {
        let send_time = self.now;
        if self.inflight == 0.0 {
            self.first_send_time = send_time;
            self.delivered_time = send_time;
        }
        self.inflight += bytes;
        Packet {
            packet_id,
            bytes,
            send_time,
            delivered: self.delivered,
            delivered_time: self.delivered_time,
            first_send_time: self.first_send_time,
            lost: self.lost,
            is_app_limited: self.app_limited != 0.0,
            tx_in_flight: self.inflight,
        }
    }

    /// 4.1.2.3 UpdateRateSample and IsNewestPacket; RS.rtt (4.2), RS.tx_in_flight, RS.newly_acked and RS.lost (2.3) are
    /// taken here, too: EVIDENCE 1.
    pub fn update_rate_sample(&mut self, rs: &mut RateSample, packet: &Packet) {
        self.delivered += packet.bytes;
        self.delivered_time = self.now;
        rs.newly_acked += packet.bytes;
        let is_newest = packet.send_time > self.first_send_time
            || packet.send_time == self.first_send_time && packet.packet_id > rs.last_acked_packet_id;
        if !rs.has_data || is_newest {
            rs.has_data = true;
            rs.prior_delivered = packet.delivered;
            rs.is_app_limited = packet.is_app_limited;
            rs.send_elapsed = packet.send_time - packet.first_send_time;
            rs.ack_elapsed = self.delivered_time - packet.delivered_time;
            rs.last_acked_packet_id = packet.packet_id;
            self.first_send_time = packet.send_time;
            rs.rtt = Some(self.now - packet.send_time); // 4.2
            rs.tx_in_flight = packet.tx_in_flight;
            rs.prior_lost = packet.lost;
        }
    }

    /// 4.1.2.3 GenerateRateSample
    pub fn generate_rate_sample(&mut self, rs: &mut RateSample) {
        if self.app_limited != 0.0 && self.delivered > self.app_limited {
            self.app_limited = 0.0;
        }
        if !rs.has_data {
            return;
        }
        if let Some(rtt) = rs.rtt {
            self.min_rtt = self.min_rtt.min(rtt);
        }
        rs.lost = self.lost - rs.prior_lost;
        rs.interval = rs.send_elapsed.max(rs.ack_elapsed);
        rs.delivered = self.delivered - rs.prior_delivered;
        if rs.interval < self.min_rtt {
            return;
        }
        if rs.interval != 0.0 {
            rs.delivery_rate = rs.delivered / rs.interval;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten packets at once on an idle connection, acknowledged one by one each millisecond from 50 ms on.
    #[test]
    fn a_sample_is_limited_by_the_slower_of_sending_and_acknowledging() {
        let mut c = Connection::new(0.0, 1000.0);
        let packets: Vec<Packet> = (0..10).map(|id| c.on_packet_sent(id, 1000.0)).collect();
        for (at, packet) in packets.iter().enumerate() {
            c.now = 0.050 + at as f64 / 1000.0;
            c.inflight -= 1000.0;
            let mut rs = RateSample::default();
            c.update_rate_sample(&mut rs, packet);
            c.generate_rate_sample(&mut rs);
            assert_eq!(rs.rtt, Some(c.now));
            assert!((rs.delivery_rate - 1000.0 * (at + 1) as f64 / c.now).abs() < 1e-6);
        }
    }

    /// 4.1.1.3: a sample is limited by the application until the bubble has left the pipe.
    #[test]
    fn the_bubble_leaves_with_the_packets_that_were_in_flight() {
        let mut c = Connection::new(0.0, 1000.0);
        let first = c.on_packet_sent(0, 1000.0);
        c.check_if_application_limited(true);
        assert_eq!(c.app_limited, 0.0);
        c.check_if_application_limited(false);
        let second = c.on_packet_sent(1, 1000.0);
        assert!(!first.is_app_limited && second.is_app_limited);
        let mut rs = RateSample::default();
        c.now = 0.1;
        c.update_rate_sample(&mut rs, &first);
        c.generate_rate_sample(&mut rs);
        assert!(!rs.is_app_limited && c.app_limited != 0.0);
        c.update_rate_sample(&mut rs, &second);
        c.generate_rate_sample(&mut rs);
        assert!(rs.is_app_limited && c.app_limited == 0.0);
    }

    /// Of an ACK for several packets the one sent last counts, whatever order they come in.
    #[test]
    fn the_packet_sent_last_makes_the_sample() {
        let mut c = Connection::new(0.0, 1000.0);
        let first = c.on_packet_sent(0, 1000.0);
        c.now = 0.01;
        let second = c.on_packet_sent(1, 1000.0);
        for order in [[first, second], [second, first]] {
            let mut c = Connection { now: 0.1, ..c.clone() };
            let mut rs = RateSample::default();
            order.iter().for_each(|packet| c.update_rate_sample(&mut rs, packet));
            c.generate_rate_sample(&mut rs);
            assert!((rs.rtt.unwrap() - 0.09).abs() < 1e-9);
            assert_eq!((rs.newly_acked, rs.tx_in_flight), (2000.0, 2000.0));
        }
    }
}
