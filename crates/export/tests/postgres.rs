//! The transport to PostgreSQL, with a separate server for each test.
#![cfg(feature = "postgres")]
#![allow(clippy::unwrap_used)]

use export::{
    Batch, ColumnType, MemoryStore, Output, OutputOptions, Status, TABLE_PLACE, TableShape, Target, Transport,
    TransportOptions, TypedValue, WhenFull, open_transport, put_typed,
};
use std::io;
use std::time::Duration;
use testkit::postgres::Server;
use testkit::wait_until;

fn shape() -> TableShape {
    let columns = [
        ("n", ColumnType::Integer),
        ("text", ColumnType::Text),
        ("time", ColumnType::Time),
        ("is", ColumnType::Flag),
        ("addr", ColumnType::Address),
    ];
    TableShape {
        name: "a \"log\"".to_owned(),
        columns: columns.map(|(name, kind)| (name.to_owned(), kind)).into(),
        view: Some(("seen".to_owned(), format!("SELECT \"n\" AS other FROM {TABLE_PLACE}"))),
        procedure: None,
    }
}

fn put(batch: &mut Batch, id: i64, n: i64, text: TypedValue<'_>) {
    for value in [
        TypedValue::Integer(id),
        TypedValue::Integer(n),
        text,
        TypedValue::Integer(1_500_000_000),
        TypedValue::Integer(1),
        TypedValue::Text("192.0.2.1"),
    ] {
        put_typed(batch.bytes_mut(), value);
    }
    batch.end_message();
}

fn rows(range: std::ops::Range<i64>) -> Batch {
    let mut batch = Batch::new();
    range.for_each(|n| put(&mut batch, shape().id(), n, TypedValue::Text("x")));
    batch
}

fn transport(url: &str) -> Box<dyn Transport> {
    let target: Target = url.parse().unwrap();
    open_transport(&target, TransportOptions { file_header: shape().to_header(), ..Default::default() }).unwrap()
}

/// Sends the whole batch.
fn send(to: &mut dyn Transport, batch: &Batch) -> io::Result<u64> {
    let (mut at, mut refused) = (0, 0);
    while at < batch.bytes().len() {
        let taken = to.send(batch, at)?;
        at += taken.bytes;
        refused += taken.refused;
    }
    Ok(refused)
}

fn output(url: &str) -> Output {
    let options = OutputOptions { when_full: WhenFull::DropOldest, drain: Duration::from_secs(20) };
    Output::start("test", Box::new(MemoryStore::new(64 << 20)), transport(url), options).unwrap()
}

fn said(url: &str) -> String {
    transport(url).open().unwrap_err().to_string()
}

#[test]
fn rows_come_to_lie_in_the_table() {
    let Some(server) = Server::start("rows") else { return };
    let mut db = transport(&server.url(""));
    db.open().unwrap();
    let mut batch = rows(0..2);
    put(&mut batch, shape().id(), 2, TypedValue::Bytes(b"'; --\\\t\n\0\xff"));
    put(&mut batch, 7, 3, TypedValue::Text("of another shape"));
    put(&mut batch, shape().id(), 4, TypedValue::Null);
    assert_eq!(send(&mut *db, &batch).unwrap(), 1);
    let cells = server.query(
        "SELECT n, text, extract(epoch FROM time), \"is\", addr << '192.0.2.0/24' FROM seen, \"a \"\"log\"\"\" \
                              WHERE n = other AND n IN (0, 4) ORDER BY n",
    );
    assert_eq!(cells, ["0|x|1.500000|t|t", "4||1.500000|t|t"]);
    let odd =
        server.query("SELECT replace(replace(text, E'\\t', 'TAB'), E'\\n', 'LF') FROM \"a \"\"log\"\"\" WHERE n = 2");
    assert_eq!(odd, ["'; --\\TABLF\\x00\\xff"]);
    // A column that an earlier run did not have, and a view that another program has made.
    server.query(
        "ALTER TABLE \"a \"\"log\"\"\" DROP COLUMN addr CASCADE; DROP VIEW seen; CREATE VIEW seen AS SELECT 1 AS x",
    );
    let mut db = transport(&server.url(""));
    db.open().unwrap();
    assert_eq!(send(&mut *db, &rows(5..6)).unwrap(), 0);
    assert_eq!(server.query("SELECT x FROM seen"), ["1"]);
}

