//! Masks values that byte comparisons must ignore, all in this one place.
//!
//! Only values that change by themselves between two runs on an idle table are masked: remaining and elapsed times.
//! Everything else must be equal.

/// Marks in the text of `ss`: the text between a mark and one of its ends changes.
const SS: &[(&str, &[char])] = &[
    ("timer:(keepalive,", &[',']),
    ("timer:(timewait,", &[',']),
    ("timer:(on,", &[',']),
    ("timer:(persist,", &[',']),
    ("timer:(unknown,", &[',']),
    (" lastsnd:", &[' ', '\n']),
    (" lastrcv:", &[' ', '\n']),
    (" lastack:", &[' ', '\n']),
    (" last_data_sent:", &[' ', '\n']),
    (" last_data_recv:", &[' ', '\n']),
    (" last_ack_recv:", &[' ', '\n']),
    (" busy:", &[' ', '\n']),
    (" rwnd_limited:", &[' ', '\n']),
    (" sndbuf_limited:", &[' ', '\n']),
];

/// Marks in the timer column of `netstat`; its probes and retransmits are compared.
const NETSTAT: &[(&str, &[char])] = &[
    (" keepalive (", &['/']),
    (" timewait (", &['/']),
    (" on (", &['/']),
    (" on2 (", &['/']),
    (" probe (", &['/']),
    (" unkn-", &['/']),
];

/// Text of `ss` with running times as `*` and without blanks at line ends, because the masked cells and their padding
/// vary in width.
pub fn ss(text: &str) -> String {
    trailing_blanks(&mask_between(text, SS))
}

/// Text of `netstat` with running times as `*` and without blanks at line ends.
pub fn netstat(text: &str) -> String {
    trailing_blanks(&mask_between(text, NETSTAT))
}

/// Marks in the output of `conntrack`, except for the timeout of a text line.
const CONNTRACK: &[(&str, &[char])] = &[
    ("conntrack v", &[' ']),
    ("system. Version ", &['\n']),
    (" use=", &[' ', '\n']),
    ("<use>", &['<']),
    ("<timeout>", &['<']),
    ("-t ", &[' ', '\n']),
    (" delta-time=", &[' ', '\n']),
    ("<deltatime>", &['<']),
];

/// Text, XML or commands of `conntrack` with timeouts, reference counts, ages and the tool's version as `*`.
pub fn conntrack(text: &str) -> String {
    by_line(text, |line| mask_between(&without_timeout(line), CONNTRACK))
}

/// Masks each line separately, because a mark missing from a line would otherwise match in a later one.
fn by_line(text: &str, masked: impl Fn(&str) -> String) -> String {
    text.split('\n').map(masked).collect::<Vec<_>>().join("\n")
}

/// Like [`conntrack`], with entry ids also as `*`: for two tables created alike.
pub fn conntrack_twins(text: &str) -> String {
    by_line(&conntrack(text), |line| mask_between(line, &[(" use=* id=", &[' ']), ("<id>", &['<'])]))
}

/// A text line with `*` for the number after `tcp      6 `, or for an expectation before `proto=`.
fn without_timeout(line: &str) -> String {
    let head = line.find("src=").map_or(line, |at| &line[..at]);
    // A leading time ends in a tab, not in a blank.
    let mut words: Vec<&str> = head.split([' ', '\t']).collect();
    let tab = head.contains('\t');
    let filled: Vec<usize> = (0..words.len()).filter(|at| !words[*at].is_empty()).collect();
    let word = |n: usize| filled.get(n).map_or("", |at| words[*at]);
    let is_tag = |word: &str| word.starts_with('[') && !word.contains('=');
    let tag = [0, 1].into_iter().take_while(|n| is_tag(word(*n))).count();
    let family = if matches!(word(tag), "ipv4" | "ipv6") { 2 } else { 0 };
    let place = if word(tag + 1).starts_with("proto=") { tag } else { tag + family + 2 };
    match filled.get(place).copied() {
        Some(at) if head.len() < line.len() && words[at].bytes().all(|b| b.is_ascii_digit()) => {
            words[at] = "*";
            let joined = words.join(" ");
            (if tab { joined.replacen(' ', "\t", 1) } else { joined }) + &line[head.len()..]
        }
        _ => line.to_owned(),
    }
}

/// JSON lines with the numbers of these keys as `*`.
pub fn json(text: &str, keys: &[&str]) -> String {
    keys.iter().fold(text.to_owned(), |text, key| {
        let mark = format!("\"{key}\":");
        mask_between(&text, &[(mark.as_str(), &[',', '}', ']', '\n'])])
    })
}

