//! Resolves CO-RE relocations: finds the running kernel's number for each number that the compiler wrote.
//!
//! The object's types are a selection of the kernel's: the same names, fewer members, different offsets. A relocation
//! names an access path by indexes in the object's types (`0:3:1`). The path is translated to names (`sock`, member
//! `__sk_common`, member `skc_net`, …) and followed by these names in the kernel's types. The rules follow libbpf
//! (tools/lib/bpf/relo_core.c).
use crate::btf::{Member, TypeKind, Types, strip_flavour};
use crate::core_relocations::{Relocation, RelocationKind};
use crate::error::BpfError;

/// Nesting levels of anonymous structs and unions; the kernel has four.
const NESTING_MAX: usize = 16;
/// Number of members that one search may visit, including members of anonymous structs. Bounds the work on hostile
/// types.
///
/// Bound: members that one search in the kernel's types visits. Beyond: the program is not loaded; another interface
/// reads. By: a broken kernel.
const MEMBERS_MAX: u32 = 10_000;

/// A number for an instruction, with the conditions for writing it there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Operand {
    /// The offset, size, type number or constant.
    pub(crate) number: u64,
    /// For an offset: the number of bytes that are read there, and whether an instruction may read more or fewer. Only
    /// unsigned integers and pointers keep their value when their width changes.
    pub(crate) width: Option<(u32, Widening)>,
    /// True if the instruction must contain this number before relocation. False for bit fields, because the compiler
    /// chooses how to read them.
    pub(crate) exact: bool,
}

/// How a value may be read with another width.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Widening {
    /// An unsigned integer: zero extension keeps its value.
    Number,
    /// A pointer, read as an unsigned integer.
    Pointer,
    /// A signed integer, struct or array: the width must stay.
    Fixed,
}

/// A resolved relocation: the object's number and the kernel's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Resolution {
    /// The number according to the object's types.
    pub(crate) local: Operand,
    /// The number according to the kernel's types; `None` if the kernel lacks the field or type and no number
    /// expresses that.
    pub(crate) kernel: Option<Operand>,
}

/// One step of an access path.
#[derive(Debug, Clone, Copy)]
enum Step<'a> {
    /// Index of an array element.
    Element(u32),
    /// Name and type of a member.
    Member(&'a str, u32),
}

/// The end of an access path.
#[derive(Debug, Clone, Copy)]
struct Location {
    /// Bits from the start of the root type.
    bit_offset: u64,
    /// Type of the value there.
    type_id: u32,
    /// Width in bits of a bit field; 0 for any other value.
    bits: u32,
    /// True if the last step was an array element.
    element: bool,
}

fn wrong(why: &'static str) -> BpfError {
    BpfError::Malformed { what: "relocations of the BPF object", why }
}

/// Finds the kernel's number for `relocation`. `candidates` are the kernel's types with the name and kind of its root
/// type.
///
/// Fails if the object is malformed, or if two candidates give different numbers.
pub(crate) fn resolve(
    relocation: &Relocation<'_>,
    local: &Types<'_>,
    kernel: &Types<'_>,
    candidates: &[(u32, TypeKind)],
) -> Result<Resolution, BpfError> {
    let (own, steps) = declared_operand(relocation, local).ok_or(wrong("an access path that does not fit its type"))?;
    let mut found: Option<Operand> = None;
    // The kernel declares some types twice (`nf_conn___init`): the second declaration has its members at the offsets
    // of the first, or lacks them, but it has a different type number.
    let whole = matches!(relocation.kind, RelocationKind::TypeId | RelocationKind::TypeSize);
    let has_first = candidates.iter().any(|(id, _)| !is_second_shape(kernel, *id));
    for (id, _) in candidates {
        if whole && has_first && is_second_shape(kernel, *id) {
            continue;
        }
        // The verifier accepts only type numbers of vmlinux, not of modules.
        if relocation.kind == RelocationKind::TypeId && !kernel.is_of_kernel(*id) {
            continue;
        }
        let Some(operand) = kernel_operand(relocation, local, &steps, kernel, *id) else { continue };
        // Two types of the same name disagree: neither is a safe guess.
        if found.is_some_and(|found| found != operand) {
            let name = describe(relocation, local).1;
            return Err(BpfError::Missing { kind: "unambiguous type", name, since: None });
        }
        found = Some(operand);
    }
    let none = |number| Operand { number, width: None, exact: true };
    let kernel = match relocation.kind {
        RelocationKind::LocalTypeId => Some(own),
        // 0 means that it does not exist; an absent type has size 0 and number 0.
        RelocationKind::FieldExists
        | RelocationKind::TypeExists
        | RelocationKind::ValueExists
        | RelocationKind::TypeId
        | RelocationKind::TypeSize => Some(found.unwrap_or(none(0))),
        _ => found,
    };
    Ok(Resolution { local: own, kernel })
}

