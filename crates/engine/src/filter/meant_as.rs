//! Values as other tools write them, as the values that fields have: states of ss, abstract unix sockets, patterns of a
//! shell.

/// States that ss writes otherwise, or that its filter has for several, as ours. A field takes those that it has.
const STATES: &[(&[&str], &[&str])] = &[
    (&["estab"], &["established"]),
    (&["fin_wait_1"], &["fin_wait1"]),
    (&["fin_wait_2"], &["fin_wait2"]),
    (&["closed"], &["close", "unconn"]),
    (&["listening"], &["listen"]),
];

/// States that ss calls connected; all but the first are synchronized.
const CONNECTED: &[&str] = &[
    "syn_sent",
    "syn_recv",
    "new_syn_recv",
    "established",
    "fin_wait1",
    "fin_wait2",
    "time_wait",
    "close_wait",
    "last_ack",
    "closing",
];

/// States that ss keeps in small sockets, and the others.
const BUCKET: &[&str] = &["syn_recv", "new_syn_recv", "time_wait"];
const BIG: &[&str] = &[
    "established",
    "syn_sent",
    "fin_wait1",
    "fin_wait2",
    "close",
    "unconn",
    "close_wait",
    "last_ack",
    "listen",
    "closing",
    "bound_inactive",
];

/// The states that a word of ss, in lower case with `_`, stands for; none for another word. Words for several are of
/// sockets, whose states are among `names`.
pub(super) fn states(word: &str, names: &[&str]) -> &'static [&'static str] {
    let are_of_sockets = names.contains(&"fin_wait1");
    match word {
        "connected" | "synchronized" | "bucket" | "big" if !are_of_sockets => &[],
        "connected" => CONNECTED,
        "synchronized" => CONNECTED.get(1..).unwrap_or(&[]),
        "bucket" => BUCKET,
        "big" => BIG,
        _ => STATES.iter().find(|(words, _)| words.contains(&word)).map_or(&[], |(_, states)| states),
    }
}

/// The names that a unix socket may have whose name is written so. ss writes each zero byte of an abstract name as `@`.
pub(super) fn unix_names(written: &[u8]) -> Vec<Box<[u8]>> {
    let mut names = vec![written.into()];
    if let [b'@', rest @ ..] = written {
        names.push([&[0], rest].concat().into());
        if rest.contains(&b'@') {
            names.push(written.iter().map(|byte| if *byte == b'@' { 0 } else { *byte }).collect());
        }
    }
    names
}

/// A regular expression over such names whose first character is `@`.
pub(super) fn pattern_of_unix_name(pattern: &str) -> Option<String> {
    let (anchor, rest) = pattern.split_at(usize::from(pattern.starts_with('^')));
    rest.strip_prefix('@').map(|rest| format!("{anchor}[@\\x00]{rest}"))
}

/// The regular expression for a pattern of a shell, without anchors that change nothing.
pub(super) fn regex_of(pattern: &[u8]) -> String {
    let text = String::from_utf8_lossy(pattern);
    if text.chars().all(|c| c == '*') {
        return String::new();
    }
    let (start, inside) = text.strip_prefix('*').map_or(("^", &*text), |inside| ("", inside));
    let (inside, end) = inside.strip_suffix('*').map_or((inside, "$"), |inside| (inside, ""));
    let mut regex = start.to_owned();
    for c in inside.chars() {
        match c {
            '*' => regex.push_str(".*"),
            c if c.is_ascii_punctuation() && !"_-/@:%&\"'".contains(c) => regex.extend(['\\', c]),
            c => regex.push(c),
        }
    }
    regex + end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_of_a_shell_are_expressions() {
        for (shell, regex) in [
            ("we*", "^we"),
            ("*we", "we$"),
            ("*we*", "we"),
            ("a*b", "^a.*b$"),
            ("a.b+*", "^a\\.b\\+"),
            ("*", ""),
            ("/run/*/x", "^/run/.*/x$"),
        ] {
            assert_eq!(regex_of(shell.as_bytes()), regex, "{shell}");
        }
    }
}
