//! `log --to syslog…`: the real rsyslog and syslog-ng read every field of every record, and the text of RFC 3164
//! messages.

use crate::going::Going;
use crate::log::OWN_COLUMNS;
use crate::receivers::has_tls;
use crate::run::clean;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::Command;
use testkit::authority::Authority;
use testkit::netns::Lab;
use testkit::sandbox::{Limit, confine};
use testkit::unpacked::UnpackedProgram;

const DATAGRAMS: usize = 20;
const PORT: u16 = 5514;

/// A namespace whose UDP packets to port 7009 are logged to group 5, with a prefix that contains every character that
/// must be escaped.
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

/// One message as parsed by a receiver.
#[derive(Debug, PartialEq)]
struct Received {
    /// Priority, time, host, program, process, kind.
    header: [String; 6],
    /// The parameters of the structured-data element for log records.
    params: BTreeMap<String, String>,
    sequence_id: String,
    text: String,
}

/// Parses a line of `PRI|TIME|HOST|PROGRAM|PROCESS|KIND|ELEMENTS AS JSON|TEXT`.
fn received(line: &str) -> Received {
    let mut parts = line.splitn(7, '|');
    let header = [(); 6].map(|()| parts.next().unwrap_or_default().replace("+00:00", "Z"));
    // The prefix contains a bar, so the JSON parser must find the end of the JSON.
    let rest = parts.next().unwrap_or_else(|| panic!("not as the template has it: {line}"));
    let mut json = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
    let elements = json.next().unwrap().unwrap();
    let text = rest[json.byte_offset()..].trim_start_matches('|').trim().to_owned();
    let elements = elements.get("_SDATA").unwrap_or(&elements).clone();
    let params = elements["nflog@32473"].as_object().unwrap_or_else(|| panic!("no element: {line}"));
    let params = params.iter().map(|(name, value)| (name.clone(), value.as_str().unwrap().to_owned()));
    let meta = elements["meta"].as_object().unwrap();
    // rsyslog converts names to lower case.
    let sequence_id = meta.get("sequenceId").or(meta.get("sequenceid")).unwrap().as_str().unwrap();
    Received { header, params: params.collect(), sequence_id: sequence_id.to_owned(), text }
}

/// The parameters expected for a row of `--to json`.
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

/// The shipped records, as written to files.
struct Shipped {
    /// The pid of netwren.
    pid: u32,
    /// `--to json`
    rows: Vec<Value>,
    /// `--to logemu`: time, host and text.
    texts: Vec<String>,
}

/// Ships the log records to files and to `wires`; for TLS it uses the certificate that `authority` has signed for
/// `client`.
fn ship(lab: &Lab, wires: &[String], authority: Option<&Authority>) -> Shipped {
    let (file, text_file) = (lab.dir().join("rows.json"), lab.dir().join("rows.log"));
    let mut command = Command::new(testkit::program::netwren());
    clean(&mut command).args(["log", "--group", "5", "--latency", "10ms", "--columns", OWN_COLUMNS]);
    command.args(["--to", &format!("json:{}", file.display()), "--to", &format!("logemu:{}", text_file.display())]);
    wires.iter().for_each(|wire| _ = command.args(["--to", wire]));
    if let Some(authority) = authority {
        for (flag, file) in [("--tls-ca", "ca.pem"), ("--tls-cert", "client.pem"), ("--tls-key", "client.key")] {
            command.arg(flag).arg(authority.file(file));
        }
    }
    confine(&mut command, &[Limit::Network(lab.path())]).unwrap();
    let going: Going<String> = Going::spawn(command, |line| line);
    testkit::wait_until("the group is bound", || lab.log_groups().len() == 1);
    lab.run_inside(|| {
        for n in 0..DATAGRAMS {
            let (from, to) = if n % 2 == 0 { ("127.0.0.1:0", "127.0.0.1:7009") } else { ("[::1]:0", "[::1]:7009") };
            // The rule drops the datagram, so the call returns an error.
            let _ = UdpSocket::bind(from).unwrap().send_to(&vec![b'x'; n], to);
        }
    });
    testkit::wait_until("all records are in the file", || lines(&file).len() >= DATAGRAMS);
    let pid = going.child.id();
    going.end().1.ok();
    let rows = lines(&file).iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    Shipped { pid, rows, texts: lines(&text_file) }
}

/// The complete lines of a file that may not exist yet.
fn lines(file: &Path) -> Vec<String> {
    let text = fs::read_to_string(file).unwrap_or_default();
    text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')).map(str::to_owned).collect()
}

