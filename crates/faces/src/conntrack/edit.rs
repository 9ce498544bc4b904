//! Commands that change the table, and commands for a single entry.

use super::entries;
use super::filter::Filter;
use super::options::{Command, switch};
use super::parse::Line;
use super::run::{Run, Times, form, refused, words};
use super::stop::{Stop, head};
use super::table::wrote;
use super::want::{Side, Want, inverse};
use super::words::output;
use crate::conntrack::output::{Change, EntryOptions};
use crate::text::warn;
use conntrack::CtTable;
use conntrack::change::{EntryAttrs, ExpectationAttrs, Rewrite, Target};
use engine::Disposition;
use netlink::DumpError;
use record::SinkError;
use record::rows::{Conntrack, CtState, CtTuple, ip_proto, nat_need as need};
use sys::Errno;

/// IP_CT_TCP_FLAG_SACK_PERM and IP_CT_TCP_FLAG_BE_LIBERAL (nf_conntrack_tcp.h): a created entry has no TCP window.
const LIBERAL: u8 = 0x02 | 0x08;
/// IP_CT_TCP_FLAG_CLOSE_INIT: a new connection may start immediately from TIME_WAIT (RFC 1122).
const CLOSE_INIT: u8 = 0x04;
/// State number from `enum tcp_conntrack`.
const TIME_WAIT: u8 = 7;

/// `-I` and `-A`: create an entry.
pub(super) fn create(run: &mut Run<'_>, line: &Line) -> Result<u64, Stop> {
    let attrs = new_entry(line);
    match run.changes.create(&attrs) {
        Ok(()) => Ok(1),
        Err(error) if error.errno() == Some(Errno::EXIST) && line.command == Some(Command::Add) => Ok(0),
        Err(error) => Err(refused(&error, line.command)),
    }
}

fn new_entry(line: &Line) -> EntryAttrs<'_> {
    let want = &line.want;
    let proto = want.proto.unwrap_or(0);
    let (mut orig, mut reply) = (want.orig_tuple(), want.tuple(&want.reply, proto));
    let (has_orig, has_reply) = (line.has_any(switch::ORIG), line.has_any(switch::REPLY));
    match (has_orig, has_reply) {
        (true, false) => reply = inverse(&orig),
        (false, true) => {
            let parts = if matches!(proto, ip_proto::ICMP | ip_proto::ICMPV6) {
                let asked = inverse(&orig);
                (asked.src_part, asked.dst_part)
            } else {
                (reply.src_part, reply.dst_part)
            };
            (reply.src_part, reply.dst_part) = parts;
            orig = inverse(&reply);
        }
        _ if line.bug_compatible => reply = as_typed(want, reply, &inverse(&orig)),
        _ => reply = completed(line, &inverse(&orig)),
    }
    orig.zone = want.orig_zone;
    reply.zone = want.reply_zone;
    let (snat, dnat) = rewrites(line, &orig);
    EntryAttrs {
        orig: Some(orig),
        reply: Some(reply),
        status: want.status.map(|status| status.set),
        mark: want.mark.map(|(mark, _)| mark),
        zone: want.zone,
        snat,
        dnat,
        labels: want.labels_changed.as_deref().map(|labels| (labels, None)),
        ..meta(want)
    }
}

/// The attributes shared by new and changed entries.
fn meta(want: &Want) -> EntryAttrs<'static> {
    let is_tcp = want.proto == Some(ip_proto::TCP);
    let closed = matches!(want.state, Some(CtState::Tcp(state)) if state >= TIME_WAIT);
    EntryAttrs {
        timeout_s: want.timeout_s,
        state: want.state,
        tcp_flags: is_tcp.then_some(if closed { LIBERAL | CLOSE_INIT } else { LIBERAL }),
        // The tool also uses native byte order.
        vtags: want.vtags.map(|tag| tag.map(u32::to_ne_bytes)),
        dccp_role: want.dccp_role,
        ..EntryAttrs::default()
    }
}

