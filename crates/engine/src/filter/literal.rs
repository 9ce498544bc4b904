//! Values in the user's notation: numbers with units, ranges, masks, addresses.

use record::{Addr, Kind, Prefix};

/// Families of units.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Unit {
    /// No unit, or `k`, `M`, `Ki` …
    Count,
    /// Like `Count`, with up to three decimals.
    Thousandths,
    /// `B`, `kB`, `MiB` …
    Bytes,
    /// `ns` to `d`; the number is the field's own unit in ns.
    Time(u64),
    /// `bps`, `Mbps`, `Mbit`, `MBps`.
    Rate,
}

impl Unit {
    /// Returns the family for fields of this kind.
    pub(super) fn from_kind(kind: Kind) -> Option<Unit> {
        match kind {
            Kind::Count => Some(Unit::Count),
            Kind::Thousandths => Some(Unit::Thousandths),
            Kind::Bytes => Some(Unit::Bytes),
            Kind::DurationUs => Some(Unit::Time(1_000)),
            Kind::DurationMs => Some(Unit::Time(1_000_000)),
            Kind::DurationS => Some(Unit::Time(1_000_000_000)),
            Kind::BitsPerSecond => Some(Unit::Rate),
            _ => None,
        }
    }

    /// Returns the factor of a suffix as a fraction; `None` for a suffix that does not belong to the family.
    fn factor_of(self, suffix: &str) -> Option<(u128, u128)> {
        if suffix.is_empty() {
            return Some((if self == Unit::Thousandths { 1000 } else { 1 }, 1));
        }
        match self {
            Unit::Thousandths => Some((1000 * scale(suffix)?, 1)),
            Unit::Count => Some((scale(suffix)?, 1)),
            Unit::Bytes => Some((scale(suffix.strip_suffix('B').unwrap_or(suffix))?, 1)),
            Unit::Time(own_ns) => Some((nanoseconds(suffix)?, own_ns.into())),
            Unit::Rate => match suffix.strip_suffix("Bps").or_else(|| suffix.strip_suffix('B')) {
                Some(scaled) => Some((8 * scale(scaled)?, 1)),
                None => Some((scale(bits(suffix).unwrap_or(suffix))?, 1)),
            },
        }
    }

    /// Examples for messages.
    pub(super) fn examples(self) -> &'static str {
        match self {
            Unit::Count => "10, 10k, 1.5M",
            Unit::Thousandths => "2, 1.5, 0.125",
            Unit::Bytes => "512, 10k, 1MiB, 1.5GB",
            Unit::Time(_) => "20ms, 1.5s, 3min",
            Unit::Rate => "64kbps, 10Mbit/s, 1Gbit, 1MB/s",
        }
    }
}

/// Returns the prefix before `bps` or `bit`.
fn bits(suffix: &str) -> Option<&str> {
    suffix.strip_suffix("bps").or_else(|| suffix.strip_suffix("bit"))
}

/// Returns the factor of a prefix: k, M, G, T are powers of 1000, with an `i` of 1024.
fn scale(prefix: &str) -> Option<u128> {
    Some(match prefix {
        "" => 1,
        "k" | "K" => 1_000,
        "M" => 1_000_000,
        "G" => 1_000_000_000,
        "T" => 1_000_000_000_000,
        "Ki" | "ki" => 1 << 10,
        "Mi" => 1 << 20,
        "Gi" => 1 << 30,
        "Ti" => 1 << 40,
        _ => return None,
    })
}

/// Returns a unit of time in nanoseconds.
fn nanoseconds(suffix: &str) -> Option<u128> {
    Some(match suffix {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" | "sec" => 1_000_000_000,
        "m" | "min" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        "d" => 86_400_000_000_000,
        _ => return None,
    })
}

/// The reason why a number could not be parsed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum NumberError {
    /// It is not a number, or its unit does not belong here.
    NoNumber,
    /// It is a fraction of the unit in which the field counts.
    TooFine,
    /// It does not fit into 64 bits.
    TooBig,
}

