//! Numbers: two digits at a time from a table.

const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[0; 2]; 100];
    let mut n = 0;
    while n < 100 {
        pairs[n] = [b'0' + (n / 10) as u8, b'0' + (n % 10) as u8];
        n += 1;
    }
    pairs
};

/// Appends `n` in decimal. About 3 ns for a port.
#[inline]
pub fn put_u64(out: &mut Vec<u8>, n: u64) {
    if n < 10 {
        out.push(b'0' + n as u8);
        return;
    }
    let mut digits = [0u8; 20];
    let mut at = 20;
    let mut rest = n;
    while rest >= 100 {
        at -= 2;
        digits[at..at + 2].copy_from_slice(&PAIRS[(rest % 100) as usize]);
        rest /= 100;
    }
    if rest >= 10 {
        at -= 2;
        digits[at..at + 2].copy_from_slice(&PAIRS[rest as usize]);
    } else {
        at -= 1;
        digits[at] = b'0' + rest as u8;
    }
    out.extend_from_slice(&digits[at..]);
}

/// Appends `n` in decimal with its sign.
pub fn put_i64(out: &mut Vec<u8>, n: i64) {
    if n < 0 {
        out.push(b'-');
    }
    put_u64(out, n.unsigned_abs());
}

/// Appends `n` in lower-case hexadecimal without a prefix and without leading zeros.
pub fn put_hex(out: &mut Vec<u8>, n: u64) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = (64 - n.leading_zeros()).div_ceil(4).max(1);
    for i in (0..digits).rev() {
        out.push(DIGITS[(n >> (i * 4) & 15) as usize]);
    }
}

/// How many decimal digits `n` has.
pub fn u64_len(n: u64) -> usize {
    n.checked_ilog10().map_or(1, |l| l as usize + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8_lossy(&out).into_owned()
    }

    proptest! {
        #[test]
        fn as_std_writes_them(n: u64, i: i64, small in 0u64..70_000) {
            for n in [n, small] {
                prop_assert_eq!(text(|o| put_u64(o, n)), n.to_string());
                prop_assert_eq!(text(|o| put_hex(o, n)), format!("{n:x}"));
                prop_assert_eq!(u64_len(n), n.to_string().len());
            }
            prop_assert_eq!(text(|o| put_i64(o, i)), i.to_string());
        }
    }
}
