//! The walk of the kernel's TCP tables: takes a description of the wanted sockets and produces blocks of rows.
//!
//! The program (`c/sockets_walk.bpf.c`) follows the hash chains as plain memory and writes rows into a region that is
//! mapped here. A call walks a range of buckets, and the rows that it writes are one block. This crate does not know
//! the layout of a row; the program and the reader of the blocks (`sockets::backends::bpf::rows`) do. Needs Linux 6.9
//! (`may_goto`), BTF, CAP_BPF and CAP_PERFMON. Start reading at [`TcpWalk::read`].
use sys::bpf::MappedMemory;
use sys::{Blocks, Errno, Host, SysError};

use crate::portion::Portion;
use crate::{BpfError, LoadSpec, LoadedObject, Program, load};

static OBJECT: &[u8] = include_bytes!("../objects/sockets_walk.o");

/// Size of the region's head, before the first row.
const HEAD_BYTES: usize = 32;
/// Number of buckets per call: few enough for a short RCU section in the kernel, enough to make the cost of a call
/// negligible.
const BUCKETS_A_CALL: u32 = 4096;
/// Number of calls that may end without progress because a chain changed a thousand times, or because the kernel cut
/// them short.
///
/// Bound: calls in a row in which a changing hash chain stops the walk of sockets. Beyond: netlink reads the rest. By:
/// a local user who opens and closes sockets on many CPUs.
const CONTENDED_MAX: u32 = 20;

// The result of a call, `status` of `struct walk`.
const NO_TABLE: u32 = 1;
const NO_NETNS: u32 = 2;
const FULL: u32 = 3;

/// The table to walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TcpTable {
    /// Current and former connections: `ehash`.
    Connections,
    /// Listeners, of all namespaces in one table: `lhash2`.
    Listeners,
}

/// The sockets to select.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WantedSockets {
    /// State mask, bit n = state n. A time-wait socket counts as the state in which it waits, a request socket as
    /// SYN_RECV.
    pub states: u32,
    /// AF_INET sockets.
    pub v4: bool,
    /// AF_INET6 sockets.
    pub v6: bool,
    /// Local port; 0 matches any.
    pub sport: u16,
    /// Peer port; 0 matches any.
    pub dport: u16,
    /// Inode number of the namespace whose table is walked; `None` is the calling thread's. Requires a walk that was
    /// loaded with [`WalkCapabilities::AllNetns`].
    pub netns: Option<u32>,
    /// True for the sockets of every namespace in that table, false for those of the one namespace.
    pub all: bool,
}

impl WantedSockets {
    /// All sockets of the calling thread's namespace.
    pub const ALL: WantedSockets =
        WantedSockets { states: 0x1f7e, v4: true, v6: true, sport: 0, dport: 0, netns: None, all: false };

    /// Bit 0 IPv4, bit 1 IPv6.
    pub(crate) fn families(&self) -> u32 {
        u32::from(self.v4) | u32::from(self.v6) << 1
    }

    /// Local port, its mask, peer port, its mask.
    pub(crate) fn ports(&self) -> [u32; 4] {
        let mask = |port: u16| if port == 0 { 0 } else { 0xffff };
        [self.sport.into(), mask(self.sport), self.dport.into(), mask(self.dport)]
    }
}

/// The capabilities of a loaded walk: fewer are verified faster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WalkCapabilities {
    /// Connections of the current namespace.
    Connections,
    /// Connections and listeners of the current namespace.
    Own,
    /// Both tables of any namespace, and the list of all namespaces.
    AllNetns,
}

/// The loaded programs and their memory. They can be used for any number of readings.
#[derive(Debug)]
pub struct TcpWalk {
    loaded: LoadedObject,
    region: MappedMemory,
    parts: u32,
    reach: WalkCapabilities,
}

impl TcpWalk {
    /// Loads the programs so that they write these parts of a row (`enum` in the program). Costs some milliseconds.
    ///
    /// `secret` obscures values that would otherwise be kernel addresses.
    pub fn load(host: &Host, reach: WalkCapabilities, parts: u32, secret: [u64; 2]) -> Result<TcpWalk, BpfError> {
        let programs: &[&str] = match reach {
            WalkCapabilities::Connections => &["walk_ehash"],
            WalkCapabilities::Own => &["walk_ehash", "walk_listeners"],
            WalkCapabilities::AllNetns => &["walk_ehash", "walk_listeners", "list_namespaces"],
        };
        let loaded = load_programs(host, programs, parts, reach == WalkCapabilities::AllNetns, secret)?;
        let region = loaded.map("out")?.map_memory()?;
        Ok(TcpWalk { loaded, region, parts, reach })
    }

