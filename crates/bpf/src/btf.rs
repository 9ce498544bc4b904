//! BTF, the type format of the kernel and clang: a list of records of different lengths, numbered from 1.
//!
//! Documentation/bpf/btf.rst; include/uapi/linux/btf.h. Parses any bytes without panicking.
use crate::error::BpfError;
use crate::object::{slice, u16_at, u32_at};

const MAGIC: u16 = 0xeb9f;
const HEADER_BYTES: usize = 24;
/// Name, kind and count, size or type.
const TYPE_BYTES: usize = 12;
/// The index stores the position of every 16th type: 32 KiB for 130,000 types, and a lookup passes at most 15 others.
const INDEX_STEP: u32 = 16;
/// Maximum length of a chain of modifiers (`const volatile`) or nested arrays. Compilers stay far below it; hostile
/// bytes may form a cycle.
///
/// Bound: modifiers or nested arrays in one kernel type. Beyond: the program is not loaded; another interface reads.
/// By: a broken kernel.
const CHAIN_MAX: usize = 32;

/// `BTF_KIND_*`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TypeKind(pub(crate) u8);

/// Size of the data after the head, by kind: (fixed, per member). A table, because branches on the kind are
/// mispredicted: it makes the pass over all types a third faster.
const TAILS: [(u8, u8); 32] = {
    let mut tails = [(UNKNOWN, 0); 32];
    let mut kind = TypeKind::PTR.0;
    // Kinds without data after the head: pointers, forwards, typedefs, modifiers, functions, floats, type tags.
    while kind <= 18 {
        tails[kind as usize] = (0, 0);
        kind += 1;
    }
    tails[TypeKind::INT.0 as usize] = (4, 0);
    tails[TypeKind::VARIABLE.0 as usize] = (4, 0);
    tails[TypeKind::DECL_TAG.0 as usize] = (4, 0);
    tails[TypeKind::ARRAY.0 as usize] = (12, 0);
    tails[TypeKind::STRUCT.0 as usize] = (0, 12);
    tails[TypeKind::UNION.0 as usize] = (0, 12);
    tails[TypeKind::SECTION.0 as usize] = (0, 12);
    tails[TypeKind::ENUM64.0 as usize] = (0, 12);
    tails[TypeKind::ENUM.0 as usize] = (0, 8);
    tails[TypeKind::PROTOTYPE.0 as usize] = (0, 8);
    tails
};
const UNKNOWN: u8 = 255;

impl TypeKind {
    pub(crate) const VOID: TypeKind = TypeKind(0);
    pub(crate) const INT: TypeKind = TypeKind(1);
    pub(crate) const PTR: TypeKind = TypeKind(2);
    pub(crate) const ARRAY: TypeKind = TypeKind(3);
    pub(crate) const STRUCT: TypeKind = TypeKind(4);
    pub(crate) const UNION: TypeKind = TypeKind(5);
    pub(crate) const ENUM: TypeKind = TypeKind(6);
    pub(crate) const FORWARD: TypeKind = TypeKind(7);
    pub(crate) const TYPEDEF: TypeKind = TypeKind(8);
    pub(crate) const FUNCTION: TypeKind = TypeKind(12);
    const PROTOTYPE: TypeKind = TypeKind(13);
    const VARIABLE: TypeKind = TypeKind(14);
    const SECTION: TypeKind = TypeKind(15);
    pub(crate) const FLOAT: TypeKind = TypeKind(16);
    const DECL_TAG: TypeKind = TypeKind(17);
    pub(crate) const ENUM64: TypeKind = TypeKind(19);

    /// Number of bytes after the head for `count` members; `None` for an unknown kind, whose length is also unknown.
    #[inline]
    fn tail(self, count: usize) -> Option<usize> {
        let (fixed, each) = TAILS[usize::from(self.0 & 31)];
        (fixed != UNKNOWN).then_some(usize::from(fixed) + usize::from(each) * count)
    }

