//! msquic as HTTP/3 server of the suite; docs/add-a-stack.md has the contract.

mod keylog;
mod server;
mod site;

use std::process::ExitCode;

use cc_adapter::{versions, Error, Program};
use msquic::{ffi, Api};

/// The names that msquic gives its algorithms in its own logs, in lower case.
const ALGORITHMS: [(&str, ffi::QUIC_CONGESTION_CONTROL_ALGORITHM); 2] = [
    ("bbr", ffi::QUIC_CONGESTION_CONTROL_ALGORITHM_QUIC_CONGESTION_CONTROL_ALGORITHM_BBR),
    ("cubic", ffi::QUIC_CONGESTION_CONTROL_ALGORITHM_QUIC_CONGESTION_CONTROL_ALGORITHM_CUBIC),
];

fn main() -> ExitCode {
    Program {
        name: "msquic",
        version,
        algorithms: &ALGORITHMS,
        serve: |number| server::serve(*number as u16),
        fetch: None,
    }
    .run()
}

/// That of the library, which says it itself, and that of its Rust package.
fn version() -> Result<String, Error> {
    Api::get_ffi(); // opens the library
    let version =
        unsafe { Api::get_param_auto::<[u32; 4]>(std::ptr::null_mut(), ffi::QUIC_PARAM_GLOBAL_LIBRARY_VERSION) };
    let [major, minor, patch, _] = version.map_err(|e| format!("the library does not say its version: {e}"))?;
    let package = versions(include_str!("../Cargo.lock"), &["msquic"]);
    Ok(format!("msquic {major}.{minor}.{patch} (crate {package})"))
}
