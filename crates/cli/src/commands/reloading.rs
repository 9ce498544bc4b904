//! A run whose outputs follow its configuration file, which SIGHUP reloads.

use crate::flags::request::Request;
use engine::{CellsOf, Disposition, ReadRows, RowSink};
use record::{Columns, Lookups, RowCells};
use runtime::messages::print_message;
use runtime::run_state::RunState;
use shipping::{Shipment, Shipped};
use std::sync::Arc;

/// Reloads the configuration; the error describes what is invalid.
pub(super) type Reread<'r> = dyn Fn() -> Result<Request, String> + 'r;

/// A shipment, and the source of its configuration.
pub(super) struct Reloading<'r, T: Shipped> {
    pub(super) shipment: &'r mut Shipment<T>,
    pub(super) columns: &'r Columns,
    pub(super) run: &'r Arc<RunState>,
    /// None without a configuration file: then a hangup only reopens files.
    pub(super) reread: Option<&'r Reread<'r>>,
    /// Number of hangups handled.
    pub(super) hangups: u64,
}

impl<T: Shipped> Reloading<'_, T> {
    fn reload(&mut self, reread: &Reread<'_>) {
        let request = match reread() {
            Ok(request) => request,
            Err(why) => {
                return print_message(&format!(
                    "the new configuration is rejected, the previous one stays in effect: {why}"
                ));
            }
        };
        let Some(ship) = &request.ship else {
            return print_message(
                "the new configuration is rejected, the previous one stays in effect: it has no `to`",
            );
        };
        match Shipment::<T>::check(ship, self.columns) {
            Ok(()) => self.shipment.reload(ship, self.columns, self.run),
            Err(why) => {
                print_message(&format!("the new configuration is rejected, the previous one stays in effect: {why}"))
            }
        }
    }
}

impl<T: Shipped> RowSink<T> for Reloading<'_, T> {
    #[inline]
    fn row(&mut self, row: &T::Row<'_>, cells: &mut dyn RowCells, lookups: &Lookups<'_>) -> Disposition {
        self.shipment.row(row, cells, lookups)
    }

    fn all_rows(&mut self, read: &mut ReadRows<'_, T>) -> Option<u64> {
        self.shipment.all_rows(read)
    }

    fn end_batch(&mut self, cells: &CellsOf<'_, T>) {
        self.shipment.end_batch(cells);
    }

    fn flush(&mut self) {
        self.shipment.flush();
        let hangups = sys::signal::hangup_count();
        let Some(reread) = self.reread.filter(|_| hangups != self.hangups) else { return };
        self.hangups = hangups;
        self.reload(reread);
        self.run.note_reload(hangups);
    }
}
