//! The writer of sockets: headings, lines, and the order of the protocols.

use super::address::put_endpoint;
use super::options::{Names, SocketLayout};
use super::routes::{GROUPS_HEADING, put_membership};
use super::timer::put_timer;
use super::unix;
use crate::pieces::{Left, Outside, Right, put, when, written};
use record::rows::{Membership, Socket};
use record::{Key, LookupId, Lookups, Owner, Proto, SinkError, Value};
use sinks::Out;
use std::io::Write;

/// Lists sockets like netstat does: tcp, tcp6, udp, udp6, udpl, udpl6, raw, raw6, unix, each in order of arrival. Rows
/// of other protocols are left out, because netstat has no tables for them.
///
/// Rows may arrive in any order: TCP over IPv4 streams, the others are formatted and held until [`Writer::end`].
pub struct Writer<'n, W> {
    out: Out<W>,
    options: SocketLayout,
    names: Names<'n>,
    /// Lines of tcp6, udp, udp6, udpl, udpl6, raw, raw6, unix.
    held: [Vec<u8>; 8],
    /// Lines of groups, which are printed between them.
    groups: Vec<u8>,
}

/// Columns of "PID/Program name".
const PROGRAM_WIDTH: usize = 20;

impl<'n, W: Write> Writer<'n, W> {
    /// Writes to `out`.
    pub fn new(out: Out<W>, options: SocketLayout, names: Names<'n>) -> Writer<'n, W> {
        Writer { out, options, names, held: Default::default(), groups: Vec::new() }
    }

    /// Writes the headings of the first block; call it again for each round of `-c`.
    pub fn begin(&mut self) -> Result<(), SinkError> {
        if !self.options.internet {
            return Ok(());
        }
        let (options, out) = (&self.options, self.out.buf());
        put!(out, "Active Internet connections ", options.show.words());
        put!(out, "\nProto Recv-Q Send-Q Local Address           Foreign Address         State      ");
        put!(out, when(options.extended, " User       Inode     "), when(options.programs, " PID/Program name    "));
        put!(out, when(options.timers, " Timer"), "\n");
        self.out.line_done()
    }

    /// Writes a socket. Needs no allocation once the buffers have their size.
    pub fn row(&mut self, row: &Socket<'_>, lookups: &Lookups<'_>) -> Result<(), SinkError> {
        let six = row.family == AF_INET6;
        let [tcp6, udp, udp6, udpl, udpl6, raw, raw6, unix] = &mut self.held;
        let (to, name): (_, &[u8]) = match (row.proto, six) {
            (Proto::Tcp, false) => (self.out.buf(), b"tcp  "),
            (Proto::Tcp, true) => (tcp6, b"tcp6 "),
            (Proto::Udp, false) => (udp, b"udp  "),
            (Proto::Udp, true) => (udp6, b"udp6 "),
            (Proto::UdpLite, false) => (udpl, b"udpl "),
            (Proto::UdpLite, true) => (udpl6, b"udpl6"),
            (Proto::Raw, false) => (raw, b"raw  "),
            (Proto::Raw, true) => (raw6, b"raw6 "),
            // netstat reads no table of these protocols.
            (Proto::Mptcp | Proto::Packet | Proto::Netlink | Proto::Sctp | Proto::Dccp, _)
            | (Proto::Vsock | Proto::Tipc | Proto::Xdp, _) => return Ok(()),
            (Proto::Unix, _) => {
                put_unix(unix, row, &self.options, &self.names, lookups);
                return Ok(());
            }
        };
        to.extend_from_slice(name);
        put_internet(to, row, &self.options, &self.names, lookups);
        self.out.line_done()
    }

    /// Writes a membership in a multicast group.
    pub fn membership(&mut self, row: &Membership<'_>, lookups: &Lookups<'_>) {
        let options = &self.options;
        put_membership(&mut self.groups, row, options.numeric_hosts, options.bug_compatible, lookups);
    }

    /// Writes everything held back. Another round may begin.
    pub fn end(&mut self) -> Result<(), SinkError> {
        let [internet @ .., unix] = &mut self.held;
        for held in internet {
            put_held(&mut self.out, held)?;
        }
        if self.options.groups {
            self.out.buf().extend_from_slice(GROUPS_HEADING);
            put_held(&mut self.out, &mut self.groups)?;
        }
        if self.options.unix {
            put_unix_heading(self.out.buf(), &self.options);
            put_held(&mut self.out, unix)?;
        }
        self.out.flush()
    }

    /// Returns the output.
    pub fn into_out(self) -> Out<W> {
        self.out
    }
}

const AF_INET6: u8 = 10;

fn put_held<W: Write>(out: &mut Out<W>, held: &mut Vec<u8>) -> Result<(), SinkError> {
    // Write in pieces, so that the buffer does not grow to the size of the table.
    for piece in held.chunks(16 << 10) {
        out.buf().extend_from_slice(piece);
        out.line_done()?;
    }
    held.clear();
    Ok(())
}

/// Appends everything after the protocol's name.
fn put_internet(out: &mut Vec<u8>, row: &Socket<'_>, options: &SocketLayout, names: &Names<'_>, lookups: &Lookups<'_>) {
    // For a listener, the kernel's file has 0 where inet_diag has the limit of its backlog.
    let sent = if row.is_listener() { 0 } else { row.wqueue.unwrap_or(0) };
    put!(out, " ", Right(u64::from(row.rqueue), 6), " ", Right(u64::from(sent), 6));
    put_endpoint(out, row.local, row.proto, options, names, lookups);
    put_endpoint(out, row.peer, row.proto, options, names, lookups);
    put!(out, " ", Left(state_word(row), 11));
    if options.extended {
        put!(out, " ", Left(user(row.uid.unwrap_or(0), options, lookups), 10), " ", Left(row.inode, 10));
    }
    put_program(out, row, options, names, lookups);
    if options.timers {
        put_timer(out, row);
    }
    put!(out, "\n");
}

fn state_word(row: &Socket<'_>) -> &'static str {
    #[rustfmt::skip]
    const TCP: [&str; 13] = [
        "", "ESTABLISHED", "SYN_SENT", "SYN_RECV", "FIN_WAIT1", "FIN_WAIT2", "TIME_WAIT", "CLOSE", "CLOSE_WAIT",
        "LAST_ACK", "LISTEN", "CLOSING", "SYN_RECV",
    ];
    // netstat prints the state of a raw socket as a number.
    const RAW: [&str; 12] = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11"];
    match (row.proto, row.state.0) {
        (Proto::Raw, n) => RAW.get(usize::from(n)).copied().unwrap_or("12"),
        (Proto::Tcp, n) => TCP.get(usize::from(n)).copied().unwrap_or("UNKNOWN"),
        (_, 1) => "ESTABLISHED",
        (_, 7) => "",
        _ => "UNKNOWN",
    }
}

fn user<'l>(uid: u32, options: &SocketLayout, lookups: &'l Lookups<'_>) -> Result<Outside<'l>, i32> {
    let name = if options.numeric_users { Value::Null } else { lookups.value(LookupId::Users, Key::Id(uid.into())) };
    match name {
        Value::Bytes(name) => Ok(Outside(name, options.bug_compatible)),
        // netstat prints the number as signed.
        _ => Err(uid as i32),
    }
}

/// Appends `PID/NAME` of the owner with the lowest PID, cut to 19 bytes; `-` without a known owner. netstat itself
/// finds owners by their descriptors only.
fn put_program(out: &mut Vec<u8>, row: &Socket<'_>, options: &SocketLayout, names: &Names<'_>, lookups: &Lookups<'_>) {
    if !options.programs {
        return;
    }
    let key = if row.inode == 0 { Key::None } else { Key::Id(row.inode.into()) };
    let is_found = |owner: &&Owner| !options.bug_compatible || owner.descriptor().is_some();
    let owner = lookups.owners(key).iter().filter(is_found).min_by_key(|owner| owner.pid);
    let write = |out: &mut Vec<u8>| match owner {
        None => put!(out, "-"),
        Some(owner) => {
            let start = out.len();
            put!(out, owner.pid, "/");
            put_program_name(out, owner, options, names);
            out.truncate(start + PROGRAM_WIDTH - 1);
        }
    };
    put!(out, " ", Left(written(write), PROGRAM_WIDTH));
}

/// Appends the part after the last slash of the command line's first word, if the word begins with a slash; the
/// process's name if the command line cannot be read.
fn put_program_name(out: &mut Vec<u8>, owner: &Owner, options: &SocketLayout, names: &Names<'_>) {
    let start = out.len();
    if !(names.argv0)(owner.pid, out) {
        out.truncate(start);
        return put!(out, Outside(owner.process.as_bytes(), options.bug_compatible));
    }
    let word = out.get(start..).unwrap_or_default();
    let slash = if word.starts_with(b"/") { word.iter().rposition(|&b| b == b'/') } else { None };
    if let Some(slash) = slash {
        out.drain(start..=start + slash);
    }
    // At most 17 characters of the name are visible, each of at most four bytes.
    let mut seen = [0u8; 80];
    let name = out.get(start..).unwrap_or_default();
    let length = name.len().min(seen.len());
    seen.iter_mut().zip(name).for_each(|(to, &from)| *to = from);
    out.truncate(start);
    put!(out, Outside(seen.get(..length).unwrap_or_default(), options.bug_compatible));
}

fn put_unix(out: &mut Vec<u8>, row: &Socket<'_>, options: &SocketLayout, names: &Names<'_>, lookups: &Lookups<'_>) {
    let Some(part) = row.unix else { return };
    unix::put_front(out, row, &part);
    put_program(out, row, options, names, lookups);
    put!(out, " ");
    unix::put_path(out, part.path.unwrap_or_default(), options);
    put!(out, "\n");
}

fn put_unix_heading(out: &mut Vec<u8>, options: &SocketLayout) {
    put!(out, "Active UNIX domain sockets ", options.show.words());
    put!(out, "\nProto RefCnt Flags       Type       State         I-Node  ");
    put!(out, when(options.programs, " PID/Program name    "), " Path\n");
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::Show;
    use super::*;
    use record::rows::{Endpoint, TcpInfo, UnixPart, UnixType};
    use record::{Addr, Comm, Lookup, State, Timer};

    const PLAIN: SocketLayout = SocketLayout::PLAIN;

    /// Two processes own inode 1153222, one owns inode 77; uid 1000 is `daemon`; 192.0.2.1 has a long name.
    struct Known([Owner; 3]);

    impl Lookup for Known {
        fn value(&self, key: Key) -> Value<'_> {
            match key {
                Key::Id(1000) => Value::Bytes(b"daemon"),
                Key::Addr(Addr::V4([192, 0, 2, 1])) => Value::Bytes(b"a-long-name.example.org"),
                Key::Addr(Addr::V4([127, 0, 0, 1])) => Value::Bytes(b"local\x1bhost"),
                _ => Value::Null,
            }
        }
        fn owners(&self, key: Key) -> &[Owner] {
            match key {
                Key::Id(1_153_222) => &self.0[..2],
                Key::Id(77) => &self.0[2..],
                _ => &[],
            }
        }
    }

    fn write(options: SocketLayout, rows: &[Socket<'_>]) -> String {
        let owner = |pid, name: &[u8]| Owner { pid, fd: 3, process: Comm::new(name), started: 0 };
        let known = Known([owner(27875, b"second"), owner(10425, b"first"), owner(9, b"no\ncmdline")]);
        let lookups = Lookups::empty()
            .with_lookup(LookupId::Owners, &known)
            .with_lookup(LookupId::Users, &known)
            .with_lookup(LookupId::Hosts, &known);
        let names = Names {
            service: &|_, port| (port == 443).then_some(b"https".as_slice()),
            argv0: &|pid, out| {
                let word: &[u8] = if pid == 10425 { b"/usr/bin/a b/sshd: longer than fits" } else { b"" };
                out.extend_from_slice(word);
                !word.is_empty()
            },
        };
        let mut writer = Writer::new(Out::new(Vec::new()), options, names);
        writer.begin().unwrap();
        for row in rows {
            writer.row(row, &lookups).unwrap();
        }
        writer.end().unwrap();
        String::from_utf8(writer.into_out().into_inner()).unwrap()
    }

    fn end(addr: &str, port: u16) -> Endpoint {
        Endpoint { addr: addr.parse().unwrap(), port }
    }

    fn tcp(local: Endpoint, peer: Endpoint, state: State) -> Socket<'static> {
        let family = if matches!(local.addr, Addr::V6(_)) { 10 } else { 2 };
        Socket { family, state, local, peer, wqueue: Some(0), ..Socket::EMPTY }
    }

    #[test]
    fn protocols_come_in_order_whatever_order_they_have() {
        let udp = |row| Socket { proto: Proto::Udp, ..row };
        let long = end("2001:db8:2:0:bbbb:cccc:dddd:eeee", 443);
        let rows = [
            udp(tcp(end("::", 5301), end("::", 0), State::CLOSE)),
            udp(tcp(end("127.0.0.1", 53), end("127.0.0.1", 5353), State::ESTABLISHED)),
            tcp(end("2001:db8:1::10", 54190), long, State::ESTABLISHED),
            tcp(end("::ffff:192.0.2.7", 80), end("::ffff:192.0.2.8", 1), State::TIME_WAIT),
            Socket { wqueue: Some(128), rqueue: 2, ..tcp(end("0.0.0.0", 22), end("0.0.0.0", 0), State::LISTEN) },
            Socket { rqueue: 1_234_567, ..tcp(end("192.0.2.10", 43880), end("198.51.100.20", 80), State::FIN_WAIT2) },
        ];
        assert_eq!(
            write(PLAIN, &rows),
            concat!(
                "Active Internet connections (servers and established)\n",
                "Proto Recv-Q Send-Q Local Address           Foreign Address         State      \n",
                "tcp        2      0 0.0.0.0:22              0.0.0.0:*               LISTEN     \n",
                "tcp   1234567      0 192.0.2.10:43880        198.51.100.20:80        FIN_WAIT2  \n",
                "tcp6       0      0 2001:db8:1::10:54190    2001:db8:2:0:bbbb:cccc:dddd:eeee:443 ESTABLISHED\n",
                "tcp6       0      0 192.0.2.7:80            192.0.2.8:1             TIME_WAIT  \n",
                "udp        0      0 127.0.0.1:53            127.0.0.1:5353          ESTABLISHED\n",
                "udp6       0      0 :::5301                 :::*                               \n",
            )
        );
    }

    /// By default, addresses are not cut without a mark like in netstat. The old bytes appear on request, unless `-W`
    /// is given.
    #[test]
    fn long_addresses_are_cut_only_when_the_old_bytes_are_wanted() {
        let rows = [tcp(end("2001:db8:2::20", 443), end("2001:db8:2:0:bbbb:cccc:dddd:eeee", 443), State::CLOSE_WAIT)];
        let whole = "tcp6       0      0 2001:db8:2::20:443      2001:db8:2:0:bbbb:cccc:dddd:eeee:443 CLOSE_WAIT \n";
        let cut = "tcp6       0      0 2001:db8:2::20:443      2001:db8:2:0:bbbb:c:443 CLOSE_WAIT \n";
        let old = SocketLayout { bug_compatible: true, ..PLAIN };
        for (options, line) in [(PLAIN, whole), (old, cut), (SocketLayout { wide: true, ..old }, whole)] {
            assert_eq!(write(options, &rows).lines().nth(2).unwrap(), line.trim_end_matches('\n'));
        }
    }

    #[test]
    fn names_of_hosts_ports_and_users() {
        let options = SocketLayout {
            numeric_hosts: false,
            numeric_ports: false,
            numeric_users: false,
            extended: true,
            show: Show::Connected,
            ..PLAIN
        };
        let rows = [
            Socket { uid: Some(1000), ..tcp(end("192.0.2.1", 443), end("127.0.0.1", 9999), State::ESTABLISHED) },
            Socket { uid: Some(u32::MAX - 1), ..tcp(end("::", 443), end("::", 0), State::LISTEN) },
            tcp(end("0.0.0.0", 1), end("198.51.100.1", 443), State::SYN_SENT),
        ];
        let want = concat!(
            "Active Internet connections (w/o servers)\n",
            "Proto Recv-Q Send-Q Local Address           Foreign Address         State       User       Inode     \n",
            "tcp        0      0 a-long-name.example.org:https local?host:9999         ESTABLISHED daemon     \
                0         \n",
            "tcp        0      0 0.0.0.0:1               198.51.100.1:https      SYN_SENT    0          0         \n",
            "tcp6       0      0 [::]:https              [::]:*                  LISTEN      -2         0         \n",
        );
        assert_eq!(write(options, &rows), want);
        let old = write(SocketLayout { bug_compatible: true, ..options }, &rows);
        assert!(old.contains(" a-long-name.examp:https local\x1bhost:9999 "), "{old}");
    }

    #[test]
    fn programs_and_timers() {
        let mut info = [0u8; 104];
        (info[2], info[3]) = (4, 2);
        let row = |inode, timer, timer_ms, retrans| Socket {
            inode,
            timer: Timer(timer),
            timer_ms,
            retrans,
            ..tcp(end("192.0.2.10", 1), end("198.51.100.20", 2), State::ESTABLISHED)
        };
        let rows = [
            row(1_153_222, 2, 7_196_349, 1),
            row(77, 0, 500, 3),
            row(0, 3, 56_340, 0),
            row(5, 1, 209, 6),
            Socket { tcp_info: Some(TcpInfo::new(&info)), ..row(5, 4, 12_000, 2) },
            row(5, 9, 10, 2),
        ];
        let text = write(SocketLayout { programs: true, timers: true, ..PLAIN }, &rows);
        let mut lines = text.lines().skip(1);
        let title = lines.next().unwrap();
        assert!(title.ends_with(" State       PID/Program name     Timer"), "{title}");
        let ends: Vec<&str> = lines.map(|line| &line[80..]).collect();
        assert_eq!(
            ends,
            [
                "10425/sshd: longer   keepalive (7196.34/0/1)",
                "9/no?cmdline         off (0.00/0/0)",
                "-                    timewait (56.34/0/0)",
                "-                    on (0.20/6/0)",
                "-                    probe (12.00/4/2)",
                "-                    unkn-9 (0.01/0/0)",
            ]
        );
    }

    fn unix_row(part: UnixPart<'_>, state: State, inode: u32) -> Socket<'_> {
        Socket { proto: Proto::Unix, family: 1, state, inode, unix: Some(part), ..Socket::EMPTY }
    }

    #[test]
    fn unix_sockets_have_their_own_block() {
        let part = |kind, path| UnixPart {
            kind: UnixType(kind),
            path,
            peer_inode: None,
            vfs: None,
            refs: Some(2),
            flags: Some(0),
            icons: None,
        };
        let rows = [
            unix_row(part(1, Some(b"/run/x/sock1")), State::LISTEN, 1_164_065),
            unix_row(part(5, None), State::ESTABLISHED, 1_164_069),
            unix_row(part(2, Some(b"\0ab\0c d\x1b[31m")), State::CLOSE, 77),
            unix_row(part(1, Some(b"/tmp/a b\tc")), State::ESTABLISHED, 0),
            unix_row(UnixPart { refs: None, ..part(9, None) }, State::CLOSE, 0),
        ];
        let options = SocketLayout { internet: false, unix: true, show: Show::Listening, ..PLAIN };
        assert_eq!(
            write(options, &rows),
            concat!(
                "Active UNIX domain sockets (only servers)\n",
                "Proto RefCnt Flags       Type       State         I-Node   Path\n",
                "unix  2      [ ACC ]     STREAM     LISTENING     1164065  /run/x/sock1\n",
                "unix  2      [ ]         SEQPACKET  CONNECTED     1164069  \n",
                "unix  2      [ ]         DGRAM                    77       @ab@c d?[31m\n",
                "unix  2      [ ]         STREAM     CONNECTING    0        /tmp/a b?c\n",
                "unix  -      [ ]         UNKNOWN    DISCONNECTING 0        \n",
            )
        );
        let old = write(SocketLayout { bug_compatible: true, programs: true, ..options }, &rows);
        let lines: Vec<&str> = old.lines().skip(1).collect();
        assert_eq!(lines[0], "Proto RefCnt Flags       Type       State         I-Node   PID/Program name     Path");
        assert_eq!(lines[3], "unix  2      [ ]         DGRAM                    77       9/no");
        assert!(old.contains("cmdline         @ab@c\n"), "{old}");
        assert!(old.contains(" -                    /tmp/a\n"), "{old}");
    }

    #[test]
    fn what_listens() {
        let listener = tcp(end("0.0.0.0", 22), end("0.0.0.0", 0), State::LISTEN);
        let open = tcp(end("192.0.2.1", 22), end("192.0.2.2", 4), State::TIME_WAIT);
        let udp = Socket { proto: Proto::Udp, ..listener };
        let talking = Socket { proto: Proto::Udp, ..open };
        for (row, listens) in [(&listener, true), (&open, false), (&udp, true), (&talking, false)] {
            assert!(Show::All.wants(row));
            assert_eq!((Show::Listening.wants(row), Show::Connected.wants(row)), (listens, !listens));
        }
        assert!(!Show::All.wants(&Socket { state: State::BOUND_INACTIVE, ..listener }));
    }
}
