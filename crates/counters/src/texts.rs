//! Parsers for the text files of /proc/net, one function per format. Malformed lines are skipped and counted.

use record::rows::CounterSource;

use crate::reading::{CounterReading, Object, Width};

/// `/proc/net/sockstat`: each line is a group, then names and values: `TCP: inuse 5 orphan 0`.
pub fn add_pairs(into: &mut CounterReading, source: CounterSource, text: &[u8]) -> u64 {
    let (mut skipped, mut full) = (0, String::new());
    for line in lines(text) {
        let Some((group, rest)) = line.split_once(':') else {
            skipped += 1;
            continue;
        };
        let mut words = rest.split_ascii_whitespace();
        while let Some(name) = words.next() {
            let Some(value) = words.next().and_then(|word| word.parse().ok()) else {
                skipped += 1;
                continue;
            };
            join(&mut full, &[group, ".", name]);
            into.add(source, &full, None, value, Width::Bits64);
        }
    }
    skipped
}

/// `/proc/net/snmp` and `netstat`: a line with names, a line with values: `Tcp: RtoAlgorithm …`, `Tcp: 1 …`.
pub fn add_two_lines(into: &mut CounterReading, source: CounterSource, text: &[u8]) -> u64 {
    let (mut lines, mut skipped, mut full) = (lines(text), 0, String::new());
    while let Some(names) = lines.next() {
        let Some(((group, names), values)) = names.split_once(':').zip(lines.next()) else {
            skipped += 1;
            continue;
        };
        let Some((_, values)) = values.split_once(':').filter(|(same, _)| *same == group) else {
            skipped += 1;
            continue;
        };
        let (mut names, mut values) = (names.split_ascii_whitespace(), values.split_ascii_whitespace());
        loop {
            match (names.next(), values.next().map(str::parse)) {
                (Some(name), Some(Ok(value))) => {
                    join(&mut full, &[group, name]);
                    into.add(source, &full, None, value, Width::Bits64);
                }
                (None, None) => break,
                _ => skipped += 1,
            }
        }
    }
    skipped
}

/// `/proc/net/snmp6`: one counter per line: `Ip6InReceives 115`.
pub fn add_single(into: &mut CounterReading, source: CounterSource, text: &[u8]) -> u64 {
    let mut skipped = 0;
    for line in lines(text) {
        let mut words = line.split_ascii_whitespace();
        let value = |word: Option<&str>| word.and_then(|word| word.parse().ok());
        match words.next().and_then(|name| Some((name, value(words.next())?))) {
            Some((name, value)) => into.add(source, name, None, value, Width::Bits64),
            None => skipped += 1,
        }
    }
    skipped
}

/// The columns of `/proc/net/softnet_stat` with a meaning, by index (net/core/net-procfs.c, since 5.10). The columns
/// between them are zero.
const SOFTNET: &[(usize, &str)] = &[
    (0, "processed"),
    (1, "dropped"),
    (2, "time_squeeze"),
    (9, "received_rps"),
    (10, "flow_limit_count"),
    (11, "backlog_len"),
    (13, "input_qlen"),
    (14, "process_qlen"),
];
/// The column with the number of the CPU, since 5.10; before that, lines are in the order of CPUs.
const SOFTNET_CPU: usize = 12;

/// `/proc/net/softnet_stat`: one line per CPU, hexadecimal numbers without names.
pub fn add_softnet(into: &mut CounterReading, text: &[u8]) -> u64 {
    let (mut skipped, mut row) = (0, Vec::new());
    for (line, n) in lines(text).zip(0u32..) {
        row.clear();
        row.extend(line.split_ascii_whitespace().map_while(|word| u32::from_str_radix(word, 16).ok()));
        if row.len() < 3 {
            skipped += 1;
            continue;
        }
        let cpu = into.add_object(Object::cpu(row.get(SOFTNET_CPU).copied().unwrap_or(n)));
        for (at, name) in SOFTNET {
            let Some(value) = row.get(*at) else { continue };
            into.add(CounterSource::Softnet, name, Some(cpu), (*value).into(), Width::Bits32);
        }
    }
    skipped
}

/// Maximum number of columns of a neighbour table's file; kernels have 13.
///
/// Bound: columns of a file of neighbour statistics. Beyond: further columns are left out. By: a broken kernel.
const NEIGH_COLUMNS_MAX: usize = 64;

