//! Files that a run creates or writes: the only code that opens a path for writing.
//!
//! A path that an administrator names may lead through a directory that other users can write to. Such a user must not
//! choose which file is written. So this module walks the path one component at a time from a directory descriptor
//! ([`FilePlace::find`]). It refuses another user's link on the way, and any link at the end. It opens the file once,
//! without waiting for the other end of a FIFO, and checks the open descriptor: no check before or after uses the name.
//! It empties the file only after these checks.
//!
//! It does not rely on the kernel's own guards (`fs.protected_symlinks`, `protected_regular`, `protected_fifos`,
//! `protected_hardlinks`): they can be switched off, and protect only sticky directories.
use std::ffi::{CStr, CString, OsStr, OsString};
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use crate::errno::{Errno, SysError};
use crate::fd::Fd;
use crate::folder::Folder;
use crate::fs::{Stat, stat_fd};
use crate::syscall::{call, retry};
use crate::{caps, signal};

/// Mode of a file that its owner's group may read: no output file has a wider mode.
pub const GROUP_READS: u32 = 0o640;
/// Mode of a file that only its owner may use.
pub const OWNER_ONLY: u32 = 0o600;

/// Bound: links in the path of a file that netwren writes. Beyond: the file is refused. By: anyone who may write to a
/// directory of the path.
const LINKS_MAX: usize = 40;
/// Bound: attempts to open a file that another program keeps creating and removing. Beyond: the file is refused. By:
/// anyone who may write to its directory.
const TRIES: usize = 4;
/// Mode bits: users other than owner and group may write; sticky, so that only a file's owner may rename it there.
const WORLD_WRITES: u32 = 0o002;
const STICKY: u32 = 0o1000;
/// Interval between checks whether a FIFO has a reader.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// Handling of an existing file's contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Contents {
    /// Keep them, and append each write (O_APPEND).
    Appended,
    /// Keep them, and allow reading the file.
    Kept,
    /// Discard them, after checking that the file belongs to this user.
    Emptied,
    /// Fail with `EEXIST` if the file exists.
    New,
}

/// Options for opening a file for writing.
#[derive(Debug, Clone, Copy)]
pub struct OutfileOptions {
    /// Handling of the file's existing contents.
    pub contents: Contents,
    /// Mode of a new file, reduced by the umask. This user's file with a wider mode is narrowed to this one.
    pub mode: u32,
    /// True to also accept FIFOs and character devices. Descriptors passed by the program's caller (`/dev/stdout`,
    /// `/dev/fd/N`) are used as they are.
    pub takes_streams: bool,
}

impl OutfileOptions {
    /// Accepts regular files, with the mode [`GROUP_READS`].
    pub const fn regular(contents: Contents) -> OutfileOptions {
        OutfileOptions { contents, mode: GROUP_READS, takes_streams: false }
    }

    /// Accepts regular files, FIFOs and character devices; new files get the mode [`GROUP_READS`].
    pub const fn stream(contents: Contents) -> OutfileOptions {
        OutfileOptions { takes_streams: true, ..OutfileOptions::regular(contents) }
    }

    /// Accepts regular files, for their owner only.
    pub const fn private(contents: Contents) -> OutfileOptions {
        OutfileOptions { mode: OWNER_ONLY, ..OutfileOptions::regular(contents) }
    }
}

/// Place of an existing or future file: an open directory, and a name in it.
#[derive(Debug)]
pub struct FilePlace {
    folder: Folder,
    name: OsString,
    /// A directory of the path whose entries another user can replace.
    exposed: Option<PathBuf>,
}

impl FilePlace {
    /// Walks to the directory of `path`. Fails if another user's link is on the way.
    pub fn find(path: &Path) -> io::Result<FilePlace> {
        let name = match path.components().next_back() {
            Some(Component::Normal(name)) => name.to_owned(),
            _ => return Err(permission_error("it does not name a file".to_owned())),
        };
        let (dir, exposed) = walk(path.parent().unwrap_or(Path::new("")))?;
        Ok(FilePlace { folder: Folder::new(dir), name, exposed })
    }

