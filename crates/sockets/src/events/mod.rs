//! Connections as they open and close, for `sockets --follow`.
//!
//! There are two backends. The BPF program reports every opening and closing with its owner and misses none. Without it
//! the kernel's notifications about destroyed sockets provide the closings, and repeated scans of the table the
//! openings: then short connections only show their end, and owners are unknown. Start reading at [`LiveConnections`].
mod bpf;
mod flow_key;
mod flow_shares;
mod flow_sums;
pub(crate) mod netlink;
mod udp_senders;

use record::rows::{Direction, EventKind, SocketEvent, SocketEvents};
use record::{Accounting, Demand, Each, Offer, SourceError, SourceFault, Stream, StreamState};
use sys::{Host, SysError, Trial};

use crate::choose::Via;
pub use flow_sums::FlowSums;
pub use udp_senders::UdpSenders;

use self::bpf::BpfEvents;
use self::netlink::NetlinkEvents;

/// Name of the backend in the row counts.
const BPF: &str = "bpf";
/// Name of the data, for messages.
const WHAT: &str = "connections";

/// Options of a [`LiveConnections`].
#[derive(Clone, Copy)]
pub struct Follow<'h> {
    /// The backend; `None` to choose one. `Via::Proc` cannot follow and counts as `None`.
    pub via: Option<Via>,
    /// Inode of the calling thread's network namespace.
    pub netns_id: u64,
    /// True to follow every namespace of the host, which needs BPF.
    pub all_netns: bool,
    /// True if programs may be attached to the root cgroup; [`try_following`] explains what that prevents others
    /// from.
    pub hooks: bool,
    /// Returns true to end the run. Called some twenty times per second.
    pub stop: &'h dyn Fn() -> bool,
}

impl Follow<'_> {
    /// True if no other backend may be tried: the user asked for BPF, or all namespaces are followed at once.
    fn only_bpf(&self) -> bool {
        self.all_netns || self.via == Some(Via::Bpf)
    }
}

/// Connections of one namespace, or of all, from now on.
pub struct LiveConnections<'h> {
    backend: Backend<'h>,
    /// Why the better backend is unavailable.
    shut: Option<String>,
    /// Limitations of the better backend here.
    left_out: Vec<String>,
    /// Number of incoming connections reported without a process; `None` if hooks report it.
    nameless: Option<u64>,
}

enum Backend<'h> {
    BpfEvents(Box<BpfEvents<'h>>),
    NetlinkEvents(Box<NetlinkEvents<'h>>),
}

impl<'h> LiveConnections<'h> {
    /// Starts to follow. Reports everything that happens after the return, as far as the backend sees it.
    ///
    /// Fails if no backend opens: BPF needs CAP_BPF and CAP_PERFMON, the other backend only sock_diag.
    pub fn open(host: &'h Host, follow: Follow<'h>) -> Result<LiveConnections<'h>, SourceError> {
        let mut shut = None;
        let key = key(&follow);
        if host.is_replay() && host.contains(&key) {
            let blocks = host.stream(&key, "", || Err(not_live())).map_err(error_of)?;
            let backend = Backend::BpfEvents(Box::new(BpfEvents::new(blocks)));
            return Ok(LiveConnections { backend, shut, left_out: Vec::new(), nameless: None });
        }
        if !host.is_replay() && follow.via != Some(Via::Netlink) {
            match open_bpf(host, &follow) {
                Ok((blocks, left_out)) => {
                    let blocks = host.stream(&key, "", || Ok(blocks)).map_err(error_of)?;
                    let (backend, nameless) =
                        (Backend::BpfEvents(Box::new(BpfEvents::new(blocks))), (!follow.hooks).then_some(0));
                    return Ok(LiveConnections { backend, shut, left_out, nameless });
                }
                Err(cause) if follow.only_bpf() => return Err(shut_out(cause)),
                Err(cause) => shut = Some(cause.to_string()),
            }
        }
        if follow.all_netns && !host.is_replay() {
            return Err(shut_out("all network namespaces at once can be followed only via BPF".into()));
        }
        let polled = NetlinkEvents::open(host, &follow)?;
        Ok(LiveConnections {
            backend: Backend::NetlinkEvents(Box::new(polled)),
            shut,
            left_out: Vec::new(),
            nameless: None,
        })
    }

    /// Limitations of the BPF backend on this kernel and with these privileges: owners come later, but no event is
    /// missed.
    pub fn left_out(&self) -> &[String] {
        &self.left_out
    }

    /// True if processes are reported with their connections.
    pub fn reports_processes(&self) -> bool {
        matches!(self.backend, Backend::BpfEvents(_))
    }

    /// A warning for the user at the start, if the backend may miss connections.
    pub fn caveat(&self) -> Option<String> {
        match &self.backend {
            Backend::BpfEvents(_) => None,
            Backend::NetlinkEvents(polled) => Some(match &self.shut {
                None => polled.caveat(),
                Some(why) => format!("{why}; {}", polled.caveat()),
            }),
        }
    }
}

impl LiveConnections<'_> {
    /// Time of the last event or scan, in ns since 1970.
    fn wall_ns(&self) -> u64 {
        match &self.backend {
            Backend::BpfEvents(told) => told.wall_ns(),
            Backend::NetlinkEvents(polled) => polled.wall_ns(),
        }
    }
}

