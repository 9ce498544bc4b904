//! CO-RE relocations: clang writes one for every access to a kernel type (`.BTF.ext`, `struct bpf_core_relo`).
//!
//! This file parses them; `relocate.rs` resolves them against the kernel's types.
use crate::btf::{Types, wrong};
use crate::error::BpfError;
use crate::object::{slice, u16_at, u32_at};

/// `enum bpf_core_relo_kind`: the property of the kernel's type that the instruction contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RelocationKind {
    ByteOffset,
    ByteSize,
    FieldExists,
    Signed,
    LeftShift,
    RightShift,
    LocalTypeId,
    TypeId,
    TypeExists,
    TypeSize,
    ValueExists,
    Value,
}

/// The kinds in the order of their numbers.
pub(crate) const ALL: [RelocationKind; 12] = [
    RelocationKind::ByteOffset,
    RelocationKind::ByteSize,
    RelocationKind::FieldExists,
    RelocationKind::Signed,
    RelocationKind::LeftShift,
    RelocationKind::RightShift,
    RelocationKind::LocalTypeId,
    RelocationKind::TypeId,
    RelocationKind::TypeExists,
    RelocationKind::TypeSize,
    RelocationKind::ValueExists,
    RelocationKind::Value,
];

impl RelocationKind {
    /// The kind with this number in `enum bpf_core_relo_kind`.
    fn from_number(number: u32) -> Option<RelocationKind> {
        ALL.get(number as usize).copied()
    }

    /// True if the relocation is about a member, false if it is about a type or an enum constant.
    pub(crate) fn is_about_field(self) -> bool {
        use RelocationKind::*;
        matches!(self, ByteOffset | ByteSize | FieldExists | Signed | LeftShift | RightShift)
    }
}

/// A relocation: the instruction at `offset` of its section contains a number that depends on the kernel.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Relocation<'a> {
    /// Offset in bytes from the start of the section (later: of the program).
    pub(crate) offset: usize,
    /// The root type of the access path, in the object's own types.
    pub(crate) type_id: u32,
    /// The access path: `0:3:1` are indexes of elements and members.
    pub(crate) path: &'a str,
    pub(crate) kind: RelocationKind,
}

/// Size of a `struct bpf_core_relo`; newer compilers may append members.
const RELOCATION_BYTES: usize = 16;

/// Parses the relocations of the section named `section`. Fails on invalid lengths and on unknown kinds.
pub(crate) fn parse<'a>(ext: &[u8], types: &Types<'a>, section: &str) -> Result<Vec<Relocation<'a>>, BpfError> {
    let head = |at| u32_at(ext, at).map(|number| number as usize);
    if u16_at(ext, 0) != Some(0xeb9f) {
        return Err(wrong("relocations in another byte order"));
    }
    // An object without such accesses has the short header.
    let (Some(header), Some(at), Some(length)) = (head(4).filter(|bytes| *bytes >= 32), head(24), head(28)) else {
        return Ok(Vec::new());
    };
    let all = slice(ext, header.saturating_add(at), length).ok_or(wrong("relocations beyond the end"))?;
    let Some(entry_bytes) = u32_at(all, 0).map(|bytes| bytes as usize) else { return Ok(Vec::new()) };
    if entry_bytes < RELOCATION_BYTES {
        return Err(wrong("truncated relocations"));
    }
    let mut found = Vec::new();
    let mut rest = all.get(4..).unwrap_or_default();
    while let (Some(name), Some(count)) = (u32_at(rest, 0), u32_at(rest, 4)) {
        let length = (count as usize).checked_mul(entry_bytes).ok_or(wrong("too many relocations"))?;
        let body = slice(rest, 8, length).ok_or(wrong("relocations beyond the end"))?;
        if types.is_named(name, section) {
            for raw in body.chunks_exact(entry_bytes) {
                found.push(relocation(raw, types).ok_or(wrong("a relocation of an unknown kind"))?);
            }
        }
        rest = rest.get(8 + length..).unwrap_or_default();
    }
    Ok(found)
}

fn relocation<'a>(raw: &[u8], types: &Types<'a>) -> Option<Relocation<'a>> {
    Some(Relocation {
        offset: u32_at(raw, 0)? as usize,
        type_id: u32_at(raw, 4)?,
        path: types.name(u32_at(raw, 8)?),
        kind: RelocationKind::from_number(u32_at(raw, 12)?)?,
    })
}
