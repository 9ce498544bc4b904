"""What healthy hosts do, in addition to traffic.py: chatter, probes, slow readers, frames of other protocols."""
import random


def shout(host, port, every_s=0.01, mark=0):
    """A datagram of a new socket each time, which nobody answers: syslog, metrics."""

    def once():
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            if mark:
                sender.setsockopt(socket.SOL_SOCKET, socket.SO_MARK, mark)
            sender.sendto(b"<13>a message", (host, port))

    every(every_s, once)


def stub(host, port=53):
    """A resolver at 127.0.0.53 that asks over one socket, which it keeps."""
    upstream = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    upstream.connect((host, port))
    upstream.settimeout(2)
    local = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    local.bind(("127.0.0.53", 53))
    held.extend([upstream, local])

    def once():
        query, client = local.recvfrom(512)
        upstream.send(query)
        local.sendto(upstream.recv(512), client)

    every(0, once)


def lookup(host="127.0.0.53", every_s=0.02, patience_s=2.0):
    """A name lookup with a socket of its own; it is closed if the answer takes longer than `patience_s`."""

    def once():
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asker:
            asker.settimeout(patience_s)
            asker.connect((host, 53))
            asker.send(b"\x12\x34\1\0\0\1\0\0\0\0\0\0\4name\0\0\1\0\1")
            asker.recv(512)

    every(every_s, once)


def idle_resolver(host):
    """A socket to a DNS server that had its answer and is kept for the next question."""
    asker = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    asker.connect((host, 53))
    asker.settimeout(2)
    asker.send(b"\x12\x34\1\0\0\1\0\0\0\0\0\0\4name\0\0\1\0\1")
    asker.recv(512)
    held.append(asker)


def late_echo(port, after_s):
    """Answers datagrams after a while."""
    taker = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    taker.bind(("", port))
    held.append(taker)

    def loop():
        waiting = []
        while going():
            if select.select([taker], [], [], 0.005)[0]:
                data, source = taker.recvfrom(65536)
                waiting.append((time.time() + after_s, data, source))
            while waiting and waiting[0][0] < time.time():
                _, data, source = waiting.pop(0)
                taker.sendto(data, source)

    background(loop)


def stream(port):
    """Sends to every client as fast as the client reads."""
    listener = listen(port)

    def feed(connection):
        try:
            with connection:
                while going():
                    connection.sendall(b"x" * 65536)
        except OSError:
            pass

    def serve():
        while going():
            background(feed, listener.accept()[0])

    background(serve)


def player(host, port, play_s=60.0, pause_s=0.0, per_s=400000):
    """Reads so many bytes a second, and nothing in pauses."""

    def loop():
        with socket.socket() as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 18)
            connection.connect((host, port))
            while going():
                until = time.time() + play_s
                while going() and time.time() < until:
                    connection.recv(per_s // 10, socket.MSG_WAITALL)
                    time.sleep(0.1)
                time.sleep(pause_s)

    background(loop)


def trickle(port, every_s=0.2):
    """Reads each request to its end, then sends an answer little by little."""
    listener = listen(port)
    clients = []

    def serve():
        while going():
            connection = listener.accept()[0]
            while connection.recv(4096):
                pass
            clients.append(connection)

    def feed():
        for connection in list(clients):
            connection.send(b"x" * 1000)

    background(serve)
    every(every_s, feed)


def half_closed(host, port, count):
    """Downloads whose clients have sent all that they will send."""
    for _ in range(count):
        connection = socket.create_connection((host, port))
        connection.sendall(b"GET")
        connection.shutdown(socket.SHUT_WR)
        connection.setblocking(False)
        held.append(connection)
    every(0.05, lambda: [take(connection) for connection in held])


def pings(hosts, every_s=1.0, ttls=(64,)):
    """Echo requests to each host; several hop limits are what mtr sends."""
    sender = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
    sender.setblocking(False)
    held.append(sender)
    number = 0

    def once():
        nonlocal number
        take(sender)
        for ttl in ttls:
            sender.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, ttl)
            for host in hosts:
                number = number + 1 & 0xFFFF
                head = struct.pack("!BBHHH", 8, 0, 0, 77, number) + b"x" * 56
                packet = head[:2] + struct.pack("!H", checksum(head)) + head[4:]
                try:
                    sender.sendto(packet, (host, 0))
                except OSError:
                    pass

    every(every_s, once)


