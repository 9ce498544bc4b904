//! `netwren agent`: its file, its parts in one process, and what it says about them.

use crate::going::Going;
use crate::log::{logging, send, to_five};
use crate::run::{clean, netwren};
use crate::service::Manager;
use serde_json::Value;
use std::collections::BTreeMap;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use testkit::netns::Lab;
use testkit::sandbox::{Limit, confine};

/// A file with this text in `dir`.
fn file(dir: &Path, text: &str) -> String {
    let path = dir.join("agent.toml");
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

/// The documentation's example with its paths moved to `dir`.
pub(crate) fn documented(dir: &Path) -> String {
    let text = std::fs::read_to_string(testkit::program::workspace().join("docs/agent.toml")).unwrap();
    let places = ["/var/log/netwren", "/var/lib/netwren", "/run/netwren", "/etc/netwren"];
    places.iter().fold(text, |text, place| text.replace(place, &dir.display().to_string()))
}

#[test]
fn what_is_wrong_in_the_file_has_its_place() {
    let to = "to = 'json:/dev/shm/{part}'\n";
    for (text, code, says) in [
        ("", 2, "agent.toml: nothing to do: add a table for each part, such as [log]; there are log, flows"),
        ("[flows]\n", 2, "agent.toml:1:2: [flows] has no `to`"),
        ("[flow]\n", 2, "agent.toml:1:2: unknown part [flow]; did you mean [flows]?"),
        ("[metrics]\n", 2, "agent.toml:1:2: unknown part [metrics]; there are log, flows"),
        ("group = 1\n[log]\n", 2, "agent.toml:1:1: `group` belongs to a part, such as [log]"),
        ("filter = 'a = 1'\n[log]\n", 2, "agent.toml:1:1: `filter` belongs to a part"),
        ("when-fll = 'x'\n[log]\n", 2, "agent.toml:1:1: unknown key `when-fll`; did you mean `when-full`?"),
        ("[log]\ncontrol = '/x'\n", 2, "agent.toml:2:1: `control` belongs at the top of the file"),
        ("[log]\nlimit = 9\n", 2, "agent.toml:2:1: `limit` would end the part"),
        ("[log]\nrecord = '/x'\n", 2, "agent.toml:2:1: `record` belongs on the command line"),
        ("[log]\n to = 'yaml:/x'\ngroup = 1\n", 2, "agent.toml:2:7: --to: `yaml` is not a message format"),
        ("TO[log]\n", 2, "agent.toml: log needs --group N"),
        ("TO[log]\ngroup = 70000\n", 2, "agent.toml:3:9: --group takes numbers from 0 to 65535"),
        ("TO[flows]\nfilter = 'dprt = 3'\n", 2, "agent.toml:3:10: filter, column 1"),
        ("TO[drops]\nwatch = 'x'\n", 2, "agent.toml:3:9: --watch takes seconds"),
        ("TO[drops]\n[drops]\n", 2, "agent.toml:3:2: duplicate key"),
        (
            "to = 'json:/dev/shm/x'\n[drops]\n[flows]\n",
            2,
            "[drops] and [flows] would write to the same file, json:/dev/shm/x",
        ),
        ("to = 'ipfix+udp://127.0.0.1:1'\n[drops]\n", 2, "--to: ipfix"),
        ("TOspool = '/does/not/exist'\n[drops]\n", 4, "spool: cannot open /does/not"),
        ("TOcontrol = '/does/not/exist'\n[drops]\n", 4, "control: cannot inspect /does/not"),
        ("to = 'json:/does/not/{part}'\n[drops]\n", 4, "json:/does/not/drops: cannot write to its directory"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let path = file(dir.path(), &text.replace("TO", to));
        netwren(&["agent", "check", &path]).says(code, &[says]);
        if code == 2 {
            netwren(&["agent", "-c", &path]).says(2, &[says]);
        }
    }
    let ran = netwren(&["agent", "check"]);
    assert!(ran.code != 4 || ran.stderr.contains("netwren agent FILE"), "{}", ran.stderr);
    netwren(&["agent", "-c", "/does/not/exist"]).says(4, &["cannot read /does/not/exist: No such file"]);
}

#[test]
fn each_part_is_a_command_with_the_settings_of_all() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().display();
    let text = format!(
        "to = ['json:{place}/{{part}}']\nspool = '{place}/spool'\nrotate-keep = 3\n\
         rotate-age = '1d'\nall-netns = true\n[flows]\nfollow = 5\n\
         to = ['syslog+tcp://127.0.0.1:1']\n[listeners]\nfilter = 'port < 1024'\n"
    );
    let said = netwren(&["agent", "check", "-c", &file(dir.path(), &text)]).ok();
    let lines: Vec<String> =
        said.replace("\n  ", " ").lines().map(|line| line.replace(&place.to_string(), "D")).collect();
    assert_eq!(
        lines,
        [
            "[flows] netwren flows --follow=5 --all-netns --spool=D/spool/flows --to=syslog+tcp://127.0.0.1:1",
            "[listeners] netwren listeners --columns=+change --watch=60 --all-netns --spool=D/spool/listeners \
             --rotate-age=1d --rotate-keep=3 --to=json:D/listeners 'port < 1024'"
        ]
    );
}

/// Passwords are not shown, and the words can be pasted.
#[test]
fn a_shown_command_is_safe() {
    let dir = tempfile::tempdir().unwrap();
    let text = "[drops]\nto = 'postgres://a:hunter2@127.0.0.1/b'\nfilter = \"iface = '$(reboot)'\"\n";
    let ran = netwren(&["agent", "check", &file(dir.path(), text)]);
    if !ran.stderr.contains("cargo feature") {
        assert!(ran.stdout.starts_with("[drops] netwren drops …"), "{}", ran.stdout);
    }
    let plain = text.replace('\'', "").replace("$(reboot)", "lo").replace("to = ", "to = '").replace("/b", "/b'");
    let shown = netwren(&["agent", "check", &file(dir.path(), &plain)]);
    if !shown.stderr.contains("cargo feature") {
        assert!(shown.stdout.contains("--to=postgres://a@127.0.0.1"), "{} {}", shown.stdout, shown.stderr);
    }
    for ran in [ran, shown] {
        assert!(!ran.stdout.contains("hunter2") && !ran.stderr.contains("hunter2"), "{} {}", ran.stdout, ran.stderr);
    }
}

/// A running agent.
struct Agent {
    going: Going<String>,
    dir: PathBuf,
}

impl Agent {
    fn start(lab: &Lab, text: &str, notify: Option<&Path>) -> Agent {
        let dir = lab.dir().to_owned();
        let path = file(&dir, &text.replace("DIR", &dir.display().to_string()));
        let mut command = Command::new(testkit::program::netwren());
        clean(&mut command).args(["agent", "-c", &path]);
        if let Some(socket) = notify {
            command.env("NOTIFY_SOCKET", socket).env("WATCHDOG_USEC", "1000000").env("INVOCATION_ID", "0");
        }
        confine(&mut command, &[Limit::Network(lab.path())]).unwrap();
        let agent = Agent { going: Going::spawn(command, |line| line), dir };
        testkit::wait_until("the control socket", || agent.dir.join("sock").exists());
        agent
    }

    fn rows(&self, part: &str) -> Vec<Value> {
        let text = std::fs::read_to_string(self.dir.join(part)).unwrap_or_default();
        // The last line may not be complete yet.
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    fn has_row(&self, part: &str, is_it: impl Fn(&Value) -> bool) -> bool {
        self.rows(part).iter().any(is_it)
    }

    fn status(&self) -> Value {
        let socket = self.dir.join("sock").display().to_string();
        serde_json::from_str(&netwren(&["agent", "status", "--control", &socket, "-o", "json"]).ok()).unwrap()
    }
}

/// Log records, flows, connections, listeners, drops and counters come from one process, each row once, until the end.
#[test]
fn root_one_process_ships_the_rows_of_all_parts() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    let lab = logging("agent");
    let text = "to = 'json:DIR/{part}'\nspool = 'DIR/spool'\ncontrol = 'DIR/sock'\n[log]\ngroup = 5\n\
                [flows]\nfollow = 1\n[connections]\n[listeners]\nwatch = 1\n[drops]\nwatch = 1\n\
                [counters]\nwatch = 1\n";
    let agent = Agent::start(&lab, text, None);
    let outputs = || agent.status()["outputs"].as_array().unwrap().len();
    testkit::wait_until("all outputs", || outputs() == 6);
    assert!(agent.status().get("silent").is_none());
    let listener = lab.run_inside(|| TcpListener::bind("127.0.0.1:0")).unwrap();
    let port = listener.local_addr().unwrap().port();
    let is_ours = |row: &Value| row["local_port"] == port || row["peer_port"] == port;
    let has_listener = |change: &str| agent.has_row("listeners", |row| is_ours(row) && row["change"] == change);
    testkit::wait_until("the new listener", || has_listener("new"));
    testkit::wait_until("a connection", || {
        let connected = lab.run_inside(|| TcpStream::connect(("127.0.0.1", port)));
        drop((connected, listener.accept()));
        agent.has_row("connections", |row| is_ours(row) && row["event"] == "close") && agent.has_row("flows", is_ours)
    });
    drop(listener);
    send(&lab, to_five(), 7);
    testkit::wait_until("the log records", || agent.rows("log").len() == 7);
    // A program without BPF sees single drops only if the host has the kernel's trace or its drop monitor.
    if crate::drops::counts_drops() {
        testkit::wait_until("a drop", || {
            let refused = lab.run_inside(|| TcpStream::connect(("127.0.0.1", port)));
            assert!(refused.is_err());
            agent.has_row("drops", |row| row["reason"] == "NO_SOCKET")
        });
    }
    testkit::wait_until("a counter", || agent.has_row("counters", |row| row["delta"].as_i64().is_some_and(|n| n != 0)));
    testkit::wait_until("the end of the listener", || has_listener("gone"));
    let status = agent.status();
    let of_part = |part: &str| status["outputs"].as_array().unwrap().iter().find(|one| one["part"] == part).unwrap();
    assert_eq!((&of_part("log")["delivered"], &of_part("log")["open"]), (&7.into(), &true.into()), "{status}");
    let socket = agent.dir.join("sock").display().to_string();
    let metrics = netwren(&["agent", "status", "--control", &socket, "-o", "prometheus"]).ok();
    assert!(metrics.contains("netwren_export_delivered_total{part=\"log\",output=\"json:"), "{metrics}");
    assert_eq!(metrics.matches("# TYPE netwren_export_delivered_total").count(), 1);
    let dir = agent.dir.clone();
    let (_, ran) = agent.going.end();
    assert!(matches!(ran.code, 0 | 3), "{}", ran.stderr);
    assert!(!dir.join("sock").exists());
    let rows = |part: &str| std::fs::read_to_string(dir.join(part)).unwrap().lines().count();
    assert_eq!(rows("log"), 7);
    let mut spools: Vec<String> = std::fs::read_dir(dir.join("spool"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    spools.sort();
    assert_eq!(spools, ["connections", "counters", "drops", "flows", "listeners", "log"]);
}

/// A part that cannot run stops no other one, is reported, and runs again.
#[test]
fn root_a_part_that_fails_stops_no_other_one() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    let lab = logging("agentfail");
    let text = "to = 'json:DIR/{part}'\ncontrol = 'DIR/sock'\n[log]\ngroup = 5\n[listeners]\nwatch = 1\n\
                netns = 'DIR/later'\n";
    let agent = Agent::start(&lab, text, None);
    testkit::wait_until("it is reported", || agent.status()["stopped"][0]["part"] == "listeners");
    testkit::wait_until("the other one runs", || agent.status()["outputs"][0]["part"] == "log");
    send(&lab, to_five(), 3);
    testkit::wait_until("its records", || agent.rows("log").len() == 3);
    std::os::unix::fs::symlink(lab.path(), agent.dir.join("later")).unwrap();
    let _listener = lab.run_inside(|| TcpListener::bind("127.0.0.1:0")).unwrap();
    testkit::wait_until("it runs again", || !agent.rows("listeners").is_empty());
    assert!(agent.status().get("stopped").is_none());
    let (_, ran) = agent.going.end();
    assert!(ran.stderr.contains("[listeners] has ended, and runs again in 5 s"), "{}", ran.stderr);
}

/// A service manager keeps the sockets of log groups, so the part continues with them when it runs again.
#[test]
fn root_the_part_log_runs_again_with_its_sockets() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    let lab = logging("agentagain");
    let manager = Manager::new();
    let text = "to = 'json:DIR/{part}'\ncontrol = 'DIR/sock'\n[log]\ngroup = 5\nspool = 'DIR/later/spool'\n";
    let agent = Agent::start(&lab, text, Some(&manager.socket()));
    testkit::wait_until("it is reported", || agent.status()["stopped"][0]["part"] == "log");
    send(&lab, to_five(), 3);
    std::fs::create_dir(agent.dir.join("later")).unwrap();
    testkit::wait_until("it runs again", || agent.status()["outputs"][0]["part"] == "log");
    send(&lab, to_five(), 2);
    testkit::wait_until("all records", || agent.rows("log").len() == 5);
    let (_, ran) = agent.going.end();
    assert!(ran.stderr.contains("continues with group 5 where the earlier run stopped"), "{}", ran.stderr);
}

/// A part that lacks data says so at once, not only at its end.
#[test]
fn root_missing_data_is_reported_in_the_first_round() {
    testkit::require_root!();
    let lab = Lab::new("agentlacks");
    let text = "to = 'json:DIR/{part}'\ncontrol = 'DIR/sock'\n[drops]\nwatch = 1\nvia = 'counters'\n";
    let agent = Agent::start(&lab, text, None);
    testkit::wait_until("a round", || agent.status()["outputs"].as_array().is_some_and(|all| !all.is_empty()));
    // It ends in the middle of a later round.
    let (_, ran) = agent.going.end();
    let lacks = "dropped packets are not counted individually";
    let lines: Vec<&str> = ran.stderr.lines().filter(|line| line.contains(lacks)).collect();
    assert_eq!(lines.len(), 2, "once in a round, once at the end: {}", ran.stderr);
    assert!(lines[0].starts_with(&format!("netwren: drops: {lacks}")), "{}", ran.stderr);
}

/// SIGHUP changes the outputs of `log` at once; other changes are named. The service manager hears of it.
#[test]
fn root_a_reload_changes_the_outputs_of_log() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    let lab = logging("agentreload");
    let manager = Manager::new();
    let wait_for = |words: &str, count: usize| testkit::wait_until(words, || manager.count(words) >= count);
    let text = "to = 'json:DIR/{part}'\ncontrol = 'DIR/sock'\n[log]\ngroup = 5\n[drops]\nwatch = 1\n\
                [findings]\n";
    let agent = Agent::start(&lab, text, Some(&manager.socket()));
    wait_for("READY=1", 1);
    testkit::wait_until("both run", || agent.status()["outputs"].as_array().unwrap().len() == 2);
    // Its first round ends after five minutes.
    assert_eq!(agent.status()["silent"][0], "findings");
    wait_for("WATCHDOG=1", 1);
    let new = text.replace("DIR/{part}", "DIR/new-{part}").replace("watch = 1", "watch = 2\nall-netns = true");
    let dir = agent.dir.display().to_string();
    file(&agent.dir, &new.replace("DIR", &dir));
    agent.going.signal("-HUP");
    wait_for("RELOADING=1", 1);
    wait_for("READY=1", 2);
    send(&lab, to_five(), 4);
    testkit::wait_until("the new output", || agent.rows("new-log").len() == 4);
    file(&agent.dir, "[lg]\n");
    agent.going.signal("-HUP");
    wait_for("RELOADING=1", 2);
    wait_for("READY=1", 3);
    let (_, ran) = agent.going.end();
    wait_for("STOPPING=1", 1);
    let drops =
        "`all-netns` of [drops], `to` of [drops], `watch` of [drops], `to` of [findings]: a change takes effect";
    for words in [drops, "agent.toml:1:2: unknown part [lg]; did you mean [log]?", "the previous one stays in effect"] {
        assert!(ran.stderr.contains(words), "{words}: {}", ran.stderr);
    }
}

/// `agent check` accepts the documented file, also with all of its commented lines.
#[test]
fn the_documented_file_is_right() {
    let dir = tempfile::tempdir().unwrap();
    let moved = documented(dir.path());
    std::fs::write(dir.path().join("password"), "x\n").unwrap();
    let said = netwren(&["agent", "check", "-c", &file(dir.path(), &moved)]).ok();
    let parts: BTreeMap<&str, &str> =
        said.lines().filter_map(|line| line.strip_prefix('[')?.split_once("] netwren ")).collect();
    assert_eq!(parts.keys().copied().collect::<Vec<_>>(), ["counters", "drops", "findings", "flows", "listeners"]);
    let all = moved.lines().map(|line| match line.strip_prefix('#') {
        Some(setting) if !setting.starts_with([' ', '\n']) && !setting.is_empty() => format!("{setting}\n"),
        _ => format!("{line}\n"),
    });
    let said = netwren(&["agent", "check", "-c", &file(dir.path(), &all.collect::<String>())]).ok();
    for part in ["[log] netwren log", "[connections] netwren sockets --follow", "[nat] netwren nat events"] {
        assert!(said.contains(part), "{part}: {said}");
    }
}
