//! Checks before any timing that all contestants print the same set.

use super::contestants::Contestant;
use super::tasks::{Shape, Task};
use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

/// Compares all contestants with the first; returns the number of rows.
pub(super) fn check(
    task: &Task,
    here: &[Contestant],
    mut output: impl FnMut(&Contestant) -> Result<String>,
) -> Result<usize> {
    let mut first: Option<(&Contestant, Vec<String>)> = None;
    for contestant in here.iter().filter(|contestant| contestant.shape != Shape::Unread) {
        let text = output(contestant)?;
        let mut rows = read(contestant.shape, task.owned, &text).with_context(|| contestant.shown())?;
        ensure!(!rows.is_empty(), "{} printed no rows", contestant.shown());
        rows.sort_unstable();
        match &first {
            None => first = Some((contestant, rows)),
            Some((other, expected)) => same(other, expected, contestant, &rows)?,
        }
    }
    Ok(first.with_context(|| format!("{}: nobody is here", task.id))?.1.len())
}

fn same(one: &Contestant, expected: &[String], other: &Contestant, rows: &[String]) -> Result<()> {
    if expected == rows {
        return Ok(());
    }
    let only = |a: &[String], b: &[String]| a.iter().find(|row| b.binary_search(row).is_err()).cloned();
    bail!(
        "not the same set: {} has {} rows, {} has {}; only the first: {:?}; only the second: {:?}",
        one.shown(),
        expected.len(),
        other.shown(),
        rows.len(),
        only(expected, rows),
        only(rows, expected)
    )
}

fn read(shape: Shape, owned: bool, text: &str) -> Result<Vec<String>> {
    let lines = || text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let with = |row: String, pid: &str| if owned { format!("{row} {pid}") } else { row };
    match shape {
        // Skip the header line, whose first word is State.
        Shape::Ss => {
            let rows = lines().filter(|w| w.len() >= 5 && w[0] != "State");
            Ok(rows.map(|w| with(socket(w[0], w[3], w[4]), ss_pid(w.get(5..).unwrap_or_default()))).collect())
        }
        Shape::Netstat => {
            let rows = lines().filter(|w| w.len() >= 6 && w[0].starts_with("tcp"));
            let pid = |w: &[&'_ str]| {
                w.get(6).and_then(|p| p.split_once('/')).map_or("-".to_owned(), |(pid, _)| pid.to_owned())
            };
            Ok(rows.map(|w| with(socket(w[5], w[3], w[4]), &pid(&w))).collect())
        }
        Shape::Table => {
            let columns = ["state", "local_addr", "local_port", "peer_addr", "peer_port", "pid"];
            let columns = if owned { &columns[..] } else { &columns[..5] };
            table(text, columns, |c| {
                let row = socket(c[0], &format!("{}:{}", c[1], c[2]), &format!("{}:{}", c[3], c[4]));
                with(row, c.get(5).copied().unwrap_or("-"))
            })
        }
        Shape::Json => text.lines().map(json).collect(),
        Shape::Lstf => {
            Ok(lines().filter(|w| w.len() == 4 && w[1] != "<-->").map(|w| flow(w[1], w[0], w[2], w[3])).collect())
        }
        Shape::Flows => {
            let columns = ["direction", "local_addr", "local_port", "peer_addr", "peer_port", "connections"];
            table(text, &columns, |c| flow(c[0], &format!("{}:{}", c[1], c[2]), &format!("{}:{}", c[3], c[4]), c[5]))
        }
        Shape::Conntrack => Ok(lines().filter_map(|words| tracked(&words)).collect()),
        Shape::Nat => {
            let columns = ["proto", "state", "client", "published", "backend"];
            table(text, &columns, |c| {
                let [client, published, backend] = [c[2], c[3], c[4]].map(|end| end.replace(['[', ']'], ""));
                format!("{} {} {client} {published} {backend}", c[0].replace("icmpv6", "icmp6"), c[1])
            })
        }
        Shape::Counts => Ok(lines().filter_map(|words| counted(&words)).collect()),
        Shape::Unread => Ok(Vec::new()),
    }
}

