//! `netwren nat stateless`: publishes ports without connection tracking.

use crate::command::{Command, ParsedWords, Positional};
use crate::flags::defs::Scope;
use doctor::stateless::{HostRoutes, Impossible, Plan, Publish, Settings, TABLE, obstacles, plan};
use lookups::long_work;
use lookups::nft::{self, NftError};
use lookups::session::{Session, SessionTarget};
use record::{Addr, text};
use runtime::exit::Exit;
use runtime::outcome::Outcome;
use runtime::print;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::ops::RangeInclusive;
use std::time::Duration;

/// Interval at which the counters are read while waiting for packets.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Additional time to wait for packets if only one direction has moved.
///
/// Bound: more if packets moved in one direction only. Beyond: the rules are removed. By: a remote peer.
const GRACE: Duration = Duration::from_secs(1);

/// The registry's entry for the common prefix of the next two commands.
pub(crate) static COMMAND: Command = Command {
    name: "nat stateless",
    about: "Publish ports without connection tracking: each packet is rewritten on its own",
    examples: EXAMPLES,
    scope: Scope::NONE,
    positional: Positional::None,
    ..Command::TABLE
};

/// The registry's entry of `nat stateless plan`.
pub(crate) static PLAN: Command = Command {
    name: "nat stateless plan",
    about: "Write the rules; with --apply --yes install them with nft(8)",
    examples: EXAMPLES,
    scope: Scope::RULES,
    positional: Positional::None,
    check: Some(|words| plan_asked(words).map(drop)),
    run: Some(|words| Ok(done(words, plan_asked(words)?))),
    ..Command::TABLE
};

/// The registry's entry of `nat stateless verify`.
pub(crate) static VERIFY: Command = Command {
    name: "nat stateless verify",
    about: "Check that packets are rewritten in both directions; exit with 1 if not",
    scope: Scope::VERIFY,
    positional: Positional::None,
    run: Some(|words| Ok(done(words, verify_asked(words)?))),
    ..Command::TABLE
};

const EXAMPLES: &str = "\
Examples:
  netwren nat stateless plan --publish 8080:172.17.0.2:8080       show the rules for nft(8), change nothing
  netwren nat stateless plan --publish 80:10.0.0.2:80 --publish 53:10.0.0.3:53
  netwren nat stateless plan --publish 8080:172.17.0.2:8080 --apply --yes
  netwren nat stateless verify --within 10                        wait until packets pass in both directions
  netwren nat stateless plan --undo --yes                         remove the rules
";

/// Default time to wait for packets.
///
/// Bound: in which the packets of new stateless rules are watched. Beyond: a silent port gets no verdict; reported. A
/// peer that sends packets to the port during this time can cause its rule to be removed again (`--no-undo`). By: a
/// remote peer.
const WATCHED: Duration = Duration::from_secs(5);
/// Valid times in seconds.
const WATCHED_S: RangeInclusive<f64> = 0.0..=86_400.0;

/// The task of the command.
#[derive(Debug, PartialEq, Eq)]
enum Task {
    /// Print the rules, or apply them.
    Plan {
        /// `--publish` in the user's notation.
        publishes: Vec<String>,
        /// `--no-helper`
        no_helper: bool,
        /// `--apply`: install the rules instead of only printing them.
        apply: bool,
        /// `--yes`: make the changes instead of only describing them.
        yes: bool,
        /// `--probe`: how long to watch packets after the rules are installed.
        probe: Duration,
        /// `--no-undo`: keep the rules even if only one direction moves.
        no_undo: bool,
    },
    /// Remove the rules.
    Undo {
        /// `--yes`: make the changes instead of only describing them.
        yes: bool,
    },
    /// Check whether packets were seen in both directions.
    Verify {
        /// `--within`: how long to watch packets.
        within: Duration,
        /// `-o json`
        json: bool,
    },
}