    /// True for volatile, const, restrict and type tags, which qualify another type.
    fn is_modifier(self) -> bool {
        matches!(self.0, 9..=11 | 18)
    }

    pub(crate) fn is_composite(self) -> bool {
        self == TypeKind::STRUCT || self == TypeKind::UNION
    }

    pub(crate) fn is_enum(self) -> bool {
        self == TypeKind::ENUM || self == TypeKind::ENUM64
    }
}

/// A BTF type.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Type<'a> {
    /// Offset of the name in the strings; 0 if unnamed.
    pub(crate) name: u32,
    pub(crate) kind: TypeKind,
    flag: bool,
    /// Size in bytes or the id of another type, depending on the kind.
    pub(crate) size_or_type: u32,
    tail: &'a [u8],
}

/// A member of a struct or union.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) name: u32,
    pub(crate) type_id: u32,
    pub(crate) bit_offset: u32,
    /// Width of a bit field in bits; 0 for other members.
    pub(crate) bits: u32,
}

impl<'a> Type<'a> {
    const VOID: Type<'static> = Type { name: 0, kind: TypeKind::VOID, flag: false, size_or_type: 0, tail: &[] };

    pub(crate) fn members(&self) -> impl Iterator<Item = Member> + 'a {
        let (tail, flag) = (if self.kind.is_composite() { self.tail } else { &[] }, self.flag);
        tail.chunks_exact(12).filter_map(move |raw| {
            let offset = u32_at(raw, 8)?;
            let (bits, bit_offset) = if flag { (offset >> 24, offset & 0xff_ffff) } else { (0, offset) };
            Some(Member { name: u32_at(raw, 0)?, type_id: u32_at(raw, 4)?, bit_offset, bits })
        })
    }

    /// Element type and number of elements of an array; `None` for other kinds.
    pub(crate) fn array(&self) -> Option<(u32, u32)> {
        (self.kind == TypeKind::ARRAY).then_some((u32_at(self.tail, 0)?, u32_at(self.tail, 8)?))
    }

    /// Name and value of each constant of an enum.
    pub(crate) fn values(&self) -> impl Iterator<Item = (u32, u64)> + 'a {
        let wide = self.kind == TypeKind::ENUM64;
        let (tail, signed) = (if self.kind.is_enum() { self.tail } else { &[] }, self.flag);
        tail.chunks_exact(if wide { 12 } else { 8 }).filter_map(move |raw| {
            let low = u32_at(raw, 4)?;
            let value = match (wide, signed) {
                (true, _) => u64::from(low) | u64::from(u32_at(raw, 8)?) << 32,
                (false, true) => low as i32 as i64 as u64,
                (false, false) => u64::from(low),
            };
            Some((u32_at(raw, 0)?, value))
        })
    }

    /// True for a signed integer or enum.
    pub(crate) fn is_signed(&self) -> bool {
        match self.kind {
            // BTF_INT_SIGNED in the encoding, bits 24 to 27.
            TypeKind::INT => u32_at(self.tail, 0).is_some_and(|word| word >> 24 & 1 != 0),
            kind => kind.is_enum() && self.flag,
        }
    }

    /// True for an integer that does not fill its bytes: older compilers write bit fields like this.
    pub(crate) fn is_old_bit_field(&self) -> bool {
        self.kind == TypeKind::INT && u32_at(self.tail, 0).is_some_and(|word| word >> 16 & 0xff != 0)
    }

    /// Number of parameters of a function's type; `None` for other kinds.
    pub(crate) fn parameters(&self) -> Option<usize> {
        (self.kind == TypeKind::PROTOTYPE).then_some(self.tail.len() / 8)
    }

    /// The variables of a data section, as ids of types of kind variable.
    pub(crate) fn variables(&self) -> impl Iterator<Item = u32> + 'a {
        let tail = if self.kind == TypeKind::SECTION { self.tail } else { &[] };
        tail.chunks_exact(12).filter_map(|raw| u32_at(raw, 0))
    }
}

