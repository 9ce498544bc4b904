//! Explains why fields of entries are null: the kernel counts bytes and keeps times only if a setting enables it, and
//! both are off by default.

use conntrack::stats::read_number;
use lookups::session::Session;
use record::Accounting;
use record::rows::nat_need;

/// A setting, the fields that are null without it, and its effect on new entries.
const SETTINGS: [(u64, &str, &str); 2] = [
    (nat_need::COUNTERS, "nf_conntrack_acct", "bytes and packets of entries are not counted"),
    (nat_need::TIMES, "nf_conntrack_timestamp", "start times of entries are not recorded"),
];

/// Adds a reason for each disabled setting that fields with these `need` bits depend on; with several namespaces only
/// those with entries count. Reads three files per namespace; without such bits it reads nothing.
pub(super) fn add_reasons(session: &Session, need: u64, stats: &mut Accounting) {
    let wanted = SETTINGS.iter().filter(|(bit, ..)| need & bit != 0).collect::<Vec<_>>();
    if wanted.is_empty() {
        return;
    }
    session.in_each_namespace(&mut |netns_id| {
        // An unreadable or unrecorded setting is not reported as disabled.
        let is = |name: &str, number| read_number(session.host(), name, netns_id).ok() == Some(number);
        if session.namespaces().is_some() && is("nf_conntrack_count", 0) {
            return;
        }
        for (_, setting, what) in wanted.iter().filter(|(_, setting, _)| is(setting, 0)) {
            stats.add_reason(
                0,
                format!("{what}: net.netfilter.{setting} is 0; set it to 1 to change this for new entries"),
            );
        }
    });
}
