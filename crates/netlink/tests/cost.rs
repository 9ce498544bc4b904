//! The cost of a dump, counted instead of timed: a row costs only its share of a system call.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use std::net::{TcpListener, TcpStream};
use std::ops::ControlFlow;

use netlink::{Attrs, DumpEnd, Query, Request, dump};
use sys::Host;

#[global_allocator]
static HEAP: sys::allocator::CountingAllocator = sys::allocator::CountingAllocator;

/// Number of allocations and system calls of one dump of all TCP sockets over IPv4.
fn cost(host: &Host) -> (u64, u64, DumpEnd) {
    let mut body = vec![2, 6, 0, 0];
    body.extend_from_slice(&u32::MAX.to_ne_bytes());
    body.resize(56, 0);
    let mut request = Request::dump(20);
    request.append(&body);
    let ask = Query { what: "tcp sockets", protocol: 4, request: &request, key: "tcp", note: "", netns: None };
    let (heap, calls) = (sys::allocator::allocations(), sys::cost::syscalls());
    let end = dump(host, &ask, |part| {
        assert!(Attrs::new(&part.payload[72..]).all(|attr| attr.is_ok()));
        ControlFlow::Continue(())
    });
    (sys::allocator::allocations() - heap, sys::cost::syscalls() - calls, end.unwrap())
}

// A single test, so that no other code in this process makes system calls.
#[test]
fn a_row_costs_no_allocation_and_a_buffer_one_call() {
    let few = cost(&Host::live());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let _pairs: Vec<(TcpStream, TcpStream)> =
        (0..1000).map(|_| (TcpStream::connect(address).unwrap(), listener.accept().unwrap().0)).collect();
    let many = cost(&Host::live());
    assert!(many.2.messages >= 2000);
    assert_eq!(few.0, many.0, "the same allocations for 2000 rows more");
    assert!(many.0 <= 3, "a buffer and a box, not {}", many.0);
    // socket, setsockopt, sendto, close, and one recv per buffer.
    assert_eq!(many.1, 4 + many.2.blocks);
    assert!(many.2.blocks <= 3 + many.2.bytes / 32_000, "{:?}", many.2);
}
