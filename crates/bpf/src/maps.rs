//! BPF maps: their declarations in an object, and open maps.
use sys::Errno;
use sys::bpf::{self, Batch, MapShape, MappedMemory, Ring, ValueTypes};

use crate::btf::{Type, Types};
use crate::error::BpfError;
use crate::object::{Object, SymbolKind};

/// `BPF_MAP_TYPE_SK_STORAGE` and other local storages, which require BTF for keys and values.
const TYPED_KINDS: [u32; 4] = [24, 28, 29, 32];
/// Number of entries per system call when a whole map is read.
const BATCH_ENTRIES: u32 = 1024;

/// An open map.
#[derive(Debug)]
pub struct Map {
    name: Box<str>,
    inner: bpf::Map,
}

impl Map {
    /// Creates the map in the kernel. One or two system calls.
    pub(crate) fn create(shape: MapShape) -> Result<Map, BpfError> {
        let name: Box<str> = shape.name.as_str().into();
        let inner = if TYPED_KINDS.contains(&shape.kind) {
            let types = bpf::load_types(&value_types(shape.value_bytes))?;
            bpf::Map::create(shape, Some(ValueTypes { types: &types, key: 1, value: 2 }))
        } else {
            bpf::Map::create(shape, None)
        };
        Ok(Map { name, inner: inner? })
    }

    /// Its name in the object.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The map as `sys` represents it.
    pub(crate) fn inner(&self) -> &bpf::Map {
        &self.inner
    }

    /// Number of bytes that [`Map::get`] fills: one value, or for a per-CPU map the values of all CPUs.
    pub fn value_bytes(&self) -> usize {
        self.inner.value_room()
    }

    /// Reads the value of `key` into `value`; returns false if the key is absent. One system call.
    pub fn get(&self, key: &[u8], value: &mut [u8]) -> Result<bool, BpfError> {
        Ok(self.inner.get(key, value)?)
    }

    /// Writes a value. Fails with [`BpfError::Full`] if the map is full. One system call.
    pub fn put(&self, key: &[u8], value: &[u8]) -> Result<(), BpfError> {
        self.inner.put(key, value).map_err(|error| match error.errno {
            Errno(FULL) => BpfError::Full { map: self.name.clone() },
            _ => error.into(),
        })
    }

    /// Removes an entry; returns false if it was absent. One system call.
    pub fn remove(&self, key: &[u8]) -> Result<bool, BpfError> {
        Ok(self.inner.remove(key)?)
    }

    /// Calls `each` with all entries as (key, value), one system call per thousand. Entries that change during the
    /// pass may be missed or repeated.
    pub fn for_each(&self, mut each: impl FnMut(&[u8], &[u8])) -> Result<(), BpfError> {
        let mut batch: Batch = self.inner.batch(BATCH_ENTRIES);
        while self.inner.next_batch(&mut batch)? {
            batch.entries().for_each(|(key, value)| each(key, value));
        }
        Ok(())
    }

    /// The memory of an array that was declared with `BPF_F_MMAPABLE`.
    pub fn map_memory(&self) -> Result<MappedMemory, BpfError> {
        Ok(self.inner.map_memory()?)
    }

    /// The reading end of a ring buffer. The kernel keeps one position for all readers, so open only one.
    pub fn ring(&self) -> Result<Ring, BpfError> {
        Ok(self.inner.ring()?)
    }
}

/// E2BIG, the kernel's error for a full map.
const FULL: i32 = 7;

/// Types for a map whose values have `bytes` bytes: an int for the key, and a struct without members.
fn value_types(bytes: u32) -> Vec<u8> {
    // Strings: "", "int", "value".
    let strings = b"\0int\0value\0";
    let types: [u32; 7] = [
        1,
        1 << 24, // int
        4,
        1 << 24 | 32, // signed, 32 bits
        5,
        4 << 24, // struct
        bytes,
    ];
    let types_bytes = (types.len() * 4) as u32;
    let mut out = Vec::new();
    out.extend_from_slice(&0xeb9fu16.to_ne_bytes());
    out.extend_from_slice(&[1, 0]);
    for word in [24, 0, types_bytes, types_bytes, strings.len() as u32].iter().chain(&types) {
        out.extend_from_slice(&word.to_ne_bytes());
    }
    out.extend_from_slice(strings);
    out
}

