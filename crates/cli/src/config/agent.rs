//! The file of an agent: settings of all parts, and a table for each part.

use super::settings::{self, Fault, Setting, SettingValue};
use super::{Config, trust, usage};
use crate::command::{AgentPart, Command, Commands, ParsedWords, PartKind, Refusal};
use crate::flags::defs::{FLAGS, Flag, Scope};
use crate::flags::parser;
use engine::find_nearest;
use export::{Address, Target};
use runtime::exit::Exit;
use runtime::messages::print_message;
use runtime::outcome::Outcome;
use std::path::{Path, PathBuf};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The placeholder for the part's name in a target.
const PART: &str = "{part}";

/// A parsed file.
pub(crate) struct AgentFile {
    /// The control socket.
    pub(crate) control: Option<PathBuf>,
    /// The directory with a spool for each part.
    pub(crate) spool: Option<PathBuf>,
    /// The parts, in the order of the file.
    pub(crate) parts: Vec<(&'static PartKind, Config)>,
}

impl AgentFile {
    /// Reads `path`. The error is a complete sentence with file, line and column.
    pub(crate) fn read(path: &Path, kinds: &'static [PartKind]) -> Result<AgentFile, Outcome> {
        let (text, access) = trust::read(path).map_err(|text| Outcome::with_message(Exit::Failed, text))?;
        let whole = Config { path: path.to_owned(), text, settings: Vec::new(), warning: None };
        let read = settings::parse(&whole.text).and_then(|table| read_tables(table.get_ref(), kinds));
        let Tables { control, spool, parts } = read.map_err(|fault| usage(&whole.placed(fault.at, &fault.text)))?;
        let config = |settings: Vec<Setting>| Config {
            warning: access.warns_of(&settings).map(|secret| format!("{}: {secret}", whole.shown())),
            path: whole.path.clone(),
            text: whole.text.clone(),
            settings,
        };
        let parts: Vec<_> = parts.into_iter().map(|(kind, settings)| (kind, config(settings))).collect();
        if parts.is_empty() {
            let names: Vec<&str> = kinds.iter().map(|kind| kind.name).collect();
            return Err(usage(&format!(
                "{}: nothing to do: add a table for each part, such as [log]; there are {}",
                whole.shown(),
                names.join(", ")
            )));
        }
        Ok(AgentFile { control, spool, parts })
    }

    /// Prints the warning about the file, if there is one.
    pub(crate) fn warn(&self) {
        // The parts share one file, so one warning is enough.
        let warning = self.parts.iter().find_map(|(_, config)| config.warning.as_ref());
        warning.iter().for_each(|text| print_message(text));
    }

    /// The files of the outputs, each with its part.
    pub(crate) fn output_files(&self) -> Vec<(String, &'static str)> {
        let files = self.parts.iter().flat_map(|(kind, config)| {
            let to = config.settings.iter().filter(|setting| setting.flag.long == "to");
            let targets = to.flat_map(|setting| &setting.values).filter_map(|value| value.text.parse::<Target>().ok());
            targets
                .filter(|target| matches!(target.address, Address::File(_)))
                .map(|target| (target.to_string(), kind.name))
        });
        files.collect()
    }

