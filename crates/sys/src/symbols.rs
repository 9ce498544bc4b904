//! Names of the kernel's functions (/proc/kallsyms, 10 MB of text), only for the requested addresses.
use std::collections::HashMap;
use std::ops::ControlFlow;

use crate::{Blocks, FileBlocks, Host, Lines, SysError};

/// Maximum length of a line that is kept: the kernel's names are shorter than 512 bytes (KSYM_NAME_LEN).
const LINE_MAX: usize = 640;

/// Names by address. Each address is looked up once; if it has no name, that is remembered.
#[derive(Debug, Default)]
pub struct Symbols {
    /// Start and full name of the function.
    names: HashMap<u64, (u64, Box<[u8]>)>,
    /// True if the kernel hides its addresses from this process.
    hidden: bool,
}

impl Symbols {
    /// The function at `address` without the compiler's suffixes, or an empty name.
    pub fn name(&self, address: u64) -> &[u8] {
        self.names.get(&address).map_or(&[], |(_, name)| strip_suffixes(name))
    }

    /// The full name of the function at `address`, and the offset of the address from its start.
    pub fn locate(&self, address: u64) -> Option<(&[u8], u64)> {
        let (begin, name) = self.names.get(&address).filter(|(_, name)| !name.is_empty())?;
        Some((name, address.saturating_sub(*begin)))
    }

    /// True if the kernel hid the addresses of all functions.
    pub fn are_hidden(&self) -> bool {
        self.hidden
    }

    /// True if this address has not been looked up yet.
    pub fn is_new(&self, address: u64) -> bool {
        address != 0 && !self.hidden && !self.names.contains_key(&address)
    }

    /// Adds a function known from elsewhere for `address`: its name, and the offset of the address from its start.
    pub fn add(&mut self, address: u64, name: &[u8], behind: u64) {
        self.names.insert(address, (address.saturating_sub(behind), name.into()));
    }

    /// Looks up the names of addresses that have not been looked up yet. Reads nothing without new ones; otherwise it
    /// takes 50 to 100 ms, mostly in the kernel. If the file cannot be read, names count as hidden.
    pub fn find(&mut self, host: &Host, addresses: impl Iterator<Item = u64>) {
        if self.hidden {
            return;
        }
        let new = addresses.filter(|address| self.is_new(*address));
        let mut search = Search::new(new.collect());
        if search.addresses.is_empty() {
            return;
        }
        self.hidden = read(host, &mut search).is_err() || search.is_hidden();
        search.finish(|address, begin, name| {
            self.names.insert(address, (begin, name.into()));
        });
    }
}

/// True if the kernel shows function addresses to this process. Reads the beginning of the file.
pub fn are_shown(host: &Host) -> bool {
    let mut search = Search::new(Vec::new());
    let Ok(mut file) = FileBlocks::open(&host.proc_path("kallsyms")) else { return false };
    if let Ok(Some(block)) = file.next() {
        block.split(|byte| *byte == b'\n').for_each(|line| search.line(line));
    }
    search.functions > search.at_zero
}

/// Passes every line of the file to the search.
fn read(host: &Host, search: &mut Search) -> Result<(), SysError> {
    let mut file = FileBlocks::open(&host.proc_path("kallsyms"))?;
    let mut lines = Lines::new(LINE_MAX);
    let mut each = |line: &[u8]| {
        search.line(line);
        ControlFlow::Continue(())
    };
    while let Some(block) = file.next()? {
        let _ = lines.split_lines(block, &mut each);
    }
    let _ = lines.finish(&mut each);
    Ok(())
}

/// One pass over the lines of /proc/kallsyms: finds for each address the last function that starts before it.
#[derive(Debug)]
pub struct Search {
    /// The addresses, ascending.
    addresses: Vec<u64>,
    /// For each address the best function so far: its start and name.
    found: Vec<(u64, Box<[u8]>)>,
    functions: u64,
    at_zero: u64,
}

impl Search {
    /// A search for these addresses.
    pub fn new(mut addresses: Vec<u64>) -> Search {
        addresses.sort_unstable();
        addresses.dedup();
        let found = vec![Default::default(); addresses.len()];
        Search { addresses, found, functions: 0, at_zero: 0 }
    }

