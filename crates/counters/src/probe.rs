//! Whether drivers tell what they count: for `netwren support`.
use sys::{DriverStatistics, Host, Tried};

/// How many interfaces of this namespace have statistics of their driver, or why these cannot be read.
pub fn probe_drivers(host: &Host) -> Tried {
    let mut lines = Vec::new();
    let read = sys::fs::read_file(&host.real_path("/proc/thread-self/net/dev"), &mut lines);
    let opened = read.and_then(|()| DriverStatistics::open());
    let mut statistics = match opened {
        Ok(statistics) => statistics,
        Err(error) => return Tried::refused(Some(error.errno), error.to_string()),
    };
    let (mut ifaces, mut counting) = (0, 0);
    for line in lines.split(|byte| *byte == b'\n') {
        let Some(end) = line.iter().position(|byte| *byte == b':') else { continue };
        let mut bytes = Vec::new();
        let name = line.get(..end).unwrap_or_default().trim_ascii();
        if let Err(error) = statistics.read(name, &mut bytes) {
            return Tried::refused(Some(error.errno), error.to_string());
        }
        ifaces += 1;
        counting += u32::from(!bytes.is_empty());
    }
    Tried::works(format!("by ethtool's ioctls; drivers of {counting} of {ifaces} interfaces here have some"))
}
