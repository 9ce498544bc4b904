//! Where decoded rows go: through the window for doubles, into the row counts, to whoever wants them.
use std::ops::ControlFlow;

use netlink::DecodeError;
use record::rows::{FamilyExtras, Socket, Sockets};
use record::{Each, Next, Proto, RowBytes, RowCache, RowStats, RowVisitor};
use sys::{Host, Mode};

use crate::backends::bpf::rows::Keys;
use crate::backends::handed_out::HandedOut;
use crate::backends::proc::file;
use crate::backends::window::Window;
use crate::pushdown::TableFilter;

/// Where decoded rows go.
pub(crate) struct Rows<'r, 'f> {
    pub(crate) each: &'r mut Each<'f, Sockets>,
    pub(crate) stats: &'r mut RowStats,
    /// What is tested again here; none where every row passes, or where a program of ours has tested them.
    pub(crate) filter: Option<&'r TableFilter>,
    /// Twice what comes twice by design.
    pub(crate) as_sent: bool,
    pub(crate) window: Window,
    /// What a walk has handed out, of which this is the rest.
    pub(crate) handed_out: &'r mut HandedOut,
}

impl Rows<'_, '_> {
    /// What a decoder made of a message.
    #[inline(always)]
    pub(crate) fn take(&mut self, decoded: &Result<Socket<'_>, DecodeError>) -> ControlFlow<()> {
        self.take_as(decoded, |row| row.cookie)
    }

    /// The same, with what names the row's object in the kernel; 0 if nothing does.
    #[inline(always)]
    pub(crate) fn take_as(
        &mut self,
        decoded: &Result<Socket<'_>, DecodeError>,
        key: impl Fn(&Socket<'_>) -> u64,
    ) -> ControlFlow<()> {
        self.stats.arrived(1);
        match decoded {
            Ok(row) => self.row(row, key(row)),
            Err(error) => self.failed(*error),
        }
    }

    /// What a line was made into. A raw socket's line has its protocol where others have ports.
    pub(crate) fn take_line(&mut self, parsed: Result<Socket<'_>, DecodeError>) -> ControlFlow<()> {
        self.stats.arrived(1);
        match parsed {
            Ok(row) if row.proto == Proto::Raw => {
                let extras = FamilyExtras { ip_protocol: u8::try_from(row.local.port).ok(), ..FamilyExtras::EMPTY };
                let row = Socket { extras: Some(&extras), ..row };
                self.row(&row, file::key_of(&row))
            }
            Ok(row) => self.row(&row, file::key_of(&row)),
            Err(error) => self.failed(error),
        }
    }

    #[inline]
    fn row(&mut self, row: &Socket<'_>, key: u64) -> ControlFlow<()> {
        if self.filter.is_some_and(|filter| !filter.admits(row)) {
            return self.filtered();
        }
        if self.handed_out.is_out(row) {
            return self.duplicate();
        }
        self.hand_out(row, key)
    }

    /// A row of the walk.
    #[inline(always)]
    fn walked(&mut self, row: &Socket<'_>, keys: Keys) -> ControlFlow<()> {
        if self.filter.is_some_and(|filter| !filter.admits(row)) {
            return self.filtered();
        }
        if self.handed_out.is_out_by_ends(keys.ends) {
            return self.duplicate();
        }
        self.hand_out(row, keys.identity)
    }

    #[inline]
    fn hand_out(&mut self, row: &Socket<'_>, key: u64) -> ControlFlow<()> {
        if self.window.is_double(key) && self.leaves_out(row.proto) {
            return ControlFlow::Continue(());
        }
        self.stats.row();
        match (self.each)(row) {
            Next::More => ControlFlow::Continue(()),
            Next::Stop => ControlFlow::Break(()),
        }
    }

    #[inline]
    fn filtered(&mut self) -> ControlFlow<()> {
        self.stats.filtered();
        ControlFlow::Continue(())
    }

    #[cold]
    fn duplicate(&mut self) -> ControlFlow<()> {
        self.stats.duplicate();
        ControlFlow::Continue(())
    }

    /// What to do with a row that came before. Netlink sockets of groups stand in two lists of the kernel, and
    /// netlink_diag (net/netlink/diag.c, 6.18) sends both: that is no sign of a table that changed.
    #[cold]
    fn leaves_out(&mut self, proto: Proto) -> bool {
        if proto == Proto::Netlink {
            return !self.as_sent;
        }
        self.stats.duplicate();
        true
    }

    #[cold]
    fn failed(&mut self, error: DecodeError) -> ControlFlow<()> {
        self.stats.failed(error);
        ControlFlow::Continue(())
    }
}

/// Rows of the walk: some are known by their bytes.
pub(crate) struct WalkedRows<'r, 'f> {
    rows: Rows<'r, 'f>,
    cache: Option<&'r dyn RowCache>,
}

impl<'r, 'f> WalkedRows<'r, 'f> {
    /// `cache` is asked only if the kernel itself is read, and rows need no further filter.
    pub(crate) fn new(rows: Rows<'r, 'f>, host: &Host, cache: Option<&'r dyn RowCache>) -> WalkedRows<'r, 'f> {
        let cache = cache.filter(|_| host.mode() == Mode::Live && rows.filter.is_none());
        WalkedRows { rows, cache }
    }
}

impl RowVisitor<Sockets, Keys, DecodeError> for WalkedRows<'_, '_> {
    fn arrived(&mut self, rows: u64) {
        self.rows.stats.arrived(rows);
    }

    #[inline(always)]
    fn row(&mut self, row: Result<(&Socket<'_>, Keys), DecodeError>) -> ControlFlow<()> {
        match row {
            Ok((row, keys)) => self.rows.walked(row, keys),
            Err(error) => {
                self.cache.iter().for_each(|cache| cache.invalidate());
                self.rows.failed(error)
            }
        }
    }

    #[inline]
    fn reuses_rows(&self) -> bool {
        self.cache.is_some()
    }

    #[inline]
    fn reuse(&mut self, bytes: RowBytes<'_>, keys: Keys) -> Option<ControlFlow<()>> {
        // What comes twice is counted where all rows are.
        let cache = self.cache.filter(|_| !self.rows.window.has(keys.identity))?;
        let again = cache.reuse(bytes)?;
        self.rows.window.is_double(keys.identity);
        self.rows.handed_out.is_out_by_ends(keys.ends);
        self.rows.stats.row();
        Some(match again.next {
            Next::More => ControlFlow::Continue(()),
            Next::Stop => ControlFlow::Break(()),
        })
    }
}
