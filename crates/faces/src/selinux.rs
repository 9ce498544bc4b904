//! Detects SELinux.

use sys::Host;

/// True if SELinux is enabled by the test that libselinux uses: selinuxfs is mounted and a configuration file exists.
pub(super) fn enabled(host: &Host) -> bool {
    let mut text = Vec::new();
    let mounted = host.read_file("/proc/self/mounts", &mut text).is_ok() && is_mounted(&text);
    mounted && host.read_file("/etc/selinux/config", &mut text).is_ok()
}

/// True if `/proc/self/mounts` has a line `selinuxfs PLACE selinuxfs …`.
fn is_mounted(mounts: &[u8]) -> bool {
    mounts.split(|&b| b == b'\n').any(|line| line.split(|&b| b == b' ').nth(2) == Some(b"selinuxfs"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_file_system() {
        assert!(is_mounted(b"proc /proc proc rw 0 0\nselinuxfs /sys/fs/selinux selinuxfs rw 0 0\n"));
        assert!(!is_mounted(b"selinuxfs /x tmpfs rw 0 0\n\nx"));
    }
}
