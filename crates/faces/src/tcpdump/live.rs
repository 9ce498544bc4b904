//! Captures packets of one or all interfaces like `netwren capture`, and prints them like tcpdump.

use super::filter::{PacketFilter, link_words};
use super::interfaces::{Device, chosen, stamp_words};
use super::names::{self, NameWait, NamesEnd, Network4};
use super::saving::{self, SaveResult, SavedKind, Saver, saved_link_type};
use super::switches::{LiveSwitches, TcpdumpRun};
use super::{put_count, say};
use crate::tcpdump::output::{CapturedBytes, Tcpdump};
use crate::text::warn;
use capture::{CaptureControl, CapturePlace, CaptureReport, Delivery, FollowPackets, Pacing, PacketStream};
use host::LinksReader;
use host::users::Account;
use packet::put_untagged;
use packet_files::can_write_unprivileged;
use packet_files::formats::{LOOPBACK, write_sll, write_sll2};
use pcapfilter::{Metadata, Packet, PacketOrigin};
use record::rows::{CapturedPacket, CapturedPackets, Link, LinkType};
use record::{Demand, Next, SinkError, SourceError, SourceFault, Stream, StreamState};
use runtime::local_time::local_time;
use runtime::rights::{NeededRights, account};
use runtime::stdout::Stdout;
use sinks::Out;
use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::path::PathBuf;
use sys::Host;
use sys::caps::{Cap, CapSet};
use sys::packet_ring::{StampClock, accept_all, one_direction};

/// Default size of the ring in bytes (without `-B`).
const BUFFER_BYTES: usize = 32 << 20;
/// Maximum delay of a block of packets written to a file, in ms.
const RETIRE_MS: u32 = 100;
/// A ring holds at least one block.
const BUFFER_MIN: usize = 1 << 16;

/// Prints packets until the count is reached, a signal arrives or stdout is closed; the error is tcpdump's message.
pub(super) fn capture(run: &TcpdumpRun) -> Result<(), String> {
    let (device, name) = self::device(run)?;
    let link_type = link_type(run, &device)?;
    if run.is_printing() && !Tcpdump::knows(link_type) {
        return Err(format!("packet printing is not supported for link type {}: use -w", link_type.0));
    }
    let clock = stamp_clock(run, &device);
    // Both must happen before privileges are dropped; the first use of the time zone reads its file.
    let user = run.live.user.as_deref().map(account).transpose()?;
    let _ = local_time(0);
    sys::SignalHandlers::install().map_err(|error| error.to_string())?;
    sys::signal::report_on_usr1().map_err(|error| error.to_string())?;
    sys::signal::flush_on_usr2().map_err(|error| error.to_string())?;
    let network = own_network(run, &device, &name)?;
    let filter = filter_for(run, &device, link_type, broadcast_mask(run, network))?;
    let needed = needed_rights(run, user);
    let face = LiveFace {
        run,
        clock,
        cooked: device.link.is_none().then_some(link_type),
        link_type,
        filter,
        network: network.filter(|_| run.own_network_only),
        ended: Cell::new(false),
        hardware: RefCell::default(),
    };
    face.follow(&device, &needed, &name)
}

/// The rights that the run keeps. Like tcpdump, keeps CAP_DAC_OVERRIDE for `-w` if `-Z` changes the user or other
/// users' permissions are required to write the file.
pub(super) fn needed_rights(run: &TcpdumpRun, account: Option<Account>) -> NeededRights {
    let overrides = |path: &PathBuf| account.is_some() || !can_write_unprivileged(path);
    let caps = if run.save.path.as_ref().is_some_and(overrides) { &[Cap::DacOverride][..] } else { &[] };
    let makes_files_in = saving::later_folder(&run.save).into_iter().collect();
    NeededRights { account, caps: CapSet::from_caps(caps), makes_files_in, ..NeededRights::default() }
}

/// The clock of `-j`, else the host's; [`device`] has already reported an unsupported clock.
fn stamp_clock(run: &TcpdumpRun, device: &Device) -> StampClock {
    let wanted = run.live.stamp_type.as_deref();
    let is_it = |clock: &StampClock| Some(stamp_words(*clock).0) == wanted;
    device.stamp_clocks().into_iter().find(is_it).unwrap_or(StampClock::Host)
}

