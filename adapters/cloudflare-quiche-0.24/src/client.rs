//! Fetches https://CC_HOSTNAME:CC_PORT/CC_BYTES and prints what it took.

use crate::pacing::Outbox;
use crate::socket::Socket;
use crate::{config, log, new_id, setting, Failure};
use quiche::h3::{self, Header, NameValue};
use quiche::{Connection, RecvInfo};
use std::net::{SocketAddr, UdpSocket};
use std::time::Instant;

/// Wide enough that it never holds a server back.
const WINDOW_BYTES: u64 = 1 << 30;

/// The one request there is, once the handshake is done.
struct Request {
    http: h3::Connection,
    handshake_s: f64,
    received: usize,
    is_complete: bool,
}

pub fn fetch() -> Result<(), Failure> {
    let size: usize = setting("CC_BYTES")?.parse()?;
    let host = setting("CC_HOSTNAME")?;
    let mut config = config()?;
    config.load_verify_locations_from_file(&setting("CC_CA")?)?;
    config.verify_peer(true);
    config.set_initial_max_data(WINDOW_BYTES);
    config.set_initial_max_stream_data_bidi_local(WINDOW_BYTES);
    config.set_initial_max_stream_data_uni(WINDOW_BYTES);
    config.set_max_connection_window(WINDOW_BYTES);
    config.set_max_stream_window(WINDOW_BYTES);

    let start = Instant::now();
    let to: SocketAddr = format!("{}:{}", setting("CC_ADDRESS")?, setting("CC_PORT")?).parse()?;
    let udp = UdpSocket::bind("0.0.0.0:0")?;
    udp.connect(to)?; // so that a refusal is an error here
    let mut socket = Socket::new(udp)?;
    let mut quic = quiche::connect(Some(&host), &new_id()?, socket.local, to, &mut config)?;
    log(&mut quic)?;
    let mut outbox = Outbox::default();
    let mut request: Option<Request> = None;
    while !request.as_ref().is_some_and(|request| request.is_complete) {
        outbox.flush(&mut quic, &mut socket)?;
        if quic.is_closed() {
            return Err(format!("the connection ended: {}", why(&quic)).into());
        }
        if socket.wait([quic.timeout_instant(), outbox.next()].into_iter().flatten().min())? {
            let local = socket.local;
            for (datagram, from) in socket.receive()? {
                let _ = quic.recv(datagram, RecvInfo { from, to: local });
            }
        }
        if quic.timeout_instant().is_some_and(|deadline| deadline <= Instant::now()) {
            quic.on_timeout();
        }
        if request.is_none() && quic.is_established() {
            request = Some(ask(&mut quic, &host, size, start)?);
        }
        if let Some(request) = &mut request {
            request.read(&mut quic)?;
        }
    }
    let completion_s = start.elapsed().as_secs_f64();
    // Else the server would go on until its own timeout. Should it get lost, no harm is done.
    let _ = quic.close(true, h3::WireErrorCode::NoError as u64, b"");
    let _ = outbox.flush(&mut quic, &mut socket);
    let Request { received, handshake_s, .. } = request.unwrap();
    if received != size {
        return Err(format!("the body has {received} bytes of {size}").into());
    }
    println!("{{\"bytes\": {received}, \"completion_s\": {completion_s:.6}, \"handshake_s\": {handshake_s:.6}}}");
    Ok(())
}

fn ask(quic: &mut Connection, host: &str, size: usize, start: Instant) -> Result<Request, Failure> {
    let handshake_s = start.elapsed().as_secs_f64();
    let mut http = h3::Connection::with_transport(quic, &h3::Config::new()?)?;
    let headers = [
        Header::new(b":method", b"GET"),
        Header::new(b":scheme", b"https"),
        Header::new(b":authority", format!("{host}:{}", setting("CC_PORT")?).as_bytes()),
        Header::new(b":path", format!("/{size}").as_bytes()),
    ];
    http.send_request(quic, &headers, true)?;
    Ok(Request { http, handshake_s, received: 0, is_complete: false })
}

impl Request {
    fn read(&mut self, quic: &mut Connection) -> Result<(), Failure> {
        let mut buffer = [0; 1 << 16];
        loop {
            match self.http.poll(quic) {
                Ok((_, h3::Event::Headers { list, .. })) => {
                    let status = list.iter().find(|header| header.name() == b":status").map(Header::value);
                    if status != Some(b"200") {
                        return Err("the server did not answer 200".into());
                    }
                }
                Ok((stream, h3::Event::Data)) => {
                    while let Ok(count) = self.http.recv_body(quic, stream, &mut buffer) {
                        self.received += count;
                    }
                }
                Ok((_, h3::Event::Finished)) => self.is_complete = true,
                Ok((_, h3::Event::Reset(code))) => return Err(format!("the server reset the stream ({code})").into()),
                Ok(_) => {}
                Err(h3::Error::Done) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

fn why(quic: &Connection) -> String {
    match (quic.is_timed_out(), quic.local_error(), quic.peer_error()) {
        (true, ..) => "no answer".into(),
        (_, Some(error), _) => format!("our error {}: {}", error.error_code, String::from_utf8_lossy(&error.reason)),
        (_, _, Some(error)) => format!("its error {}", error.error_code),
        _ => "closed".into(),
    }
}
