//! Outputs over TLS against real receivers: rustls in this process, openssl in another.
#![cfg(feature = "tls")]
#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use export::{
    MemoryStore, Output, OutputOptions, Status, TlsFiles, TransportOptions, WhenFull, check_target, open_transport,
};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ServerConfig, WebPkiClientVerifier};
use rustls::{ProtocolVersion, RootCertStore, ServerConnection, StreamOwned, version};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use support::{batch, counts, until_ended, whole};
use testkit::authority::Authority;
use testkit::require_tool;
use testkit::wait_until;

const HERE: &str = "DNS:localhost, IP:127.0.0.1";
const NOW: (i64, i64) = (-3600, 3600);

fn files(authority: &Authority, own: Option<&str>) -> TlsFiles {
    TlsFiles {
        authorities: Some(authority.file("ca.pem")),
        certificate: own.map(|name| authority.file(&format!("{name}.pem"))),
        key: own.map(|name| authority.file(&format!("{name}.key"))),
    }
}

fn output(receiver: &str, files: &TlsFiles) -> Output {
    let options = OutputOptions { when_full: WhenFull::DropOldest, drain: Duration::from_secs(20) };
    let store = Box::new(MemoryStore::new(64 << 20));
    let tls = TransportOptions { tls: files.clone(), ..TransportOptions::default() };
    let transport = open_transport(&format!("json+tls://{receiver}").parse().unwrap(), tls).unwrap();
    Output::start("test", store, transport, options).unwrap()
}

fn delivered(status: &Status, messages: u64) {
    let ledger = status.ledger;
    assert_eq!((ledger.seen, ledger.delivered, ledger.dropped.total()), (messages, messages, 0), "{status:?}");
}

/// Waits for the first fault of the receiver and returns it.
fn wrong_with(output: &Output) -> String {
    wait_until("it has failed", || output.status().failures > 0);
    let status = output.status();
    assert!(!status.is_open && status.ledger.delivered == 0, "{status:?}");
    status.last_error.unwrap()
}

struct Receiver {
    listener: TcpListener,
    config: Arc<ServerConfig>,
}

impl Receiver {
    fn new(authority: &Authority, name: &str) -> Receiver {
        Receiver::with(authority, name, false, rustls::ALL_VERSIONS)
    }

