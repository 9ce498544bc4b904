//! Runs the example with every table that it can read.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, dead_code)]

#[path = "../examples/run_a_table.rs"]
mod run_a_table;

use engine::RunError;
use record::SourceFault;
use run_a_table::run;
use serde_json::Value;
use tables::TableError;

/// The rows of a table; `None` if it may not be read, or this kernel lacks it.
fn rows(name: &str, filter: &str, columns: Option<&str>) -> Option<Vec<Value>> {
    let mut out = Vec::new();
    let stats = match run(name, filter, columns, &mut out) {
        Ok(stats) => stats,
        Err(error) => match error.downcast_ref::<TableError>() {
            Some(TableError::Run(RunError::Source(source))) if source.fault != SourceFault::Malformed => return None,
            _ => panic!("{name}: {error}"),
        },
    };
    assert!(stats.balances(), "{name}: {stats:?}");
    let text = String::from_utf8(out).unwrap();
    Some(text.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

#[test]
fn every_table_that_needs_no_command_runs_by_its_name() {
    for table in tables::TABLES.iter().filter(|table| table.read.is_some()) {
        let (name, field) = (table.schema.name(), table.schema.field(0).unwrap().name);
        let rows = rows(name, "", Some(field)).unwrap_or_default();
        assert!(rows.iter().all(|row| row.as_object().unwrap().keys().eq([field])), "{name}: {rows:?}");
    }
}

#[test]
fn a_filter_and_columns_select() {
    let rows = rows("routes", "iface = lo", Some("iface,family")).unwrap();
    assert!(rows.iter().all(|row| row["iface"] == "lo" && row.as_object().unwrap().len() == 2), "{rows:?}");
}

#[test]
fn what_cannot_run_is_said() {
    let says = |name, filter| run(name, filter, None, Vec::new()).unwrap_err().to_string();
    assert_eq!(says("rutes", ""), "there is no table `rutes`");
    assert_eq!(says("log", ""), "only the command `netwren log` can read this table");
    assert!(says("routes", "ifac = lo").contains("did you mean `iface`"));
}
