//! Fetches https://CC_HOSTNAME:CC_PORT/CC_BYTES once.

use std::io::Write;
use std::net::UdpSocket;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cc_adapter::{Error, address, report, setting, tls};
use rustls::ClientConnection;

use crate::tunnel::{self, Tunnel};

const CHUNK_BYTES: usize = 1 << 16;
const OWN_PORT: u16 = 50_000;
/// A server that says nothing for so long is not there.
const PATIENCE: Duration = Duration::from_secs(60);

pub fn fetch() -> Result<(), Error> {
    let (host, size) = (setting("CC_HOSTNAME")?, setting("CC_BYTES")?.parse::<usize>()?);
    let mut config = tls::client()?;
    config.alpn_protocols.clear(); // this is no HTTP/3
    let mut tls = ClientConnection::new(Arc::new(config), host.clone().try_into()?)?;
    let start = Instant::now();
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    // Connected, as only then it is told that nobody listens.
    socket.connect(address()?)?;
    let own = tunnel::client_address(socket.local_addr()?.port());
    let mut tunnel = Tunnel::new(socket, own, Some(address()?))?;
    let handle = tunnel.add();
    tunnel.get(handle).set_timeout(Some(PATIENCE.into()));
    tunnel.connect(handle, OWN_PORT)?;
    write!(tls.writer(), "GET /{size} HTTP/1.1\r\nHost: {host}\r\n\r\n")?;
    let (mut head, mut received, mut handshake) = (Vec::new(), 0, None);
    let mut bytes = vec![0; CHUNK_BYTES];
    while received < size {
        tunnel.turn()?;
        let socket = tunnel.get(handle);
        if !socket.is_active() {
            return Err(format!("the connection ended after {received} of {size} bytes").into());
        }
        let is_there = tunnel::exchange(&mut tls, socket, |tls| {
            if handshake.is_none() && !tls.is_handshaking() {
                handshake = Some(start.elapsed());
            }
            loop {
                let length = tunnel::decrypted(tls, &mut bytes)?;
                if length == 0 {
                    return Ok(());
                }
                received += body(&mut head, &bytes[..length])?;
            }
        })?;
        if !is_there && received < size {
            return Err(format!("the body ended after {received} of {size} bytes").into());
        }
        tunnel.turn()?;
        if received < size {
            tunnel.wait();
        }
    }
    report(received, start.elapsed(), handshake.unwrap_or_default());
    // So that the server knows.
    tunnel.get(handle).abort();
    tunnel.turn()
}

/// How much of the body is in what arrived; before it comes the answer's head, which is collected.
fn body(head: &mut Vec<u8>, arrived: &[u8]) -> Result<usize, Error> {
    const END: &[u8] = b"\r\n\r\n";
    if head.ends_with(END) {
        return Ok(arrived.len());
    }
    for (at, byte) in arrived.iter().enumerate() {
        head.push(*byte);
        if head.ends_with(END) {
            let first = String::from_utf8_lossy(head).lines().next().unwrap_or_default().to_owned();
            if !first.starts_with("HTTP/1.1 200 ") {
                return Err(format!("the server answered {first:?}").into());
            }
            return Ok(arrived.len() - at - 1);
        }
    }
    Ok(0)
}
