//! Files that were moved away are packed by a process of its own: packing neither holds up nor ends who ships.
//!
//! It gets the two files and no name: what it can do is read the one and write the other. It writes `PATH.zst.part`,
//! and that becomes `PATH.N.zst` once all of it lies there; `PATH.N` goes then.

use super::named;
use super::rotation::{numbered, packed};
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

/// The name by which [`super::Rotation::packer`] is called; its argument is a name for its messages.
pub const PACKER: &str = "netwren-zstd";

/// The files of one `PATH`.
pub(super) struct Packing {
    path: PathBuf,
    packer: PathBuf,
    running: Option<Running>,
    /// One could not be packed: nothing is tried again before the next one.
    is_tired: bool,
}

struct Running {
    process: Child,
    /// Which file it packs, as it is numbered now.
    number: u32,
}

impl Packing {
    pub(super) fn new(path: PathBuf, packer: PathBuf) -> Packing {
        Packing { path, packer, running: None, is_tired: false }
    }

    /// Files have moved one number on, and there is a new first one.
    pub(super) fn moved_on(&mut self) {
        self.is_tired = false;
        if let Some(running) = &mut self.running {
            running.number += 1;
        }
    }

    /// Puts what is packed in its place and begins with the next of `keep` files. Returns at once.
    pub(super) fn look(&mut self, keep: u32) -> io::Result<()> {
        if let Some(running) = &mut self.running {
            let Some(ended) = running.process.try_wait()? else { return Ok(()) };
            let number = running.number;
            self.running = None;
            if ended.success() {
                self.put_in_place(number, keep)?;
            } else {
                // Its own message says why.
                self.is_tired = true;
                let _ = fs::remove_file(self.part());
            }
        }
        if self.is_tired {
            return Ok(());
        }
        let next = (1..=keep).find(|number| numbered(&self.path, *number).symlink_metadata().is_ok());
        let begun = next.map_or(Ok(()), |number| self.begin(number));
        self.is_tired = begun.is_err();
        begun
    }

    fn part(&self) -> PathBuf {
        let mut name = self.path.as_os_str().to_owned();
        name.push(".zst.part");
        name.into()
    }

    fn put_in_place(&self, number: u32, keep: u32) -> io::Result<()> {
        let (part, raw) = (self.part(), numbered(&self.path, number));
        if number > keep {
            // It took so long that it is one too many by now.
            return fs::remove_file(part);
        }
        let place = packed(&raw);
        fs::rename(&part, &place).map_err(|error| named("cannot rename", &part.to_string_lossy(), &error))?;
        fs::remove_file(&raw).map_err(|error| named("cannot remove", &raw.to_string_lossy(), &error))
    }

    fn begin(&mut self, number: u32) -> io::Result<()> {
        let raw = numbered(&self.path, number);
        let said = |error| named("cannot pack", &raw.to_string_lossy(), &error);
        let from = own_file(&raw).map_err(said)?;
        let mode = from.metadata().map_err(said)?.mode() & 0o777;
        let part = self.part();
        match fs::remove_file(&part) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(said(error)),
            _ => {}
        }
        let to = OpenOptions::new().write(true).create_new(true).mode(mode).open(&part).map_err(said)?;
        let mut command = Command::new(&self.packer);
        command.arg0(PACKER).arg(&raw).env_clear().stdin(from).stdout(to);
        match command.spawn() {
            Ok(process) => self.running = Some(Running { process, number }),
            Err(error) => {
                let _ = fs::remove_file(&part);
                return Err(said(error));
            }
        }
        Ok(())
    }
}

/// A file of this user and no link: what others put there is not read.
fn own_file(path: &Path) -> io::Result<File> {
    let flags = sys::fs::NONBLOCK | sys::fs::NO_FOLLOW;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let facts = file.metadata()?;
    if facts.is_file() && facts.uid() == sys::caps::euid() && facts.nlink() == 1 {
        return Ok(file);
    }
    Err(io::Error::new(ErrorKind::PermissionDenied, "it is no file of this user alone"))
}

impl Drop for Packing {
    fn drop(&mut self) {
        if let Some(running) = &mut self.running {
            // The file stays as it was; the next run packs it.
            let _ = running.process.kill();
            let _ = running.process.wait();
            let _ = fs::remove_file(self.part());
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::time::{Duration, Instant};

    /// Looks until nothing runs.
    fn packed_up(packing: &mut Packing, keep: u32) {
        let begin = Instant::now();
        packing.look(keep).unwrap();
        while packing.running.is_some() {
            assert!(begin.elapsed() < Duration::from_secs(60), "it does not end");
            std::thread::sleep(Duration::from_millis(1));
            packing.look(keep).unwrap();
        }
    }

    /// In the place of the packer.
    fn copying(dir: &tempfile::TempDir) -> PathBuf {
        let place = dir.path().join("copies");
        testkit::program::install_script(&place, "#!/bin/sh\nexec cat\n");
        place
    }

    fn names(dir: &Path) -> Vec<String> {
        let names = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }

    #[test]
    fn issue_12_all_that_was_moved_away_is_packed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("fw.log");
        for number in 0..4 {
            fs::write(numbered(&path, number), format!("{number}")).unwrap();
        }
        let tools = tempfile::tempdir().unwrap();
        let mut packing = Packing::new(path.clone(), copying(&tools));
        packed_up(&mut packing, 3);
        assert_eq!(names(dir.path()), ["fw.log", "fw.log.1.zst", "fw.log.2.zst", "fw.log.3.zst"]);
        assert_eq!(fs::read_to_string(dir.path().join("fw.log.2.zst")).unwrap(), "2");
    }

    #[test]
    fn issue_12_what_cannot_be_packed_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("fw.log");
        fs::write(numbered(&path, 1), "one").unwrap();
        for packer in ["/bin/false", "/nowhere/zstd"] {
            let mut packing = Packing::new(path.clone(), packer.into());
            let _ = packing.look(3);
            let begin = Instant::now();
            while !packing.is_tired {
                assert!(begin.elapsed() < Duration::from_secs(60), "it does not end");
                std::thread::sleep(Duration::from_millis(1));
                packing.look(3).unwrap();
            }
            assert_eq!(names(dir.path()), ["fw.log.1"], "{packer}");
        }
    }

    #[test]
    fn issue_12_a_link_that_lies_there_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("fw.log");
        fs::write(dir.path().join("secret"), "secret").unwrap();
        std::os::unix::fs::symlink(dir.path().join("secret"), numbered(&path, 1)).unwrap();
        fs::hard_link(dir.path().join("secret"), numbered(&path, 2)).unwrap();
        let mut packing = Packing::new(path, "/bin/true".into());
        assert!(packing.look(3).unwrap_err().to_string().starts_with("cannot pack "));
        packing.look(3).unwrap();
        assert_eq!(names(dir.path()), ["fw.log.1", "fw.log.2", "secret"]);
    }

    /// Another one comes while it packs: what it packs has another number then.
    #[test]
    fn issue_12_files_move_on_while_one_is_packed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("fw.log");
        fs::write(numbered(&path, 1), "old").unwrap();
        let tools = tempfile::tempdir().unwrap();
        let mut packing = Packing::new(path.clone(), copying(&tools));
        packing.look(3).unwrap();
        fs::rename(numbered(&path, 1), numbered(&path, 2)).unwrap();
        packing.moved_on();
        packed_up(&mut packing, 3);
        assert_eq!(names(dir.path()), ["fw.log.2.zst"]);
    }
}
