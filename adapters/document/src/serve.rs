//! Serves the files of CC_WWW over HTTP/3: noq-proto in a loop of our own, which paces as the draft has it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::num::NonZeroUsize;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use cc_adapter::{Error, address, http3, tls};
use noq_proto::crypto::rustls::QuicServerConfig;
use noq_proto::{
    Connection, ConnectionHandle, DatagramEvent, Dir, Endpoint, EndpointConfig, Event, FourTuple, PathId, ServerConfig,
    StreamEvent, StreamId, Transmit, TransportConfig, WriteError,
};

use crate::bbr::State;
use crate::deviations::Deviations;
use crate::host::{Factory, Shared};
use crate::udp::Udp;

/// What fills an Ethernet packet of 1500 bytes: C.SMSS from the first packet on, with no search for it in the way.
const DATAGRAM_BYTES: u16 = 1452;
/// 64 KB, the most of one call with segmentation.
const MOST_AT_ONCE: usize = 45;

struct Peer {
    connection: Connection,
    shared: Shared,
    /// False if noq-proto was asked for a packet and had none, though window and pacing allowed one.
    has_unsent: bool,
    /// Where the states are written to, if CC_QLOG asks for that.
    log: Option<File>,
    state: State,
    requests: BTreeMap<StreamId, Vec<u8>>,
    answers: BTreeMap<StreamId, Vec<Bytes>>,
}

pub fn serve(deviations: Deviations) -> Result<(), Error> {
    // Else the kernel lets a timer be late by 50 us, 2 % of the time between two quanta at 10 Mbit/s.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
    let mut transport = TransportConfig::default();
    let factory = Factory::new(deviations.clone());
    transport
        .congestion_controller_factory(factory.clone())
        .initial_mtu(DATAGRAM_BYTES)
        .mtu_discovery_config(None)
        .send_window(1 << 40)
        .packet_threshold(deviations.number("packet-threshold", 3.0) as u32)
        .time_threshold(deviations.number("time-threshold", 9.0 / 8.0) as f32);
    let mut config = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls::server()?)?));
    config.transport_config(Arc::new(transport));
    let mut endpoint = Endpoint::new(Arc::new(EndpointConfig::default()), Some(Arc::new(config)), false);
    let mut socket = Udp::bind(address()?)?;
    let mut peers: Vec<(ConnectionHandle, Peer)> = Vec::new();
    let mut scratch = Vec::with_capacity(65536);
    let mut is_there = false;
    loop {
        let now = Instant::now();
        if is_there {
            let mut arrived = None;
            socket.receive(|from, bytes| arrived = Some((from, BytesMut::from(bytes))));
            if let Some((from, bytes)) = arrived {
                scratch.clear();
                match endpoint.handle(now, FourTuple::from_remote(from), None, bytes, &mut scratch) {
                    Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                        if let Some((_, peer)) = peers.iter_mut().find(|(known, _)| *known == handle) {
                            peer.check_if_application_limited();
                            peer.connection.handle_event(event);
                            peer.follow(&factory);
                            peer.finish(now);
                        }
                    }
                    Some(DatagramEvent::NewConnection(incoming)) => {
                        if let Ok((handle, connection)) = endpoint.accept(incoming, now, &mut scratch, None) {
                            let shared = factory.take().ok_or("no controller was made")?;
                            peers.push((handle, Peer::new(connection, shared)));
                        }
                    }
                    Some(DatagramEvent::Response(transmit)) => send(&socket, &transmit, &scratch),
                    None => {}
                }
            }
        }
        let mut next: Option<Instant> = None;
        for (handle, peer) in &mut peers {
            if peer.connection.poll_timeout().is_some_and(|due| due <= now) {
                peer.check_if_application_limited();
                peer.connection.handle_timeout(now);
                peer.finish(now);
            }
            while let Some(event) = peer.connection.poll_endpoint_events() {
                if let Some(event) = endpoint.handle_event(*handle, event) {
                    peer.connection.handle_event(event);
                }
            }
            peer.answer();
            let pace = peer.transmit(now, &socket, &mut scratch);
            next = [next, peer.connection.poll_timeout(), pace].into_iter().flatten().min();
        }
        peers.retain(|(_, peer)| !peer.connection.is_drained());
        let wait = next.map(|next| next.saturating_duration_since(now));
        is_there = wait != Some(Duration::ZERO) && socket.wait(wait);
    }
}

fn send(socket: &Udp, transmit: &Transmit, bytes: &[u8]) {
    let ecn = transmit.ecn.map_or(0, |ecn| ecn as i32);
    socket.send(transmit.destination, &bytes[..transmit.size], transmit.segment_size, ecn);
}

impl Peer {
    fn new(connection: Connection, shared: Shared) -> Self {
        let state = shared.lock().bbr.state;
        let mut peer = Self {
            connection,
            shared,
            has_unsent: false,
            log: log(),
            state,
            requests: BTreeMap::new(),
            answers: BTreeMap::new(),
        };
        peer.write_state(0.0);
        peer
    }

    /// A peer that moved has a new path, with a controller of its own.
    fn follow(&mut self, factory: &Factory) {
        if let Some(shared) = factory.take() {
            self.shared = shared;
        }
    }

    fn finish(&mut self, now: Instant) {
        let srtt = self.connection.rtt(PathId::ZERO).map(|srtt| srtt.as_secs_f64());
        let now = self.shared.seconds(now);
        self.shared.lock().finish(now, srtt);
        let state = self.shared.lock().bbr.state;
        if state != self.state {
            self.state = state;
            self.write_state(now);
        }
    }

