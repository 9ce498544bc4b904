//! Runs the netwren binary and collects its output.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, OnceLock};

/// Output and exit code of a run.
pub(crate) struct Ran {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) code: i32,
}

impl Ran {
    pub(crate) fn of(output: Output) -> Ran {
        Ran {
            stdout: String::from_utf8(output.stdout).expect("native output is UTF-8, whatever is in it"),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            code: output.status.code().unwrap_or(-1),
        }
    }

    /// The stdout of a run that must succeed.
    #[track_caller]
    pub(crate) fn ok(self) -> String {
        assert_eq!(self.code, 0, "exit code; stderr: {}", self.stderr);
        self.stdout
    }

    /// The stdout of a run that may lack owners, because some sandboxes forbid even root to read process 1, and drops
    /// by reason, which a program without BPF cannot count.
    #[track_caller]
    pub(crate) fn ok_but_owners(self) -> String {
        let words = [
            "netwren: owners of ",
            " no visible process: ",
            " have no owner here: ",
            "netwren: containers, pods and units are not shown ",
            "netwren: drops are not counted by reason: netwren was built without BPF",
            "netwren: resets of connections are not recorded: this netwren was built without BPF",
            // The line printed before a long wait.
            " (Ctrl-C ends it earlier)",
            "netwren: the recording holds no drops by reason",
            "netwren: a dropped packet that belongs to no known network namespace",
        ];
        let is_about_owners = |line: &str| words.iter().any(|words| line.contains(words));
        let only_owners = self.stderr.lines().all(is_about_owners);
        assert!(self.code == 0 || self.code == 3 && only_owners, "exit code {}; stderr: {}", self.code, self.stderr);
        self.stdout
    }

    #[track_caller]
    pub(crate) fn says(self, code: i32, words: &[&str]) {
        assert_eq!(self.code, code, "exit code; stderr: {}", self.stderr);
        for word in words {
            assert!(self.stderr.contains(word), "stderr lacks `{word}`: {}", self.stderr);
        }
    }
}

/// Calls `each` with every item of `what`, several at a time, because a run spends most of its time waiting.
///
/// # Panics
/// If a call panics, after all running calls have returned.
pub(crate) fn side_by_side<T: Send>(what: impl IntoIterator<Item = T, IntoIter: Send>, each: impl Fn(T) + Sync) {
    const AT_ONCE: usize = 4;
    let left = Mutex::new(what.into_iter());
    // A panic in `what` itself is a failure of the test.
    let next = || left.lock().expect("no iterator panicked").next();
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| std::iter::from_fn(next).for_each(&each));
        }
    });
}

/// The command without the caller's settings for colour and compatibility.
pub(crate) fn command(args: &[&str]) -> Command {
    let mut command = Command::new(testkit::program::netwren());
    clean(&mut command).args(args);
    command
}

pub(crate) fn clean(command: &mut Command) -> &mut Command {
    for name in ["NO_COLOR", "NETWREN_BUG_COMPATIBLE", "NETWREN_SS_LAYOUT", "NETWREN_FAULTS", "COLUMNS"] {
        command.env_remove(name);
    }
    command.env("LC_ALL", "C.UTF-8").env("TZ", "UTC")
}

/// The command for a child process that may become another user.
pub(crate) fn command_for_anyone(args: &[&str]) -> Command {
    let mut command = Command::new(anyones_binary());
    clean(&mut command).args(args);
    command
}

/// Runs `netwren ARGS` in the current namespaces.
pub(crate) fn netwren(args: &[&str]) -> Ran {
    ran(command(args))
}

/// Runs `netwren ARGS` in a lab.
pub(crate) fn netwren_in(lab: &testkit::netns::Lab, args: &[&str]) -> Ran {
    let mut command = lab.command(testkit::program::netwren());
    clean(&mut command).args(args);
    ran(command)
}

fn ran(mut command: Command) -> Ran {
    let output = testkit::report_if_late(&format!("{command:?}"), || command.output());
    Ran::of(output.expect("netwren starts"))
}

/// A copy of the binary that every user may run, because the build folder may be accessible only to root. It is named
/// like a lab's folder, so that the next run that creates a lab removes it.
fn anyones_binary() -> &'static Path {
    static COPY: OnceLock<PathBuf> = OnceLock::new();
    COPY.get_or_init(|| {
        let dir = std::env::temp_dir().join(format!("nw-binary-{}-0", std::process::id()));
        std::fs::create_dir_all(&dir).expect("a folder can be made");
        std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(0o755)).expect("it is ours");
        let copy = dir.join("netwren");
        // cp writes the copy, because a child process that another test starts would briefly inherit a file that this
        // process has open for writing, and executing it would fail (ETXTBSY).
        let copied = Command::new("cp").arg(testkit::program::netwren()).arg(&copy).status().expect("cp starts");
        assert!(copied.success(), "the binary can be copied");
        copy
    })
}
