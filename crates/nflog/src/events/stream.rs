//! The rows of `log`.
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use netlink::datagrams::{BATCH_HEADER, BatchHeader, DatagramFrame, DatagramFrames};
use netlink::{DecodeError, Messages};
use record::rows::{LogRecord, LogRecords};
use record::{Accounting, Demand, Each, Next, Offer, SourceError, SourceFault, Stream, StreamState, Table};
use sys::{Blocks, BufferLimits, Errno, Host, ShortShares, SysError};

use crate::events::netlink::groups::{self, DeliveryOptions, GroupSocket};
use crate::events::netlink::layout::RecordLayouts;
use crate::events::netlink::other_netns::{FindOtherNetns, OtherNetnsSockets};
use crate::events::netlink::reader::{OpenedReader, open_reader};
use crate::events::netlink::record::is_record;
use crate::events::netlink::scanner::{OtherGroups, Scanner};
use crate::events::netlink::sequence::Sequences;
use crate::events::preview::{self, Preview};
use crate::events::succession::{StoreNumbers, Succession};
use crate::taken::GroupReader;

/// Names the stream in messages to the user.
const WHAT: &str = "log records";
const NETLINK: &str = "netlink";
/// Notes about the memory of other namespaces.
const REDUCED: &str = "network namespaces had smaller receive buffers: they share --buffer-total";
const LEFT_OUT: &str = "network namespaces were left out for lack of memory (raise with --buffer-total)";

/// Default of [`FollowLog::buffer_bytes`]: 16 MiB hold some 60,000 records.
///
/// Bound: bytes of receive buffer for a log group (`--buffer`). Beyond: records of this group are lost and counted to
/// the packet (exit code 3); other groups have their own buffers. By: any sender of packets that a rule logs.
pub const BUFFER_BYTES: u32 = 16 << 20;

/// Optional parts of records that are in use, apart from the packets' bytes. A stream leaves the others out, which
/// saves a tenth of its own work. They may change while the stream is read.
#[derive(Debug, Default)]
pub struct WantedParts {
    /// The headers of packets, decoded ([`LogRecord::packet`]).
    pub headers: AtomicBool,
    /// The interfaces, and the header and address of the link layer.
    pub link: AtomicBool,
}

/// Options of a [`LogStream`].
pub struct FollowLog<'h> {
    /// The log groups.
    pub groups: Vec<u16>,
    /// Number of bytes to copy of each packet. A new value takes effect immediately.
    pub copy_bytes: Arc<AtomicU32>,
    /// The parts of records that rows must contain.
    pub asked: Arc<WantedParts>,
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
    header: BatchHeader,
    layouts: RecordLayouts,
    sequences: Sequences,
    /// [`FollowLog::lost`]
    lost: Arc<AtomicU64>,
    seen: u64,
    failed: u64,
    /// Number of records in a recording whose group was not requested.
    filtered: u64,
    unknown_attrs: u64,
    /// Received records arrived after this time, in ns since 1970.
    since_ns: u64,
    first_error: Option<DecodeError>,
    /// Groups that the recording does not hold.
    unrecorded: Vec<u16>,
    /// Empty in a replay.
    sockets: Vec<Arc<GroupSocket>>,
    /// Sockets of other namespaces, and the scanner that finds these namespaces.
    elsewhere: Option<(Arc<OtherNetnsSockets>, Scanner)>,
    /// [`FollowLog::copy_bytes`]
    copy_bytes: Arc<AtomicU32>,
    /// The last number of bytes per packet that was requested from the kernel.
    copied: u32,
    /// [`FollowLog::asked`]
    asked: Arc<WantedParts>,
    taken_over: Vec<u16>,
    refused: Vec<(u16, String)>,
    hand_over: Option<Box<dyn StoreNumbers + 'h>>,
    preview: Option<&'h dyn Preview>,
}

