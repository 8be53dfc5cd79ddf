//! Fetch /CC_BYTES once and print what it took.

use std::cell::RefCell;
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::time::Instant;

use tquic::h3::connection::Http3Connection;
use tquic::h3::{Header, Http3Config, Http3Error, Http3Event, NameValue};
use tquic::{Connection, Endpoint, TlsConfig, TransportHandler};

use crate::settings::{address, config, log, required};
use crate::{event_loop, udp::Socket};

/// Wide enough never to hold a sender back.
const WINDOW_BYTES: u64 = 1 << 30;
const NO_ERROR: u64 = 0x100;

#[derive(Default)]
struct Progress {
    handshake: Option<Instant>,
    received: u64,
    finished: Option<Instant>,
    problem: Option<String>,
}

pub fn fetch() -> Result<(), String> {
    let (server, host) = (address()?, required("CC_HOSTNAME")?);
    let bytes = required("CC_BYTES")?;
    let size: u64 = bytes.parse().ok().filter(|n| *n > 0).ok_or("CC_BYTES must be a number above 0")?;
    let request = [
        Header::new(b":method", b"GET"),
        Header::new(b":scheme", b"https"),
        Header::new(b":authority", format!("{host}:{}", server.port()).as_bytes()),
        Header::new(b":path", format!("/{size}").as_bytes()),
    ];
    let progress = Rc::new(RefCell::new(Progress::default()));
    let visit = Visit { request, size, http: None, progress: progress.clone() };
    let config = client_config()?;

    let started = Instant::now();
    let socket = Rc::new(Socket::bind(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)))?);
    let mut endpoint = Endpoint::new(Box::new(config), false, Box::new(visit), socket.clone());
    endpoint
        .connect(socket.local(), server, Some(&host), None, None, None)
        .map_err(|e| format!("cannot connect: {e}"))?;
    event_loop::run(&mut endpoint, &socket, || {
        let progress = progress.borrow();
        progress.finished.is_some() || progress.problem.is_some()
    })?;

    let progress = progress.borrow();
    let Some(finished) = progress.finished else {
        let why = progress.problem.as_deref().unwrap_or_default();
        return Err(format!("failed after {} of {size} bytes: {why}", progress.received));
    };
    let since_start = |then: Instant| (then - started).as_secs_f64();
    let handshake = progress.handshake.map_or("null".into(), |then| format!("{:.6}", since_start(then)));
    let completion = since_start(finished);
    println!("{{\"bytes\": {size}, \"completion_s\": {completion:.6}, \"handshake_s\": {handshake}}}");
    Ok(())
}

fn client_config() -> Result<tquic::Config, String> {
    let mut tls =
        TlsConfig::new_client_config(vec![b"h3".to_vec()], false).map_err(|e| format!("cannot set up TLS: {e}"))?;
    tls.set_ca_certs(&required("CC_CA")?).map_err(|e| format!("cannot read CC_CA: {e}"))?;
    tls.set_verify(true);
    let mut config = config()?;
    config.set_tls_config(tls);
    config.set_max_connection_window(WINDOW_BYTES);
    config.set_max_stream_window(WINDOW_BYTES);
    config.set_initial_max_data(WINDOW_BYTES);
    config.set_initial_max_stream_data_bidi_local(WINDOW_BYTES);
    Ok(config)
}

struct Visit {
    request: [Header; 4],
    size: u64,
    http: Option<Http3Connection>,
    progress: Rc<RefCell<Progress>>,
}

impl Visit {
    fn fail(&self, problem: impl ToString) {
        self.progress.borrow_mut().problem.get_or_insert(problem.to_string());
    }

    fn ask(&mut self, connection: &mut Connection) -> Result<(), Http3Error> {
        let mut http = Http3Connection::new_with_quic_conn(connection, &Http3Config::new()?)?;
        let stream = http.stream_new(connection)?;
        http.send_headers(connection, stream, &self.request, true)?;
        self.http = Some(http);
        Ok(())
    }

    fn read_body(&mut self, connection: &mut Connection, stream: u64) {
        let mut discarded = [0; 1 << 16];
        let Some(http) = &mut self.http else { return };
        while let Ok(count) = http.recv_body(connection, stream, &mut discarded) {
            self.progress.borrow_mut().received += count as u64;
        }
        if self.progress.borrow().received == self.size {
            self.progress.borrow_mut().finished = Some(Instant::now());
            let _ = connection.close(true, NO_ERROR, b"");
        }
    }
}

impl TransportHandler for Visit {
    fn on_conn_created(&mut self, connection: &mut Connection) {
        log(connection);
    }

    fn on_conn_established(&mut self, connection: &mut Connection) {
        self.progress.borrow_mut().handshake = Some(Instant::now());
        if let Err(error) = self.ask(connection) {
            self.fail(error);
        }
    }

    fn on_conn_closed(&mut self, connection: &mut Connection) {
        let code = connection.peer_error().or(connection.local_error()).map(|error| error.error_code);
        self.fail(code.map_or("no answer".into(), |code| format!("the connection was closed ({code:#x})")));
    }

    fn on_stream_created(&mut self, _: &mut Connection, _: u64) {}

    fn on_stream_readable(&mut self, connection: &mut Connection, _: u64) {
        while let Some(http) = &mut self.http {
            match http.poll(connection) {
                Ok((_, Http3Event::Headers { headers, .. })) => {
                    let status = headers.iter().find(|header| header.name() == b":status").map(|header| header.value());
                    if status != Some(b"200") {
                        let status = String::from_utf8_lossy(status.unwrap_or(b"nothing")).into_owned();
                        self.fail(format!("the server answered {status}"));
                    }
                }
                Ok((stream, Http3Event::Data)) => self.read_body(connection, stream),
                Ok((_, Http3Event::Finished | Http3Event::Reset(_))) => self.fail("the body ended"),
                Ok(_) => {}
                Err(_) => return,
            }
        }
    }

    fn on_stream_writable(&mut self, connection: &mut Connection, stream: u64) {
        // Else tquic would wake up each millisecond to call us.
        let _ = connection.stream_want_write(stream, false);
    }

    fn on_stream_closed(&mut self, _: &mut Connection, _: u64) {}

    fn on_new_token(&mut self, _: &mut Connection, _: Vec<u8>) {}
}
