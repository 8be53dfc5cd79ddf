//! noq as HTTPS server and client: one program with the verbs of the adapter contract.

mod client;
mod http3;
mod server;

use std::env;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;

use noq::congestion::{Bbr3Config, ControllerFactory, CubicConfig, NewRenoConfig};
use rustls::crypto::{CryptoProvider, ring};

type Error = Box<dyn std::error::Error + Send + Sync>;
type Congestion = Arc<dyn ControllerFactory + Send + Sync>;

/// What noq calls its congestion controls, and each as noq sets it up.
const ALGORITHMS: [(&str, fn() -> Congestion); 3] = [
    ("newreno", || Arc::new(NewRenoConfig::default())),
    ("cubic", || Arc::new(CubicConfig::default())),
    ("bbr3", || Arc::new(Bbr3Config::default())),
];

const NOT_OFFERED: u8 = 127;

fn main() -> ExitCode {
    match env::args().nth(1).as_deref() {
        Some("server") => serve(),
        Some("client") => ended(run(client::fetch())),
        Some("describe") => describe(),
        _ => {
            eprintln!("usage: noq server|client|describe");
            ExitCode::from(64)
        }
    }
}

fn serve() -> ExitCode {
    let called = env::var("CC_CALLED").unwrap_or_default();
    match ALGORITHMS.iter().find(|(name, _)| *name == called) {
        Some((_, congestion)) => ended(run(server::serve(congestion()))),
        None => ExitCode::from(NOT_OFFERED),
    }
}

/// The versions are those of the lock file that this program was built with.
fn describe() -> ExitCode {
    let lock = include_str!("../Cargo.lock");
    let versions: Vec<String> = ["noq", "noq-proto", "noq-udp", "rustls", "tokio"]
        .iter()
        .filter_map(|name| {
            let entry = lock
                .split_once(&format!("\nname = \"{name}\"\nversion = \""))?
                .1;
            Some(format!("{name} {}", entry.split_once('"')?.0))
        })
        .collect();
    let names: Vec<&str> = ALGORITHMS.iter().map(|(name, _)| *name).collect();
    println!(
        r#"{{"version": "{}", "algorithms": {names:?}}}"#,
        versions.join(", ")
    );
    ExitCode::SUCCESS
}

/// In one thread, as the guest has one core.
fn run(work: impl Future<Output = Result<(), Error>>) -> Result<(), Error> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(work)
}

fn ended(result: Result<(), Error>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn setting(name: &str) -> Result<String, Error> {
    env::var(name).map_err(|_| format!("{name} is not set").into())
}

fn address() -> Result<SocketAddr, Error> {
    Ok(format!("{}:{}", setting("CC_ADDRESS")?, setting("CC_PORT")?).parse()?)
}

fn crypto() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}
