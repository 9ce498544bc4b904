//! A terminal for tests: a program runs in a pseudo-terminal of a given size, and what it writes becomes lines.
//!
//! A [`Screen`] starts the program, types, resizes, and waits until the screen shows what it should. What stands on it
//! is in [`Grid`], which knows the sequences that netwren and common shells write and no others: an unknown one fails
//! the test that reads the screen.

mod grid;
mod sequences;
mod width;

pub use grid::Grid;
pub use sys::term::TermSize;

use crate::wait::wait_or_tell;
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use sys::pty::Pty;

/// True if there are terminals: a sandbox may have no /dev/ptmx.
pub fn are_there() -> bool {
    Pty::open(TermSize { rows: 1, columns: 1 }).is_ok()
}

/// A program and the terminal that it runs in. A program that still runs on drop is killed.
pub struct Screen {
    pty: Arc<Pty>,
    child: Child,
    grid: Arc<Mutex<Grid>>,
    reader: Option<JoinHandle<()>>,
}

impl Screen {
    /// Starts `command` in a terminal of so many rows and columns.
    ///
    /// # Panics
    /// When there are no terminals, or the program does not start.
    pub fn start(mut command: Command, rows: usize, columns: usize) -> Screen {
        let size = TermSize { rows, columns };
        let pty = Arc::new(Pty::open(size).unwrap_or_else(|e| panic!("no terminal: {e}")));
        pty.attach(&mut command).unwrap_or_else(|e| panic!("no terminal: {e}"));
        let child = command.spawn().unwrap_or_else(|e| panic!("cannot run {:?}: {e}", command.get_program()));
        // It holds copies of the program's end: the screen would never end.
        drop(command);
        let grid = Arc::new(Mutex::new(Grid::new(size)));
        let (into, from) = (Arc::clone(&grid), Arc::clone(&pty));
        let reader = std::thread::spawn(move || read_into(&from, &into));
        Screen { pty, child, grid, reader: Some(reader) }
    }

    /// What stands on the screen now.
    pub fn grid(&self) -> MutexGuard<'_, Grid> {
        self.grid.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the screen `shows` it.
    ///
    /// # Panics
    /// With the screen, when it never did.
    #[track_caller]
    pub fn wait(&self, what: &str, shows: impl Fn(&Grid) -> bool) {
        let told = || format!("\nscreen:\n{}", self.grid().text());
        wait_or_tell(what, told, || shows(&self.grid()));
    }

    /// Types.
    ///
    /// # Panics
    /// When the terminal is gone.
    pub fn type_text(&self, text: &str) {
        self.pty.master().write_all(text.as_bytes()).expect("a terminal takes what is typed");
    }

    /// Changes the size of the terminal.
    ///
    /// # Panics
    /// When it cannot be changed.
    pub fn resize(&self, rows: usize, columns: usize) {
        let size = TermSize { rows, columns };
        // The program may write for the new size as soon as it has it.
        let mut grid = self.grid();
        grid.resize(size);
        self.pty.resize(size).expect("a terminal takes a size");
    }

    /// The process id of the program.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends the program a signal by its name (`INT`).
    ///
    /// # Panics
    /// When kill(1) fails.
    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([&format!("-{name}"), &self.pid().to_string()]).status();
        assert!(sent.is_ok_and(|status| status.success()), "cannot send SIG{name}");
    }

    /// Waits until the program has ended and all that it wrote stands on the screen; returns how it ended.
    ///
    /// # Panics
    /// When it does not end.
    #[track_caller]
    pub fn wait_end(&mut self) -> ExitStatus {
        let mut ended = None;
        wait_or_tell("the end of the program", String::new, || {
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

/// Reads until the last program has closed the terminal (EIO), and answers what it asks of the terminal.
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
        screen.wait("it has read", |grid| grid.has("got hello"));
        screen.resize(30, 100);
        screen.wait("it has the new size", |grid| grid.has("30 100"));
        screen.signal("TERM");
        assert!(!screen.wait_end().success());
    }
}
