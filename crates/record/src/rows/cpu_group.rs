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
    pub fn description(self) -> &'static str {
        match self {
            CodeGroup::Conntrack => "connection tracking: looks up, creates and ages entries, reassembles fragments",
            CodeGroup::Nat => "address translation: rewrites addresses and ports",
            CodeGroup::Rules => "nftables and iptables rules, and the path from one hook to the next",
            CodeGroup::Bridge => "forwarding by bridges",
            CodeGroup::Routing => "lookup of routes and neighbours",
            CodeGroup::Ip => "processing of IP, ICMP and IPsec",
            CodeGroup::Tcp => "TCP itself",
            CodeGroup::Udp => "UDP itself",
            CodeGroup::Socket => "sockets: queues, wake-ups, system calls of programs",
            CodeGroup::Tap => "copies of packets for capturing programs",
            CodeGroup::Bpf => "BPF programs, XDP included",
            CodeGroup::Qdisc => "queueing disciplines and tc",
            CodeGroup::Driver => "interface drivers, including virtual interfaces",
            CodeGroup::Core => "receive and send path between drivers and protocols",
            CodeGroup::Buffers => "allocating and freeing packet buffers",
            CodeGroup::Copy => "copying packet data",
            CodeGroup::Setup => "netlink requests of programs; creation and removal of namespaces and interfaces",
            CodeGroup::Softirq => "other softirqs: timers, RCU, disks",
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

    /// Part of the kernel, determined by the innermost function in the call chain that belongs to a known part.
    group: Name(CodeGroup::NAMES) = own(|row| Value::Name(row.group.name())), show Show::Default;
    /// CPU number; null for all CPUs together.
    cpu: Id = own(|row| Value::number(row.cpu)), show Show::Wide;
    /// CPU time in percent of one CPU; two busy CPUs are 200.
    percent: Thousandths = own(|row| Value::Thousandths(row.percent)), show Show::Default;
    /// Part of `percent` spent in softirqs (arriving packets). The rest is spent in system calls of programs.
    softirq_percent: Thousandths = own(|row| row.softirq_percent.map_or(Value::Null, Value::Thousandths)),
        show Show::Default;
    /// Samples.
    samples: Count = own(|row| Value::number(row.samples)), show Show::Default;
    /// CPU that spends the most time on it.
    busiest_cpu: Id = own(|row| Value::number(row.busiest.map(|(cpu, _)| cpu))), show Show::Default;
    /// Time that this CPU spends on it, in percent of that CPU.
    busiest_percent: Thousandths = own(|row| row.busiest.map_or(Value::Null, |(_, part)| Value::Thousandths(part))),
        show Show::Default;
    /// Function of the group that occurs most often in the samples, including the time of the functions it calls.
    function: Text = own(|row| Value::nonempty(row.function)), show Show::Default;
    /// Samples with that function, in percent of the group's samples.
    function_percent: Thousandths = own(|row| row.function_percent.map_or(Value::Null, Value::Thousandths)),
        show Show::Default;
    /// Description of the group.
    about: Text = own(|row| Value::nonempty(row.group.description().as_bytes())), show Show::Wide;
    /// Time during which samples were taken.
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
    /// CPU time in percent of one CPU.
    percent: Thousandths = own(|row| Value::Thousandths(row.percent)), show Show::Default;
    /// Part of the kernel, determined by the innermost function that belongs to a known part.
    group: Name(CodeGroup::NAMES) = own(|row| Value::Name(row.group.name())), show Show::Default;
    /// Context: softirq (arriving packets) or process (a system call, or a kernel thread).
    context: Name(CodeContext::NAMES) = own(|row| Value::Name(row.context.name())), show Show::Default;
    /// Function that the CPU was executing.
    innermost: Text = own(|row| Value::nonempty(row.innermost)), show Show::Default;
    /// Function that determined the group.
    function: Text = own(|row| Value::nonempty(row.function)), show Show::Wide;
    /// CPU on which this call chain was sampled most often.
    cpu: Id = own(|row| Value::U64(row.cpu.into())), show Show::Wide;
    /// Call chain, innermost function first.
    stack: Words(&[]) = own(|row| if row.stack.is_empty() { Value::Null } else { Value::Words(row.stack) }),
        show Show::Default;
}
