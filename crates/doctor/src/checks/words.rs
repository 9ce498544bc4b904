//! Words for sentences and commands, and evidence.

use crate::seen::Moved;
use record::rows::Evidence;

/// A name from outside as an argument of a displayed command. Returns `generic` (`IFACE`) instead if a shell would
/// read the name as more than one word, so that a copied command cannot execute it.
pub(crate) fn argument<'n>(name: &'n str, generic: &'n str) -> &'n str {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-' | b':' | b'@');
    let is_word = !name.is_empty() && !name.starts_with('-') && name.bytes().all(is_plain);
    if is_word { name } else { generic }
}

/// Returns a setting of an interface as sysctl(8) takes it. With dots between its parts, an interface such as
/// `eth0.100` would be two of them.
pub(super) fn iface_setting(family: &str, iface: &str, file: &str) -> String {
    format!("net/{family}/conf/{}/{file}", argument(iface, "IFACE"))
}

/// Returns the counter of an object as evidence.
pub(crate) fn of_object(name: &str, object: &[u8], moved: Moved, limit: Option<i64>) -> Evidence {
    let Moved { before, after } = moved;
    Evidence { counter: format!("{name} of {}", String::from_utf8_lossy(object)), before, after, limit }
}

/// Returns a state that was read once as evidence.
pub(crate) fn state(name: impl Into<String>, value: impl Into<i64>, limit: Option<i64>) -> Evidence {
    Evidence { counter: name.into(), before: None, after: value.into(), limit }
}

/// Returns `part` of `whole` in percent with one decimal, as text.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    format!("{:.1} %", part as f64 * 100.0 / whole.max(1) as f64)
}

/// The command that shows where a process sleeps.
pub(super) fn look_at(pid: Option<u32>) -> String {
    pid.map_or(String::new(), |pid| format!("ps -L -o tid,stat,wchan:32,comm -p {pid}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_a_shell_would_run_is_no_part_of_a_command() {
        assert_eq!(argument("eth0.5", "IFACE"), "eth0.5");
        for hostile in ["$(id)", "a;b", "", "-x", "a b", "a\nb", "`x`"] {
            assert_eq!(argument(hostile, "IFACE"), "IFACE");
        }
        assert_eq!(percent(1, 3), "33.3 %");
        assert_eq!(iface_setting("ipv6", "eth0.5", "accept_ra"), "net/ipv6/conf/eth0.5/accept_ra");
        assert_eq!(iface_setting("ipv4", "$(id)", "rp_filter"), "net/ipv4/conf/IFACE/rp_filter");
    }
}