impl<'h> LogStream<'h> {
    /// Binds the groups: records logged after the return are reported. Needs CAP_NET_ADMIN.
    pub fn open(host: &'h Host, follow: FollowLog<'h>) -> Result<LogStream<'h>, SourceError> {
        let FollowLog { groups, copy_bytes, latency, buffer_bytes, netns_id, others, stop, .. } = follow;
        let FollowLog { lost, mut succession, entries, preview, asked, .. } = follow;
        let words: Vec<String> = groups.iter().map(|group| format!("group {group}")).collect();
        host.note_requested(LogRecords::NAME, &mut words.iter().map(String::as_str));
        let unrecorded = |word: &str| host.was_requested(LogRecords::NAME, word) == Some(false);
        let unrecorded = groups.iter().zip(&words).filter(|(_, word)| unrecorded(word)).map(|(group, _)| *group);
        let unrecorded = unrecorded.collect();
        let delivery = DeliveryOptions { copy_bytes: copy_bytes.load(Relaxed), latency, buffer_bytes, entries };
        let (mut refused, mut opened) = (0, None);
        let blocks = host.stream(&format!("nflog/{netns_id}"), "", || {
            let (copy_bytes, buffers) = (Arc::clone(&copy_bytes), follow.other_buffers);
            let others = others.map(|find| OtherGroups { find, copy_bytes, buffers });
            let reader = open_reader(&groups, delivery, netns_id, others, stop, &mut succession);
            let OpenedReader { reader, sockets, elsewhere, taken_over, refused } =
                reader.map_err(|(group, error)| {
                    refused = group;
                    error
                })?;
            opened = Some((sockets, elsewhere, taken_over, refused));
            Ok(Box::new(reader))
        });
        let blocks = blocks.map_err(|error| error_of(host, &groups, refused, &error))?;
        let (sockets, elsewhere, inherited, not_taken) = opened.unwrap_or_default();
        let mut sequences = Sequences::default();
        for (group, next) in &inherited {
            sequences.begin(netns_id, *group, *next);
        }
        Ok(LogStream {
            blocks,
            groups,
            header: BatchHeader::default(),
            layouts: RecordLayouts::default(),
            sequences,
            lost,
            seen: 0,
            failed: 0,
            filtered: 0,
            unknown_attrs: 0,
            since_ns: 0,
            first_error: None,
            unrecorded,
            sockets,
            elsewhere,
            copy_bytes,
            copied: delivery.copy_bytes,
            asked,
            taken_over: inherited.into_iter().map(|(group, _)| group).collect(),
            refused: not_taken,
            hand_over: succession.hand_over,
            preview,
        })
    }

    /// The bound sockets with their groups.
    pub fn sockets(&self) -> Vec<(u16, BorrowedFd<'_>)> {
        self.sockets.iter().map(|socket| (socket.group, socket.netlink.as_fd())).collect()
    }

    /// Groups whose socket was taken over.
    pub fn taken_groups(&self) -> &[u16] {
        &self.taken_over
    }

    /// Groups whose inherited socket was not taken over, and why, in words.
    pub fn refused_groups(&self) -> &[(u16, String)] {
        &self.refused
    }

    /// Makes the kernel copy the wanted number of bytes, if it changed; a failed request is repeated.
    fn set_copied(&mut self) {
        let wanted = self.copy_bytes.load(Relaxed);
        let elsewhere = self.elsewhere.as_ref().map(|(elsewhere, _)| elsewhere);
        let has_new = elsewhere.is_some_and(|elsewhere| elsewhere.take_new());
        if wanted == self.copied && !has_new {
            return;
        }
        let is_set = self.sockets.iter().all(|one| one.copy(wanted).is_ok());
        if is_set && elsewhere.is_none_or(|elsewhere| elsewhere.copy(wanted)) {
            self.copied = wanted;
        }
    }

    /// Reports what is missing from other namespaces.
    fn report_others(&self, stats: &mut Accounting) {
        let (unread, why, shortage) = match &self.elsewhere {
            Some((elsewhere, _)) => {
                (elsewhere.unbound_groups().0, elsewhere.unbound_groups().1, elsewhere.largest_shortage())
            }
            None => (self.header.unreachable, None, ShortShares::default()),
        };
        if let (0, reduced @ 1..) = (shortage.left_out, shortage.reduced) {
            // Smaller buffers alone do not make the run incomplete.
            stats.add_reason(reduced, REDUCED);
        }
        if shortage.left_out > 0 {
            stats.incomplete(shortage.left_out, LEFT_OUT);
        }
        let why = why.map_or_else(String::new, |why| format!(", the first {why}"));
        let late = "network namespaces were created during the run: records before they were found are not counted";
        for (count, text) in [(unread, format!("groups were not read{why}")), (self.header.late, late.to_owned())] {
            if count > 0 {
                stats.incomplete(count, text);
            }
        }
    }

    /// Waits for a batch and hands its records to `each`.
    fn next_batch(&mut self, each: &mut Each<'_, LogRecords>) -> Result<StreamState, SysError> {
        let LogStream {
            blocks,
            groups,
            header,
            layouts,
            sequences,
            seen,
            failed,
            filtered,
            unknown_attrs,
            since_ns,
            first_error,
            hand_over,
            preview,
            ..
        } = self;
        if let Some(hand_over) = hand_over {
            // The consumer has the rows of the last batch: a successor continues with the records after them.
            hand_over.store_numbers(&sequences.numbers());
        }
        let Some(block) = blocks.next()? else { return Ok(StreamState::Ended) };
        if let Some(preview) = preview {
            preview::show(block, groups, *preview);
        }
        let mut fault = |error: DecodeError| {
            *failed += 1;
            first_error.get_or_insert(error);
        };
        match BatchHeader::parse(block) {
            Some(now) => *header = now,
            None => fault(DecodeError::Short { what: "batch of records", claims: BATCH_HEADER, has: block.len() }),
        }
        for frame in DatagramFrames::new(block) {
            let frame = match frame {
                Ok(frame) => frame,
                Err(error) => {
                    fault(error);
                    break;
                }
            };
            if frame.bytes.is_empty() {
                note_mark(&frame, since_ns, sequences);
            }
            let (netns_id, received_ns, since_ns) = (frame.netns_id, frame.wall_ns, *since_ns);
            let base = LogRecord { time_ns: received_ns, netns_id, received_ns, since_ns, ..LogRecord::default() };
            let mut row = layouts.begin_frame(&base);
            for message in Messages::new(frame.bytes) {
                let decoded = match message {
                    Ok(message) if !is_record(&message) => continue,
                    Ok(message) => layouts.decode_into(message.payload, &base, &mut row, unknown_attrs),
                    Err(error) => Err(DecodeError::Short { what: "nlmsghdr", claims: error.claims, has: error.has }),
                };
                if let Err(error) = decoded {
                    fault(error);
                    continue;
                }
                if let Some(seq) = row.seq {
                    sequences.add_record(row.netns_id, row.group, seq);
                }
                *seen += 1;
                if groups.iter().all(|group| *group != row.group) {
                    *filtered += 1;
                } else if each(&row) == Next::Stop {
                    return Ok(StreamState::Open);
                }
            }
        }
        Ok(StreamState::Open)
    }
}

