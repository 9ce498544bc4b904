//! Counts of one pass over the connection-tracking table.
use record::rows::{Conntrack, CtSetting, CtSettings, CtStatus};

use super::entry_timeout::{self, setting_of};
use super::ports::PortCensus;

/// The entries governed by one timeout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct TimeoutGroup {
    pub(super) entries: u64,
    /// Entries silent for longer than the timeout could be lowered to.
    pub(super) idle: u64,
}

/// Counts of a pass.
#[derive(Debug, Clone)]
pub struct Census {
    settings: CtSettings,
    groups: [TimeoutGroup; CtSetting::ALL.len()],
    entries: u64,
    nat: u64,
    /// Entries that certainly have extensions; next, entries that may have some, and entries for which the backend
    /// reported it.
    extended: u64,
    may_be_extended: u64,
    told: u64,
    /// Entries with extensions but without a rewritten address.
    plain_extended: u64,
    helped: u64,
    /// Entries for which the backend reports whether they have expired, and those that have.
    dated: u64,
    expired: u64,
    ports: PortCensus,
}

impl Census {
    /// An empty census, with the settings of the namespace.
    pub fn new(settings: &CtSettings) -> Census {
        Census {
            settings: *settings,
            groups: [TimeoutGroup::default(); CtSetting::ALL.len()],
            entries: 0,
            nat: 0,
            extended: 0,
            may_be_extended: 0,
            told: 0,
            plain_extended: 0,
            helped: 0,
            dated: 0,
            expired: 0,
            ports: PortCensus::default(),
        }
    }

    /// Counts an entry.
    pub fn add(&mut self, row: &Conntrack<'_>) {
        self.entries += 1;
        let has = |bits| row.status.is_some_and(|status| status.contains(bits));
        let is_nat = has(CtStatus::SRC_NAT) || has(CtStatus::DST_NAT);
        self.nat += u64::from(is_nat);
        let shown = row.counters_orig.is_some() || row.start_ns.is_some() || row.labels.is_some();
        let helped = row.helper.is_some();
        self.helped += u64::from(helped);
        let certain = row.extended.unwrap_or(shown || helped);
        self.extended += u64::from(certain);
        self.plain_extended += u64::from(certain && !is_nat);
        self.told += u64::from(row.extended.is_some());
        // For masquerading, the kernel keeps the interface in an extension; `snat` needs none. The status is the same
        // for both.
        self.may_be_extended += u64::from(certain || row.extended.is_none() && has(CtStatus::SRC_NAT));
        if let Some(expired) = row.expired {
            self.dated += 1;
            self.expired += u64::from(expired);
        }
        self.ports.add(row);
        self.add_to_group(row);
    }

    fn add_to_group(&mut self, row: &Conntrack<'_>) {
        if row.expired == Some(true) {
            return;
        }
        let Some(setting) = setting_of(row) else { return };
        let is_idle = self.is_idle(setting, row.timeout_s);
        if let Some(group) = self.groups.get_mut(setting as usize) {
            group.entries += 1;
            group.idle += u64::from(is_idle);
        }
    }

    /// True if an entry with `left` seconds remaining has been silent for longer than its timeout could be lowered to.
    fn is_idle(&self, setting: CtSetting, left: Option<u32>) -> bool {
        let (Some(seconds), Some(left)) = (self.settings.get(setting), left.map(u64::from)) else { return false };
        let Some((lower, _)) = entry_timeout::lower(setting, seconds) else { return false };
        // An open connection whose last packet was not answered has a shorter timeout. How long it was silent is
        // unknown, and it soon expires regardless of this timeout.
        if setting == CtSetting::TcpEstablished && left <= self.short_tcp() {
            return false;
        }
        // More time left than a packet gives: set by hand, or the setting was lowered since.
        seconds.checked_sub(left).is_some_and(|idle| idle >= lower)
    }

    fn short_tcp(&self) -> u64 {
        let of = |setting| self.settings.get(setting).unwrap_or(0);
        of(CtSetting::TcpMaxRetransTimeout).max(of(CtSetting::TcpUnacknowledged))
    }

    pub(super) fn group(&self, setting: CtSetting) -> TimeoutGroup {
        self.groups.get(setting as usize).copied().unwrap_or_default()
    }

    /// Returns the source ports by address and destination.
    pub(super) fn ports(&self) -> &PortCensus {
        &self.ports
    }

    /// True if an entry's source is rewritten to a port: then the rules determine how many ports there are.
    pub fn has_source_ports(&self) -> bool {
        !self.ports.is_empty()
    }

    /// Returns the number of counted entries, including expired ones if the backend returns them.
    pub fn entries(&self) -> u64 {
        self.entries
    }

    /// Returns the number of entries with a rewritten address.
    pub fn nat(&self) -> u64 {
        self.nat
    }

    /// Returns the number of entries that have expired and still count; `None` if the backend leaves them out.
    pub fn expired(&self) -> Option<u64> {
        (self.dated == self.entries && self.entries > 0).then_some(self.expired)
    }

    /// True if the backend reported for every entry whether it has extensions.
    pub fn is_exact(&self) -> bool {
        self.told == self.entries && self.entries > 0
    }

    /// Returns the number of entries without a rewritten address, and how many of them certainly have extensions.
    pub(super) fn plain(&self) -> (u64, u64) {
        (self.entries - self.nat, self.plain_extended)
    }

    /// Returns the number of entries with extensions: at least, at most; and with a helper among them.
    pub fn extended(&self) -> (u64, u64, u64) {
        (self.extended, self.may_be_extended, self.helped)
    }
}
