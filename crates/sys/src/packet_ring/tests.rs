#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use super::frame::StrippedTag;
use super::*;
use crate::errno::Errno;
use crate::fault::{Fault, arm, disarm_all};
use std::net::UdpSocket;
use std::os::fd::AsFd;

/// Runs `work` in a network namespace of its own, with the loopback interface up.
fn with_own_netns<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            // SAFETY: unshare takes an integer; this thread ends soon and shares nothing that depends on the
            // namespace.
            assert_eq!(unsafe { libc::unshare(libc::CLONE_NEWNET) }, 0);
            let up = std::process::Command::new("ip").args(["link", "set", "lo", "up"]).status().unwrap();
            assert!(up.success());
            work()
        });
        thread.join().unwrap()
    })
}

fn is_root() -> bool {
    // SAFETY: geteuid has no arguments.
    let is_root = unsafe { libc::geteuid() } == 0;
    if !is_root {
        assert!(std::env::var_os("NETWREN_REQUIRE_ROOT").is_none(), "needs root");
        eprintln!("skipped: needs root");
    }
    is_root
}

fn ring(kind: RingKind, ring_bytes: usize, program: &[Instruction]) -> PacketRing {
    let request = RingRequest { ifindex: 1, kind, ring_bytes, program, promiscuous: false, ignore_outgoing: true };
    PacketRing::open(&request).unwrap()
}