/// Compares a receiver's output with the rows, field by field.
#[track_caller]
fn check(file: &Path, shipped: &Shipped) {
    let (rows, pid) = (&shipped.rows, shipped.pid);
    let lines = all_lines(file, rows.len());
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    for (n, (line, row)) in lines.iter().zip(rows).enumerate() {
        let received = received(line);
        // RFC 5424 has a resolution of microseconds.
        let time = format!("{}Z", &row["time"].as_str().unwrap()[..26]);
        let header = ["29", &time, host.trim_end(), "netwren", &pid.to_string(), "output"];
        assert_eq!(received.header, header, "{line}");
        assert_eq!(received.params, expected(row), "{line}");
        assert_eq!(received.sequence_id, (n + 1).to_string());
        let text = shipped.texts[n].split_once(&format!(" {} ", host.trim_end())).unwrap().1;
        assert_eq!(received.text, text.trim());
    }
}

/// Compares RFC 3164 messages in a receiver's output, `PRI|TIME|HOST|PROGRAM[PROCESS]|TEXT`, with lines of LOGEMU.
#[track_caller]
fn check_old(file: &Path, shipped: &Shipped) {
    let lines = all_lines(file, shipped.texts.len());
    let program = format!("netwren[{}]", shipped.pid);
    for (line, text) in lines.iter().zip(&shipped.texts) {
        let parts: Vec<&str> = line.splitn(5, '|').collect();
        assert_eq!((parts[0], parts[3].trim_end_matches(':')), ("29", &*program), "{line}");
        let (time, host) = (parts[1].trim_end_matches(".000000"), parts[2]);
        let text = text.strip_prefix(&format!("{time} {host} ")).unwrap_or_else(|| panic!("{line}: {text}"));
        // Some receivers remove blanks at the beginning and end of the text.
        assert_eq!(parts[4].trim(), text.trim());
    }
}

/// Waits for `count` lines in a receiver's file and checks that there are no more.
#[track_caller]
fn all_lines(file: &Path, count: usize) -> Vec<String> {
    testkit::wait_until(&format!("{} has all messages", file.display()), || lines(file).len() >= count);
    let lines = lines(file);
    assert_eq!(lines.len(), count);
    lines
}

/// The names of a receiver's inputs.
const INPUTS: [&str; 3] = ["tcp", "udp", "unix"];

fn targets(format: &str, socket: &Path) -> [String; 3] {
    [
        format!("{format}+tcp://127.0.0.1:{PORT}"),
        format!("{format}+udp://[::1]:{PORT}"),
        format!("{format}+unix:{}", socket.display()),
    ]
}

/// Waits until the receiver accepts TCP, UDP and datagrams at `socket`.
fn wait_until_open(lab: &Lab, socket: &Path) {
    testkit::wait_until("the receiver listens", || {
        let open = lab.output("ss", &["-Hlntu"]);
        open.contains("tcp") && open.contains("udp") && socket.exists()
    });
}

/// Starts a receiver in the lab; it ends with the lab.
fn start(lab: &Lab, receiver: &UnpackedProgram, words: &[&str]) {
    let paths = [receiver.environment_words(), vec!["TZ=UTC".to_owned()]].concat();
    let program = receiver.program.to_str().unwrap();
    let words: Vec<&str> = paths.iter().map(String::as_str).chain([program]).chain(words.to_vec()).collect();
    lab.spawn("env", &words);
}

/// An authority that has signed certificates for a receiver and a client.
fn authority() -> Authority {
    let authority = Authority::new();
    authority.sign("receiver", "IP:127.0.0.1", (-60, 3600));
    authority.sign("client", "DNS:client.example", (-60, 3600));
    authority
}

/// Waits until the TLS receiver listens.
fn wait_for_tls(lab: &Lab) {
    testkit::wait_until("the receiver listens", || lab.output("ss", &["-Hlnt"]).contains(&PORT.to_string()));
}

/// The configuration of one rsyslog input and the file for its messages.
fn rsyslog_input(lab: &Lab, name: &str, options: &str) -> String {
    format!(
        "ruleset(name=\"{name}\") {{ action(type=\"mmpstrucdata\")\n\
         action(type=\"omfile\" file=\"{}\" template=\"fields\") }}\n\
         input(type=\"{options} ruleset=\"{name}\")\n",
        lab.dir().join(name).display()
    )
}

