//! `log --to syslog…`: the real rsyslog and syslog-ng read every field of every record, and the text of old messages.

use crate::going::Going;
use crate::run::clean;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::Command;
use sys::sandbox::{Limit, confine};
use testkit::netns::Lab;

const DATAGRAMS: usize = 20;
const PORT: u16 = 5514;

/// A namespace whose UDP to port 7009 is logged to group 5, with all that must be escaped in the prefix.
fn logging(purpose: &str) -> Lab {
    let lab = Lab::new(purpose);
    lab.nft(
        "table inet t { chain o { type filter hook output priority 0
           ip daddr 127.0.0.1 udp dport 7009 mark set 0x1f log prefix \"to [a]\\\\x = \u{1b}ä|: \" group 5 drop
           udp dport 7009 log group 5 drop
         }
         }",
    );
    lab
}

/// One message as a receiver has read it.
#[derive(Debug, PartialEq)]
struct Received {
    /// Priority, time, host, program, process, kind.
    header: [String; 6],
    /// Parameters of the element of log records.
    params: BTreeMap<String, String>,
    sequence_id: String,
    text: String,
}

/// A line of `PRI|TIME|HOST|PROGRAM|PROCESS|KIND|ELEMENTS AS JSON|TEXT`.
fn received(line: &str) -> Received {
    let mut parts = line.splitn(7, '|');
    let header = [(); 6].map(|()| parts.next().unwrap_or_default().replace("+00:00", "Z"));
    // The prefix has a bar inside: the JSON ends where JSON ends.
    let rest = parts.next().unwrap_or_else(|| panic!("not as the template has it: {line}"));
    let mut json = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
    let elements = json.next().unwrap().unwrap();
    let text = rest[json.byte_offset()..].trim_start_matches('|').trim().to_owned();
    let elements = elements.get("_SDATA").unwrap_or(&elements).clone();
    let params = elements["nflog@32473"].as_object().unwrap_or_else(|| panic!("no element: {line}"));
    let params = params.iter().map(|(name, value)| (name.clone(), value.as_str().unwrap().to_owned()));
    let meta = elements["meta"].as_object().unwrap();
    // rsyslog's names are in lower case.
    let sequence_id = meta.get("sequenceId").or(meta.get("sequenceid")).unwrap().as_str().unwrap();
    Received { header, params: params.collect(), sequence_id: sequence_id.to_owned(), text }
}

/// The parameters that a row of `--to json` should have become.
fn expected(row: &Value) -> BTreeMap<String, String> {
    let text = |value: &Value| match value {
        Value::String(text) => {
            let mut escaped = Vec::new();
            record::text::put_text(&mut escaped, text.as_bytes());
            String::from_utf8(escaped).unwrap()
        }
        Value::Array(words) => words.iter().map(|word| word.as_str().unwrap()).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    };
    let name = |name: &str| match name {
        "iif" => "in".to_owned(),
        "oif" => "out".to_owned(),
        other => other.to_owned(),
    };
    let set = row.as_object().unwrap().iter().filter(|(name, value)| !value.is_null() && *name != "time");
    let mut params: BTreeMap<String, String> = set.map(|(key, value)| (name(key), text(value))).collect();
    for hex in ["mark", "tos", "ether_type"] {
        if let Some(value) = params.get_mut(hex) {
            *value = format!("{:#x}", value.parse::<u64>().unwrap());
        }
    }
    params
}

/// What was shipped, as files have it.
struct Shipped {
    /// Number of the process.
    pid: u32,
    /// `--to json`
    rows: Vec<Value>,
    /// `--to logemu`: time, host and text.
    texts: Vec<String>,
}