    fn with(
        authority: &Authority,
        name: &str,
        demands: bool,
        versions: &[&'static rustls::SupportedProtocolVersion],
    ) -> Receiver {
        let provider = Arc::new(ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider.clone()).with_protocol_versions(versions).unwrap();
        let builder = if demands {
            let mut roots = RootCertStore::empty();
            roots.add(CertificateDer::from_pem_file(authority.file("ca.pem")).unwrap()).unwrap();
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap();
            builder.with_client_cert_verifier(verifier)
        } else {
            builder.with_no_client_auth()
        };
        let chain = vec![CertificateDer::from_pem_file(authority.file(&format!("{name}.pem"))).unwrap()];
        let key = PrivateKeyDer::from_pem_file(authority.file(&format!("{name}.key"))).unwrap();
        let config = Arc::new(builder.with_single_cert(chain, key).unwrap());
        Receiver { listener: TcpListener::bind("127.0.0.1:0").unwrap(), config }
    }

    fn address(&self) -> String {
        format!("127.0.0.1:{}", self.listener.local_addr().unwrap().port())
    }

    fn accept(&self) -> StreamOwned<ServerConnection, TcpStream> {
        let stream = self.listener.accept().unwrap().0;
        StreamOwned::new(ServerConnection::new(Arc::clone(&self.config)).unwrap(), stream)
    }
}

/// Reads everything; returns an error unless TLS ends in order.
fn read_all(mut stream: impl Read) -> String {
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn messages_arrive_once_and_tls_ends_in_order() {
    require_tool!("openssl");
    let authority = Authority::new();
    authority.sign("receiver", HERE, NOW);
    for (versions, expected) in
        [(&[&version::TLS12], ProtocolVersion::TLSv1_2), (&[&version::TLS13], ProtocolVersion::TLSv1_3)]
    {
        let receiver = Receiver::with(&authority, "receiver", false, versions);
        let mut output = output(&receiver.address(), &files(&authority, None));
        let reader = std::thread::spawn(move || {
            let mut stream = receiver.accept();
            let mut text = String::new();
            stream.read_to_string(&mut text).unwrap();
            assert_eq!(stream.conn.protocol_version(), Some(expected));
            text
        });
        for from in (0..200_000).step_by(1000) {
            output.push(batch(from, from + 1000), &|| false);
        }
        delivered(&output.finish(&|| false), 200_000);
        assert_eq!(counts(&reader.join().unwrap()), whole(0, 200_000));
    }
}

/// First a receiver that echoes everything, then one that leaves TLS or never uses it.
#[test]
fn issue_12_what_a_receiver_answers_costs_no_message() {
    const MESSAGES: u64 = 1_000_000;
    require_tool!("openssl");
    let authority = Authority::new();
    authority.sign("receiver", HERE, NOW);
    let receiver = Receiver::new(&authority, "receiver");
    let mut output = output(&receiver.address(), &files(&authority, None));
    let reader = std::thread::spawn(move || {
        // The first connection has no TLS at all, the second has TLS up to the first part of the messages.
        receiver.listener.accept().unwrap().0.write_all(&[0xa5; 64 << 10]).unwrap();
        let (mut part, mut stream) = (vec![0; 64 << 10], receiver.accept());
        let first = stream.read(&mut part).unwrap();
        stream.sock.write_all(&[0xa5; 64 << 10]).unwrap();
        let mut heard = part[..first].to_vec();
        heard.truncate(first / 9 * 9);
        while let Ok(1..) = stream.sock.read(&mut part) {}
        drop(stream);
        let mut stream = receiver.accept();
        while let Ok(bytes @ 1..) = stream.read(&mut part) {
            heard.extend_from_slice(&part[..bytes]);
            let _ = stream.write_all(&part[..bytes]);
        }
        String::from_utf8(heard).unwrap()
    });
    for from in (0..MESSAGES).step_by(5_000) {
        output.push(batch(from, from + 5_000), &|| false);
        wait_until("its end of TLS is noticed", || output.status().failures >= 2);
    }
    let status = output.finish(&|| false);
    delivered(&status, MESSAGES);
    assert!(status.failures >= 2, "{status:?}");
    let heard = counts(&reader.join().unwrap());
    assert_eq!(heard.len() as u64, MESSAGES, "{status:?}");
}

/// The receiver starts to read once everything is in its kernel and no more arrives; rustls gives up if it cannot
/// answer.
#[test]
fn issue_12_a_receiver_that_answers_late_is_listened_to_until_it_ends() {
    require_tool!("openssl");
    let authority = Authority::new();
    authority.sign("receiver", HERE, NOW);
    let receiver = Receiver::new(&authority, "receiver");
    let mut output = output(&receiver.address(), &files(&authority, None));
    let reader = std::thread::spawn(move || {
        let mut stream = receiver.accept();
        stream.conn.complete_io(&mut stream.sock).unwrap();
        until_ended(&stream.sock);
        let (mut heard, mut part) = (Vec::new(), [0; 900]);
        while let Ok(bytes @ 1..) = stream.read(&mut part) {
            heard.extend_from_slice(&part[..bytes]);
            stream.write_all(&part[..bytes]).unwrap();
        }
        String::from_utf8(heard).unwrap()
    });
    output.push(batch(0, 5_000), &|| false);
    delivered(&output.finish(&|| false), 5_000);
    assert_eq!(counts(&reader.join().unwrap()), whole(0, 5_000));
}

#[test]
fn a_receiver_that_demands_a_certificate_gets_ours() {
    require_tool!("openssl");
    let authority = Authority::new();
    authority.sign("receiver", HERE, NOW);
    authority.sign("sender", "DNS:sender", NOW);
    authority.sign("old", "DNS:sender", (-7200, -3600));
    for versions in [&[&version::TLS12], &[&version::TLS13]] {
        let receiver = Receiver::with(&authority, "receiver", true, versions);
        let address = receiver.address();
        let reader = std::thread::spawn(move || {
            for _ in 0..2 {
                assert!(receiver.accept().read_to_string(&mut String::new()).is_err());
            }
            receiver
        });
        let without = output(&address, &files(&authority, None));
        without.push(batch(0, 10), &|| false);
        let said = wrong_with(&without);
        assert!(said.starts_with(&format!("{address} requires a client certificate (--tls-cert")), "{said}");
        drop(without);
        let expired = output(&address, &files(&authority, Some("old")));
        let said = wrong_with(&expired);
        assert!(said.starts_with(&format!("{address} refuses our certificate in /")), "{said}");
        assert!(said.ends_with("old.pem: it has expired"), "{said}");
        drop(expired);
        // A connection begun in the meantime waits to be accepted, and gets no answer.
        let receiver = reader.join().unwrap();
        receiver.listener.set_nonblocking(true).unwrap();
        while receiver.listener.accept().is_ok() {}
        receiver.listener.set_nonblocking(false).unwrap();
        let mut with = output(&address, &files(&authority, Some("sender")));
        with.push(batch(0, 1000), &|| false);
        let reader = std::thread::spawn(move || read_all(receiver.accept()));
        delivered(&with.finish(&|| false), 1000);
        assert_eq!(counts(&reader.join().unwrap()), whole(0, 1000));
    }
}

#[test]
fn a_faulty_certificate_is_reported_and_nothing_is_sent() {
    require_tool!("openssl");
    let (authority, namesake, other) = (Authority::new(), Authority::new(), Authority::with_name("another"));
    authority.sign("receiver", HERE, NOW);
    authority.sign("old", HERE, (-7200, -3600));
    authority.sign("future", HERE, (3600, 7200));
    authority.sign("elsewhere", "DNS:log.example, DNS:*.example.net", NOW);
    for (name, trusted, says) in [
        ("receiver", &other, "is signed by none of the authorities in /"),
        ("receiver", &namesake, "is signed by none of the authorities in /"),
        ("old", &authority, " expired at 20"),
        ("future", &authority, " is not valid before 20"),
        ("elsewhere", &authority, " is not for this host; it is for log.example, *.example.net"),
    ] {
        let receiver = Receiver::new(&authority, name);
        let address = receiver.address();
        let reader = std::thread::spawn(move || {
            let mut text = String::new();
            let outcome = receiver.accept().read_to_string(&mut text);
            (outcome.is_err(), text)
        });
        let output = output(&address, &files(trusted, None));
        output.push(batch(0, 10), &|| false);
        let said = wrong_with(&output);
        assert!(said.starts_with(&format!("the certificate of {address}")) && said.contains(says), "{name}: {said}");
        assert_eq!(reader.join().unwrap(), (true, String::new()), "{name}");
    }
}

#[test]
fn who_speaks_no_tls_is_named() {
    require_tool!("openssl");
    let authority = Authority::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let plain = output(&address, &files(&authority, None));
    let (mut stream, _) = listener.accept().unwrap();
    std::io::Write::write_all(&mut stream, b"220 mail.example ESMTP\r\n").unwrap();
    assert_eq!(wrong_with(&plain), format!("{address} does not speak TLS"));
    drop((plain, stream));
    // Another receiver is completely silent.
    let begin = Instant::now();
    let silent = output(&address, &files(&authority, None));
    assert_eq!(wrong_with(&silent), format!("{address} did not finish the TLS handshake within 5 s"));
    assert!(begin.elapsed() < Duration::from_secs(15));
}

/// Reads some lines, leaves others unread, and closes.
fn read_some(stream: StreamOwned<ServerConnection, TcpStream>, lines: usize) -> String {
    let mut reader = BufReader::with_capacity(90, stream);
    let mut text = String::new();
    for _ in 0..lines {
        reader.read_line(&mut text).unwrap();
    }
    text.push_str(std::str::from_utf8(reader.buffer()).unwrap().rsplit_once('\n').map_or("", |(whole, _)| whole));
    text.push('\n');
    text
}

#[test]
fn what_a_killed_receiver_had_not_read_is_sent_again() {
    require_tool!("openssl");
    let authority = Authority::new();
    authority.sign("receiver", HERE, NOW);
    let receiver = Receiver::new(&authority, "receiver");
    let mut output = output(&receiver.address(), &files(&authority, None));
    let messages = 200_000;
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        for _ in 0..3 {
            text.push_str(&read_some(receiver.accept(), 5_000));
        }
        text + &read_all(receiver.accept())
    });
    for from in (0..messages).step_by(1000) {
        output.push(batch(from, from + 1000), &|| false);
    }
    let status = output.finish(&|| false);
    delivered(&status, messages);
    let counts = counts(&reader.join().unwrap().replace("\n\n", "\n"));
    assert_eq!(counts.len() as u64, messages, "{status:?}");
    assert!(status.ledger.resent > 0, "{status:?}");
}

