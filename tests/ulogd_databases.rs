//! Compares `netwren ulogd` with SQLITE3 and PGSQL with the real ulogd2: both store the same rows for the same
//! packets.

use crate::packet_files::{logging, send};
use crate::postgres::have_postgres;
use crate::run::clean;
use crate::sqlite::{have_sqlite, query};
use std::fs;
use std::path::Path;
use std::process::{Child, Command};
use testkit::netns::Lab;
use testkit::postgres::Server;
use testkit::sandbox::{Limit, confine};

const STACK: &str = "stack=log:NFLOG,base:BASE,ifi:IFINDEX,ip2str:IP2STR,hw:HWHDR,out";

/// An ulogd.conf with one group and one output.
fn config(lab: &Lab, name: &str, group: u16, output: &str, settings: &str) -> String {
    let file = lab.dir().join(name);
    let log = lab.dir().join(format!("{name}.log"));
    let text = format!(
        "[global]\nlogfile=\"{}\"\n{STACK}:{output}\n[log]\ngroup={group}\nnetlink_qthreshold=1\n\
         [out]\n{settings}",
        log.display()
    );
    fs::write(&file, text).unwrap();
    file.to_str().unwrap().to_owned()
}

/// The face's process; it is killed on drop.
struct Face(Child);

impl Drop for Face {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs the real tool on group 5 and the face on group 6, with the same settings except for the target.
fn both(lab: &Lab, output: &str, theirs: &str, ours: &str) -> Face {
    let ulogd = testkit::tool::find("ulogd").unwrap();
    lab.spawn(ulogd.to_str().unwrap(), &["-c", &config(lab, "theirs.conf", 5, output, theirs)]);
    let mut command = Command::new(testkit::program::netwren());
    clean(&mut command).args(["ulogd", "--bug-compatible", "-c", &config(lab, "ours.conf", 6, output, ours)]);
    confine(&mut command, &[Limit::Network(lab.path())]).unwrap();
    let face = Face(command.spawn().unwrap());
    testkit::wait_until("both groups are bound", || lab.log_groups().len() == 2);
    face
}

fn until_equal(mut rows: impl FnMut() -> (Vec<String>, Vec<String>)) {
    let mut of_both = Default::default();
    testkit::wait_until("both have stored as many", || {
        of_both = rows();
        of_both.0.len() >= 30 && of_both.0.len() == of_both.1.len()
    });
    assert_eq!(of_both.0, of_both.1);
}

#[test]
fn root_the_face_fills_ulogd2s_table_of_sqlite() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    testkit::require_tool!("ulogd");
    testkit::require_tool!("python3");
    if !have_sqlite() {
        return;
    }
    let lab = logging("facesqlite");
    let (theirs, ours) = (lab.dir().join("theirs.db"), lab.dir().join("ours.db"));
    let columns = "raw_pktlen, raw_pktcount, oob_prefix, oob_mark, oob_hook, oob_uid, oob_gid, oob_in, oob_out, \
                   oob_family, ip_saddr_str, ip_daddr_str, ip_protocol, ip_ttl, ip_totlen, udp_sport, udp_dport, \
                   udp_len, icmp_type, icmp_code, icmpv6_type";
    let place = |file: &Path| {
        query(file, &format!("CREATE TABLE ulog_pkt ({columns}, oob_time_sec, oob_time_usec)"));
        format!("db=\"{}\"\ntable=\"ulog_pkt\"\n", file.display())
    };
    let (to_theirs, to_ours) = (place(&theirs), place(&ours));
    let _face = both(&lab, "SQLITE3", &to_theirs, &to_ours);
    send(&lab);
    let rows = |file: &Path| {
        let mut rows = query(file, &format!("SELECT {columns} FROM ulog_pkt"));
        rows.sort();
        rows
    };
    until_equal(|| (rows(&theirs), rows(&ours)));
}

/// The schema that is shipped with the tool; if its documentation is not installed, prints a message and returns
/// `None`.
fn schema(name: &str) -> Option<String> {
    let file = format!("/usr/share/doc/ulogd2/{name}.gz");
    let text = Command::new("zcat").arg(&file).output().ok().filter(|out| out.status.success());
    if text.is_none() {
        testkit::print_loud(&format!("skipped: the face's PGSQL is compared with {file}, which is not there"));
    }
    String::from_utf8(text?.stdout).ok()
}

#[test]
fn root_the_face_fills_ulogd2s_schemas_of_postgres() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    testkit::require_tool!("ulogd");
    if !have_postgres() {
        return;
    }
    for (name, table, procedure) in
        [("pgsql-ulogd2.sql", "ulog", "INSERT_PACKET_FULL"), ("pgsql-ulogd2-flat.sql", "ulog2", "INSERT")]
    {
        let Some(schema) = schema(name) else { return };
        let Some(server) = Server::start("face") else { return };
        let lab = logging("facepgsql");
        let file = server.directory().join("schema.sql");
        fs::write(&file, schema).unwrap();
        let place = |database: &str| {
            server.query(&format!("CREATE DATABASE {database}"));
            let made = server.psql(&["-d", database, "-f", file.to_str().unwrap()]).output().unwrap();
            assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
            format!(
                "db=\"{database}\"\nhost=\"{}\"\nport={}\nuser=\"postgres\"\ntable=\"{table}\"\n\
                 procedure=\"{procedure}\"\n",
                server.directory().display(),
                server.port()
            )
        };
        let (to_theirs, to_ours) = (place("theirs"), place("ours"));
        let _face = both(&lab, "PGSQL", &to_theirs, &to_ours);
        send(&lab);
        let rows = |database: &str| {
            let script = "SELECT to_jsonb(ulog) - '_id' - 'oob_time_sec' - 'oob_time_usec' FROM ulog ORDER BY 1";
            let out = server.psql(&["-d", database, "-c", script]).output().unwrap();
            String::from_utf8(out.stdout).unwrap().lines().map(str::to_owned).collect::<Vec<_>>()
        };
        until_equal(|| (rows("theirs"), rows("ours")));
    }
}
