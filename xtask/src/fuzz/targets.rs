//! The list of fuzz targets. A new target needs a line here and one in fuzz/Cargo.toml.

/// A parser of untrusted bytes.
pub(crate) struct Target {
    /// The name of the target, of its folder in fuzz/seeds and of its binary in fuzz/.
    pub(crate) name: &'static str,
    /// The function to run; for any bytes it must neither panic nor hang.
    pub(crate) run: fn(&[u8]),
    /// Extensions of the files below fixtures/ that this parser reads.
    pub(crate) fixtures: &'static [&'static str],
    /// Small inputs that reach every branch.
    pub(crate) examples: &'static [&'static [u8]],
    /// Generated inputs, which differ from machine to machine.
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

/// The list of all targets.
pub(crate) const ALL: &[Target] = &[
    Target::new("netlink_attrs", |data| _ = netlink::fuzz_attrs(data), &["nl"], ATTRS),
    Target::new("netlink_dump", |data| netlink::fuzz_dump(data, 4096), &["nl"], MESSAGES),
    Target::new("sock_diag", sockets::fuzz_sock_diag, &["nl"], SOCK_DIAG),
    Target::new("ctnetlink", conntrack::fuzz_ctnetlink, &["nl"], CTNETLINK),
    Target::new("conntrack_line", conntrack::fuzz_conntrack_line, &["proc"], CONNTRACK_LINES),
    Target::new("conntrack_walk", conntrack::fuzz_conntrack_walk, &[], CONNTRACK_WALK),
    Target::new("walk_block", sockets::fuzz_walk_block, &[], WALK_ROWS),
    Target::new("proc_line", sockets::fuzz_proc_line, &["proc"], PROC_LINES),
    Target { made: recordings, ..Target::new("tape", tape, &["tape"], TAPES) },
    Target::new("dns", packet::dns::fuzz_dns, &[], DNS),
    Target::new("packet_headers", packet::fuzz_headers, &[], PACKETS),
    Target::new("frame", packet::fuzz_frame, &[], FRAMES),
    Target { made: packet_files, ..Target::new("packet_file", capture::fuzz_packet_file, &["pcap", "pcapng"], &[]) },
    Target::new("pcap_filter", pcapfilter::fuzz_pcap_filter, &[], PCAP_FILTERS),
    Target::new("nflog", nflog::fuzz_nflog, &["nl"], LOG_RECORDS),
    Target::new("ulogd_formats", ulogd_formats, &["nl"], LOG_RECORDS),
    Target::new("tcpdump_text", faces::tcpdump::output::fuzz_tcpdump, &[], PACKETS),
    Target::new("tcpdump_frame", faces::tcpdump::output::fuzz_tcpdump_frame, &[], CARRIED_BY_FRAMES),
    Target::new("tcpdump_protocol", faces::tcpdump::output::fuzz_tcpdump_protocol, &[], CARRIED_BY_IP),
    Target::new("tcpdump_application", faces::tcpdump::output::fuzz_tcpdump_application, &[], CARRIED_BY_PORTS),
    Target::new("name_files", host::ethers::fuzz_name_files, &[], NAME_FILES),
    Target::new("syslog_formats", sinks::syslog::fuzz_syslog_formats, &[], SYSLOG_PARTS),
    Target { made: spool_files, ..Target::new("spool_segment", export::fuzz_spool_segment, &[], &[]) },
    Target::new("clickhouse_answers", export::fuzz_clickhouse_answers, &[], CLICKHOUSE),
    Target::new("kafka_answers", export::fuzz_kafka_answers, &[], KAFKA),
    Target::new("otlp_answers", export::fuzz_otlp_answers, &[], OTLP),
    Target { made: spool_files, ..Target::new("spool_position", export::fuzz_spool_position, &[], &[]) },
    Target { made: objects, ..Target::new("bpf_object", bpf::fuzz_object, &[], &[]) },
    Target { made: objects_types, ..Target::new("bpf_btf", bpf::fuzz_btf, &[], &[]) },
    Target::new("filter", engine::filter::fuzz_filter, &[], FILTERS),
    Target::new("links", host::links::fuzz_links, &[], LINKS),
    Target::new("group_rules", host::group_rules::fuzz_group_rules, &[], GROUP_RULES),
    Target::new("link_modes", host::link_modes::fuzz_link_modes, &[], LINK_MODES),
    Target::new("routes", host::routes::fuzz_routes, &[], ROUTES),
    Target::new("groups", host::groups::fuzz_groups, &[], GROUPS),
    Target::new("owners", host::owners::fuzz_owners, &[], OWNERS),
    Target::new("processes", host::processes::fuzz_processes, &[], PROCESSES),
    Target::new("ct_stats", conntrack::stats::fuzz_stats, &[], CT_STATS),
    Target::new("counters", counters::fuzz_counters, &[], COUNTERS),
    Target::new("cgroup", host::containers::fuzz_cgroup, &[], CGROUPS),
    Target::new("drops_block", drops::fuzz_block, &[], DROPS_BLOCKS),
    Target::new("drop_events", drops::fuzz_events, &[], DROP_EVENTS),
    Target::new("drop_monitor", drops::fuzz_net_dm, &["nl"], DROP_MONITOR),
    Target::new("drop_trace", drops::fuzz_trace, &[], DROP_TRACES),
    Target::new("cpu_samples", profile::fuzz_samples, &[], CPU_SAMPLES),
    Target::new("path_stages", profile::fuzz_stages, &[], PATH_STAGES),
    Target::new("kernel_symbols", drops::fuzz_symbols, &[], KERNEL_SYMBOLS),
];

