//! The file that keeps settings across restarts.
use doctor::nat::Setting;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use sys::folder::Folder;
use sys::outfile::{Contents, FilePlace, OutfileOptions};
use sys::{Errno, infile};

/// Path of the file; systemd and procps read its whole directory at boot.
pub(crate) const KEPT: &str = "sysctl.d/90-netwren-conntrack.conf";
/// Path of the copy of its previous content.
pub(crate) const BEFORE: &str = "sysctl.d/90-netwren-conntrack.conf.before";

/// Settings are not secret, and unprivileged tools read them.
const FILE_MODE: u32 = 0o644;
const FOLDER_MODE: u32 = 0o755;
/// Larger than any settings file.
const BYTES_MAX: u64 = 1 << 20;

/// Writes the file atomically; true if it existed, in which case its old content is kept in `before`.
pub(crate) fn write_kept(settings: &[Setting], keep: &Path, before: &Path) -> io::Result<bool> {
    let mut text = String::from("# Written by `netwren nat advise --apply`.\n");
    if let Some(folder) = keep.parent().filter(|folder| !folder.exists()) {
        fs::create_dir_all(folder)?;
        fs::set_permissions(folder, fs::Permissions::from_mode(FOLDER_MODE))?;
    }
    let place = FilePlace::find(keep)?;
    let old = read_old(&place)?;
    // Other settings are preserved, because an earlier run may have written them. One name may be a prefix of another.
    let is_new = |line: &str| settings.iter().any(|setting| line.split('=').next() == Some(&setting.name()));
    for line in old.iter().flat_map(|old| old.lines()).filter(|line| !line.starts_with('#') && !is_new(line)) {
        text.push_str(line);
        text.push('\n');
    }
    for setting in settings {
        text.push_str(&setting.with(setting.becomes));
        text.push('\n');
    }
    if let Some(old) = &old {
        replace(place.folder(), before.file_name().unwrap_or_default(), old)?;
    }
    replace(place.folder(), place.name(), &text)?;
    Ok(old.is_some())
}

/// The current content of the file; `None` if it does not exist. A symbolic link is refused: following it would copy
/// another file, and replacing it would undo its creator's intention.
fn read_old(keep: &FilePlace) -> io::Result<Option<String>> {
    let file = match keep.folder().own_file(keep.name()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) if error.raw_os_error() == Some(Errno::LOOP.0) => {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "netwren does not follow symbolic links"));
        }
        opened => opened?,
    };
    let text = infile::read_input(file, BYTES_MAX)?;
    String::from_utf8(text).map(Some).map_err(|_| io::ErrorKind::InvalidData.into())
}

/// Replaces the file atomically, so that a reader never sees partial content. The file is readable by all regardless
/// of the umask; a symbolic link at this path is replaced, not followed.
fn replace(folder: &Folder, name: &OsStr, text: &str) -> io::Result<()> {
    // The name does not end in .conf, so that it is never used as a settings file if this process dies here.
    let draft = OsString::from(format!(".{}.{}", name.to_string_lossy(), std::process::id()));
    let mut file = folder.open_output(&draft, OutfileOptions::private(Contents::New))?;
    let written = file
        .set_permissions(fs::Permissions::from_mode(FILE_MODE))
        .and_then(|()| file.write_all(text.as_bytes()))
        .and_then(|()| file.sync_all())
        .and_then(|()| folder.rename(&draft, name).map_err(|error| io::Error::from_raw_os_error(error.errno.0)));
    if written.is_err() {
        let _ = folder.remove(&draft);
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
    fn the_kept_file_is_complete_and_the_old_one_is_saved() {
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
        // One setting's name is a prefix of the other's.
        let of = |file| Setting { file, was: 1, becomes: 20 };
        write_kept(&[of("nf_conntrack_udp_timeout_stream")], &keep, &before).unwrap();
        write_kept(&[of("nf_conntrack_udp_timeout")], &keep, &before).unwrap();
        let third = fs::read_to_string(&keep).unwrap();
        assert!(
            third.contains("max=8192\n") && third.contains("_stream=20\nnet.netfilter.nf_conntrack_udp_timeout=20\n")
        );
    }

    /// Reruns this test in a process whose umask denies others all access.
    fn again_under_a_strict_umask(name: &str) {
        let script = "umask 077 && exec \"$0\" --exact \"$1\"";
        let mut command = std::process::Command::new("sh");
        command.args(["-c", script]).arg(std::env::current_exe().unwrap()).arg(name).env("NETWREN_TEST_UMASK", "077");
        let out = command.output().unwrap();
        let says = String::from_utf8_lossy(&out.stdout);
        assert!(out.status.success() && says.contains("1 passed"), "{says}");
    }

    /// Modes of written files are independent of the umask, and links are not followed.
    #[test]
    fn issue_10_the_kept_file_is_readable_by_all_and_no_link_is_followed() {
        if std::env::var_os("NETWREN_TEST_UMASK").is_none() {
            let name = "nat::settings_file::tests::\
                        issue_10_the_kept_file_is_readable_by_all_and_no_link_is_followed";
            return again_under_a_strict_umask(name);
        }
        let tmp = tempfile::tempdir().unwrap();
        let (keep, before) = (tmp.path().join("sysctl.d/k.conf"), tmp.path().join("sysctl.d/k.conf.before"));
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
        write_kept(&[MAX], &keep, &before).unwrap();
        fs::set_permissions(&keep, fs::Permissions::from_mode(0o600)).unwrap();
        write_kept(&[MAX], &keep, &before).unwrap();
        assert_eq!((mode(&keep), mode(&before), mode(keep.parent().unwrap())), (0o644, 0o644, 0o755));
        let other = tmp.path().join("other");
        fs::write(&other, "secret\n").unwrap();
        fs::remove_file(&keep).unwrap();
        std::os::unix::fs::symlink(&other, &keep).unwrap();
        let refused = write_kept(&[MAX], &keep, &before).unwrap_err();
        assert!(refused.to_string().contains("netwren does not follow symbolic links"), "{refused}");
        fs::remove_file(&keep).unwrap();
        fs::write(&keep, "").unwrap();
        fs::remove_file(&before).unwrap();
        std::os::unix::fs::symlink(&other, &before).unwrap();
        write_kept(&[MAX], &keep, &before).unwrap();
        assert_eq!(fs::read_to_string(&other).unwrap(), "secret\n");
    }
}
