//! What adapters in Rust share: the verbs, variables and statuses of the adapter contract (docs/add-a-stack.md), so that
//! an adapter itself is about its stack.
//!
//! Features: `http3` for stacks that bring no HTTP/3, `rustls` for TLS as the contract asks for it, `tokio` for its runtime.

#[cfg(feature = "http3")]
pub mod http3;
#[cfg(feature = "rustls")]
pub mod tls;

use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;
use std::{env, fs};

pub type Error = Box<dyn std::error::Error + Send + Sync>;

const FAILED: u8 = 1;
const USAGE: u8 = 64;
const NOT_OFFERED: u8 = 127;

/// A stack as a program with the contract's verbs.
pub struct Program<'a, C> {
    pub name: &'a str,
    /// Every version that decides how the stack behaves.
    pub version: fn() -> Result<String, Error>,
    /// The stack's own names of its congestion controls, each with what `serve` needs to use it.
    pub algorithms: &'a [(&'a str, C)],
    /// Serves the files of CC_WWW until a signal ends it.
    pub serve: fn(&C) -> Result<(), Error>,
    /// Fetches one body and calls `report`; None where the stack brings no client.
    pub fetch: Option<fn() -> Result<(), Error>>,
}

impl<C> Program<'_, C> {
    /// Runs the verb that the program was called with. An error is printed in one line.
    pub fn run(&self) -> ExitCode {
        let verb = env::args().nth(1).unwrap_or_default();
        let done = match (verb.as_str(), self.fetch) {
            ("server", _) => match self.asked_for() {
                Some(congestion) => (self.serve)(congestion),
                None => return ExitCode::from(NOT_OFFERED),
            },
            ("client", Some(fetch)) => fetch(),
            ("client", None) => return ExitCode::from(NOT_OFFERED),
            ("describe", _) => self.describe(),
            _ => {
                eprintln!("usage: {} server|client|describe", self.name);
                return ExitCode::from(USAGE);
            }
        };
        if let Err(error) = done {
            eprintln!("{error}");
            return ExitCode::from(FAILED);
        }
        ExitCode::SUCCESS
    }

    fn asked_for(&self) -> Option<&C> {
        let called = setting("CC_CALLED").unwrap_or_default();
        let found = self.algorithms.iter().find(|(name, _)| *name == called)?;
        Some(&found.1)
    }

    fn describe(&self) -> Result<(), Error> {
        let names: Vec<&str> = self.algorithms.iter().map(|(name, _)| *name).collect();
        println!(
            r#"{{"version": "{}", "algorithms": {names:?}}}"#,
            (self.version)()?
        );
        Ok(())
    }
}

/// Returns name and version of each package that the lock file has: those that the program was built with.
pub fn versions(lock: &str, names: &[&str]) -> String {
    let found = names.iter().filter_map(|name| {
        let head = format!("\nname = \"{name}\"\nversion = \"");
        let version = lock.split_once(&head)?.1.split_once('"')?.0;
        Some(format!("{name} {version}"))
    });
    found.collect::<Vec<String>>().join(", ")
}

/// Returns a variable of the contract.
pub fn setting(name: &str) -> Result<String, Error> {
    env::var(name).map_err(|_| format!("{name} is not set").into())
}

/// Returns where the server listens and the client connects.
pub fn address() -> Result<SocketAddr, Error> {
    Ok(format!("{}:{}", setting("CC_ADDRESS")?, setting("CC_PORT")?).parse()?)
}

/// Returns the file of CC_WWW that a request's path names; none elsewhere, as a name has no slash and begins with no dot.
pub fn file(path: &str) -> Option<Vec<u8>> {
    let name = path
        .strip_prefix('/')
        .filter(|name| !name.starts_with('.') && !name.contains('/'))?;
    fs::read(Path::new(&env::var_os("CC_WWW")?).join(name)).ok()
}

/// Prints what a transfer took. Both times count from before the connect.
pub fn report(bytes: usize, completion: Duration, handshake: Duration) {
    let (completion_s, handshake_s) = (completion.as_secs_f64(), handshake.as_secs_f64());
    println!(
        r#"{{"bytes": {bytes}, "completion_s": {completion_s:.6}, "handshake_s": {handshake_s:.6}}}"#
    );
}

/// Runs a future to its end, in one thread, as a guest has one core.
#[cfg(feature = "tokio")]
pub fn block_on(work: impl Future<Output = Result<(), Error>>) -> Result<(), Error> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(work)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_those_of_the_lock_file() {
        let lock = "version = 4\n\n[[package]]\nname = \"a\"\nversion = \"1.2\"\n\n[[package]]\nname = \"ab\"\nversion = \"3\"\n";
        assert_eq!(versions(lock, &["ab", "a", "b"]), "ab 3, a 1.2");
    }

    #[test]
    fn a_path_names_a_file_of_the_folder_or_none() {
        let folder = env::temp_dir().join(format!("cc-adapter-{}", std::process::id()));
        fs::create_dir_all(folder.join("www/inner")).unwrap();
        fs::write(folder.join("www/5"), "12345").unwrap();
        fs::write(folder.join("www/.5"), "hidden").unwrap();
        fs::write(folder.join("www/inner/5"), "inner").unwrap();
        fs::write(folder.join("7"), "outside").unwrap();
        unsafe { env::set_var("CC_WWW", folder.join("www")) };
        assert_eq!(file("/5"), Some(b"12345".into()));
        for path in [
            "",
            "/",
            "5",
            "/6",
            "/5/",
            "//5",
            "/.5",
            "/../7",
            "/..",
            "/inner",
            "/inner/5",
            "/%2e%2e/7",
            "/5\0",
        ] {
            assert_eq!(file(path), None, "{path:?}");
        }
        fs::remove_dir_all(folder).unwrap();
    }
}
