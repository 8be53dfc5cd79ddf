//! `document play KEY=VALUE ...`: plays transfers and prints a JSON line for each seed. Not part of the adapter's contract.

use super::{Discipline, Outcome, Path, Sample, Window, Writes, play};
use crate::connection::{Rate, Seconds};
use crate::deviations::Deviations;

pub const USAGE: &str = "document play [called=bbrv3[+DEVIATION ...]] [rate_mbps=10] [rtt_ms=40] [loss_pct=0] \
[ack_loss_pct=0] [queue=red|bdp:N|bytes:N] [write=AT:BYTES ...] [seconds=3600] [seeds=FIRST:LAST] [rate=AT:MBPS ...] \
[drop=FROM:TO:SOME:OF ...] [mark=FROM:TO:SOME:OF ...] [late=FROM:TO:SOME:OF:BY ...] [slot=SECONDS:FROM] \
[police=BYTES] [delay=AT:MORE_MS ...] [ack_drop=FROM:TO:SOME:OF ...] [trace=1] [packets=1]";

struct Asked {
    path: Path,
    queue: String,
    writes: Writes,
    seconds: Seconds,
    seeds: (u64, u64),
    deviations: Deviations,
    is_traced: bool,
    wants_packets: bool,
}

/// Returns what is wrong with the arguments, if something is.
pub fn run(arguments: &[String]) -> Result<(), String> {
    let asked = read(arguments)?;
    for seed in asked.seeds.0..=asked.seeds.1 {
        let outcome = play(&asked.path, &asked.writes, asked.seconds, &asked.deviations, seed, asked.is_traced);
        outcome.samples.iter().for_each(|sample| println!("{}", sampled(seed, sample)));
        if asked.wants_packets {
            println!("{}", captured(&outcome));
        }
        println!("{}", told(seed, &outcome, &asked));
    }
    Ok(())
}

fn read(arguments: &[String]) -> Result<Asked, String> {
    let mut asked = Asked {
        path: Path {
            rates: vec![(0.0, mbps(10.0))],
            rtt: 0.04,
            queue: Discipline::Red,
            loss: 0.0,
            ack_loss: 0.0,
            drops: Vec::new(),
            marks: Vec::new(),
            late: Vec::new(),
            slot: (0.0, 0.0),
            delays: Vec::new(),
            ack_drops: Vec::new(),
            police: None,
        },
        queue: "red".into(),
        writes: Vec::new(),
        seconds: 3600.0,
        seeds: (1, 1),
        deviations: Deviations::default(),
        is_traced: false,
        wants_packets: false,
    };
    for argument in arguments {
        let (key, value) = argument.split_once('=').ok_or(format!("{argument} is not KEY=VALUE; {USAGE}"))?;
        let path = &mut asked.path;
        match key {
            "called" => {
                asked.deviations = Deviations::of(value).ok_or(format!("there is no {value}; `document describe` lists all"))?
            }
            "rate_mbps" => path.rates[0].1 = mbps(numbers::<1>(argument, value)?[0]),
            "rtt_ms" => path.rtt = numbers::<1>(argument, value)?[0] / 1e3,
            "loss_pct" => path.loss = numbers::<1>(argument, value)?[0] / 1e2,
            "ack_loss_pct" => path.ack_loss = numbers::<1>(argument, value)?[0] / 1e2,
            "queue" => asked.queue = value.into(),
            "seconds" => asked.seconds = numbers::<1>(argument, value)?[0],
            "trace" => asked.is_traced = value == "1",
            "seeds" => asked.seeds = numbers::<2>(argument, value).map(|[first, last]| (first as u64, last as u64))?,
            "write" => asked.writes.push(numbers::<2>(argument, value).map(|[at, bytes]| (at, bytes))?),
            "rate" => path.rates.push(numbers::<2>(argument, value).map(|[at, rate]| (at, mbps(rate)))?),
            "delay" => path.delays.push(numbers::<2>(argument, value).map(|[at, ms]| (at, ms / 1e3))?),
            "ack_drop" => path.ack_drops.push(window(argument, numbers::<4>(argument, value)?)?),
            "police" => path.police = Some(numbers::<1>(argument, value)?[0]),
            "packets" => asked.wants_packets = value == "1",
            "slot" => path.slot = numbers::<2>(argument, value).map(|[slot, from]| (slot, from))?,
            "drop" => path.drops.push(window(argument, numbers::<4>(argument, value)?)?),
            "mark" => path.marks.push(window(argument, numbers::<4>(argument, value)?)?),
            "late" => {
                let [from, to, some, of, by] = numbers::<5>(argument, value)?;
                path.late.push((window(argument, [from, to, some, of])?, by));
            }
            _ => return Err(format!("there is no {key}; {USAGE}")),
        }
    }
    let path = &mut asked.path;
    path.queue = match asked.queue.split_once(':') {
        None if asked.queue == "red" => Discipline::Red,
        Some(("bdp", size)) => Discipline::Tail(numbers::<1>("queue", size)?[0] * path.rates[0].1 * path.rtt),
        Some(("bytes", size)) => Discipline::Tail(numbers::<1>("queue", size)?[0]),
        _ => return Err(format!("there is no queue {}; choose red, bdp:N or bytes:N", asked.queue)),
    };
    if path.rates[0].1 <= 0.0 || path.rtt <= 0.0 {
        return Err("rate_mbps and rtt_ms must be above 0".into());
    }
    if asked.writes.is_empty() {
        asked.writes.push((0.0, 10.0 * path.rates[0].1));
    }
    Ok(asked)
}