/// The N of the first `pid=N` in `users:(("name",pid=N,fd=N))`, which may contain blanks; `-` for a socket without a
/// process.
fn ss_pid<'a>(words: &[&'a str]) -> &'a str {
    let after = words.iter().find_map(|word| word.split_once("pid=")).map(|(_, after)| after);
    after.and_then(|after| after.split(',').next()).unwrap_or("-")
}

/// A line of `conntrack -L`: protocol, state, original and reply tuple.
fn tracked(words: &[&str]) -> Option<String> {
    let all = |name: &str| words.iter().filter_map(|word| word.strip_prefix(name)).collect::<Vec<_>>();
    let [srcs, dsts, sports, dports] = ["src=", "dst=", "sport=", "dport="].map(all);
    let end = |addrs: &[&str], ports: &[&str], at: usize| {
        let addr = addrs.get(at)?;
        Some(ports.get(at).map_or_else(|| (*addr).to_owned(), |port| format!("{addr}:{port}")))
    };
    let state = words.get(3).filter(|word| !word.contains('=') && !word.starts_with('['));
    let state = state.map_or("-".to_owned(), |word| word.to_lowercase());
    let proto = words.first()?.replace("icmpv6", "icmp6");
    let (client, published) = (end(&srcs, &sports, 0)?, end(&dsts, &dports, 0)?);
    Some(format!("{proto} {state} {client} {published} {}", end(&srcs, &sports, 1)?))
}

/// Reads `3 TIME_WAIT` or `time_wait\t3` (and more cells); header lines have no number.
fn counted(words: &[&str]) -> Option<String> {
    let (count, what) = match words {
        [count, what] if count.parse::<u64>().is_ok() => (count, what),
        [what, count, ..] if count.parse::<u64>().is_ok() => (count, what),
        _ => return None,
    };
    Some(format!("{count} {}", what.to_lowercase()))
}

/// Rows of a native table, with the columns found by the names in its first line.
fn table(text: &str, columns: &[&str], row: impl Fn(&[&str]) -> String) -> Result<Vec<String>> {
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().unwrap_or_default().split('\t').collect();
    let place = |column: &&str| {
        names.iter().position(|name| name == column).with_context(|| format!("no column {column} in {names:?}"))
    };
    let places = columns.iter().map(place).collect::<Result<Vec<_>>>()?;
    let cells = lines.map(|line| line.split('\t').collect::<Vec<_>>());
    let full = cells.filter(|cells| cells.len() == names.len());
    Ok(full.map(|cells| row(&places.iter().map(|at| cells[*at]).collect::<Vec<_>>())).collect())
}