/// Parses `text` as a whole number of the field's own unit: `1.5s` for a field in ms is 1500.
pub(super) fn parse_quantity(unit: Unit, text: &str) -> Result<u64, NumberError> {
    if let Some(n) = hex(text) {
        return n;
    }
    let (whole, fraction, suffix) = parts(text).ok_or(NumberError::NoNumber)?;
    let (times, by) = unit.factor_of(suffix).ok_or(NumberError::NoNumber)?;
    if whole.len() > 20 || fraction.len() > 9 {
        return Err(if whole.len() > 20 { NumberError::TooBig } else { NumberError::TooFine });
    }
    let digits: u128 = format!("{whole}{fraction}").parse().map_err(|_| NumberError::NoNumber)?;
    let by = by * 10u128.pow(fraction.len() as u32);
    let scaled = digits.checked_mul(times).ok_or(NumberError::TooBig)?;
    if scaled % by != 0 {
        return Err(NumberError::TooFine);
    }
    u64::try_from(scaled / by).map_err(|_| NumberError::TooBig)
}

/// Parses a number without a unit: decimal, or hexadecimal after `0x`.
pub(super) fn parse_plain(text: &str) -> Result<u64, NumberError> {
    if let Some(n) = hex(text) {
        return n;
    }
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return Err(NumberError::NoNumber);
    }
    text.parse().map_err(|_| NumberError::TooBig)
}

fn hex(text: &str) -> Option<Result<u64, NumberError>> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"))?;
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Some(Err(NumberError::NoNumber));
    }
    Some(u64::from_str_radix(digits, 16).map_err(|_| NumberError::TooBig))
}

/// True if `text` is a number (or a range) with a unit of this family.
pub(super) fn has_unit(unit: Unit, text: &str) -> bool {
    let one =
        |text: &str| parts(text).is_some_and(|(_, _, suffix)| !suffix.is_empty() && unit.factor_of(suffix).is_some());
    one(text) || text.split_once('-').is_some_and(|(low, high)| one(low) && one(high))
}

/// Splits `1.5s` into `1`, `5`, `s`. There is at least one digit before the dot.
fn parts(text: &str) -> Option<(&str, &str, &str)> {
    let digits = |s: &str| s.bytes().take_while(u8::is_ascii_digit).count();
    let (whole, rest) = text.split_at_checked(digits(text))?;
    let (fraction, suffix) = match rest.strip_prefix('.') {
        Some(after) => after.split_at_checked(digits(after))?,
        None => ("", rest),
    };
    // Accepts rates as tables show them: `1.9 MB/s`, `20.1 Mbit/s`.
    let suffix = suffix.trim_start_matches(' ');
    let of_rate = suffix.strip_suffix("/s").filter(|unit| unit.ends_with('B') || unit.ends_with("bit"));
    let suffix = of_rate.unwrap_or(suffix);
    let suffix_is_word = suffix.chars().all(char::is_alphabetic);
    (!whole.is_empty() && suffix_is_word).then_some((whole, fraction, suffix))
}

/// Parses an address, with or without brackets; IPv4-mapped ones become IPv4, like in cells.
pub(super) fn address(text: &str) -> Option<Addr> {
    strip_brackets(text).parse::<Addr>().ok().map(Addr::unmapped)
}

/// Parses an address or a prefix (`10.0.0.0/8`, `[fe80::]/10`, `[fe80::/10]`).
pub(super) fn prefix(text: &str) -> Option<Prefix> {
    let text = strip_brackets(text);
    let Some((addr, len)) = text.split_once('/') else {
        return address(text).map(Prefix::host);
    };
    if len.is_empty() || !len.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let addr: Addr = strip_brackets(addr).parse().ok()?;
    let len: u8 = len.parse().ok()?;
    match (addr, addr.unmapped()) {
        // Cells have mapped addresses as IPv4, so their prefix must also be IPv4.
        (Addr::V6(_), mapped @ Addr::V4(_)) if (96..=128).contains(&len) => Prefix::new(mapped, len - 96),
        _ => Prefix::new(addr, len),
    }
}

fn strip_brackets(text: &str) -> &str {
    text.strip_prefix('[').and_then(|t| t.strip_suffix(']')).unwrap_or(text)
}
