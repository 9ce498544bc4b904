//! Sockets are closed by cookie: with a wrong cookie nothing is closed, even if the address is right.
use record::rows::{Socket, Sockets};
use record::{Demand, Next, Proto, Source};
use sockets::{CloseOutcome, Options, SocketSource, Target};
use sys::{Host, Modules};
use testkit::netns::Lab;

/// The listener's row as a target, with its cookie changed by `change`.
fn target(host: &Host, change: impl Fn(u64) -> u64) -> Option<Target> {
    let mut found = None;
    let source = SocketSource::new(host, Options { order: vec![Proto::Tcp], ..Options::new(0) });
    let demand = Demand::<Sockets>::new(&[], Vec::new());
    let read = source.run(&demand, &mut |row| {
        found = Target::from_row(&Socket { cookie: change(row.cookie), ..*row });
        Next::More
    });
    read.unwrap();
    found
}

#[test]
fn root_another_cookie_closes_nothing() {
    testkit::require_root!();
    let lab = Lab::new("cookie");
    lab.listen("127.0.0.1:80".parse().unwrap());
    lab.run_inside(|| {
        let host = Host::live();
        for change in [|cookie| cookie + 1, |cookie| cookie ^ 1 << 40, |_| u64::MAX - 1] {
            let wrong = target(&host, change).unwrap();
            assert_eq!(sockets::close(&host, &wrong), CloseOutcome::Gone);
        }
        let right = target(&host, |cookie| cookie).unwrap();
        assert_eq!(sockets::close(&host, &right), CloseOutcome::Aborted);
        assert_eq!(sockets::close(&host, &right), CloseOutcome::Gone);
    });
}

#[test]
fn root_support_knows_that_sockets_can_be_closed() {
    testkit::require_root!();
    let host = Host::live();
    let closing = sockets::try_closing(&host, &Modules::new(&host));
    assert_eq!(closing, sys::Trial::new_working("tcp and udp sockets, via SOCK_DESTROY"));
}
