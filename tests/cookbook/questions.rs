//! The questions of docs/cookbook.md in their order, each with the command that answers it.

/// How the output of a run is compared with the document.
#[derive(Clone, Copy)]
pub(super) enum Compare {
    /// Both have the same lines in any order, with varying numbers masked.
    Lines,
    /// Both contain these words; the remaining text is measured or varies with time.
    Words(&'static [&'static str]),
}

/// A question and the command that answers it.
pub(super) struct Question {
    pub(super) asks: &'static str,
    /// A line of shell.
    pub(super) line: &'static str,
    /// A sentence below the output; may be empty.
    pub(super) note: &'static str,
    pub(super) compare: Compare,
    /// True if no other kernel interface can answer.
    pub(super) needs_bpf: bool,
}

/// A heading and the questions below it.
pub(super) struct Chapter {
    pub(super) title: &'static str,
    pub(super) questions: &'static [Question],
}

const fn ask(asks: &'static str, line: &'static str) -> Question {
    Question { asks, line, note: "", compare: Compare::Lines, needs_bpf: false }
}

impl Question {
    const fn words(mut self, words: &'static [&'static str]) -> Question {
        self.compare = Compare::Words(words);
        self
    }

    const fn note(mut self, note: &'static str) -> Question {
        self.note = note;
        self
    }

    const fn bpf(mut self) -> Question {
        self.needs_bpf = true;
        self
    }
}

/// The first twenty are the questions of `first_guesses`; questions that change the host come last.
pub(super) const CHAPTERS: &[Chapter] = &[
    Chapter { title: "The first twenty questions", questions: FIRST },
    Chapter { title: "Sockets and processes", questions: SOCKETS },
    Chapter { title: "Connection tracking and NAT", questions: NAT },
    Chapter { title: "Packets", questions: PACKETS },
    Chapter { title: "The whole host", questions: HOST },
    Chapter { title: "Commands that change the host", questions: ACTIONS },
];

const FIRST: &[Question] = &[
    ask("Which programs listen?", "netwren listeners"),
    ask("Which program listens on port 9000?", "netwren listeners port=9000"),
    ask("Which programs talk to 10.1.2.3?", "netwren sockets peer=10.1.2.3 -c state,local,peer,process,pid")
        .note("A connection without a process is waiting for `accept`."),
    ask(
        "Which programs talk to the internet?",
        "netwren flows 'peer_scope = public' -c direction,peer,connections,process",
    ),
    ask(
        "Which hosts receive the most data?",
        "netwren flows -c local,peer_addr,connections,bytes_out,process --sort bytes_out --limit 3",
    )
    .note("The bytes cover the open connections; `--watch` shows bytes per second."),
    ask("Which programs leave connections in CLOSE_WAIT?", "netwren sockets 'state = close_wait' --by process,pid"),
    ask("Which accept queues are full?", "netwren listeners 'accept_q > accept_q_max'"),
    ask(
        "Which connections are slow?",
        "netwren sockets 'rtt > 1us' -c local_port,peer,rtt,process --sort rtt --limit 3",
    )
    .words(&["rtt", "process"])
    .note("`rtt > 20ms` compares times; `rtt_var_us` and `min_rtt_us` are also columns."),
    ask("Which peers cause retransmissions?", "netwren sockets 'retrans_total > 0' --by peer_addr --sum retrans_total")
        // A busy machine retransmits segments to other hosts as well.
        .words(&["198.51.100.99"]),
    ask("Which sockets does this process have?", "netwren sockets --process nginx -c state,local,peer"),
    ask(
        "Which sockets does this container have?",
        "netwren sockets --container shop --all-netns -c netns,state,local,peer_addr,process",
    ),
    ask("Which programs use this unix socket?", "netwren sockets 'path ~ postgres' -c state,path,process,pid"),
    ask("How full is the conntrack table?", "netwren nat stats -c entries,max,fill_percent,drop,early_drop"),
    ask("Which clients have the most entries?", "netwren nat top"),
    ask("Which entries does one client have?", "netwren nat src=10.1.2.3 -c proto,state,client,published,backend"),
    ask("How do I delete a client's entries?", "netwren nat delete client=10.1.2.4 -c state,client,published")
        .note("netwren deletes entries only with `--yes`, see the last chapter."),
    ask("Which connections use destination NAT?", "netwren nat 'nat = dnat' -c client,published,backend"),
    ask("Which packets does the kernel drop?", "netwren drops --for 0.5 -c count,reason,dport,process --sort count")
        .words(&["NETFILTER_DROP", "SOCKET_RCVBUFF", "collector", "9999"])
        .bpf(),
    ask("Which packets use port 53?", "netwren capture port 53 --for 0.3 -c src,dst,info --limit 2")
        .words(&["dns query 7 A www.example.com", "NXDOMAIN", "10.1.2.3"])
        .note("The filter is in tcpdump's language; `netwren tcpdump -n port 53` also prints tcpdump's lines."),
    ask(
        "How do I record a host and examine it later, or elsewhere?",
        "netwren record host.tape --for 0.5; netwren sockets --replay host.tape 'proto = tcp' --by state",
    )
    .words(&["host.tape: ", "2 rounds of", "close_wait", "established"])
    .note(
        "`netwren --replay host.tape` shows the home screen of that time. Every table can be read from the file, \
         without privileges.",
    ),
];

