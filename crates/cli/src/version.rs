//! `netwren --version`, without the tree of all commands: building it takes more time than everything else that a short
//! run does.

use runtime::exit::Exit;
use std::ffi::OsString;

/// The optional parts of the program that are built in.
const FEATURES: [(&str, bool); 6] = [
    ("bpf", cfg!(feature = "bpf")),
    ("http", cfg!(feature = "http")),
    ("kafka", cfg!(feature = "kafka")),
    ("postgres", cfg!(feature = "postgres")),
    ("sqlite", cfg!(feature = "sqlite")),
    ("tls", cfg!(feature = "tls")),
];

/// Prints the version, and with `-v` the processor and the parts that are built in; `None` if the words request
/// something else.
pub(crate) fn run(words: &[OsString]) -> Option<Exit> {
    let is_one_of = |word: &OsString, names: [&str; 2]| names.iter().any(|name| word == name);
    let is_version = |word: &OsString| is_one_of(word, ["--version", "-V"]);
    let is_verbose = |word: &OsString| is_one_of(word, ["--verbose", "-v"]);
    if !words.iter().any(is_version) || !words.iter().all(|word| is_version(word) || is_verbose(word)) {
        return None;
    }
    let mut text = format!("netwren {}\n", env!("CARGO_PKG_VERSION"));
    if words.iter().any(is_verbose) {
        let built: Vec<&str> = FEATURES.iter().filter(|(_, is_in)| *is_in).map(|(name, _)| *name).collect();
        let built = if built.is_empty() { "none".to_owned() } else { built.join(", ") };
        text += &format!("processor: {}\nfeatures: {built}\n", std::env::consts::ARCH);
    }
    Some(runtime::print::print(&text))
}
