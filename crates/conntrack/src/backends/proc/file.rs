//! /proc/net/nf_conntrack as lines, live or replayed.
use std::ops::ControlFlow;

use sys::fs::FileBlocks;
use sys::{Blocks, Host, NetNs, SysError};

use crate::backends::netlink::dump::NetnsRef;

/// A longer line is no line of this file: its longest part is a security context.
const LINE_MAX: usize = 8 << 10;

/// Name of the stream on the tape.
pub(crate) fn key(netns_id: u64) -> String {
    format!("proc/nf_conntrack/{netns_id}")
}

/// Calls `each` with every line, without its end. True if `each` wanted no more.
///
/// The kernel gives a page a read, and evicts what has expired of this namespace.
pub(crate) fn lines(
    host: &Host,
    place: NetnsRef<'_>,
    mut each: impl FnMut(&[u8]) -> ControlFlow<()>,
) -> Result<bool, SysError> {
    let mut blocks = host.stream(&key(place.netns_id), "", || open(host, place.netns))?;
    let mut rest: Vec<u8> = Vec::new();
    while let Some(block) = blocks.next()? {
        let mut block = block;
        if !rest.is_empty() {
            let Some(end) = block.iter().position(|byte| *byte == b'\n') else {
                rest.extend_from_slice(block);
                if rest.len() > LINE_MAX && give(&mut rest, &mut each).is_break() {
                    return Ok(true);
                }
                continue;
            };
            rest.extend_from_slice(block.get(..end).unwrap_or_default());
            block = block.get(end + 1..).unwrap_or_default();
            if give(&mut rest, &mut each).is_break() {
                return Ok(true);
            }
        }
        let whole = block.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let (lines, begun) = block.split_at_checked(whole).unwrap_or((block, &[]));
        for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            if each(line).is_break() {
                return Ok(true);
            }
        }
        rest.extend_from_slice(begun);
    }
    Ok(!rest.is_empty() && give(&mut rest, &mut each).is_break())
}

fn give(line: &mut Vec<u8>, each: &mut impl FnMut(&[u8]) -> ControlFlow<()>) -> ControlFlow<()> {
    let flow = each(line);
    line.clear();
    flow
}

fn open<'a>(host: &Host, netns: Option<&NetNs>) -> Result<Box<dyn Blocks + 'a>, SysError> {
    // /proc/net is the main thread's: the calling thread may be in another namespace.
    let path = host.proc_path("thread-self/net/nf_conntrack");
    let inside = netns.map(NetNs::enter).transpose()?;
    let file = FileBlocks::open(&path);
    if let Some(inside) = inside {
        inside.leave()?;
    }
    Ok(Box::new(file?))
}
