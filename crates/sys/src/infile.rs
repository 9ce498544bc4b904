//! Reads whole files that a flag names, up to a size limit: the only code that loads such files into memory.
//!
//! Opening never waits for the other end of a FIFO, and the first signal that asks the program to stop ends the wait
//! for a FIFO's bytes. An endless device (/dev/zero) is rejected, and so is a file beyond its limit: it is not cut.
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

use crate::errno::Errno;
use crate::fd::Fd;
use crate::fs::{Stat, read_append, stat_fd};
use crate::{caps, netlink, outfile, signal, term};

/// Mode bits that let users other than the owner write.
const OTHERS_WRITE: u32 = 0o022;
/// Interval at which a wait checks whether the run must end.
const CHECK_INTERVAL_MS: i32 = 100;
/// Bytes per read.
const READ_BYTES: usize = 64 << 10;

/// Opens the file at `path` for reading. Never waits: a read of a FIFO that no writer has opened yet finds its end, so
/// wait for data first ([`crate::wait_any`]). Reads wait for data.
pub fn open(path: &Path) -> io::Result<File> {
    let (fd, _) = open_fd(path)?;
    let file = File::from(OwnedFd::from(fd));
    outfile::set_waiting(&file, true)?;
    Ok(file)
}

/// Opens the regular file at `path` for reading; fails for anything else. Never waits.
pub fn open_regular(path: &Path) -> io::Result<File> {
    match open_fd(path)? {
        (fd, stat) if stat.is_file() => Ok(File::from(OwnedFd::from(fd))),
        _ => Err(permission_error("it is not a regular file".to_owned())),
    }
}

/// Reads the file at `path`; fails beyond `most` bytes. Accepts regular files, FIFOs, terminals and /dev/null.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let (fd, stat) = open_fd(path)?;
    let is_stream = stat.is_fifo() || stat.is_null() || term::is_terminal(fd.as_raw_fd());
    if !stat.is_file() && !is_stream {
        return Err(permission_error("it is not a regular file".to_owned()));
    }
    read_open(&fd, stat, most)
}

/// Reads the regular file at `path`, and its stat. Fails beyond `most` bytes, and if users other than root and the
/// effective user can write to it: it decides which files are written, which programs run or whom to trust.
pub fn read_trusted(path: &Path, most: u64) -> io::Result<(Vec<u8>, Stat)> {
    let (fd, stat) = open_fd(path)?;
    if !stat.is_file() {
        return Err(permission_error("it is not a regular file".to_owned()));
    }
    if stat.uid != 0 && stat.uid != caps::euid() {
        return Err(permission_error(format!(
            "it belongs to user {}: it must belong to root or to the user that runs netwren",
            stat.uid
        )));
    }
    if stat.mode & OTHERS_WRITE != 0 {
        let mode = stat.mode & 0o7777;
        return Err(permission_error(format!("other users may write to it (mode {mode:04o}; chmod go-w)")));
    }
    Ok((read_open(&fd, stat, most)?, stat))
}

/// Reads `input` (standard input) to its end; fails beyond `most` bytes.
pub fn read_input(input: impl Read, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    input.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most { Err(too_long_error(most)) } else { Ok(bytes) }
}

fn permission_error(text: String) -> io::Error {
    io::Error::new(ErrorKind::PermissionDenied, text)
}

fn of_errno(errno: Errno) -> io::Error {
    io::Error::from_raw_os_error(errno.0)
}

fn too_long_error(most: u64) -> io::Error {
    let (count, unit) = if most >= 1 << 20 { (most >> 20, "MiB") } else { (most >> 10, "KiB") };
    io::Error::new(ErrorKind::FileTooLarge, format!("it has more than {count} {unit}"))
}

fn open_fd(path: &Path) -> io::Result<(Fd, Stat)> {
    let fd = crate::fs::open_without_waiting(path).map_err(|error| of_errno(error.errno))?;
    let stat = stat_fd(&fd).map_err(of_errno)?;
    Ok((fd, stat))
}

