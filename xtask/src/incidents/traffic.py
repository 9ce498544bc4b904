"""What the hosts of an incident do: servers, clients, packets. Every helper ends by itself."""
import array
import ctypes
import fcntl
import itertools
import os
import select
import socket
import struct
import subprocess
import sys
import threading
import time

ILL = sys.argv[1] == "ill"
READY = sys.argv[2]
END = time.time() + 40
CLIENT, CLIENT6, SERVER = "192.0.2.10", "2001:db8::10", "172.17.0.2"
held = []


def going():
    return time.time() < END


def ready(after=0.0):
    """Says that the traffic runs as it should, `after` so many seconds."""
    time.sleep(after)
    open(READY, "w").close()


def run(line):
    subprocess.run(line, shell=True, check=False, stderr=subprocess.DEVNULL)


def background(work, *args):
    thread = threading.Thread(target=work, args=args, daemon=True)
    thread.start()
    return thread


def listen(port, backlog=128, family=socket.AF_INET, rcvbuf=0, address=""):
    listener = socket.socket(family)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if rcvbuf:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, rcvbuf)
    listener.bind((address, port))
    listener.listen(backlog)
    held.append(listener)
    return listener


def answer(connection, size):
    try:
        with connection:
            if connection.recv(4096):
                connection.sendall(b"x" * size)
    except OSError:
        pass


def serve_at(listener, hangs=False, size=2000):
    """Answers every connection with so many bytes, and closes it."""

    def serve():
        while going():
            background(answer, listener.accept()[0], size)

    if not hangs:
        background(serve)


def web(port, size=2000, backlog=128):
    """Answers every connection with so many bytes, and closes it."""
    serve_at(listen(port, backlog), size=size)


def sink(port, rcvbuf=0):
    """Reads whatever comes by TCP."""
    listener = listen(port, rcvbuf=rcvbuf)

    def read(connection):
        try:
            while connection.recv(1 << 16):
                pass
        except OSError:
            pass

    def serve():
        while going():
            background(read, listener.accept()[0])

    background(serve)


def keep_asking(once, every_s):
    """Starts `once` in a thread again and again, at most 60 at the same time."""

    def loop():
        while going():
            if threading.active_count() < 60:
                background(once)
            time.sleep(every_s)

    background(loop)


def ask(host, port, every=0.03, size=100):
    """One connection after the other; nobody waits for one that does not come about longer than a second and a half."""

    def once():
        try:
            with socket.create_connection((host, port), timeout=3) as connection:
                connection.settimeout(3)
                connection.sendall(b"x" * size)
                while connection.recv(1 << 16):
                    pass
        except OSError:
            pass

    keep_asking(once, every)


def burst(host, port, count):
    """Opens so many connections at the same moment, again and again."""

    def once():
        connections = [socket.socket() for _ in range(count)]
        for connection in connections:
            connection.setblocking(False)
            connection.connect_ex((host, port))
        time.sleep(0.5)
        for connection in connections:
            connection.close()

    keep_asking(once, 0.3)


def hold(host, port, count, every=0.002):
    """Opens so many connections and keeps them."""
    for _ in range(count):
        connection = socket.socket()
        connection.setblocking(False)
        connection.connect_ex((host, port))
        held.append(connection)
        time.sleep(every)


def upload(host, port, every=0.01):
    """Sends much over one connection."""

    def loop():
        while going():
            try:
                with socket.create_connection((host, port), timeout=3) as connection:
                    connection.settimeout(20)
                    while going():
                        connection.sendall(b"x" * 30000)
                        time.sleep(every)
            except OSError:
                time.sleep(0.1)

    background(loop)


def send_all(host, port, sndbuf=0, again_s=None):
    """Sends as fast as it can over one connection; over another one each `again_s` seconds."""

    def connect():
        connection = socket.socket()
        if sndbuf:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, sndbuf)
        connection.connect((host, port))
        held.append(connection)
        return connection, time.monotonic()

    def send():
        nonlocal connection, since
        if again_s and time.monotonic() - since > again_s:
            connection.close()
            connection, since = connect()
        connection.sendall(b"x" * 65536)

    connection, since = connect()
    every(0, send)


