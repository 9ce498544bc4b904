//! What happens to receivers while records are shipped to them.

use super::collector::{Collector, Mood};
use super::disk::SmallDisk;
use std::thread::sleep;
use std::time::Duration;

/// Where records go in a scene.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum To {
    /// JSON by TCP.
    Collector,
    /// A file of JSON on a small disk.
    Disk,
}

/// A trouble, and the packets that are sent meanwhile.
pub(super) struct Scene {
    pub(super) name: &'static str,
    pub(super) to: To,
    /// How the collector begins.
    pub(super) begins: Mood,
    /// Packets a second; `None`: as fast as one sender can.
    pub(super) rate: Option<u32>,
    /// Packets; with a rate and a trouble that lasts, for each second that it lasts.
    pub(super) packets: u32,
    pub(super) happens: Happens,
}

/// What happens while packets are sent.
pub(super) enum Happens {
    /// This, for so many seconds.
    Trouble(fn(&Collector, &SmallDisk, Duration)),
    /// The program is asked to end right after the last packet.
    End,
    /// Another one takes its place in the middle.
    Restart,
}

pub(super) const SCENES: &[Scene] = &[
    Scene {
        name: "receiver away",
        to: To::Collector,
        begins: Mood::WELL,
        rate: Some(6_000),
        packets: 6_000,
        happens: Happens::Trouble(|collector, _, lasts| {
            sleep(Duration::from_secs(1));
            collector.set(Mood::Away);
            sleep(lasts);
            collector.set(Mood::WELL);
        }),
    },
    Scene {
        name: "receiver not there at start",
        to: To::Collector,
        begins: Mood::Away,
        rate: Some(6_000),
        packets: 6_000,
        happens: Happens::Trouble(|collector, _, lasts| {
            sleep(lasts);
            collector.set(Mood::WELL);
        }),
    },
    Scene {
        name: "receiver killed, five times",
        to: To::Collector,
        begins: Mood::WELL,
        rate: Some(6_000),
        packets: 6_000,
        happens: Happens::Trouble(|collector, _, lasts| {
            for _ in 0..5 {
                sleep(lasts / 6);
                collector.kill();
            }
        }),
    },
    Scene {
        name: "receiver reads 200 kB/s",
        to: To::Collector,
        begins: Mood::Reads(200_000),
        rate: Some(6_000),
        packets: 6_000,
        happens: Happens::Trouble(|collector, _, lasts| {
            sleep(lasts + Duration::from_secs(1));
            collector.set(Mood::WELL);
        }),
    },
    Scene {
        name: "receiver deaf",
        to: To::Collector,
        begins: Mood::WELL,
        rate: Some(6_000),
        packets: 6_000,
        happens: Happens::Trouble(|collector, _, lasts| {
            collector.set(Mood::Deaf);
            sleep(lasts);
            collector.set(Mood::WELL);
        }),
    },
    Scene {
        name: "disk full",
        to: To::Disk,
        begins: Mood::WELL,
        rate: Some(6_000),
        packets: 6_000,
        happens: Happens::Trouble(|_, disk, lasts| {
            sleep(Duration::from_secs(1));
            disk.fill();
            sleep(lasts / 3);
            disk.make_room();
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
