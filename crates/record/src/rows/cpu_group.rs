//! CPU samples of the kernel's network code (`doctor softirq`).

use crate::named_enum::named_enum;
use crate::table::table;
use crate::{Show, Value};

named_enum! {
    /// A part of the kernel's network code, or another activity of a CPU.
    pub enum CodeGroup {
        /// Connection tracking.
        Conntrack => "conntrack",
        /// NAT.
        Nat => "nat",
        /// nftables and iptables rules.
        Rules => "rules",
        /// Bridges.
        Bridge => "bridge",
        /// Routing and neighbours.
        Routing => "routing",
        /// IP, ICMP, IPsec.
        Ip => "ip",
        /// TCP.
        Tcp => "tcp",
        /// UDP.
        Udp => "udp",
        /// Sockets.
        Socket => "socket",
        /// Copies of packets for packet sockets.
        Tap => "tap",
        /// BPF programs.
        Bpf => "bpf",
        /// Queueing disciplines.
        Qdisc => "qdisc",
        /// Network drivers.
        Driver => "driver",
        /// Code between driver and protocol, for receiving and sending.
        Core => "core",
        /// Allocating and freeing packet buffers.
        Buffers => "buffers",
        /// Copying packet data.
        Copy => "copy",
        /// Configuration: netlink requests, namespaces.
        Setup => "setup",
        /// Softirqs outside the network code.
        Softirq => "softirq",
        /// The rest of the kernel.
        Kernel => "kernel",
        /// User space.
        User => "user",
        /// The CPU is idle.
        Idle => "idle",
    }
}

impl CodeGroup {
    /// True for network code and for other softirqs.
    pub fn is_network(self) -> bool {
        self <= CodeGroup::Softirq
    }

    /// The meaning of the group, as a sentence.
    pub fn about(self) -> &'static str {
        match self {
            CodeGroup::Conntrack => "connection tracking: looks up, makes and ages entries, puts fragments together",
            CodeGroup::Nat => "rewriting of addresses and ports",
            CodeGroup::Rules => "rules of nftables and iptables, and the way from one hook to the next",
            CodeGroup::Bridge => "forwarding by bridges",
            CodeGroup::Routing => "finding routes and neighbours",
            CodeGroup::Ip => "IP, ICMP and IPsec themselves",
            CodeGroup::Tcp => "TCP itself",
            CodeGroup::Udp => "UDP itself",
            CodeGroup::Socket => "sockets: queues, wake-ups, calls of programs",
            CodeGroup::Tap => "copies of packets for those who capture",
            CodeGroup::Bpf => "BPF programs, XDP included",
            CodeGroup::Qdisc => "queueing disciplines and tc",
            CodeGroup::Driver => "drivers of interfaces, virtual ones included",
            CodeGroup::Core => "receiving and sending between drivers and protocols",
            CodeGroup::Buffers => "making and freeing buffers of packets",
            CodeGroup::Copy => "copying the data of packets",
            CodeGroup::Setup => "requests of programs by netlink; namespaces and interfaces that are made and removed",
            CodeGroup::Softirq => "softirqs that are not the network's: timers, RCU, disks",
            CodeGroup::Kernel => "the rest of the kernel",
            CodeGroup::User => "programs",
            CodeGroup::Idle => "nothing",
        }
    }
}

named_enum! {
    /// The context in which the kernel was running when a sample was taken.
    pub enum CodeContext {
        /// Packets that arrived, or whose transmission was deferred.
        Softirq => "softirq",
        /// A system call of a program, or a kernel thread.
        Process => "process",
    }
}

/// Samples of one group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CpuGroup<'b> {
    /// The group.
    pub group: CodeGroup,
    /// The CPU; `None` for the sum of all CPUs.
    pub cpu: Option<u32>,
    /// Number of samples; `None` if nothing was sampled.
    pub samples: Option<u64>,
    /// CPU time in thousandths of a percent of one CPU.
    pub percent: u64,
    /// The part of it that was spent in softirqs; `None` for groups outside the kernel.
    pub softirq_percent: Option<u64>,
    /// The CPU that spends most time in the group, and that time in thousandths of a percent.
    pub busiest: Option<(u32, u64)>,
    /// The most frequently sampled function of the group; empty if unknown.
    pub function: &'b [u8],
    /// Its share of the group's samples, in thousandths of a percent.
    pub function_percent: Option<u64>,
    /// Duration of the sampling.
    pub window_ns: u64,
}

