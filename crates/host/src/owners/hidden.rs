//! Checks whether /proc hides the processes of others (mount option `hidepid`).
use sys::{Host, fs};

use crate::mounts::mounts;

/// True if the mount of /proc hides processes: `hidepid=2` or `invisible`, 4 or `ptraceable`. (1, `noaccess`, shows
/// them but makes them unreadable: those are counted.)
pub(super) fn hides(host: &Host) -> bool {
    let mut text = Vec::new();
    let root = host.proc_path("");
    let root = root.as_os_str().as_encoded_bytes();
    fs::read_file(&host.proc_path("self/mountinfo"), &mut text).is_ok() && hides_in(&text, root)
}

fn hides_in(mountinfo: &[u8], root: &[u8]) -> bool {
    const HIDING: [&[u8]; 4] = [b"hidepid=2", b"hidepid=4", b"hidepid=invisible", b"hidepid=ptraceable"];
    let root = root.strip_suffix(b"/").unwrap_or(root);
    let seen = mounts(mountinfo).filter(|mount| *mount.place == *root).last();
    seen.is_some_and(|mount| mount.kind == b"proc" && HIDING.iter().any(|option| mount.has_option(option)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_mount_options() {
        let line = |options: &str| format!("21 1 0:20 / /proc rw,relatime shared:12 - proc proc {options}\n");
        let others = "22 1 0:21 / /sys rw - sysfs sysfs rw,hidepid=2\n23 1 0:5 / /dev rw - devtmpfs udev rw\n";
        for (options, expected) in [
            ("rw", false),
            ("rw,hidepid=1", false),
            ("rw,hidepid=2", true),
            ("rw,gid=5,hidepid=invisible", true),
            ("rw,hidepid=ptraceable", true),
            ("rw,hidepid=20", false),
        ] {
            assert_eq!(hides_in(format!("{}{others}", line(options)).as_bytes(), b"/proc/"), expected, "{options}");
        }
        assert!(!hides_in(format!("{}{}", line("rw,hidepid=2"), line("rw")).as_bytes(), b"/proc"));
        assert!(!hides_in(b"21 1 0:20 / /proc\n", b"/proc"));
        assert!(!hides_in(b"", b"/proc"));
    }
}
