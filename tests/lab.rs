//! The lab used by most tests, with every available protocol, family and state; it does not change while it is read.

use testkit::netns::Lab;

/// A lab with sockets of every kind.
pub(crate) fn furnished(purpose: &str) -> Lab {
    let lab = Lab::new(purpose);
    lab.connect_v4(3);
    lab.connect_v6(2);
    lab.connect_mapped(2);
    lab.connect_link_local(1);
    lab.time_wait(2);
    lab.half_closed(1);
    lab.make_unaccepted(2);
    lab.syn_sent();
    lab.udp("127.0.0.1:0".parse().expect("an address"));
    lab.udp("[::1]:0".parse().expect("an address"));
    lab.udp_pair();
    lab.unix_stream("stream", 2);
    lab.unix_abstract("hidden", 1);
    lab.unix_datagram("datagram");
    lab.unix_seqpacket("packets");
    lab
}