/// Reports that a device does not support the clock of `-j`. A missing device has the host's clock, as in libpcap.
fn check_stamp_type(run: &TcpdumpRun, name: &[u8], clocks: &[StampClock]) {
    let Some(wanted) = run.live.stamp_type.as_deref() else { return };
    if clocks.iter().all(|clock| stamp_words(*clock).0 != wanted) {
        let why = "That type of time stamp is not supported by that device";
        let name = sys::escape_bytes(name);
        say(&format!("tcpdump: WARNING: When trying to set timestamp type '{wanted}' on {name}: {why}"));
    }
}

/// The device of `-i`, and its name for messages. Like tcpdump, checks `-j` before anything else, and tries a number
/// as a name first.
pub(super) fn device(run: &TcpdumpRun) -> Result<(Device, Box<str>), String> {
    let (found, wanted) = (chosen(run.live.iface.as_deref()), run.live.iface.as_deref().map(str::as_bytes));
    let is_named = |device: &Device| wanted.is_none_or(|wanted| *device.name == *wanted);
    if let Some(wanted) = wanted.filter(|_| !found.as_ref().is_ok_and(is_named)) {
        check_stamp_type(run, wanted, &[StampClock::Host]);
    }
    let device = found?;
    check_stamp_type(run, &device.name, &device.stamp_clocks());
    let name = sys::escape_bytes(&device.name);
    if run.rare.monitor {
        return Err(format!("{name}: That device doesn't support monitor mode"));
    }
    if !device.is_up() {
        return Err(format!("{name}: That device is not up"));
    }
    Ok((device, name))
}

/// The link type of packets: the device's own, or for all interfaces the type that `-y` selects.
pub(super) fn link_type(run: &TcpdumpRun, device: &Device) -> Result<LinkType, String> {
    let own = device.link_types();
    let first = own.first().copied().unwrap_or(LinkType::UNKNOWN);
    let Some(wanted) = run.rare.link else {
        if device.link.is_none() {
            say("tcpdump: data link type LINUX_SLL2");
        }
        return Ok(if device.link.is_none() { LinkType::SLL2 } else { first });
    };
    let is_it = |link: &&LinkType| pcapfilter::LinkType::from_number(link.0.into()) == Some(wanted);
    let found = own.iter().find(is_it).copied();
    let found = found.ok_or_else(|| format!("{} is not one of the DLTs supported by this device", wanted.name()))?;
    say(&format!("tcpdump: data link type {}", wanted.name()));
    Ok(found)
}

/// The IPv4 network of the interface; `-f` requires one.
pub(super) fn own_network(run: &TcpdumpRun, device: &Device, name: &str) -> Result<Option<Network4>, String> {
    let Some(link) = &device.link else { return Ok(None) };
    let host = Host::live();
    let netns = host::netns::current(&host).map_err(|error| error.to_string())?;
    let found = host::addresses::network_of(&host, netns, link.index).map_err(|error| error.to_string())?;
    if found.is_none() && run.own_network_only {
        say(&format!("tcpdump: WARNING: foreign (-f) flag used but: {name}: no IPv4 address assigned"));
    }
    Ok(found.map(|(address, mask)| (u32::from_be_bytes(address) & mask, mask)))
}

/// The netmask for `ip broadcast`. With `bug_compatible` it is set only with `-f`, and its bytes are in the wrong
/// order.
pub(super) fn broadcast_mask(run: &TcpdumpRun, network: Option<Network4>) -> u32 {
    match network {
        Some((_, mask)) if !run.bug_compatible => mask,
        Some((_, mask)) if run.own_network_only => u32::from_ne_bytes(mask.to_be_bytes()),
        _ => 0,
    }
}

/// For one interface the program runs in the kernel; for all interfaces it tests the header that netwren writes.
fn filter_for(run: &TcpdumpRun, device: &Device, link_type: LinkType, netmask: u32) -> Result<PacketFilter, String> {
    let origin = match device.link {
        Some(_) => PacketOrigin::Live { vlan_beside: true },
        None => PacketOrigin::File { is_swapped: false },
    };
    PacketFilter::new(run, link_type.0.into(), origin, run.live.snaplen, netmask)
}

/// A capture with tcpdump's output.
struct LiveFace<'r> {
    run: &'r TcpdumpRun,
    /// `-j`
    clock: StampClock,
    /// The "cooked" link type for packets of all interfaces.
    cooked: Option<LinkType>,
    /// The link type of the bytes that lines are made from.
    link_type: LinkType,
    filter: PacketFilter,
    /// `-f`: the network whose hosts are shown by name.
    network: Option<Network4>,
    /// True if the count is reached or stdout is closed.
    ended: Cell<bool>,
    /// `ARPHRD_…` by interface index.
    hardware: RefCell<HashMap<u32, u16>>,
}

