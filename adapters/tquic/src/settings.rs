//! What the environment says, and what both ends set in tquic.

use std::env;
use std::fs::File;
use std::io::{LineWriter, Write};
use std::net::SocketAddr;
use std::path::PathBuf;

use tquic::{Config, Connection};

use crate::udp::DATAGRAM_BYTES;

type Sink = Box<dyn Write + Send + Sync>;

pub fn required(name: &str) -> Result<String, String> {
    env::var(name).map_err(|_| format!("{name} is not set"))
}

/// Where the server listens and the client connects.
pub fn address() -> Result<SocketAddr, String> {
    let text = format!("{}:{}", required("CC_ADDRESS")?, required("CC_PORT")?);
    text.parse().map_err(|_| format!("not an address: {text}"))
}

/// tquic's defaults, which have no idle timeout.
pub fn config() -> Result<Config, String> {
    let mut config = Config::new().map_err(|e| format!("cannot configure: {e}"))?;
    config.set_max_idle_timeout(30_000);
    config.set_recv_udp_payload_size(DATAGRAM_BYTES as u16);
    Ok(config)
}

/// Log what the user asked for, if anything.
pub fn log(connection: &mut Connection) {
    let name = connection.trace_id().to_string();
    if let Some(file) = sink(env::var_os("SSLKEYLOGFILE").map(PathBuf::from)) {
        connection.set_keylog(file);
    }
    if let Some(file) = sink(env::var_os("CC_QLOG").map(|folder| PathBuf::from(folder).join(name.clone() + ".sqlog"))) {
        connection.set_qlog(file, name, String::new());
    }
}

fn sink(path: Option<PathBuf>) -> Option<Sink> {
    let path = path?;
    match File::options().create(true).append(true).open(&path) {
        // tquic writes a few bytes at a time.
        Ok(file) => Some(Box::new(LineWriter::new(file))),
        Err(error) => {
            eprintln!("cannot write {}: {error}", path.display());
            None
        }
    }
}
