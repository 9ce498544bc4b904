//! An allocator that counts heap allocations: tests use it to show that a row causes no allocation.
//!
//! The program does not use it. A test binary installs it in one line, without `unsafe` of its own:
//! `#[global_allocator] static HEAP: sys::allocator::Counting = sys::allocator::Counting;`
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    // Per thread, so that concurrent tests do not affect each other. `const` and without a destructor: accessing it
    // neither allocates nor fails, not even while a thread ends.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

/// The system allocator with a counter.
#[derive(Debug, Clone, Copy)]
pub struct CountingAllocator;

/// How often the calling thread has allocated (or enlarged) memory; always 0 unless [`CountingAllocator`] is installed.
pub fn allocations() -> u64 {
    ALLOCATIONS.with(Cell::get)
}

fn count() {
    ALLOCATIONS.with(|taken| taken.set(taken.get() + 1));
}

// SAFETY: every call is passed on unchanged to the system allocator, which keeps the contract; counting only accesses
// a thread-local number.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promises are exactly those that System requires.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: as above; `pointer` came from System, like all pointers here.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above; `pointer` came from System, like all pointers here.
        unsafe { System.dealloc(pointer, layout) }
    }
}
