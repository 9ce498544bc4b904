//! Memory that an entry takes on this kernel: the sizes of its slab objects.
//!
//! An entry is one object of the cache `nf_conntrack`. Some entries have a second object from the general caches, for
//! extensions: if they are counted, timed, labelled, reported in events, helped or masqueraded. The kernel allocates
//! 128 bytes at once (`NF_CT_EXT_PREALLOC` in net/netfilter/nf_conntrack_extend.c), enough for all extensions but a
//! helper's.
use sys::{Host, SysError, fs};

/// Minimum size of an allocation for extensions.
const EXTENSION_BYTES: u64 = 128;
/// Size with a helper, which does not fit into 128 bytes: header 16, helper 56 and some other extensions.
const HELPED_BYTES: u64 = 192;

/// Memory of one slab object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObjectSize {
    /// Size with alignment: `slab_size` of the cache.
    pub bytes: u64,
    /// Number of objects in one slab.
    pub per_slab: u64,
    /// Number of pages of one slab.
    pub pages: u64,
}

impl ObjectSize {
    /// Its share of a slab with pages of `page` bytes, rounded up: the memory of an object if slabs are full.
    pub fn share(&self, page: u64) -> u64 {
        match self.per_slab {
            0 => self.bytes,
            objects => self.pages.saturating_mul(page).div_ceil(objects).max(self.bytes),
        }
    }
}

/// The sizes of the objects of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlabSizes {
    /// `struct nf_conn`.
    pub entry: ObjectSize,
    /// Its extensions, without a helper.
    pub extension: ObjectSize,
    /// Its extensions, with a helper.
    pub helped: ObjectSize,
    /// Entries of all namespaces: objects in use. Includes up to a few dozen free objects that CPUs keep for reuse.
    pub in_use: Option<u64>,
}

impl SlabSizes {
    /// Reads the sizes from /sys/kernel/slab or /proc/slabinfo; only root can read either.
    pub fn read(host: &Host) -> Result<SlabSizes, SysError> {
        let by_sys = || -> Result<SlabSizes, SysError> {
            Ok(SlabSizes {
                entry: of_sys(host, "nf_conntrack")?,
                extension: of_sys(host, &format!("kmalloc-{EXTENSION_BYTES}"))?,
                helped: of_sys(host, &format!("kmalloc-{HELPED_BYTES}"))
                    .or_else(|_| of_sys(host, &format!("kmalloc-{}", HELPED_BYTES.next_power_of_two())))?,
                in_use: number_of_sys(host, "nf_conntrack", "objects").ok(),
            })
        };
        let error = match by_sys() {
            Ok(sizes) => return Ok(sizes),
            Err(error) => error,
        };
        let mut text = Vec::new();
        host.read_file("/proc/slabinfo", &mut text)?;
        of_slabinfo(&text).ok_or(error)
    }
}

fn of_sys(host: &Host, cache: &str) -> Result<ObjectSize, SysError> {
    let number = |file| number_of_sys(host, cache, file);
    let (bytes, per_slab, order) = (number("slab_size")?, number("objs_per_slab")?, number("order")?);
    // 10 is the kernel's MAX_PAGE_ORDER; larger numbers are invalid.
    Ok(ObjectSize { bytes, per_slab, pages: 1 << order.min(10) })
}

/// The first number of a file; the numbers per memory node follow it.
fn number_of_sys(host: &Host, cache: &str, file: &str) -> Result<u64, SysError> {
    let path = format!("/sys/kernel/slab/{cache}/{file}");
    let mut text = Vec::new();
    host.read_file(&path, &mut text)?;
    let text = std::str::from_utf8(&text).unwrap_or_default();
    let number = text.split_ascii_whitespace().next().and_then(|word| word.parse().ok());
    number.ok_or_else(|| SysError::new("read", path, sys::Errno::INVAL))
}

