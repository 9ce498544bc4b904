"""The programs of the host that the cookbook looks at; they end after two minutes.

It runs as the first process of namespaces of its own (pids, mounts, host name, network), so that nothing else of the
machine is seen there. Arguments: a cgroup for the container. `eth0` is plugged in from outside. Prints `made` when the
host's network is there, and `ready` once all programs run.
"""
import ctypes, os, signal, socket, subprocess, sys, time

CGROUP = sys.argv[1]
HOST, BRIDGE, SHOP = "192.0.2.10", "172.17.0.1", "172.17.0.2"
INTERNET, SILENT = "198.51.100.7", "198.51.100.99"
LIBC, CLONE_NEWNET = ctypes.CDLL(None, use_errno=True), 0x40000000

RULES = """
table inet filter {
  chain input {
    type filter hook input priority 0
    udp dport 23 log group 1 prefix "telnet " counter drop
    udp dport 161 counter drop
  }
}
table ip nat {
  chain prerouting { type nat hook prerouting priority -100; ip daddr 192.0.2.10 tcp dport 8080 dnat to 172.17.0.2:80; }
  chain postrouting { type nat hook postrouting priority 100; ip saddr 172.17.0.0/16 oifname "eth0" masquerade; }
}
"""

NETWORK = f"""
ip link set lo up
ip netns add shop
ip link add docker0 type veth peer name eth0 netns shop
ip addr add {BRIDGE}/16 dev docker0
ip link set docker0 up
ip -n shop link set lo up
ip -n shop addr add {SHOP}/16 dev eth0
ip -n shop link set eth0 up
ip -n shop route add default via {BRIDGE}
"""


def make_network():
    os.makedirs("/run/netns", exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/run/netns"], check=True)
    socket.sethostname("web1")
    for line in NETWORK.split("\n"):
        subprocess.run(line.split(), check=True) if line else None
    for knob in ["ipv4/ip_forward", "netfilter/nf_conntrack_acct"]:
        with open("/proc/sys/net/" + knob, "w") as file:
            file.write("1")
    subprocess.run(["nft", "-f", "-"], input=RULES.encode(), check=True)


def enter(netns):
    with open("/run/netns/" + netns) as file:
        if LIBC.setns(file.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "setns")


def listening(address, backlog=16):
    server = socket.socket()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind(address)
    server.listen(backlog)
    return server


def connected(to):
    """Connects as soon as somebody listens there."""
    for _ in range(300):
        try:
            return socket.create_connection(to, timeout=5)
        except OSError:
            time.sleep(0.05)
    sys.exit(f"nobody listens at {to}")


def program(name, work, netns=None, cgroup=None):
    """Forks a program of this name; returns once `work` has called its argument. It ends with the first process."""
    ready, told = os.pipe()
    if os.fork() == 0:
        os.close(ready)
        with open("/proc/self/comm", "w") as comm:
            comm.write(name)
        if cgroup:
            with open(cgroup + "/cgroup.procs", "w") as procs:
                procs.write(str(os.getpid()))
        if netns:
            enter(netns)
        work(lambda: os.write(told, b"r"))
        while True:
            signal.pause()
    os.close(told)
    if os.read(ready, 1) != b"r":
        sys.exit(name + " did not start")
    os.close(ready)


def nginx(ready):
    server, held = listening((HOST, 443)), []
    ready()
    while True:
        client, (peer, _) = server.accept()
        held.append(client)
        client.sendall(b"x" * (200_000 if peer == "10.1.2.3" else 50_000))


def sshd(ready):
    server, held = listening(("0.0.0.0", 22)), []
    ready()
    while True:
        held.append(server.accept())


def billing(ready):
    """Never closes what its clients have closed."""
    server, held = listening((HOST, 9100)), []
    ready()
    while True:
        held.append(server.accept())


def reports(ready):
    """Accepts nothing."""
    server = listening((HOST, 9000), backlog=2)
    ready()
    while True:
        signal.pause()


def postgres(ready):
    server, held = socket.socket(socket.AF_UNIX), []
    server.bind("\0postgres/5432")
    server.listen(8)
    ready()
    while True:
        held.append(server.accept())


def collector(ready):
    """Receives datagrams and never reads them."""
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    server.bind((HOST, 9999))
    ready()
    while True:
        signal.pause()


def named(ready):
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind((HOST, 53))
    ready()
    while True:
        query, peer = server.recvfrom(512)
        server.sendto(query[:2] + b"\x81\x83" + query[4:], peer)


def tcpdump(ready):
    # Held, and without a packet: nothing has this EtherType.
    watching = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x88b5))
    ready()
    while True:
        watching.recv(64)


def webshop(ready):
    """Behind the published port; it has a connection of its own, which the host rewrites."""
    server, held = listening(("0.0.0.0", 80)), [connected((INTERNET, 443))]
    ready()
    while True:
        client, _ = server.accept()
        held.append(client)
        client.sendall(b"x" * 20_000)


def workers(ready):
    """Clients of the data base, and of a server on the internet; one that gets no answer."""
    held = []
    for _ in range(2):
        client = socket.socket(socket.AF_UNIX)
        client.connect("\0postgres/5432")
        held.append(client)
    upstream = connected((INTERNET, 443))
    silent = socket.socket()
    silent.setblocking(False)
    silent.connect_ex((SILENT, 443))
    ready()
    while True:
        upstream.sendall(b"y" * 997)
        time.sleep(0.2)


def wait_for_address():
    while True:
        try:
            return socket.socket(2, 2).bind((HOST, 0))
        except OSError:
            time.sleep(0.02)


make_network()
print("made", flush=True)
# The first process of its pids has no default actions.
signal.signal(signal.SIGALRM, lambda *_: os._exit(0))
signal.alarm(120)
wait_for_address()
for name, work, netns, cgroup in [
    ("nginx", nginx, None, None),
    ("sshd", sshd, None, None),
    ("billing", billing, None, None),
    ("reports", reports, None, None),
    ("postgres", postgres, None, None),
    ("collector", collector, None, None),
    ("named", named, None, None),
    ("tcpdump", tcpdump, None, None),
    ("webshop", webshop, "shop", CGROUP),
    ("worker", workers, None, None),
]:
    program(name, work, netns, cgroup)
print("ready", flush=True)
while True:
    signal.pause()
