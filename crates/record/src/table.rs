//! Tables and their field tables.
//!
//! A [`Table`] is a kind of record. Its [`Field`] slice is the only source of its columns, filter names, JSON keys,
//! CSV header, help and schema. Names are resolved to indexes when a plan is made.

use crate::text::put_u64;
use crate::{Key, Kind, LinkAddr, LookupId, Lookups, Owner, Value};

/// A kind of record. Implemented by an empty enum; the data are in [`Table::Row`].
pub trait Table: Sized + 'static {
    /// One row; `'b` is the buffer it borrows.
    type Row<'b>;
    /// The table's name on the command line (`sockets`).
    const NAME: &'static str;
    /// Every field, in the order of `--columns all`.
    const FIELDS: &'static [Field<Self>];
    /// True if rows arrive without end, such as packets: memory for them must be bounded. The rows of other tables are
    /// bounded by the state of the host.
    const ENDLESS: bool = false;
}

/// When a field is shown by default.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Show {
    /// Shown in the default table.
    Default,
    /// In an aligned table if a row of it has a value that is neither null nor false, and in `-o wide` and JSON.
    Unusual,
    /// Shown in `-o wide` and JSON, but not in the default table.
    Wide,
    /// Only by name or `--columns all`.
    Asked,
}

/// The origin of a field's value.
pub enum Get<T: Table> {
    /// Read from the row.
    Own(for<'r, 'b> fn(&'r T::Row<'b>) -> Value<'r>),
    /// Looked up with a key from the row.
    Joined {
        /// The key.
        key: for<'r, 'b> fn(&'r T::Row<'b>) -> Key,
        /// The lookup.
        lookup: LookupId,
    },
    /// Taken from the row's owners. The cell shows the first owner's value; a filter matches if any owner's value
    /// does.
    Owners {
        /// The key of the owners' lookup.
        key: for<'r, 'b> fn(&'r T::Row<'b>) -> Key,
        /// The part of an owner that this field shows; `None` for the whole list.
        part: Option<for<'r> fn(&'r Owner) -> Value<'r>>,
    },
    /// Looked up with a key from each of the row's owners, for example the pid. The cell shows the result for the
    /// first owner; a filter matches if the result for any owner does.
    OwnersJoined {
        /// The key of the owners' lookup.
        key: for<'r, 'b> fn(&'r T::Row<'b>) -> Key,
        /// The key of one owner; the first argument is the result of `key`.
        of: fn(Key, &Owner) -> Key,
        /// The key for a row that has no owner.
        orphan: for<'r, 'b> fn(&'r T::Row<'b>) -> Key,
        /// The lookup.
        lookup: LookupId,
    },
    /// An address of the row, with the name of its interface if it is link-local.
    OnLink {
        /// The address.
        addr: for<'r, 'b> fn(&'r T::Row<'b>) -> Value<'r>,
        /// The interface.
        of: for<'r, 'b> fn(&'r T::Row<'b>) -> RowLink<'r>,
    },
    /// Read from one of two places of the row, for example its two ends. The cell shows the first value that is not
    /// null; a filter matches if either value does.
    Either(for<'r, 'b> fn(&'r T::Row<'b>) -> Value<'r>, for<'r, 'b> fn(&'r T::Row<'b>) -> Value<'r>),
}

impl<T: Table> Clone for Get<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T: Table> Copy for Get<T> {}

impl<T: Table> Get<T> {
    /// True if the value comes from this lookup, for some rows at least.
    pub fn needs_lookup(&self, id: LookupId) -> bool {
        match *self {
            Get::Own(_) | Get::Either(..) => false,
            Get::Joined { lookup, .. } => lookup == id,
            Get::OwnersJoined { lookup, .. } => lookup == id || id == LookupId::Owners,
            Get::Owners { .. } => id == LookupId::Owners,
            Get::OnLink { .. } => id == LookupId::Ifaces,
        }
    }

