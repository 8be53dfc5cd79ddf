//! smoltcp, a TCP/IP in user space, as HTTPS server and client of the suite. Its IP packets travel in UDP datagrams, one in
//! each, as a program without rights can send no others.

mod client;
mod server;
mod tunnel;

use std::process::ExitCode;

use cc_adapter::{Error, Program};
use smoltcp::socket::tcp::CongestionControl;

fn main() -> ExitCode {
    Program {
        name: "smoltcp",
        version,
        algorithms: &[
            ("Cubic", CongestionControl::Cubic),
            ("Reno", CongestionControl::Reno),
        ],
        serve: server::serve,
        fetch: Some(client::fetch),
    }
    .run()
}

fn version() -> Result<String, Error> {
    let lock = include_str!("../Cargo.lock");
    Ok(cc_adapter::versions(lock, &["smoltcp", "rustls"]))
}
