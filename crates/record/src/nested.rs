//! Lists and objects inside rows, and values that outlive their row.

use crate::{List, Member, Object, Owner, Value};
use std::fmt;

/// An item of a list that is stored in a `Vec`.
pub trait ToValue {
    /// The item as a value that borrows it.
    fn as_value(&self) -> Value<'_>;
}

impl ToValue for String {
    fn as_value(&self) -> Value<'_> {
        Value::Bytes(self.as_bytes())
    }
}

impl<T: Object> ToValue for T {
    fn as_value(&self) -> Value<'_> {
        Value::Object(self)
    }
}

impl<T: ToValue> List for Vec<T> {
    fn for_each(&self, each: &mut dyn FnMut(Value<'_>)) {
        self.iter().for_each(|item| each(item.as_value()));
    }
}

impl Object for Owner {
    fn for_each(&self, each: &mut dyn FnMut(&'static str, Value<'_>)) {
        each("pid", Value::U64(self.pid.into()));
        each("process", Value::Bytes(self.process.as_bytes()));
        each("fd", Value::number(self.descriptor()));
        let started_ms = u64::from(self.started) * 10;
        each("started_ms", if self.started == 0 { Value::Null } else { Value::U64(started_ms) });
    }
}

impl<'r> Value<'r> {
    /// Calls `each` with every item of a list, including lists of owners. Does nothing for other values.
    pub fn for_each_item(self, each: &mut dyn FnMut(Value<'_>)) {
        match self {
            Value::List(list) => list.for_each(each),
            Value::Owners(owners) => owners.iter().for_each(|owner| each(Value::Object(owner))),
            _ => {}
        }
    }
}

/// A value that outlives its row, as sorts, groups and commands store it. Copying texts, lists and objects allocates.
#[derive(Clone, Debug, PartialEq)]
pub enum OwnedValue {
    /// A value that borrows nothing.
    Plain(Value<'static>),
    /// [`Value::Bytes`]
    Bytes(Box<[u8]>),
    /// [`Value::FirstOf`]
    FirstOf(Box<[u8]>, u32),
    /// [`Value::Words`]
    Words(Box<[u8]>),
    /// [`Value::Owners`]
    Owners(Box<[Owner]>),
    /// [`Value::List`]
    List(OwnedList),
    /// [`Value::Object`]
    Object(OwnedObject),
}

/// A list that outlives its row.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnedList(Vec<OwnedValue>);

/// An object that outlives its row.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnedObject(Vec<(&'static str, OwnedValue)>);

impl OwnedObject {
    /// An object with these members and values, in order. Members without a value are null.
    pub fn new<'v>(members: &'static [Member], values: impl IntoIterator<Item = Value<'v>>) -> OwnedObject {
        let mut values = values.into_iter();
        let value = |values: &mut dyn Iterator<Item = Value<'v>>| values.next().unwrap_or(Value::Null).into();
        OwnedObject(members.iter().map(|member| (member.name, value(&mut values))).collect())
    }

