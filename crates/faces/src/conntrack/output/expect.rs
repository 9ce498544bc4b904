//! Expectations as lines and as elements.

use super::clock::put_when;
use super::layout::{Change, Layout};
use super::line_writer::{Element, LineWriter, OutsideXml};
use super::text::put_tuple;
use super::{words, xml};
use crate::pieces::{Outside, list, put};
use record::rows::{CtTuple, Expectation};

/// `NF_CT_EXPECT_…` (include/uapi/linux/netfilter/nf_conntrack_common.h), with their words.
const FLAGS: &[(u32, &str, &str)] =
    &[(1, "PERMANENT", "<permanent/>"), (2, "INACTIVE", "<inactive/>"), (4, "USERSPACE", "<userspace/>")];

/// Appends an expectation without the newline.
pub(super) fn put_text(line: &mut LineWriter<'_>, row: &Expectation<'_>, raw: bool) {
    put!(line, row.timeout_s.map(|timeout| (timeout, " ")), "proto=", row.tuple.proto);
    put_tuple(line, &row.tuple, "src", "dst");
    put_tuple(line, &row.mask, "mask-src", "mask-dst");
    put_tuple(line, &row.master, "master-src", "master-dst");
    put!(line, row.zone.map(|zone| (" zone=", zone)));
    let flags = row.flags.unwrap_or(0);
    let mut between = " ";
    for (_, name, _) in FLAGS.iter().filter(|(bit, ..)| flags & bit != 0) {
        put!(line, std::mem::replace(&mut between, ","), *name);
    }
    put!(line, row.class.map(|class| (" class=", class)), row.helper.map(|helper| (" helper=", Outside(helper, raw))));
}

/// Appends an expectation as an element.
pub(super) fn put_xml(line: &mut LineWriter<'_>, row: &Expectation<'_>, change: Option<Change>, layout: &Layout<'_>) {
    xml::put_flow(line, change);
    xml::put_layer(line, "3", row.family, words::family(row.family));
    for (name, tuple) in tuples(row) {
        put!(line, Element(name, list!(Element("src", tuple.src), Element("dst", tuple.dst))));
    }
    put!(line, "</layer3>");
    xml::put_layer(line, "4", row.tuple.proto, words::protocol(row.tuple.proto));
    for (name, tuple) in tuples(row) {
        put!(line, "<", name, ">");
        xml::put_parts(line, tuple, layout.options.bug_compatible);
        put!(line, "</", name, ">");
    }
    put!(
        line,
        "</layer4><meta>",
        row.helper.map(|helper| Element("helper-name", OutsideXml(helper, layout.options.bug_compatible)))
    );
    for (name, number) in [("timeout", row.timeout_s), ("class", row.class), ("zone", row.zone.map(u32::from))] {
        put!(line, number.map(|number| Element(name, number)));
    }
    if layout.options.time {
        put_when(line, layout.clock);
    }
    let flags = row.flags.unwrap_or(0);
    FLAGS.iter().filter(|(bit, ..)| flags & bit != 0).for_each(|(.., element)| put!(line, *element));
    put!(line, "</meta></flow>");
}

fn tuples<'r>(row: &'r Expectation<'_>) -> [(&'static str, &'r CtTuple); 3] {
    [("expected", &row.tuple), ("mask", &row.mask), ("master", &row.master)]
}
