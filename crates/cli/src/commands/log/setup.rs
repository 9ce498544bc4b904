//! `netwren log setup`: a rule that logs to a group, printed or installed by nft(8).

use crate::command::{Command, ParsedWords, Positional, Prepared, ready};
use crate::flags::defs::Scope;
use lookups::nft;
use lookups::rules::setup::{LOG_HOOKS, LOG_TABLE, NewLogRule, PREFIX_BYTES_MAX, warn_of_expensive_rules};
use lookups::session::{Session, SessionTarget};
use runtime::exit::Exit;
use runtime::outcome::Outcome;
use runtime::print;

/// The registry's entry.
pub(crate) static COMMAND: Command = Command {
    name: "log setup",
    about: "Write a rule that logs to a group; with --apply --yes install it with nft(8)",
    examples: EXAMPLES,
    scope: Scope::LOG_RULE,
    positional: Positional::None,
    prepare: Some(prepare),
    ..Command::TABLE
};

const EXAMPLES: &str = "\
Examples:
  netwren log setup --group 1 --match 'tcp dport 22 ct state new'      show the rule for nft(8), change nothing
  netwren log setup --group 1 --hook forward --prefix 'fwd: ' --apply --yes
  netwren log setup --undo --yes                                       remove all rules of log setup
";

/// The task of the command.
#[derive(Debug, PartialEq, Eq)]
enum Task {
    /// Print the rule, or apply it.
    Rule { rule: NewLogRule, apply: bool, yes: bool },
    /// Remove the rules.
    Undo { yes: bool },
}

fn asked(words: &ParsedWords<'_>) -> Result<Task, String> {
    let [undo, apply, yes] = ["undo", "apply", "yes"].map(|flag| words.has(flag));
    if undo {
        let other = ["group", "match", "prefix"].into_iter().find(|flag| words.is_given(flag));
        return match other {
            Some(flag) => Err(format!("--undo removes all rules: leave out --{flag}")),
            None if apply => Err("--undo cannot be used with --apply".to_owned()),
            None => Ok(Task::Undo { yes }),
        };
    }
    if yes && !apply {
        return Err("--yes needs --apply or --undo".to_owned());
    }
    let group = words.value("group").ok_or("no group: add --group N, as for `netwren log`")?;
    let group = group.parse().map_err(|_| format!("--group takes one number from 0 to 65535, not `{group}`"))?;
    let hook = words.value("hook").unwrap_or("input");
    let hook = LOG_HOOKS.into_iter().find(|(name, _)| *name == hook).ok_or("no such hook")?;
    let expression = words.text("match").unwrap_or_default();
    if expression.chars().any(|c| c.is_control() || matches!(c, ';' | '#')) {
        return Err("--match takes one nft expression, without line breaks, `;` and `#`".to_owned());
    }
    let prefix = words.text("prefix").unwrap_or_else(|| format!("{}: ", hook.0));
    if prefix.len() > PREFIX_BYTES_MAX || prefix.chars().any(|c| c.is_control() || matches!(c, '"' | '\\')) {
        return Err(format!(
            "--prefix takes up to {PREFIX_BYTES_MAX} bytes without quotation marks and control characters"
        ));
    }
    Ok(Task::Rule { rule: NewLogRule { group, hook, expression, prefix }, apply, yes })
}

fn prepare(words: &ParsedWords<'_>) -> Prepared<'static> {
    let task = asked(words)?;
    let target = SessionTarget { netns: words.text("netns"), ..SessionTarget::default() };
    ready(move || done(target, &task))
}

fn done(target: SessionTarget, task: &Task) -> Outcome {
    // Rules are listed in the session's namespace, which is entered here.
    let _session = match Session::open(target) {
        Ok(session) => session,
        Err(error) => return Outcome::with_message(error.exit(), error),
    };
    match task {
        Task::Rule { rule, apply: true, yes: true } => put_in_place(rule),
        Task::Rule { rule, apply, .. } => {
            let mut messages = Vec::new();
            match nft::check(&rule.script()) {
                Err(error) if error.is_unable() => messages.push(format!("the rule is not checked: {error}")),
                Err(error) => return Outcome::with_message(Exit::Failed, error),
                Ok(()) => {}
            }
            let exit = print::print(&rule.script());
            messages.extend(warn_of_expensive_rules(rule.group));
            if *apply {
                messages.push("nothing was changed, --yes applies this rule".to_owned());
            }
            Outcome { exit, messages }
        }
        Task::Undo { yes } => undo(*yes),
    }
}

fn put_in_place(rule: &NewLogRule) -> Outcome {
    match nft::apply(&rule.script()) {
        Ok(()) => {
            let mut messages = warn_of_expensive_rules(rule.group);
            let group = rule.group;
            messages.push(format!(
                "in place in table {LOG_TABLE} until the next boot: `netwren log --group {group}` shows the logged \
                 packets, `netwren log setup --undo --yes` removes the rule"
            ));
            Outcome { exit: Exit::Ok, messages }
        }
        Err(error) => Outcome::with_message(Exit::Failed, error),
    }
}

fn undo(yes: bool) -> Outcome {
    let words: Vec<&str> = ["list", "table"].into_iter().chain(LOG_TABLE.split(' ')).collect();
    match nft::list(&words) {
        Err(error) if error.is_absent() => {
            Outcome::with_message(Exit::Ok, format!("table {LOG_TABLE} does not exist: nothing to undo"))
        }
        Err(error) => Outcome::with_message(Exit::Failed, error),
        Ok(rules) if !yes => Outcome {
            exit: print::print(&rules),
            messages: vec!["nothing was changed, --yes removes these rules".to_owned()],
        },
        Ok(_) => match nft::apply(&format!("delete table {LOG_TABLE}\n")) {
            Ok(()) => Outcome::with_message(Exit::Ok, format!("table {LOG_TABLE} was removed")),
            Err(error) => Outcome::with_message(Exit::Failed, error),
        },
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::flags::parser;

    fn parse(words: &[&str]) -> Result<Task, clap::Error> {
        let words = words.iter().map(Into::into).collect();
        parser::parse(&COMMAND, words, &[], asked)
    }

    #[test]
    fn a_rule_is_written() {
        let task = parse(&["--group", "5", "--match", "tcp dport 22", "--hook", "forward"]).unwrap();
        let (hook, expression, prefix) = (LOG_HOOKS[2], "tcp dport 22".to_owned(), "forward: ".to_owned());
        let rule = NewLogRule { group: 5, hook, expression, prefix };
        assert_eq!(task, Task::Rule { rule, apply: false, yes: false });
        assert_eq!(parse(&["--undo", "--yes"]).unwrap(), Task::Undo { yes: true });
    }

    #[test]
    fn contradictory_flags_are_refused() {
        for (words, says) in [
            (&[][..], "no group"),
            (&["--group", "1,2"], "takes one number"),
            (&["--group", "1", "--match", "a\nb"], "without line breaks"),
            (&["--group", "1", "--match", "accept; }"], "without line breaks, `;`"),
            (&["--group", "1", "--prefix", "a\"b"], "--prefix takes up to 127"),
            (&["--group", "1", "--yes"], "--yes needs --apply"),
            (&["--undo", "--group", "1"], "leave out --group"),
            (&["--group", "1", "--hook", "ingress"], "invalid value"),
        ] {
            let said = parse(words).unwrap_err().to_string();
            assert!(said.contains(says), "{words:?}: {said}");
        }
    }
}
