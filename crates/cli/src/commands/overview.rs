//! `netwren` alone: who listens here, and the largest flows, with their owners; of a recording: who did then.

use crate::exit::Exit;

use crate::messages::say;
use crate::output;
use std::ffi::OsString;
use std::path::Path;
use sys::{Header, Host};

/// The two tables and the words over them.
const PARTS: [(&str, &str, &[&str]); 2] = [
    (
        "Listeners",
        "sockets",
        &[
            "--columns",
            "proto,local_addr,local_port,accept_q,accept_q_max,process,pid,user",
            "--sort",
            "proto,local_port",
        ],
    ),
    ("Flows", "flows", &["--limit", "20"]),
];

/// Which sockets take what anybody sends.
const LISTENERS: &str = "state = listen and proto = tcp or proto = udp and state = unconn and local_port != null";

/// Shows both tables; the worse exit code of the two. What both have to say is said once, at the end.
pub(crate) fn overview(replay: Option<&Path>) -> Exit {
    let (mut worst, mut messages) = (Exit::Ok, Vec::new());
    if let Some(file) = replay {
        match Host::header_of(file) {
            Ok(header) => worst = output::print(&recorded(&header)),
            Err(error) => {
                say(&error.to_string());
                return Exit::Failed;
            }
        }
    }
    for (i, (title, table, flags)) in PARTS.iter().enumerate() {
        let space = if i == 0 { "" } else { "\n" };
        let told = output::print(&format!("{space}{title}\n"));
        let mut words: Vec<OsString> = flags.iter().map(OsString::from).collect();
        if let Some(file) = replay {
            words.extend(["--replay".into(), file.into()]);
        }
        if *table == "sockets" {
            words.push(LISTENERS.into());
        }
        let part = super::outcome(table, words.into_iter()).unwrap_or(Exit::Usage.into());
        messages.extend(part.messages.into_iter().filter(|line| !messages.contains(line)).collect::<Vec<_>>());
        worst = [worst, told, part.exit].into_iter().max_by_key(|exit| *exit as u8).unwrap_or(worst);
    }
    messages.iter().for_each(|line| say(line));
    worst
}

/// Over the tables of a recording: when they were so, and where.
fn recorded(header: &Header) -> String {
    format!("Recorded at {} on Linux {} ({})\n\n", header.time.rfc3339(), header.kernel.release, header.kernel.machine)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::flags::Request;

    #[test]
    fn both_parts_are_requests() {
        for (_, table, flags) in PARTS {
            assert!(Request::parse(table, flags.iter().map(OsString::from)).is_ok(), "{table}");
        }
        assert!(engine::filter::conjuncts::<record::rows::Sockets>(LISTENERS).is_ok());
    }
}
