//! The terminal's alternate screen on standard output, and leaving it however the process ends.
//!
//! [`enter`] shows the alternate screen, [`leave`] returns to the normal screen. While it is shown, a panic and every
//! signal that ends or stops a process immediately leave it first; a process that continues after a stop shows it
//! again. While it is shown and standard input is a terminal in the foreground ([`has_keys`]), keys are read as they
//! are pressed and not echoed; leaving the screen restores the terminal's mode. Only SIGKILL and SIGSTOP, which no
//! process can catch, leave a terminal on the alternate screen and without echo: `reset` repairs it.
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Mutex, Once, OnceLock, PoisonError};

use crate::out::{Out, OutError};

// The terminal exists once per process, and signal handlers must find it.
static IS_SHOWN: AtomicBool = AtomicBool::new(false);
/// True if the screen no longer shows what was drawn last.
static STALE: AtomicBool = AtomicBool::new(false);
/// Mode of the terminal on standard input before keys were read.
static USUAL_MODE: OnceLock<libc::termios> = OnceLock::new();
static KEYS_ARE_GONE: AtomicBool = AtomicBool::new(false);
/// Time of the last check for keys, on the monotonic clock.
static LAST_CHECK_NS: AtomicU64 = AtomicU64::new(0);
/// Interval between checks for keys while rows are read.
const CHECK_INTERVAL_NS: u64 = 50_000_000;
/// Messages for stderr that are held until the normal screen is back.
static HELD_MESSAGES: Mutex<Vec<u8>> = Mutex::new(Vec::new());

/// Shows the alternate screen without a cursor: erases its cells and saves the cursor of the normal screen.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[?25l\x1b[H\x1b[2J";
/// Restores the default text attributes, the cursor and the normal screen.
const LEAVE: &[u8] = b"\x1b[0m\x1b[?25h\x1b[?1049l";
/// Bound: bytes of messages that wait while rounds are drawn on a terminal. Beyond: further messages are printed at
/// once, into the drawing. By: anyone whose actions cause messages; names in messages are bounded.
const HELD_BYTES_MAX: usize = 16 << 10;

/// Shows the alternate screen; the module's comment lists what leaves it, once
/// [`catch_stops`](crate::signal::catch_stops) has been called.
pub fn enter() -> Result<(), OutError> {
    static HOOKED: Once = Once::new();
    HOOKED.call_once(|| {
        let say = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            restore_at_once();
            say(panic);
        }));
    });
    Out::stdout().write_all(ENTER)?;
    if let Some(mode) = terminal_mode() {
        USUAL_MODE.get_or_init(|| mode);
    }
    IS_SHOWN.store(true, SeqCst);
    read_keys();
    Ok(())
}

/// True if pressing `q` ends the run: the screen is shown and keys are read.
pub fn has_keys() -> bool {
    is_shown() && USUAL_MODE.get().is_some() && !KEYS_ARE_GONE.load(SeqCst)
}

/// Stops checking for keys, because the terminal was closed.
pub(crate) fn stop_checking_keys() {
    KEYS_ARE_GONE.store(true, SeqCst);
}

/// True if `q` was pressed since the last call. Checks at most once every 50 ms.
pub fn take_quit() -> bool {
    if !has_keys() {
        return false;
    }
    let (now_ns, last_ns) = (crate::clock::monotonic_ns(), LAST_CHECK_NS.load(SeqCst));
    now_ns.saturating_sub(last_ns) >= CHECK_INTERVAL_NS && {
        LAST_CHECK_NS.store(now_ns, SeqCst);
        take_key()
    }
}

/// True if `q` was pressed, and nothing else. Reads all pending keys: pasted text that contains `q` must not end the
/// run and leave its rest to the shell, which would run it. Costs two system calls while no key is pending.
pub(crate) fn take_key() -> bool {
    let (mut keys, mut is_quit) = ([0u8; 256], None);
    while let Some(count) = read_pending(&mut keys) {
        let is_q = keys.get(..count).is_some_and(|keys| keys.iter().all(|key| matches!(key, b'q' | b'Q')));
        is_quit = Some(is_q && is_quit != Some(false));
    }
    is_quit == Some(true)
}

