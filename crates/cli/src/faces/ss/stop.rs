//! What ends a run before it starts: help, version, mistakes.

use sinks::face::ss::Layout;

/// Text for one of the streams, and ss's exit code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stop {
    /// For stdout.
    pub(super) out: String,
    /// For stderr.
    pub(super) err: String,
    /// 0, 1 for a bad operand, 255 for a bad command line.
    pub(super) code: u8,
}

impl Stop {
    /// Prints it; returns the exit code.
    pub(super) fn tell(&self) -> u8 {
        // A closed stderr is nobody's loss.
        let _ = sys::Out::stderr().write_all(self.err.as_bytes());
        match sys::Out::stdout().write_all(self.out.as_bytes()) {
            Ok(()) | Err(sys::OutError::Closed) => self.code,
            Err(_) => 1,
        }
    }

    /// A mistake, without the usage.
    pub(super) fn fail(line: String, code: u8) -> Stop {
        Stop { out: String::new(), err: line + "\n", code }
    }

    /// A mistake in the command line: the usage follows.
    pub(super) fn usage(line: String) -> Stop {
        Stop { out: String::new(), err: format!("{line}\n{USAGE}"), code: 255 }
    }

    /// Something that ss has and this face has not.
    pub(super) fn later(what: &str, instead: &str) -> Stop {
        Stop::fail(format!("ss: {what}: comes later; native way: {instead}"), 255)
    }

    /// Nothing can be shown, which is no mistake.
    pub(super) fn nothing(what: &str) -> Stop {
        Stop::fail(format!("ss: {what} to show with such filter."), 0)
    }

    pub(super) fn help() -> Stop {
        Stop { out: USAGE.to_owned(), err: String::new(), code: 0 }
    }

    pub(super) fn version(layout: Layout) -> Stop {
        let iproute2 = if layout == Layout::V6_1 { "6.1.0" } else { "6.15.0" };
        let out = format!("ss utility, iproute2-{iproute2}, netwren {}\n", env!("CARGO_PKG_VERSION"));
        Stop { out, err: String::new(), code: 0 }
    }
}

/// The switches that this face has.
const USAGE: &str = "\
Usage: ss [OPTIONS] [state STATE | exclude STATE]... [EXPRESSION]
  what     -t --tcp  -u --udp  -w --raw  -M --mptcp  -x --unix  -0 --packet  -4 --ipv4  -6 --ipv6
           -f --family=inet|inet6|unix|link|netlink
           -A --query=TABLE[,TABLE]...  all inet tcp udp raw mptcp unix u_str u_dgr u_seq
           packet p_raw p_dgr netlink, !TABLE without
  states   -a --all  -l --listening  -B --bound-inactive
           established syn-sent syn-recv fin-wait-1 fin-wait-2 time-wait closed close-wait
           last-ack listening closing bound-inactive all connected synchronized bucket big
  columns  -p --processes  -T --threads  -Z --context  -z --contexts  -o --options
           -e --extended  -m --memory  -i --info  -b --bpf  --tos  --cgroup  --inet-sockopt  -Q --no-queues
  form     -n --numeric  -r --resolve  -H --no-header  -O --oneline
  do       -K --kill  -E --events
  files    -F --filter=FILE  more of the expression;  -D --diag=FILE  the kernel's messages about TCP
           sockets, read again where TCPDIAG_FILE names the file
  other    -s --summary  -N --net=NAMESPACE  -V --version  -h --help
  EXPRESSION  {dst|src} [=] HOST[:PORT]   {dport|sport} OP [HOST]:PORT   {dev|fwmark|cgroup} {=|!=} VALUE
              autobound   joined by and, or, not, ( ), from left to right
Right after ss: --bug-compatible. The same in netwren's own words: netwren sockets --help
";
