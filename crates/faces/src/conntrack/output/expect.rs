//! Expectations as lines and as elements.

use super::clock::put_when;
use super::layout::{Change, Layout};
use super::line_writer::LineWriter;
use super::text::put_tuple;
use super::{words, xml};
use record::rows::{CtTuple, Expectation};

/// `NF_CT_EXPECT_…` (include/uapi/linux/netfilter/nf_conntrack_common.h), with their words.
const FLAGS: &[(u32, &str, &str)] =
    &[(1, "PERMANENT", "<permanent/>"), (2, "INACTIVE", "<inactive/>"), (4, "USERSPACE", "<userspace/>")];

/// Appends an expectation without the newline.
pub(super) fn put_text(line: &mut LineWriter<'_>, row: &Expectation<'_>) {
    if let Some(timeout) = row.timeout_s {
        line.number(timeout.into());
        line.byte(b' ');
    }
    line.item("proto=", row.tuple.proto.into());
    put_tuple(line, &row.tuple, "src", "dst");
    put_tuple(line, &row.mask, "mask-src", "mask-dst");
    put_tuple(line, &row.master, "master-src", "master-dst");
    if let Some(zone) = row.zone {
        line.item(" zone=", zone.into());
    }
    let flags = row.flags.unwrap_or(0);
    let mut between = b' ';
    for (_, name, _) in FLAGS.iter().filter(|(bit, ..)| flags & bit != 0) {
        line.byte(between);
        line.word(name);
        between = b',';
    }
    if let Some(class) = row.class {
        line.item(" class=", class.into());
    }
    if let Some(helper) = row.helper {
        line.word(" helper=");
        line.outside(helper);
    }
}

/// Appends an expectation as an element.
pub(super) fn put_xml(line: &mut LineWriter<'_>, row: &Expectation<'_>, change: Option<Change>, layout: &Layout<'_>) {
    xml::put_flow(line, change);
    xml::put_layer(line, "3", row.family, words::family(row.family));
    for (name, tuple) in tuples(row) {
        line.open(name);
        xml::put_addr(line, "src", tuple.src);
        xml::put_addr(line, "dst", tuple.dst);
        line.close(name);
    }
    line.close("layer3");
    xml::put_layer(line, "4", row.tuple.proto, words::protocol(row.tuple.proto));
    for (name, tuple) in tuples(row) {
        line.open(name);
        xml::put_parts(line, tuple, layout.options.bug_compatible);
        line.close(name);
    }
    line.close("layer4");
    line.open("meta");
    if let Some(helper) = row.helper {
        line.open("helper-name");
        line.outside_xml(helper);
        line.close("helper-name");
    }
    for (name, number) in [("timeout", row.timeout_s), ("class", row.class), ("zone", row.zone.map(u32::from))] {
        if let Some(number) = number {
            line.element(name, number.into());
        }
    }
    if layout.options.time {
        put_when(line, layout.clock);
    }
    let flags = row.flags.unwrap_or(0);
    FLAGS.iter().filter(|(bit, ..)| flags & bit != 0).for_each(|(.., element)| line.word(element));
    line.close("meta");
    line.close("flow");
}

fn tuples<'r>(row: &'r Expectation<'_>) -> [(&'static str, &'r CtTuple); 3] {
    [("expected", &row.tuple), ("mask", &row.mask), ("master", &row.master)]
}
