//! Where decoded rows go: through the window for doubles, into the books, to whoever wants them.
use std::ops::ControlFlow;

use netlink::DecodeError;
use record::rows::{Rare, Socket, Sockets};
use record::{Books, Each, Next, Proto, RowBytes, Unchanged};
use sys::{Host, Mode};

use crate::backends::bpf::rows::{Keys, RowVisitor};
use crate::backends::handed_out::HandedOut;
use crate::backends::proc::file;
use crate::backends::window::Window;
use crate::pushdown::TableFilter;

/// Where decoded rows go.
pub(crate) struct Rows<'r, 'f> {
    pub(crate) each: &'r mut Each<'f, Sockets>,
    pub(crate) books: &'r mut Books,
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
        self.books.arrived(1);
        match decoded {
            Ok(row) => self.row(row, key(row)),
            Err(error) => self.failed(*error),
        }
    }

    /// What a line was made into. A raw socket's line has its protocol where others have ports.
    pub(crate) fn take_line(&mut self, parsed: Result<Socket<'_>, DecodeError>) -> ControlFlow<()> {
        self.books.arrived(1);
        match parsed {
            Ok(row) if row.proto == Proto::Raw => {
                let rare = Rare { ip_protocol: u8::try_from(row.local.port).ok(), ..Rare::EMPTY };
                let row = Socket { rare: Some(&rare), ..row };
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
            return self.doubled();
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
            return self.doubled();
        }
        self.hand_out(row, keys.identity)
    }

    #[inline]
    fn hand_out(&mut self, row: &Socket<'_>, key: u64) -> ControlFlow<()> {
        if self.window.is_double(key) && self.leaves_out(row.proto) {
            return ControlFlow::Continue(());
        }
        self.books.row();
        match (self.each)(row) {
            Next::More => ControlFlow::Continue(()),
            Next::Stop => ControlFlow::Break(()),
        }
    }

    #[inline]
    fn filtered(&mut self) -> ControlFlow<()> {
        self.books.filtered();
        ControlFlow::Continue(())
    }

    #[cold]
    fn doubled(&mut self) -> ControlFlow<()> {
        self.books.doubled();
        ControlFlow::Continue(())
    }

    /// What to do with a row that came before. Netlink sockets of groups stand in two lists of the kernel, and
    /// netlink_diag (net/netlink/diag.c, 6.18) sends both: that is no sign of a table that changed.
    #[cold]
    fn leaves_out(&mut self, proto: Proto) -> bool {
        if proto == Proto::Netlink {
            return !self.as_sent;
        }
        self.books.doubled();
        true
    }

    #[cold]
    fn failed(&mut self, error: DecodeError) -> ControlFlow<()> {
        self.books.failed(error);
        ControlFlow::Continue(())
    }
}

/// Rows of the walk: some are known by their bytes.
pub(crate) struct WalkedRows<'r, 'f> {
    rows: Rows<'r, 'f>,
    unchanged: Option<&'r dyn Unchanged>,
}

impl<'r, 'f> WalkedRows<'r, 'f> {
    /// `unchanged` is asked only if the kernel itself is read, and rows need no further filter.
    pub(crate) fn new(rows: Rows<'r, 'f>, host: &Host, unchanged: Option<&'r dyn Unchanged>) -> WalkedRows<'r, 'f> {
        let unchanged = unchanged.filter(|_| host.mode() == Mode::Live && rows.filter.is_none());
        WalkedRows { rows, unchanged }
    }
}

impl RowVisitor for WalkedRows<'_, '_> {
    fn arrived(&mut self, rows: u64) {
        self.rows.books.arrived(rows);
    }

    #[inline(always)]
    fn row(&mut self, row: Result<(&Socket<'_>, Keys), DecodeError>) -> ControlFlow<()> {
        match row {
            Ok((row, keys)) => self.rows.walked(row, keys),
            Err(error) => {
                self.unchanged.iter().for_each(|unchanged| unchanged.forget());
                self.rows.failed(error)
            }
        }
    }

    #[inline]
    fn knows_bytes(&self) -> bool {
        self.unchanged.is_some()
    }

    #[inline]
    fn again(&mut self, bytes: RowBytes<'_>, keys: Keys) -> Option<ControlFlow<()>> {
        // What comes twice is counted where all rows are.
        let unchanged = self.unchanged.filter(|_| !self.rows.window.has(keys.identity))?;
        let again = unchanged.again(bytes)?;
        self.rows.window.is_double(keys.identity);
        self.rows.handed_out.is_out_by_ends(keys.ends);
        self.rows.books.row();
        Some(match again.next {
            Next::More => ControlFlow::Continue(()),
            Next::Stop => ControlFlow::Break(()),
        })
    }
}
