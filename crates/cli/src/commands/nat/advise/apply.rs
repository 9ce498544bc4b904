//! `--apply`: sets what was advised, and keeps it over a restart.
//!
//! Limit and buckets are one for the whole host: whatever namespace asks for most of them gets it. They can be written
//! from the first namespace alone.

use super::super::super::Outcome;
use super::Judged;
use crate::exit::Exit;
use crate::session::Session;
use conntrack::stats::SETTINGS_DIR;
use std::fmt;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Where settings are kept; systemd and procps read all of its folder when the host starts.
const KEPT: &str = "sysctl.d/90-netwren-conntrack.conf";
/// What stood there before.
const BEFORE: &str = "sysctl.d/90-netwren-conntrack.conf.before";

/// A setting with what it is and what it shall be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Setting {
    file: &'static str,
    was: u64,
    becomes: u64,
}

impl Setting {
    fn with(&self, value: u64) -> String {
        format!("net.netfilter.{}={value}", self.file)
    }
}

/// What is to be set; buckets first, so that no entry that may come in finds too few. Nothing if all is well.
fn settings(judged: &[Judged]) -> Vec<Setting> {
    let sizes = judged.iter().filter_map(|one| Some((one.evidence.max?, one.evidence.buckets?, one.advice.sizes?)));
    // One host, one limit: each namespace read the same.
    let Some((max, buckets, _)) = sizes.clone().next() else { return Vec::new() };
    let most = |of: fn(&doctor::nat::Sizes) -> u64| sizes.clone().map(|(.., sizes)| of(&sizes)).max().unwrap_or(0);
    let all = [
        Setting { file: "nf_conntrack_buckets", was: buckets, becomes: most(|sizes| sizes.advised_buckets) },
        Setting { file: "nf_conntrack_max", was: max, becomes: most(|sizes| sizes.advised_max) },
    ];
    all.into_iter().filter(|setting| setting.becomes != setting.was).collect()
}

/// The same as sysctl(8) takes them.
pub(super) fn lines(judged: &[Judged]) -> Vec<String> {
    settings(judged).iter().map(|setting| setting.with(setting.becomes)).collect()
}

/// Sets and keeps what was advised, or with `yes` not given tells what would be done.
pub(super) fn run(session: &Session, judged: &[Judged], yes: bool) -> Outcome {
    let settings = settings(judged);
    if settings.is_empty() {
        return Outcome::because(Exit::Ok, "nothing to set: limit and buckets are as they should be");
    }
    // The one this thread is in: with --all-netns the caller's own.
    let is_first = judged.iter().any(|one| one.netns_id == session.netns_id() && one.evidence.is_first);
    if !is_first {
        let words = "limit and buckets cannot be set from here: they are the host's, and only its first network \
                     namespace may (or the right is missing, CAP_NET_ADMIN); nothing was done";
        return Outcome::because(Exit::Failed, words);
    }
    let keep = session.host().etc_path(KEPT);
    if !yes {
        let mut says: Vec<String> =
            settings.iter().map(|s| format!("would set {} (is {})", s.with(s.becomes), s.was)).collect();
        says.push(format!("would write {}; nothing was done, --yes does it", keep.display()));
        return Outcome { exit: Exit::Ok, says };
    }
    match set_and_keep(session, &settings, &keep) {
        Ok(says) => Outcome { exit: Exit::Ok, says },
        Err(failed) => Outcome { exit: Exit::Failed, says: failed.lines() },
    }
}

/// What went wrong, and what had been done until then.
struct Failed {
    what: String,
    error: io::Error,
    done: Vec<String>,
}

impl Failed {
    fn lines(self) -> Vec<String> {
        let mut lines = self.done.clone();
        lines.push(self.to_string());
        lines
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {}: {}", self.what, self.error)
    }
}

fn set_and_keep(session: &Session, settings: &[Setting], keep: &Path) -> Result<Vec<String>, Failed> {
    let (mut done, mut undo) = (Vec::new(), Vec::new());
    for setting in settings {
        let path = session.host().real_path(&format!("{SETTINGS_DIR}/{}", setting.file));
        let line = setting.with(setting.becomes);
        if let Err(error) = fs::write(&path, setting.becomes.to_string()) {
            return Err(Failed { what: format!("set {line}"), error, done: with_undo(done, &undo) });
        }
        done.push(format!("set {line}"));
        undo.push(format!("sysctl -w {}", setting.with(setting.was)));
    }
    let before = session.host().etc_path(BEFORE);
    match write_kept(settings, keep, &before) {
        Ok(true) => undo.push(format!("mv {} {}", before.display(), keep.display())),
        Ok(false) => undo.push(format!("rm {}", keep.display())),
        Err(error) => {
            let what = format!("write {}", keep.display());
            return Err(Failed { what, error, done: with_undo(done, &undo) });
        }
    }
    done.push(format!("wrote {}", keep.display()));
    Ok(with_undo(done, &undo))
}

fn with_undo(mut done: Vec<String>, undo: &[String]) -> Vec<String> {
    if !undo.is_empty() {
        done.push(format!("undo: {}", undo.join(" && ")));
    }
    done
}

/// Writes the file whole or not at all; true if there was one, which is kept as `before`.
fn write_kept(settings: &[Setting], keep: &Path, before: &Path) -> io::Result<bool> {
    let mut text = String::from("# Written by `netwren nat advise --apply`.\n");
    let old = match fs::read_to_string(keep) {
        Ok(old) => Some(old),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    // What is not set anew stays: an earlier run may have written the other one.
    let is_new = |line: &str| settings.iter().any(|setting| line.contains(setting.file));
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
    }
}
