//! A table's fields without its row type: everything that filters, columns and sort orders need.

use crate::{Field, Kind, LookupId, Show, Table};

/// A [`Field`] without its getter.
#[derive(Clone, Copy, Debug)]
pub struct FieldInfo {
    /// Name in filters, headers, JSON keys.
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
    /// True if the value is null when the kernel's number is 0.
    pub zero_is_null: bool,
    /// True if it requires the processes that own a socket.
    pub needs_owners: bool,
    /// Of addresses: the fields that show the interface of a link-local one ([`Link::names`](crate::Link)).
    pub link_names: &'static [&'static str],
    /// Of addresses: the fields that show its number ([`Link::numbers`](crate::Link)).
    pub link_numbers: &'static [&'static str],
    /// True if such an address has its interface in rows, and not in group keys only.
    pub links_rows: bool,
}

impl FieldInfo {
    /// The description of a field.
    fn describe<T: Table>(field: &Field<T>) -> FieldInfo {
        FieldInfo {
            name: field.name,
            kind: field.kind,
            doc: field.doc,
            kernel: field.kernel,
            show: field.show,
            need: field.need,
            zero_is_null: field.zero_is_null,
            needs_owners: field.needs_lookup(LookupId::Owners),
            link_names: field.link.map_or(&[], |link| link.names),
            link_numbers: field.link.map_or(&[], |link| link.numbers),
            links_rows: field.link.is_some_and(|link| link.in_rows),
        }
    }
}

/// Name and fields of a [`Table`] as a value. Code that works on names alone takes a `Schema` and is compiled once
/// instead of once per table.
#[derive(Clone, Copy, Debug)]
pub struct Schema {
    name: &'static str,
    field: fn(usize) -> Option<FieldInfo>,
    place: fn(&str) -> Option<usize>,
    keeps: &'static [&'static str],
}

impl Schema {
    /// The schema of `T`.
    pub const fn from_table<T: Table>() -> Schema {
        Schema {
            name: T::NAME,
            field: |index| T::FIELDS.get(index).map(FieldInfo::describe),
            place: |name| T::FIELDS.iter().position(|field| field.name == name),
            keeps: &[],
        }
    }

    /// Returns this schema with the columns that a narrow terminal keeps.
    pub const fn with_kept_columns(self, keeps: &'static [&'static str]) -> Schema {
        Schema { keeps, ..self }
    }

    /// The columns that a narrow terminal keeps, most important first. Columns that are not listed here are dropped
    /// before these.
    pub const fn kept_columns(self) -> &'static [&'static str] {
        self.keeps
    }

    /// The table's name on the command line.
    pub const fn name(self) -> &'static str {
        self.name
    }

    /// The field at an index.
    pub fn field(self, index: usize) -> Option<FieldInfo> {
        (self.field)(index)
    }

    /// Every field, in the order of `--columns all`.
    pub fn fields(self) -> impl Iterator<Item = FieldInfo> {
        (0..).map_while(self.field)
    }

    /// The names of all fields.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        self.fields().map(|field| field.name)
    }

    /// The index of the field called `name`.
    pub fn index_of(self, name: &str) -> Option<usize> {
        (self.place)(name)
    }

    /// The field called `name`.
    pub fn find_field(self, name: &str) -> Option<FieldInfo> {
        self.field(self.index_of(name)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::Sockets;

    #[test]
    fn a_schema_has_the_fields_of_its_table() {
        let schema = Schema::from_table::<Sockets>();
        assert_eq!(schema.names().collect::<Vec<_>>(), Sockets::FIELDS.iter().map(|f| f.name).collect::<Vec<_>>());
        assert_eq!(schema.index_of("peer_port"), crate::field_index::<Sockets>("peer_port"));
        assert!(schema.find_field("process").is_some_and(|field| field.needs_owners));
        assert!(schema.find_field("state").is_some_and(|field| !field.needs_owners));
        assert!(schema.find_field("none").is_none() && schema.field(Sockets::FIELDS.len()).is_none());
    }
}
