//! Keys of conntrack events for folding and limiting, and a copy of an event.

use super::super::gate::RateBy;
use super::Keyed;
use record::Owner;
use record::rows::{Conntrack, CtTuple, NatEvent, NatEvents};
use record::text::put_addr;

/// An event that owns its data.
pub(crate) struct KeptNat {
    row: NatEvent<'static>,
    entry: Conntrack<'static>,
    /// Helper, security context, labels and the labels' names.
    texts: [Option<Box<[u8]>>; 4],
    master: Option<CtTuple>,
    owners: Box<[Owner]>,
}

/// Appends the values that events of a kind share regardless of the client's port: namespace, zone, protocol,
/// addresses of both directions, and the port that the client requested (for ICMP, type and code).
fn put_key(row: &NatEvent<'_>, key: &mut Vec<u8>) {
    let entry = row.entry;
    key.push(row.kind as u8);
    key.extend_from_slice(&entry.netns_id.to_le_bytes());
    key.extend_from_slice(&entry.zone.unwrap_or(0).to_le_bytes());
    key.push(entry.orig.proto);
    for tuple in [&entry.orig, &entry.reply] {
        key.extend_from_slice(tuple.src.octets());
        key.extend_from_slice(tuple.dst.octets());
    }
    key.extend_from_slice(&entry.orig.dst_part.to_le_bytes());
}

impl Keyed for NatEvents {
    type Kept = KeptNat;

    fn put_fold_key(row: &NatEvent<'_>, key: &mut Vec<u8>) {
        put_key(row, key);
    }

    fn put_rate_key(row: &NatEvent<'_>, by: RateBy, key: &mut Vec<u8>) {
        match by {
            RateBy::Rule => key.push(row.kind as u8),
            RateBy::Src => key.extend_from_slice(row.entry.orig.src.octets()),
            RateBy::Dst => key.extend_from_slice(row.entry.orig.dst.octets()),
        }
    }

    fn put_rate_words(row: &NatEvent<'_>, by: RateBy, out: &mut Vec<u8>) {
        match by {
            RateBy::Rule => out.extend_from_slice(row.kind.name().as_bytes()),
            RateBy::Src => put_addr(out, row.entry.orig.src),
            RateBy::Dst => put_addr(out, row.entry.orig.dst),
        }
    }

    fn keep(row: &NatEvent<'_>, _: Option<KeptNat>) -> KeptNat {
        let entry = row.entry;
        let texts = [entry.helper, entry.secctx, entry.labels, entry.label_words];
        KeptNat {
            row: NatEvent {
                entry: &Conntrack::EMPTY,
                time_ns: row.time_ns,
                duration_us: row.duration_us,
                kind: row.kind,
                portid: row.portid,
            },
            entry: fixed(entry),
            texts: texts.map(|text| text.map(Box::from)),
            master: entry.master.copied(),
            owners: entry.owners.into(),
        }
    }

    fn with_kept(kept: &KeptNat, time_ns: Option<u64>, then: &mut dyn FnMut(&NatEvent<'_>)) {
        let [helper, secctx, labels, label_words] = kept.texts.each_ref().map(Option::as_deref);
        let master = kept.master.as_ref();
        let entry = Conntrack { helper, secctx, labels, label_words, master, owners: &kept.owners, ..kept.entry };
        then(&NatEvent { entry: &entry, time_ns: time_ns.unwrap_or(kept.row.time_ns), ..kept.row });
    }
}

/// The fields of the entry that do not borrow.
fn fixed(entry: &Conntrack<'_>) -> Conntrack<'static> {
    Conntrack {
        netns_id: entry.netns_id,
        family: entry.family,
        orig: entry.orig,
        reply: entry.reply,
        status: entry.status,
        timeout_s: entry.timeout_s,
        expired: entry.expired,
        state: entry.state,
        vtags: entry.vtags,
        dccp_role: entry.dccp_role,
        counters_orig: entry.counters_orig,
        counters_reply: entry.counters_reply,
        mark: entry.mark,
        zone: entry.zone,
        uses: entry.uses,
        id: entry.id,
        helper: None,
        secctx: None,
        secctx_untold: entry.secctx_untold,
        labels: None,
        start_ns: entry.start_ns,
        stop_ns: entry.stop_ns,
        extended: entry.extended,
        master: None,
        label_words: None,
        now_ns: entry.now_ns,
        owners: &[],
        owners_seen_ns: entry.owners_seen_ns,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::Addr;
    use record::rows::NatEventKind;

    #[test]
    fn events_fold_but_for_the_clients_port_and_come_back_whole() {
        let orig = CtTuple { src: Addr::V4([10, 0, 0, 1]), proto: 17, src_part: 4000, dst_part: 53, ..CtTuple::EMPTY };
        let master = CtTuple::EMPTY;
        let entry = Conntrack { orig, helper: Some(b"ftp"), master: Some(&master), id: Some(3), ..Conntrack::EMPTY };
        let key = |kind, entry: &Conntrack<'_>| {
            let mut key = Vec::new();
            NatEvents::put_fold_key(&NatEvent { kind, time_ns: 1, duration_us: None, portid: 0, entry }, &mut key);
            key
        };
        let (new, of) = (NatEventKind::New, |orig| Conntrack { orig, ..Conntrack::EMPTY });
        assert_eq!(key(new, &entry), key(new, &of(CtTuple { src_part: 9, ..orig })));
        assert_ne!(key(new, &entry), key(NatEventKind::Destroy, &entry));
        assert_ne!(key(new, &entry), key(new, &of(CtTuple { dst_part: 54, ..orig })));
        assert_ne!(key(new, &entry), key(new, &of(CtTuple { src: Addr::V4([10, 0, 0, 2]), ..orig })));
        let row = NatEvent { kind: new, time_ns: 1, duration_us: Some(2), portid: 3, entry: &entry };
        let kept = NatEvents::keep(&row, None);
        NatEvents::with_kept(&kept, None, &mut |again| assert_eq!(*again, row));
        NatEvents::with_kept(&kept, Some(9), &mut |again| assert_eq!(again.time_ns, 9));
    }
}