    /// True if this walk can do everything that a walk loaded with these arguments could.
    pub fn covers(&self, reach: WalkCapabilities, parts: u32) -> bool {
        self.reach >= reach && self.parts & parts == parts
    }

    /// Starts reading a table. Each block contains the rows written by one call of the program, at most 256 KiB.
    ///
    /// A chain that does not fit into the region is read in portions, each in a separate pass; its rows are handed out
    /// only when all of them are complete. The blocks end with an error if the namespace no longer exists (ESRCH) or
    /// if a chain keeps changing (EAGAIN): then all rows of the chains before it have been handed out, and no others.
    pub fn read(&self, table: TcpTable, wanted: WantedSockets) -> Result<SocketReading<'_>, BpfError> {
        let program = self.loaded.program(match table {
            TcpTable::Connections => "walk_ehash",
            TcpTable::Listeners => "walk_listeners",
        })?;
        Ok(SocketReading {
            region: &self.region,
            program,
            wanted,
            next: 0,
            buckets: u32::MAX,
            contended: 0,
            restarts: 0,
            chain: Vec::new(),
            handed: Vec::new(),
        })
    }

    /// Works like [`namespaces`], without loading a program. Requires a walk that was loaded with
    /// [`WalkCapabilities::AllNetns`].
    pub fn namespaces(&self, host: &Host) -> Result<Vec<Namespace>, BpfError> {
        record_or_replay(host, |into| list(&self.loaded, &self.region, into))
    }

    /// The number of buckets of a table, and whether the namespace has a table of its own; reads no rows.
    pub fn size(&self, table: TcpTable, wanted: WantedSockets) -> Result<(u32, bool), BpfError> {
        let walking = self.read(table, wanted)?;
        let mut context = Context::new(&wanted, 0, 0);
        walking.program.run(&mut context.0)?;
        Ok((context.get(Context::BUCKETS), context.get(Context::PERNET) != 0))
    }
}

fn load_programs(
    host: &Host,
    programs: &[&str],
    parts: u32,
    by_number: bool,
    secret: [u64; 2],
) -> Result<LoadedObject, BpfError> {
    let [add, times] = secret;
    let constants: &[(&str, &[u8])] = &[
        ("parts", &parts.to_ne_bytes()),
        ("by_number", &u32::from(by_number).to_ne_bytes()),
        ("salt_add", &add.to_ne_bytes()),
        ("salt_times", &(times | 1).to_ne_bytes()),
    ];
    load(host, &LoadSpec { object: OBJECT, programs, constants, entries: &[] })
}

/// A reading in progress.
#[derive(Debug)]
pub struct SocketReading<'w> {
    region: &'w MappedMemory,
    program: &'w Program,
    wanted: WantedSockets,
    next: u32,
    buckets: u32,
    contended: u32,
    restarts: u64,
    /// Blocks of a chain that did not fit into the region, which have not been handed out; and the last one handed
    /// out.
    chain: Vec<Vec<u8>>,
    handed: Vec<u8>,
}

impl SocketReading<'_> {
    /// The number of times that a chain was read again because it had changed.
    pub fn restart_count(&self) -> u64 {
        self.restarts
    }

    // Calls the program once; returns how far it filled the region.
    fn call(&mut self) -> Result<usize, SysError> {
        let context = self.run(self.next, BUCKETS_A_CALL, Portion::ALL)?;
        let (status, next) = (context.get(Context::STATUS), context.get(Context::NEXT));
        self.restarts += u64::from(context.get(Context::RESTARTS));
        self.buckets = context.get(Context::BUCKETS);
        match status {
            NO_TABLE => return Err(walk_error(Errno::NOENT)),
            NO_NETNS => return Err(walk_error(Errno::SRCH)),
            FULL if next <= self.next => {
                self.chain = self.by_portions(self.next)?;
                (self.next, self.contended) = (self.next.saturating_add(1), 0);
                return Ok(0);
            }
            // Also if the kernel cut the call short (`may_goto` ends it after a quarter of a second).
            _ if next <= self.next => {
                self.contended += 1;
                if self.contended > CONTENDED_MAX {
                    return Err(walk_error(Errno::AGAIN));
                }
            }
            _ => self.contended = 0,
        }
        // The walk visits chains of the same cache line that have been handed out already: if it is cut short there,
        // it names one of these.
        self.next = next.max(self.next);
        Ok(context.get(Context::OFF) as usize)
    }

    fn run(&self, start: u32, buckets: u32, portion: Portion) -> Result<Context, SysError> {
        let mut context = Context::new(&self.wanted, start, start.saturating_add(buckets));
        context.take_only(portion);
        self.program.run(&mut context.0).map_err(|error| walk_error(error.errno().unwrap_or(Errno::INVAL)))?;
        Ok(context)
    }

    /// All rows of one chain. Costs about one pass over the chain for each full region of rows.
    fn by_portions(&mut self, bucket: u32) -> Result<Vec<Vec<u8>>, SysError> {
        let mut portions: Vec<Portion> = Portion::ALL.split().map_err(walk_error)?.into();
        let (mut blocks, mut contended) = (Vec::new(), 0);
        while let Some(portion) = portions.pop() {
            let context = self.run(bucket, 1, portion)?;
            self.restarts += u64::from(context.get(Context::RESTARTS));
            let ended = context.get(Context::NEXT) > bucket;
            match context.get(Context::STATUS) {
                NO_NETNS => return Err(walk_error(Errno::SRCH)),
                FULL if !ended => portions.extend(portion.split().map_err(walk_error)?),
                _ if ended => blocks.extend(self.rows_until(context.get(Context::OFF) as usize).map(<[u8]>::to_vec)),
                _ if contended >= CONTENDED_MAX => return Err(walk_error(Errno::AGAIN)),
                _ => {
                    contended += 1;
                    portions.push(portion);
                }
            }
        }
        Ok(blocks)
    }

    /// The contents of the region, if it contains rows.
    fn rows_until(&self, filled: usize) -> Option<&[u8]> {
        self.region.bytes().get(..filled).filter(|_| filled > HEAD_BYTES)
    }
}