fn is_second_shape(types: &Types<'_>, id: u32) -> bool {
    types.get(id).is_some_and(|found| strip_flavour(types.name(found.name)) != types.name(found.name))
}

/// The kind and name of what a relocation refers to, for messages: (`field`, `sock.sk_ino`).
pub(crate) fn describe(relocation: &Relocation<'_>, local: &Types<'_>) -> (&'static str, Box<str>) {
    let root = local.get(relocation.type_id).map_or("", |root| strip_flavour(local.name(root.name)));
    if relocation.kind.is_about_field() {
        let mut text = String::from(root);
        for step in locate_declared(relocation, local).map(|(_, steps)| steps).unwrap_or_default() {
            if let Step::Member(name, _) = step {
                text.push('.');
                text.push_str(name);
            }
        }
        return ("field", text.into());
    }
    match relocation.kind {
        RelocationKind::Value | RelocationKind::ValueExists => {
            let value = declared_value(relocation, local).map_or("", |(name, _)| name);
            ("constant", format!("{root}.{value}").into())
        }
        _ => ("type", root.into()),
    }
}

fn declared_operand<'a>(relocation: &Relocation<'_>, local: &Types<'a>) -> Option<(Operand, Vec<Step<'a>>)> {
    let plain = |number| Operand { number, width: None, exact: true };
    Some(match relocation.kind {
        RelocationKind::LocalTypeId | RelocationKind::TypeId => (plain(relocation.type_id.into()), Vec::new()),
        RelocationKind::TypeExists => (plain(1), Vec::new()),
        // The compiler writes the size of a type that may be incomplete here: not compared.
        RelocationKind::TypeSize => (Operand { exact: false, ..plain(0) }, Vec::new()),
        RelocationKind::ValueExists => (plain(1), Vec::new()),
        RelocationKind::Value => (plain(declared_value(relocation, local)?.1), Vec::new()),
        kind => {
            let (location, steps) = locate_declared(relocation, local)?;
            (operand_at(local, &location, kind)?, steps)
        }
    })
}

fn kernel_operand(
    relocation: &Relocation<'_>,
    local: &Types<'_>,
    steps: &[Step<'_>],
    kernel: &Types<'_>,
    id: u32,
) -> Option<Operand> {
    let plain = |number| Operand { number, width: None, exact: true };
    Some(match relocation.kind {
        RelocationKind::LocalTypeId => return None,
        RelocationKind::TypeId => plain(id.into()),
        RelocationKind::TypeExists => plain(1),
        RelocationKind::TypeSize => plain(kernel.size(id)?.into()),
        RelocationKind::ValueExists | RelocationKind::Value => {
            let (wanted, _) = declared_value(relocation, local)?;
            let constants = kernel.get(id)?;
            let (_, value) =
                constants.values().find(|(name, _)| strip_flavour(kernel.name(*name)) == strip_flavour(wanted))?;
            plain(if relocation.kind == RelocationKind::Value { value } else { 1 })
        }
        kind => {
            let location = locate_in_kernel(local, steps, kernel, id)?;
            operand_at(kernel, &location, kind)?
        }
    })
}

/// Name and value of the enum constant that a relocation refers to.
fn declared_value<'a>(relocation: &Relocation<'_>, local: &Types<'a>) -> Option<(&'a str, u64)> {
    let index: usize = relocation.path.parse().ok()?;
    let (_, constants) = local.strip_modifiers(relocation.type_id)?;
    let (name, value) = constants.values().nth(index)?;
    Some((local.name(name), value))
}