fn plan_asked(words: &ParsedWords<'_>) -> Result<Task, String> {
    let publishes: Vec<String> = words.values("publish").into_iter().map(str::to_owned).collect();
    let [undo, apply, yes, no_helper, no_undo] =
        ["undo", "apply", "yes", "no-helper", "no-undo"].map(|flag| words.has(flag));
    let probe = words.seconds("probe", WATCHED_S)?.unwrap_or(WATCHED);
    let wrong = match (undo, publishes.is_empty()) {
        (true, false) => "--undo removes all rules: leave out --publish",
        (true, true) if apply => "--undo cannot be used with --apply",
        (true, true) => return Ok(Task::Undo { yes }),
        (false, true) => "no port to publish: add --publish [ADDR:]PORT:BACKEND:PORT[/tcp|/udp]",
        (false, false) if no_undo && !apply => "--no-undo needs --apply",
        (false, false) if yes && !apply => "--yes needs --apply or --undo",
        (false, false) => return Ok(Task::Plan { publishes, no_helper, apply, yes, probe, no_undo }),
    };
    Err(wrong.to_owned())
}

fn verify_asked(words: &ParsedWords<'_>) -> Result<Task, String> {
    let within = words.seconds("within", WATCHED_S)?.unwrap_or(WATCHED);
    Ok(Task::Verify { within, json: words.output() == Some("json") })
}

fn done(words: &ParsedWords<'_>, task: Task) -> Outcome {
    let session = match Session::open(SessionTarget { netns: words.text("netns"), ..SessionTarget::default() }) {
        Ok(session) => session,
        Err(error) => return Outcome::because(error.exit(), error),
    };
    match task {
        Task::Plan { publishes, no_helper, apply, yes, probe, no_undo } => {
            let planned = match planned(&session, &publishes, no_helper) {
                Ok(planned) => planned,
                Err(outcome) => return outcome,
            };
            if apply && yes { put_in_place(&session, &planned, probe, no_undo) } else { shown(&planned, apply) }
        }
        Task::Undo { yes } => undo(yes),
        Task::Verify { within, json } => verify(&session, within, json),
    }
}

/// The plan, or its problems: exit code 2 for invalid words, 1 for an impossible plan.
fn planned(session: &Session, publishes: &[String], no_helper: bool) -> Result<Plan, Outcome> {
    let (mut wanted, mut wrong): (Vec<Publish>, Vec<Impossible>) = (Vec::new(), Vec::new());
    for written in publishes {
        match written.parse() {
            Ok(publish) => wanted.push(publish),
            Err(why) => wrong.push(why),
        }
    }
    let refused =
        |exit, reasons: &[Impossible]| Outcome { exit, messages: reasons.iter().map(Impossible::to_string).collect() };
    if !wrong.is_empty() {
        let dynamic = wrong.iter().all(|why| matches!(why, Impossible::Dynamic { .. }));
        return Err(refused(if dynamic { Exit::NoMatch } else { Exit::Usage }, &wrong));
    }
    let mut addresses: Vec<Addr> = Vec::new();
    let read = host::addresses::read(session.host(), session.netns_id(), None, &mut |addr| addresses.push(addr));
    read.map_err(|error| Outcome::because(Exit::Failed, error))?;
    let towards = towards(&wanted);
    plan(&wanted, &HostRoutes { addresses: &addresses, towards: &towards, no_helper })
        .map_err(|reasons| refused(Exit::NoMatch, &reasons))
}

fn shown(plan: &Plan, apply: bool) -> Outcome {
    let exit = print::print(&plan.ruleset());
    let mut messages = plan.warnings.clone();
    if apply {
        messages.push("nothing was changed, --yes applies these rules".to_owned());
    }
    Outcome { exit, messages }
}

/// Backends with their own route, each with this host's address towards it.
fn towards(publishes: &[Publish]) -> Vec<(Addr, Addr)> {
    let backends = publishes.iter().map(|publish| publish.backend);
    let one = |backend: Addr| {
        let near = source_towards(backend)?;
        let outside = if matches!(backend, Addr::V4(_)) { ANYWHERE_V4 } else { ANYWHERE_V6 };
        (source_towards(outside) != Some(near)).then_some((backend, near))
    };
    backends.filter_map(one).collect()
}

/// DNS root servers: addresses that only a default route leads to. Nothing is sent to them.
const ANYWHERE_V4: Addr = Addr::V4([198, 41, 0, 4]);
const ANYWHERE_V6: Addr = Addr::V6([0x20, 0x01, 0x05, 0x03, 0xba, 0x3e, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0x30]);

