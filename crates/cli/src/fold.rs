//! Lines folded at the width of a terminal: help and other prose, never what somebody may copy or a program reads.

/// The narrowest column of text that is worth an indentation as deep as the text's own.
const TEXT_MIN: usize = 20;

/// `text` with no line wider than `width`, as far as its words are not. What goes on hangs below the text of its line:
/// behind the last gap of two spaces, or at the line's indentation. A command that may be copied stays whole.
pub(crate) fn fold(text: &str, width: usize) -> String {
    let mut out = String::with_capacity(text.len() * 2);
    for line in text.split_inclusive('\n') {
        let words = line.trim();
        let is_command = words.starts_with("netwren ") && !words.contains("  ");
        if is_command || line.trim_end().chars().count() <= width {
            out.push_str(line);
        } else {
            fold_line(line, width, &mut out);
        }
    }
    out
}

fn fold_line(line: &str, width: usize, out: &mut String) {
    let indent = line.len() - line.trim_start_matches(' ').len();
    let (head, text) = line.split_at(line.rfind("  ").map_or(indent, |gap| gap + 2).max(indent));
    let start = head.chars().count();
    let hang = if start + TEXT_MIN <= width { start } else { indent + 4 };
    out.push_str(head);
    let mut column = start;
    for (place, word) in text.split(' ').enumerate() {
        let word_width = word.trim_end().chars().count();
        if place > 0 && column + 1 + word_width > width {
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
        assert_eq!(fold("    deep in here  one two three\n", 20), "    deep in here  one\n        two three\n");
    }

    #[test]
    fn issue_10_no_line_of_help_is_wider_than_a_terminal() {
        let mut command = crate::commands();
        for name in ["sockets", "flows", "routes", "nat", "record", "support"] {
            let help = command.find_subcommand_mut(name).map(|below| below.render_long_help().to_string());
            let help = help.unwrap();
            let folded = fold(&help, 80);
            let is_wide = |line: &&str| line.chars().count() > 80 && !line.trim().starts_with("netwren ");
            assert_eq!(folded.lines().find(is_wide), None, "{name}");
            let words = |text: &str| text.split_whitespace().collect::<String>();
            assert_eq!(words(&folded), words(&help), "{name}");
        }
    }
}
