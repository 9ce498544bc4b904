//! dropwatch's lines.

use record::text::{put_face, put_hex, put_u64};

/// Packets that were dropped at one address.
#[derive(Clone, Copy, Debug)]
pub struct DropsAt<'d> {
    /// How many.
    pub count: u64,
    /// The address.
    pub address: u64,
    /// The function and the offset in it, if they are wanted and known.
    pub place: Option<(&'d [u8], u64)>,
}

/// Appends `3 drops at nf_hook_slow+7d (0xffffffff81f2afcd) [software]`; without the place
/// `3 drops at location 0xffffffff81f2afcd [software]`.
pub fn put_drops(out: &mut Vec<u8>, drops: &DropsAt<'_>) {
    put_u64(out, drops.count);
    out.extend_from_slice(b" drops at ");
    match drops.place {
        Some((name, offset)) => {
            put_face(out, name, false);
            out.push(b'+');
            put_hex(out, offset);
            out.extend_from_slice(b" (0x");
            put_hex(out, drops.address);
            out.push(b')');
        }
        None => {
            out.extend_from_slice(b"location 0x");
            put_hex(out, drops.address);
        }
    }
    out.extend_from_slice(b" [software]\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_with_and_without_a_place() {
        let mut out = Vec::new();
        let drops = DropsAt { count: 3, address: 0xffff_ffff_81f2_afcd, place: Some((b"nf_hook_slow", 0x7d)) };
        put_drops(&mut out, &drops);
        put_drops(&mut out, &DropsAt { place: None, ..drops });
        let expected = "3 drops at nf_hook_slow+7d (0xffffffff81f2afcd) [software]\n\
                        3 drops at location 0xffffffff81f2afcd [software]\n";
        assert_eq!(String::from_utf8_lossy(&out), expected);
    }
}
