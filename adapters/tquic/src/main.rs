//! tquic as HTTP/3 server and client of the suite; docs/add-a-stack.md has the contract.

mod client;
mod event_loop;
mod server;
mod settings;
mod udp;

use std::process::exit;

use tquic::CongestionControlAlgorithm;

/// The names that tquic has for its algorithms. Its fifth, dummy, is a fixed window for tests.
const NAMES: [&str; 4] = ["bbr", "bbr3", "copa", "cubic"];
const UNSUPPORTED: i32 = 127;

fn main() {
    let result = match std::env::args().nth(1).as_deref() {
        Some("server") => server::serve(asked_for()),
        Some("client") => client::fetch(),
        Some("describe") => describe(),
        _ => Err("usage: tquic server|client|describe".into()),
    };
    if let Err(problem) = result {
        eprintln!("{problem}");
        exit(1);
    }
}

fn algorithm(name: &str) -> Option<CongestionControlAlgorithm> {
    name.parse().ok().filter(|_| NAMES.contains(&name))
}

fn asked_for() -> CongestionControlAlgorithm {
    let name = std::env::var("CC_CALLED").unwrap_or_default();
    algorithm(&name).unwrap_or_else(|| {
        eprintln!("tquic has no algorithm {name:?}");
        exit(UNSUPPORTED)
    })
}

fn describe() -> Result<(), String> {
    let names: Vec<&str> = NAMES.into_iter().filter(|name| algorithm(name).is_some()).collect();
    println!("{{\"version\": \"tquic {}\", \"algorithms\": {names:?}}}", version());
    Ok(())
}

/// The library does not say its version, but the lock file it was built from does.
fn version() -> &'static str {
    let lock = include_str!("../Cargo.lock");
    let entry = lock.split("name = \"tquic\"\nversion = \"").nth(1);
    // Our own program has another name in that file: cc-tquic.
    entry.and_then(|rest| rest.split('"').next()).unwrap_or("of unknown version")
}
