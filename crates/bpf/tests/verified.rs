//! Bounds the number of instructions that the verifier processes, which is the cost of loading. A branch in the wrong
//! place doubles the paths that it follows, and only a clock would show that otherwise.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use bpf::{KernelTypes, LoadSpec, load_with};
use sys::Host;

/// Object, program, and the maximum number of processed instructions with every part of a row: twice the number on
/// 6.18.
const PROGRAMS: &[(&str, &str, u32)] = &[
    ("conntrack_new", "on_packet", 800),
    ("conntrack_walk", "walk_conntrack", 5000),
    ("conntrack_walk", "walk_portion", 120_000),
    ("cpu_samples", "on_sample", 4000),
    ("function_names", "name_place", 1600),
    ("owners_files", "owners_files", 1000),
    ("owners_files", "owners_in_flight", 12_500),
    ("sockets_events", "on_state", 30_000),
    ("sockets_events", "on_name4", 2100),
    ("sockets_events", "on_send", 2100),
    ("sockets_events", "stamp", 2100),
    ("packet_delays", "on_ready", 2300),
    ("packet_drops", "on_drop", 7300),
    ("packet_drops", "on_drop_event", 8300),
    ("packet_drops", "on_drop_frame", 20_600),
    ("resets", "on_received", 600),
    ("resets", "on_sent", 1200),
    ("path_stages", "on_packet", 800),
    ("sockets_iter", "sockets_iter", 9000),
    ("sockets_walk", "walk_ehash", 12_500),
    ("sockets_walk", "walk_listeners", 5200),
    ("sockets_walk", "list_namespaces", 300),
];

#[test]
fn root_programs_are_verified_in_few_steps() {
    testkit::require_root!();
    let host = Host::live();
    let types = KernelTypes::read(&host).unwrap().with_module(&host, "nf_conntrack").unwrap();
    for (object, name, most) in PROGRAMS {
        let path = format!("{}/objects/{object}.o", env!("CARGO_MANIFEST_DIR"));
        let object = std::fs::read(path).unwrap();
        let spec = LoadSpec { object: &object, programs: &[name], constants: &[], entries: &[] };
        let steps = match load_with(&types, &spec) {
            Ok(loaded) => loaded.program(name).unwrap().verified_instructions().unwrap(),
            Err(error) => {
                println!("{name}: not on this kernel: {error}");
                continue;
            }
        };
        println!("{name}: {steps} instructions");
        assert!(steps <= *most, "{name}: the verifier looked at {steps} instructions, more than {most}");
    }
}
