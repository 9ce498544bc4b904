//! The peers: installed tools that netwren is compared with.

use std::path::PathBuf;
use std::process::Command;

/// The path of `name`; also searches the sbin folders that a user's PATH may lack.
pub fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let own = std::env::split_paths(&path).collect::<Vec<_>>();
    let more = ["/usr/sbin", "/sbin", "/usr/local/sbin", "/usr/bin", "/bin"].map(PathBuf::from);
    own.into_iter().chain(more).map(|dir| dir.join(name)).find(|file| file.is_file())
}

/// True if `name` is installed. For peers that are optional everywhere (lstf).
pub fn is_installed(name: &str) -> bool {
    find(name).is_some()
}

/// Returns true to continue; false after a message that the test is skipped, and the test must return.
///
/// # Panics
/// If the tool is missing under `NETWREN_REQUIRE_TOOLS=1` (`./netwren.sh test` sets it after installing them).
#[track_caller]
pub fn require(name: &str) -> bool {
    if is_installed(name) {
        return true;
    }
    let place = std::panic::Location::caller();
    assert!(
        std::env::var_os("NETWREN_REQUIRE_TOOLS").is_none_or(|v| v != "1"),
        "NETWREN_REQUIRE_TOOLS=1, but {name} is not installed ({place})"
    );
    crate::print_loud(&format!("skipped: {place} needs {name}"));
    false
}

/// First line of a test that compares with a peer: returns with a message if the peer is missing.
#[macro_export]
macro_rules! require_tool {
    ($name:expr) => {
        if !$crate::tool::require($name) {
            return;
        }
    };
}

/// First line of a test that requires the output of one version of a peer: returns with a message if a different
/// version is installed.
#[macro_export]
macro_rules! require_version {
    ($name:expr, $version:expr) => {
        if !$crate::tool::require_version($name, $version) {
            return;
        }
    };
}

/// Returns true if the installed tool has this version; false after a message that the test is skipped, and the test
/// must return.
///
/// # Panics
/// Like [`require`].
#[track_caller]
pub fn require_version(name: &str, wanted: Version) -> bool {
    if !require(name) {
        return false;
    }
    let found = version(name);
    if found != Some(wanted) {
        let dotted = |Version(a, b, c)| format!("{a}.{b}.{c}");
        let found = found.map_or_else(|| "an unknown one".to_owned(), dotted);
        crate::print_loud(&format!("skipped: what equals {name} {} is not compared with {found}", dotted(wanted)));
    }
    found == Some(wanted)
}

/// The version of tcpdump that the face reproduces.
pub const TCPDUMP: Version = Version(4, 99, 3);
/// The version of nstat that the face reproduces.
pub const NSTAT: Version = Version(6, 1, 0);

/// A tool's version: the first dotted number that it prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub u32, pub u32, pub u32);

/// Queries the installed tool (`-V`, then `--version`). None if it is not installed or prints no version.
pub fn version(name: &str) -> Option<Version> {
    let file = find(name)?;
    ["-V", "--version"].iter().find_map(|flag| {
        let out = Command::new(&file).arg(flag).env("LC_ALL", "C").output().ok()?;
        let text = [out.stdout, out.stderr].concat();
        first_version(&String::from_utf8_lossy(&text))
    })
}

fn first_version(text: &str) -> Option<Version> {
    let words = text.split(|c: char| !c.is_ascii_digit() && c != '.');
    words.map(|word| word.trim_matches('.')).filter(|word| word.contains('.')).find_map(|word| {
        let mut numbers = word.split('.').map(|n| n.parse::<u32>().ok());
        Some(Version(numbers.next()??, numbers.next()??, numbers.next().flatten().unwrap_or(0)))
    })
}

/// A file or folder below target/tools, which `./netwren.sh test` fills. `None` after a message that the test of
/// `purpose` is skipped; the variable `without` allows it to be missing.
///
/// # Panics
/// If it is missing although all tools are required.
#[track_caller]
pub fn require_fetched(name: &str, without: &str, purpose: &str) -> Option<PathBuf> {
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| crate::program::workspace().join("target"), PathBuf::from);
    let path = target.join("tools").join(name);
    if path.exists() {
        return Some(path);
    }
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| value == "1");
    let may_lack = !is_set("NETWREN_REQUIRE_TOOLS") || is_set(without);
    assert!(may_lack, "NETWREN_REQUIRE_TOOLS=1, but {} does not exist", path.display());
    crate::print_loud(&format!("skipped: a test of {purpose} needs {}", path.display()));
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_the_peers() {
        assert_eq!(first_version("ss utility, iproute2-6.1.0"), Some(Version(6, 1, 0)));
        assert_eq!(first_version("ss utility, iproute2-6.15.0, libbpf 1.5.0"), Some(Version(6, 15, 0)));
        assert_eq!(first_version("net-tools 2.10\nFred Baumgarten, 2001."), Some(Version(2, 10, 0)));
        assert_eq!(first_version("no number here."), None);
    }

    #[test]
    fn nothing_of_that_name() {
        assert!(!is_installed("no-such-tool-netwren"));
        assert_eq!(version("no-such-tool-netwren"), None);
    }
}