/// A reading without rows: magic, flags, five numbers.
const DROPS_BLOCKS: &[&[u8]] = &[
    b"nwdrops1\x01\0\0\0\0\0\0\0\0\xca\x9a;\0\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
];

/// A dropped packet with its place, function and reason.
const DROP_MONITOR: &[&[u8]] =
    &[b"\x05\x02\0\0\x0c\0\x02\0\xaa\xd2\xa3\xa5\xff\xff\xff\xff\x0e\0\x17\0NO_SOCKET\0\0\0\
    \x13\0\x03\0tcp_v4_rcv+0x9\0\0\x06\0\x06\0\0\x08\0\0"];

/// A page of the kernel's trace with one event, and the format description of events.
const DROP_TRACES: &[&[u8]] = &[
    b"\x17\x35\x35\x15\0\x58\x18\0\x30\0\0\0\0\0\0\0\x0a\0\0\0\x07\0\x10\x01\x07\x2a\0\0\
      aaaaaaaabbbbbbbbcccccccc\0\x08\0\0\x0c\0\0\0",
    b"ID: 7\nfield:void * location;\toffset:16;\tsize:8;\nfield:unsigned short protocol;\toffset:32;\tsize:2;\n\
      print fmt: __print_symbolic(REC->reason, { 2, \"NOT_SPECIFIED\" })\n",
];

/// A block of single drops: a header with 88 bytes of events of 88 bytes each, then a name.
const DROP_EVENTS: &[&[u8]] = &[&drop_events()];

const fn drop_events() -> [u8; 56 + 88 + 13] {
    let (mut block, magic) = ([0; 56 + 88 + 13], *b"nwevent1");
    let mut at = 0;
    while at < magic.len() {
        block[at] = magic[at];
        at += 1;
    }
    (block[32], block[40]) = (88, 88);
    // The place is 1; the name of function 1 is two bytes long.
    (block[56 + 8], block[144], block[145], block[153]) = (1, 1, 1, 2);
    block
}

/// One CPU and one call chain of one named function: seven words of header, six words of the CPU, four words of the
/// chain.
const CPU_SAMPLES: &[&[u8]] = &[&words::<{ 8 * 17 + 11 }>(
    *b"nwsampl1",
    &[(24, 64), (32, 99), (40, 1), (48, 1), (64, 100), (112, 7), (120, 1), (128, 255)],
    b"ff tcp_rcv\n",
)];

/// One stage of IPv4: eight words of header, thirteen words of the row.
const PATH_STAGES: &[&[u8]] = &[&words::<{ 8 * 21 }>(*b"nwstage1", &[(56, 1), (104, 100), (120, 90)], b"")];

/// A block of words: its magic, the given bytes at their offsets, zeros elsewhere, and `end`.
const fn words<const N: usize>(magic: [u8; 8], bytes: &[(usize, u8)], end: &[u8]) -> [u8; N] {
    let (mut block, mut at) = ([0; N], 0);
    while at < magic.len() {
        block[at] = magic[at];
        at += 1;
    }
    at = 0;
    while at < bytes.len() {
        block[bytes[at].0] = bytes[at].1;
        at += 1;
    }
    at = 0;
    while at < end.len() {
        block[N - end.len() + at] = end[at];
        at += 1;
    }
    block
}

/// Lines of /proc/kallsyms.
const KERNEL_SYMBOLS: &[&[u8]] = &[
    b"0000000000000f00 T ip_rcv.isra.0\nffffffffc0001000 t nft_do_chain\t[nf_tables]\n",
    b"0000000000000000 A fixed_percpu_data\n0000000000000000 T _stext\n",
];

/// Expressions of every kind.
const PCAP_FILTERS: &[&[u8]] = &[
    b"tcp port 80 or (udp and not src net 10.0.0.0/8)",
    b"vlan 7 and mpls 16 and host 10.0.0.1 or 10.0.0.2 or 10.0.0.3 or 10.0.0.9",
    b"(ip[2:2] - ((ip[0]&0xf)<<2)) - ((tcp[12]&0xf0)>>2) != 0 && len % 2 = 1",
    b"ip6 net 2001:db8::/32 or fe80::1 or ::ffff:1.2.3.4 and icmp6[icmp6type] = icmp6-echo",
    b"geneve 7 and pppoes 42 and portrange 10-20 or ether host 2:0:0:0:0:1",
    b"ip6 protochain \\tcp and ether proto 0x42 or llc rnr or decnet host 1.13",
];

/// LLDP with TLVs of every organisation, ARP, IEEE 802.2 with spanning tree, a VLAN tag.
const CARRIED_BY_FRAMES: &[&[u8]] = &[
    b"\0\x02\x07\x04\x02\0\0\0\0\x01\x04\x05\x05eth0\x06\x02\0\x78\x0a\x03sw1\x0e\x04\0\x14\0\x04\
      \x10\x0c\x05\x01\xc0\0\x02\x01\x02\0\0\0\x09\0\
      \xfe\x0a\0\x80\xc2\x03\0\x07\x03abc\xfe\x09\0\x12\x0f\x01\x03\x6c\0\0\x1e\
      \xfe\x17\0\x12\xbb\x03\x02\x11\x02DE\x01\x03abc\x06\x04stre\0\0\0\0\
      \xfe\x1a\0\x1b\x21\x02\x02\x0a\0\0\0\0\0\x01\0\0\0\x02\x06\x06\0\0\x80\0\xff\x08\x0a\0\0\0",
    b"\x01\0\x01\x08\0\x06\x04\0\x01\x02\0\0\0\0\x01\x0a\0\0\x01\0\0\0\0\0\0\x0a\0\0\x02",
    b"\x07\x42\x42\x03\0\0\x03\x02\x7c\x80\0\0\0\0\0\0\x01\0\0\0\0\x80\0\0\0\0\0\0\x02\x80\x01\0\0\x14\0\x02\0\x0f\
      \0\0",
    b"\x03\0\x07\x08\0\x45\0\0\x1c\0\x01\0\0\x40\x11\0\0\x7f\0\0\x01\x7f\0\0\x01\0\x01\0\x02\0\x08\0\0",
];

