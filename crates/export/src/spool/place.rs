//! The directories of spools: names, owners, locks.

use super::error::SpoolError;
use super::position::{self, Position};
use super::segment;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use sys::folder::Folder;
use sys::fs::FileKind;
use sys::outfile::FilePlace;
use sys::{Errno, FileLock, SysError};

const LOCK: &str = "lock";
/// More names than any spool has.
///
/// Bound: names in the directory of a spool. Beyond: the spool is refused. By: the user of the run.
const NAMES_MAX: usize = 1 << 20;
/// Mode bits with which others may write.
const OTHERS_WRITE: u32 = 0o022;

/// The directory of one output's spool, locked against other processes while this value lives.
#[derive(Debug)]
pub(super) struct SpoolDirectory {
    pub(super) folder: Folder,
    pub(super) path: PathBuf,
    _lock: FileLock<File>,
}

/// Returns the directory name for a target: readable, and different for each target.
pub(super) fn name_of(target: &str) -> String {
    let mut name = String::new();
    for c in target.chars() {
        let c = if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' };
        if !(c == '-' && name.ends_with('-')) && name.len() < 60 {
            name.push(c);
        }
    }
    // FNV-1a: two targets may have the same readable part.
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in target.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    format!("{}-{hash:016x}", name.trim_matches(['-', '.']))
}