fn key(follow: &Follow<'_>) -> String {
    if follow.all_netns { "connections/bpf".into() } else { format!("connections/bpf@{}", follow.netns_id) }
}

/// Why the BPF backend did not open.
type OpenError = Box<dyn std::error::Error + Send + Sync>;

/// The opened backend, and its limitations.
type OpenedBackend<'h> = (Box<dyn sys::Blocks + 'h>, Vec<String>);

#[cfg(feature = "bpf")]
fn open_bpf<'h>(host: &'h Host, follow: &Follow<'h>) -> Result<OpenedBackend<'h>, OpenError> {
    let (programs, left_out) = self::bpf::programs::EventPrograms::open(host, follow)?;
    Ok((Box::new(::bpf::RingBlocks::new(programs, follow.stop)), left_out))
}

#[cfg(not(feature = "bpf"))]
fn open_bpf<'h>(_: &'h Host, _: &Follow<'h>) -> Result<OpenedBackend<'h>, OpenError> {
    Err(sys::WITHOUT_BPF.into())
}

/// How the accept hooks affect other programs. A link on a cgroup is always attached with BPF_F_ALLOW_MULTI
/// (kernel/bpf/cgroup.c), and a cgroup with such a link accepts no program without that flag.
const HOOKS_EXCLUDE: &str = "while it runs, the accept hooks (getpeername4 and 6 of the root cgroup) keep programs \
                             without BPF_F_ALLOW_MULTI from attaching there: --no-hooks leaves them out";

/// The note if hooks would have shown more.
const NAMELESS: &str = "an incoming connection is shown without its accepting process: --no-hooks leaves out the hooks \
                        that report it in time";

/// How connections can be followed here, for `netwren support`: it works if no connection would be missed. With BPF all
/// programs are loaded, and those that do not exclude others are attached and released: some 10 ms.
pub fn try_following(host: &Host) -> Trial {
    #[cfg(feature = "bpf")]
    let programs =
        self::bpf::programs::try_loading(host).map_err(|error| (error.missing_requirement(), error.to_string()));
    #[cfg(not(feature = "bpf"))]
    let programs: Result<(Vec<String>, bool), _> = Err((sys::Missing::Build, sys::WITHOUT_BPF.to_owned()));
    let _ = host;
    match programs {
        Ok((mut words, hooks)) => {
            if words.is_empty() {
                words.push("owners from connect, accept, first use and close".to_owned());
            }
            words.extend(hooks.then(|| HOOKS_EXCLUDE.to_owned()));
            Trial::new_working(format!("via BPF: every state change; {}", words.join("; ")))
        }
        Err((missing, why)) => {
            Trial::new_missing(missing, format!("via netlink: no owners, short connections may be missed: {why}"))
        }
    }
}

/// A replay never opens a live backend.
fn not_live() -> SysError {
    SysError::new("replay", WHAT, sys::Errno::NOT_RECORDED)
}

/// The error if there is no other backend.
fn shut_out(cause: OpenError) -> SourceError {
    SourceError { what: "connections via BPF", fault: SourceFault::Unsupported, cause }
}

impl Stream<SocketEvents> for LiveConnections<'_> {
    fn offer(&self, _: &Demand<SocketEvents>) -> Offer {
        let (backend, line) = match &self.backend {
            Backend::BpfEvents(_) => {
                (BPF, "connections via BPF: every state change, owners from connect, accept, close")
            }
            Backend::NetlinkEvents(_) => {
                (Via::Netlink.name(), "connections via netlink: close events as reported, open events by polling")
            }
        };
        Offer { backend, explain: vec![line.into()], ..Offer::default() }
    }

    fn next(
        &mut self,
        _: &Demand<SocketEvents>,
        each: &mut Each<'_, SocketEvents>,
    ) -> Result<StreamState, SourceError> {
        match &mut self.backend {
            Backend::BpfEvents(told) => match &mut self.nameless {
                None => told.next(each),
                Some(nameless) => told.next(&mut |row| {
                    *nameless += u64::from(is_nameless(row));
                    each(row)
                }),
            },
            Backend::NetlinkEvents(polled) => polled.next(each),
        }
    }

    fn close(&mut self) -> Accounting {
        let (waiting, mut stats) = match &mut self.backend {
            Backend::BpfEvents(told) => (told.waiting_connections(), told.close()),
            Backend::NetlinkEvents(polled) => (0, polled.close()),
        };
        if waiting > 0 {
            // They may have been accepted: the programs that would have shown it are missing.
            self.left_out.iter().for_each(|words| stats.add_reason(0, words.clone()));
        }
        if let Some(nameless) = self.nameless.filter(|&nameless| nameless > 0) {
            stats.incomplete(nameless, NAMELESS);
        }
        stats
    }
}

/// True for the opening of an incoming connection without its process.
fn is_nameless(row: &SocketEvent) -> bool {
    row.kind == EventKind::Open && row.direction == Direction::In && row.holder.is_none()
}

fn error_of(error: SysError) -> SourceError {
    let fault = if error.errno.is_denied() { SourceFault::Denied } else { SourceFault::Io };
    if error.errno == sys::Errno::NOT_RECORDED {
        return SourceError { what: WHAT, fault: SourceFault::Unsupported, cause: NOT_RECORDED.into() };
    }
    SourceError { what: WHAT, fault, cause: Box::new(error) }
}

const NOT_RECORDED: &str = "not in the recording (`--follow` with `--record FILE` records them)";