/// Starts rsyslog, which writes each input to a file using `template`; returns its socket.
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
            &format!(
                "imuxsock\" socket=\"{}\" ignoreTimestamp=\"off\" useSysTimeStamp=\"off\" {unix_options}",
                socket.display()
            ),
        ),
    ];
    run_rsyslog(lab, &config.concat());
    wait_until_open(lab, &socket);
    socket
}

fn run_rsyslog(lab: &Lab, config: &str) {
    let file = lab.dir().join("rsyslog.conf");
    fs::write(&file, config).unwrap();
    let rsyslog = UnpackedProgram::find("rsyslogd").unwrap();
    let modules = rsyslog.modules("rsyslog", "imtcp.so").unwrap();
    let pid_file = lab.dir().join("pid").display().to_string();
    let modules = modules.to_str().unwrap();
    start(lab, &rsyslog, &["-n", "-f", file.to_str().unwrap(), "-i", &pid_file, "-M", modules]);
}

const RSYSLOG_FIELDS: &str =
    "%pri%|%timereported:::date-rfc3339%|%hostname%|%app-name%|%procid%|%msgid%|%$!rfc5424-sd%|%msg%";

#[test]
fn root_rsyslog_reads_every_field() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    testkit::require_tool!("rsyslogd");
    let lab = logging("rsyslog");
    let socket = start_rsyslog(&lab, "useSpecialParser=\"off\" parseHostname=\"on\"", RSYSLOG_FIELDS);
    let shipped = ship(&lab, &targets("syslog-rfc5424", &socket), None);
    INPUTS.iter().for_each(|name| check(&lab.dir().join(name), &shipped));
}

/// rsyslog as distributions configure it. `syslog+unix:` writes what libc's syslog(3) writes, and rsyslog reads streams
/// of newline-terminated messages as well as octet-counted streams.
#[test]
fn root_rsyslog_reads_its_own_socket_and_lines() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    testkit::require_tool!("rsyslogd");
    let lab = logging("rsyslogsock");
    let template = "%pri%|%timereported:::date-rfc3164%|%hostname%|%syslogtag%|%msg%";
    let socket = start_rsyslog(&lab, "", template);
    let shipped = ship(&lab, &[format!("syslog+unix:{}", socket.display())], None);
    check_old(&lab.dir().join("unix"), &shipped);
    let lab = logging("rsyslogline");
    let _socket = start_rsyslog(&lab, "", RSYSLOG_FIELDS);
    let shipped = ship(&lab, &[format!("syslog+tcp://127.0.0.1:{PORT}?framing=newline")], None);
    check(&lab.dir().join("tcp"), &shipped);
}

/// True if rsyslog has its OpenSSL module for TLS.
fn rsyslog_has_tls() -> bool {
    let rsyslog = UnpackedProgram::find("rsyslogd").unwrap();
    let has = rsyslog.modules("rsyslog", "lmnsd_ossl.so").is_some();
    // An installed rsyslog would not find unpacked modules.
    let require =
        !rsyslog.is_installed() && std::env::var_os("NETWREN_REQUIRE_TOOLS").is_some_and(|value| value == "1");
    assert!(has || !require, "NETWREN_REQUIRE_TOOLS=1, but rsyslog-openssl is not here");
    if !has {
        testkit::print_loud("skipped: a test needs rsyslog-openssl");
    }
    has
}

#[test]
fn root_rsyslog_reads_every_field_by_tls_of_a_client_that_it_knows() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    testkit::require_tool!("rsyslogd");
    if !has_tls() || !rsyslog_has_tls() {
        return;
    }
    let (lab, authority) = (logging("rsyslogtls"), authority());
    let [ca, certificate, key] = ["ca.pem", "receiver.pem", "receiver.key"].map(|name| authority.file(name));
    let config = format!(
        "global(workDirectory=\"{}\" net.enableDNS=\"off\" defaultNetstreamDriver=\"ossl\"\n\
         defaultNetstreamDriverCAFile=\"{}\" defaultNetstreamDriverCertFile=\"{}\" \
         defaultNetstreamDriverKeyFile=\"{}\")\n\
         module(load=\"imtcp\" streamDriver.name=\"ossl\" streamDriver.mode=\"1\" \
         streamDriver.authMode=\"x509/certvalid\")\nmodule(load=\"mmpstrucdata\")\n\
         template(name=\"fields\" type=\"string\" string=\"{RSYSLOG_FIELDS}\\n\")\n{}",
        lab.dir().display(),
        ca.display(),
        certificate.display(),
        key.display(),
        rsyslog_input(&lab, "tls", &format!("imtcp\" port=\"{PORT}\""))
    );
    run_rsyslog(&lab, &config);
    wait_for_tls(&lab);
    let shipped = ship(&lab, &[format!("syslog+tls://127.0.0.1:{PORT}")], Some(&authority));
    check(&lab.dir().join("tls"), &shipped);
}

