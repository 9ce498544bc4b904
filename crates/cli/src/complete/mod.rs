//! `netwren complete -- WORDS`: proposals for the last word, for shell completions.
//!
//! The scripts in docs/completions pass the words after `netwren` up to the cursor. Proposals come from the registry,
//! the flags and the field tables, and from the host for names of its objects. The first line of the output is the
//! kind of proposals ([`Proposals`]); each further line has a proposal for the whole word, a tab and a short
//! description. Names from outside are proposed only if they are one line of printable text; shells quote them.

mod filter;
mod lists;
mod names;
mod place;
mod proposal;
mod quotes;

use proposal::{Proposal, Proposals};
use record::text;
use runtime::exit::Exit;
use runtime::print;
use std::ffi::OsString;

/// The shells' scripts by file name.
pub(crate) const SCRIPTS: [(&str, &str); 3] = [
    ("netwren.bash", include_str!("scripts/netwren.bash")),
    ("_netwren", include_str!("scripts/_netwren")),
    ("netwren.fish", include_str!("scripts/netwren.fish")),
];

/// Maximum number of proposals.
///
/// Bound: proposals of a completion (`complete::what_is_no_line_of_text_is_not_proposed`). Beyond: further proposals
/// are left out; another letter narrows them. By: a local user, by names of processes.
const PROPOSALS_MAX: usize = 200;

/// The command word, as in `netwren complete -- sockets sta`.
pub(crate) const WORD: &str = "complete";

/// Completes the words after `complete`. Prints nothing on stderr, because it would appear in the line being edited.
pub(crate) fn run(words: &[OsString]) -> Exit {
    let words: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let words = words.strip_prefix(&["--".to_owned()]).unwrap_or(&words);
    let Some((current, before)) = words.split_last() else { return Exit::Ok };
    print::print(&answer(&place::proposals(before, &quotes::removed(current)), &quotes::removed(current)))
}

/// The output lines: proposals that start with the current word, without duplicates.
fn answer(proposals: &Proposals, current: &str) -> String {
    let (first, words) = match proposals {
        Proposals::Files => return "files\n".to_owned(),
        Proposals::Words(words) => ("words\n", words),
        Proposals::Parts(words) => ("parts\n", words),
    };
    let mut text = first.to_owned();
    let mut given: Vec<&str> = Vec::new();
    for Proposal { word, about } in words {
        let is_new = word.starts_with(current) && word != current && !given.contains(&word.as_str());
        if is_new && given.len() < PROPOSALS_MAX && is_shown_as_it_is(word) {
            given.push(word);
            text.push_str(&format!("{word}\t{}\n", beginning(about)));
        }
    }
    text
}

/// True for one line of text that needs no escaping.
fn is_shown_as_it_is(word: &str) -> bool {
    let mut escaped = Vec::new();
    text::put_text(&mut escaped, word.as_bytes());
    escaped == word.as_bytes()
}