def traceroutes(host, every_s=0.03):
    """Datagrams to ports that nobody serves, with hop limits of 1 to 4."""
    senders = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(4)]
    for ttl, sender in enumerate(senders, 1):
        sender.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, ttl)
        sender.setblocking(False)
    held.extend(senders)
    number = 0

    def once():
        nonlocal number
        number += 1
        sender = senders[number % 4]
        take(sender)
        sender.sendto(b"x" * 32, (host, 33434 + number % 90))

    every(every_s, once)


def forged(host, ports, proto, payload, every_s, sources):
    """Packets from changing addresses to these ports in turn; `payload(source, port, number)` follows the header."""
    sender = raw()
    number = 0

    def once():
        nonlocal number
        number += 1
        source, port = sources % (number % 250 + 1), ports[number % len(ports)]
        sender.sendto(ip_packet(source, host, proto, payload(source, port, number)), (host, 0))

    every(every_s, once)


def segments(host, ports, flags, sport=None, every_s=0.01, sources="198.51.100.%d"):
    """Segments without a connection: scans (SYN), backscatter (SYN-ACK, RST) of forged addresses."""

    def segment(source, port, number):
        return tcp_segment(source, host, sport or 1024 + number % 60000, port, number * 7919, 5, flags)

    forged(host, ports, 6, segment, every_s, sources)


def stray_datagrams(host, ports, every_s=0.01, sources="198.51.100.%d"):
    """Datagrams of scanners to ports of all kinds."""

    def datagram(source, port, number):
        return struct.pack("!HHHH", 1024 + number % 60000, port, 12, 0) + b"scan"

    forged(host, ports, 17, datagram, every_s, sources)


def frames(iface, all_frames, every_s=0.01):
    """Sends these frames again and again."""
    sender = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    sender.bind((iface, 0))
    held.append(sender)
    every(every_s, lambda: [sender.send(frame.ljust(60, b"\0")) for frame in all_frames])


def datagram_frame(to, source, target, port, data=b"data", ethernet_source=b"\2\0\0\0\0\7"):
    """A frame with a datagram."""
    datagram = struct.pack("!HHHH", port, port, 8 + len(data), 0) + data
    return to + ethernet_source + b"\x08\0" + whole_ip_packet(source, target, 17, datagram)


def hardware(iface):
    with open("/sys/class/net/%s/address" % iface) as file:
        return bytes.fromhex(file.read().strip().replace(":", ""))


BROADCAST = b"\xff" * 6
LINK_PROTOCOLS = [
    b"\x01\x1b\x19\0\0\0" + b"\2\0\0\0\0\7" + b"\x88\xf7" + bytes(44),  # PTP
    b"\x01\x80\xc2\0\0\x0e" + b"\2\0\0\0\0\7" + b"\x88\xcc" + bytes(44),  # LLDP
    b"\x01\x80\xc2\0\0\0" + b"\2\0\0\0\0\7" + b"\0\x26\x42\x42\x03" + bytes(35),  # STP
    b"\x01\0\x5e\0\0\xfb" + datagram_frame(b"", "172.17.0.9", "224.0.0.251", 5353),  # mDNS
]


def reset(host, ports, every_s=0.02):
    """Health checks: a connection that is reset as soon as it is there."""
    number = 0

    def once():
        nonlocal number
        number += 1
        with socket.socket() as connection:
            connection.settimeout(2)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.connect((host, ports[number % len(ports)]))

    every(every_s, once)


def half_open_checks(host, port, source, every_s=0.02):
    """Health checks that answer the SYN-ACK with a reset: the kernel does, which knows of no connection."""
    sender = raw()
    number = 0

    def once():
        nonlocal number
        number += 1
        segment = tcp_segment(source, host, 1024 + number % 60000, port, number * 7919, 0, 2)
        sender.sendto(ip_packet(source, host, 6, segment), (host, 0))

    every(every_s, once)