/// Ships what is logged to files and to `wires`.
fn ship(lab: &Lab, wires: &[String]) -> Shipped {
    let (file, text_file) = (lab.dir().join("rows.json"), lab.dir().join("rows.log"));
    let mut command = Command::new(testkit::program::netwren());
    clean(&mut command).args(["log", "--group", "5", "--latency", "10ms", "--columns", "all"]);
    command.args(["--to", &format!("json:{}", file.display()), "--to", &format!("logemu:{}", text_file.display())]);
    wires.iter().for_each(|wire| _ = command.args(["--to", wire]));
    confine(&mut command, &[Limit::Network(lab.path())]).unwrap();
    let going: Going<String> = Going::spawn(command, |line| line);
    testkit::wait_until("the group is bound", || {
        lab.output("cat", &["/proc/net/netfilter/nfnetlink_log"]).lines().count() == 1
    });
    lab.inside(|| {
        for n in 0..DATAGRAMS {
            let (from, to) = if n % 2 == 0 { ("127.0.0.1:0", "127.0.0.1:7009") } else { ("[::1]:0", "[::1]:7009") };
            // The rule drops it, which the kernel says.
            let _ = UdpSocket::bind(from).unwrap().send_to(&vec![b'x'; n], to);
        }
    });
    testkit::wait_until("all records are in the file", || lines(&file).len() >= DATAGRAMS);
    let pid = going.child.id();
    going.end().1.ok();
    let rows = lines(&file).iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    Shipped { pid, rows, texts: lines(&text_file) }
}

/// Whole lines of a file that may not be there yet.
fn lines(file: &Path) -> Vec<String> {
    let text = fs::read_to_string(file).unwrap_or_default();
    text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')).map(str::to_owned).collect()
}

/// Compares what a receiver has written with the rows, field by field.
#[track_caller]
fn check(file: &Path, shipped: &Shipped) {
    let (rows, pid) = (&shipped.rows, shipped.pid);
    let lines = all_lines(file, rows.len());
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    for (n, (line, row)) in lines.iter().zip(rows).enumerate() {
        let received = received(line);
        // RFC 5424 has microseconds.
        let time = format!("{}Z", &row["time"].as_str().unwrap()[..26]);
        let header = ["29", &time, host.trim_end(), "netwren", &pid.to_string(), "output"];
        assert_eq!(received.header, header, "{line}");
        assert_eq!(received.params, expected(row), "{line}");
        assert_eq!(received.sequence_id, (n + 1).to_string());
        let text = shipped.texts[n].split_once(&format!(" {} ", host.trim_end())).unwrap().1;
        assert_eq!(received.text, text.trim());
    }
}

/// Compares old messages as a receiver has written them, `PRI|TIME|HOST|PROGRAM[PROCESS]|TEXT`, with lines of LOGEMU.
#[track_caller]
fn check_old(file: &Path, shipped: &Shipped) {
    let lines = all_lines(file, shipped.texts.len());
    let program = format!("netwren[{}]", shipped.pid);
    for (line, text) in lines.iter().zip(&shipped.texts) {
        let parts: Vec<&str> = line.splitn(5, '|').collect();
        assert_eq!((parts[0], parts[3].trim_end_matches(':')), ("29", &*program), "{line}");
        let (time, host) = (parts[1].trim_end_matches(".000000"), parts[2]);
        let text = text.strip_prefix(&format!("{time} {host} ")).unwrap_or_else(|| panic!("{line}: {text}"));
        // Some receivers take away the blanks that a text begins or ends with.
        assert_eq!(parts[4].trim(), text.trim());
    }
}

/// The lines of a receiver's file, once there are so many; there must not be more.
#[track_caller]
fn all_lines(file: &Path, count: usize) -> Vec<String> {
    testkit::wait_until(&format!("{} has all messages", file.display()), || lines(file).len() >= count);
    let lines = lines(file);
    assert_eq!(lines.len(), count);
    lines
}

/// The inputs of a receiver, and what sends to them.
const INPUTS: [&str; 3] = ["tcp", "udp", "unix"];

fn targets(format: &str, socket: &Path) -> [String; 3] {
    [
        format!("{format}+tcp://127.0.0.1:{PORT}"),
        format!("{format}+udp://[::1]:{PORT}"),
        format!("{format}+unix:{}", socket.display()),
    ]
}

/// Waits until the receiver takes TCP, UDP and datagrams at `socket`.
fn wait_until_open(lab: &Lab, socket: &Path) {
    testkit::wait_until("the receiver listens", || {
        let open = lab.output("ss", &["-Hlntu"]);
        open.contains("tcp") && open.contains("udp") && socket.exists()
    });
}

