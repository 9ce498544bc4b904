//! The groups that a run reads.
use std::sync::Arc;

use netlink::datagrams::BatchHeader;
use record::Accounting;
use sys::{ShortShares, SysError};

use super::groups::{DeliveryOptions, GroupSocket};
use super::other_netns::OtherNetnsSockets;
use super::scanner::Scanner;
use crate::events::succession::InheritedGroup;

/// Notes about the memory of other namespaces.
const REDUCED: &str = "network namespaces had smaller receive buffers: they share --buffer-total";
const LEFT_OUT: &str = "network namespaces were left out for lack of memory (raise with --buffer-total)";

/// The sockets of all groups; none in a replay.
#[derive(Default)]
pub(crate) struct BoundGroups {
    /// The groups of the namespace in which the run started.
    pub(crate) sockets: Vec<Arc<GroupSocket>>,
    /// Sockets of other namespaces, and the scanner that finds these namespaces.
    pub(crate) elsewhere: Option<(Arc<OtherNetnsSockets>, Scanner)>,
    /// Groups that were taken over, each with the number of its next record.
    pub(crate) taken_over: Vec<(u16, Option<u32>)>,
    /// Why sockets were not taken over.
    pub(crate) refused: Vec<(u16, String)>,
    /// The last number of bytes per packet that was requested from the kernel.
    copied: u32,
}

impl BoundGroups {
    /// Takes groups of the calling thread's namespace over, or binds them. Data received during that time is added to
    /// `early`.
    pub(crate) fn open(
        groups: &[u16],
        delivery: DeliveryOptions,
        netns_id: u64,
        inherited: Vec<InheritedGroup>,
        early: &mut Vec<Vec<u8>>,
    ) -> Result<BoundGroups, (u16, SysError)> {
        let (mut sockets, mut taken_over, mut refused) = (Vec::new(), Vec::new(), Vec::new());
        for inherited in inherited {
            let (group, next) = (inherited.group, inherited.next);
            let is_there = sockets.iter().any(|socket: &Arc<GroupSocket>| socket.group == group);
            if !groups.contains(&group) || is_there {
                refused.push((group, "no longer requested".to_owned()));
                continue;
            }
            match GroupSocket::adopt(inherited, netns_id, delivery, early) {
                Ok(socket) => {
                    taken_over.push((group, next));
                    sockets.push(Arc::new(socket));
                }
                Err(why) => refused.push((group, why)),
            }
        }
        for group in groups.iter().filter(|group| !taken_over.iter().any(|(taken, _)| taken == *group)) {
            let bound = GroupSocket::bind(*group, netns_id, delivery, early).map_err(|error| (*group, error))?;
            sockets.push(Arc::new(bound));
        }
        Ok(BoundGroups { sockets, elsewhere: None, taken_over, refused, copied: delivery.copy_bytes })
    }

    /// Makes the kernel copy this number of bytes of each packet, if it changed; a failed request is repeated.
    pub(crate) fn copy(&mut self, bytes: u32) {
        let elsewhere = self.elsewhere.as_ref().map(|(elsewhere, _)| elsewhere);
        let has_new = elsewhere.is_some_and(|elsewhere| elsewhere.take_new());
        if bytes == self.copied && !has_new {
            return;
        }
        let is_set = self.sockets.iter().all(|one| one.copy(bytes).is_ok());
        if is_set && elsewhere.is_none_or(|elsewhere| elsewhere.copy(bytes)) {
            self.copied = bytes;
        }
    }

    /// Reports what is missing from other namespaces; `header` belongs to the last batch.
    pub(crate) fn report_others(&self, header: &BatchHeader, stats: &mut Accounting) {
        let ((unread, why), shortage) = match &self.elsewhere {
            Some((elsewhere, _)) => (elsewhere.unbound_groups(), elsewhere.largest_shortage()),
            None => ((header.unreachable, None), ShortShares::default()),
        };
        if let (0, reduced @ 1..) = (shortage.left_out, shortage.reduced) {
            // Smaller buffers alone do not make the run incomplete.
            stats.add_reason(reduced, REDUCED);
        }
        if shortage.left_out > 0 {
            stats.incomplete(shortage.left_out, LEFT_OUT);
        }
        let why = why.map_or_else(String::new, |why| format!(", the first {why}"));
        let late = "network namespaces were created during the run: records before they were found are not counted";
        for (count, text) in [(unread, format!("groups were not read{why}")), (header.late, late.to_owned())] {
            if count > 0 {
                stats.incomplete(count, text);
            }
        }
    }
}
