//! Settings of connection tracking: files of /proc/sys with one number each.
use record::rows::{CtSetting, CtSettings};
use sys::{Errno, Host, SysError, fs};

/// Folder of the settings. The files show the values of the reader's namespace.
pub const SETTINGS_DIR: &str = "/proc/sys/net/netfilter";

/// Reads the number in the file `name` of [`SETTINGS_DIR`] in the calling thread's namespace (inode `netns_id`). Takes
/// three system calls, 10 µs. Fails with EINVAL on a negative number or other text.
pub fn read_number(host: &Host, name: &str, netns_id: u64) -> Result<u64, SysError> {
    let path = format!("{SETTINGS_DIR}/{name}");
    let mut text = Vec::new();
    host.bytes(&format!("{path}@{netns_id}"), "", &mut text, |into| fs::read_file(&host.real_path(&path), into))?;
    let number = std::str::from_utf8(&text).ok().and_then(|text| text.trim().parse().ok());
    number.ok_or_else(|| SysError::new("read", path, Errno::INVAL))
}

/// Reads all settings of the namespace; those that this kernel lacks, or does not let us read, are `None`.
pub fn read_settings(host: &Host, netns_id: u64) -> CtSettings {
    let mut settings = CtSettings::default();
    for setting in CtSetting::ALL {
        settings.set(setting, read_number(host, setting.file(), netns_id).ok());
    }
    settings
}
