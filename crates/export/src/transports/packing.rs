//! Packing of rotated files in a separate process, so that it can neither delay nor crash the run.
//!
//! The process gets the two open files and no name: it can only read one and write the other. It writes
//! `PATH.zst.part`, which is renamed to `PATH.N.zst` once it is complete; then `PATH.N` is removed.

use super::rotation::{error_at, numbered_name, packed_name};
use super::with_object;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::Arc;
use sys::Errno;
use sys::outfile::{Contents, FilePlace, OutfileOptions};

/// The name by which [`super::Rotation::packer`] is started; its argument is a name for its messages.
pub const PACKER: &str = "netwren-zstd";

/// The packing of the rotated files of one `PATH`.
pub(super) struct Packing {
    packer: PathBuf,
    running: Option<RunningPacker>,
    /// A file could not be packed: nothing is tried again until the next rotation.
    is_tired: bool,
}

struct RunningPacker {
    process: Child,
    place: Arc<FilePlace>,
    /// The present number of the file that it packs.
    number: u32,
}

impl Packing {
    pub(super) fn new(packer: PathBuf) -> Packing {
        Packing { packer, running: None, is_tired: false }
    }

    /// Handles a rotation: the number of each file has increased, and there is a new first one.
    pub(super) fn moved_on(&mut self) {
        self.is_tired = false;
        if let Some(running) = &mut self.running {
            running.number += 1;
        }
    }

    /// Puts the packed file in place once packing has ended, then starts packing the next of `keep` files at `place`.
    /// Returns at once.
    pub(super) fn continue_packing(&mut self, place: &Arc<FilePlace>, keep: u32) -> io::Result<()> {
        if let Some(mut running) = self.running.take() {
            let Some(ended) = running.process.try_wait()? else {
                self.running = Some(running);
                return Ok(());
            };
            if ended.success() {
                put_in_place(&running, keep)?;
            } else {
                // The process itself reports the reason.
                self.is_tired = true;
                let _ = running.place.folder().remove(part_name(running.place.name()));
            }
        }
        if self.is_tired {
            return Ok(());
        }
        let next = (1..=keep).find(|number| place.folder().stat_name(&numbered_name(place.name(), *number)).is_ok());
        let begun = next.map_or(Ok(()), |number| self.begin(place, number));
        self.is_tired = begun.is_err();
        begun
    }

    fn begin(&mut self, place: &Arc<FilePlace>, number: u32) -> io::Result<()> {
        let (folder, raw, part) = (place.folder(), numbered_name(place.name(), number), part_name(place.name()));
        let said = |error| with_object("cannot compress", &raw.to_string_lossy(), &error);
        let from = folder.own_file(&raw).map_err(said)?;
        let mode = from.metadata().map_err(said)?.mode() & sys::outfile::GROUP_READS;
        match folder.remove(&part) {
            Err(error) if error.errno != Errno::NOENT => return Err(error_at("cannot remove", &part, &error)),
            _ => {}
        }
        let new = OutfileOptions { mode, ..OutfileOptions::regular(Contents::New) };
        let to = folder.open_output(&part, new).map_err(said)?;
        let mut command = Command::new(&self.packer);
        command.arg0(PACKER).arg(&raw).env_clear().stdin(from).stdout(to);
        match command.spawn() {
            Ok(process) => self.running = Some(RunningPacker { process, place: Arc::clone(place), number }),
            Err(error) => {
                let _ = folder.remove(&part);
                return Err(said(error));
            }
        }
        Ok(())
    }
}

fn part_name(name: &OsStr) -> OsString {
    let mut name = name.to_owned();
    name.push(".zst.part");
    name
}

