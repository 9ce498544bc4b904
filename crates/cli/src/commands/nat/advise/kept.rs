//! The file that keeps settings over a restart.
use super::settings::Setting;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Where settings are kept; systemd and procps read all of its folder when the host starts.
pub(super) const KEPT: &str = "sysctl.d/90-netwren-conntrack.conf";
/// What stood there before.
pub(super) const BEFORE: &str = "sysctl.d/90-netwren-conntrack.conf.before";

/// Writes the file whole or not at all; true if there was one, which is kept as `before`.
pub(super) fn write_kept(settings: &[Setting], keep: &Path, before: &Path) -> io::Result<bool> {
    let mut text = String::from("# Written by `netwren nat advise --apply`.\n");
    let old = match fs::read_to_string(keep) {
        Ok(old) => Some(old),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    // What is not set anew stays: an earlier run may have written another one. Names begin like one another.
    let is_new = |line: &str| settings.iter().any(|setting| line.split('=').next() == Some(&setting.name()));
    for line in old.iter().flat_map(|old| old.lines()).filter(|line| !line.starts_with('#') && !is_new(line)) {
        text.push_str(line);
        text.push('\n');
    }
    for setting in settings {
        text.push_str(&setting.with(setting.becomes));
        text.push('\n');
    }
    if let Some(folder) = keep.parent() {
        fs::create_dir_all(folder)?;
    }
    if let Some(old) = &old {
        replace(before, old)?;
    }
    replace(keep, &text)?;
    Ok(old.is_some())
}

/// A reader finds the old content or the new one, never half of it.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    // The name does not end in .conf: nobody takes it for one if we die here.
    let draft: PathBuf = path.with_file_name(format!(".{name}.{}", std::process::id()));
    let mut file = fs::OpenOptions::new().write(true).create_new(true).open(&draft)?;
    let written =
        file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).and_then(|()| fs::rename(&draft, path));
    if written.is_err() {
        let _ = fs::remove_file(&draft);
    }
    written
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const MAX: Setting = Setting { file: "nf_conntrack_max", was: 1, becomes: 4096 };
    const BUCKETS: Setting = Setting { file: "nf_conntrack_buckets", was: 1, becomes: 512 };

    #[test]
    fn the_kept_file_is_whole_and_the_old_one_is_beside_it() {
        let tmp = tempfile::tempdir().unwrap();
        let (keep, before) = (tmp.path().join("sysctl.d/k.conf"), tmp.path().join("sysctl.d/k.conf.before"));
        assert!(!write_kept(&[MAX, BUCKETS], &keep, &before).unwrap());
        let first = fs::read_to_string(&keep).unwrap();
        assert!(
            first.ends_with("net.netfilter.nf_conntrack_max=4096\nnet.netfilter.nf_conntrack_buckets=512\n"),
            "{first}"
        );
        let more = Setting { becomes: 8192, ..MAX };
        assert!(write_kept(&[more], &keep, &before).unwrap());
        let second = fs::read_to_string(&keep).unwrap();
        assert!(
            second.ends_with("net.netfilter.nf_conntrack_buckets=512\nnet.netfilter.nf_conntrack_max=8192\n"),
            "{second}"
        );
        assert_eq!(fs::read_to_string(&before).unwrap(), first);
        assert_eq!(fs::read_dir(tmp.path().join("sysctl.d")).unwrap().count(), 2, "no draft is left");
        // One's name is the beginning of the other's.
        let of = |file| Setting { file, was: 1, becomes: 20 };
        write_kept(&[of("nf_conntrack_udp_timeout_stream")], &keep, &before).unwrap();
        write_kept(&[of("nf_conntrack_udp_timeout")], &keep, &before).unwrap();
        let third = fs::read_to_string(&keep).unwrap();
        assert!(
            third.contains("max=8192\n") && third.contains("_stream=20\nnet.netfilter.nf_conntrack_udp_timeout=20\n")
        );
    }
}
