//! my-stack as HTTPS server and client: one program with the verbs of the adapter contract.
//! It works as it is, over the kernel's TCP. Put your own stack where a comment says YOUR STACK.

mod client;
mod server;

use std::env;
use std::net::SocketAddr;
use std::process::ExitCode;

type Error = Box<dyn std::error::Error>;

/// YOUR STACK: its own names for its congestion controls; adapter.json says which algorithm each of them is.
const ALGORITHMS: [&str; 2] = ["cubic", "reno"];

const NOT_OFFERED: u8 = 127;

fn main() -> ExitCode {
    let result = match env::args().nth(1).as_deref() {
        Some("server") => server::serve(),
        Some("client") => client::fetch(),
        Some("describe") => describe(),
        _ => Err("usage: stack server|client|describe".into()),
    };
    result.unwrap_or_else(|error| {
        eprintln!("my-stack: {error}");
        ExitCode::FAILURE
    })
}

fn describe() -> Result<ExitCode, Error> {
    // YOUR STACK: print every version that affects how it behaves.
    let version = concat!("my-stack ", env!("CARGO_PKG_VERSION"));
    println!(r#"{{"version": "{version}", "algorithms": {ALGORITHMS:?}}}"#);
    Ok(ExitCode::SUCCESS)
}

/// Returns the value of an environment variable that the contract promises.
fn setting(name: &str) -> Result<String, Error> {
    env::var(name).map_err(|error| format!("{name}: {error}").into())
}

/// Returns the address on which the server listens and to which the client connects.
fn endpoint() -> Result<SocketAddr, Error> {
    Ok(format!("{}:{}", setting("CC_ADDRESS")?, setting("CC_PORT")?).parse()?)
}
