//! The entry point of the fuzzer.

use super::{Clock, bind, parse, resolve_times, split};
use record::Schema;
use record::rows::{Flows, Nat, NatEvents, Sockets};

/// A clock whose offset from UTC in seconds is the hour: every day has 24 changes.
struct JumpingClock;

impl Clock for JumpingClock {
    fn now_ns(&self) -> u64 {
        1_800_000_000_000_000_000
    }

    fn utc_offset_s(&self, at_s: i64) -> i64 {
        at_s.rem_euclid(86_400) / 3600
    }
}

/// Parses `data`, binds it to every table, splits it and checks that the printed form parses to the same tree. Panics
/// only if the tree has changed.
pub fn fuzz_filter(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let ast = match parse(text) {
        Ok(ast) => ast,
        Err(error) => {
            let _ = error.to_string();
            return;
        }
    };
    let printed = ast.to_string();
    // The printed form may exceed the longest text that is parsed.
    if printed.len() <= super::FilterError::TEXT_MAX {
        assert_eq!(parse(&printed).map(|again| again.root).ok().as_ref(), Some(&ast.root), "{printed}");
    }
    let timed = resolve_times(Schema::from_table::<NatEvents>(), &ast, &JumpingClock);
    let errors = [
        bind(Schema::from_table::<Sockets>(), &ast).err(),
        bind(Schema::from_table::<Flows>(), &ast).err(),
        bind(Schema::from_table::<Nat>(), &ast).err(),
        bind(Schema::from_table::<NatEvents>(), &timed).err(),
    ];
    for error in errors.into_iter().flatten() {
        let _ = error.to_string();
    }
    let _ = split(&ast, |name| super::is_known_name(Schema::from_table::<Sockets>(), name));
}
