//! msquic as HTTP/3 server of the suite; docs/add-a-stack.md has the contract.

mod http3;
mod keylog;
mod qpack;
mod server;
mod site;

use std::process::exit;

use msquic::{ffi, Api};

/// The names that msquic gives its algorithms in its own logs, in lower case.
const ALGORITHMS: [(&str, ffi::QUIC_CONGESTION_CONTROL_ALGORITHM); 2] = [
    ("bbr", ffi::QUIC_CONGESTION_CONTROL_ALGORITHM_QUIC_CONGESTION_CONTROL_ALGORITHM_BBR),
    ("cubic", ffi::QUIC_CONGESTION_CONTROL_ALGORITHM_QUIC_CONGESTION_CONTROL_ALGORITHM_CUBIC),
];
const UNSUPPORTED: i32 = 127;

fn main() {
    let result = match std::env::args().nth(1).as_deref() {
        Some("server") => server::serve(asked_for()),
        Some("client") => exit(UNSUPPORTED),
        Some("describe") => describe(),
        _ => Err("usage: msquic server|client|describe".into()),
    };
    if let Err(problem) = result {
        eprintln!("{problem}");
        exit(1);
    }
}

fn asked_for() -> u16 {
    let wanted = std::env::var("CC_CALLED").unwrap_or_default();
    let Some((_, number)) = ALGORITHMS.into_iter().find(|(name, _)| *name == wanted) else {
        eprintln!("msquic has no algorithm {wanted:?}");
        exit(UNSUPPORTED);
    };
    number as u16
}

/// The library says its version; its algorithms are an enumeration, so their names come from the headers.
fn describe() -> Result<(), String> {
    Api::get_ffi(); // opens the library
    let version =
        unsafe { Api::get_param_auto::<[u32; 4]>(std::ptr::null_mut(), ffi::QUIC_PARAM_GLOBAL_LIBRARY_VERSION) };
    let [major, minor, patch, _] = version.map_err(|e| format!("the library does not say its version: {e}"))?;
    let names = ALGORITHMS.map(|(name, _)| name);
    println!(
        "{{\"version\": \"msquic {major}.{minor}.{patch} (crate msquic {})\", \"algorithms\": {names:?}}}",
        crate_version()
    );
    Ok(())
}

/// Of the library's Rust package, from the lock file that this was built from.
fn crate_version() -> &'static str {
    let entry = include_str!("../Cargo.lock").split("name = \"msquic\"\nversion = \"").nth(1);
    entry.and_then(|rest| rest.split('"').next()).unwrap_or("of unknown version")
}
