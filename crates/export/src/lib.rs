//! Ships messages to files and collectors, and counts what became of each.
//!
//! Callers turn rows into text and pass messages in as [`Batch`]es; this crate does not know what they are about. Each
//! [`Output`] has a [`Store`] in which they wait ([`MemoryStore`], or a spool on disk), a thread that delivers them
//! via a [`Transport`], and a [`Ledger`]. Handing over a batch never waits for a receiver, unless the caller asks for
//! that ([`WhenFull::Block`]). Start reading at [`Output`].
#![forbid(unsafe_code)]

mod backoff;
mod batch;
mod classes;
mod clickhouse_address;
mod control;
mod delivery;
mod fold;
mod in_flight;
mod kafka_address;
mod key;
mod ledger;
mod memory;
mod notices;
mod otlp_address;
mod output;
mod pack_in_place;
mod postgres_address;
mod predecessor;
mod rate;
mod shares;
mod spares;
mod spool;
mod status;
mod store;
mod target;
mod tls_files;
mod transports;
mod typed_row;
mod url;
pub mod zstd;

use key::KeyMap;

pub use batch::Batch;
pub use clickhouse_address::ClickHouseAddress;
pub use control::{Control, request_report};
pub use fold::{FOLD_KEYS_MAX, FoldOutcome, FoldTable, FoldedRecords};
pub use kafka_address::KafkaAddress;
pub use key::KeyMaker;
pub use ledger::{Drops, Ledger};
pub use memory::MemoryStore;
pub use notices::{NoticeHandler, OutputNotice};
pub use otlp_address::OtlpAddress;
pub use output::{Output, OutputMonitor, OutputOptions};
pub use pack_in_place::pack_in_place;
pub use postgres_address::{PostgresAddress, PostgresHost, SslMode};
pub use predecessor::{Predecessor, ReceivedSockets};
pub use rate::{LimitedAs, RATE_KEYS_MAX, RATE_WINDOW_NS, Rate, RateTable};
pub use spool::{
    OtherSpool, RecoveredCounts, Spool, SpoolError, SpoolOptions, SyncWhen, check_spool, fuzz_spool_position,
    fuzz_spool_segment,
};
pub use status::{OutputReport, ReportFormat, Status, StatusReport, StoppedPart};
pub use store::{PushOutcome, Store, WhenFull};
pub use target::{Address, Format, Framing, Target, Wire};
pub use tls_files::TlsFiles;
#[cfg(feature = "kafka")]
pub use transports::fuzz_kafka_answers;
pub use transports::{
    DirectDelivery, Gathering, PACKER, Rotation, TakenPart, Transport, TransportOptions, check_target, open_transport,
};
#[cfg(feature = "http")]
pub use transports::{fuzz_clickhouse_answers, fuzz_otlp_answers};
pub use typed_row::{ColumnType, TABLE_PLACE, TableShape, TypedValue, TypedValues, put_typed};