fn is_name(name: &str) -> bool {
    name.rsplit_once('-').is_some_and(|(_, hash)| hash.len() == 16 && hash.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// Finds the place of the spool directory, which may not exist yet.
fn find(dir: &Path) -> Result<FilePlace, SpoolError> {
    FilePlace::find(dir).map_err(|error| match error.raw_os_error() {
        Some(errno) => {
            let object = crate::control::escape_path(dir);
            SpoolError::sys(dir.to_owned(), &SysError { call: "openat", object, errno: Errno(errno) })
        }
        None => SpoolError::io("cannot open", dir, error),
    })
}

/// Opens the directory of spools, and makes it if necessary.
fn root(dir: &Path) -> Result<Folder, SpoolError> {
    let place = find(dir)?;
    place.folder().make_folder(place.name()).map_err(|error| {
        SpoolError::io("cannot create the directory", dir, io::Error::from_raw_os_error(error.errno.0))
    })?;
    let folder = place.folder().folder(place.name()).map_err(|error| SpoolError::sys(dir.to_owned(), &error))?;
    check_folder(&folder, dir)?;
    Ok(folder)
}

/// Checks whether spools can be in this directory. Fails if it belongs to another user, if other users may write to it,
/// or if it does not exist and cannot be made. Changes nothing.
pub fn check_root(dir: &Path) -> Result<(), SpoolError> {
    let failed = |path: &Path, error| Err(SpoolError::sys(path.to_owned(), &error));
    let place = find(dir)?;
    match place.folder().folder(place.name()) {
        Ok(folder) => check_folder(&folder, dir),
        Err(error) if error.errno == sys::Errno::NOENT => {
            let parent = dir.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
            sys::fs::may_write(parent).or_else(|error| failed(parent, error))
        }
        Err(error) => failed(dir, error),
    }
}

fn check_folder(folder: &Folder, path: &Path) -> Result<(), SpoolError> {
    let facts = folder.stat().map_err(|error| SpoolError::sys(path.to_owned(), &error))?;
    check(path, facts.uid, facts.mode)
}

fn check(path: &Path, uid: u32, mode: u32) -> Result<(), SpoolError> {
    if uid != sys::caps::euid() {
        return Err(SpoolError::Owner { path: path.to_owned(), uid });
    }
    if mode & OTHERS_WRITE != 0 {
        return Err(SpoolError::Writable { path: path.to_owned(), mode: mode & 0o7777 });
    }
    Ok(())
}

impl SpoolDirectory {
    /// Opens the spool for `target` below `dir` and takes its lock.
    pub(super) fn open(dir: &Path, target: &str) -> Result<SpoolDirectory, SpoolError> {
        let (root, name) = (root(dir)?, name_of(target));
        let path = dir.join(&name);
        let failed = |error| SpoolError::sys(path.clone(), &error);
        root.make_folder(&name).map_err(failed)?;
        let folder = root.folder(&name).map_err(failed)?;
        check_folder(&folder, &path)?;
        let lock = lock(&folder, &path)?;
        Ok(SpoolDirectory { folder, path, _lock: lock })
    }

    /// Opens a file of the spool, which must be a regular file of this user.
    pub(super) fn file(&self, name: &str) -> Result<File, SpoolError> {
        open_checked(&self.folder, &self.path, name)
    }

    /// Returns the names of segments and of unfinished replacements. Fails if the directory has a foreign file.
    pub(super) fn segments(&self) -> Result<Vec<String>, SpoolError> {
        let names = self.folder.names(NAMES_MAX).map_err(|error| SpoolError::sys(self.path.clone(), &error))?;
        let mut segments = Vec::new();
        for (name, _) in names {
            if segment::is_name(&name) || segment::is_new_name(&name) {
                segments.push(name);
            } else if name != LOCK && name != position::NAME {
                return Err(SpoolError::Foreign { path: self.path.join(name) });
            }
        }
        segments.sort();
        Ok(segments)
    }

    /// Opens the file `name`, and makes it if necessary; true if it was made.
    pub(super) fn file_or_new(&self, name: &str) -> Result<(File, bool), SpoolError> {
        file_or_new(&self.folder, &self.path, name)
    }
}

fn file_or_new(folder: &Folder, path: &Path, name: &str) -> Result<(File, bool), SpoolError> {
    match folder.create(name) {
        Ok(file) => Ok((file, true)),
        Err(error) if error.errno == sys::Errno::EXIST => open_checked(folder, path, name).map(|file| (file, false)),
        Err(error) => Err(SpoolError::sys(path.join(name), &error)),
    }
}

fn open_checked(folder: &Folder, path: &Path, name: &str) -> Result<File, SpoolError> {
    let path = path.join(name);
    let file = folder.file(name).map_err(|error| SpoolError::sys(path.clone(), &error))?;
    let facts = file.metadata().map_err(|error| SpoolError::io("cannot inspect", &path, error))?;
    if !facts.is_file() || facts.nlink() != 1 {
        return Err(SpoolError::Foreign { path });
    }
    check(&path, facts.uid(), facts.mode())?;
    Ok(file)
}

fn lock(folder: &Folder, path: &Path) -> Result<FileLock<File>, SpoolError> {
    let (file, _) = file_or_new(folder, path, LOCK)?;
    let lock = FileLock::try_take(file)
        .map_err(|error| SpoolError::io("cannot lock", path, io::Error::from_raw_os_error(error.errno.0)))?
        .map_err(|file| SpoolError::InUse { path: path.to_owned(), pid: pid_in(&file) })?;
    let pid = format!("{}\n", std::process::id());
    // Go on if the disk is full: the lock works without the number.
    let _ = lock.file().set_len(0).and_then(|()| lock.file().write_all_at(pid.as_bytes(), 0));
    Ok(lock)
}

fn pid_in(lock: &File) -> Option<u32> {
    let mut text = [0; 16];
    let filled = lock.read_at(&mut text, 0).ok()?;
    std::str::from_utf8(text.get(..filled)?).ok()?.trim().parse().ok()
}

/// A spool with waiting messages that no output of this run uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherSpool {
    /// Its directory.
    pub path: PathBuf,
    /// The receiver of its messages.
    pub target: String,
    /// Messages that wait, according to the last run.
    pub waiting: u64,
}

/// Returns the spools below `dir` with waiting messages whose targets are not among `used` and that no process uses.
pub(super) fn find_other_spools(dir: &Path, used: &[String]) -> Result<Vec<OtherSpool>, SpoolError> {
    let root = root(dir)?;
    let used: Vec<String> = used.iter().map(|target| name_of(target)).collect();
    let names = root.names(NAMES_MAX).map_err(|error| SpoolError::sys(dir.to_owned(), &error))?;
    let names = names.into_iter().filter(|(name, kind)| {
        let may_be_dir = matches!(kind, FileKind::Dir | FileKind::Other);
        may_be_dir && is_name(name) && !used.contains(name)
    });
    let mut found: Vec<OtherSpool> = names.filter_map(|(name, _)| read_other_spool(&root, dir, &name)).collect();
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

fn read_other_spool(root: &Folder, dir: &Path, name: &str) -> Option<OtherSpool> {
    let path = dir.join(name);
    let folder = root.folder(name).ok()?;
    check_folder(&folder, &path).ok()?;
    let _lock = FileLock::try_take(open_checked(&folder, &path, LOCK).ok()?).ok()?.ok()?;
    let file = open_checked(&folder, &path, position::NAME).ok()?;
    let position = Position::read(&file).ok()?.ok()??;
    (position.waiting > 0).then_some(OtherSpool { path, target: position.target, waiting: position.waiting })
}
