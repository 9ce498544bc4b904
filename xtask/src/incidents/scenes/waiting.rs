//! Programs and peers that wait while nothing overflows yet.

use super::At::{Client, Router, Server};
use super::{Incident, Lines, NONE};

/// A client of a server that sends a little all the time; the router drops everything for the server, without a
/// message, once it runs.
const SESSIONS: Lines = &[
    (Server, "sink(80); sink(81); ready()"),
    (Client, "[session(SERVER, 80) for _ in range(3)]; ready(0.5)"),
    (Router, GONE),
];
/// The packets of the server vanish on the path.
const GONE: &str = "time.sleep(1)\n\
     rules = 'table ip f { chain c { type filter hook forward priority 0; ip daddr 172.17.0.2 drop; }; }'\n\
     if ILL: run('nft \"' + rules + '\"')\n\
     ready(1.5)";
/// A program with clients at its unix socket.
const UNIX: Lines = &[(Server, "unix_web('\\0app', ILL, 500); ready()"), (Server, "unix_ask('\\0app'); ready(0.8)")];

pub(super) const INCIDENTS: &[Incident] = &[
    Incident {
        name: "a hung server, whose accept queue has room",
        expected: "not-accepting",
        at: Server,
        traffic: &[
            (Server, "listen(80, 500) if ILL else web(80, backlog=500); web(81); ready()"),
            (Client, "ask(SERVER, 80, 0.05); ask(SERVER, 81); ready(0.8)"),
        ],
        is_quick: true,
        ..NONE
    },
    Incident {
        name: "one of several workers of a port hangs",
        expected: "not-accepting",
        at: Server,
        traffic: &[
            (Server, "[fork(one_of_many, 80, ILL and n == 2) for n in range(4)]; ready(0.3)"),
            (Client, "ask(SERVER, 80, 0.01); ready(1.5)"),
        ],
        ..NONE
    },
    Incident {
        name: "a server is stopped by a signal",
        expected: "process-stopped",
        at: Server,
        traffic: &[
            (
                Server,
                "pid = fork(web, 80)\ntime.sleep(0.3)\n\
                 if ILL: os.kill(pid, 19)\n\
                 ready()",
            ),
            (Client, "ask(SERVER, 80, 0.05); ready(0.8)"),
        ],
        ..NONE
    },
    Incident {
        name: "a server hangs in the kernel",
        expected: "process-stopped",
        at: Server,
        traffic: &[
            (
                Server,
                // The process that calls vfork() sleeps uninterruptibly until its child ends.
                "def hang():\n    fd = listen(80).fileno()\n    libc = ctypes.PyDLL(None)\n    \
                 if libc.vfork() == 0:\n        libc.close(fd)\n        libc.sleep(30)\n        libc._exit(0)\n\
                 fork(hang) if ILL else fork(web, 80); ready(0.3)",
            ),
            (Client, "ask(SERVER, 80, 0.05); ready(0.8)"),
        ],
        ..NONE
    },
    Incident {
        name: "a stopped program reads nothing from its connection",
        expected: "process-stopped",
        at: Server,
        traffic: &[
            (Server, "pid = fork(sink, 80); ready(0.3)\nif ILL: background(lambda: (time.sleep(2), os.kill(pid, 19)))"),
            (Client, "upload(SERVER, 80, 0.001); ready(3)"),
        ],
        ..NONE
    },
    Incident {
        name: "a server accepts connections and reads no request",
        expected: "unread-requests",
        at: Server,
        traffic: &[
            (Server, "accept_only(80) if ILL else web(80); web(81); ready()"),
            (Client, "ask(SERVER, 80, 0.1); ask(SERVER, 81); ready(0.8)"),
        ],
        ..NONE
    },
    Incident {
        name: "a program reads none of its datagrams, its buffer has room",
        expected: "udp-unread",
        at: Server,
        traffic: &[
            (
                Server,
                "echo(7) if not ILL else held.append(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))\n\
                 if ILL: held[-1].bind(('', 7))\n\
                 ready()",
            ),
            (Client, "datagrams(SERVER, 7, every=0.1); ready(0.8)"),
        ],
        ..NONE
    },
    Incident {
        name: "a server at a unix socket hangs, its backlog fills",
        expected: "unix-queue",
        at: Server,
        traffic: UNIX,
        ..NONE
    },
    Incident {
        name: "a server at a unix socket hangs, its backlog is full",
        expected: "unix-queue",
        at: Server,
        traffic: &[
            (Server, "unix_web(READY + '.sock', ILL, 5); ready()"),
            (Server, "name = READY.rsplit('-', 1)[0] + '-0.sock'; unix_ask(name); ready(1)"),
        ],
        ..NONE
    },
    Incident {
        name: "a server at a unix socket accepts connections and reads nothing",
        expected: "unix-queue",
        at: Server,
        traffic: &[
            (Server, "unix_accept_only('\\0app') if ILL else unix_web('\\0app'); ready()"),
            (Server, "unix_ask('\\0app'); ready(0.8)"),
        ],
        ..NONE
    },
    Incident {
        name: "a program does not read the datagrams of its unix socket",
        expected: "unix-queue",
        at: Server,
        traffic: &[
            (Server, "unix_log('\\0log', ILL); ready()"),
            (Server, "[unix_write('\\0log') for _ in range(3)]; ready(0.8)"),
        ],
        ..NONE
    },
    Incident {
        name: "a program does not read its unix socket, and senders are not connected to it",
        expected: "unix-queue",
        at: Server,
        traffic: &[
            (Server, "unix_log('\\0log', ILL); ready()"),
            (Server, "unix_write('\\0log', connects=False); ready(0.8)"),
        ],
        ..NONE
    },
    Incident { name: "a peer has died beyond a router", expected: "dead-peer", at: Client, traffic: SESSIONS, ..NONE },
    Incident {
        name: "one of two peers has died, others answer",
        expected: "dead-peer",
        at: Client,
        set_up: &[(Server, "ip addr add 172.17.0.3/24 dev s0")],
        traffic: &[
            (Server, "sink(80); web(81); ready()"),
            (Client, "session(SERVER, 80); ask('172.17.0.3', 81); ready(0.5)"),
            (Router, GONE),
        ],
        ..NONE
    },
    Incident {
        name: "a peer has died, and its router reports it",
        expected: "dead-peer",
        at: Client,
        traffic: &[
            (Server, "sink(80); ready()"),
            (Client, "[session(SERVER, 80) for _ in range(3)]; ready(0.5)"),
            (Server, "time.sleep(2)\nif ILL: run('ip link set s0 down')\nready(4)"),
        ],
        ..NONE
    },
    Incident {
        name: "a peer has died, keepalive probes are unanswered",
        expected: "dead-peer",
        at: Client,
        traffic: &[
            (Server, "sink(80); ready()"),
            (Client, "session(SERVER, 80, keepalive=True); ready(0.5)"),
            (Router, GONE),
        ],
        ..NONE
    },
    Incident {
        name: "a peer has died while it received much",
        expected: "dead-peer",
        at: Client,
        traffic: &[
            (Server, "sink(80); ready()"),
            (Client, "upload(SERVER, 80); upload(SERVER, 80); ready(0.5)"),
            (Router, GONE),
        ],
        ..NONE
    },
];
