//! Checks whether drops can be counted here, for `netwren support`.
use sys::{Host, Trial};

use crate::net_dm::{Presence, presence};
use crate::trace::is_there;

/// Whether drops can be counted and how, or why not. The program is loaded and unloaded; nothing is attached.
pub fn try_counting(host: &Host) -> Trial {
    let reasons = match by_bpf(host) {
        Ok(reasons) => reasons,
        Err(why) if is_there(host) => {
            let why = why.words;
            return Trial::new_working(format!("via tracefs, only reasons and places, of all namespaces (BPF: {why})"));
        }
        Err(why) => return why,
    };
    let reasons = match reasons {
        0 => "without reasons (Linux 5.17 and later have them)".to_owned(),
        many => format!("with {many} reasons"),
    };
    let places = if crate::symbols::are_shown(host) { "function" } else { "address (names need CAP_SYSLOG)" };
    Trial::new_working(format!("via BPF at the tracepoint kfree_skb, {reasons} and by {places}"))
}

/// Whether the kernel's drop monitor can be read. Loads no module, and starts nothing.
pub fn try_monitor(host: &Host) -> Trial {
    let may = sys::caps::effective().is_ok_and(|held| held.contains(sys::caps::Cap::NetAdmin));
    match presence(host) {
        Presence::There if !may => {
            Trial::new_missing(sys::Missing::Right, "the drop monitor is available, and needs CAP_NET_ADMIN")
        }
        Presence::There => Trial::new_working("via the drop monitor, for all namespaces, one message per packet"),
        Presence::NotLoaded => Trial::new_missing(sys::Missing::Module, "module drop_monitor is not loaded"),
        Presence::Absent => Trial::new_missing(sys::Missing::KernelOption, "this kernel has no drop monitor (NET_DM)"),
    }
}

/// Number of the kernel's reasons, or why the program cannot be loaded.
#[cfg(feature = "bpf")]
fn by_bpf(host: &Host) -> Result<usize, Trial> {
    bpf::PacketDrops::try_load(host).map(|reasons| reasons.reasons.len()).map_err(|error| error.to_tried())
}

#[cfg(not(feature = "bpf"))]
fn by_bpf(_: &Host) -> Result<usize, Trial> {
    Err(Trial::new_missing(sys::Missing::Build, "netwren was built without BPF"))
}
