//! Prints a filter's program and how long compiling took: `cargo run --release -p pcapfilter --example compile --
//! EN10MB 'tcp port 80'`. `@N` stands for N hosts.
#![allow(clippy::print_stdout, clippy::print_stderr, missing_docs)]

use pcapfilter::{FilterTarget, LinkType, NameFiles, PacketOrigin, compile};
use std::time::Instant;

fn main() {
    let mut words = std::env::args().skip(1);
    let link = words.next().and_then(|name| LinkType::from_name(&name)).unwrap_or(LinkType::Ethernet);
    let mut text = words.collect::<Vec<_>>().join(" ");
    if let Some(number) = text.strip_prefix('@').and_then(|number| number.parse::<u32>().ok()) {
        let hosts = (0..number).map(|number| format!("10.{}.{}.{}", number * 7 % 256, number / 256, number % 256));
        text = format!("host {}", hosts.collect::<Vec<_>>().join(" or "));
    }
    let origin = PacketOrigin::Live { vlan_beside: false };
    let target = FilterTarget { link, origin, snaplen: 262_144, netmask: None };
    let start = Instant::now();
    let compiled = compile(&text, &target, &NameFiles::default());
    let took = start.elapsed();
    match compiled {
        Ok(filter) => {
            print!("{}", filter.kernel.to_assembly());
            eprintln!("{} instructions, {took:?}", filter.kernel.instructions.len());
        }
        Err(error) => eprintln!("{error} (column {})", error.column),
    }
}
