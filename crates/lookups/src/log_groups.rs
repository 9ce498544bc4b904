//! Log groups of a host: the rules that log to them, the processes that have bound them, and the namespaces to read
//! them in.

use crate::session::Session;
use host::group_rules::{self, BOUND_GROUPS, GroupRule, RULES};
use host::{Namespaces, NetnsOwners, NetnsSearch};
use nflog::{FindOtherNetns, GroupReader};
use record::SourceError;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::PoisonError;
use sys::{Host, Modules, Presence, escape_bytes};

/// The groups that rules of the calling thread's namespace log to, each with the place of a rule, if they may be
/// listed. Takes some microseconds per rule.
pub fn list_groups() -> BTreeMap<u16, String> {
    let host = Host::live();
    if !Path::new(BOUND_GROUPS).exists() || Modules::new(&host).presence(RULES) != Presence::There {
        return BTreeMap::new();
    }
    group_rules::read(&host, 0, None).map(|(rules, _)| places_of(&rules)).unwrap_or_default()
}

fn places_of(rules: &[GroupRule]) -> BTreeMap<u16, String> {
    let mut places = BTreeMap::new();
    for GroupRule { group, family, table, chain, .. } in rules {
        let place = || format!("{family} {} {}", escape_bytes(table.as_bytes()), escape_bytes(chain.as_bytes()));
        places.entry(*group).or_insert_with(place);
    }
    places
}

/// Adds the process that has bound the group to the error, if that is the cause and it is visible.
pub fn name_holder(session: &Session, error: SourceError) -> SourceError {
    let Some(taken) = error.cause.downcast_ref::<GroupReader>() else { return error };
    SourceError { cause: describe_holder(session, taken).into(), ..error }
}

/// Makes a message on the process that has bound a group, and what to do about it.
pub fn describe_holder(session: &Session, taken: &GroupReader) -> String {
    let owners = taken.inode.and_then(|inode| Some((inode, session.owners().read(session.host()).ok()?)));
    let holder = owners.as_ref().and_then(|(inode, owners)| owners.of(*inode).first());
    let who = match holder {
        Some(holder) => format!(": {}[{}]; ", escape_bytes(holder.process.as_bytes()), holder.pid),
        None => ": log to another group as well, or ".to_owned(),
    };
    let end = if holder.is_some() { "log to another group as well, or end it" } else { "end that program" };
    format!("{taken}{who}{end}")
}

/// Returns a function that finds the namespaces other than the session's own; `None` if only that one is read. The
/// function does not use the session's host, because it runs on its own thread and its results go into the recording
/// with the records. The session adopts the namespaces it finds.
pub fn find_other_netns(session: &Session) -> Option<FindOtherNetns> {
    let (own, for_session) = (session.netns_id(), session.found().from_threads());
    let mut known = Some(Namespaces::clone(&*session.namespaces()?));
    let mut owners = NetnsOwners::default();
    Some(Box::new(move || {
        let search = NetnsSearch { before: known.as_ref(), ..NetnsSearch::default() };
        let found = Namespaces::search(&Host::live(), &search).ok()?;
        if known.as_ref() != Some(&found) {
            known = Some(found.clone());
            for_session.lock().unwrap_or_else(PoisonError::into_inner).replace(found.clone());
        }
        let mut found = owners.found(&found, own);
        found.retain(|namespace| namespace.netns_id != own);
        Some(found)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_group_has_the_place_of_its_first_rule() {
        let rule = |group: u16, table: &str| GroupRule {
            family: "inet",
            table: table.to_owned(),
            chain: "o".to_owned(),
            handle: 1,
            group,
            prefix: String::new(),
            logged: None,
            is_reached: true,
        };
        let places = places_of(&[rule(5, "t"), rule(5, "other"), rule(1, "a\u{1b}")]);
        let expected = [(1, r"inet a\u{1b} o".to_owned()), (5, "inet t o".to_owned())];
        assert_eq!(places, expected.into());
    }
}