    /// Returns the place of an output path; `None` for a descriptor passed by the program's caller.
    pub fn of_output(path: &Path) -> io::Result<Option<FilePlace>> {
        match passed_descriptor(path) {
            Some(_) => Ok(None),
            None => FilePlace::find(path).map(Some),
        }
    }

    /// Returns the directory.
    pub fn folder(&self) -> &Folder {
        &self.folder
    }

    /// Returns the name of the file in the directory.
    pub fn name(&self) -> &OsStr {
        &self.name
    }

    /// Opens the file; see [`Folder::open_output`].
    pub fn open(&self, how: OutfileOptions) -> io::Result<File> {
        self.folder.open_output(&self.name, how)
    }

    /// Ensures that [`FilePlace::open`] would accept the file `name` in the directory, which a library opens by name
    /// later. Creates a missing file if `makes`. Call [`FilePlace::check_path`] first.
    ///
    /// An existing file is not opened: closing it would release this process's locks (fcntl) on it.
    pub fn prepare(&self, name: &OsStr, makes: bool) -> io::Result<()> {
        let how = OutfileOptions::regular(Contents::New);
        match self.stat(name, how)? {
            None if makes => self.folder.open_output(name, how).map(drop),
            Some(stat) if is_wider(stat, how.mode) => {
                self.folder.set_mode(name, stat.mode & how.mode).map_err(of_errno)
            }
            _ => Ok(()),
        }
    }

    /// Looks at `name` in the directory; returns `None` if it does not exist, and fails if it may not be written to.
    /// Opens and creates nothing.
    pub fn stat(&self, name: &OsStr, how: OutfileOptions) -> io::Result<Option<Stat>> {
        match self.folder.stat_name(name) {
            Ok(stat) => check(stat, how).map(|()| Some(stat)),
            Err(error) if error.errno == Errno::NOENT => Ok(None),
            Err(error) => Err(of_call(error)),
        }
    }

    /// True if other users can create files in the directory.
    pub fn is_shared(&self) -> io::Result<bool> {
        self.folder.stat().map(|stat| stat.mode & WORLD_WRITES != 0).map_err(of_call)
    }

    /// Fails if another user can replace a directory on the path or the file. For files that are reopened by name (a
    /// database, a socket). Accepts root's sticky directories: other users cannot replace this user's files there.
    pub fn check_path(&self) -> io::Result<()> {
        let Some(dir) = &self.exposed else { return Ok(()) };
        let dir = crate::escape_bytes(dir.as_os_str().as_bytes());
        Err(permission_error(format!(
            "other users can replace files in {dir}: use a directory that only this user can write to"
        )))
    }
}

/// Opens the file at `path` for writing. A descriptor passed by the caller is reopened, or duplicated.
pub fn open(path: &Path, how: OutfileOptions) -> io::Result<File> {
    match passed_descriptor(path).filter(|_| how.takes_streams) {
        Some(number) => open_passed(number, how),
        None => FilePlace::find(path)?.open(how),
    }
}

/// Opens like [`open`], and waits until this user's FIFO has a reader. A signal that asks the program to stop ends the
/// wait ([`ErrorKind::Interrupted`]).
pub fn open_waiting(path: &Path, how: OutfileOptions) -> io::Result<File> {
    loop {
        match open(path, how) {
            Err(error) if error.raw_os_error() == Some(libc::ENXIO) && !signal::is_requested() => {}
            Err(error) if error.raw_os_error() == Some(libc::ENXIO) => return Err(ErrorKind::Interrupted.into()),
            other => return other,
        }
        std::thread::sleep(CHECK_INTERVAL);
    }
}

