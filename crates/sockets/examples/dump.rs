//! Reads the sockets of this namespace and prints the cost, to measure a single backend.
//!
//! `dump [netlink|proc|bpf|iterator] [tcp|udp|mptcp|unix] [need bits]`; rows are counted, not printed.
#![forbid(unsafe_code)]

use record::rows::Sockets;
use record::{Demand, Next, Proto, Source};
use sockets::{BackendCache, Options, SocketSource, Via};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (mut via, mut cache) = (None, BackendCache::new());
    let mut order = vec![Proto::Tcp, Proto::Udp, Proto::Unix];
    let mut need = 0;
    for word in std::env::args().skip(1) {
        match word.as_str() {
            "netlink" => via = Some(Via::Netlink),
            "proc" => via = Some(Via::Proc),
            "bpf" => via = Some(Via::Bpf),
            "iterator" => (via, cache) = (Some(Via::Bpf), BackendCache::without_walk()),
            "tcp" => order = vec![Proto::Tcp],
            "udp" => order = vec![Proto::Udp],
            "mptcp" => order = vec![Proto::Mptcp],
            "unix" => order = vec![Proto::Unix],
            bits => need = bits.parse()?,
        }
    }
    let host = sys::Host::live();
    let options = Options { via, order, if_named: &[], ..Options::new(sys::netns::current_inode()?) };
    let mut demand = Demand::<Sockets>::new(&[], Vec::new());
    demand.need = need;
    let before = sys::cost::measure();
    let mut sum = 0u64;
    let stats = SocketSource::new(&host, options).with_cache(&cache).run(&demand, &mut |row| {
        // Uses every fixed part, so that the compiler cannot omit any of the decoding.
        sum = sum.wrapping_add(u64::from(row.inode) ^ u64::from(row.local.port) ^ row.cookie ^ u64::from(row.rqueue));
        Next::More
    })?;
    let cost = sys::cost::measure().since(&before);
    let per_row = |us: u64| us * 1000 / stats.seen.max(1);
    println!(
        "{} rows by {:?}, {} doubled, {} failed, hash {sum:x}: {} ns/row user, {} ns/row kernel, {} system calls, {} \
         KiB",
        stats.seen,
        stats.via,
        stats.duplicates,
        stats.failed,
        per_row(cost.user_us),
        per_row(cost.system_us),
        cost.syscalls,
        cost.rss_max_kib
    );
    for why in &stats.why {
        println!("{} {}", why.count, why.text);
    }
    Ok(())
}
