//! Signals as flags: an interruption ends a run cleanly, with its totals.
//!
//! The handler only stores a number and writes to an eventfd. Waits poll that eventfd, so a signal that arrives just
//! before the wait begins still ends it.
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering::SeqCst};

use crate::alternate_screen;
use crate::clock;
use crate::errno::{Errno, SysError};
use crate::syscall::call;

// Signals belong to the process, so their flags do too: the only global state besides the counters.
static REQUESTED: AtomicI32 = AtomicI32::new(0);
static REQUESTED_NS: AtomicU64 = AtomicU64::new(0);
static RESIZED: AtomicBool = AtomicBool::new(false);
static HANGUP_REOPENS: AtomicBool = AtomicBool::new(false);
/// True if SIGHUP was ignored at the start, as with nohup(1).
static HANGUP_ENDS_NOTHING: AtomicBool = AtomicBool::new(false);
static HAD_TERMINAL: AtomicBool = AtomicBool::new(false);
static HANGUPS: AtomicU64 = AtomicU64::new(0);
static REPORTS: AtomicU64 = AtomicU64::new(0);
static FLUSHES: AtomicU64 = AtomicU64::new(0);
static CONTINUATIONS: AtomicU64 = AtomicU64::new(0);
static POKE: AtomicI32 = AtomicI32::new(-1);

/// Signals within this time count as one request: timeout(1) sends its signal to the process and to its group, and a
/// shell may do the same.
const ONE_REQUEST_NS: u64 = 200_000_000;

/// Proof that the handlers are installed.
#[derive(Debug, Clone, Copy)]
pub struct SignalHandlers(());

/// The reason why a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WakeReason {
    /// The deadline has passed.
    Deadline,
    /// SIGINT, SIGTERM or SIGHUP: end the run.
    Interrupted,
    /// SIGWINCH: the terminal's size changed.
    Resized,
}

/// True once a signal has requested the end of the run, for code without [`SignalHandlers`]: loops that the kernel
/// could keep busy. Never true if no handler was installed. No cost.
pub fn is_requested() -> bool {
    REQUESTED.load(SeqCst) != 0
}

/// Ends the run like Ctrl-C if `q` was pressed on the alternate screen. Checks at most once every 50 ms.
pub fn end_on_quit() {
    if alternate_screen::take_quit() {
        request(libc::SIGINT, clock::monotonic_ns());
    }
}

/// Makes SIGHUP request that files be reopened ([`hangup_count`]) instead of ending the run, as log rotation and
/// service managers expect. If the process had a terminal and loses it, SIGHUP still ends the run, unless it was
/// ignored at the start.
pub fn reopen_on_hangup() {
    HAD_TERMINAL.store(has_terminal(), SeqCst);
    HANGUP_REOPENS.store(true, SeqCst);
}

/// Number of requests to reopen files since [`reopen_on_hangup`]. No cost.
pub fn hangup_count() -> u64 {
    HANGUPS.load(SeqCst)
}

/// Makes SIGUSR1, which would end the process, request statistics instead ([`report_count`]).
pub fn report_on_usr1() -> Result<(), SysError> {
    install_handler(libc::SIGUSR1)
}

/// Number of requests for statistics since [`report_on_usr1`]. No cost.
pub fn report_count() -> u64 {
    REPORTS.load(SeqCst)
}

/// Makes SIGUSR2, which would end the process, request that waiting data be written ([`flush_count`]).
pub fn flush_on_usr2() -> Result<(), SysError> {
    install_handler(libc::SIGUSR2)
}

/// Number of such requests since [`flush_on_usr2`]. No cost.
pub fn flush_count() -> u64 {
    FLUSHES.load(SeqCst)
}

/// Starts counting how often the process continues after a stop ([`continuation_count`]).
pub fn note_continuing() -> Result<(), SysError> {
    install_handler(libc::SIGCONT)
}

/// Number of continuations since [`note_continuing`]. No cost.
pub fn continuation_count() -> u64 {
    CONTINUATIONS.load(SeqCst)
}

fn install_handler(signal: libc::c_int) -> Result<(), SysError> {
    install(signal, on_signal, 0)
}

fn install(signal: libc::c_int, handler: extern "C" fn(libc::c_int), flags: libc::c_int) -> Result<(), SysError> {
    // SAFETY: sigaction holds integers and pointers, for which all bits zero is a value.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    (action.sa_sigaction, action.sa_flags) = (handler as usize, flags);
    // SAFETY: `action` is live; both handlers only do what is allowed in a handler (see there).
    call("rt_sigaction", || unsafe { libc::sigaction(signal, &raw const action, std::ptr::null_mut()) }.into())
        .map_err(|errno| SysError::new("rt_sigaction", "signal handler", errno))?;
    Ok(())
}