/// IP protocol, version and message: router advertisements with every option, an error that quotes headers, an error
/// with MPLS labels, multicast listener reports.
const CARRIED_BY_IP: &[&[u8]] = &[
    b"\x3a\x01\x86\0\0\0\x40\xc8\x07\x08\0\0\x01\0\0\0\x02\0\x01\x01\x02\0\0\0\0\x01\
      \x03\x04\x40\xc0\0\0\x0e\x10\xff\xff\xff\xff\0\0\0\0CCCCCCCCCCCCCCCC\
      \x19\x03\0\0\0\0\0\x09CCCCCCCCCCCCCCCC\x18\x02\x30\x08\0\0\0\x09CCCCCCCC\
      \x1f\x02\0\0\0\0\0\x09\x01a\xc0\x50\0\0\0\0\x05\x01\0\0\0\0\x05\0",
    b"\x3a\x01\x01\x04\0\0\0\0\0\0\x60\0\0\0\0\x20\0\x40AAAAAAAAAAAAAAAABBBBBBBBBBBBBBBB\
      \x2c\0\x01\x04\0\0\0\0\x33\0\0\x01\0\0\0\x09\x11\x01\0\0\0\0\0\x01\0\0\0\x02\0\x35\0\x35\0\x08\0\0",
    b"\x01\0\x0b\0\0\0\0\x20\0\0\x45\0\0\x1c\0\x01\0\0\x40\x11\0\0\x7f\0\0\x01\x7f\0\0\x01\0\x01\0\x02\0\x08\0\0\
      \0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\
      \0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\
      \x20\0\0\0\0\x0c\x01\x01\x12\x34\x5e\x07\x12\x34\x5f\x08\0\x06\x02\x09ab",
    b"\x3a\x01\x8f\0\0\0\0\0\0\x01\x01\0\0\x01CCCCCCCCCCCCCCCCDDDDDDDDDDDDDDDD",
    // Node information with labels; router renumbering.
    b"\x3a\x01\x8c\0\0\0\0\x02\0\x01\x01\x02\x03\x04\x05\x06\x07\x08\0\0\0\x09\x04host\x03org\0",
    b"\x3a\x01\x8a\0\0\0\0\0\0\x09\x03\xf8\0\x64\0\0\0\0\x01\x07\x07\x30\x01\x80\0\0CCCCCCCCCCCCCCCC\
      \x10\x30\xc0\x80\xff\xff\xff\xff\0\0\x01\0\xc0\0\0\0DDDDDDDDDDDDDDDD",
    b"\x02\0\x22\0\0\0\0\0\0\x01\x01\0\0\x01\xef\x01\x01\x01\x0a\0\0\x01",
    b"\x84\0\0\x01\0\x02\0\0\0\x03\0\0\0\0\x01\0\0\x14\0\0\0\x01\0\0\0\x02\0\x01\0\x01\0\0\0\x03",
    b"\x2f\0\xb0\0\x65\x58\0\0\0\0\0\0\0\x09\0\0\0\x01\x02\0\0\0\0\x01\x02\0\0\0\0\x02\x88\xcc\0\0",
];

/// Index of a port and the message: DNS with a compressed name, DHCP with every kind of option, NTP, DHCPv6 with
/// nested options, VXLAN, HTTP.
const CARRIED_BY_PORTS: &[&[u8]] = &[
    b"\0\x12\x34\x81\x80\0\x01\0\x01\0\0\0\x01\x07example\x03com\0\0\x01\0\x01\xc0\x0c\0\x0f\0\x01\0\0\0\x09\0\x06\
      \0\x0a\x01m\xc0\x0c\
      \0\0\x29\x04\xd0\0\0\x80\0\0\x08\0\x08\0\x04\0\x01\x18\0",
    b"\x01\x02\x01\x06\0\x01\x02\x03\x04\0\0\x80\0\0\0\0\0\x0a\0\0\x02\0\0\0\0\0\0\0\0\x02\0\0\0\0\x01\0\0\0\0\0\0\
      \0\0\0\0\
      server\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\
      \0\0\0\0\0\0\0\
      file\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\
      \0\0\0\0\0\0\0\0\0\0\
      \0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\
      \0\0\0\0\0\0\0\0\
      \x63\x82\x53\x63\x35\x01\x02\x01\x04\xff\xff\xff\0\x37\x03\x01\x03\x06\x0c\x02ab\x3d\x07\x01\x02\0\0\0\0\x01\
      \x51\x05\x05\x01\x02ho\x52\x06\x01\x04eth0\x79\x08\x18\x0a\0\x01\x0a\0\0\x01\x4d\x04\x03abc\x2e\x01\x08\0\xff",
    b"\x02\x23\x02\x06\xe9\0\0\0\x01\0\0\0\x02GPS\0\xe0\0\0\0\x80\0\0\0\xe0\0\0\0\x80\0\0\0\xe0\0\0\0\x80\0\0\0\xe0\
      \0\0\0\x80\0\0\0",
    b"\x04\x0c\x02AAAAAAAAAAAAAAAABBBBBBBBBBBBBBBB\0\x09\0\x3a\x01\x01\x02\x03\0\x01\0\x0e\0\x01\0\x01\x01\x02\x03\
      \x04\x02\0\0\0\0\x01\
      \0\x03\0\x20\0\0\0\x09\0\0\0\x01\0\0\0\x02\0\x05\0\x10AAAAAAAAAAAAAAAA\0\x18\0\x05\x01a\xc0\x01\0\0\x40\0\x04\
      \x02ab\0",
    b"\x05\x08\0\0\0\0\0\x2a\0\x02\0\0\0\0\x01\x02\0\0\0\0\x02\x88\xcc\0\0",
    b"\x06\x01\0\x65\x58\0\0\x2a\0\x01\x02\x80\0\x02\0\0\0\0\x01\x02\0\0\0\0\x02\x88\xcc\0\0",
    b"\x08\0\x1d\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x07example\x03com\0\0\x01\0\x01",
    b"\x09GET / HTTP/1.1\r\nHost: a\r\n\r\n",
];