#[test]
fn root_rsyslog_reads_old_messages() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    testkit::require_tool!("rsyslogd");
    let lab = logging("rsyslogold");
    let template = "%pri%|%timereported:::date-rfc3164%|%hostname%|%syslogtag%|%msg%";
    let socket = start_rsyslog(&lab, "", template);
    let shipped = ship(&lab, &targets("syslog-rfc3164", &socket), None);
    INPUTS.iter().for_each(|name| check_old(&lab.dir().join(name), &shipped));
}

const SYSLOG_NG_OPTIONS: &str =
    "options { keep-hostname(yes); use-dns(no); dns-cache(no); frac-digits(6); time-zone(UTC); };\n";

/// Starts syslog-ng, which writes each of these sources to a file using `template`; returns its socket.
fn start_syslog_ng(lab: &Lab, sources: [&str; 3], template: &str) -> PathBuf {
    let log = |(name, source): (&&str, &str)| syslog_ng_log(lab, name, source, template);
    run_syslog_ng(lab, &INPUTS.iter().zip(sources).map(log).collect::<String>());
    let socket = lab.dir().join("log.sock");
    wait_until_open(lab, &socket);
    socket
}

/// The configuration that writes one source to a file.
fn syslog_ng_log(lab: &Lab, name: &str, source: &str, template: &str) -> String {
    let file = lab.dir().join(name).display().to_string();
    format!("log {{ source {{ {source}; }}; destination {{ file(\"{file}\" template(\"{template}\\n\")); }}; }};\n")
}

fn run_syslog_ng(lab: &Lab, logs: &str) {
    let syslog_ng = UnpackedProgram::find("syslog-ng").unwrap();
    let version = syslog_ng.config_version().unwrap();
    let config = format!("@version: {version}\n{SYSLOG_NG_OPTIONS}{logs}");
    let file = lab.dir().join("syslog-ng.conf");
    fs::write(&file, config.replace("DIR", &lab.dir().display().to_string())).unwrap();
    let own = ["persist", "pid", "control"].map(|name| lab.dir().join(name).display().to_string());
    let modules = syslog_ng.modules("syslog-ng", "libsyslogformat.so").unwrap();
    let words = ["-F", "-f", file.to_str().unwrap(), "-R", &own[0], "-p", &own[1], "-c", &own[2], "--no-caps"];
    start(lab, &syslog_ng, &[&words[..], &["--module-path", modules.to_str().unwrap()]].concat());
}

const SYSLOG_NG_FIELDS: &str = "$PRI|$ISODATE|$HOST|$PROGRAM|$PID|$MSGID|$(format-json --scope sdata)|$MSG";

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
    let socket = start_syslog_ng(&lab, sources, SYSLOG_NG_FIELDS);
    let shipped = ship(&lab, &targets("syslog-rfc5424", &socket), None);
    INPUTS.iter().for_each(|name| check(&lab.dir().join(name), &shipped));
}

#[test]
fn root_syslog_ng_reads_every_field_by_tls_of_a_client_that_it_knows() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    testkit::require_tool!("syslog-ng");
    if !has_tls() {
        return;
    }
    let (lab, authority) = (logging("syslogngtls"), authority());
    let [ca, certificate, key] = ["ca.pem", "receiver.pem", "receiver.key"].map(|name| authority.file(name));
    let source = format!(
        "syslog(transport(tls) ip-protocol(4) port({PORT}) tls(ca-file(\"{}\") cert-file(\"{}\") key-file(\"{}\") \
         peer-verify(required-trusted)))",
        ca.display(),
        certificate.display(),
        key.display()
    );
    run_syslog_ng(&lab, &syslog_ng_log(&lab, "tls", &source, SYSLOG_NG_FIELDS));
    wait_for_tls(&lab);
    let shipped = ship(&lab, &[format!("syslog+tls://127.0.0.1:{PORT}")], Some(&authority));
    check(&lab.dir().join("tls"), &shipped);
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
    let shipped = ship(&lab, &targets("syslog-rfc3164", &socket), None);
    INPUTS.iter().for_each(|name| check_old(&lab.dir().join(name), &shipped));
}
