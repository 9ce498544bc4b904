//! Rules of NAT without connection tracking: planned from the host's addresses and routes, installed with nft(8), and
//! removed again if packets move in one direction only.

use crate::stateless::{
    Hits, HostRoutes, Impossible, Plan, Publish, Settings, TABLE, obstacles, parse_hits, plan, render_hits,
};
use lookups::long_work;
use lookups::nft::{self, NftError};
use lookups::session::Session;
use record::Addr;
use runtime::exit::Exit;
use runtime::outcome::Outcome;
use runtime::print;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;

/// Interval at which the counters are read while waiting for packets.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Additional time to wait for packets if only one direction has moved.
///
/// Bound: more if packets moved in one direction only. Beyond: the rules are removed. By: a remote peer.
const GRACE: Duration = Duration::from_secs(1);

/// Makes the plan. Fails with its problems: exit code 2 for invalid words, 1 for an impossible plan.
pub fn make_plan(session: &Session, publishes: &[String], no_helper: bool) -> Result<Plan, Outcome> {
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
    read.map_err(|error| Outcome::with_message(Exit::Failed, error))?;
    let towards = towards(&wanted);
    plan(&wanted, &HostRoutes { addresses: &addresses, towards: &towards, no_helper })
        .map_err(|reasons| refused(Exit::NoMatch, &reasons))
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
pub fn put_in_place(session: &Session, plan: &Plan, probe: Duration, no_undo: bool) -> Outcome {
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
    Outcome::with_message(Exit::Failed, error)
}

/// Removes the rules, or without `yes` shows them.
pub fn undo(yes: bool) -> Outcome {
    let listed = nft::list(&words_of_table(&["list", "table"]));
    match listed {
        Err(error) if error.is_absent() => {
            Outcome::with_message(Exit::Ok, format!("table {TABLE} does not exist: nothing to undo"))
        }
        Err(error) => failed(&error),
        Ok(rules) if !yes => Outcome {
            exit: print::print(&rules),
            messages: vec!["nothing was changed, --yes removes these rules".to_owned()],
        },
        Ok(_) => match nft::apply(&format!("delete table {TABLE}\n")) {
            Ok(()) => Outcome::with_message(
                Exit::Ok,
                format!("table {TABLE} was removed: packets are tracked and rewritten as before"),
            ),
            Err(error) => failed(&error),
        },
    }
}

/// Prints the counts of packets that arrive within this time, and fails if a direction of a port has none.
pub fn verify(session: &Session, within: Duration, json: bool) -> Outcome {
    let hits = match watch(session, within) {
        Ok(hits) => hits,
        Err(error) if error.is_absent() => {
            let words = format!(
                "table {TABLE} does not exist: `netwren nat stateless plan --publish … --apply --yes` creates it"
            );
            return Outcome::with_message(Exit::NoMatch, words);
        }
        Err(error) => return failed(&error),
    };
    let printed = print::print(&render_hits(&hits, json));
    let missed: Vec<&str> = hits.iter().filter(|hits| !hits.both()).map(|hits| hits.port.as_str()).collect();
    if printed != Exit::Ok || missed.is_empty() {
        return printed.into();
    }
    let seconds = within.as_secs_f64();
    Outcome::with_message(
        Exit::NoMatch,
        format!("no packets in both directions within {seconds} s: {}", missed.join(", ")),
    )
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
    nft::list(&words_of_table(&["list", "counters", "table"])).map(|listed| parse_hits(&listed))
}
