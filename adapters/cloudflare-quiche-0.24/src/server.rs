//! Answers `GET /NAME` with a file of CC_WWW.

use crate::pacing::Outbox;
use crate::socket::Socket;
use crate::{config, is_known, log, new_id, setting, Failure};
use memmap2::Mmap;
use quiche::h3::{self, Header, NameValue};
use quiche::{Connection, RecvInfo};
use std::collections::HashMap;
use std::fs::File;
use std::net::{SocketAddr, UdpSocket};
use std::process::exit;
use std::time::Instant;

/// A connection that answers: with each body, its stream and how much of it is written. Requests wait while the window
/// has no room for the head of an answer.
struct Peer {
    quic: Connection,
    http: Option<h3::Connection>,
    outbox: Outbox,
    waiting: Vec<(u64, Vec<Header>)>,
    bodies: Vec<(u64, Mmap, usize)>,
}

pub fn serve() -> Result<(), Failure> {
    let algorithm = setting("CC_CALLED")?;
    if !is_known(&algorithm) {
        exit(127);
    }
    let mut config = config()?;
    config.set_cc_algorithm_name(&algorithm)?;
    config.load_cert_chain_from_pem_file(&setting("CC_CERT")?)?;
    config.load_priv_key_from_pem_file(&setting("CC_KEY")?)?;
    config.set_initial_max_data(1 << 20);
    config.set_initial_max_stream_data_bidi_remote(1 << 16);
    config.set_initial_max_stream_data_uni(1 << 16);

    let mut socket = Socket::new(UdpSocket::bind(format!("{}:{}", setting("CC_ADDRESS")?, setting("CC_PORT")?))?)?;
    // By address, as no client here moves.
    let mut peers: HashMap<SocketAddr, Peer> = HashMap::new();
    loop {
        if socket.wait(peers.values().filter_map(Peer::deadline).min())? {
            let local = socket.local;
            for (datagram, from) in socket.receive()? {
                if !peers.contains_key(&from) {
                    let Some(peer) = accept(datagram, local, from, &mut config)? else { continue };
                    peers.insert(from, peer);
                }
                // What does not parse is no reason to end; if it ends the connection, that is seen below.
                let _ = peers.get_mut(&from).unwrap().quic.recv(datagram, RecvInfo { from, to: local });
            }
        }
        for peer in peers.values_mut() {
            peer.proceed(&mut socket)?;
        }
        peers.retain(|_, peer| !peer.quic.is_closed());
    }
}

/// A new connection, if the datagram may begin one.
fn accept(
    datagram: &mut [u8], local: SocketAddr, from: SocketAddr, config: &mut quiche::Config,
) -> Result<Option<Peer>, Failure> {
    match quiche::Header::from_slice(datagram, quiche::MAX_CONN_ID_LEN) {
        Ok(header) if header.ty == quiche::Type::Initial && header.version == quiche::PROTOCOL_VERSION => {}
        _ => return Ok(None),
    }
    let mut quic = quiche::accept(&new_id()?, None, local, from, config)?;
    log(&mut quic)?;
    Ok(Some(Peer { quic, http: None, outbox: Outbox::default(), waiting: Vec::new(), bodies: Vec::new() }))
}

impl Peer {
    fn deadline(&self) -> Option<Instant> {
        [self.quic.timeout_instant(), self.outbox.next()].into_iter().flatten().min()
    }

    fn proceed(&mut self, socket: &mut Socket) -> Result<(), Failure> {
        if self.quic.timeout_instant().is_some_and(|deadline| deadline <= Instant::now()) {
            self.quic.on_timeout();
        }
        if self.http.is_none() && self.quic.is_established() {
            self.http = Some(h3::Connection::with_transport(&mut self.quic, &h3::Config::new()?)?);
        }
        if let Some(mut http) = self.http.take() {
            // An error is the connection's or the stream's end, and quiche has told the client.
            while let Ok((stream, event)) = http.poll(&mut self.quic) {
                if let h3::Event::Headers { list, .. } = event {
                    self.waiting.push((stream, list));
                }
            }
            for (stream, request) in std::mem::take(&mut self.waiting) {
                self.answer(&mut http, stream, request);
            }
            self.write_bodies(&mut http);
            self.http = Some(http);
        }
        Ok(self.outbox.flush(&mut self.quic, socket)?)
    }

    fn answer(&mut self, http: &mut h3::Connection, stream: u64, request: Vec<Header>) {
        let file = find(&request);
        let length = file.as_ref().map_or(0, |file| file.len()).to_string();
        let status = if file.is_some() { b"200" } else { b"404" };
        let headers = [Header::new(b":status", status), Header::new(b"content-length", length.as_bytes())];
        match http.send_response(&mut self.quic, stream, &headers, file.is_none()) {
            Ok(()) => self.bodies.extend(file.map(|file| (stream, file, 0))),
            Err(h3::Error::StreamBlocked) => self.waiting.push((stream, request)),
            Err(_) => {} // the client has closed the stream
        }
    }

    /// Gives quiche as much of the bodies as it takes.
    fn write_bodies(&mut self, http: &mut h3::Connection) {
        let quic = &mut self.quic;
        self.bodies.retain_mut(|(stream, body, written)| {
            match http.send_body(quic, *stream, &body[*written..], true) {
                Ok(count) => *written += count,
                Err(h3::Error::Done) => {}
                Err(_) => return false, // the client has closed the stream
            }
            *written < body.len()
        });
    }
}

/// The file that the path names; None where there is none, or the path is more than a name.
fn find(request: &[Header]) -> Option<Mmap> {
    let path = request.iter().find(|header| header.name() == b":path")?.value();
    let name = std::str::from_utf8(path).ok()?.strip_prefix('/')?;
    if name.is_empty() || name.contains(['/', '.']) {
        return None;
    }
    let file = File::open(format!("{}/{name}", setting("CC_WWW").ok()?)).ok()?;
    // Sound as long as nobody shortens the file, and nobody does during a transfer.
    unsafe { Mmap::map(&file) }.ok()
}
