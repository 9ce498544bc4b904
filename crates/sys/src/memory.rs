//! Memory that is not in use, given back to the kernel.

/// Gives free memory of the heap back: what a burst has filled stays with the process otherwise. Takes some 0.1 ms a
/// MiB, and does nothing where the C library has no call for it.
pub fn trim() {
    // SAFETY: malloc_trim(3) may be called by any thread, and takes a number.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::malloc_trim(0);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Heap and stacks, in KiB.
    fn resident() -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
        line.split_whitespace().next().unwrap().parse().unwrap()
    }

    /// The parts are of a size that the heap keeps, and the last one keeps the heap from shrinking by itself.
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
