//! `netwren support`: features, backends and states as rows, and a bundle for bug reports without names or addresses.

use crate::run::{Ran, command_for_anyone, netwren};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use testkit::netns::Lab;
use testkit::sandbox::{Limit, confine};

fn rows(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn root_each_backend_of_a_feature_has_a_state_and_a_remedy() {
    testkit::require_root!();
    let all = rows(&netwren(&["support", "-o", "json"]).ok());
    let of = |all: &[Value], feature: &str, backend: &str| {
        let is_it = |row: &&Value| row["feature"] == feature && row["backend"] == backend;
        all.iter().find(is_it).unwrap_or_else(|| panic!("{feature} via {backend}")).clone()
    };
    for backend in ["netlink", "proc"] {
        assert_eq!(of(&all, "tcp sockets", backend)["state"], "works");
    }
    assert!(all.iter().all(|row| (row["state"] == "works") == row["works"].as_bool().unwrap()));
    let mut child = command_for_anyone(&["support", "-o", "json"]);
    confine(&mut child, &[Limit::User { uid: 65_534, gid: 65_534 }]).unwrap();
    let nobody = rows(&Ran::of(child.output().unwrap()).stdout);
    let row = nobody.iter().find(|row| row["feature"] == "capturing packets").unwrap();
    assert_eq!((&row["state"], &row["remedy"]), (&"right missing".into(), &"root, or CAP_NET_RAW".into()), "{row}");
    let row = nobody.iter().find(|row| row["feature"] == "CAP_SYS_PTRACE").unwrap();
    assert_eq!((&row["state"], &row["remedy"]), (&"right missing".into(), &"root, or CAP_SYS_PTRACE".into()), "{row}");
    let text = netwren(&["support", "works = false", "--columns", "state"]).ok();
    assert!(text.lines().all(|line| line != "works"), "{text}");
}

/// True if the port is the value of a port's field, or a word of a text. Any other number may be equal by chance.
fn names_port(value: &Value, key: &str, port: u64) -> bool {
    match value {
        Value::Number(number) => key.ends_with("port") && number.as_u64() == Some(port),
        Value::String(text) => text.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| word == port.to_string()),
        Value::Array(all) => all.iter().any(|value| names_port(value, key, port)),
        Value::Object(all) => all.iter().any(|(key, value)| names_port(value, key, port)),
        _ => false,
    }
}

#[test]
fn root_a_bundle_contains_no_names() {
    testkit::require_root!();
    // Build the program first, because the process below ends by itself.
    testkit::program::netwren();
    let lab = Lab::new("bundled");
    lab.ip(&["link", "add", "secretif0", "type", "veth", "peer", "name", "secretif1"]);
    lab.ip(&["addr", "add", "203.0.113.77/24", "dev", "secretif0"]);
    lab.ip(&["addr", "add", "2001:db8:be:ef::77/64", "dev", "secretif0", "nodad"]);
    lab.ip(&["link", "set", "secretif0", "up"]);
    let script = "
import socket, time
open('/proc/self/comm', 'w').write('secretcomm')
held = [socket.socket(socket.AF_UNIX)]; held[0].bind('\\0secretpath')
for family, addr in ((2, '203.0.113.77'), (10, '2001:db8:be:ef::77')):
    listener = socket.socket(family); listener.bind((addr, 4433)); listener.listen()
    held += [listener, socket.create_connection((addr, 4433), source_address=(addr, 45678)), listener.accept()[0]]
time.sleep(300)
";
    lab.spawn("python3", &["-c", script]);
    lab.wait_until("they are connected", || lab.output("ss", &["-Htn"]).matches("ESTAB").count() >= 4);
    let file = lab.dir().join("bundle.json");
    let path = file.display().to_string();
    let ran = netwren(&["support", "--bundle", &path]);
    assert!(matches!(ran.code, 0 | 3), "{}: {}", ran.code, ran.stderr);
    assert!(ran.stdout.contains("holds not") && ran.stdout.contains("pseudonyms"), "{}", ran.stdout);
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let bytes = std::fs::read(&file).unwrap();
    let has = |part: &[u8]| bytes.windows(part.len()).any(|window| window == part);
    let ipv6: std::net::Ipv6Addr = "2001:db8:be:ef::77".parse().unwrap();
    let name = lab.name().as_bytes();
    for secret in [&b"203.0.113.77"[..], &[203, 0, 113, 77], b"2001:db8:be", &ipv6.octets(), b"secret", name, b"python"]
    {
        assert!(!has(secret), "{}", String::from_utf8_lossy(secret));
    }
    let hostname = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    assert!(hostname.trim().len() < 5 || !has(hostname.trim().as_bytes()));
    // The data for bug reports is included, and an address has the same pseudonym in every table.
    let all = rows(&String::from_utf8(bytes.clone()).unwrap());
    assert!(!all.iter().any(|row| names_port(row, "", 45_678)), "a client's port");
    assert_eq!((&all[0]["bundle"], &all[0]["netwren"]), (&1.into(), &env!("CARGO_PKG_VERSION").into()));
    let ends: Vec<&Value> = all.iter().filter(|row| row.get("end").is_some()).collect();
    assert_eq!(ends.len(), 5, "{ends:?}");
    let listener = all.iter().find(|row| row["state"] == "listen" && row["local_port"] == 4433).unwrap();
    let addr = listener["local_addr"].as_str().unwrap();
    assert!(addr.starts_with("v4-") || addr.starts_with("v6-"), "{listener}");
    let is_of_flow = |row: &&Value| row["connections"].is_u64() && row["local_addr"] == addr;
    assert!(all.iter().any(|row| is_of_flow(&row)), "a flow of {addr}");
    let comm = &listener["process"];
    assert!(comm.as_str().unwrap().starts_with("text-"), "{listener}");
    assert!(all.iter().any(|row| row["connections"].is_u64() && &row["process"] == comm));
    assert!(all.iter().any(|row| row["name"] == "TcpOutSegs"), "counters have their names");
    // Each bundle has a new key and a new file, and is never written through a link.
    netwren(&["support", "--bundle", &path]).says(4, &["cannot write", "exists"]);
    let link = lab.dir().join("link");
    std::os::unix::fs::symlink(lab.dir().join("aim"), &link).unwrap();
    netwren(&["support", "--bundle", link.to_str().unwrap()]).says(4, &["cannot write"]);
    assert!(!lab.dir().join("aim").exists());
    netwren(&["support", "--bundle", &path, "-o", "json"]).says(2, &["--bundle writes complete tables"]);
    let again = lab.dir().join("again").display().to_string();
    netwren(&["support", "--bundle", &again]);
    assert!(!std::fs::read_to_string(&again).unwrap().contains(addr));
}
