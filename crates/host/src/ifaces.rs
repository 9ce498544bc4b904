//! Names of network interfaces, from rtnetlink.
use std::ops::ControlFlow;
use std::sync::OnceLock;

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use netlink::{AnswerMessage, Attrs, DumpEnd, Query, Request, prefix};
use record::{Key, Lookup, Value};
use sys::{Errno, Host, NetNs};

use crate::HostError;
use crate::namespaces::Namespaces;

/// NETLINK_ROUTE, include/uapi/linux/netlink.h.
const PROTOCOL: i32 = 0;

// include/uapi/linux/rtnetlink.h
const RTM_NEWLINK: u16 = 16;
const RTM_GETLINK: u16 = 18;
/// Leaves out the counters, which are three quarters of an answer.
const RTEXT_FILTER_SKIP_STATS: u32 = 1 << 3;

// include/uapi/linux/if_link.h
const IFLA_IFNAME: u16 = 3;
const IFLA_EXT_MASK: u16 = 29;

/// `struct ifinfomsg`: family u8, pad u8, type u16, index s32, flags u32, change u32.
const IFINFOMSG: usize = 16;
const INDEX_AT: usize = 4;

/// Maximum number of attempts at a dump that the kernel interrupted because an interface came or went.
const TRIES: u32 = 3;

/// Maximum number of interfaces kept, of all namespaces together: hosts with tens of thousands exist. Others have no
/// name.
///
/// Bound: interfaces of all namespaces. Beyond: further interfaces are shown by number. By: anyone who may make
/// interfaces.
const IFACES_MAX: usize = 1 << 20;

/// Names of interfaces, by namespace and index. Namespace 0 stands for an unknown one: see [`Ifaces::common_name`].
#[derive(Debug, Default)]
pub struct Ifaces {
    names: HashMap<(u64, u32), Box<[u8]>, RandomState>,
    common: OnceLock<CommonNames>,
    /// `None` for a live run. A replay only reads the recording; true if that holds the interfaces of every namespace.
    replayed: Option<bool>,
}

/// Interface index → name; `None` if namespaces have different names for the index.
type CommonNames = HashMap<u32, Option<Box<[u8]>>, RandomState>;

impl Ifaces {
    /// An empty list of interfaces.
    pub fn new() -> Ifaces {
        Ifaces::default()
    }

    /// The interfaces of the calling thread's namespace, whose inode is `netns`. See [`Ifaces::add`].
    pub fn read(host: &Host, netns: u64) -> Result<Ifaces, HostError> {
        let mut ifaces = Ifaces::new();
        ifaces.add(host, netns, None)?;
        Ok(ifaces)
    }

    /// Creates an empty list, on which only [`Ifaces::common_name`] is useful.
    pub fn of_host(host: &Host) -> Ifaces {
        Ifaces { replayed: host.is_replay().then_some(false), ..Ifaces::default() }
    }

    /// Returns the index and name of each interface in a namespace.
    pub fn of(&self, netns: u64) -> impl Iterator<Item = (u32, &[u8])> {
        self.names.iter().filter(move |((at, _), _)| *at == netns).map(|((_, index), name)| (*index, &**name))
    }

    /// Adds the interfaces of the namespace with inode `netns`: of `inside`, or of the calling thread's.
    ///
    /// One dump, 3 µs per interface. Needs no privilege, except to enter another namespace. After an error the names
    /// received before it are kept.
    pub fn add(&mut self, host: &Host, netns: u64, inside: Option<&NetNs>) -> Result<(), HostError> {
        self.replayed = host.is_replay().then(|| Namespaces::are_recorded(host));
        let mut request = Request::dump(RTM_GETLINK);
        request.append(&[0; IFINFOMSG]).attr_u32(IFLA_EXT_MASK, RTEXT_FILTER_SKIP_STATS);
        let key = format!("links@{netns}");
        let ask =
            Query { what: "interfaces", protocol: PROTOCOL, request: &request, key: &key, note: "", netns: inside };
        for _ in 0..TRIES {
            if !self.dump(host, &ask, netns)?.interrupted {
                break;
            }
        }
        Ok(())
    }

