//! The draft's example test cases (its appendix), by the states and variables that they are about.

use super::*;
use crate::bbr::State;
use crate::connection::{Rate, Seconds};
use crate::deviations::Deviations;

const RATE: Rate = 1.25e6;
const RTT: Seconds = 0.04;
const BDP: f64 = RATE * RTT;

fn path(queue_bdp: f64) -> Path {
    Path {
        rates: vec![(0.0, RATE)],
        rtt: RTT,
        queue: Discipline::Tail(queue_bdp * BDP),
        loss: 0.0,
        ack_loss: 0.0,
        drops: Vec::new(),
        marks: Vec::new(),
        late: Vec::new(),
        slot: (0.0, 0.0),
        delays: Vec::new(),
        ack_drops: Vec::new(),
        police: None,
    }
}

fn bulk() -> Writes {
    vec![(0.0, 1e12)]
}

fn run(path: &Path, writes: &Writes, seconds: Seconds) -> Outcome {
    deviating("bbrv3", path, writes, seconds)
}

fn deviating(called: &str, path: &Path, writes: &Writes, seconds: Seconds) -> Outcome {
    play(path, writes, seconds, &Deviations::of(called).unwrap(), 7, true)
}

/// When the first, second, ... stay in a state begins and ends.
fn stays(outcome: &Outcome, state: State) -> Vec<(Seconds, Seconds)> {
    outcome.states.windows(2).filter(|pair| pair[0].1 == state).map(|pair| (pair[0].0, pair[1].0)).collect()
}

fn within(outcome: &Outcome, from: Seconds, to: Seconds) -> impl Iterator<Item = &Sample> {
    outcome.samples.iter().filter(move |sample| sample.at >= from && sample.at < to)
}

/// Share of the link's rate that was delivered in a time.
fn share(outcome: &Outcome, from: Seconds, to: Seconds) -> f64 {
    let delivered = |at| outcome.samples.iter().rfind(|sample| sample.at <= at).map_or(0.0, |sample| sample.delivered);
    (delivered(to) - delivered(from)) / (to - from) / RATE
}

#[test]
fn start_up_ends_on_a_plateau_and_drain_on_the_flight() {
    let outcome = run(&path(4.0), &bulk(), 4.0);
    let order: Vec<State> = outcome.states.iter().take(4).map(|(_, state)| *state).collect();
    assert_eq!(order, [State::Startup, State::Drain, State::ProbeBwCruise, State::ProbeBwRefill]);
    let drain = stays(&outcome, State::Drain)[0];
    let at_exit = within(&outcome, drain.0, drain.1 + 1e-6).last().unwrap();
    assert!((at_exit.max_bw / RATE - 0.97).abs() < 0.03, "{}", at_exit.max_bw / RATE); // headers are 3 %
    assert!(within(&outcome, 0.0, drain.0).all(|sample| sample.inflight < 2.4 * BDP));
    assert!(at_exit.inflight <= 1.05 * BDP && drain.1 - drain.0 < 3.0 * RTT, "{drain:?}");
}

#[test]
fn probing_goes_on_until_a_plateau_and_down_until_the_flight_is_gone() {
    let outcome = run(&path(4.0), &bulk(), 20.0);
    let ups = stays(&outcome, State::ProbeBwUp);
    assert!(ups.len() >= 3);
    for (from, to) in &ups {
        let most = within(&outcome, *from, *to).map(|sample| sample.inflight).fold(0.0, f64::max);
        assert!((1.6..2.3).contains(&(most / BDP)), "{}", most / BDP);
        assert!(to - from > 3.0 * RTT && to - from < 8.0 * RTT, "{}", to - from);
    }
    for (from, to) in stays(&outcome, State::ProbeBwDown) {
        assert!(within(&outcome, from, to + 1e-6).last().unwrap().inflight <= 1.06 * BDP || to - from > 1.0);
    }
}