/// The names of a set of types: consecutive NUL-terminated strings.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TypeNames<'a> {
    /// Names of the base set; a module's offsets start after them.
    base: &'a [u8],
    own: &'a [u8],
}

impl<'a> TypeNames<'a> {
    /// The bytes from the name at `offset` to the end of the strings; empty if the offset is out of range.
    #[inline]
    pub(crate) fn from(self, offset: u32) -> &'a [u8] {
        let (strings, at) = match (offset as usize).checked_sub(self.base.len()) {
            Some(own) => (self.own, own),
            None => (self.base, offset as usize),
        };
        strings.get(at..).unwrap_or_default()
    }
}

/// A set of types: the kernel's, a module's or the object's.
#[derive(Debug, Clone)]
pub(crate) struct Types<'a> {
    types: &'a [u8],
    strings: &'a [u8],
    /// Positions of every STEPth type, as far as [`Types::walk`] has read.
    marks: Vec<u32>,
    /// Number of types that [`Types::walk`] has passed.
    count: u32,
    /// The base set: a module's type ids and name offsets continue the kernel's.
    base: Option<Box<Types<'a>>>,
}

pub(crate) fn wrong(why: &'static str) -> BpfError {
    BpfError::Malformed { what: "BTF", why }
}

impl<'a> Types<'a> {
    /// Splits the bytes into types and names without reading any type yet. Fails on a wrong magic number or invalid
    /// lengths.
    pub(crate) fn parse(bytes: &'a [u8]) -> Result<Types<'a>, BpfError> {
        if u16_at(bytes, 0) != Some(MAGIC) {
            return Err(wrong("types in another byte order"));
        }
        let head = |at| u32_at(bytes, at).map(|number| number as usize).ok_or(wrong("truncated"));
        let header = head(4)?;
        if header < HEADER_BYTES {
            return Err(wrong("a truncated header"));
        }
        let part = |at: usize, length: usize| {
            slice(bytes, header.saturating_add(at), length).ok_or(wrong("a section beyond the end"))
        };
        let (types, strings) = (part(head(8)?, head(12)?)?, part(head(16)?, head(20)?)?);
        if strings.last() != Some(&0) {
            return Err(wrong("unterminated strings"));
        }
        Ok(Types { types, strings, marks: Vec::new(), count: 0, base: None })
    }

    /// Parses the types of a module, which continue the numbering of `base`. `base` must have been walked.
    pub(crate) fn parse_over(bytes: &'a [u8], base: Types<'a>) -> Result<Types<'a>, BpfError> {
        Ok(Types { base: Some(Box::new(base)), ..Types::parse(bytes)? })
    }

    /// Number of types and bytes of names in the base set.
    fn base_sizes(&self) -> (u32, u32) {
        self.base.as_ref().map_or((0, 0), |base| (base.count, base.strings.len() as u32))
    }

    /// True if the type is in vmlinux, false if it belongs to a module.
    pub(crate) fn is_of_kernel(&self, id: u32) -> bool {
        self.base.as_ref().is_none_or(|base| id <= base.count)
    }