/// Applies a frame without messages.
fn note_mark(frame: &DatagramFrame<'_>, since_ns: &mut u64, sequences: &mut Sequences) {
    match frame.nsid.map(u16::try_from) {
        None => *since_ns = frame.wall_ns,
        // The namespace was removed, and the group's socket with it.
        Some(Ok(group)) => sequences.remove_group(frame.netns_id, group),
        Some(Err(_)) => {}
    }
}

impl Stream<LogRecords> for LogStream<'_> {
    fn offer(&self, _: &Demand<LogRecords>) -> Offer {
        let groups: Vec<String> = self.groups.iter().map(u16::to_string).collect();
        let line = format!("log records of group {} via netlink: nfnetlink_log", groups.join(", "));
        Offer { backend: NETLINK, explain: vec![line], ..Offer::default() }
    }

    fn next(&mut self, _: &Demand<LogRecords>, each: &mut Each<'_, LogRecords>) -> Result<StreamState, SourceError> {
        self.set_copied();
        self.layouts.reads_headers = self.asked.headers.load(Relaxed);
        self.layouts.reads_link = self.asked.link.load(Relaxed);
        let state = self.next_batch(each);
        self.lost.store(self.sequences.lost_records(), Relaxed);
        state.map_err(|error| SourceError { what: WHAT, fault: SourceFault::Io, cause: Box::new(error) })
    }

    fn close(&mut self) -> Accounting {
        if let Some(mut hand_over) = self.hand_over.take() {
            hand_over.end(&self.sockets(), &self.sequences.numbers());
        }
        let (lost, dropped) = (self.sequences.lost_records(), self.header.lost);
        let mut stats = Accounting {
            seen: self.seen + self.failed,
            failed: self.failed,
            filtered: self.filtered,
            lost,
            unknown_attrs: self.unknown_attrs,
            ..Accounting::default()
        };
        stats.add_backend(NETLINK);
        if let Some(error) = self.first_error {
            stats.add_reason(self.failed, format!("malformed messages, the first: {error}"));
        }
        let between = self.sequences.lost_between();
        if between > 0 {
            let text =
                "records lost between the earlier run and this one: it was killed, or the netlink buffer was full";
            stats.add_reason(between, text);
        }
        let lost = lost - between;
        if lost > 0 {
            let text = format!(
                "records lost: the netlink buffer of their group ({} bytes) was full (raise with --buffer)",
                self.header.buffer_bytes
            );
            stats.add_reason(lost, text);
        } else if dropped > 0 && between == 0 {
            // Only the next record of the group would reveal the gap, and no record followed.
            stats.incomplete(dropped, "datagrams of records lost at the end: the netlink buffer was full (--buffer)");
        }
        self.report_others(&mut stats);
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
