//! s2n-quic as HTTPS server and client: one program with the verbs of the adapter contract.

mod client;
mod server;

use std::process::ExitCode;

use cc_adapter::{Error, Program, block_on, versions};
use s2n_quic::Server;
use s2n_quic::provider::congestion_controller::{Bbr, Cubic};

/// What s2n-quic calls its congestion controls, and a server with each as s2n-quic sets it up.
const ALGORITHMS: [(&str, fn() -> Result<Server, Error>); 2] = [
    ("cubic", || server::start(Cubic::default())),
    ("bbr", || server::start(Bbr::default())),
];

fn main() -> ExitCode {
    Program {
        name: "s2n-quic",
        version: || {
            Ok(versions(
                include_str!("../Cargo.lock"),
                &[
                    "s2n-quic",
                    "s2n-quic-core",
                    "s2n-quic-transport",
                    "s2n-quic-platform",
                    "rustls",
                    "tokio",
                ],
            ))
        },
        algorithms: &ALGORITHMS,
        serve: |start| block_on(async { server::serve(start()?).await }),
        fetch: Some(|| block_on(client::fetch())),
    }
    .run()
}