/// Closes the file; returns the error of a file system that stores data later (NFS, FUSE).
pub fn close(file: File) -> io::Result<()> {
    let fd = OwnedFd::from(file).into_raw_fd();
    // SAFETY: close takes an integer; `fd` is open, and its only owner has just given it up.
    match call("close", || unsafe { libc::close(fd) }.into()) {
        // Linux closes the descriptor before it returns EINTR.
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(errno) => Err(of_errno(errno)),
    }
}

/// Opens the directory at `path`; fails if another user's link is on the way.
pub fn folder(path: &Path) -> io::Result<Folder> {
    walk(path).map(|(dir, _)| Folder::new(dir))
}

impl Folder {
    /// Opens the file `name` for writing, and creates it if it does not exist. Refuses links, other users' files, files
    /// with several hard links and objects other than files, and leaves them as is. Costs two to five system calls.
    pub fn open_output(&self, name: &OsStr, how: OutfileOptions) -> io::Result<File> {
        let c_name = CString::new(name.as_bytes()).map_err(|_| of_errno(Errno::INVAL))?;
        let access = if how.contents == Contents::Kept { libc::O_RDWR } else { libc::O_WRONLY };
        let append = if how.contents == Contents::Appended { libc::O_APPEND } else { 0 };
        let flags = access | append | libc::O_NONBLOCK | libc::O_NOCTTY;
        for _ in 0..TRIES {
            if how.contents != Contents::New {
                match self.open_name(&c_name, flags, 0) {
                    Ok(fd) => return check_and_empty(fd, how),
                    Err(Errno::NOENT) => {}
                    Err(Errno::LOOP) => return Err(permission_error(IS_LINK.to_owned())),
                    Err(Errno::NXIO) => return Err(self.without_reader(name, how)),
                    Err(errno) => return Err(of_errno(errno)),
                }
            }
            match self.open_name(&c_name, flags | libc::O_CREAT | libc::O_EXCL, how.mode) {
                Ok(fd) => return Ok(File::from(OwnedFd::from(fd))),
                Err(Errno::EXIST) if how.contents != Contents::New => {}
                Err(errno) => return Err(of_errno(errno)),
            }
        }
        Err(of_errno(Errno::EXIST))
    }

    /// Opens the file `name` for reading, if it is a regular file of the effective user with one hard link.
    pub fn own_file(&self, name: &OsStr) -> io::Result<File> {
        let c_name = CString::new(name.as_bytes()).map_err(|_| of_errno(Errno::INVAL))?;
        let fd = self.open_name(&c_name, libc::O_RDONLY | libc::O_NONBLOCK | libc::O_NOCTTY, 0).map_err(of_errno)?;
        let stat = stat_fd(&fd).map_err(of_errno)?;
        if stat.is_file() && stat.uid == caps::euid() && stat.links == 1 {
            return Ok(File::from(OwnedFd::from(fd)));
        }
        Err(permission_error("other users can access this file".to_owned()))
    }

    /// Returns the error of a failed open for writing: of a FIFO without a reader, or of an unsupported object.
    fn without_reader(&self, name: &OsStr, how: OutfileOptions) -> io::Error {
        match self.stat_name(name) {
            Ok(stat) => check(stat, how).err().unwrap_or_else(|| of_errno(Errno::NXIO)),
            Err(error) => of_call(error),
        }
    }
}

const IS_LINK: &str = "it is a symbolic link: name its target";
const NO_FILE: &str = "it is not a regular file";

fn permission_error(text: String) -> io::Error {
    io::Error::new(ErrorKind::PermissionDenied, text)
}

fn of_errno(errno: Errno) -> io::Error {
    io::Error::from_raw_os_error(errno.0)
}

fn of_call(error: SysError) -> io::Error {
    of_errno(error.errno)
}

fn kind(stat: Stat) -> u32 {
    stat.mode & libc::S_IFMT
}

/// Root may write to every file anyway, so a file or directory owned by root is safe.
fn is_trusted(uid: u32) -> bool {
    uid == 0 || uid == caps::euid()
}

