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
}

/// All of them.
pub(crate) const ALL: &[Target] = &[
    Target { name: "netlink_attrs", run: |data| _ = netlink::fuzz_attrs(data), fixtures: &["nl"], examples: ATTRS },
    Target { name: "netlink_dump", run: |data| netlink::fuzz_dump(data, 4096), fixtures: &["nl"], examples: MESSAGES },
    Target { name: "dns", run: packet::dns::fuzz_dns, fixtures: &[], examples: DNS },
    Target { name: "filter", run: engine::filter::fuzz_filter, fixtures: &[], examples: FILTERS },
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
