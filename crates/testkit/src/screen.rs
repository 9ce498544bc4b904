//! A terminal for tests: a program runs in a pseudo-terminal of a given size, and its output becomes lines.
//!
//! A [`Screen`] starts the program, types, resizes, and waits for expected content. [`Grid`] holds the content. It
//! supports only the sequences that netwren and common shells write; an unknown sequence fails the test that reads the
//! screen.

mod grid;
mod sequences;
mod width;

pub use grid::Grid;
pub use sys::term::TermSize;

use crate::wait::wait_or_panic;
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use sys::pty::Pty;

/// True if terminals are available: a sandbox may lack /dev/ptmx.
pub fn are_available() -> bool {
    Pty::open(TermSize { rows: 1, columns: 1 }).is_ok()
}

/// A program and its terminal. A program still running on drop is killed.
pub struct Screen {
    pty: Arc<Pty>,
    child: Child,
    grid: Arc<Mutex<Grid>>,
    reader: Option<JoinHandle<()>>,
}

impl Screen {
    /// Starts `command` in a terminal with this many rows and columns.
    ///
    /// # Panics
    /// If no terminal is available, or the program does not start.
    pub fn start(mut command: Command, rows: usize, columns: usize) -> Screen {
        let size = TermSize { rows, columns };
        let pty = Arc::new(Pty::open(size).unwrap_or_else(|e| panic!("no terminal: {e}")));
        pty.attach(&mut command).unwrap_or_else(|e| panic!("no terminal: {e}"));
        let child = command.spawn().unwrap_or_else(|e| panic!("cannot run {:?}: {e}", command.get_program()));
        // It holds copies of the program's end, which would keep the terminal open.
        drop(command);
        let grid = Arc::new(Mutex::new(Grid::new(size)));
        let (into, from) = (Arc::clone(&grid), Arc::clone(&pty));
        let reader = std::thread::spawn(move || read_into(&from, &into));
        Screen { pty, child, grid, reader: Some(reader) }
    }

    /// The current content of the screen.
    pub fn grid(&self) -> MutexGuard<'_, Grid> {
        self.grid.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until `shows` is true for the screen.
    ///
    /// # Panics
    /// With the screen's content, if it does not happen in time.
    #[track_caller]
    pub fn wait(&self, what: &str, shows: impl Fn(&Grid) -> bool) {
        let told = || format!("\nscreen:\n{}", self.grid().text());
        wait_or_panic(what, told, || shows(&self.grid()));
    }

    /// Types a text.
    ///
    /// # Panics
    /// If the terminal is closed.
    pub fn type_text(&self, text: &str) {
        self.pty.master().write_all(text.as_bytes()).expect("a terminal takes what is typed");
    }

    /// Changes the size of the terminal.
    ///
    /// # Panics
    /// If it cannot be changed.
    pub fn resize(&self, rows: usize, columns: usize) {
        let size = TermSize { rows, columns };
        // The grid is resized first, because the program may write for the new size immediately.
        let mut grid = self.grid();
        grid.resize(size);
        self.pty.resize(size).expect("a terminal takes a size");
    }

    /// The program's pid.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends the program a signal by its name (`INT`).
    ///
    /// # Panics
    /// If kill(1) fails.
    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([&format!("-{name}"), &self.pid().to_string()]).status();
        assert!(sent.is_ok_and(|status| status.success()), "cannot send SIG{name}");
    }

    /// Waits until the program has ended and its whole output is on the screen; returns its exit status.
    ///
    /// # Panics
    /// If it does not end.
    #[track_caller]
    pub fn wait_end(&mut self) -> ExitStatus {
        let mut ended = None;
        wait_or_panic("the end of the program", String::new, || {
            ended = self.child.try_wait().expect("a child can be waited for");
            ended.is_some()
        });
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
        ended.unwrap_or_else(|| ExitStatus::from_raw(0))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads until the last program has closed the terminal (EIO), and answers queries to the terminal.
fn read_into(pty: &Pty, grid: &Mutex<Grid>) {
    let mut bytes = [0; 16 << 10];
    while let Ok(n @ 1..) = pty.master().read(&mut bytes) {
        let answers = grid.lock().unwrap_or_else(PoisonError::into_inner).feed(&bytes[..n]);
        let _ = pty.master().write_all(&answers);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_draws_hears_what_is_typed_and_learns_of_the_size() {
        let mut command = Command::new("sh");
        let loop_until_winch =
            "stty -echo; trap 'stty size' WINCH; echo ready; read word; echo got $word; while :; do sleep 0.01; done";
        command.args(["-c", loop_until_winch]);
        let mut screen = Screen::start(command, 24, 80);
        screen.wait("it is there", |grid| grid.line(0) == "ready");
        screen.type_text("hello\n");
        screen.wait("it has read", |grid| grid.contains("got hello"));
        screen.resize(30, 100);
        screen.wait("it has the new size", |grid| grid.contains("30 100"));
        screen.signal("TERM");
        assert!(!screen.wait_end().success());
    }
}
