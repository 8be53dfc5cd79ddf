//! Serves the files of CC_WWW with HTTP/1.1 over TLS 1.3, one connection after the other.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::version::TLS13;
use rustls::{KeyLogFile, ServerConfig, ServerConnection, StreamOwned};
use socket2::{Domain, Socket, Type};

use crate::{endpoint, setting, Error, ALGORITHMS, NOT_OFFERED};

const HEAD_BYTES: u64 = 1 << 12;
const CHUNK_BYTES: usize = 1 << 16;

pub fn serve() -> Result<ExitCode, Error> {
    let called = setting("CC_CALLED")?;
    if !ALGORITHMS.contains(&called.as_str()) {
        eprintln!("my-stack: there is no {called}");
        return Ok(ExitCode::from(NOT_OFFERED));
    }
    let config = Arc::new(tls()?);
    // YOUR STACK, from here on: listen, with the congestion control `called`.
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    if let Err(error) = socket.set_tcp_congestion(called.as_bytes()) {
        eprintln!("my-stack: the kernel refuses {called}: {error}");
        return Ok(ExitCode::from(NOT_OFFERED));
    }
    socket.set_reuse_address(true)?;
    socket.bind(&endpoint()?.into())?;
    socket.listen(16)?;
    let listener = TcpListener::from(socket);
    // Serve until a signal ends the program.
    loop {
        let (connection, _) = listener.accept()?;
        if let Err(error) = answer(connection, config.clone()) {
            eprintln!("my-stack: a connection failed: {error}");
        }
    }
}

fn tls() -> Result<ServerConfig, Error> {
    let chain = CertificateDer::pem_file_iter(setting("CC_CERT")?)?.collect::<Result<_, _>>()?;
    let key = PrivateKeyDer::from_pem_file(setting("CC_KEY")?)?;
    let mut config = ServerConfig::builder_with_protocol_versions(&[&TLS13])
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    config.key_log = Arc::new(KeyLogFile::new()); // writes only if SSLKEYLOGFILE is set
    Ok(config)
}

fn answer(connection: TcpStream, config: Arc<ServerConfig>) -> Result<(), Error> {
    let mut stream = StreamOwned::new(ServerConnection::new(config)?, connection);
    let request = read_head(&mut stream)?;
    match body_of(&request) {
        Some(body) => {
            let size = body.metadata()?.len();
            write!(
                stream,
                "HTTP/1.1 200 OK\r\nContent-Length: {size}\r\nConnection: close\r\n\r\n"
            )?;
            io::copy(
                &mut BufReader::with_capacity(CHUNK_BYTES, body),
                &mut stream,
            )?;
        }
        None => write!(
            stream,
            "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        )?,
    }
    stream.conn.send_close_notify();
    Ok(stream.flush()?)
}

/// Reads a request up to the empty line that ends its head, and returns its first line.
fn read_head(stream: &mut impl Read) -> Result<String, Error> {
    let mut lines = BufReader::new(stream.take(HEAD_BYTES)).lines();
    let first = lines.next().ok_or("no request")??;
    for line in lines {
        if line?.is_empty() {
            return Ok(first);
        }
    }
    Err("half a request".into())
}

/// Opens the body that a request asks for; returns None if there is none.
fn body_of(request: &str) -> Option<File> {
    let name = request.strip_prefix("GET /")?.split(' ').next()?;
    // Bodies are named by their size. Refusing all other names also blocks paths that lead out of the folder.
    name.parse::<u64>().ok()?;
    File::open(Path::new(&setting("CC_WWW").ok()?).join(name)).ok()
}
