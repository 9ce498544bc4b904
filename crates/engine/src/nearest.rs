//! Suggestions for mistyped words.

/// Longest word that is compared: the cost is quadratic, and longer words are not typing mistakes.
const LONGEST: usize = 64;

/// Renamed fields: the old name is refused with the new one as the suggestion.
const RENAMED: &[(&str, &str)] = &[("retransmits", "timer_retransmits")];

/// Returns the candidate nearest to `word`, if one is near enough to suggest.
///
/// A candidate that starts with the word or has it as one of its parts (`addr` in `peer_addr`) counts as near;
/// otherwise at most one mistake in three letters is tolerated.
pub fn find_nearest<'c>(word: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    let word = word.to_ascii_lowercase().replace('-', "_");
    let renamed = RENAMED.iter().find(|(old, _)| *old == word).map(|(_, new)| *new);
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates {
        if renamed == Some(candidate) {
            return Some(candidate);
        }
        let Some(distance) = distance_to_propose(&word, candidate) else { continue };
        if best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// Returns the distance of `candidate` from `word`; `None` if it is too far to suggest.
fn distance_to_propose(word: &str, candidate: &str) -> Option<usize> {
    if word.len() >= 3 && candidate.starts_with(word) {
        return Some(1);
    }
    let distance = count_slips(word.as_bytes(), candidate.as_bytes())?;
    if distance <= word.len().max(candidate.len()).div_ceil(3) && distance < candidate.len() {
        return Some(distance * 2);
    }
    let is_part = word.len() >= 3 && candidate.split('_').any(|part| part == word);
    is_part.then_some(100)
}

/// Counts the insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`.
fn count_slips(a: &[u8], b: &[u8]) -> Option<usize> {
    if a.len() > LONGEST || b.len() > LONGEST {
        return None;
    }
    let mut before = [0usize; LONGEST + 1];
    let mut last: [usize; LONGEST + 1] = std::array::from_fn(|j| j);
    for (i, &x) in a.iter().enumerate() {
        let mut row = [i + 1; LONGEST + 1];
        for (j, &y) in b.iter().enumerate() {
            let mut least = (last[j] + usize::from(x != y)).min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && x == b[j - 1] && a[i - 1] == y {
                least = least.min(before[j - 1] + 1);
            }
            row[j + 1] = least;
        }
        before = last;
        last = row;
    }
    Some(last[b.len()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proposes_what_was_meant() {
        let fields =
            ["state", "local_addr", "local_port", "peer_addr", "peer_port", "rtt_us", "process", "established"];
        for (word, meant) in [
            ("stat", Some("state")),
            ("sate", Some("state")),
            ("satte", Some("state")),
            ("peeraddr", Some("peer_addr")),
            ("PEER-PORT", Some("peer_port")),
            ("rtt", Some("rtt_us")),
            ("procces", Some("process")),
            ("estab", Some("established")),
            ("addr", Some("local_addr")),
            ("zzz", None),
            ("x", None),
            ("", None),
        ] {
            assert_eq!(find_nearest(word, fields), meant, "{word}");
        }
        assert_eq!(find_nearest(&"x".repeat(100_000), fields), None);
    }
}
