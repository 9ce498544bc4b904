"""Those who talk to the host that the cookbook looks at, from outside: two clients and a server on the internet.

They connect once a line comes on stdin. Prints `ready` when all connections are there, and goes on for two minutes.
"""
import signal, socket, struct, sys, threading, time

HOST, OFFICE, DESK, INTERNET = "192.0.2.10", "10.1.2.3", "10.1.2.4", "198.51.100.7"
QUERY = struct.pack("!6H", 7, 0x0100, 1, 0, 0, 0) + b"\3www\7example\3com\0" + struct.pack("!2H", 1, 1)

signal.alarm(120)


def read_all(client):
    while client.recv(65536):
        pass


def internet():
    server = socket.socket()
    server.bind((INTERNET, 443))
    server.listen(4)
    while True:
        client, _ = server.accept()
        threading.Thread(target=read_all, args=(client,), daemon=True).start()


def connected(source, port):
    return socket.create_connection((HOST, port), timeout=30, source_address=(source, 0))


def dangling(source, port):
    """Begins to connect, and does not wait."""
    client = socket.socket()
    client.bind((source, 0))
    client.setblocking(False)
    client.connect_ex((HOST, port))
    return client


threading.Thread(target=internet, daemon=True).start()
sys.stdin.readline()
held = [connected(OFFICE, 443) for _ in range(3)] + [connected(DESK, 443), connected(DESK, 22)]
held += [connected(OFFICE, 8080), connected(DESK, 8080)]
for _ in range(3):
    connected(DESK, 9100).close()
held.append(connected(OFFICE, 9000))
held += [dangling(OFFICE, 9000) for _ in range(4)]
for client in held:
    client.setblocking(False)
asking, flood = socket.socket(2, 2), socket.socket(2, 2)
asking.bind((OFFICE, 0))
asking.setblocking(False)
flood.bind((DESK, 0))
print("ready", flush=True)
while True:
    asking.sendto(QUERY, (HOST, 53))
    for port in (9999, 161, 23):
        flood.sendto(b"z" * 600, (HOST, port))
    for client in held + [asking]:
        try:
            while client.recv(65536):
                pass
        except OSError:
            pass
    time.sleep(0.05)
