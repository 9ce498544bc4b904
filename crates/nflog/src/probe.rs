//! Checks whether records can be read here, for `netwren support`.
use sys::caps::{self, Cap};
use sys::{KernelPart, Missing, Modules, Presence, Tried};

/// The kernel part that sends records.
const PART: KernelPart = KernelPart { module: "nfnetlink_log", function: "nfulnl_log_packet" };

/// Whether records can be read and how, or why not. Binds no group and loads no module.
pub fn probe(modules: &Modules<'_>) -> Tried {
    let what = "the module nfnetlink_log (CONFIG_NETFILTER_NETLINK_LOG)";
    if !caps::effective().is_ok_and(|held| held.has(Cap::NetAdmin)) {
        return Tried::fails(Missing::Right, "binding a log group needs CAP_NET_ADMIN");
    }
    match modules.presence(PART) {
        Presence::There => Tried::works("via netlink, with record numbers"),
        Presence::NotLoaded => {
            Tried::fails(Missing::Module, format!("not loaded: {what}; binding a log group makes the kernel load it"))
        }
        Presence::Unknown => {
            Tried::fails(Missing::Module, format!("not tried: /proc/kallsyms does not show whether {what} is loaded"))
        }
    }
}
