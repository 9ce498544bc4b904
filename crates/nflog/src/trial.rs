//! Checks whether records can be read here, for `netwren support`.
use sys::caps::{self, Cap};
use sys::{KernelPart, Missing, Modules, Presence, Trial};

/// The kernel part that sends records.
const KERNEL_PART: KernelPart = KernelPart { module: "nfnetlink_log", function: "nfulnl_log_packet" };

/// Whether records can be read and how, or why not. Binds no group and loads no module.
pub fn try_groups(modules: &Modules<'_>) -> Trial {
    let what = "the module nfnetlink_log (CONFIG_NETFILTER_NETLINK_LOG)";
    if !caps::effective().is_ok_and(|held| held.contains(Cap::NetAdmin)) {
        return Trial::new_missing(Missing::Right, "binding a log group needs CAP_NET_ADMIN");
    }
    match modules.presence(KERNEL_PART) {
        Presence::There => Trial::new_working("via netlink, with record numbers"),
        Presence::NotLoaded => Trial::new_missing(
            Missing::Module,
            format!("not loaded: {what}; binding a log group makes the kernel load it"),
        ),
        Presence::Unknown => Trial::new_missing(
            Missing::Module,
            format!("not tried: /proc/kallsyms does not show whether {what} is loaded"),
        ),
    }
}
