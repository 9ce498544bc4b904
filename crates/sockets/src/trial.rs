//! Checks which backends work here, for `netwren support`.
use std::ops::ControlFlow;

use netlink::{DumpError, Query};
use record::Proto;
use sys::caps::{self, Cap};
use sys::{Errno, Host, KernelPart, Missing, Modules, Presence, Trial};

use crate::address_families::AF_INET;
use crate::backends::fault::{has_no_file, kernel_option};
use crate::backends::netlink::inet_diag::DumpParameters;
use crate::backends::netlink::request::NETLINK_SOCK_DIAG;
use crate::backends::netlink::{netlink_diag, packet_diag, tipc_diag, unix_diag, vsock_diag, xdp_diag};
use crate::backends::proc_file::ProcFile;
use crate::choose::Via;
use crate::keys::Table;

/// Result of trying one backend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackendTrial {
    /// The table.
    pub proto: Proto,
    /// The backend.
    pub via: Via,
    /// Whether it worked, and how, or what is missing.
    pub tried: Trial,
}

/// Tries every backend of every table with the smallest request: no states, or the first line. Skips tables that would
/// make the kernel load a module.
///
/// Needs about twenty system calls. In a replay every backend fails, because there is no kernel to send requests to.
pub fn try_backends(host: &Host, modules: &Modules<'_>) -> Vec<BackendTrial> {
    let mut backends = Vec::new();
    for proto in Proto::ALL {
        backends.push(match reason_not_to_ask(modules, proto) {
            Some(words) => BackendTrial { proto, via: Via::Netlink, tried: Trial::new_missing(Missing::Module, words) },
            None => by_netlink(host, proto),
        });
        if !has_no_file(proto) {
            backends.push(by_proc(host, proto));
        }
    }
    backends
}

/// True if socket marks are shown and can be used in filters.
pub fn sees_marks() -> bool {
    caps::effective().is_ok_and(|set| set.contains(Cap::NetAdmin))
}

fn by_netlink(host: &Host, proto: Proto) -> BackendTrial {
    // Requests no states: the kernel searches no buckets and answers only that it is done.
    let wanted = DumpParameters { ext: 0, states: 0, sport: 0, dport: 0, bytecode: &[], storages: false };
    let tried = |request| {
        let what = table_of(proto).description();
        let ask = Query { what, protocol: NETLINK_SOCK_DIAG, request: &request, key: "probe", note: "", netns: None };
        netlink::dump(host, &ask, |_| ControlFlow::Break(())).map(|_| ())
    };
    let (result, how) = match proto {
        Proto::Tcp => match tried(wanted.legacy()) {
            Ok(()) => (Ok(()), "one dump for both families"),
            Err(_) => (tried(wanted.by_family(AF_INET, proto)), "a dump per family"),
        },
        Proto::Unix => (tried(unix_diag::request(0, 0)), "one dump"),
        Proto::Packet => (tried(packet_diag::request(0)), "one dump"),
        Proto::Netlink => (tried(netlink_diag::request(0)), "one dump for each protocol"),
        Proto::Vsock => (tried(vsock_diag::request(0)), "one dump"),
        Proto::Tipc => (tried(tipc_diag::request(0)), "one dump"),
        Proto::Xdp => (tried(xdp_diag::request(0)), "one dump"),
        _ => (tried(wanted.by_family(AF_INET, proto)), "a dump per family"),
    };
    let tried = match &result {
        Ok(()) if !proto.is_inet() || sees_marks() => Trial::new_working(how),
        Ok(()) => Trial::new_working(format!("{how}, without marks (they need CAP_NET_ADMIN)")),
        Err(error) => Trial::new_refused(error.errno(), refusal_text(error, proto)),
    };
    BackendTrial { proto, via: Via::Netlink, tried }
}

/// The kernel part that answers for a table: the module and its dump callback (net/*/…diag.c, 6.18).
pub(crate) fn kernel_part(proto: Proto) -> KernelPart {
    let (module, function) = match proto {
        Proto::Tcp => ("tcp_diag", "tcp_diag_dump"),
        Proto::Udp | Proto::UdpLite => ("udp_diag", "udp_diag_dump"),
        Proto::Unix => ("unix_diag", "unix_diag_handler_dump"),
        Proto::Raw => ("raw_diag", "raw_diag_dump"),
        Proto::Mptcp => ("mptcp_diag", "mptcp_diag_dump"),
        Proto::Packet => ("af_packet_diag", "packet_diag_handler_dump"),
        Proto::Netlink => ("netlink_diag", "netlink_diag_handler_dump"),
        Proto::Sctp => ("sctp_diag", "sctp_diag_dump"),
        Proto::Dccp => ("dccp_diag", "dccp_diag_dump"),
        Proto::Vsock => ("vsock_diag", "vsock_diag_handler_dump"),
        // The module is called net/tipc/diag.ko.
        Proto::Tipc => ("diag", "tipc_sock_diag_handler_dump"),
        Proto::Xdp => ("xsk_diag", "xsk_diag_handler_dump"),
    };
    KernelPart { module, function }
}

