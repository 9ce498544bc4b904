//! The settings of one plugin instance: taken by key, and what nobody took is complained of.

use super::file::{Complaint, Section, Setting};

/// What a section says to one plugin.
pub(super) struct Settings<'f> {
    settings: Vec<&'f Setting>,
    /// Line of the stack, for what is missing.
    stack_line: usize,
}

impl<'f> Settings<'f> {
    /// The settings of the instance `name`; none without a section of that name.
    pub(super) fn of(sections: &'f [Section], name: &str, stack_line: usize) -> Settings<'f> {
        let found = sections.iter().find(|section| section.name == name);
        Settings { settings: found.map_or(Vec::new(), |section| section.settings.iter().collect()), stack_line }
    }

    /// Takes a key; the last one counts where it stands twice.
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

    /// A text, or `default` without one.
    pub(super) fn text(&mut self, key: &str, default: &str) -> (usize, String) {
        match self.take(key) {
            Some(setting) => (setting.line, setting.value.clone()),
            None => (self.stack_line, default.to_owned()),
        }
    }

    /// A number within a range, or `default` without one; a wrong one is complained of.
    pub(super) fn number(&mut self, key: &str, default: u16, complaints: &mut Vec<Complaint>) -> u16 {
        let Some(setting) = self.take(key) else { return default };
        setting.value.parse().unwrap_or_else(|_| {
            let text = format!("{key} takes a number from 0 to 65535, not `{}`", setting.value);
            complaints.push(Complaint::new(setting.line, text));
            default
        })
    }

    /// A number that says yes unless it is 0.
    pub(super) fn is_on(&mut self, key: &str, default: bool, complaints: &mut Vec<Complaint>) -> bool {
        self.number(key, default.into(), complaints) != 0
    }

    /// Takes keys that tune the tool itself and mean nothing here.
    pub(super) fn ignore(&mut self, keys: &[&str]) {
        keys.iter().for_each(|key| _ = self.take(key));
    }

    /// A key that asks for something that is not here; 0 asks for nothing.
    pub(super) fn refuse(&mut self, key: &str, why: &str, complaints: &mut Vec<Complaint>) {
        if let Some(setting) = self.take(key).filter(|setting| setting.value != "0") {
            complaints.push(Complaint::new(setting.line, format!("{key}={}: {why}", setting.value)));
        }
    }

    /// Complains of the keys that are left.
    pub(super) fn end(self, plugin: &str, complaints: &mut Vec<Complaint>) {
        let unknown = |setting: &&Setting| Complaint::new(setting.line, format!("{plugin} has no `{}`", setting.key));
        complaints.extend(self.settings.iter().map(unknown));
    }
}
