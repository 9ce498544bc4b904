//! Describes the machine on which a bench ran.

use crate::root;
use anyhow::Result;
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

/// Machine, kernel, compiler and the versions of all contestants.
pub(crate) fn describe(binary: &Path) -> Result<Value> {
    let commit = root::output("git", &["describe", "--always", "--dirty"]).unwrap_or_default();
    Ok(json!({
        "date": root::output("date", &["-u", "+%F"])?.trim(),
        "machine": {
            "cpu": field("/proc/cpuinfo", "model name"),
            "cpus": std::thread::available_parallelism().map_or(0, usize::from),
            "memory_gib": field("/proc/meminfo", "MemTotal").trim_end_matches(" \
                kB").parse::<u64>().map_or(0, |kib| kib >> 20),
            // Only the version number; a builder's suffix has no meaning elsewhere.
            "kernel": line("/proc/sys/kernel/osrelease").split('-').next().unwrap_or_default(),
            "os": field("/etc/os-release", "PRETTY_NAME"),
            "tcp_hash_buckets": line("/proc/sys/net/ipv4/tcp_ehash_entries"),
        },
        "versions": {
            "netwren": version(binary),
            "commit": commit.trim(),
            "ss": tool("ss", &["-V"]),
            "netstat": tool("netstat", &["--version"]),
            "lstf": tool("lstf", &["--version"]),
            "conntrack": tool("conntrack", &["--version"]),
            "rustc": root::output("rustc", &["--version"]).unwrap_or_default().trim(),
        },
        "binary_bytes": std::fs::metadata(binary)?.len(),
    }))
}

/// The output of `--version` of a netwren binary.
pub(crate) fn version(binary: &Path) -> String {
    says(binary, &["--version"])
}

fn tool(name: &str, args: &[&str]) -> String {
    let home = std::env::var("HOME").unwrap_or_default();
    let found = testkit::tool::find(name).unwrap_or_else(|| Path::new(&home).join("go/bin").join(name));
    says(&found, args)
}

fn says(program: &Path, args: &[&str]) -> String {
    let Ok(out) = Command::new(program).args(args).output() else { return "not installed".to_owned() };
    let text = if out.stdout.is_empty() { out.stderr } else { out.stdout };
    String::from_utf8_lossy(&text)
        .lines()
        .next()
        .unwrap_or_default()
        .trim()
        .trim_end_matches(", build , date")
        .to_owned()
}

fn line(file: &str) -> String {
    std::fs::read_to_string(file).unwrap_or_default().trim().to_owned()
}

/// The value of `name : value` or `NAME="value"`.
fn field(file: &str, name: &str) -> String {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let found = text.lines().find(|line| line.starts_with(name)).and_then(|line| line.split_once([':', '=']));
    found.map_or_else(String::new, |(_, value)| value.trim().trim_matches('"').to_owned())
}
