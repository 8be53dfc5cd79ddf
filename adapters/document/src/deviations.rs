//! Deviations: faults that stacks have or had, as switches. `deviations.txt` lists them, a line each: a name, what it
//! switches where that is not just its name, and after a `#` what a sender with it does, who has or had it, and where that
//! is said. CC_CALLED names them: `bbrv3+loss-ignored`.
//! `versions.txt` has what older drafts and Linux's patch do otherwise, in the same form: `bbrv3+draft-05`.

use std::sync::Arc;

const LIST: &str = include_str!("deviations.txt");
const VERSIONS: &str = include_str!("versions.txt");
const BASE: &str = "bbrv3";

#[derive(Clone, Debug, Default)]
pub struct Deviations(Arc<[(&'static str, f64)]>);

/// Each deviation, with what it switches.
pub fn list() -> impl Iterator<Item = (&'static str, Vec<(&'static str, f64)>)> {
    read(LIST)
}

/// Each older version, with what it switches.
pub fn versions() -> impl Iterator<Item = (&'static str, Vec<(&'static str, f64)>)> {
    read(VERSIONS)
}

fn read(text: &'static str) -> impl Iterator<Item = (&'static str, Vec<(&'static str, f64)>)> {
    text.lines().filter(|line| !line.trim().is_empty()).map(|line| {
        let mut words = line.split('#').next().unwrap().split_whitespace();
        let name = words.next().unwrap();
        let mut switches: Vec<(&str, f64)> = words
            .map(|word| {
                let (switch, value) = word.split_once('=').unwrap_or((word, "1"));
                (switch, value.parse().unwrap())
            })
            .collect();
        if switches.is_empty() {
            switches.push((name, 1.0));
        }
        (name, switches)
    })
}

impl Deviations {
    /// Those that an algorithm's name has; None if one of them is unknown.
    pub fn of(called: &str) -> Option<Self> {
        let mut names = called.split('+');
        if names.next() != Some(BASE) {
            return None;
        }
        let mut all = Vec::new();
        for name in names {
            all.extend(list().chain(versions()).find(|(known, _)| *known == name)?.1);
        }
        Some(Self(all.into()))
    }

    pub fn on(&self, switch: &str) -> bool {
        self.0.iter().any(|(given, _)| *given == switch)
    }

    /// The draft's value, or what the deviation puts in its place.
    pub fn number(&self, switch: &str, of_the_draft: f64) -> f64 {
        let given = self.0.iter().find(|(given, _)| *given == switch);
        given.map_or(of_the_draft, |(_, value)| *value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_has_a_citation_and_switches_that_code_asks_for() {
        let code = [
            include_str!("bbr/control.rs"),
            include_str!("bbr/drain.rs"),
            include_str!("bbr/idle.rs"),
            include_str!("bbr/loss.rs"),
            include_str!("bbr/mod.rs"),
            include_str!("bbr/model.rs"),
            include_str!("bbr/probe_bw.rs"),
            include_str!("bbr/probe_rtt.rs"),
            include_str!("bbr/startup.rs"),
            include_str!("bbr/undo.rs"),
        ]
        .concat();
        let (pairs, single): (Vec<_>, Vec<_>) = list().partition(|(name, _)| name.contains('+'));
        assert!(single.len() >= 40);
        for (name, switches) in single.iter().chain(&versions().collect::<Vec<_>>()) {
            for (switch, _) in switches {
                assert!(code.contains(&format!("\"{switch}\"")), "{name}: {switch}");
            }
        }
        for (name, _) in &single {
            assert_eq!(single.iter().filter(|(other, _)| other == name).count(), 1, "{name}");
        }
        for (name, _) in pairs {
            assert!(Deviations::of(&format!("bbrv3+{name}")).is_some(), "{name}");
        }
        for line in LIST.lines() {
            let (_, citation) = line.split_once(" # ").unwrap();
            assert!(["https://", "EVIDENCE.txt", "docs/", "made up"].iter().any(|place| citation.contains(place)), "{line}");
        }
    }

    #[test]
    fn a_name_has_a_base_and_switches_that_are_known() {
        assert!(Deviations::of("bbrv3").is_some_and(|d| !d.on("loss-ignored")));
        assert!(Deviations::of("bbrv3+loss-ignored").is_some_and(|d| d.on("loss-ignored")));
        let two = Deviations::of("bbrv3+loss-ignored+headroom-0.85").unwrap();
        assert!(two.on("loss-ignored") && two.number("headroom", 0.15) == 0.85);
        assert!(Deviations::of("bbrv3+each-round-lossy+headroom-0.85").is_some());
        for unknown in ["", "bbr", "bbrv3+", "bbrv3+no-such", "bbrv3+loss-ignored+no-such", "loss-ignored"] {
            assert!(Deviations::of(unknown).is_none(), "{unknown}");
        }
    }
}
