//! The draft as a stack: BBRv3 of draft-ietf-ccwg-bbr, and each of its deviations.

mod bbr;
mod connection;
mod deviations;
mod filter;
mod host;
mod play;
mod random;
mod rate;
mod sender;
mod serve;
mod udp;

use std::process::ExitCode;

use cc_adapter::{Program, setting, versions};
use deviations::Deviations;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let Some(("play", rest)) = arguments.split_first().map(|(verb, rest)| (verb.as_str(), rest)) {
        if let Err(why) = play::command::run(rest) {
            eprintln!("{why}");
            return ExitCode::from(64);
        }
        return ExitCode::SUCCESS;
    }
    // Several switches may be asked for at once, so CC_CALLED adds a name to those that `describe` lists.
    let called = setting("CC_CALLED").unwrap_or_default();
    let mut names: Vec<String> = vec!["bbrv3".into()];
    names.extend(deviations::list().chain(deviations::versions()).map(|(name, _)| format!("bbrv3+{name}")));
    names.extend((!names.contains(&called)).then_some(called));
    let algorithms: Vec<(&str, Deviations)> =
        names.iter().filter_map(|name| Some((name.as_str(), Deviations::of(name)?))).collect();
    Program {
        name: "document",
        version: || Ok(versions(include_str!("../Cargo.lock"), &["noq-proto", "rustls"])),
        algorithms: &algorithms,
        serve: |deviations| serve::serve(deviations.clone()),
        fetch: None,
    }
    .run()
}
