//! Sockets that a run takes over from an earlier one: from the service manager, or from a running netwren that hands
//! them over.
use super::leaving::{Leaving, groups};
use super::numbers::{self, Numbers};
use export::Predecessor;
use nflog::{InheritedGroup, LogStream, NextNumber, Succession};
use runtime::messages::print_message;
use runtime::run_group::Part;
use runtime::run_state::RunState;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use sys::service::{StoredFile, keeps_files, memory_file, take_stored_files};

/// Prefix of the names of stored sockets; `GROUP-INODE` follows.
const PREFIX: &str = "netwren-log-";

/// The sockets and numbers left by an earlier run.
pub struct Inheritance {
    run: Arc<RunState>,
    netns_id: u64,
    sockets: Vec<InheritedGroup>,
    /// Groups whose sockets the service manager already stores.
    kept: Vec<u16>,
    /// The file with the numbers.
    numbers: Option<File>,
    is_numbers_kept: bool,
    /// The run that hands over its sockets, until it has ended.
    predecessor: Option<Predecessor>,
}

impl Inheritance {
    /// Takes the service manager's files for groups of the namespace `netns_id`. Reports and closes files that do not
    /// belong to this run.
    pub fn kept(run: &Arc<RunState>, netns_id: u64) -> Inheritance {
        let mut found = Inheritance {
            run: Arc::clone(run),
            netns_id,
            sockets: Vec::new(),
            kept: Vec::new(),
            numbers: None,
            is_numbers_kept: false,
            predecessor: None,
        };
        if run.manager().is_none() {
            return found;
        }
        // The service manager hands its files to the first run of a process only.
        let mut files = run.part().map(Part::take_files).unwrap_or_default();
        files.extend(take_stored_files());
        files.into_iter().for_each(|file| found.add(file));
        found.number();
        found
    }

    fn add(&mut self, kept: StoredFile) {
        let StoredFile { name, file } = kept;
        if name == numbers::NAME {
            self.numbers = Some(File::from(file));
            self.is_numbers_kept = true;
            return;
        }
        let parts = name.strip_prefix(PREFIX).and_then(|rest| rest.split_once('-'));
        let parts = parts.and_then(|(group, inode)| Some((group.parse::<u16>().ok()?, inode.parse::<u64>().ok()?)));
        let why = match parts {
            None => "is not one of netwren's",
            Some((_, inode)) if inode != self.netns_id => "belongs to another network namespace",
            Some((group, _)) => {
                self.sockets.push(InheritedGroup { group, file, next: None });
                return self.kept.push(group);
            }
        };
        let shown = sys::escape_bytes(name.as_bytes());
        print_message(&format!("the service manager stored a descriptor `{shown}` that {why}: closed"));
        self.forget(&name);
    }

    /// Assigns the stored numbers to the stored sockets.
    fn number(&mut self) {
        let numbers = match self.numbers.as_ref().map(numbers::read) {
            None => return,
            Some(Ok(numbers)) => numbers,
            Some(Err(error)) => {
                print_message(&format!("the service manager stored `{}`, but {error}", numbers::NAME));
                self.forget(numbers::NAME);
                self.numbers = None;
                self.is_numbers_kept = false;
                return;
            }
        };
        let netns_id = self.netns_id;
        for socket in &mut self.sockets {
            let own = |number: &&NextNumber| (number.group, number.netns_id) == (socket.group, netns_id);
            // A group without records starts at 0.
            socket.next = Some(numbers.iter().find(own).map_or(0, |number| number.next));
        }
    }

    /// Requests the sockets of the run that answers at `control`; the error is a complete sentence. If no run answers,
    /// nothing is taken over.
    pub fn take_over(&mut self, control: &Path, stop: &dyn Fn() -> bool) -> Result<(), String> {
        let asked = Predecessor::request_sockets(control, stop).map_err(|error| format!("--take-over: {error}"))?;
        let Some((predecessor, left)) = asked else {
            print_message(&format!("--take-over: no run answers on {}: binding the groups again", control.display()));
            return Ok(());
        };
        for (line, file) in left {
            let number = numbers::line(&line).filter(|number| number.netns_id == self.netns_id);
            let Some(NextNumber { group, next, .. }) = number else {
                print_message(&format!(
                    "--take-over: `{}` is not a group of this network namespace",
                    sys::escape_bytes(line.as_bytes())
                ));
                continue;
            };
            self.sockets.retain(|socket| socket.group != group);
            self.kept.retain(|kept| *kept != group);
            self.sockets.push(InheritedGroup { group, file, next: Some(next) });
        }
        self.predecessor = Some(predecessor);
        Ok(())
    }