/// Files with names of hosts, ports and protocols.
const NAME_FILES: &[&[u8]] = &[
    b"hosts: files [NOTFOUND=return] dns # x\nservices:db files\nethers : files\n",
    b"02:0:00:00:00:1 name # x\n1:2:3:4:5 short\n",
    b"ssh 22/tcp secure # x\nname\t4321/udp\nx 70000/tcp\n",
    b"127.0.0.1 localhost\n::1 six # x\n::ffff:10.0.0.2 mapped\n300.0.0.1 no\n",
];

/// Host name, prefix, user and text, separated by zeros.
const SYSLOG_PARTS: &[&[u8]] =
    &[b"fw1\0in \"a]\": \\\0root\0in: IN=eth0 OUT= \n", b"a b\xff\0][x\x1b\0\xe2\x80\xae=\0\\\n\xc3", b"\0\0\0"];

/// Counters of a CPU and truncated counters; a file of them; slab caches; netlink sockets.
const CT_STATS: &[&[u8]] = &[
    b"\0\0\0\x01\x08\0\x0a\0\0\0\0\x07\x08\0\x0f\0\0",
    b"entries clashres found drop chainlength\n000003e8 00000001 00000002 ffffffff 0000000a\n",
    b"nf_conntrack 77 100 320 25 2 : tunables\nkmalloc-128 1 1 128 32 1\nkmalloc-256 1 1 256 16 1\n",
    b"sk Eth Pid Groups\n0000000006a05a7a 12 2211 00000007 0 0\n",
];

/// An interface with its name and truncated counters; an IPv4 address with its label; a line of if_inet6.
const LINKS: &[&[u8]] = &[
    b"\0\0\x01\0\x02\0\0\0\x43\x10\0\0\0\0\0\0\x09\0\x03\0eth0\0\0\0\0\x0c\0\x17\0\x01\0\0\0\0\0\0\0",
    b"\x02\x18\0\0\x02\0\0\0\x08\0\x02\0\xc0\0\x02\x01\x09\0\x03\0eth0\0\0\0\0",
    b"fe8000000000000000fc00fffe000001 04 40 20 80     eth0\n",
];

/// A rule of `inet t c` that logs to a group; a chain at a hook.
const GROUP_RULES: &[&[u8]] = &[
    b"\x01\0\0\0\x06\0\x01\0t\0\0\0\x06\0\x02\0c\0\0\0\x0c\0\x03\0\0\0\0\0\0\0\0\x07\
      \x1c\0\x04\0\x18\0\x01\0\x08\0\x01\0log\0\x0c\0\x02\0\x06\0\x01\0\0\x05\0\0",
    b"\x01\0\0\0\x06\0\x01\0t\0\0\0\x06\0\x03\0c\0\0\0\x04\0\x04\0",
];

/// An interface that negotiated 100 Mb/s; its end of the link with a mask of modes.
const LINK_MODES: &[&[u8]] = &[
    b"\x04\x01\0\0\x0c\0\x01\x80\x08\0\x01\0\x02\0\0\0\x05\0\x02\0\x01\0\0\0\
      \x08\0\x05\0\x64\0\0\0\x05\0\x06\0\x01\0\0\0",
    b"\x04\x01\0\0\x0c\0\x01\x80\x08\0\x01\0\x02\0\0\0\
      \x1c\0\x03\x80\x0c\0\x04\0\x2f\x20\0\0\0\0\0\0\x0c\0\x05\0\x2f\x20\0\0\0\0\0\0",
];

/// The forms of counters in /proc/net; an interface whose counters are truncated; a queueing discipline.
const COUNTERS: &[&[u8]] = &[
    b"sockets: used 20\nTCP: inuse 1 orphan 0 tw 54 alloc 7 mem\n",
    b"Tcp: RtoAlgorithm MaxConn\nTcp: 1 -1\nUdp: InDatagrams NoPorts\nUdp: 5\n",
    b"Ip6InReceives                   \t115\nIp6Odd x\n",
    b"0000000a 1 2 0 0 0 0 0 0 3 4 5 7 6 8\nentries allocs\n00000003 0000000f\n",
    b"\0\0\x01\0\x02\0\0\0\0\0\0\0\0\0\0\0\x07\0\x03\0va\0\0\x10\0\x17\0\x01\0\0\0\0\0\0\0\0\0\0",
    b"\0\0\0\0\x07\0\0\0\0\0\x01\x80\xff\xff\xff\xff\0\0\0\0\x08\0\x01\0tbf\0\
      \x14\0\x07\0\x10\0\x03\0\x01\0\0\0\x02\0\0\0\x03\0\0\0",
];

