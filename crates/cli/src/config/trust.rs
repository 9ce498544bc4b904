//! Who may have written a configuration file, and who may read it.
//!
//! It names files that are written and receivers that get records, so nobody but its reader and root may change it.
use super::settings::Setting;
use super::shown;
use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// More than any configuration.
const BYTES_MAX: u64 = 1 << 20;
/// Bits of the right of others than the owner to write.
const OTHERS_WRITE: u32 = 0o022;
const GROUP_READS: u32 = 0o040;
const OTHERS_READ: u32 = 0o004;

/// Who may read the file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Access {
    mode: u32,
    /// True if its group is root's or our own: then its right to read is meant.
    is_own_group: bool,
}

impl Access {
    /// What is to be said of secrets in it that others may read.
    pub(super) fn warns_of(self, settings: &[Setting]) -> Option<String> {
        let is_readable = self.mode & OTHERS_READ != 0 || self.mode & GROUP_READS != 0 && !self.is_own_group;
        let secret = settings.iter().find_map(secret).filter(|_| is_readable)?;
        let who = if self.mode & OTHERS_READ != 0 { "everybody on this host" } else { "its group" };
        Some(format!("{who} can read this file, which {secret} (mode {:04o}; chmod 600)", self.mode & 0o7777))
    }
}

/// What a setting should keep to itself.
fn secret(setting: &Setting) -> Option<&'static str> {
    let has_password = |value: &str| {
        let authority = value.split_once("://").map(|(_, rest)| rest.split('/').next().unwrap_or(rest));
        let user = authority.and_then(|authority| authority.rsplit_once('@')).map(|(user, _)| user);
        user.is_some_and(|user| user.contains(':')) || value.contains("password=")
    };
    if setting.flag.long == "tls-key" {
        return Some("names a private key");
    }
    setting.values.iter().any(|value| has_password(&value.text)).then_some("has a password in it")
}

/// The text of the file at `path`. The error is a sentence.
pub(super) fn read(path: &Path) -> Result<(String, Access), String> {
    let failed = |error: std::io::Error| format!("cannot read {}: {error}", shown(path));
    // Whatever waits for a writer must not keep us waiting.
    let file = OpenOptions::new().read(true).custom_flags(sys::fs::NONBLOCK).open(path).map_err(failed)?;
    let facts = file.metadata().map_err(failed)?;
    if !facts.is_file() {
        return Err(format!("{} is no regular file", shown(path)));
    }
    let (euid, mode) = (sys::caps::euid(), facts.mode());
    if facts.uid() != 0 && facts.uid() != euid {
        let uid = facts.uid();
        return Err(format!("{} belongs to user {uid}: a configuration must be root's or our own", shown(path)));
    }
    if mode & OTHERS_WRITE != 0 {
        let mode = mode & 0o7777;
        return Err(format!("others may write to {} (mode {mode:04o}): refused; chmod go-w", shown(path)));
    }
    let mut text = String::new();
    file.take(BYTES_MAX + 1).read_to_string(&mut text).map_err(failed)?;
    if text.len() as u64 > BYTES_MAX {
        return Err(format!("{} has more than {} KiB: no configuration of ours", shown(path), BYTES_MAX >> 10));
    }
    let is_own_group = facts.gid() == 0 || facts.gid() == sys::caps::egid();
    Ok((text, Access { mode, is_own_group }))
}
