//! noq as HTTPS server and client: one program with the verbs of the adapter contract.

mod client;
mod server;

use std::process::ExitCode;
use std::sync::Arc;

use cc_adapter::{Program, block_on, versions};
use noq::congestion::{Bbr3Config, ControllerFactory, CubicConfig, NewRenoConfig};

type Congestion = Arc<dyn ControllerFactory + Send + Sync>;

/// What noq calls its congestion controls, and each as noq sets it up.
const ALGORITHMS: [(&str, fn() -> Congestion); 3] = [
    ("newreno", || Arc::new(NewRenoConfig::default())),
    ("cubic", || Arc::new(CubicConfig::default())),
    ("bbr3", || Arc::new(Bbr3Config::default())),
];

fn main() -> ExitCode {
    Program {
        name: "noq",
        version: || {
            Ok(versions(
                include_str!("../Cargo.lock"),
                &["noq", "noq-proto", "noq-udp", "rustls", "tokio"],
            ))
        },
        algorithms: &ALGORITHMS,
        serve: |congestion| block_on(server::serve(congestion())),
        fetch: Some(|| block_on(client::fetch())),
    }
    .run()
}