fn walk_error(errno: Errno) -> SysError {
    SysError::new("bpf_prog_run", "the walk of the TCP table", errno)
}

impl Blocks for SocketReading<'_> {
    fn next(&mut self) -> Result<Option<&[u8]>, SysError> {
        loop {
            if let Some(block) = self.chain.pop() {
                self.handed = block;
                return Ok(Some(&self.handed));
            }
            if self.next >= self.buckets {
                return Ok(None);
            }
            let filled = self.call()?;
            if filled > HEAD_BYTES {
                return Ok(self.rows_until(filled));
            }
        }
    }
}

/// `struct walk`.
struct Context([u8; Context::BYTES]);

impl Context {
    const OFF: usize = 40;
    const NEXT: usize = 44;
    const RESTARTS: usize = 48;
    const BUCKETS: usize = 52;
    const PERNET: usize = 56;
    const STATUS: usize = 60;
    const PORTION: usize = 152;
    const BYTES: usize = 160;

    fn new(wanted: &WantedSockets, start: u32, end: u32) -> Context {
        let ([sport, sport_mask, dport, dport_mask], families) = (wanted.ports(), wanted.families());
        let (netns, all) = (wanted.netns.unwrap_or(0), u32::from(wanted.all));
        let (states, off) = (wanted.states, HEAD_BYTES as u32);
        let fields = [start, end, netns, all, states, families, sport, sport_mask, dport, dport_mask, off];
        let mut bytes = [0; Context::BYTES];
        for (place, field) in bytes.chunks_exact_mut(4).zip(fields) {
            place.copy_from_slice(&field.to_ne_bytes());
        }
        Context(bytes)
    }

    fn take_only(&mut self, portion: Portion) {
        portion.put(&mut self.0, Context::PORTION);
    }

    fn get(&self, at: usize) -> u32 {
        self.0.get(at..).and_then(|bytes| bytes.first_chunk()).map_or(0, |bytes| u32::from_ne_bytes(*bytes))
    }
}

/// A network namespace in the kernel's list of all namespaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Namespace {
    /// Inode number, as `lsns` and `ls -i` show it.
    pub netns_id: u32,
    /// True if its connections are in a table of its own (`tcp_child_ehash_entries`).
    pub own_table: bool,
    /// Equal for namespaces that share a table of connections; otherwise meaningless.
    pub table: u64,
}

/// Every network namespace of the kernel, including those without a name, process or open file: some are kept alive by
/// a socket alone. Goes through the recording. Loads a program for this one call: some milliseconds.
pub fn namespaces(host: &Host, secret: [u64; 2]) -> Result<Vec<Namespace>, BpfError> {
    record_or_replay(host, |into| {
        let loaded = load_programs(host, &["list_namespaces"], 0, false, secret)?;
        let region = loaded.map("out")?.map_memory()?;
        list(&loaded, &region, into)
    })
}

fn record_or_replay(
    host: &Host,
    read: impl FnOnce(&mut Vec<u8>) -> Result<(), BpfError>,
) -> Result<Vec<Namespace>, BpfError> {
    let mut bytes = Vec::new();
    let mut refused = None;
    let read = host.bytes("bpf/namespaces", "", &mut bytes, |bytes| {
        read(bytes).map_err(|error| {
            let errno = error.errno().unwrap_or(Errno::NOSYS);
            refused = Some(error);
            SysError::new("bpf_prog_run", "the list of network namespaces", errno)
        })
    });
    match (read, refused) {
        (Ok(()), _) => Ok(parse(&bytes)),
        (Err(_), Some(error)) => Err(error),
        (Err(error), None) => Err(BpfError::Io(error)),
    }
}

