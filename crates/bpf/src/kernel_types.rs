//! The types of the running kernel (`/sys/kernel/btf/vmlinux`, 4 to 6 MB) and of a module, searched for a few names.
use sys::bpf::{MappedMemory, map_file};
use sys::{Errno, Host, SysError, fs};

use crate::btf::{TypeKind, TypeNames, Types};
use crate::error::BpfError;

/// The directory below /sys with the kernel's types: a file for the kernel and one for each module.
const FOLDER: &str = "kernel/btf";

/// The kernel's types, read once; several loads may share them.
#[derive(Debug)]
pub struct KernelTypes {
    kernel: Bytes,
    module: Option<Bytes>,
}

#[derive(Debug)]
enum Bytes {
    Mapped(MappedMemory),
    Read(Vec<u8>),
}

impl KernelTypes {
    /// An empty set of types, for programs that need none, so that they also load on kernels without BTF.
    pub fn empty() -> KernelTypes {
        // A header of 24 bytes (struct btf_header), no types, one empty string.
        let words = [24, 0, 0, 0, 1_u32].map(u32::to_ne_bytes);
        let bytes = [&0xeb9f_u16.to_ne_bytes()[..], &[1, 0], words.as_flattened(), &[0]].concat();
        KernelTypes { kernel: Bytes::Read(bytes), module: None }
    }

    /// Maps the file if the kernel supports it (Linux 6.16, no copy); otherwise reads it in 1.5 ms, with one system
    /// call per page. Fails if the kernel has no BTF.
    ///
    /// Recordings do not contain the types: they are not rows, and a replay loads no program.
    pub fn read(host: &Host) -> Result<KernelTypes, BpfError> {
        let path = host.sys_path(FOLDER).join("vmlinux");
        if host.is_replay() {
            return Err(BpfError::NoTypes(SysError::new("openat", "the kernel's types", Errno::NOT_RECORDED)));
        }
        if let Ok(mapped) = map_file(&path) {
            return Ok(KernelTypes { kernel: Bytes::Mapped(mapped), module: None });
        }
        let mut bytes = Vec::new();
        read_file(&path, &mut bytes).map_err(BpfError::NoTypes)?;
        Ok(KernelTypes { kernel: Bytes::Read(bytes), module: None })
    }

    /// Adds the types of the module `name`, if it is loaded as a module: its types are in a separate file. Programs
    /// can use them for field offsets but not for typed reads: the verifier accepts only type numbers of vmlinux.
    pub fn with_module(self, host: &Host, name: &str) -> Result<KernelTypes, BpfError> {
        let mut bytes = Vec::new();
        match read_file(&host.sys_path(FOLDER).join(name), &mut bytes) {
            Ok(()) => Ok(KernelTypes { module: Some(Bytes::Read(bytes)), ..self }),
            // Built into the kernel, or absent: a relocation that lacks the type will report it.
            Err(error) if error.errno == Errno::NOENT => Ok(self),
            Err(error) => Err(BpfError::NoTypes(error)),
        }
    }

    /// Searches the wanted names in one pass over all types.
    pub(crate) fn find(&self, wanted: &mut WantedTypes) -> Result<Types<'_>, BpfError> {
        let mut types = Types::parse(self.kernel.bytes())?;
        wanted.meet_all(&mut types)?;
        let Some(module) = &self.module else { return Ok(types) };
        let mut types = Types::parse_over(module.bytes(), types)?;
        wanted.meet_all(&mut types)?;
        Ok(types)
    }
}

impl Bytes {
    fn bytes(&self) -> &[u8] {
        match self {
            Bytes::Mapped(mapped) => mapped.bytes(),
            Bytes::Read(bytes) => bytes,
        }
    }
}

// `fs::read_file` grows its buffer step by step; here the size is known.
fn read_file(path: &std::path::Path, into: &mut Vec<u8>) -> Result<(), SysError> {
    let failed = |errno| SysError::on_bytes("read", path.as_os_str().as_encoded_bytes(), errno);
    let fd = fs::open(path)?;
    let size = fs::stat_fd(&fd).map_err(failed)?.size;
    let size = usize::try_from(size).unwrap_or(0).min(fs::FILE_BYTES_MAX);
    into.reserve_exact(size + 1);
    while fs::read_append(&fd, into, (size + 1).saturating_sub(into.len()).max(1)).map_err(failed)? > 0 {
        if into.len() > fs::FILE_BYTES_MAX {
            return Err(failed(Errno::FBIG));
        }
    }
    Ok(())
}