/// A route with metrics; a route with two next hops, the second of them truncated; a line of ipv6_route.
const ROUTES: &[&[u8]] = &[
    b"\x02\x18\0\0\xfe\x03\0\x01\0\0\0\0\x08\0\x01\0\xcb\0\x71\0\x0c\0\x08\0\x08\0\x08\0\xb0\x04\0\0",
    b"\x02\x18\0\0\xfe\x03\0\x01\0\0\0\0\x18\0\x09\0\x10\0\0\0\x02\0\0\0\x08\0\x05\0\xc0\0\x02\x01\x10\0\0\0",
    b"20010db8000000000000000000000000 40 00000000000000000000000000000000 00 \
      fe800000000000000000000000000001 ffffffff 00000003 00000000 80200003     eth0\n",
];

/// The two files that contain groups.
const GROUPS: &[&[u8]] = &[
    b"Idx\tDevice    : Count Querier\tGroup    Users Timer\tReporter\n\
      1\tlo        :     1      V3\n\t\t\t\t010000E0     1 0:00000000\t\t0\n",
    b"1    lo              ff020000000000000000000000000001     1 0000000C 0\n",
];

/// A process with one socket and the totals, in the format of the /proc walk; a task with a socket and the end, in the
/// format of the BPF program.
const OWNERS: &[&[u8]] = &[
    &[
        1, 7, 0, 0, 0, 2, b's', b'h', 1, 0, 0, 0, 3, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    ],
    &[
        0, 0, 0, 0, 1, 0, 0, 0, 8, 0, 0, 0, 7, 0, 0, 0, b's', b'h', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0,
        0, 3, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0,
    ],
];

/// A command line, a cgroup file and a status file of one process; a file that could not be read.
const PROCESSES: &[&[u8]] = &[
    &[
        7, 0, 0, 0, 0, 5, 0, 0, 0, b's', b'h', 0, b'x', 0, 7, 0, 0, 0, 1, 5, 0, 0, 0, b'0', b':', b':', b'/', b'a', 7,
        0, 0, 0, 2, 10, 0, 0, 0, b'N', b'S', b'p', b'i', b'd', b':', b'7', b' ', b'1', b'\n',
    ],
    &[0, 0, 0, 0, 0, 2, 0, 0, 0, 13, 0, 0, 0],
];

/// The known forms of cgroup paths.
const CGROUPS: &[&[u8]] = &[
    b"0::/system.slice/docker-01be9fb0c4dd8ca41f4bd0d667a6d8c08950d230f0ee38e79db38548de6d145e.scope\n",
    b"1:name=systemd:/kubepods/besteffort/podc0ffee00-1234-4abc-8def-0123456789ab/01be9fb0c4dd8ca41f4bd0d667a6d8c08\
      950d\
      230f0ee38e79db38548de6d145e\n",
    b"0::/lxc.payload.box/system.slice/ssh.service\n4:pids:/default/plain1\n",
];

/// Two attributes, the second one nested; an attribute longer than the buffer; an attribute of length 0.
const ATTRS: &[&[u8]] = &[
    &[8, 0, 1, 0, 1, 2, 3, 4, 12, 0, 2, 0x80, 5, 0, 1, 0, 9, 0, 0, 0],
    &[40, 0, 1, 0, 1, 2, 3, 4],
    &[0, 0, 1, 0, 1, 2, 3, 4],
];

/// An error, an answer in chunks, columns of a table, types, a note of a spool.
const CLICKHOUSE: &[&[u8]] = &[
    b"HTTP/1.1 404 Not Found\r\nX-ClickHouse-Exception-Code: 60\r\nContent-Length: 8\r\n\r\nCode: 60",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n3\r\n\x04tim\r\n1;x\r\ne\r\n0\r\n\r\n",
    b"\x04time\x15DateTime64(9, \'UTC\')\x04port\x10Nullable(UInt16)",
    b"LowCardinality(Nullable(Enum8('a' = 1, 'b' = 2)))",
    b"SimpleAggregateFunction(sum, UInt64)",
    &[2, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 5, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0],
];

/// Taken in part, refused, later; headers.
const OTLP: &[&[u8]] = &[
    b"HTTP/1.1 200 OK\r\nContent-Type: a/x-protobuf\r\nContent-Length: 10\r\n\r\n\x0a\x08\x08\x03\x12\x04late",
    b"HTTP/1.1 400 Bad Request\r\nContent-Length: 5\r\n\r\n\x12\x03bad",
    b"HTTP/1.1 503 x\r\nRetry-After: 7\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n\x08\x0e\r\n0\r\n\r\n",
    b"Authorization=Basic%20abc, X-Scope-OrgID=t1",
];

/// Versions, a topic with one partition, a producer, an answer to messages, a note of a spool.
const KAFKA: &[&[u8]] = &[
    &[0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 13, 0, 3, 0, 0, 0, 13, 0, 22, 0, 0, 0, 5],
    &[
        0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 1, b'a', 0, 0, 0x23, 0x84, 255, 255, 0, 1, b'c', 0, 0, 0, 1, 0, 0, 0, 1,
        0, 0, 0, 1, b't', 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    ],
    &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7, 0, 1],
    &[
        0, 0, 0, 1, 0, 1, b't', 0, 0, 0, 1, 0, 0, 0, 0, 0, 45, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 0, 0, 0, 0,
    ],
    &[1, 7, 0, 0, 0, 0, 0, 0, 0, 1, 0, 2, 0, 0, 0, 9, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0],
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

