//! Words of other tools, and the fields that they stand for in a table.
//!
//! A field's own name always wins. The other words are the same for all tables: `port` is the port of either end, in
//! filters, columns, groups and orders.

use record::Schema;

/// Address and port of one end of a connection or packet.
#[derive(Clone, Copy)]
struct EndpointFields {
    addr: &'static str,
    port: &'static str,
}

const fn end(addr: &'static str, port: &'static str) -> EndpointFields {
    EndpointFields { addr, port }
}

/// The tables' names for the ends: the sender, the receiver, other ends. A table uses the first row with fields that
/// it has.
const ENDS: [[&[EndpointFields]; 3]; 3] = [
    [&[end("local_addr", "local_port")], &[end("peer_addr", "peer_port")], &[]],
    [&[end("src", "sport")], &[end("dst", "dport")], &[]],
    [
        &[end("orig_src", "orig_sport")],
        &[end("orig_dst", "orig_dport")],
        &[end("reply_src", "reply_sport"), end("reply_dst", "reply_dport")],
    ],
];

/// The ends that a word means.
#[derive(Clone, Copy, PartialEq, Eq)]
enum EndpointChoice {
    Source,
    Destination,
    All,
}

/// The parts of the ends that a word means.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum EndPart {
    /// The address.
    Addr,
    /// The port.
    Port,
    /// Address and port.
    Whole,
}

/// The words for ends, with their meaning.
const OF_ENDS: &[(&[&str], EndpointChoice, EndPart)] = &[
    (&["local", "source", "src", "from"], EndpointChoice::Source, EndPart::Whole),
    (&["peer", "remote", "foreign", "destination", "dst", "dest", "to"], EndpointChoice::Destination, EndPart::Whole),
    (&["addr", "address", "ip", "host"], EndpointChoice::All, EndPart::Addr),
    (&["port"], EndpointChoice::All, EndPart::Port),
    (&["sport", "src_port", "source_port", "lport", "localport"], EndpointChoice::Source, EndPart::Port),
    (
        &["dport", "dst_port", "dest_port", "destination_port", "rport", "remote_port", "peerport"],
        EndpointChoice::Destination,
        EndPart::Port,
    ),
    (&["saddr", "src_addr", "source_addr", "laddr", "src_ip", "local_ip"], EndpointChoice::Source, EndPart::Addr),
    (
        &["daddr", "dst_addr", "dest_addr", "raddr", "dst_ip", "peer_ip", "remote_addr"],
        EndpointChoice::Destination,
        EndPart::Addr,
    ),
];

/// Words for one field.
const OF_FIELDS: &[(&str, &str)] = &[
    ("program", "process"),
    ("comm", "process"),
    ("command", "process"),
    ("interface", "iface"),
    ("dev", "iface"),
    ("device", "iface"),
    ("namespace", "netns"),
    ("protocol", "proto"),
    ("recvq", "recv_q"),
    ("sendq", "send_q"),
    ("username", "user"),
];

/// Units at the end of field names that a word may leave out, in the order in which they are tried.
const SUFFIXES: [&str; 5] = ["us", "ms", "s", "bps", "bytes"];

/// Returns the fields that `word` stands for in `table`, as indexes: the field with this name; otherwise the fields of
/// the ends that it means, the field whose unit it leaves out, or the field that other tools call by this name. Empty
/// for a word without a meaning.
pub fn fields(table: Schema, word: &str) -> Vec<usize> {
    if let Some(index) = table.index_of(word) {
        return vec![index];
    }
    let ends = find_endpoints(table, word);
    if !ends.is_empty() {
        return ends.into_iter().flat_map(|(addr, port)| addr.into_iter().chain(port)).collect();
    }
    with_unit(table, word).chain(renamed(table, word)).take(1).collect()
}

/// Returns the fields that `word` means as a group key: like [`fields`], but only the address of an endpoint. A
/// client's port differs from connection to connection, so grouping by both would give each connection its own row.
pub fn keys(table: Schema, word: &str) -> Vec<usize> {
    let of_ends = OF_ENDS.iter().find(|(words, ..)| words.contains(&word));
    if table.index_of(word).is_some() || of_ends.is_none_or(|(.., part)| *part != EndPart::Whole) {
        return fields(table, word);
    }
    find_endpoints(table, word).into_iter().filter_map(|(addr, port)| addr.or(port)).collect()
}

/// Fields with the address and port of a client, whose port the kernel chose: groups use only the address. The port of
/// other endpoints (`published`, `backend`) identifies a service.
pub(crate) const CLIENTS: &[&str] = &["client", "master_client", "mapped", "external"];