// Returns why a table is not tried, or `None` if trying it loads no module.
fn reason_not_to_ask(modules: &Modules<'_>, proto: Proto) -> Option<String> {
    let config = option_of(proto);
    let (module, name) = (kernel_part(proto).module, proto.name());
    match modules.presence(kernel_part(proto)) {
        Presence::There => None,
        Presence::NotLoaded => {
            Some(format!("not loaded (module {module}, {config}); reading {name} sockets makes the kernel load it"))
        }
        Presence::Unknown => Some(format!(
            "not tried: /proc/kallsyms does not show whether the module {module} ({config}) is loaded; reading {name} \
             sockets makes the kernel load it"
        )),
    }
}

// The kernel configuration option, for display.
fn option_of(proto: Proto) -> String {
    let gone = if proto == Proto::Dccp { ", gone with 6.16" } else { "" };
    format!("{}{gone}", kernel_option(proto))
}

fn refusal_text(error: &DumpError, proto: Proto) -> String {
    match error.errno() {
        Some(Errno::NOENT | Errno::OPNOTSUPP | Errno::PROTONOSUPPORT) => {
            format!("{error} (the kernel has no module for it: {})", option_of(proto))
        }
        _ => error.to_string(),
    }
}

fn by_proc(host: &Host, proto: Proto) -> BackendTrial {
    let file = ProcFile { host, netns: None, table: table_of(proto), key: "probe".into() };
    let result = file.read(|_| ControlFlow::Break(()));
    let tried = match (result, proto) {
        (Err(error), _) => Trial::new_refused(Some(error.errno), error.to_string()),
        (Ok(_), Proto::Unix) => Trial::new_working("without peers, queues, owners' uids and cookies"),
        (Ok(_), Proto::Packet) => Trial::new_working("without rings, fanout, memberships, filters, memory and cookies"),
        (Ok(_), Proto::Netlink) => Trial::new_working("without memory and cookies, and only the first 32 groups"),
        (Ok(_), _) => {
            Trial::new_working("without tcp_info, memory, marks, interfaces, cgroups, cookies and backlog limits")
        }
    };
    BackendTrial { proto, via: Via::Proc, tried }
}

fn table_of(proto: Proto) -> Table {
    match proto {
        Proto::Tcp => Table::Tcp,
        Proto::Udp => Table::Udp4,
        Proto::Unix => Table::Unix,
        Proto::Raw => Table::Raw4,
        Proto::UdpLite => Table::UdpLite4,
        Proto::Mptcp => Table::Mptcp4,
        Proto::Packet => Table::Packet,
        Proto::Netlink => Table::Netlink,
        Proto::Sctp => Table::Sctp4,
        Proto::Dccp => Table::Dccp4,
        Proto::Vsock => Table::Vsock,
        Proto::Tipc => Table::Tipc,
        Proto::Xdp => Table::Xdp,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn this_host() {
        let host = Host::live();
        let backends = try_backends(&host, &Modules::new(&host));
        assert_eq!(backends.len(), 2 * Proto::ALL.len() - 5);
        assert!(backends.iter().all(|backend| !backend.tried.words.is_empty()));
        // In any sandbox where tests run, one of the two backends for TCP must work.
        assert!(backends.iter().any(|backend| backend.proto == Proto::Tcp && backend.tried.is_working()));
    }

    /// With a modular kernel that has loaded none of its modules, no table is requested, so no module is loaded.
    #[test]
    fn replay_issue_10_what_is_not_loaded_is_not_asked_for() {
        let root = tempfile::tempdir().unwrap();
        let proc = root.path().join("proc");
        std::fs::create_dir_all(&proc).unwrap();
        std::fs::write(proc.join("modules"), "").unwrap();
        let host = Host::with_roots(proc.clone(), root.path().join("sys"), root.path().join("etc"));
        let netlink = |start: &str| {
            let backends = try_backends(&host, &Modules::new(&host));
            let others =
                |backend: &BackendTrial| backend.via == Via::Netlink && !backend.tried.words.starts_with(start);
            let tried = backends.into_iter().filter(others);
            tried.map(|backend| (backend.proto, backend.tried.words)).collect::<Vec<_>>()
        };
        sys::fault::arm("socket", 0, 100, sys::fault::Fault::Fails(Errno::ACCES));
        assert_eq!(netlink("not tried: /proc/kallsyms does not show"), []);
        std::fs::write(proc.join("kallsyms"), "0000000000000000 t raw_dump\n").unwrap();
        assert_eq!(netlink("not loaded (module "), []);
        let closing = crate::try_closing(&host, &Modules::new(&host));
        assert_eq!(closing.missing, Some(Missing::Module));
        assert!(closing.words.starts_with("not tried: not loaded (module tcp_diag"), "{closing:?}");
        // A module that is loaded is tried: here the request itself fails.
        std::fs::write(proc.join("kallsyms"), "0000000000000000 t udp_diag_dump\t[udp_diag]\n").unwrap();
        let tried: Vec<Proto> = netlink("not loaded (module ").into_iter().map(|(proto, _)| proto).collect();
        sys::fault::disarm_all();
        assert_eq!(tried, [Proto::Udp, Proto::UdpLite]);
    }
}
