//! The native commands.

mod flows;
mod glance;
mod plan;
mod sockets;
mod support;
mod table;

pub(crate) use glance::glance;

use crate::exit::Exit;
use crate::flags::Request;
use std::ffi::OsString;

/// Runs the native command called `name`; `None` if there is none of that name.
pub(crate) fn run(name: &str, args: impl Iterator<Item = OsString>) -> Option<Exit> {
    let command: fn(&Request) -> Exit = match name {
        "sockets" => sockets::run,
        "flows" => flows::run,
        "support" => return Some(support::run(args)),
        _ => return None,
    };
    Some(match Request::parse(name, args) {
        Ok(request) => command(&request),
        Err(error) => {
            let _ = error.print();
            if error.use_stderr() { Exit::Usage } else { Exit::Ok }
        }
    })
}