fn put_in_place(running: &RunningPacker, keep: u32) -> io::Result<()> {
    let (folder, name) = (running.place.folder(), running.place.name());
    let (part, raw) = (part_name(name), numbered_name(name, running.number));
    if running.number > keep {
        // The files were rotated so often in the meantime that this one exceeds the number of files to keep.
        return folder.remove(&part).map_err(|error| error_at("cannot remove", &part, &error));
    }
    folder.rename(&part, packed_name(&raw)).map_err(|error| error_at("cannot rename", &part, &error))?;
    folder.remove(&raw).map_err(|error| error_at("cannot remove", &raw, &error))
}

impl Drop for Packing {
    fn drop(&mut self) {
        if let Some(running) = &mut self.running {
            // The file stays unchanged; the next run packs it.
            let _ = running.process.kill();
            let _ = running.process.wait();
            let _ = running.place.folder().remove(part_name(running.place.name()));
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::fs;
    use std::path::Path;
    use std::time::{Duration, Instant};

    fn place(path: &Path) -> Arc<FilePlace> {
        Arc::new(FilePlace::find(path).unwrap())
    }

    fn at(path: &Path, number: u32) -> PathBuf {
        numbered_name(path.as_os_str(), number).into()
    }

    /// Calls `look` until no process runs.
    fn packed_up(packing: &mut Packing, path: &Path, keep: u32) {
        let (begin, place) = (Instant::now(), place(path));
        packing.continue_packing(&place, keep).unwrap();
        while packing.running.is_some() {
            assert!(begin.elapsed() < Duration::from_secs(60), "it does not end");
            std::thread::sleep(Duration::from_millis(1));
            packing.continue_packing(&place, keep).unwrap();
        }
    }

    /// Installs a script that copies instead of packing.
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
            fs::write(at(&path, number), format!("{number}")).unwrap();
        }
        let tools = tempfile::tempdir().unwrap();
        let mut packing = Packing::new(copying(&tools));
        packed_up(&mut packing, &path, 3);
        assert_eq!(names(dir.path()), ["fw.log", "fw.log.1.zst", "fw.log.2.zst", "fw.log.3.zst"]);
        assert_eq!(fs::read_to_string(dir.path().join("fw.log.2.zst")).unwrap(), "2");
    }

    #[test]
    fn issue_12_what_cannot_be_packed_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("fw.log");
        fs::write(at(&path, 1), "one").unwrap();
        for packer in ["/bin/false", "/nowhere/zstd"] {
            let mut packing = Packing::new(packer.into());
            let _ = packing.continue_packing(&place(&path), 3);
            let begin = Instant::now();
            while !packing.is_tired {
                assert!(begin.elapsed() < Duration::from_secs(60), "it does not end");
                std::thread::sleep(Duration::from_millis(1));
                packing.continue_packing(&place(&path), 3).unwrap();
            }
            assert_eq!(names(dir.path()), ["fw.log.1"], "{packer}");
        }
    }

    #[test]
    fn issue_12_a_link_that_lies_there_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("fw.log");
        fs::write(dir.path().join("secret"), "secret").unwrap();
        std::os::unix::fs::symlink(dir.path().join("secret"), at(&path, 1)).unwrap();
        fs::hard_link(dir.path().join("secret"), at(&path, 2)).unwrap();
        let mut packing = Packing::new("/bin/true".into());
        assert!(packing.continue_packing(&place(&path), 3).unwrap_err().to_string().starts_with("cannot compress "));
        packing.continue_packing(&place(&path), 3).unwrap();
        assert_eq!(names(dir.path()), ["fw.log.1", "fw.log.2", "secret"]);
    }

    /// A rotation while a file is packed: the packed file gets the new number.
    #[test]
    fn issue_12_files_move_on_while_one_is_packed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("fw.log");
        fs::write(at(&path, 1), "old").unwrap();
        let tools = tempfile::tempdir().unwrap();
        let mut packing = Packing::new(copying(&tools));
        packing.continue_packing(&place(&path), 3).unwrap();
        fs::rename(at(&path, 1), at(&path, 2)).unwrap();
        packing.moved_on();
        packed_up(&mut packing, &path, 3);
        assert_eq!(names(dir.path()), ["fw.log.2.zst"]);
    }
}