/// The tool's reply tuple if both tuples were started on the command line: unspecified values are zero, including the
/// protocol. Only ICMP values apply to both tuples.
fn as_typed(want: &Want, reply: CtTuple, plain: &CtTuple) -> CtTuple {
    let has_parts = want.reply.src_part.is_some() || want.reply.dst_part.is_some();
    if matches!(reply.proto, ip_proto::ICMP | ip_proto::ICMPV6) {
        return CtTuple { src_part: plain.src_part, dst_part: plain.dst_part, ..reply };
    }
    let known = reply.has_ports() || reply.proto == ip_proto::GRE;
    CtTuple { proto: if has_parts || !known { reply.proto } else { 0 }, ..reply }
}

/// The reply tuple: values from the command line, and for the rest the inverse of the original tuple. If an address is
/// rewritten by NAT, the kernel requires the plain inverse and rewrites it itself.
fn completed(line: &Line, plain: &CtTuple) -> CtTuple {
    let Side { src, dst, src_part, dst_part } = line.want.reply;
    let mut reply = *plain;
    if !line.has(switch::DST_NAT) {
        reply.src = src.unwrap_or(plain.src);
        reply.src_part = src_part.unwrap_or(plain.src_part);
    }
    if !line.has(switch::SRC_NAT) {
        reply.dst = dst.unwrap_or(plain.dst);
        reply.dst_part = dst_part.unwrap_or(plain.dst_part);
    }
    reply
}

/// The rewrites requested by `-n` and `-g`. A missing port is taken from the reply tuple, because `-o save` writes it
/// there.
fn rewrites(line: &Line, orig: &CtTuple) -> (Rewrite, Rewrite) {
    let Want { snat, dnat, reply, .. } = line.want;
    let port = |port: Option<u16>, reply: Option<u16>, orig: u16| {
        port.or(reply.filter(|reply| *reply != orig && !line.bug_compatible))
    };
    let sport = snat.addr.and_then(|_| port(snat.port, reply.dst_part, orig.src_part));
    let dport = dnat.addr.and_then(|_| port(dnat.port, reply.src_part, orig.dst_part));
    (Rewrite { addr: snat.addr, port: sport }, Rewrite { addr: dnat.addr, port: dport })
}

/// `-D`: deletes every matching entry.
pub(super) fn delete(run: &mut Run<'_>, line: &Line) -> Result<u64, Stop> {
    let filter = Filter::new(line)?;
    each_row(run, line, &filter, |run, row, writer| {
        if !filter.passes(row) {
            return Ok(false);
        }
        let id = row.id.filter(|_| !line.bug_compatible);
        match run.changes.delete(&Target { tuple: row.orig, zone: row.zone, id }) {
            Ok(()) => {}
            // The entry expired in between.
            Err(error) if error.errno() == Some(Errno::NOENT) && !line.bug_compatible => return Ok(false),
            Err(error) => return Err(refused(&error, line.command)),
        }
        wrote(writer.changed(row, Change::Destroy)).map(|()| true)
    })
}

/// `-U`: updates every matching entry.
pub(super) fn update(run: &mut Run<'_>, line: &Line) -> Result<u64, Stop> {
    let filter = Filter::new(line)?;
    each_row(run, line, &filter, |run, row, writer| {
        if !filter.chooses(row) {
            return Ok(false);
        }
        let mut labels = [Vec::new(), Vec::new()];
        let Some(attrs) = changed(line, row, &mut labels) else { return Ok(false) };
        if let Err(error) = run.changes.update(&attrs) {
            warn(&format!("Operation failed: {}\n", reason(&error, line)));
            if !line.bug_compatible {
                return Ok(false);
            }
        }
        let key = EntryAttrs { orig: Some(row.orig), zone: row.zone, ..EntryAttrs::default() };
        let mut written = Ok(());
        let mut is_same = false;
        let got = run.changes.get(&key, |now| {
            is_same = line.bug_compatible || now.id == row.id;
            if is_same {
                written = writer.row(now);
            }
        });
        match got {
            // The entry ended in between, and a different entry has its tuple.
            Ok(()) if !is_same => Ok(false),
            Ok(()) => wrote(written).map(|()| true),
            Err(error) if error.errno() == Some(Errno::NOENT) => Ok(false),
            Err(error) => Err(refused(&error, line.command)),
        }
    })
}

