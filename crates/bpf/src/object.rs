//! The object file: sections, symbols, relocations of a 64-bit little-endian ELF for BPF.
//!
//! Parses any bytes without panicking; the results borrow from them. Layouts: include/uapi/linux/elf.h.
use crate::error::BpfError;

/// `Elf64_Ehdr`
const HEADER_BYTES: usize = 64;
/// `Elf64_Shdr`
const SECTION_BYTES: usize = 64;
/// `Elf64_Sym`
const SYMBOL_BYTES: usize = 24;
/// `Elf64_Rel`
const RELOCATION_BYTES: usize = 16;
/// EM_BPF
const MACHINE: u16 = 247;
/// The table of symbols.
const SHT_SYMTAB: u32 = 2;
/// A section without bytes in the file: zero-initialized variables.
const SHT_NOBITS: u32 = 8;
/// A table of relocations.
const SHT_REL: u32 = 9;
/// Above the number of sections of any object here; bounds the time for hostile objects.
const SECTIONS_MAX: usize = 256;
/// Above the number of symbols, or relocations, of any object here.
const SYMBOLS_MAX: usize = 1 << 16;
const RELOCATIONS_MAX: usize = 1 << 16;

/// A section. Its number is its index in [`Object::sections`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Section<'a> {
    pub(crate) name: &'a str,
    kind: u32,
    /// Empty for .bss.
    pub(crate) bytes: &'a [u8],
    /// Set for .bss as well.
    pub(crate) size: usize,
    /// For relocations: the section they apply to.
    info: usize,
    /// For a symbol table: the section with the names.
    link: usize,
}

/// The kind of object that a symbol refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SymbolKind {
    Variable,
    Function,
    Section,
    Other,
}

/// A symbol.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Symbol<'a> {
    pub(crate) name: &'a str,
    pub(crate) kind: SymbolKind,
    /// True for a weak symbol, which may stay unresolved.
    pub(crate) weak: bool,
    /// Index of its section; 0 if it is defined outside the object.
    pub(crate) section: usize,
    /// Offset in its section.
    pub(crate) offset: usize,
    pub(crate) size: usize,
}

/// A position in a section that must be filled in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ElfRelocation {
    pub(crate) offset: usize,
    /// Index into [`Object::symbols`].
    pub(crate) symbol: usize,
    /// `R_BPF_*`
    pub(crate) kind: u32,
}

/// An object file.
#[derive(Debug)]
pub(crate) struct Object<'a> {
    pub(crate) sections: Vec<Section<'a>>,
    pub(crate) symbols: Vec<Symbol<'a>>,
}

fn wrong(why: &'static str) -> BpfError {
    BpfError::Malformed { what: "BPF object file", why }
}

impl<'a> Object<'a> {
    pub(crate) fn parse(bytes: &'a [u8]) -> Result<Object<'a>, BpfError> {
        // Magic, 64 bits, little-endian, version 1.
        if bytes.len() < HEADER_BYTES || !bytes.starts_with(b"\x7fELF\x02\x01\x01") {
            return Err(wrong("not a 64-bit little-endian ELF"));
        }
        if u16_at(bytes, 18) != Some(MACHINE) {
            return Err(wrong("not for BPF"));
        }
        let table = u64_at(bytes, 40).and_then(|at| usize::try_from(at).ok()).ok_or(wrong("no sections"))?;
        let count = usize::from(u16_at(bytes, 60).unwrap_or(0));
        let names = usize::from(u16_at(bytes, 62).unwrap_or(0));
        if count > SECTIONS_MAX || u16_at(bytes, 58) != Some(SECTION_BYTES as u16) {
            return Err(wrong("a malformed section table"));
        }
        let table = slice(bytes, table, count * SECTION_BYTES).ok_or(wrong("a section table beyond the end"))?;
        let raw = || table.chunks_exact(SECTION_BYTES);
        let mut sections = raw().map(|head| section(bytes, head)).collect::<Result<Vec<_>, _>>()?;
        let texts = sections.get(names).map_or(&[][..], |section| section.bytes);
        for (section, head) in sections.iter_mut().zip(raw()) {
            section.name =
                text(texts, u32_at(head, 0).unwrap_or(0) as usize).ok_or(wrong("a section without a name"))?;
        }
        let symbols = read_symbols(&sections)?;
        Ok(Object { sections, symbols })
    }

    /// The first section of that name, with its number.
    pub(crate) fn section(&self, name: &str) -> Option<(usize, &Section<'a>)> {
        self.sections.iter().enumerate().find(|(_, section)| section.name == name)
    }

    /// The relocations that apply to section number `to`.
    pub(crate) fn relocations(&self, to: usize) -> Result<Vec<ElfRelocation>, BpfError> {
        let mut found = Vec::new();
        for section in self.sections.iter().filter(|section| section.kind == SHT_REL && section.info == to) {
            let raw = section.bytes.chunks_exact(RELOCATION_BYTES);
            if found.len() + raw.len() > RELOCATIONS_MAX {
                return Err(wrong("too many relocations"));
            }
            found.extend(raw.filter_map(|raw| {
                let info = u64_at(raw, 8)?;
                let offset = usize::try_from(u64_at(raw, 0)?).ok()?;
                Some(ElfRelocation { offset, symbol: (info >> 32) as usize, kind: info as u32 })
            }));
        }
        if found.iter().any(|relocation| relocation.symbol >= self.symbols.len()) {
            return Err(wrong("a relocation without a symbol"));
        }
        Ok(found)
    }

    /// The licence, as text without its NUL; some helpers require a GPL-compatible licence.
    pub(crate) fn licence(&self) -> &'a str {
        self.section("license").and_then(|(_, section)| text(section.bytes, 0)).unwrap_or("")
    }
}

