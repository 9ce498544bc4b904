//! The rows of `log`.
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use record::rows::LogRecords;
use record::{Accounting, Demand, Each, Offer, SourceError, SourceFault, Stream, StreamState, Table};
use sys::{Blocks, BufferLimits, Errno, Host, SysError};

use crate::events::netlink::batch::BatchDecoder;
use crate::events::netlink::bound::BoundGroups;
use crate::events::netlink::groups::{self, DeliveryOptions};
use crate::events::netlink::other_netns::FindOtherNetns;
use crate::events::netlink::reader::open_reader;
use crate::events::netlink::scanner::OtherGroups;
use crate::events::preview::{self, Preview};
use crate::events::succession::{StoreNumbers, Succession};
use crate::events::wanted::WantedParts;
use crate::taken::GroupReader;

/// Names the stream in messages to the user.
const WHAT: &str = "log records";
const NETLINK: &str = "netlink";

/// Default of [`FollowLog::buffer_bytes`]: 16 MiB hold some 60,000 records.
///
/// Bound: bytes of receive buffer for a log group (`--buffer`). Beyond: records of this group are lost and counted to
/// the packet (exit code 3); other groups have their own buffers. By: any sender of packets that a rule logs.
pub const BUFFER_BYTES: u32 = 16 << 20;

/// Options of a [`LogStream`].
pub struct FollowLog<'h> {
    /// The log groups.
    pub groups: Vec<u16>,
    /// The parts of records that rows must contain.
    pub wanted: Arc<WantedParts>,
    /// Time for which records may accumulate in the kernel, in steps of 10 ms.
    pub latency: Duration,
    /// Size of each group's receive buffer in bytes; CAP_NET_ADMIN allows more than the system's limit.
    pub buffer_bytes: u32,
    /// Inode of the calling thread's namespace.
    pub netns_id: u64,
    /// Finds other namespaces, whose groups with these numbers are also read; they are not handed over. It is called
    /// now, and later by a separate thread: once per second, and when mounts change.
    pub others: Option<FindOtherNetns>,
    /// Limits for the memory and sockets of other namespaces.
    pub other_buffers: BufferLimits,
    /// Returns true to end the run. Called some five times per second, and after a signal.
    pub stop: &'h dyn Fn() -> bool,
    /// Number of records so far that the kernel could not deliver, as far as gaps in their numbers have revealed them.
    /// Updated while the stream is read.
    pub lost: Arc<AtomicU64>,
    /// State taken over from an earlier process, and left to a later one.
    pub succession: Succession<'h>,
    /// True if records contain their packet's connection-tracking entry, if the kernel sends it ([`sends_entries`]).
    pub entries: bool,
    /// Gets the records of each batch first.
    pub preview: Option<&'h dyn Preview>,
}

/// Whether this kernel sends connection-tracking entries with records (CONFIG_NETFILTER_NETLINK_GLUE_CT). Binds no
/// group; the kernel may load nf_conntrack_netlink. Needs CAP_NET_ADMIN.
pub fn sends_entries() -> Result<bool, SysError> {
    groups::sends_entries()
}

/// The stream of log records from now on.
pub struct LogStream<'h> {
    blocks: Box<dyn Blocks + 'h>,
    groups: Vec<u16>,
    /// Groups that the recording does not hold.
    unrecorded: Vec<u16>,
    bound: BoundGroups,
    decoder: BatchDecoder,
    wanted: Arc<WantedParts>,
    /// [`FollowLog::lost`]
    lost: Arc<AtomicU64>,
    hand_over: Option<Box<dyn StoreNumbers + 'h>>,
    preview: Option<&'h dyn Preview>,
}

impl<'h> LogStream<'h> {
    /// Binds the groups: records logged after the return are reported. Needs CAP_NET_ADMIN.
    pub fn open(host: &'h Host, follow: FollowLog<'h>) -> Result<LogStream<'h>, SourceError> {
        let FollowLog { groups, wanted, latency, buffer_bytes, netns_id, others, stop, .. } = follow;
        let FollowLog { lost, mut succession, entries, preview, .. } = follow;
        let words: Vec<String> = groups.iter().map(|group| format!("group {group}")).collect();
        host.note_requested(LogRecords::NAME, &mut words.iter().map(String::as_str));
        let unrecorded = |word: &str| host.was_requested(LogRecords::NAME, word) == Some(false);
        let unrecorded = groups.iter().zip(&words).filter(|(_, word)| unrecorded(word)).map(|(group, _)| *group);
        let unrecorded = unrecorded.collect();
        let copy_bytes = wanted.copy_bytes.load(Relaxed);
        let delivery = DeliveryOptions { copy_bytes, latency, buffer_bytes, entries };
        let (mut refused, mut bound) = (0, BoundGroups::default());
        let blocks = host.stream(&format!("nflog/{netns_id}"), "", || {
            let (wanted, buffers) = (Arc::clone(&wanted), follow.other_buffers);
            let others = others.map(|find| OtherGroups { find, wanted, buffers });
            let opened = open_reader(&groups, delivery, netns_id, others, stop, &mut succession);
            let (reader, opened) = opened.map_err(|(group, error)| {
                refused = group;
                error
            })?;
            bound = opened;
            Ok(Box::new(reader))
        });
        let blocks = blocks.map_err(|error| error_of(host, &groups, refused, &error))?;
        let mut decoder = BatchDecoder::default();
        for (group, next) in &bound.taken_over {
            decoder.sequences.begin(netns_id, *group, *next);
        }
        let hand_over = succession.hand_over;
        Ok(LogStream { blocks, groups, unrecorded, bound, decoder, wanted, lost, hand_over, preview })
    }

    /// The bound sockets with their groups.
    pub fn sockets(&self) -> Vec<(u16, BorrowedFd<'_>)> {
        self.bound.sockets.iter().map(|socket| (socket.group, socket.netlink.as_fd())).collect()
    }

    /// Groups whose socket was taken over.
    pub fn taken_groups(&self) -> Vec<u16> {
        self.bound.taken_over.iter().map(|(group, _)| *group).collect()
    }

    /// Groups whose inherited socket was not taken over, and why, in words.
    pub fn refused_groups(&self) -> &[(u16, String)] {
        &self.bound.refused
    }

    /// Waits for a batch and hands its records to `each`.
    fn next_batch(&mut self, each: &mut Each<'_, LogRecords>) -> Result<StreamState, SysError> {
        if let Some(hand_over) = &mut self.hand_over {
            // The consumer has the rows of the last batch: a successor continues with the records after them.
            hand_over.store_numbers(&self.decoder.sequences.numbers());
        }
        let Some(batch) = self.blocks.next()? else { return Ok(StreamState::Ended) };
        if let Some(preview) = self.preview {
            preview::show(batch, &self.groups, preview);
        }
        self.decoder.decode(batch, &self.groups, each);
        Ok(StreamState::Open)
    }
}

