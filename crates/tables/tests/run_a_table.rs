//! Runs the example with every table that it can read.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, dead_code)]

#[path = "../examples/run_a_table.rs"]
mod run_a_table;

use run_a_table::run;
use serde_json::Value;

/// The rows of a table.
fn rows(name: &str, filter: &str, columns: Option<&str>) -> Vec<Value> {
    let mut out = Vec::new();
    let stats = run(name, filter, columns, &mut out).unwrap();
    assert!(stats.balances(), "{name}: {stats:?}");
    let text = String::from_utf8(out).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn every_table_that_needs_no_command_runs_by_its_name() {
    for table in tables::TABLES.iter().filter(|table| table.read.is_some()) {
        let name = table.schema.name();
        // A field that is null in every row passes none.
        let field = table.schema.field(0).unwrap().name;
        let (all, one) = (rows(name, "", None), rows(name, "", Some(field)));
        assert_eq!(all.is_empty(), one.is_empty(), "{name}");
        assert!(one.iter().all(|row| row.as_object().unwrap().keys().eq([field])), "{name}: {one:?}");
    }
}

#[test]
fn a_filter_and_columns_select() {
    let rows = rows("routes", "iface = lo", Some("iface,family"));
    assert!(rows.iter().all(|row| row["iface"] == "lo" && row.as_object().unwrap().len() == 2), "{rows:?}");
}

#[test]
fn what_cannot_run_is_said() {
    let says = |name, filter| run(name, filter, None, Vec::new()).unwrap_err().to_string();
    assert_eq!(says("rutes", ""), "there is no table `rutes`");
    assert_eq!(says("log", ""), "only the command `netwren log` can read this table");
    assert!(says("routes", "ifac = lo").contains("did you mean `iface`"));
}
