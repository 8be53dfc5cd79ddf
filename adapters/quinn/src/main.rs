//! quinn as HTTPS server and client: one program with the verbs of the adapter contract.

mod client;
mod server;

use std::process::ExitCode;
use std::sync::Arc;

use cc_adapter::{Program, block_on, versions};
use quinn::congestion::{BbrConfig, ControllerFactory, CubicConfig, NewRenoConfig};

type Congestion = Arc<dyn ControllerFactory + Send + Sync>;

/// What quinn calls its congestion controls, and each as quinn sets it up.
const ALGORITHMS: [(&str, fn() -> Congestion); 3] = [
    ("newreno", || Arc::new(NewRenoConfig::default())),
    ("cubic", || Arc::new(CubicConfig::default())),
    ("bbr", || Arc::new(BbrConfig::default())),
];

fn main() -> ExitCode {
    Program {
        name: "quinn",
        version: || {
            Ok(versions(
                include_str!("../Cargo.lock"),
                &["quinn", "quinn-proto", "quinn-udp", "h3", "rustls", "tokio"],
            ))
        },
        algorithms: &ALGORITHMS,
        serve: |congestion| block_on(server::serve(congestion())),
        fetch: Some(|| block_on(client::fetch())),
    }
    .run()
}
