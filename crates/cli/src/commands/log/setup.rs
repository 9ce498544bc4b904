//! `netwren log setup`: a rule that logs to a group, printed or installed by nft(8).

use crate::command::{Command, ParsedWords, Positional};
use crate::flags::defs::Scope;
use host::log_rules::{self, LogRule};
use lookups::nft::{self, NftError};
use lookups::session::{Session, SessionTarget};
use runtime::exit::Exit;
use runtime::outcome::Outcome;
use runtime::print;

/// netwren's own table: deleting it removes the rules installed here, and nothing else.
const TABLE: &str = "inet netwren_log";
/// The available hooks, each with its priority: before filters decide, so that packets dropped by them are seen (raw
/// for prerouting, because packets are not defragmented before -300).
const HOOKS: [(&str, i32); 5] =
    [("prerouting", -300), ("input", -10), ("forward", -10), ("output", -10), ("postrouting", -10)];
/// The kernel's limit (NF_LOG_PREFIXLEN) without the terminating NUL.
const PREFIX_MAX: usize = 127;
/// Bytes to copy of each packet: all headers.
const SNAPLEN: u16 = 128;
/// A rule with a lower threshold wakes the reader so often that it costs more than the records themselves.
const THRESHOLD_MIN: u64 = 32;

/// The registry's entry.
pub(crate) static COMMAND: Command = Command {
    name: "log setup",
    about: "Write a rule that logs to a group; with --apply --yes install it with nft(8)",
    examples: EXAMPLES,
    scope: Scope::LOG_RULE,
    positional: Positional::None,
    check: Some(|words| asked(words).map(drop)),
    run: Some(|words| Ok(done(words, &asked(words)?))),
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
    Rule { rule: Rule, apply: bool, yes: bool },
    /// Remove the rules.
    Undo { yes: bool },
}

/// The requested rule.
#[derive(Debug, PartialEq, Eq)]
struct Rule {
    group: u16,
    hook: &'static str,
    priority: i32,
    /// An nft expression; empty to match every packet.
    matched: String,
    prefix: String,
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
    let (hook, priority) = HOOKS.into_iter().find(|(name, _)| *name == hook).ok_or("no such hook")?;
    let matched = words.text("match").unwrap_or_default();
    if matched.chars().any(|c| c.is_control() || matches!(c, ';' | '#')) {
        return Err("--match takes one nft expression, without line breaks, `;` and `#`".to_owned());
    }
    let prefix = words.text("prefix").unwrap_or_else(|| format!("{hook}: "));
    if prefix.len() > PREFIX_MAX || prefix.chars().any(|c| c.is_control() || matches!(c, '"' | '\\')) {
        return Err(format!("--prefix takes up to {PREFIX_MAX} bytes without quotation marks and control characters"));
    }
    Ok(Task::Rule { rule: Rule { group, hook, priority, matched, prefix }, apply, yes })
}

impl Rule {
    /// A script that replaces the rule for the same group and hook.
    fn script(&self) -> String {
        let Rule { group, hook, priority, matched, prefix } = self;
        let chain = format!("{TABLE} group{group}_{hook}");
        let blank = if matched.is_empty() { "" } else { " " };
        format!(
            "add table {TABLE}\n\
             add chain {chain} {{ type filter hook {hook} priority {priority}; policy accept; }}\n\
             flush chain {chain}\n\
             add rule {chain} {matched}{blank}counter log prefix \"{prefix}\" group {group} snaplen {SNAPLEN}\n"
        )
    }
}

fn done(words: &ParsedWords<'_>, task: &Task) -> Outcome {
    let target = SessionTarget { netns: words.text("netns"), ..SessionTarget::default() };
    // Rules are listed in the session's namespace, which is entered here.
    let _session = match Session::open(target) {
        Ok(session) => session,
        Err(error) => return Outcome::because(error.exit(), error),
    };
    match task {
        Task::Rule { rule, apply: true, yes: true } => put_in_place(rule),
        Task::Rule { rule, apply, .. } => {
            let mut messages = Vec::new();
            match nft::check(&rule.script()) {
                Err(error) if error.is_unable() => messages.push(format!("the rule is not checked: {error}")),
                Err(error) => return Outcome::because(Exit::Failed, error),
                Ok(()) => {}
            }
            let exit = print::print(&rule.script());
            messages.extend(warnings(rule.group));
            if *apply {
                messages.push("nothing was changed, --yes applies this rule".to_owned());
            }
            Outcome { exit, messages }
        }
        Task::Undo { yes } => undo(*yes),
    }
}

fn put_in_place(rule: &Rule) -> Outcome {
    match nft::apply(&rule.script()) {
        Ok(()) => {
            let mut messages = warnings(rule.group);
            let group = rule.group;
            messages.push(format!(
                "in place in table {TABLE} until the next boot: `netwren log --group {group}` shows the logged \
                 packets, `netwren log setup --undo --yes` removes the rule"
            ));
            Outcome { exit: Exit::Ok, messages }
        }
        Err(error) => Outcome::because(Exit::Failed, error),
    }
}

/// Warnings about rules of the group that make logging expensive; empty if rules cannot be listed.
fn warnings(group: u16) -> Vec<String> {
    let listed = nft::list(&["-j", "list", "ruleset"]).ok();
    let rules = listed.and_then(|text| log_rules::parse(text.as_bytes())).unwrap_or_default();
    rules.iter().filter(|rule| rule.group == group).filter_map(dear).collect()
}

fn dear(rule: &LogRule) -> Option<String> {
    let threshold = rule.queue_threshold.filter(|threshold| *threshold < THRESHOLD_MIN)?;
    Some(format!(
        "the rule in chain {}, handle {}, has queue-threshold {threshold}: it wakes the reader after every {threshold} \
         records, and readers cannot change that; remove it from the rule",
        rule.place(),
        rule.handle
    ))
}

fn undo(yes: bool) -> Outcome {
    let words: Vec<&str> = ["list", "table"].into_iter().chain(TABLE.split(' ')).collect();
    match nft::list(&words) {
        Err(error) if error.is_absent() => {
            Outcome::because(Exit::Ok, format!("table {TABLE} does not exist: nothing to undo"))
        }
        Err(error) => Outcome::because(Exit::Failed, error),
        Ok(rules) if !yes => Outcome {
            exit: print::print(&rules),
            messages: vec!["nothing was changed, --yes removes these rules".to_owned()],
        },
        Ok(_) => {
            let gone: Result<(), NftError> = nft::apply(&format!("delete table {TABLE}\n"));
            match gone {
                Ok(()) => Outcome::because(Exit::Ok, format!("table {TABLE} was removed")),
                Err(error) => Outcome::because(Exit::Failed, error),
            }
        }
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
        let Task::Rule { rule, apply: false, yes: false } = task else { panic!("{task:?}") };
        assert_eq!(
            rule.script(),
            "add table inet netwren_log\n\
             add chain inet netwren_log group5_forward { type filter hook forward priority -10; policy accept; }\n\
             flush chain inet netwren_log group5_forward\n\
             add rule inet netwren_log group5_forward tcp dport 22 counter log prefix \"forward: \" group 5 snaplen \
             128\n"
        );
        assert_eq!(parse(&["--undo", "--yes"]).unwrap(), Task::Undo { yes: true });
    }

    #[test]
    fn what_makes_no_sense_is_said() {
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
