//! Names of interfaces, looked up once per second.

use record::text::put_log_text;
use record::{Key, LookupId, Lookups, Value};

const SLOTS: usize = 8;
/// Length of fifteen bytes, each as `\xNN`.
const NAME_MAX: usize = 60;

/// The names that were last looked up. A renamed interface gets its new name in the next second, if the lookup already
/// has it.
pub(super) struct IfaceNames {
    slots: [Slot; SLOTS],
}

#[derive(Clone, Copy)]
struct Slot {
    netns_id: u64,
    index: u32,
    /// The second of the names; `u64::MAX` if there are none.
    second: u64,
    len: u8,
    text: [u8; NAME_MAX],
}

impl IfaceNames {
    pub(super) fn new() -> IfaceNames {
        let empty = Slot { netns_id: 0, index: 0, second: u64::MAX, len: 0, text: [0; NAME_MAX] };
        IfaceNames { slots: [empty; SLOTS] }
    }

    /// Returns the escaped name of an interface; empty without an interface or for an unknown one.
    #[inline]
    pub(super) fn name(&mut self, lookups: &Lookups<'_>, netns_id: u64, index: Option<u32>, second: u64) -> &[u8] {
        let Some(index) = index else { return &[] };
        let slot = &mut self.slots[index as usize % SLOTS];
        if (slot.netns_id, slot.index, slot.second) != (netns_id, index, second) {
            *slot = find_name(lookups, netns_id, index, second);
        }
        slot.text.get(..usize::from(slot.len)).unwrap_or_default()
    }
}

#[cold]
fn find_name(lookups: &Lookups<'_>, netns_id: u64, index: u32, second: u64) -> Slot {
    let mut slot = Slot { netns_id, index, second, len: 0, text: [0; NAME_MAX] };
    if let Value::Bytes(name) = lookups.value(LookupId::Ifaces, Key::Pair(netns_id, index)) {
        let mut escaped = Vec::with_capacity(NAME_MAX);
        put_log_text(&mut escaped, name);
        escaped.truncate(NAME_MAX);
        slot.len = escaped.len() as u8;
        slot.text[..escaped.len()].copy_from_slice(&escaped);
    }
    slot
}