/// Follows the indexes of an access path through the object's own types.
fn locate_declared<'a>(relocation: &Relocation<'_>, types: &Types<'a>) -> Option<(Location, Vec<Step<'a>>)> {
    let mut path = relocation.path.split(':').map(|index| index.parse::<u32>().ok());
    let first = path.next()??;
    let mut location = Location { bit_offset: 0, type_id: relocation.type_id, bits: 0, element: true };
    location.bit_offset += element_bits(types, location.type_id, first)?;
    let mut steps = vec![Step::Element(first)];
    for index in path {
        let index = index?;
        let (_, here) = types.strip_modifiers(location.type_id)?;
        if let Some((element, _)) = here.array() {
            location.bit_offset += element_bits(types, element, index)?;
            location = Location { type_id: element, bits: 0, element: true, ..location };
            steps.push(Step::Element(index));
            continue;
        }
        let member = here.members().nth(index as usize)?;
        location = enter_member(&location, &member);
        // Anonymous members are not steps: the kernel may nest them differently.
        if member.name != 0 {
            steps.push(Step::Member(types.name(member.name), member.type_id));
        }
    }
    Some((location, steps))
}

/// Follows the same path by names through the kernel's type `id`; `None` if a member is missing or of a different
/// kind.
fn locate_in_kernel(local: &Types<'_>, steps: &[Step<'_>], kernel: &Types<'_>, id: u32) -> Option<Location> {
    let mut location = Location { bit_offset: 0, type_id: id, bits: 0, element: true };
    for (number, step) in steps.iter().enumerate() {
        match *step {
            Step::Element(index) if number == 0 => location.bit_offset += element_bits(kernel, id, index)?,
            Step::Element(index) => {
                let (element, count) = kernel.strip_modifiers(location.type_id)?.1.array()?;
                // An array of 0 elements has no bound: it is the last member of its struct.
                if count != 0 && index >= count {
                    return None;
                }
                location.bit_offset += element_bits(kernel, element, index)?;
                location = Location { type_id: element, bits: 0, element: true, ..location };
            }
            Step::Member(name, type_id) => {
                let mut looks = MEMBERS_MAX;
                let found = find_member(kernel, location.type_id, name, NESTING_MAX, &mut looks)?;
                if !are_compatible(local, type_id, kernel, found.type_id) {
                    return None;
                }
                location = Location { bit_offset: location.bit_offset + found.bit_offset, ..found };
            }
        }
    }
    Some(location)
}

/// Finds the member `name` of the struct `id`, also inside anonymous structs and unions. Its offset counts from `id`.
fn find_member(types: &Types<'_>, id: u32, name: &str, depth: usize, looks: &mut u32) -> Option<Location> {
    let (_, here) = types.strip_modifiers(id)?;
    let start = Location { bit_offset: 0, type_id: id, bits: 0, element: false };
    for member in here.members() {
        *looks = looks.checked_sub(1)?;
        if member.name != 0 {
            if types.is_named(member.name, name) {
                return Some(enter_member(&start, &member));
            }
            continue;
        }
        if depth == 0 {
            continue;
        }
        if let Some(found) = find_member(types, member.type_id, name, depth - 1, looks) {
            return Some(Location { bit_offset: found.bit_offset + u64::from(member.bit_offset), ..found });
        }
    }
    None
}

