//! The command line of `netwren record`.

use super::command::{self, Known};
use clap::{Arg, ArgAction, ArgMatches, Command};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// How long is recorded if nothing is said: long enough to tell what grows.
const LONG: Duration = Duration::from_secs(10);

/// The largest file if nothing is said. A million sockets with all that the kernel tells of them take about 0.8 GB a
/// round; a usual host takes some hundred kilobytes. Beyond it the recording stops, which is said, and the exit code
/// is 3.
const SIZE_MAX: u64 = 1 << 30;

pub(super) const RECORD: Known = Known {
    name: "record",
    about: "Save everything that netwren can show of this host to a file, to be asked later",
    is_table: false,
    examples: "\
Examples:
  netwren record incident.nw                       ten seconds of it, a round every second
  netwren record incident.nw --for 60              a minute
  netwren record incident.nw --once                one round
  netwren --replay incident.nw                     the home screen as it was then
  netwren sockets --replay incident.nw 'state = established' --columns +rtt_us,retrans_total
  netwren flows --replay incident.nw --columns +bytes_out
  netwren nat --replay incident.nw
  netwren nat stats --watch --replay incident.nw   round by round
  netwren nat advise --replay incident.nw

It holds sockets with all their fields, listeners, connection tracking with its counters and settings, owners with
their command lines and containers, namespaces, links, addresses, routes and the kernel's counters, of every network
namespace. Events are not in it: `--follow` and `nat events` have a `--record FILE` of their own. Only its owner may
read the file: it holds addresses, process names and command lines.
",
};

/// A parsed `record`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Record {
    /// The file that is written.
    pub(crate) file: PathBuf,
    /// How long; zero for one round.
    pub(crate) length: Duration,
    /// The largest size of the file in bytes.
    pub(crate) size_max: u64,
}

impl Record {
    /// Reads the words behind `record`; clap's error knows what to print and where.
    pub(crate) fn parse(args: impl Iterator<Item = OsString>) -> Result<Record, clap::Error> {
        command::parse(command::build(&RECORD), args, from_words)
    }
}

fn from_words(matches: &ArgMatches) -> Result<Record, String> {
    let length = super::request::seconds(matches, "for")?;
    if length.is_some() && matches.get_flag("once") {
        return Err("--for and --once exclude each other".to_owned());
    }
    let size_max = match matches.get_one::<String>("max-size") {
        None => SIZE_MAX,
        Some(text) => {
            let size = super::bytes(text).filter(|size| *size >= 1 << 16);
            size.ok_or_else(|| format!("--max-size takes bytes, at least 64KiB, not `{text}`"))?
        }
    };
    let length = if matches.get_flag("once") { Duration::ZERO } else { length.unwrap_or(LONG) };
    let file = matches.get_one::<PathBuf>("file").cloned().unwrap_or_default();
    Ok(Record { file, length, size_max })
}

/// The arguments of the command.
pub(super) fn arguments(command: Command) -> Command {
    let path = clap::value_parser!(PathBuf);
    command
        .arg(Arg::new("file").value_name("FILE").required(true).value_parser(path).help("The file that is written"))
        .arg(
            Arg::new("for")
                .long("for")
                .value_name("SECONDS")
                .help("How long: a round every second, 10 seconds if nothing is said; Ctrl-C ends it before"),
        )
        .arg(Arg::new("once").long("once").action(ArgAction::SetTrue).help("One round"))
        .arg(
            Arg::new("max-size")
                .long("max-size")
                .value_name("BYTES")
                .help("The largest size of the file, 1GiB if nothing is said: where it is reached the recording stops"),
        )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn parse(line: &str) -> Result<Record, clap::Error> {
        Record::parse(line.split_whitespace().map(OsString::from))
    }

    #[test]
    fn a_file_and_how_long() {
        let file = PathBuf::from("f");
        assert_eq!(parse("f").unwrap(), Record { file: file.clone(), length: LONG, size_max: SIZE_MAX });
        assert_eq!(parse("--once f").unwrap().length, Duration::ZERO);
        assert_eq!(parse("f --for 2.5s").unwrap().length, Duration::from_millis(2500));
        assert_eq!(parse("f --max-size 16MiB").unwrap().size_max, 16 << 20);
        for (line, says) in [
            ("", "<FILE>"),
            ("f --once --for 1", "exclude each other"),
            ("f --for ever", "--for takes seconds"),
            ("f --max-size 1", "--max-size takes bytes"),
            ("f --max-size much", "--max-size takes bytes"),
        ] {
            assert!(parse(line).unwrap_err().to_string().contains(says), "{line}");
        }
    }
}
