//! Tests of `--by`, `--sum` and `--sort` with the real program.

use crate::run::netwren_in;
use std::net::UdpSocket;
use testkit::netns::Lab;

/// Connects sockets to these peers in a fresh namespace and sends each socket that number of bytes, which stay unread.
fn connected(lab: &Lab, peers: &[(&str, usize)]) -> Vec<UdpSocket> {
    let open = |&(peer, bytes): &(&str, usize)| {
        let any = if peer.starts_with('[') { "[::1]:0" } else { "127.0.0.1:0" };
        let near = UdpSocket::bind(any).unwrap();
        let far = UdpSocket::bind(peer).unwrap();
        near.connect(peer).unwrap();
        far.send_to(&vec![0; bytes], near.local_addr().unwrap()).unwrap();
        [near, far]
    };
    lab.run_inside(|| peers.iter().flat_map(open).collect())
}

#[test]
fn root_groups_are_of_addresses_or_networks_and_the_largest_come_first() {
    testkit::require_root!();
    let lab = Lab::new("groups");
    let peers = [
        ("127.1.1.1:5000", 10),
        ("127.1.1.1:5001", 10),
        ("127.1.1.1:5002", 10),
        ("127.1.1.2:5000", 10),
        ("127.1.2.3:5000", 20_000),
        ("[::1]:5000", 10),
    ];
    let _open = connected(&lab, &peers);
    let shown = |args: &[&str]| {
        let args = [&["sockets", "-H", "--no-owner"], args, &["proto = udp and peer != null"]].concat();
        netwren_in(&lab, &args).ok().replace('\t', " ")
    };
    let by_address = "127.1.1.1 3\n127.1.1.2 1\n127.1.2.3 1\n::1 1\n";
    for word in ["peer", "dst", "remote", "peer_addr"] {
        assert_eq!(shown(&["--by", word]), by_address, "{word}");
    }
    assert_eq!(shown(&["--by", "peer_addr/24"]), "127.1.1.0/24 4\n127.1.2.0/24 1\n::/24 1\n");
    assert_eq!(shown(&["--by", "peer/16/128"]), "127.1.0.0/16 5\n::1/128 1\n");
    assert_eq!(shown(&["--by", "dst/64"]), "127.1.1.1/32 3\n127.1.1.2/32 1\n127.1.2.3/32 1\n::/64 1\n");
    let json = shown(&["--by", "peer/24", "-o", "json", "--limit", "1"]);
    assert_eq!(json, "{\"peer_addr\":\"127.1.1.0/24\",\"count\":4}\n");
    assert_eq!(shown(&["--by", "peer/24", "-o", "csv", "--limit", "1"]).lines().last(), Some("127.1.1.0/24,4"));
    // Groups are ordered by the sum, not by the count.
    let sums = shown(&["--by", "peer/24", "--sum", "recv_q"]);
    assert!(sums.starts_with("127.1.2.0/24 1 "), "{sums}");
    // The limit keeps the largest rows, not the smallest.
    let largest = |sort: &str| shown(&["-c", "peer_addr", "--sort", sort, "--limit", "1"]);
    for sort in ["recv_q", "-recv_q", "recv_q:desc"] {
        assert!(largest(sort).starts_with("127.1.2.3 "), "{sort}");
    }
    assert!(!largest("recv_q:asc").starts_with("127.1.2.3 "));
    assert!(shown(&["-c", "peer_port", "--sort", "peer_port"]).starts_with("5000\n5000\n"), "ports ascend");
    assert!(shown(&["-c", "peer_port", "--sort", "-peer_port"]).starts_with("5002\n5001\n"));
    for (by, says) in
        [("peer/200", "at most 32 and 128 bits"), ("proto/8", "only an address can be grouped by network")]
    {
        netwren_in(&lab, &["sockets", "--by", by]).says(2, &[says]);
    }
}
