//! dquic as HTTPS server: one program with the verbs of the adapter contract.

mod server;

use std::process::ExitCode;

use cc_adapter::{Program, block_on, versions};

/// dquic's only congestion control; it offers no way to choose another, so serving takes nothing.
const ALGORITHMS: [(&str, ()); 1] = [("newreno", ())];

fn main() -> ExitCode {
    Program {
        name: "dquic",
        version: || {
            Ok(versions(
                include_str!("../Cargo.lock"),
                &[
                    "dquic",
                    "qconnection",
                    "qtransport",
                    "qcongestion",
                    "qudp",
                    "tokio",
                ],
            ))
        },
        algorithms: &ALGORITHMS,
        serve: |()| block_on(server::serve()),
        fetch: None, // its client takes no certificate without an OCSP answer
    }
    .run()
}
