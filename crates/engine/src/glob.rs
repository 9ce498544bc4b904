//! Shell patterns over bytes: `*`, `?`, `[a-z]`, `[!a-z]`, `\x`.

/// True if the whole `text` matches `pattern`.
///
/// Needs no recursion: after a mismatch only the last `*` takes one more byte, so the cost is at most the product of
/// both lengths. A `[` that is never closed is literal.
pub fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while let Some(&byte) = text.get(t) {
        if pattern.get(p) == Some(&b'*') {
            p += 1;
            star = Some((p, t));
            continue;
        }
        if let Some(len) = match_piece(pattern.get(p..).unwrap_or(&[]), byte) {
            p += len;
            t += 1;
            continue;
        }
        let Some((after_star, from)) = star else { return false };
        p = after_star;
        t = from + 1;
        star = Some((after_star, t));
    }
    pattern.get(p..).unwrap_or(&[]).iter().all(|b| *b == b'*')
}

/// Returns the length of the pattern's first piece if it matches `byte`.
fn match_piece(pattern: &[u8], byte: u8) -> Option<usize> {
    match pattern {
        [] => None,
        [b'?', ..] => Some(1),
        [b'[', rest @ ..] => match set(rest, byte) {
            Some((taken, len)) => taken.then_some(1 + len),
            None => (byte == b'[').then_some(1),
        },
        [b'\\', escaped, ..] => (*escaped == byte).then_some(2),
        [first, ..] => (*first == byte).then_some(1),
    }
}

/// Returns whether the set that starts at `pattern` contains `byte`, and its length including the closing bracket.
fn set(pattern: &[u8], byte: u8) -> Option<(bool, usize)> {
    let inverted = matches!(pattern.first(), Some(b'!' | b'^'));
    let start = usize::from(inverted);
    let mut at = start;
    let mut holds = false;
    loop {
        let low = *pattern.get(at)?;
        // A bracket in the first position belongs to the set.
        if low == b']' && at > start {
            return Some((holds != inverted, at + 1));
        }
        match pattern.get(at + 1..at + 3) {
            Some([b'-', high]) if *high != b']' => {
                holds |= (low..=*high).contains(&byte);
                at += 3;
            }
            _ => {
                holds |= low == byte;
                at += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        for (pattern, text, expected) in [
            ("", "", true),
            ("", "a", false),
            ("*", "", true),
            ("***", "abc", true),
            ("/run/*", "/run/x/y", true),
            ("/run/*.sock", "/run/a.sock.sock", true),
            ("/run/*.sock", "/run/a.sock.", false),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("[a-c]x", "bx", true),
            ("[a-c]x", "dx", false),
            ("[!a-c]x", "dx", true),
            ("[^a-c]x", "ax", false),
            ("[]]", "]", true),
            ("[a-]", "-", true),
            ("[a", "[a", true),
            ("[a", "a", false),
            ("\\*", "*", true),
            ("\\*", "x", false),
            ("a\\", "a\\", true),
            ("*a*b*c", "xxaxxbxxc", true),
            ("@*", "@/tmp/x", true),
        ] {
            assert_eq!(matches(pattern.as_bytes(), text.as_bytes()), expected, "{pattern} against {text}");
        }
    }

    #[test]
    fn many_stars_stay_cheap() {
        let pattern = b"*a".repeat(200);
        let text = b"a".repeat(5_000);
        assert!(matches(&pattern, &text));
        assert!(!matches(&[&pattern[..], b"b"].concat(), &text));
    }
}