/// Signals that end a process which does not catch them, but for the real-time signals.
const ENDS: [libc::c_int; 18] = [
    libc::SIGQUIT,
    libc::SIGABRT,
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGILL,
    libc::SIGFPE,
    libc::SIGTRAP,
    libc::SIGSYS,
    libc::SIGALRM,
    libc::SIGVTALRM,
    libc::SIGPROF,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGXCPU,
    libc::SIGXFSZ,
    libc::SIGIO,
    libc::SIGPWR,
    libc::SIGSTKFLT,
];

/// Makes signals that stop or end the process immediately leave the alternate screen first.
pub fn catch_stops() -> Result<(), SysError> {
    if handler_of(libc::SIGTSTP)? != libc::SIG_IGN {
        install_handler(libc::SIGTSTP)?;
    }
    for signal in ENDS.into_iter().chain(libc::SIGRTMIN()..=libc::SIGRTMAX()) {
        // The runtime's handler of these two only says that the stack has overflowed, and ends the process as well.
        let is_fault = matches!(signal, libc::SIGSEGV | libc::SIGBUS);
        if is_fault || handler_of(signal)? == libc::SIG_DFL {
            install(signal, on_end, libc::SA_ONSTACK)?;
        }
    }
    Ok(())
}

// Runs inside a signal handler: leaves the screen and ends the process by the signal's default action.
extern "C" fn on_end(signal: libc::c_int) {
    alternate_screen::restore_at_once();
    end_by(signal);
}

// Also called inside a signal handler: open and close are async-signal-safe.
fn has_terminal() -> bool {
    let flags = libc::O_RDONLY | libc::O_NOCTTY | libc::O_NONBLOCK | libc::O_CLOEXEC;
    // SAFETY: the path is a constant that ends with a zero byte.
    let fd = unsafe { libc::open(c"/dev/tty".as_ptr(), flags) };
    if fd >= 0 {
        // SAFETY: `fd` was opened just above and no other code knows it.
        unsafe { libc::close(fd) };
    }
    fd >= 0
}

impl SignalHandlers {
    /// Catches SIGINT, SIGTERM, SIGHUP and SIGWINCH from now on. Calling it again changes nothing.
    ///
    /// SIGHUP (the terminal or the ssh session was closed) ends a run as Ctrl-C does, unless the process was started
    /// with SIGHUP ignored, as with nohup(1), or [`reopen_on_hangup`] was called. An ignored SIGHUP is caught as well,
    /// because log rotation asks a run under nohup(1) for new files like any other run.
    ///
    /// A second request, at least 0.2 s after the first, ends the process immediately: the first may have reached a
    /// run that cannot end.
    pub fn install() -> Result<SignalHandlers, SysError> {
        if POKE.load(SeqCst) < 0 {
            // SAFETY: eventfd takes two integers.
            let fd = call("eventfd2", || unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) }.into())
                .map_err(|errno| SysError::new("eventfd2", "event descriptor", errno))?;
            // Stays open for the life of the process, because a handler may use it at any time.
            POKE.store(fd as i32, SeqCst);
        }
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGWINCH] {
            if signal == libc::SIGHUP && is_ignored(signal)? {
                HANGUP_ENDS_NOTHING.store(true, SeqCst);
            }
            install_handler(signal)?;
        }
        Ok(SignalHandlers(()))
    }

    /// The signal that requested the end (SIGHUP = 1, SIGINT = 2, SIGTERM = 15), if any. No cost.
    pub fn signal_number(self) -> Option<i32> {
        match REQUESTED.load(SeqCst) {
            0 => None,
            signal => Some(signal),
        }
    }

    /// True if SIGINT requested the end; the request is then withdrawn, because it ended something smaller than the
    /// run.
    pub fn take_interrupt(self) -> bool {
        let is_it = REQUESTED.compare_exchange(libc::SIGINT, 0, SeqCst, SeqCst).is_ok();
        if is_it {
            REQUESTED_NS.store(0, SeqCst);
        }
        is_it
    }

    /// Returns true once after each change of the terminal's size.
    pub fn take_resized(self) -> bool {
        RESIZED.swap(false, SeqCst)
    }

    /// Sleeps until `deadline_ns` of [`clock::monotonic_ns`], or until a signal.
    pub fn wait_until(self, deadline_ns: u64) -> Result<WakeReason, SysError> {
        loop {
            if self.signal_number().is_some() {
                return Ok(WakeReason::Interrupted);
            }
            if self.take_resized() {
                return Ok(WakeReason::Resized);
            }
            let left = deadline_ns.saturating_sub(clock::monotonic_ns());
            if left == 0 {
                return Ok(WakeReason::Deadline);
            }
            match sleep_or_poke(left) {
                Ok(true) if alternate_screen::take_key() => request(libc::SIGINT, clock::monotonic_ns()),
                Ok(true) => {}
                Ok(false) | Err(Errno::INTR) => drain(),
                Err(errno) => return Err(SysError::new("ppoll", "the next round", errno)),
            }
        }
    }
}

