//! Generic netlink families and their ids, which change from boot to boot (include/uapi/linux/genetlink.h).
use std::ops::ControlFlow;

use sys::{Errno, Host, NetNs};

use crate::dump::{Query, dump, exchange};
use crate::error::DumpError;
use crate::{Attr, Attrs, Request, prefix};

/// NETLINK_GENERIC, include/uapi/linux/netlink.h.
pub const PROTOCOL: i32 = 16;
/// `struct genlmsghdr`: command u8, version u8, reserved u16.
pub const GENLMSGHDR: usize = 4;

/// The family that lists the others, and its commands.
const GENL_ID_CTRL: u16 = 16;
const CTRL_CMD_NEWFAMILY: u8 = 1;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
const CTRL_ATTR_MCAST_GROUPS: u16 = 7;
const CTRL_ATTR_MCAST_GRP_NAME: u16 = 1;
const CTRL_ATTR_MCAST_GRP_ID: u16 = 2;

/// A generic netlink family.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GenericFamily {
    /// Its id: the type of its messages.
    pub id: u16,
    /// Its name.
    pub name: Box<[u8]>,
    /// Names and ids of its multicast groups.
    pub groups: Vec<(Box<[u8]>, u32)>,
}

impl GenericFamily {
    /// The family that a message of `nlctrl` describes.
    pub fn decode(message: &[u8]) -> Option<GenericFamily> {
        let (mut id, mut name, mut groups) = (None, None, Vec::new());
        for attr in attrs_of(message, CTRL_CMD_NEWFAMILY)? {
            match attr.kind {
                CTRL_ATTR_FAMILY_ID => id = attr.u16().ok(),
                CTRL_ATTR_FAMILY_NAME => name = Some(attr.c_str().into()),
                CTRL_ATTR_MCAST_GROUPS => groups.extend(attr.nested().flatten().filter_map(|one| group(&one))),
                _ => {}
            }
        }
        Some(GenericFamily { id: id?, name: name?, groups })
    }
}

fn group(group: &Attr<'_>) -> Option<(Box<[u8]>, u32)> {
    let of = |kind| group.nested().flatten().find(move |attr| attr.kind == kind);
    Some((of(CTRL_ATTR_MCAST_GRP_NAME)?.c_str().into(), of(CTRL_ATTR_MCAST_GRP_ID)?.u32().ok()?))
}

/// The attributes of a message with this command; `None` if it has a different command.
pub fn attrs_of(message: &[u8], command: u8) -> Option<impl Iterator<Item = Attr<'_>>> {
    let attrs = message.get(GENLMSGHDR..).filter(|_| prefix::u8_at(message, 0) == Some(command))?;
    Some(Attrs::new(attrs).map_while(Result::ok))
}

/// Looks up the family called `name`, in `netns` or the calling thread's namespace; `None` if the kernel does not have
/// it there. `key` names the request on the tape. The kernel loads the family's module, if it has one.
pub fn family(host: &Host, name: &str, key: &str, netns: Option<&NetNs>) -> Result<Option<GenericFamily>, DumpError> {
    let mut request = Request::for_one(GENL_ID_CTRL);
    request.append(&[CTRL_CMD_GETFAMILY, 1, 0, 0]).attr(CTRL_ATTR_FAMILY_NAME, &[name.as_bytes(), b"\0"].concat());
    let what = "a family of generic netlink";
    let ask = Query { what, protocol: PROTOCOL, request: &request, key, note: "", netns };
    let mut found = None;
    let asked = exchange(host, &ask, |part| {
        found = found.take().or_else(|| GenericFamily::decode(part.payload));
        ControlFlow::Continue(())
    });
    match asked {
        Err(DumpError::Refused { errno: Errno::NOENT, .. }) => Ok(None),
        Err(error) => Err(error),
        Ok(_) => Ok(found),
    }
}

/// Finds the family as [`family`] does, but in the kernel's list of all families (about 30), so that no module is
/// loaded.
pub fn find_in_list(
    host: &Host,
    name: &str,
    key: &str,
    netns: Option<&NetNs>,
) -> Result<Option<GenericFamily>, DumpError> {
    let mut request = Request::dump(GENL_ID_CTRL);
    request.append(&[CTRL_CMD_GETFAMILY, 1, 0, 0]);
    let what = "families of generic netlink";
    let ask = Query { what, protocol: PROTOCOL, request: &request, key, note: "", netns };
    let mut found = None;
    dump(host, &ask, |part| {
        let family = || GenericFamily::decode(part.payload).filter(|family| *family.name == *name.as_bytes());
        found = found.take().or_else(family);
        ControlFlow::Continue(())
    })?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn families_of_this_kernel() {
        let host = Host::live();
        let ctrl = family(&host, "nlctrl", "ctrl", None).unwrap().unwrap();
        assert_eq!((ctrl.id, &*ctrl.name, &*ctrl.groups), (16, &b"nlctrl"[..], &[(b"notify"[..].into(), 16)][..]));
        assert_eq!(family(&host, "nobody", "nobody", None).unwrap(), None);
        assert_eq!(find_in_list(&host, "nlctrl", "list", None).unwrap(), Some(ctrl));
        assert_eq!(find_in_list(&host, "nobody", "list", None).unwrap(), None);
    }
}