/// Reads keys into `keys` if some are pending; returns their number.
fn read_pending(keys: &mut [u8]) -> Option<usize> {
    let mut poll = libc::pollfd { fd: libc::STDIN_FILENO, events: libc::POLLIN, revents: 0 };
    // SAFETY: one live pollfd; a timeout of 0 does not wait.
    let ready = crate::syscall::call("poll", || unsafe { libc::poll(&raw mut poll, 1, 0) }.into());
    if !ready.is_ok_and(|ready| ready > 0) || poll.revents & libc::POLLIN == 0 {
        return None;
    }
    // SAFETY: `keys` is live, exclusively borrowed and `keys.len()` bytes long.
    let read = crate::syscall::call("read", || unsafe {
        libc::read(libc::STDIN_FILENO, keys.as_mut_ptr().cast(), keys.len()) as i64
    });
    read.ok().and_then(|count| usize::try_from(count).ok()).filter(|count| *count > 0)
}

/// The terminal mode of standard input, if it is a terminal and this process may read from it.
fn terminal_mode() -> Option<libc::termios> {
    // SAFETY: termios holds integers, for which all-zero bits are valid; both calls take a number, and tcgetattr also
    // takes a live, exclusively borrowed termios.
    unsafe {
        let mut mode: libc::termios = std::mem::zeroed();
        let is_ours = libc::tcgetpgrp(libc::STDIN_FILENO) == libc::getpgrp();
        (is_ours && libc::tcgetattr(libc::STDIN_FILENO, &raw mut mode) == 0).then_some(mode)
    }
}

/// Makes keys readable as soon as they are pressed. Callable from signal handlers: one system call. Works only in the
/// foreground.
fn read_keys() {
    let Some(mut mode) = USUAL_MODE.get().copied() else { return };
    mode.c_lflag &= !(libc::ICANON | libc::ECHO);
    mode.c_cc[libc::VMIN] = 1;
    mode.c_cc[libc::VTIME] = 0;
    set_mode(&mode);
}

fn set_mode(mode: &libc::termios) {
    // SAFETY: tcsetattr reads one live termios and is async-signal-safe. A closed terminal needs no mode.
    unsafe { libc::tcsetattr(libc::STDIN_FILENO, libc::TCSANOW, mode) };
}

/// Returns to the normal screen, then prints the held messages. Does nothing if the normal screen is already shown.
pub fn leave() {
    restore_at_once();
    let held = std::mem::take(&mut *HELD_MESSAGES.lock().unwrap_or_else(PoisonError::into_inner));
    // Nothing is lost if stderr is closed.
    let _ = Out::stderr().write_all(&held);
}

/// True while the alternate screen is shown.
pub fn is_shown() -> bool {
    IS_SHOWN.load(SeqCst)
}

/// True if [`take_stale`] would return true.
pub fn is_stale() -> bool {
    STALE.load(SeqCst)
}

/// True once after the screen was shown again or its size changed: all of it must be redrawn.
pub fn take_stale() -> bool {
    STALE.swap(false, SeqCst)
}

/// Holds a message for stderr until the normal screen is back; false if the normal screen is shown or the buffer is
/// full.
pub fn hold_message(message: &[u8]) -> bool {
    let mut held = HELD_MESSAGES.lock().unwrap_or_else(PoisonError::into_inner);
    let is_held = is_shown() && held.len() + message.len() <= HELD_BYTES_MAX;
    if is_held {
        held.extend_from_slice(message);
    }
    is_held
}

/// Records that the screen size changed. For signal handlers.
pub(crate) fn set_stale() {
    STALE.store(true, SeqCst);
}

/// Restores the normal screen and the terminal's mode; returns true if the alternate screen was shown. For signal
/// handlers: two system calls.
pub(crate) fn restore_at_once() -> bool {
    let was_shown = IS_SHOWN.swap(false, SeqCst);
    if was_shown {
        put(LEAVE);
        USUAL_MODE.get().iter().for_each(|mode| set_mode(mode));
    }
    was_shown
}

/// Shows the alternate screen again. For signal handlers: one system call.
pub(crate) fn show_again() {
    put(ENTER);
    read_keys();
    IS_SHOWN.store(true, SeqCst);
    set_stale();
}

fn put(sequence: &[u8]) {
    // SAFETY: the bytes are live; write is async-signal-safe. An error is ignored because the terminal is then closed.
    unsafe { libc::write(libc::STDOUT_FILENO, sequence.as_ptr().cast(), sequence.len()) };
}