/// Blocks every signal on the calling thread, so that the kernel delivers them to the main thread.
pub(crate) fn block_all_on_this_thread() {
    // SAFETY: a signal set is plain integers, for which all bits zero is a value; sigfillset fills a live set.
    let all = unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        all
    };
    // SAFETY: `all` is live; the old mask is not requested. It fails only for an unknown first argument.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const all, std::ptr::null_mut()) };
}

fn is_ignored(signal: libc::c_int) -> Result<bool, SysError> {
    Ok(handler_of(signal)? == libc::SIG_IGN)
}

/// The address of a signal's handler, or `SIG_DFL`, or `SIG_IGN`.
fn handler_of(signal: libc::c_int) -> Result<libc::sighandler_t, SysError> {
    // SAFETY: sigaction holds integers and pointers, for which all bits zero is a value.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: `action` is live and exclusively borrowed; no new action is set.
    call("rt_sigaction", || unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut action) }.into())
        .map_err(|errno| SysError::new("rt_sigaction", "signal handler", errno))?;
    Ok(action.sa_sigaction)
}

// Runs inside a signal handler, see `on_signal`.
fn on_hangup() {
    let ends_nothing = HANGUP_ENDS_NOTHING.load(SeqCst);
    if HANGUP_REOPENS.load(SeqCst) && (ends_nothing || !HAD_TERMINAL.load(SeqCst) || has_terminal()) {
        HANGUPS.fetch_add(1, SeqCst);
    } else if !ends_nothing {
        request(libc::SIGHUP, clock::monotonic_ns());
    }
}

// Runs inside a signal handler: only atomics and system calls that are async-signal-safe. errno is restored, because
// the interrupted code may be about to read its own.
extern "C" fn on_signal(signal: libc::c_int) {
    // SAFETY: errno's location is valid for the running thread.
    let errno = unsafe { *libc::__errno_location() };
    match signal {
        libc::SIGWINCH => {
            alternate_screen::set_stale();
            RESIZED.store(true, SeqCst);
        }
        libc::SIGTSTP => on_stop(),
        libc::SIGHUP => on_hangup(),
        libc::SIGUSR1 => _ = REPORTS.fetch_add(1, SeqCst),
        libc::SIGCONT => _ = CONTINUATIONS.fetch_add(1, SeqCst),
        libc::SIGUSR2 => _ = FLUSHES.fetch_add(1, SeqCst),
        _ => request(signal, clock::monotonic_ns()),
    }
    poke();
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}

fn request(signal: libc::c_int, now_ns: u64) {
    match REQUESTED_NS.compare_exchange(0, now_ns, SeqCst, SeqCst) {
        Ok(_) => REQUESTED.store(signal, SeqCst),
        Err(first_ns) if now_ns.saturating_sub(first_ns) <= ONE_REQUEST_NS => {}
        Err(_) => {
            alternate_screen::restore_at_once();
            end_by(signal);
        }
    }
}

// Runs inside a signal handler: the signal, which is blocked there, ends the process when the handler returns.
fn end_by(signal: libc::c_int) {
    // SAFETY: both are async-signal-safe.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}

// Runs inside the handler of SIGTSTP: stops the process on the normal screen, and shows the alternate screen again
// when it continues in the foreground. In the background (`bg`) it stops again, like any program that draws on a
// terminal.
fn on_stop() {
    let was_shown = alternate_screen::restore_at_once();
    stop_by(libc::SIGTSTP);
    if was_shown && !is_in_foreground() {
        stop_by(libc::SIGTTOU);
    }
    if was_shown && is_in_foreground() {
        alternate_screen::show_again();
        RESIZED.store(true, SeqCst);
    }
}

// Stops the process with the signal's default action, inside a handler; returns when it continues.
fn stop_by(signal: libc::c_int) {
    // SAFETY: sigaction and a signal set hold integers and pointers, for which all bits zero is a value; every call is
    // async-signal-safe, and all pointers are to live values.
    unsafe {
        let (mut handler, mut only): (libc::sigaction, libc::sigset_t) = (std::mem::zeroed(), std::mem::zeroed());
        let default: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, &raw const default, &raw mut handler);
        libc::sigemptyset(&raw mut only);
        libc::sigaddset(&raw mut only, signal);
        let mut before: libc::sigset_t = std::mem::zeroed();
        libc::raise(signal);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const only, &raw mut before);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
        libc::sigaction(signal, &raw const handler, std::ptr::null_mut());
    }
}