def receive_all(host, port):
    """Reads as fast as it can from one connection."""
    connection = socket.create_connection((host, port))
    held.append(connection)
    every(0, lambda: connection.recv(1 << 16))


def bulk(port, sndbuf=0):
    """Sends to each client as fast as it can."""
    listener = listen(port)
    if sndbuf:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, sndbuf)

    def serve():
        while going():
            connection = listener.accept()[0]
            held.append(connection)
            background(every, 0, lambda connection=connection: connection.sendall(b"x" * 65536))

    background(serve)


def replies(port, size, parts, is_nagle=False, after_s=0.0):
    """Answers each request of so many bytes with writes of these sizes."""
    listener = listen(port)

    def talk(connection):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, int(not is_nagle))
        while connection.recv(size, socket.MSG_WAITALL):
            time.sleep(after_s)
            for part in parts:
                connection.sendall(b"y" * part)

    def serve():
        while going():
            background(talk, listener.accept()[0])

    background(serve)


def exchanges(host, port, parts, answer_size=50, is_nagle=False, pause_s=0.002):
    """Writes a request in parts of these sizes and reads the answer, again and again over one connection."""
    connection = socket.create_connection((host, port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, int(not is_nagle))
    held.append(connection)

    def once():
        for part in parts:
            connection.sendall(b"x" * part)
        connection.recv(answer_size, socket.MSG_WAITALL)

    every(pause_s, once)


def take(receiver):
    """Reads the answers that are there."""
    try:
        while True:
            receiver.recv(65536)
    except OSError:
        pass


def datagrams(host, port, size=100, every=0.005, source="", ttl=None, family=socket.AF_INET):
    """Sends datagrams at a steady rate."""
    sender = socket.socket(family, socket.SOCK_DGRAM)
    if source:
        sender.bind((source, 0))
    if ttl:
        sender.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, ttl)
    held.append(sender)
    sender.setblocking(False)

    def loop():
        while going():
            try:
                sender.sendto(b"x" * size, (host, port))
            except OSError:
                pass
            take(sender)
            time.sleep(every)

    background(loop)


def flows(host, ports, every=0.005, sources=1):
    """A datagram to each port in turn, from so many sockets."""
    senders = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(sources)]
    held.extend(senders)
    [sender.setblocking(False) for sender in senders]

    def loop():
        while going():
            for sender in senders:
                take(sender)
                for port in ports:
                    try:
                        sender.sendto(b"x", (host, port))
                    except OSError:
                        pass
                    if every:
                        time.sleep(every)

    background(loop)


def echo(*ports, family=socket.AF_INET, answers=True):
    """Takes datagrams at these ports, and sends each back."""
    takers = []
    for port in ports:
        taker = socket.socket(family, socket.SOCK_DGRAM)
        taker.bind(("", port))
        takers.append(taker)
    held.extend(takers)

    def loop():
        while going():
            for taker in select.select(takers, [], [], 1)[0]:
                data, source = taker.recvfrom(65536)
                if answers:
                    taker.sendto(data, source)

    background(loop)


def resolve(host):
    """Asks a name server, and waits five seconds for it as the resolver of the C library does."""

    def loop():
        while going():
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asker:
                asker.settimeout(5)
                asker.connect((host, 53))
                try:
                    asker.send(b"\x12\x34\1\0\0\1\0\0\0\0\0\0\4name\0\0\1\0\1")
                    asker.recv(512)
                except OSError:
                    pass
            time.sleep(0.05)

    for _ in range(4):
        background(loop)


def name_server(host, answers=True, port=53, codes=(0,)):
    """Answers queries to this address; to any, from the address that the kernel chooses, if it is empty. The answers
    have these response codes in turn."""
    taker = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    taker.bind((host, port))
    held.append(taker)

    def serve():
        turn = itertools.cycle(codes)
        while going():
            query, client = taker.recvfrom(512)
            if answers:
                taker.sendto(query[:2] + bytes((0x81, 0x80 + next(turn))) + query[4:], client)

    background(serve)


