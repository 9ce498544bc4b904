//! `netwren log` as a service: its configuration file, what it tells systemd, and what it hands to its successor.

use crate::run::netwren;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

/// A folder with a configuration of this text and mode.
fn config(text: &str, mode: u32) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log.toml");
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    (dir, path)
}

/// The example of the documentation, with what it names in `dir`.
pub(crate) fn documented(dir: &std::path::Path) -> String {
    let text = std::fs::read_to_string(testkit::program::workspace().join("docs/log.toml")).unwrap();
    let text = text.replace("/var/log/netwren", &dir.display().to_string());
    text.replace("/var/lib/netwren", &dir.display().to_string()).replace("/run/netwren", &dir.display().to_string())
}

#[test]
fn what_is_wrong_in_a_configuration_has_its_place() {
    for (text, code, says) in [
        ("group = 70000\n", 2, "log.toml:1:9: --group takes numbers from 0 to 65535"),
        ("group = 1\nlatncy = '50ms'\n", 2, "log.toml:2:1: unknown key `latncy`; did you mean `latency`?"),
        ("group = 1\n tls_ca = 'x'\n", 2, "log.toml:2:2: unknown key `tls_ca`; did you mean `tls-ca`?"),
        ("group = 1\nlatency = \"5ms\"\n", 2, "log.toml:2:11: --latency takes 10ms to 10s"),
        ("group = 1\nto = ['json:/x',\n  'yaml:/y']\n", 2, "log.toml:3:3: --to: `yaml` is no format"),
        ("group = 1\nto = 'json:/x'\nwhen-full = 'x'\n", 2, "log.toml:3:13: invalid value 'x' for '--when-full"),
        ("group = 1\nfilter = 'dport = = 3'\n", 2, "log.toml:2:10: filter, column 9"),
        ("group = 1\ncolumns = ['+tll']\n", 2, "log.toml:2:11: unknown column `tll`"),
        ("group = 1\nspool-max = '3GiB'\nto = 'json:/x'\n", 2, "log.toml:2:13: --spool-max goes with --spool"),
        ("group = 1\ncolor = [\n", 2, "log.toml:2:"),
        ("group = 1\ngroup = 2\n", 2, "log.toml:2:1: duplicate key"),
        ("group = 1\nstats = 3\n", 2, "log.toml:2:9: `stats` takes true or false, not a number"),
        ("group = 1\n[tls]\nca = 'x'\n", 2, "log.toml:2:2: unknown key `tls`"),
        ("record = 'x'\n", 2, "log.toml:1:1: `record` goes on the command line"),
        ("latency = '1s'\n", 2, "log.toml: log needs --group N"),
        ("group = 1\nto = 'json:/does/not/exist'\n", 4, "cannot write to its directory: no such file"),
        ("group = 1\nto = 'json:/dev/null'\nspool = '/does/not/exist'\n", 4, "spool: cannot open /does/not"),
    ] {
        let (_dir, path) = config(text, 0o600);
        netwren(&["log", "check", &path.display().to_string()]).says(code, &[says]);
        if code == 2 {
            netwren(&["log", "--config", &path.display().to_string()]).says(2, &[says]);
        }
    }
    // A flag beside it is not in the file.
    let (_dir, path) = config("group = 1\n", 0o600);
    let ran = netwren(&["log", "--config", &path.display().to_string(), "--latency", "5ms"]);
    assert!(ran.stderr.starts_with("netwren: --latency takes"), "{}", ran.stderr);
}

#[test]
fn a_configuration_that_others_can_change_is_refused() {
    let (_dir, path) = config("group = 1\n", 0o622);
    let file = path.display().to_string();
    netwren(&["log", "check", &file]).says(4, &["others may write to ", "mode 0622"]);
    let (_dir, path) = config("group = 1\nto = 'json:/dev/null'\ntls-key = '/x'\n", 0o644);
    let file = path.display().to_string();
    netwren(&["log", "check", &file])
        .says(2, &["everybody on this host can read this file, which names a private key"]);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    let ran = netwren(&["log", "check", &file]);
    assert!(!ran.stderr.contains("can read this file"), "{}", ran.stderr);
    if testkit::root::have() {
        std::os::unix::fs::chown(&path, Some(65_534), None).unwrap();
        netwren(&["log", "check", &file]).says(4, &["belongs to user 65534"]);
    }
}

#[test]
fn the_documented_configuration_is_right() {
    let dir = tempfile::tempdir().unwrap();
    // With every key that stands there as a comment, too.
    for text in [
        documented(dir.path()),
        documented(dir.path())
            .replace("\n#rotate", "\nrotate")
            .replace("\n#filter", "\nfilter")
            .replace("\n#spool-age", "\nspool-age")
            .replace("\n#columns", "\ncolumns")
            .replace("\n#   \"syslog+tcp", "\n    \"syslog+tcp"),
    ] {
        let (_dir, path) = config(&text, 0o644);
        let ran = netwren(&["log", "check", &path.display().to_string()]);
        let said = ran.ok();
        assert!(said.contains("listens to group 1, 5: 128 bytes"), "{said}");
        assert!(said.contains("ships to json:") && said.contains("when full drop-oldest"), "{said}");
    }
}
