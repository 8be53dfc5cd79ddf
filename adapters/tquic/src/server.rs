//! Serve the files of CC_WWW.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use std::rc::Rc;

use bytes::Bytes;
use tquic::h3::connection::Http3Connection;
use tquic::h3::{Header, Http3Config, Http3Event, NameValue};
use tquic::{CongestionControlAlgorithm, Connection, Endpoint, TlsConfig, TransportHandler};

use crate::settings::{address, config, log, required};
use crate::{event_loop, udp::Socket};

pub fn serve(algorithm: CongestionControlAlgorithm) -> Result<(), String> {
    let (certificate, key) = (required("CC_CERT")?, required("CC_KEY")?);
    let tls = TlsConfig::new_server_config(&certificate, &key, vec![b"h3".to_vec()], false)
        .map_err(|e| format!("cannot set up TLS: {e}"))?;
    let mut config = config()?;
    config.set_tls_config(tls);
    config.set_congestion_control_algorithm(algorithm);
    let site = Site { www: required("CC_WWW")?.into(), files: HashMap::new(), visitors: HashMap::new() };
    let socket = Rc::new(Socket::bind(address()?)?);
    let mut endpoint = Endpoint::new(Box::new(config), true, Box::new(site), socket.clone());
    event_loop::run(&mut endpoint, &socket, || false)
}

struct Site {
    www: PathBuf,
    /// Files that were asked for; each is read once.
    files: HashMap<String, Bytes>,
    /// By tquic's index of connections.
    visitors: HashMap<u64, Visitor>,
}

struct Visitor {
    http: Http3Connection,
    /// What is left of each stream's body.
    unsent: HashMap<u64, Bytes>,
}

impl Site {
    fn visitor(&mut self, connection: &Connection) -> Option<&mut Visitor> {
        self.visitors.get_mut(&connection.index()?)
    }

    fn read(&mut self, headers: &[Header]) -> Option<Bytes> {
        let value = |name: &[u8]| headers.iter().find(|header| header.name() == name).map(|header| header.value());
        let path = std::str::from_utf8(value(b":path")?).ok()?.strip_prefix('/')?;
        // A name and nothing else, so that no path leads out of the folder.
        if value(b":method")? != b"GET" || path.is_empty() || path.contains(['/', '\0']) || path.starts_with('.') {
            return None;
        }
        if let Some(body) = self.files.get(path) {
            return Some(body.clone());
        }
        let body = Bytes::from(fs::read(self.www.join(path)).ok()?);
        self.files.insert(path.to_string(), body.clone());
        Some(body)
    }

    fn answer(&mut self, connection: &mut Connection, stream: u64, headers: &[Header]) {
        let body = self.read(headers);
        let status: &[u8] = if body.is_some() { b"200" } else { b"404" };
        let length = body.as_ref().map_or(0, Bytes::len);
        let head = [Header::new(b":status", status), Header::new(b"content-length", length.to_string().as_bytes())];
        let Some(visitor) = self.visitor(connection) else { return };
        // Where the stream has no room for it yet, tquic keeps it until the first part of the body is written.
        let _ = visitor.http.send_headers(connection, stream, &head, length == 0);
        if let Some(body) = body.filter(|body| !body.is_empty()) {
            visitor.unsent.insert(stream, body);
            visitor.write(connection, stream);
        }
    }
}

impl Visitor {
    /// Hand over as much of a body as the client's windows allow; tquic does not copy it.
    fn write(&mut self, connection: &mut Connection, stream: u64) {
        while let Some(body) = self.unsent.get_mut(&stream) {
            match self.http.send_body(connection, stream, body.clone(), true) {
                Ok(written) if written < body.len() => drop(body.split_to(written)),
                Err(tquic::h3::Http3Error::NoError) => {} // the head, which had been kept
                Err(tquic::h3::Http3Error::Done) => return,
                // All is written, or the client does not want it any more.
                _ => drop(self.unsent.remove(&stream)),
            }
        }
        // Else tquic would wake up each millisecond to call us.
        let _ = connection.stream_want_write(stream, false);
    }
}

impl TransportHandler for Site {
    fn on_conn_created(&mut self, connection: &mut Connection) {
        log(connection);
    }

    fn on_conn_established(&mut self, connection: &mut Connection) {
        let config = Http3Config::new().expect("it has no way to fail");
        match (Http3Connection::new_with_quic_conn(connection, &config), connection.index()) {
            (Ok(http), Some(index)) => {
                self.visitors.insert(index, Visitor { http, unsent: HashMap::new() });
            }
            _ => eprintln!("the client does not allow the streams that HTTP/3 needs"),
        }
    }

    fn on_conn_closed(&mut self, connection: &mut Connection) {
        connection.index().map(|index| self.visitors.remove(&index));
    }

    fn on_stream_created(&mut self, _: &mut Connection, _: u64) {}

    fn on_stream_readable(&mut self, connection: &mut Connection, _: u64) {
        while let Some(visitor) = self.visitor(connection) {
            match visitor.http.poll(connection) {
                Ok((stream, Http3Event::Headers { headers, .. })) => self.answer(connection, stream, &headers),
                Ok(_) => {}
                Err(_) => return,
            }
        }
    }

    fn on_stream_writable(&mut self, connection: &mut Connection, stream: u64) {
        if let Some(visitor) = self.visitor(connection) {
            visitor.write(connection, stream);
        }
    }

    fn on_stream_closed(&mut self, connection: &mut Connection, stream: u64) {
        if let Some(visitor) = self.visitor(connection) {
            visitor.unsent.remove(&stream);
            visitor.http.stream_destroy(stream);
        }
    }

    fn on_new_token(&mut self, _: &mut Connection, _: Vec<u8>) {}
}