fn reason(error: &DumpError, line: &Line) -> String {
    error.errno().map_or_else(|| error.to_string(), |errno| words(errno, line.command))
}

/// The change to request for an entry; None if the entry already has these values.
fn changed<'g>(line: &Line, row: &Conntrack<'_>, room: &'g mut [Vec<u8>; 2]) -> Option<EntryAttrs<'g>> {
    let want = &line.want;
    let status = want.status.map(|wanted| row.status.map_or(0, |now| now.0) | wanted.set);
    let mark = want.mark.map(|(mark, mask)| row.mark.unwrap_or(0) & !mask ^ mark);
    let differs = |wanted: Option<u32>, now: Option<u32>| wanted.is_some() && wanted != now;
    let labels = changed_labels(line, row, room);
    let state = want.state.is_some() && want.state != row.state;
    let numbers = differs(want.timeout_s, row.timeout_s) || differs(mark, row.mark);
    if !(numbers || state || labels || differs(status, row.status.map(|now| now.0))) {
        return None;
    }
    let [bits, mask] = &*room;
    let labels = labels.then_some((bits.as_slice(), (!mask.is_empty()).then_some(mask.as_slice())));
    let state = want.state.or(row.state.filter(|_| want.vtags.iter().any(Option::is_some)));
    Some(EntryAttrs {
        orig: Some(row.orig),
        status,
        mark,
        state,
        zone: row.zone,
        id: row.id.filter(|_| !line.bug_compatible),
        labels,
        ..meta(want)
    })
}

/// Sets the label bits to send and their mask: the kernel clears the bits in the mask and then flips the bits sent.
/// Returns false if nothing changes.
fn changed_labels(line: &Line, row: &Conntrack<'_>, [bits, mask]: &mut [Vec<u8>; 2]) -> bool {
    let (adds, takes) = (line.has(switch::ADD_LABEL), line.has(switch::DEL_LABEL));
    let now = row.labels.unwrap_or_default();
    match &line.want.labels_changed {
        Some(wanted) if adds => {
            bits.clone_from(wanted);
            bits.resize(now.len().max(wanted.len()), 0);
            // An entry without labels gets the whole set.
            if !now.is_empty() {
                mask.clone_from(bits);
            }
            true
        }
        Some(wanted) if takes && !now.is_empty() => {
            mask.clone_from(wanted);
            mask.resize(now.len().max(wanted.len()), 0);
            bits.resize(mask.len(), 0);
            true
        }
        None if takes && !now.is_empty() => {
            bits.resize(now.len(), 0);
            true
        }
        _ => false,
    }
}

