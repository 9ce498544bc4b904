//! Reads a table for a face by running the engine over typed rows.

use engine::{Disposition, EachRow, OneRound, Plan, PlanError, RunError};
use lookups::session::Session;
use record::{Accounting, Demand, Lookups, Source, Table};
use std::fmt;

/// Why a table could not be read at all.
#[derive(Debug)]
pub(super) enum ReadError {
    /// A regular expression of the filter does not compile.
    Plan(PlanError),
    /// The source returned no rows because it failed.
    Run(RunError),
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadError::Plan(error) => error.fmt(f),
            ReadError::Run(error) => error.fmt(f),
        }
    }
}

/// Reads `source` once and hands every row that passes the filter of `demand` to `each`. Ctrl-C ends the run early.
///
/// A row that arrives but neither reaches `each` nor is counted elsewhere makes the result partial, with a reason.
pub(super) fn read_rows<T: Table>(
    session: &Session,
    source: &dyn Source<T>,
    demand: Demand<T>,
    lookups: &Lookups<'_>,
    each: impl FnMut(&T::Row<'_>) -> Disposition,
) -> Result<Accounting, ReadError> {
    #[cfg(test)]
    let source = &tests::Losing::first_row_of(source);
    let plan = Plan::of_rows(demand).map_err(ReadError::Plan)?;
    let stop = || session.interrupted();
    let run = plan.run_rows(&mut OneRound::new(source, lookups, &stop), &mut EachRow(each));
    run.map(|run| run.stats).map_err(ReadError::Run)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use crate::find;
    use record::{Demand, Next, Scan, Source, Table, scan_through};
    use std::net::{TcpListener, TcpStream};
    use std::process::Command;

    /// Environment variable for tests: the face loses a row, and the value holds its switches.
    const LOSES: &str = "NETWREN_TEST_LOSES";

    /// A source that loses its first row if [`LOSES`] is set.
    pub(super) struct Losing<'s, T: Table>(&'s dyn Source<T>);

    impl<'s, T: Table> Losing<'s, T> {
        pub(super) fn first_row_of(source: &'s dyn Source<T>) -> Losing<'s, T> {
            Losing(source)
        }
    }

    impl<T: Table> Source<T> for Losing<'_, T> {
        fn prepare(&self, demand: &Demand<T>) -> Box<dyn Scan<T> + '_> {
            let scan = self.0.prepare(demand);
            if std::env::var_os(LOSES).is_none() {
                return scan;
            }
            scan_through(scan, |inner, cache, each| {
                let mut lost = false;
                inner.run_with(cache, &mut |row| {
                    if std::mem::replace(&mut lost, true) { each(row) } else { Next::More }
                })
            })
        }
    }

    /// If [`LOSES`] is set, runs the face and exits with its exit code.
    fn run_if_losing(face: &str) {
        let Some(args) = std::env::var_os(LOSES) else { return };
        let args: Vec<_> = args.to_str().unwrap().split(' ').map(Into::into).collect();
        std::process::exit(find(face).unwrap().run(args.into_iter(), |_, _| false).into());
    }

    /// Reruns `test` through `program`, with `args` for its face: the run reports the lost row and exits with `code`.
    fn a_lost_row_fails<T>(_: T, mut program: Command, args: &str, code: i32) {
        let (_, test) = std::any::type_name::<T>().split_once("::").unwrap();
        let out = program.args(["--exact", test]).env(LOSES, args).output().unwrap();
        let says = String::from_utf8(out.stderr).unwrap();
        assert!(says.contains("netwren: rows were read but not written: this is a bug in netwren"), "{says}");
        assert_eq!(out.status.code(), Some(code), "{args}: {says}");
    }

    fn this_program() -> Command {
        Command::new(std::env::current_exe().unwrap())
    }

    fn connection() -> (TcpListener, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let connected = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (listener, connected)
    }

    #[test]
    fn issue_10_a_row_lost_before_ss_is_reported_and_fails() {
        let _connection = connection();
        run_if_losing("ss");
        a_lost_row_fails(issue_10_a_row_lost_before_ss_is_reported_and_fails, this_program(), "-tan", 1);
    }

    #[test]
    fn issue_10_a_row_lost_before_netstat_is_reported_and_fails() {
        let _connection = connection();
        run_if_losing("netstat");
        a_lost_row_fails(issue_10_a_row_lost_before_netstat_is_reported_and_fails, this_program(), "-tan", 1);
    }

    #[test]
    fn issue_10_a_row_lost_before_lstf_is_reported_and_fails() {
        let _connection = connection();
        run_if_losing("lstf");
        for args in ["-n", "-n --json", "-p"] {
            a_lost_row_fails(issue_10_a_row_lost_before_lstf_is_reported_and_fails, this_program(), args, 11);
        }
    }

    #[test]
    fn root_issue_10_a_row_lost_before_conntrack_is_reported_and_fails() {
        testkit::require_root!();
        run_if_losing("conntrack");
        let this = root_issue_10_a_row_lost_before_conntrack_is_reported_and_fails;
        let lab = testkit::netns::Lab::new("ctlost");
        lab.track(testkit::conntrack::mixed_entries(3_000));
        for args in ["-L", "-L -p tcp", "-L -o id", "-L -o save", "-L -z", "-U -m 1", "-D -p udp"] {
            a_lost_row_fails(this, lab.command(std::env::current_exe().unwrap()), args, 1);
        }
    }
}