fn check_owner(stat: Stat) -> io::Result<()> {
    match is_trusted(stat.uid) {
        true => Ok(()),
        false => Err(permission_error(format!("it belongs to user {}: remove it, or name another file", stat.uid))),
    }
}

/// Fails if the file may not be written to.
fn check(stat: Stat, how: OutfileOptions) -> io::Result<()> {
    match kind(stat) {
        libc::S_IFREG => check_own(stat),
        libc::S_IFLNK => Err(permission_error(IS_LINK.to_owned())),
        libc::S_IFIFO if how.takes_streams => check_owner(stat),
        // /dev/null may have any owner, because it discards all data: tcpdump gives it to the user of -Z.
        libc::S_IFCHR if how.takes_streams && stat.is_null() => Ok(()),
        libc::S_IFCHR if how.takes_streams => check_owner(stat),
        _ => Err(permission_error(NO_FILE.to_owned())),
    }
}

/// Returns the open file if it may be written to, after emptying it if `how` requires this.
fn check_and_empty(fd: Fd, how: OutfileOptions) -> io::Result<File> {
    let stat = stat_fd(&fd).map_err(of_errno)?;
    check(stat, how)?;
    if stat.is_file() {
        narrow_mode(&fd, stat, how)?;
    }
    Ok(File::from(OwnedFd::from(fd)))
}

fn narrow_mode(fd: &Fd, stat: Stat, how: OutfileOptions) -> io::Result<()> {
    if is_wider(stat, how.mode) {
        let mode = stat.mode & how.mode;
        // SAFETY: fchmod takes a descriptor that `fd` owns, and an integer.
        call("fchmod", || unsafe { libc::fchmod(fd.raw(), mode) }.into()).map_err(of_errno)?;
    }
    if how.contents == Contents::Emptied && stat.size > 0 {
        empty(fd)?;
    }
    Ok(())
}

/// Fails for another user's file, and for a file with several hard links: it may be a different file than intended.
fn check_own(stat: Stat) -> io::Result<()> {
    check_owner(stat)?;
    match stat.links {
        0 | 1 => Ok(()),
        names => Err(permission_error(format!("it has {names} names (hard links): remove it, or name another file"))),
    }
}

/// True if this user owns the file and its mode is wider than `mode`.
fn is_wider(stat: Stat, mode: u32) -> bool {
    stat.mode & 0o7777 & !mode != 0 && stat.uid == caps::euid()
}

fn empty(fd: &Fd) -> io::Result<()> {
    // SAFETY: ftruncate takes a descriptor that `fd` owns, and an integer.
    retry("ftruncate", || unsafe { libc::ftruncate(fd.raw(), 0) }.into()).map(drop).map_err(of_errno)
}

/// Returns the number of this process's descriptor that `path` names.
fn passed_descriptor(path: &Path) -> Option<i32> {
    let text = path.to_str()?;
    match text {
        "/dev/stdin" => return Some(0),
        "/dev/stdout" => return Some(1),
        "/dev/stderr" => return Some(2),
        _ => {}
    }
    let number = text.strip_prefix("/dev/fd/").or_else(|| text.strip_prefix("/proc/self/fd/"))?;
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    number.parse().ok().filter(|_| is_number)
}

/// Opens a descriptor that the program's caller opened: the caller chose the file. A reopened descriptor has its own
/// flags; a socket, and another user's terminal, can only be duplicated.
fn open_passed(number: i32, how: OutfileOptions) -> io::Result<File> {
    let c_name = CString::new(format!("/proc/self/fd/{number}")).map_err(|_| of_errno(Errno::INVAL))?;
    let append = if how.contents == Contents::Appended { libc::O_APPEND } else { 0 };
    let flags = libc::O_WRONLY | append | libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_CLOEXEC;
    // SAFETY: `c_name` is a NUL-terminated string that lives through the call.
    let opened = retry("openat", || unsafe { libc::openat(libc::AT_FDCWD, c_name.as_ptr(), flags) }.into());
    let opened = opened.or_else(|_| {
        // SAFETY: fcntl takes integers here; the kernel checks the descriptor.
        call("fcntl", || unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 3) }.into())
    });
    // SAFETY: the call just returned this descriptor to us alone.
    let fd = unsafe { Fd::take(opened.map_err(of_errno)?) };
    let stat = stat_fd(&fd).map_err(of_errno)?;
    match how.contents {
        Contents::New => return Err(of_errno(Errno::EXIST)),
        Contents::Emptied if stat.is_file() && stat.size > 0 => empty(&fd)?,
        _ => {}
    }
    Ok(File::from(OwnedFd::from(fd)))
}

