//! `netwren nat stateless`: published ports without connection tracking.

use crate::commands::Outcome;
use crate::exit::Exit;
use crate::flags::{Stateless, StatelessTask as Task};
use crate::messages::refused;
use crate::nft::{self, NftError};
use crate::output;
use crate::session::{Place, Session};
use doctor::stateless::{Impossible, Place as Here, Plan, Publish, TABLE, plan};
use record::{Addr, text};
use std::ffi::OsString;
use std::time::Duration;

/// How often the counters are read while packets are waited for.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Runs the command with the words behind `nat stateless`.
pub(super) fn run(args: impl Iterator<Item = OsString>) -> Outcome {
    let stateless = match Stateless::parse(args) {
        Ok(stateless) => stateless,
        Err(error) => return refused(&error).into(),
    };
    let session = match Session::open(Place { netns: stateless.netns.as_deref(), ..Place::default() }) {
        Ok(session) => session,
        Err(error) => return Outcome::because(error.exit(), error),
    };
    match stateless.task {
        Task::Plan { publishes, no_helper, apply, yes } => {
            let planned = match planned(&session, &publishes, no_helper) {
                Ok(planned) => planned,
                Err(outcome) => return outcome,
            };
            if apply && yes { put_in_place(&planned) } else { shown(&planned, apply) }
        }
        Task::Undo { yes } => undo(yes),
        Task::Verify { within, json } => verify(&session, within, json),
    }
}

/// The plan, or what speaks against it: exit 2 where the words are wrong, 1 where it cannot be.
fn planned(session: &Session, publishes: &[String], no_helper: bool) -> Result<Plan, Outcome> {
    let (mut wanted, mut wrong): (Vec<Publish>, Vec<Impossible>) = (Vec::new(), Vec::new());
    for written in publishes {
        match written.parse() {
            Ok(publish) => wanted.push(publish),
            Err(why) => wrong.push(why),
        }
    }
    let refused =
        |exit, reasons: &[Impossible]| Outcome { exit, says: reasons.iter().map(Impossible::to_string).collect() };
    if !wrong.is_empty() {
        let dynamic = wrong.iter().all(|why| matches!(why, Impossible::Dynamic { .. }));
        return Err(refused(if dynamic { Exit::NoMatch } else { Exit::Usage }, &wrong));
    }
    let mut addresses: Vec<Addr> = Vec::new();
    let read = host::addresses::read(session.host(), session.netns_id(), None, &mut |addr| addresses.push(addr));
    read.map_err(|error| Outcome::because(Exit::Failed, error))?;
    plan(&wanted, &Here { addresses: &addresses, no_helper }).map_err(|reasons| refused(Exit::NoMatch, &reasons))
}

fn shown(plan: &Plan, apply: bool) -> Outcome {
    let exit = output::print(&plan.ruleset());
    let mut says = plan.warnings.clone();
    if apply {
        says.push("nothing was done, --yes applies these rules".to_owned());
    }
    Outcome { exit, says }
}

fn put_in_place(plan: &Plan) -> Outcome {
    if let Err(error) = nft::apply(&plan.ruleset()) {
        return failed(&error);
    }
    let mut says = plan.warnings.clone();
    says.push(format!(
        "applied as table {TABLE} until the next boot; `netwren nat stateless verify` tells whether both directions are \
         hit, `netwren nat stateless plan --undo --yes` takes the rules away"
    ));
    Outcome { exit: Exit::Ok, says }
}

fn failed(error: &NftError) -> Outcome {
    Outcome::because(Exit::Failed, error)
}

fn undo(yes: bool) -> Outcome {
    let table: Vec<&str> = TABLE.split(' ').collect();
    let listed = nft::list(&[&["list", "table"], table.as_slice()].concat());
    match listed {
        Err(error) if error.is_absent() => {
            Outcome::because(Exit::Ok, format!("there is no table {TABLE}: nothing to undo"))
        }
        Err(error) => failed(&error),
        Ok(rules) if !yes => Outcome {
            exit: output::print(&rules),
            says: vec!["nothing was done, --yes takes these rules away".to_owned()],
        },
        Ok(_) => match nft::apply(&format!("delete table {TABLE}\n")) {
            Ok(()) => Outcome::because(
                Exit::Ok,
                format!("table {TABLE} is gone: packets are tracked and rewritten as before"),
            ),
            Err(error) => failed(&error),
        },
    }
}

/// One published port as its two counters tell.
#[derive(Debug, PartialEq, Eq)]
struct Hits {
    /// `tcp_8080`
    port: String,
    /// Packets and bytes to the backend.
    inward: [u64; 2],
    /// Packets and bytes of the answers.
    outward: [u64; 2],
}