/// An invalid map declaration.
fn wrong(why: &'static str) -> BpfError {
    BpfError::Malformed { what: "maps of the BPF object", why }
}

/// A map as the object declares it.
#[derive(Debug, Clone)]
pub(crate) struct DeclaredMap {
    /// Offset in `.maps`.
    pub(crate) offset: usize,
    pub(crate) shape: MapShape,
}

/// Reads all map declarations of an object (section `.maps`). Fails on declarations that its types do not describe.
pub(crate) fn read_declarations(object: &Object<'_>, types: &Types<'_>) -> Result<Vec<DeclaredMap>, BpfError> {
    let Some((number, _)) = object.section(".maps") else { return Ok(Vec::new()) };
    let variables = variables(types, ".maps")?;
    let mut found = Vec::new();
    for symbol in object.symbols.iter().filter(|s| s.section == number && s.kind == SymbolKind::Variable) {
        let variable = variables.iter().find(|variable| types.is_named(variable.name, symbol.name));
        let variable = variable.ok_or(wrong("a map without a type"))?;
        let shape = shape(types, symbol.name, variable)?;
        found.push(DeclaredMap { offset: symbol.offset, shape });
    }
    Ok(found)
}

/// Name, offset and size of the variables of a section, from the section's type.
fn variables<'a>(types: &Types<'a>, section: &str) -> Result<Vec<Type<'a>>, BpfError> {
    for id in 1.. {
        let Some(found) = types.get(id) else { break };
        let variables: Vec<_> = found.variables().filter_map(|id| types.get(id)).collect();
        if !variables.is_empty() && types.is_named(found.name, section) {
            return Ok(variables);
        }
    }
    Err(wrong("maps without types"))
}

fn shape(types: &Types<'_>, name: &str, variable: &Type<'_>) -> Result<MapShape, BpfError> {
    let (_, parts) = types.strip_modifiers(variable.size_or_type).ok_or(wrong("a map without attributes"))?;
    let mut shape = MapShape { name: name.into(), ..MapShape::default() };
    for part in parts.members() {
        // `int (*type)[27]`: the number is the length of the array pointed to. `u32 *key`: only the size matters.
        let (_, pointer) = types.strip_modifiers(part.type_id).ok_or(wrong("a map attribute without a type"))?;
        let target = pointer.size_or_type;
        let number = || {
            let length = types.strip_modifiers(target).and_then(|(_, array)| array.array()).map(|(_, length)| length);
            length.ok_or(wrong("a map attribute that is not a number"))
        };
        let size = || types.size(target).ok_or(wrong("a map attribute without a size"));
        match types.name(part.name) {
            "type" => shape.kind = number()?,
            "max_entries" => shape.entries = number()?,
            "map_flags" => shape.flags = number()?,
            "key_size" => shape.key_bytes = number()?,
            "value_size" => shape.value_bytes = number()?,
            "key" => shape.key_bytes = size()?,
            "value" => shape.value_bytes = size()?,
            _ => return Err(wrong("an unknown map attribute")),
        }
    }
    Ok(shape)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn what_the_object_declares() {
        let object = Object::parse(include_bytes!("../objects/selftest.o")).unwrap();
        let types = crate::load::object_types(&object).unwrap();
        let found = read_declarations(&object, &types).unwrap();
        let shape = |name: &str| {
            let shape = &found.iter().find(|map| map.shape.name == name).unwrap().shape;
            (shape.kind, shape.key_bytes, shape.value_bytes, shape.entries, shape.flags)
        };
        assert_eq!(shape("seen"), (1, 4, 8, 8, 0));
        assert_eq!(shape("events"), (27, 0, 0, 4096, 0));
        assert_eq!(shape("out"), (2, 4, 32, 2, 1 << 10));
        assert_eq!(shape("marks"), (24, 4, 16, 0, 1 | 1 << 9));
        assert_eq!(found.len(), 4);
    }

    #[test]
    fn types_of_storage_are_types() {
        let bytes = value_types(48);
        let types = Types::parse_all(&bytes).unwrap();
        assert_eq!((types.size(1), types.size(2)), (Some(4), Some(48)));
        assert_eq!((types.name(types.get(1).unwrap().name), types.name(types.get(2).unwrap().name)), ("int", "value"));
    }
}