/// The folder `usr` that a program is in, which may have been unpacked anywhere, with its libraries and modules.
fn usr(program: &str) -> (PathBuf, PathBuf) {
    let program = testkit::tool::find(program).unwrap();
    let usr = program.parent().and_then(Path::parent).unwrap().to_owned();
    (program, usr)
}

/// Folders with `name` at their end: in `usr/lib` and in the libraries of each architecture there.
fn lib_dirs(usr: &Path, name: &str) -> Vec<PathBuf> {
    let libs = [usr.join("lib"), usr.with_file_name("lib")];
    let below = libs.iter().flat_map(|lib| fs::read_dir(lib).into_iter().flatten().map_while(Result::ok));
    let of_arch = below.map(|dir| dir.path()).filter(|dir| dir.to_string_lossy().ends_with("-linux-gnu"));
    let dirs: Vec<PathBuf> = of_arch.chain([usr.join("lib")]).map(|dir| dir.join(name)).collect();
    dirs.into_iter().filter(|dir| dir.is_dir()).collect()
}

/// What env(1) sets for a program that was unpacked beside its libraries; nothing for one that is installed.
fn library_path(usr: &Path) -> Vec<String> {
    if usr == Path::new("/usr") {
        return Vec::new();
    }
    let dirs = [lib_dirs(usr, ""), lib_dirs(usr, "syslog-ng")].concat();
    let dirs: Vec<String> = dirs.iter().map(|dir| dir.display().to_string()).collect();
    vec![format!("LD_LIBRARY_PATH={}", dirs.join(":"))]
}

/// Starts a receiver inside, which ends with the lab.
fn start(lab: &Lab, program: &Path, usr: &Path, words: &[&str]) {
    let paths = [library_path(usr), vec!["TZ=UTC".to_owned()]].concat();
    let words: Vec<&str> =
        paths.iter().map(String::as_str).chain([program.to_str().unwrap()]).chain(words.to_vec()).collect();
    lab.spawn("env", &words);
}

/// One input of rsyslog, and the file of what comes by it.
fn rsyslog_input(lab: &Lab, name: &str, options: &str) -> String {
    format!(
        "ruleset(name=\"{name}\") {{ action(type=\"mmpstrucdata\")\n\
         action(type=\"omfile\" file=\"{}\" template=\"fields\") }}\n\
         input(type=\"{options} ruleset=\"{name}\")\n",
        lab.dir().join(name).display()
    )
}

/// Starts rsyslog, which writes its inputs to files by `template`; returns its socket.
fn start_rsyslog(lab: &Lab, unix_options: &str, template: &str) -> PathBuf {
    let socket = lab.dir().join("log.sock");
    let config = [
        &format!("global(workDirectory=\"{}\" net.enableDNS=\"off\")\n", lab.dir().display()),
        "module(load=\"imtcp\")\nmodule(load=\"imudp\")\nmodule(load=\"mmpstrucdata\")\n\
         module(load=\"imuxsock\" SysSock.Use=\"off\")\n",
        &format!("template(name=\"fields\" type=\"string\" string=\"{template}\\n\")\n"),
        &rsyslog_input(lab, "tcp", &format!("imtcp\" port=\"{PORT}\"")),
        &rsyslog_input(lab, "udp", &format!("imudp\" port=\"{PORT}\"")),
        &rsyslog_input(
            lab,
            "unix",
            &format!("imuxsock\" socket=\"{}\" ignoreTimestamp=\"off\" {unix_options}", socket.display()),
        ),
    ];
    let file = lab.dir().join("rsyslog.conf");
    fs::write(&file, config.concat()).unwrap();
    let (program, usr) = usr("rsyslogd");
    let modules = lib_dirs(&usr, "rsyslog");
    let pid_file = lab.dir().join("pid").display().to_string();
    let modules = modules.first().unwrap().to_str().unwrap();
    start(lab, &program, &usr, &["-n", "-f", file.to_str().unwrap(), "-i", &pid_file, "-M", modules]);
    wait_until_open(lab, &socket);
    socket
}

#[test]
fn root_rsyslog_reads_every_field() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    testkit::require_tool!("rsyslogd");
    let lab = logging("rsyslog");
    let template = "%pri%|%timereported:::date-rfc3339%|%hostname%|%app-name%|%procid%|%msgid%|%$!rfc5424-sd%|%msg%";
    let socket = start_rsyslog(&lab, "useSpecialParser=\"off\" parseHostname=\"on\"", template);
    let shipped = ship(&lab, &targets("syslog", &socket));
    INPUTS.iter().for_each(|name| check(&lab.dir().join(name), &shipped));
}