def churn(host, ports, workers=1):
    """One short connection after the other, as fast as it goes."""

    def loop():
        number = 0
        while going():
            number += 1
            try:
                with socket.create_connection((host, ports[number % len(ports)]), 3) as connection:
                    connection.send(b"x")
                    connection.recv(64)
            except OSError:
                time.sleep(0.01)

    for _ in range(workers):
        background(loop)


def quick_web(*ports):
    """Answers in one thread: as fast as this language is."""
    listeners = [listen(port, 1024) for port in ports]

    def serve():
        while going():
            for listener in select.select(listeners, [], [], 1)[0]:
                connection = listener.accept()[0]
                with connection:
                    if connection.recv(64):
                        connection.send(b"y")

    background(serve)


def hesitant_web(port, backlog, every_s=2.5, pause_s=0.5):
    """Accepts nothing for half a second now and then."""
    listener = listen(port, backlog)

    def serve():
        pause = time.time() + 1
        while going():
            if time.time() > pause:
                time.sleep(pause_s)
                pause = time.time() + every_s
            background(answer, listener.accept()[0], 100)

    background(serve)


def slow_web(port, pause_s=0.15, backlog=128):
    """Serves one client after the other, and takes a while for each."""
    listener = listen(port, backlog)

    def serve():
        while going():
            answer(listener.accept()[0], 2000)
            time.sleep(pause_s)

    background(serve)


def slow_of_many(port, pause_s=0.05):
    """A slow worker, which shares its port."""
    one_of_many(port, hangs=True)
    listener = held[-1]

    def serve():
        while going():
            answer(listener.accept()[0], 2000)
            time.sleep(pause_s)

    background(serve)


def hiccup(port, losses=13, every_s=2.5):
    """Reads a stream of datagrams, and stops now and then until so many are lost."""
    # On a busy machine it would lose more because it waits for a CPU.
    os.nice(-15)
    taker = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    taker.bind(("", port))
    held.append(taker)

    def lost():
        # SO_MEMINFO, SK_MEMINFO_DROPS
        return struct.unpack("=9I", taker.getsockopt(socket.SOL_SOCKET, 55, 36))[8]

    def loop():
        pause = time.time() + 1
        while going():
            taker.recv(2048)
            if time.time() > pause:
                before, until = lost(), time.time() + 0.5
                while lost() - before < losses and time.time() < until:
                    time.sleep(0.0002)
                pause = time.time() + every_s

    background(loop)


def rain(host, port, per_s=4000):
    """Datagrams at a high steady rate, in groups of forty."""
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    held.append(sender)

    def loop():
        begun, sent = time.time(), 0
        while going():
            while sent < (time.time() - begun) * per_s:
                sender.sendto(b"x" * 100, (host, port))
                sent += 1
            time.sleep(0.01)

    background(loop)


def containers(bridge, every_s=0.3):
    """Containers come, talk to their bridge and go."""
    number = 0

    def once():
        nonlocal number
        number += 1
        child = subprocess.Popen(["unshare", "-n", "sleep", "60"])
        outer, inner = "v%d" % number, "w%d" % number
        try:
            time.sleep(0.1)
            run("ip link add %s type veth peer name %s netns %d" % (outer, inner, child.pid))
            run("ip link set %s master %s; ip link set %s up" % (outer, bridge, outer))
            inside = "ip addr add 10.77.0.2/24 dev %s; ip link set %s up; ip route add default via 10.77.0.1"
            run("nsenter -t %d -n sh -c '%s'" % (child.pid, inside % (inner, inner)))
            run("nsenter -t %d -n python3 -c \"import socket; s = socket.socket(2, 2); "
                "[s.sendto(b'x', ('10.77.0.1', 7)) for _ in range(5)]\"" % child.pid)
        finally:
            child.kill()
            child.wait()

    every(every_s, once)


def tun(name, lines=""):
    """A tun device, which exists as long as this program runs."""
    device = os.open("/dev/net/tun", os.O_RDWR)
    held.append(device)
    # TUNSETIFF: IFF_TUN and IFF_NO_PI.
    fcntl.ioctl(device, 0x400454CA, struct.pack("16sH22x", name.encode(), 0x1001))
    run("ip link set %s up; %s" % (name, lines))
    return device


