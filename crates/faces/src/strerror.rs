//! The C library's texts for errors.

use std::io;

/// The text of strerror(3), as perror(3) prints it; for errors that are not the kernel's, std's text.
pub(crate) fn strerror(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}