/// The text without blanks at line ends.
pub fn trailing_blanks(text: &str) -> String {
    let lines = text.split('\n').map(|line| line.trim_end_matches(' '));
    lines.collect::<Vec<_>>().join("\n")
}

/// The lines in byte order, because the kernel's dump order is unspecified.
pub fn sorted_lines(text: &str) -> String {
    let mut lines = text.lines().collect::<Vec<_>>();
    lines.sort_unstable();
    lines.iter().flat_map(|line| [line, "\n"]).collect()
}

/// Like [`sorted_lines`], but the first `head` lines (titles, column names) stay at the top.
pub fn sorted_below(text: &str, head: usize) -> String {
    let at = text.match_indices('\n').nth(head.wrapping_sub(1)).map_or(0, |(at, _)| at + 1);
    let (head, rest) = text.split_at(if head == 0 { 0 } else { at });
    head.to_owned() + &sorted_lines(rest)
}

/// Replaces the text after each mark, up to one of its ends, by `*`.
fn mask_between(text: &str, marks: &[(&str, &[char])]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    loop {
        let hits = marks.iter().filter_map(|(mark, ends)| rest.find(mark).map(|at| (at + mark.len(), *ends)));
        let Some((from, ends)) = hits.min_by_key(|(from, _)| *from) else {
            return out + rest;
        };
        let (before, after) = rest.split_at(from);
        out += before;
        out.push('*');
        rest = after.split_at(after.find(ends).unwrap_or(after.len())).1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ss_times_are_masked_and_nothing_else() {
        let text = "a timer:(keepalive,66min,0) ino:7  \n\t cubic lastsnd:3536 lastrcv:1 lastack:9\n";
        assert_eq!(ss(text), "a timer:(keepalive,*,0) ino:7\n\t cubic lastsnd:* lastrcv:* lastack:*\n");
    }

    #[test]
    fn netstat_times_are_masked_and_probes_stay() {
        assert_eq!(netstat("x keepalive (7196.34/0/1)\ny off (0.00/0/0)"), "x keepalive (*/0/1)\ny off (0.00/0/0)");
    }

    #[test]
    fn of_conntrack_only_what_moves() {
        for (line, masked) in [
            ("tcp      6 119 TIME_WAIT src=1 mark=0 use=1", "tcp      6 * TIME_WAIT src=1 mark=0 use=*"),
            ("ipv4     2 udp      17 29 src=1 use=2 id=7", "ipv4     2 udp      17 * src=1 use=* id=7"),
            ("tcp      6 src=1 [OFFLOAD] use=2", "tcp      6 src=1 [OFFLOAD] use=*"),
            ("    [NEW] tcp      6 120 SYN_SENT src=1", "    [NEW] tcp      6 * SYN_SENT src=1"),
            ("[1.5]\t [UPDATE] icmp     1 30 src=1", "[1.5]\t [UPDATE] icmp     1 * src=1"),
            ("299 proto=6 src=1 dst=2", "* proto=6 src=1 dst=2"),
            ("-A -t 59 -u UNSET -s 1", "-A -t * -u UNSET -s 1"),
            ("<timeout>5</timeout><mark>7</mark><use>1</use>", "<timeout>*</timeout><mark>7</mark><use>*</use>"),
            ("conntrack v1.4.7 (conntrack-tools): 3 flow", "conntrack v* (conntrack-tools): 3 flow"),
        ] {
            assert_eq!(conntrack(line), masked);
        }
        assert_eq!(conntrack_twins("udp      17 29 src=1 id=4 use=2 id=7"), "udp      17 * src=1 id=4 use=* id=*");
    }

    #[test]
    fn json_numbers_by_key() {
        let row = "{\"timer\":\"keepalive\",\"timer_ms\":7196340,\"uid\":0,\"age_ms\":5}\n";
        let masked = "{\"timer\":\"keepalive\",\"timer_ms\":*,\"uid\":0,\"age_ms\":*}\n";
        assert_eq!(json(row, &["timer_ms", "age_ms"]), masked);
    }

    #[test]
    fn lines_sorted_with_and_without_a_head() {
        assert_eq!(sorted_lines("b\na\n"), "a\nb\n");
        assert_eq!(sorted_below("head\nb\na\n", 1), "head\na\nb\n");
        assert_eq!(sorted_below("b\na\n", 0), "a\nb\n");
        assert_eq!(sorted_below("", 1), "");
    }
}
