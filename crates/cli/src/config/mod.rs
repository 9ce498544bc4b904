//! Configuration files (`--config FILE`): TOML with the long names of flags as keys.
//!
//! A file is converted to words of a command line and parsed like one, so that a file has exactly the features of
//! flags, validation exists once, and errors have the file's line and column. Flags on the command line take
//! precedence. The keys come from the flag table only.
pub(crate) mod agent;
mod settings;
mod trust;
mod words;

use crate::command::{Command, ParsedWords, Refusal};
use crate::flags::parser;
use runtime::exit::Exit;
use runtime::messages::print_message;
use runtime::outcome::Outcome;
use settings::Setting;
use std::path::{Path, PathBuf};

/// The path of the service's configuration.
pub(crate) const USUAL: &str = "/etc/netwren/log.toml";

/// A parsed file.
pub(crate) struct Config {
    path: PathBuf,
    text: String,
    /// Settings in the order of the file.
    settings: Vec<Setting>,
    /// A warning that other users can read secrets in it.
    warning: Option<String>,
}

impl Config {
    /// Reads `path` for `command`. The error is a complete sentence with file, line and column.
    pub(crate) fn read(path: &Path, command: &Command) -> Result<Config, Outcome> {
        let failed = |text: String| Outcome::with_message(Exit::Failed, text);
        let (text, access) = trust::read(path).map_err(failed)?;
        let config = Config { path: path.to_owned(), text, settings: Vec::new(), warning: None };
        let read = settings::read(&config.text, command);
        let settings = read.map_err(|fault| usage(&config.placed(fault.at, &fault.text)))?;
        let warning = access.warns_of(&settings).map(|secret| format!("{}: {secret}", config.shown()));
        Ok(Config { settings, warning, ..config })
    }

    /// Prints the warning about the file, if there is one.
    pub(crate) fn warn(&self) {
        self.warning.iter().for_each(|text| print_message(text));
    }

    /// Calls `read` with the words of the file and of `line`, and adds the position to errors about the file's words.
    pub(crate) fn parse<T>(
        &self,
        line: &ParsedWords<'_>,
        read: impl FnOnce(&ParsedWords<'_>) -> Result<T, Refusal>,
    ) -> Result<T, Outcome> {
        let words = words::merged(&self.settings, line);
        let refusal =
            match parser::parse(line.command, words, line.commands, |merged| Ok(read(&merged.of_part(line.part)))) {
                Ok(Ok(parsed)) => return Ok(parsed),
                Ok(Err(refusal)) => refusal.into_outcome(),
                Err(error) => Err(words::sentence(&error.to_string())),
            };
        let Outcome { exit, messages } = refusal.unwrap_or_else(|text| usage(&text));
        Err(Outcome { exit, messages: messages.iter().map(|text| self.located(text, line)).collect() })
    }

    /// The keys whose values differ from those in `before`, or that exist in only one of the two.
    pub(crate) fn changed(&self, before: &Config) -> Vec<&'static str> {
        let values = |config: &Config, key: &str| {
            let setting = config.settings.iter().find(|setting| setting.flag.long == key);
            setting.map(|setting| setting.values.iter().map(|value| value.text.clone()).collect::<Vec<_>>())
        };
        let mut keys: Vec<&str> =
            self.settings.iter().chain(&before.settings).map(|setting| setting.flag.long).collect();
        keys.sort_unstable();
        keys.dedup();
        keys.retain(|key| values(self, key) != values(before, key));
        keys
    }

    /// `text` with the position of the setting that it refers to, if that setting is from the file.
    fn located(&self, text: &str, line: &ParsedWords<'_>) -> String {
        match words::culprit(&self.settings, line, text) {
            Some(at) => self.placed(at, text),
            None if line.given_words(&["config"]).is_empty() => format!("{}: {text}", self.shown()),
            None => text.to_owned(),
        }
    }

    fn placed(&self, at: usize, text: &str) -> String {
        let before = self.text.get(..at).unwrap_or(&self.text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        format!("{}:{line}:{column}: {text}", self.shown())
    }

    fn shown(&self) -> Box<str> {
        shown(&self.path)
    }
}

fn usage(text: &str) -> Outcome {
    Outcome::with_message(Exit::Usage, text)
}

/// A path for messages.
fn shown(path: &Path) -> Box<str> {
    sys::escape_bytes(path.as_os_str().as_encoded_bytes())
}
