//! The registry: every native command, once.
//!
//! Dispatch, help, man pages, completions, `--columns help`, the schema and `netwren record` use this list. A new
//! table is a field table in `record`, a source, and an entry here.

use crate::command::Command;
use crate::commands::nat::{advise, delete, events, list, stateless, stats, top};
use crate::commands::{
    agent, capture, counters, doctor, drops, flows, home, kill, log, record, routes, sockets, support,
};

/// All commands in the order of the help; subcommands follow their parent.
pub(crate) static COMMANDS: &[&Command] = &[
    &home::COMMAND,
    &sockets::COMMAND,
    &sockets::LISTENERS_COMMAND,
    &kill::COMMAND,
    &flows::COMMAND,
    &routes::COMMAND,
    &list::COMMAND,
    &top::COMMAND,
    &stats::COMMAND,
    &events::COMMAND,
    &advise::COMMAND,
    &delete::COMMAND,
    &stateless::COMMAND,
    &stateless::PLAN,
    &stateless::VERIFY,
    &log::COMMAND,
    &log::check::COMMAND,
    &log::setup::COMMAND,
    &log::tail::COMMAND,
    &log::top::COMMAND,
    &log::status::COMMAND,
    &agent::COMMAND,
    &agent::check::COMMAND,
    &agent::status::COMMAND,
    &capture::COMMAND,
    &capture::stats::COMMAND,
    &capture::cut::COMMAND,
    &capture::merge::COMMAND,
    &capture::lateness::COMMAND,
    &drops::COMMAND,
    &doctor::COMMAND,
    &doctor::softirq::COMMAND,
    &doctor::path::COMMAND,
    &counters::COMMAND,
    &record::COMMAND,
    &support::COMMAND,
];

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::flags::defs::{FLAGS, Takes};
    use crate::flags::parser::{find, parse, tree};
    use std::ffi::OsString;

    fn words(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    fn found(line: &str) -> (&'static str, Vec<OsString>) {
        let mut words = words(line);
        (find(&mut words, COMMANDS).map_or("", |command| command.name), words)
    }

    #[test]
    fn the_tree_is_sound() {
        tree(COMMANDS).debug_assert();
    }

    #[test]
    fn commands_are_found_wherever_flags_stand() {
        for (line, name, rest) in [
            ("nat top -o json state", "nat top", "-o json state"),
            ("nat -o json top state", "nat top", "-o json state"),
            ("-o json nat --netns top top state", "nat top", "-o json --netns top state"),
            ("nat stateless --netns plan verify", "nat stateless verify", "--netns plan"),
            ("nat stateless", "nat stateless", ""),
            ("sockets process = kill", "sockets", "process = kill"),
            ("sockets -- kill", "sockets", "-- kill"),
            ("sockets kill kill", "sockets kill", "kill"),
            ("--replay nat", "", "--replay nat"),
            ("kill", "", "kill"),
            ("", "", ""),
        ] {
            assert_eq!(found(line), (name, words(rest)), "{line}");
        }
    }

    #[test]
    fn every_flag_of_a_command_is_taken_and_every_other_one_is_refused_with_its_command() {
        for command in COMMANDS.iter().filter(|command| command.prepare.is_some()) {
            for flag in FLAGS {
                let word = match flag.takes {
                    Takes::Nothing | Takes::Counted | Takes::Maybe(..) => format!("--{}", flag.long),
                    Takes::Value(_) | Takes::Values(_) | Takes::File(_) => format!("--{}=1", flag.long),
                    Takes::Word(words) => format!("--{}={}", flag.long, words[0]),
                };
                let file = command.positional.is_required().then(|| "file".into());
                let line = [OsString::from(&word)].into_iter().chain(file).collect();
                let line: Vec<OsString> = line;
                let parsed = parse(command, line.clone(), COMMANDS, |_| Ok(())).map_err(|error| {
                    crate::hints::refusal(&error, &line, command, COMMANDS).unwrap_or_else(|| error.to_string())
                });
                let has_namesake = command.takes(flag.long);
                match (flag.scope.meets(command.scope), parsed) {
                    (true, parsed) => assert!(parsed.is_ok(), "{} {word}", command.name),
                    (false, Err(said)) if !has_namesake => {
                        let own = command.refusals.iter().any(|(refused, _)| *refused == flag.long);
                        let leads =
                            [": it belongs to `", ": it is a command: "].iter().any(|words| said.contains(words));
                        assert!(own || leads, "{} {word}: {said}", command.name);
                    }
                    (false, parsed) => assert!(has_namesake || parsed.is_err(), "{} {word}", command.name),
                }
            }
        }
    }

    #[test]
    fn columns_that_a_narrow_terminal_keeps_are_columns() {
        for command in COMMANDS {
            for table in command.tables.iter().filter(|table| !table.kept_columns().is_empty()) {
                for kept in table.kept_columns() {
                    assert!(table.find_field(kept).is_some(), "{}: {kept}", table.name());
                    assert_eq!(
                        table.kept_columns().iter().filter(|name| *name == kept).count(),
                        1,
                        "{}: {kept}",
                        table.name()
                    );
                }
            }
        }
    }

    /// A cell with a long value of this kind.
    fn long_cell(kind: ::record::Kind) -> ::record::Value<'static> {
        use ::record::{Addr, Kind, Value};
        match kind {
            Kind::Addr => Value::Addr(Addr::V6([0xfd; 16])),
            Kind::Endpoint => Value::Endpoint(Addr::V6([0xfd; 16]), Some(65_535)),
            Kind::Time => Value::Time(1_795_000_000_123_456_789),
            Kind::Bool => Value::Bool(false),
            Kind::Thousandths => Value::Thousandths(99_999_999),
            Kind::Name(words) => {
                words.iter().max_by_key(|word| word.len()).map_or(Value::Null, |word| Value::Name(word))
            }
            kind if kind.is_number() => Value::U64(u64::MAX),
            _ => Value::Bytes(
                "/run/データ\u{1b}[2J/a-name-that-is-long-and-goes-on-and-on-and-on-and-on/0123456789abcdef".as_bytes(),
            ),
        }
    }

    #[test]
    fn issue_15_every_table_fits_a_terminal() {
        use ::record::{Accounting, Column, Columns, Next, Show, Sink};
        const ALL: [Show; 4] = [Show::Default, Show::Unusual, Show::Wide, Show::Asked];
        let sets = [1, 2, 3, 4].map(|sets| &ALL[..sets]);
        for table in COMMANDS.iter().flat_map(|command| command.tables) {
            for (width, set) in [80, 120, 200, 40, 9].into_iter().flat_map(|width| sets.map(|set| (width, set))) {
                let fields = table.fields().filter(|field| set.contains(&field.show));
                let columns: Vec<Column> =
                    fields.map(|field| Column { name: field.name.into(), kind: field.kind }).collect();
                let cells: Vec<_> = columns.iter().map(|column| long_cell(column.kind)).collect();
                let room =
                    sinks::TableRoom { width, keeps: table.kept_columns().to_vec(), ..sinks::TableRoom::default() };
                let out = sinks::Out::new(Vec::new());
                let mut sink = sinks::TableWriter::new(out, sinks::FormatOptions::default()).with_room(Some(room));
                sink.begin(&Columns(columns), None).unwrap();
                assert_eq!(sink.row(&cells).unwrap(), Next::More);
                sink.end(&Accounting::default()).unwrap();
                let text = String::from_utf8(sink.into_out().into_inner()).unwrap();
                for line in text.lines() {
                    assert!(sinks::width_of(line) <= width, "{} at {width}: {line}", table.name());
                }
            }
        }
    }

    #[test]
    fn the_list_of_tables_has_those_of_all_commands() {
        let mut shown: Vec<&str> = Vec::new();
        for table in COMMANDS.iter().flat_map(|command| command.tables) {
            if !shown.contains(&table.name()) {
                shown.push(table.name());
            }
        }
        let listed: Vec<&str> = tables::TABLES.iter().map(|table| table.schema.name()).collect();
        assert_eq!(shown, listed);
    }

    #[test]
    fn no_command_has_two_flags_of_one_name() {
        for command in COMMANDS {
            let mut longs: Vec<&str> =
                FLAGS.iter().filter(|flag| flag.scope.meets(command.scope)).map(|flag| flag.long).collect();
            let count = longs.len();
            longs.sort_unstable();
            longs.dedup();
            assert_eq!(longs.len(), count, "{}", command.name);
            let is_flag = |(long, _): &(&str, &str)| FLAGS.iter().any(|flag| flag.long == *long);
            assert!(command.refusals.iter().all(is_flag), "{}", command.name);
        }
    }

    #[test]
    fn what_stands_below_has_its_place_in_the_help() {
        let mut tree = tree(COMMANDS);
        let help = tree.find_subcommand_mut("sockets").unwrap().render_long_help().to_string();
        assert!(help.contains("kill  Close TCP"), "{help}");
        let below: Vec<&str> =
            tree.find_subcommand("nat").unwrap().get_subcommands().map(clap::Command::get_name).collect();
        assert_eq!(below, ["top", "stats", "events", "advise", "delete", "stateless"]);
    }
}