fn section<'a>(bytes: &'a [u8], head: &[u8]) -> Result<Section<'a>, BpfError> {
    let number = |at| u64_at(head, at).and_then(|number| usize::try_from(number).ok());
    let (Some(kind), Some(offset), Some(size), Some(link), Some(info)) =
        (u32_at(head, 4), number(24), number(32), u32_at(head, 40), u32_at(head, 44))
    else {
        return Err(wrong("a truncated section"));
    };
    // .bss has a size but no bytes.
    let there = if kind == SHT_NOBITS { 0 } else { size };
    let bytes = slice(bytes, offset, there).ok_or(wrong("a section beyond the end"))?;
    Ok(Section { name: "", kind, bytes, size, info: info as usize, link: link as usize })
}

fn read_symbols<'a>(sections: &[Section<'a>]) -> Result<Vec<Symbol<'a>>, BpfError> {
    let Some(table) = sections.iter().find(|section| section.kind == SHT_SYMTAB) else { return Ok(Vec::new()) };
    let texts = sections.get(table.link).map_or(&[][..], |section| section.bytes);
    let raw = table.bytes.chunks_exact(SYMBOL_BYTES);
    if raw.len() > SYMBOLS_MAX {
        return Err(wrong("too many symbols"));
    }
    raw.map(|raw| symbol(texts, raw).ok_or(wrong("a truncated symbol"))).collect()
}

fn symbol<'a>(texts: &'a [u8], raw: &[u8]) -> Option<Symbol<'a>> {
    let info = *raw.get(4)?;
    let kind = match info & 15 {
        1 => SymbolKind::Variable,
        2 => SymbolKind::Function,
        3 => SymbolKind::Section,
        _ => SymbolKind::Other,
    };
    Some(Symbol {
        name: text(texts, u32_at(raw, 0)? as usize)?,
        kind,
        weak: info >> 4 == 2,
        section: usize::from(u16_at(raw, 6)?),
        offset: usize::try_from(u64_at(raw, 8)?).ok()?,
        size: usize::try_from(u64_at(raw, 16)?).ok()?,
    })
}

/// The NUL-terminated text at `at`.
pub(crate) fn text(texts: &[u8], at: usize) -> Option<&str> {
    let rest = texts.get(at..)?;
    let end = rest.iter().position(|byte| *byte == 0)?;
    std::str::from_utf8(rest.get(..end)?).ok()
}

pub(crate) fn slice(bytes: &[u8], at: usize, length: usize) -> Option<&[u8]> {
    bytes.get(at..at.checked_add(length)?)
}

pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    static SELFTEST: &[u8] = include_bytes!("../objects/selftest.o");

    #[test]
    fn the_committed_object() {
        let object = Object::parse(SELFTEST).unwrap();
        assert_eq!(object.licence(), "Dual BSD/GPL");
        let (number, section) = object.section("syscall").unwrap();
        assert_eq!(section.bytes.len() % 8, 0);
        let functions = object.symbols.iter().filter(|s| s.kind == SymbolKind::Function && s.section == number);
        assert_eq!(functions.map(|s| s.name).collect::<Vec<_>>(), ["look", "fill", "broken"]);
        let relocations = object.relocations(number).unwrap();
        let targets: Vec<_> = relocations.iter().map(|r| object.symbols[r.symbol].name).collect();
        assert!(targets.contains(&"out") && targets.contains(&"step") && targets.contains(&"runs"), "{targets:?}");
        let (_, bss) = object.section(".bss").unwrap();
        assert_eq!((bss.bytes.len(), bss.size), (0, 16));
    }

    #[test]
    fn cut_and_foreign_files_are_refused() {
        for length in (0..SELFTEST.len()).step_by(97).chain(0..100) {
            assert!(Object::parse(&SELFTEST[..length]).is_err(), "cut to {length}");
        }
        for (at, what) in [(4, "32 bits"), (5, "big-endian"), (18, "another machine")] {
            let mut changed = SELFTEST.to_vec();
            changed[at] ^= 3;
            assert!(Object::parse(&changed).is_err(), "{what}");
        }
    }
}