    fn dump(&mut self, host: &Host, ask: &Query<'_>, netns: u64) -> Result<DumpEnd, HostError> {
        let end = netlink::dump(host, ask, |part| {
            if let Some((index, name)) = link(part) {
                if self.names.len() < IFACES_MAX {
                    self.names.insert((netns, index), name.into());
                }
            }
            ControlFlow::Continue(())
        })?;
        Ok(end)
    }

    /// The name of an interface; `None` if it appeared after the read.
    pub fn name(&self, netns: u64, index: u32) -> Option<&[u8]> {
        self.names.get(&(netns, index)).map(|name| &**name)
    }

    /// The name of an interface in an unknown namespace: the name that all namespaces with this index have for it;
    /// `None` if the names differ, or if a namespace is unreadable.
    ///
    /// The first call reads every namespace of the host: a link for each process, and a dump for each namespace.
    pub fn common_name(&self, index: u32) -> Option<&[u8]> {
        if index == 0 {
            return None;
        }
        let common = self.common.get_or_init(|| match self.replayed {
            None => read_common().unwrap_or_default(),
            Some(true) => common_names(&self.names),
            Some(false) => CommonNames::default(),
        });
        common.get(&index)?.as_deref()
    }

    /// The index of the interface `name` in a namespace.
    pub fn index(&self, netns: u64, name: &[u8]) -> Option<u32> {
        let found = self.names.iter().find(|(key, text)| key.0 == netns && ***text == *name);
        found.map(|(key, _)| key.1)
    }
}

impl Lookup for Ifaces {
    fn value(&self, key: Key) -> Value<'_> {
        match key {
            Key::Pair(0, index) => Value::text(self.common_name(index)),
            Key::Pair(netns, index) => Value::text(self.name(netns, index)),
            _ => Value::Null,
        }
    }
}

/// Reads from the running kernel even while recording: a recording contains the names of the namespaces that were read.
/// `None` if a namespace is unreadable, because its interfaces could have any name.
fn read_common() -> Option<CommonNames> {
    let host = Host::live();
    let own = crate::own_netns::current(&host).ok()?;
    let namespaces = Namespaces::read(&host).ok().filter(|found| found.hidden() == 0)?;
    let mut all = Ifaces::new();
    for namespace in namespaces.list() {
        let inside = match namespace.open(&host, own) {
            Ok(inside) => inside,
            // The namespace was removed after it was found, with its interfaces.
            Err(error) if error.errno == Errno::NOENT => continue,
            Err(_) => return None,
        };
        all.add(&host, namespace.inode, inside.as_ref()).ok()?;
    }
    Some(common_names(&all.names))
}

fn common_names(names: &HashMap<(u64, u32), Box<[u8]>, RandomState>) -> CommonNames {
    let mut common = CommonNames::default();
    for ((_, index), name) in names {
        let known = common.entry(*index).or_insert_with(|| Some(name.clone()));
        if known.as_ref().is_some_and(|known| known != name) {
            *known = None;
        }
    }
    common
}

