//! The last steps of every socket between its backend and the engine.
//!
//! Each row goes through the same steps for every backend: it is counted; the filter that the source took over is
//! applied; rows that were already handed out are left out; the others are counted and passed to the engine. A row can
//! come twice for two reasons. The kernel's table may change during the read: [`Window`] remembers the latest rows. And
//! a walk may be interrupted, after which netlink reads everything once more: [`HandedOut`] remembers the rows of the
//! walk.
use std::ops::ControlFlow;

use netlink::DecodeError;
use record::rows::{FamilyExtras, Socket, Sockets};
use record::{Each, Next, Proto, RowBytes, RowCache, RowStats, RowVisitor};
use sys::{Host, Mode};

use crate::backends::handed_out::HandedOut;
use crate::backends::row_keys::{Keys, key_of};
use crate::backends::window::Window;
use crate::pushdown::TableFilter;

/// Receives the rows of one dump, one file, or one walk.
pub(crate) struct RowOutput<'r, 'f> {
    pub(crate) each: &'r mut Each<'f, Sockets>,
    pub(crate) stats: &'r mut RowStats,
    /// The filter for every row; `None` if every row passes or the kernel has applied it.
    pub(crate) filter: Option<&'r TableFilter>,
    /// True if rows that the kernel sends twice by design are handed out twice.
    pub(crate) as_sent: bool,
    pub(crate) window: Window,
    pub(crate) handed_out: &'r mut HandedOut,
}

impl RowOutput<'_, '_> {
    /// Takes the row of a netlink message. Its cookie identifies the socket.
    #[inline(always)]
    pub(crate) fn message(&mut self, decoded: &Result<Socket<'_>, DecodeError>) -> ControlFlow<()> {
        self.message_with_key(decoded, |row| row.cookie)
    }

    /// Takes the row of a netlink message. `key` identifies the socket in the kernel; 0 if it cannot be identified.
    #[inline(always)]
    pub(crate) fn message_with_key(
        &mut self,
        decoded: &Result<Socket<'_>, DecodeError>,
        key: impl Fn(&Socket<'_>) -> u64,
    ) -> ControlFlow<()> {
        self.stats.add_arrived(1);
        match decoded {
            Ok(row) => self.unless_handed_out(row, key(row)),
            Err(error) => self.failed(*error),
        }
    }

    /// Takes the row of a line of /proc/net. A raw socket's line has the IP protocol in place of the ports.
    pub(crate) fn line(&mut self, parsed: Result<Socket<'_>, DecodeError>) -> ControlFlow<()> {
        self.stats.add_arrived(1);
        match parsed {
            Ok(row) if row.proto == Proto::Raw => {
                let ip_protocol = u8::try_from(row.local.port).ok();
                let extras = FamilyExtras { ip_protocol, ..FamilyExtras::EMPTY };
                let row = Socket { extras: Some(&extras), ..row };
                self.unless_handed_out(&row, key_of(&row))
            }
            Ok(row) => self.unless_handed_out(&row, key_of(&row)),
            Err(error) => self.failed(error),
        }
    }

    #[inline]
    fn unless_handed_out(&mut self, row: &Socket<'_>, key: u64) -> ControlFlow<()> {
        if self.is_filtered(row) {
            return ControlFlow::Continue(());
        }
        if self.handed_out.is_out(row) {
            return self.duplicate();
        }
        self.hand_out(row, key)
    }

    #[inline]
    fn is_filtered(&mut self, row: &Socket<'_>) -> bool {
        let filtered = self.filter.is_some_and(|filter| !filter.accepts(row));
        if filtered {
            self.stats.add_filtered();
        }
        filtered
    }

    #[inline]
    fn hand_out(&mut self, row: &Socket<'_>, key: u64) -> ControlFlow<()> {
        if self.window.is_double(key) && self.leaves_out_duplicate(row.proto) {
            return ControlFlow::Continue(());
        }
        self.stats.row();
        flow_of((self.each)(row))
    }

    /// True if a repeated row must be left out. netlink_diag sends sockets with multicast groups twice, because the
    /// kernel keeps them in two lists (net/netlink/diag.c, 6.18): such a pair does not mean that the table changed.
    #[cold]
    fn leaves_out_duplicate(&mut self, proto: Proto) -> bool {
        match proto {
            Proto::Netlink if self.as_sent => return false,
            Proto::Netlink => self.stats.add_repeated(),
            _ => self.stats.duplicate(),
        }
        true
    }

    #[cold]
    fn duplicate(&mut self) -> ControlFlow<()> {
        self.stats.duplicate();
        ControlFlow::Continue(())
    }

    #[cold]
    fn failed(&mut self, error: DecodeError) -> ControlFlow<()> {
        self.stats.add_failed(error);
        ControlFlow::Continue(())
    }
}

/// Receives the rows of a walk. A row with the same bytes as in the previous round is not decoded.
pub(crate) struct WalkOutput<'r, 'f> {
    rows: RowOutput<'r, 'f>,
    cache: Option<&'r dyn RowCache>,
}

impl<'r, 'f> WalkOutput<'r, 'f> {
    /// Uses `cache` only if the running kernel is read and every row passes: other rows must be decoded.
    pub(crate) fn new(rows: RowOutput<'r, 'f>, host: &Host, cache: Option<&'r dyn RowCache>) -> WalkOutput<'r, 'f> {
        let cache = cache.filter(|_| host.mode() == Mode::Live && rows.filter.is_none());
        WalkOutput { rows, cache }
    }
}

impl RowVisitor<Sockets, Keys, DecodeError> for WalkOutput<'_, '_> {
    fn add_arrived(&mut self, rows: u64) {
        self.rows.stats.add_arrived(rows);
    }

    #[inline(always)]
    fn row(&mut self, row: Result<(&Socket<'_>, Keys), DecodeError>) -> ControlFlow<()> {
        let (row, keys) = match row {
            Ok(decoded) => decoded,
            Err(error) => {
                self.cache.iter().for_each(|cache| cache.invalidate());
                return self.rows.failed(error);
            }
        };
        if self.rows.is_filtered(row) {
            return ControlFlow::Continue(());
        }
        if self.rows.handed_out.is_out_by_ends(keys.ends) {
            return self.rows.duplicate();
        }
        self.rows.hand_out(row, keys.identity)
    }

    #[inline]
    fn reuses_rows(&self) -> bool {
        self.cache.is_some()
    }

    #[inline]
    fn reuse(&mut self, bytes: RowBytes<'_>, keys: Keys) -> Option<ControlFlow<()>> {
        // A repeated row is left to `row`, which counts it.
        let cache = self.cache.filter(|_| !self.rows.window.contains(keys.identity))?;
        let reused = cache.reuse(bytes)?;
        self.rows.window.is_double(keys.identity);
        self.rows.handed_out.is_out_by_ends(keys.ends);
        self.rows.stats.row();
        Some(flow_of(reused.next))
    }
}

fn flow_of(next: Next) -> ControlFlow<()> {
    match next {
        Next::More => ControlFlow::Continue(()),
        Next::Stop => ControlFlow::Break(()),
    }
}