    /// The differences from `before` in words: parts that only one of both has, and changed keys of the others except
    /// `but`, which follows its settings by itself.
    pub(crate) fn differences(&self, before: &AgentFile, but: &Command) -> Vec<String> {
        let find = |file: &AgentFile, name: &str| file.parts.iter().position(|(kind, _)| kind.name == name);
        let only = |one: &AgentFile, other: &AgentFile| {
            let names = one.parts.iter().map(|(kind, _)| kind.name).filter(|name| find(other, name).is_none());
            names.map(|name| format!("[{name}]")).collect::<Vec<_>>()
        };
        let mut all = [only(self, before), only(before, self)].concat();
        for (kind, config) in self.parts.iter().filter(|(kind, _)| kind.command.name != but.name) {
            let old = find(before, kind.name).and_then(|place| before.parts.get(place));
            let keys = old.map(|(_, old)| config.changed(old)).unwrap_or_default();
            all.extend(keys.into_iter().map(|key| format!("`{key}` of [{}]", kind.name)));
        }
        if self.control != before.control {
            all.push("`control`".to_owned());
        }
        all
    }
}

/// The contents of a file.
struct Tables {
    control: Option<PathBuf>,
    spool: Option<PathBuf>,
    parts: Vec<(&'static PartKind, Vec<Setting>)>,
}

fn read_tables(table: &DeTable<'_>, kinds: &'static [PartKind]) -> Result<Tables, Fault> {
    let is_part = |value: &Spanned<DeValue<'_>>| matches!(value.get_ref(), DeValue::Table(_));
    let shared = table.iter().filter(|(_, value)| !is_part(value));
    let mut shared = settings::of(shared, |key| shared_flag(key, kinds))?;
    let control = shared.iter().position(|setting| setting.flag.long == "control").map(|place| shared.remove(place));
    let path = |setting: &Setting| setting.values.first().map(|value| PathBuf::from(&value.text));
    let spool = shared.iter().find(|setting| setting.flag.long == "spool").and_then(path);
    let control = control.as_ref().and_then(path);
    let mut parts = Vec::new();
    for (key, value) in table.iter().filter(|(_, value)| is_part(value)) {
        let DeValue::Table(own) = value.get_ref() else { continue };
        let at = key.span().start;
        let Some(kind) = kinds.iter().find(|kind| kind.name == key.get_ref()) else {
            let near = find_nearest(key.get_ref(), kinds.iter().map(|kind| kind.name));
            let names: Vec<&str> = kinds.iter().map(|kind| kind.name).collect();
            let hint = near
                .map_or_else(|| format!("there are {}", names.join(", ")), |near| format!("did you mean [{near}]?"));
            return Err(Fault::new(at, format!("unknown part [{}]; {hint}", key.get_ref())));
        };
        let own = settings::of(own.iter(), |key| match key {
            "limit" | "for" => Err(format!("`{key}` would end the part: the agent runs its parts until it ends")),
            "control" => Err("`control` belongs at the top of the file: all parts have one socket".to_owned()),
            key => settings::flag(key, kind.command),
        })?;
        parts.push((at, kind, merged(kind, own, &shared, at)));
    }
    parts.sort_by_key(|(at, ..)| *at);
    for (at, kind, settings) in &parts {
        if !settings.iter().any(|setting| setting.flag.long == "to") {
            let text = format!("[{}] has no `to`: add one there, or at the top of the file for all parts", kind.name);
            return Err(Fault::new(*at, text));
        }
    }
    Ok(Tables { control, spool, parts: parts.into_iter().map(|(_, kind, settings)| (kind, settings)).collect() })
}

/// The flag of a key at the top of the file.
fn shared_flag(key: &str, kinds: &[PartKind]) -> Result<&'static Flag, String> {
    let goes = |flag: &&Flag| flag.scope.meets(Scope::SHIPPED) || flag.long == "all-netns";
    if let Some(flag) = FLAGS.iter().filter(goes).find(|flag| flag.long == key) {
        return Ok(flag);
    }
    let takes = kinds.iter().find(|kind| kind.command.takes(key) || key == settings::FILTER.long);
    Err(match takes {
        Some(kind) => format!("`{key}` belongs to a part, such as [{}]", kind.name),
        None => {
            let known = FLAGS.iter().filter(goes).map(|flag| flag.long);
            let near = find_nearest(&key.replace('_', "-"), known).map(|near| format!("; did you mean `{near}`?"));
            format!("unknown key `{key}`{}", near.unwrap_or_default())
        }
    })
}

/// Merges a part's own settings with the shared ones, and adds its defaults.
fn merged(kind: &PartKind, own: Vec<Setting>, shared: &[Setting], at: usize) -> Vec<Setting> {
    let has = |settings: &[Setting], long: &str| settings.iter().any(|setting| setting.flag.long == long);
    let has_own_receivers = has(&own, "to");
    let mut all = own;
    for setting in shared {
        let long = setting.flag.long;
        // Certificates and rotation belong to the receivers next to them.
        let is_for_others = has_own_receivers && ["tls-", "rotate-"].iter().any(|start| long.starts_with(start));
        let Ok(flag) = settings::flag(long, kind.command) else { continue };
        if is_for_others || has(&all, long) {
            continue;
        }
        let mut setting = Setting { flag, ..setting.clone() };
        for value in &mut setting.values {
            // Outputs of two parts may have the same receiver, and cannot share a spool.
            if long == "spool" {
                value.text = format!("{}/{}", value.text.trim_end_matches('/'), kind.name);
            }
        }
        all.push(setting);
    }
    for (long, value) in kind.usual {
        let Ok(flag) = settings::flag(long, kind.command) else { continue };
        if !has(&all, long) {
            let values = value.iter().map(|text| SettingValue { text: (*text).to_owned(), at }).collect();
            all.push(Setting { flag, at, values });
        }
    }
    let targets = all.iter_mut().filter(|setting| setting.flag.long == "to").flat_map(|setting| &mut setting.values);
    targets.for_each(|value| value.text = value.text.replace(PART, kind.name));
    all
}

impl AgentPart {
    /// Reads its settings again.
    pub(crate) fn read(&self) -> Result<Config, Outcome> {
        let file = AgentFile::read(&self.file, self.kinds)?;
        let part = file.parts.into_iter().find(|(kind, _)| kind.name == self.kind.name);
        part.map(|(_, config)| config).ok_or_else(|| {
            usage(&format!("{}: [{}] was removed from the file", super::shown(&self.file), self.kind.name))
        })
    }
}

/// Calls `read` with the words of a part.
pub(crate) fn with_words<T>(
    (kind, config): &(&'static PartKind, Config),
    commands: Commands,
    part: Option<&AgentPart>,
    read: impl FnOnce(&ParsedWords<'_>) -> Result<T, Refusal>,
) -> Result<T, Outcome> {
    let parsed = parser::parse(kind.command, Vec::new(), commands, |line| {
        let line = line.of_part(part);
        // It reads its settings by itself, because it follows their changes.
        if part.is_some() && kind.command.scope.meets(Scope::LOG_SERVICE) {
            return Ok(read(&line).map_err(|refusal| refusal.into_outcome().unwrap_or_else(|text| usage(&text))));
        }
        Ok(config.parse(&line, read))
    });
    parsed.unwrap_or_else(|error| Err(usage(&error.to_string())))
}
