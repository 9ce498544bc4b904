//! The number of source ports that each source NAT address uses for a destination, and the number available.
//!
//! The range comes from the rules. The kernel does not report which rule made an entry, so the smallest range that fits
//! is used.

use super::snat_rules::SnatRules;
use doctor::nat::range_of;
use lookups::session::Session;
use record::rows::SnatRule;
use record::{Accounting, Addr, Column, Columns, Kind, Next, OwnedValue, Round, Sink, SinkError, Value};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

/// The column of the highest port of a group, which is not shown.
const HIGHEST_COLUMN: &str = "max_reply_dport";

/// Identifies a group across rounds.
type GroupKey = (u64, &'static str, Addr, (Addr, Option<u16>));

/// A group to show.
struct PortGroup {
    /// Most used first; groups without a share last.
    rank: Reverse<(Option<u64>, u64)>,
    cells: Vec<OwnedValue>,
}

/// Indexes of cells.
#[derive(Clone, Copy, Default)]
struct Places {
    netns_id: Option<usize>,
    proto: usize,
    addr: usize,
    backend: usize,
    count: usize,
    highest: usize,
}

/// A sink that adds the number of ports and the share in use, and with rounds the time until the range is exhausted.
/// Its columns are `proto`, `reply_dst`, `backend`, `count` and `max_reply_dport`, with several namespaces `netns_id`.
pub struct PortUseSink<'s> {
    session: &'s Session,
    inner: Box<dyn Sink>,
    limit: u64,
    /// True if the user requested an order.
    is_sorted: bool,
    places: Places,
    /// Rules by namespace; `None` if nft does not provide them.
    rules: BTreeMap<u64, Option<Vec<SnatRule>>>,
    reader: SnatRules,
    /// Ports in use in the previous round, and its time in nanoseconds. Empty without rounds.
    before: (HashMap<GroupKey, u64>, u64),
    now: (HashMap<GroupKey, u64>, u64),
    is_repeated: bool,
    held: Vec<PortGroup>,
    /// Number of groups not shown.
    cut: u64,
}

impl<'s> PortUseSink<'s> {
    /// Makes a sink that hands the first `limit` groups to `inner`. With `is_sorted` they keep their order.
    pub fn new(session: &'s Session, inner: Box<dyn Sink>, limit: u64, is_sorted: bool) -> PortUseSink<'s> {
        let (places, before, now) = Default::default();
        let (rules, reader, held) = (BTreeMap::new(), SnatRules::default(), Vec::new());
        let (is_repeated, cut) = (false, 0);
        PortUseSink { session, inner, limit, is_sorted, places, rules, reader, before, now, is_repeated, held, cut }
    }

    /// The number of groups that the limit cut off in this round.
    pub fn cut(&self) -> u64 {
        self.cut
    }

    /// True if nft did not list the rules of a namespace, so that its numbers of ports are unknown.
    pub fn lacks_rules(&self) -> bool {
        self.rules.values().any(Option::is_none)
    }

    /// The number of ports available for the `used` entries of this address; `highest` is their highest port.
    fn ports(&mut self, netns_id: u64, addr: Addr, used: u64, highest: u16) -> Option<u64> {
        let (session, reader) = (self.session, &self.reader);
        let rules = self.rules.entry(netns_id).or_insert_with(|| read_rules(session, reader, netns_id));
        range_of(rules.as_deref()?, addr, (highest, highest), used).map(record::rows::PortRange::count)
    }

    /// Seconds until all ports are in use, at the rate since the previous round.
    fn full_in_s(&mut self, group: GroupKey, used: u64, ports: Option<u64>) -> Value<'static> {
        self.now.0.insert(group, used);
        let interval_ns = self.now.1.checked_sub(self.before.1).filter(|interval| *interval > 0);
        let forecast = || {
            let more = used.checked_sub(*self.before.0.get(&group)?).filter(|more| *more > 0)?;
            let left_ns = u128::from(ports?.saturating_sub(used)) * u128::from(interval_ns?) / u128::from(more);
            u64::try_from(left_ns / 1_000_000_000).ok()
        };
        Value::number(forecast())
    }

    /// Keeps the groups to show: without a requested order those with the largest share in use.
    fn hold(&mut self, shown: PortGroup) {
        let limit = usize::try_from(self.limit).unwrap_or(usize::MAX);
        if self.is_sorted && self.held.len() >= limit {
            self.cut += 1;
            return;
        }
        self.held.push(shown);
        // Keeps up to twice as many, so that they are not sorted for each group.
        if self.held.len() >= limit.saturating_mul(2).max(64) {
            self.shorten(limit);
        }
    }