/// 5.3.3.8.2: 2 to 3 s, or as many rounds as a BDP has packets.
#[test]
fn the_next_probe_comes_after_two_to_three_seconds_or_a_bdp_of_rounds() {
    for rtt in [RTT, 0.1] {
        let outcome = run(&Path { rtt, ..path(4.0) }, &bulk(), 30.0);
        let ends: Vec<Seconds> = stays(&outcome, State::ProbeBwUp).iter().map(|(_, to)| *to).collect();
        for refill in stays(&outcome, State::ProbeBwRefill) {
            let Some(before) = ends.iter().rfind(|end| **end <= refill.0) else { continue };
            if !stays(&outcome, State::ProbeRtt).iter().any(|(from, _)| from > before && *from < refill.0) {
                let wait = refill.0 - before;
                let least = if rtt == RTT { 35.0 * rtt } else { 2.0 };
                assert!(wait > least && wait < 3.0 + 2.0 * rtt, "{rtt}: {wait}");
            }
        }
    }
}

#[test]
fn probe_rtt_comes_each_five_seconds_for_200_ms_with_half_a_bdp() {
    let outcome = run(&path(4.0), &bulk(), 30.0);
    let probes = stays(&outcome, State::ProbeRtt);
    assert!(probes.len() >= 4);
    let gaps: Vec<Seconds> = probes.windows(2).map(|pair| pair[1].0 - pair[0].1).collect();
    // Longer where a lower RTT was seen in between.
    assert!(gaps.iter().all(|gap| *gap >= 5.0) && gaps.iter().any(|gap| *gap < 5.3), "{gaps:?}");
    for (from, to) in probes {
        assert!((0.2..0.4).contains(&(to - from)));
        let least = within(&outcome, from, to).map(|sample| sample.inflight).fold(f64::INFINITY, f64::min);
        assert!((0.4..0.56).contains(&(least / BDP)), "{}", least / BDP);
    }
}

#[test]
fn probe_rtt_in_start_up_returns_to_start_up() {
    let outcome = run(&Path { rtt: 0.9, ..path(4.0) }, &bulk(), 12.0);
    let order: Vec<State> = outcome.states.iter().take(3).map(|(_, state)| *state).collect();
    assert_eq!(order, [State::Startup, State::ProbeRtt, State::Startup]);
}

#[test]
fn an_idle_sender_needs_no_probe_rtt_and_starts_at_the_bandwidth() {
    let writes = vec![(0.0, 4e6), (10.0, 1e12)];
    let outcome = run(&path(4.0), &writes, 14.0);
    let restart = within(&outcome, 10.06, 14.0).next().unwrap().at;
    assert!(stays(&outcome, State::ProbeRtt).iter().all(|(from, _)| *from < 5.6 || *from > restart + 1.0));
    let rate = share(&outcome, restart + RTT, restart + 4.0 * RTT);
    assert!((0.85..1.1).contains(&rate), "{rate}");
}

/// 5.3.1.2: samples that the application limits end nothing.
#[test]
fn little_to_send_does_not_end_start_up() {
    let writes: Writes = (0..200).map(|at| (0.02 * f64::from(at), 7500.0)).collect();
    let outcome = run(&path(4.0), &writes, 3.9);
    assert_eq!(outcome.states.len(), 1, "{:?}", outcome.states);
}

/// 5.3.1.3: more than 2 % in six places and a round of recovery end it, also where the application is the limit.
#[test]
fn much_loss_ends_start_up() {
    let little: Writes = (0..400).map(|at| (0.01 * f64::from(at), 10_000.0)).collect();
    let lossy = |some, of| Path { drops: vec![Window { from: 1.0, to: 1.6, some, of }], rtt: 0.1, ..path(4.0) };
    let lost = run(&lossy(1, 8), &little, 3.0);
    assert_eq!(lost.states[1].1, State::Drain, "{:?}", lost.states);
    assert!(lost.states[1].0 < 1.5);
    let seldom = run(&lossy(1, 60), &little, 3.0);
    assert_eq!(seldom.states.len(), 1, "{:?}", seldom.states);
    let despite = deviating("bbrv3+startup-despite-loss", &lossy(1, 8), &little, 3.0);
    assert_eq!(despite.states.len(), 1);
}

