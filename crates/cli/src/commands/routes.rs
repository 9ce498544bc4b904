//! `netwren routes [FILTER]`: the rows of the routing tables.

use super::netns_command::NetnsCommand;
use crate::command::Command;
use record::rows::Routes;

/// The registry's entry.
pub(crate) static COMMAND: Command = Command {
    about: "IPv4 and IPv6 routes of all routing tables, one row per next hop",
    examples: EXAMPLES,
    ..NetnsCommand::<Routes>::COMMAND
};

const EXAMPLES: &str = "\
Examples:
  netwren routes 'table = main'
  netwren routes 'destination = default' --all-netns    all default routes of the host
  netwren routes 'dst_addr in 10.0.0.0/8 and protocol != kernel'
  netwren routes 'type in (blackhole, unreachable, prohibit)' -o json
  netwren routes --by iface,table,family --all-netns
  netwren routes --watch 'flags = linkdown or flags = dead'
";