/// The last byte of each waiting packet, read until the ring has handed out as many as the kernel stored in it.
fn numbers(ring: &mut PacketRing) -> Vec<u8> {
    let mut found = Vec::new();
    for _ in 0..1000 {
        while ring.take_many(u64::MAX, |frame| {
            assert_eq!((frame.ifindex, frame.hardware, frame.packet_type), (1, 772, PacketType::HOST));
            assert!(frame.time_ns > 1_600_000_000_000_000_000);
            found.extend(frame.bytes.last());
            true
        }) > 0
        {}
        ring.release();
        let counted = ring.statistics().unwrap();
        if found.len() as u64 == counted.packets - counted.drops && counted.packets > 0 {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    found
}

fn send(count: u8) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let there = UdpSocket::bind("127.0.0.1:0").unwrap();
    for number in 0..count {
        socket.send_to(&[1, 2, number], there.local_addr().unwrap()).unwrap();
    }
}

#[test]
fn root_both_forms_hand_out_every_packet_in_order() {
    if !is_root() {
        return;
    }
    for kind in [RingKind::Slots { slot_bytes: 2048, whole: None }, RingKind::Blocks { retire_ms: 1 }] {
        with_own_netns(|| {
            let mut ring = ring(kind, 1 << 20, &accept_all(1500));
            send(100);
            assert_eq!(numbers(&mut ring), (0..100).collect::<Vec<u8>>(), "{kind:?}");
            // Goes around a small ring many times.
            for _ in 0..30 {
                send(50);
                let before = ring.statistics().unwrap();
                assert_eq!(before.drops, 0);
                while ring.take_many(1, |_| true) == 0 {}
                while ring.take_many(7, |_| true) > 0 {}
                ring.release();
            }
        });
    }
}

/// Each packet of the host pays for a program, so a program without effect is not attached; a filter can be attached
/// later.
#[test]
fn root_a_program_that_takes_all_is_none() {
    if !is_root() {
        return;
    }
    let attached = |ring: &PacketRing| {
        let mut length: libc::socklen_t = 0;
        // SAFETY: without room the kernel only returns the number of instructions.
        let failed = unsafe {
            libc::getsockopt(
                std::os::fd::AsRawFd::as_raw_fd(&ring.as_fd()),
                libc::SOL_SOCKET,
                libc::SO_GET_FILTER,
                std::ptr::null_mut(),
                &mut length,
            )
        };
        assert_eq!(failed, 0);
        length
    };
    with_own_netns(|| {
        let blocks = RingKind::Blocks { retire_ms: 1 };
        assert_eq!(attached(&ring(blocks, 1 << 20, &accept_all(262_143))), 1);
        let mut all = ring(blocks, 1 << 20, &accept_all(262_144));
        assert_eq!(attached(&all), 0);
        send(3);
        assert_eq!(numbers(&mut all), [0, 1, 2]);
        all.reject_all().unwrap();
        assert_eq!(attached(&all), 1);
    });
}

/// Packets that alternately leave and arrive are of two kinds; packets that only arrive are of one kind.
#[test]
fn root_packets_that_are_alike_come_together() {
    if !is_root() {
        return;
    }
    for (ignore_outgoing, kinds) in
        [(true, vec![PacketType::HOST]), (false, vec![PacketType::OUTGOING, PacketType::HOST])]
    {
        with_own_netns(|| {
            let (kind, program) = (RingKind::Blocks { retire_ms: 1 }, accept_all(1500));
            let request = RingRequest {
                ifindex: 1,
                kind,
                ring_bytes: 1 << 20,
                program: &program,
                promiscuous: false,
                ignore_outgoing,
            };
            let mut ring = PacketRing::open(&request).unwrap();
            send(100);
            let (mut found, mut most_together) = (Vec::new(), 0);
            while found.len() < 100 * kinds.len() {
                let mut places = Vec::new();
                let note = |at: usize, frame: &Frame<'_>| {
                    assert_eq!((frame.ifindex, frame.hardware, frame.len), (1, 772, 45));
                    places.push((at, frame.bytes.len()));
                };
                let Some(SimilarFrames { first, memory }) = ring.take_similar(7, note) else {
                    ring.release();
                    crate::wait_any(&[ring.as_fd()], 10, &mut Vec::new()).unwrap();
                    continue;
                };
                assert_eq!(first.bytes, &memory[places[0].0..][..places[0].1]);
                most_together = most_together.max(places.len());
                found.extend(places.iter().map(|(at, length)| (first.packet_type, memory[at + length - 1])));
            }
            let wanted: Vec<_> = (0..100).flat_map(|number| kinds.iter().map(move |kind| (*kind, number))).collect();
            assert_eq!(found, wanted);
            assert_eq!(most_together, if kinds.len() == 1 { 7 } else { 1 });
        });
    }
    with_own_netns(|| {
        let mut ring = ring(RingKind::Slots { slot_bytes: 2048, whole: None }, 1 << 20, &accept_all(1500));
        send(1);
        assert!(ring.take_similar(7, |_, _| ()).is_none(), "slots are given back one by one");
        assert_eq!(numbers(&mut ring), [0]);
    });
}

#[test]
fn root_what_finds_no_room_is_counted() {
    if !is_root() {
        return;
    }
    with_own_netns(|| {
        let mut ring = ring(RingKind::Slots { slot_bytes: 2048, whole: None }, 64 << 10, &accept_all(1500));
        send(100);
        let counted = ring.statistics().unwrap();
        assert_eq!((counted.packets, counted.drops), (100, 68), "32 slots");
        assert_eq!(ring.statistics().unwrap(), counted, "added up, though the kernel begins anew");
        assert_eq!(numbers(&mut ring), (0..32).collect::<Vec<u8>>());
        send(1);
        assert_eq!(numbers(&mut ring).len(), 1, "room again");
    });
}