/// `/proc/net/stat/arp_cache` and `ndisc_cache`: a line of names, then a hexadecimal line per CPU. The lines are added
/// up, except for `entries`, which is the same in each. The names get `table` and a dot as a prefix.
pub fn add_neigh(into: &mut CounterReading, table: &str, text: &[u8]) -> u64 {
    let (mut lines, mut skipped) = (lines(text), 0);
    let names: Vec<&str> = lines.next().unwrap_or_default().split_ascii_whitespace().take(NEIGH_COLUMNS_MAX).collect();
    let mut sums: Vec<Option<u64>> = vec![None; names.len()];
    for line in lines {
        for ((name, sum), word) in names.iter().zip(&mut sums).zip(line.split_ascii_whitespace()) {
            match u64::from_str_radix(word, 16) {
                Ok(value) if *name == "entries" => *sum = Some(value),
                Ok(value) => *sum = Some(sum.unwrap_or(0).wrapping_add(value)),
                Err(_) => skipped += 1,
            }
        }
    }
    let mut full = String::new();
    for (name, sum) in names.iter().zip(sums) {
        let Some(sum) = sum else { continue };
        join(&mut full, &[table, ".", name]);
        into.add(CounterSource::Neigh, &full, None, sum.into(), Width::Bits64);
    }
    skipped
}

fn join(full: &mut String, parts: &[&str]) {
    full.clear();
    parts.iter().for_each(|part| full.push_str(part));
}

/// Lines that are text and not empty; the kernel writes no others.
fn lines(text: &[u8]) -> impl Iterator<Item = &str> {
    text.split(|&b| b == b'\n').filter_map(|line| std::str::from_utf8(line).ok()).filter(|line| !line.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use record::rows::CounterSource::{Neigh, Netstat, Snmp, Snmp6, Sockstat};

    #[test]
    fn groups_of_pairs() {
        let mut reading = CounterReading::default();
        let text = b"sockets: used 20\nTCP: inuse 1 orphan 0 tw 54 alloc 7 mem 3\nFRAG: inuse 0 memory\nbad\n";
        assert_eq!(add_pairs(&mut reading, Sockstat, text), 2);
        assert_eq!(reading.get(Sockstat, "sockets.used"), Some(20));
        assert_eq!(reading.get(Sockstat, "TCP.tw"), Some(54));
        assert_eq!(reading.get(Sockstat, "FRAG.memory"), None);
    }

    #[test]
    fn names_and_values_of_two_lines() {
        let mut reading = CounterReading::default();
        let text = b"Tcp: RtoAlgorithm MaxConn\nTcp: 1 -1\nIp: A\nUdp: 1\nUdp: X Y\nUdp: 18446744073709551615\n";
        assert_eq!(add_two_lines(&mut reading, Snmp, text), 2, "Ip has no values, Y has none");
        assert_eq!(reading.get(Snmp, "TcpMaxConn"), Some(-1));
        assert_eq!(reading.get(Snmp, "IpA"), None);
        assert_eq!(reading.get(Snmp, "UdpX"), Some(u64::MAX.into()));
        assert_eq!(add_single(&mut reading, Snmp6, b"Ip6InReceives                   \t115\nIp6Odd x\n"), 1);
        assert_eq!(reading.get(Snmp6, "Ip6InReceives"), Some(115));
        assert_eq!(add_two_lines(&mut reading, Netstat, b"TcpExt: A\n"), 1);
    }

    #[test]
    fn cpus_of_softnet_now_and_before_they_had_numbers() {
        let mut reading = CounterReading::default();
        let text = b"0000000a 00000001 00000002 0 0 0 0 0 0 00000003 00000004 00000005 00000007 00000006 00000008\n";
        assert_eq!(add_softnet(&mut reading, text), 0);
        let of = |reading: &CounterReading| -> Vec<(String, i128)> {
            let row = |one: &crate::CounterValue| {
                let object = reading.object(one).map(|object| object.label.escape_ascii().to_string());
                (format!("{} {}", object.unwrap_or_default(), one.name.text()), one.value)
            };
            reading.values().iter().map(row).collect()
        };
        assert_eq!(of(&reading)[1], ("cpu7 dropped".to_owned(), 1));
        assert_eq!(of(&reading)[7], ("cpu7 process_qlen".to_owned(), 8));
        let mut old = CounterReading::default();
        assert_eq!(add_softnet(&mut old, b"00000001 0 0 0 0 0 0 0 0 0 00000009\n0000000f 1 1\nx\n"), 1);
        assert_eq!(of(&old)[4], ("cpu0 flow_limit_count".to_owned(), 9));
        assert_eq!(of(&old)[5], ("cpu1 processed".to_owned(), 15));
    }

    #[test]
    fn tables_of_neighbours_are_added_up() {
        let mut reading = CounterReading::default();
        let text = b"entries  allocs   table_fulls\n00000003 00000010 00000001\n00000003 00000001 0000000f\n";
        assert_eq!(add_neigh(&mut reading, "arp", text), 0);
        let of = |name| reading.get(Neigh, name);
        assert_eq!([of("arp.entries"), of("arp.allocs"), of("arp.table_fulls")], [Some(3), Some(17), Some(16)]);
    }

    proptest! {
        #[test]
        fn any_text(text in "([A-Za-z]{0,2}:?( [a-z0-9-]{0,3}){0,4}\n){0,6}") {
            crate::fuzz_counters(text.as_bytes());
        }
    }
}