fn mbps(rate: f64) -> Rate {
    rate * 1e6 / 8.0
}

fn numbers<const N: usize>(argument: &str, value: &str) -> Result<[f64; N], String> {
    let found: Option<Vec<f64>> =
        value.split(':').map(|word| word.parse().ok().filter(|number: &f64| *number >= 0.0)).collect();
    found.and_then(|found| found.try_into().ok()).ok_or(format!("{argument}: not {N} numbers of 0 or more, with : between"))
}

/// A spacing of zero would divide by it.
fn window(argument: &str, [from, to, some, of]: [f64; 4]) -> Result<Window, String> {
    if of < 1.0 {
        return Err(format!("{argument}: of at least 1 packet"));
    }
    Ok(Window { from, to, some: some as u64, of: of as u64 })
}

fn told(seed: u64, outcome: &Outcome, asked: &Asked) -> String {
    let bytes: f64 = asked.writes.iter().map(|(_, bytes)| bytes).sum();
    let seconds = outcome.completion.unwrap_or(asked.seconds);
    let share = outcome.delivered.min(bytes) / seconds / asked.path.rates[0].1;
    let states: Vec<String> = outcome.states.iter().map(|(at, state)| format!("[{at:.6}, \"{state:?}\"]")).collect();
    format!(
        "{{\"seed\": {seed}, \"completion_s\": {}, \"utilization\": {share:.6}, \"lost_pct\": {:.4}, \
         \"sent\": {}, \"states\": [{}]}}",
        outcome.completion.map_or("null".into(), |at| format!("{at:.6}")),
        100.0 * outcome.dropped as f64 / outcome.sent.max(1) as f64,
        outcome.sent,
        states.join(", "),
    )
}

/// Packets as [sent, bytes of the frame, when it left the link or -1, 1 if marked], and when each ACK arrived.
fn captured(outcome: &Outcome) -> String {
    let packets: Vec<String> = outcome
        .packets
        .iter()
        .map(|p| format!("[{:.9}, {}, {:.9}, {}]", p.sent, p.bytes, p.left.unwrap_or(-1.0), u8::from(p.is_marked)))
        .collect();
    let acks: Vec<String> = outcome.acks.iter().map(|at| format!("{at:.9}")).collect();
    format!("{{\"packets\": [{}], \"acks\": [{}]}}", packets.join(", "), acks.join(", "))
}

fn sampled(seed: u64, sample: &Sample) -> String {
    let fields = [
        ("at_s", sample.at),
        ("inflight", sample.inflight),
        ("cwnd", sample.cwnd),
        ("pacing_rate", sample.pacing_rate),
        ("max_bw", sample.max_bw),
        ("bw", sample.bw),
        ("bw_shortterm", sample.bw_shortterm),
        ("inflight_longterm", sample.inflight_longterm),
        ("inflight_shortterm", sample.inflight_shortterm),
        ("min_rtt", sample.min_rtt),
        ("delivered", sample.delivered),
    ];
    let number = |value: f64| if value.is_finite() { format!("{value:.6}") } else { "null".into() };
    let fields: Vec<String> = fields.iter().map(|(name, value)| format!("\"{name}\": {}", number(*value))).collect();
    format!("{{\"seed\": {seed}, \"state\": \"{:?}\", {}}}", sample.state, fields.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_that_make_no_sense_are_one_line() {
        for wrong in [
            "loss_pct",
            "no=1",
            "called=bbrv4",
            "queue=blue",
            "queue=bdp:x",
            "rtt_ms=0",
            "rate_mbps=0",
            "drop=1:2:3",
            "drop=1:2:1:0",
            "seeds=1",
            "loss_pct=-1",
        ] {
            let Err(why) = read(&[wrong.into()]) else { panic!("{wrong}") };
            assert!(!why.contains('\n'), "{wrong}");
        }
    }
}
