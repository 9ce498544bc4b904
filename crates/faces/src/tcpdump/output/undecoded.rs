//! Packets that are not decoded.

use super::line::Line;
use super::options::Dump;

/// Prints the bytes of a packet that is not decoded, in hexadecimal and as text, below its line, unless a dump or `-q`
/// makes that unnecessary.
pub(super) fn default_print(line: &mut Line<'_>, bytes: &[u8]) {
    if matches!(line.options.dump, Dump::None | Dump::Text) && line.options.quiet == 0 {
        always_print(line, bytes);
    }
}

/// Prints the bytes regardless of the switches.
pub(super) fn always_print(line: &mut Line<'_>, bytes: &[u8]) {
    super::dump::put_hex_lines(line.out, "\n\t", bytes, true);
}
