//! The settings of a TOML file: each key is a flag, and each value the text that follows it on a command line.
use crate::command::Command;
use crate::flags::defs::{FLAGS, Flag, Takes};
use engine::find_nearest;
use std::borrow::Cow;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The key for the filter, which has no flag.
pub(super) const FILTER: &Flag = &Flag {
    long: "filter",
    short: None,
    takes: Takes::Value("FILTER"),
    help: "",
    group: "",
    scope: crate::flags::defs::Scope::NONE,
    default: "",
};

/// Flags that apply to a single run only.
const OF_A_RUN: [&str; 6] = ["config", "record", "replay", "explain", "take-over", "cost"];

/// One setting of the file.
#[derive(Clone)]
pub(super) struct Setting {
    pub(super) flag: &'static Flag,
    /// Byte offset of its key.
    pub(super) at: usize,
    /// Empty for a flag without a value.
    pub(super) values: Vec<SettingValue>,
}

/// A value in the form used on a command line.
#[derive(Clone)]
pub(super) struct SettingValue {
    pub(super) text: String,
    /// Its byte offset.
    pub(super) at: usize,
}

/// An error, and its byte offset.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) at: usize,
    pub(super) text: String,
}

impl Fault {
    pub(super) fn new(at: usize, text: impl Into<String>) -> Fault {
        Fault { at, text: text.into() }
    }
}

/// Parses the whole file.
pub(super) fn parse(text: &str) -> Result<Spanned<DeTable<'_>>, Fault> {
    DeTable::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        Fault::new(at, error.message().replace('\n', ": "))
    })
}

/// Reads the settings for `command` from `text`, in the order of the file.
pub(super) fn read(text: &str, command: &Command) -> Result<Vec<Setting>, Fault> {
    of(parse(text)?.get_ref().iter(), |key| flag(key, command))
}

/// Reads settings in the order of the file; `flag` finds the flag of a key.
pub(super) fn of<'t, 'k: 't>(
    pairs: impl Iterator<Item = (&'t Spanned<Cow<'k, str>>, &'t Spanned<DeValue<'k>>)>,
    flag: impl Fn(&str) -> Result<&'static Flag, String>,
) -> Result<Vec<Setting>, Fault> {
    let mut settings = Vec::new();
    for (key, value) in pairs {
        let flag = flag(key.get_ref()).map_err(|text| Fault::new(key.span().start, text))?;
        if let Some(values) = values(flag, value)? {
            settings.push(Setting { flag, at: key.span().start, values });
        }
    }
    settings.sort_by_key(|setting| setting.at);
    Ok(settings)
}

/// The flag of a key.
pub(super) fn flag(key: &str, command: &Command) -> Result<&'static Flag, String> {
    if key == FILTER.long {
        return Ok(FILTER);
    }
    let goes = |flag: &&Flag| flag.scope.meets(command.scope) && !OF_A_RUN.contains(&flag.long);
    if let Some(flag) = FLAGS.iter().filter(goes).find(|flag| flag.long == key) {
        return Ok(flag);
    }
    if OF_A_RUN.contains(&key) {
        return Err(format!("`{key}` belongs on the command line: it concerns a single run"));
    }
    let known = FLAGS.iter().filter(goes).map(|flag| flag.long).chain([FILTER.long]);
    let hint = find_nearest(&key.replace('_', "-"), known).map(|near| format!("; did you mean `{near}`?"));
    Err(format!("unknown key `{key}`{}", hint.as_deref().unwrap_or(": keys are the long names of flags")))
}

/// The values of a setting; None if it switches a flag off.
fn values(flag: &Flag, value: &Spanned<DeValue<'_>>) -> Result<Option<Vec<SettingValue>>, Fault> {
    let (at, key) = (value.span().start, flag.long);
    let wanted = |text: &str| Err(Fault::new(at, format!("`{key}` takes {text}, not {}", kind(value.get_ref()))));
    match (flag.takes, value.get_ref()) {
        (Takes::Nothing | Takes::Maybe(..), DeValue::Boolean(is_on)) => Ok(is_on.then(Vec::new)),
        (Takes::Nothing | Takes::Counted, _) => wanted("true or false"),
        (Takes::Values(_), DeValue::Array(list)) => {
            list.iter().map(|item| one(flag, item)).collect::<Result<_, _>>().map(Some)
        }
        // A flag whose value is a comma-separated list: group = [1, 5].
        (Takes::Value("LIST"), DeValue::Array(list)) => {
            let texts = list.iter().map(|item| one(flag, item).map(|value| value.text));
            let text = texts.collect::<Result<Vec<_>, _>>()?.join(",");
            Ok(Some(vec![SettingValue { text, at }]))
        }
        (_, DeValue::Array(_)) => wanted("one value"),
        (_, DeValue::Table(_)) => wanted("a value"),
        _ => one(flag, value).map(|value| Some(vec![value])),
    }
}

/// Text, or a number in its original notation.
fn one(flag: &Flag, value: &Spanned<DeValue<'_>>) -> Result<SettingValue, Fault> {
    let (at, key) = (value.span().start, flag.long);
    let text = match value.get_ref() {
        DeValue::String(text) => text.to_string(),
        DeValue::Integer(number) if number.radix() == 10 => number.as_str().to_owned(),
        DeValue::Float(number) => number.as_str().to_owned(),
        other => return Err(Fault::new(at, format!("`{key}` takes text or a number, not {}", kind(other)))),
    };
    if text.contains('\0') {
        return Err(Fault::new(at, format!("`{key}` has a zero byte in it")));
    }
    Ok(SettingValue { text, at })
}

fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "text",
        DeValue::Integer(_) | DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}