/// Type names to search, and the types found.
#[derive(Debug)]
pub(crate) struct WantedTypes {
    names: Vec<SearchedName>,
    /// Union of the kinds of all names, one bit per kind.
    kinds: u32,
    /// A Bloom filter over the first eight bytes of the names: rejects 99 of 100 other names with one load.
    sieve: [u64; SIEVE_WORDS],
}

/// 64 words of 64 bits: a name whose bit is not set is not among the wanted names, which saves the comparison.
const SIEVE_WORDS: usize = 64;

/// A name to search for, and the types found for it.
#[derive(Debug)]
struct SearchedName {
    text: Box<str>,
    head: u64,
    kinds: u32,
    found: Vec<(u32, TypeKind)>,
}

/// A set of type kinds, one bit per kind.
pub(crate) fn kinds(of: &[TypeKind]) -> u32 {
    of.iter().fold(0, |set, kind| set | 1 << kind.0)
}

impl WantedTypes {
    pub(crate) fn new() -> WantedTypes {
        WantedTypes { names: Vec::new(), kinds: 0, sieve: [0; SIEVE_WORDS] }
    }

    /// Adds a name that only types of these kinds can match. Returns its index for [`WantedTypes::found`].
    pub(crate) fn add(&mut self, name: &str, kinds: u32) -> usize {
        self.kinds |= kinds;
        if let Some(at) = self.names.iter().position(|have| &*have.text == name && have.kinds == kinds) {
            return at;
        }
        let mut first = [0; 8];
        for (to, from) in first.iter_mut().zip(name.bytes()) {
            *to = from;
        }
        let head = u64::from_le_bytes(first);
        let (word, bit) = sieve_place(head);
        if let Some(word) = self.sieve.get_mut(word) {
            *word |= bit;
        }
        self.names.push(SearchedName { text: name.into(), head, kinds, found: Vec::new() });
        self.names.len() - 1
    }

    /// The types found for the name with this index: (id, kind).
    pub(crate) fn types_found(&self, number: usize) -> &[(u32, TypeKind)] {
        self.names.get(number).map_or(&[], |name| &name.found)
    }

    /// Compares every type with the wanted names.
    pub(crate) fn meet_all(&mut self, types: &mut Types<'_>) -> Result<(), BpfError> {
        let names = types.names();
        types.walk(|id, kind, name| self.add_if_wanted(id, kind, names, name))
    }

    #[inline]
    fn add_if_wanted(&mut self, id: u32, kind: TypeKind, names: TypeNames<'_>, name: u32) {
        if self.kinds >> kind.0 & 1 == 0 || name == 0 {
            return;
        }
        let rest = names.from(name);
        let head = rest.first_chunk().map_or_else(|| short_head(rest), |first| name_head(u64::from_le_bytes(*first)));
        let (word, bit) = sieve_place(head);
        if self.sieve.get(word).is_none_or(|word| word & bit == 0) {
            return;
        }
        for wanted in self.names.iter_mut().filter(|wanted| wanted.head == head && wanted.kinds >> kind.0 & 1 != 0) {
            let same = rest.strip_prefix(wanted.text.as_bytes()).is_some_and(|rest| rest.first() == Some(&0));
            if same {
                wanted.found.push((id, kind));
            }
        }
    }
}

/// The first eight bytes of a name; bytes after its end are zero.
#[inline]
fn name_head(word: u64) -> u64 {
    // The lowest zero byte has its top bit set in `ends` (the classic trick; higher ones may be wrong).
    let ends = word.wrapping_sub(0x0101_0101_0101_0101) & !word & 0x8080_8080_8080_8080;
    if ends == 0 { word } else { word & ((1 << (ends.trailing_zeros() - 7)) - 1) }
}

/// Computes [`name_head`] for a name in the last bytes of the strings.
#[cold]
fn short_head(rest: &[u8]) -> u64 {
    let mut first = [0; 8];
    for (to, from) in first.iter_mut().zip(rest) {
        *to = *from;
    }
    name_head(u64::from_le_bytes(first))
}