table! {
    /// The table of CPU samples of network code (`doctor softirq`).
    pub enum CpuGroups of CpuGroup = "doctor softirq";

    /// The part of the kernel, by the innermost function of the call chain that belongs to one.
    group: Name(CodeGroup::NAMES) = own(|row| Value::Name(row.group.name())), show Show::Default;
    /// Number of the CPU; null for all of them together.
    cpu: Id = own(|row| Value::number(row.cpu)), show Show::Wide;
    /// Time in percent of one CPU: of two busy ones 200.
    percent: Thousandths = own(|row| Value::Thousandths(row.percent)), show Show::Default;
    /// Of that, time in softirqs: packets that arrive. The rest is calls of programs.
    softirq_percent: Thousandths = own(|row| row.softirq_percent.map_or(Value::Null, Value::Thousandths)),
        show Show::Default;
    /// Samples.
    samples: Count = own(|row| Value::number(row.samples)), show Show::Default;
    /// The CPU that spends most time on it.
    busiest_cpu: Id = own(|row| Value::number(row.busiest.map(|(cpu, _)| cpu))), show Show::Default;
    /// Time of that CPU, in percent of it.
    busiest_percent: Thousandths = own(|row| row.busiest.map_or(Value::Null, |(_, part)| Value::Thousandths(part))),
        show Show::Default;
    /// The group's function that was met most often, whatever it had called.
    function: Text = own(|row| Value::nonempty(row.function)), show Show::Default;
    /// Samples with that function, in percent of the group's.
    function_percent: Thousandths = own(|row| row.function_percent.map_or(Value::Null, Value::Thousandths)),
        show Show::Default;
    /// What the group does.
    about: Text = own(|row| Value::nonempty(row.group.about().as_bytes())), show Show::Wide;
    /// How long samples were taken.
    window_us: DurationUs = own(|row| Value::U64(row.window_ns / 1000)), show Show::Wide;
}

/// Samples with the same call chain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CallChain<'b> {
    /// The group.
    pub group: CodeGroup,
    /// The context in which the kernel was running.
    pub context: CodeContext,
    /// Number of samples on all CPUs.
    pub samples: u64,
    /// CPU time in thousandths of a percent of one CPU.
    pub percent: u64,
    /// The CPU on which it was sampled most often.
    pub cpu: u32,
    /// The innermost function.
    pub innermost: &'b [u8],
    /// The function that determined the group; empty if no function did.
    pub function: &'b [u8],
    /// The functions, innermost first, joined by commas.
    pub stack: &'b [u8],
}

table! {
    /// The table of call chains of network code in the kernel (`doctor softirq --stack`).
    pub enum CallChains of CallChain = "doctor softirq --stack";

    /// Samples with this call chain, on all CPUs.
    samples: Count = own(|row| Value::U64(row.samples)), show Show::Default;
    /// Time in percent of one CPU.
    percent: Thousandths = own(|row| Value::Thousandths(row.percent)), show Show::Default;
    /// The part of the kernel, by the innermost function that belongs to one.
    group: Name(CodeGroup::NAMES) = own(|row| Value::Name(row.group.name())), show Show::Default;
    /// softirq: packets that arrive; process: a call of a program, or a thread of the kernel.
    context: Name(CodeContext::NAMES) = own(|row| Value::Name(row.context.name())), show Show::Default;
    /// The function in which the CPU was.
    innermost: Text = own(|row| Value::nonempty(row.innermost)), show Show::Default;
    /// The function that decided the group.
    function: Text = own(|row| Value::nonempty(row.function)), show Show::Wide;
    /// The CPU on which this call chain was met most often.
    cpu: Id = own(|row| Value::U64(row.cpu.into())), show Show::Wide;
    /// The functions, the innermost first.
    stack: Words(&[]) = own(|row| if row.stack.is_empty() { Value::Null } else { Value::Words(row.stack) }),
        show Show::Default;
}