/// The source address that the kernel's routes select for packets to `addr`; None without a route. Sends nothing.
fn source_towards(addr: Addr) -> Option<Addr> {
    let (any, to): (IpAddr, IpAddr) = match addr {
        Addr::V4(octets) => ([0; 4].into(), octets.into()),
        Addr::V6(octets) => ([0; 16].into(), octets.into()),
    };
    let socket = UdpSocket::bind(SocketAddr::new(any, 0)).ok()?;
    // The port does not matter: connecting a UDP socket only looks up the route.
    socket.connect(SocketAddr::new(to, 9)).ok()?;
    Some(match socket.local_addr().ok()?.ip() {
        IpAddr::V4(own) => Addr::V4(own.octets()),
        IpAddr::V6(own) => Addr::V6(own.octets()),
    })
}

/// Checks for obstacles, installs the rules, watches packets, and removes the rules if only one direction moves.
fn put_in_place(session: &Session, plan: &Plan, probe: Duration, no_undo: bool) -> Outcome {
    let mut messages = match preflight(session, plan) {
        Ok(warnings) => [plan.warnings.clone(), warnings].concat(),
        Err(outcome) => return outcome,
    };
    let before = match nft::list(&words_of_table(&["list", "table"])) {
        Ok(rules) => Some(rules),
        Err(error) if error.is_absent() => None,
        Err(error) => return failed(&error),
    };
    if let Err(error) = nft::apply(&plan.ruleset()) {
        return failed(&error);
    }
    let moved = match watch(session, probe) {
        Ok(moved) => moved,
        Err(error) => {
            messages.push(format!("the rules are in place, but packets could not be watched: {error}"));
            return Outcome { exit: Exit::Failed, messages };
        }
    };
    let one_way: Vec<String> = moved.iter().filter(|hits| hits.one_way()).map(Hits::in_words).collect();
    if !one_way.is_empty() {
        messages.push(format!("packets pass in one direction only: {}", one_way.join("; ")));
        return if no_undo { kept(messages) } else { taken_back(before.as_deref(), messages) };
    }
    messages.push(format!(
        "applied as table {TABLE} until the next boot; {}`netwren nat stateless verify` checks both directions, \
         `netwren nat stateless plan --undo --yes` removes the rules",
        probed(&moved, probe)
    ));
    Outcome { exit: Exit::Ok, messages }
}

/// The probe's message on ports that do not move in only one direction.
fn probed(moved: &[Hits], probe: Duration) -> String {
    let silent: Vec<&str> = moved.iter().filter(|hits| !hits.both()).map(|hits| hits.port.as_str()).collect();
    match (probe.is_zero(), silent.is_empty()) {
        (true, _) => String::new(),
        (false, true) => "packets pass in both directions; ".to_owned(),
        (false, false) => format!("no packet arrived within {} s for {}; ", probe.as_secs_f64(), silent.join(", ")),
    }
}

fn kept(mut messages: Vec<String>) -> Outcome {
    messages
        .push("the rules stay in place (--no-undo); `netwren nat stateless plan --undo --yes` removes them".to_owned());
    Outcome { exit: Exit::NoMatch, messages }
}

/// Restores the previous state.
fn taken_back(before: Option<&str>, mut messages: Vec<String>) -> Outcome {
    let script = format!("delete table {TABLE}\n{}", before.unwrap_or_default());
    let exit = match nft::apply(&script) {
        Ok(()) => {
            let what =
                if before.is_some() { "the rules applied before are in place again" } else { "the rules were removed" };
            messages.push(format!("undone: {what} (--no-undo keeps the new rules)"));
            Exit::NoMatch
        }
        Err(error) => {
            messages.push(format!("the rules are still in place: {error}"));
            Exit::Failed
        }
    };
    Outcome { exit, messages }
}