    /// Parses `ffffffff81000000 T name`, for a module followed by a tab and `[module]`. Ignores other lines.
    pub fn line(&mut self, line: &[u8]) {
        let mut words = line.split(|byte| matches!(byte, b' ' | b'\t')).filter(|word| !word.is_empty());
        let (Some(address), Some(kind), Some(name)) = (words.next(), words.next(), words.next()) else { return };
        let (Some(begin), true) = (hex(address), matches!(kind, b"T" | b"t" | b"W" | b"w")) else { return };
        self.functions += 1;
        self.at_zero += u64::from(begin == 0);
        // A return address may be the first byte after a function that never returns: the call was before it.
        let at = self.addresses.partition_point(|address| *address <= begin);
        if let Some((best, of)) = self.found.get_mut(at).filter(|(best, _)| begin > *best) {
            (*best, *of) = (begin, name.into());
        }
    }

    /// True if there were functions and all of them were at address 0.
    pub fn is_hidden(&self) -> bool {
        self.functions > 0 && self.functions == self.at_zero
    }

    /// Calls `each` with each address, the start of its function and its name; the name is empty if no function starts
    /// before it.
    pub fn finish(mut self, mut each: impl FnMut(u64, u64, &[u8])) {
        let mut before: (u64, Box<[u8]>) = Default::default();
        for (address, found) in self.addresses.iter().zip(&mut self.found) {
            // A function that starts before a lower address also starts before this one.
            if found.0 < before.0 {
                *found = before.clone();
            }
            each(*address, found.0, &found.1);
            before = std::mem::take(found);
        }
    }
}

/// The name without the compiler's suffixes: `.isra.0`, `.constprop.0`, `.part.0`, `.cold`.
fn strip_suffixes(name: &[u8]) -> &[u8] {
    let end = name.iter().skip(1).position(|byte| *byte == b'.').map_or(name.len(), |dot| dot + 1);
    name.get(..end).unwrap_or(name)
}

fn hex(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok().filter(|text| text.len() <= 16)?;
    u64::from_str_radix(text, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn search(text: &str, addresses: &[u64]) -> (Vec<(u64, String)>, bool) {
        let mut search = Search::new(addresses.to_vec());
        text.lines().for_each(|line| search.line(line.as_bytes()));
        let (mut found, hidden) = (Vec::new(), search.is_hidden());
        search.finish(|address, _, name| {
            found.push((address, String::from_utf8_lossy(strip_suffixes(name)).into_owned()))
        });
        (found, hidden)
    }

    const TEXT: &str = "0000000000000010 A percpu\n0000000000000100 T first\n0000000000000180 d data\n\
        0000000000000200 t second.isra.0.cold\nnonsense\n0000000000000900 t last\t[a_module]\n\
        0000000000000300 W .third\n";

    #[test]
    fn an_address_is_in_the_last_function_that_begins_before_it() {
        let (found, hidden) = search(TEXT, &[0x901, 0x105, 0x1ff, 0x200, 0x205, 0x250, 0x300, 0x301, 0x50, 0x205]);
        let names: Vec<(u64, &str)> = found.iter().map(|(address, name)| (*address, name.as_str())).collect();
        let first = [(0x50, ""), (0x105, "first"), (0x1ff, "first"), (0x200, "first"), (0x205, "second")];
        let last = [(0x250, "second"), (0x300, "second"), (0x301, ".third"), (0x901, "last")];
        assert_eq!(names, [&first[..], &last[..]].concat());
        assert!(!hidden);
    }

    #[test]
    fn hidden_addresses_are_no_functions() {
        let (found, hidden) = search("0000000000000000 T a\n0000000000000000 t b\n", &[5]);
        assert!(hidden && found[0].1.is_empty(), "{found:?}");
        assert!(!search("", &[5]).1);
    }

    #[test]
    fn functions_of_the_running_kernel() {
        let mut symbols = Symbols::default();
        symbols.find(&Host::live(), [1, u64::MAX].into_iter());
        assert_eq!(symbols.name(1), b"");
        let nowhere = Host::with_roots("/nonexistent".into(), "/sys".into(), "/etc".into());
        let mut symbols = Symbols::default();
        symbols.find(&nowhere, [1].into_iter());
        assert!(symbols.are_hidden());
    }
}
