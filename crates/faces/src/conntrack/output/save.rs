//! Entries as the commands that create them (`-o save`), which `-R` reads.

use super::layout::{Change, Layout};
use super::line_writer::LineWriter;
use super::words::{self, DCCP_ROLES};
use crate::pieces::{put, when};
use record::Addr;
use record::rows::{Conntrack, CtState, CtStatus, CtTuple, ip_proto};

/// The status bits that the tool can set, in the kernel's order.
#[rustfmt::skip]
const STATUS: &[(u32, &str)] = &[
    (1, "EXPECTED"), (CtStatus::SEEN_REPLY, "SEEN_REPLY"), (CtStatus::ASSURED, "ASSURED"), (1 << 10, "FIXED_TIMEOUT"),
];

/// IPS_SRC_NAT_DONE and IPS_DST_NAT_DONE: the tool tests these bits and compares the tuples.
const SRC_NAT_DONE: u32 = 1 << 7;
const DST_NAT_DONE: u32 = 1 << 8;

/// Appends a command without the newline.
pub(super) fn put_entry(line: &mut LineWriter<'_>, row: &Conntrack<'_>, change: Option<Change>, layout: &Layout<'_>) {
    let mut command = Words { line, first: true };
    match change {
        Some(Change::New) | None => command.word("-A"),
        Some(Change::Update) => command.word("-U"),
        Some(Change::Destroy) => command.word("-D"),
        Some(Change::Unknown) => {}
    }
    command.number("-t", row.timeout_s);
    if let Some(status) = row.status {
        command.word("-u");
        command.status(status);
    }
    // The tool omits the mark.
    command.number("-m", row.mark.filter(|mark| *mark != 0 && !layout.options.bug_compatible));
    command.number("-w", row.zone.map(u32::from));
    command.number("--orig-zone", row.orig.zone.map(u32::from));
    command.number("--reply-zone", row.reply.zone.map(u32::from));
    command.addr("-s", row.orig.src);
    command.addr("-d", row.orig.dst);
    let rewritten = |done: u32, now: Addr, before: Addr| now != before && row.status.is_none_or(|s| s.contains(done));
    command.addr(if rewritten(DST_NAT_DONE, row.reply.src, row.orig.dst) { "-g" } else { "-r" }, row.reply.src);
    command.addr(if rewritten(SRC_NAT_DONE, row.reply.dst, row.orig.src) { "-n" } else { "-q" }, row.reply.dst);
    command.protocol(row, layout.options.bug_compatible);
}

/// Words separated by blanks.
struct Words<'p, 'a> {
    line: &'p mut LineWriter<'a>,
    first: bool,
}

impl Words<'_, '_> {
    fn word(&mut self, word: &str) {
        put!(self.line, when(!std::mem::take(&mut self.first), " "), word);
    }

    fn number(&mut self, switch: &str, number: Option<u32>) {
        if let Some(number) = number {
            self.word(switch);
            put!(self.line, " ", number);
        }
    }

    fn addr(&mut self, switch: &str, addr: Addr) {
        self.word(switch);
        put!(self.line, " ", addr);
    }

    fn status(&mut self, status: CtStatus) {
        let mut between = " ";
        for (_, name) in STATUS.iter().filter(|(bit, _)| status.contains(*bit)) {
            put!(self.line, std::mem::replace(&mut between, ","), *name);
        }
        put!(self.line, when(between == " ", " UNSET"));
    }

    fn protocol(&mut self, row: &Conntrack<'_>, old: bool) {
        let known = words::protocol(row.orig.proto);
        self.word("-p");
        if known == "unknown" {
            return put!(self.line, " ", row.orig.proto);
        }
        put!(self.line, " ", known);
        match row.orig.proto {
            ip_proto::ICMP => self.icmp(&row.orig, ["--icmp-type", "--icmp-code", "--icmp-id"]),
            ip_proto::ICMPV6 => self.icmp(&row.orig, ["--icmpv6-type", "--icmpv6-code", "--icmpv6-id"]),
            ip_proto::GRE => self.parts(row, ["--srckey", "--dstkey", "--reply-key-src", "--reply-key-dst"]),
            // A kernel without DCCP tracking reports no ports; no packet has port 0.
            ip_proto::DCCP if (row.orig.src_part, row.orig.dst_part) == (0, 0) => {}
            _ => self.parts(row, ["--sport", "--dport", "--reply-port-src", "--reply-port-dst"]),
        }
        if let Some(state) = row.state {
            self.word("--state");
            // The tool has no word here for the newest states of SCTP.
            let nameless = old && matches!(state, CtState::Sctp(8..));
            put!(self.line, " ", if nameless { "(null)" } else { words::state(state) });
        }
        if let Some([orig, reply]) = row.vtags {
            // The tool writes and reads this in the machine's byte order, so this form can be loaded.
            let as_loaded = |tag: u32| Some(u32::from_ne_bytes(tag.to_be_bytes()));
            self.number("--orig-vtag", as_loaded(orig));
            self.number("--reply-vtag", as_loaded(reply));
        }
        if let Some(role) = row.dccp_role.and_then(|role| DCCP_ROLES.get(usize::from(role))) {
            self.word("--role");
            put!(self.line, " ", *role);
        }
    }

    fn parts(&mut self, row: &Conntrack<'_>, names: [&str; 4]) {
        let parts = [row.orig.src_part, row.orig.dst_part, row.reply.src_part, row.reply.dst_part];
        names.iter().zip(parts).for_each(|(name, part)| self.number(name, Some(part.into())));
    }

    fn icmp(&mut self, tuple: &CtTuple, names: [&str; 3]) {
        let Some(part) = tuple.icmp() else { return };
        let parts = [part.kind.into(), part.code.into(), u32::from(part.id)];
        names.iter().zip(parts).for_each(|(name, part)| self.number(name, Some(part)));
    }
}
