//! `netwren nat` on prepared tables and on tracked connections, in labs.

use crate::run::{Ran, command_for_anyone, netwren, netwren_in};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use sys::caps::Cap;
use testkit::conntrack::{Entry, mixed_entries, status};
use testkit::netns::Lab;
use testkit::sandbox::{Limit, confine};

fn v4(last: u8) -> IpAddr {
    Ipv4Addr::new(10, 0, 0, last).into()
}

/// The sorted lines of a table without owners and headings.
#[track_caller]
fn nat(lab: &Lab, args: &[&str]) -> Vec<String> {
    let ran = netwren_in(lab, &[&["nat", "-H", "--no-owner"], args].concat());
    let mut lines: Vec<String> = ran.ok().lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

fn limited(lab: &Lab, args: &[&str], limits: &[Limit]) -> Ran {
    let mut child = command_for_anyone(args);
    let mut all = vec![Limit::Network(lab.path())];
    all.extend_from_slice(limits);
    confine(&mut child, &all).expect("the limits can be set");
    Ran::of(child.output().expect("netwren starts"))
}

/// The lines of /proc/net/nf_conntrack.
fn by_proc(lab: &Lab) -> Vec<String> {
    lab.output("cat", &["/proc/net/nf_conntrack"]).lines().map(str::to_owned).collect()
}

/// The first word after `name=` in a line.
fn word<'l>(line: &'l str, name: &str) -> Option<&'l str> {
    line.split(' ').find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
}

#[test]
fn root_nat_from_the_client_to_the_backend() {
    testkit::require_root!();
    let lab = Lab::new("natview");
    let published = (v4(30), 8080);
    lab.track([
        Entry::tcp((v4(1), 4001), (v4(2), 80), 3),
        Entry::tcp((v4(1), 4002), published, 3).dnat(v4(99), 80),
        Entry::udp((v4(1), 4003), (v4(2), 53)).snat(v4(250), 5003),
        Entry::tcp((v4(1), 4004), published, 7).dnat(v4(99), 80).snat(v4(250), 5004),
        Entry::ping(v4(1), v4(2), 77).snat(v4(250), 0).status(status::SEEN_REPLY),
        Entry::ping(v4(1), v4(3), 78),
    ]);
    let wanted = [
        "icmp\t-\tnone\t10.0.0.1\t-\t10.0.0.3\t10.0.0.3",
        "icmp\t-\tsnat\t10.0.0.1\t10.0.0.250\t10.0.0.2\t10.0.0.2",
        "tcp\testablished\tdnat\t10.0.0.1:4002\t-\t10.0.0.30:8080\t10.0.0.99:80",
        "tcp\testablished\tnone\t10.0.0.1:4001\t-\t10.0.0.2:80\t10.0.0.2:80",
        "tcp\ttime_wait\tboth\t10.0.0.1:4004\t10.0.0.250:5004\t10.0.0.30:8080\t10.0.0.99:80",
        "udp\t-\tsnat\t10.0.0.1:4003\t10.0.0.250:5003\t10.0.0.2:53\t10.0.0.2:53",
    ];
    for via in ["netlink", "proc"] {
        assert_eq!(
            nat(&lab, &["--via", via, "-c", "proto,state,nat,client,mapped,published,backend"]),
            wanted,
            "{via}"
        );
    }
    // Each word names the translation of an entry. For destination NAT, the tool we replace also lists the ping.
    for via in ["netlink", "proc"] {
        let clients = |filter: &str| nat(&lab, &["--via", via, "-c", "client", "--sort", "client", filter]);
        assert_eq!(clients("nat = dnat"), ["10.0.0.1:4002", "10.0.0.1:4004"], "{via}");
        assert_eq!(clients("nat = snat"), ["10.0.0.1", "10.0.0.1:4003", "10.0.0.1:4004"], "{via}");
        assert_eq!(clients("nat = both"), ["10.0.0.1:4004"], "{via}");
        assert_eq!(clients("nat = dnat and nat != both"), ["10.0.0.1:4002"], "{via}");
        assert_eq!(clients("nat != dnat and proto = tcp"), ["10.0.0.1:4001"], "{via}");
        assert_eq!(clients("mapped = 10.0.0.250:5004"), ["10.0.0.1:4004"], "{via}");
    }
    let usual = netwren_in(&lab, &["nat", "--no-owner", "--limit", "1"]).ok();
    assert!(usual.contains("client\tmapped\tpublished\tbackend"), "{usual}");
    assert!(lab.output("conntrack", &["-L", "--dst-nat"]).lines().count() > 2, "the reason for our own test");
    assert_eq!(nat(&lab, &["-c", "client", "backend = 10.0.0.99:80 and client = :4004"]), ["10.0.0.1:4004"]);
    assert_eq!(nat(&lab, &["-c", "client", "client in 10.0.0.0/24 and published = 10.0.0.2:53"]), ["10.0.0.1:4003"]);
    assert_eq!(nat(&lab, &["-c", "icmp_id", "icmp_type = 8 and status != seen_reply"]), ["78"]);
    assert_eq!(nat(&lab, &["-c", "client", "status = dst_nat_done and status = assured", "--sort", "client"]).len(), 2);
}

