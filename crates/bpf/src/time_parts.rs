//! Histograms of times as the programs store them (`c/parts.h`): four parts for each power of two of ns.

/// Number of parts per power of two.
const PARTS_OF_POWER: u32 = 4;

/// The middle of the part that contains the time which `hundredths` of 100 times do not exceed: 50 for the median.
/// `None` without any times.
pub(crate) fn quantile(counts: impl Iterator<Item = u64> + Clone, hundredths: u64) -> Option<u64> {
    let all = u128::from(counts.clone().sum::<u64>());
    let wanted = u64::try_from((all * u128::from(hundredths)).div_ceil(100)).ok()?;
    let mut below = 0;
    let part = counts.enumerate().find_map(|(part, count)| {
        below += count;
        (below >= wanted && below > 0).then_some(part)
    });
    let (from, to) = bounds(u32::try_from(part?).ok()?);
    Some(from + (to - from) / 2)
}

/// The first number of a part, and the first number after it.
pub(crate) fn bounds(part: u32) -> (u64, u64) {
    let from = |part: u32| match part {
        0..PARTS_OF_POWER => u64::from(part),
        _ => u64::from(PARTS_OF_POWER + part % PARTS_OF_POWER) << (part / PARTS_OF_POWER - 1).min(60),
    };
    (from(part), from(part + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_follow_one_another() {
        let firsts: Vec<u64> = (0..12).map(|part| bounds(part).0).collect();
        assert_eq!(firsts, [0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14]);
        for part in 0..200 {
            assert_eq!(bounds(part).1, bounds(part + 1).0);
        }
    }

    #[test]
    fn quantiles_lie_in_their_part() {
        let counts = |parts: &[(usize, u64)]| {
            let mut all = vec![0; 140];
            parts.iter().for_each(|(part, count)| all[*part] = *count);
            all
        };
        let of = |counts: &[u64], hundredths| quantile(counts.iter().copied(), hundredths);
        assert_eq!(of(&counts(&[]), 50), None);
        let some = counts(&[(8, 1), (9, 1), (10, 1)]);
        assert_eq!((of(&some, 50), of(&some, 99), of(&some, 1)), (Some(11), Some(13), Some(9)));
        let rare = counts(&[(20, 99), (100, 1)]);
        assert_eq!((of(&rare, 99), of(&rare, 100)), (Some(72), Some((bounds(100).0 + bounds(100).1) / 2)));
    }
}
