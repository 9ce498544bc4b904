//! `netwren agent status`: shows what became of every row that a running agent ships.

use crate::command::{Command, ParsedWords, Positional, Prepared};
use crate::commands::log::status;
use crate::flags::defs::Scope;
use std::path::Path;

/// The registry's entry.
pub(crate) static COMMAND: Command = Command {
    name: "agent status",
    about: "Row counts of a running agent for each part and receiver: shipped, waiting, dropped",
    examples: EXAMPLES,
    scope: Scope::STATUS,
    positional: Positional::None,
    prepare: Some(prepare),
    ..Command::TABLE
};

const EXAMPLES: &str = "\
Examples:
  netwren agent status                                      the service
  netwren agent status --control /run/netwren.sock -o json  the run whose file has `control = \"/run/netwren.sock\"`
";

/// The socket of the service.
const USUAL: &str = "/run/netwren/agent.sock";

fn prepare<'w>(words: &'w ParsedWords<'w>) -> Prepared<'w> {
    status::ask(words, words.file("control").unwrap_or(Path::new(USUAL)))
}
