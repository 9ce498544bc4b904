//! Removes shell quoting from words.

/// The word without quotes and backslashes, by the rules of bash, zsh and fish; the last quote may be open. Does not
/// expand anything.
pub(super) fn removed(written: &str) -> String {
    let (mut word, mut quote) = (String::new(), None);
    let mut chars = written.chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), _) if open == c => quote = None,
            (None | Some('"'), '\\') => word.extend(chars.next()),
            _ => word.push(c),
        }
    }
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_and_backslashes() {
        for (written, word) in [
            ("state", "state"),
            ("'state = est", "state = est"),
            ("\"a b\"c", "a bc"),
            ("a\\ b\\'", "a b'"),
            ("'a\\b'", "a\\b"),
            ("\\", ""),
        ] {
            assert_eq!(removed(written), word, "{written}");
        }
    }
}
