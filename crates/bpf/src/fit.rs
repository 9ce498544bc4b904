//! Answers a note: what number does the running kernel have where the compiler put the object's?
//!
//! The object's types are a selection of the kernel's: the same names, fewer members, other offsets. A way through them
//! (`sock`, member `__sk_common`, member `skc_net`, …) is walked again in the kernel's types by names.
use crate::btf::{Kind, Member, Types, essential};
use crate::core_notes::{Note, Question};
use crate::error::BpfError;

/// Anonymous structs inside anonymous unions inside …: the kernel has four levels.
const NESTING_MAX: usize = 16;
/// Members of a struct and of its anonymous ones that are looked at before giving up: bounds hostile types.
const LOOKS_MAX: u32 = 100_000;

/// A number with what must be known to write it into an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reading {
    pub(crate) number: u64,
    /// Bytes that an instruction with this offset reads, and whether they may become more or fewer: only unsigned
    /// integers and pointers mean the same when read wider.
    pub(crate) width: Option<(u32, Stretch)>,
    /// The instruction must hold this number now. Bit fields are read in ways that the compiler chooses.
    pub(crate) exact: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stretch {
    Number,
    Pointer,
    Fixed,
}

/// Both sides of a note.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) local: Reading,
    /// None: the kernel has no such thing, and no number stands for that.
    pub(crate) kernel: Option<Reading>,
}

/// One step of a way.
#[derive(Debug, Clone, Copy)]
enum Step<'a> {
    Element(u32),
    /// Its name and type.
    Member(&'a str, u32),
}

/// The end of a way.
#[derive(Debug, Clone, Copy)]
struct Place {
    bit_offset: u64,
    type_id: u32,
    /// Width of the bit field; 0: none.
    bits: u32,
    /// The way ended in an element of an array.
    element: bool,
}

fn wrong(why: &'static str) -> BpfError {
    BpfError::Malformed { what: "notes of the BPF object", why }
}

/// `candidates`: the kernel's types with the name and kind of the note's type.
pub(crate) fn answer(
    note: &Note<'_>,
    local: &Types<'_>,
    kernel: &Types<'_>,
    candidates: &[(u32, Kind)],
) -> Result<Answer, BpfError> {
    let (own, steps) = own_reading(note, local).ok_or(wrong("a way that does not fit its type"))?;
    let mut found: Option<Reading> = None;
    for (id, _) in candidates {
        let Some(reading) = kernel_reading(note, local, &steps, kernel, *id) else { continue };
        // Two types of one name that differ where we look: neither may be guessed.
        if found.is_some_and(|found| found != reading) {
            let name = describe(note, local).1;
            return Err(BpfError::Missing { sort: "unambiguous type", name, since: None });
        }
        found = Some(reading);
    }
    let none = |number| Reading { number, width: None, exact: true };
    let kernel = match note.question {
        Question::LocalTypeId => Some(own),
        // No, it does not exist; a type that is not there has the size and the number 0.
        Question::FieldExists
        | Question::TypeExists
        | Question::ValueExists
        | Question::TypeId
        | Question::TypeSize => Some(found.unwrap_or(none(0))),
        _ => found,
    };
    Ok(Answer { local: own, kernel })
}

/// What a note asks for, in words: (`field`, `sock.sk_ino`).
pub(crate) fn describe(note: &Note<'_>, local: &Types<'_>) -> (&'static str, Box<str>) {
    let root = local.get(note.type_id).map_or("", |root| essential(local.name(root.name)));
    if note.question.is_about_field() {
        let mut text = String::from(root);
        for step in walk_own(note, local).map(|(_, steps)| steps).unwrap_or_default() {
            if let Step::Member(name, _) = step {
                text.push('.');
                text.push_str(name);
            }
        }
        return ("field", text.into());
    }
    match note.question {
        Question::Value | Question::ValueExists => {
            let value = own_value(note, local).map_or("", |(name, _)| name);
            ("constant", format!("{root}.{value}").into())
        }
        _ => ("type", root.into()),
    }
}

