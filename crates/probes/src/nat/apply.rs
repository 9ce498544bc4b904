//! `--apply`: applies the advice, and keeps it across restarts.
//!
//! Limit and buckets apply to the whole host and can only be written in the first namespace. Each namespace has its
//! own timeouts; the file in /etc is for the namespace in which the host, or the container, starts.

use super::settings_file::{BEFORE, KEPT, write_kept};
use conntrack::in_each;
use conntrack::stats::SETTINGS_DIR;
use doctor::nat::{Judged, Setting, sizes_of, timeout_of};
use lookups::session::Session;
use record::Next;
use runtime::exit::Exit;
use runtime::outcome::Outcome;
use std::fmt;
use std::fs;
use std::io;
use std::path::Path;
use sys::NetnsTarget;

const OUT_OF_REACH: &str = "limit and buckets cannot be set from here: they belong to the host, and can be set only in \
                            its first network namespace (with CAP_NET_ADMIN)";
/// The kernel uses a timeout when a packet arrives, not when the setting is written.
const FROM_NOW_ON: &str =
    "a new timeout applies from an entry's next packet on: entries without traffic keep the old timeout";

/// The changes to make.
struct Todo<'s> {
    session: &'s Session,
    /// Changes of limit and buckets.
    sizes: Vec<Setting>,
    /// True if limit or buckets should change, but cannot be set from this namespace.
    out_of_reach: bool,
    timeouts: Vec<Timeout<'s>>,
    /// Advised timeouts that were not requested.
    left_out: Vec<Timeout<'s>>,
}

/// A timeout of a namespace.
struct Timeout<'s> {
    of: &'s Judged,
    setting: Setting,
}

impl Timeout<'_> {
    /// The namespace, if it is not the session's own.
    fn place(&self, session: &Session) -> String {
        match self.of.netns_id == session.netns_id() {
            true => String::new(),
            // Escaped here, because a line break in the name would split the message.
            false => format!(" in network namespace {}", sys::escape_bytes(&self.of.name)),
        }
    }
}

/// What to apply of the advice.
#[derive(Debug, Clone, Copy)]
pub struct ApplyOptions {
    /// True to make the changes instead of only describing them.
    pub yes: bool,
    /// True to apply timeouts as well.
    pub timeouts: bool,
    /// True to apply timeouts in all network namespaces.
    pub all_netns: bool,
}

/// Applies and keeps the advice, or without [`ApplyOptions::yes`] describes the changes.
pub fn apply(session: &Session, judged: &[Judged], options: ApplyOptions) -> Outcome {
    let todo = Todo::of(session, judged, options);
    let mut outcome = match todo.sizes.is_empty() && todo.timeouts.is_empty() {
        true if todo.out_of_reach => {
            Outcome::with_message(Exit::Failed, format!("{OUT_OF_REACH}; nothing was changed"))
        }
        true if options.timeouts => {
            Outcome::with_message(Exit::Ok, "nothing to set: limit, buckets and timeouts are already as recommended")
        }
        true => Outcome::with_message(Exit::Ok, "nothing to set: limit and buckets are already as recommended"),
        false if options.yes => todo.set(),
        false => Outcome { exit: Exit::Ok, messages: todo.preview() },
    };
    if todo.out_of_reach && outcome.exit == Exit::Ok {
        outcome.exit = Exit::Partial;
        outcome.messages.push(OUT_OF_REACH.to_owned());
    }
    let left = todo.left_out.iter();
    outcome.messages.extend(left.map(|one| {
        let (line, was) = (one.setting.line(), one.setting.was);
        let flags = if one.of.netns_id == session.netns_id() { "--timeouts" } else { "--all-netns --timeouts" };
        format!("{line}{} (is {was}) is also recommended: {flags} sets it", one.place(session))
    }));
    outcome
}

