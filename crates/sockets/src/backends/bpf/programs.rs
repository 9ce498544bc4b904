//! The programs that read TCP sockets: loading, running, reading their output.
use std::cell::Cell;

use bpf::sockets_walk::{TcpTable, WalkCapabilities, WantedSockets};
use netlink::DecodeError;
use record::RowVisitor;
use record::rows::Sockets;
use sys::{Blocks, Errno, Host, SysError, WalkError};

use super::cache::{BackendCache, Program, WalkRequest, WalkScope, random};
use super::rows::part;
use crate::backends::row_keys::Keys;

pub(super) use bpf::sockets_iter::TcpIterator;
pub(super) use bpf::sockets_walk::TcpWalk;

impl BackendCache {
    /// The loaded program that covers these `parts`, if there is one.
    pub(crate) fn loaded(&self, parts: u32) -> Option<Program> {
        if self.walk.has_program(|walk| walk.covers(WalkCapabilities::Connections, parts)) {
            return Some(Program::Walk);
        }
        self.iterator.has_program(|iterator| iterator.covers(parts)).then_some(Program::Iterator)
    }

    /// Loads a program that reads these `parts` of the sockets in the calling thread's namespace: the walk, or the
    /// iterator if the kernel refuses the walk and `or_iterator` returns true.
    pub(crate) fn open(
        &self,
        host: &Host,
        parts: u32,
        or_iterator: impl FnOnce() -> bool,
    ) -> Result<Program, WalkError> {
        if let Some(program) = self.loaded(parts) {
            return Ok(program);
        }
        let refused = match self.load_walk(host, WalkCapabilities::Connections, parts) {
            Ok(_) => return Ok(Program::Walk),
            Err(_) if parts & part::INFO == 0 && or_iterator() => {
                return self.load_iterator(host, parts).map(|_| Program::Iterator);
            }
            Err(error) => error,
        };
        Err(self.iterator.refusal().map_or(refused, |why| WalkError::unavailable(why.into_string())))
    }

    fn load_walk(
        &self,
        host: &Host,
        reach: WalkCapabilities,
        parts: u32,
    ) -> Result<std::cell::Ref<'_, TcpWalk>, WalkError> {
        let load = || TcpWalk::load(host, reach, parts, self.salts());
        self.walk.get(|walk| walk.covers(reach, parts), load)
    }

    fn load_iterator(&self, host: &Host, parts: u32) -> Result<std::cell::Ref<'_, TcpIterator>, WalkError> {
        // The kernel may pass a socket to the iterator twice, so each row identifies its socket.
        let load = || TcpIterator::load(host, parts | part::IDENTITY, self.salts());
        self.iterator.get(|iterator| iterator.covers(parts), load)
    }

    fn salts(&self) -> [u64; 2] {
        *self.salts.get_or_init(|| [random(), random()])
    }

    /// Reads the sockets of the calling thread's namespace with the iterator, regardless of `request.scope`; returns
    /// true if `visitor` stopped it.
    pub(crate) fn iterate(
        &self,
        host: &Host,
        request: &WalkRequest<'_>,
        visitor: &mut impl RowVisitor<Sockets, Keys, DecodeError>,
    ) -> Result<bool, WalkError> {
        let iterator = self.load_iterator(host, request.parts)?;
        let reading = iterator.read(wanted_sockets(request)).map_err(WalkError::unavailable)?;
        let blocks = host.stream(request.key, request.note, || Ok(Box::new(reading) as Box<dyn Blocks>))?;
        self.visit_blocks(blocks, request, visitor)
    }

    pub(super) fn walk_kernel(
        &self,
        host: &Host,
        request: &WalkRequest<'_>,
        visitor: &mut impl RowVisitor<Sockets, Keys, DecodeError>,
    ) -> Result<bool, WalkError> {
        let walk = self.load_walk(host, reach(request.scope), request.parts)?;
        let blocks = walk.read(table(request.scope), wanted_sockets(request)).map_err(WalkError::unavailable)?;
        let blocks = FailingBlocks { blocks, left: &self.breaks_after };
        let blocks = host.stream(request.key, request.note, || Ok(Box::new(blocks) as Box<dyn Blocks>))?;
        self.visit_blocks(blocks, request, visitor)
    }

    /// Every network namespace of the kernel: its inode, and a number that is equal for namespaces that share a hash
    /// table of connections. The program loaded for this can read these `parts` of the sockets of all namespaces.
    pub(crate) fn namespaces(&self, host: &Host, parts: u32) -> Result<Vec<(u32, u64)>, WalkError> {
        let found = match host.is_replay() {
            true => bpf::sockets_walk::namespaces(host, [0, 0]),
            false => self.load_walk(host, WalkCapabilities::AllNetns, parts)?.namespaces(host),
        };
        let found = found.map_err(WalkError::unavailable)?;
        Ok(found.into_iter().map(|namespace| (namespace.netns_id, namespace.table)).collect())
    }
}

fn table(scope: WalkScope) -> TcpTable {
    match scope {
        WalkScope::ListenersOf(_) | WalkScope::AllListeners => TcpTable::Listeners,
        _ => TcpTable::Connections,
    }
}

fn reach(scope: WalkScope) -> WalkCapabilities {
    if scope == WalkScope::Own { WalkCapabilities::Connections } else { WalkCapabilities::AllNetns }
}

fn wanted_sockets(request: &WalkRequest<'_>) -> WantedSockets {
    let WalkRequest { scope, states, v4, v6, sport, dport, .. } = *request;
    let netns = match scope {
        WalkScope::Own | WalkScope::AllListeners => None,
        WalkScope::One(inode) | WalkScope::Shared(inode) | WalkScope::ListenersOf(inode) => Some(inode),
    };
    let all = matches!(scope, WalkScope::Shared(_) | WalkScope::AllListeners);
    WantedSockets { states, v4, v6, sport, dport, netns, all }
}

/// For tests: blocks that end in an error after a given number.
struct FailingBlocks<'a, B> {
    blocks: B,
    left: &'a Cell<Option<u32>>,
}

impl<B: Blocks> Blocks for FailingBlocks<'_, B> {
    fn next(&mut self) -> Result<Option<&[u8]>, SysError> {
        match self.left.get() {
            Some(0) => return Err(SysError::new("bpf_prog_run", "the walk of the TCP table", Errno::AGAIN)),
            left => self.left.set(left.map(|left| left - 1)),
        }
        self.blocks.next()
    }
}
