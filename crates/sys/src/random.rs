//! Random bytes for secrets.

use crate::Errno;

/// Fills `place` with random bytes, getrandom(2). The error is the kernel's.
pub fn fill(place: &mut [u8]) -> Result<(), Errno> {
    let mut filled = 0;
    while let Some(rest) = place.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        // SAFETY: `rest` is writable for its length during the call.
        let count = unsafe { libc::getrandom(rest.as_mut_ptr().cast(), rest.len(), 0) };
        match usize::try_from(count) {
            Ok(count) => filled += count,
            Err(_) if Errno::last_error() == Errno::INTR => {}
            Err(_) => return Err(Errno::last_error()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn bytes_differ() {
        let mut both = [[0; 300]; 2];
        both.iter_mut().for_each(|one| super::fill(one).unwrap());
        assert!(both[0] != both[1] && both.iter().all(|one| one.iter().any(|byte| *byte != 0)));
    }
}
