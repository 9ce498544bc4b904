//! BPF maps: tables shared between BPF programs and this process.
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use super::call::{Command, address, address_mut, bpf, short_name};
use super::mapped::MappedMemory;
use super::ring::Ring;
use crate::errno::{Errno, SysError};
use crate::fd::Fd;
use crate::fs;
use crate::kernel::page_bytes;

/// `enum bpf_map_type`: the kinds that have one value per possible CPU.
const PER_CPU_KINDS: [u32; 4] = [5, 6, 10, 21];
const KIND_RINGBUF: u32 = 27;
const KIND_ARRAY: u32 = 2;
/// `BPF_F_MMAPABLE`
const MMAPABLE: u32 = 1 << 10;

/// The properties of a map.
#[derive(Debug, Clone, Default)]
pub struct MapShape {
    /// Name; the kernel stores 15 bytes of it.
    pub name: String,
    /// `enum bpf_map_type`.
    pub kind: u32,
    /// Size of a key in bytes.
    pub key_bytes: u32,
    /// Size of a value in bytes.
    pub value_bytes: u32,
    /// Maximum number of entries; for a ring, its size in bytes.
    pub entries: u32,
    /// `BPF_F_*`.
    pub flags: u32,
}

/// Types of key and value, for the map kinds that require them (socket storage).
#[derive(Debug, Clone, Copy)]
pub struct ValueTypes<'a> {
    /// The result of [`load_types`].
    pub types: &'a Fd,
    /// Id of the key's type in it.
    pub key: u32,
    /// Id of the value's type.
    pub value: u32,
}

/// An open map. The kernel frees it when this is dropped and no program uses it any more.
#[derive(Debug)]
pub struct Map {
    fd: Fd,
    shape: MapShape,
    /// Number of bytes that one lookup fills: the values of all CPUs if each CPU has its own.
    value_room: usize,
}

/// `struct { … } MAP_CREATE` up to `map_extra`, which is zero.
#[repr(C)]
struct CreateAttr {
    kind: u32,
    key_bytes: u32,
    value_bytes: u32,
    entries: u32,
    flags: u32,
    inner_map: u32,
    numa_node: u32,
    name: [u8; 16],
    ifindex: u32,
    btf: u32,
    btf_key: u32,
    btf_value: u32,
    btf_vmlinux_value: u32,
    extra: u64,
}
const _: () = assert!(size_of::<CreateAttr>() == 72);

#[repr(C)]
struct ElementAttr {
    map: u32,
    pad: u32,
    key: u64,
    value: u64,
    flags: u64,
}
const _: () = assert!(size_of::<ElementAttr>() == 32);

#[repr(C)]
struct BatchAttr {
    from: u64,
    to: u64,
    keys: u64,
    values: u64,
    count: u32,
    map: u32,
    element_flags: u64,
    flags: u64,
}
const _: () = assert!(size_of::<BatchAttr>() == 56);

/// The position and the buffers of a pass over a whole map. Start with [`Map::batch`].
#[derive(Debug)]
pub struct Batch {
    keys: Vec<u8>,
    values: Vec<u8>,
    from: Vec<u8>,
    to: Vec<u8>,
    begun: bool,
    room: u32,
    got: usize,
    ended: bool,
}

impl Map {
    /// Creates a map. On kernels before 5.11, EPERM can also mean that RLIMIT_MEMLOCK is too low; call
    /// [`raise_locked_memory`].
    ///
    /// [`raise_locked_memory`]: crate::rights::raise_locked_memory
    pub fn create(shape: MapShape, types: Option<ValueTypes<'_>>) -> Result<Map, SysError> {
        let mut attr = CreateAttr {
            kind: shape.kind,
            key_bytes: shape.key_bytes,
            value_bytes: shape.value_bytes,
            entries: shape.entries,
            flags: shape.flags,
            inner_map: 0,
            numa_node: 0,
            name: short_name(&shape.name),
            ifindex: 0,
            btf: types.map_or(0, |types| types.types.as_raw_fd() as u32),
            btf_key: types.map_or(0, |types| types.key),
            btf_value: types.map_or(0, |types| types.value),
            btf_vmlinux_value: 0,
            extra: 0,
        };
        // SAFETY: CreateAttr is the layout of MAP_CREATE and holds no address.
        let fd = unsafe { bpf(Command::MapCreate, &mut attr) }
            .map_err(|errno| map_error(Command::MapCreate, &shape, errno))?;
        // SAFETY: the kernel just returned this descriptor to us alone.
        let fd = unsafe { Fd::take(fd) };
        let value = shape.value_bytes as usize;
        let per_cpu = PER_CPU_KINDS.contains(&shape.kind);
        let value_room = if per_cpu { value.next_multiple_of(8) * possible_cpus()? } else { value };
        Ok(Map { fd, shape, value_room })
    }