#[test]
fn a_row_that_is_refused_takes_no_other_with_it() {
    let Some(server) = Server::start("refused") else { return };
    let mut db = transport(&server.url(""));
    db.open().unwrap();
    server.query("ALTER TABLE \"a \"\"log\"\"\" ADD CHECK (n <> 500 AND n <> 501)");
    assert_eq!(send(&mut *db, &rows(0..1000)).unwrap(), 2);
    let complaint = db.take_refusal_reason().unwrap();
    assert!(complaint.contains("check constraint"), "{complaint}");
    assert_eq!(server.query("SELECT count(*), count(DISTINCT n) FROM \"a \"\"log\"\"\""), ["998|998"]);
}

#[test]
fn mistakes_are_reported_with_a_remedy() {
    let Some(server) = Server::start("faults") else { return };
    server.query("CREATE ROLE fw LOGIN PASSWORD 'hunter2'; CREATE ROLE poor LOGIN");
    let tcp = |who: &str, db: &str| format!("postgres://{who}@127.0.0.1:{}/{db}", server.port());
    assert!(said(&tcp("fw", "postgres")).contains("PGPASSWORD"), "{}", said(&tcp("fw", "postgres")));
    let wrong = said(&tcp("fw:swordfish", "postgres"));
    assert!(wrong.contains("password authentication failed") && !wrong.contains("swordfish"), "{wrong}");
    assert!(said(&tcp("fw:hunter2", "none")).contains("(createdb none)"));
    let rights = said(&server.url("").replace("postgres@", "poor@"));
    assert!(rights.contains("permission denied") && rights.contains("GRANT CREATE"), "{rights}");
    let require = said(&format!("{}?sslmode=require", tcp("fw:hunter2", "postgres")));
    assert!(require.contains("TLS"), "{require}");
    assert!(said("postgres://a@127.0.0.1:1/d").contains("cannot connect to 127.0.0.1:1"));
    // Once the table exists, a role with only the right to insert is enough.
    let mut db = transport(&server.url(""));
    db.open().unwrap();
    server.query("GRANT INSERT ON \"a \"\"log\"\"\" TO poor");
    let mut poor = transport(&server.url("").replace("postgres@", "poor@"));
    poor.open().unwrap();
    assert_eq!(send(&mut *poor, &rows(0..3)).unwrap(), 0);
    assert_eq!(server.query("SELECT count(*) FROM \"a \"\"log\"\"\""), ["3"]);
}

#[test]
fn a_peer_that_is_no_server_is_reported_without_reading_everything() {
    use std::io::Write;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let answer = std::thread::spawn(move || {
        for _ in 0..2 {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        }
    });
    for mode in ["prefer", "disable"] {
        let said = said(&format!("postgres://a:b@127.0.0.1:{port}/d?sslmode={mode}"));
        assert!(said.contains("not a PostgreSQL server"), "{said}");
    }
    answer.join().unwrap();
}

/// Accepts one connection, declines TLS if the client requests it, reads the startup message, answers with `answer` and
/// returns what the client sends next.
fn impostor(answer: &'static [u8]) -> (u16, std::thread::JoinHandle<String>) {
    use std::io::{Read, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let serve = move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut place = [0; 4096];
        let bytes = stream.read(&mut place).unwrap();
        if bytes == 8 {
            stream.write_all(b"N").unwrap();
            assert!(stream.read(&mut place).unwrap() > 8);
        }
        stream.write_all(answer).unwrap();
        let bytes = stream.read(&mut place).unwrap_or(0);
        String::from_utf8_lossy(&place[..bytes]).into_owned()
    };
    (port, std::thread::spawn(serve))
}

/// A program that took over the server's port gets neither the password nor a hash of it, unless the URL allows that.
#[test]
fn an_impostor_does_not_get_the_password() {
    const CLEAR: &[u8] = b"R\0\0\0\x08\0\0\0\x03";
    const MD5: &[u8] = b"R\0\0\0\x0c\0\0\0\x05salt";
    for (answer, query, sent) in [
        (CLEAR, "", None),
        (CLEAR, "?sslmode=prefer", None),
        (CLEAR, "?sslmode=disable", None),
        (CLEAR, "?sslmode=disable&require_auth=md5", None),
        (MD5, "", None),
        (MD5, "?sslmode=disable&require_auth=scram-sha-256", None),
        (MD5, "?sslmode=disable&require_auth=md5", Some("md5")),
        (CLEAR, "?sslmode=disable&require_auth=password", Some("hunter2")),
    ] {
        let (port, came) = impostor(answer);
        let said = said(&format!("postgres://fw:hunter2@127.0.0.1:{port}/d{query}"));
        let came = came.join().unwrap();
        assert_eq!(sent.is_none(), said.contains("nothing is sent"), "{query}: {said}");
        assert_eq!(sent.is_none(), came.is_empty(), "{query}: {came:?}");
        assert!(came.contains(sent.unwrap_or_default()), "{query}: {came:?}");
    }
}

