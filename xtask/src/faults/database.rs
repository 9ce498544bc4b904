//! A PostgreSQL server that can crash and restart.

use crate::bench::log::databases;
use crate::bench::log::place::Place;
use anyhow::Result;
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use testkit::postgres::Server;

/// A server with an empty table for ulogd2; netwren creates its own table.
pub(super) struct Database(Mutex<Server>);

/// False if there is no server or netwren was built without the feature; prints a message then.
pub(super) fn is_possible(netwren: &Path) -> bool {
    let words = ["log", "--group", "2", "--to", "postgres://a@127.0.0.1:1/b", "--queue-max", "none"];
    let says = Command::new(netwren).args(words).output().map(|ran| String::from_utf8_lossy(&ran.stderr).into_owned());
    let has_feature = says.is_ok_and(|says| !says.contains("built without"));
    let is_possible = has_feature && Server::start("faults").is_some();
    if !is_possible {
        println!(
            "faults: NOT TRIED with PostgreSQL: it needs a server and a netwren with the cargo feature `postgres`"
        );
    }
    is_possible
}

impl Database {
    pub(super) fn start() -> Option<Database> {
        let server = Server::start("faults")?;
        server.query(&databases::table_of_ulogd());
        Some(Database(Mutex::new(server)))
    }

    fn server(&self) -> MutexGuard<'_, Server> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The target of `--to`.
    pub(super) fn url(&self) -> String {
        self.server().url("")
    }

    /// The command of ulogd2 that stores into the server; `None` if it is not installed.
    pub(super) fn ulogd(&self, place: &Place<'_>) -> Result<Option<Command>> {
        databases::ulogd_into(&self.server(), place)
    }

    /// Crashes the server: connections break and uncommitted data is lost.
    pub(super) fn kill(&self) {
        self.server().kill();
    }

    /// Restarts the server.
    pub(super) fn begin(&self) {
        self.server().begin();
    }

    /// Rows so far.
    pub(super) fn count(&self) -> u64 {
        let server = self.server();
        let count = |table: &str| -> Option<u64> {
            server.try_query(&format!("SELECT count(*) FROM {table}")).ok()?.first()?.parse().ok()
        };
        count("log").or_else(|| count("bench_ulogd")).unwrap_or(0)
    }

    /// The source addresses of all rows, one per line.
    pub(super) fn sources(&self) -> Vec<u8> {
        let server = self.server();
        let lines = |sql: &str| server.try_query(sql).unwrap_or_default().join("\n");
        let (ours, theirs) = (lines("SELECT src FROM log"), lines("SELECT ip_saddr_str FROM bench_ulogd"));
        format!("{ours}\n{theirs}\n").into_bytes()
    }
}
