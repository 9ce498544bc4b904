//! `netwren help filters`, `netwren help columns [TABLE]`: help topics other than commands.

use crate::command::Commands;
use engine::find_nearest;
use runtime::exit::Exit;
use runtime::messages::print_message;
use runtime::print;
use std::ffi::OsString;

/// The filter language, with examples that a test runs.
pub(crate) const FILTERS: &str = include_str!("filters.txt");

/// Shows the topic named by the words after `help`; `None` if it is unknown.
pub(crate) fn run(words: &[OsString], commands: Commands) -> Option<Exit> {
    let words: Vec<&str> = words.iter().map(|word| word.to_str().unwrap_or_default()).collect();
    match words[..] {
        ["filters" | "filter"] => Some(print::print_prose(FILTERS)),
        ["columns" | "fields"] => Some(print::print_prose(&tables(commands))),
        ["columns" | "fields", ref table @ ..] => Some(columns(&table.join(" "), commands)),
        _ => None,
    }
}

/// The tables, one per line.
fn tables(commands: Commands) -> String {
    let mut text = String::from("Tables, with fields for --columns, --by, --sort and filters:\n\n");
    for command in commands.iter().filter(|command| !command.tables.is_empty()) {
        text.push_str(&format!("  netwren help columns {}\n", command.name));
    }
    text.push_str("\nFor one command: `netwren COMMAND --columns help`.\n");
    text
}

/// Prints the fields of a command's table.
fn columns(name: &str, commands: Commands) -> Exit {
    let tables = || commands.iter().filter(|command| !command.tables.is_empty());
    let found = tables().find(|command| command.name == name).and_then(|command| command.tables.first());
    match found {
        Some(table) => print::print_prose(&engine::columns::help(*table)),
        None => {
            let hint = find_nearest(name, tables().map(|command| command.name));
            let hint = hint.map_or_else(
                || "`netwren help columns` lists the tables".to_owned(),
                |hint| format!("did you mean `netwren help columns {hint}`?"),
            );
            print_message(&format!("unknown table `{}`; {hint}", name.escape_debug()));
            Exit::Usage
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn issue_15_the_language_fits_a_terminal() {
        for line in FILTERS.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
    }
}
