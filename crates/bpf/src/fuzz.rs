//! Doors for the fuzzer: any bytes as object file and as types. None may panic or fail to end.
use std::hint::black_box;

use crate::btf::{Kind, Types};
use crate::fit::{answer, describe};
use crate::kernel_types::{Wanted, kinds};
use crate::load::{draft, own_types};
use crate::maps::declared;
use crate::object::{Object, SymbolKind};

/// Types that are walked one by one at most: each costs its members.
const TYPES_MAX: u32 = 2_000;

/// Reads bytes as an object file, and fits its programs to its own types, as if they were the kernel's.
pub fn fuzz_object(data: &[u8]) {
    let Ok(object) = Object::parse(data) else { return };
    let Ok(own) = own_types(&object) else { return };
    _ = black_box(declared(&object, &own));
    let names = object.symbols.iter().filter(|symbol| symbol.kind == SymbolKind::Function).map(|symbol| symbol.name);
    for name in names.take(16) {
        let mut wanted = Wanted::new();
        let Ok(mut draft) = draft(&object, &own, name, &mut wanted) else { continue };
        let Some((_, section)) = object.section(".BTF") else { continue };
        let Ok(mut kernel) = Types::parse(section.bytes) else { continue };
        let strings = kernel.strings;
        _ = kernel.walk(|id, kind, name| wanted.meet(id, kind, strings, name));
        _ = black_box(draft.fit(&own, &kernel, &wanted));
    }
}

/// Reads bytes as types: every type, member, constant and size.
pub fn fuzz_btf(data: &[u8]) {
    let Ok(types) = Types::parse_all(data) else { return };
    let mut wanted = Wanted::new();
    let number = wanted.add("sock", kinds(&[Kind::STRUCT]));
    for id in 0..TYPES_MAX {
        let Some(found) = types.get(id) else { break };
        black_box((types.size(id), types.bare(id).map(|(id, _)| id), types.name(found.name), found.is_signed()));
        black_box((found.members().count(), found.values().count(), found.variables().count(), found.array()));
    }
    for path in ["0", "0:0", "0:1:0", "4:0:0:0"] {
        for question in crate::core_notes::ALL {
            for type_id in 1..20 {
                let note = crate::core_notes::Note { offset: 0, type_id, path, question };
                let candidates = [(type_id, Kind::STRUCT), (type_id + 1, Kind::STRUCT)];
                _ = black_box(answer(&note, &types, &types, &candidates));
                black_box(describe(&note, &types));
            }
        }
    }
    black_box(wanted.found(number));
}
