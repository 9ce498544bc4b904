//! What is shipped where: the receivers and their settings.

use crate::{RepeatRequest, UlogdTuning};
use export::{Rotation, SyncWhen, Target, TlsFiles, WhenFull};
use std::path::PathBuf;
use std::time::Duration;

/// Default memory for messages waiting for one receiver, in bytes.
///
/// Bound: bytes of memory for messages that wait for a receiver (`--queue-max`). Beyond: messages of the rule with the
/// most are dropped (`--when-full`) and counted (exit code 3); messages of others stay (docs/adr/0020). By: any sender
/// of packets that a rule logs, while a receiver is away.
pub const QUEUE_MAX: usize = 64 << 20;

/// The request to ship rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShipRequest {
    /// `--to`, without duplicates.
    pub targets: Vec<Target>,
    /// One per target if the targets come from an ulogd.conf, otherwise empty.
    pub tuning: Vec<UlogdTuning>,
    /// `--when-full`
    pub when_full: WhenFull,
    /// `--queue-max` in bytes.
    pub queue_max: usize,
    /// `--spool`
    pub spool: Option<SpoolRequest>,
    /// `--tls-ca`, `--tls-cert`, `--tls-key`
    pub tls: TlsFiles,
    /// `--rotate-size`, `--rotate-age`, `--rotate-keep`, `--rotate-zstd`
    pub rotation: Option<Rotation>,
    /// `--control`
    pub control: Option<PathBuf>,
    /// `--fold`, `--rate`, `--rate-by`
    pub repeats: RepeatRequest,
    /// `--comment`: fields for packet comments in pcapng targets.
    pub comment: Option<String>,
}

/// The disk queue for rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpoolRequest {
    /// `--spool`
    pub dir: PathBuf,
    /// `--spool-max` in bytes, for each receiver.
    pub bytes_max: u64,
    /// `--spool-age`
    pub age_max: Option<Duration>,
    /// `--spool-sync`
    pub sync: SyncWhen,
}

impl ShipRequest {
    /// Outputs from an ulogd.conf.
    pub fn tuned(outputs: Vec<(Target, UlogdTuning)>) -> ShipRequest {
        let (targets, tuning) = outputs.into_iter().unzip();
        ShipRequest {
            comment: None,
            control: None,
            repeats: RepeatRequest::default(),
            targets,
            tuning,
            when_full: WhenFull::default(),
            queue_max: QUEUE_MAX,
            spool: None,
            rotation: None,
            tls: TlsFiles::default(),
        }
    }
}