/// Waits at most `most` until a pipe accepts bytes or its reader closes; a signal ends the wait.
pub fn wait_writable(file: &File, most: Duration) -> io::Result<()> {
    let mut poll = libc::pollfd { fd: file.as_raw_fd(), events: libc::POLLOUT, revents: 0 };
    let timeout_ms = i32::try_from(most.as_millis()).unwrap_or(i32::MAX);
    // SAFETY: one live pollfd.
    match call("poll", || unsafe { libc::poll(&raw mut poll, 1, timeout_ms) }.into()) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(errno) => Err(of_errno(errno)),
    }
}

/// Clears O_NONBLOCK of an open file if it `waits`, otherwise sets it.
pub fn set_waiting(file: &File, waits: bool) -> io::Result<()> {
    let fd = file.as_raw_fd();
    // SAFETY: fcntl takes integers here.
    let flags = call("fcntl", || unsafe { libc::fcntl(fd, libc::F_GETFL) }.into()).map_err(of_errno)?;
    let flags = flags as libc::c_int;
    let flags = if waits { flags & !libc::O_NONBLOCK } else { flags | libc::O_NONBLOCK };
    // SAFETY: as above.
    call("fcntl", || unsafe { libc::fcntl(fd, libc::F_SETFL, flags) }.into()).map(drop).map_err(of_errno)
}

/// Walks to the directory at `path` (empty: the current one). Also returns a directory on the way whose entries another
/// user can replace, if there is such a directory.
fn walk(path: &Path) -> io::Result<(Fd, Option<PathBuf>)> {
    let mut rest: Vec<OsString> = steps(path);
    let mut dir = start(path.is_absolute())?;
    let mut shown = if path.is_absolute() { PathBuf::from("/") } else { PathBuf::from(".") };
    let mut exposed = is_writable_by_others(&dir)?.then(|| shown.clone());
    let mut links = 0;
    while let Some(step) = rest.pop() {
        let c_step = CString::new(step.as_bytes()).map_err(|_| of_errno(Errno::INVAL))?;
        let next = open_path(&dir, &c_step).map_err(of_errno)?;
        let stat = stat_fd(&next).map_err(of_errno)?;
        if kind(stat) == libc::S_IFLNK {
            links += 1;
            if links > LINKS_MAX {
                return Err(of_errno(Errno::LOOP));
            }
            let link = shown.join(&step);
            if !is_trusted(stat.uid) {
                let link = crate::escape_bytes(link.as_os_str().as_bytes());
                let text = format!("{link} is a link of user {}: name its target directory", stat.uid);
                return Err(permission_error(text));
            }
            let target = target_of(&next)?;
            if target.is_absolute() {
                dir = start(true)?;
                shown = PathBuf::from("/");
            }
            rest.extend(steps(&target));
            continue;
        }
        if kind(stat) != libc::S_IFDIR {
            return Err(of_errno(Errno::NOTDIR));
        }
        dir = next;
        shown.push(&step);
        if exposed.is_none() && is_exposed(stat) {
            exposed = Some(shown.clone());
        }
    }
    Ok((dir, exposed))
}

/// Returns the components of a path, the last one first.
fn steps(path: &Path) -> Vec<OsString> {
    let step = |component: Component<'_>| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some(OsString::from("..")),
        _ => None,
    };
    path.components().rev().filter_map(step).collect()
}

