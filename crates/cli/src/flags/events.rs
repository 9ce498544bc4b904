//! The command line of `netwren nat events`: that of a table, less what makes no sense, and three flags more.

use super::command::{self, Known};
use super::request::{Request, from_matches};
use crate::commands::via_of;
use clap::{Arg, ArgAction, ArgMatches, Command};
use conntrack::events::{BUFFER_BYTES, EventsVia};
use record::rows::NatEventKind;
use std::ffi::OsString;

/// The flags of the table that make sense here. Flags that are added to the table are refused until they stand here.
const TAKEN: &[&str] = &[
    "columns",
    "limit",
    "resolve",
    "output",
    "no-header",
    "color",
    "stats",
    "cost",
    "explain",
    "exit-code",
    "netns",
    "all-netns",
    "via",
    "owners-via",
    "record",
    "replay",
];

const EVENTS: Known = Known {
    name: "events",
    about: "Entries of connection tracking as they come, change and go, until interrupted",
    is_table: true,
    examples: "\
Examples:
  netwren nat events                                everything that happens
  netwren nat events --event destroy                a session log: a line for each that ended, with bytes and duration
  netwren nat events --event new 'nat = dnat'       who comes in by a published port
  netwren nat events -c event,client,published,process,pid   whose connections they are, at the end that is here
  netwren nat events --all-netns -o json            of every namespace of the host
  netwren nat events --event new --cost             new entries by BPF: at any rate, and whoever sends pays nothing
",
};

/// A parsed `nat events`.
#[derive(Debug)]
pub(crate) struct Events {
    /// What is chosen and how it is shown.
    pub(crate) request: Request,
    /// `--via`
    pub(crate) via: Option<EventsVia>,
    /// `--buffer` in bytes.
    pub(crate) buffer: u32,
    /// `--resync`
    pub(crate) resync: bool,
}

impl Events {
    /// Reads the words behind `nat events`; clap's error knows what to print and where.
    pub(crate) fn parse(args: impl Iterator<Item = OsString>) -> Result<Events, clap::Error> {
        command::parse(command(), args, from_words)
    }
}

fn from_words(matches: &ArgMatches) -> Result<Events, String> {
    if let Some(flag) = command::given(matches, |flag| !TAKEN.contains(&flag)) {
        return Err(format!("--{flag} does not go with `nat events`"));
    }
    let mut request = from_matches(matches)?;
    let resync = matches.get_flag("resync");
    if let Some(words) = matches.get_one::<String>("event") {
        request.shown.filter = with_events(words, resync, &request.shown.filter)?;
    }
    let buffer = matches.get_one::<String>("buffer").map_or(Ok(BUFFER_BYTES), |text| bytes(text))?;
    Ok(Events { via: via_of(request.via)?, buffer, resync, request })
}

/// The filter with the events of `--event`; `--resync` shows what it finds alive, whichever events are named.
fn with_events(words: &str, resync: bool, filter: &str) -> Result<String, String> {
    let mut words: Vec<&str> = words.split(',').map(str::trim).collect();
    if let Some(word) = words.iter().find(|word| !NatEventKind::NAMES.contains(word)) {
        return Err(format!("--event takes {}, not `{word}`", NatEventKind::NAMES.join(", ")));
    }
    let live = NatEventKind::Live.name();
    if resync && !words.contains(&live) {
        words.push(live);
    }
    let events = format!("event in ({})", words.join(", "));
    Ok(if filter.trim().is_empty() { events } else { format!("{events} and ({filter})") })
}

/// Bytes: at least what the kernel gives to any socket, at most what fits into its number.
fn bytes(text: &str) -> Result<u32, String> {
    let number = super::bytes(text).and_then(|number| u32::try_from(number).ok());
    let number = number.filter(|n| (1 << 12..=1 << 30).contains(n));
    number.ok_or_else(|| format!("--buffer takes bytes from 4KiB to 1GiB, not `{text}`"))
}

/// The clap command, from that of a table.
pub(super) fn command() -> Command {
    const GROUP: &str = "What is listened to";
    let command = command::build(&EVENTS).bin_name("netwren nat events");
    let value = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).help(help).help_heading(GROUP)
    };
    command::without(command, |flag| !TAKEN.contains(&flag))
        .arg(value(
            "event",
            "LIST",
            "Only these events: new, update, destroy, live. The kernel sends no others; new alone is told of by BPF where \
             that can be",
        ))
        .arg(value("buffer", "BYTES", "Room for what waits to be read: 8MiB if not said, 16MiB and more by BPF"))
        .arg(
            Arg::new("resync")
                .long("resync")
                .help(
                    "After events were lost, dump what lives now, until nothing is lost meanwhile: rows whose event is live, \
                     whatever --event names",
                )
                .help_heading(GROUP)
                .action(ArgAction::SetTrue),
        )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::flags::defs::FLAGS;

    fn parse(line: &str) -> Result<Events, clap::Error> {
        Events::parse(line.split_whitespace().map(OsString::from))
    }

    #[test]
    fn the_command_is_sound() {
        command().debug_assert();
        assert!(TAKEN.iter().all(|long| FLAGS.iter().any(|flag| flag.long == *long)));
    }

    #[test]
    fn words_become_a_filter_and_numbers() {
        let events = parse("--event new,destroy orig_dport = 53 --buffer 64k --resync --via netlink").unwrap();
        assert_eq!(events.request.shown.filter, "event in (new, destroy, live) and (orig_dport = 53)");
        assert_eq!((events.buffer, events.resync, events.via), (65_536, true, Some(EventsVia::Netlink)));
        let plain = parse("").unwrap();
        assert_eq!((plain.request.shown.filter.as_str(), plain.buffer, plain.via), ("", BUFFER_BYTES, None));
        assert_eq!(parse("--buffer 1GiB").unwrap().buffer, 1 << 30);
    }

    #[test]
    fn what_makes_no_sense_is_said() {
        for (line, says) in [
            ("--event gone", "--event takes new, update, destroy, live, not `gone`"),
            ("--buffer 12parsecs", "--buffer takes bytes"),
            ("--buffer 5GiB", "--buffer takes bytes"),
            ("--buffer 1", "--buffer takes bytes"),
            ("--via proc", "/proc tells of no events"),
            ("--by client", "--by does not go with"),
            ("--watch", "--watch does not go with"),
            ("--sort time", "--sort does not go with"),
        ] {
            let said = parse(line).unwrap_err().to_string();
            assert!(said.contains(says), "{line}: {said}");
        }
    }
}