def long_path(delay_s=0.02, jitter_s=0.0, loss=0.0, overtakes=0.0, twice=0.0):
    """Sends the router's packets through a device that keeps each for a while, loses some, lets some overtake, and
    delivers some twice."""
    rules = "".join("ip rule add iif %s lookup 100; " % iface for iface in ("c1", "s1"))
    device = tun("path0", rules + "ip route add default dev path0 table 100; ip link set path0 txqueuelen 10000; "
                 "sysctl -qw net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.path0.rp_filter=0")
    waiting = []

    def loop():
        while going():
            now = time.time()
            left = waiting[0][0] - now if waiting else 0.1
            if select.select([device], [], [], max(left, 0))[0]:
                packet = os.read(device, 65536)
                if packet[0] >> 4 == 4 and random.random() >= loss:
                    due = now + delay_s + random.random() * jitter_s
                    if random.random() < overtakes:
                        waiting.insert(0, (now, packet))
                    else:
                        due = max(due, waiting[-1][0] if waiting else 0)
                        waiting.extend([(due, packet)] * (1 + (random.random() < twice)))
            while waiting and waiting[0][0] <= time.time():
                os.write(device, waiting.pop(0)[1])

    background(loop)


def tunnel(mine, other_end=None, port=51820, mark=0, lines=""):
    """One end of a VPN: packets of a tun device in datagrams, with a mark."""
    outer = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    if mark:
        outer.setsockopt(socket.SOL_SOCKET, socket.SO_MARK, mark)
    outer.bind(("", 0 if other_end else port))
    device = tun("vpn0", "ip addr add %s/24 dev vpn0; ip link set vpn0 mtu 1400; %s" % (mine, lines))
    held.append(outer)
    peer = (other_end, port) if other_end else None

    def loop():
        nonlocal peer
        while going():
            for one in select.select([device, outer], [], [], 1)[0]:
                if one is device:
                    packet = os.read(device, 65536)
                    if peer:
                        outer.sendto(packet, peer)
                else:
                    packet, peer = outer.recvfrom(65536)
                    os.write(device, packet)

    background(loop)


def happy_eyeballs(host6, host, port, every_s=0.05):
    """Tries IPv6, then IPv4."""

    def once():
        for address in (host6, host):
            try:
                with socket.create_connection((address, port), timeout=0.25) as connection:
                    connection.sendall(b"x")
                    while connection.recv(65536):
                        pass
                return
            except OSError:
                pass

    every(every_s, once)


def polls(hosts, port, every_s=1.0):
    """A monitor: one connection to each host at a time, then a rest."""
    for host in hosts:
        every(every_s, lambda host=host: socket.create_connection((host, port), timeout=3).close())


def game_server(port):
    """Tells all clients that it has heard of lately the state of the game, also those that have left."""
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind(("", port))
    server.setblocking(False)
    held.append(server)
    players = []

    def once():
        try:
            while True:
                players.append(server.recvfrom(100)[1])
        except OSError:
            pass
        del players[:-40]
        for one in players:
            try:
                server.sendto(b"state", one)
            except OSError:
                pass

    every(0.02, once)


def game_clients(host, port):
    """Clients that stay, and one a second that joins and leaves."""
    for _ in range(30):
        datagrams(host, port, every=0.5)

    def once():
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
            one.sendto(b"join", (host, port))
            time.sleep(0.1)

    every(0.5, once)


def lines(host, port, every_s=0.01):
    """Lines of a log over one connection, each in a write of its own."""
    connection = socket.create_connection((host, port))
    held.append(connection)
    every(every_s, lambda: connection.sendall(b"<13>a message\n"))


def workers(port, count):
    """One program whose processes each have a socket on one UDP port."""
    for _ in range(count):
        if os.fork() == 0:
            shared_echo(port, socket.SO_REUSEPORT)
            while going():
                time.sleep(0.2)
            os._exit(0)


def member(port, group, local):
    """Receives a multicast group at a port that other programs may have as well."""
    taker = shared_echo(port, answers=False)
    taker.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton(group) + socket.inet_aton(local))


def impatient(host, port, every_s=0.05):
    """A browser that leaves pages before they have arrived."""

    def once():
        with socket.create_connection((host, port), timeout=3) as connection:
            connection.sendall(b"GET")
            connection.recv(1000)

    every(every_s, once)
