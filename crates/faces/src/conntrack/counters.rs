//! `-C` and `-S`.

use super::parse::Line;
use super::run::{Run, refused};
use super::stop::Stop;
use super::table;
use conntrack::{CtTable, count_entries, cpu_counters};
use record::text::put_u64;
use sys::OutError;

/// `CTA_STATS_…` by number. The tool has four more names for later numbers.
#[rustfmt::skip]
const NAMES: &[&str] = &[
    "", "searched", "found", "new", "invalid", "ignore", "delete", "delete_list", "insert", "insert_failed", "drop",
    "early_drop", "error", "search_restart", "clash_resolve", "chaintoolong", "unknown1", "unknown2", "unknown3",
    "unknown4",
];

/// `CTA_STATS_EXP_…`
const EXPECT_NAMES: &[&str] = &["", "expect_new", "expect_create", "expect_delete"];

/// `-C`: the number of entries.
pub(super) fn entries(run: &mut Run<'_>, line: &Line) -> Result<(), Stop> {
    match count_entries(run.session.host(), run.place()) {
        Ok(Some(count)) => number(count.into()),
        // The kernel is too old, or permission is missing: the file has the same number.
        Ok(None) => number(from_file(run)?),
        Err(error) => {
            number(from_file(run)?)?;
            // The tool still fails.
            if line.bug_compatible { Err(refused(&error, line.command)) } else { Ok(()) }
        }
    }
}

fn from_file(run: &Run<'_>) -> Result<u64, Stop> {
    const FILE: &str = "/proc/sys/net/netfilter/nf_conntrack_count";
    let mut text = Vec::new();
    let read = run.session.host().read_file(FILE, &mut text);
    read.map_err(|_| Stop::other(format!("Can't open {FILE}")))?;
    let number = std::str::from_utf8(text.trim_ascii()).ok().and_then(|text| text.parse().ok());
    number.ok_or_else(|| Stop::other(format!("Can't read {FILE}")))
}

/// `-C expect`
pub(super) fn expectations(run: &mut Run<'_>, line: &Line) -> Result<(), Stop> {
    // The tool prints the number even if the kernel refused the request.
    let count = table::count_expectations(run, line);
    if let (Err(_), true) = (&count, line.bug_compatible) {
        number(0)?;
    }
    number(count?)
}

fn number(n: u64) -> Result<(), Stop> {
    let mut text = Vec::new();
    put_u64(&mut text, n);
    text.push(b'\n');
    out(&text)
}

/// `-S`: one line per CPU.
pub(super) fn per_cpu(run: &mut Run<'_>, line: &Line) -> Result<(), Stop> {
    let names = if line.table == CtTable::Expect { EXPECT_NAMES } else { NAMES };
    let mut text = Vec::new();
    let read = cpu_counters(run.session.host(), run.place(), line.table, |cpu, counters| {
        text.extend_from_slice(format!("cpu={cpu:<4}\t").as_bytes());
        for (kind, name) in names.iter().enumerate().skip(1) {
            // If a kernel sends a counter twice, the last value counts.
            if let Some((_, count)) = counters.iter().rev().find(|(one, _)| usize::from(*one) == kind) {
                text.extend_from_slice(format!("{name}={count} ").as_bytes());
            }
        }
        text.push(b'\n');
    });
    if let Err(error) = read {
        return match from_proc(run) {
            Some(text) if line.bug_compatible => out(&text).and(Err(refused(&error, line.command))),
            Some(text) => out(&text),
            None if error.errno().is_some_and(sys::Errno::is_denied) => Err(refused(&error, line.command)),
            None => Err(Stop::other("Can't open /proc interface")),
        };
    }
    out(&text)
}

/// The same counters from /proc/net/stat/nf_conntrack: a line of names, then a line of hexadecimal numbers per CPU.
fn from_proc(run: &Run<'_>) -> Option<Vec<u8>> {
    let mut file = Vec::new();
    run.session.host().read_file("/proc/net/stat/nf_conntrack", &mut file).ok()?;
    let file = String::from_utf8_lossy(&file);
    let mut lines = file.lines();
    let names: Vec<&str> = lines.next()?.split_ascii_whitespace().collect();
    let mut text = Vec::new();
    for (cpu, line) in lines.enumerate() {
        text.extend_from_slice(format!("cpu={cpu:<4}\t").as_bytes());
        for (name, number) in names.iter().zip(line.split_ascii_whitespace()) {
            let number = u32::from_str_radix(number, 16).unwrap_or(0);
            text.extend_from_slice(format!("{}={number} ", super::super::text::printable(name.as_bytes())).as_bytes());
        }
        text.push(b'\n');
    }
    (!text.is_empty()).then_some(text)
}

/// Writes text to stdout.
pub(super) fn out(text: &[u8]) -> Result<(), Stop> {
    match sys::Out::stdout().write_all(text) {
        Ok(()) | Err(OutError::Closed) => Ok(()),
        Err(error) => Err(Stop::other(error.to_string())),
    }
}
