//! Lists interfaces like libpcap: `-D`, `-L`, `-J`, and the interface that `-i` selects.

use super::filter::link_words;
use host::Links;
use record::rows::{Link, LinkType, iff};
use std::collections::HashMap;
use sys::Host;
use sys::packet_ring::{StampClock, stamp_clocks};

/// The pseudo-interface for all interfaces.
pub(super) const ANY: &str = "any";

/// An interface to capture on, or all of them.
pub(super) struct Device {
    pub(super) name: Box<[u8]>,
    /// `None` for all interfaces.
    pub(super) link: Option<Link>,
    is_connected: Option<bool>,
}

impl Device {
    fn flags(&self) -> u32 {
        self.link.as_ref().map_or(iff::UP | iff::RUNNING, |link| link.flags)
    }

    pub(super) fn is_up(&self) -> bool {
        self.flags() & iff::UP != 0
    }

    /// The link types available for its packets.
    pub(super) fn link_types(&self) -> Vec<LinkType> {
        let of_link = |link: &Link| vec![LinkType::of_hardware(link.hardware)];
        self.link.as_ref().map_or_else(|| vec![LinkType::SLL, LinkType::SLL2], of_link)
    }

    /// The clocks available for its time stamps.
    pub(super) fn stamp_clocks(&self) -> Vec<StampClock> {
        let of_link = |link: &Link| stamp_clocks(&link.name).ok();
        self.link.as_ref().and_then(of_link).unwrap_or_else(|| vec![StampClock::Host])
    }

    /// libpcap's sort key (pcap.c, get_figure_of_merit): smaller values come first, equal ones stay in the kernel's
    /// order.
    fn rank(&self) -> u32 {
        let flags = self.flags();
        let bit = |is_so: bool, bit: u32| if is_so { bit } else { 0 };
        bit(flags & iff::RUNNING == 0, 0x8000_0000)
            | bit(flags & iff::UP == 0, 0x4000_0000)
            | bit(self.is_connected == Some(false), 0x2000_0000)
            | bit(flags & iff::LOOPBACK != 0, 0x1000_0000)
            | bit(self.link.is_none(), 0x0800_0000)
    }

    fn state(&self) -> String {
        let flags = self.flags();
        let words = [(iff::UP, "Up"), (iff::RUNNING, "Running"), (iff::LOOPBACK, "Loopback")];
        let mut words: Vec<&str> = words.iter().filter(|(bit, _)| flags & bit != 0).map(|(_, word)| *word).collect();
        if words.is_empty() {
            words.push("none");
        }
        words.extend(self.is_connected.map(|is_so| if is_so { "Connected" } else { "Disconnected" }));
        words.join(", ")
    }
}

/// The interfaces of this namespace; the default for a run without `-i` comes first.
pub(super) fn devices() -> Result<Vec<Device>, String> {
    let host = Host::live();
    let netns = host::netns::current(&host).map_err(|error| error.to_string())?;
    let links = Links::read(&host, netns, None).map_err(|error| error.to_string())?.links;
    let device = |link: Link| Device {
        is_connected: match link.flags & iff::LOOPBACK {
            0 => sys::has_link(&link.name).ok().flatten(),
            _ => None,
        },
        name: link.name.clone(),
        link: Some(link),
    };
    let mut all: Vec<Device> = links.into_iter().map(device).collect();
    all.push(Device { name: ANY.as_bytes().into(), link: None, is_connected: None });
    all.sort_by_key(Device::rank);
    Ok(all)
}

/// The names of this namespace's interfaces by index; empty if they cannot be read.
pub(super) fn names() -> HashMap<u32, String> {
    let links = devices().unwrap_or_default().into_iter().filter_map(|device| device.link);
    links.map(|link| (link.index, sys::escape_bytes(&link.name).into_string())).collect()
}

/// The interface that `-i` selects: by name, by number in the list of `-D`, or the first.
pub(super) fn chosen(wanted: Option<&str>) -> Result<Device, String> {
    let mut all = devices()?.into_iter();
    let Some(wanted) = wanted else {
        let usable = all.find(|device| device.is_up());
        return usable.ok_or_else(|| "no suitable device found".to_owned());
    };
    if let Some(device) = all.by_ref().find(|device| *device.name == *wanted.as_bytes()) {
        return Ok(device);
    }
    if let Ok(number) = wanted.parse::<usize>() {
        let nth = number.checked_sub(1).and_then(|nth| devices().ok()?.into_iter().nth(nth));
        return nth.ok_or_else(|| "Invalid adapter index".to_owned());
    }
    Err(format!("{}: No such device exists\n(No such device exists)", sys::escape_bytes(wanted.as_bytes())))
}

/// `-D`: lists interfaces.
pub(super) fn list() -> Result<String, String> {
    let mut text = String::new();
    for (nth, device) in devices()?.iter().enumerate() {
        let about = if device.link.is_none() { " (Pseudo-device that captures on all interfaces)" } else { "" };
        text += &format!("{}.{}{about} [{}]\n", nth + 1, sys::escape_bytes(&device.name), device.state());
    }
    Ok(text)
}

/// `-L`: lists link types.
pub(super) fn link_types(wanted: Option<&str>) -> Result<String, String> {
    let device = chosen(wanted)?;
    let mut text = format!("Data link types for {} (use option -y to set):\n", sys::escape_bytes(&device.name));
    for link_type in device.link_types() {
        text += &format!("  {}\n", link_words(link_type.0.into()));
    }
    Ok(text)
}

/// `-J`: lists time stamp types. Like libpcap, shows the host's stamps for a missing device, and treats a number as a
/// name.
pub(super) fn stamp_types(wanted: Option<&str>) -> Result<String, String> {
    let (name, clocks) = match wanted {
        None => chosen(None).map(|device| (device.name.clone(), device.stamp_clocks()))?,
        Some(wanted) => {
            let device = devices()?.into_iter().find(|device| *device.name == *wanted.as_bytes());
            let clocks = device.map_or_else(|| vec![StampClock::Host], |device| device.stamp_clocks());
            (wanted.as_bytes().into(), clocks)
        }
    };
    let mut text = format!("Time stamp types for {} (use option -j to set):\n", sys::escape_bytes(&name));
    for clock in clocks {
        let (name, about) = stamp_words(clock);
        text += &format!("  {name} ({about})\n");
    }
    Ok(text)
}

/// Name and description of a time stamp type (pcap-tstamp(7)).
pub(super) fn stamp_words(clock: StampClock) -> (&'static str, &'static str) {
    match clock {
        StampClock::Host => ("host", "Host"),
        StampClock::Adapter => ("adapter", "Adapter"),
        StampClock::AdapterUnsynced => ("adapter_unsynced", "Adapter, not synced with system time"),
    }
}