/// 5.5.10.2: more than 2 % in UP ends it at once; 5.3.3.6: the next probe is precautionary, and another follows.
#[test]
fn loss_in_up_ends_it_and_makes_the_next_probe_short() {
    let clean = run(&path(4.0), &bulk(), 12.0);
    let up = stays(&clean, State::ProbeBwUp)[0];
    let at = up.0 + 0.01;
    let lossy = Path { drops: vec![Window { from: at, to: at + RTT, some: 1, of: 10 }], ..path(4.0) };
    let outcome = run(&lossy, &bulk(), 12.0);
    let ups = stays(&outcome, State::ProbeBwUp);
    assert!(ups[0].1 < at + 2.5 * RTT, "{:?}", ups[0]);
    assert!(ups[1].1 - ups[1].0 < 2.0 * RTT, "{:?}", ups);
    assert!(ups[2].0 - ups[1].1 < 4.0 * RTT, "{:?}", ups); // no cruise in between
    let after = within(&outcome, ups[0].1, ups[0].1 + 1.0).last().unwrap();
    assert!(after.inflight_longterm >= 0.7 * BDP && after.inflight_longterm < 2.0 * BDP);
    let plain = deviating("bbrv3+not-precautionary", &lossy, &bulk(), 12.0);
    let ups = stays(&plain, State::ProbeBwUp);
    assert!(ups[1].1 - ups[1].0 > 2.0 * RTT, "{:?}", ups);
}

/// 5.5.10.3: a round with loss leaves 0.7 of what was, or what was delivered in it if that is more.
#[test]
fn loss_in_cruise_leaves_beta_or_what_arrives() {
    let clean = run(&path(4.0), &bulk(), 6.0);
    let cruise = stays(&clean, State::ProbeBwCruise)[0];
    let at = cruise.0 + 0.1;
    let few = Path { drops: vec![Window { from: at, to: at + 0.01, some: 1, of: 100 }], ..path(4.0) };
    let least = |outcome: &Outcome| {
        within(outcome, at, at + 4.0 * RTT).map(|sample| sample.bw / sample.max_bw).fold(1.0, f64::min)
    };
    assert!(least(&run(&few, &bulk(), 6.0)) > 0.9);
    let many = Path { drops: vec![Window { from: at, to: at + 2.0 * RTT, some: 4, of: 5 }], ..path(4.0) };
    let outcome = run(&many, &bulk(), 6.0);
    assert!((0.69..0.75).contains(&least(&outcome)), "{}", least(&outcome));
    assert_eq!(least(&deviating("bbrv3+loss-ignored", &many, &bulk(), 6.0)), 1.0);
}

/// 5.5.9
#[test]
fn acknowledgements_that_come_together_stall_nothing() {
    let outcome = run(&Path { slot: (0.03, 0.0), rtt: 0.02, ..path(8.0) }, &bulk(), 8.0);
    assert!(share(&outcome, 1.0, 8.0) > 0.9, "{}", share(&outcome, 1.0, 8.0));
    let without = deviating("bbrv3+no-extra-acked", &Path { slot: (0.03, 0.0), rtt: 0.02, ..path(8.0) }, &bulk(), 8.0);
    assert!(share(&without, 1.0, 8.0) < share(&outcome, 1.0, 8.0) - 0.05);
}

/// 5.6.4.3
#[test]
fn the_window_is_four_packets_where_the_bdp_is_less() {
    let path = Path { rtt: 0.001, queue: Discipline::Tail(20.0 * 1500.0), ..path(4.0) };
    let outcome = run(&path, &bulk(), 3.0);
    assert!(within(&outcome, 1.0, 3.0).all(|sample| sample.cwnd >= 4.0 * SMSS));
    assert!(share(&outcome, 1.0, 3.0) > 0.9);
}

/// 5.3.3.5: ten times the rate is used after a wait and O(log BDP) rounds; 5.5.5: a tenth after two cycles.
#[test]
fn the_rate_follows_the_path() {
    let faster = Path { rates: vec![(0.0, RATE), (5.0, 10.0 * RATE)], queue: Discipline::Tail(10.0 * BDP), ..path(4.0) };
    let outcome = run(&faster, &bulk(), 12.0);
    assert!(within(&outcome, 9.5, 12.0).any(|sample| sample.max_bw > 9.0 * RATE));
    let slower = Path { rates: vec![(0.0, 10.0 * RATE), (5.0, RATE)], queue: Discipline::Tail(10.0 * BDP), ..path(4.0) };
    let outcome = run(&slower, &bulk(), 20.0);
    let last = outcome.samples.last().unwrap();
    assert!(last.max_bw < 1.3 * RATE, "{}", last.max_bw / RATE);
}