/// These adapters have no clock: each frame says that it was stamped by the host's clock.
#[test]
fn root_stamps_say_whose_they_are() {
    if !is_root() {
        return;
    }
    for kind in [RingKind::Slots { slot_bytes: 2048, whole: None }, RingKind::Blocks { retire_ms: 1 }] {
        with_own_netns(|| {
            let mut ring = ring(kind, 1 << 20, &accept_all(1500));
            for clock in [StampClock::Adapter, StampClock::AdapterUnsynced] {
                assert_eq!(ring.stamp_by(clock, Some(b"lo")).unwrap_err().errno, Errno::OPNOTSUPP);
                ring.stamp_by(clock, None).unwrap();
            }
            ring.stamp_by(StampClock::Host, Some(b"lo")).unwrap();
            ring.stamp_by(StampClock::AdapterUnsynced, None).unwrap();
            send(1);
            let mut status = FrameStatus::default();
            while ring.take_many(1, |frame| {
                status = frame.status;
                true
            }) == 0
            {}
            let at_reception = matches!(kind, RingKind::Slots { .. });
            assert!(!status.has_any(FrameStatus::STAMPED_BY_ADAPTER), "{kind:?}");
            // Another program on the host may have enabled time stamps for all packets.
            assert!(status.has_any(FrameStatus::STAMPED_BY_HOST) || !at_reception, "{kind:?}");
        });
    }
}

#[test]
fn root_a_program_chooses_and_cuts() {
    if !is_root() {
        return;
    }
    with_own_netns(|| {
        let slots = RingKind::Slots { slot_bytes: 256, whole: None };
        let mut cut = ring(slots, 1 << 20, &accept_all(20));
        let request = RingRequest {
            ifindex: 0,
            kind: slots,
            ring_bytes: 1 << 20,
            program: &without_own_echo(&accept_all(1000)),
            promiscuous: false,
            ignore_outgoing: false,
        };
        let mut once = PacketRing::open(&request).unwrap();
        send(3);
        let mut lengths = Vec::new();
        cut.take_many(1, |frame| {
            lengths.push((frame.bytes.len(), frame.len));
            true
        });
        assert_eq!(lengths, [(20, 14 + 20 + 8 + 3)]);
        assert_eq!(numbers(&mut once), [0, 1, 2], "each once, though all interfaces are seen");
        cut.reject_all().unwrap();
        let before = cut.statistics().unwrap();
        send(3);
        assert_eq!(cut.statistics().unwrap(), before);
        assert_eq!(cut.take_error(), None);
    });
}

#[test]
fn a_tag_is_restored_after_the_addresses() {
    let tag = StrippedTag::from_status(0x50, 77, 0x88a8).unwrap();
    let mut place: Vec<u8> = [0, 0, 0, 0].into_iter().chain(1..=16).collect();
    assert!(tag.put_back(&mut place));
    assert_eq!(place, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0x88, 0xa8, 0, 77, 13, 14, 15, 16]);
    assert!(!tag.put_back(&mut [0; 15]), "too little was captured");
    assert!(StrippedTag::from_status(0x40, 77, 0x8100).is_none());
    assert_eq!(StrippedTag::from_status(0x10, 77, 0).unwrap().tpid, 0x8100);
}

#[test]
fn root_errors_say_what_was_tried() {
    if !is_root() {
        return;
    }
    with_own_netns(|| {
        let request = RingRequest {
            ifindex: 99,
            kind: RingKind::Blocks { retire_ms: 10 },
            ring_bytes: 1 << 20,
            program: &accept_all(1),
            promiscuous: false,
            ignore_outgoing: false,
        };
        let error = PacketRing::open(&request).unwrap_err();
        assert_eq!(error.call, "bind");
    });
}

