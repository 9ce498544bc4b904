//! Recordings on disk, either plain as they were written or packed with zstd by `netwren record`.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use sys::{Header, Host, TapeError, escape_bytes};

/// The first bytes of a zstd frame (RFC 8878).
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// The largest recording that is unpacked, in bytes of memory. A few bytes of zstd can expand to any size.
///
/// Bound: bytes of an unpacked recording (`recording_file::a_packed_file_is_unpacked_up_to_a_bound`). Beyond: the
/// recording is refused. By: the author of the file.
const UNPACKED_MAX: u64 = 1 << 30;

/// The header of any recording fits in this many bytes.
const HEADER_MAX: u64 = 256 << 10;

/// Opens a host that replays the file. A packed recording is unpacked into memory.
pub fn replayed(path: &Path) -> Result<Host, TapeError> {
    match unpacked(path, UNPACKED_MAX, false)? {
        Some(file) => Host::replaying_file(file, path),
        None => Host::open_replay(path),
    }
}

/// Returns when and on what the file was recorded. Reads only the beginning of the file.
pub fn header_of(path: &Path) -> Result<Header, TapeError> {
    match unpacked(path, HEADER_MAX, true)? {
        Some(file) => Host::header_of_file(file, path),
        None => Host::header_of(path),
    }
}

/// True if a recording of this size can be unpacked again.
pub fn may_be_packed(bytes: u64) -> bool {
    bytes <= UNPACKED_MAX
}

/// Returns the unpacked bytes in memory; `None` if the file is not packed or cannot be opened, which the caller reports
/// when it opens the file itself. Beyond `most` bytes the rest is left out if `is_head`; otherwise the file is refused.
fn unpacked(path: &Path, most: u64, is_head: bool) -> Result<Option<File>, TapeError> {
    let Ok(mut packed) = sys::infile::open_regular(path) else { return Ok(None) };
    let mut magic = [0; 4];
    if packed.read_exact(&mut magic).is_err() || magic != ZSTD {
        return Ok(None);
    }
    let unpacked = unpack(packed, most + u64::from(!is_head));
    let too_large = || format!("it has more than {most} bytes (decompress it with `zstd -d` and replay the result)");
    let failed =
        |why: String| TapeError::Packed { path: escape_bytes(path.as_os_str().as_encoded_bytes()), why: why.into() };
    match unpacked {
        Ok((_, bytes)) if bytes > most => Err(failed(too_large())),
        Ok((file, _)) => Ok(Some(file)),
        Err(error) => Err(failed(error.to_string())),
    }
}

/// Unpacks at most `most` bytes into memory. Returns the memory file, positioned at its start, and the number of bytes.
fn unpack(mut packed: File, most: u64) -> io::Result<(File, u64)> {
    packed.seek(SeekFrom::Start(0))?;
    let (reader, _) = capture::unpacked(Box::new(packed))?;
    let memory = sys::service::memory_file(c"netwren-recording");
    let mut memory = memory.map_err(|error| io::Error::from_raw_os_error(error.errno.0))?;
    let bytes = io::copy(&mut reader.take(most), &mut memory)?;
    memory.seek(SeekFrom::Start(0))?;
    Ok((memory, bytes))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_packed_file_is_unpacked_up_to_a_bound() {
        let folder = tempfile::tempdir().unwrap();
        let (plain, packed) = (folder.path().join("plain"), folder.path().join("packed"));
        std::fs::write(&plain, vec![7; 100_000]).unwrap();
        export::zstd::pack(File::open(&plain).unwrap(), File::create(&packed).unwrap()).unwrap();
        assert!(std::fs::metadata(&packed).unwrap().len() < 1000);
        let bytes = |file: Option<File>| file.map(|file| file.metadata().unwrap().len());
        assert_eq!(bytes(unpacked(&packed, 100_000, false).unwrap()), Some(100_000));
        let refused = unpacked(&packed, 99_999, false).unwrap_err().to_string();
        assert!(refused.contains("more than 99999 bytes") && refused.contains("zstd -d"), "{refused}");
        assert_eq!(bytes(unpacked(&packed, 10, true).unwrap()), Some(10), "the head alone");
        assert!(
            unpacked(&plain, 10, false).unwrap().is_none() && unpacked(folder.path(), 10, false).unwrap().is_none()
        );
    }
}
