//! Whether drops could be counted here: for `netwren support`.
use sys::Host;

/// True if drops could be counted, and how, or why not. The program is loaded and dropped; nothing is attached.
#[cfg(feature = "bpf")]
pub fn probe(host: &Host) -> (bool, String) {
    let reasons = match bpf::PacketDrops::try_load(host) {
        Ok(reasons) => reasons.reasons,
        Err(bpf::BpfError::Denied { needs, errno, .. }) => return (false, format!("{errno}: needs {needs}")),
        Err(error) => return (false, error.to_string()),
    };
    let reasons = match reasons.len() {
        0 => "without reasons (Linux 5.17 has them)".to_owned(),
        many => format!("by {many} reasons"),
    };
    let places = if crate::symbols::are_shown(host) { "function" } else { "address (names need CAP_SYSLOG)" };
    (true, format!("by bpf at the tracepoint kfree_skb, {reasons} and by {places}"))
}

/// False, and why.
#[cfg(not(feature = "bpf"))]
pub fn probe(_: &Host) -> (bool, String) {
    (false, "netwren was built without BPF, which counts them".to_owned())
}
