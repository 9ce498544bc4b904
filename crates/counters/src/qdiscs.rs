//! Counters of queueing disciplines, from one dump of rtnetlink.

use netlink::{Attr, Attrs, Query, Request, prefix};
use record::rows::CounterSource::Qdisc;

use crate::reading::{CounterReading, Object, Width};

// include/uapi/linux/rtnetlink.h
pub(crate) const RTM_NEWQDISC: u16 = 36;
const RTM_GETQDISC: u16 = 38;

// include/uapi/linux/rtnetlink.h, enum of TCA_…
const TCA_KIND: u16 = 1;
const TCA_STATS2: u16 = 7;
// include/uapi/linux/gen_stats.h
const TCA_STATS_BASIC: u16 = 1;
const TCA_STATS_QUEUE: u16 = 3;
const TCA_STATS_PKT64: u16 = 8;
/// `struct tcmsg`: family u8, three bytes, ifindex s32, handle u32, parent u32, info u32.
const TCMSG: usize = 20;
/// TC_H_ROOT
const ROOT: u32 = u32::MAX;
/// TC_H_INGRESS and TC_H_CLSACT
const INGRESS: u32 = 0xFFFF_FFF1;

/// The request for all queueing disciplines.
pub(crate) fn request() -> Request {
    let mut request = Request::dump(RTM_GETQDISC);
    request.append(&[0; TCMSG]);
    request
}

/// The query with its name in a recording.
pub(crate) fn query<'r>(request: &'r Request, key: &'r str) -> Query<'r> {
    Query { what: "queueing disciplines", protocol: 0, request, key, note: "", netns: None }
}

/// Adds the counters of the queueing discipline in one message. `None` if it is cut short. `ifaces` are the interfaces
/// of the reading, by number; an interface that appeared just now is missing among them and named `if7`.
pub(crate) fn add(into: &mut CounterReading, payload: &[u8], ifaces: &[(u32, Box<[u8]>)]) -> Option<()> {
    let [index, handle, parent] = [4, 8, 12].map(|at| prefix::u32_at(payload, at));
    let (index, handle, parent) = (index?, handle?, parent?);
    let attrs = || Attrs::new(payload.get(TCMSG..).unwrap_or_default()).map_while(Result::ok);
    let kind = attrs().find(|attr| attr.kind == TCA_KIND)?;
    let known = ifaces.binary_search_by_key(&index, |(index, _)| *index).ok().and_then(|at| ifaces.get(at));
    let unnamed = format!("if{index}").into_bytes();
    let iface = known.map_or(&*unnamed, |(_, name)| name);
    let words = words(kind.c_str(), handle, parent);
    let object = into.add_object(Object::qdisc(index, iface, &words));
    if let Some(stats) = attrs().find(|attr| attr.kind == TCA_STATS2) {
        add_stats(into, object, &stats);
    }
    Some(())
}

/// `fq_codel 8001: root`, `pfifo_fast 0: parent 1:2`: kind, handle and parent as tc writes them.
fn words(kind: &[u8], handle: u32, parent: u32) -> Vec<u8> {
    let place = match parent {
        ROOT => "root".to_owned(),
        INGRESS => "ingress".to_owned(),
        _ => format!("parent {:x}:{:x}", parent >> 16, parent & 0xFFFF),
    };
    [kind, format!(" {:x}: {place}", handle >> 16).as_bytes()].concat()
}

fn add_stats(into: &mut CounterReading, object: u32, stats: &Attr<'_>) {
    let of = |kind| stats.nested().map_while(Result::ok).find(move |attr| attr.kind == kind);
    let mut add = |name, value: Option<u64>, width| {
        let Some(value) = value else { return };
        into.add(Qdisc, name, Some(object), value.into(), width);
    };
    let at = |attr: &Option<Attr<'_>>, at| attr.and_then(|attr| prefix::u32_at(attr.payload, at)).map(u64::from);
    let basic = of(TCA_STATS_BASIC);
    add("bytes", basic.and_then(|attr| prefix::u64_at(attr.payload, 0)), Width::Bits64);
    // The old field has 32 bits; newer kernels also send all 64.
    match of(TCA_STATS_PKT64).and_then(|attr| prefix::u64_at(attr.payload, 0)) {
        Some(packets) => add("packets", Some(packets), Width::Bits64),
        None => add("packets", at(&basic, 8), Width::Bits32),
    }
    let queue = of(TCA_STATS_QUEUE);
    for (n, name) in ["qlen", "backlog", "drops", "requeues", "overlimits"].iter().enumerate() {
        add(name, at(&queue, n * 4), Width::Bits32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_and_parents_are_those_of_tc() {
        let text = |handle, parent| String::from_utf8(words(b"tbf", handle, parent)).unwrap_or_default();
        assert_eq!(text(0x8001_0000, ROOT), "tbf 8001: root");
        assert_eq!(text(0, 0x0001_000a), "tbf 0: parent 1:a");
        assert_eq!(text(0xFFFF_0000, INGRESS), "tbf ffff: ingress");
    }

    #[test]
    fn messages_that_end_early_and_interfaces_without_a_name() {
        let mut reading = CounterReading::default();
        assert_eq!(add(&mut reading, &[0; 15], &[]), None);
        assert_eq!(add(&mut reading, &[0; 20], &[]), None, "no kind");
        let mut message = vec![0; TCMSG];
        message[4] = 7;
        message.extend_from_slice(b"\x08\0\x01\0tbf\0");
        message.extend_from_slice(b"\x14\0\x07\0\x10\0\x03\0\x01\0\0\0\x02\0\0\0\x03\0\0\0");
        assert_eq!(add(&mut reading, &message, &[]), Some(()));
        let names: Vec<(&str, i128)> = reading.values().iter().map(|one| (one.name.text(), one.value)).collect();
        assert_eq!(names, [("qlen", 1), ("backlog", 2), ("drops", 3)]);
        assert_eq!(&*reading.objects()[0].label, b"if7 tbf 0: parent 0:0");
    }
}
