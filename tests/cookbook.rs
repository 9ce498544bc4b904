//! Checks docs/cookbook.md, which has each of the [`questions`] with its command and the output on a simulated host,
//! and the pictures in docs/pictures. `SNAPSHOTS=overwrite cargo test cookbook` rewrites outputs that have changed.

mod picture;
mod questions;
mod town;

use questions::{CHAPTERS, Compare, Question};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;
use town::Town;

const HEAD: &str = "# Cookbook

Questions of operators, each with a command that answers it and the command's output on a terminal. All outputs come
from one host, `web1`, with the address 192.0.2.10 on `eth0`, a web server, a container published on port 8080, and some
faulty programs. A test runs every command and compares its output with this page. `netwren help filters` describes the
filter language.
";

const MORE: &str = include_str!("cookbook/more.md");

/// Ports of the host, which are the same in each run.
const FIXED: &[&str] = &["443", "8080", "8081", "9000", "9100", "9999"];

/// Units that may follow a number, depending on its size.
const UNITS: &[&str] = &["us", "µs", "ms", "s", "min", "h", "B", "kB", "KiB", "MB", "MiB"];

fn path() -> PathBuf {
    testkit::program::workspace().join("docs/cookbook.md")
}

fn questions() -> impl Iterator<Item = &'static Question> {
    CHAPTERS.iter().flat_map(|chapter| chapter.questions)
}

/// Masks the differences between runs: numbers become `#` together with their units, except addresses and numbers in
/// [`FIXED`]; runs of blanks become one blank; lines are sorted.
fn masked(text: &str) -> Vec<String> {
    let line = |line: &str| {
        let masked = masked_numbers(line);
        let mut words: Vec<&str> = masked.split_whitespace().collect();
        let is_unit = |at: usize, words: &[&str]| at > 0 && words[at - 1].ends_with('#') && UNITS.contains(&words[at]);
        let units: Vec<usize> = (0..words.len()).rev().filter(|at| is_unit(*at, &words)).collect();
        units.into_iter().for_each(|at| {
            words.remove(at);
        });
        words.join(" ")
    };
    let mut lines: Vec<String> = text.lines().map(line).filter(|line| !line.is_empty()).collect();
    lines.sort();
    lines
}

fn masked_numbers(line: &str) -> String {
    let (mut out, mut rest, mut before) = (String::new(), line, ' ');
    while let Some(c) = rest.chars().next() {
        if !c.is_ascii_digit() || before.is_alphanumeric() || before == '_' {
            out.push(c);
            (before, rest) = (c, &rest[c.len_utf8()..]);
            continue;
        }
        let number = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let word = rest.find(|c: char| !c.is_alphanumeric() && c != '.').unwrap_or(rest.len());
        let is_kept = rest[..number].parse::<std::net::Ipv4Addr>().is_ok() || FIXED.contains(&&rest[..word]);
        out.push_str(if is_kept { &rest[..number] } else { "#" });
        (before, rest) = ('#', &rest[if is_kept { number } else { word }..]);
    }
    out
}

#[test]
fn only_what_differs_from_run_to_run_is_masked() {
    assert_eq!(
        masked("tcp  192.0.2.10   443  10.1.2.3  50211  nginx (52)\n"),
        ["tcp 192.0.2.10 443 10.1.2.3 # nginx (#)"]
    );
    assert_eq!(masked("10.1.2.3:50211  192.0.2.10:9000  0.3 ms\n\n"), ["10.1.2.3:# 192.0.2.10:9000 #"]);
    assert_eq!(masked("b 5.8M 2026-11-24T10:00:00.5Z\na x1 eth0 0x88b5"), ["a x1 eth0 #", "b # #-#-#:#:#"]);
    assert_eq!(masked("3 s \u{2026}"), ["# \u{2026}"]);
}

/// The outputs in the document, by their command line.
fn outputs(document: &str) -> BTreeMap<String, String> {
    let blocks = document.split("```console\n$ ").skip(1).filter_map(|rest| rest.split_once("\n```"));
    blocks
        .filter_map(|(block, _)| block.split_once('\n'))
        .map(|(line, out)| (line.into(), format!("{out}\n")))
        .collect()
}

/// Builds the document with these outputs.
fn document(outputs: &BTreeMap<String, String>) -> String {
    let (mut text, mut number) = (HEAD.to_owned(), 0);
    for chapter in CHAPTERS {
        let _ = write!(text, "\n## {}\n", chapter.title);
        for question in chapter.questions {
            number += 1;
            let output = outputs.get(question.line).map_or("", String::as_str);
            let _ = write!(text, "\n### {number}. {}\n\n```console\n$ {}\n{output}```\n", question.asks, question.line);
            if !question.note.is_empty() {
                let _ = write!(text, "\n{}\n", question.note);
            }
        }
    }
    text + "\n" + MORE
}

/// The difference between an output and the output in the document, if there is one.
fn difference(question: &Question, written: &str, output: &str) -> Option<String> {
    match question.compare {
        Compare::Lines if masked(written) == masked(output) => None,
        Compare::Words(words) if words.iter().all(|word| written.contains(word) && output.contains(word)) => None,
        _ => Some(format!("$ {}\n{output}--- in the document:\n{written}", question.line)),
    }
}

