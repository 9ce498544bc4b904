//! The settings of one plugin instance. Plugins take settings by key, and the rest is reported as unknown.

use super::file::{Complaint, Section, Setting};

/// The settings of a section for one plugin.
pub(super) struct Settings<'f> {
    settings: Vec<&'f Setting>,
    /// Line number of the stack, for messages about missing keys.
    stack_line: usize,
}

impl<'f> Settings<'f> {
    /// The settings of the instance `name`; empty if no section has that name.
    pub(super) fn of(sections: &'f [Section], name: &str, stack_line: usize) -> Settings<'f> {
        let found = sections.iter().find(|section| section.name == name);
        Settings { settings: found.map_or(Vec::new(), |section| section.settings.iter().collect()), stack_line }
    }

    /// Takes a key; if it occurs more than once, the last one counts.
    pub(super) fn take(&mut self, key: &str) -> Option<&'f Setting> {
        let mut found = None;
        self.settings.retain(|setting| {
            let is_it = setting.key == key;
            if is_it {
                found = Some(*setting);
            }
            !is_it
        });
        found
    }

    /// Takes a text value, else `default`; returns it with its line number.
    pub(super) fn text(&mut self, key: &str, default: &str) -> (usize, String) {
        match self.take(key) {
            Some(setting) => (setting.line, setting.value.clone()),
            None => (self.stack_line, default.to_owned()),
        }
    }

    /// Takes a number, else `default`; reports an invalid one.
    pub(super) fn number(&mut self, key: &str, default: u16, complaints: &mut Vec<Complaint>) -> u16 {
        let Some(setting) = self.take(key) else { return default };
        setting.value.parse().unwrap_or_else(|_| {
            let text = format!("{key} takes a number from 0 to 65535, not `{}`", setting.value);
            complaints.push(Complaint::new(setting.line, text));
            default
        })
    }

    /// Takes a boolean written as a number: 0 is false.
    pub(super) fn is_on(&mut self, key: &str, default: bool, complaints: &mut Vec<Complaint>) -> bool {
        self.number(key, default.into(), complaints) != 0
    }

    /// Takes and ignores keys that only tune the tool itself.
    pub(super) fn ignore(&mut self, keys: &[&str]) {
        keys.iter().for_each(|key| _ = self.take(key));
    }

    /// Rejects a key for an unsupported feature, unless its value is 0.
    pub(super) fn refuse(&mut self, key: &str, why: &str, complaints: &mut Vec<Complaint>) {
        if let Some(setting) = self.take(key).filter(|setting| setting.value != "0") {
            complaints.push(Complaint::new(setting.line, format!("{key}={}: {why}", setting.value)));
        }
    }

    /// Reports the remaining keys as unknown.
    pub(super) fn end(self, plugin: &str, complaints: &mut Vec<Complaint>) {
        let unknown = |setting: &&Setting| Complaint::new(setting.line, format!("{plugin} has no `{}`", setting.key));
        complaints.extend(self.settings.iter().map(unknown));
    }
}
