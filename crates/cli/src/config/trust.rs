//! Checks the owner and the permissions of a configuration file.
//!
//! It names files to write and receivers of records, so only the user who runs netwren and root may be able to change
//! it.
use super::settings::Setting;
use super::shown;
use std::path::Path;
use sys::infile;

/// Bound: bytes of a configuration file (`infile::a_file_is_read_within_its_bound`). Beyond: the file is refused. By:
/// the author of the file.
const BYTES_MAX: u64 = 1 << 20;
const GROUP_READS: u32 = 0o040;
const OTHERS_READ: u32 = 0o004;

/// The permissions of the file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Access {
    mode: u32,
    /// True if its group is root's or netwren's own: the group's read permission is then intended.
    is_own_group: bool,
}

impl Access {
    /// The warning about secrets that other users can read, if any.
    pub(super) fn warns_of(self, settings: &[Setting]) -> Option<String> {
        let is_readable = self.mode & OTHERS_READ != 0 || self.mode & GROUP_READS != 0 && !self.is_own_group;
        let secret = settings.iter().find_map(secret).filter(|_| is_readable)?;
        let who = if self.mode & OTHERS_READ != 0 { "every user of this host" } else { "its group" };
        Some(format!("{who} can read this file, which {secret} (mode {:04o}; chmod 600)", self.mode & 0o7777))
    }
}

/// The secret in a setting, if any.
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

/// Reads the text of the file at `path`. The error is a complete sentence.
pub(super) fn read(path: &Path) -> Result<(String, Access), String> {
    let failed = |words: &dyn std::fmt::Display| format!("cannot read {}: {words}", shown(path));
    let (bytes, stat) = infile::read_trusted(path, BYTES_MAX).map_err(|error| failed(&error))?;
    let text = String::from_utf8(bytes).map_err(|_| failed(&"it is not UTF-8 text"))?;
    let is_own_group = stat.gid == 0 || stat.gid == sys::caps::egid();
    Ok((text, Access { mode: stat.mode, is_own_group }))
}
