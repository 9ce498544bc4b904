//! Release and machine of the running kernel.
use crate::syscall::call;

/// Release and machine as `uname -r -m` prints them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kernel {
    /// Such as `6.18.44`.
    pub release: Box<str>,
    /// Such as `x86_64`.
    pub machine: Box<str>,
}

impl Kernel {
    /// The running kernel; the texts are empty if uname fails.
    pub fn read_running() -> Kernel {
        // SAFETY: utsname holds character arrays, for which all bits zero is a value.
        let mut names: libc::utsname = unsafe { std::mem::zeroed() };
        // SAFETY: `names` is live and exclusively borrowed.
        let _ = call("uname", || unsafe { libc::uname(&raw mut names) }.into());
        Kernel { release: text(&names.release), machine: text(&names.machine) }
    }

    /// Major and minor number of the release; (0, 0) if it does not start with numbers.
    pub fn version(&self) -> (u32, u32) {
        let mut numbers = self.release.split(|c: char| !c.is_ascii_digit()).map(|digits| digits.parse().unwrap_or(0));
        (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
    }
}

/// Size of a memory page in bytes: 4096 on x86_64; 4096, 16,384 or 65,536 on aarch64.
pub fn page_bytes() -> usize {
    // SAFETY: sysconf takes an integer and touches no memory of ours.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

fn text(field: &[libc::c_char]) -> Box<str> {
    // c_char is i8 or u8, depending on the target; the bits are the same.
    #[allow(clippy::unnecessary_cast)]
    let bytes: Vec<u8> = field.iter().map(|c| *c as u8).take_while(|byte| *byte != 0).collect();
    crate::errno::escape_bytes(&bytes)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn a_page() {
        assert!(page_bytes().is_power_of_two() && page_bytes() >= 4096);
    }

    #[test]
    fn running_and_made_up() {
        let kernel = Kernel::read_running();
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
        assert_eq!(&*kernel.release, release.trim());
        assert!(kernel.version().0 >= 5);
        let version = |release: &str| Kernel { release: release.into(), machine: "".into() }.version();
        assert_eq!(version("6.18.44-fc"), (6, 18));
        assert_eq!(version("odd"), (0, 0));
        assert_eq!(version("99999999999.1"), (0, 1));
    }
}
