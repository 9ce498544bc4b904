//! Whether records could be read here: for `netwren support`.
use sys::caps::{self, Cap};
use sys::{KernelPart, Modules, Presence};

/// What sends records.
const PART: KernelPart = KernelPart { module: "nfnetlink_log", function: "nfulnl_log_packet" };

/// True if records could be read, and how, or why not. Binds nothing and loads no module.
pub fn probe(modules: &Modules<'_>) -> (bool, String) {
    let what = "the module nfnetlink_log (CONFIG_NETFILTER_NETLINK_LOG)";
    if !caps::effective().is_ok_and(|held| held.has(Cap::NetAdmin)) {
        return (false, "binding a log group needs CAP_NET_ADMIN".to_owned());
    }
    match modules.presence(PART) {
        Presence::There => (true, "by netlink, each record numbered".to_owned()),
        Presence::NotLoaded => (false, format!("not loaded: {what}; binding a log group makes the kernel load it")),
        Presence::Unknown => (false, format!("not tried: /proc/kallsyms does not say whether {what} is loaded")),
    }
}