    /// The cell in `row`. Costs one indirect call, plus one if the value is looked up.
    #[inline]
    pub fn cell<'r>(&self, row: &'r T::Row<'_>, lookups: &Lookups<'r>) -> Value<'r> {
        match *self {
            Get::Own(get) => get(row),
            Get::Joined { key, lookup } => lookups.value(lookup, key(row)),
            Get::Owners { key, part } => match (lookups.owners(key(row)), part) {
                ([], _) => Value::Null,
                (owners, None) => Value::Owners(owners),
                ([first], Some(part)) => part(first),
                (owners @ [first, ..], Some(part)) => match (part(first), Owner::count_other_processes(owners)) {
                    (Value::Bytes(name), others @ 1..) => Value::FirstOf(name, others),
                    (value, _) => value,
                },
            },
            Get::OwnersJoined { key, of, orphan, lookup } => {
                let key = key(row);
                let found = lookups.owners(key).first().map_or_else(|| orphan(row), |owner| of(key, owner));
                lookups.value(lookup, found)
            }
            // Nearly no row has an interface; a value that is looked at before it is handed on costs some ns.
            Get::OnLink { addr, of } => match of(row) {
                RowLink::Unknown => addr(row),
                link => on_link(addr(row), link, lookups),
            },
            Get::Either(first, second) => match first(row) {
                Value::Null => second(row),
                value => value,
            },
        }
    }
}

/// The cell of an address on an interface. One without a known name is called by its number.
#[inline(never)]
fn on_link<'r>(addr: Value<'r>, of: RowLink<'_>, lookups: &Lookups<'r>) -> Value<'r> {
    let addr = match addr {
        Value::Addr(addr) if addr.is_link_local_v6() => addr,
        other => return other,
    };
    let link = match of {
        RowLink::Unknown => None,
        RowLink::Name(name) => LinkAddr::new(addr, name),
        RowLink::Index(netns_id, index) => match lookups.value(LookupId::Ifaces, Key::Pair(netns_id, index)) {
            Value::Bytes(name) => LinkAddr::new(addr, name),
            _ => {
                let mut digits = Vec::new();
                put_u64(&mut digits, index.into());
                LinkAddr::new(addr, &digits)
            }
        },
    };
    link.map_or(Value::Addr(addr), Value::LinkAddr)
}

/// The interface of a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RowLink<'r> {
    /// Not known.
    Unknown,
    /// By the network namespace's inode and the interface's number there.
    Index(u64, u32),
    /// By its name.
    Name(&'r [u8]),
}

impl RowLink<'_> {
    /// The interface with this number in a namespace; unknown for 0.
    pub fn index(netns_id: u64, index: u32) -> Self {
        if index == 0 { RowLink::Unknown } else { RowLink::Index(netns_id, index) }
    }
}

/// How a table tells the interface of a link-local address.
pub struct Link<T: Table> {
    /// The interface of a row.
    pub of: for<'r, 'b> fn(&'r T::Row<'b>) -> RowLink<'r>,
    /// The fields that show its name. Where all of them are columns, addresses are written without it.
    pub names: &'static [&'static str],
    /// The fields that show its number, in the same order.
    pub numbers: &'static [&'static str],
    /// True if the addresses of rows have it. Tables of packets have it in group keys only: the interface of a packet
    /// is a default column.
    pub in_rows: bool,
}

impl<T: Table> Clone for Link<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T: Table> Copy for Link<T> {}

/// One field of a table.
pub struct Field<T: Table> {
    /// Name in filters, headers, JSON keys: lower case, unit last.
    pub name: &'static str,
    /// Meaning and unit.
    pub kind: Kind,
    /// One sentence.
    pub doc: &'static str,
    /// The kernel's name; empty if the kernel has no name for it.
    pub kernel: &'static str,
    /// When it is shown by default.
    pub show: Show,
    /// Bit that makes the source fetch it; 0 if it is always available.
    pub need: u64,
    /// True if the value is null when the kernel reports 0 or omits a 0: the filter `= 0` then also matches null.
    pub zero_is_null: bool,
    /// The interface of a link-local address in this field.
    pub link: Option<&'static Link<T>>,
    /// How the value is read.
    pub get: Get<T>,
}

