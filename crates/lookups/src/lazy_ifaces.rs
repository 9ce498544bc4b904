//! Names of network interfaces, read when the first row needs one: most tables need none, and a container host has
//! thousands.

use crate::append_map::AppendMap;
use crate::asked;
use crate::session::Session;
use host::Ifaces;
use record::{Key, Lookup, LookupId, Value};
use sys::Mode;

/// The interfaces of the namespaces that rows have asked for. A namespace that cannot be read has none.
pub struct LazyIfaces<'s> {
    session: &'s Session,
    read: AppendMap<u64, Ifaces>,
}

impl<'s> LazyIfaces<'s> {
    /// Reads nothing yet.
    pub fn new(session: &'s Session) -> LazyIfaces<'s> {
        LazyIfaces { session, read: AppendMap::new(usize::MAX) }
    }

    /// The interfaces of a namespace. The first call for each costs a dump.
    pub fn of(&self, netns_id: u64) -> Option<&Ifaces> {
        self.read.newest(&netns_id).or_else(|| {
            let host = self.session.host();
            let read = self.session.in_namespace(netns_id, || Ifaces::read(host, netns_id).ok());
            self.read.push(netns_id, read.ok().flatten().unwrap_or_default())
        })
    }
}

impl Lookup for LazyIfaces<'_> {
    fn value(&self, key: Key) -> Value<'_> {
        let Key::Pair(netns_id, _) = key else { return Value::Null };
        self.of(netns_id).map_or(Value::Null, |ifaces| ifaces.value(key))
    }
}

/// Interfaces without a known name that are called by their number at most; what is over is called nothing.
const NUMBERS_MAX: usize = 1 << 16;

/// The same, but an interface whose name is not known is called by its number: what a row is bound to is never hidden.
pub struct NumberedIfaces<'s> {
    names: LazyIfaces<'s>,
    /// False for a recording that holds no names.
    has_names: bool,
    numbers: AppendMap<u32, String>,
}

impl<'s> NumberedIfaces<'s> {
    /// Reads nothing yet, except for a recording: that one holds the interfaces of every namespace that is read.
    pub fn new(session: &'s Session) -> NumberedIfaces<'s> {
        let (host, names) = (session.host(), LazyIfaces::new(session));
        if host.mode() == Mode::Recording {
            asked::note(host, LookupId::Ifaces);
            session.in_each_namespace(&mut |netns_id| {
                names.of(netns_id);
            });
        }
        let has_names = asked::holds(host, LookupId::Ifaces);
        NumberedIfaces { names, has_names, numbers: AppendMap::new(NUMBERS_MAX) }
    }

    /// True if the interfaces of any namespace were read.
    pub fn are_read(&self) -> bool {
        self.names.read.len() > 0
    }
}

impl Lookup for NumberedIfaces<'_> {
    fn value(&self, key: Key) -> Value<'_> {
        let Key::Pair(_, index) = key else { return Value::Null };
        let name = if self.has_names { self.names.value(key) } else { Value::Null };
        if !name.is_null() {
            return name;
        }
        let number = self.numbers.newest(&index).or_else(|| self.numbers.push(index, index.to_string()));
        Value::text(number.map(String::as_bytes))
    }
}
