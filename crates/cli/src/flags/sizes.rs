//! Sizes in bytes, as flags and messages write them. A unit is a power of 1024, regardless of the rest of its name.

/// Parses `8MiB`, `64k`, `1000000` as a number of bytes.
pub(super) fn parse_bytes(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match text.get(digits.len()..)? {
        "" | "B" => 0,
        "k" | "kB" | "K" | "KB" | "Ki" | "KiB" => 10,
        "M" | "MB" | "Mi" | "MiB" => 20,
        "G" | "GB" | "Gi" | "GiB" => 30,
        "T" | "TB" | "Ti" | "TiB" => 40,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// Formats a number of bytes exactly, with the largest unit that divides it.
pub(super) fn format_bytes(bytes: u64) -> String {
    let units = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
    let unit = units.into_iter().find(|(shift, _)| bytes > 0 && bytes.trailing_zeros() >= *shift);
    unit.map_or_else(|| bytes.to_string(), |(shift, unit)| format!("{}{unit}", bytes >> shift))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formatted_sizes_are_parsed_as_the_same_number() {
        for (bytes, text) in [
            (0, "0"),
            (20, "20"),
            (1000, "1000"),
            (4096, "4KiB"),
            (3 << 20, "3MiB"),
            (1 << 30, "1GiB"),
            (1 << 40, "1TiB"),
        ] {
            assert_eq!((format_bytes(bytes).as_str(), parse_bytes(text)), (text, Some(bytes)));
        }
        assert_eq!(["", "k", "1x", "99999999999TiB"].map(parse_bytes), [None; 4]);
    }
}
