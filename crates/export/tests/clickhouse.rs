//! Rows in tables of a real ClickHouse engine, read back by SQL.
#![cfg(all(feature = "http", feature = "tls"))]
#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use export::{
    Batch, ColumnType, Output, OutputOptions, Spool, SpoolOptions, Store, TableShape, TlsFiles, Transport,
    TransportOptions, TypedValue, WhenFull, open_transport, put_typed,
};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::time::Duration;
use support::send_all;
use testkit::authority::Authority;
use testkit::clickhouse::ClickHouseServer;
use testkit::require_tool;

/// The table `flows` with these columns.
fn shape(columns: &[(&str, ColumnType)]) -> TableShape {
    let columns = columns.iter().map(|(name, kind)| ((*name).to_owned(), *kind)).collect();
    TableShape { name: "flows".to_owned(), columns, ..TableShape::default() }
}

fn numbered() -> TableShape {
    shape(&[("time", ColumnType::Time), ("number", ColumnType::Integer)])
}

fn transport(url: &str, shape: &TableShape) -> Box<dyn Transport> {
    transport_with(url, shape, TlsFiles::default())
}

fn transport_with(url: &str, shape: &TableShape, tls: TlsFiles) -> Box<dyn Transport> {
    let options = TransportOptions { file_header: shape.to_header(), tls, ..TransportOptions::default() };
    open_transport(&url.parse().unwrap(), options).unwrap()
}