def resolver(servers, wait_s=5.0, pause_s=0.2, port=53):
    """Asks one server after the other, as the C library does: each has `wait_s` to answer."""

    def ask_one(server, query):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asker:
            asker.settimeout(wait_s)
            asker.connect((server, port))
            try:
                asker.send(query)
                return bool(asker.recv(512))
            except OSError:
                return False

    def loop():
        number = 0
        while going():
            number += 7919
            query = struct.pack("!H", number & 0xFFFF) + b"\1\0\0\1\0\0\0\0\0\0\4name\0\0\1\0\1"
            any(ask_one(server, query) for server in servers)
            time.sleep(pause_s)

    background(loop)


def checksum(data):
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack("!%dH" % (len(data) // 2), data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def ip_packet(source, target, proto, payload):
    head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(payload), 7, 0, 64, proto, 0,
                       socket.inet_aton(source), socket.inet_aton(target))
    return head + payload


def tcp_segment(source, target, sport, dport, seq, ack, flags, options=b"", data=b""):
    head = struct.pack("!HHIIBBHHH", sport, dport, seq & 0xFFFFFFFF, ack & 0xFFFFFFFF,
                       (20 + len(options)) // 4 << 4, flags, 64000, 0, 0) + options
    pseudo = socket.inet_aton(source) + socket.inet_aton(target) + struct.pack("!BBH", 0, 6, len(head) + len(data))
    total = checksum(pseudo + head + data)
    return head[:16] + struct.pack("!H", total) + head[18:] + data


def raw():
    sender = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
    held.append(sender)
    return sender


def syns(host, port, sources, every=0.002):
    """SYNs from addresses that do not answer."""
    sender = raw()

    def loop():
        number = 0
        while going():
            number += 1
            source = sources % (number % 250 + 1)
            segment = tcp_segment(source, host, 1024 + number % 60000, port, number * 7919, 0, 2)
            sender.sendto(ip_packet(source, host, 6, segment), (host, 0))
            time.sleep(every)

    background(loop)


def netlink(protocol, groups=0, buffer=2048):
    """A netlink socket that is never read."""
    listener = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, protocol)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    listener.bind((0, groups))
    held.append(listener)
    return listener


def nfnetlink(listener, kind, group, *attributes):
    """A request to netfilter: its header, then attributes of (type, bytes)."""
    body = struct.pack("!BBH", 2, 0, group)
    for number, data in attributes:
        body += struct.pack("=HH", 4 + len(data), number) + data + b"\0" * (-len(data) % 4)
    listener.send(struct.pack("=IHHII", 16 + len(body), kind, 1, 0, 0) + body)


def bind_log_group(group, buffer=2048):
    """Binds a log group and reads nothing."""
    listener = netlink(12, 0, buffer)
    nfnetlink(listener, 4 << 8 | 1, group, (1, b"\1"))
    nfnetlink(listener, 4 << 8 | 1, group, (2, struct.pack("!IBB", 65535, 2, 0)))
    return listener


def read_log_group(group):
    """Binds a log group and reads it."""
    listener = bind_log_group(group, 1 << 22)

    def loop():
        while going():
            try:
                listener.recv(1 << 17)
            except OSError:
                pass

    background(loop)


def every(seconds, work):
    """Does something again and again, whatever becomes of it."""

    def loop():
        while going():
            try:
                work()
            except OSError:
                pass
            time.sleep(seconds)

    background(loop)


def whole_ip_packet(source, target, proto, payload):
    """An IP packet with its checksum: a packet socket does not fill it in."""
    packet = ip_packet(source, target, proto, payload)
    return packet[:10] + struct.pack("!H", checksum(packet[:20])) + packet[12:]


def tagged(vlan):
    """Frames to the router with this VLAN; without a tag if it is 0."""
    sender = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    sender.bind(("c0", 0))
    taker = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    taker.bind(("", 999))
    taker.setblocking(False)
    held.extend([sender, taker])
    tag = struct.pack("!HH", 0x8100, vlan) if vlan else b""
    packet = whole_ip_packet(CLIENT, SERVER, 17, struct.pack("!HHHH", 999, 7, 12, 0) + b"data")
    frame = b"\2\0\0\0\0\1" + b"\2\0\0\0\0\3" + tag + b"\x08\0" + packet
    every(0.01, lambda: (take(taker), sender.send(frame)))


def joined(group, port, iface, source=""):
    """Joins a group on the interface with this address, for one source if there is one, and reads its datagrams."""
    taker = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    taker.bind(("", port))
    own = socket.inet_aton(group) + socket.inet_aton(iface)
    # IP_ADD_MEMBERSHIP or IP_ADD_SOURCE_MEMBERSHIP
    taker.setsockopt(socket.IPPROTO_IP, 39 if source else 35, own + (socket.inet_aton(source) if source else b""))
    held.append(taker)

    def loop():
        while going():
            taker.recv(65536)

    background(loop)


def stream_to(group, port, iface, every_s=0.01):
    """Sends a stream to a group from the interface with this address."""
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    # IP_MULTICAST_IF, IP_MULTICAST_TTL
    sender.setsockopt(socket.IPPROTO_IP, 32, socket.inet_aton(iface))
    sender.setsockopt(socket.IPPROTO_IP, 33, 8)
    held.append(sender)
    every(every_s, lambda: sender.sendto(b"x" * 500, (group, port)))


def damaged(total):
    """Datagrams with this checksum; 0 is none."""
    sender = raw()
    taker = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    taker.bind(("", 999))
    taker.setblocking(False)
    held.append(taker)
    packet = ip_packet(CLIENT, SERVER, 17, struct.pack("!HHHH", 999, 7, 12, total) + b"data")
    every(0.01, lambda: (take(taker), sender.sendto(packet, (SERVER, 0))))


def old_stamps(port):
    """Segments of an upload, as the server expects the next one, with a time stamp of long ago."""
    tap = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))
    tap.bind(("c0", 3))
    held.append(tap)
    sender = raw()

    def copy():
        packet = tap.recv(2048)
        if len(packet) < 52 or packet[9] != 6 or packet[20:22] != struct.pack("!H", port):
            return
        sport, ack, seq = struct.unpack("!HII", packet[22:32])
        # The server's answer: its own stamp, then the newest one of ours.
        own, ours = struct.unpack("!II", packet[44:52])
        stamp = b"\1\1\x08\x0a" + struct.pack("!II", (ours - 100000) & 0xFFFFFFFF, own)
        segment = tcp_segment(CLIENT, SERVER, sport, port, seq, ack, 24, stamp, b"old")
        sender.sendto(ip_packet(CLIENT, SERVER, 6, segment), (SERVER, 0))

    every(0.005, copy)