    /// The value of a member; null if the object has no member of this name.
    pub fn get(&self, name: &str) -> Value<'_> {
        self.0.iter().find(|(known, _)| *known == name).map_or(Value::Null, |(_, value)| value.value())
    }
}

impl FromIterator<OwnedValue> for OwnedList {
    fn from_iter<I: IntoIterator<Item = OwnedValue>>(items: I) -> OwnedList {
        OwnedList(items.into_iter().collect())
    }
}

impl FromIterator<(&'static str, OwnedValue)> for OwnedObject {
    fn from_iter<I: IntoIterator<Item = (&'static str, OwnedValue)>>(members: I) -> OwnedObject {
        OwnedObject(members.into_iter().collect())
    }
}

impl List for OwnedList {
    fn for_each(&self, each: &mut dyn FnMut(Value<'_>)) {
        self.0.iter().for_each(|item| each(item.value()));
    }
}

impl Object for OwnedObject {
    fn for_each(&self, each: &mut dyn FnMut(&'static str, Value<'_>)) {
        self.0.iter().for_each(|(name, value)| each(name, value.value()));
    }
}

impl From<&(dyn List + '_)> for OwnedList {
    fn from(list: &(dyn List + '_)) -> OwnedList {
        let mut items = Vec::new();
        list.for_each(&mut |item| items.push(OwnedValue::from(item)));
        OwnedList(items)
    }
}

impl From<&(dyn Object + '_)> for OwnedObject {
    fn from(object: &(dyn Object + '_)) -> OwnedObject {
        let mut members = Vec::new();
        object.for_each(&mut |name, value| members.push((name, OwnedValue::from(value))));
        OwnedObject(members)
    }
}

impl From<Value<'_>> for OwnedValue {
    fn from(value: Value<'_>) -> OwnedValue {
        OwnedValue::Plain(match value {
            Value::Bytes(text) => return OwnedValue::Bytes(text.into()),
            Value::FirstOf(text, others) => return OwnedValue::FirstOf(text.into(), others),
            Value::Words(text) => return OwnedValue::Words(text.into()),
            Value::Owners(owners) => return OwnedValue::Owners(owners.into()),
            Value::List(list) => return OwnedValue::List(list.into()),
            Value::Object(object) => return OwnedValue::Object(object.into()),
            Value::Null => Value::Null,
            Value::Bool(yes) => Value::Bool(yes),
            Value::U64(n) => Value::U64(n),
            Value::I64(n) => Value::I64(n),
            Value::Thousandths(n) => Value::Thousandths(n),
            Value::Time(ns) => Value::Time(ns),
            Value::FarTime(time) => Value::FarTime(time),
            Value::Addr(addr) => Value::Addr(addr),
            Value::LinkAddr(link) => Value::LinkAddr(link),
            Value::Name(word) => Value::Name(word),
            Value::Guess(word) => Value::Guess(word),
            Value::Endpoint(addr, port) => Value::Endpoint(addr, port),
            Value::Prefix(addr, len) => Value::Prefix(addr, len),
            Value::Bits(bits, names) => Value::Bits(bits, names),
        })
    }
}

impl OwnedValue {
    /// The value. Does not allocate.
    pub fn value(&self) -> Value<'_> {
        match self {
            OwnedValue::Plain(value) => *value,
            OwnedValue::Bytes(text) => Value::Bytes(text),
            OwnedValue::FirstOf(text, others) => Value::FirstOf(text, *others),
            OwnedValue::Words(text) => Value::Words(text),
            OwnedValue::Owners(owners) => Value::Owners(owners),
            OwnedValue::List(list) => Value::List(list),
            OwnedValue::Object(object) => Value::Object(object),
        }
    }
}

/// Lists are equal if their items are. Allocates: only tests compare lists.
impl PartialEq for dyn List + '_ {
    fn eq(&self, other: &Self) -> bool {
        OwnedList::from(self) == OwnedList::from(other)
    }
}

/// Objects are equal if they have equal members in the same order. Allocates, like the comparison of lists.
impl PartialEq for dyn Object + '_ {
    fn eq(&self, other: &Self) -> bool {
        OwnedObject::from(self) == OwnedObject::from(other)
    }
}

impl fmt::Debug for dyn List + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut list = f.debug_list();
        self.for_each(&mut |item| {
            list.entry(&item);
        });
        list.finish()
    }
}

impl fmt::Debug for dyn Object + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut map = f.debug_map();
        self.for_each(&mut |name, value| {
            map.entry(&name, &value);
        });
        map.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Comm;

    struct Range(u16, u16);

    impl Object for Range {
        fn for_each(&self, each: &mut dyn FnMut(&'static str, Value<'_>)) {
            each("first", Value::U64(self.0.into()));
            each("last", Value::U64(self.1.into()));
        }
    }

    #[test]
    fn a_copy_equals_what_it_was_made_of() {
        let texts = vec!["a".to_owned(), String::new()];
        let ranges = vec![Range(1, 2), Range(3, 4)];
        let owners = [Owner { pid: 1, fd: 2, process: Comm::new(b"sshd"), started: 0 }];
        for value in [
            Value::Null,
            Value::Time(7),
            Value::Thousandths(1_500),
            Value::Words(b"a,b"),
            Value::Owners(&owners),
            Value::List(&texts),
            Value::List(&ranges),
            Value::Object(&owners[0]),
        ] {
            let copy = OwnedValue::from(value);
            assert_eq!(copy.value(), value);
            assert_eq!(OwnedValue::from(copy.value()), copy);
            assert_eq!(format!("{:?}", copy.value()), format!("{value:?}"));
        }
        assert_ne!(Value::List(&texts), Value::List(&texts[..1].to_vec()));
    }

    #[test]
    fn items_of_owners_are_objects() {
        let owners = [Owner { pid: 1, fd: 2, process: Comm::new(b"sshd"), started: 0 }; 2];
        let mut items = Vec::new();
        Value::Owners(&owners).for_each_item(&mut |item| items.push(format!("{item:?}")));
        assert_eq!(items.len(), 2);
        assert!(items[0].contains("\"pid\": U64(1)"), "{}", items[0]);
        Value::U64(3).for_each_item(&mut |_| unreachable!());
    }
}
