//! Tables and their field tables.
//!
//! A [`Table`] is a kind of record; its [`Field`] slice is the one place that columns, filter names, JSON keys,
//! CSV header, help and schema come from. Fields become indexes when a plan is made.

use crate::{Key, Kind, LookupId, Lookups, Owner, Value};

/// A kind of record. Implemented by an empty enum; the data are in [`Table::Row`].
pub trait Table: Sized + 'static {
    /// One row; `'b` is the buffer it borrows.
    type Row<'b>;
    /// The word of the command line (`sockets`).
    const NAME: &'static str;
    /// Every field, in the order of `--columns all`.
    const FIELDS: &'static [Field<Self>];
    /// True if rows come from outside without an end, packets say: what is kept of them must be bounded. The rows of
    /// other tables are bounded by what the host holds.
    const ENDLESS: bool = false;
}

/// When a field is shown without being asked for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Show {
    /// In the plain table.
    Default,
    /// In `-o wide` and JSON as well.
    Wide,
    /// Only by name or `--columns all`.
    Asked,
}

/// Where a field's value comes from.
pub enum Get<T: Table> {
    /// Read from the row.
    Own(for<'r, 'b> fn(&'r T::Row<'b>) -> Value<'r>),
    /// Found by a key from the row.
    Joined {
        /// The key.
        key: for<'r, 'b> fn(&'r T::Row<'b>) -> Key,
        /// Where to look.
        lookup: LookupId,
    },
    /// Drawn from the row's owners: the cell shows the first one's, a filter matches if any does.
    Owners {
        /// The key of the owners' lookup.
        key: for<'r, 'b> fn(&'r T::Row<'b>) -> Key,
        /// The part of an owner that this field shows; `None` for the whole list.
        part: Option<for<'r> fn(&'r Owner) -> Value<'r>>,
    },
    /// Found by a key from each of the row's owners, its pid say: the cell shows what the first one's key gives, a
    /// filter matches if any does.
    OwnersJoined {
        /// The key of the owners' lookup.
        key: for<'r, 'b> fn(&'r T::Row<'b>) -> Key,
        /// The key of one owner; the first argument is what `key` gave.
        of: fn(Key, &Owner) -> Key,
        /// The key for a row that has no owner.
        orphan: for<'r, 'b> fn(&'r T::Row<'b>) -> Key,
        /// Where to look.
        lookup: LookupId,
    },
    /// Read from one of two places of the row, its two ends say: the cell shows the first that is not null, a filter
    /// matches if either does.
    Either(for<'r, 'b> fn(&'r T::Row<'b>) -> Value<'r>, for<'r, 'b> fn(&'r T::Row<'b>) -> Value<'r>),
}

impl<T: Table> Clone for Get<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T: Table> Copy for Get<T> {}

impl<T: Table> Get<T> {
    /// The cell in `row`. Costs one indirect call, plus one in a lookup when joined.
    #[inline]
    pub fn cell<'r>(&self, row: &'r T::Row<'_>, lookups: &Lookups<'r>) -> Value<'r> {
        match *self {
            Get::Own(get) => get(row),
            Get::Joined { key, lookup } => lookups.value(lookup, key(row)),
            Get::Owners { key, part } => match (lookups.owners(key(row)), part) {
                ([], _) => Value::Null,
                (owners, None) => Value::Owners(owners),
                ([first], Some(part)) => part(first),
                (owners @ [first, ..], Some(part)) => match (part(first), Owner::others(owners)) {
                    (Value::Bytes(name), others @ 1..) => Value::FirstOf(name, others),
                    (value, _) => value,
                },
            },
            Get::OwnersJoined { key, of, orphan, lookup } => {
                let key = key(row);
                let found = lookups.owners(key).first().map_or_else(|| orphan(row), |owner| of(key, owner));
                lookups.value(lookup, found)
            }
            Get::Either(first, second) => match first(row) {
                Value::Null => second(row),
                value => value,
            },
        }
    }
}

/// One field of a table.
pub struct Field<T: Table> {
    /// Name in filters, headers, JSON keys: lower case, unit last.
    pub name: &'static str,
    /// Meaning and unit.
    pub kind: Kind,
    /// One sentence.
    pub doc: &'static str,
    /// What the kernel calls it; empty if it has no name there.
    pub kernel: &'static str,
    /// When it is shown unasked.
    pub show: Show,
    /// Bit that tells the source to fetch it; 0 if it is always there.
    pub need: u64,
    /// True if the value is null when the kernel reports 0 or omits a 0: the filter `= 0` then also matches null.
    pub zero_is_null: bool,
    /// How to read it.
    pub get: Get<T>,
}

impl<T: Table> Clone for Field<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T: Table> Copy for Field<T> {}

impl<T: Table> Field<T> {
    /// A field read from the row, shown only when asked for.
    pub const fn own(name: &'static str, kind: Kind, get: for<'r, 'b> fn(&'r T::Row<'b>) -> Value<'r>) -> Self {
        Field { name, kind, doc: "", kernel: "", show: Show::Asked, need: 0, zero_is_null: false, get: Get::Own(get) }
    }

