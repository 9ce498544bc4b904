"""Filters that no tool of this machine sets up: BPF programs from raw instructions, rules of iptables-legacy, keys."""
import ctypes

libc = ctypes.CDLL(None, use_errno=True)
XDP, TCX, CGROUP = 6, 3, 8


def bpf(command, attr):
    """bpf(2); returns a descriptor."""
    attr = ctypes.create_string_buffer(attr, 128)
    number = {"x86_64": 321, "aarch64": 280}[os.uname().machine]
    result = libc.syscall(number, command, attr, len(attr))
    if result < 0:
        raise OSError(ctypes.get_errno(), "bpf %d" % command)
    held.append(result)
    return result


def port_filter(kind, port):
    """A BPF program that drops packets to this TCP or UDP port over IPv4."""
    # Where the packet's ends are in the context, where the IP header is, and the verdicts.
    ends, header, let_pass, drop = {XDP: (0, 14, 2, 1), TCX: (76, 14, 0, 2), CGROUP: (76, 0, 1, 0)}[kind]
    code = [
        (0xB7, 0, 0, 0, let_pass),
        (0x61, 2, 1, ends, 0),
        (0x61, 3, 1, ends + 4, 0),
        (0xBF, 4, 2, 0, 0),
        (0x07, 4, 0, 0, header + 24),
        (0x2D, 4, 3, 3, 0),
        (0x69, 5, 2, header + 22, 0),
        (0x55, 5, 0, 1, socket.htons(port)),
        (0xB7, 0, 0, 0, drop),
        (0x95, 0, 0, 0, 0),
    ]
    code = b"".join(struct.pack("=BBhi", op, src << 4 | dst, off, imm) for op, dst, src, off, imm in code)
    code, license = ctypes.create_string_buffer(code, len(code)), ctypes.create_string_buffer(b"GPL")
    held.extend([code, license])
    return bpf(5, struct.pack("=IIQQ", kind, len(code) // 8, ctypes.addressof(code), ctypes.addressof(license)))


def xdp(iface, port, is_generic):
    """Attaches an XDP program that drops packets to this port, as long as this process lives."""
    program = port_filter(XDP, port)
    # BPF_LINK_CREATE, BPF_XDP, XDP_FLAGS_SKB_MODE or XDP_FLAGS_DRV_MODE.
    bpf(28, struct.pack("=IIII", program, socket.if_nametoindex(iface), 37, 2 if is_generic else 4))


def tcx(iface, port, is_egress):
    """Attaches a tc program with tcx."""
    bpf(28, struct.pack("=IIII", port_filter(TCX, port), socket.if_nametoindex(iface), 47 if is_egress else 46, 0))


def own_cgroup():
    """Makes a cgroup and returns its path."""
    place = os.path.join(os.path.dirname(READY), "cgroups")
    os.makedirs(place, exist_ok=True)
    run("mount -t cgroup2 none %s" % place)
    for old in [entry.path for entry in os.scandir(place) if entry.name.startswith("incident-")]:
        try:
            os.rmdir(old)
        except OSError:
            pass
    own = os.path.join(place, "incident-%d" % os.getpid())
    os.mkdir(own)
    return own


def put(path, text):
    with open(path, "w") as file:
        file.write(str(text))


def cgroup(port, is_egress):
    """Moves this process into a cgroup of its own, whose program drops packets to this port."""
    own = own_cgroup()
    put(os.path.join(own, "cgroup.procs"), os.getpid())
    directory = os.open(own, os.O_RDONLY)
    held.append(directory)
    bpf(28, struct.pack("=IIII", port_filter(CGROUP, port), directory, int(is_egress), 0))


def frozen(pid):
    """Moves a process into a cgroup and freezes it, as a container is paused."""
    own = own_cgroup()
    put(os.path.join(own, "cgroup.procs"), pid)
    put(os.path.join(own, "cgroup.freeze"), 1)


def legacy_drop(chain, port):
    """A rule of iptables-legacy in the chain INPUT, FORWARD or OUTPUT that drops packets to this TCP port."""

    def entry(matches, target):
        ip = struct.pack("=16x64xHBB", 6 if matches else 0, 0, 0)
        head = struct.pack("=I HH I 16x", 0, 112 + len(matches), 112 + len(matches) + len(target), 0)
        return ip + head + matches + target

    def verdict(number):
        return struct.pack("=H29sB i4x", 40, b"", 0, number)

    tcp = struct.pack("=H29sB HHHHBBBB4x", 48, b"tcp", 0, 0, 65535, port, port, 0, 0, 0, 0)
    entries, hooks, ends = b"", [0] * 5, [0] * 5
    for hook, name in ((1, "INPUT"), (2, "FORWARD"), (3, "OUTPUT")):
        hooks[hook] = len(entries)
        entries += entry(tcp, verdict(-1)) if name == chain else b""
        ends[hook] = len(entries)
        entries += entry(b"", verdict(-2))
    entries += entry(b"", struct.pack("=H29sB 30s2x", 64, b"ERROR", 0, b"ERROR"))
    setter = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
    # IPT_SO_GET_INFO: the number of entries now, whose counters the kernel returns.
    info, size = ctypes.create_string_buffer(struct.pack("=32s52x", b"filter"), 84), ctypes.c_uint32(84)
    libc.getsockopt(setter.fileno(), 0, 64, info, ctypes.byref(size))
    old = struct.unpack_from("=I", info.raw, 76)[0]
    counters = ctypes.create_string_buffer(16 * old)
    head = struct.pack("=32sIII5I5IIQ", b"filter", 0xE, 5, len(entries), *hooks, *ends, old, ctypes.addressof(counters))
    setter.setsockopt(0, 64, head + entries)


def sign(one, peer, key):
    """TCP_MD5SIG: segments from and to this peer must have a signature with this key."""
    one.setsockopt(socket.IPPROTO_TCP, 14, struct.pack("=HH4s120xBBHI80s", socket.AF_INET, 0, socket.inet_aton(peer), 0,
                                                      0, len(key), 0, key))


def signed_web(port, key):
    """Like `web`, with signed segments for the client; without a key they are not signed."""
    listener = listen(port)
    if key:
        sign(listener, CLIENT, key)

    def serve():
        while going():
            background(answer, listener.accept()[0], 2000)

    background(serve)


def signed_ask(host, port, key):
    """Like `ask`, with signed segments."""

    def once():
        try:
            with socket.socket() as connection:
                connection.settimeout(3)
                if key:
                    sign(connection, host, key)
                connection.connect((host, port))
                connection.sendall(b"x" * 100)
                while connection.recv(1 << 16):
                    pass
        except OSError:
            pass

    keep_asking(once, 0.05)
