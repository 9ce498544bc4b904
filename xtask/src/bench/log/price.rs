//! Measures the cost of a logged packet on its way, without reading the record. The rule's hook runs on the sender's
//! time, so the cost is the sender's CPU with a reader minus its CPU without one.

use super::contestants::{self, Chain, ulogd};
use super::place::Place;
use super::{Folder, Receiver, Spread, ended, packets};
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::path::Path;

/// Packets of a round, and packets per second: a rate that the reader keeps up with.
const PACKETS: (u32, u32) = (100_000, 50_000);
/// The goal in nanoseconds.
const AT_MOST: f64 = 1_000.0;

/// Runs the measurement; returns the text of the report and the values.
pub(super) fn run(binary: &Path, runs: u32) -> Result<(String, Vec<Value>)> {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 1..=runs {
        println!("bench: price of a logged packet, round {round}");
        let Some(nobody) = sent(|_| Ok(Some(Chain { children: Vec::new() })))? else { break };
        let own = sent(|place| contestants::ours(binary, "syslog+tcp://ADDR", "50ms", place).map(Some))?;
        ours.extend(own.map(|ns| ns - nobody));
        let peer = sent(|place| {
            let stack = "ifi1:IFINDEX,ip2str1:IP2STR,print1:PRINTPKT,emu1:LOGEMU";
            let command = ulogd(stack, &place.put_in("[emu1]\nfile=\"FILE\"\n"), place)?;
            command.map(|command| contestants::started(vec![command], place)).transpose()
        })?;
        theirs.extend(peer.map(|ns| ns - nobody));
    }
    let (own, peer) = (Spread::of(ours), Spread::of(theirs));
    let text = format!(
        "- a logged packet pays {:.0} ns on its way ({:.0}–{:.0}; at most {AT_MOST:.0}: {}); with ulogd2 {:.0} \
         ({:.0}–{:.0})\n",
        own.median,
        own.min,
        own.max,
        if own.median <= AT_MOST { "reached" } else { "**missed**" },
        peer.median,
        peer.min,
        peer.max
    );
    Ok((text, vec![json!({"task": "price on the packet path", "ours_ns": own.json(), "ulogd2_ns": peer.json()})]))
}

/// The sender's CPU per packet; `None` if the reader is not installed.
fn sent(start: impl Fn(&Place<'_>) -> Result<Option<Chain>>) -> Result<Option<f64>> {
    let lab = packets::logging("benchprice");
    let dir = Folder::in_memory()?;
    let receiver = Receiver::start(&lab)?;
    let place = Place { lab: &lab, dir: &dir.0, addr: receiver.addr };
    let Some(chain) = start(&place)? else { return Ok(None) };
    let ns = lab.run_inside(|| {
        let before = own_cpu_ns()?;
        packets::send(PACKETS.0, Some(PACKETS.1))?;
        own_cpu_ns().map(|now| now - before)
    })?;
    drop(ended(chain));
    Ok(Some(ns as f64 / f64::from(PACKETS.0)))
}

/// CPU of the calling thread.
fn own_cpu_ns() -> Result<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    text.split(' ').next().and_then(|ns| ns.parse().ok()).context("schedstat begins with a number")
}