    /// A field found in a lookup.
    pub const fn joined(
        name: &'static str,
        kind: Kind,
        lookup: LookupId,
        key: for<'r, 'b> fn(&'r T::Row<'b>) -> Key,
    ) -> Self {
        Field {
            name,
            kind,
            doc: "",
            kernel: "",
            show: Show::Asked,
            need: 0,
            zero_is_null: false,
            get: Get::Joined { key, lookup },
        }
    }

    /// A field drawn from the row's owners.
    pub const fn owners(
        name: &'static str,
        kind: Kind,
        key: for<'r, 'b> fn(&'r T::Row<'b>) -> Key,
        part: Option<for<'r> fn(&'r Owner) -> Value<'r>>,
    ) -> Self {
        Field {
            name,
            kind,
            doc: "",
            kernel: "",
            show: Show::Asked,
            need: 0,
            zero_is_null: false,
            get: Get::Owners { key, part },
        }
    }

    /// A field found by a key from each of the row's owners; `orphan` is the key of a row without any.
    pub const fn owners_joined(
        name: &'static str,
        kind: Kind,
        lookup: LookupId,
        key: for<'r, 'b> fn(&'r T::Row<'b>) -> Key,
        of: fn(Key, &Owner) -> Key,
        orphan: for<'r, 'b> fn(&'r T::Row<'b>) -> Key,
    ) -> Self {
        let get = Get::OwnersJoined { key, of, orphan, lookup };
        Field { name, kind, doc: "", kernel: "", show: Show::Asked, need: 0, zero_is_null: false, get }
    }

    /// A field read from one of two places of the row, the first that is not null.
    pub const fn either(
        name: &'static str,
        kind: Kind,
        first: for<'r, 'b> fn(&'r T::Row<'b>) -> Value<'r>,
        second: for<'r, 'b> fn(&'r T::Row<'b>) -> Value<'r>,
    ) -> Self {
        Field {
            name,
            kind,
            doc: "",
            kernel: "",
            show: Show::Asked,
            need: 0,
            zero_is_null: false,
            get: Get::Either(first, second),
        }
    }

    /// The same field with its sentence.
    pub const fn doc(mut self, doc: &'static str) -> Self {
        self.doc = doc;
        self
    }

    /// The same field with the kernel's name.
    pub const fn kernel(mut self, kernel: &'static str) -> Self {
        self.kernel = kernel;
        self
    }

    /// The same field, shown unasked as `show` says.
    pub const fn show(mut self, show: Show) -> Self {
        self.show = show;
        self
    }

    /// The same field, fetched only when `need` is asked of the source.
    pub const fn needs(mut self, need: u64) -> Self {
        self.need = need;
        self
    }

    /// Returns the same field, which is null when the kernel's number is 0 if `zero_is_null` is true.
    pub const fn zero_is_null(mut self, zero_is_null: bool) -> Self {
        self.zero_is_null = zero_is_null;
        self
    }

    /// The lookup that this field's value comes from, if any.
    pub fn lookup(&self) -> Option<LookupId> {
        match self.get {
            Get::Own(_) | Get::Either(..) => None,
            Get::Joined { lookup, .. } | Get::OwnersJoined { lookup, .. } => Some(lookup),
            Get::Owners { .. } => Some(LookupId::Owners),
        }
    }

    /// True if the lookup must be filled for this field.
    pub fn needs_lookup(&self, id: LookupId) -> bool {
        let by_owners = id == LookupId::Owners && matches!(self.get, Get::OwnersJoined { .. });
        by_owners || self.lookup() == Some(id)
    }

    /// The cell of this field in `row`. Costs one indirect call, plus one in a lookup when joined.
    #[inline]
    pub fn cell<'r>(&self, row: &'r T::Row<'_>, lookups: &Lookups<'r>) -> Value<'r> {
        self.get.cell(row, lookups)
    }
}

/// A field table: the fields of table alias `$f` (a `Field<…>`), one after the other.
///
/// ```text
/// fields! { F:
///     /// The sentence of the field, for `--columns help` and the schema.
///     gateway: Addr = own(|row| addr(row.gateway)), kernel "RTA_GATEWAY", show Show::Default;
/// }
/// ```
///
/// Each name is followed by its [`Kind`] and, after `=`, by a constructor of [`Field`] (`own`, `joined`, `owners`,
/// `owners_joined`, `either`) with its arguments after name and kind. Then come `kernel`, `needs`, `show` and
/// `zero_is_null` with their values, if those differ from the defaults: none, none, [`Show::Asked`] and false.
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

/// A [`Table`] of rows that borrow the receive buffer, with its fields as in [`fields!`].
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
                $crate::table::fields! { F: $($fields)* }
            };
            $(const $option: bool = $set;)?
        }
    };
}
pub(crate) use table;

/// One field table made of several, in their order, at compile time; `N` is the sum of their lengths.
pub const fn joined<T: Table, const N: usize>(parts: &[&[Field<T>]]) -> [Field<T>; N] {
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
