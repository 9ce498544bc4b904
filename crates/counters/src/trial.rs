//! Checks whether drivers and devices provide statistics, for `netwren support`.
use std::collections::BTreeSet;
use std::ops::ControlFlow;

use netlink::generic;
use sys::{DriverStatistics, Host, Missing, Trial};

use crate::reading::CounterReading;
use crate::traps;

/// The number of interfaces of this namespace with driver statistics, or why these cannot be read.
pub fn try_drivers(host: &Host) -> Trial {
    let mut lines = Vec::new();
    let read = sys::fs::read_file(&host.real_path("/proc/thread-self/net/dev"), &mut lines);
    let opened = read.and_then(|()| DriverStatistics::open());
    let mut statistics = match opened {
        Ok(statistics) => statistics,
        Err(error) => return Trial::new_refused(Some(error.errno), error.to_string()),
    };
    let (mut ifaces, mut counting) = (0, 0);
    for line in lines.split(|byte| *byte == b'\n') {
        let Some(end) = line.iter().position(|byte| *byte == b':') else { continue };
        let mut bytes = Vec::new();
        let name = line.get(..end).unwrap_or_default().trim_ascii();
        if let Err(error) = statistics.read(name, &mut bytes) {
            return Trial::new_refused(Some(error.errno), error.to_string());
        }
        ifaces += 1;
        counting += u32::from(!bytes.is_empty());
    }
    Trial::new_working(format!("via ethtool ioctls; the drivers of {counting} of {ifaces} interfaces have statistics"))
}

/// The number of traps of this namespace's devices, or why these cannot be read. Loads no module.
pub fn try_traps(host: &Host) -> Trial {
    let family = match generic::find_in_list(host, traps::FAMILY, "families", None) {
        Ok(Some(family)) => family.id,
        Ok(None) => return Trial::new_missing(Missing::KernelOption, "this kernel has no devlink"),
        Err(error) => return Trial::new_refused(error.errno(), error.to_string()),
    };
    let (request, mut reading, mut found) = (traps::request(family), CounterReading::default(), 0);
    let read = netlink::dump(host, &traps::query(&request, "traps"), |part| {
        found += u32::from(traps::add(&mut reading, part.payload).is_some());
        ControlFlow::Continue(())
    });
    if let Err(error) = read {
        return Trial::new_refused(error.errno(), error.to_string());
    }
    let devices: BTreeSet<&[u8]> = reading.objects().iter().map(|object| &*object.label).collect();
    Trial::new_working(format!("via devlink; {} devices have {found} traps", devices.len()))
}