impl<'s> Todo<'s> {
    fn of(session: &'s Session, judged: &'s [Judged], options: ApplyOptions) -> Todo<'s> {
        // The calling thread's namespace: with --all-netns the caller's own.
        let is_first = judged.iter().any(|one| one.netns_id == session.netns_id() && one.evidence.is_first);
        let timeouts = judged.iter().filter_map(|of| Some(Timeout { of, setting: timeout_of(of)? }));
        // Timeouts belong to each namespace; other namespaces get them only with --all-netns.
        let is_asked = |of: &Judged| options.timeouts && (options.all_netns || of.netns_id == session.netns_id());
        let (timeouts, left_out) = timeouts.partition(|one| is_asked(one.of));
        let (sizes, beyond): (Vec<_>, Vec<_>) = sizes_of(judged).into_iter().partition(|_| is_first);
        Todo { session, sizes, out_of_reach: !beyond.is_empty(), timeouts, left_out }
    }

    /// The settings to keep in the file. Its timeouts are for process 1's namespace, because the file is read for that
    /// namespace; if process 1 is not accessible, they are for the first namespace.
    fn kept(&self) -> Vec<Setting> {
        let starts_in = sys::netns::inode_of(&self.session.host().real_path("/proc/1/ns/net")).ok();
        let is_kept = |of: &Judged| starts_in.map_or(of.evidence.is_first, |inode| inode == of.netns_id);
        let timeouts = self.timeouts.iter().filter(|one| is_kept(one.of)).map(|one| one.setting);
        self.sizes.iter().copied().chain(timeouts).collect()
    }

    /// A message on settings that are not kept.
    fn not_kept(&self, kept: usize) -> Option<String> {
        let lost = (self.sizes.len() + self.timeouts.len()).checked_sub(kept).filter(|lost| *lost > 0)?;
        let keep = self.session.host().etc_path(KEPT);
        let keep = keep.display();
        Some(format!(
            "timeouts that are lost at the next boot: {lost}; {keep} applies only to the namespace of process 1"
        ))
    }

    fn preview(&self) -> Vec<String> {
        let set = |setting: &Setting, place: &str| format!("would set {}{place} (is {})", setting.line(), setting.was);
        let mut messages: Vec<String> = self.sizes.iter().map(|setting| set(setting, "")).collect();
        messages.extend(self.timeouts.iter().map(|one| set(&one.setting, &one.place(self.session))));
        let kept = self.kept();
        messages.extend(self.not_kept(kept.len()));
        messages.push(match kept.is_empty() {
            true => "nothing was changed, --yes makes the changes".to_owned(),
            false => {
                let keep = self.session.host().etc_path(KEPT);
                format!("would write {}; nothing was changed, --yes makes the changes", keep.display())
            }
        });
        messages
    }

    fn set(&self) -> Outcome {
        let mut work = Work { session: self.session, done: Vec::new(), undo: Vec::new() };
        match self.work(&mut work) {
            Ok(()) => Outcome { exit: Exit::Ok, messages: work.messages() },
            Err(failed) => {
                let mut messages = work.messages();
                messages.push(failed.to_string());
                Outcome { exit: Exit::Failed, messages }
            }
        }
    }

    fn work(&self, work: &mut Work<'_>) -> Result<(), Failed> {
        for setting in &self.sizes {
            work.set(setting)?;
            work.note(setting, "", "");
        }
        let namespaces = self.session.namespaces();
        let targets = self.session.targets(namespaces.as_deref());
        for one in &self.timeouts {
            let target = targets.iter().find(|target| target.netns_id == one.of.netns_id);
            if let Some(target) = target {
                work.set_inside(target, &one.setting, &one.place(self.session))?;
            }
        }
        let kept = self.kept();
        if !kept.is_empty() {
            work.keep(&kept)?;
        }
        work.done.extend(self.not_kept(kept.len()));
        if !self.timeouts.is_empty() {
            work.done.push(FROM_NOW_ON.to_owned());
        }
        Ok(())
    }
}

/// The changes made so far, and the commands that undo them.
struct Work<'s> {
    session: &'s Session,
    done: Vec<String>,
    undo: Vec<String>,
}

