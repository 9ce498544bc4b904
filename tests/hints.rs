//! The commands in the program's messages. Those that messages about wrong command lines propose are run by
//! `cli::hints`.

use crate::run::netwren;
use std::collections::BTreeSet;

/// The commands in the program's messages exist, and so do their flags. In the sources, these commands are in
/// backquotes.
#[test]
fn commands_in_messages_exist() {
    let (mut found, mut wrong) = (BTreeSet::new(), Vec::new());
    let crates = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("crates");
    for krate in std::fs::read_dir(crates).unwrap() {
        collect(&krate.unwrap().path().join("src"), &mut found);
    }
    assert!(found.len() > 60, "{}", found.len());
    for line in found {
        let line = line.split(" | ").next().unwrap();
        // A value that the message fills in, or that the reader does.
        let words = line.split_whitespace().map(|word| if word.contains('{') || word == "…" { "X" } else { word });
        let quoted = line.contains('\'');
        let words: Vec<&str> =
            if quoted { line.split('\'').next().unwrap().split_whitespace().collect() } else { words.collect() };
        let is_face = ["ss", "netstat", "nstat", "lstf", "conntrack", "tcpdump", "ulogd", "dropwatch", "help"];
        if words.first().is_none_or(|first| is_face.contains(first) || *first == "X") || words.contains(&"COMMAND") {
            continue;
        }
        let helped = |value: Option<&'static str>| {
            netwren(&words.iter().copied().chain(value).chain(["--help"]).collect::<Vec<_>>())
        };
        // A flag at the end may lack its value.
        if helped(None).code != 0 && helped(Some("X")).code != 0 {
            wrong.push(format!("netwren {line}: {}", helped(None).stderr));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Adds the commands in the string literals of all sources in a folder.
fn collect(folder: &std::path::Path, found: &mut BTreeSet<String>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for path in entries.map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            collect(&path, found);
            continue;
        }
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        let is_code = |line: &&str| !line.trim_start().starts_with("//");
        let text: Vec<&str> =
            text.split("#[cfg(test)]").next().unwrap().lines().filter(is_code).map(str::trim).collect();
        let text = text.join("\n").replace("\\\n", "").replace("\\n", " ");
        let quoted = text.split('`').skip(1).step_by(2).filter_map(|it| it.strip_prefix("netwren "));
        found.extend(quoted.filter(|it| !it.contains('\n') && !it.contains('"')).map(str::to_owned));
    }
}
