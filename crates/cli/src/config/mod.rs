//! Configuration files (`--config FILE`): TOML whose keys are the long names of flags.
//!
//! A file becomes the words of a command line and goes through the same parser: nothing can be said in a file that
//! flags cannot say, nothing is checked twice, and what is wrong is reported with the file's line and column. Flags
//! that stand on the command line win. Knows no flag but those in the table.
mod settings;
mod trust;
mod words;

use crate::command::{Command, ParsedWords};
use crate::exit::Exit;
use crate::flags::parser;
use crate::messages::say;
use crate::outcome::Outcome;
use settings::Setting;
use std::path::{Path, PathBuf};

/// Where the service's configuration lies.
pub(crate) const USUAL: &str = "/etc/netwren/log.toml";

/// A file that was read.
pub(crate) struct Config {
    path: PathBuf,
    text: String,
    /// In the order of the file.
    settings: Vec<Setting>,
}

impl Config {
    /// Reads `path` for `command`; says what is to be warned of. The error is a sentence with file, line and column.
    pub(crate) fn read(path: &Path, command: &Command) -> Result<Config, Outcome> {
        let failed = |text: String| Outcome::because(Exit::Failed, text);
        let (text, access) = trust::read(path).map_err(failed)?;
        let config = Config { path: path.to_owned(), text, settings: Vec::new() };
        let read = settings::read(&config.text, command);
        let settings = read.map_err(|fault| usage(&config.placed(fault.at, &fault.text)))?;
        if let Some(secret) = access.warns_of(&settings) {
            say(&format!("{}: {secret}", config.shown()));
        }
        Ok(Config { settings, ..config })
    }

    /// Calls `run` with the words of the file and those of `line`, and gives errors of the file's words their place.
    pub(crate) fn run(
        &self,
        line: &ParsedWords<'_>,
        run: impl FnOnce(&ParsedWords<'_>) -> Result<Outcome, String>,
    ) -> Result<Outcome, String> {
        let words = words::merged(&self.settings, line);
        match parser::parse(line.command, words, line.commands, |merged| Ok(run(merged))) {
            Ok(Ok(Outcome { exit: Exit::Usage, messages })) => {
                let messages = messages.iter().map(|text| self.located(text, line)).collect();
                Ok(Outcome { exit: Exit::Usage, messages })
            }
            Ok(Ok(outcome)) => Ok(outcome),
            Ok(Err(text)) => Ok(usage(&self.located(&text, line))),
            Err(error) => Ok(usage(&self.located(&words::sentence(&error.to_string()), line))),
        }
    }

    /// The keys whose values are others than in `before`, or that only one of the two has.
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

    /// `text` with the place of the setting that it is about, if it is about one of the file.
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
    Outcome::because(Exit::Usage, text)
}

/// A path as it is said.
fn shown(path: &Path) -> Box<str> {
    sys::escaped(path.as_os_str().as_encoded_bytes())
}