    /// An event of qlog, at seconds since the program began.
    fn write_state(&mut self, at: f64) {
        if let Some(log) = &mut self.log {
            let (name, at_ms) = ("recovery:congestion_state_updated", 1e3 * at);
            let _ = writeln!(
                log,
                "\u{1e}{{\"time\": {at_ms:.6}, \"name\": \"{name}\", \"data\": {{\"new\": \"{:?}\"}}}}",
                self.state
            );
        }
    }

    /// draft-ietf-ccwg-bbr, 4.1.2.4: before ACKs, timers and writes.
    fn check_if_application_limited(&mut self) {
        self.shared.lock().bbr.c.check_if_application_limited(self.has_unsent);
    }

    /// Sends what window and pacing let go. Returns when pacing lets the next packet leave, if that is what it waits for.
    fn transmit(&mut self, now: Instant, socket: &Udp, scratch: &mut Vec<u8>) -> Option<Instant> {
        let seconds = self.shared.seconds(now);
        loop {
            let (wait, quantum) = {
                let mut sender = self.shared.lock();
                sender.is_window_in_the_way = false;
                (sender.next_send_time() - seconds, sender.bbr.c.send_quantum / sender.bbr.c.smss)
            };
            if wait > 0.0 {
                self.has_unsent = true; // not known, and not asked: what pacing holds back is not the application's limit
                return Some(now + Duration::from_nanos((wait * 1e9).ceil() as u64));
            }
            scratch.clear();
            let most = NonZeroUsize::new((quantum as usize).clamp(1, MOST_AT_ONCE)).unwrap();
            let Some(transmit) = self.connection.poll_transmit(now, most, scratch) else {
                // 4.1.1.3.1: a receiver's limit is like the network's, not the application's.
                self.has_unsent = self.shared.lock().is_window_in_the_way || !self.answers.is_empty();
                return None;
            };
            send(socket, &transmit, scratch);
            self.shared.lock().paced(seconds, transmit.size as f64);
        }
    }

    /// Takes requests and writes answers, as far as they go.
    fn answer(&mut self) {
        while let Some(event) = self.connection.poll() {
            match event {
                Event::Connected => {
                    if let Some(control) = self.connection.streams().open(Dir::Uni) {
                        let _ = self.connection.send_stream(control).write(http3::CONTROL);
                    }
                }
                Event::Stream(StreamEvent::Opened { dir: Dir::Bi }) => {
                    while let Some(stream) = self.connection.streams().accept(Dir::Bi) {
                        self.requests.insert(stream, Vec::new());
                        self.read(stream);
                    }
                }
                Event::Stream(StreamEvent::Readable { id }) => self.read(id),
                Event::Stream(StreamEvent::Writable { id } | StreamEvent::Stopped { id, .. }) => self.write(id),
                _ => {}
            }
        }
    }

    fn read(&mut self, stream: StreamId) {
        let Some(request) = self.requests.get_mut(&stream) else { return };
        let mut receive = self.connection.recv_stream(stream);
        let Ok(mut chunks) = receive.read(true) else { return };
        let is_whole = loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => request.extend(&chunk.bytes),
                Ok(None) => break true,
                Err(_) => break false,
            }
        };
        let _ = chunks.finalize();
        if is_whole {
            let request = self.requests.remove(&stream).unwrap();
            let answer = match http3::path(&request).as_deref().and_then(map) {
                Some(body) => vec![http3::answer(body.len()).into(), body],
                None => vec![http3::not_found().into()],
            };
            self.answers.insert(stream, answer);
            self.check_if_application_limited();
            self.write(stream);
        }
    }

    fn write(&mut self, stream: StreamId) {
        let Some(answer) = self.answers.get_mut(&stream) else { return };
        while answer.iter().any(|part| !part.is_empty()) {
            let mut rest = &mut answer[..];
            match self.connection.send_stream(stream).write_chunks(&mut rest) {
                Ok(_) => self.has_unsent = true,
                Err(WriteError::Blocked) => return,
                Err(_) => break, // the peer wants no more of it
            }
        }
        self.answers.remove(&stream);
        let _ = self.connection.send_stream(stream).finish();
    }
}

/// A new qlog in the folder of CC_QLOG, with its head: JSON text sequences of draft-ietf-quic-qlog-main-schema.
fn log() -> Option<File> {
    let folder = std::env::var_os("CC_QLOG")?;
    let path = (0..1000).map(|at| Path::new(&folder).join(format!("{at}.sqlog"))).find(|path| !path.exists())?;
    let mut file = File::create(path).ok()?;
    let schema = "urn:ietf:params:qlog:file:sequential";
    writeln!(file, "\u{1e}{{\"file_schema\": \"{schema}\", \"serialization_format\": \"application/qlog+json-seq\"}}").ok()?;
    Some(file)
}

/// The file of CC_WWW that a path names, mapped: reading 12.5 MB would be 3,000 page faults of 43 us.
fn map(path: &str) -> Option<Bytes> {
    let name = path.strip_prefix('/').filter(|name| !name.starts_with('.') && !name.contains('/'))?;
    let file = File::open(Path::new(&std::env::var_os("CC_WWW")?).join(name)).ok()?;
    let length = file.metadata().ok().filter(|data| data.is_file())?.len() as usize;
    if length == 0 {
        return Some(Bytes::new());
    }
    let flags = libc::MAP_PRIVATE | libc::MAP_POPULATE;
    let at = unsafe { libc::mmap(std::ptr::null_mut(), length, libc::PROT_READ, flags, file.as_raw_fd(), 0) };
    (at != libc::MAP_FAILED).then(|| Bytes::from_owner(Map(at as usize, length)))
}

struct Map(usize, usize);

impl AsRef<[u8]> for Map {
    fn as_ref(&self) -> &[u8] {
        unsafe { std::slice::from_raw_parts(self.0 as *const u8, self.1) }
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        unsafe { libc::munmap(self.0 as *mut _, self.1) };
    }
}