    /// The properties of the map.
    pub fn shape(&self) -> &MapShape {
        &self.shape
    }

    /// Number of bytes that [`Map::get`] fills: one value, or one value per CPU (each rounded up to 8).
    pub fn value_room(&self) -> usize {
        self.value_room
    }

    /// Reads the value of `key` into `value`; false if the key is absent. One system call.
    pub fn get(&self, key: &[u8], value: &mut [u8]) -> Result<bool, SysError> {
        self.check(Command::MapLookup, key.len(), Some(value.len()))?;
        let mut attr = self.element(key, address_mut(value), 0);
        // SAFETY: ElementAttr is the layout of MAP_LOOKUP_ELEM; `check` has compared the lengths of key and value with
        // what the kernel reads and writes for this map.
        match unsafe { bpf(Command::MapLookup, &mut attr) } {
            Ok(_) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(errno) => Err(map_error(Command::MapLookup, &self.shape, errno)),
        }
    }

    /// Writes a value. E2BIG: the map is full. One system call.
    pub fn put(&self, key: &[u8], value: &[u8]) -> Result<(), SysError> {
        self.check(Command::MapUpdate, key.len(), Some(value.len()))?;
        let mut attr = self.element(key, address(value), 0);
        // SAFETY: as in `get`; the kernel reads both.
        let put = unsafe { bpf(Command::MapUpdate, &mut attr) };
        put.map(drop).map_err(|errno| map_error(Command::MapUpdate, &self.shape, errno))
    }

    /// Removes an entry; false if it was absent. One system call.
    pub fn remove(&self, key: &[u8]) -> Result<bool, SysError> {
        self.check(Command::MapDelete, key.len(), None)?;
        let mut attr = self.element(key, 0, 0);
        // SAFETY: as in `get`; the kernel reads the key.
        match unsafe { bpf(Command::MapDelete, &mut attr) } {
            Ok(_) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(errno) => Err(map_error(Command::MapDelete, &self.shape, errno)),
        }
    }

    /// Makes the map read-only for this process, so that the verifier treats its contents as constant. One system
    /// call.
    pub fn freeze(&self) -> Result<(), SysError> {
        let mut attr = self.fd.as_raw_fd() as u32;
        // SAFETY: MAP_FREEZE takes the descriptor alone.
        let frozen = unsafe { bpf(Command::MapFreeze, &mut attr) };
        frozen.map(drop).map_err(|errno| map_error(Command::MapFreeze, &self.shape, errno))
    }

    /// Starts a pass over all entries, reading `room` of them per system call.
    pub fn batch(&self, room: u32) -> Batch {
        let key = self.shape.key_bytes as usize;
        let room = room.clamp(1, self.shape.entries.max(1));
        Batch {
            keys: vec![0; key * room as usize],
            values: vec![0; self.value_room * room as usize],
            // The kernel stores a u32 there for hash maps and a key for arrays.
            from: vec![0; key.max(8)],
            to: vec![0; key.max(8)],
            begun: false,
            room,
            got: 0,
            ended: false,
        }
    }