/// Parses lines of `name active total size per_slab pages …`.
pub(super) fn of_slabinfo(text: &[u8]) -> Option<SlabSizes> {
    let text = std::str::from_utf8(text).ok()?;
    let line = |cache: &str| text.lines().find(|line| line.split_ascii_whitespace().next() == Some(cache));
    let of = |cache: &str| {
        let line = line(cache)?;
        let mut numbers = line.split_ascii_whitespace().skip(3).map_while(|word| word.parse().ok());
        Some(ObjectSize { bytes: numbers.next()?, per_slab: numbers.next()?, pages: numbers.next()? })
    };
    let general = |bytes: u64| of(&format!("kmalloc-{bytes}"));
    let active = line("nf_conntrack")?.split_ascii_whitespace().nth(1)?;
    Some(SlabSizes {
        entry: of("nf_conntrack")?,
        extension: general(EXTENSION_BYTES)?,
        helped: general(HELPED_BYTES).or_else(|| general(HELPED_BYTES.next_power_of_two()))?,
        in_use: active.parse().ok(),
    })
}

/// True if a socket in the calling thread's namespace is subscribed to events of entries. In that case, with
/// `nf_conntrack_events` at 2, new entries of every namespace have extensions (the kernel keeps one number for all,
/// `nf_ctnetlink_has_listener`). Reads /proc/net/netlink; `None` if it cannot be read.
pub fn has_event_listener(host: &Host, netns_id: u64) -> Option<bool> {
    const PATH: &str = "/proc/thread-self/net/netlink";
    let mut text = Vec::new();
    host.bytes(&format!("{PATH}@{netns_id}"), "", &mut text, |into| fs::read_file(&host.real_path(PATH), into)).ok()?;
    Some(has_listener(&text))
}

/// Finds a socket of NETLINK_NETFILTER in one of the groups NFNLGRP_CONNTRACK_NEW (1) to _EXP_DESTROY (6).
pub(super) fn has_listener(text: &[u8]) -> bool {
    const NETFILTER: &str = "12";
    const GROUPS: u64 = 0x3f;
    let lines = text.split(|byte| *byte == b'\n').filter_map(|line| std::str::from_utf8(line).ok());
    lines.skip(1).any(|line| {
        let mut words = line.split_ascii_whitespace().skip(1);
        let protocol = words.next();
        let groups = words.nth(1).and_then(|word| u64::from_str_radix(word, 16).ok());
        protocol == Some(NETFILTER) && groups.is_some_and(|groups| groups & GROUPS != 0)
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn lines_of_slabinfo() {
        let text = b"slabinfo - version: 2.1\n# name <active_objs> <num_objs> <objsize> <objperslab> <pagesperslab>\n\
            nf_conntrack_expect 0 0 232 17 1 : tunables 0 0 0 : slabdata 0 0 0\n\
            nf_conntrack 77 100 320 25 2 : tunables 0 0 0 : slabdata 0 0 0\n\
            kmalloc-256 22480 22480 256 16 1 : tunables\nkmalloc-128 107456 107456 128 32 1 : tunables\n";
        let sizes = of_slabinfo(text).unwrap();
        assert_eq!(sizes.entry, ObjectSize { bytes: 320, per_slab: 25, pages: 2 });
        assert_eq!(sizes.in_use, Some(77));
        assert_eq!((sizes.extension.bytes, sizes.helped.bytes), (128, 256), "without kmalloc-192 the next one");
        assert_eq!(sizes.entry.share(4096), 328, "with its share of what is left over in a slab");
        assert_eq!(sizes.extension.share(4096), 128);
        assert_eq!(of_slabinfo(b"nf_conntrack 0 0 x"), None);
    }

    #[test]
    fn listeners() {
        let head = "sk               Eth Pid        Groups   Rmem\n";
        let with = |line: &str| has_listener(format!("{head}{line}\n").as_bytes());
        assert!(with("0000000006a05a7a 12  2211       00000007 0        0"));
        assert!(!with("0000000006a05a7a 12  0          00000000 0        0"));
        assert!(!with("0000000006a05a7a 15  1          00000001 0        0"));
        assert!(!with("garbled"));
    }
}