#[inline]
fn sieve_place(head: u64) -> (usize, u64) {
    // Fibonacci hashing: the top bits of the product depend on all bytes.
    let hash = head.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((hash >> 58) as usize, 1 << (hash >> 52 & 63))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use crate::made::TypeBuilder;

    #[test]
    fn names_are_found_by_kind() {
        let mut made = TypeBuilder::new();
        let names = ["sock", "socket", "sock_common", "a", "inet_timewait_sock", "inet_timewait_death_row", "tcp"];
        let ids: Vec<u32> = names.iter().map(|name| made.structure(name, 4, &[])).collect();
        let function = made.function("sock");
        let twice = made.structure("sock", 8, &[]);
        let types = KernelTypes { kernel: Bytes::Read(made.bytes()), module: None };
        let mut wanted = WantedTypes::new();
        let numbers = names.map(|name| wanted.add(name, kinds(&[TypeKind::STRUCT])));
        let called = wanted.add("sock", kinds(&[TypeKind::FUNCTION]));
        let absent = wanted.add("sock_", kinds(&[TypeKind::STRUCT, TypeKind::FUNCTION]));
        assert_eq!(wanted.add("tcp", kinds(&[TypeKind::STRUCT])), numbers[6], "asked once");
        types.find(&mut wanted).unwrap();
        assert_eq!(wanted.types_found(numbers[0]), [(ids[0], TypeKind::STRUCT), (twice, TypeKind::STRUCT)]);
        for at in 1..names.len() {
            assert_eq!(wanted.types_found(numbers[at]), [(ids[at], TypeKind::STRUCT)], "{}", names[at]);
        }
        assert_eq!(wanted.types_found(called), [(function, TypeKind::FUNCTION)]);
        assert!(wanted.types_found(absent).is_empty() && wanted.types_found(usize::MAX).is_empty());
    }

    /// A module's types are numbered after the kernel's, refer to them, and use their names.
    #[test]
    fn a_modules_types_go_on_from_the_kernels() {
        let mut base = TypeBuilder::new();
        let word = base.int("u32", 4, false);
        let sock = base.structure("sock", 4, &[("mark", word, 0, 0)]);
        let mut own = TypeBuilder::based_on(&base);
        let many: Vec<u32> = (0..40).map(|n| own.array(word, n)).collect();
        let conn = own.structure("nf_conn", 8, &[("mark", word, 32, 0), ("sock", sock, 0, 0)]);
        let again = own.structure("sock", 8, &[]);
        assert_eq!((many[0], conn), (sock + 1, sock + 41));
        let module = Some(Bytes::Read(own.bytes()));
        let types = KernelTypes { kernel: Bytes::Read(base.bytes()), module };
        let mut wanted = WantedTypes::new();
        let number = |wanted: &mut WantedTypes, name| wanted.add(name, kinds(&[TypeKind::STRUCT]));
        let (a, b) = (number(&mut wanted, "nf_conn"), number(&mut wanted, "sock"));
        let found = types.find(&mut wanted).unwrap();
        assert_eq!(wanted.types_found(a), [(conn, TypeKind::STRUCT)]);
        assert_eq!(wanted.types_found(b), [(sock, TypeKind::STRUCT), (again, TypeKind::STRUCT)]);
        assert!(found.is_of_kernel(sock) && !found.is_of_kernel(conn));
        let members: Vec<_> = found.get(conn).unwrap().members().collect();
        assert_eq!((found.name(members[0].name), found.size(members[0].type_id)), ("mark", Some(4)));
        assert_eq!((found.name(members[1].name), found.size(members[1].type_id)), ("sock", Some(4)));
        assert_eq!(found.size(many[39]), Some(39 * 4));
        assert!(found.is_named(found.get(sock).unwrap().name, "sock") && found.get(again + 1).is_none());
    }

    #[test]
    fn heads_of_names() {
        let head = |bytes: &[u8; 8]| name_head(u64::from_le_bytes(*bytes)).to_le_bytes();
        assert_eq!(&head(b"sock\0abc"), b"sock\0\0\0\0");
        assert_eq!(&head(b"socketxy"), b"socketxy");
        assert_eq!(&head(b"\0socketx"), &[0; 8]);
        assert_eq!(&head(b"a\x01\0\x01\0\0\0\0"), b"a\x01\0\0\0\0\0\0");
        assert_eq!(short_head(b"tcp\0").to_le_bytes(), *b"tcp\0\0\0\0\0");
    }

    #[test]
    fn a_replay_asks_no_kernel() {
        let folder = tempfile::tempdir().unwrap();
        let tape = folder.path().join("tape");
        Host::live().recording(&tape).unwrap().finish().unwrap();
        let host = Host::open_replay(&tape).unwrap();
        assert_eq!(KernelTypes::read(&host).unwrap_err().errno(), Some(Errno::NOT_RECORDED));
    }

    #[test]
    fn mapped_and_read_are_the_same() {
        let Ok(mapped) = map_file(std::path::Path::new("/sys/kernel/btf/vmlinux")) else {
            println!("skipped: this kernel's types cannot be mapped");
            return;
        };
        let mut read = Vec::new();
        read_file(std::path::Path::new("/sys/kernel/btf/vmlinux"), &mut read).unwrap();
        assert!(mapped.bytes() == read, "{} and {} bytes", mapped.bytes().len(), read.len());
    }
}
