//! Translates values in the notation of other tools to values of our fields: ss states, abstract unix sockets and shell
//! patterns.

/// States that ss spells differently, or that its filter uses for several states, with our states for each. A field
/// uses only those that it has.
const STATES: &[(&[&str], &[&str])] = &[
    (&["estab"], &["established"]),
    (&["fin_wait_1"], &["fin_wait1"]),
    (&["fin_wait_2"], &["fin_wait2"]),
    (&["closed"], &["close", "unconn"]),
    (&["listening"], &["listen"]),
];

/// The states that ss calls connected; all but the first are also synchronized.
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

/// The states of minisockets, which ss calls `bucket`, and the other states, which ss calls `big`.
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

/// Returns our states for a word of ss, in lower case with `_`; empty for any other word. `connected`, `synchronized`,
/// `bucket` and `big` only apply if `names` are states of sockets.
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

/// Returns the unix socket names that `written` may mean. ss writes each zero byte of an abstract name as `@`.
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

/// Rewrites a regular expression that starts with `@` so that it also matches the zero byte of abstract names.
pub(super) fn pattern_of_unix_name(pattern: &str) -> Option<String> {
    let (anchor, rest) = pattern.split_at(usize::from(pattern.starts_with('^')));
    rest.strip_prefix('@').map(|rest| format!("{anchor}[@\\x00]{rest}"))
}

/// Converts a shell pattern to a regular expression, without anchors that change nothing.
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
