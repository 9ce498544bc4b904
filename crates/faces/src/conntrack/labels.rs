//! Label names from /etc/xtables/connlabel.conf.

use super::stop::Stop;
use super::want::wide_and_rest;
use crate::text::warn;
use std::rc::Rc;
use sys::{Errno, Host};

const FILE: &str = "/etc/xtables/connlabel.conf";
/// Number of bits that can have names; the kernel stores 128 of them.
const BITS_MAX: u64 = 1024;

/// Label names, indexed by bit.
#[derive(Debug, Default)]
pub(super) struct Labels {
    names: Vec<Option<Box<[u8]>>>,
}

impl Labels {
    /// Reads the file. If it is unreadable or has no names, prints the tool's message.
    pub(super) fn read(host: &Host) -> Option<Rc<Labels>> {
        let mut text = Vec::new();
        let why = match host.read_file(FILE, &mut text) {
            Err(error) => error.errno,
            Ok(()) => {
                let labels = Labels::parse(&text);
                if !labels.names.is_empty() {
                    return Some(Rc::new(labels));
                }
                Errno(0)
            }
        };
        warn(&format!("nfct_labelmap_new: {}\n", why.strerror()));
        None
    }

    /// Parses lines with a number and a name; ignores anything else.
    fn parse(text: &[u8]) -> Labels {
        let mut labels = Labels::default();
        for line in text.split(|&b| b == b'\n').filter(|line| !line.starts_with(b"#")) {
            let (bit, rest) = wide_and_rest(line);
            let name = rest.trim_ascii();
            let sane = name.iter().all(|&b| b.is_ascii_alphanumeric() || b == b' ' || b == b'-');
            if rest.len() == line.len() || bit >= BITS_MAX || name.is_empty() || !sane {
                continue;
            }
            let bit = bit as usize;
            let known = labels.names.iter().flatten().any(|one| one.as_ref() == name);
            if known || labels.names.get(bit).is_some_and(Option::is_some) {
                continue;
            }
            labels.names.resize_with(labels.names.len().max(bit + 1), || None);
            if let Some(place) = labels.names.get_mut(bit) {
                *place = Some(name.into());
            }
        }
        labels
    }

    /// The name of a bit.
    pub(super) fn name(&self, bit: u16) -> Option<&[u8]> {
        self.names.get(usize::from(bit))?.as_deref()
    }

    fn bit(&self, name: &[u8]) -> Option<usize> {
        self.names.iter().position(|one| one.as_deref() == Some(name))
    }
}

/// The bits for a comma-separated list of names, padded to whole 32-bit words.
pub(super) fn bits(labels: Option<&Labels>, list: &[u8]) -> Result<Vec<u8>, Stop> {
    let mut bits = Vec::new();
    for name in list.split(|&b| b == b',') {
        let bit = labels.and_then(|labels| labels.bit(name));
        let bit = bit.ok_or_else(|| Stop::about("unknown label '%'", name))?;
        set(&mut bits, bit);
    }
    Ok(bits)
}

fn set(bits: &mut Vec<u8>, bit: usize) {
    bits.resize(bits.len().max((bit / 32 + 1) * 4), 0);
    if let Some(byte) = bits.get_mut(bit / 8) {
        *byte |= 1 << (bit % 8);
    }
}

/// Adds `more` to `bits`.
pub(super) fn join(bits: &mut Option<Vec<u8>>, more: Vec<u8>) {
    let Some(bits) = bits else {
        *bits = Some(more);
        return;
    };
    bits.resize(bits.len().max(more.len()), 0);
    bits.iter_mut().zip(more).for_each(|(byte, more)| *byte |= more);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_file() {
        let labels = Labels::parse(b"# 1 no\n0 audit\n0x21  web server \n3\tx<y\n4 audit\n5\n1024 far\n0 again\n");
        assert_eq!((labels.name(0), labels.name(33)), (Some(&b"audit"[..]), Some(&b"web server"[..])));
        assert_eq!(labels.names.iter().flatten().count(), 2);
        assert_eq!(bits(Some(&labels), b"audit,web server").unwrap(), [1, 0, 0, 0, 2, 0, 0, 0]);
        assert!(bits(Some(&labels), b"audit,none").unwrap_err().text().contains("unknown label 'none'"));
        let mut all = Some(vec![1, 0, 0, 0]);
        join(&mut all, vec![2, 0, 0, 0, 1, 0, 0, 0]);
        assert_eq!(all.unwrap(), [3, 0, 0, 0, 1, 0, 0, 0]);
    }
}
