//! Counting what is taken from the heap: how a test shows that a row costs no allocation.
//!
//! Not used by the program. A test binary installs it in one line, without `unsafe` of its own:
//! `#[global_allocator] static HEAP: sys::allocator::Counting = sys::allocator::Counting;`
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    // Of the thread, so that tests side by side do not see each other. `const` and without a
    // destructor: touching it neither allocates nor fails, not even while a thread ends.
    static TAKEN: Cell<u64> = const { Cell::new(0) };
}

/// The system's allocator, counted.
#[derive(Debug, Clone, Copy)]
pub struct Counting;

/// How often the calling thread has taken (or enlarged) memory; 0 for ever unless [`Counting`] is installed.
pub fn allocations() -> u64 {
    TAKEN.with(Cell::get)
}

fn count() {
    TAKEN.with(|taken| taken.set(taken.get() + 1));
}

// SAFETY: every call is handed on to the system's allocator unchanged, which keeps the contract;
// counting touches a thread-local number only.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promises are exactly those that System asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: as above; `pointer` came from System, as all do.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above; `pointer` came from System, as all do.
        unsafe { System.dealloc(pointer, layout) }
    }
}