fn start(is_absolute: bool) -> io::Result<Fd> {
    let name = if is_absolute { c"/" } else { c"." };
    let flags = libc::O_PATH | libc::O_DIRECTORY | libc::O_CLOEXEC;
    // SAFETY: `name` is a NUL-terminated string that lives through the call.
    let fd = retry("openat", || unsafe { libc::openat(libc::AT_FDCWD, name.as_ptr(), flags) }.into());
    // SAFETY: openat just returned this descriptor to us alone.
    fd.map(|fd| unsafe { Fd::take(fd) }).map_err(of_errno)
}

/// Opens a reference to `name` itself without following a link.
fn open_path(dir: &Fd, name: &CStr) -> Result<Fd, Errno> {
    let flags = libc::O_PATH | libc::O_NOFOLLOW | libc::O_CLOEXEC;
    // SAFETY: `name` is a NUL-terminated string that lives through the call.
    let fd = retry("openat", || unsafe { libc::openat(dir.raw(), name.as_ptr(), flags) }.into())?;
    // SAFETY: openat just returned this descriptor to us alone.
    Ok(unsafe { Fd::take(fd) })
}

fn target_of(link: &Fd) -> io::Result<PathBuf> {
    let mut target = vec![0; libc::PATH_MAX as usize];
    let length = crate::fs::read_link_at(link, c"", &mut target).map_err(of_errno)?.len();
    target.truncate(length);
    Ok(PathBuf::from(OsString::from_vec(target)))
}

fn is_writable_by_others(dir: &Fd) -> io::Result<bool> {
    stat_fd(dir).map(is_exposed).map_err(of_errno)
}

fn is_exposed(dir: Stat) -> bool {
    !is_trusted(dir.uid) || dir.mode & WORLD_WRITES != 0 && dir.mode & STICKY == 0
}