/// Returns the ends that `word` means in `table`, each with its fields for the meant parts; empty for any other word.
pub(crate) fn find_endpoints(table: Schema, word: &str) -> Vec<(Option<usize>, Option<usize>)> {
    let Some((_, which, part)) = OF_ENDS.iter().find(|(words, ..)| words.contains(&word)) else { return Vec::new() };
    let found = |end: &EndpointFields| {
        let (addr, port) = (table.index_of(end.addr), table.index_of(end.port));
        (addr.filter(|_| *part != EndPart::Port), port.filter(|_| *part != EndPart::Addr))
    };
    let is_there = |ends: &&[&[EndpointFields]; 3]| ends[0].iter().any(|end| table.index_of(end.addr).is_some());
    let Some([source, destination, others]) = ENDS.iter().find(is_there) else { return Vec::new() };
    let wanted: &[&[EndpointFields]] = match which {
        EndpointChoice::Source => &[source],
        EndpointChoice::Destination => &[destination],
        EndpointChoice::All => &[source, destination, others],
    };
    let all = wanted.iter().flat_map(|ends| ends.iter().map(found));
    all.filter(|(addr, port)| addr.is_some() || port.is_some()).collect()
}

/// Returns the field of `table` that other tools call `word`.
pub(crate) fn renamed(table: Schema, word: &str) -> Option<usize> {
    let (_, name) = OF_FIELDS.iter().find(|(other, _)| *other == word)?;
    table.index_of(name)
}

/// Returns the fields called `word` plus a unit, in the order of the units. Needs one pass over the fields, because
/// every start with a filter does this.
pub(crate) fn with_unit(table: Schema, word: &str) -> impl Iterator<Item = usize> {
    let mut found = [None; SUFFIXES.len()];
    for (index, name) in table.names().enumerate() {
        let Some(unit) = name.strip_prefix(word).and_then(|rest| rest.strip_prefix('_')) else { continue };
        let place = found.iter_mut().zip(SUFFIXES).find(|(_, suffix)| *suffix == unit);
        if let Some((place, _)) = place {
            place.get_or_insert(index);
        }
    }
    found.into_iter().flatten()
}

/// Returns the words above that have a meaning in `table` and are not a field's name, for help and completion.
pub fn others(table: Schema) -> impl Iterator<Item = &'static str> {
    let all = OF_ENDS.iter().flat_map(|(words, ..)| words.iter().copied());
    let all = all.chain(OF_FIELDS.iter().map(|(word, _)| *word));
    all.filter(move |word| table.index_of(word).is_none() && !fields(table, word).is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::rows::{CapturedPackets, Flows, Nat, Routes, Sockets};

    fn names<T: record::Table>(word: &str) -> String {
        let name = |index: usize| Schema::from_table::<T>().field(index).map_or("", |field| field.name);
        fields(Schema::from_table::<T>(), word).into_iter().map(name).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn issue_15_words_of_other_tools_mean_fields() {
        for (word, sockets, nat) in [
            ("port", "local_port peer_port", "orig_sport orig_dport reply_sport reply_dport"),
            ("addr", "local_addr peer_addr", "orig_src orig_dst reply_src reply_dst"),
            ("peer", "peer_addr peer_port", "orig_dst orig_dport"),
            ("source", "local_addr local_port", "orig_src orig_sport"),
            ("dport", "peer_port", "orig_dport"),
            ("rtt", "rtt_us", ""),
            ("timeout", "", "timeout_s"),
            ("program", "process", "process"),
            ("client", "", "client"),
            ("state", "state", "state"),
            ("qqq", "", ""),
        ] {
            assert_eq!((names::<Sockets>(word).as_str(), names::<Nat>(word).as_str()), (sockets, nat), "{word}");
        }
        assert_eq!(names::<CapturedPackets>("port"), "sport dport");
        assert_eq!(names::<CapturedPackets>("src"), "src", "a field's own name");
        assert_eq!(names::<Routes>("source"), "source");
        assert_eq!(names::<Routes>("port"), "");
        assert_eq!(names::<Flows>("dst"), "peer_addr peer_port");
    }

    #[test]
    fn every_word_is_some_table_s() {
        let known: Vec<&str> =
            others(Schema::from_table::<Sockets>()).chain(others(Schema::from_table::<CapturedPackets>())).collect();
        let all = OF_ENDS.iter().flat_map(|(words, ..)| words.iter()).chain(OF_FIELDS.iter().map(|(word, _)| word));
        for word in all {
            assert!(known.contains(word), "{word}");
        }
    }
}