/// Warnings; or an error if the packets would certainly be stopped, in which case nothing is changed.
fn preflight(session: &Session, plan: &Plan) -> Result<Vec<String>, Outcome> {
    let ruleset = nft::list(&["list", "ruleset"]).map_err(|error| failed(&error))?;
    let (certain, others): (Vec<_>, Vec<_>) =
        obstacles(plan, &ruleset, settings(session)).into_iter().partition(|obstacle| obstacle.is_certain);
    if certain.is_empty() {
        return Ok(others.into_iter().map(|obstacle| obstacle.text).collect());
    }
    let mut messages: Vec<String> = certain.into_iter().map(|obstacle| obstacle.text).collect();
    messages.push("nothing was changed: these rules would lose packets".to_owned());
    Err(Outcome { exit: Exit::NoMatch, messages })
}

fn settings(session: &Session) -> Settings {
    let mut text = Vec::new();
    let mut number = |name: &str| -> Option<u64> {
        session.host().read_file(&format!("/proc/sys/net/{name}"), &mut text).ok()?;
        std::str::from_utf8(&text).ok()?.trim().parse().ok()
    };
    let forwards_v4 = number("ipv4/ip_forward").map(|on| on != 0);
    let forwards_v6 = number("ipv6/conf/all/forwarding").map(|on| on != 0);
    let all = number("ipv4/conf/all/rp_filter");
    let names = std::fs::read_dir("/proc/sys/net/ipv4/conf").into_iter().flatten().flatten();
    // The kernel uses the larger of the interface's value and the value for all: 1 is strict, 2 is loose.
    let strict_rp_filter = names.filter_map(|entry| entry.file_name().into_string().ok()).any(|name| {
        !matches!(name.as_str(), "all" | "default" | "lo")
            && number(&format!("ipv4/conf/{name}/rp_filter")).max(all) == Some(1)
    });
    Settings { forwards_v4, forwards_v6, strict_rp_filter }
}

/// Words for nft(8) that refer to netwren's table.
fn words_of_table<'w>(words: &[&'w str]) -> Vec<&'w str> {
    words.iter().copied().chain(TABLE.split(' ')).collect()
}

fn failed(error: &NftError) -> Outcome {
    Outcome::because(Exit::Failed, error)
}

fn undo(yes: bool) -> Outcome {
    let listed = nft::list(&words_of_table(&["list", "table"]));
    match listed {
        Err(error) if error.is_absent() => {
            Outcome::because(Exit::Ok, format!("table {TABLE} does not exist: nothing to undo"))
        }
        Err(error) => failed(&error),
        Ok(rules) if !yes => Outcome {
            exit: print::print(&rules),
            messages: vec!["nothing was changed, --yes removes these rules".to_owned()],
        },
        Ok(_) => match nft::apply(&format!("delete table {TABLE}\n")) {
            Ok(()) => Outcome::because(
                Exit::Ok,
                format!("table {TABLE} was removed: packets are tracked and rewritten as before"),
            ),
            Err(error) => failed(&error),
        },
    }
}

/// The counters of a published port.
#[derive(Debug, PartialEq, Eq)]
struct Hits {
    /// The port, such as `tcp_8080`.
    port: String,
    /// Packets and bytes to the backend.
    inward: [u64; 2],
    /// Packets and bytes of the replies.
    outward: [u64; 2],
}

impl Hits {
    fn both(&self) -> bool {
        self.inward[0] > 0 && self.outward[0] > 0
    }

    fn one_way(&self) -> bool {
        (self.inward[0] > 0) != (self.outward[0] > 0)
    }

    fn in_words(&self) -> String {
        format!("{}: {} packets to the backend, {} answers", self.port, self.inward[0], self.outward[0])
    }

    /// The increase since `before`. Counters that were reset count from 0.
    fn since(self, before: &[Hits]) -> Hits {
        let Some(old) = before.iter().find(|old| old.port == self.port) else { return self };
        let since = |now: [u64; 2], old: [u64; 2]| {
            if now[0] < old[0] { now } else { [now[0] - old[0], now[1].saturating_sub(old[1])] }
        };
        Hits { inward: since(self.inward, old.inward), outward: since(self.outward, old.outward), ..self }
    }
}