// True if this process may draw on the terminal. Called inside a signal handler.
fn is_in_foreground() -> bool {
    // SAFETY: both take integers and are async-signal-safe.
    unsafe { libc::tcgetpgrp(libc::STDOUT_FILENO) == libc::getpgrp() }
}

// True if a key was pressed.
fn sleep_or_poke(left_ns: u64) -> Result<bool, Errno> {
    let poke = libc::pollfd { fd: POKE.load(SeqCst), events: libc::POLLIN, revents: 0 };
    // ppoll ignores a negative descriptor.
    let keys = if alternate_screen::has_keys() { libc::STDIN_FILENO } else { -1 };
    let mut polls = [poke, libc::pollfd { fd: keys, ..poke }];
    let left = libc::timespec {
        tv_sec: libc::time_t::try_from(left_ns / 1_000_000_000).unwrap_or(libc::time_t::MAX),
        tv_nsec: (left_ns % 1_000_000_000) as libc::c_long,
    };
    // SAFETY: two live pollfds, one live timespec, no signal mask.
    call("ppoll", || unsafe { libc::ppoll(polls.as_mut_ptr(), 2, &raw const left, std::ptr::null()) }.into())?;
    // ppoll would report a closed terminal again immediately; SIGHUP ends the run.
    if polls[1].revents & (libc::POLLHUP | libc::POLLERR | libc::POLLNVAL) != 0 {
        alternate_screen::stop_checking_keys();
    }
    Ok(polls[1].revents & libc::POLLIN != 0)
}

fn drain() {
    let mut count: u64 = 0;
    // SAFETY: room for 8 bytes; the descriptor is non-blocking, an empty one gives EAGAIN.
    let _ = call("read", || unsafe { libc::read(POKE.load(SeqCst), (&raw mut count).cast(), 8) } as i64);
    if is_requested() {
        // Otherwise other waiting threads would sleep on.
        poke();
    }
}

// Also called inside a signal handler.
fn poke() {
    let one: u64 = 1;
    // SAFETY: writes 8 bytes of a live u64; the error from a bad or full descriptor can be ignored.
    unsafe { libc::write(POKE.load(SeqCst), (&raw const one).cast(), 8) };
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    // A single test, because signals belong to the whole process.
    #[test]
    fn a_wait_ends_on_time_or_on_a_signal() {
        // SAFETY: SIG_DFL installs no handler. The test runner may ignore hangups, as with nohup(1).
        unsafe { libc::signal(libc::SIGHUP, libc::SIG_DFL) };
        let interrupt = SignalHandlers::install().unwrap();
        assert_eq!(SignalHandlers::install().unwrap().signal_number(), None);
        let start = clock::monotonic_ns();
        assert_eq!(interrupt.wait_until(start + 20_000_000).unwrap(), WakeReason::Deadline);
        assert!(clock::monotonic_ns() >= start + 20_000_000);
        assert_eq!(interrupt.wait_until(0).unwrap(), WakeReason::Deadline, "a deadline in the past does not wait");

        let far = clock::monotonic_ns() + 60_000_000_000;
        // SAFETY: raise sends a signal whose handler was just installed.
        assert_eq!(unsafe { libc::raise(libc::SIGWINCH) }, 0);
        assert_eq!(interrupt.wait_until(far).unwrap(), WakeReason::Resized, "also when it came before the wait");

        // Every thread that waits sees the end, although the first to wake up empties the descriptor.
        let others: Vec<_> = (0..8).map(|_| std::thread::spawn(move || interrupt.wait_until(far).unwrap())).collect();
        let waker = std::thread::spawn(|| {
            // SAFETY: sends a signal with a handler to this process.
            unsafe { libc::kill(libc::getpid(), libc::SIGTERM) }
        });
        assert_eq!(interrupt.wait_until(far).unwrap(), WakeReason::Interrupted);
        assert_eq!(waker.join().unwrap(), 0);
        assert!(others.into_iter().all(|other| other.join().unwrap() == WakeReason::Interrupted));
        assert!(clock::monotonic_ns() < far, "none slept until its deadline");
        assert_eq!(interrupt.signal_number(), Some(libc::SIGTERM));
        assert_eq!(hangup_count(), 0);
        reopen_on_hangup();
        // SAFETY: raise sends a signal with a handler; it ends nothing as long as there is a terminal, or never was
        // one.
        assert_eq!(unsafe { libc::raise(libc::SIGHUP) }, 0);
        assert_eq!((hangup_count(), interrupt.signal_number()), (1, Some(libc::SIGTERM)));
        assert!(!is_ignored(libc::SIGHUP).unwrap(), "a hangup ends a run, too");
    }
}
