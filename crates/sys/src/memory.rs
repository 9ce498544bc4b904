//! Returning unused memory to the kernel.

use crate::kernel::page_bytes;

/// Returns free heap memory to the kernel; without this, memory from a burst stays with the process. Takes about 0.1
/// ms per MiB. Does nothing if the C library has no function for it.
pub fn trim() {
    // SAFETY: malloc_trim(3) may be called by any thread, and takes a number.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Fills `bytes`, which are on the heap, with zeros and returns their pages to the kernel; pages are allocated again
/// on the next write. Takes about 0.1 ms per MiB.
pub fn zero(bytes: &mut [u8]) {
    // madvise(2) rounds the length up: with pages that are larger than assumed, it would also clear what follows.
    let page = page_bytes();
    let begin = bytes.as_ptr().align_offset(page).min(bytes.len());
    let (head, rest) = bytes.split_at_mut(begin);
    let (pages, tail) = rest.split_at_mut(rest.len() / page * page);
    head.fill(0);
    tail.fill(0);
    // SAFETY: whole pages that are borrowed mutably. Heap pages are private and anonymous: they read as zeros from
    // then on (madvise(2)).
    let given_back = unsafe { libc::madvise(pages.as_mut_ptr().cast(), pages.len(), libc::MADV_DONTNEED) == 0 };
    if !given_back {
        pages.fill(0);
    }
}

/// Drops the resident pages of the program's code and constants. Code that ran only at startup is no longer needed;
/// pages that are needed come back from the page cache automatically, 64 KiB at a time. Takes about 0.1 ms, and the
/// same again until the running code is back.
pub fn release_program() {
    #[cfg(target_env = "gnu")]
    // SAFETY: the callback has the signature that dl_iterate_phdr(3) requires, and uses no data.
    unsafe {
        libc::dl_iterate_phdr(Some(release_segments), std::ptr::null_mut());
    }
}

/// Drops the read-only pages of the first object, which is the program; ends the iteration.
#[cfg(target_env = "gnu")]
unsafe extern "C" fn release_segments(
    info: *mut libc::dl_phdr_info,
    _: libc::size_t,
    _: *mut libc::c_void,
) -> libc::c_int {
    let page = page_bytes() as u64;
    // SAFETY: the C library passes a valid description of a loaded object with the stated number of program headers.
    let (base, headers) = unsafe {
        let info = &*info;
        (info.dlpi_addr, std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()))
    };
    let is_kept = |header: &&libc::Elf64_Phdr| header.p_type == libc::PT_LOAD && header.p_flags & libc::PF_W == 0;
    for header in headers.iter().filter(is_kept) {
        let begin = (base + header.p_vaddr) / page * page;
        let bytes = (base + header.p_vaddr + header.p_memsz).next_multiple_of(page) - begin;
        // SAFETY: a segment that is never written is mapped from the program's file: its pages return unchanged. A
        // segment that relocations have modified is marked writable in its header.
        unsafe {
            libc::madvise(begin as *mut libc::c_void, bytes as usize, libc::MADV_DONTNEED);
        }
    }
    1
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Heap and stacks in KiB.
    fn resident() -> u64 {
        status("RssAnon:")
    }

    fn status(word: &str) -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(word)).unwrap();
        line.split_whitespace().next().unwrap().parse().unwrap()
    }

    /// Reads 4 MiB of constants and checks that they are unchanged afterwards.
    #[cfg(target_env = "gnu")]
    #[test]
    fn pages_of_the_program_are_given_back() {
        static CONSTANTS: [u64; 1 << 19] = {
            let (mut all, mut at) = ([0; 1 << 19], 0);
            while at < all.len() {
                all[at] = at as u64 + 1;
                at += 512;
            }
            all
        };
        let sum = || std::hint::black_box(&CONSTANTS).iter().sum::<u64>();
        let (first, full) = (sum(), status("RssFile:"));
        release_program();
        assert!(status("RssFile:") + (2 << 10) < full, "{} of {full} KiB", status("RssFile:"));
        assert_eq!(sum(), first);
    }

    #[test]
    fn zeros_take_no_memory() {
        for (length, skipped) in [(0, 0), (100, 3), (4096, 0), (64 << 20, 5), ((64 << 20) + 4095, 4096)] {
            let mut bytes = vec![7; length + skipped];
            let full = resident();
            zero(bytes.get_mut(skipped..).unwrap());
            assert!(length < 1 << 20 || resident() + (48 << 10) < full, "{} of {full} KiB", resident());
            assert!(bytes.iter().enumerate().all(|(at, byte)| *byte == if at < skipped { 7 } else { 0 }), "{length}");
        }
    }

    /// The pieces have a size that the heap retains, and the last one prevents the heap from shrinking on its own.
    #[cfg(target_env = "gnu")]
    #[test]
    fn what_was_freed_is_given_back() {
        let mut parts: Vec<Vec<u8>> = (0..1000).map(|_| vec![1; 64 << 10]).collect();
        let last = parts.pop();
        let full = resident();
        drop(parts);
        trim();
        assert!(resident() + (32 << 10) < full, "{} of {full} KiB", resident());
        drop(last);
    }
}