fn enter_member(location: &Location, member: &Member) -> Location {
    let bit_offset = location.bit_offset + u64::from(member.bit_offset);
    Location { bit_offset, type_id: member.type_id, bits: member.bits, element: false }
}

fn element_bits(types: &Types<'_>, id: u32, index: u32) -> Option<u64> {
    // The first element needs no size, so the type may be incomplete.
    if index == 0 { Some(0) } else { Some(u64::from(types.size(id)?) * u64::from(index) * 8) }
}

/// True if the kernel's member can be read as the declared one: same kind, compatible enums, arrays of compatible
/// elements.
fn are_compatible(local: &Types<'_>, mut own: u32, kernel: &Types<'_>, mut theirs: u32) -> bool {
    // Bounded: arrays of arrays have few levels.
    for _ in 0..NESTING_MAX {
        let (Some((_, a)), Some((_, b))) = (local.strip_modifiers(own), kernel.strip_modifiers(theirs)) else {
            return false;
        };
        if a.kind.is_composite() && b.kind.is_composite() {
            return true;
        }
        if a.kind != b.kind && !(a.kind.is_enum() && b.kind.is_enum()) {
            return false;
        }
        if let (Some((from, _)), Some((to, _))) = (a.array(), b.array()) {
            (own, theirs) = (from, to);
            continue;
        }
        if a.kind.is_enum() {
            let (one, other) = (strip_flavour(local.name(a.name)), strip_flavour(kernel.name(b.name)));
            return one.is_empty() || other.is_empty() || one == other;
        }
        return match a.kind {
            TypeKind::INT => !a.is_old_bit_field() && !b.is_old_bit_field(),
            TypeKind::PTR | TypeKind::FLOAT | TypeKind::FORWARD => true,
            _ => false,
        };
    }
    false
}

fn operand_at(types: &Types<'_>, location: &Location, kind: RelocationKind) -> Option<Operand> {
    let plain = |number| Some(Operand { number, width: None, exact: true });
    if kind == RelocationKind::FieldExists {
        return plain(1);
    }
    let (_, bare) = types.strip_modifiers(location.type_id)?;
    let is_field = location.bits > 0;
    let (byte, bytes) =
        if is_field { storage(types, location)? } else { (location.bit_offset / 8, size_at(types, location)?) };
    let bits = if is_field { u64::from(location.bits) } else { u64::from(bytes) * 8 };
    // Bit fields are not compared with the instruction: the compiler chooses its shifts.
    let loose = |number| Some(Operand { number, width: None, exact: false });
    match kind {
        RelocationKind::ByteOffset if is_field => loose(byte),
        RelocationKind::ByteOffset => {
            let widening = match bare.kind {
                TypeKind::PTR => Widening::Pointer,
                TypeKind::INT if !bare.is_signed() => Widening::Number,
                _ => Widening::Fixed,
            };
            let width = (!location.element).then_some((bytes, widening));
            Some(Operand { number: byte, width, exact: true })
        }
        RelocationKind::ByteSize if is_field => loose(bytes.into()),
        RelocationKind::ByteSize => plain(bytes.into()),
        RelocationKind::Signed => loose(bare.is_signed().into()),
        // For a word loaded on a little-endian machine: shifted left until the field's top bit is bit 63, then right
        // until its lowest bit is bit 0.
        RelocationKind::LeftShift => {
            loose(64u64.checked_sub(location.bit_offset.checked_add(bits)?.checked_sub(byte * 8)?)?)
        }
        RelocationKind::RightShift => loose(64u64.checked_sub(bits)?),
        _ => None,
    }
}

/// Size in bytes of the value at a location.
fn size_at(types: &Types<'_>, location: &Location) -> Option<u32> {
    types.size(location.type_id)
}