/// The part of a sentence that fits next to a word.
fn beginning(about: &str) -> String {
    const ABOUT_MAX: usize = 60;
    let line = about.lines().next().unwrap_or_default();
    match line.char_indices().nth(ABOUT_MAX) {
        Some((cut, _)) => format!("{}…", line.get(..cut).unwrap_or_default().trim_end()),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words proposed for a line whose last word is being completed.
    fn proposed(line: &str) -> Vec<String> {
        let words: Vec<String> = line.split('|').map(str::to_owned).collect();
        let (current, before) = words.split_last().map_or(("", &[][..]), |(last, before)| (last.as_str(), before));
        let text = answer(&place::proposals(before, &quotes::removed(current)), &quotes::removed(current));
        text.lines().map(|line| line.split('\t').next().unwrap_or_default().to_owned()).collect()
    }

    #[track_caller]
    fn check(line: &str, expected: &str) {
        assert_eq!(proposed(line).join(" "), expected, "{line}");
    }

    #[track_caller]
    fn has(line: &str, words: &[&str], lacks: &[&str]) {
        let proposed = proposed(line);
        for word in words {
            assert!(proposed.iter().any(|one| one == word), "{line} lacks {word}: {proposed:?}");
        }
        for word in lacks {
            assert!(proposed.iter().all(|one| one != word), "{line} has {word}: {proposed:?}");
        }
        assert!(proposed.len() <= 1 + PROPOSALS_MAX, "{line}");
    }

    #[test]
    fn issue_15_commands_faces_and_options() {
        has("", &["sockets", "nat", "ss", "help"], &["complete"]);
        check("so", "words sockets");
        has("nat|", &["top", "events"], &["sockets"]);
        has("--netns|x|nat|", &["top"], &["sockets"]);
        check("sockets|--col", "words --color --columns");
        has("sockets|-", &["--by", "--columns", "--help"], &["--samples"]);
        has("help|", &["filters", "columns", "sockets"], &["ss"]);
        has("help|columns|", &["sockets", "nat"], &["record"]);
        check("ss|--mem", "words --memory");
        has("ss|-", &["-t", "-p", "--tcp"], &[]);
        check("ss|st", "words");
        for face in ["netstat", "nstat", "lstf", "conntrack", "tcpdump", "ulogd", "dropwatch"] {
            assert!(proposed(&format!("{face}|-")).len() > 2, "{face}");
        }
    }

    #[test]
    fn issue_15_values_of_options() {
        check("sockets|-o|", "words table wide plain tsv json csv");
        check("sockets|--output=j", "words --output=json");
        check("sockets|--watch=", "words");
        check("sockets|--replay|", "files");
        check("record|", "files");
        check("sockets|--columns|state,local_p", "parts state,local_port");
        check("sockets|--columns=+local_po", "parts --columns=+local_port");
        check("sockets|-c|-local_po", "parts -local_port");
        has("sockets|--by|", &["state", "process"], &["owners"]);
        has("sockets|--sum|", &["recv_q"], &["state", "process"]);
        has("sockets|--sum|b", &["bytes_in"], &["recv_q"]);
        check("sockets|--sort|bytes_in:", "words bytes_in:asc bytes_in:desc");
        check("sockets|--sort|state,bytes_in:d", "words state,bytes_in:desc");
        check("sockets|--pid|", "words");
        has("sockets|--user|", &["root"], &[]);
    }

    #[test]
    fn issue_15_filters_word_by_word() {
        has("sockets|", &["state", "port", "local", "not"], &["and"]);
        check("sockets|local_po", "words local_port");
        has("sockets|state|", &["=", "!=", "in"], &["~", "<"]);
        has("sockets|rtt_us|", &["=", ">", "<"], &["~"]);
        has("sockets|process|", &["~"], &[">"]);
        check("sockets|state|=|est", "words established");
        check("sockets|state=est", "words state=established");
        check("sockets|'state = est", "words state = established");
        check("sockets|state = listen and proc", "words state = listen and process");
        check("sockets|state|in|(listen, esta", "words (listen, established");
        has("sockets|state|=|listen|", &["and", "or"], &["state"]);
        has("sockets|state|=|listen|and|", &["port", "not"], &["and"]);
        has("sockets|state|=|listen|--limit|3|or|", &["port"], &["and"]);
        check("sockets|port|=|4", "words");
        check("sockets|--|sta", "words state");
        has("capture|cut|", &[], &["state"]);
    }

    #[test]
    fn what_is_no_line_of_text_is_not_proposed() {
        let words = ["a\nb", "a\x1b[2J", "a\u{202e}b", "a b", "a$(reboot)"].map(Proposal::named).to_vec();
        assert_eq!(answer(&Proposals::Words(words), "a"), "words\na b\t\na$(reboot)\t\n");
        let many = (0..1000).map(|n| Proposal::named(format!("name{n}"))).collect();
        assert_eq!(answer(&Proposals::Words(many), "").lines().count(), 1 + PROPOSALS_MAX);
    }
}