#[test]
fn a_certificate_that_expires_ends_no_connection_but_begins_none() {
    require_tool!("openssl");
    let authority = Authority::new();
    authority.sign("receiver", HERE, (-3600, 4));
    let receiver = Receiver::new(&authority, "receiver");
    let address = receiver.address();
    let mut output = output(&address, &files(&authority, None));
    output.push(batch(0, 10), &|| false);
    let mut stream = BufReader::new(receiver.accept());
    let mut line = String::new();
    for _ in 0..10 {
        stream.read_line(&mut line).unwrap();
    }
    let expiry = Instant::now() + Duration::from_secs(5);
    wait_until("the certificate has expired", || Instant::now() > expiry);
    output.push(batch(10, 20), &|| false);
    for _ in 0..10 {
        stream.read_line(&mut line).unwrap();
    }
    assert_eq!(counts(&line), whole(0, 20));
    drop(stream);
    let reader = std::thread::spawn(move || receiver.accept().read_to_string(&mut String::new()).is_err());
    wait_until("it cannot connect", || output.status().last_error.is_some_and(|error| error.contains("expired at")));
    assert!(reader.join().unwrap());
    let status = output.finish(&|| true);
    assert_eq!(status.ledger.waiting_records(), 0, "{status:?}");
}

#[test]
fn openssl_receives_what_is_sent() {
    require_tool!("openssl");
    let authority = Authority::new();
    authority.sign("receiver", HERE, NOW);
    authority.sign("sender", "DNS:sender", NOW);
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap().to_string();
    drop(free);
    let mut server = Command::new("openssl")
        .args(["s_server", "-quiet", "-naccept", "1", "-verify_return_error", "-Verify", "1", "-accept", &address])
        .args(["-cert".as_ref(), authority.file("receiver.pem").as_os_str()])
        .args(["-key".as_ref(), authority.file("receiver.key").as_os_str()])
        .args(["-CAfile".as_ref(), authority.file("ca.pem").as_os_str()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // It ends when its input ends, even with unread data.
    let (input, mut text) = (server.stdin.take(), server.stdout.take().unwrap());
    let reader = std::thread::spawn(move || {
        let mut all = String::new();
        text.read_to_string(&mut all).unwrap();
        all
    });
    let mut output = output(&address, &files(&authority, Some("sender")));
    for from in (0..20_000).step_by(1000) {
        output.push(batch(from, from + 1000), &|| false);
    }
    let status = output.finish(&|| false);
    delivered(&status, 20_000);
    assert_eq!(counts(&reader.join().unwrap()), whole(0, 20_000));
    drop(input);
    let _ = server.wait();
}

#[test]
fn files_are_judged_before_anything_is_sent() {
    require_tool!("openssl");
    let authority = Authority::new();
    authority.sign("sender", "DNS:sender", NOW);
    authority.sign("other", "DNS:other", NOW);
    let good = files(&authority, Some("sender"));
    let check_tls = |files: &TlsFiles| check_target(&"json+tls://a:1".parse().unwrap(), files);
    assert_eq!(check_tls(&good).unwrap(), Vec::<String>::new());
    let key = authority.file("sender.key");
    std::fs::set_permissions(&key, PermissionsExt::from_mode(0o644)).unwrap();
    let warned = check_tls(&good).unwrap().join("");
    assert_eq!(warned, format!("{}: every user of this host can read this key (mode 0644)", key.display()));

    let says = |files: &TlsFiles| check_tls(files).unwrap_err().to_string();
    let swapped = TlsFiles { key: Some(authority.file("other.key")), ..good.clone() };
    assert!(says(&swapped).contains("other.key: not the key of the certificate in /"), "{}", says(&swapped));
    let keyless = TlsFiles { key: None, ..good.clone() };
    assert!(says(&keyless).contains("sender.pem: no key in PEM form"), "{}", says(&keyless));
    let alone = TlsFiles { certificate: None, ..good.clone() };
    assert!(says(&alone).contains("sender.key: a key is useless without its certificate"), "{}", says(&alone));
    let empty = TlsFiles { authorities: Some(authority.file("settings")), ..good.clone() };
    assert!(says(&empty).contains("settings: it contains no certificate"), "{}", says(&empty));
    let absent = TlsFiles { authorities: Some(authority.file("absent")), ..good };
    assert!(says(&absent).starts_with("cannot read /"), "{}", says(&absent));
}