fn own_reading<'a>(note: &Note<'_>, local: &Types<'a>) -> Option<(Reading, Vec<Step<'a>>)> {
    let plain = |number| Reading { number, width: None, exact: true };
    Some(match note.question {
        Question::LocalTypeId | Question::TypeId => (plain(note.type_id.into()), Vec::new()),
        Question::TypeExists => (plain(1), Vec::new()),
        // The compiler writes the size of what may be incomplete here: not compared.
        Question::TypeSize => (Reading { exact: false, ..plain(0) }, Vec::new()),
        Question::ValueExists => (plain(1), Vec::new()),
        Question::Value => (plain(own_value(note, local)?.1), Vec::new()),
        question => {
            let (place, steps) = walk_own(note, local)?;
            (read_place(local, &place, question)?, steps)
        }
    })
}

fn kernel_reading(
    note: &Note<'_>,
    local: &Types<'_>,
    steps: &[Step<'_>],
    kernel: &Types<'_>,
    id: u32,
) -> Option<Reading> {
    let plain = |number| Reading { number, width: None, exact: true };
    Some(match note.question {
        Question::LocalTypeId => return None,
        Question::TypeId => plain(id.into()),
        Question::TypeExists => plain(1),
        Question::TypeSize => plain(kernel.size(id)?.into()),
        Question::ValueExists | Question::Value => {
            let (wanted, _) = own_value(note, local)?;
            let constants = kernel.get(id)?;
            let (_, value) = constants.values().find(|(name, _)| essential(kernel.name(*name)) == essential(wanted))?;
            plain(if note.question == Question::Value { value } else { 1 })
        }
        question => {
            let place = walk_kernel(local, steps, kernel, id)?;
            read_place(kernel, &place, question)?
        }
    })
}

/// Name and value of the constant that a note names.
fn own_value<'a>(note: &Note<'_>, local: &Types<'a>) -> Option<(&'a str, u64)> {
    let index: usize = note.path.parse().ok()?;
    let (_, constants) = local.bare(note.type_id)?;
    let (name, value) = constants.values().nth(index)?;
    Some((local.name(name), value))
}

/// Follows the indexes of a note.
fn walk_own<'a>(note: &Note<'_>, types: &Types<'a>) -> Option<(Place, Vec<Step<'a>>)> {
    let mut path = note.path.split(':').map(|index| index.parse::<u32>().ok());
    let first = path.next()??;
    let mut place = Place { bit_offset: 0, type_id: note.type_id, bits: 0, element: true };
    place.bit_offset += element_bits(types, place.type_id, first)?;
    let mut steps = vec![Step::Element(first)];
    for index in path {
        let index = index?;
        let (_, here) = types.bare(place.type_id)?;
        if let Some((element, _)) = here.array() {
            place.bit_offset += element_bits(types, element, index)?;
            place = Place { type_id: element, bits: 0, element: true, ..place };
            steps.push(Step::Element(index));
            continue;
        }
        let member = here.members().nth(index as usize)?;
        place = into(&place, &member);
        // Anonymous ones are not steps: the kernel may nest them in another way.
        if member.name != 0 {
            steps.push(Step::Member(types.name(member.name), member.type_id));
        }
    }
    Some((place, steps))
}

/// Goes the same way by names.
fn walk_kernel(local: &Types<'_>, steps: &[Step<'_>], kernel: &Types<'_>, id: u32) -> Option<Place> {
    let mut place = Place { bit_offset: 0, type_id: id, bits: 0, element: true };
    for (number, step) in steps.iter().enumerate() {
        match *step {
            Step::Element(index) if number == 0 => place.bit_offset += element_bits(kernel, id, index)?,
            Step::Element(index) => {
                let (element, count) = kernel.bare(place.type_id)?.1.array()?;
                // An array of 0 elements is one without a bound, at the end of a struct.
                if count != 0 && index >= count {
                    return None;
                }
                place.bit_offset += element_bits(kernel, element, index)?;
                place = Place { type_id: element, bits: 0, element: true, ..place };
            }
            Step::Member(name, type_id) => {
                let mut looks = LOOKS_MAX;
                let found = find_member(kernel, place.type_id, name, NESTING_MAX, &mut looks)?;
                if !alike(local, type_id, kernel, found.type_id) {
                    return None;
                }
                place = Place { bit_offset: place.bit_offset + found.bit_offset, ..found };
            }
        }
    }
    Some(place)
}