def strays(port):
    """Acknowledgements of connections that never began."""
    sender = raw()
    packet = ip_packet(CLIENT, SERVER, 6, tcp_segment(CLIENT, SERVER, 999, port, 5, 5, 16))
    every(0.01, lambda: sender.sendto(packet, (SERVER, 0)))


def link_mode(name, mbps, is_full, best=1000):
    """An interface that has this speed and duplex, and whose ends offer `best`: a tap remembers what it is told."""
    tap = os.open("/dev/net/tun", os.O_RDWR)
    held.append(tap)
    # TUNSETIFF: IFF_TAP and IFF_NO_PI.
    fcntl.ioctl(tap, 0x400454CA, struct.pack("16sH22x", name.encode(), 0x1002))
    asker = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    modes = {100: 0b1111, 1000: 0b101111}[best]

    def ethtool(command, words, masks):
        value = array.array("B", struct.pack("=IIBBBBBBBbBBBB28x", command, mbps, int(is_full), 0, 0, 1, 0, 0, 0, words,
                                             0, 0, 0, 0) + masks + bytes(400))
        # SIOCETHTOOL
        fcntl.ioctl(asker, 0x8946, struct.pack("16sP16x", name.encode(), value.buffer_info()[0]))
        return value

    # ETHTOOL_GLINKSETTINGS says how many words a mask has, ETHTOOL_SLINKSETTINGS takes three of them.
    words = -struct.unpack_from("=b", ethtool(0x4C, 0, b""), 15)[0]
    ethtool(0x4D, words, struct.pack("=I%dx" % (words * 4 - 4), modes) * 3)
    run("ip link set %s up" % name)