/// An IPv4 row of 32 bytes without parts; a row of length 0; a row longer than the buffer.
const WALK_ROWS: &[&[u8]] = &[
    &[8, 2, 1, 0, 0, 80, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 9, 9, 0, 0, 0, 0, 0, 0, 127, 0, 0, 1, 127, 0, 0, 1],
    &[0, 2, 1, 0],
    &[200, 10, 6, 1, 0, 80, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0],
];

/// Rows of the connection tracking walk: IPv4 without parts; length 0; a row longer than the buffer.
const CONNTRACK_WALK: &[&[u8]] = &[
    b"\x0a\x02\x06\x03\x8e\x01\0\0\xe8\x03\0\0\x30\x39\0\x50\0\0\x03\0\0\0\0\0\x01\0\0\0\x09\0\0\0\x0a\0\0\x01\x0a\
      \0\0\
      \x02",
    &[0, 2, 6, 3],
    &[200, 10, 132, 1, 0, 0, 0, 0],
];

/// A question for one PTR name and its answer with a compressed name; a name that points to itself.
const DNS: &[&[u8]] = &[
    b"\x12\x34\x81\x80\0\x01\0\x01\0\0\0\0\x011\x010\x010\x03127\x07in-addr\x04arpa\0\0\x0c\0\x01\xc0\x0c\0\x0c\0\
      \x01\0\
      \0\0\x3c\0\x0b\x09localhost\0",
    b"\x12\x34\x81\x80\0\x01\0\x01\0\0\0\0\xc0\x0c\0\x0c\0\x01\xc0\x0c\0\x0c\0\x01\0\0\0\x3c\0\x02\xc0\x0c",
];

/// Every production of the filter language.
const FILTERS: &[&[u8]] = &[
    b"state = established and peer in 10.0.0.0/8 and rtt > 20ms and process ~ \"nginx\"",
    b"not (proto=tcp or proto = udp) and local_port in (443, 8000-8999)",
    b"peer = 10.1.2.3:443 or local = [2001:db8::1]:80 or send_q >= 1MiB",
    b"uid != 0 and iface = \"eth0\" and mark = 0x7 and process = null",
];

/// An inet_diag_msg (TCP, listening on port 80) with two attributes; a unix_diag_msg with a name.
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

/// An entry with both tuples, the second with a truncated port; an expectation's tuple alone.
const CTNETLINK: &[&[u8]] = &[
    &[
        2, 0, 0, 0, 52, 0, 1, 0x80, 20, 0, 1, 0x80, 8, 0, 1, 0, 10, 0, 0, 1, 8, 0, 2, 0, 10, 0, 0, 2, 28, 0, 2, 0x80,
        5, 0, 1, 0, 6, 0, 0, 0, 6, 0, 2, 0, 1, 187, 0, 0, 6, 0, 3, 0, 0, 80, 0, 0, 16, 0, 2, 0x80, 12, 0, 2, 0x80, 5,
        0, 1, 0, 6, 0, 0, 0, 8, 0, 3, 0, 0, 0, 0, 14, 16, 0, 4, 0x80, 12, 0, 1, 0x80, 5, 0, 1, 0, 3, 0, 0, 0,
    ],
    &[2, 0, 0, 0, 16, 0, 2, 0x80, 12, 0, 2, 0x80, 5, 0, 1, 0, 17, 0, 0, 0],
];

/// A TCP line with all fields, an ICMP line, a GRE line without a timeout; names of labels.
const CONNTRACK_LINES: &[&[u8]] = &[
    b"ipv4     2 tcp      6 119 TIME_WAIT src=10.0.0.1 dst=10.0.0.2 sport=4000 dport=80 packets=6 bytes=338 \
        src=10.0.0.2 dst=10.0.0.1 sport=80 dport=4000 packets=4 bytes=256 [ASSURED] mark=7 secctx=a zone=5 \
        delta-time=3 use=2\n",
    b"ipv6     10 icmpv6   58 29 src=2001:0db8::1 dst=2001:0db8::2 type=128 code=0 id=77 [UNREPLIED] src=2001:0db8:\
      :2 \
        dst=2001:0db8::1 type=129 code=0 id=77 mark=0 zone=0 use=2\n",
    b"ipv4     2 gre      47 src=10.0.0.1 dst=10.0.0.2 srckey=0x1f dstkey=0x0 src=10.0.0.2 dst=10.0.0.1 srckey=0x0 \
        dstkey=0x1f [OFFLOAD] mark=0 zone-orig=3 use=2\n",
    b"# labels\n0 audit\n5 web\n",
];

/// A line of each file, one of them with an overflowing sl number.
const PROC_LINES: &[&[u8]] = &[
    b"   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 31337 1 \
        0000000000000000 100 0 0 10 0\n",
    b"10000: 00000000000000000000000001000000:0050 00000000000000000000000001000000:C350 01 00000010:00000020 \
        02:000AF3C8 00000001  1000        0 31338 2 0000000000000000 20 4 24 10 -1\n",
    b"  12: 00000000:0044 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 31339 2 \
        0000000000000000 0\n",
    b"0000000011111111 3      3    0003   2     1 0      0      12345 \n",
    b"0000000022222222 0   1234       00000011 0        0        0     2        0        12346   \n",
    b"0000000000000000: 00000002 00000000 00010000 0001 01 31340 /run/x/sock1\n0000000000000000: 00000003 00000000 \
        00000000 0002 03 31341 @abstract\n",
];

