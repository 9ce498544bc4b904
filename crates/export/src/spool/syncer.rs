//! Syncs files to the disk in a separate thread: a writer that waits for a disk would lose log records.

use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

/// A thread that syncs files.
#[derive(Debug)]
pub(super) struct Syncer {
    files: Option<Sender<Vec<Arc<File>>>>,
    is_busy: Arc<AtomicBool>,
    fault: Arc<Mutex<Option<String>>>,
    thread: Option<JoinHandle<()>>,
}

impl Syncer {
    pub(super) fn start() -> io::Result<Syncer> {
        let (files, queue) = channel::<Vec<Arc<File>>>();
        let is_busy = Arc::new(AtomicBool::new(false));
        let busy = Arc::clone(&is_busy);
        let fault = Arc::new(Mutex::new(None));
        let said = Arc::clone(&fault);
        let thread = thread::Builder::new().name("netwren-spool".to_owned()).spawn(move || {
            for files in queue {
                // sync_all also covers their names: a file may have been renamed.
                let failed = files.iter().find_map(|file| file.sync_all().err());
                let text = failed.map(|error| format!("cannot sync the spool to the disk: {error}"));
                *said.lock().unwrap_or_else(PoisonError::into_inner) = text;
                busy.store(false, Ordering::Release);
            }
        })?;
        Ok(Syncer { files: Some(files), is_busy, fault, thread: Some(thread) })
    }

    /// True while the thread has nothing to do. Only a call of `sync` makes it false.
    pub(super) fn is_idle(&self) -> bool {
        !self.is_busy.load(Ordering::Acquire)
    }

    /// Passes files to the thread.
    pub(super) fn sync(&self, files: Vec<Arc<File>>) {
        self.is_busy.store(true, Ordering::Release);
        if let Some(queue) = &self.files {
            let _ = queue.send(files);
        }
    }

    pub(super) fn fault_text(&self) -> Option<String> {
        self.fault.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Syncer {
    fn drop(&mut self) {
        self.files = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
