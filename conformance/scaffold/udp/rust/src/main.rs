//! my-stack as HTTPS server and client over QUIC: one program with the verbs of the adapter contract.
//! It works as it is, with quinn. Put your own stack where a comment says YOUR STACK.

mod client;
mod server;

use std::process::ExitCode;
use std::sync::Arc;

use cc_adapter::{Program, block_on, versions};
use quinn::congestion::{ControllerFactory, CubicConfig, NewRenoConfig};

type Congestion = Arc<dyn ControllerFactory + Send + Sync>;

/// YOUR STACK: its own names for its congestion controls, and how to set up each; adapter.json says which algorithm
/// each of them is.
const ALGORITHMS: [(&str, fn() -> Congestion); 2] = [
    ("cubic", || Arc::new(CubicConfig::default())),
    ("newreno", || Arc::new(NewRenoConfig::default())),
];

/// YOUR STACK: every package whose version affects how it behaves.
const PACKAGES: [&str; 5] = ["quinn", "quinn-proto", "quinn-udp", "rustls", "tokio"];

fn main() -> ExitCode {
    Program {
        name: "stack",
        version: || {
            let packages = versions(include_str!("../Cargo.lock"), &PACKAGES);
            Ok(format!("my-stack 0.1, {packages}"))
        },
        algorithms: &ALGORITHMS,
        serve: |congestion| block_on(server::serve(congestion())),
        fetch: Some(|| block_on(client::fetch())),
    }
    .run()
}
