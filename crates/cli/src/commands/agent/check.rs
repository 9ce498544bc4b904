//! `netwren agent check`: checks the agent's file, and shows the commands that it would run. Reads and writes nothing
//! else.

use super::{USUAL, read_file};
use crate::command::{Command, Commands, ParsedWords, Positional, Prepared};
use crate::config::agent::{AgentFile, with_words};
use crate::flags::defs::Scope;
use crate::flags::request::Request;
use crate::flags::shell_line::shell_line;
use export::Control;
use record::Columns;
use runtime::exit::Exit;
use runtime::outcome::Outcome;
use runtime::print;
use shipping::{ShipRequest, ShippedRounds};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The registry's entry.
pub(crate) static COMMAND: Command = Command {
    name: "agent check",
    about: "Check the agent's file, and show the commands that it would run",
    examples: EXAMPLES,
    scope: Scope::AGENT,
    positional: Positional::MaybeFile(USUAL),
    prepare: Some(prepare),
    ..Command::TABLE
};

const EXAMPLES: &str = "\
Examples:
  netwren agent check /etc/netwren/agent.toml && systemctl restart netwren-agent
";

fn prepare<'w>(line: &'w ParsedWords<'w>) -> Prepared<'w> {
    Ok(Box::new(|| {
        let checked = read_file(line).and_then(|file| {
            file.warn();
            check(&file, line.commands).map(|(text, troubles)| (file, text, troubles))
        });
        Ok(match checked {
            Ok((file, text, mut troubles)) => {
                let control = file.control.as_deref().map(Control::check_directory);
                troubles.extend(control.and_then(Result::err).map(|error| format!("control: {error}")));
                let exit = print::print_prose(&text);
                Outcome { exit: if troubles.is_empty() { exit } else { Exit::Failed }, messages: troubles }
            }
            Err(outcome) => outcome,
        })
    }))
}

/// The part's words for a shell, without passwords.
fn line_of(words: &ParsedWords<'_>, ship: Option<&ShipRequest>) -> String {
    let mut line = words.given_words(&["to"]);
    // Targets are shown without their passwords.
    line.extend(ship.iter().flat_map(|ship| &ship.targets).map(|target| format!("--to={target}").into()));
    let filter = words.values("filter").join(" ");
    line.extend((!filter.is_empty()).then(|| filter.into()));
    shell_line(&line).unwrap_or_else(|| "… (its words have quotes or other letters than ASCII)".to_owned())
}

/// Checks every part. Returns the commands in words, and what would keep them from working for this user.
pub(super) fn check(file: &AgentFile, commands: Commands) -> Result<(String, Vec<String>), Outcome> {
    let (mut text, mut troubles) = (String::new(), Vec::new());
    for part in &file.parts {
        let read = |words: &ParsedWords<'_>| {
            drop(words.prepare()?);
            let mut ship = Request::of(words)?.ship;
            let _ =
                writeln!(text, "[{}] netwren {} {}", part.0.name, words.command.name, line_of(words, ship.as_ref()));
            if let (Some(ship), Some(table), true) = (&ship, words.table(), words.is_given("watch")) {
                // Which formats a table has does not depend on its columns.
                ShippedRounds::check(table.name(), ship, &Columns(Vec::new()))?;
            }
            if let Some(spool) = ship.as_mut().and_then(|ship| ship.spool.as_mut()).filter(|_| file.spool.is_some()) {
                // The agent makes the directory of all parts.
                spool.dir.pop();
            }
            Ok(ship.as_ref().map(ShipRequest::find_troubles).unwrap_or_default())
        };
        troubles.extend(with_words(part, commands, None, read)?);
    }
    let mut files = BTreeMap::new();
    for (target, name) in file.output_files() {
        if let Some(other) = files.insert(target.clone(), name) {
            let text =
                format!("[{other}] and [{name}] would write to the same file, {target}: use {{part}} in its name");
            return Err(Outcome::with_message(Exit::Usage, text));
        }
    }
    Ok((text, troubles))
}