impl<T: Table> Clone for Field<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T: Table> Copy for Field<T> {}

impl<T: Table> Field<T> {
    /// A field read in this way, with the defaults of the rest.
    const fn new(name: &'static str, kind: Kind, get: Get<T>) -> Self {
        Field { name, kind, doc: "", kernel: "", show: Show::Asked, need: 0, zero_is_null: false, link: None, get }
    }

    /// A field read from the row, shown only on request.
    pub const fn own(name: &'static str, kind: Kind, get: for<'r, 'b> fn(&'r T::Row<'b>) -> Value<'r>) -> Self {
        Field::new(name, kind, Get::Own(get))
    }

    /// A field found in a lookup.
    pub const fn joined(
        name: &'static str,
        kind: Kind,
        lookup: LookupId,
        key: for<'r, 'b> fn(&'r T::Row<'b>) -> Key,
    ) -> Self {
        Field::new(name, kind, Get::Joined { key, lookup })
    }

    /// A field taken from the row's owners.
    pub const fn owners(
        name: &'static str,
        kind: Kind,
        key: for<'r, 'b> fn(&'r T::Row<'b>) -> Key,
        part: Option<for<'r> fn(&'r Owner) -> Value<'r>>,
    ) -> Self {
        Field::new(name, kind, Get::Owners { key, part })
    }

    /// A field looked up with a key from each of the row's owners; `orphan` is the key of a row without owners.
    pub const fn owners_joined(
        name: &'static str,
        kind: Kind,
        lookup: LookupId,
        key: for<'r, 'b> fn(&'r T::Row<'b>) -> Key,
        of: fn(Key, &Owner) -> Key,
        orphan: for<'r, 'b> fn(&'r T::Row<'b>) -> Key,
    ) -> Self {
        Field::new(name, kind, Get::OwnersJoined { key, of, orphan, lookup })
    }

    /// A field read from one of two places of the row: the first value that is not null.
    pub const fn either(
        name: &'static str,
        kind: Kind,
        first: for<'r, 'b> fn(&'r T::Row<'b>) -> Value<'r>,
        second: for<'r, 'b> fn(&'r T::Row<'b>) -> Value<'r>,
    ) -> Self {
        Field::new(name, kind, Get::Either(first, second))
    }

    /// Returns this field with its description.
    pub const fn doc(mut self, doc: &'static str) -> Self {
        self.doc = doc;
        self
    }

    /// Returns this field with the kernel's name.
    pub const fn kernel(mut self, kernel: &'static str) -> Self {
        self.kernel = kernel;
        self
    }

    /// Returns this field with the given default visibility.
    pub const fn show(mut self, show: Show) -> Self {
        self.show = show;
        self
    }

    /// Returns this field, which the source fetches only if `need` is demanded.
    pub const fn needs(mut self, need: u64) -> Self {
        self.need = need;
        self
    }

    /// Returns this field, which is null when the kernel's number is 0 if `zero_is_null` is true.
    pub const fn zero_is_null(mut self, zero_is_null: bool) -> Self {
        self.zero_is_null = zero_is_null;
        self
    }

    /// Returns the same field of addresses; `link` tells the interface of link-local ones.
    pub const fn link(mut self, link: &'static Link<T>) -> Self {
        self.link = Some(link);
        self
    }

    /// How to read the address together with its interface; as without one where the field has none.
    pub fn get_on_link(&self) -> Get<T> {
        match (self.get, self.link) {
            (Get::Own(addr), Some(Link { of, .. })) => Get::OnLink { addr, of: *of },
            (get, _) => get,
        }
    }

    /// The lookup that this field's value comes from, if any.
    pub fn lookup(&self) -> Option<LookupId> {
        match self.get {
            Get::Own(_) | Get::OnLink { .. } | Get::Either(..) => None,
            Get::Joined { lookup, .. } | Get::OwnersJoined { lookup, .. } => Some(lookup),
            Get::Owners { .. } => Some(LookupId::Owners),
        }
    }

    /// True if the lookup must be filled for this field.
    pub fn needs_lookup(&self, id: LookupId) -> bool {
        self.get.needs_lookup(id)
    }

    /// The cell of this field in `row`. Costs one indirect call, plus one if the value is looked up.
    #[inline]
    pub fn cell<'r>(&self, row: &'r T::Row<'_>, lookups: &Lookups<'r>) -> Value<'r> {
        self.get.cell(row, lookups)
    }
}