/// Calls `each` with every entry; `each` returns whether it changed or deleted the entry.
fn each_row(
    run: &mut Run<'_>,
    line: &Line,
    filter: &Filter<'_>,
    mut each: impl FnMut(&mut Run<'_>, &Conntrack<'_>, &mut super::run::ToStdout<'_>) -> Result<bool, Stop>,
) -> Result<u64, Stop> {
    let (session, clock) = (run.session, Times::new(run.session));
    let is_update = line.command == Some(Command::Update);
    let names = |bit: u16| line.labels.as_ref().and_then(|labels| labels.name(bit));
    // The tool shows deleted entries without labels.
    let labels = is_update && line.labels.is_some();
    let options = EntryOptions { bare: true, ..form(line) };
    let mut writer = run.writer(options, &clock, labels.then_some(&names));
    let mut asked = filter.by_kernel();
    if is_update {
        // The mark and status are the new values, not conditions.
        asked.mark = None;
        asked.status = None;
    }
    let (mut count, mut failed) = (0, None);
    let read = entries::read(session, line, asked, need::ID, |row| match each(run, row, &mut writer) {
        Ok(true) => {
            count += 1;
            Disposition::Emitted
        }
        Ok(false) => Disposition::Filtered,
        Err(stop) => {
            failed = Some(stop);
            Disposition::Closed
        }
    });
    let written = writer.finish();
    failed.map_or(Ok(()), Err)?;
    run.stats.add(&read?);
    wrote(written).map(|()| count)
}

/// `-G`: shows one entry by its tuple.
pub(super) fn get(run: &mut Run<'_>, line: &Line) -> Result<u64, Stop> {
    let filter = Filter::new(line)?;
    let want = &line.want;
    let key = if line.has_any(switch::ORIG) {
        EntryAttrs { orig: Some(want.orig_tuple()), ..EntryAttrs::default() }
    } else if line.bug_compatible {
        // The tool sends no request without an original tuple.
        return Err(Stop::refused(&words(Errno::INVAL, line.command)));
    } else {
        let (src_part, dst_part) = want.orig_parts();
        let icmp = Side { src_part, dst_part, ..want.reply };
        let is_icmp = matches!(want.proto, Some(ip_proto::ICMP | ip_proto::ICMPV6));
        let side = if is_icmp { &icmp } else { &want.reply };
        EntryAttrs { reply: Some(want.tuple(side, want.proto.unwrap_or(0))), ..EntryAttrs::default() }
    };
    let clock = Times::new(run.session);
    let names = |bit: u16| line.labels.as_ref().and_then(|labels| labels.name(bit));
    let options = EntryOptions { ktimestamp: line.shows(output::KTIMESTAMP), ..form(line) };
    let mut writer = run.writer(options, &clock, line.labels.is_some().then_some(&names));
    let (mut count, mut written) = (0, Ok(()));
    let got = run.changes.get(&key, |row| {
        if filter.passes(row) {
            written = writer.row(row);
            count += 1;
        }
    });
    let end = if line.bug_compatible { writer.break_off() } else { writer.finish() };
    got.map_err(|error| refused(&error, line.command))?;
    wrote(written.and(end)).map(|()| count)
}

/// `-F`: empties a table.
pub(super) fn flush(run: &mut Run<'_>, line: &Line) -> Result<(), Stop> {
    let (what, flushed) = match line.table {
        CtTable::Expect => ("expectation", run.changes.flush_expectations()),
        // The tool's request always makes the kernel empty both families.
        _ => ("connection tracking", run.changes.flush(if line.bug_compatible { 0 } else { line.family })),
    };
    let flushed = flushed.map_err(|error| refused(&error, line.command));
    // The tool prints this even if the flush failed.
    if flushed.is_ok() || line.bug_compatible {
        warn(&format!("{}{what} table has been emptied.\n", head()));
    }
    flushed
}

/// `-I expect` and `-D expect`.
pub(super) fn change_expectation(run: &mut Run<'_>, line: &Line) -> Result<u64, Stop> {
    let want = &line.want;
    let proto = want.proto.unwrap_or(0);
    let changed = if line.command == Some(Command::ExpDelete) {
        run.changes.delete_expectation(&want.orig_tuple())
    } else {
        run.changes.create_expectation(&ExpectationAttrs {
            tuple: Some(want.tuple(&want.expected, proto)),
            mask: Some(want.tuple(&want.mask, proto)),
            master: Some(want.orig_tuple()),
            timeout_s: want.timeout_s,
        })
    };
    changed.map(|()| 1).map_err(|error| refused(&error, line.command))
}

/// `-G expect`
pub(super) fn get_expectation(run: &mut Run<'_>, line: &Line) -> Result<u64, Stop> {
    let clock = Times::new(run.session);
    let mut writer = run.writer(form(line), &clock, None);
    let (mut count, mut written): (u64, Result<(), SinkError>) = (0, Ok(()));
    let attrs = ExpectationAttrs { master: Some(line.want.orig_tuple()), ..ExpectationAttrs::default() };
    let got = run.changes.get_expectation(&attrs, |row| {
        written = writer.expectation(row, None, clock.now());
        count += 1;
    });
    let end = writer.finish();
    got.map_err(|error| refused(&error, line.command))?;
    wrote(written.and(end)).map(|()| count)
}