    /// Reads the next entries; false at the end. Requires Linux 5.6. Entries that change during the pass may be missed
    /// or returned twice.
    pub fn next_batch(&self, batch: &mut Batch) -> Result<bool, SysError> {
        batch.got = 0;
        while !batch.ended {
            let mut attr = BatchAttr {
                from: if batch.begun { address(&batch.from) } else { 0 },
                to: address_mut(&mut batch.to),
                keys: address_mut(&mut batch.keys),
                values: address_mut(&mut batch.values),
                count: batch.room,
                map: self.fd.as_raw_fd() as u32,
                element_flags: 0,
                flags: 0,
            };
            if !batch.matches(self) {
                return Err(map_error(Command::MapLookupBatch, &self.shape, Errno::INVAL));
            }
            // SAFETY: BatchAttr is the layout of MAP_LOOKUP_BATCH. `fits` has just compared the room for keys, values
            // and positions with what the kernel writes for `room` entries of this map.
            let read = unsafe { bpf(Command::MapLookupBatch, &mut attr) };
            match read {
                // The kernel returns a bucket of a hash map completely or not at all.
                Err(Errno::NOSPC) if batch.room < self.shape.entries => {
                    batch.widen(self);
                    continue;
                }
                Err(Errno::NOENT) => batch.ended = true,
                Err(errno) => return Err(map_error(Command::MapLookupBatch, &self.shape, errno)),
                Ok(_) => std::mem::swap(&mut batch.from, &mut batch.to),
            }
            batch.begun = true;
            batch.got = attr.count.min(batch.room) as usize;
            if batch.got > 0 {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Maps the memory of an array created with `BPF_F_MMAPABLE` for reading. Each value starts at a multiple of its
    /// size rounded up to 8.
    pub fn map_memory(&self) -> Result<MappedMemory, SysError> {
        if self.shape.kind != KIND_ARRAY || self.shape.flags & MMAPABLE == 0 {
            return Err(SysError::new("mmap", self.describe(), Errno::INVAL));
        }
        let bytes = (self.shape.value_bytes as usize).next_multiple_of(8) * self.shape.entries as usize;
        MappedMemory::new(&self.fd, bytes, 0).map_err(|errno| SysError::new("mmap", self.describe(), errno))
    }

    /// Opens the reading end of a ring buffer. The caller must ensure that there is only one.
    pub fn ring(&self) -> Result<Ring, SysError> {
        let bytes = self.shape.entries as usize;
        if self.shape.kind != KIND_RINGBUF || !bytes.is_power_of_two() || bytes < page_bytes() {
            return Err(SysError::new("mmap", self.describe(), Errno::INVAL));
        }
        Ring::new(&self.fd, bytes).map_err(|errno| SysError::new("mmap", self.describe(), errno))
    }

    fn element(&self, key: &[u8], value: u64, flags: u64) -> ElementAttr {
        ElementAttr { map: self.fd.as_raw_fd() as u32, pad: 0, key: address(key), value, flags }
    }

    // The kernel reads and writes as many bytes as the map's sizes require, regardless of the length of our buffers.
    fn check(&self, command: Command, key: usize, value: Option<usize>) -> Result<(), SysError> {
        let fits = key == self.shape.key_bytes as usize && value.is_none_or(|value| value == self.value_room);
        if fits { Ok(()) } else { Err(map_error(command, &self.shape, Errno::INVAL)) }
    }

    fn describe(&self) -> String {
        describe_shape(&self.shape)
    }
}

impl AsFd for Map {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Batch {
    /// The entries read by the last [`Map::next_batch`], as (key, value).
    pub fn entries(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let (key, value) = (self.keys.len() / self.room as usize, self.values.len() / self.room as usize);
        self.keys.chunks_exact(key.max(1)).zip(self.values.chunks_exact(value.max(1))).take(self.got)
    }

    fn matches(&self, map: &Map) -> bool {
        let (key, room) = (map.shape.key_bytes as usize, self.room as usize);
        let places = self.from.len() >= key.max(8) && self.to.len() >= key.max(8);
        places && self.keys.len() >= key * room && self.values.len() >= map.value_room * room
    }

    fn widen(&mut self, map: &Map) {
        self.room = self.room.saturating_mul(4).min(map.shape.entries);
        self.keys.resize(map.shape.key_bytes as usize * self.room as usize, 0);
        self.values.resize(map.value_room * self.room as usize, 0);
    }
}

#[repr(C)]
struct TypesAttr {
    types: u64,
    log: u64,
    bytes: u32,
    log_bytes: u32,
    log_level: u32,
    log_true_bytes: u32,
}
const _: () = assert!(size_of::<TypesAttr>() == 32);

/// Loads a set of types (BTF) into the kernel, for [`ValueTypes`].
pub fn load_types(types: &[u8]) -> Result<Fd, SysError> {
    let failed = |errno| SysError::new("bpf_btf_load", "types of a map", errno);
    let bytes = u32::try_from(types.len()).map_err(|_| failed(Errno::FBIG))?;
    let mut attr = TypesAttr { types: address(types), log: 0, bytes, log_bytes: 0, log_level: 0, log_true_bytes: 0 };
    // SAFETY: TypesAttr is the layout of BTF_LOAD; its only address is that of `bytes` borrowed bytes to be read.
    let fd = unsafe { bpf(Command::BtfLoad, &mut attr) }.map_err(failed)?;
    // SAFETY: the kernel just returned this descriptor to us alone.
    Ok(unsafe { Fd::take(fd) })
}

fn describe_shape(shape: &MapShape) -> String {
    format!("BPF map {}", shape.name)
}

fn map_error(command: Command, shape: &MapShape, errno: Errno) -> SysError {
    SysError::new(command.name(), describe_shape(shape), errno)
}

/// The number of possible CPUs of this kernel, which is the number of values in per-CPU maps.
fn possible_cpus() -> Result<usize, SysError> {
    let path = "/sys/devices/system/cpu/possible";
    let mut text = Vec::new();
    fs::read_file(std::path::Path::new(path), &mut text)?;
    last_cpu(&text).ok_or_else(|| SysError::new("read", path, Errno::INVAL))
}

// `0-3`, `0`, `0-1,4-7`: the highest CPU determines the size.
fn last_cpu(text: &[u8]) -> Option<usize> {
    let text = std::str::from_utf8(text).ok()?.trim();
    let last = text.rsplit([',', '-']).next()?.parse::<usize>().ok()?;
    (last < 1 << 16).then_some(last + 1)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use crate::fault::{Fault, arm, disarm_all};
    use testkit::root::root_or_skip;

    const HASH: u32 = 1;

    fn shape(kind: u32, entries: u32) -> MapShape {
        MapShape { name: "nw_test".into(), kind, key_bytes: 4, value_bytes: 8, entries, flags: 0 }
    }

    #[test]
    fn cpus() {
        assert_eq!((last_cpu(b"0-3\n"), last_cpu(b"0"), last_cpu(b"0-1,4-7")), (Some(4), Some(1), Some(8)));
        assert_eq!((last_cpu(b""), last_cpu(b"0-99999999")), (None, None));
    }

    #[test]
    fn root_a_hash_map_is_written_and_read() {
        if !root_or_skip("BPF maps") {
            return;
        }
        let map = Map::create(shape(HASH, 1000), None).unwrap();
        for n in 0..1000u32 {
            map.put(&n.to_ne_bytes(), &u64::from(n * 3).to_ne_bytes()).unwrap();
        }
        assert_eq!(map.put(&5000u32.to_ne_bytes(), &[0; 8]).unwrap_err().errno, Errno(libc::E2BIG));
        let mut value = [0; 8];
        assert!(map.get(&7u32.to_ne_bytes(), &mut value).unwrap());
        assert_eq!(u64::from_ne_bytes(value), 21);
        assert!(map.remove(&7u32.to_ne_bytes()).unwrap() && !map.remove(&7u32.to_ne_bytes()).unwrap());
        assert!(!map.get(&7u32.to_ne_bytes(), &mut value).unwrap());
        let mut batch = map.batch(10);
        let mut seen = Vec::new();
        while map.next_batch(&mut batch).unwrap() {
            for (key, value) in batch.entries() {
                let key = u32::from_ne_bytes(key.try_into().unwrap());
                assert_eq!(u64::from_ne_bytes(value.try_into().unwrap()), u64::from(key) * 3);
                seen.push(key);
            }
        }
        seen.sort_unstable();
        assert_eq!(seen, (0..1000).filter(|n| *n != 7).collect::<Vec<_>>());
    }

    #[test]
    fn root_wrong_lengths_never_reach_the_kernel() {
        if !root_or_skip("BPF maps") {
            return;
        }
        let map = Map::create(shape(HASH, 4), None).unwrap();
        assert_eq!(map.get(&[0; 3], &mut [0; 8]).unwrap_err().errno, Errno::INVAL);
        assert_eq!(map.get(&[0; 4], &mut [0; 7]).unwrap_err().errno, Errno::INVAL);
        assert_eq!(map.put(&[0; 4], &[]).unwrap_err().errno, Errno::INVAL);
        assert_eq!(map.map_memory().unwrap_err().errno, Errno::INVAL);
        assert_eq!(map.ring().unwrap_err().errno, Errno::INVAL);
    }

    #[test]
    fn root_an_array_is_mapped_and_frozen() {
        if !root_or_skip("BPF maps") {
            return;
        }
        let map = Map::create(MapShape { flags: MMAPABLE, ..shape(KIND_ARRAY, 3) }, None).unwrap();
        let mapped = map.map_memory().unwrap();
        map.put(&1u32.to_ne_bytes(), &77u64.to_ne_bytes()).unwrap();
        assert_eq!(mapped.bytes().len(), 24);
        assert_eq!(u64::from_ne_bytes(mapped.bytes()[8..16].try_into().unwrap()), 77);
        drop(map);
        assert_eq!(mapped.bytes()[8], 77, "the memory lives as long as the mapping");
        let frozen = Map::create(shape(KIND_ARRAY, 1), None).unwrap();
        frozen.freeze().unwrap();
        assert_eq!(frozen.put(&[0; 4], &[0; 8]).unwrap_err().errno, Errno::PERM);
    }

    #[test]
    fn root_a_value_for_every_cpu() {
        if !root_or_skip("BPF maps") {
            return;
        }
        let map = Map::create(shape(6, 1), None).unwrap();
        assert!(map.value_room() >= 8 && map.value_room() % 8 == 0);
        let mut values = vec![0; map.value_room()];
        assert!(map.get(&[0; 4], &mut values).unwrap());
    }

    #[test]
    fn a_refused_map_is_named() {
        arm("bpf", 0, 1, Fault::Fails(Errno::PERM));
        let error = Map::create(shape(HASH, 1), None).unwrap_err();
        disarm_all();
        assert_eq!(error.to_string(), "cannot create BPF map nw_test: operation not permitted");
    }
}