/// Returns the blocks of commands with their output.
fn console_blocks(document: &str) -> impl Iterator<Item = &str> {
    document.split("\n```console\n").skip(1).filter_map(|rest| Some(rest.split_once("\n```")?.0))
}

/// Each line of output in README is a line of the cookbook, which the commands themselves are compared with.
#[test]
fn readme_shows_outputs_of_the_cookbook() {
    let read = |file: &str| std::fs::read_to_string(testkit::program::workspace().join(file)).unwrap();
    let (readme, cookbook) = (read("README.md"), read("docs/cookbook.md"));
    let known: std::collections::BTreeSet<&str> = cookbook.lines().collect();
    let blocks: Vec<&str> = console_blocks(&readme).collect();
    assert_eq!(blocks.len(), 5, "tasks");
    for line in blocks.iter().flat_map(|block| block.lines()).filter(|line| !line.starts_with("$ ")) {
        assert!(known.contains(line), "README shows an output that the cookbook does not have: {line}");
    }
}

#[test]
fn a_question_is_asked_once() {
    let lines: std::collections::BTreeSet<&str> = questions().map(|question| question.line).collect();
    assert_eq!(lines.len(), questions().count());
    assert!(lines.len() >= 40 && CHAPTERS[0].questions.len() == 20, "{}", lines.len());
}

/// Pictures in docs/pictures: their names and commands.
const PICTURES: &[(&str, Question)] = &[
    ("home", picture("netwren", &["web1", "conntrack", "198.51.100.7:443", "listen-overflow"])),
    ("sockets", picture("netwren sockets proto=tcp -c state,accept_q,local,peer,process", &["nginx", "close_wait"])),
    (
        "nat",
        picture(
            "netwren nat --all-netns 'client in 10.1.2.0/24' -c nat,client,published,backend,process",
            &["dnat", "172.17.0.2:80", "webshop"],
        ),
    ),
];

const fn picture(line: &'static str, words: &'static [&'static str]) -> Question {
    Question { asks: "", line, note: "", compare: Compare::Words(words), needs_bpf: false }
}

fn overwrites() -> bool {
    std::env::var_os("SNAPSHOTS").is_some_and(|value| value == "overwrite")
}

/// Redraws the pictures; a stored picture must still contain its required words.
fn check_pictures(town: &Town, wrong: &mut Vec<String>) {
    for (name, question) in PICTURES {
        let path = testkit::program::workspace().join(format!("docs/pictures/{name}.svg"));
        let terminal = format!("\x1b[2m$ {}\x1b[0m\n{}", question.line, town.shows(question.line));
        let drawn = picture::svg(question.line, &terminal);
        let text = picture::text_of(&drawn);
        let stored = std::fs::read_to_string(&path).unwrap_or_default();
        if let Some(difference) = difference(question, &picture::text_of(&stored), &text) {
            if overwrites() {
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(&path, &drawn).unwrap();
            }
            wrong.push(difference);
        }
        assert!(drawn.len() < 32 << 10, "{name}.svg has {} bytes", drawn.len());
    }
}

/// Starts the host, unless a tool is missing.
fn town() -> Option<Town> {
    let tools = ["python3", "nft", "nsenter", "unshare", "script", "jq"];
    tools.iter().all(|tool| testkit::tool::require(tool)).then(|| Town::new("cookbook"))
}

#[test]
fn root_issue_15_the_cookbook_says_what_the_commands_say() {
    testkit::require_root!();
    let file = std::fs::read_to_string(path()).unwrap();
    let (mut written, has_bpf, mut wrong) = (outputs(&file), crate::drops::counts_drops(), Vec::new());
    let Some(town) = town() else { return };
    written.retain(|line, _| questions().any(|question| question.line == line));
    check_pictures(&town, &mut wrong);
    for question in questions() {
        if question.needs_bpf && !has_bpf {
            testkit::print_loud(&format!("skipped without BPF: {}", question.line));
            continue;
        }
        let begun = std::time::Instant::now();
        let old = written.get(question.line).map_or("", String::as_str);
        // On a busy machine no traffic may occur during the short time that a command reads.
        let is_said = |output: &String| overwrites() || difference(question, old, output).is_none();
        let output = testkit::until_equal(|| town.says(question.line), is_said);
        eprintln!("{:5} ms  {}", begun.elapsed().as_millis(), question.line);
        if let Some(difference) = difference(question, old, &output) {
            assert!(!overwrites() || self::difference(question, &output, &output).is_none(), "{difference}");
            wrong.push(difference);
            if overwrites() {
                written.insert(question.line.to_owned(), output);
            }
        }
    }
    let made = document(&written);
    if overwrites() {
        std::fs::write(path(), made).unwrap();
        return;
    }
    assert!(wrong.is_empty(), "{} outputs differ:\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!(file, made, "docs/cookbook.md is not what this test makes");
}
