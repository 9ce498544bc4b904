//! Whether drops could be counted here: for `netwren support`.
use sys::Host;

use crate::trace::is_there;

/// True if drops could be counted, and how, or why not. The program is loaded and dropped; nothing is attached.
pub fn probe(host: &Host) -> (bool, String) {
    let reasons = match by_bpf(host) {
        Ok(reasons) => reasons,
        Err(why) if is_there(host) => {
            return (true, format!("by tracefs, reasons and places of all namespaces alone (bpf: {why})"));
        }
        Err(why) => return (false, why),
    };
    let reasons = match reasons {
        0 => "without reasons (Linux 5.17 has them)".to_owned(),
        many => format!("by {many} reasons"),
    };
    let places = if crate::symbols::are_shown(host) { "function" } else { "address (names need CAP_SYSLOG)" };
    (true, format!("by bpf at the tracepoint kfree_skb, {reasons} and by {places}"))
}

/// Number of reasons that the kernel has, or why the program cannot be loaded.
#[cfg(feature = "bpf")]
fn by_bpf(host: &Host) -> Result<usize, String> {
    match bpf::PacketDrops::try_load(host) {
        Ok(reasons) => Ok(reasons.reasons.len()),
        Err(bpf::BpfError::Denied { needs, errno, .. }) => Err(format!("{errno}: needs {needs}")),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(not(feature = "bpf"))]
fn by_bpf(_: &Host) -> Result<usize, String> {
    Err("netwren was built without BPF, which counts them".to_owned())
}