const SOCKETS: &[Question] = &[
    ask(
        "Which container has the connections of 172.17.0.2:80?",
        "netwren sockets --all-netns 'local = 172.17.0.2:80 and container != null' \
         -c netns,state,peer,container,process",
    )
    .note("Without `--all-netns` a line on stderr reports matches in other namespaces."),
    ask("How many TCP sockets are in each state?", "netwren sockets proto=tcp --by state"),
    ask("Which sockets have unread data?", "netwren sockets 'recv_q > 0' -c proto,recv_q,local,process"),
    ask("Which connections get no answer?", "netwren sockets 'state = syn_sent' -c local_addr,peer,process,retrans")
        .words(&["198.51.100.99", "worker"]),
    ask(
        "Which programs have the most connections?",
        "netwren sockets 'state = established and proto = tcp' --by process",
    ),
    ask(
        "Which hosts talk to the programs of a container?",
        "netwren flows --all-netns 'process = webshop' -c netns,local,peer_addr,process,container",
    ),
    ask("Which programs capture packets?", "netwren capture latency -c process,pid,iface,late_ms,late_why")
        .words(&["tcpdump", "late"]),
    ask("How do I use this in a script?", "netwren listeners --json | jq -r 'select(.local_port < 1024).process'"),
    ask(
        "Which part of a filter does the kernel apply?",
        "netwren sockets --explain 'port = 443 and process ~ ngi' -c state,peer",
    ),
    ask("How do I get the output of ss?", "netwren ss -ltn")
        .note("docs/parity.md lists the supported switches; the output is the same."),
];

const NAT: &[Question] = &[
    ask("When will the table be full, and which limit is recommended?", "netwren nat advise")
        .words(&["plenty of room", "entries"]),
    ask(
        "Which container answers which client?",
        "netwren nat --all-netns 'backend = 172.17.0.2:80' -c client,published,process,container",
    ),
    ask("Which connections were never answered?", "netwren nat 'state = syn_sent' -c client,published"),
    ask("In which states are the connections?", "netwren nat top state 'proto = tcp'"),
    ask("Are the source ports of NAT exhausted?", "netwren nat top snat_port_use")
        .words(&["used_percent", "198.51.100.7:443"]),
    ask(
        "How do I publish a port without conntrack entries?",
        "netwren nat stateless plan --publish 8081:172.17.0.2:80 | head -6",
    ),
];

const PACKETS: &[Question] = &[
    ask("Which rules drop packets?", "netwren drops --for 0.5 'reason = NETFILTER_DROP' -c count,dport,rule")
        .words(&["inet filter input handle"])
        .note("nft rules, from Linux 6.12 on; `rule_basis` shows how certain the rule is.")
        .bpf(),
    ask("Which senders' packets are dropped?", "netwren drops --events --by src,dport --for 0.5")
        .words(&["10.1.2.4", "9999"])
        .bpf(),
    ask("Which packets do rules log?", "netwren log top --group 1 --for 0.5")
        .words(&["telnet", "10.1.2.4"])
        .note("`netwren log --group 1` shows each packet; `--to` ships them."),
    ask(
        "How do I save packets to a file, and count them?",
        "netwren capture --for 0.3 -w dns.pcapng port 53; netwren capture -r dns.pcapng --by proto,src --sum len",
    )
    .words(&["written to dns.pcapng", "10.1.2.3", "192.0.2.10"]),
];

const HOST: &[Question] = &[
    ask("How do I see the whole host at a glance?", "netwren").words(&[
        "web1",
        "sockets",
        "conntrack",
        "flows",
        "listen-overflow",
        "198.51.100.7:443",
    ]),
    ask("How do I find network problems on this host?", "netwren doctor --for 1 -c severity,id,confidence --sort id")
        .words(&["listen-overflow", "udp-rcvbuf"])
        .note("Each finding also shows its cost, evidence and remedies, unless `-c` selects columns."),
    ask("Why does an accept queue overflow?", "netwren doctor tcp --for 0.5").words(&[
        "listen-overflow",
        "reports",
        "remedy",
    ]),
    ask(
        "How do I compare this host with a good day?",
        "netwren doctor --for 0.5 --record well.nw > well; sysctl -qw net.core.somaxconn=64; \
         netwren doctor --for 0.5 --baseline well.nw -c netns,thing,subject,before,after",
    )
    .words(&["somaxconn", "64"])
    .note("Run the first command on a good day; here a setting is changed before the comparison."),
    ask(
        "Which route do outgoing packets take?",
        "netwren routes 'destination = default' -c destination,gateway,iface,table",
    ),
    ask(
        "How many SYNs did listeners drop?",
        "netwren counters 'name = TcpExtListenDrops' --for 0.3 -c name,value,delta",
    )
    .note("`netwren counters --changed` shows the counters that changed, with their meaning."),
];

const ACTIONS: &[Question] = &[
    ask(
        "Close a connection.",
        "netwren sockets kill 'peer = 10.1.2.4 and port = 22' -c state,local,peer,process --yes",
    ),
    ask("Delete a client's entries.", "netwren nat delete client=10.1.2.4 -c state,client,published --yes"),
];
