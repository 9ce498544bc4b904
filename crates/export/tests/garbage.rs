//! Receivers that send unrequested data: a greeting, or an echo of everything. No message is lost because of it.
#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use export::{MemoryStore, Output, OutputOptions, Status, TransportOptions, WhenFull, open_transport};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::net::{UnixListener, UnixStream};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use support::{batch, counts, until_ended, whole};
use testkit::wait_until;

static GARBAGE: [u8; 64 << 10] = [0xa5; 64 << 10];

fn output(target: &str) -> Output {
    let options = OutputOptions { when_full: WhenFull::Block, drain: Duration::from_secs(120) };
    let transport = open_transport(&target.parse().unwrap(), TransportOptions::default()).unwrap();
    Output::start("test", Box::new(MemoryStore::new(64 << 20)), transport, options).unwrap()
}

/// Ships `messages` messages of nine bytes each.
fn ship(target: &str, messages: u64) -> Status {
    let mut output = output(target);
    for from in (0..messages).step_by(10_000) {
        output.push(batch(from, messages.min(from + 10_000)), &|| false);
    }
    output.finish(&|| false)
}

fn delivered(status: &Status, messages: u64) {
    let ledger = status.ledger;
    assert_eq!((ledger.delivered, ledger.dropped.total(), status.failures), (messages, 0, 0), "{status:?}");
}

/// Echoes everything that it receives, each part before it reads on; returns the received text.
fn echo<S: Read + Write + Send + 'static>(accept: impl FnOnce() -> S + Send + 'static) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let (mut stream, mut heard, mut part) = (accept(), Vec::new(), vec![0; 64 << 10]);
        // After the end of the connection, no program reads the echo.
        while let Ok(bytes @ 1..) = stream.read(&mut part) {
            heard.extend_from_slice(&part[..bytes]);
            let _ = stream.write_all(&part[..bytes]);
        }
        String::from_utf8(heard).unwrap()
    })
}

/// More than the buffers of both ends hold: a sender that does not read the answers would wait for ever.
#[test]
fn issue_12_a_receiver_that_echoes_gets_everything() {
    const MESSAGES: u64 = 4_000_000;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = format!("json+tcp://{}", listener.local_addr().unwrap());
    let heard = echo(move || listener.accept().unwrap().0);
    delivered(&ship(&target, MESSAGES), MESSAGES);
    assert_eq!(heard.join().unwrap().len() as u64, MESSAGES * 9);

    let dir = tempfile::tempdir().unwrap();
    let listener = UnixListener::bind(dir.path().join("echo")).unwrap();
    let heard = echo(move || -> UnixStream { listener.accept().unwrap().0 });
    let messages = MESSAGES / 4;
    delivered(&ship(&format!("json+unix:{}", dir.path().join("echo").display()), messages), messages);
    assert_eq!(heard.join().unwrap().len() as u64, messages * 9);
}

/// The receiver starts to read once everything is in its kernel and no more arrives, and gives up if it cannot answer.
#[test]
fn issue_12_a_receiver_that_answers_late_is_listened_to_until_it_ends() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = format!("json+tcp://{}", listener.local_addr().unwrap());
    let reader = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        until_ended(&stream);
        let (mut heard, mut part) = (Vec::new(), [0; 900]);
        while let Ok(bytes @ 1..) = stream.read(&mut part) {
            heard.extend_from_slice(&part[..bytes]);
            stream.write_all(&part[..bytes]).unwrap();
        }
        String::from_utf8(heard).unwrap()
    });
    delivered(&ship(&target, 5_000), 5_000);
    assert_eq!(counts(&reader.join().unwrap()), whole(0, 5_000));
}

/// Data from the receiver, for example a greeting, does not turn the end of the connection into a reset.
#[test]
fn issue_12_a_receiver_that_greets_sees_an_end_in_order() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = format!("json+tcp://{}", listener.local_addr().unwrap());
    let reader = std::thread::spawn(move || {
        let mut stream = listener.accept().unwrap().0;
        let mut text = vec![0; 9];
        stream.read_exact(&mut text).unwrap();
        // Larger than one occasional look reads, and sent while messages are on their way.
        stream.write_all(&GARBAGE).unwrap();
        stream.read_to_end(&mut text).unwrap();
        String::from_utf8(text).unwrap()
    });
    delivered(&ship(&target, 10_000), 10_000);
    assert_eq!(counts(&reader.join().unwrap()), whole(0, 10_000));
}

/// The receiver sends without end, as fast as it can, and reads; its kernel confirms everything in the meantime.
/// Confirmations arrive together with its data, and are dropped with that data unless the output reads it.
#[test]
fn issue_12_a_receiver_that_talks_without_end_gets_everything_soon() {
    const BATCHES: u64 = 300;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = format!("json+tcp://{}", listener.local_addr().unwrap());
    let heard = std::thread::spawn(move || {
        let (mut stream, mut heard) = (listener.accept().unwrap().0, Vec::new());
        let mut mouth = stream.try_clone().unwrap();
        std::thread::spawn(move || while mouth.write_all(&GARBAGE).is_ok() {});
        // A receiver that is still sending gets a reset, maybe before it has read everything.
        let _ = stream.read_to_end(&mut heard);
        heard.len() as u64
    });
    let mut output = output(&target);
    let mut slow = Vec::new();
    for number in 1..=BATCHES {
        let begin = Instant::now();
        output.push(batch(number * 1000 - 1000, number * 1000), &|| false);
        wait_until("everything is confirmed", || output.status().ledger.delivered == number * 1000);
        slow.extend(Some(begin.elapsed()).filter(|took| *took > Duration::from_millis(300)));
    }
    // Without frequent reads, confirmations would arrive only twice a second. On a busy machine the receiver may pause
    // and seem silent: then that happens to one batch.
    assert!(slow.len() <= BATCHES as usize / 10, "{slow:?}");
    delivered(&output.finish(&|| true), BATCHES * 1000);
    assert!(heard.join().unwrap() <= BATCHES * 9000);
}
