//! BPF maps that store values with a socket.
use record::Proto;
use record::rows::need;
use record::{Next, Source};
use sockets::{Options, SocketSource, Via};
use testkit::netns::Lab;

use crate::rows::{cells, demand, here};

/// Creates a listener and two maps of type BPF_MAP_TYPE_SK_STORAGE with a value for it; writes their ids into the file
/// given as argument and waits to be killed.
const SCRIPT: &str = r#"
import ctypes, os, platform, signal, socket, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
number = {"x86_64": 321, "aarch64": 280}[platform.machine()]
def bpf(command, attr):
    attr = ctypes.create_string_buffer(attr, 128)
    result = libc.syscall(number, command, attr, 128)
    if result < 0: raise OSError(ctypes.get_errno(), "bpf %d" % command)
    return result, attr
strings = b"\0int\0"
types = struct.pack("IIII", 1, 1 << 24, 4, 1 << 24 | 32)
btf = struct.pack("HBBIIIII", 0xeb9f, 1, 0, 24, 0, len(types), len(types), len(strings)) + types + strings
btf = ctypes.create_string_buffer(btf, len(btf))
btf_fd, _ = bpf(18, struct.pack("QQIII", ctypes.addressof(btf), 0, len(btf), 0, 0))
listener = socket.socket(); listener.bind(("127.0.0.1", 7120)); listener.listen(1)
ids = []
for i in range(2):
    fd, _ = bpf(0, struct.pack("7I16s4I", 24, 4, 4, 0, 1, 0, 0, b"nw_storage", 0, btf_fd, 1, 1))
    key, value = ctypes.c_int(listener.fileno()), ctypes.c_int(42)
    bpf(2, struct.pack("IxxxxQQQ", fd, ctypes.addressof(key), ctypes.addressof(value), 0))
    info = ctypes.create_string_buffer(80)
    bpf(15, struct.pack("IIQ", fd, 80, ctypes.addressof(info)))
    ids.append(struct.unpack_from("I", info, 4)[0])
with open(sys.argv[1] + ".part", "w") as f: f.write(" ".join(map(str, ids)))
os.rename(sys.argv[1] + ".part", sys.argv[1])
signal.pause()
"#;

fn listener(need: u64) -> String {
    let options = Options { via: Some(Via::Netlink), order: vec![Proto::Tcp], ..here() };
    let mut told = Vec::new();
    let stats = SocketSource::new(&sys::Host::live(), options).run(&demand(need, Vec::new()), &mut |row| {
        told.push(cells(row));
        Next::More
    });
    assert!(stats.is_ok_and(|stats| !stats.is_partial()));
    told.retain(|row| row.contains("local_port=7120"));
    told.pop().unwrap()
}

#[test]
fn root_storages_are_counted_and_named() {
    testkit::require_root!();
    testkit::require_tool!("python3");
    let lab = Lab::new("storages");
    lab.ip(&["link", "set", "lo", "up"]);
    let ready = lab.dir().join("ready");
    lab.spawn("python3", &["-c", SCRIPT, ready.to_str().unwrap()]);
    lab.wait_until("the maps", || ready.exists());
    let ids = std::fs::read_to_string(&ready).unwrap();
    lab.run_inside(|| {
        let row = listener(need::STORAGES);
        assert!(row.contains(" bpf_storages=2"), "{row}");
        let first = row.split("bpf_map_id=").nth(1).unwrap_or_default();
        assert!(ids.split(' ').any(|id| id == first.split(' ').next().unwrap_or_default()), "{row}: {ids}");
        // Storages are only fetched if they are requested.
        assert!(!listener(need::SOCKOPT).contains("bpf_"));
    });
}