#[test]
fn root_rsyslog_reads_old_messages() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    testkit::require_tool!("rsyslogd");
    let lab = logging("rsyslogold");
    let template = "%pri%|%timereported:::date-rfc3164%|%hostname%|%syslogtag%|%msg%";
    let socket = start_rsyslog(&lab, "", template);
    let shipped = ship(&lab, &targets("syslog-rfc3164", &socket));
    INPUTS.iter().for_each(|name| check_old(&lab.dir().join(name), &shipped));
}

const SYSLOG_NG_OPTIONS: &str =
    "options { keep-hostname(yes); use-dns(no); dns-cache(no); frac-digits(6); time-zone(UTC); };\n";

/// Starts syslog-ng, which writes these sources to files by `template`; returns its socket.
fn start_syslog_ng(lab: &Lab, sources: [&str; 3], template: &str) -> PathBuf {
    let (program, usr) = usr("syslog-ng");
    let version = Command::new("env").args(library_path(&usr)).arg(&program).arg("--version").output().unwrap();
    let version = String::from_utf8(version.stdout).unwrap();
    let version = version.lines().find_map(|line| line.strip_prefix("Config version: ")).unwrap();
    let mut config = format!("@version: {version}\n{SYSLOG_NG_OPTIONS}");
    for (name, source) in INPUTS.iter().zip(sources) {
        let file = lab.dir().join(name).display().to_string();
        config += &format!(
            "log {{ source {{ {source}; }}; destination {{ file(\"{file}\" template(\"{template}\\n\")); }}; }};\n"
        );
    }
    let file = lab.dir().join("syslog-ng.conf");
    fs::write(&file, config.replace("DIR", &lab.dir().display().to_string())).unwrap();
    let own = ["persist", "pid", "control"].map(|name| lab.dir().join(name).display().to_string());
    let modules = lib_dirs(&usr, "syslog-ng").into_iter().flat_map(|dir| fs::read_dir(dir).unwrap());
    let modules = modules.map(|dir| dir.unwrap().path()).find(|dir| dir.join("libsyslogformat.so").exists()).unwrap();
    let words = ["-F", "-f", file.to_str().unwrap(), "-R", &own[0], "-p", &own[1], "-c", &own[2], "--no-caps"];
    start(lab, &program, &usr, &[&words[..], &["--module-path", modules.to_str().unwrap()]].concat());
    let socket = lab.dir().join("log.sock");
    wait_until_open(lab, &socket);
    socket
}

#[test]
fn root_syslog_ng_reads_every_field() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    testkit::require_tool!("syslog-ng");
    let lab = logging("syslogng");
    let sources = [
        "syslog(transport(tcp) ip-protocol(4) port(5514))",
        "syslog(transport(udp) ip-protocol(6) port(5514))",
        "unix-dgram(\"DIR/log.sock\" flags(syslog-protocol))",
    ];
    let template = "$PRI|$ISODATE|$HOST|$PROGRAM|$PID|$MSGID|$(format-json --scope sdata)|$MSG";
    let socket = start_syslog_ng(&lab, sources, template);
    let shipped = ship(&lab, &targets("syslog", &socket));
    INPUTS.iter().for_each(|name| check(&lab.dir().join(name), &shipped));
}

#[test]
fn root_syslog_ng_reads_old_messages() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    testkit::require_tool!("syslog-ng");
    let lab = logging("syslogngold");
    let sources = [
        "network(transport(tcp) ip-protocol(4) port(5514))",
        "network(transport(udp) ip-protocol(6) port(5514))",
        "unix-dgram(\"DIR/log.sock\" flags(no-hostname))",
    ];
    let socket = start_syslog_ng(&lab, sources, "$PRI|$DATE|$HOST|$PROGRAM[$PID]|$MSG");
    let shipped = ship(&lab, &targets("syslog-rfc3164", &socket));
    INPUTS.iter().for_each(|name| check_old(&lab.dir().join(name), &shipped));
}