/// The member `name` of `id` or of an anonymous struct or union in it; its offset counts from `id`.
fn find_member(types: &Types<'_>, id: u32, name: &str, depth: usize, looks: &mut u32) -> Option<Place> {
    let (_, here) = types.bare(id)?;
    let start = Place { bit_offset: 0, type_id: id, bits: 0, element: false };
    for member in here.members() {
        *looks = looks.checked_sub(1)?;
        if member.name != 0 {
            if types.is_named(member.name, name) {
                return Some(into(&start, &member));
            }
            continue;
        }
        if depth == 0 {
            continue;
        }
        if let Some(found) = find_member(types, member.type_id, name, depth - 1, looks) {
            return Some(Place { bit_offset: found.bit_offset + u64::from(member.bit_offset), ..found });
        }
    }
    None
}

fn into(place: &Place, member: &Member) -> Place {
    let bit_offset = place.bit_offset + u64::from(member.bit_offset);
    Place { bit_offset, type_id: member.type_id, bits: member.bits, element: false }
}

fn element_bits(types: &Types<'_>, id: u32, index: u32) -> Option<u64> {
    // An incomplete type has no size, and needs none for its first element.
    if index == 0 { Some(0) } else { Some(u64::from(types.size(id)?) * u64::from(index) * 8) }
}

/// Whether a member of the kernel can be read as the one we declared.
fn alike(local: &Types<'_>, mut own: u32, kernel: &Types<'_>, mut theirs: u32) -> bool {
    // Arrays of arrays have few levels.
    for _ in 0..NESTING_MAX {
        let (Some((_, a)), Some((_, b))) = (local.bare(own), kernel.bare(theirs)) else { return false };
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
            let (one, other) = (essential(local.name(a.name)), essential(kernel.name(b.name)));
            return one.is_empty() || other.is_empty() || one == other;
        }
        return match a.kind {
            Kind::INT => !a.is_old_bit_field() && !b.is_old_bit_field(),
            Kind::PTR | Kind::FLOAT | Kind::FORWARD => true,
            _ => false,
        };
    }
    false
}

fn read_place(types: &Types<'_>, place: &Place, question: Question) -> Option<Reading> {
    let plain = |number| Some(Reading { number, width: None, exact: true });
    if question == Question::FieldExists {
        return plain(1);
    }
    let (_, bare) = types.bare(place.type_id)?;
    let is_field = place.bits > 0;
    let (byte, bytes) =
        if is_field { storage(types, place)? } else { (place.bit_offset / 8, size_of_place(types, place)?) };
    let bits = if is_field { u64::from(place.bits) } else { u64::from(bytes) * 8 };
    // Instructions that read bit fields are not compared: the compiler shifts as it likes.
    let loose = |number| Some(Reading { number, width: None, exact: false });
    match question {
        Question::ByteOffset if is_field => loose(byte),
        Question::ByteOffset => {
            let stretch = match bare.kind {
                Kind::PTR => Stretch::Pointer,
                Kind::INT if !bare.is_signed() => Stretch::Number,
                _ => Stretch::Fixed,
            };
            let width = (!place.element).then_some((bytes, stretch));
            Some(Reading { number: byte, width, exact: true })
        }
        Question::ByteSize if is_field => loose(bytes.into()),
        Question::ByteSize => plain(bytes.into()),
        Question::Signed => loose(bare.is_signed().into()),
        // A word as loaded on a little-endian machine: left until the top bit of the field is the top bit of 64, then
        // right until its lowest is the lowest.
        Question::LeftShift => loose(64u64.checked_sub(place.bit_offset.checked_add(bits)?.checked_sub(byte * 8)?)?),
        Question::RightShift => loose(64u64.checked_sub(bits)?),
        _ => None,
    }
}

/// Size of what lies there. A struct that is only read through has none that matters.
fn size_of_place(types: &Types<'_>, place: &Place) -> Option<u32> {
    types.size(place.type_id)
}

/// The aligned word around a bit field: (byte offset, bytes).
fn storage(types: &Types<'_>, place: &Place) -> Option<(u64, u32)> {
    let mut bytes = types.size(place.type_id)?;
    loop {
        let byte = (place.bit_offset / 8).checked_div(bytes.into())? * u64::from(bytes);
        if place.bit_offset + u64::from(place.bits) <= (byte + u64::from(bytes)) * 8 {
            return Some((byte, bytes));
        }
        if bytes >= 8 {
            return None;
        }
        bytes *= 2;
    }
}