    fn shorten(&mut self, limit: usize) {
        if !self.is_sorted {
            self.held.sort_by_key(|shown| shown.rank);
        }
        self.cut += self.held.len().saturating_sub(limit) as u64;
        self.held.truncate(limit);
    }
}

/// Reads the rules of a namespace, which is entered for that.
fn read_rules(session: &Session, reader: &SnatRules, netns_id: u64) -> Option<Vec<SnatRule>> {
    let (host, own) = (session.host(), session.netns_id());
    if netns_id == own {
        return reader.read(host, netns_id);
    }
    let namespaces = session.namespaces()?;
    let namespace = namespaces.list().iter().find(|namespace| namespace.inode == netns_id)?;
    let opened = namespace.open(host, own).ok()?;
    let _inside = opened.map(|netns| netns.enter()).transpose().ok()?;
    reader.read(host, netns_id)
}

impl Sink for PortUseSink<'_> {
    fn begin(&mut self, columns: &Columns, round: Option<Round>) -> Result<(), SinkError> {
        let place = |name: &str| columns.0.iter().position(|column| *column.name == *name);
        let of = |name| place(name).unwrap_or(usize::MAX);
        self.places = Places {
            netns_id: place("netns_id"),
            proto: of("proto"),
            addr: of("reply_dst"),
            backend: of("backend"),
            count: of("count"),
            highest: of(HIGHEST_COLUMN),
        };
        self.is_repeated = round.is_some();
        self.before = std::mem::take(&mut self.now);
        self.now.1 = self.session.steady_ns();
        self.cut = 0;
        self.held.clear();
        let mut shown = columns.clone();
        if self.places.highest < shown.0.len() {
            shown.0.remove(self.places.highest);
        }
        let column = |name: &str, kind| Column { name: name.into(), kind };
        let mut more = vec![column("ports", Kind::Count), column("used_percent", Kind::Count)];
        if self.is_repeated {
            more.push(column("full_in_s", Kind::DurationS));
        }
        let at = shown.0.len().min(self.places.count.saturating_add(1));
        shown.0.splice(at..at, more);
        self.inner.begin(&shown, round)
    }

    fn row(&mut self, cells: &[Value<'_>]) -> Result<Next, SinkError> {
        let Places { netns_id, proto, addr, backend, count, highest } = self.places;
        let number = |place: usize| match cells.get(place) {
            Some(Value::U64(number)) => Some(*number),
            _ => None,
        };
        let (Some(&Value::Addr(addr)), Some(&Value::Endpoint(dest, port)), Some(&Value::Name(proto))) =
            (cells.get(addr), cells.get(backend), cells.get(proto))
        else {
            return Ok(Next::More);
        };
        let netns_id = netns_id.and_then(number).unwrap_or(self.session.netns_id());
        let used = number(count).unwrap_or(0);
        let top = number(highest).and_then(|port| u16::try_from(port).ok());
        let ports = top.and_then(|top| self.ports(netns_id, addr, used, top));
        let part = ports.map(|ports| used.saturating_mul(100) / ports.max(1));
        let mut more = vec![OwnedValue::from(Value::number(ports)), OwnedValue::Plain(Value::number(part))];
        if self.is_repeated {
            more.push(OwnedValue::Plain(self.full_in_s((netns_id, proto, addr, (dest, port)), used, ports)));
        }
        let mut kept: Vec<OwnedValue> = cells.iter().map(|cell| OwnedValue::from(*cell)).collect();
        if highest < kept.len() {
            kept.remove(highest);
        }
        let at = kept.len().min(count.saturating_add(1));
        kept.splice(at..at, more);
        self.hold(PortGroup { rank: Reverse((part, used)), cells: kept });
        Ok(Next::More)
    }

    fn end(&mut self, totals: &Accounting) -> Result<(), SinkError> {
        self.shorten(usize::try_from(self.limit).unwrap_or(usize::MAX));
        for shown in std::mem::take(&mut self.held) {
            let cells: Vec<Value<'_>> = shown.cells.iter().map(OwnedValue::value).collect();
            if self.inner.row(&cells)? == Next::Stop {
                break;
            }
        }
        self.inner.end(totals)
    }
}
