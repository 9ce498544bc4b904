//! Entry points of the fuzzer: any bytes as object file and as types. They must neither panic nor loop forever.
use std::hint::black_box;

use crate::btf::{TypeKind, Types};
use crate::kernel_types::{WantedTypes, kinds};
use crate::load::{ProgramBuilder, object_types};
use crate::maps::read_declarations;
use crate::object::{Object, SymbolKind};
use crate::relocate::{describe, resolve};

/// Maximum number of types that are visited one by one: each costs time for its members.
const TYPES_MAX: u32 = 2_000;

/// Reads bytes as an object file, and relocates its programs against its own types, as if they were the kernel's.
pub fn fuzz_object(data: &[u8]) {
    let Ok(object) = Object::parse(data) else { return };
    let Ok(own) = object_types(&object) else { return };
    _ = black_box(read_declarations(&object, &own));
    let names = object.symbols.iter().filter(|symbol| symbol.kind == SymbolKind::Function).map(|symbol| symbol.name);
    for name in names.take(16) {
        let mut wanted = WantedTypes::new();
        let Ok(mut builder) = ProgramBuilder::new(&object, &own, name, &mut wanted) else { continue };
        let Some((_, section)) = object.section(".BTF") else { continue };
        let Ok(mut kernel) = Types::parse(section.bytes) else { continue };
        _ = wanted.meet_all(&mut kernel);
        _ = black_box(builder.relocate(&own, &kernel, &wanted));
    }
}

/// Reads bytes as types: every type, member, constant and size.
pub fn fuzz_btf(data: &[u8]) {
    let Ok(types) = Types::parse_all(data) else { return };
    let mut wanted = WantedTypes::new();
    let number = wanted.add("sock", kinds(&[TypeKind::STRUCT]));
    read_each_type(&types);
    // The same types again, as if a module's types continued them.
    if let Ok(mut more) = Types::parse_over(data, types.clone()) {
        _ = wanted.meet_all(&mut more);
        read_each_type(&more);
    }
    for path in ["0", "0:0", "0:1:0", "4:0:0:0"] {
        for kind in crate::core_relocations::ALL {
            for type_id in 1..20 {
                let relocation = crate::core_relocations::Relocation { offset: 0, type_id, path, kind };
                let candidates = [(type_id, TypeKind::STRUCT), (type_id + 1, TypeKind::STRUCT)];
                _ = black_box(resolve(&relocation, &types, &types, &candidates));
                black_box(describe(&relocation, &types));
            }
        }
    }
    black_box(wanted.types_found(number));
}

fn read_each_type(types: &Types<'_>) {
    for id in 0..TYPES_MAX {
        let Some(found) = types.get(id) else { break };
        black_box((
            types.size(id),
            types.strip_modifiers(id).map(|(id, _)| id),
            types.name(found.name),
            found.is_signed(),
        ));
        black_box((found.members().count(), found.values().count(), found.variables().count(), found.array()));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use proptest::prelude::*;

    static SELFTEST: &[u8] = include_bytes!("../objects/selftest.o");

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

        #[test]
        fn changed_objects(changes in prop::collection::vec((0..SELFTEST.len(), any::<u8>()), 1..20),
            cut in 0..SELFTEST.len()) {
            let mut changed = SELFTEST.to_vec();
            for (at, byte) in changes {
                changed[at] = byte;
            }
            fuzz_object(&changed);
            fuzz_object(&changed[..cut]);
            let object = Object::parse(SELFTEST).unwrap();
            let (_, section) = object.section(".BTF").unwrap();
            let at = section.bytes.as_ptr() as usize - SELFTEST.as_ptr() as usize;
            fuzz_btf(&changed[at..at + section.bytes.len()]);
        }

        #[test]
        fn any_bytes(data in prop::collection::vec(any::<u8>(), 0..200)) {
            fuzz_object(&data);
            let mut types = vec![0x9f, 0xeb, 1, 0, 24, 0, 0, 0];
            types.extend(&data);
            fuzz_btf(&types);
        }
    }

    /// If the kernel's types equal the object's own, relocation changes nothing.
    #[test]
    fn an_object_fits_its_own_types() {
        let object = Object::parse(SELFTEST).unwrap();
        let own = object_types(&object).unwrap();
        for name in ["tasks", "changed", "fill"] {
            let mut wanted = WantedTypes::new();
            let mut builder = ProgramBuilder::new(&object, &own, name, &mut wanted).unwrap();
            let before = format!("{builder:?}");
            let mut kernel = own.clone();
            wanted.meet_all(&mut kernel).unwrap();
            builder.relocate(&own, &kernel, &wanted).unwrap();
            assert_eq!(format!("{builder:?}"), before);
        }
    }
}