#[test]
fn root_where_memory_is_short_the_ring_is_smaller() {
    if !is_root() {
        return;
    }
    for kind in [RingKind::Slots { slot_bytes: 2048, whole: None }, RingKind::Blocks { retire_ms: 1 }] {
        // The faults come after the calls for version, headroom, time stamps of slots, and direction; memory is short
        // twice.
        let before = if matches!(kind, RingKind::Slots { .. }) { 4 } else { 3 };
        with_own_netns(|| {
            arm("setsockopt", before, 2, Fault::Fails(Errno::NOMEM));
            let mut ring = ring(kind, 8 << 20, &accept_all(1500));
            disarm_all();
            assert_eq!(ring.bytes(), 2 << 20, "{kind:?}");
            send(30);
            assert_eq!(numbers(&mut ring), (0..30).collect::<Vec<u8>>(), "{kind:?}");
        });
        with_own_netns(|| {
            arm("setsockopt", before, 100, Fault::Fails(Errno::NOMEM));
            let request = RingRequest {
                ifindex: 1,
                kind,
                ring_bytes: 8 << 20,
                program: &accept_all(1500),
                promiscuous: false,
                ignore_outgoing: true,
            };
            let error = PacketRing::open(&request).unwrap_err();
            disarm_all();
            assert_eq!((error.call, error.errno), ("setsockopt", Errno::NOMEM), "{kind:?}");
        });
    }
}

/// The bytes of each packet, read until all have arrived.
fn packets(ring: &mut PacketRing, wanted: usize) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    for _ in 0..1000 {
        while ring.take_many(u64::MAX, |frame| {
            found.push(frame.bytes.to_vec());
            true
        }) > 0
        {}
        ring.release();
        if found.len() >= wanted {
            break;
        }
        crate::wait_any(&[ring.as_fd()], 10, &mut Vec::new()).unwrap();
    }
    found
}

/// Packets of all lengths arrive in order, including those longer than a slot.
#[test]
fn root_what_is_longer_than_a_slot_is_captured_whole() {
    if !is_root() {
        return;
    }
    let lengths = |nth: usize| [100, 9000, 1900, 60_000, 2000, 3, 30_000][nth % 7];
    let payload = |nth: usize| -> Vec<u8> { (0..lengths(nth)).map(|at| (at + nth) as u8).collect() };
    for (snaplen, ring_bytes) in [(262_144, 1 << 20), (20_000, 4 << 20)] {
        with_own_netns(|| {
            let slots = RingKind::Slots { slot_bytes: 2048, whole: Some(snaplen) };
            let mut ring = ring(slots, ring_bytes, &accept_all(snaplen));
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            let there = UdpSocket::bind("127.0.0.1:0").unwrap();
            for round in 0..20 {
                let sent: Vec<Vec<u8>> = (0..14).map(|nth| payload(round * 14 + nth)).collect();
                sent.iter().for_each(|bytes| _ = socket.send_to(bytes, there.local_addr().unwrap()).unwrap());
                let captured = packets(&mut ring, sent.len());
                let wanted = sent.iter().map(|bytes| &bytes[..bytes.len().min(snaplen as usize - 42)]);
                assert!(captured.iter().map(|bytes| &bytes[42..]).eq(wanted), "round {round}");
            }
            assert_eq!(ring.statistics().unwrap().drops, 0);
            let mut ready = Vec::new();
            crate::wait_any(&[ring.as_fd()], 0, &mut ready).unwrap();
            assert!(ready.is_empty(), "nothing waits");
        });
    }
}

/// A packet that exceeds the socket's buffer is truncated: its length shows that it was longer.
#[test]
fn root_whole_packets_beyond_the_room_are_cut() {
    if !is_root() {
        return;
    }
    with_own_netns(|| {
        let slots = RingKind::Slots { slot_bytes: 2048, whole: Some(262_144) };
        let mut ring = ring(slots, 1 << 20, &accept_all(262_144));
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let there = UdpSocket::bind("127.0.0.1:0").unwrap();
        for _ in 0..100 {
            socket.send_to(&[7; 60_000], there.local_addr().unwrap()).unwrap();
        }
        let lengths: Vec<usize> = packets(&mut ring, 100).iter().map(Vec::len).collect();
        let cut = 2048 - 66 - 4;
        assert!(lengths.iter().all(|len| *len == 60_042 || (*len > cut - 64 && *len < 2048)), "{lengths:?}");
        assert!(lengths[0] == 60_042 && lengths[99] < 2048 && lengths.len() == 100, "{lengths:?}");
    });
}