fn put_row(batch: &mut Batch, shape: &TableShape, values: &[TypedValue<'_>]) {
    put_typed(batch.bytes_mut(), TypedValue::Integer(shape.id()));
    values.iter().for_each(|value| put_typed(batch.bytes_mut(), *value));
    batch.end_message();
}

/// Rows with the numbers `from..to`, a second apart.
fn rows(from: u64, to: u64) -> Batch {
    let mut batch = Batch::new();
    for number in from as i64..to as i64 {
        let time = TypedValue::Integer(1_790_000_000_000_000_000 + number * 1_000_000_000);
        put_row(&mut batch, &numbered(), &[time, TypedValue::Integer(number)]);
    }
    batch
}

fn host() -> String {
    String::from_utf8(sys::fs::host_name()).unwrap()
}

#[test]
fn every_type_arrives_as_it_was() {
    let Some(server) = ClickHouseServer::start("types", None, 0) else { return };
    use ColumnType::{Address, Flag, Integer, Real, Text, Time};
    use TypedValue::{Integer as N, Null, Text as T};
    let shape = shape(&[
        ("time", Time),
        ("seen", Time),
        ("port", Integer),
        ("rate", Real),
        ("name", Text),
        ("is_up", Flag),
        ("peer", Address),
    ]);
    for compression in ["gzip", "none"] {
        let url = format!("clickhouse://{}/default?compression={compression}", server.place());
        let mut transport = transport(&url, &shape);
        transport.open().unwrap();
        let mut batch = Batch::new();
        let now = N(1_790_000_000_123_456_789);
        put_row(&mut batch, &shape, &[now, now, N(-5), T("1.5"), T("it's \\ `é`\n\t"), N(1), T("192.0.2.1")]);
        put_row(&mut batch, &shape, &[now, Null, Null, Null, Null, Null, Null]);
        put_row(&mut batch, &shape, &[now, now, N(i64::MAX), T("0.001"), T(""), N(0), T("2001:db8::1")]);
        // A number that the column has no place for, and a row of other columns.
        put_row(&mut batch, &shape, &[now, now, T("18446744073709551615"), Null, Null, Null, Null]);
        put_row(&mut batch, &numbered(), &[now, N(1)]);
        assert_eq!(send_all(&mut *transport, &batch), 2);
        let reason = transport.take_refusal_reason().unwrap();
        assert!(reason.contains("does not fit into the column port"), "{reason}");
        let found = server.query("SELECT * EXCEPT host FROM flows ORDER BY port NULLS LAST FORMAT TSV");
        let time = "2026-09-21 14:13:20.123456789";
        let expected = [
            format!("{time}\t{time}\t-5\t1.5\tit\\'s \\\\ `é`\\n\\t\ttrue\t::ffff:192.0.2.1"),
            format!("{time}\t{time}\t9223372036854775807\t0.001\t\tfalse\t2001:db8::1"),
            format!("{time}\t\\N\t\\N\t\\N\t\\N\t\\N\t\\N"),
        ];
        assert_eq!(found.lines().collect::<Vec<_>>(), expected);
        assert_eq!(server.query("SELECT DISTINCT host FROM flows FORMAT TSV"), host());
        server.query("TRUNCATE TABLE flows");
    }
}

/// Operators make tables with the types that are small for their rows, and more columns may follow later.
#[test]
fn a_table_of_the_operator_gets_its_types_and_only_missing_columns() {
    let Some(server) = ClickHouseServer::start("tables", None, 0) else { return };
    server.query(
        "CREATE TABLE flows (host LowCardinality(String), time DateTime, port UInt16, \
         state Enum8('unknown' = 0, 'open' = 1), peer IPv4, extra UInt8 DEFAULT 7, twice UInt32 MATERIALIZED port * 2) \
         ENGINE = MergeTree ORDER BY (host, port)",
    );
    use ColumnType::{Address, Integer, Text, Time};
    use TypedValue::{Integer as N, Null, Text as T};
    let columns = [("time", Time), ("port", Integer), ("state", Text), ("peer", Address), ("process", Text)];
    let shape = shape(&columns);
    let url = format!("clickhouse://{}/default", server.place());
    let mut sink = transport(&url, &shape);
    sink.open().unwrap();
    let mut batch = Batch::new();
    let now = N(1_790_000_000_123_456_789);
    put_row(&mut batch, &shape, &[now, N(80), T("open"), T("192.0.2.1"), T("nginx")]);
    put_row(&mut batch, &shape, &[now, N(81), T("no such word"), T("192.0.2.1"), T("nginx")]);
    put_row(&mut batch, &shape, &[now, N(443), Null, Null, Null]);
    put_row(&mut batch, &shape, &[now, N(70_000), Null, Null, Null]);
    // The server refuses one word, so the rows are sent in halves until it is alone.
    assert_eq!(send_all(&mut *sink, &batch), 2);
    let found =
        server.query("SELECT host, time, port, state, peer, extra, twice, process FROM flows ORDER BY port FORMAT TSV");
    let expected = [
        format!("{}\t2026-09-21 14:13:20\t80\topen\t192.0.2.1\t7\t160\tnginx", host()),
        format!("{}\t2026-09-21 14:13:20\t443\tunknown\t0.0.0.0\t7\t886\t\\N", host()),
    ];
    assert_eq!(found.lines().collect::<Vec<_>>(), expected);
    let said = |columns: &[(&str, ColumnType)], url: &str| {
        transport(url, &self::shape(columns)).open().unwrap_err().to_string()
    };
    for (columns, says) in [
        (&[("time", Text)][..], "the column time of table flows is DateTime, but values of netwren's are"),
        (&[("port", Time)], "the column port of table flows is UInt16"),
    ] {
        let text = said(columns, &url);
        assert!(text.contains(says), "{text}");
    }
    let text = said(&columns, &format!("clickhouse://{}/no_such_database", server.place()));
    assert!(text.contains("(error 81)") && text.contains("no_such_database"), "{text}");
}

/// Answers that never arrive, a killed server and runs that end in the middle: each row is there once.
#[test]
fn each_row_is_stored_once_although_answers_are_lost_and_both_sides_are_killed() {
    let Some(mut server) = ClickHouseServer::start("once", None, 3) else { return };
    let url = format!("clickhouse://{}/default", server.place());
    let spool = tempfile::tempdir().unwrap();
    let run = |spool: &Path| {
        let (store, _) = Spool::open(spool, &url, SpoolOptions::new(64 << 20)).unwrap();
        let options = OutputOptions { when_full: WhenFull::DropOldest, drain: Duration::from_secs(40) };
        Output::start("clickhouse", Box::new(store), transport(&url, &numbered()), options).unwrap()
    };
    let mut next = 0;
    let mut push = |output: &Output, batches: u64| {
        for _ in 0..batches {
            output.push(rows(next, next + 250), &|| false);
            next += 250;
        }
        next
    };
    // A view counts the rows of each request again, unless it recognises the request as well.
    let mut has_view = false;
    for round in 0..5 {
        let mut output = run(spool.path());
        let before = output.status().ledger.delivered;
        push(&output, 4);
        testkit::wait_until("some are there", || output.status().ledger.delivered > before);
        if !std::mem::replace(&mut has_view, true) {
            server.query(
                "CREATE TABLE sums (day Date, rows UInt64) ENGINE = SummingMergeTree ORDER BY day \
                 SETTINGS non_replicated_deduplication_window = 1000",
            );
            server.query(
                "CREATE MATERIALIZED VIEW v TO sums AS SELECT toDate(time) AS day, count() AS rows FROM flows \
                 GROUP BY day",
            );
        }
        push(&output, 20);
        if round == 2 {
            server.kill();
            push(&output, 20);
            server.begin();
        }
        let status = output.finish(&|| true);
        assert_eq!(status.ledger.dropped.total(), 0, "{status:?}");
    }
    let mut output = run(spool.path());
    let all = push(&output, 1);
    testkit::wait_until("all are there", || output.status().ledger.delivered == all);
    let status = output.finish(&|| false);
    assert_eq!((status.ledger.seen, status.ledger.dropped.total(), status.ledger.resent), (all, 0, 0), "{status:?}");
    let found = server.query("SELECT count(), uniqExact(number), max(number) FROM flows FORMAT TSV");
    assert_eq!(found, format!("{all}\t{all}\t{}", all - 1));
    let first = server.query("SELECT sum(rows) FROM sums FORMAT TSV").parse::<u64>().unwrap();
    assert!(first < all && (all - first) % 250 == 0, "{first} of {all}");
    let inserts = server.query("SELECT count() FROM system.parts WHERE table = 'flows' AND level = 0 FORMAT TSV");
    assert!(inserts.parse::<u64>().unwrap() < 40, "rows are gathered: {inserts} parts");
}

/// A run that never got the answer leaves a note in the spool, with which the next one repeats the request exactly.
#[test]
fn a_request_without_an_answer_is_repeated_by_the_next_run() {
    let Some(server) = ClickHouseServer::start("again", None, 0) else { return };
    for (window, stored) in [(1000, 800), (0, 1500)] {
        server.query("DROP TABLE IF EXISTS flows SYNC");
        server.query(&format!(
            "CREATE TABLE flows (time DateTime64(9), number UInt64) ENGINE = MergeTree ORDER BY number \
             SETTINGS non_replicated_deduplication_window = {window}"
        ));
        let url = format!("clickhouse://{}/default", server.place());
        let spool = tempfile::tempdir().unwrap();
        {
            let (mut store, _) = Spool::open(spool.path(), &url, SpoolOptions::new(1 << 20)).unwrap();
            store.push(rows(0, 700), WhenFull::Block, 0);
            let messages = store.get(0).unwrap().unwrap();
            let mut first = transport(&url, &numbered());
            first.open().unwrap();
            let note = first.prepare(&messages, 0).unwrap().unwrap();
            store.keep_note(note, &store.ledger());
            assert!(first.prepare(&messages, 0).unwrap().is_none(), "the store has it");
            // The server stores them; this run ends as by kill -9, without noting that.
            testkit::wait_until("they are stored", || first.send(&messages, 0).unwrap().bytes > 0);
        }
        let (store, _) = Spool::open(spool.path(), &url, SpoolOptions::new(1 << 20)).unwrap();
        let options = OutputOptions { when_full: WhenFull::DropOldest, drain: Duration::from_secs(40) };
        let mut second = Output::start("clickhouse", Box::new(store), transport(&url, &numbered()), options).unwrap();
        second.push(rows(700, 800), &|| false);
        let status = second.finish(&|| false);
        // A table that does not remember requests has them twice, which is counted.
        let resent = if window == 0 { 700 } else { 0 };
        assert_eq!((status.ledger.delivered, status.ledger.resent), (800, resent), "{status:?}");
        assert_eq!(server.query("SELECT count() FROM flows FORMAT TSV"), stored.to_string());
    }
}

/// Programs that answer anything on a server's port are not believed.
#[test]
fn a_liar_gets_an_error() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("clickhouse://fw@{}/d", listener.local_addr().unwrap());
    let huge = [&b"HTTP/1.1 200 OK\r\nContent-Length: 4294967296\r\n\r\n"[..], &[b'x'; 1000]].concat();
    for (answer, says) in [
        (&b"SSH-2.0-OpenSSH_9.2p1\r\n"[..], "not a HTTP server"),
        (&huge, "not a HTTP server"),
        (
            b"HTTP/1.1 301 Moved\r\nLocation: http://evil.example/\r\nContent-Length: 0\r\n\r\n",
            "does not follow redirects",
        ),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello!", "does not answer as ClickHouse does"),
        (b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 8\r\n\r\nno\x1b[31m!", "status 502: no\\u{1b}[31m!"),
        (
            b"HTTP/1.1 403 Forbidden\r\nX-ClickHouse-Exception-Code: 516\r\nContent-Length: 41\r\n\r\n\
           Code: 516. DB::Exception: fw: wrong login",
            "fw: wrong login (error 516) (the user is in the URL",
        ),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 60\r\n\r\nhalf", "has closed the connection"),
        (b"", "has closed the connection"),
    ] {
        let liar = std::thread::spawn({
            let (listener, answer) = (listener.try_clone().unwrap(), answer.to_vec());
            move || {
                let mut stream = listener.accept().unwrap().0;
                let mut request = [0; 4096];
                let bytes = stream.read(&mut request).unwrap();
                stream.write_all(&answer).unwrap();
                String::from_utf8_lossy(&request[..bytes]).into_owned()
            }
        });
        let said = transport(&url, &numbered()).open().unwrap_err().to_string();
        let request = liar.join().unwrap();
        assert!(said.contains(says), "{}: {said}", answer.escape_ascii());
        assert!(request.contains("X-ClickHouse-User: fw\r\nX-ClickHouse-Key: \r\n"), "{request}");
    }
    let unreachable = transport("clickhouse://127.0.0.1:1/d", &numbered()).open().unwrap_err().to_string();
    assert!(unreachable.contains("cannot connect to 127.0.0.1:1"), "{unreachable}");
}

/// A password is not sent over the network in clear text unless the user wants that.
#[test]
fn a_password_is_not_sent_in_clear_text() {
    let passfile = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(passfile.path(), "hunter2\n").unwrap();
    let passfile = passfile.path().display();
    for (url, says) in [
        (
            format!("clickhouse://fw@192.0.2.1:9/d?passfile={passfile}"),
            "would be sent in clear text: use clickhouses://",
        ),
        ("clickhouse://fw@192.0.2.1:9/d?passfile=/no/such/file".to_owned(), "/no/such/file"),
    ] {
        let said = transport(&url, &numbered()).open().unwrap_err().to_string();
        assert!(said.contains(says) && !said.contains("hunter"), "{url}: {said}");
    }
}

/// A server of another authority gets neither rows nor a login, by both kinds of receivers.
#[test]
fn the_server_must_have_a_certificate() {
    require_tool!("openssl");
    let authority = Authority::new();
    let Some(server) = ClickHouseServer::start_with_tls("tls", &authority) else { return };
    let trusted =
        |authority: &Authority| TlsFiles { authorities: Some(authority.file("ca.pem")), ..TlsFiles::default() };
    let place = server.encrypted_place();
    let url = format!("clickhouses://{place}/default");
    let mut sink = transport_with(&url, &numbered(), trusted(&authority));
    sink.open().unwrap();
    assert_eq!(send_all(&mut *sink, &rows(0, 500)), 0);
    assert_eq!(server.query("SELECT count(), uniqExact(number) FROM flows FORMAT TSV"), "500\t500");
    let other = Authority::new();
    for url in [url, format!("otlp+https://{place}"), format!("otlps+http://{place}")] {
        let said = transport_with(&url, &numbered(), trusted(&other)).open().unwrap_err().to_string();
        assert!(said.contains("certificate"), "{url}: {said}");
    }
}