    /// The parts of the stream that are taken over, and those left for the next run.
    pub fn succession<'h>(&mut self) -> Succession<'h> {
        let is_kept = self.run.manager().is_some() && keeps_files();
        if is_kept && self.numbers.is_none() {
            self.numbers = memory_file(c"netwren-log-numbers").map_err(|error| print_message(&error.to_string())).ok();
        }
        let numbers = self.numbers.as_ref().and_then(|file| file.try_clone().ok()).filter(|_| is_kept);
        let run = Arc::clone(&self.run);
        let leaving = Leaving { run, numbers: numbers.map(Numbers::new), netns_id: self.netns_id };
        Succession {
            inherited: std::mem::take(&mut self.sockets),
            keep_bound: Arc::clone(self.run.keep_bound()),
            turns: self.run.counts_turns().then(|| self.run.count_reader()),
            hand_over: Some(Box::new(leaving)),
        }
    }

    /// Reports the sockets taken over, stores missing ones with the service manager, and waits until an earlier run
    /// that handed over has ended: until then, the outputs belong to that run.
    pub fn settle(&mut self, stream: &LogStream<'_>, stop: &dyn Fn() -> bool) {
        for (group, why) in stream.refused_groups() {
            print_message(&format!("the socket of group {group} is not taken over: {why}"));
            self.forget(&self.name(*group));
        }
        let taken = stream.taken_groups();
        if !taken.is_empty() {
            print_message(&format!("continues with {} where the earlier run stopped", groups(taken.iter().copied())));
        }
        self.store(stream, &taken);
        self.run.allow_hand_over();
        if let Some(predecessor) = self.predecessor.take() {
            if !predecessor.wait_for_end(stop) {
                print_message("the earlier run has not ended: shared resources may be refused");
            }
        }
    }

    fn name(&self, group: u16) -> String {
        format!("{PREFIX}{group}-{}", self.netns_id)
    }

    fn store(&mut self, stream: &LogStream<'_>, taken: &[u16]) {
        if self.run.manager().is_none() || !keeps_files() {
            return;
        }
        let mut is_whole = true;
        for (group, socket) in stream.sockets() {
            let is_kept = self.kept.contains(&group) && taken.contains(&group);
            is_whole &= is_kept || self.keep(&self.name(group), socket);
            self.keep_in_process(&self.name(group), socket);
        }
        if let Some(file) = &self.numbers {
            if !self.is_numbers_kept {
                self.keep(numbers::NAME, file.as_fd());
            }
            self.keep_in_process(numbers::NAME, file.as_fd());
        }
        self.run.keep_bound().store(is_whole, Relaxed);
    }

    /// Stores a file with the service manager. FDPOLL=0 keeps it from closing a socket after an error.
    fn keep(&self, name: &str, file: BorrowedFd<'_>) -> bool {
        let told = self.tell(&format!("FDSTORE=1\nFDNAME={name}\nFDPOLL=0\n"), &[file]);
        told.map_err(|error| print_message(&format!("{name} is not stored for a restart: {error}"))).is_ok()
    }

    /// Keeps a file for the next run of an agent's part: while the service manager stores a socket, its group cannot be
    /// bound again.
    fn keep_in_process(&self, name: &str, file: BorrowedFd<'_>) {
        let Some(part) = self.run.part() else { return };
        match file.try_clone_to_owned() {
            Ok(file) => part.keep_file(StoredFile { name: name.to_owned(), file }),
            Err(error) => print_message(&format!("{name} is not kept for a restart of [{}]: {error}", part.name())),
        }
    }

    fn forget(&self, name: &str) {
        let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b':');
        if is_name {
            let _ = self.tell(&format!("FDSTOREREMOVE=1\nFDNAME={name}\n"), &[]);
        }
    }

    fn tell(&self, text: &str, files: &[BorrowedFd<'_>]) -> Result<(), sys::SysError> {
        self.run.manager().map_or(Ok(()), |manager| manager.send(text, files))
    }
}
