//! Widths of the columns.

use super::options::{Layout, Options, show};

/// Number of columns of the table.
const COLUMNS: usize = 10;

/// Length of each cell: of one row, or the longest of all rows so far.
#[derive(Clone, Copy, Default)]
pub(super) struct Widths {
    pub(super) netid: usize,
    pub(super) state: usize,
    pub(super) recv_q: usize,
    pub(super) send_q: usize,
    pub(super) local: usize,
    pub(super) local_port: usize,
    pub(super) peer: usize,
    pub(super) peer_port: usize,
    pub(super) owners: usize,
    pub(super) extras: usize,
}

impl Widths {
    /// Returns the lengths of the heading's words.
    pub(super) fn of_header(options: &Options) -> Widths {
        Widths {
            netid: 5,
            state: 5,
            recv_q: 6,
            send_q: 6,
            local: 14,
            local_port: 4,
            peer: 13,
            peer_port: 4,
            owners: 7,
            extras: if options.layout == Layout::V6_1 { 7 } else { 0 },
        }
    }

    /// Updates the widths with the longer cells of `row`.
    #[inline]
    pub(super) fn grow(&mut self, row: &Widths) {
        self.netid = self.netid.max(row.netid);
        self.state = self.state.max(row.state);
        self.recv_q = self.recv_q.max(row.recv_q);
        self.send_q = self.send_q.max(row.send_q);
        self.local = self.local.max(row.local);
        self.local_port = self.local_port.max(row.local_port);
        self.peer = self.peer.max(row.peer);
        self.peer_port = self.peer_port.max(row.peer_port);
        self.owners = self.owners.max(row.owners);
        self.extras = self.extras.max(row.extras);
    }

    /// Returns the widths on a terminal: the unused space of each line is distributed to its columns, with the
    /// remainder to the last ones. Columns that do not fit begin the next line. This equals `render_calc_width` of ss.
    pub(super) fn on_screen(mut self, options: &Options) -> Widths {
        let Some(screen) = options.screen.filter(|screen| *screen > 0) else { return self };
        let queues = options.has(show::QUEUES);
        // Whether the column is shown, and the blanks before it.
        let mut columns = [
            (&mut self.netid, options.has(show::NETID), 0),
            (&mut self.state, options.has(show::STATE), 1),
            (&mut self.recv_q, queues, 1),
            (&mut self.send_q, queues, 1),
            (&mut self.local, true, 1),
            (&mut self.local_port, true, 0),
            (&mut self.peer, true, 1),
            (&mut self.peer_port, true, 0),
            (&mut self.owners, options.owners_apart(), 0),
            (&mut self.extras, true, 0),
        ];
        let mut cells = [0; COLUMNS];
        let mut first = true;
        for ((width, shown, blanks), cell) in columns.iter_mut().zip(&mut cells) {
            if first || **width == 0 {
                *blanks = 0;
            }
            *cell = if *shown { (**width + *blanks).min(screen) } else { 0 };
            first &= *cell == 0;
        }
        stretch(&mut cells, screen);
        for ((width, shown, blanks), cell) in columns.iter_mut().zip(cells) {
            if *shown {
                **width = cell.saturating_sub(*blanks);
            }
        }
        self
    }

    /// Returns the cells that ss keeps of a row, without the last one, and their number.
    #[inline]
    pub(super) fn cells(&self, options: &Options) -> ([usize; 9], usize) {
        let mut cells = [0; 9];
        let mut used = 0;
        let mut add = |shown: bool, len: usize| {
            if shown {
                cells[used] = len;
                used += 1;
            }
        };
        add(options.has(show::NETID), self.netid);
        add(options.has(show::STATE), self.state);
        add(options.has(show::QUEUES), self.recv_q);
        add(options.has(show::QUEUES), self.send_q);
        add(true, self.local);
        add(true, self.local_port);
        add(true, self.peer);
        add(true, self.peer_port);
        add(options.owners_apart(), self.owners);
        (cells, used)
    }
}

/// Distributes the unused space of each line of a screen to the columns in it. No cell is wider than the screen.
fn stretch(cells: &mut [usize; COLUMNS], screen: usize) {
    let mut start = 0;
    while start < COLUMNS {
        // The columns of this line: up to the first that does not fit, or that fills it.
        let (mut end, mut len) = (start, 0);
        for (i, &cell) in cells.iter().enumerate().skip(start) {
            if len + cell > screen || len == screen {
                break;
            }
            (end, len) = (i + 1, len + cell);
        }
        let line = cells.get_mut(start..end).unwrap_or_default();
        let used = line.iter().filter(|cell| **cell > 0).count();
        let (each, mut rest) = match (used, screen - len) {
            (0, _) => (0, 0),
            (used, left) => (left / used, left % used),
        };
        for cell in line.iter_mut().rev().filter(|cell| **cell > 0) {
            let more = usize::from(rest > 0);
            rest -= more;
            *cell += each + more;
        }
        // A cell is at most as wide as the screen, so every line has at least one.
        start = end.max(start + 1);
    }
}
