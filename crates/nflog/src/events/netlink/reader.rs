//! The thread that receives records, and does nothing else ([`netlink::datagrams`] says why).
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use netlink::datagrams::{BatchHeader, Chunk, ChunkSender, ChunkSizes, DatagramReader};
use sys::{SysError, clock, wait_any};

use super::groups::{DATAGRAM_BYTES_MAX, Delivery, GroupSocket};

/// 64 MiB at most: some 350,000 records wait while rows are written.
const CHUNKS: ChunkSizes = ChunkSizes { bytes: 1 << 20, datagram_bytes_max: DATAGRAM_BYTES_MAX, chunks_max: 64 };
/// Most datagrams received from one group before the next one has its turn.
const DATAGRAMS_PER_TURN: usize = 64;

/// The thread's state.
struct ReaderThread {
    sockets: Vec<GroupSocket>,
    netns_id: u64,
    /// The counts that go into the next batch.
    header: BatchHeader,
    /// The batch that is being filled.
    chunk: Chunk,
    output: ChunkSender,
    /// Readable once the run shall end.
    stop: UnixStream,
    /// True once the other thread receives no more chunks.
    is_disconnected: bool,
}

impl ReaderThread {
    fn run(mut self, early: &[Vec<u8>]) {
        if let Err(error) = self.receive_until_stopped(early) {
            self.output.fail(error);
        }
    }

    fn receive_until_stopped(&mut self, early: &[Vec<u8>]) -> Result<(), SysError> {
        for datagram in early {
            self.add(datagram);
        }
        let mut ready = Vec::new();
        while !self.is_disconnected {
            let sockets = self.sockets.iter().map(|socket| socket.netlink.as_fd());
            let files: Vec<_> = std::iter::once(self.stop.as_fd()).chain(sockets).collect();
            wait_any(&files, -1, &mut ready)?;
            if ready.first() == Some(&0) {
                return self.finish();
            }
            for file in &ready {
                self.receive(file - 1, DATAGRAMS_PER_TURN)?;
            }
            if !self.chunk.is_empty() {
                self.send_chunk()?;
            }
        }
        Ok(())
    }

    /// Gives the groups back, then receives what the kernel had gathered: no record that was counted is left behind.
    fn finish(&mut self) -> Result<(), SysError> {
        for index in 0..self.sockets.len() {
            if let Some(socket) = self.sockets.get(index) {
                socket.unbind()?;
            }
            // This ends: the socket gets no further datagram.
            self.receive(index, usize::MAX)?;
        }
        self.send_chunk()
    }

    /// Receives what waits at one socket, at most `datagrams_max` datagrams.
    fn receive(&mut self, index: usize, datagrams_max: usize) -> Result<(), SysError> {
        if self.chunk.is_full() {
            self.send_chunk()?;
        }
        if let Some(socket) = self.sockets.get(index) {
            // A frame without messages: those that follow have come after this time.
            self.chunk.push_frame(self.netns_id, socket.empty_ns, None, 0);
        }
        for _ in 0..datagrams_max {
            if self.chunk.is_full() {
                self.send_chunk()?;
            }
            let (Some(socket), false) = (self.sockets.get_mut(index), self.is_disconnected) else { break };
            let Some(received) = socket.receive(self.chunk.messages_of_next_frame())? else {
                socket.empty_ns = clock::wall_ns();
                break;
            };
            self.chunk.push_frame(self.netns_id, clock::wall_ns(), None, received.bytes);
        }
        Ok(())
    }

    /// Adds a datagram that was received while the groups were bound.
    fn add(&mut self, datagram: &[u8]) {
        if self.chunk.is_full() && self.send_chunk().is_err() {
            return;
        }
        if let Some(place) = self.chunk.messages_of_next_frame().get_mut(..datagram.len()) {
            place.copy_from_slice(datagram);
            self.chunk.push_frame(self.netns_id, clock::wall_ns(), None, datagram.len());
        }
    }

    /// Sends the batch and begins another one; waits while every chunk is in use.
    fn send_chunk(&mut self) -> Result<(), SysError> {
        let mut dropped = 0;
        for socket in &self.sockets {
            dropped += u64::from(socket.netlink.drops()?);
        }
        self.header.lost = dropped;
        self.is_disconnected |= !self.output.send(&mut self.chunk, &self.header);
        Ok(())
    }
}

/// Binds the groups and starts the thread: records from now on are received.
pub(crate) fn open_reader<'h>(
    groups: &[u16],
    delivery: Delivery,
    netns_id: u64,
    stop: &'h dyn Fn() -> bool,
) -> Result<DatagramReader<'h>, (u16, SysError)> {
    let mut early = Vec::new();
    let bind = |group: &u16| GroupSocket::bind(*group, delivery, &mut early).map_err(|error| (*group, error));
    let sockets: Vec<GroupSocket> = groups.iter().map(bind).collect::<Result<_, _>>()?;
    let buffer_bytes = sockets.first().map_or(Ok(0), |socket| socket.netlink.room());
    let buffer_bytes = buffer_bytes.map_err(|error| (0, error))?.into();
    let header = BatchHeader { buffer_bytes, sockets: sockets.len() as u64, ..BatchHeader::default() };
    let start = DatagramReader::start("netwren-log", CHUNKS, stop, move |output, chunk, stop| {
        let reader = ReaderThread { sockets, netns_id, header, chunk, output, stop, is_disconnected: false };
        reader.run(&early);
    });
    start.map_err(|error| (0, error))
}
