//! The alternate screen of the terminal that standard output is, and the way back from it, whatever ends the process.
//!
//! [`enter`] shows it, [`leave`] brings the normal one back. While it is shown, the signals that end or stop a process
//! at once (SIGTSTP, SIGQUIT, SIGABRT, the second SIGINT) and a panic leave it first; a process that goes on after a
//! stop shows it again. No mode of the terminal is changed, so none has to be put back: only SIGKILL leaves a terminal
//! on the alternate screen.
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Mutex, Once, PoisonError};

use crate::out::{Out, OutError};

// The terminal is one for the whole process, and signal handlers must find it.
static SHOWN: AtomicBool = AtomicBool::new(false);
/// True if what stands on the screen is not what was drawn last.
static STALE: AtomicBool = AtomicBool::new(false);
/// Messages for stderr that wait for the normal screen.
static HELD: Mutex<Vec<u8>> = Mutex::new(Vec::new());

/// The alternate screen (its cells are erased, the cursor of the normal one is kept) without a cursor.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[?25l\x1b[H\x1b[2J";
/// The attributes that text has by default, the cursor, the normal screen.
const LEAVE: &[u8] = b"\x1b[0m\x1b[?25h\x1b[?1049l";
/// Bytes of messages that are held; the first ones say what began to go wrong.
const HELD_MAX: usize = 16 << 10;

/// Shows the alternate screen; see the module for what leaves it, once [`catch_stops`](crate::signal::catch_stops) was
/// called.
pub fn enter() -> Result<(), OutError> {
    static HOOKED: Once = Once::new();
    HOOKED.call_once(|| {
        let say = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            leave_at_once();
            say(panic);
        }));
    });
    Out::stdout().write_all(ENTER)?;
    SHOWN.store(true, SeqCst);
    Ok(())
}

/// Brings the normal screen back, then prints the messages that waited for it. Without effect if it is shown already.
pub fn leave() {
    leave_at_once();
    let held = std::mem::take(&mut *HELD.lock().unwrap_or_else(PoisonError::into_inner));
    // A closed stderr is nobody's loss.
    let _ = Out::stderr().write_all(&held);
}

/// True while the alternate screen is shown.
pub fn is_shown() -> bool {
    SHOWN.load(SeqCst)
}

/// True if [`take_stale`] would be.
pub fn is_stale() -> bool {
    STALE.load(SeqCst)
}

/// True once after the screen was shown again, or its size has changed: all of it must be drawn.
pub fn take_stale() -> bool {
    STALE.swap(false, SeqCst)
}

/// Keeps a message for stderr until the normal screen is back; false if that is shown, or too much waits.
pub fn hold(message: &[u8]) -> bool {
    let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
    let is_held = is_shown() && held.len() + message.len() <= HELD_MAX;
    if is_held {
        held.extend_from_slice(message);
    }
    is_held
}

/// The screen has another size. For signal handlers.
pub(crate) fn set_stale() {
    STALE.store(true, SeqCst);
}

/// Brings the normal screen back; true if it was not shown. For signal handlers: one system call.
pub(crate) fn leave_at_once() -> bool {
    let was_shown = SHOWN.swap(false, SeqCst);
    if was_shown {
        put(LEAVE);
    }
    was_shown
}

/// Shows the alternate screen again. For signal handlers: one system call.
pub(crate) fn enter_again() {
    put(ENTER);
    SHOWN.store(true, SeqCst);
    set_stale();
}

fn put(sequence: &[u8]) {
    // SAFETY: the bytes are live; write is async-signal-safe. A terminal that has gone needs nothing.
    unsafe { libc::write(libc::STDOUT_FILENO, sequence.as_ptr().cast(), sequence.len()) };
}
