//! Messages into topics of a real broker, read back by kcat.
#![cfg(all(feature = "kafka", feature = "tls"))]
#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use export::{
    MemoryStore, Output, OutputOptions, Spool, SpoolOptions, Store, TlsFiles, Transport, TransportOptions, WhenFull,
    open_transport,
};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::time::Duration;
use support::{batch, send_all};
use testkit::authority::Authority;
use testkit::kafka::{Broker, Listener, PASSWORD, USER};
use testkit::require_tool;

/// The target of a topic.
fn transport(url: &str, tls: &TlsFiles) -> Box<dyn Transport> {
    let options = TransportOptions { tls: tls.clone(), ..TransportOptions::default() };
    open_transport(&url.parse().unwrap(), options).unwrap()
}

/// The values of a topic, all with the host's name as key, in one partition.
fn values(broker: &Broker, topic: &str) -> Vec<String> {
    let messages = broker.messages(topic);
    let host = String::from_utf8(sys::fs::host_name()).unwrap();
    let first = messages.first().map(|(partition, ..)| *partition);
    assert!(messages.iter().all(|(partition, key, _)| Some(*partition) == first && *key == host), "{messages:?}");
    messages.into_iter().map(|(.., value)| value).collect()
}

/// The values of messages `from..to`.
fn numbers(from: u64, to: u64) -> Vec<String> {
    (from..to).map(|number| format!("{number:08}")).collect()
}

fn options() -> OutputOptions {
    OutputOptions { when_full: WhenFull::DropOldest, drain: Duration::from_secs(40) }
}

#[test]
fn messages_lie_in_a_topic_however_they_come() {
    require_tool!("openssl");
    let authority = Authority::new();
    authority.sign("client", "DNS:client", (-3600, 3600));
    let Some(broker) = Broker::start("topics", None, &authority) else { return };
    let passfile = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(passfile.path(), format!("{PASSWORD}\n")).unwrap();
    let login = |sasl: &str| format!("?sasl={sasl}&passfile={}", passfile.path().display());
    let tls = TlsFiles {
        authorities: Some(authority.file("ca.pem")),
        certificate: Some(authority.file("client.pem")),
        key: Some(authority.file("client.key")),
    };
    let place = |listener| broker.place(listener);
    for (topic, url) in [
        ("gzip", format!("kafka://{}/gzip", place(Listener::Open))),
        ("none", format!("kafka://127.0.0.1:1,{}/none?compression=none", place(Listener::Open))),
        ("scram512", format!("kafka://{USER}@{}/scram512{}", place(Listener::Scram), login("scram-sha-512"))),
        ("scram256", format!("kafka://{USER}@{}/scram256{}", place(Listener::Scram), login("scram-sha-256"))),
        ("tls", format!("kafka+tls://{}/tls", place(Listener::Tls))),
        ("plain", format!("kafka+tls://{USER}@{}/plain{}", place(Listener::Login), login("plain"))),
    ] {
        let mut transport = transport(&url, &tls);
        transport.open().unwrap();
        assert_eq!(send_all(&mut *transport, &batch(0, 3000)), 0);
        let mut more = batch(3000, 3001);
        more.number_from(3000);
        assert_eq!(send_all(&mut *transport, &more), 0);
        assert_eq!(values(&broker, topic), numbers(0, 3001), "{topic}");
    }
    let said = |url: &str, tls: &TlsFiles| transport(url, tls).open().unwrap_err().to_string();
    let other = Authority::new();
    let stranger = TlsFiles { authorities: Some(other.file("ca.pem")), ..tls.clone() };
    let wrong = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(wrong.path(), "hunter3\n").unwrap();
    let wrong = format!("?passfile={}", wrong.path().display());
    for (url, tls, says) in [
        (format!("kafka+tls://{}/t", place(Listener::Tls)), &stranger, "certificate"),
        (format!("kafka://{USER}@{}/t{wrong}", place(Listener::Scram)), &tls, "the user or the password (error 58)"),
        (format!("kafka+tls://{USER}@{}/t{}", place(Listener::Login), login("scram-sha-256")), &tls, "supports PLAIN"),
        (format!("kafka://{USER}@{}/t?passfile=/no/such/file", place(Listener::Scram)), &tls, "/no/such/file"),
        (format!("kafka://{}/t", place(Listener::Scram)), &tls, "no answers from 127.0.0.1"),
        ("kafka://127.0.0.1:1/t".to_owned(), &tls, "cannot connect to 127.0.0.1:1"),
    ] {
        let said = said(&url, tls);
        assert!(said.contains(says) && !said.contains("hunter"), "{url}: {said}");
    }
    // A message that is larger than brokers take is refused alone. Random text does not become smaller by packing.
    let mut transport = transport(&format!("kafka://{}/large", place(Listener::Open)), &tls);
    transport.open().unwrap();
    let mut large = batch(0, 50);
    let mut seed = 1u64;
    large.bytes_mut().extend((0..2 << 20).map(|_| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        b' ' + (seed >> 33) as u8 % 94
    }));
    large.end_message();
    for message in batch(50, 100).bytes().chunks(9) {
        large.bytes_mut().extend_from_slice(message);
        large.end_message();
    }
    assert_eq!(send_all(&mut *transport, &large), 1);
    let reason = transport.take_refusal_reason().unwrap();
    assert!(reason.contains("larger than the topic allows"), "{reason}");
    assert_eq!(values(&broker, "large"), numbers(0, 100));
}