// Index and name; `None` for other messages and for ones that are too short, of which only the name is lost.
fn link<'b>(part: &AnswerMessage<'b>) -> Option<(u32, &'b [u8])> {
    if part.kind != RTM_NEWLINK {
        return None;
    }
    let index = prefix::u32_at(part.payload, INDEX_AT)?;
    let attrs = Attrs::new(part.payload.get(IFINFOMSG..)?);
    let name = attrs.flatten().find(|attr| attr.kind == IFLA_IFNAME)?.c_str();
    (!name.is_empty()).then_some((index, name))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use testkit::netns::Lab;

    #[test]
    fn loopback_is_everywhere() {
        let ifaces = Ifaces::read(&Host::live(), 7).unwrap();
        assert_eq!(ifaces.name(7, 1), Some(&b"lo"[..]));
        assert_eq!(ifaces.index(7, b"lo"), Some(1));
        assert_eq!(ifaces.value(Key::Pair(7, 1)), Value::Bytes(b"lo"));
        assert_eq!(ifaces.value(Key::Pair(8, 1)), Value::Null);
        assert_eq!(ifaces.value(Key::Id(1)), Value::Null);
    }

    #[test]
    fn messages_that_make_no_sense_have_no_name() {
        let part = |kind, payload: &'static [u8]| AnswerMessage { kind, flags: 0, payload, block: 0 };
        assert_eq!(link(&part(RTM_NEWLINK, &[0; 15])), None);
        assert_eq!(link(&part(RTM_NEWLINK, &[0; 16])), None);
        assert_eq!(link(&part(3, &[0; 64])), None);
        const NAMED: &[u8] = &[0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 6, 0, 3, 0, b'e', 0, 0, 0];
        if cfg!(target_endian = "little") {
            assert_eq!(link(&part(RTM_NEWLINK, NAMED)), Some((9, &b"e"[..])));
            assert_eq!(link(&part(RTM_NEWLINK, &NAMED[..20])), None);
        }
    }

    #[test]
    fn names_that_namespaces_share() {
        let names =
            [((7, 1), "lo"), ((8, 1), "lo"), ((7, 2), "eth0"), ((8, 2), "wg0"), ((9, 2), "eth0"), ((8, 3), "x")];
        let common = common_names(&names.map(|(at, name)| (at, name.as_bytes().into())).into_iter().collect());
        let name = |index: u32| common.get(&index).and_then(|name| name.as_deref());
        assert_eq!((name(1), name(2), name(3), name(4)), (Some(&b"lo"[..]), None, Some(&b"x"[..]), None));
    }

    /// The name of an interface in an unknown namespace. Tests that run at the same time also create interfaces, but
    /// none with this number.
    #[test]
    fn root_an_interface_of_a_namespace_that_is_not_known() {
        testkit::require_root!();
        const INDEX: u32 = 1_700_001_913;
        let labs = ["ifacesany1", "ifacesany2"].map(Lab::new);
        let add = |lab: &Lab, name: &str| {
            lab.ip(&["link", "add", name, "index", &INDEX.to_string(), "type", "veth", "peer", "name", "peer0"]);
        };
        add(&labs[0], "first0");
        let ifaces = Ifaces::read(&Host::live(), 7).unwrap();
        let name = |index: u32| ifaces.value(Key::Pair(0, index));
        assert_eq!((name(INDEX), name(1), name(0)), (Value::Bytes(b"first0"), Value::Bytes(b"lo"), Value::Null));
        add(&labs[1], "other0");
        let ifaces = Ifaces::read(&Host::live(), 7).unwrap();
        assert_eq!(ifaces.value(Key::Pair(0, INDEX)), Value::Null, "it may be either");
    }

    #[test]
    fn root_another_namespace_and_its_replay() {
        testkit::require_root!();
        let lab = Lab::new("ifaces");
        for n in 0..40 {
            lab.ip(&["link", "add", &format!("a{n}"), "type", "veth", "peer", "name", &format!("b{n}")]);
        }
        let netns = NetNs::open_path(&lab.path()).unwrap();
        let tmp = tempfile::tempdir().unwrap();
        let tape = tmp.path().join("tape");
        let host = Host::live().recording(&tape).unwrap();
        let mut live = Ifaces::new();
        live.add(&host, netns.inode(), Some(&netns)).unwrap();
        host.finish().unwrap();
        assert_eq!(live.names.len(), 81);
        let index = live.index(netns.inode(), b"b39").unwrap();
        let mut replayed = Ifaces::new();
        replayed.add(&Host::open_replay(&tape).unwrap(), netns.inode(), None).unwrap();
        assert_eq!(replayed.name(netns.inode(), index), Some(&b"b39"[..]));
        assert_eq!(replayed.names.len(), 81);
        let error = replayed.add(&Host::open_replay(&tape).unwrap(), 1, None).unwrap_err();
        assert_eq!(error.to_string(), "cannot replay links@1: not in the recording");
    }
}
