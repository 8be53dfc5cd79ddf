//! Fetches https://CC_HOSTNAME:CC_PORT/CC_BYTES once, and prints its size and the times as one JSON line.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::CertificateDer;
use rustls::version::TLS13;
use rustls::{ClientConfig, ClientConnection, KeyLogFile, RootCertStore, StreamOwned};

use crate::{endpoint, setting, Error};

const CHUNK_BYTES: usize = 1 << 16;

pub fn fetch() -> Result<ExitCode, Error> {
    let (host, size) = (
        setting("CC_HOSTNAME")?,
        setting("CC_BYTES")?.parse::<u64>()?,
    );
    let config = Arc::new(tls()?);
    let start = Instant::now();
    // YOUR STACK, from here on: connect, send the request, receive the body.
    let mut connection = TcpStream::connect(endpoint()?)?;
    let mut session = ClientConnection::new(config, host.clone().try_into()?)?;
    while session.is_handshaking() {
        session.complete_io(&mut connection)?;
    }
    let handshake_s = start.elapsed().as_secs_f64();
    let mut stream = StreamOwned::new(session, connection);
    write!(
        stream,
        "GET /{size} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    )?;
    let mut reader = BufReader::with_capacity(CHUNK_BYTES, stream);
    read_head(&mut reader)?;
    let received = io::copy(&mut reader.take(size), &mut io::sink())?;
    let completion_s = start.elapsed().as_secs_f64();
    if received != size {
        return Err(format!("the body has {received} bytes, not {size}").into());
    }
    println!(
        r#"{{"bytes": {received}, "completion_s": {completion_s:.6}, "handshake_s": {handshake_s:.6}}}"#
    );
    Ok(ExitCode::SUCCESS)
}

/// Returns a configuration that trusts only the authority CC_CA; rustls also verifies the server's name.
fn tls() -> Result<ClientConfig, Error> {
    let mut authorities = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(setting("CC_CA")?)? {
        authorities.add(certificate?)?;
    }
    let mut config = ClientConfig::builder_with_protocol_versions(&[&TLS13])
        .with_root_certificates(authorities)
        .with_no_client_auth();
    config.key_log = Arc::new(KeyLogFile::new()); // writes only if SSLKEYLOGFILE is set
    Ok(config)
}

/// Reads the head, up to the empty line that ends it; fails unless the status is 200.
fn read_head(reader: &mut impl BufRead) -> Result<(), Error> {
    let mut line = String::new();
    reader.read_line(&mut line)?;
    if !line.starts_with("HTTP/1.1 200 ") {
        return Err(format!("the server answered {line:?}").into());
    }
    while line != "\r\n" {
        line.clear();
        if reader.read_line(&mut line)? == 0 {
            return Err("half an answer".into());
        }
    }
    Ok(())
}
