//! Joins words into a line for the shell.

use std::ffi::OsString;

/// Joins the words and quotes them where a shell needs it; `None` if a word has a quote or is not printable ASCII.
pub(crate) fn shell_line(words: &[OsString]) -> Option<String> {
    let is_plain = |text: &str| text.bytes().all(|b| b.is_ascii_alphanumeric() || b"._:/-=,+@%".contains(&b));
    let can_be_quoted = |text: &&str| text.bytes().all(|b| matches!(b, b' '..=b'~') && b != b'\'');
    let quoted = |text: &str| if is_plain(text) && !text.is_empty() { text.to_owned() } else { format!("'{text}'") };
    let words: Option<Vec<String>> = words.iter().map(|word| word.to_str().filter(can_be_quoted).map(quoted)).collect();
    words.map(|words| words.join(" "))
}