/// A server, or an impostor on its port, that sends a TLS handshake one byte at a time counts as away after a few
/// seconds. The same holds for a syslog receiver.
#[test]
fn a_handshake_has_one_time_as_a_whole() {
    use std::io::{Read, Write};
    if cfg!(not(feature = "tls")) {
        return;
    }
    let slow = |answer: &'static [u8]| {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            let mut stream = listener.accept().unwrap().0;
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(answer);
            // The header of a TLS record that announces 16,383 bytes.
            let _ = stream.write_all(b"\x16\x03\x03\x3f\xff");
            while stream.write_all(b"\0").is_ok() {
                std::thread::sleep(Duration::from_millis(50));
            }
        });
        port
    };
    let authority = testkit::authority::Authority::new();
    let opened = |target: String| {
        let tls = export::TlsFiles { authorities: Some(authority.file("ca.pem")), ..Default::default() };
        let options = TransportOptions { file_header: shape().to_header(), tls, ..Default::default() };
        open_transport(&target.parse().unwrap(), options).unwrap().open().unwrap_err().to_string()
    };
    std::thread::scope(|scope| {
        let database = slow(b"S");
        let begun = std::time::Instant::now();
        let database = scope.spawn(move || opened(format!("postgres://a:b@127.0.0.1:{database}/d?sslmode=require")));
        let receiver = opened(format!("syslog+tls://127.0.0.1:{}", slow(b"")));
        let database = database.join().unwrap();
        assert!(receiver.contains("did not finish the TLS handshake within 5 s"), "{receiver}");
        assert!(database.contains("the handshake was not finished within 5 s"), "{database}");
        assert!(begun.elapsed() < Duration::from_secs(30));
    });
}

#[test]
fn certificates_are_judged_as_sslmode_says() {
    if cfg!(not(feature = "tls")) {
        return;
    }
    let Some(mut server) = Server::start("tls") else { return };
    let authority = testkit::authority::Authority::new();
    authority.sign("db", "IP:127.0.0.1", (-60, 3600));
    authority.sign("other", "DNS:elsewhere.example", (-60, 3600));
    let ca = authority.file("ca.pem");
    let opened = |server: &Server, mode: &str| {
        let url = format!("postgres://fw:hunter2@127.0.0.1:{}/postgres?sslmode={mode}", server.port());
        let tls = export::TlsFiles { authorities: Some(ca.clone()), ..Default::default() };
        let options = TransportOptions { file_header: shape().to_header(), tls, ..Default::default() };
        let mut db = open_transport(&url.parse().unwrap(), options).unwrap();
        db.open().map(|()| db)
    };
    for (name, is_right) in [("db", true), ("other", false)] {
        let (key, certificate) = (authority.file(&format!("{name}.key")), authority.file(&format!("{name}.pem")));
        server.configure("ssl = on\n", &[("server.key", &key), ("server.crt", &certificate)]);
        server.query("DROP ROLE IF EXISTS fw; CREATE ROLE fw LOGIN SUPERUSER PASSWORD 'hunter2'");
        let mut db = opened(&server, "require").unwrap();
        assert_eq!(send(&mut *db, &rows(0..500)).unwrap(), 0);
        assert_eq!(
            server.query("SELECT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE usename = 'fw'"),
            ["t"]
        );
        assert_eq!(server.query("SELECT count(*) FROM \"a \"\"log\"\"\""), ["500"]);
        drop(db);
        server.query("DROP OWNED BY fw CASCADE");
        match opened(&server, "verify-full") {
            Ok(_) => assert!(is_right),
            Err(error) => assert!(!is_right && error.to_string().contains("elsewhere.example"), "{error}"),
        }
        server.query("DROP OWNED BY fw CASCADE");
    }
}

