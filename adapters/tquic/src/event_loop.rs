//! tquic leaves the loop to its user: give it datagrams and the time, and it calls back.

use std::time::Instant;

use tquic::Endpoint;

use crate::udp::Socket;

pub fn run(endpoint: &mut Endpoint, socket: &Socket, is_over: impl Fn() -> bool) -> Result<(), String> {
    loop {
        endpoint.process_connections().map_err(|e| format!("cannot send: {e}"))?;
        if is_over() {
            return Ok(());
        }
        if socket.wait(endpoint.timeout()) {
            // A datagram that cannot be understood is nobody's concern; a connection that fails closes itself.
            socket.receive(|datagram, info| drop(endpoint.recv(datagram, &info)))?;
        }
        endpoint.on_timeout(Instant::now());
    }
}