/// Builds a field table: the fields of table alias `$f` (a `Field<…>`), in order.
///
/// ```text
/// fields! { F:
///     /// The sentence of the field, for `--columns help` and the schema.
///     gateway: Addr = own(|row| addr(row.gateway)), kernel "RTA_GATEWAY", show Show::Default;
/// }
/// ```
///
/// Each name is followed by its [`Kind`] and, after `=`, by a constructor of [`Field`] (`own`, `joined`, `owners`,
/// `owners_joined`, `either`) with the arguments that follow name and kind. Then come `kernel`, `needs`, `show`,
/// `zero_is_null` and `link` with their values, if those differ from the defaults: an empty name, 0, [`Show::Asked`],
/// false and `None`.
macro_rules! fields {
    ($f:ident: $(
        $(#[doc = $doc:literal])+
        $name:ident: $kind:ident $(($of:expr))? = $make:ident($($arg:expr),* $(,)?) $(, $with:ident $value:expr)*;
    )*) => {
        &[$(
            $f::$make(stringify!($name), $crate::Kind::$kind $(($of))?, $($arg),*)
                $(.$with($value))*
                .doc(concat!($($doc),*).trim_ascii_start())
        ),*]
    };
}
pub(crate) use fields;

/// A field table in one place of the program: a list of alias `$f`, or fields as in [`fields!`]. A constant would be
/// stored again in each part of the program that reads it, and each of its pointers costs time at the start.
macro_rules! stored_once {
    ($f:ident, $list:expr) => {{
        const LIST: &[$f] = $list;
        static STORED: [$f; LIST.len()] = $crate::table::concat_fields(&[LIST]);
        &STORED
    }};
    ($f:ident: $($fields:tt)*) => {
        $crate::table::stored_once!($f, $crate::table::fields! { $f: $($fields)* })
    };
}
pub(crate) use stored_once;

/// Declares a [`Table`] whose rows borrow the receive buffer, with its fields as in [`fields!`].
macro_rules! table {
    (
        $(#[$about:meta])*
        pub enum $table:ident of $row:ident = $name:literal $(, $option:ident = $set:literal)?; $($fields:tt)*
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug)]
        pub enum $table {}

        impl $crate::Table for $table {
            type Row<'b> = $row<'b>;
            const NAME: &'static str = $name;
            const FIELDS: &'static [$crate::Field<$table>] = {
                type F = $crate::Field<$table>;
                $crate::table::stored_once! { F: $($fields)* }
            };
            $(const $option: bool = $set;)?
        }
    };
}
pub(crate) use table;

/// Joins several field tables in order, at compile time; `N` is the sum of their lengths.
pub const fn concat_fields<T: Table, const N: usize>(parts: &[&[Field<T>]]) -> [Field<T>; N] {
    let mut all = [const { Field::own("", Kind::Count, |_| Value::Null) }; N];
    let (mut part, mut i, mut to) = (0, 0, 0);
    while part < parts.len() {
        if i == parts[part].len() {
            (part, i) = (part + 1, 0);
            continue;
        }
        all[to] = parts[part][i];
        (i, to) = (i + 1, to + 1);
    }
    assert!(to == N);
    all
}

/// The index of the field called `name`.
pub fn field_index<T: Table>(name: &str) -> Option<usize> {
    T::FIELDS.iter().position(|f| f.name == name)
}