/// Creates the file at `path` for its owner only, and replaces an existing file: a new file has no earlier readers. A
/// file that cannot be replaced (a mounted file, a directory that may not be changed) is emptied if only its owner
/// could have opened it.
pub fn replace(path: &Path) -> io::Result<File> {
    let place = FilePlace::find(path)?;
    let new = OutfileOptions::private(Contents::New);
    match place.open(new) {
        Err(error) if error.raw_os_error() == Some(libc::EEXIST) => {}
        made => return made,
    }
    let stat = place.folder.stat_name(&place.name).map_err(of_call)?;
    let earlier = place.open(OutfileOptions::private(Contents::Kept))?;
    if place.folder.remove(&place.name).is_ok() {
        return place.open(new);
    }
    if stat.mode & 0o077 != 0 {
        return Err(permission_error("it may be open elsewhere and cannot be replaced".to_owned()));
    }
    earlier.set_len(0)?;
    Ok(earlier)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::io::{Read, Write};
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, lchown, symlink};
    use std::process::Command;

    const NOBODY: Option<u32> = Some(65_534);

    fn is_root() -> bool {
        caps::euid() == 0
    }

    fn said(opened: io::Result<File>) -> String {
        opened.map(drop).unwrap_err().to_string()
    }

    #[test]
    fn a_link_a_name_of_another_file_and_what_is_no_file_are_refused_and_stay() {
        let tmp = tempfile::tempdir().unwrap();
        let at = |name: &str| tmp.path().join(name);
        std::fs::write(at("precious"), "precious").unwrap();
        symlink(at("precious"), at("link")).unwrap();
        symlink(at("absent"), at("dangling")).unwrap();
        std::fs::write(at("one"), "precious").unwrap();
        std::fs::hard_link(at("one"), at("two")).unwrap();
        assert!(Command::new("mkfifo").arg(at("fifo")).status().unwrap().success());
        let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        for contents in [Contents::Appended, Contents::Kept, Contents::Emptied] {
            for (name, says) in [
                ("link", IS_LINK),
                ("dangling", IS_LINK),
                ("two", "it has 2 names (hard links): remove it, or name another file"),
                ("fifo", NO_FILE),
                ("socket", NO_FILE),
            ] {
                assert_eq!(said(open(&at(name), OutfileOptions::regular(contents))), says, "{name} {contents:?}");
            }
            assert_eq!(said(open(Path::new("/dev/null"), OutfileOptions::regular(contents))), NO_FILE);
            open(Path::new("/dev/null"), OutfileOptions::stream(contents)).unwrap();
        }
        for name in ["precious", "link"] {
            let error = open(&at(name), OutfileOptions::regular(Contents::New)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::AlreadyExists);
        }
        assert!(!at("absent").exists());
        assert_eq!(std::fs::read(at("precious")).unwrap(), b"precious");
        assert_eq!(std::fs::read(at("one")).unwrap(), b"precious");
        for name in ["/", "", "..", "a/.."] {
            assert_eq!(
                said(open(Path::new(name), OutfileOptions::regular(Contents::New))),
                "it does not name a file",
                "{name}"
            );
        }
    }

    #[test]
    fn root_a_file_of_another_user_is_refused_and_stays() {
        if !is_root() {
            return;
        }
        let tmp = tempfile::tempdir().unwrap();
        let path = tmp.path().join("theirs");
        std::fs::write(&path, "theirs").unwrap();
        chown(&path, NOBODY, None).unwrap();
        let says = "it belongs to user 65534: remove it, or name another file";
        for contents in [Contents::Appended, Contents::Kept, Contents::Emptied] {
            assert_eq!(said(open(&path, OutfileOptions::stream(contents))), says);
        }
        assert_eq!(said(replace(&path)), says);
        assert_eq!(std::fs::read(&path).unwrap(), b"theirs");
    }

    #[test]
    fn modes_are_narrowed_and_only_what_is_checked_is_emptied() {
        let tmp = tempfile::tempdir().unwrap();
        let at = |name: &str| tmp.path().join(name);
        let mode = |name: &str| std::fs::metadata(at(name)).unwrap().mode() & 0o7777;
        open(&at("new"), OutfileOptions::stream(Contents::Emptied)).unwrap().write_all(b"new").unwrap();
        assert_eq!(mode("new") & !0o640, 0);
        std::fs::set_permissions(at("new"), PermissionsExt::from_mode(0o666)).unwrap();
        open(&at("new"), OutfileOptions::stream(Contents::Appended)).unwrap().write_all(b"er").unwrap();
        assert_eq!((std::fs::read(at("new")).unwrap(), mode("new")), (b"newer".to_vec(), 0o640));
        let mut text = String::new();
        open(&at("new"), OutfileOptions::private(Contents::Kept)).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!((text.as_str(), mode("new")), ("newer", 0o600), "what its owner closed to others stays closed");
        open(&at("new"), OutfileOptions::stream(Contents::Emptied)).unwrap();
        assert_eq!((std::fs::read(at("new")).unwrap().len(), mode("new")), (0, 0o600));
    }

    #[test]
    fn links_of_others_lead_to_no_directory_and_paths_that_others_can_change_are_known() {
        let tmp = tempfile::tempdir().unwrap();
        let at = |name: &str| tmp.path().join(name);
        std::fs::create_dir(at("real")).unwrap();
        symlink("real", at("ours")).unwrap();
        symlink(at("loop"), at("loop")).unwrap();
        let through = |name: &str| open(&at(name).join("../real/file"), OutfileOptions::stream(Contents::Appended));
        through("ours").unwrap();
        assert_eq!(through("loop").unwrap_err().raw_os_error(), Some(libc::ELOOP));
        assert_eq!(through("none").unwrap_err().kind(), ErrorKind::NotFound);
        FilePlace::find(&at("ours/file")).unwrap().check_path().unwrap();
        std::fs::set_permissions(at("real"), PermissionsExt::from_mode(0o777)).unwrap();
        let exposed = FilePlace::find(&at("ours/file")).unwrap().check_path().unwrap_err().to_string();
        assert!(exposed.starts_with("other users can replace files in ") && exposed.contains("/real:"), "{exposed}");
        std::fs::set_permissions(at("real"), PermissionsExt::from_mode(0o1777)).unwrap();
        FilePlace::find(&at("ours/file")).unwrap().check_path().unwrap();
        if is_root() {
            lchown(at("ours"), NOBODY, None).unwrap();
            let refused = said(through("ours"));
            assert!(refused.ends_with("/ours is a link of user 65534: name its target directory"), "{refused}");
            chown(at("real"), NOBODY, None).unwrap();
            assert!(FilePlace::find(&at("real/file")).unwrap().check_path().is_err());
        }
    }

    /// The path is redirected after the walk: the file stays in the directory that was found.
    #[test]
    fn a_directory_that_is_replaced_during_the_open_leads_nowhere_else() {
        let tmp = tempfile::tempdir().unwrap();
        let at = |name: &str| tmp.path().join(name);
        std::fs::create_dir(at("dir")).unwrap();
        std::fs::create_dir(at("other")).unwrap();
        let place = FilePlace::find(&at("dir/file")).unwrap();
        std::fs::rename(at("dir"), at("moved")).unwrap();
        symlink(at("other"), at("dir")).unwrap();
        place.open(OutfileOptions::regular(Contents::Emptied)).unwrap();
        assert!(at("moved/file").exists() && !at("other/file").exists());
    }

    #[test]
    fn a_fifo_without_a_reader_holds_nothing_up() {
        let tmp = tempfile::tempdir().unwrap();
        let fifo = tmp.path().join("fifo");
        assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        let stream = OutfileOptions::stream(Contents::Emptied);
        assert_eq!(open(&fifo, stream).unwrap_err().raw_os_error(), Some(libc::ENXIO));
        let reader = std::thread::spawn({
            let fifo = fifo.clone();
            move || std::fs::read(fifo).unwrap()
        });
        open_waiting(&fifo, stream).unwrap().write_all(b"packets").unwrap();
        assert_eq!(reader.join().unwrap(), b"packets");
        if is_root() {
            chown(&fifo, NOBODY, None).unwrap();
            assert!(said(open_waiting(&fifo, stream)).starts_with("it belongs to user 65534"));
        }
    }

    #[test]
    fn descriptors_of_the_caller_are_written_to_as_they_are() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"before").unwrap();
        let path = PathBuf::from(format!("/dev/fd/{}", file.as_raw_fd()));
        open(&path, OutfileOptions::stream(Contents::Appended)).unwrap().write_all(b" and after").unwrap();
        assert_eq!(file.metadata().unwrap().len(), 16, "a file without a name is written to as well");
        open(&path, OutfileOptions::stream(Contents::Emptied)).unwrap();
        assert_eq!(file.metadata().unwrap().len(), 0);
        let (socket, mut end) = std::os::unix::net::UnixStream::pair().unwrap();
        let path = PathBuf::from(format!("/proc/self/fd/{}", socket.as_raw_fd()));
        open(&path, OutfileOptions::stream(Contents::Appended)).unwrap().write_all(b"row").unwrap();
        drop(socket);
        let mut got = String::new();
        end.read_to_string(&mut got).unwrap();
        assert_eq!(got, "row");
        for path in ["/dev/fd/", "/dev/fd/x", "/dev/fd/../null", "/dev/fd/+1"] {
            assert_eq!(passed_descriptor(Path::new(path)), None, "{path}");
        }
    }

    #[test]
    fn a_file_that_is_replaced_has_no_earlier_readers() {
        let tmp = tempfile::tempdir().unwrap();
        let path = tmp.path().join("file");
        std::fs::write(&path, "earlier").unwrap();
        let mut earlier = File::open(&path).unwrap();
        replace(&path).unwrap().write_all(b"later").unwrap();
        let mut text = String::new();
        earlier.read_to_string(&mut text).unwrap();
        assert_eq!(text, "earlier");
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o7777 & !0o600, 0);
    }
}
