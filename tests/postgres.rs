//! `--to postgres://…`, a feature of `./netwren.sh build`, with a server started by the test.

use crate::going::Going;
use crate::packet_files::{logging, send, shipping};
use crate::run::netwren;
use testkit::postgres::Server;

/// False if the program was built without the feature; prints a message then.
pub(crate) fn have_postgres() -> bool {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "group = 1\nto = [\"postgres://a@127.0.0.1:1/b\"]\n").unwrap();
    let have = !netwren(&["log", "check", file.path().to_str().unwrap()]).stderr.contains("cargo feature `postgres`");
    if !have {
        testkit::print_loud("skipped: tests/postgres.rs needs a netwren with --features postgres");
    }
    have
}

#[test]
fn a_password_on_the_command_line_is_warned_of_and_never_shown() {
    if !have_postgres() {
        return;
    }
    let to = "postgres://fw:hunter2@127.0.0.1:1/logs";
    let program = testkit::program::netwren();
    let words = ["-s", "INT", "1", program.to_str().unwrap(), "sockets", "--follow", "--stats", "--to", to];
    let out = std::process::Command::new("timeout").args(words).output().unwrap();
    let said = [out.stdout, out.stderr].concat();
    let said = String::from_utf8(said).unwrap();
    assert!(said.contains("postgres://fw@127.0.0.1:1/logs: the password is on the command line"), "{said}");
    assert!(!said.contains("hunter2") && said.contains("{\"outputs\":"), "{said}");
    let twice = netwren(&["sockets", "--follow", "--to", to, "--to", "postgres://fw:other@127.0.0.1:1/logs"]);
    assert!(twice.stderr.contains("would be mixed") && !twice.stderr.contains("other@"), "{}", twice.stderr);
}

#[test]
fn root_log_records_lie_in_postgres_and_are_read_as_ulogd2s() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    if !have_postgres() {
        return;
    }
    let Some(mut server) = Server::start("log") else { return };
    let lab = logging("postgres");
    let spool = lab.dir().join("spool");
    let to = server.url("&table=net.fw");
    server.query("CREATE SCHEMA net");
    let words = ["--to", &to, "--copy", "65535", "--columns", "+proto_number", "--spool", spool.to_str().unwrap()];
    let going = shipping(&lab, &words, 1);
    let count = |server: &Server| -> u64 {
        let counted = server.try_query("SELECT count(*) FROM net.fw").unwrap_or_default();
        counted.first().map_or(0, |n| n.parse().unwrap())
    };
    send(&lab);
    testkit::wait_until("rows are there", || count(&server) >= 30);
    // The server crashes, rows arrive while it is down, and it restarts.
    server.kill();
    send(&lab);
    server.begin();
    testkit::wait_until("both halves are there", || count(&server) >= 60);
    going.end().1.ok();
    let seconds = "extract(epoch FROM now())";
    let rows = server.query(&format!(
        "SELECT count(DISTINCT src) > 1, count(*) FILTER (WHERE ip_saddr_str << '127.0.0.0/8' AND udp_dport = 7009 AND \
         ip_protocol = 17) > 10, bool_and(oob_prefix IN ('in: ', 'out: ', '')), bool_and(oob_time_sec BETWEEN \
         {seconds} - 120 AND {seconds} + 1) FROM net.ulog, net.fw"
    ));
    assert_eq!(rows, ["t|t|t|t"]);
    let name = std::fs::read_dir(&spool).unwrap().map(|entry| entry.unwrap().file_name()).next().unwrap();
    assert!(name.to_string_lossy().starts_with("postgres"), "{name:?}");
}

/// The calls that talk to a server are among those that are left to a capture.
#[test]
fn root_a_capture_without_rights_fills_a_table() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    if !have_postgres() {
        return;
    }
    let Some(server) = Server::start("capture") else { return };
    let lab = logging("pgcapture");
    let to = server.url("&table=packets");
    let words = ["-i", "lo", "--stats", "--to", &to, "-c", "src,dst,dport", "udp port 7009"];
    let going: Going<String> = Going::spawn(crate::capture::command(&lab, &words), |line| line);
    let count = || server.try_query("SELECT count(*) FROM packets").unwrap_or_default();
    testkit::wait_until("rows are there", || {
        send(&lab);
        count().first().is_some_and(|count| count != "0")
    });
    let (lines, ran) = going.end();
    assert!(lines.last().is_some_and(|line| line.contains("\"resent\":0,\"failures\":0")), "{lines:?} {}", ran.stderr);
    ran.ok();
}
