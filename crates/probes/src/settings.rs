//! Settings below /proc/sys/net, which checks compare counters with.

use doctor::checks::SETTINGS;
use lookups::session::Session;
use record::Accounting;
use std::collections::{BTreeMap, BTreeSet};
use sys::{Errno, Host, fs};

use crate::counter_window::Samples;

/// The kernel's default range of local ports, used if the setting cannot be read.
const PORTS: (u16, u16) = (32_768, 60_999);

/// Settings of a namespace: names and numbers.
type NetnsSettings = Vec<(&'static str, Vec<i64>)>;

/// The settings of each namespace.
#[derive(Default)]
pub(crate) struct NetSettings {
    of: BTreeMap<u64, NetnsSettings>,
    /// Namespaces whose settings a recording lacks, because they could not be entered.
    unread: BTreeSet<u64>,
}

impl NetSettings {
    /// Reads the settings of the session's namespaces.
    pub(crate) fn read(session: &Session, stats: &mut Accounting) -> NetSettings {
        let NetSettings { mut of, mut unread } = NetSettings::default();
        session.in_each_namespace(&mut |netns_id| match read_netns(session.host(), netns_id, stats) {
            Some(read) => drop(of.insert(netns_id, read)),
            None => drop(unread.insert(netns_id)),
        });
        if of.is_empty() && !unread.is_empty() {
            unread.clear();
            stats.unanswered = true;
            stats.add_reason(0, "the recording holds no settings (`netwren record FILE` records everything)");
        }
        if !unread.is_empty() {
            stats.unanswered = true;
            let text =
                "a network namespace is not checked: it was removed, or could not be entered, during the recording";
            stats.add_reason(unread.len() as u64, text);
        }
        NetSettings { of, unread }
    }

    /// True if the namespace was entered, or the host is live.
    pub(crate) fn has_read(&self, netns_id: u64) -> bool {
        !self.unread.contains(&netns_id)
    }

    /// The range from which the kernel chooses local ports.
    pub(crate) fn local_ports(&self, netns_id: u64) -> (u16, u16) {
        let range = || {
            let (_, numbers) = self.of.get(&netns_id)?.iter().find(|(name, _)| *name == "ipv4/ip_local_port_range")?;
            let [first, last] = numbers.as_slice() else { return None };
            Some((u16::try_from(*first).ok()?, u16::try_from(*last).ok()?))
        };
        range().unwrap_or(PORTS)
    }

    /// Adds the settings to the samples. The host's sample gets settings from the first namespace that has them.
    pub(crate) fn add_to(&self, samples: &mut Samples) {
        for (netns_id, all) in &self.of {
            for (name, numbers) in all {
                for id in [Some(*netns_id), None] {
                    if let Some(sample) = samples.get_mut(&id).filter(|sample| sample.setting(name, 0).is_none()) {
                        sample.add_setting(name, numbers.clone());
                    }
                }
            }
        }
    }
}

/// Reads the settings of the calling thread's namespace. Some settings exist only in the first namespace. Returns
/// `None` if a recording holds no settings.
fn read_netns(host: &Host, netns_id: u64, stats: &mut Accounting) -> Option<NetnsSettings> {
    let (mut found, mut text, mut missing) = (NetnsSettings::new(), Vec::new(), 0);
    for name in SETTINGS {
        let path = format!("/proc/sys/net/{name}");
        let read = host
            .bytes(&format!("{path}@{netns_id}"), "", &mut text, |into| fs::read_file(&host.real_path(&path), into));
        match read {
            Ok(()) => {
                found.push((name, numbers_of(name, &String::from_utf8_lossy(&text))));
            }
            Err(error) if error.errno == Errno::NOENT => {}
            Err(error) if error.errno == Errno::NOT_RECORDED => missing += 1,
            Err(error) => {
                stats.incomplete(1, error.to_string());
            }
        }
    }
    // A recording of an earlier version lacks newer settings.
    (missing < SETTINGS.len()).then_some(found)
}

/// The numbers of a setting. Of a list of ranges (`8080,9000-9100`), the first and the last number of each.
fn numbers_of(name: &str, text: &str) -> Vec<i64> {
    if name != doctor::checks::RESERVED_PORTS {
        return text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    }
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some([first.parse().ok()?, last.parse().ok()?])
    };
    text.trim().split(',').filter_map(range).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_ranges() {
        assert_eq!(numbers_of("ipv4/ip_local_port_range", "32768\t60999\n"), [32_768, 60_999]);
        let reserved = |text| numbers_of(doctor::checks::RESERVED_PORTS, text);
        assert_eq!(reserved("8080,9000-9100\n"), [8080, 8080, 9000, 9100]);
        assert_eq!((reserved("\n"), reserved("8080\n")), (Vec::new(), vec![8080, 8080]));
    }
}
