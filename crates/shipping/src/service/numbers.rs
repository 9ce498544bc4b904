//! The numbers of the next records, in a memory file that the service manager stores with the sockets. It has one line
//! `NETNS GROUP NEXT` per group, from which a successor computes the records lost in between, even after a crash.
use nflog::NextNumber;
use std::fmt::Write;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;

/// The name under which the service manager stores it.
pub(super) const NAME: &str = "netwren-log-numbers";
/// Larger than the lines of all groups.
const BYTES_MAX: u64 = 1 << 20;

/// The file, and its current content.
pub(super) struct Numbers {
    file: File,
    written: Vec<NextNumber>,
    /// Reused buffer.
    text: String,
}

impl Numbers {
    /// Stores numbers in `file` from now on.
    pub(super) fn new(file: File) -> Numbers {
        Numbers { file, written: Vec::new(), text: String::new() }
    }

    /// Replaces the content with `numbers`. Costs one system call if they changed, two if their count changed.
    pub(super) fn write(&mut self, numbers: &[NextNumber]) -> io::Result<()> {
        if numbers == self.written {
            return Ok(());
        }
        self.text.clear();
        for NextNumber { netns_id, group, next } in numbers {
            // A fixed width, so that a line overwrites its previous version.
            let _ = writeln!(self.text, "{netns_id:20} {group:5} {next:10}");
        }
        self.file.write_all_at(self.text.as_bytes(), 0)?;
        if numbers.len() != self.written.len() {
            self.file.set_len(self.text.len() as u64)?;
        }
        self.written.clear();
        self.written.extend_from_slice(numbers);
        Ok(())
    }
}

/// Reads the numbers from a stored file; skips invalid lines.
pub(super) fn read(mut file: &File) -> io::Result<Vec<NextNumber>> {
    let facts = file.metadata()?;
    if !facts.is_file() || facts.len() > BYTES_MAX {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "it is not a file of sequence numbers"));
    }
    let mut text = String::new();
    file.seek(SeekFrom::Start(0))?;
    file.take(BYTES_MAX).read_to_string(&mut text)?;
    Ok(text.lines().filter_map(line).collect())
}

/// Parses `NETNS GROUP NEXT`.
pub(super) fn line(line: &str) -> Option<NextNumber> {
    let mut words = line.split_whitespace();
    let (netns_id, group) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    Some(NextNumber { netns_id, group, next: words.next()?.parse().ok()? })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn numbers_are_read_as_they_were_written() {
        let file = tempfile::tempfile().unwrap();
        let mut numbers = Numbers::new(file.try_clone().unwrap());
        let number = |group, next| NextNumber { netns_id: 4_026_531_840, group, next };
        for wanted in [vec![number(5, 7)], vec![number(5, u32::MAX), number(6, 0)], vec![number(6, 1)], vec![]] {
            numbers.write(&wanted).unwrap();
            assert_eq!(read(&file).unwrap(), wanted);
        }
        file.write_all_at(b"1 2 3\nnonsense\n1 70000 3\n", 0).unwrap();
        assert_eq!(read(&file).unwrap(), [NextNumber { netns_id: 1, group: 2, next: 3 }]);
        assert!(read(&File::open("/dev/null").unwrap()).is_err());
    }
}