/// Forwards connections to a server, and cuts one when the answer to the third COMMIT arrives. With `forwards` false,
/// that COMMIT does not even reach the server.
fn cut_at_commit(server: u16, forwards: bool) -> u16 {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let mut commits = 0;
        for client in listener.incoming().map_while(Result::ok) {
            let upstream = TcpStream::connect(("127.0.0.1", server)).unwrap();
            let (mut from_client, mut from_server) = (client.try_clone().unwrap(), upstream.try_clone().unwrap());
            let (mut to_client, mut to_server) = (client, upstream);
            let is_cut = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
            let cuts = is_cut.clone();
            let answers = std::thread::spawn(move || {
                let mut place = [0; 65_536];
                while let Ok(bytes @ 1..) = from_server.read(&mut place) {
                    if cuts.load(std::sync::atomic::Ordering::SeqCst) || to_client.write_all(&place[..bytes]).is_err() {
                        break;
                    }
                }
                let _ = to_client.shutdown(std::net::Shutdown::Both);
            });
            let mut place = [0; 65_536];
            while let Ok(bytes @ 1..) = from_client.read(&mut place) {
                // Ignore the COMMIT that creates the table.
                let is_commit = place[..bytes].ends_with(b"COMMIT\0") && bytes < 20;
                commits += u32::from(is_commit);
                if is_commit && commits == 3 {
                    is_cut.store(true, std::sync::atomic::Ordering::SeqCst);
                    if !forwards {
                        let _ = from_client.shutdown(std::net::Shutdown::Both);
                        // The server's end stays open for a while: the server does not notice the cut.
                        std::thread::sleep(Duration::from_millis(300));
                        break;
                    }
                }
                if to_server.write_all(&place[..bytes]).is_err() {
                    break;
                }
            }
            let _ = to_server.shutdown(std::net::Shutdown::Both);
            let _ = answers.join();
        }
    });
    port
}

#[test]
fn a_commit_whose_answer_is_lost_is_asked_for() {
    for forwards in [true, false] {
        let Some(server) = Server::start("doubt") else { return };
        server.query("CREATE ROLE fw LOGIN SUPERUSER PASSWORD 'hunter2'");
        let port = cut_at_commit(server.port(), forwards);
        let mut output = output(&format!("postgres://fw:hunter2@127.0.0.1:{port}/postgres?sslmode=disable"));
        wait_until("it is connected", || output.status().is_open);
        for batch in 0..20 {
            output.push(rows(batch * 10..batch * 10 + 10), &|| false);
            let delivered = batch as u64 * 10 + 10;
            wait_until("the batch is delivered", || output.status().ledger.delivered == delivered);
        }
        assert!(output.status().failures >= 1);
        output.finish(&|| false);
        let counts = server.query("SELECT count(*), count(DISTINCT n) FROM \"a \"\"log\"\"\"");
        assert_eq!(counts, ["200|200"], "forwarded: {forwards}");
    }
}

/// Delivers 200 batches while `trouble` causes faults; each row must arrive exactly once.
fn nothing_is_lost(purpose: &str, trouble: impl Fn(&mut Server, u64)) {
    let Some(mut server) = Server::start(purpose) else { return };
    let mut output = output(&server.url(""));
    let delivered = |output: &Output| output.status().ledger.delivered;
    for batch in 0..200 {
        output.push(rows(batch * 100..batch * 100 + 100), &|| false);
        if batch % 50 == 25 {
            wait_until("the server has something", || delivered(&output) > batch as u64 * 20);
            trouble(&mut server, batch as u64);
        }
    }
    wait_until("all is delivered", || delivered(&output) == 20_000);
    let Status { ledger, .. } = output.finish(&|| false);
    assert_eq!((ledger.seen, ledger.delivered, ledger.dropped.total()), (20_000, 20_000, 0));
    let counts = server.query("SELECT count(*), count(DISTINCT n), min(n), max(n) FROM \"a \"\"log\"\"\"");
    assert_eq!(counts, ["20000|20000|0|19999"]);
}

#[test]
fn nothing_is_lost_or_twice_while_the_server_is_killed_and_comes_back() {
    nothing_is_lost("killed", |server, _| {
        server.kill();
        server.begin();
    });
}

#[test]
fn nothing_is_lost_or_twice_while_connections_are_ended() {
    nothing_is_lost("ended", |server, _| {
        server
            .query("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'netwren'");
    });
}

#[test]
fn nothing_is_lost_while_the_table_is_locked() {
    nothing_is_lost("locked", |server, _| {
        server.query("BEGIN; LOCK TABLE \"a \"\"log\"\"\"; SELECT pg_sleep(0.5); COMMIT");
    });
}
