//! Packing the bytes of a file while it is written: each piece becomes a gzip member or a zstd frame of its own.
//!
//! Readers take the pieces as one stream, and a file that a crash ends early has all pieces before the last one. gzip
//! is packed here. zstd is packed by a process without rights, because its encoder may panic (docs/adr/0018).

use crate::exit::Exit;
use crate::helper_process;
use crate::messages::say;
use export::PiecePacker;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;
use sys::caps::CapSet;
use sys::rights;

/// The name that the program is called by to be the process that packs pieces.
pub const NAME: &str = "netwren-pack";

/// Longest time for a piece. The encoder packs some 100 MB a second.
const PIECE: Duration = Duration::from_secs(20);

/// How the bytes of a file are packed.
pub enum Packing {
    /// gzip
    Gzip,
    /// zstd
    Zstd(PiecePacker<UnixStream>),
}

impl Packing {
    /// Returns the packing that the ending of the name asks for. Starts the process that packs zstd: call it before
    /// rights are given up.
    pub fn of(path: &Path) -> io::Result<Option<Packing>> {
        match ending(path) {
            Some("gz") => Ok(Some(Packing::Gzip)),
            Some(_) => Packing::zstd().map(Some),
            None => Ok(None),
        }
    }

    fn zstd() -> io::Result<Packing> {
        let cannot = |error: io::Error| io::Error::new(error.kind(), format!("cannot start zstd compression: {error}"));
        let stream = helper_process::start(NAME, [""; 0]).map_err(cannot)?;
        stream.set_read_timeout(Some(PIECE)).map_err(cannot)?;
        stream.set_write_timeout(Some(PIECE)).map_err(cannot)?;
        Ok(Packing::Zstd(PiecePacker::new(stream)))
    }

    /// Replaces `packed` with the packed `piece`.
    pub(super) fn pack(&mut self, piece: &[u8], packed: &mut Vec<u8>) {
        packed.clear();
        match self {
            Packing::Gzip => capture::put_gzip(piece, packed),
            Packing::Zstd(packer) => {
                if let Some(error) = packer.pack(piece, packed) {
                    say(&format!("zstd compression ended ({error}): the rest of the file is uncompressed"));
                }
            }
        }
    }
}

/// The ending of the name of a packed file: `gz` or `zst`.
fn ending(path: &Path) -> Option<&str> {
    path.extension().and_then(|ending| ending.to_str()).filter(|ending| ["gz", "zst"].contains(ending))
}

/// The path without the ending of a packed file.
pub(super) fn unpacked_name(path: &Path) -> &Path {
    path.file_stem().filter(|_| ending(path).is_some()).map_or(path, Path::new)
}

/// True for the name of a file that is written as pcap.
pub fn is_pcap(path: &Path) -> bool {
    unpacked_name(path).extension().is_some_and(|ending| ending == "pcap")
}

/// Packs pieces that come from stdin, a socket, until its other end is closed. Opens no file and no socket.
pub fn run() -> Exit {
    let Some(stream) = helper_process::begin(NAME) else { return Exit::Usage };
    rights::keep_open_only(CapSet::default());
    match export::pack_pieces(stream) {
        Ok(()) => Exit::Ok,
        Err(_) => Exit::Failed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_say_how_a_file_is_written() {
        for (name, packed, pcap) in [
            ("a.pcap", false, true),
            ("a.pcap.gz", true, true),
            ("b/a.pcap.zst", true, true),
            ("a.pcapng.zst", true, false),
            ("a.gz", true, false),
            ("a", false, false),
            (".gz", false, false),
        ] {
            let path = Path::new(name);
            assert_eq!((ending(path).is_some(), is_pcap(path)), (packed, pcap), "{name}");
        }
    }
}
