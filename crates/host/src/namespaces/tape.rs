//! Encodes the list of namespaces for a recording.
//!
//! `hidden` u32; number of skipped descriptors u32; then for each namespace: inode u64, pid u32 (0 for none), u8 (1 if
//! the name was given, not derived), length of the path u16, path, length of the name u16, name. Little endian.
use super::{Namespace, Namespaces};
use crate::HostError;

pub(super) fn put(into: &mut Vec<u8>, namespaces: &Namespaces) {
    for count in [namespaces.hidden, namespaces.unsearched] {
        into.extend_from_slice(&u32::try_from(count).unwrap_or(u32::MAX).to_le_bytes());
    }
    for Namespace { inode, pid, path, name, is_given } in &namespaces.list {
        into.extend_from_slice(&inode.to_le_bytes());
        into.extend_from_slice(&pid.unwrap_or(0).to_le_bytes());
        into.push(u8::from(*is_given));
        put_text(into, path);
        put_text(into, name);
    }
}

// A path has at most 4,095 bytes; a longer one cannot be opened.
fn put_text(into: &mut Vec<u8>, text: &[u8]) {
    let text = if text.len() > usize::from(u16::MAX) { b"" } else { text };
    into.extend_from_slice(&(text.len() as u16).to_le_bytes());
    into.extend_from_slice(text);
}

pub(super) fn parse(bytes: &[u8]) -> Result<Namespaces, HostError> {
    let garbled = |rest: &[u8]| HostError::Garbled { what: "network namespaces", at: bytes.len() - rest.len() };
    let (hidden, rest) = bytes.split_first_chunk().ok_or_else(|| garbled(bytes))?;
    let (unsearched, mut rest) = rest.split_first_chunk().ok_or_else(|| garbled(bytes))?;
    let [hidden, unsearched] = [hidden, unsearched].map(|count| u32::from_le_bytes(*count).into());
    let mut namespaces = Namespaces { list: Vec::new(), hidden, unsearched };
    while !rest.is_empty() {
        let (namespace, after) = parse_one(rest).ok_or_else(|| garbled(rest))?;
        namespaces.list.push(namespace);
        rest = after;
    }
    Ok(namespaces)
}

fn parse_one(bytes: &[u8]) -> Option<(Namespace, &[u8])> {
    let (inode, rest) = bytes.split_first_chunk()?;
    let (pid, rest) = rest.split_first_chunk()?;
    let (given, rest) = rest.split_first()?;
    let (path, rest) = parse_text(rest)?;
    let (name, rest) = parse_text(rest)?;
    let pid = Some(u32::from_le_bytes(*pid)).filter(|pid| *pid != 0);
    let inode = u64::from_le_bytes(*inode);
    Some((Namespace { inode, pid, path: path.into(), name: name.into(), is_given: *given == 1 }, rest))
}

fn parse_text(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    rest.split_at_checked(usize::from(u16::from_le_bytes(*length)))
}
