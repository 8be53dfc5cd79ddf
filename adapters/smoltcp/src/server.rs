//! Serves the files of CC_WWW: HTTP/1.1 over TLS 1.3.

use std::io::Write;
use std::net::UdpSocket;
use std::sync::Arc;

use cc_adapter::{Error, address, file, tls};
use rustls::{ServerConfig, ServerConnection};
use smoltcp::iface::SocketHandle;
use smoltcp::socket::tcp::CongestionControl;

use crate::tunnel::{self, PORT, SERVER, Tunnel};

/// How many clients may be there at a time; of those, some have gone without a word.
const CONNECTIONS: usize = 32;
const HEAD_BYTES: usize = 1 << 12;

/// A socket that listens or is connected, and what is said on it.
struct Connection {
    handle: SocketHandle,
    tls: ServerConnection,
    request: Vec<u8>,
    answer: Option<Vec<u8>>,
    said: usize,
}

pub fn serve(congestion: &CongestionControl) -> Result<(), Error> {
    let mut config = tls::server()?;
    config.alpn_protocols.clear(); // this is no HTTP/3
    let config = Arc::new(config);
    let mut tunnel = Tunnel::new(UdpSocket::bind(address()?)?, SERVER, None)?;
    let mut connections = Vec::new();
    for _ in 0..CONNECTIONS {
        let handle = tunnel.add();
        tunnel.get(handle).set_congestion_control(*congestion);
        connections.push(Connection::new(handle, &config)?);
    }
    loop {
        tunnel.turn()?;
        for connection in &mut connections {
            if let Err(error) = connection.go_on(&mut tunnel) {
                eprintln!("a connection failed: {error}");
                tunnel.get(connection.handle).abort();
            }
            let socket = tunnel.get(connection.handle);
            if !socket.is_open() {
                *connection = Connection::new(connection.handle, &config)?;
                socket.listen(PORT).map_err(|error| error.to_string())?;
            }
        }
        tunnel.turn()?;
        tunnel.wait();
    }
}

impl Connection {
    fn new(handle: SocketHandle, config: &Arc<ServerConfig>) -> Result<Self, Error> {
        let tls = ServerConnection::new(config.clone())?;
        Ok(Self { handle, tls, request: vec![], answer: None, said: 0 })
    }

    fn go_on(&mut self, tunnel: &mut Tunnel) -> Result<(), Error> {
        let socket = tunnel.get(self.handle);
        if !socket.is_active() {
            return Ok(());
        }
        let is_there = tunnel::exchange(&mut self.tls, socket, |_| Ok(()))?;
        self.listen()?;
        if let Some(answer) = &self.answer {
            let mut room;
            while self.said < answer.len() && {
                room = tunnel::room(&self.tls, socket);
                room > 0
            } {
                let end = answer.len().min(self.said + room);
                self.said += self.tls.writer().write(&answer[self.said..end])?;
                tunnel::exchange(&mut self.tls, socket, |_| Ok(()))?;
            }
        }
        if !is_there {
            socket.close();
        }
        Ok(())
    }

    /// Reads a request; there is an answer once its head is whole.
    fn listen(&mut self) -> Result<(), Error> {
        let mut bytes = [0; HEAD_BYTES];
        let length = tunnel::decrypted(&mut self.tls, &mut bytes)?;
        self.request.extend(&bytes[..length]);
        if self.request.len() > HEAD_BYTES {
            return Err("a request that is too long".into());
        }
        if self.answer.is_none() && self.request.ends_with(b"\r\n\r\n") {
            self.answer = Some(answer(&String::from_utf8_lossy(&self.request)));
        }
        Ok(())
    }
}

fn answer(request: &str) -> Vec<u8> {
    let path = request.strip_prefix("GET ").and_then(|rest| rest.split(' ').next());
    let Some(body) = path.and_then(file) else {
        return b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".into();
    };
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
    [head.into_bytes(), body].concat()
}
