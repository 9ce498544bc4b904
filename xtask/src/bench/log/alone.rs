//! Measures what has no peer to compare with: the highest steady rate of records, the memory afterwards, and the cost
//! of a spool.

use super::contestants::{self, Chain};
use super::place::Place;
use super::{BURST, Content, Folder, Shipped, Spread, one, spread};
use anyhow::Result;
use serde_json::{Value, json};
use std::path::Path;

const TO: &str = "syslog+tcp://ADDR";
/// Packets of the steady part, and packets per second: more than any other program handles without loss.
const FAST: (u32, u32) = (690_000, 230_000);

fn rounds(
    runs: u32,
    count: u32,
    rate: Option<u32>,
    start: impl Fn(&Place<'_>) -> Result<Chain>,
) -> Result<Vec<Shipped>> {
    let mut rounds = Vec::new();
    for _ in 0..runs {
        rounds.extend(one(Content::Syslog, count, rate, |place| start(place).map(Some))?);
    }
    Ok(rounds)
}

/// Runs the measurements; returns the text of the report and the values.
pub(super) fn run(binary: &Path, runs: u32) -> Result<(String, Vec<Value>)> {
    let ours = |place: &Place<'_>| contestants::ours(binary, TO, "50ms", place);
    let (mut without, mut in_memory, mut on_disk) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..runs {
        without.extend(rounds(1, BURST, None, ours)?);
        for (folder, with) in [(Folder::on_disk()?, &mut on_disk), (Folder::in_memory()?, &mut in_memory)] {
            let spool = folder.0.join("spool").display().to_string();
            let words = ["--spool", &spool, "--spool-max", "1GiB"];
            with.extend(rounds(1, BURST, None, |place| contestants::ours_with(binary, TO, "50ms", &words, place))?);
        }
    }
    let (ratio, ratio_in_memory) = (super::ratio(&without, &on_disk), super::ratio(&without, &in_memory));
    let fast = rounds(runs, FAST.0, Some(FAST.1), ours)?;
    let lost = spread(&fast, |shipped| f64::from(FAST.0) - shipped.packets as f64);
    let core = spread(&fast, |shipped| shipped.cpu_ns as f64 * 100.0 / shipped.took.as_nanos() as f64);
    let rate = spread(&fast, |shipped| f64::from(FAST.0) / shipped.took.as_secs_f64());
    let rss = |rounds: &[Shipped]| spread(rounds, |shipped| shipped.rss_kib as f64 / 1024.0);
    let (rss, rss_spooled) = (rss(&without), rss(&on_disk));
    let verdict = |is_reached: bool| if is_reached { "reached" } else { "**missed**" };
    let text = format!(
        "\nRFC 5424 by TCP, without a peer:\n\n- {:.0} packets a second, steady: {:.0} lost, {:.1} % of a core \
         (at most 0 and 12 %: {})\n- a spool that is always on: {:.2}x of the cost without ({:.2}–{:.2}; at most \
         1.3x: {}); one in memory {:.2}x ({:.2}–{:.2})\n- memory after a burst: {:.1} MiB resident (at most 8: {}); \
         with a spool {:.1}\n",
        rate.median,
        lost.max,
        core.median,
        verdict(lost.max <= 0.0 && core.median <= 12.0),
        ratio.median,
        ratio.min,
        ratio.max,
        verdict(ratio.median <= 1.3),
        ratio_in_memory.median,
        ratio_in_memory.min,
        ratio_in_memory.max,
        rss.max,
        verdict(rss.max <= 8.0),
        rss_spooled.max,
    );
    let of = |spread: &Spread| spread.json();
    let values = vec![
        json!({"task": "RFC 5424, TCP, fast", "rate": of(&rate), "lost": of(&lost), "percent_of_core": of(&core)}),
        json!({"task": "RFC 5424, TCP, spool", "ratio": of(&ratio), "in_memory": of(&ratio_in_memory)}),
        json!({"task": "RFC 5424, TCP, memory", "rss_mib": of(&rss), "spool_mib": of(&rss_spooled)}),
    ];
    Ok((text, values))
}