fn read_open(fd: &Fd, stat: Stat, most: u64) -> io::Result<Vec<u8>> {
    if stat.is_file() && stat.size > most {
        return Err(too_long_error(most));
    }
    if stat.is_fifo() {
        wait(fd.as_fd())?;
    }
    let mut bytes = Vec::new();
    loop {
        match read_append(fd, &mut bytes, READ_BYTES) {
            Ok(0) => return Ok(bytes),
            Ok(_) if bytes.len() as u64 > most => return Err(too_long_error(most)),
            Ok(_) => {}
            Err(Errno::AGAIN) => wait(fd.as_fd())?,
            Err(errno) => return Err(of_errno(errno)),
        }
    }
}

/// Waits for bytes or for the end of the file.
fn wait(file: BorrowedFd<'_>) -> io::Result<()> {
    let mut ready = Vec::new();
    while ready.is_empty() {
        if signal::is_requested() {
            return Err(ErrorKind::Interrupted.into());
        }
        netlink::wait_any(&[file], CHECK_INTERVAL_MS, &mut ready).map_err(|error| of_errno(error.errno))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::os::unix::fs::{PermissionsExt, chown};
    use std::process::Command;

    #[test]
    fn a_file_is_read_within_its_bound() {
        let tmp = tempfile::tempdir().unwrap();
        let at = |name: &str| tmp.path().join(name);
        std::fs::write(at("a"), [b'x'; 2048]).unwrap();
        assert_eq!(read(&at("a"), 2048).unwrap().len(), 2048);
        assert_eq!(read(&at("a"), 1024).unwrap_err().to_string(), "it has more than 1 KiB");
        // A sparse file of 1 TiB is rejected for its size alone.
        File::create(at("sparse")).unwrap().set_len(1 << 40).unwrap();
        assert_eq!(read(&at("sparse"), 4 << 20).unwrap_err().to_string(), "it has more than 4 MiB");
        for endless in ["/dev/zero", "/dev/urandom", "/"] {
            assert_eq!(
                read(Path::new(endless), 1024).unwrap_err().to_string(),
                "it is not a regular file",
                "{endless}"
            );
        }
        assert_eq!(read(Path::new("/dev/null"), 1024).unwrap(), b"");
        // Files of /proc report a size of 0.
        assert!(read(Path::new("/proc/self/mounts"), 4).is_err());
        assert!(read_input(&b"12345"[..], 4).is_err() && read_input(&b"1234"[..], 4).is_ok());
        assert_eq!(read(&at("none"), 1).unwrap_err().kind(), ErrorKind::NotFound);
    }

    #[test]
    fn a_fifo_is_read_to_its_end_and_within_its_bound() {
        let tmp = tempfile::tempdir().unwrap();
        let fifo = tmp.path().join("fifo");
        assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        let written = |script: &str| {
            let mut writer = Command::new("sh").args(["-c", script, "sh"]).arg(&fifo).spawn().unwrap();
            let got = read(&fifo, 1 << 20);
            let _ = writer.kill();
            writer.wait().unwrap();
            got.map(|bytes| String::from_utf8(bytes).unwrap()).map_err(|error| error.to_string())
        };
        assert_eq!(written("exec >\"$1\"; echo a; sleep 0.05; echo b"), Ok("a\nb\n".to_owned()));
        assert_eq!(written("yes >\"$1\""), Err("it has more than 1 MiB".to_owned()));
        assert_eq!(read_trusted(&fifo, 1).unwrap_err().to_string(), "it is not a regular file");
    }

    #[test]
    fn what_others_may_have_written_is_not_trusted() {
        let tmp = tempfile::tempdir().unwrap();
        let path = tmp.path().join("a.conf");
        std::fs::write(&path, "a").unwrap();
        let with_mode = |mode| {
            std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
            read_trusted(&path, 1).map(|(bytes, stat)| (bytes, stat.mode & 0o777)).map_err(|error| error.to_string())
        };
        assert_eq!(with_mode(0o644), Ok((b"a".to_vec(), 0o644)));
        for mode in [0o664, 0o646] {
            let says = format!("other users may write to it (mode {mode:04o}; chmod go-w)");
            assert_eq!(with_mode(mode), Err(says));
        }
        if chown(&path, Some(65_534), None).is_ok() {
            assert_eq!(
                with_mode(0o600),
                Err("it belongs to user 65534: it must belong to root or to the user that runs netwren".to_owned())
            );
            assert_eq!(read(&path, 1).unwrap(), b"a", "data is no configuration");
        }
        assert_eq!(read_trusted(Path::new("/dev/zero"), 9).unwrap_err().to_string(), "it is not a regular file");
    }
}