impl Work<'_> {
    /// Writes a setting in the calling thread's namespace.
    fn set(&self, setting: &Setting) -> Result<(), Failed> {
        let path = self.session.host().real_path(&format!("{SETTINGS_DIR}/{}", setting.file));
        fs::write(&path, setting.becomes.to_string())
            .map_err(|error| Failed { what: format!("set {}", setting.line()), why: error.to_string() })
    }

    fn note(&mut self, setting: &Setting, place: &str, enter: &str) {
        self.done.push(format!("set {}{place}", setting.line()));
        self.undo.push(format!("{enter}sysctl -w {}", setting.with(setting.was)));
    }

    /// Writes a setting in a namespace. A namespace that no longer exists is skipped.
    fn set_inside(&mut self, target: &NetnsTarget<'_>, setting: &Setting, place: &str) -> Result<(), Failed> {
        let mut result = None;
        let entered = in_each(self.session.host(), std::slice::from_ref(target), &mut |_, _| {
            result = Some(self.set(setting));
            Ok(Next::Stop)
        });
        if let Err(error) = entered {
            return Err(Failed { what: format!("set {}{place}", setting.line()), why: error.to_string() });
        }
        match result {
            None => self.done.push(format!("{} was not set{place}: it no longer exists", setting.name())),
            Some(set) => {
                set?;
                self.note(setting, place, &entering(target));
            }
        }
        Ok(())
    }

    /// Writes the file.
    fn keep(&mut self, kept: &[Setting]) -> Result<(), Failed> {
        let (keep, before) = (self.session.host().etc_path(KEPT), self.session.host().etc_path(BEFORE));
        let had_one = write_kept(kept, &keep, &before)
            .map_err(|error: io::Error| Failed { what: format!("write {}", keep.display()), why: error.to_string() })?;
        self.undo.push(match had_one {
            true => format!("mv {} {}", before.display(), keep.display()),
            false => format!("rm {}", keep.display()),
        });
        self.done.push(format!("wrote {}", keep.display()));
        Ok(())
    }

    fn messages(self) -> Vec<String> {
        let mut messages = self.done;
        if !self.undo.is_empty() {
            messages.push(format!("undo: {}", self.undo.join(" && ")));
        }
        messages
    }
}

/// The shell prefix for a command that must run in a namespace. A path that needs escaping is replaced by the path
/// of a process inside; without one it is shown escaped, and the user has to know the real path.
fn entering(target: &NetnsTarget<'_>) -> String {
    let shown = |path: &Path| sys::escape_bytes(path.as_os_str().as_encoded_bytes());
    let is_plain = |path: &&Path| path.to_str() == Some(&*shown(path));
    let path = match (target.is_here, target.path, target.pid) {
        (true, ..) | (_, None, None) => return String::new(),
        (_, path, Some(pid)) if path.filter(is_plain).is_none() => format!("/proc/{pid}/ns/net").into(),
        (_, path, _) => shown(path.unwrap_or(Path::new(""))),
    };
    format!("nsenter --net='{}' ", path.replace('\'', "'\\''"))
}

/// A failed change.
struct Failed {
    what: String,
    why: String,
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {}: {}", self.what, self.why)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;
    use lookups::session::SessionTarget;

    #[test]
    fn root_a_timeout_of_another_namespace_is_set_there() {
        testkit::require_root!();
        let lab = testkit::netns::Lab::new("applyinside");
        let session = Session::open(SessionTarget::default()).ok().unwrap();
        let (path, netns_id) = (lab.path(), lab.run_inside(|| sys::netns::current_inode().unwrap()));
        let target = NetnsTarget { netns_id, is_here: false, path: Some(&path), pid: None };
        let read = || fs::read_to_string(format!("{SETTINGS_DIR}/nf_conntrack_udp_timeout")).unwrap();
        let (own, was) = (read(), lab.run_inside(read).trim().parse().unwrap());
        let setting = Setting { file: "nf_conntrack_udp_timeout", was, becomes: 17 };
        let mut work = Work { session: &session, done: Vec::new(), undo: Vec::new() };
        work.set_inside(&target, &setting, " there").ok().unwrap();
        assert_eq!((lab.run_inside(read).trim(), read()), ("17", own));
        let messages = work.messages().join("\n");
        let undo = format!("undo: nsenter --net='{}' sysctl -w {}", path.display(), setting.with(was));
        assert_eq!(messages, format!("set net.netfilter.nf_conntrack_udp_timeout=17 there\n{undo}"));
    }

    #[test]
    fn a_name_is_one_word_for_the_shell() {
        let target = |is_here, path| NetnsTarget { netns_id: 1, is_here, path, pid: Some(7) };
        assert_eq!(entering(&target(false, Some(std::path::Path::new("/a 'b")))), "nsenter --net='/a '\\''b' ");
        assert_eq!(entering(&target(false, None)), "nsenter --net='/proc/7/ns/net' ");
        assert_eq!(entering(&target(true, None)), "");
        let hostile = Some(std::path::Path::new("/a\n\u{1b}[1m"));
        assert_eq!(entering(&target(false, hostile)), "nsenter --net='/proc/7/ns/net' ");
        let alone = NetnsTarget { pid: None, ..target(false, hostile) };
        assert_eq!(entering(&alone), "nsenter --net='/a\\n\\u{1b}[1m' ");
    }
}