/// 5.5.11.2, also where a packet was lost long before
#[test]
fn packets_that_come_late_in_up_do_not_end_it_for_good() {
    let once = Window { from: 0.1, to: 1.0, some: 1, of: 1_000_000 };
    for path in [path(4.0), Path { drops: vec![once], ..path(4.0) }] {
        let clean = run(&path, &bulk(), 6.0);
        assert_eq!(clean.dropped, path.drops.len() as u64);
        let at = stays(&clean, State::ProbeBwUp)[0].0 + RTT;
        let window = Window { from: at, to: at + 0.01, some: 1, of: 1 };
        let late = Path { late: vec![(window, 0.5 * RTT)], ..path };
        let outcome = run(&late, &bulk(), 6.0);
        let ups = stays(&outcome, State::ProbeBwUp);
        assert!(ups[0].1 < at + 3.0 * RTT && ups[1].0 - ups[0].1 < 4.0 * RTT, "{:?}", ups);
        let without = deviating("bbrv3+no-undo", &late, &bulk(), 6.0);
        assert!(stays(&without, State::ProbeBwUp)[1].0 - ups[0].1 > 1.0);
    }
}

/// 3.7, EVIDENCE 12
#[test]
fn marks_count_as_loss() {
    let marked = Path { marks: vec![Window { from: 1.0, to: 4.0, some: 1, of: 1 }], ..path(4.0) };
    let outcome = run(&marked, &bulk(), 4.0);
    assert!(within(&outcome, 3.9, 4.0).last().unwrap().bw < 0.9 * RATE);
    let deaf = deviating("bbrv3+deaf-to-ce", &marked, &bulk(), 4.0);
    assert!(within(&deaf, 3.9, 4.0).last().unwrap().bw > 0.9 * RATE);
}

#[test]
fn a_play_can_be_made_again() {
    let lossy = Path { loss: 0.01, queue: Discipline::Red, ..path(4.0) };
    let (one, two) = (run(&lossy, &bulk(), 5.0), run(&lossy, &bulk(), 5.0));
    assert_eq!((one.sent, one.lost, one.delivered, one.states), (two.sent, two.lost, two.delivered, two.states));
}

/// Paths on which something of the draft acts.
fn paths() -> Vec<(&'static str, Path, Writes, Seconds)> {
    let drops = |from, to, some, of| vec![Window { from, to, some, of }];
    let little: Writes = (0..1600).map(|at| (0.005 * f64::from(at), 5000.0)).collect();
    let pauses = vec![(0.0, 4e6), (6.0, 2e6), (13.0, 4e6)];
    vec![
        ("deep", path(4.0), bulk(), 25.0),
        ("shallow", path(0.1), bulk(), 15.0),
        ("long", Path { rtt: 0.2, ..path(1.0) }, bulk(), 25.0),
        ("random", Path { loss: 0.01, queue: Discipline::Red, ..path(4.0) }, bulk(), 15.0),
        ("spaced", Path { drops: drops(2.0, 1e9, 1, 50), rtt: 0.08, ..path(4.0) }, bulk(), 15.0),
        ("burst", Path { drops: drops(3.0, 3.05, 1, 3), ..path(4.0) }, bulk(), 10.0),
        ("few", Path { drops: drops(2.15, 2.2, 2, 40), ..path(4.0) }, bulk(), 10.0),
        ("start", Path { drops: drops(0.1, 1.0, 1, 12), rtt: 0.1, ..path(4.0) }, bulk(), 6.0),
        ("limited", Path { drops: drops(2.0, 4.0, 1, 12), rtt: 0.1, ..path(4.0) }, little.clone(), 9.0),
        ("little", path(4.0), little, 9.0),
        ("pauses", path(4.0), pauses, 20.0),
        ("outage", Path { drops: drops(3.0, 5.0, 1, 1), ..path(4.0) }, bulk(), 12.0),
        ("marks", Path { marks: drops(1.0, 5.0, 1, 2), ..path(4.0) }, bulk(), 8.0),
        ("slots", Path { slot: (0.03, 0.0), rtt: 0.02, ..path(8.0) }, bulk(), 8.0),
        ("tiny", Path { rtt: 0.001, queue: Discipline::Tail(30_000.0), ..path(4.0) }, bulk(), 5.0),
        ("faster", Path { rates: vec![(0.0, RATE), (4.0, 8.0 * RATE)], ..path(8.0) }, bulk(), 10.0),
        ("slower", Path { rates: vec![(0.0, RATE), (4.0, 0.3 * RATE)], ..path(4.0) }, bulk(), 20.0),
        ("blocks", Path { drops: drops(0.1, 1.0, 6, 40), rtt: 0.1, ..path(4.0) }, bulk(), 3.0),
        ("blocks in up", Path { drops: drops(1.0, 1e9, 6, 150), rtt: 0.1, ..path(4.0) }, bulk(), 15.0),
        ("slow drain", Path { rates: vec![(0.0, RATE), (0.42, 0.2 * RATE)], ..path(8.0) }, bulk(), 5.0),
        ("idle", path(4.0), vec![(0.0, 4e6), (10.0, 1e12)], 18.0),
        ("late", Path { late: drops(2.15, 2.2, 1, 1).into_iter().map(|w| (w, 0.02)).collect(), ..path(4.0) }, bulk(), 8.0),
    ]
}

