//! Folds lines at the terminal's width: help and other prose, but no text to copy or parse.

use sinks::width_of;

/// Narrowest text column for which continuation lines are indented to the text.
const TEXT_MIN: usize = 20;

/// Prefixes of lines with commands, which are not folded because users copy them.
const COMMANDS: [&str; 2] = ["netwren ", "sysctl -w "];

/// Folds `text` so that no line is wider than `width`, except for longer words. Continuation lines are indented to the
/// text of their line: to the last gap of two spaces that fits, or slightly more than the line itself if that leaves
/// too little room. Commands stay whole: on their own line, and between backticks if they fit.
pub fn fold(text: &str, width: usize) -> String {
    let mut out = String::with_capacity(text.len() * 2);
    for line in text.split_inclusive('\n') {
        let words = line.trim();
        let is_command = COMMANDS.iter().any(|command| words.starts_with(command)) && !words.contains("  ");
        if is_command || width_of(line.trim_end()) <= width {
            out.push_str(line);
        } else {
            fold_line(line, width, &mut out);
        }
    }
    out
}

fn fold_line(line: &str, width: usize, out: &mut String) {
    let indent = line.len() - line.trim_start_matches(' ').len();
    let gaps = line.rmatch_indices("  ").map(|(gap, _)| gap + 2);
    let gap = gaps.into_iter().find(|gap| line.get(..*gap).is_some_and(|head| width_of(head) <= width));
    let (head, text) = line.split_at(gap.unwrap_or(indent).max(indent));
    let start = width_of(head);
    let longest = text.split_whitespace().map(width_of).max().unwrap_or(0);
    let hang = if start + longest.max(TEXT_MIN) <= width { start } else { indent + 4 };
    out.push_str(head);
    let mut column = start;
    for (place, word) in whole_words(text, width.saturating_sub(hang)).into_iter().enumerate() {
        let word_width = width_of(word.trim_end());
        if column + usize::from(place > 0) + word_width > width && column > hang {
            // The text may have to start on the line after its head.
            out.truncate(out.trim_end_matches(' ').len());
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', hang));
            column = hang;
        } else if place > 0 {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += word_width;
    }
}

/// The words of a text. Text between backticks is one word if it is no wider than `width`.
fn whole_words(text: &str, width: usize) -> Vec<&str> {
    let (mut words, mut start) = (Vec::new(), 0);
    for (at, _) in text.match_indices(' ') {
        let so_far = text.get(start..at).unwrap_or_default();
        let quoted = || {
            let rest = text.get(start..)?;
            let open = rest.find('`')?;
            let close = open + 1 + rest.get(open + 1..)?.find('`')?;
            Some(start + close > at && width_of(rest.get(..=close)?) < width)
        };
        if so_far.matches('`').count() % 2 == 1 && quoted().unwrap_or(false) {
            continue;
        }
        words.push(so_far);
        start = at + 1;
    }
    words.extend(text.get(start..));
    words
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_goes_on_hangs_below_its_text() {
        let option = "  -c, --columns <LIST>  Columns, by name: `a,b`; `+a` adds\n      --by  short\n";
        let hanging = "                        `a,b`; `+a` adds";
        assert_eq!(
            fold(option, 47),
            format!("  -c, --columns <LIST>  Columns, by name:\n{hanging}\n      --by  short\n")
        );
        assert_eq!(fold("\nA line of prose that is long\n", 24), "\nA line of prose that is\nlong\n");
        let command = "  netwren nat stateless plan --publish 8080:172.17.0.2:8080\n";
        assert_eq!(fold(command, 40), command);
        let marked = "filter  one two three four five six seven  [netwren]\n";
        assert_eq!(fold(marked, 30), "filter  one two three four\n        five six seven\n        [netwren]\n");
        let message = "say `netwren support` to it\n";
        assert_eq!(fold(message, 20), "say\n`netwren support` to\nit\n");
        assert_eq!(fold(message, 12), "say `netwren\n    support`\n    to it\n");
        assert_eq!(fold("日本 日本 日本 日本 日本\n", 20), "日本 日本 日本 日本\n日本\n");
        assert_eq!(fold("    deep in here  one two three\n", 20), "    deep in here\n        one two\n        three\n");
    }
}
