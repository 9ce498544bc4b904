//! The scenes: faults of receivers while records are shipped to them.

use super::collector::{Collector, Mood};
use super::database::Database;
use super::disk::SmallDisk;
use super::tls::TlsCollector;
use std::thread::sleep;
use std::time::Duration;

/// The target of the records in a scene.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum To {
    /// JSON via TCP.
    Collector,
    /// A JSON file on a small disk.
    Disk,
    /// JSON via TLS, with netwren alone.
    Tls,
    /// Rows in PostgreSQL.
    Database,
}

/// The receivers of a scene.
pub(super) struct Stage<'s> {
    pub(super) collector: &'s Collector,
    pub(super) disk: &'s SmallDisk,
    /// The receiver of [`To::Tls`].
    pub(super) tls: Option<&'s TlsCollector<'s>>,
    /// The receiver of [`To::Database`].
    pub(super) database: Option<&'s Database>,
}

/// A fault and the packets sent while it lasts.
pub(super) struct Scene {
    pub(super) name: &'static str,
    pub(super) to: To,
    /// The collector's behaviour at the start.
    pub(super) begins: Mood,
    /// Packets per second; `None` sends as fast as one sender can.
    pub(super) rate: Option<u32>,
    /// Number of packets; for a fault that lasts, packets per second of its duration.
    pub(super) packets: u32,
    pub(super) happens: Happens,
}

/// The event while packets are being sent.
pub(super) enum Happens {
    /// This fault, which lasts for the given time.
    Trouble(fn(&Stage<'_>, Duration)),
    /// The program is asked to end right after the last packet.
    End,
    /// A second instance replaces the program halfway through.
    Restart,
}

pub(super) const SCENES: &[Scene] = &[
    Scene {
        name: "receiver away",
        to: To::Collector,
        begins: Mood::WELL,
        rate: Some(6_000),
        packets: 6_000,
        happens: Happens::Trouble(|stage, lasts| {
            sleep(Duration::from_secs(1));
            stage.collector.set(Mood::Away);
            sleep(lasts);
            stage.collector.set(Mood::WELL);
        }),
    },
    Scene {
        name: "receiver not there at start",
        to: To::Collector,
        begins: Mood::Away,
        rate: Some(6_000),
        packets: 6_000,
        happens: Happens::Trouble(|stage, lasts| {
            sleep(lasts);
            stage.collector.set(Mood::WELL);
        }),
    },
    Scene {
        name: "receiver killed, five times",
        to: To::Collector,
        begins: Mood::WELL,
        rate: Some(6_000),
        packets: 6_000,
        happens: Happens::Trouble(|stage, lasts| {
            for _ in 0..5 {
                sleep(lasts / 6);
                stage.collector.kill();
            }
        }),
    },
    Scene {
        name: "receiver reads 200 kB/s",
        to: To::Collector,
        begins: Mood::Reads(200_000),
        rate: Some(6_000),
        packets: 6_000,
        happens: Happens::Trouble(|stage, lasts| {
            sleep(lasts + Duration::from_secs(1));
            stage.collector.set(Mood::WELL);
        }),
    },
    Scene {
        name: "receiver deaf",
        to: To::Collector,
        begins: Mood::WELL,
        rate: Some(6_000),
        packets: 6_000,
        happens: Happens::Trouble(|stage, lasts| {
            stage.collector.set(Mood::Deaf);
            sleep(lasts);
            stage.collector.set(Mood::WELL);
        }),
    },
    Scene {
        name: "disk full",
        to: To::Disk,
        begins: Mood::WELL,
        rate: Some(6_000),
        packets: 6_000,
        happens: Happens::Trouble(|stage, lasts| {
            sleep(Duration::from_secs(1));
            stage.disk.fill();
            sleep(lasts / 3);
            stage.disk.make_room();
        }),
    },
    Scene {
        name: "TLS: expires, a stranger's, cut",
        to: To::Tls,
        begins: Mood::WELL,
        rate: Some(6_000),
        packets: 6_000,
        happens: Happens::Trouble(|stage, lasts| {
            let Some(tls) = stage.tls else { return };
            // The certificate expires while it is in use; existing connections continue.
            sleep(lasts / 3);
            tls.serve("short");
            sleep(lasts / 6);
            tls.serve_as_stranger();
            sleep(lasts / 6);
            tls.cut_handshakes(lasts / 3);
            tls.serve("good");
        }),
    },
    Scene {
        name: "PostgreSQL away",
        to: To::Database,
        begins: Mood::WELL,
        rate: Some(6_000),
        packets: 6_000,
        happens: Happens::Trouble(|stage, lasts| {
            let Some(database) = stage.database else { return };
            sleep(Duration::from_secs(1));
            database.kill();
            sleep(lasts);
            database.begin();
        }),
    },
    Scene {
        name: "SIGTERM after a burst",
        to: To::Collector,
        begins: Mood::WELL,
        rate: None,
        packets: 200_000,
        happens: Happens::End,
    },
    Scene {
        name: "restart (netwren: --take-over)",
        to: To::Collector,
        begins: Mood::WELL,
        rate: Some(10_000),
        packets: 40_000,
        happens: Happens::Restart,
    },
];
