//! `log --to sqlite:FILE`, with the feature `sqlite`, stores the columns of ulogd2's SQLITE3 and more.

use crate::packet_files::{logging, send, shipping, ulogd};
use crate::run::netwren;
use std::path::Path;
use std::process::Command;

/// False if the program was built without the feature; prints a message then.
pub(crate) fn have_sqlite() -> bool {
    let formats = netwren(&["log", "--group", "1", "--to", "none:/x"]).stderr;
    let have = formats.contains("sqlite");
    if !have {
        testkit::print_loud("skipped: tests/sqlite.rs needs a netwren with --features sqlite");
    }
    have
}

/// The rows of a query, one per line; empty while the database cannot be read.
pub(crate) fn query(file: &Path, sql: &str) -> Vec<String> {
    let script = "import sqlite3, sys\nfor row in sqlite3.connect(sys.argv[1]).execute(sys.argv[2]): print(repr(row))";
    let out = Command::new("python3").args(["-c", script]).arg(file).arg(sql).output().unwrap();
    String::from_utf8(out.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn root_sqlite_is_read_like_the_tables_of_ulogd2() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    testkit::require_tool!("ulogd");
    testkit::require_tool!("python3");
    if !have_sqlite() {
        return;
    }
    let lab = logging("sqlite");
    let (theirs, ours) = (lab.dir().join("ulogd.db"), lab.dir().join("netwren.db"));
    // The columns of the table that is shipped with ulogd2 in sqlite3.table.
    let columns = "raw_pktlen, raw_pktcount, oob_prefix, oob_mark, oob_hook, oob_uid, oob_gid";
    query(&theirs, &format!("CREATE TABLE ulog_pkt ({columns}, oob_time_sec, oob_time_usec)"));
    ulogd(&lab, "SQLITE3", &format!("db=\"{}\"\ntable=\"ulog_pkt\"\n", theirs.display()));
    let to = format!("sqlite:{}", ours.display());
    let going = shipping(&lab, &["--to", &to, "--copy", "65535", "--columns", "+payload_bytes,gid"], 2);
    send(&lab);
    let sorted = |file: &Path| {
        let mut rows = query(file, &format!("SELECT {columns} FROM ulog_pkt"));
        rows.sort();
        rows
    };
    let mut both = Default::default();
    testkit::wait_until("both have stored as many", || {
        both = (sorted(&theirs), sorted(&ours));
        both.0.len() >= 30 && both.0.len() == both.1.len()
    });
    assert_eq!(both.0, both.1);
    going.end().1.ok();
    let cells = "SELECT DISTINCT src, dport, tcp_flags, typeof(time) FROM log WHERE len = 28 AND oif IS NOT NULL";
    assert_eq!(query(&ours, cells), ["('127.0.0.1', 7009, None, 'integer')"]);
    let time = "SELECT count(*) FROM ulog_pkt WHERE oob_time_sec BETWEEN strftime('%s') - 60 AND strftime('%s') + 0";
    assert_eq!(query(&ours, time), [format!("({},)", both.1.len())]);
}