/// Only magic and version, which lets mutations pass the first check.
const TAPES: &[&[u8]] = &[b"NETWREN-TAPE\x01\0", b"NETWREN-TAPE\x02\0"];

/// The committed BPF objects.
fn objects() -> Vec<Vec<u8>> {
    let folder = crate::root::path().join("crates/bpf/objects");
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    files.filter_map(|file| std::fs::read(file.path()).ok()).collect()
}

/// The BTF of the objects: each part that begins with the magic, a version and no flags.
fn objects_types() -> Vec<Vec<u8>> {
    let types = |object: Vec<u8>| {
        let at = object.windows(8).position(|head| head == [0x9f, 0xeb, 1, 0, 24, 0, 0, 0])?;
        Some(object[at..].to_vec())
    };
    objects().into_iter().filter_map(types).collect()
}

/// A complete recording of three small files.
fn recordings() -> Vec<Vec<u8>> {
    let path = std::env::temp_dir().join(format!("netwren-fuzz-seed-{}", std::process::id()));
    if let Ok(host) = sys::Host::live().recording(&path) {
        let mut content = Vec::new();
        host.note_requested("sockets", &mut ["state", "rtt_us"].into_iter());
        for key in ["/proc/net/tcp", "/etc/hostname", "/no/such/file"] {
            host.begin_round();
            _ = host.read_file(key, &mut content);
        }
        _ = host.finish();
    }
    let recorded = std::fs::read(&path);
    _ = std::fs::remove_file(&path);
    recorded.into_iter().collect()
}

/// Formats the bytes as a log record in every format of ulogd2.
fn ulogd_formats(data: &[u8]) {
    if let Ok(row) = nflog::decode_record(data, 0, &mut 0) {
        sinks::ulogd::fuzz_ulogd_formats(&row);
    }
}

/// Opens the bytes as a recording, lists its content and closes it.
fn tape(data: &[u8]) {
    let path = std::env::temp_dir().join(format!("netwren-fuzz-tape-{}", std::process::id()));
    if std::fs::write(&path, data).is_err() {
        return;
    }
    if let Ok(host) = sys::Host::open_replay(&path) {
        let mut content = Vec::new();
        for key in ["/proc/net/tcp", "/etc/hostname", "/no/such/file"] {
            _ = host.read_file(key, &mut content);
        }
        _ = (
            host.integrity(),
            host.notes(),
            host.recording_header(),
            host.kernel(),
            host.was_requested("sockets", "state"),
        );
        while host.begin_round() {
            _ = host.read_file("/proc/net/tcp", &mut content);
        }
        _ = host.finish();
    }
    _ = std::fs::remove_file(&path);
}

/// IPv4 with TCP, IPv6 with a fragment and UDP, IPv6 with options and ICMP.
const PACKETS: &[&[u8]] = &[
    b"\x45\0\0\x28\0\x01\x40\0\x40\x06\0\0\x7f\0\0\x01\x7f\0\0\x01\
      \x9c\x40\0\x16\0\0\0\x01\0\0\0\0\x50\x02\xff\xff\0\0\0\0",
    b"\x60\0\0\0\0\x10\x2c\x40AAAAAAAAAAAAAAAABBBBBBBBBBBBBBBB\x11\0\0\x01\0\0\0\x07\0\x35\0\x35\0\x08\0\0",
    b"\x60\0\0\0\0\x10\0\x40AAAAAAAAAAAAAAAABBBBBBBBBBBBBBBB\x3a\0\0\0\0\0\0\0\x80\0\0\0\0\x01\0\x01",
    // GRE with a key and an inner frame.
    b"\x45\0\0\x36\0\x01\0\0\x40\x2f\0\0\x7f\0\0\x01\x7f\0\0\x01\x20\0\x65\x58\0\0\0\x09\
      \x02\0\0\0\0\x01\x02\0\0\0\0\x02\0\x08\x42\x42\x03\0\0\0\0\0",
    // SCTP: data and a selective acknowledgement.
    b"\x45\0\0\x48\0\x01\0\0\x40\x84\0\0\x7f\0\0\x01\x7f\0\0\x01\0\x01\0\x02\0\0\0\x03\0\0\0\0\
      \0\x03\0\x14\0\0\0\x01\0\0\0\0\0\0\0\0abcd\x03\0\0\x14\0\0\0\x01\0\0\0\x02\0\x01\0\0\0\x01\0\x02",
    // IPv4 with an authentication header, an inner IPv4 header, UDP and VXLAN.
    b"\x45\0\0\x60\0\x01\0\0\x40\x33\0\0\x7f\0\0\x01\x7f\0\0\x01\x04\x02\0\0\0\0\0\x01\0\0\0\x02abcd\
      \x45\0\0\x40\0\x01\0\0\x40\x11\0\0\x7f\0\0\x01\x7f\0\0\x01\0\x01\x12\xb5\0\x1e\0\0\x08\0\0\0\0\0\x2a\0\
      \x02\0\0\0\0\x01\x02\0\0\0\0\x02\x88\xcc\x0a\x01a\0\0",
    // A TCP segment with multipath TCP options.
    b"\x45\0\0\x40\0\x01\0\0\x40\x06\0\0\x7f\0\0\x01\x7f\0\0\x01\0\x01\0\x02\0\0\0\x03\0\0\0\x04\xa0\x10\0\0\0\0\0\0\
      \x1e\x14\x20\x05\0\0\0\x01\0\0\0\x02\0\0\0\x03\0\x04\0\x05",
    // IPv6 with options, segment routing and Geneve.
    b"\x60\0\0\0\0\x38\0\x40AAAAAAAAAAAAAAAABBBBBBBBBBBBBBBB\x2b\0\x05\x02\0\0\0\0\x11\x02\x04\x01\0\0\0\0\
      CCCCCCCCCCCCCCCC\
      \x17\xc1\x17\xc1\0\x18\0\0\x01\0\x65\x58\0\0\x2a\0\x01\x02\x80\0\0\0\0\0",
];