/// The state of the output.
struct PacketOutput {
    out: Out<Stdout>,
    printer: Tcpdump,
    /// `-w`
    saver: Option<Saver>,
    packets: u64,
    cooked: Vec<u8>,
    /// Buffer for a packet without its outer VLAN tag, reused to save allocations.
    bare: Vec<u8>,
    got: GotLine,
}

impl LiveFace<'_> {
    fn follow(&self, device: &Device, needed: &NeededRights, name: &str) -> Result<(), String> {
        let LiveSwitches { snaplen, .. } = self.run.live;
        let host = Host::live();
        let netns_id = host::netns::current(&host).map_err(|error| error.to_string())?;
        let reader = RefCell::new(LinksReader::default());
        let links = |_: &CapturePlace| self.read_links(&mut reader.borrow_mut(), &host, netns_id);
        let own = |text: &str| say(&format!("tcpdump: {text}"));
        let is_unread = || self.run.uses_stdout() && sys::term::is_reader_closed(sys::term::STDOUT);
        let stop = || self.ended.get() || sys::signal::is_requested() || is_unread();
        let ring_bytes = self.run.live.buffer_bytes.unwrap_or(BUFFER_BYTES).max(BUFFER_MIN);
        let mut stream = PacketStream::open(FollowPackets {
            ifaces: device.link.iter().map(|link| String::from_utf8_lossy(&link.name).into_owned()).collect(),
            places: vec![CapturePlace { netns_id, netns: None, ring_bytes }],
            shortage: Default::default(),
            delivery: delivery(self.run),
            snaplen,
            promiscuous: self.run.live.promiscuous,
            clock: self.clock,
            program: Some(self.program()),
            passes: None,
            links: &links,
            control: CaptureControl { say: &own, stop: &stop, reports: &|| 0, on_report: &|_| {}, wake_up: None },
        })
        .map_err(|error| refused(name, &error))?;
        let (printer, names_end) = self.printer();
        let commands = Saver::commands(&self.run.save, self.run.live.user.as_deref())?;
        needed.drop_capabilities(names_end.as_ref().and_then(NamesEnd::resolver), None)?;
        let nanoseconds = self.run.options.nanoseconds;
        let kind = SavedKind { link_type: saved_link_type(self.link_type), snaplen, nanoseconds };
        let saver = Saver::open(&self.run.save, kind, commands)?;
        if needed.makes_files_in.is_empty() {
            // The only output file is already open.
            let _ = sys::rights::keep_only(CapSet::default());
        }
        self.say_begin(name);
        let mut printed = PacketOutput {
            out: Out::new(Stdout::new()).each_line(self.run.each_line),
            printer,
            saver,
            packets: 0,
            cooked: Vec::new(),
            bare: Vec::new(),
            got: GotLine::new(self.run),
        };
        needed.confine();
        let ended = self.print_all(&mut stream, &mut printed);
        let saved = printed.saver.take().map_or(Ok(()), Saver::finish);
        self.say_end(&mut printed, &stream.report(), device.link.is_none());
        names_end.iter().for_each(NamesEnd::say);
        ended.and(saved)
    }

    /// Makes the printer of lines; if names are shown, reads their files.
    fn printer(&self) -> (Tcpdump, Option<NamesEnd>) {
        let printer = Tcpdump::new(self.run.options);
        if !self.run.named || !self.run.is_printing() {
            return (printer, None);
        }
        let is_small = self.run.live.buffer_bytes.is_some_and(|bytes| bytes < BUFFER_BYTES);
        let wait = if is_small { NameWait::Never } else { NameWait::WhileYoung };
        let (names, end) = names::start(wait, self.network);
        (printer.named(names), Some(end))
    }

    /// The kernel's program: the test for `-Q` first, then the expression, or a program that accepts every packet.
    fn program(&self) -> Vec<sys::packet_ring::Instruction> {
        let program = self.filter.instructions().filter(|_| self.cooked.is_none());
        let program = program.unwrap_or_else(|| accept_all(self.run.live.snaplen));
        self.run.live.outgoing.map_or(program.clone(), |outgoing| one_direction(&program, outgoing))
    }

    fn read_links(&self, reader: &mut LinksReader, host: &Host, netns_id: u64) -> Result<Vec<Link>, String> {
        let links = reader.read(host, netns_id, None).map_err(|error| error.to_string())?.links;
        let mut hardware = self.hardware.borrow_mut();
        hardware.clear();
        hardware.extend(links.iter().map(|link| (link.index, link.hardware)));
        Ok(links)
    }

    fn say_begin(&self, name: &str) {
        let link = link_words(self.link_type.0.into());
        let snaplen = self.run.live.snaplen;
        let listening = format!("listening on {name}, link-type {link}, snapshot length {snaplen} bytes");
        if self.run.options.verbose > 0 || self.run.save.path.is_some() {
            return say(&format!("tcpdump: {listening}"));
        }
        say("tcpdump: verbose output suppressed, use -v[v]... for full protocol decode");
        say(&listening);
    }

    fn print_all(&self, stream: &mut PacketStream<'_>, printed: &mut PacketOutput) -> Result<(), String> {
        let demand = Demand::<CapturedPackets>::new(&[], Vec::new());
        let (mut reports, mut failed) = (sys::signal::report_count(), None);
        loop {
            let mut each = |row: &CapturedPacket<'_>| match self.take(row, printed) {
                Ok(()) if self.run.count == Some(printed.packets) => {
                    self.ended.set(true);
                    Next::Stop
                }
                Ok(()) => Next::More,
                Err(error) => {
                    self.ended.set(true);
                    failed = Some(error);
                    Next::Stop
                }
            };
            let state = stream.next(&demand, &mut each).map_err(|error| error.to_string())?;
            if let Some(saver) = printed.saver.as_mut().filter(|_| failed.is_none() && !self.ended.get()) {
                failed = self.ends(saver.tick()).err();
            }
            printed.got.show(printed.packets);
            if let Err(error) = printed.out.flush() {
                failed.get_or_insert(Fault::Sink(error));
            }
            if sys::signal::report_count() != reports {
                reports = sys::signal::report_count();
                say(&format!("tcpdump: {}", self.figures(printed.packets, &stream.report()).join(", ")));
            }
            match failed {
                Some(Fault::Sink(SinkError::Closed)) => return Ok(()),
                Some(Fault::Sink(error)) => return Err(error.to_string()),
                Some(Fault::Save(message)) => return Err(message),
                None if self.ended.get() || state == StreamState::Ended => return Ok(()),
                None => {}
            }
        }
    }

    /// Ends the run if no more packets are saved.
    fn ends(&self, saved: Result<SaveResult, String>) -> Result<(), Fault> {
        self.ended.set(self.ended.get() || saved.map_err(Fault::Save)? != SaveResult::Yes);
        Ok(())
    }

    /// Saves and prints a packet.
    fn take(&self, row: &CapturedPacket<'_>, printed: &mut PacketOutput) -> Result<(), Fault> {
        let CapturedPacket { link_type, frame: bytes, len, time_ns, .. } = *row;
        let mut bytes = CapturedBytes { link_type, bytes, len, time_ns, far: None };
        let mut metadata = Some(Metadata {
            vlan_tag: None,
            packet_type: row.packet_type.map_or(0, |packet_type| packet_type as u8),
            ifindex: row.ifindex,
        });
        if let Some(link_type) = self.cooked {
            let hardware = self.hardware.borrow().get(&row.ifindex).copied().unwrap_or(LOOPBACK);
            if !self.takes_cooked(row, link_type, hardware, printed) {
                return Ok(());
            }
            bytes.len = cook_as(link_type, row, hardware, &mut printed.cooked);
            (bytes.link_type, bytes.bytes, metadata) = (link_type, &printed.cooked, None);
        }
        let is_judged = self.cooked.is_none() && self.filter.0.as_ref().is_some_and(|filter| filter.rest.is_some());
        if is_judged && !self.filter.takes(&Packet { bytes: bytes.bytes, length: bytes.len, metadata }) {
            return Ok(());
        }
        printed.packets += 1;
        if let Some(saver) = &mut printed.saver {
            let link_type = saved_link_type(bytes.link_type);
            let saved = saver.save(&CapturedPacket { link_type, frame: bytes.bytes, len: bytes.len, ..*row });
            self.ends(saved)?;
        }
        if !self.run.is_printing() {
            return Ok(());
        }
        let name: Cow<'_, str> = match std::str::from_utf8(row.iface) {
            Ok(name) if row.iface.iter().all(u8::is_ascii_graphic) => name.into(),
            _ => sys::escape_bytes(row.iface).into_string().into(),
        };
        printed.printer.print(&bytes, &|_| Some(&*name).filter(|name| !name.is_empty()), printed.out.buf());
        printed.out.line_done().map_err(Fault::Sink)
    }

    /// Tests a packet from all interfaces with its "cooked" header. The filter does not see the outer VLAN tag, just
    /// as in the kernel, which keeps that tag outside the packet when it tests tcpdump's expression.
    fn takes_cooked(
        &self,
        row: &CapturedPacket<'_>,
        link: LinkType,
        hardware: u16,
        printed: &mut PacketOutput,
    ) -> bool {
        if self.filter.0.is_none() {
            return true;
        }
        let PacketOutput { cooked, bare, .. } = printed;
        let tags = put_untagged(row.link_type, row.frame, 1, bare);
        let without_tag = CapturedPacket { frame: bare, len: row.len.saturating_sub(4), ..*row };
        let length = cook_as(link, if tags > 0 { &without_tag } else { row }, hardware, cooked);
        self.filter.takes(&Packet { bytes: cooked, length, metadata: None })
    }

    fn say_end(&self, printed: &mut PacketOutput, report: &CaptureReport, is_any: bool) {
        // Like tcpdump, ends a line that may have been cut off.
        if sys::signal::is_requested() && self.run.save.path.is_none() {
            printed.out.buf().push(b'\n');
        }
        if self.run.count_only {
            put_count(printed.packets, printed.out.buf());
        }
        let _ = printed.out.flush();
        // For all interfaces the kernel passes every packet, and netwren tests it.
        let is_tested_here = is_any && self.filter.0.is_some();
        let report = CaptureReport {
            received: if is_tested_here { printed.packets + report.dropped_by_ring } else { report.received },
            ..report.clone()
        };
        self.figures(printed.packets, &report).iter().for_each(|line| say(line));
    }

    fn figures(&self, packets: u64, report: &CaptureReport) -> Vec<String> {
        let line = |count: u64, what: &str| format!("{count} packet{} {what}", if count == 1 { "" } else { "s" });
        let by_iface: u64 = report.dropped_by_ifaces.iter().map(|drops| drops.packets).sum();
        let mut lines = vec![
            line(packets, "captured"),
            line(report.received, "received by filter"),
            line(report.dropped_by_ring, "dropped by kernel"),
        ];
        let rare =
            [(by_iface, "dropped by interface"), (report.truncated, "truncated by kernel for lack of room (raise -B)")];
        lines.extend(rare.iter().filter(|(count, _)| *count > 0).map(|(count, what)| line(*count, what)));
        lines
    }
}

