//! `-h` and `-V`.

use super::counters::out;
use super::options::switch;
use super::parse::Line;
use super::protocol_names;
use super::stop::{Stop, VERSION};
use lookups::session::Session;

/// Prints the version that this face reproduces.
pub(super) fn version() -> Result<(), Stop> {
    out(format!("conntrack v{VERSION} (conntrack-tools)\n").as_bytes())
}

/// Prints the usage; with `-p` also the protocol's part.
pub(super) fn print(session: &Session, line: &Line) -> Result<(), Stop> {
    let mut text = format!("Command line interface for the connection tracking system. Version {VERSION}\n{USAGE}");
    if line.bug_compatible {
        // 1.4.8 fixed the typo.
        text = text.replace("Source address from reply", "Source addres from reply");
    }
    if line.has(switch::PROTO) {
        text += &match line.protocol {
            Some(protocol) => protocol.help(),
            None => {
                let number = line.want.proto.unwrap_or(0);
                let name = protocol_names::name(session.host(), number).unwrap_or_else(|| "unknown".to_owned());
                format!("Proto `{name}' help:\n  no options (unsupported)\n")
            }
        };
    }
    out(text.as_bytes())
}

const USAGE: &str = "\
Usage: conntrack [commands] [options]

Commands:
  -L [table] [options]\t\tList conntrack or expectation table
  -G [table] parameters\t\tGet conntrack or expectation
  -D [table] parameters\t\tDelete conntrack or expectation
  -I [table] parameters\t\tCreate a conntrack or expectation
  -U [table] parameters\t\tUpdate a conntrack
  -E [table] [options]\t\tShow events
  -F [table]\t\t\tFlush table
  -C [table]\t\t\tShow counter
  -S\t\t\t\tShow statistics

Tables: conntrack, expect, dying, unconfirmed

Conntrack parameters and options:
  -n, --src-nat ip\t\t\tsource NAT ip
  -g, --dst-nat ip\t\t\tdestination NAT ip
  -j, --any-nat ip\t\t\tsource or destination NAT ip
  -m, --mark mark\t\t\tSet mark
  -c, --secmark secmark\t\t\tSet selinux secmark
  -e, --event-mask eventmask\t\tEvent mask, eg. NEW,DESTROY
  -z, --zero \t\t\t\tZero counters while listing
  -o, --output type[,...]\t\tOutput format, eg. xml
  -l, --label label[,...]\t\tconntrack labels

Expectation parameters and options:
  --tuple-src ip\tSource address in expect tuple
  --tuple-dst ip\tDestination address in expect tuple

Updating parameters and options:
  --label-add label\tAdd label
  --label-del label\tDelete label

Common parameters and options:
  -s, --src, --orig-src ip\t\tSource address from original direction
  -d, --dst, --orig-dst ip\t\tDestination address from original direction
  -r, --reply-src ip\t\tSource address from reply direction
  -q, --reply-dst ip\t\tDestination address from reply direction
  -p, --protonum proto\t\tLayer 4 Protocol, eg. 'tcp'
  -f, --family proto\t\tLayer 3 Protocol, eg. 'ipv6'
  -t, --timeout timeout\t\tSet timeout
  -u, --status status\t\tSet status, eg. ASSURED
  -w, --zone value\t\tSet conntrack zone
  --orig-zone value\t\tSet zone for original direction
  --reply-zone value\t\tSet zone for reply direction
  -b, --buffer-size\t\tNetlink socket buffer size
  --mask-src ip\t\t\tSource mask address
  --mask-dst ip\t\t\tDestination mask address

";