/// Ethernet with two VLAN tags and UDP to port 53; ARP; "cooked" packets of both kinds; the first messages of TLS and
/// QUIC.
const FRAMES: &[&[u8]] = &[
    b"\x02\0\0\0\0\x01\x02\0\0\0\0\x02\x88\xa8\0\x4d\x81\0\0\x4e\x08\0\x45\0\0\x1c\0\0\0\0\x40\x11\0\0\
      \x0a\0\0\x01\x0a\0\0\x02\0\x35\0\x35\0\x08\0\0",
    b"\xff\xff\xff\xff\xff\xff\x02\0\0\0\0\x01\x08\x06\0\x01\x08\0\x06\x04\0\x01\x02\0\0\0\0\x01\x0a\0\0\x01\
      \0\0\0\0\0\0\x0a\0\0\x02",
    b"\0\0\0\x01\0\x06\x02\0\0\0\0\x01\0\0\x08\0\x45\0\0\x14\0\0\0\0\x40\x01\0\0\x7f\0\0\x01\x7f\0\0\x01",
    b"\x45\0\0\x70\0\x01\0\0\x40\x06\0\0\x7f\0\0\x01\x7f\0\0\x01\x9c\x40\x01\xbb\0\0\0\x03\0\0\0\x04\x50\x10\
      \0\0\0\0\0\0\x16\x03\x01\0\x43\x01\0\0\x3f\x03\x03AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\0\0\x02\x13\x01\x01\0\0\x14\
      \0\0\0\x06\0\x04\0\0\x01a\0\x10\0\x05\0\x03\x02h2",
    b"\x45\0\0\x2c\0\x01\0\0\x40\x11\0\0\x7f\0\0\x01\x7f\0\0\x01\x9c\x40\x01\xbb\0\x18\0\0\
      \xc3\0\0\0\x01\x04\x83\x94\xc8\xf0\x02\x01\x02\0\0\0",
    b"\x86\xdd\0\0\0\0\0\x02\0\x01\0\x06\x02\0\0\0\0\x01\0\0\x60\0\0\0\0\0\x3b\x40AAAAAAAAAAAAAAAABBBBBBBBBBBBBBBB",
];

/// A payload: family, version, group, then a prefix, a number, the hook, a packet.
const LOG_RECORDS: &[&[u8]] = &[
    b"\x02\0\0\x05\x08\0\x01\0\x08\0\x01\0\x08\0\x0a\0abc\0\x08\0\x0c\0\0\0\0\x01\x08\0\x09\0\x45\0\0\x28",
    b"\x0a\0\0\x05\x14\0\x03\0\0\0\0\0\0\0\0\x09\0\0\0\0\0\0\0\x03\x0c\0\x14\x80\x06\0\x02\0\xe0\x2a\0\0",
];

/// A pcap file, and a pcapng file with each supported block.
fn packet_files() -> Vec<Vec<u8>> {
    let numbers = |numbers: &[u32]| numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>();
    let pcap = numbers(&[0xa1b2_c3d4, 4 << 16 | 2, 0, 0, 65_535, 1, 1_700_000_000, 7, 4, 60, 0x0806_0202, 9, 9, 0, 0]);
    let section = [0x0a0d_0d0a, 28, 0x1a2b_3c4d, 1, u32::MAX, u32::MAX, 28];
    let iface = [1, 40, 1, 96, 4 << 16 | 2, 0x6574_6865, 1 << 16 | 9, 9, 0, 40];
    let packet = [6, 48, 0, 5, 7, 4, 60, 0x0806_0202, 4 << 16 | 2, 9, 0, 48];
    let (simple, obsolete) = ([3, 20, 4, 7, 20], [2, 36, 0, 5, 7, 4, 60, 1, 36]);
    let pcapng = numbers(&[&section[..], &iface, &packet, &simple, &obsolete].concat());
    vec![pcap, pcapng]
}

/// The files of a spool with two batches.
fn spool_files() -> Vec<Vec<u8>> {
    let dir = std::env::temp_dir().join(format!("netwren-fuzz-spool-{}", std::process::id()));
    let options = export::SpoolOptions { sync: export::SyncWhen::Never, ..export::SpoolOptions::new(1 << 20) };
    let mut files = Vec::new();
    if let Ok((mut spool, _)) = export::Spool::open(&dir, "json:/fuzz", options) {
        for text in ["first", "second"] {
            let batch = export::Batch::of_parts(0, text.as_bytes().to_vec(), vec![1, text.len() as u32]);
            let _ = batch.map(|batch| export::Store::push(&mut spool, batch, export::WhenFull::Block, 0));
        }
    }
    for place in std::fs::read_dir(&dir).into_iter().flatten().flatten() {
        let found = std::fs::read_dir(place.path()).into_iter().flatten().flatten();
        files.extend(found.filter_map(|file| std::fs::read(file.path()).ok()));
    }
    let _ = std::fs::remove_dir_all(dir);
    files
}