/// A deviation that changes nothing anywhere would be a mutant that is none.
#[test]
fn each_deviation_changes_something() {
    let told = |called: &str| -> Vec<(&str, u64, u64, f64, usize)> {
        let deviations = Deviations::of(called).unwrap();
        let outcomes = paths().into_iter().map(|(name, path, writes, seconds)| {
            let outcome = play(&path, &writes, seconds, &deviations, 7, false);
            (name, outcome.sent, outcome.lost, outcome.delivered, outcome.states.len())
        });
        outcomes.collect()
    };
    let honest = told("bbrv3");
    let mut same = Vec::new();
    for (name, _) in crate::deviations::list().chain(crate::deviations::versions()) {
        let found = told(&format!("bbrv3+{name}"));
        let differs: Vec<&str> = found.iter().zip(&honest).filter(|(a, b)| a != b).map(|(a, _)| a.0).collect();
        println!("{name}: {}", differs.join(" "));
        if differs.is_empty() {
            same.push(name);
        }
    }
    assert!(same.is_empty(), "{same:?}");
}

/// What a play says of its packets is what happened to them.
#[test]
fn packets_are_told_with_what_became_of_them() {
    let window = Window { from: 1.0, to: 2.0, some: 1, of: 10 };
    let path = Path { drops: vec![window], delays: vec![(3.0, 0.02)], ..path(4.0) };
    let outcome = run(&path, &bulk(), 5.0);
    assert_eq!((outcome.packets.len() as u64, outcome.acks.is_empty()), (outcome.sent, false));
    let lost = outcome.packets.iter().filter(|packet| packet.left.is_none()).count() as u64;
    assert!((outcome.dropped..outcome.dropped + 200).contains(&lost), "{lost}, {}", outcome.dropped);
    let least = |from, to| {
        let sent = outcome.packets.iter().filter(|packet| packet.sent >= from && packet.sent < to);
        sent.filter_map(|packet| Some(packet.left? - packet.sent)).fold(f64::INFINITY, f64::min)
    };
    assert!((least(3.0, 4.0) - least(0.0, 3.0) - 0.02).abs() < 0.005);
}

/// Behind a policer nothing waits, and what is above its rate is lost.
#[test]
fn a_policer_drops_and_does_not_hold() {
    let outcome = run(&Path { police: Some(1e5), ..path(4.0) }, &bulk(), 5.0);
    let passed = |packet: &&Packet| packet.left.is_some_and(|left| left - packet.sent <= RTT / 2.0 + 1e-9);
    assert!(outcome.dropped > 0 && outcome.delivered < RATE * 5.0 + 1e5);
    assert_eq!(outcome.packets.iter().filter(passed).count(), outcome.packets.iter().filter(|p| p.left.is_some()).count());
}
