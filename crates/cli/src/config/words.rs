//! Merges a file and the flags of a command line into one command line.
use super::settings::{FILTER, Setting};
use crate::command::ParsedWords;
use std::ffi::OsString;

/// The file's settings that the command line does not override, followed by the words of the command line.
pub(super) fn merged(settings: &[Setting], line: &ParsedWords<'_>) -> Vec<OsString> {
    let mut words = Vec::new();
    for setting in settings.iter().filter(|setting| !is_overruled(setting, line) && !is_filter(setting)) {
        let long = setting.flag.long;
        match setting.values.as_slice() {
            // An empty list adds no words.
            [] if setting.flag.takes.takes_next_word() => {}
            [] => words.push(format!("--{long}").into()),
            values => words.extend(values.iter().map(|value| format!("--{long}={}", value.text).into())),
        }
    }
    words.extend(line.given_words(&["config"]));
    let of_file = settings.iter().find(|setting| is_filter(setting) && !is_overruled(setting, line));
    let filter = line.values(FILTER.long).into_iter().map(OsString::from);
    let filter: Vec<OsString> =
        filter.chain(of_file.into_iter().flat_map(|s| &s.values).map(|value| value.text.clone().into())).collect();
    if !filter.is_empty() {
        words.push("--".into());
        words.extend(filter);
    }
    words
}

fn is_filter(setting: &Setting) -> bool {
    setting.flag.long == FILTER.long
}

fn is_overruled(setting: &Setting, line: &ParsedWords<'_>) -> bool {
    if is_filter(setting) { !line.values(FILTER.long).is_empty() } else { line.is_given(setting.flag.long) }
}

/// The offset of the setting that an error with this text refers to: the first setting whose flag it names, and among
/// several values the quoted one.
pub(super) fn culprit(settings: &[Setting], line: &ParsedWords<'_>, text: &str) -> Option<usize> {
    let named = |setting: &&Setting| {
        let words: &[&str] = match setting.flag.long {
            "filter" => &["filter, column"],
            "columns" => &["--columns", "unknown column"],
            long => &[&format!("--{long}")],
        };
        words.iter().find_map(|word| named_at(text, word))
    };
    let of_file = settings.iter().filter(|setting| !is_overruled(setting, line));
    let (_, setting) = of_file.filter_map(|setting| Some((named(&setting)?, setting))).min_by_key(|(at, _)| *at)?;
    let mut quoted = text.split('`').skip(1).step_by(2).filter(|quoted| !quoted.is_empty());
    let value = quoted.find_map(|quoted| setting.values.iter().find(|value| value.text.starts_with(quoted)));
    Some(value.or(setting.values.first()).map_or(setting.at, |value| value.at))
}

/// The offset of `word` as a whole word in `text`.
fn named_at(text: &str, word: &str) -> Option<usize> {
    let goes_on = |c: char| c.is_ascii_alphanumeric() || c == '-';
    text.match_indices(word).map(|(at, _)| at).find(|at| {
        let rest = text.get(at + word.len()..).unwrap_or_default();
        !rest.starts_with(goes_on)
    })
}

/// clap's message without its hints about command lines.
pub(super) fn sentence(text: &str) -> String {
    let text = text.strip_prefix("error: ").unwrap_or(text);
    let text = text.split("\n\nFor more information").next().unwrap_or(text);
    let text = text.split("\n\nUsage:").next().unwrap_or(text);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn flags_are_found_as_whole_words() {
        assert_eq!(named_at("--spool-max takes a size", "--spool"), None);
        assert_eq!(named_at("use --spool-max with --spool DIR", "--spool"), Some(21));
    }

    #[test]
    fn what_clap_says_becomes_a_sentence() {
        let text = "error: invalid value 'x' for '--when-full <WORD>'\n  [possible values: a, b]\n\nFor more \
                    information, try '--help'.\n";
        assert_eq!(sentence(text), "invalid value 'x' for '--when-full <WORD>' [possible values: a, b]");
    }
}
