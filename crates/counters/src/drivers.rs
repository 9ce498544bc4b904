//! Statistics of interface drivers (`ethtool -S`); each driver chooses the names.

use record::rows::CounterSource::Driver;
use sys::STATISTIC_NAME_BYTES;

use crate::reading::{CounterReading, Object, Width};

/// Adds the statistics of one driver: their number as u32, their names, their values as u64
/// ([`sys::DriverStatistics::read`]). `None` if the bytes are cut short. A name ends at its first zero byte.
pub(crate) fn add(into: &mut CounterReading, iface: &Object, bytes: &[u8]) -> Option<()> {
    let Some((count, rest)) = bytes.split_first_chunk::<4>() else {
        return bytes.is_empty().then_some(());
    };
    let count = usize::try_from(u32::from_ne_bytes(*count)).ok()?;
    let (names, values) = rest.split_at_checked(count.checked_mul(STATISTIC_NAME_BYTES)?)?;
    if values.len() != count.checked_mul(8)? {
        return None;
    }
    let object = into.add_object(iface.clone());
    for (name, value) in names.chunks_exact(STATISTIC_NAME_BYTES).zip(values.chunks_exact(8)) {
        let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
        let name = String::from_utf8_lossy(name.get(..end).unwrap_or_default());
        let value = value.try_into().map_or(0, u64::from_ne_bytes);
        // Drivers leave the names of statistics that this card lacks empty.
        if !name.is_empty() {
            into.add(Driver, &name, Some(object), value.into(), Width::Bits64);
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(pairs: &[(&str, u64)]) -> Vec<u8> {
        let mut bytes = (pairs.len() as u32).to_ne_bytes().to_vec();
        for (name, _) in pairs {
            let mut padded = name.as_bytes().to_vec();
            padded.resize(STATISTIC_NAME_BYTES, 0);
            bytes.extend_from_slice(&padded);
        }
        pairs.iter().for_each(|(_, value)| bytes.extend_from_slice(&value.to_ne_bytes()));
        bytes
    }

    #[test]
    fn names_and_values_of_a_driver() {
        let (mut reading, va) = (CounterReading::default(), Object::iface(3, b"va"));
        let full = "a_name_that_has_all_32_bytes_yes";
        let whole = bytes(&[("rx_queue_0_drops", 7), ("", 9), (full, u64::MAX)]);
        assert_eq!(add(&mut reading, &va, &whole), Some(()));
        let found: Vec<(&str, i128)> = reading.values().iter().map(|one| (one.name.text(), one.value)).collect();
        assert_eq!(found, [("rx_queue_0_drops", 7), (full, u64::MAX.into())]);
        assert_eq!(reading.values().first().and_then(|one| reading.object(one)), Some(&va));
        assert_eq!(add(&mut reading, &va, &[]), Some(()), "a driver without statistics");
        let cut = (1..whole.len()).filter(|len| add(&mut reading, &va, &whole[..*len]).is_some()).count();
        assert_eq!((cut, reading.values().len()), (0, 2), "cut ones add nothing");
    }
}