def ftp_server():
    """Control connections at port 21 that know PASV alone, and data of any port that the kernel chooses."""

    def session(control):
        with control:
            control.sendall(b"220 ready\r\n")
            while control.recv(512):
                data = socket.socket()
                data.bind(("", 0))
                data.listen()
                data.settimeout(2)
                high, low = divmod(data.getsockname()[1], 256)
                control.sendall(b"227 Entering Passive Mode (%s,%d,%d)\r\n" %
                                (control.getsockname()[0].replace(".", ",").encode(), high, low))
                try:
                    data.accept()[0].close()
                except OSError:
                    pass
                data.close()

    listener = listen(21)

    def serve():
        while going():
            background(session, listener.accept()[0])

    background(serve)


def ftp(host):
    """Asks for data again and again, over four control connections."""

    def session():
        with socket.create_connection((host, 21), timeout=5) as control:
            control.recv(512)
            while going():
                control.sendall(b"PASV\r\n")
                words = control.recv(512).split(b"(")[1].split(b")")[0].split(b",")
                try:
                    socket.create_connection((host, int(words[4]) * 256 + int(words[5])), timeout=1).close()
                except OSError:
                    pass
                time.sleep(0.05)

    def loop():
        while going():
            try:
                session()
            except (OSError, IndexError):
                time.sleep(0.2)

    for _ in range(4):
        background(loop)


def tftp_server():
    """Answers each request at port 69 from a port of its own."""
    taker = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    taker.bind(("", 69))
    held.append(taker)

    def serve():
        while going():
            client = taker.recvfrom(512)[1]
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as answerer:
                answerer.settimeout(0.1)
                answerer.sendto(b"\0\3\0\1data", client)
                try:
                    answerer.recv(512)
                except OSError:
                    pass

    background(serve)


def tftp(host):
    """Asks for a file again and again."""

    def once():
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asker:
            asker.settimeout(0.2)
            asker.sendto(b"\0\1file\0octet\0", (host, 69))
            try:
                asker.sendto(b"\0\4\0\1", asker.recvfrom(512)[1])
            except OSError:
                pass

    every(0.02, once)


def fork(work, *args):
    """Does the work in a process of its own, which ends with this one. Returns its pid."""
    pid = os.fork()
    if pid == 0:
        # PR_SET_PDEATHSIG: also a stopped process ends.
        ctypes.CDLL(None).prctl(1, 9)
        work(*args)
        while going():
            time.sleep(0.2)
        os._exit(0)
    return pid


def one_of_many(port, hangs=False, backlog=128):
    """A worker with a listener of its own, which shares its port."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    listener.bind(("", port))
    listener.listen(backlog)
    held.append(listener)
    serve_at(listener, hangs)


def accept_only(port):
    """Accepts connections, and reads nothing."""
    listener = listen(port)

    def serve():
        while going():
            held.append(listener.accept()[0])

    background(serve)


def unix_web(name, hangs=False, backlog=128):
    """Answers every connection at a unix socket and closes it."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(name)
    listener.listen(backlog)
    held.append(listener)
    serve_at(listener, hangs)


def unix_accept_only(name):
    """Accepts connections at a unix socket, and reads nothing."""
    unix_web(name, hangs=True)
    listener = held[-1]

    def serve():
        while going():
            held.append(listener.accept()[0])

    background(serve)