fn list(loaded: &LoadedObject, region: &MappedMemory, into: &mut Vec<u8>) -> Result<(), BpfError> {
    let program = loaded.program("list_namespaces")?;
    let failed = |errno| BpfError::Io(SysError::new("bpf_prog_run", "the list of network namespaces", errno));
    let mut portions = vec![Portion::ALL];
    while let Some(portion) = portions.pop() {
        let mut context = Context::new(&WantedSockets::ALL, 0, 0);
        context.take_only(portion);
        program.run(&mut context.0)?;
        match context.get(Context::STATUS) {
            0 => into.extend_from_slice(
                region.bytes().get(HEAD_BYTES..context.get(Context::OFF) as usize).unwrap_or_default(),
            ),
            // More than about 16,000 at once.
            FULL => portions.extend(portion.split().map_err(failed)?),
            // A list that never ends: an error is better than a part of it.
            _ => return Err(failed(Errno::AGAIN)),
        }
    }
    Ok(())
}

fn parse(bytes: &[u8]) -> Vec<Namespace> {
    let word =
        |row: &[u8], at| u32::from_ne_bytes(row.get(at..).and_then(<[u8]>::first_chunk).copied().unwrap_or([0; 4]));
    let each = |row: &[u8]| Namespace {
        netns_id: word(row, 0),
        own_table: word(row, 4) != 0,
        table: u64::from(word(row, 8)) | u64::from(word(row, 12)) << 32,
    };
    bytes.chunks_exact(16).map(each).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn root_the_list_of_namespaces_has_our_own() {
        testkit::require_root!();
        let found = namespaces(&Host::live(), [3, 5]).unwrap();
        let own = sys::netns::current_inode().unwrap();
        assert!(found.iter().any(|ns| u64::from(ns.netns_id) == own), "{found:?}");
        let mut numbers: Vec<u32> = found.iter().map(|ns| ns.netns_id).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), found.len());
    }

    #[test]
    fn root_the_same_by_a_walk_that_is_loaded() {
        testkit::require_root!();
        let host = Host::live();
        let walk = TcpWalk::load(&host, WalkCapabilities::AllNetns, 0, [7, 9]).unwrap();
        let own = sys::netns::current_inode().unwrap();
        assert!(walk.namespaces(&host).unwrap().iter().any(|ns| u64::from(ns.netns_id) == own));
        let less = TcpWalk::load(&host, WalkCapabilities::Own, 0, [7, 9]).unwrap();
        assert!(less.namespaces(&host).is_err());
    }

    /// Namespaces that exceed one region are also listed: the portions together are the list.
    #[test]
    fn root_portions_of_the_list_are_the_list() {
        testkit::require_root!();
        let labs: Vec<_> = (0..4).map(|_| testkit::netns::Lab::new("portions")).collect();
        let walk = TcpWalk::load(&Host::live(), WalkCapabilities::AllNetns, 0, [7, 9]).unwrap();
        let program = walk.loaded.program("list_namespaces").unwrap();
        let mut found = Vec::new();
        for portion in Portion::ALL.split().unwrap().iter().flat_map(|half| half.split().unwrap()) {
            let mut context = Context::new(&WantedSockets::ALL, 0, 0);
            context.take_only(portion);
            program.run(&mut context.0).unwrap();
            found.extend(parse(&walk.region.bytes()[HEAD_BYTES..context.get(Context::OFF) as usize]));
        }
        for lab in &labs {
            let inode = lab.run_inside(|| sys::netns::current_inode().unwrap());
            assert_eq!(found.iter().filter(|found| u64::from(found.netns_id) == inode).count(), 1, "{found:?}");
        }
    }

    #[test]
    fn crooked_lists_are_cut() {
        assert!(parse(&[1; 15]).is_empty());
        assert_eq!(parse(&[1; 40]).len(), 2);
    }

    #[test]
    fn root_a_table_has_buckets() {
        testkit::require_root!();
        let walk = TcpWalk::load(&Host::live(), WalkCapabilities::AllNetns, 0, [7, 9]).unwrap();
        let (buckets, own) = walk.size(TcpTable::Connections, WantedSockets::ALL).unwrap();
        assert!(buckets.is_power_of_two() && !own);
        let gone = WantedSockets { netns: Some(1), ..WantedSockets::ALL };
        let error = walk.read(TcpTable::Connections, gone).unwrap().next().map(|_| ()).unwrap_err();
        assert_eq!(error.errno, Errno::SRCH);
    }
}