/// The aligned word that contains a bit field: (byte offset, bytes). `None` if no word of 8 bytes does.
fn storage(types: &Types<'_>, location: &Location) -> Option<(u64, u32)> {
    let mut bytes = types.size(location.type_id)?;
    loop {
        let byte = (location.bit_offset / 8).checked_div(bytes.into())? * u64::from(bytes);
        if location.bit_offset + u64::from(location.bits) <= (byte + u64::from(bytes)) * 8 {
            return Some((byte, bytes));
        }
        if bytes >= 8 {
            return None;
        }
        bytes *= 2;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use crate::made::{BuilderMember, TypeBuilder};
    use proptest::prelude::*;

    /// Resolves a relocation for `path` of `type_id` in `local`, with the kernel's candidates `theirs`.
    fn ask(
        local: &TypeBuilder,
        type_id: u32,
        path: &str,
        kernel: &TypeBuilder,
        theirs: &[u32],
        kind: RelocationKind,
    ) -> Resolution {
        try_ask(local, type_id, path, kernel, theirs, kind).unwrap()
    }

    fn try_ask(
        local: &TypeBuilder,
        type_id: u32,
        path: &str,
        kernel: &TypeBuilder,
        theirs: &[u32],
        kind: RelocationKind,
    ) -> Result<Resolution, BpfError> {
        let (own, their) = (local.bytes(), kernel.bytes());
        let (own, their) = (Types::parse_all(&own).unwrap(), Types::parse_all(&their).unwrap());
        let candidates: Vec<_> = theirs.iter().map(|id| (*id, their.get(*id).unwrap().kind)).collect();
        resolve(&Relocation { offset: 0, type_id, path, kind }, &own, &their, &candidates)
    }

    fn number(resolution: Resolution) -> Option<u64> {
        resolution.kernel.map(|operand| operand.number)
    }

    /// The fields of a module's types can be located, but a typed read by the number of a module's type is impossible.
    #[test]
    fn types_of_modules_have_no_number() {
        let (mut local, mut base) = (TypeBuilder::new(), TypeBuilder::new());
        let (own_int, int) = (local.int("u32", 4, false), base.int("u32", 4, false));
        let own = local.structure("nf_conn", 4, &[("mark", own_int, 0, 0)]);
        let mut module = TypeBuilder::based_on(&base);
        let theirs = module.structure("nf_conn", 64, &[("mark", int, 256, 0)]);
        let (local, base, module) = (local.bytes(), base.bytes(), module.bytes());
        let local = Types::parse_all(&local).unwrap();
        let mut kernel = Types::parse_over(&module, Types::parse_all(&base).unwrap()).unwrap();
        kernel.walk(|_, _, _| {}).unwrap();
        let ask = |path, kind| {
            let relocation = Relocation { offset: 0, type_id: own, path, kind };
            number(resolve(&relocation, &local, &kernel, &[(theirs, TypeKind::STRUCT)]).unwrap())
        };
        assert_eq!((ask("0:0", RelocationKind::ByteOffset), ask("0", RelocationKind::TypeSize)), (Some(32), Some(64)));
        assert_eq!((ask("0", RelocationKind::TypeExists), ask("0", RelocationKind::TypeId)), (Some(1), Some(0)));
    }

    /// `struct thing` with these members, on both sides; the first id is u32's, the second u64's, the third s32's.
    fn pair(own: &[BuilderMember<'_>], theirs: &[BuilderMember<'_>]) -> (TypeBuilder, u32, TypeBuilder, u32) {
        let make = |members: &[BuilderMember<'_>]| {
            let mut made = TypeBuilder::new();
            made.int("u32", 4, false);
            made.int("u64", 8, false);
            made.int("s32", 4, true);
            let id = made.structure("thing", 64, members);
            (made, id)
        };
        let ((local, a), (kernel, b)) = (make(own), make(theirs));
        (local, a, kernel, b)
    }

    #[test]
    fn a_member_that_moved() {
        let (local, own, kernel, theirs) =
            pair(&[("a", 1, 0, 0), ("b", 1, 32, 0)], &[("b", 1, 160, 0), ("x", 1, 192, 0), ("a", 1, 8, 0)]);
        let resolution = ask(&local, own, "0:1", &kernel, &[theirs], RelocationKind::ByteOffset);
        assert_eq!((resolution.local.number, number(resolution)), (4, Some(20)));
        assert_eq!(number(ask(&local, own, "0:0", &kernel, &[theirs], RelocationKind::FieldExists)), Some(1));
        assert_eq!(number(ask(&local, own, "0:0", &kernel, &[theirs], RelocationKind::ByteSize)), Some(4));
        assert_eq!(number(ask(&local, own, "0:0", &kernel, &[theirs], RelocationKind::Signed)), Some(0));
    }

    #[test]
    fn a_member_that_is_gone_or_renamed() {
        let (local, own, kernel, theirs) = pair(&[("old_name", 1, 0, 0)], &[("new_name", 1, 0, 0)]);
        assert_eq!(number(ask(&local, own, "0:0", &kernel, &[theirs], RelocationKind::ByteOffset)), None);
        assert_eq!(number(ask(&local, own, "0:0", &kernel, &[theirs], RelocationKind::FieldExists)), Some(0));
        assert_eq!(number(ask(&local, own, "0:0", &kernel, &[], RelocationKind::FieldExists)), Some(0), "no such type");
        let bytes = local.bytes();
        let relocation = Relocation { offset: 0, type_id: own, path: "0:0", kind: RelocationKind::ByteOffset };
        assert_eq!(describe(&relocation, &Types::parse_all(&bytes).unwrap()), ("field", "thing.old_name".into()));
    }

    #[test]
    fn a_member_that_became_another_kind_of_type() {
        let (local, own, kernel, theirs) = pair(&[("a", 1, 0, 0)], &[("a", 4, 0, 0)]);
        assert_eq!(number(ask(&local, own, "0:0", &kernel, &[theirs], RelocationKind::FieldExists)), Some(0));
        let (local, own, kernel, theirs) = pair(&[("a", 1, 0, 0)], &[("a", 2, 64, 0)]);
        let wider = ask(&local, own, "0:0", &kernel, &[theirs], RelocationKind::ByteOffset);
        assert_eq!(wider.local.width, Some((4, Widening::Number)));
        assert_eq!(wider.kernel.unwrap().width, Some((8, Widening::Number)));
        let (local, own, kernel, theirs) = pair(&[("a", 1, 0, 0)], &[("a", 3, 0, 0)]);
        let signed = ask(&local, own, "0:0", &kernel, &[theirs], RelocationKind::ByteOffset);
        assert_eq!(signed.kernel.unwrap().width, Some((4, Widening::Fixed)));
    }

    #[test]
    fn members_of_anonymous_unions() {
        let mut local = TypeBuilder::new();
        let int = local.int("u32", 4, false);
        let own = local.structure("sock_common", 8, &[("skc_daddr", int, 0, 0), ("skc_hash", int, 32, 0)]);
        let mut kernel = TypeBuilder::new();
        let int = kernel.int("unsigned int", 4, false);
        let inner = kernel.structure("", 8, &[("skc_daddr", int, 0, 0), ("skc_rcv_saddr", int, 32, 0)]);
        let union = kernel.union("", 8, &[("skc_addrpair", int, 0, 0), ("", inner, 0, 0)]);
        let hashes = kernel.union("", 4, &[("skc_hash", int, 0, 0)]);
        let theirs =
            kernel.structure("sock_common", 32, &[("pad", int, 0, 0), ("", union, 64, 0), ("", hashes, 128, 0)]);
        let offset = |path| number(ask(&local, own, path, &kernel, &[theirs], RelocationKind::ByteOffset));
        assert_eq!((offset("0:0"), offset("0:1")), (Some(8), Some(16)));
    }

    #[test]
    fn the_same_anonymous_nesting_on_our_side() {
        let mut local = TypeBuilder::new();
        let int = local.int("u32", 4, false);
        let inner = local.union("", 4, &[("u6_addr32", int, 0, 0)]);
        let own = local.structure("in6_addr", 4, &[("", inner, 0, 0)]);
        let mut kernel = TypeBuilder::new();
        let int = kernel.int("u32", 4, false);
        let theirs = kernel.structure("in6_addr", 8, &[("x", int, 0, 0), ("u6_addr32", int, 32, 0)]);
        assert_eq!(number(ask(&local, own, "0:0:0", &kernel, &[theirs], RelocationKind::ByteOffset)), Some(4));
    }

    #[test]
    fn elements_of_arrays() {
        let make = |elements: u32, at: u32| {
            let mut made = TypeBuilder::new();
            let int = made.int("u32", 4, false);
            let array = made.array(int, elements);
            let id = made.structure("thing", 64, &[("list", array, at, 0)]);
            (made, id)
        };
        let ((local, own), (kernel, theirs)) = (make(4, 0), make(3, 64));
        let offset = |path| number(ask(&local, own, path, &kernel, &[theirs], RelocationKind::ByteOffset));
        assert_eq!((offset("0:0"), offset("0:0:2"), offset("0:0:3")), (Some(8), Some(16), None));
        assert_eq!(offset("2:0:1"), Some(2 * 64 + 12), "the third thing");
        let (kernel, theirs) = make(0, 64);
        assert_eq!(
            number(ask(&local, own, "0:0:3", &kernel, &[theirs], RelocationKind::ByteOffset)),
            Some(20),
            "no bound"
        );
    }

    #[test]
    fn bit_fields() {
        let (local, own, kernel, theirs) = pair(
            &[("reuse", 1, 0, 4), ("port", 1, 4, 1), ("s", 3, 8, 3)],
            &[("reuse", 1, 36, 4), ("port", 1, 63, 1), ("s", 3, 64, 3)],
        );
        let ask = |path, kind| number(ask(&local, own, path, &kernel, &[theirs], kind)).unwrap();
        assert_eq!((ask("0:0", RelocationKind::ByteOffset), ask("0:0", RelocationKind::ByteSize)), (4, 4));
        // Value 0b1011 in bits 4 to 7 of the word at byte 4.
        let word = 0b1011u64 << 4 | 0xf;
        let (left, right) = (ask("0:0", RelocationKind::LeftShift), ask("0:0", RelocationKind::RightShift));
        assert_eq!(word << left >> right, 0b1011);
        let (left, right) = (ask("0:1", RelocationKind::LeftShift), ask("0:1", RelocationKind::RightShift));
        assert_eq!((1u64 << 31) << left >> right, 1);
        assert_eq!((ask("0:2", RelocationKind::Signed), ask("0:1", RelocationKind::Signed)), (1, 0));
        assert_eq!(ask("0:2", RelocationKind::ByteOffset), 8);
    }

    #[test]
    fn types_and_constants() {
        let mut local = TypeBuilder::new();
        let own = local.structure("sock___here", 4, &[]);
        let named = local.enumeration("reason", &[("A", 1), ("B", 2)]);
        let mut kernel = TypeBuilder::new();
        kernel.int("u32", 4, false);
        let theirs = kernel.structure("sock", 760, &[]);
        let values = kernel.enumeration("reason", &[("X", 0), ("B", 77)]);
        let wide = kernel.wide_enumeration("reason", &[("A", 1 << 40)]);
        let about = |kind, found: &[u32]| number(ask(&local, own, "0", &kernel, found, kind));
        assert_eq!(about(RelocationKind::TypeId, &[theirs]), Some(theirs.into()));
        assert_eq!(about(RelocationKind::TypeSize, &[theirs]), Some(760));
        assert_eq!(
            (about(RelocationKind::TypeExists, &[theirs]), about(RelocationKind::TypeExists, &[])),
            (Some(1), Some(0))
        );
        let value = |path, kind, found| number(ask(&local, named, path, &kernel, &[found], kind));
        assert_eq!(value("1", RelocationKind::Value, values), Some(77));
        assert_eq!(
            (value("0", RelocationKind::Value, values), value("0", RelocationKind::ValueExists, values)),
            (None, Some(0))
        );
        assert_eq!(value("0", RelocationKind::Value, wide), Some(1 << 40));
    }

    #[test]
    fn two_types_of_one_name() {
        let (local, own, mut kernel, theirs) = pair(&[("a", 1, 0, 0)], &[("a", 1, 64, 0)]);
        let same = kernel.structure("thing", 16, &[("a", 1, 64, 0)]);
        let without = kernel.structure("thing", 16, &[("b", 1, 64, 0)]);
        let found = ask(&local, own, "0:0", &kernel, &[theirs, same, without], RelocationKind::ByteOffset);
        assert_eq!(number(found), Some(8), "they agree as far as they have it");
        let other = kernel.structure("thing", 16, &[("a", 1, 96, 0)]);
        let error = try_ask(&local, own, "0:0", &kernel, &[theirs, other], RelocationKind::ByteOffset).unwrap_err();
        assert_eq!(error.to_string(), "this kernel has no unambiguous type thing.a");
    }

    #[test]
    fn a_second_shape_of_the_kernels_own_is_not_meant() {
        let (local, own, mut kernel, theirs) = pair(&[("a", 1, 0, 0)], &[("a", 1, 64, 0)]);
        let second = kernel.structure("thing___init", 24, &[("thing", 1, 0, 0)]);
        for candidates in [[theirs, second], [second, theirs]] {
            let about = |kind| number(ask(&local, own, "0", &kernel, &candidates, kind));
            assert_eq!(about(RelocationKind::TypeId), Some(theirs.into()));
            assert_eq!(
                about(RelocationKind::TypeSize),
                number(ask(&local, own, "0", &kernel, &[theirs], RelocationKind::TypeSize))
            );
        }
        assert_eq!(number(ask(&local, own, "0", &kernel, &[second], RelocationKind::TypeId)), Some(second.into()));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

        /// Each member is found for any order and gaps of the kernel's members, and any depth of its anonymous
        /// structs.
        #[test]
        fn any_layout(gaps in prop::collection::vec((1u32..40, 0u32..4), 1..30),
            pick in prop::collection::vec(any::<prop::sample::Index>(), 1..10)) {
            let mut kernel = TypeBuilder::new();
            let int = kernel.int("u32", 4, false);
            let mut members = Vec::new();
            let mut offsets = Vec::new();
            let mut at = 0;
            for (n, (gap, depth)) in gaps.iter().enumerate() {
                at += gap * 32;
                let name = format!("m{n}");
                let (mut id, mut label) = (int, name.clone());
                for _ in 0..*depth {
                    id = kernel.structure("", 8, &[(&label, id, 32, 0)]);
                    label = String::new();
                }
                members.push((label, id, at));
                offsets.push((name, at / 8 + depth * 4));
                at += 32 * (depth + 1);
            }
            let parts: Vec<_> = members.iter().map(|(name, id, at)| (name.as_str(), *id, *at, 0)).collect();
            let theirs = kernel.structure("thing", 4096, &parts);
            let mut local = TypeBuilder::new();
            let int = local.int("u32", 4, false);
            let wanted: Vec<_> = pick.iter().map(|index| index.get(&offsets)).collect();
            let parts: Vec<_> = wanted.iter().map(|(name, _)| (name.as_str(), int, 0, 0)).collect();
            let own = local.structure("thing", 4, &parts);
            for (n, (_, offset)) in wanted.iter().enumerate() {
                let found = ask(&local, own, &format!("0:{n}"), &kernel, &[theirs], RelocationKind::ByteOffset);
                prop_assert_eq!(number(found), Some(u64::from(*offset)));
            }
        }
    }
}
