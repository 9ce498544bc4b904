//! Copies of rows, for comparisons.
use record::rows::{Socket, Sockets};
use record::{
    Accounting, Addr, Demand, Expr, Get, Lookups, Next, Op, Operand, Proto, Source, State, Table, Test, Value,
};
use sockets::{BackendCache, Options, SocketSource};
use sys::Host;

/// Fields that can be compared between two backends, or a backend and a tool.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Kept {
    pub(crate) proto: Proto,
    pub(crate) family: u8,
    pub(crate) state: State,
    pub(crate) local: (Addr, u16),
    pub(crate) peer: (Addr, u16),
    pub(crate) rqueue: u32,
    pub(crate) wqueue: Option<u32>,
    pub(crate) uid: Option<u32>,
    pub(crate) inode: u32,
    pub(crate) timer: u8,
    pub(crate) timer_ms: u32,
    pub(crate) retrans: u8,
    pub(crate) cookie: u64,
    pub(crate) ifindex: u32,
    pub(crate) mark: Option<u32>,
    pub(crate) cgroup_id: Option<u64>,
    pub(crate) unix_type: u8,
    pub(crate) path: Option<Vec<u8>>,
    pub(crate) peer_inode: Option<u32>,
}

impl Kept {
    pub(crate) fn of(row: &Socket<'_>) -> Kept {
        Kept {
            proto: row.proto,
            family: row.family,
            state: row.state,
            local: (row.local.addr, row.local.port),
            peer: (row.peer.addr, row.peer.port),
            rqueue: row.rqueue,
            wqueue: row.wqueue,
            uid: row.uid,
            inode: row.inode,
            timer: row.timer.0,
            timer_ms: row.timer_ms,
            retrans: row.retrans,
            cookie: row.cookie,
            ifindex: row.ifindex,
            mark: row.mark,
            cgroup_id: row.cgroup_id,
            unix_type: row.unix.map_or(0, |part| part.kind.0),
            path: row.unix.and_then(|part| part.path).map(<[u8]>::to_vec),
            peer_inode: row.unix.and_then(|part| part.peer_inode),
        }
    }
}

/// A `need` for which the rows' attributes are decoded.
pub(crate) const ATTRIBUTES: u64 = record::rows::need::V6ONLY;

pub(crate) fn demand(need: u64, conjuncts: Vec<Expr>) -> Demand<Sockets> {
    let mut demand = Demand::new(&[], conjuncts);
    demand.need |= need;
    demand
}

/// `name op operand`.
pub(crate) fn test(name: &str, op: Op, operand: Operand) -> Expr {
    Expr::Test(Test { field: record::field_index::<Sockets>(name).unwrap(), op, operand })
}

/// `name = word`.
pub(crate) fn is(name: &str, word: &str) -> Expr {
    test(name, Op::Eq, Operand::Words(vec![word.as_bytes().into()]))
}

/// Every row that the source hands out, sorted, and the row counts.
pub(crate) fn read(host: &Host, options: Options, demand: &Demand<Sockets>) -> (Vec<Kept>, Accounting) {
    read_with_cache(host, &BackendCache::new(), options, demand)
}

/// Works like `read`, but with a cache of backends that may already be open.
pub(crate) fn read_with_cache(
    host: &Host,
    cache: &BackendCache,
    options: Options,
    demand: &Demand<Sockets>,
) -> (Vec<Kept>, Accounting) {
    let mut rows = Vec::new();
    let stats = SocketSource::new(host, options).with_cache(cache).run(demand, &mut |row| {
        rows.push(Kept::of(row));
        Next::More
    });
    let stats = stats.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(stats.seen, rows.len() as u64 + stats.duplicates + stats.failed + stats.filtered, "{stats:?}");
    rows.sort();
    (rows, stats)
}

/// The rows of one protocol, live, from the calling thread's namespace.
pub(crate) fn live(proto: Proto, via: Option<sockets::Via>, need: u64) -> Vec<Kept> {
    let options = Options { via, order: vec![proto], if_named: &[], ..here() };
    let (rows, stats) = read(&Host::live(), options, &demand(need, Vec::new()));
    assert_eq!((stats.failed, stats.incomplete, stats.unknown_attrs), (0, false, 0), "{stats:?}");
    rows
}

/// Options for the calling thread's namespace.
pub(crate) fn here() -> Options {
    Options::new(sys::netns::current_inode().unwrap())
}

/// Every cell that is not null, as `name=value`.
pub(crate) fn cells(row: &Socket<'_>) -> String {
    let mut text = String::new();
    let lookups = Lookups::empty();
    for field in Sockets::FIELDS.iter().filter(|field| matches!(field.get, Get::Own(_))) {
        let value = match field.cell(row, &lookups) {
            Value::Null => continue,
            Value::Bool(value) => value.to_string(),
            Value::U64(number) => number.to_string(),
            Value::I64(number) => number.to_string(),
            Value::Addr(addr) => addr.to_string(),
            Value::Bytes(bytes) => bytes.escape_ascii().to_string(),
            Value::Name(name) => name.to_owned(),
            Value::Owners(owners) => format!("{} owners", owners.len()),
            Value::Time(_)
            | Value::FarTime(_)
            | Value::LinkAddr(_)
            | Value::Thousandths(_)
            | Value::List(_)
            | Value::Object(_)
            | Value::Endpoint(..)
            | Value::Prefix(..)
            | Value::Bits(..)
            | Value::Words(_)
            | Value::FirstOf(..)
            | Value::Guess(_) => {
                panic!("{} is no field of sockets", field.name)
            }
        };
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(field.name);
        text.push('=');
        text.push_str(&value);
    }
    for (name, bytes) in [("bbr", row.bbr), ("ulp", row.ulp), ("md5sig", row.md5sig), ("dctcp", row.dctcp)] {
        if let Some(bytes) = bytes {
            let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            text.push_str(&format!(" {name}:{hex}"));
        }
    }
    text
}