fn verify(session: &Session, within: Duration, json: bool) -> Outcome {
    let hits = match watch(session, within) {
        Ok(hits) => hits,
        Err(error) if error.is_absent() => {
            let words = format!(
                "table {TABLE} does not exist: `netwren nat stateless plan --publish … --apply --yes` creates it"
            );
            return Outcome::because(Exit::NoMatch, words);
        }
        Err(error) => return failed(&error),
    };
    let printed = print::print(&render(&hits, json));
    let missed: Vec<&str> = hits.iter().filter(|hits| !hits.both()).map(|hits| hits.port.as_str()).collect();
    if printed != Exit::Ok || missed.is_empty() {
        return printed.into();
    }
    let seconds = within.as_secs_f64();
    Outcome::because(Exit::NoMatch, format!("no packets in both directions within {seconds} s: {}", missed.join(", ")))
}

/// The counters' increase from now on: until both directions of every port move, or until `within` has passed.
fn watch(session: &Session, within: Duration) -> Result<Vec<Hits>, NftError> {
    let nanos = |duration: Duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
    let before = counters()?;
    let mut until = sys::clock::monotonic_ns().saturating_add(nanos(within));
    let mut grace = Some(GRACE);
    let _line = long_work::progress(session, "waiting for packets of both directions", Some(within), String::new);
    loop {
        let now = sys::clock::monotonic_ns();
        let is_over = now >= until || !session.sleep_until(now.saturating_add(nanos(LOOK_EVERY)).min(until));
        let hits: Vec<Hits> = counters()?.into_iter().map(|hits| hits.since(&before)).collect();
        if hits.iter().all(Hits::both) {
            return Ok(hits);
        }
        if is_over {
            // A reply to the last packet may be on its way; if the run must end, it is not waited for.
            match grace
                .take()
                .filter(|_| now < until.saturating_add(nanos(LOOK_EVERY)) && hits.iter().any(Hits::one_way))
            {
                Some(grace) if !session.interrupted() => until = until.saturating_add(nanos(grace)),
                _ => return Ok(hits),
            }
        }
    }
}

fn counters() -> Result<Vec<Hits>, NftError> {
    nft::list(&words_of_table(&["list", "counters", "table"])).map(|listed| read_counters(&listed))
}

/// Parses the output of `nft list counters`: `counter NAME {`, followed by `packets N bytes N`.
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
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;
    use crate::flags::parser;

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
            "{\"port\":\"tcp_8080\",\"packets_in\":12,\"bytes_in\":840,\"packets_out\":9,\"bytes_out\":700,\
             \"both\":true}\n"
        );
        assert!(read_counters("counter\ncounter {\npackets x bytes y\n").is_empty());
    }

    fn parse(line: &str) -> Result<Task, clap::Error> {
        static COMMANDS: [&Command; 3] = [&COMMAND, &PLAN, &VERIFY];
        let mut words: Vec<std::ffi::OsString> = line.split_whitespace().map(Into::into).collect();
        let mut command = &COMMAND;
        if let Some(name) = words.first().and_then(|word| word.to_str()).map(|word| format!("nat stateless {word}")) {
            command = COMMANDS.iter().find(|command| command.name == name).unwrap();
            words.remove(0);
        }
        let read = if command.name == PLAN.name { plan_asked } else { verify_asked };
        parser::parse(command, words, &COMMANDS, read)
    }

    #[test]
    fn nothing_changes_by_accident() {
        let Task::Plan { apply, yes, publishes, .. } = parse("plan -p 80:10.0.0.2:80 -p 81:10.0.0.2:81").unwrap()
        else {
            panic!("a plan")
        };
        assert_eq!((apply, yes, publishes.len()), (false, false, 2));
        assert_eq!(parse("plan --undo").unwrap(), Task::Undo { yes: false });
        let within = Duration::from_millis(1500);
        assert_eq!(parse("verify --within 1.5s").unwrap(), Task::Verify { within, json: false });
        for (line, says) in [
            ("", "Usage"),
            ("plan", "no port to publish"),
            ("plan --undo -p 80:10.0.0.2:80", "leave out --publish"),
            ("plan --undo --apply", "cannot be used with"),
            ("plan -p 80:10.0.0.2:80 --yes", "needs --apply"),
            ("verify --within soon", "takes seconds"),
            ("verify --within -1", "not `-1`"),
        ] {
            let said = parse(line).unwrap_err().to_string();
            assert!(said.contains(says), "{line}: {said}");
        }
    }
}
