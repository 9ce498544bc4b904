//! Names of the functions that dropped packets, and of their callers.
use std::collections::BTreeSet;

use sys::Host;
use sys::symbols::Symbols;

/// Function names by address; each address is looked up once.
#[derive(Debug, Default)]
pub(crate) struct FunctionNames {
    symbols: Symbols,
    #[cfg(feature = "bpf")]
    program: OpenProgram,
}

/// The program with which the kernel writes function names.
#[cfg(feature = "bpf")]
#[derive(Debug, Default)]
enum OpenProgram {
    #[default]
    NotYet,
    Loaded(bpf::FunctionNames),
    /// The kernel refuses the program, or hides its names from this process.
    Refused,
}

impl FunctionNames {
    /// Finds the names of new addresses: with a program, some microseconds each, and the rest in /proc/kallsyms, in 50
    /// to 100 ms. Names that the kernel hides from this process stay unknown.
    pub(crate) fn find(&mut self, host: &Host, addresses: impl Iterator<Item = u64>) {
        let new: BTreeSet<u64> = addresses.filter(|address| self.symbols.is_new(*address)).collect();
        if new.is_empty() {
            return;
        }
        self.find_by_program(host, &new);
        self.symbols.find(host, new.into_iter());
    }

    #[cfg(feature = "bpf")]
    fn find_by_program(&mut self, host: &Host, addresses: &BTreeSet<u64>) {
        if matches!(self.program, OpenProgram::NotYet) {
            let loaded = if sys::symbols::are_shown(host) { bpf::FunctionNames::load().ok() } else { None };
            self.program = loaded.map_or(OpenProgram::Refused, OpenProgram::Loaded);
        }
        let OpenProgram::Loaded(program) = &self.program else { return };
        for address in addresses {
            let symbols = &mut self.symbols;
            if program.find(*address, |name, behind| symbols.add(*address, name, behind)).is_err() {
                // /proc/kallsyms has the remaining names.
                return;
            }
        }
    }

    #[cfg(not(feature = "bpf"))]
    fn find_by_program(&mut self, _: &Host, _: &BTreeSet<u64>) {}

    /// The name of the function at `address`, or empty.
    pub(crate) fn name(&self, address: u64) -> &[u8] {
        self.symbols.name(address)
    }

    /// True if the kernel hides the names of its functions from this process.
    pub(crate) fn are_hidden(&self) -> bool {
        self.symbols.are_hidden()
    }
}

#[cfg(all(test, feature = "bpf"))]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;

    /// For an address within every hundredth function of the kernel, the program and /proc/kallsyms return the same
    /// name.
    #[test]
    fn root_names_are_those_of_kallsyms() {
        testkit::require_root!();
        let Ok(program) = bpf::FunctionNames::load() else {
            testkit::print_loud("skipped: no program of the type syscall");
            return;
        };
        let host = Host::live();
        let text = std::fs::read_to_string("/proc/kallsyms").unwrap();
        let functions = text.lines().filter(|line| line.contains(" T ") || line.contains(" t "));
        let addresses: Vec<u64> = functions
            .step_by(100)
            .filter_map(|line| u64::from_str_radix(line.get(..16)?, 16).ok()?.checked_add(4))
            .collect();
        let mut all = Symbols::default();
        all.find(&host, addresses.iter().copied());
        let (mut same, mut other) = (0, Vec::new());
        for address in addresses {
            let (name, behind) = all.locate(address).unwrap();
            let mut told = false;
            program.find(address, |found, _| told = found == name).unwrap();
            if told {
                same += 1;
            } else {
                other.push((String::from_utf8_lossy(name).into_owned(), behind));
            }
        }
        // Several names can share an address.
        assert!(same > 100 && other.len() * 20 < same, "{same}, not {}: {other:?}", other.len());
    }
}
