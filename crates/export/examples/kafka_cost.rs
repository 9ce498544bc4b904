//! The rate of messages from memory to a topic.
//!
//! `cargo run --profile quick -p export --features kafka --example kafka_cost kafka://127.0.0.1:9092/TOPIC [SPOOL]`
#![allow(clippy::print_stdout)]

use export::{Batch, MemoryStore, Output, OutputOptions, Spool, SpoolOptions, Store, TransportOptions, WhenFull};
use std::error::Error;
use std::io::{self, Write};
use std::time::{Duration, Instant};

/// Messages that are sent.
const MESSAGES: u64 = 3_000_000;
/// Messages that are handed over at once.
const AT_ONCE: u64 = 800;

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let url = words.next().ok_or("usage: kafka_cost kafka://BROKER/TOPIC [SPOOL]")?;
    let store: Box<dyn Store> = match words.next() {
        Some(dir) => Box::new(
            Spool::open(dir.as_ref(), &url, SpoolOptions::new(256 << 20)).map_err(|error| error.to_string())?.0,
        ),
        None => Box::new(MemoryStore::new(64 << 20)),
    };
    let transport = export::open_transport(&url.parse()?, TransportOptions::default())?;
    let options = OutputOptions { when_full: WhenFull::Block, drain: Duration::from_secs(60) };
    let mut output = Output::start("kafka", store, transport, options)?;
    let begun = Instant::now();
    for first in (0..MESSAGES).step_by(AT_ONCE as usize) {
        output.push(rows(first)?, &|| false);
    }
    while output.status().ledger.delivered < MESSAGES && begun.elapsed() < Duration::from_secs(300) {
        std::thread::sleep(Duration::from_millis(1));
    }
    let took = begun.elapsed().as_secs_f64();
    let delivered = output.finish(&|| false).ledger.delivered;
    println!("{delivered} messages in {took:.2} s, {:.0}/s", delivered as f64 / took);
    Ok(())
}

/// Rows of flows as JSON, of about 300 bytes each.
fn rows(first: u64) -> io::Result<Batch> {
    let mut batch = Batch::new();
    for number in first..first + AT_ONCE {
        let row = format_args!(
            "{{\"time\":\"2026-12-01T07:{:02}:00Z\",\"direction\":\"out\",\"proto\":\"tcp\",\
             \"local_addr\":\"10.1.2.3\",\"local_port\":{},\"peer_addr\":\"192.0.2.{}\",\"peer_port\":443,\
             \"process\":\"nginx\",\"pid\":{},\"container\":\"web-{}\",\"bytes_in\":{},\"bytes_out\":{},\
             \"retrans\":0,\"rtt_us\":{}}}\n",
            number / 60 % 60,
            number * 7919 % 30_000 + 32_768,
            number % 250,
            number % 4000,
            number % 20,
            number.wrapping_mul(1_103_515_245) % 1_000_000,
            number * 12_345 % 100_000,
            number % 9000 + 200
        );
        batch.bytes_mut().write_fmt(row)?;
        batch.end_message();
    }
    Ok(batch)
}
