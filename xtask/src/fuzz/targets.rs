//! The list of targets. Adding one: a line here and one in fuzz/Cargo.toml.

/// A parser of outside bytes.
pub(crate) struct Target {
    /// Name, also of its folder in fuzz/seeds and of its binary in fuzz/.
    pub(crate) name: &'static str,
    /// Takes any bytes and must neither panic nor hang.
    pub(crate) run: fn(&[u8]),
    /// Extensions of the files below fixtures/ that are of its kind.
    pub(crate) fixtures: &'static [&'static str],
    /// Small inputs that lead into every branch.
    pub(crate) examples: &'static [&'static [u8]],
    /// Inputs that are made anew, because they differ from machine to machine.
    pub(crate) made: fn() -> Vec<Vec<u8>>,
}

impl Target {
    const fn new(
        name: &'static str,
        run: fn(&[u8]),
        fixtures: &'static [&'static str],
        examples: &'static [&'static [u8]],
    ) -> Target {
        Target { name, run, fixtures, examples, made: Vec::new }
    }
}

/// All of them.
pub(crate) const ALL: &[Target] = &[
    Target::new("netlink_attrs", |data| _ = netlink::fuzz_attrs(data), &["nl"], ATTRS),
    Target::new("netlink_dump", |data| netlink::fuzz_dump(data, 4096), &["nl"], MESSAGES),
    Target::new("sock_diag", sockets::fuzz_sock_diag, &["nl"], SOCK_DIAG),
    Target::new("proc_line", sockets::fuzz_proc_line, &["proc"], PROC_LINES),
    Target { made: recordings, ..Target::new("tape", tape, &["tape"], TAPES) },
    Target::new("dns", packet::dns::fuzz_dns, &[], DNS),
    Target::new("filter", engine::filter::fuzz_filter, &[], FILTERS),
];

/// Two attributes, the second one nested; one that claims more than is there; the length 0.
const ATTRS: &[&[u8]] = &[
    &[8, 0, 1, 0, 1, 2, 3, 4, 12, 0, 2, 0x80, 5, 0, 1, 0, 9, 0, 0, 0],
    &[40, 0, 1, 0, 1, 2, 3, 4],
    &[0, 0, 1, 0, 1, 2, 3, 4],
];

/// A message with the multi flag and the end of a dump; an error with errno 1.
const MESSAGES: &[&[u8]] = &[
    &[
        20, 0, 0, 0, 20, 0, 2, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 20, 0, 0, 0, 3, 0, 2, 0, 1, 0, 0, 0, 0, 0, 0, 0,
        0, 0, 0, 0,
    ],
    &[
        36, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255, 20, 0, 0, 0, 20, 0, 1, 3, 1, 0, 0, 0, 0,
        0, 0, 0,
    ],
];

/// A question for one PTR name and its answer, the name compressed; a name that points to itself.
const DNS: &[&[u8]] = &[
    b"\x12\x34\x81\x80\0\x01\0\x01\0\0\0\0\x011\x010\x010\x03127\x07in-addr\x04arpa\0\0\x0c\0\x01\xc0\x0c\0\x0c\0\x01\0\0\0\x3c\0\x0b\x09localhost\0",
    b"\x12\x34\x81\x80\0\x01\0\x01\0\0\0\0\xc0\x0c\0\x0c\0\x01\xc0\x0c\0\x0c\0\x01\0\0\0\x3c\0\x02\xc0\x0c",
];

/// Every production of the filter language.
const FILTERS: &[&[u8]] = &[
    b"state = established and peer in 10.0.0.0/8 and rtt > 20ms and process ~ \"nginx\"",
    b"not (proto=tcp or proto = udp) and local_port in (443, 8000-8999)",
    b"peer = 10.1.2.3:443 or local = [2001:db8::1]:80 or send_q >= 1MiB",
    b"uid != 0 and iface = \"eth0\" and mark = 0x7 and process = null",
];

/// An inet_diag_msg: TCP, listening on port 80, two attributes behind it. A unix_diag_msg with a name.
const SOCK_DIAG: &[&[u8]] = &[
    &[
        2, 10, 0, 0, 0, 80, 0, 0, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 128, 0, 0, 0, 0, 0, 0, 0, 57, 48, 0, 0,
        5, 0, 8, 0, 0, 0, 0, 0, 10, 0, 4, 0, b'c', b'u', b'b', b'i', b'c', 0, 0, 0,
    ],
    &[1, 1, 10, 0, 57, 48, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, b'/', b'a', b'/', b'b'],
    // packet_diag_msg with a fanout group and a filter of one instruction; netlink_diag_msg with groups 1 and 5.
    &[17, 3, 3, 0, 57, 48, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 8, 0, 4, 0, 7, 0, 1, 0, 12, 0, 7, 0, 6, 0, 0, 0, 255, 0, 0, 0],
    &[
        16, 3, 0, 0, 57, 48, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 57, 48, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 12, 0, 1, 0, 17, 0, 0,
        0, 0, 0, 0, 0,
    ],
];

/// A line of each file, the column of the sl number overflown in one.
const PROC_LINES: &[&[u8]] = &[
    b"   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 31337 1 0000000000000000 100 0 0 10 0\n",
    b"10000: 00000000000000000000000001000000:0050 00000000000000000000000001000000:C350 01 00000010:00000020 02:000AF3C8 00000001  1000        0 31338 2 0000000000000000 20 4 24 10 -1\n",
    b"  12: 00000000:0044 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 31339 2 0000000000000000 0\n",
    b"0000000011111111 3      3    0003   2     1 0      0      12345 \n",
    b"0000000022222222 0   1234       00000011 0        0        0     2        0        12346   \n",
    b"0000000000000000: 00000002 00000000 00010000 0001 01 31340 /run/x/sock1\n0000000000000000: 00000003 00000000 00000000 0002 03 31341 @abstract\n",
];

/// Magic and version, then nothing: what a mutation needs to get past the first check.
const TAPES: &[&[u8]] = &[b"NETWREN-TAPE\x01\0"];

/// A whole recording of three small files.
fn recordings() -> Vec<Vec<u8>> {
    let path = std::env::temp_dir().join(format!("netwren-fuzz-seed-{}", std::process::id()));
    if let Ok(host) = sys::Host::live().recording(&path) {
        let mut content = Vec::new();
        for key in ["/proc/net/tcp", "/etc/hostname", "/no/such/file"] {
            _ = host.read_file(key, &mut content);
        }
        _ = host.finish();
    }
    let recorded = std::fs::read(&path);
    _ = std::fs::remove_file(&path);
    recorded.into_iter().collect()
}

/// Bytes as a recording: opened, asked for what it may hold, closed.
fn tape(data: &[u8]) {
    let path = std::env::temp_dir().join(format!("netwren-fuzz-tape-{}", std::process::id()));
    if std::fs::write(&path, data).is_err() {
        return;
    }
    if let Ok(host) = sys::Host::replaying(&path) {
        let mut content = Vec::new();
        for key in ["/proc/net/tcp", "/etc/hostname", "/no/such/file"] {
            _ = host.read_file(key, &mut content);
        }
        _ = (host.integrity(), host.notes(), host.recorded(), host.kernel(), host.begin_round());
        _ = host.finish();
    }
    _ = std::fs::remove_file(&path);
}