    /// Works like [`Types::parse`], and walks all types once so that [`Types::get`] can find them.
    pub(crate) fn parse_all(bytes: &'a [u8]) -> Result<Types<'a>, BpfError> {
        let mut types = Types::parse(bytes)?;
        types.walk(|_, _, _| {})?;
        Ok(types)
    }

    /// Passes all types in order, calls `each` with (id, kind, name), and fills the index. This loop runs over 130,000
    /// kernel types, so it only reads each head and adds its length. For a module it passes only the module's own
    /// types.
    pub(crate) fn walk(&mut self, mut each: impl FnMut(u32, TypeKind, u32)) -> Result<(), BpfError> {
        self.marks.clear();
        let (below, _) = self.base_sizes();
        let (mut at, mut index) = (0, 0u32);
        while let Some(head) = self.types.get(at..).and_then(|rest| rest.first_chunk::<TYPE_BYTES>()) {
            if index % INDEX_STEP == 0 {
                self.marks.push(at as u32);
            }
            let [a, b, c, d, e, f, _, h, ..] = *head;
            let kind = TypeKind(h & 0x1f);
            let tail = kind.tail(usize::from(u16::from_le_bytes([e, f]))).ok_or(wrong("an unknown kind of type"))?;
            index += 1;
            each(below + index, kind, u32::from_le_bytes([a, b, c, d]));
            at += TYPE_BYTES + tail;
        }
        self.count = index;
        if at == self.types.len() { Ok(()) } else { Err(wrong("the last type is truncated")) }
    }

    /// The type with this id; id 0 is void. `None` for ids out of range.
    pub(crate) fn get(&self, id: u32) -> Option<Type<'a>> {
        let Some(index) = id.checked_sub(1) else { return Some(Type::VOID) };
        let index = match (&self.base, index.checked_sub(self.base_sizes().0)) {
            (Some(base), None) => return base.get(id),
            (_, own) => own?,
        };
        let mut at = *self.marks.get((index / INDEX_STEP) as usize)? as usize;
        for _ in 0..index % INDEX_STEP {
            at += TYPE_BYTES + self.read(at)?.tail.len();
        }
        self.read(at)
    }

    fn read(&self, at: usize) -> Option<Type<'a>> {
        let word = u32_at(self.types, at + 4)?;
        let kind = TypeKind((word >> 24 & 0x1f) as u8);
        Some(Type {
            name: u32_at(self.types, at)?,
            kind,
            flag: word >> 31 != 0,
            size_or_type: u32_at(self.types, at + 8)?,
            tail: slice(self.types, at + TYPE_BYTES, kind.tail((word & 0xffff) as usize)?)?,
        })
    }

    /// The strings that contain the names.
    pub(crate) fn names(&self) -> TypeNames<'a> {
        TypeNames { base: self.base.as_ref().map_or(&[], |base| base.strings), own: self.strings }
    }

    /// The name at `offset`; empty if it is unnamed or not UTF-8.
    pub(crate) fn name(&self, offset: u32) -> &'a str {
        crate::object::text(self.names().from(offset), 0).unwrap_or("")
    }

    /// True if the name at `offset` is `name`. Cheaper than [`Types::name`], because it does not search for the end.
    pub(crate) fn is_named(&self, offset: u32, name: &str) -> bool {
        let rest = self.names().from(offset);
        rest.strip_prefix(name.as_bytes()).is_some_and(|rest| rest.first() == Some(&0))
    }

    /// The type after removing modifiers (const, volatile, …) and typedefs.
    pub(crate) fn strip_modifiers(&self, mut id: u32) -> Option<(u32, Type<'a>)> {
        for _ in 0..CHAIN_MAX {
            let found = self.get(id)?;
            if !found.kind.is_modifier() && found.kind != TypeKind::TYPEDEF {
                return Some((id, found));
            }
            id = found.size_or_type;
        }
        None
    }

    /// Size of a type in bytes; arrays are multiplied out. `None` for incomplete types.
    pub(crate) fn size(&self, mut id: u32) -> Option<u32> {
        let mut elements = 1u32;
        for _ in 0..CHAIN_MAX {
            let found = self.get(id)?;
            match found.kind {
                TypeKind::INT
                | TypeKind::STRUCT
                | TypeKind::UNION
                | TypeKind::ENUM
                | TypeKind::ENUM64
                | TypeKind::FLOAT
                | TypeKind::SECTION => {
                    return elements.checked_mul(found.size_or_type);
                }
                TypeKind::PTR => return elements.checked_mul(8),
                TypeKind::ARRAY => {
                    let (element, count) = found.array()?;
                    elements = elements.checked_mul(count)?;
                    id = element;
                }
                kind if kind.is_modifier() || kind == TypeKind::TYPEDEF || kind == TypeKind::VARIABLE => {
                    id = found.size_or_type;
                }
                _ => return None,
            }
        }
        None
    }
}