/// Writes the packet with a "cooked" header for this link type and returns its length.
fn cook_as(link: LinkType, row: &CapturedPacket<'_>, hardware: u16, out: &mut Vec<u8>) -> u32 {
    match link {
        LinkType::SLL => write_sll(row, hardware, out),
        _ => write_sll2(row, hardware, out),
    }
}

/// Packets are delivered in blocks if they are only saved and not flushed one by one, otherwise immediately.
fn delivery(run: &TcpdumpRun) -> Delivery {
    if run.live.is_immediate {
        return Delivery::AtOnce(Pacing::new(None));
    }
    match run.uses_stdout() || run.save.is_unbuffered {
        true => Delivery::AtOnce(Pacing::new(Some(Pacing::AUTO))),
        false => Delivery::InBlocks { retire_ms: RETIRE_MS },
    }
}

/// Errors that end a run.
enum Fault {
    Sink(SinkError),
    Save(String),
}

/// Shows the number of packets once a second, with `-v` and without lines.
struct GotLine {
    is_wanted: bool,
    /// The last count shown, and the time of the next one.
    shown: Option<u64>,
    next_ns: u64,
}

const SECOND_NS: u64 = 1_000_000_000;

impl GotLine {
    fn new(run: &TcpdumpRun) -> GotLine {
        let is_wanted = run.options.verbose > 0 && run.save.path.is_some() && !run.is_printing();
        GotLine { is_wanted, shown: None, next_ns: sys::clock::monotonic_ns().saturating_add(SECOND_NS) }
    }

    fn show(&mut self, packets: u64) {
        if !self.is_wanted || sys::clock::monotonic_ns() < self.next_ns {
            return;
        }
        self.next_ns = self.next_ns.saturating_add(SECOND_NS);
        if self.shown != Some(packets) {
            self.shown = Some(packets);
            warn(&format!("Got {packets}\r"));
        }
    }
}

/// tcpdump's words for an interface that cannot be captured on.
fn refused(name: &str, error: &SourceError) -> String {
    match error.fault {
        SourceFault::Denied => format!(
            "{name}: You don't have permission to perform this capture on that device\n\
             (socket: Operation not permitted)"
        ),
        _ => format!("{name}: {error}"),
    }
}
