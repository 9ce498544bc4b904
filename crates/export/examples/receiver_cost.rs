//! The rate of rows from memory or a spool to Kafka or ClickHouse, and the processor's time for them.
//!
//! `cargo run --profile quick -p export --features kafka,http --example receiver_cost TARGET [SPOOL]`, where TARGET
//! is `kafka://127.0.0.1:9092/TOPIC`, `clickhouse://127.0.0.1:8123/DATABASE`, or `null`: a server of this program that
//! answers to ClickHouse's inserts and stores nothing; it also measures the bytes of a minute of 168 rows.
#![allow(clippy::print_stdout)]

use export::{
    Batch, ColumnType, MemoryStore, Output, OutputOptions, Spool, SpoolOptions, Store, TableShape, TransportOptions,
    TypedValue, WhenFull, put_typed,
};
use std::error::Error;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Rows that are sent.
const ROWS: u64 = 3_000_000;
/// Rows that are handed over at once.
const AT_ONCE: u64 = 800;
/// Flows of a usual host in a minute.
const MINUTE: u64 = 168;

const COLUMNS: [(&str, ColumnType); 14] = [
    ("time", ColumnType::Time),
    ("direction", ColumnType::Text),
    ("proto", ColumnType::Text),
    ("local_addr", ColumnType::Address),
    ("local_port", ColumnType::Integer),
    ("peer_addr", ColumnType::Address),
    ("peer_port", ColumnType::Integer),
    ("process", ColumnType::Text),
    ("pid", ColumnType::Integer),
    ("container", ColumnType::Text),
    ("bytes_in", ColumnType::Integer),
    ("bytes_out", ColumnType::Integer),
    ("retrans", ColumnType::Integer),
    ("rtt_us", ColumnType::Integer),
];

/// The columns of a table that an operator makes for these rows.
const TYPES: [&str; 14] = [
    "DateTime",
    "Enum8('in' = 1, 'out' = 2)",
    "LowCardinality(String)",
    "IPv6",
    "UInt16",
    "IPv6",
    "UInt16",
    "LowCardinality(String)",
    "UInt32",
    "String",
    "UInt64",
    "UInt64",
    "UInt32",
    "UInt32",
];

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let target = words.next().ok_or("usage: receiver_cost TARGET [SPOOL]")?;
    let spool = words.next();
    let received = Arc::new(AtomicU64::new(0));
    let is_null = target == "null";
    let url = if is_null { null_server(&received)? } else { target };
    if is_null {
        let delivered = ship(&url, None, MINUTE, MINUTE)?;
        let bytes = received.swap(0, Relaxed);
        println!("{delivered} rows at once: {:.1} bytes a row", bytes as f64 / delivered as f64);
    }
    let (begun, cpu) = (Instant::now(), cpu_seconds()?);
    let delivered = ship(&url, spool.as_deref(), ROWS, AT_ONCE)?;
    let (took, cpu) = (begun.elapsed().as_secs_f64(), cpu_seconds()? - cpu);
    let (rows_per_s, rows_per_cpu_s) = (delivered as f64 / took, delivered as f64 / cpu);
    println!("{delivered} rows in {took:.2} s: {rows_per_s:.0}/s, {rows_per_cpu_s:.0} per second of CPU");
    if is_null {
        println!("{:.1} bytes a row", received.load(Relaxed) as f64 / delivered as f64);
    }
    Ok(())
}

/// Ships this many rows; returns how many were delivered.
fn ship(url: &str, spool: Option<&str>, rows: u64, at_once: u64) -> Result<u64, Box<dyn Error>> {
    let store: Box<dyn Store> = match spool {
        Some(dir) => {
            Box::new(Spool::open(dir.as_ref(), url, SpoolOptions::new(256 << 20)).map_err(|error| error.to_string())?.0)
        }
        None => Box::new(MemoryStore::new(64 << 20)),
    };
    let shape = shape();
    let options = TransportOptions { file_header: shape.to_header(), ..TransportOptions::default() };
    let transport = export::open_transport(&url.parse()?, options)?;
    let options = OutputOptions { when_full: WhenFull::Block, drain: Duration::from_secs(60) };
    let mut output = Output::start("cost", store, transport, options)?;
    let put = if url.starts_with("kafka") { put_json } else { put_values };
    for first in (0..rows).step_by(at_once as usize) {
        let mut batch = Batch::new();
        for number in first..rows.min(first + at_once) {
            put(&mut batch, &shape, number)?;
            batch.end_message();
        }
        output.push(batch, &|| false);
    }
    Ok(output.finish(&|| false).ledger.delivered)
}

fn shape() -> TableShape {
    let columns = COLUMNS.iter().map(|(name, kind)| ((*name).to_owned(), *kind)).collect();
    TableShape { name: "flows".to_owned(), columns, ..TableShape::default() }
}

