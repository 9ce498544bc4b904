//! Packing the bytes of a file while it is written: each piece becomes a gzip member or a zstd frame of its own.
//!
//! Readers take the pieces as one stream, and a file that a crash ends early has all pieces before the last one. gzip
//! is packed here. zstd is packed by a process without rights, because its encoder may panic (docs/adr/0018).

use export::zstd::{frame_of, put_stored};
use runtime::exit::Exit;
use runtime::helper_process::{Helper, put_message};
use runtime::messages::print_message;
use std::io;
use std::path::Path;
use std::time::Duration;
use sys::caps::CapSet;
use sys::rights;

/// The name that the program is called by to be the process that packs pieces.
pub const NAME: &str = "netwren-pack";

/// Longest time for a piece. The encoder packs some 100 MB a second.
const PIECE_TIMEOUT: Duration = Duration::from_secs(20);
/// Largest piece, and largest frame, that both processes exchange.
const PIECE_BYTES_MAX: usize = 64 << 20;

/// How the bytes of a file are packed.
pub(super) enum Packing {
    /// gzip
    Gzip,
    /// zstd
    Zstd(PiecePacker),
}

impl Packing {
    /// Returns the packing that the ending of the name asks for. Starts the process that packs zstd: call it before
    /// rights are given up.
    pub(super) fn from_path(path: &Path) -> io::Result<Option<Packing>> {
        match packed_suffix(path) {
            Some("gz") => Ok(Some(Packing::Gzip)),
            Some(_) => Packing::zstd().map(Some),
            None => Ok(None),
        }
    }

    fn zstd() -> io::Result<Packing> {
        let cannot = |error: io::Error| io::Error::new(error.kind(), format!("cannot start zstd compression: {error}"));
        let helper = Helper::start(NAME, [""; 0]).map_err(cannot)?;
        helper.limit_time(PIECE_TIMEOUT).map_err(cannot)?;
        Ok(Packing::Zstd(PiecePacker { helper: Some(helper), request: Vec::new() }))
    }

    /// Replaces `packed` with the packed `piece`.
    pub(super) fn pack(&mut self, piece: &[u8], packed: &mut Vec<u8>) {
        packed.clear();
        match self {
            Packing::Gzip => capture::put_gzip(piece, packed),
            Packing::Zstd(packer) => {
                if let Some(error) = packer.pack(piece, packed) {
                    print_message(&format!("zstd compression ended ({error}): the rest of the file is uncompressed"));
                }
            }
        }
    }
}

/// The ending of the name of a packed file: `gz` or `zst`.
fn packed_suffix(path: &Path) -> Option<&str> {
    path.extension().and_then(|ending| ending.to_str()).filter(|ending| ["gz", "zst"].contains(ending))
}

/// The path without the ending of a packed file.
pub(super) fn unpacked_name(path: &Path) -> &Path {
    path.file_stem().filter(|_| packed_suffix(path).is_some()).map_or(path, Path::new)
}

/// True for the name of a file that is written as pcap.
pub fn is_pcap(path: &Path) -> bool {
    unpacked_name(path).extension().is_some_and(|ending| ending == "pcap")
}

/// Has pieces packed by a process that runs [`run`].
pub(super) struct PiecePacker {
    /// `None` once the process has failed.
    helper: Option<Helper>,
    request: Vec<u8>,
}

impl PiecePacker {
    /// Replaces `frame` with the frame of `piece`. Returns the error that ends the use of the process, the first time:
    /// from then on, frames hold their pieces as they are.
    fn pack(&mut self, piece: &[u8], frame: &mut Vec<u8>) -> Option<io::Error> {
        let PiecePacker { helper, request } = self;
        let packed = helper.as_ref().map(|helper| {
            request.clear();
            put_message(request, |out| out.extend_from_slice(piece));
            helper.send(request)?;
            helper.receive_answer(PIECE_BYTES_MAX, frame)
        });
        let failure = match packed {
            Some(Ok(())) => return None,
            Some(Err(error)) => Some(error),
            None => None,
        };
        self.helper = None;
        frame.clear();
        put_stored(piece, frame);
        failure
    }
}

/// Packs pieces that the main process sends, until it closes its end. Opens no file and no socket.
pub fn run() -> Exit {
    let Some(main) = Helper::serve(NAME) else { return Exit::Usage };
    rights::keep_open_only(CapSet::default());
    let (mut piece, mut back, mut answer) = (Vec::new(), Vec::new(), Vec::new());
    loop {
        match main.receive(PIECE_BYTES_MAX, &mut piece) {
            Ok(true) => {}
            Ok(false) => return Exit::Ok,
            Err(_) => return Exit::Failed,
        }
        answer.clear();
        put_message(&mut answer, |out| out.extend_from_slice(&frame_of(&piece, &mut back)));
        if main.send(&answer).is_err() {
            return Exit::Failed;
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::io::Read;

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
            assert_eq!((packed_suffix(path).is_some(), is_pcap(path)), (packed, pcap), "{name}");
        }
    }

    /// Pieces that the process leaves unpacked because it panics or ends are stored uncompressed.
    #[test]
    fn pieces_are_packed_as_long_as_the_process_lives() {
        let [main, other] = Helper::pair().unwrap();
        let process = std::thread::spawn(move || {
            let (mut piece, mut answer) = (Vec::new(), Vec::new());
            assert!(other.receive(PIECE_BYTES_MAX, &mut piece).unwrap());
            put_message(&mut answer, |out| out.extend_from_slice(&frame_of(&piece, &mut Vec::new())));
            other.send(&answer).unwrap();
        });
        let mut packer = PiecePacker { helper: Some(main), request: Vec::new() };
        let (piece, mut frame) = (b"a packet, ".repeat(1000), Vec::new());
        let (mut failures, mut lengths) = (0, Vec::new());
        for _ in 0..4 {
            failures += usize::from(packer.pack(&piece, &mut frame).is_some());
            lengths.push(frame.len() < piece.len() / 3);
            let (mut reader, is_packed) = capture::unpacked(Box::new(io::Cursor::new(frame.clone()))).unwrap();
            let mut unpacked = Vec::new();
            reader.read_to_end(&mut unpacked).unwrap();
            assert!(is_packed && unpacked == piece, "{} bytes", unpacked.len());
        }
        assert_eq!((failures, lengths), (1, vec![true, false, false, false]));
        assert!(frame.len() >= piece.len() && frame.len() < piece.len() + 40);
        process.join().unwrap();
    }
}