/// The output of one run of a program whose messages wait on disk.
fn run(url: &str, spool: &Path) -> Output {
    let (store, _) = Spool::open(spool, url, SpoolOptions::new(64 << 20)).unwrap();
    Output::start("kafka", Box::new(store), transport(url, &TlsFiles::default()), options()).unwrap()
}

/// Runs end in the middle of their messages, and the broker is killed and starts again. Each message is there once.
#[test]
fn nothing_is_lost_or_twice_while_broker_and_program_come_and_go() {
    require_tool!("openssl");
    let Some(mut broker) = Broker::start("once", None, &Authority::new()) else { return };
    let url = format!("kafka://{}/once", broker.place(Listener::Open));
    let spool = tempfile::tempdir().unwrap();
    let mut next = 0;
    let mut push = |output: &Output| {
        for _ in 0..40 {
            output.push(batch(next, next + 250), &|| false);
            next += 250;
        }
        next
    };
    for round in 0..6 {
        let mut output = run(&url, spool.path());
        let before = output.status().ledger.delivered;
        push(&output);
        testkit::wait_until("some are there", || output.status().ledger.delivered > before);
        if round == 2 {
            broker.kill();
            push(&output);
            broker.begin();
        }
        push(&output);
        let status = output.finish(&|| true);
        assert_eq!(status.ledger.dropped.total(), 0, "{status:?}");
    }
    let mut output = run(&url, spool.path());
    let all = push(&output);
    testkit::wait_until("all are there", || output.status().ledger.delivered == all);
    let status = output.finish(&|| false);
    assert_eq!((status.ledger.seen, status.ledger.dropped.total(), status.ledger.resent), (all, 0, 0), "{status:?}");
    assert_eq!(values(&broker, "once"), numbers(0, all));
}

/// A run that never got the answer leaves a note in the spool, with which the next one repeats the request exactly.
#[test]
fn a_request_without_an_answer_is_repeated_by_the_next_run() {
    require_tool!("openssl");
    let Some(broker) = Broker::start("again", None, &Authority::new()) else { return };
    let url = format!("kafka://{}/again", broker.place(Listener::Open));
    let spool = tempfile::tempdir().unwrap();
    {
        let (mut store, _) = Spool::open(spool.path(), &url, SpoolOptions::new(1 << 20)).unwrap();
        store.push(batch(0, 700), WhenFull::Block, 0);
        let messages = store.get(0).unwrap().unwrap();
        let mut first = transport(&url, &TlsFiles::default());
        first.open().unwrap();
        let note = first.prepare(&messages, 0).unwrap().unwrap();
        store.keep_note(note, &store.ledger());
        assert!(first.prepare(&messages, 0).unwrap().is_none(), "the store has it");
        // The broker stores them; this run ends as by kill -9, without noting that.
        testkit::wait_until("they are stored", || first.send(&messages, 0).unwrap().bytes > 0);
    }
    let mut second = run(&url, spool.path());
    second.push(batch(700, 800), &|| false);
    let status = second.finish(&|| false);
    assert_eq!((status.ledger.delivered, status.ledger.dropped.total()), (800, 0), "{status:?}");
    assert_eq!(values(&broker, "again"), numbers(0, 800));
}

/// Programs that answer anything on a broker's port are not believed.
#[test]
fn a_liar_gets_an_error() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("kafka://{}/t", listener.local_addr().unwrap());
    for (answer, says) in [
        (&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], "not a Kafka broker"),
        (b"\x7f\xff\xff\xff", "not a Kafka broker"),
        (b"\xff\xff\xff\xff", "not a Kafka broker"),
        (b"\0\0\0\x06\0\0\0\x09\0\0", "malformed"),
        (b"\0\0\0\x06\0\0\0\x01\0\0", "malformed"),
        (b"\0\0\0\x0a\0\0\0\x01\0\0\0\0\0\0", "does not support Produce"),
        (b"\0\0\0\x06\0\0\0\x01\0\x23", "error 35"),
        (b"", "has closed the connection"),
    ] {
        let liar = std::thread::spawn({
            let listener = listener.try_clone().unwrap();
            move || {
                let mut stream = listener.accept().unwrap().0;
                let _ = stream.read(&mut [0; 64]);
                stream.write_all(answer).unwrap();
            }
        });
        let said = transport(&url, &TlsFiles::default()).open().unwrap_err().to_string();
        liar.join().unwrap();
        assert!(said.contains(says), "{answer:?}: {said}");
    }
}

/// Messages count as delivered only once a broker has them.
#[test]
fn without_a_broker_messages_wait() {
    let mut output = Output::start(
        "kafka",
        Box::new(MemoryStore::new(1 << 20)),
        transport("kafka://127.0.0.1:1/t", &TlsFiles::default()),
        OutputOptions { drain: Duration::ZERO, ..options() },
    )
    .unwrap();
    output.push(batch(0, 10), &|| false);
    let status = output.finish(&|| true);
    assert_eq!((status.ledger.delivered, status.ledger.dropped.end), (0, 10), "{status:?}");
}