fn json(line: &str) -> Result<String> {
    let row: Value = serde_json::from_str(line).with_context(|| line.to_owned())?;
    let text = |key: &str| match &row[key] {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let local = format!("{}:{}", text("local_addr"), text("local_port"));
    Ok(socket(&text("state"), &local, &format!("{}:{}", text("peer_addr"), text("peer_port"))))
}

fn socket(state: &str, local: &str, peer: &str) -> String {
    let state = state.to_uppercase().replace(['-', '_'], "").replace("ESTABLISHED", "ESTAB");
    format!("{state} {} {}", end(local), end(peer))
}

fn flow(direction: &str, local: &str, peer: &str, connections: &str) -> String {
    let arrow = match direction {
        "in" => "<--",
        "out" => "-->",
        other => other,
    };
    format!("{} {arrow} {} {connections}", end(local), end(peer))
}

/// Normalizes `address:port`: without brackets or IPv4 mapping, `*` for any.
fn end(text: &str) -> String {
    let (addr, port) = text.rsplit_once(':').unwrap_or((text, "*"));
    let addr = addr.trim_start_matches('[').trim_end_matches(']').trim_start_matches("::ffff:");
    let addr = if matches!(addr, "0.0.0.0" | "::" | "*" | "-" | "null" | "") { "*" } else { addr };
    let port = if matches!(port, "0" | "*" | "-" | "null" | "many") { "*" } else { port };
    format!("{addr}:{port}")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn one_socket_in_every_shape() {
        let expected = ["ESTAB fd77::1:80 fd77:db8::2:5000", "LISTEN *:80 *:*"];
        let shapes = [
            (
                Shape::Ss,
                "State Recv-Q Send-Q Local Peer\nLISTEN 0 128 0.0.0.0:80 0.0.0.0:* \nESTAB 0 0 [fd77::1]:80 \
                    [fd77:db8::2]:5000\n",
            ),
            (
                Shape::Netstat,
                "Proto Recv-Q Send-Q L F State\ntcp6 0 0 fd77::1:80 fd77:db8::2:5000 ESTABLISHED\ntcp 0 0 0.0.0.0:80 \
                    0.0.0.0:* LISTEN\n",
            ),
            (
                Shape::Table,
                "proto\tstate\tlocal_addr\tlocal_port\tpeer_addr\tpeer_port\ntcp\tlisten\t0.0.0.0\t80\t-\t-\ntcp\t\
                    established\tfd77::1\t80\tfd77:db8::2\t5000\n",
            ),
            (
                Shape::Json,
                "{\"state\":\"listen\",\"local_addr\":\"0.0.0.0\",\"local_port\":80,\"peer_addr\":null,\"peer_port\":nu\
                 ll}\n{\"state\":\"established\",\"local_addr\":\"fd77::1\",\"local_port\":80,\"peer_addr\":\"fd77:db8:\
                 :2\",\"peer_port\":5000}",
            ),
        ];
        for (shape, text) in shapes {
            let mut rows = read(shape, false, text).unwrap();
            rows.sort_unstable();
            assert_eq!(rows, expected, "{shape:?}");
        }
    }

    #[test]
    fn one_flow_in_both_shapes() {
        let lstf =
            "Local Address:Port\t<-->\tPeer Address:Port\tConnections\n127.0.0.1:80\t\t<--\t127.32.0.1:many\t12\n";
        let native = "direction\tlocal_addr\tlocal_port\tpeer_addr\tpeer_port\tconnections\nin\t127.0.0.1\t80\t\
            127.32.0.1\t-\t12\n";
        let expected = ["127.0.0.1:80 <-- 127.32.0.1:* 12"];
        assert_eq!(read(Shape::Lstf, false, lstf).unwrap(), expected);
        assert_eq!(read(Shape::Flows, false, native).unwrap(), expected);
    }

    #[test]
    fn one_entry_in_both_shapes() {
        let theirs = "tcp      6 59 TIME_WAIT src=10.0.0.2 dst=192.168.0.30 sport=1024 dport=80 src=172.17.0.2 \
            dst=10.0.0.2 sport=8080 dport=1024 [ASSURED] mark=0 use=1\n\
                      icmp     1 29 src=10.0.0.2 dst=10.0.0.3 type=8 code=0 id=7 src=10.0.0.3 dst=10.0.0.2 type=0 \
                      code=0 id=7 mark=0 use=1\n";
        let ours = "proto\tstate\tnat\tclient\tpublished\tbackend\n\
                    tcp\ttime_wait\tdnat\t10.0.0.2:1024\t192.168.0.30:80\t172.17.0.2:8080\n\
                    icmp\t-\tnone\t10.0.0.2\t10.0.0.3\t10.0.0.3\n";
        assert_eq!(read(Shape::Conntrack, false, theirs).unwrap(), read(Shape::Nat, false, ours).unwrap());
        assert_eq!(read(Shape::Counts, false, "      3 TIME_WAIT\n").unwrap(), ["3 time_wait"]);
        assert_eq!(read(Shape::Counts, false, "state\tcount\tshare\ntime_wait\t3\t0.5\n").unwrap(), ["3 time_wait"]);
    }

    #[test]
    fn one_owner_in_every_shape() {
        let shapes = [
            (Shape::Ss, "ESTAB 0 0 127.0.0.1:80 127.0.0.2:99 users:((\"a b\",pid=7,fd=3))\n"),
            (Shape::Netstat, "tcp 0 0 127.0.0.1:80 127.0.0.2:99 ESTABLISHED 7/a b\n"),
            (
                Shape::Table,
                "state\tlocal_addr\tlocal_port\tpeer_addr\tpeer_port\tpid\nestablished\t127.0.0.1\t80\t127.0.0.2\t99\t\
                    7\n",
            ),
        ];
        for (shape, text) in shapes {
            assert_eq!(read(shape, true, text).unwrap(), ["ESTAB 127.0.0.1:80 127.0.0.2:99 7"], "{shape:?}");
        }
    }
}
