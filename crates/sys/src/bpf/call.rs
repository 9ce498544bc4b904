//! The bpf(2) system call.
use crate::errno::Errno;
use crate::fault;
use crate::syscall::call;

/// The values of `enum bpf_cmd` that are used here.
#[derive(Debug, Clone, Copy)]
#[repr(i32)]
pub(super) enum Command {
    MapCreate = 0,
    MapLookup = 1,
    MapUpdate = 2,
    MapDelete = 3,
    ProgLoad = 5,
    ProgRun = 10,
    ProgNextId = 11,
    ProgById = 13,
    ObjectFacts = 15,
    ProgQuery = 16,
    RawTracepointOpen = 17,
    BtfLoad = 18,
    MapFreeze = 22,
    MapLookupBatch = 24,
    LinkCreate = 28,
    LinkById = 30,
    LinkNextId = 31,
    IterCreate = 33,
}

impl Command {
    /// Its name in errors and for [`crate::fault`].
    pub(super) fn name(self) -> &'static str {
        match self {
            Command::MapCreate => "bpf_map_create",
            Command::MapLookup => "bpf_map_lookup",
            Command::MapUpdate => "bpf_map_update",
            Command::MapDelete => "bpf_map_delete",
            Command::ProgLoad => "bpf_prog_load",
            Command::ProgRun => "bpf_prog_run",
            Command::ProgNextId => "bpf_prog_next_id",
            Command::ProgById => "bpf_prog_by_id",
            Command::ObjectFacts => "bpf_object_facts",
            Command::ProgQuery => "bpf_prog_query",
            Command::RawTracepointOpen => "bpf_raw_tracepoint_open",
            Command::BtfLoad => "bpf_btf_load",
            Command::MapFreeze => "bpf_map_freeze",
            Command::MapLookupBatch => "bpf_map_lookup_batch",
            Command::LinkCreate => "bpf_link_create",
            Command::LinkById => "bpf_link_by_id",
            Command::LinkNextId => "bpf_link_next_id",
            Command::IterCreate => "bpf_iter_create",
        }
    }
}

/// One bpf(2) call. A fault armed for `bpf` affects every command, a fault armed for a command's name only that
/// command.
///
/// # Safety
/// `A` is `repr(C)` without padding, laid out as the kernel's attribute of `command`, and every address in it is that
/// of live memory of the size and kind (read or written) that `command` requires, or 0.
pub(super) unsafe fn bpf<A>(command: Command, attr: &mut A) -> Result<i64, Errno> {
    if let Some(result) = fault::take_result("bpf")? {
        return Ok(result);
    }
    let (size, attr) = (size_of::<A>(), std::ptr::from_mut(attr));
    // SAFETY: `attr` is an exclusively borrowed A of `size` bytes; the caller guarantees what it points to.
    call(command.name(), || unsafe { libc::syscall(libc::SYS_bpf, command as libc::c_int, attr, size) })
}

/// Size of a name in kernel objects (BPF_OBJ_NAME_LEN), including the NUL.
const NAME_BYTES: usize = 16;

/// A name as the kernel accepts it: truncated, and only letters, digits, `_` and `.`.
pub(super) fn short_name(name: &str) -> [u8; NAME_BYTES] {
    let mut short = [0; NAME_BYTES];
    let allowed = name.bytes().filter(|byte| byte.is_ascii_alphanumeric() || *byte == b'_' || *byte == b'.');
    for (to, from) in short.iter_mut().take(NAME_BYTES - 1).zip(allowed) {
        *to = from;
    }
    short
}

/// The address of borrowed bytes; 0 for none, which the kernel takes as "not given".
pub(super) fn address(bytes: &[u8]) -> u64 {
    if bytes.is_empty() { 0 } else { bytes.as_ptr() as u64 }
}

/// The address of bytes that the kernel will write.
pub(super) fn address_mut(bytes: &mut [u8]) -> u64 {
    if bytes.is_empty() { 0 } else { bytes.as_mut_ptr() as u64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cut_and_cleaned() {
        assert_eq!(&short_name("walk_ehash"), b"walk_ehash\0\0\0\0\0\0");
        assert_eq!(&short_name("a name that is much too long"), b"anamethatismuch\0");
    }
}