def unix_ask(name, every_s=0.05):
    """One connection after the other to a unix socket."""

    def once():
        try:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(5)
                connection.connect(name)
                connection.sendall(b"x" * 100)
                while connection.recv(1 << 16):
                    pass
        except OSError:
            pass

    keep_asking(once, every_s)


def unix_log(name, hangs=False, pause_s=0.0):
    """Reads the datagrams of a unix socket."""
    log = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    log.bind(name)
    held.append(log)

    def read():
        while going():
            log.recv(4096)
            time.sleep(pause_s)

    if not hangs:
        background(read)


def unix_write(name, every_s=0.01, connects=True):
    """Writes datagrams to a unix socket, and waits while its queue is full."""
    writer = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    held.append(writer)
    if connects:
        writer.connect(name)

    def loop():
        while going():
            try:
                writer.send(b"<6>a line") if connects else writer.sendto(b"<6>a line", name)
            except OSError:
                return
            time.sleep(every_s)

    background(loop)


def session(host, port, every_s=0.1, keepalive=False):
    """A connection that sends a little again and again, or stays idle and asks whether its peer is still there."""
    connection = socket.create_connection((host, port), timeout=3)
    connection.settimeout(None)
    held.append(connection)
    if keepalive:
        for level, option, value in [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
                                     (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 1),
                                     (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 1),
                                     (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 30)]:
            connection.setsockopt(level, option, value)
    else:
        every(every_s, lambda: connection.send(b"x" * 50))


def bound(count, hosts_ports, is_bound, source=""):
    """Opens connections to these ends in turn; with `is_bound`, each gets its local port before its peer."""
    for number in range(count):
        connection = socket.socket()
        connection.setblocking(False)
        try:
            if is_bound:
                connection.bind((source, 0))
            connection.connect_ex(hosts_ports[number % len(hosts_ports)])
            held.append(connection)
        except OSError:
            connection.close()


def queries(host, port, count, every_s=0.02):
    """Datagrams from so many sockets, which stay open."""
    senders = []
    for _ in range(count):
        sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            sender.connect((host, port))
            sender.setblocking(False)
            senders.append(sender)
        except OSError:
            sender.close()
    held.extend(senders)
    number = 0

    def once():
        nonlocal number
        number += 1
        sender = senders[number % len(senders)]
        take(sender)
        sender.send(b"x")

    every(every_s, once)


def shared_echo(port, option=socket.SO_REUSEADDR, address="", answers=True):
    """Takes datagrams at a port that others may take as well, and sends each back."""
    taker = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    taker.setsockopt(socket.SOL_SOCKET, option, 1)
    taker.bind((address, port))
    held.append(taker)

    def once():
        data, source = taker.recvfrom(65536)
        if answers:
            taker.sendto(data, source)

    every(0, once)
    return taker


def serve_each(port, session, backlog=128):
    """Runs `session` for every connection in a thread; it closes the connection."""
    listener = listen(port, backlog)

    def guarded(connection):
        try:
            with connection:
                session(connection)
        except OSError:
            pass

    def serve():
        while going():
            background(guarded, listener.accept()[0])

    background(serve)


