//! Hand-made types, for tests.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

/// A set of types under construction; every method adds one and returns its id.
#[derive(Default)]
pub(crate) struct TypeBuilder {
    types: Vec<u8>,
    strings: Vec<u8>,
    count: u32,
    /// Size in bytes of the names in the base set.
    names_below: u32,
}

/// A member: name, type, offset in bits, width of a bit field or 0.
pub(crate) type BuilderMember<'a> = (&'a str, u32, u32, u32);

impl TypeBuilder {
    pub(crate) fn new() -> TypeBuilder {
        TypeBuilder { strings: vec![0], ..TypeBuilder::default() }
    }

    /// A module's types, which continue the numbering of `base`.
    pub(crate) fn based_on(base: &TypeBuilder) -> TypeBuilder {
        TypeBuilder {
            count: base.count,
            names_below: base.strings.len() as u32,
            strings: vec![0],
            ..TypeBuilder::default()
        }
    }

    pub(crate) fn name(&mut self, name: &str) -> u32 {
        if name.is_empty() {
            return 0;
        }
        let at = self.names_below + self.strings.len() as u32;
        self.strings.extend_from_slice(name.as_bytes());
        self.strings.push(0);
        at
    }

    fn add(&mut self, name: &str, kind: u32, count: usize, size_or_type: u32, tail: &[u32]) -> u32 {
        let name = self.name(name);
        for word in [name, kind << 24 | count as u32, size_or_type].iter().chain(tail) {
            self.types.extend_from_slice(&word.to_le_bytes());
        }
        self.count += 1;
        self.count
    }

    pub(crate) fn int(&mut self, name: &str, bytes: u32, signed: bool) -> u32 {
        self.add(name, 1, 0, bytes, &[(u32::from(signed) << 24) | (bytes * 8)])
    }

    pub(crate) fn pointer(&mut self, to: u32) -> u32 {
        self.add("", 2, 0, to, &[])
    }

    pub(crate) fn array(&mut self, of: u32, count: u32) -> u32 {
        self.add("", 3, 0, 0, &[of, 1, count])
    }

    pub(crate) fn structure(&mut self, name: &str, bytes: u32, members: &[BuilderMember<'_>]) -> u32 {
        self.composite(4, name, bytes, members)
    }

    pub(crate) fn union(&mut self, name: &str, bytes: u32, members: &[BuilderMember<'_>]) -> u32 {
        self.composite(5, name, bytes, members)
    }

    fn composite(&mut self, kind: u32, name: &str, bytes: u32, members: &[BuilderMember<'_>]) -> u32 {
        let flag = members.iter().any(|member| member.3 > 0);
        let mut tail = Vec::new();
        for (name, id, offset, bits) in members {
            tail.extend([self.name(name), *id, if flag { bits << 24 | offset } else { *offset }]);
        }
        self.add(name, kind | u32::from(flag) << 7, members.len(), bytes, &tail)
    }

    pub(crate) fn enumeration(&mut self, name: &str, values: &[(&str, u32)]) -> u32 {
        let tail: Vec<u32> = values.iter().flat_map(|(name, value)| [self.name(name), *value]).collect();
        self.add(name, 6, values.len(), 4, &tail)
    }

    pub(crate) fn wide_enumeration(&mut self, name: &str, values: &[(&str, u64)]) -> u32 {
        let words = |made: &mut TypeBuilder, (name, value): &(&str, u64)| {
            [made.name(name), *value as u32, (value >> 32) as u32]
        };
        let tail: Vec<u32> = values.iter().flat_map(|value| words(self, value)).collect();
        self.add(name, 19, values.len(), 8, &tail)
    }

    pub(crate) fn typedef(&mut self, name: &str, of: u32) -> u32 {
        self.add(name, 8, 0, of, &[])
    }

    pub(crate) fn constant(&mut self, of: u32) -> u32 {
        self.add("", 10, 0, of, &[])
    }

    pub(crate) fn function(&mut self, name: &str) -> u32 {
        self.add(name, 12, 0, 0, &[])
    }

    /// The types in the kernel's format.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut out = vec![0x9f, 0xeb, 1, 0];
        let (types, strings) = (self.types.len() as u32, self.strings.len() as u32);
        for word in [24, 0, types, types, strings] {
            out.extend_from_slice(&word.to_le_bytes());
        }
        out.extend_from_slice(&self.types);
        out.extend_from_slice(&self.strings);
        out
    }
}
