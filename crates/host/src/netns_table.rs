//! Small per-namespace tables: the common part of reading them.
use netlink::{DumpEnd, DumpError};
use record::{
    Accounting, Demand, Each, MergedStats, Next, RowStats, Scan, Source, SourceError, SourceFault, Table, full_scan,
};
use std::ops::ControlFlow;
use sys::{Host, NetnsTarget, visit_each};

use crate::HostError;

/// A table that is read completely through one interface, in each network namespace separately.
pub trait NetnsTable: Table {
    /// The interface that it is read through: `netlink`.
    const BACKEND: &'static str;
    /// How it is read, as a line for `--explain`.
    const EXPLAIN: &'static str;

    /// Reads the table of the calling thread's namespace, whose inode is `netns_id`. Passes each row to `each`, and
    /// adds counts and reasons for missing rows to `many`. Returns the last result of `each`.
    fn read_netns(host: &Host, netns_id: u64, many: &mut MergedStats, each: &mut Each<'_, Self>) -> Next;
}

/// Reads a [`NetnsTable`] of every target in turn.
#[derive(Debug)]
pub struct NetnsSource<'h> {
    host: &'h Host,
    targets: Vec<NetnsTarget<'h>>,
}

impl<'h> NetnsSource<'h> {
    /// A source for the namespaces `targets`; entering a namespace other than the current one needs CAP_SYS_ADMIN.
    pub fn new(host: &'h Host, targets: Vec<NetnsTarget<'h>>) -> NetnsSource<'h> {
        NetnsSource { host, targets }
    }

    fn read<T: NetnsTable>(&self, each: &mut Each<'_, T>) -> Result<Accounting, SourceError> {
        let mut many = MergedStats::default();
        many.stats.add_backend(T::BACKEND);
        // A recording identifies the entry into a namespace by its reader.
        let purpose = format!(" {}", T::NAME);
        let not_entered = visit_each(self.host, &self.targets, &purpose, &mut |target| match T::read_netns(
            self.host,
            target.netns_id,
            &mut many,
            each,
        ) {
            Next::Stop => ControlFlow::Break(()),
            Next::More => ControlFlow::Continue(()),
        });
        many.add_vanished(not_entered.gone);
        not_entered.unreadable.into_iter().for_each(|why| many.not_entered(why.error.errno.is_denied(), why));
        many.finish()
    }
}

impl<T: NetnsTable> Source<T> for NetnsSource<'_> {
    fn prepare(&self, _: &Demand<T>) -> Box<dyn Scan<T> + '_> {
        full_scan::<T, _>(T::BACKEND, T::EXPLAIN, |each| self.read(each))
    }
}

/// Adds a dump and its rows to `many`. A failed dump costs its own rows and adds a reason.
pub(crate) fn add_dump<T: NetnsTable>(many: &mut MergedStats, mut rows: RowStats, end: Result<DumpEnd, HostError>) {
    if end.as_ref().is_ok_and(|end| end.interrupted) {
        rows.incomplete(0, format!("{} changed while they were read: some may be missing or shown twice", T::NAME));
    }
    many.stats.add(&rows.close());
    match end {
        Ok(_) => many.add_success(),
        Err(error) => many.add_failure(source_error(T::NAME, error)),
    }
}

fn source_error(what: &'static str, error: HostError) -> SourceError {
    if error.is_not_recorded() {
        let cause = format!("the recording holds no {what} (`netwren record FILE` records everything)");
        return SourceError { what, fault: SourceFault::Io, cause: cause.into() };
    }
    let is_denied = matches!(&error, HostError::Netlink(DumpError::Io(error)) if error.errno.is_denied());
    let fault = if is_denied { SourceFault::Denied } else { SourceFault::Io };
    SourceError { what, fault, cause: Box::new(error) }
}