impl Stream<LogRecords> for LogStream<'_> {
    fn offer(&self, _: &Demand<LogRecords>) -> Offer {
        let groups: Vec<String> = self.groups.iter().map(u16::to_string).collect();
        let line = format!("log records of group {} via netlink: nfnetlink_log", groups.join(", "));
        Offer { backend: NETLINK, explain: vec![line], ..Offer::default() }
    }

    fn next(&mut self, _: &Demand<LogRecords>, each: &mut Each<'_, LogRecords>) -> Result<StreamState, SourceError> {
        self.bound.copy(self.wanted.copy_bytes.load(Relaxed));
        self.decoder.layouts.reads_headers = self.wanted.headers.load(Relaxed);
        self.decoder.layouts.reads_link = self.wanted.link.load(Relaxed);
        let state = self.next_batch(each);
        self.lost.store(self.decoder.sequences.lost_records(), Relaxed);
        state.map_err(|error| SourceError { what: WHAT, fault: SourceFault::Io, cause: Box::new(error) })
    }

    fn close(&mut self) -> Accounting {
        if let Some(mut hand_over) = self.hand_over.take() {
            hand_over.end(&self.sockets(), &self.decoder.sequences.numbers());
        }
        let BatchDecoder { sequences, header, stats, first_error, .. } = &self.decoder;
        let (lost, between, dropped) = (sequences.lost_records(), sequences.lost_between(), header.lost);
        let mut stats = Accounting { lost, ..stats.clone() };
        stats.add_backend(NETLINK);
        if let Some(error) = first_error {
            stats.add_reason(stats.failed, format!("malformed messages, the first: {error}"));
        }
        if between > 0 {
            let text =
                "records lost between the earlier run and this one: it was killed, or the netlink buffer was full";
            stats.add_reason(between, text);
        }
        let lost = lost - between;
        if lost > 0 {
            let text = format!(
                "records lost: the netlink buffer of their group ({} bytes) was full (raise with --buffer)",
                header.buffer_bytes
            );
            stats.add_reason(lost, text);
        } else if dropped > 0 && between == 0 {
            // Only the next record of the group would reveal the gap, and no record followed.
            stats.incomplete(dropped, "datagrams of records lost at the end: the netlink buffer was full (--buffer)");
        }
        self.bound.report_others(header, &mut stats);
        for group in &self.unrecorded {
            stats.unanswered = true;
            let text = format!("the recording holds no records of group {group}: the run did not listen to it");
            stats.add_reason(0, text);
        }
        stats
    }
}

fn error_of(host: &Host, groups: &[u16], group: u16, error: &SysError) -> SourceError {
    if error.errno == Errno::NOT_RECORDED {
        return SourceError { what: WHAT, fault: SourceFault::Unsupported, cause: NOT_RECORDED.into() };
    }
    if let Some(taken) = GroupReader::from_error(host, group, error) {
        return SourceError { what: WHAT, fault: SourceFault::Io, cause: Box::new(taken) };
    }
    if error.errno == Errno::MFILE {
        let bound = groups.iter().position(|asked| *asked == group).unwrap_or(0);
        let cause = format!(
            "{error}: only {bound} of {} groups could be bound, each needs a file descriptor; raise the limit with \
             `ulimit -n`, or LimitNOFILE= in a unit",
            groups.len()
        );
        return SourceError { what: WHAT, fault: SourceFault::Io, cause: cause.into() };
    }
    let fault = if error.errno.is_denied() { SourceFault::Denied } else { SourceFault::Io };
    SourceError { what: WHAT, fault, cause: Box::new(error.clone()) }
}

const NOT_RECORDED: &str = "not in the recording (`netwren log --record FILE` records them)";
