//! An expectation as a line and as an element.

use super::clock::put_when;
use super::pen::Pen;
use super::text::put_tuple;
use super::writer::{Change, Look};
use super::{words, xml};
use record::rows::{CtTuple, Expectation};

/// `NF_CT_EXPECT_…` (include/uapi/linux/netfilter/nf_conntrack_common.h) and how they are shown.
const FLAGS: &[(u32, &str, &str)] =
    &[(1, "PERMANENT", "<permanent/>"), (2, "INACTIVE", "<inactive/>"), (4, "USERSPACE", "<userspace/>")];

/// An expectation without the end of its line.
pub(super) fn put_text(pen: &mut Pen<'_>, row: &Expectation<'_>) {
    if let Some(timeout) = row.timeout_s {
        pen.number(timeout.into());
        pen.byte(b' ');
    }
    pen.item("proto=", row.tuple.proto.into());
    put_tuple(pen, &row.tuple, "src", "dst");
    put_tuple(pen, &row.mask, "mask-src", "mask-dst");
    put_tuple(pen, &row.master, "master-src", "master-dst");
    if let Some(zone) = row.zone {
        pen.item(" zone=", zone.into());
    }
    let flags = row.flags.unwrap_or(0);
    let mut between = b' ';
    for (_, name, _) in FLAGS.iter().filter(|(bit, ..)| flags & bit != 0) {
        pen.byte(between);
        pen.word(name);
        between = b',';
    }
    if let Some(class) = row.class {
        pen.item(" class=", class.into());
    }
    if let Some(helper) = row.helper {
        pen.word(" helper=");
        pen.outside(helper);
    }
}

/// An expectation as an element.
pub(super) fn put_xml(pen: &mut Pen<'_>, row: &Expectation<'_>, change: Option<Change>, look: &Look<'_>) {
    xml::put_flow(pen, change);
    xml::put_layer(pen, "3", row.family, words::family(row.family));
    for (name, tuple) in tuples(row) {
        pen.open(name);
        xml::put_addr(pen, "src", tuple.src);
        xml::put_addr(pen, "dst", tuple.dst);
        pen.close(name);
    }
    pen.close("layer3");
    xml::put_layer(pen, "4", row.tuple.proto, words::protocol(row.tuple.proto));
    for (name, tuple) in tuples(row) {
        pen.open(name);
        xml::put_parts(pen, tuple, look.options.bug_compatible);
        pen.close(name);
    }
    pen.close("layer4");
    pen.open("meta");
    if let Some(helper) = row.helper {
        pen.open("helper-name");
        pen.outside_xml(helper);
        pen.close("helper-name");
    }
    for (name, number) in [("timeout", row.timeout_s), ("class", row.class), ("zone", row.zone.map(u32::from))] {
        if let Some(number) = number {
            pen.element(name, number.into());
        }
    }
    if look.options.time {
        put_when(pen, look.clock);
    }
    let flags = row.flags.unwrap_or(0);
    FLAGS.iter().filter(|(bit, ..)| flags & bit != 0).for_each(|(.., element)| pen.word(element));
    pen.close("meta");
    pen.close("flow");
}

fn tuples<'r>(row: &'r Expectation<'_>) -> [(&'static str, &'r CtTuple); 3] {
    [("expected", &row.tuple), ("mask", &row.mask), ("master", &row.master)]
}
