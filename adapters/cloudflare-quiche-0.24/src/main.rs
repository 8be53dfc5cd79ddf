//! quiche as an HTTP/3 server and client, with an event loop of our own: quiche does no input or output itself.

mod client;
mod pacing;
mod server;
mod socket;

use quiche::{CongestionControlAlgorithm, Config, ConnectionId};
use std::error::Error;
use std::fs::File;
use std::process::exit;

pub type Failure = Box<dyn Error>;

/// quiche cannot list what it has; it says which names it knows.
const NAMES: [&str; 5] = ["bbr", "bbr2", "bbr2_gcongestion", "cubic", "reno"];

/// What Cloudflare's own programs set (the library's default is the smallest allowed, 1200).
const DATAGRAM_BYTES: usize = 1350;
const IDLE_MS: u64 = 30_000;

fn main() {
    let done = match std::env::args().nth(1).as_deref() {
        Some("server") => server::serve(),
        Some("client") => client::fetch(),
        Some("describe") => Ok(describe()),
        _ => exit(64),
    };
    if let Err(error) = done {
        eprintln!("{error}");
        exit(1);
    }
}

fn is_known(name: &str) -> bool {
    name.parse::<CongestionControlAlgorithm>().is_ok()
}

fn describe() {
    let names: Vec<&str> = NAMES.into_iter().filter(|name| is_known(name)).collect();
    println!("{{\"version\": \"{}\", \"algorithms\": {names:?}}}", env!("CARGO_PKG_DESCRIPTION"));
}

pub fn setting(name: &str) -> Result<String, Failure> {
    std::env::var(name).map_err(|_| format!("{name} is not set").into())
}

/// What server and client share. Congestion control, pacing, HyStart++, initial window, ACKs: as the library has them.
pub fn config() -> Result<Config, Failure> {
    let mut config = Config::new(quiche::PROTOCOL_VERSION)?;
    config.set_application_protos(quiche::h3::APPLICATION_PROTOCOL)?;
    config.set_max_send_udp_payload_size(DATAGRAM_BYTES);
    config.set_max_recv_udp_payload_size(socket::DATAGRAM_BYTES);
    config.set_max_idle_timeout(IDLE_MS);
    config.set_initial_max_streams_bidi(100); // as Cloudflare's own programs
    config.set_initial_max_streams_uni(16);
    config.set_disable_active_migration(true);
    if std::env::var_os("SSLKEYLOGFILE").is_some() {
        config.log_keys();
    }
    Ok(config)
}

pub fn new_id() -> Result<ConnectionId<'static>, Failure> {
    let mut bytes = vec![0; quiche::MAX_CONN_ID_LEN];
    if unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) } != bytes.len() as isize {
        return Err("no random bytes".into());
    }
    Ok(ConnectionId::from_vec(bytes))
}

/// Writes what the environment asks for: TLS keys, a qlog.
pub fn log(quic: &mut quiche::Connection) -> Result<(), Failure> {
    if let Some(path) = std::env::var_os("SSLKEYLOGFILE") {
        quic.set_keylog(Box::new(File::options().create(true).append(true).open(path)?));
    }
    if let Ok(folder) = std::env::var("CC_QLOG") {
        let id = quic.trace_id().to_string();
        quic.set_qlog(Box::new(File::create(format!("{folder}/{id}.sqlog"))?), "quiche".into(), id);
    }
    Ok(())
}