impl Hits {
    fn both(&self) -> bool {
        self.inward[0] > 0 && self.outward[0] > 0
    }
}

fn verify(session: &Session, within: Duration, json: bool) -> Outcome {
    let until = sys::clock::monotonic_ns().saturating_add(u64::try_from(within.as_nanos()).unwrap_or(u64::MAX));
    let hits = loop {
        let hits = match counters() {
            Ok(hits) => hits,
            Err(error) if error.is_absent() => {
                let words = format!(
                    "there is no table {TABLE}: `netwren nat stateless plan --publish … --apply --yes` makes it"
                );
                return Outcome::because(Exit::NoMatch, words);
            }
            Err(error) => return failed(&error),
        };
        let now = sys::clock::monotonic_ns();
        if hits.iter().all(Hits::both) || now >= until {
            break hits;
        }
        let pause = u64::try_from(LOOK_EVERY.as_nanos()).unwrap_or(u64::MAX);
        if !session.sleep_until(now.saturating_add(pause).min(until)) {
            break hits;
        }
    };
    let printed = output::print(&render(&hits, json));
    let missed: Vec<&str> = hits.iter().filter(|hits| !hits.both()).map(|hits| hits.port.as_str()).collect();
    if printed != Exit::Ok || missed.is_empty() {
        return printed.into();
    }
    Outcome::because(Exit::NoMatch, format!("not hit in both directions: {}", missed.join(", ")))
}

fn counters() -> Result<Vec<Hits>, NftError> {
    let table: Vec<&str> = TABLE.split(' ').collect();
    nft::list(&[&["list", "counters", "table"], table.as_slice()].concat()).map(|listed| read_counters(&listed))
}

/// What `nft list counters` prints: `counter NAME {` and below it `packets N bytes N`.
fn read_counters(listed: &str) -> Vec<Hits> {
    let mut hits: Vec<Hits> = Vec::new();
    let mut name = "";
    for line in listed.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["counter", counter, "{"] => name = counter,
            ["packets", packets, "bytes", bytes, ..] => {
                let Some((port, way)) = name.rsplit_once('_') else { continue };
                let counted = [packets.parse().unwrap_or(0), bytes.parse().unwrap_or(0)];
                let at = hits.iter().position(|hits| hits.port == port).unwrap_or_else(|| {
                    hits.push(Hits { port: port.to_owned(), inward: [0; 2], outward: [0; 2] });
                    hits.len() - 1
                });
                let Some(hits) = hits.get_mut(at) else { continue };
                if way == "in" { hits.inward = counted } else { hits.outward = counted }
            }
            _ => {}
        }
    }
    hits
}

fn render(hits: &[Hits], json: bool) -> String {
    let mut out = String::new();
    if !json {
        out.push_str("port\tpackets_in\tbytes_in\tpackets_out\tbytes_out\tboth\n");
    }
    for Hits { port, inward: [packets_in, bytes_in], outward: [packets_out, bytes_out] } in hits {
        let both = *packets_in > 0 && *packets_out > 0;
        let mut shown = Vec::new();
        text::put_json(&mut shown, port.as_bytes());
        let port = String::from_utf8_lossy(&shown);
        out.push_str(&if json {
            format!(
                "{{\"port\":\"{port}\",\"packets_in\":{packets_in},\"bytes_in\":{bytes_in},\
                 \"packets_out\":{packets_out},\"bytes_out\":{bytes_out},\"both\":{both}}}\n"
            )
        } else {
            format!("{port}\t{packets_in}\t{bytes_in}\t{packets_out}\t{bytes_out}\t{both}\n")
        });
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTED: &str = "\
table inet netwren_stateless {
	counter tcp_8080_in {
		packets 12 bytes 840
	}
	counter udp_53_1_out {
		packets 7 bytes 500
	}
	counter tcp_8080_out {
		packets 9 bytes 700
	}
}
";

    #[test]
    fn counters_of_a_port_belong_together() {
        let hits = read_counters(LISTED);
        assert_eq!(
            hits,
            [
                Hits { port: "tcp_8080".into(), inward: [12, 840], outward: [9, 700] },
                Hits { port: "udp_53_1".into(), inward: [0, 0], outward: [7, 500] },
            ]
        );
        assert!(hits[0].both() && !hits[1].both());
        assert_eq!(
            render(&hits[..1], true),
            "{\"port\":\"tcp_8080\",\"packets_in\":12,\"bytes_in\":840,\"packets_out\":9,\"bytes_out\":700,\"both\":true}\n"
        );
        assert!(read_counters("counter\ncounter {\npackets x bytes y\n").is_empty());
    }
}
