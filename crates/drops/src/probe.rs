//! Whether drops could be counted here: for `netwren support`.
use sys::{Host, Tried};

use crate::trace::is_there;

/// Whether drops could be counted, and how, or why not. The program is loaded and dropped; nothing is attached.
pub fn probe(host: &Host) -> Tried {
    let reasons = match by_bpf(host) {
        Ok(reasons) => reasons,
        Err(why) if is_there(host) => {
            let why = why.words;
            return Tried::works(format!("by tracefs, reasons and places of all namespaces alone (bpf: {why})"));
        }
        Err(why) => return why,
    };
    let reasons = match reasons {
        0 => "without reasons (Linux 5.17 has them)".to_owned(),
        many => format!("by {many} reasons"),
    };
    let places = if crate::symbols::are_shown(host) { "function" } else { "address (names need CAP_SYSLOG)" };
    Tried::works(format!("by bpf at the tracepoint kfree_skb, {reasons} and by {places}"))
}

/// Number of reasons that the kernel has, or why the program cannot be loaded.
#[cfg(feature = "bpf")]
fn by_bpf(host: &Host) -> Result<usize, Tried> {
    bpf::PacketDrops::try_load(host).map(|reasons| reasons.reasons.len()).map_err(|error| error.tried())
}

#[cfg(not(feature = "bpf"))]
fn by_bpf(_: &Host) -> Result<usize, Tried> {
    Err(Tried::fails(sys::Missing::Build, "netwren was built without BPF, which counts them"))
}