def abort(connection):
    """Closes a connection with a reset (SO_LINGER with a time of 0)."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def hasty_web(port, reads=10, size=2000):
    """Answers after the first bytes of a request and closes, whatever else was sent."""

    def session(connection):
        connection.recv(reads)
        time.sleep(0.01)
        connection.sendall(b"x" * size)

    serve_each(port, session)


def aborting_web(port, size=100000):
    """Sends an answer and resets the connection."""

    def session(connection):
        connection.recv(4096)
        connection.setblocking(False)
        connection.send(b"x" * size)
        abort(connection)

    serve_each(port, session)


def echo_stream(port):
    """Sends back whatever it reads."""

    def session(connection):
        data = connection.recv(4096)
        while data:
            connection.sendall(data)
            data = connection.recv(4096)

    serve_each(port, session)


def closing_web(port, idle_s=1.0):
    """Answers requests of a connection and closes it when none comes for a while."""

    def session(connection):
        connection.settimeout(idle_s)
        while connection.recv(4096):
            connection.sendall(b"answer")

    serve_each(port, session)


def push(port, every_s):
    """Sends some bytes to every client at long intervals."""

    def session(connection):
        while going():
            time.sleep(every_s)
            connection.sendall(b"news")

    serve_each(port, session)


def idlers(host, port, count=20, idle_s=4.0, first_port=0):
    """Connections with a request now and then; a lost one begins anew."""

    def session(source_port):
        with socket.socket() as connection:
            connection.settimeout(idle_s + 5)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if source_port:
                connection.bind(("", source_port))
            connection.connect((host, port))
            while going():
                connection.sendall(b"request")
                if not connection.recv(4096):
                    return
                time.sleep(idle_s)

    def loop(number):
        source_port = first_port and first_port + number
        time.sleep(number * idle_s / count)
        while going():
            try:
                session(source_port)
            except OSError:
                time.sleep(0.1)
            source_port = 0

    for number in range(count):
        background(loop, number)


def readers(host, port, count=20):
    """Connections that only read; a lost one begins anew."""

    def loop(number):
        time.sleep(number * 0.2)
        while going():
            try:
                with socket.create_connection((host, port), timeout=30) as connection:
                    while connection.recv(4096):
                        pass
            except OSError:
                time.sleep(0.1)

    for number in range(count):
        background(loop, number)


def blind_resets(port, ahead=20000, flags=4):
    """Segments with these flags inside the window of an upload, but not at its beginning."""
    tap = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))
    tap.bind(("c0", 3))
    held.append(tap)
    sender = raw()

    def once():
        packet = tap.recv(2048)
        if len(packet) < 40 or packet[9] != 6 or packet[20:22] != struct.pack("!H", port):
            return
        sport, ack, seq = struct.unpack("!HII", packet[22:32])
        segment = tcp_segment(CLIENT, SERVER, sport, port, seq + ahead, ack, flags)
        sender.sendto(ip_packet(CLIENT, SERVER, 6, segment), (SERVER, 0))

    every(0, once)


def redirects(target, gateway, ports):
    """Tells the client ten times to reach `target` through another gateway, about its datagrams between these ports."""
    sender = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
    sender.bind(("192.0.2.1", 0))
    inner = ip_packet(CLIENT, target, 17, struct.pack("!HHHH", *ports, 9, 0))
    message = struct.pack("!BBH4s", 5, 1, 0, socket.inet_aton(gateway)) + inner
    message = message[:2] + struct.pack("!H", checksum(message)) + message[4:]
    for _ in range(10):
        sender.sendto(message, (CLIENT, 0))
        time.sleep(0.2)


def redirects6(target, gateway, dev):
    """Tells the client five times a second to reach `target` through another gateway of this link (RFC 4861, section 4.5).

    The client forgets a redirect once its gateway has not answered."""
    sender = socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6)
    sender.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_UNICAST_HOPS, 255)
    sender.bind(("fe80::1", 0, 0, socket.if_nametoindex(dev)))
    addresses = [socket.inet_pton(socket.AF_INET6, addr) for addr in (gateway, target)]
    message = struct.pack("!BBHI", 137, 0, 0, 0) + b"".join(addresses)
    held.append(sender)
    every(0.2, lambda: sender.sendto(message, (CLIENT6, 0, 0, 0)))


def router_adverts(dev):
    """Announces this host as the default router of a link, twice a second."""
    sender = socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6)
    sender.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, 255)
    held.append(sender)
    # Hop limit 64, no flags, a lifetime of 1800 s.
    message = struct.pack("!BBHBBHII", 134, 0, 0, 64, 0, 1800, 0, 0)
    every(0.5, lambda: sender.sendto(message, ("ff02::1", 0, 0, socket.if_nametoindex(dev))))