#[test]
fn root_nat_formats_of_lists_and_ends() {
    testkit::require_root!();
    let lab = Lab::new("natformats");
    let six: IpAddr = "2001:db8::1".parse().unwrap();
    lab.track([Entry::udp((six, 4000), ("2001:db8::2".parse().unwrap(), 53)).status(6).mark(0x10)]);
    let columns = ["-c", "client,status,mark,label"];
    assert_eq!(nat(&lab, &columns), ["[2001:db8::1]:4000\tseen_reply,assured,confirmed\t0x10\t-"]);
    assert_eq!(
        nat(&lab, &[&columns[..], &["-o", "json"]].concat()),
        ["{\"client\":\"[2001:db8::1]:4000\",\"status\":[\"seen_reply\",\"assured\",\"confirmed\"],\"mark\":16,\"lab\
             el\":null}"]
    );
    assert_eq!(
        nat(&lab, &[&columns[..], &["-o", "csv"]].concat()),
        ["[2001:db8::1]:4000,\"seen_reply,assured,confirmed\",0x10,"]
    );
    assert_eq!(nat(&lab, &["--by", "client,status"]), ["2001:db8::1\tseen_reply,assured,confirmed\t1"]);
    let ran = netwren_in(&lab, &["nat", "client = 4000"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("did you mean `:4000`?"), "{}", ran.stderr);
    netwren_in(&lab, &["nat", "status = asured"]).says(2, &["no value `asured`", "did you mean `assured`?"]);
    netwren_in(&lab, &["nat", "status > assured"]).says(2, &["a list of words"]);
}

/// Compares `nat top` with an independent count from /proc.
#[test]
fn root_nat_top_counts_what_proc_has() {
    testkit::require_root!();
    let lab = Lab::new("nattop");
    let all = lab.track(mixed_entries(3_000)) as u64;
    let proc = by_proc(&lab);
    assert_eq!(proc.len() as u64, all);
    let count = |key: &dyn Fn(&str) -> String| {
        let mut counts = BTreeMap::<String, u64>::new();
        proc.iter().for_each(|line| *counts.entry(key(line)).or_default() += 1);
        counts
    };
    let short = |addr: &str| addr.parse::<IpAddr>().unwrap().to_string();
    let state = |line: &str| {
        let sixth = line.split(' ').filter(|word| !word.is_empty()).nth(5).unwrap().to_owned();
        if sixth.contains('=') { "-".to_owned() } else { sixth.to_lowercase() }
    };
    type KeyOf = Box<dyn Fn(&str) -> String>;
    let cases: [(&str, KeyOf); 3] = [
        ("source", Box::new(move |line| short(word(line, "src").unwrap()))),
        ("state", Box::new(state)),
        ("port", Box::new(|line| word(line, "dport").unwrap_or("-").to_owned())),
    ];
    for (by, key) in cases {
        let counted = count(&*key);
        let ran = netwren_in(&lab, &["nat", "top", by, "-H", "--limit", "100000"]).ok();
        let ours: BTreeMap<String, u64> = ran
            .lines()
            .map(|line| line.split('\t').collect::<Vec<_>>())
            .map(|cells| (cells[0].to_owned(), cells[1].parse().unwrap()))
            .collect();
        assert_eq!(ours, counted, "{by}");
    }
    // The ten largest groups with their share of all entries, the largest first.
    let counted = count(&|line| short(word(line, "src").unwrap()));
    let mut most: Vec<u64> = counted.values().copied().collect();
    most.sort_unstable_by(|a, b| b.cmp(a));
    let ran = netwren_in(&lab, &["nat", "top", "-H"]);
    assert!(ran.stderr.contains(&format!("{} more groups are not shown", most.len() - 10)), "{}", ran.stderr);
    let rows: Vec<Vec<u64>> =
        ran.stdout.lines().map(|line| line.split('\t').skip(1).map(|cell| cell.parse().unwrap()).collect()).collect();
    let wanted: Vec<Vec<u64>> = most.iter().take(10).map(|n| vec![*n, (n * 100 + all / 2) / all]).collect();
    assert_eq!(rows, wanted);
    // The share follows the count, even if a word names several columns.
    for by in ["addr", "port", "peer", "local,dport", "source"] {
        let ran = netwren_in(&lab, &["nat", "top", by, "-o", "json", "--limit", "100000"]).ok();
        let rows: Vec<serde_json::Value> = ran.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(rows.iter().map(|row| row["count"].as_u64().unwrap()).sum::<u64>(), all, "{by}");
        for row in rows {
            let count = row["count"].as_u64().unwrap();
            assert_eq!(row["share_percent"], (count * 100 + all / 2) / all, "{by}: {row}");
        }
    }
    // A filter that begins like a list of fields is treated as a filter.
    let tcp = netwren_in(&lab, &["nat", "top", "proto", "=", "tcp", "-H", "-n", "1000"]).ok();
    let counted: u64 = tcp.lines().map(|line| line.split('\t').nth(1).unwrap().parse::<u64>().unwrap()).sum();
    assert_eq!(counted, proc.iter().filter(|line| line.contains(" tcp ")).count() as u64);
}

#[test]
fn root_nat_delete_shows_first_and_deletes_what_it_showed() {
    testkit::require_root!();
    let lab = Lab::new("natdelete");
    lab.track(mixed_entries(500));
    let doomed = nat(&lab, &["-c", "client,published", "proto = udp and nat = none"]);
    assert!(doomed.len() > 20);
    let delete = |args: &[&str]| {
        netwren_in(&lab, &[&["nat", "delete", "-H", "--no-owner", "-c", "client,published"], args].concat())
    };
    let shown = delete(&["proto = udp and nat = none"]);
    let words = format!("entries that would be deleted: {}; nothing was changed", doomed.len());
    assert!(shown.stderr.contains(&words), "{}", shown.stderr);
    assert_eq!(lab.conntrack_count(), 500, "a preview deletes nothing");
    assert_eq!(delete(&["proto = udp and nat = none", "--limit", "3", "--yes"]).ok().matches("\tdeleted\n").count(), 3);
    let done = delete(&["proto = udp and nat = none", "--yes"]);
    assert_eq!(done.stderr, format!("netwren: entries deleted: {0} of {0}\n", doomed.len() - 3));
    assert_eq!(lab.conntrack_count(), 500 - doomed.len() as u64);
    assert_eq!(nat(&lab, &["proto = udp and nat = none"]), [""; 0]);
    for more in [&["--yes"][..], &[]] {
        let none = [&["proto = udp and nat = none"], more].concat();
        delete(&none).says(0, &["no entry matches: nothing to delete"]);
        delete(&[&none[..], &["--exit-code"]].concat()).says(1, &["no entry matches: nothing to delete"]);
    }
    delete(&[]).says(2, &["needs --all"]);
    assert_eq!(delete(&["--all", "--yes"]).code, 0);
    assert_eq!(lab.conntrack_count(), 0);
}

/// Without permission to change entries, all of them stay, and each row says so.
#[test]
fn root_nat_without_rights() {
    testkit::require_root!();
    let lab = Lab::new("natrights");
    lab.track(mixed_entries(100));
    let without = [Limit::WithoutCaps(vec![Cap::NetAdmin])];
    // ctnetlink is denied; /proc is readable, because the user is still root.
    let fallen = limited(&lab, &["nat", "--no-owner", "-H", "-c", "id,client"], &without);
    assert_eq!(fallen.code, 0, "{}", fallen.stderr);
    assert!(fallen.stderr.contains("/proc/net/nf_conntrack, which has fewer fields"), "{}", fallen.stderr);
    assert_eq!(fallen.stdout.lines().filter(|line| line.starts_with("-\t")).count(), 100);
    let refused = limited(&lab, &["nat", "--no-owner", "--via", "netlink"], &without);
    assert_eq!(refused.stderr.matches("netwren support").count(), 1, "issue 10: one hint, once: {}", refused.stderr);
    refused.says(4, &["not permitted", "netwren support"]);
    limited(&lab, &["nat", "delete", "--all", "--yes", "--no-owner"], &without).says(4, &["not permitted"]);
    assert_eq!(lab.conntrack_count(), 100);
    let nobody = [Limit::User { uid: 65_534, gid: 65_534 }];
    limited(&lab, &["nat", "--no-owner"], &nobody).says(4, &["cannot read the connection-tracking table"]);
}

/// A kernel without ctnetlink, then a kernel without connection tracking.
#[test]
fn root_nat_without_the_kernels_part() {
    testkit::require_root!();
    let lab = Lab::new("natnone");
    lab.track(mixed_entries(100));
    let none = Limit::NoSocket { family: 16, protocol: Some(12), errno: sys::Errno(93) };
    let args = ["nat", "--no-owner", "-H", "-c", "client,nat"];
    let fallen = limited(&lab, &args, std::slice::from_ref(&none));
    assert_eq!(testkit::mask::sorted_lines(&fallen.ok()), testkit::mask::sorted_lines(&netwren_in(&lab, &args).ok()));
    let gone = lab.dir().join("nothing");
    std::fs::create_dir_all(&gone).unwrap();
    let hidden = Limit::Cover { with: gone, place: "/proc/sys/net".into() };
    // The number of buckets cannot be read; the table can.
    assert_eq!(limited(&lab, &args, std::slice::from_ref(&hidden)).ok().lines().count(), 100);
}

/// Reading an empty table costs almost nothing, although the host's hash table has a quarter of a million buckets.
#[test]
fn root_nat_of_nothing_reads_nothing() {
    testkit::require_root!();
    let lab = Lab::new("natempty");
    let ran = netwren_in(&lab, &["nat", "-H", "--no-owner", "--stats"]);
    assert!(ran.stderr.contains("rows seen 0:"), "{}", ran.stderr);
    assert_eq!(ran.ok(), "");
    let explained = netwren_in(&lab, &["nat", "--explain"]).ok();
    assert!(explained.contains("the kernel counts no entries: the table is not read"), "{explained}");
    assert_eq!(nat(&lab, &["--via", "netlink"]), [""; 0]);
    for table in ["expect", "dying", "unconfirmed"] {
        assert_eq!(nat(&lab, &["--table", table]), [""; 0], "{table}");
    }
}

#[test]
fn root_nat_is_recorded_and_replayed() {
    testkit::require_root!();
    let lab = Lab::new("nattape");
    lab.track(mixed_entries(400));
    let file = |name: &str| lab.dir().join(name).to_str().unwrap().to_owned();
    for (name, args) in [
        ("plain", &["-c", "client,backend,nat,state"][..]),
        ("netlink", &["--via", "netlink", "-c", "client,id,status,timeout_s,mark,zone"]),
        ("filtered", &["-c", "client,id", "nat = dnat and proto = tcp"]),
    ] {
        let tape = file(name);
        let live = nat(&lab, &[args, &["--record", &tape]].concat());
        assert!(!live.is_empty());
        let replayed = netwren(&[&["nat", "-H", "--no-owner", "--replay", &tape], args].concat());
        assert!(!replayed.stderr.contains("kernel filter"), "{}", replayed.stderr);
        assert_eq!(testkit::mask::sorted_lines(&replayed.ok()), live.join("\n") + "\n", "{name}");
    }
    let all = netwren(&["nat", "-H", "--no-owner", "--replay", &file("filtered"), "-c", "client"]);
    assert!(all.stderr.contains("the recording was made with a kernel filter"), "{}", all.stderr);
}

/// If both ends are on this host, the process is the owner of the client's socket, or of the listener if there is no
/// client socket.
#[test]
fn root_nat_owners_are_found_at_the_local_end() {
    testkit::require_root!();
    let lab = Lab::new("natowners");
    let script = "import socket,sys,signal\nl=socket.socket(); l.bind(('127.0.0.1',8080)); l.listen()\n\
                  u=socket.socket(type=socket.SOCK_DGRAM); u.bind(('0.0.0.0',5353))\n\
                  open(sys.argv[1],'w').close(); signal.pause()";
    let ready = lab.dir().join("ready");
    let server = lab.spawn("python3", &["-c", script, ready.to_str().unwrap()]);
    lab.wait_until("the server", || ready.exists());
    let local: IpAddr = [127, 0, 0, 1].into();
    lab.ip(&["addr", "add", "10.0.0.9/24", "dev", "lo"]);
    lab.track([
        // Redirected to the listener; the connection itself has no socket.
        Entry::tcp((v4(1), 4001), (v4(9), 80), 7).dnat(local, 8080),
        // One to a wildcard socket at a local address, and one through this host to the same port elsewhere.
        Entry::udp((v4(1), 4002), (v4(9), 5353)),
        Entry::udp((v4(1), 4003), (v4(77), 5353)),
    ]);
    let ran = netwren_in(&lab, &["nat", "-H", "-c", "client,process,pid", "--sort", "client"]).ok_but_owners();
    assert_eq!(
        ran,
        format!("10.0.0.1:4001\tpython3\t{server}\n10.0.0.1:4002\tpython3\t{server}\n10.0.0.1:4003\t-\t-\n")
    );
    // A connection whose two ends belong to this process.
    let rules = lab.dir().join("rules.nft");
    std::fs::write(
        &rules,
        "table ip t {\n chain c {\n type filter hook input priority 0\n ct state new accept\n }\n}\n",
    )
    .unwrap();
    lab.output("nft", &["-f", rules.to_str().unwrap()]);
    let pair = lab.connect_v4(1);
    let filter = format!("client = 127.0.0.1:{}", pair[0].client.port());
    // Other tests of this process open files and start children at the same time: reading owners may miss a file and
    // report it, or find a child that has not called exec yet and still holds the sockets.
    let wanted = format!("{}\testablished\n", std::process::id());
    lab.wait_until("the connection's owner is found", || {
        let ran = netwren_in(&lab, &["nat", "-H", "-c", "pid,state", &filter]);
        ran.ok_but_owners() == wanted
    });
}

/// Namespaces by name, each with its own entries; the column with their names is added automatically.
#[test]
fn root_nat_of_every_namespace() {
    testkit::require_root!();
    let labs = [Lab::new("natall1"), Lab::new("natall2")];
    labs[0].track(mixed_entries(30));
    labs[1].track([Entry::udp((v4(1), 4000), (v4(2), 53))]);
    let filter = format!("netns in (\"{}\", \"{}\")", labs[0].name(), labs[1].name());
    let ran = netwren(&["nat", "--all-netns", "--no-owner", "-H", "--by", "netns", &filter]);
    assert!(matches!(ran.code, 0 | 3), "{}", ran.stderr);
    let wanted = format!("{}\t30\n{}\t1\n", labs[0].name(), labs[1].name());
    assert_eq!(ran.stdout, wanted);
    let inside = netwren(&["nat", "-H", "--no-owner", "--netns", labs[1].name(), "-c", "client"]).ok();
    assert_eq!(inside, "10.0.0.1:4000\n");
}

/// Times and counters are shown if the kernel keeps them.
#[test]
fn root_nat_counters_and_ages() {
    testkit::require_root!();
    let lab = Lab::new("natcounts");
    lab.set_conntrack("nf_conntrack_acct", "1");
    lab.set_conntrack("nf_conntrack_timestamp", "1");
    let rules = lab.dir().join("rules.nft");
    std::fs::write(
        &rules,
        "table ip t {\n chain c {\n type filter hook input priority 0\n ct state new accept\n }\n}\n",
    )
    .unwrap();
    lab.output("nft", &["-f", rules.to_str().unwrap()]);
    let _pair = lab.connect_v4(1);
    for via in ["netlink", "proc"] {
        let row = nat(&lab, &["--via", via, "-c", "packets_out,packets_in,age_s", "bytes_out > 0 and proto = tcp"]);
        let cells: Vec<u64> = row[0].split('\t').map(|cell| cell.parse().unwrap()).collect();
        assert!(cells[0] >= 2 && cells[1] >= 1 && cells[2] < 60, "{via}: {row:?}");
    }
    assert_eq!(nat(&lab, &["-c", "state", "age < 1h and bytes_in < 1MiB"]), ["established"]);
}

/// Namespaces that cannot be entered are missing from the rows and reported in one message.
#[test]
fn root_nat_of_namespaces_that_cannot_be_entered() {
    testkit::require_root!();
    let lab = Lab::new("natclosed");
    lab.track([Entry::udp((v4(1), 4000), (v4(2), 53))]);
    // The BPF walk is denied as well; it would not need to enter.
    let without = [Limit::WithoutCaps(vec![Cap::SysAdmin]), Limit::NoBpf(sys::Errno(1))];
    let ran =
        limited(&lab, &["nat", "--all-netns", "--no-owner", "-H", "-c", "client", "client = 10.0.0.1:4000"], &without);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    assert!(ran.stderr.contains("needs CAP_SYS_ADMIN"), "{}", ran.stderr);
    assert_eq!(ran.stdout, "10.0.0.1:4000\n");
}