/// The name without a flavour suffix: `sock___old` stands for `sock` (libbpf's `___` rule).
pub(crate) fn strip_flavour(name: &str) -> &str {
    match name.rfind("___") {
        Some(at) if at > 0 && at + 3 < name.len() => name.get(..at).unwrap_or(name),
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use crate::made::TypeBuilder;

    #[test]
    fn every_type_is_found_again() {
        let mut made = TypeBuilder::new();
        let int = made.int("int", 4, true);
        let ids: Vec<u32> = (0..100).map(|n| made.array(int, n)).collect();
        let bytes = made.bytes();
        let types = Types::parse_all(&bytes).unwrap();
        for (n, id) in (0..100).zip(ids) {
            assert_eq!(types.get(id).unwrap().array(), Some((int, n)));
            assert_eq!(types.size(id), Some(n * 4));
        }
        assert!(types.get(102).is_none());
        assert_eq!(types.get(0).unwrap().kind, TypeKind::VOID);
        assert!(types.get(int).unwrap().is_signed());
    }

    #[test]
    fn sizes_of_typedefs_and_arrays() {
        let mut made = TypeBuilder::new();
        let short = made.int("u16", 2, false);
        let (pointer, constant) = (made.pointer(short), made.constant(short));
        let named = made.typedef("port_t", constant);
        let (row, structure) = (made.array(named, 3), made.structure("pair", 12, &[]));
        let table = made.array(row, 5);
        let bytes = made.bytes();
        let types = Types::parse_all(&bytes).unwrap();
        let size = |id| types.size(id);
        assert_eq!((size(short), size(pointer), size(named)), (Some(2), Some(8), Some(2)));
        assert_eq!((size(row), size(table), size(structure), size(0)), (Some(6), Some(30), Some(12), None));
        assert_eq!(types.strip_modifiers(named).unwrap().0, short);
    }

    #[test]
    fn rings_of_types_end() {
        let mut made = TypeBuilder::new();
        made.typedef("a", 2);
        made.typedef("b", 1);
        made.array(3, 2);
        let bytes = made.bytes();
        let types = Types::parse_all(&bytes).unwrap();
        assert!(types.strip_modifiers(1).is_none());
        assert_eq!((types.size(1), types.size(3)), (None, None));
    }

    #[test]
    fn broken_types_are_refused() {
        let mut made = TypeBuilder::new();
        made.structure("pair", 8, &[("a", 0, 0, 0)]);
        let good = made.bytes();
        for length in 0..good.len() {
            assert!(Types::parse_all(&good[..length]).is_err(), "cut to {length}");
        }
        let mut unknown = good.clone();
        unknown[24 + 7] = 30;
        assert!(Types::parse_all(&unknown).unwrap_err().to_string().ends_with("an unknown kind of type"));
        let mut foreign = good;
        foreign.swap(0, 1);
        assert!(Types::parse_all(&foreign).is_err());
    }

    #[test]
    fn shapes_of_a_type_share_a_name() {
        let essentials = ["sock", "sock___old", "a___b___c", "___x", "x___", "a__b"].map(strip_flavour);
        assert_eq!(essentials, ["sock", "sock", "a___b", "___x", "x___", "a__b"]);
    }

    /// The live kernel's types; any host with /sys can check them.
    #[test]
    fn the_kernels_own() {
        let Ok(bytes) = std::fs::read("/sys/kernel/btf/vmlinux") else {
            println!("skipped: this kernel has no BTF");
            return;
        };
        let types = Types::parse_all(&bytes).unwrap();
        let structs = (1..).map_while(|id| types.get(id)).filter(|found| found.kind == TypeKind::STRUCT);
        let in6_addr = structs.filter(|found| types.is_named(found.name, "in6_addr")).collect::<Vec<_>>();
        assert_eq!(in6_addr.len(), 1);
        assert_eq!((in6_addr[0].size_or_type, in6_addr[0].members().count()), (16, 1));
    }
}
