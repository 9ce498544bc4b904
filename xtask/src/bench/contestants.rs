//! Finds the programs of a task that are installed on this machine.

use super::tasks::{Entry, OURS, Shape, Task};
use std::path::{Path, PathBuf};

/// A program that takes part.
#[derive(Clone, Debug)]
pub(super) struct Contestant {
    pub(super) label: &'static str,
    pub(super) peer: bool,
    /// An earlier netwren instead of a peer; it is compared only with the same command of ours.
    pub(super) is_before: bool,
    pub(super) program: PathBuf,
    pub(super) args: Vec<&'static str>,
    pub(super) env: Vec<(&'static str, &'static str)>,
    pub(super) shape: Shape,
    /// See [`Entry`].
    pub(super) rounds: u32,
}

impl Contestant {
    /// The command line as a user would type it.
    pub(super) fn shown(&self) -> String {
        let name = self.program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let quoted = self.args.iter().map(|arg| if arg.contains(' ') { format!("'{arg}'") } else { (*arg).to_owned() });
        let watch = (self.rounds > 0).then(|| "--watch".to_owned());
        [name].into_iter().chain(quoted).chain(watch).collect::<Vec<_>>().join(" ")
    }
}

/// The netwren binaries that take part.
pub(crate) struct Binaries {
    pub(crate) ours: PathBuf,
    /// The binary from before a change; it replaces the peers.
    pub(crate) before: Option<PathBuf>,
}

/// The peers (or the earlier netwren), followed by our programs; and one line for each that is missing.
pub(super) fn present(task: &Task, rows: u64, binaries: &Binaries) -> (Vec<Contestant>, Vec<String>) {
    let binary = &binaries.ours;
    if let Some(before) = &binaries.before {
        let old = |entry| Contestant { peer: true, is_before: true, ..contestant(entry, false, before.clone()) };
        let new = task.ours.iter().map(|entry| contestant(entry, false, binary.clone()));
        return (task.ours.iter().map(old).chain(new).collect(), Vec::new());
    }
    let mut here = Vec::new();
    let mut skipped = Vec::new();
    for (entry, is_peer) in task.peers.iter().map(|e| (e, true)).chain(task.ours.iter().map(|e| (e, false))) {
        match find(entry, binary) {
            Some(program) => here.push(contestant(entry, is_peer, program)),
            None => skipped.push(format!("{} at {rows}: skipped {}: it is not installed", task.id, entry.program)),
        }
    }
    (here, skipped)
}

fn contestant(entry: &Entry, peer: bool, program: PathBuf) -> Contestant {
    // Use the layout of the installed ss, so that both print the same amount of text.
    let old = !peer && entry.shape == Shape::Ss && testkit::tool::version("ss").is_some_and(|v| (v.0, v.1) < (6, 15));
    let env = if old { vec![("NETWREN_SS_LAYOUT", "6.1")] } else { Vec::new() };
    Contestant {
        label: entry.label,
        peer,
        is_before: false,
        program,
        args: split(entry.args),
        env,
        shape: entry.shape,
        rounds: entry.rounds,
    }
}

fn find(entry: &Entry, binary: &Path) -> Option<PathBuf> {
    if entry.program == OURS {
        return Some(binary.to_owned());
    }
    let go = std::env::var_os("HOME").map(|home| Path::new(&home).join("go/bin").join(entry.program));
    testkit::tool::find(entry.program).or(go.filter(|file| file.is_file()))
}

/// Splits arguments at blanks; 'a filter of several words' stays one argument.
fn split(args: &'static str) -> Vec<&'static str> {
    let pieces = args.split('\'').enumerate();
    pieces.flat_map(|(i, piece)| if i % 2 == 1 { vec![piece] } else { piece.split_whitespace().collect() }).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn quotes_hold_words_together() {
        assert_eq!(split("sockets --no-owner 'proto = tcp'"), ["sockets", "--no-owner", "proto = tcp"]);
        assert_eq!(split("-atn"), ["-atn"]);
    }
}