/// The numbers of a row: all connections of a host last for some minutes, and their counters vary.
struct Row {
    minute: u64,
    local_port: u64,
    peer: u64,
    pid: u64,
    bytes_in: u64,
    bytes_out: u64,
    rtt_us: u64,
}

fn row(number: u64) -> Row {
    let noise = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
    Row {
        minute: number / MINUTE,
        local_port: 32_768 + number * 7919 % 28_000,
        peer: noise % 250,
        pid: 1000 + number % 16,
        bytes_in: noise % 1_000_000,
        bytes_out: (noise >> 20) % 100_000,
        rtt_us: 200 + (noise >> 10) % 9000,
    }
}

fn put_values(batch: &mut Batch, shape: &TableShape, number: u64) -> io::Result<()> {
    let row = row(number);
    let (peer, container) = (format!("192.0.2.{}", row.peer), format!("web-{}", row.pid % 8));
    let integer = |n: u64| TypedValue::Integer(n as i64);
    let out = batch.bytes_mut();
    for value in [
        TypedValue::Integer(shape.id()),
        integer((1_790_000_000 + 60 * row.minute) * 1_000_000_000),
        TypedValue::Text("out"),
        TypedValue::Text("tcp"),
        TypedValue::Text("10.1.2.3"),
        integer(row.local_port),
        TypedValue::Text(&peer),
        integer(443),
        TypedValue::Text("nginx"),
        integer(row.pid),
        TypedValue::Text(&container),
        integer(row.bytes_in),
        integer(row.bytes_out),
        integer(0),
        integer(row.rtt_us),
    ] {
        put_typed(out, value);
    }
    Ok(())
}

fn put_json(batch: &mut Batch, _: &TableShape, number: u64) -> io::Result<()> {
    let row = row(number);
    writeln!(
        batch.bytes_mut(),
        "{{\"time\":\"2026-12-01T07:{:02}:00Z\",\"direction\":\"out\",\"proto\":\"tcp\",\"local_addr\":\"10.1.2.3\",\
         \"local_port\":{},\"peer_addr\":\"192.0.2.{}\",\"peer_port\":443,\"process\":\"nginx\",\"pid\":{},\
         \"container\":\"web-{}\",\"bytes_in\":{},\"bytes_out\":{},\"retrans\":0,\"rtt_us\":{}}}",
        row.minute % 60,
        row.local_port,
        row.peer,
        row.pid,
        row.pid % 8,
        row.bytes_in,
        row.bytes_out,
        row.rtt_us
    )
}

/// Starts a server that answers as ClickHouse would, counts the bytes of inserts, and forgets them.
fn null_server(received: &Arc<AtomicU64>) -> io::Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let url = format!("clickhouse://{}/default", listener.local_addr()?);
    let received = Arc::clone(received);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let _ = serve(stream, &received);
        }
    });
    Ok(url)
}

fn serve(stream: TcpStream, received: &AtomicU64) -> io::Result<()> {
    let mut input = BufReader::new(&stream);
    loop {
        let (mut line, mut length, mut is_insert) = (String::new(), 0, false);
        while input.read_line(&mut line)? > 2 {
            is_insert |= line.contains("query=INSERT");
            length = line.strip_prefix("Content-Length: ").and_then(|text| text.trim().parse().ok()).unwrap_or(length);
            line.clear();
        }
        if line.is_empty() {
            return Ok(());
        }
        let mut body = vec![0; length];
        input.read_exact(&mut body)?;
        let statement = String::from_utf8_lossy(&body);
        let mut answer = Vec::new();
        let mut put = |text: &str| {
            answer.push(text.len() as u8);
            answer.extend_from_slice(text.as_bytes());
        };
        if is_insert {
            received.fetch_add(length as u64, Relaxed);
        } else if statement.contains("system.columns") {
            [("host", "LowCardinality(String)")]
                .into_iter()
                .chain(COLUMNS.iter().zip(TYPES).map(|(one, kind)| (one.0, kind)))
                .for_each(|(name, kind)| [name, kind].into_iter().for_each(&mut put));
        } else {
            ["MergeTree", "non_replicated_deduplication_window = 1000"].into_iter().for_each(put);
        }
        write!(&stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", answer.len())?;
        (&stream).write_all(&answer)?;
    }
}

/// Seconds of CPU that this process has used, with its server.
fn cpu_seconds() -> Result<f64, Box<dyn Error>> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let fields: Vec<&str> = stat.rsplit_once(") ").ok_or("no stat")?.1.split(' ').collect();
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok()).unwrap_or(0.0);
    Ok((ticks(11) + ticks(12)) / 100.0)
}
