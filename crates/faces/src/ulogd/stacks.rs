//! Interprets the stacks of an ulogd.conf: the target and format for each group.

use super::file::{Complaint, Section, Setting, read};
use super::settings::Settings;
use export::{Address, Format, Framing, Target};
use shipping::UlogdTuning;
use sinks::LocalTime;
use sinks::syslog::Priority;
use sinks::ulogd::Stages;
use std::path::{Path, PathBuf};

/// One stack.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Output {
    pub(super) target: Target,
    pub(super) tuning: UlogdTuning,
}

/// Output plugins that are not supported, and their alternatives.
const NO_OUTPUTS: &[(&str, &str)] = &[
    ("MYSQL", "JSON in a file can be read into a database"),
    ("DBI", "JSON in a file can be read into a database"),
    ("NACCT", "`netwren nat events` has counters of flows"),
    ("GRAPHITE", "`netwren log --to json+tcp://HOST:PORT` sends rows"),
    ("IPFIX", "`netwren flows --follow --to json+tcp://HOST:PORT` sends flows"),
];

/// Input plugins that are not supported, and their alternatives.
const NO_INPUTS: &[(&str, &str)] = &[
    ("NFCT", "`netwren nat events --to` ships events of connection tracking"),
    ("NFACCT", "`nft list counters` shows counters"),
    ("ULOG", "the kernel no longer has it; use NFLOG"),
    ("UNIXSOCK", "packets from other programs are not supported"),
];

/// The outputs of the file's stacks, or all problems.
pub(super) fn outputs(text: &str, now: &LocalTime) -> Result<Vec<Output>, Vec<Complaint>> {
    let mut complaints = Vec::new();
    let sections = read(text, &mut complaints);
    let global = sections.iter().find(|section| section.name == "global");
    let mut outputs: Vec<Output> = Vec::new();
    let mut last_line = 1;
    for setting in global.iter().flat_map(|section| &section.settings) {
        last_line = setting.line;
        match setting.key.as_str() {
            "stack" => outputs.extend(stack(setting, &sections, now, &mut complaints)),
            // These have no effect: netwren loads no plugins, and messages go to stderr.
            "plugin" | "logfile" | "loglevel" | "rmem" | "bufsize" => {}
            other => complaints.push(Complaint::new(setting.line, format!("[global] has no `{other}`"))),
        }
    }
    if outputs.is_empty() && complaints.is_empty() {
        complaints.push(Complaint::new(last_line, "no stack= in [global]: nothing to do"));
    }
    for (index, output) in outputs.iter().enumerate() {
        let earlier = outputs.get(..index).unwrap_or_default();
        if earlier.iter().any(|other| other.target.address == output.target.address) {
            let text = format!("two stacks write to {}: they would be mixed up", output.target);
            complaints.push(Complaint::new(last_line, text));
        }
    }
    complaints.sort_by_key(|complaint| complaint.line);
    if complaints.is_empty() { Ok(outputs) } else { Err(complaints) }
}

/// The output of one stack; None if it uses unsupported features.
fn stack(setting: &Setting, sections: &[Section], now: &LocalTime, complaints: &mut Vec<Complaint>) -> Option<Output> {
    let before = complaints.len();
    let mut plugins = Vec::new();
    for part in setting.value.split(',') {
        let Some((name, plugin)) = part.trim().split_once(':') else {
            let text = format!("`{part}` in the stack is not NAME:PLUGIN");
            complaints.push(Complaint::new(setting.line, text));
            return None;
        };
        plugins.push((name.trim(), plugin.trim()));
    }
    let [(input, NFLOG), filters @ .., (output, last)] = plugins.as_slice() else {
        complaints.push(Complaint::new(setting.line, no_input(&plugins)));
        return None;
    };
    let mut tuning = UlogdTuning::default();
    read_input(Settings::of(sections, input, setting.line), &mut tuning, complaints);
    for (_, filter) in filters {
        read_filter(filter, setting.line, &mut tuning.stages, complaints);
    }
    let needs_text = matches!(*last, "LOGEMU" | "SYSLOG");
    if needs_text && !filters.iter().any(|(_, filter)| *filter == "PRINTPKT") {
        complaints.push(Complaint::new(setting.line, format!("{last} needs PRINTPKT before it")));
    }
    let settings = Settings::of(sections, output, setting.line);
    let target = read_output(last, settings, setting.line, now, &mut tuning, complaints)?;
    (complaints.len() == before).then_some(Output { target, tuning })
}

const NFLOG: &str = "NFLOG";

fn no_input(plugins: &[(&str, &str)]) -> String {
    let first = plugins.first().map_or("", |(_, plugin)| *plugin);
    if first == NFLOG {
        return "a stack must end with an output".to_owned();
    }
    let hint = NO_INPUTS.iter().find(|(plugin, _)| *plugin == first);
    let hint = hint.map_or(String::new(), |(_, hint)| format!(": {hint}"));
    format!("a stack must begin with NFLOG, not with {first}{hint}")
}

fn read_input(mut settings: Settings<'_>, tuning: &mut UlogdTuning, complaints: &mut Vec<Complaint>) {
    tuning.group = settings.number("group", 0, complaints);
    let label = settings.number("numeric_label", 0, complaints);
    tuning.stages.label = u8::try_from(label).unwrap_or(u8::MAX);
    tuning.stages.seq_local = settings.is_on("seq_local", false, complaints);
    settings.refuse("seq_global", "record numbers across groups are not supported", complaints);
    settings.refuse("attach_conntrack", "conntrack entries of records are not supported", complaints);
    // Default buffers and batches are already larger than the tool's.
    settings.ignore(&["bufsize", "bind", "unbind", "netlink_socket_buffer_size", "netlink_socket_buffer_maxsize"]);
    settings.ignore(&["netlink_qthreshold", "netlink_qtimeout"]);
    settings.end(NFLOG, complaints);
}

fn read_filter(plugin: &str, line: usize, stages: &mut Stages, complaints: &mut Vec<Complaint>) {
    match plugin {
        "BASE" => stages.base = true,
        "IFINDEX" => stages.ifindex = true,
        "IP2STR" => stages.ip2str = true,
        "HWHDR" => stages.hwhdr = true,
        "PRINTPKT" => {}
        other => {
            let hint = if other == "MARK" { ": restrict the rule to packets with the mark" } else { "" };
            complaints.push(Complaint::new(line, format!("{other} is not supported{hint}")));
        }
    }
}

fn read_output(
    plugin: &str,
    mut settings: Settings<'_>,
    line: usize,
    now: &LocalTime,
    tuning: &mut UlogdTuning,
    complaints: &mut Vec<Complaint>,
) -> Option<Target> {
    let file = |settings: &mut Settings<'_>, default: &str| Address::File(settings.text("file", default).1.into());
    let (format, address) = match plugin {
        "LOGEMU" => (Format::Logemu, file(&mut settings, "/var/log/ulogd_syslogemu.log")),
        "OPRINT" => (Format::Oprint, file(&mut settings, "/var/log/ulogd_oprint.log")),
        "PCAP" => (Format::Pcap, file(&mut settings, "/var/log/ulogd.pcap")),
        "GPRINT" => {
            tuning.gprint_timestamp = settings.is_on("timestamp", false, complaints);
            (Format::Gprint, file(&mut settings, "/var/log/ulogd_gprint.log"))
        }
        "XML" => (Format::Xml, xml_file(&mut settings, now, complaints)),
        "JSON" => json(&mut settings, tuning, complaints)?,
        "SYSLOG" => {
            tuning.priority = priority(&mut settings, complaints);
            (Format::Syslog3164, Address::UnixDatagrams("/dev/log".into()))
        }
        "SQLITE3" | "PGSQL" => {
            let target = database(plugin, &mut settings, tuning);
            settings.end(plugin, complaints);
            return target.map_err(|text| complaints.push(Complaint::new(line, text))).ok();
        }
        other => {
            let hint = NO_OUTPUTS.iter().find(|(known, _)| *known == other);
            let hint = hint.map_or(String::new(), |(_, hint)| format!(": {hint}"));
            complaints.push(Complaint::new(line, format!("the output {other} is not supported{hint}")));
            return None;
        }
    };
    // Each batch is written immediately in any case.
    settings.ignore(&["sync"]);
    settings.end(plugin, complaints);
    Some(Target { format, framing: Framing::default(), address })
}

/// The target for a database with an existing table.
fn database(plugin: &str, settings: &mut Settings<'_>, tuning: &mut UlogdTuning) -> Result<Target, String> {
    let wanted = |settings: &mut Settings<'_>, key: &str| {
        let setting = settings.take(key).map(|setting| setting.value.clone()).filter(|value| !value.is_empty());
        setting.ok_or_else(|| format!("{plugin} needs `{key}`"))
    };
    let (db, table) = (wanted(settings, "db")?, wanted(settings, "table")?);
    tuning.table.clone_from(&table);
    if plugin == "SQLITE3" {
        settings.ignore(&["buffer"]);
        return format!("sqlite:{db}").parse();
    }
    let user = wanted(settings, "user")?;
    tuning.procedure = match settings.text("procedure", "INSERT").1 {
        word if word.eq_ignore_ascii_case("INSERT") => String::new(),
        word if word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') => word,
        word => return Err(format!("PGSQL: `{word}` is not a procedure name")),
    };
    if settings.take("connstring").is_some() {
        return Err("PGSQL: connstring is not supported: use host, port, db, user, pass".to_owned());
    }
    settings.ignore(&[
        "reconnect",
        "connect_timeout",
        "ring_buffer_size",
        "backlog_memcap",
        "backlog_oneshot_requests",
    ]);
    let password = settings.take("pass").filter(|setting| !setting.value.is_empty());
    let password = password.map_or(String::new(), |setting| format!(":{}", encoded(&setting.value)));
    let (host, port) = (settings.text("host", "/var/run/postgresql").1, settings.text("port", "5432").1);
    let schema = encoded(&settings.text("schema", "public").1);
    let (receiver, more) = match host.starts_with('/') {
        true => (String::new(), format!("&host={}", encoded(&host).replace("%2F", "/"))),
        false => (encoded(&host), String::new()),
    };
    let (user, db, table) = (encoded(&user), encoded(&db), encoded(&table));
    format!("postgres://{user}{password}@{receiver}:{port}/{db}?schema={schema}&table={table}{more}").parse()
}

/// Percent-encodes text for a URL.
fn encoded(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'-' | b'.' | b'_' => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    text.bytes().map(byte).collect()
}

/// The file in `directory`, with the time in its name like the tool's.
fn xml_file(settings: &mut Settings<'_>, now: &LocalTime, complaints: &mut Vec<Complaint>) -> Address {
    if settings.is_on("stdout", false, complaints) {
        settings.ignore(&["directory"]);
        return Address::File("/dev/stdout".into());
    }
    let (_, directory) = settings.text("directory", "/var/log/");
    let LocalTime { year, month, day, hour, minute, second, .. } = now;
    let name = format!("ulogd-pkt-{day:02}{month:02}{year}-{hour:02}{minute:02}{second:02}.xml");
    Address::File(Path::new(&directory).join(name))
}

fn json(
    settings: &mut Settings<'_>,
    tuning: &mut UlogdTuning,
    complaints: &mut Vec<Complaint>,
) -> Option<(Format, Address)> {
    tuning.json_device = settings.text("device", "Netfilter").1;
    tuning.json_timestamp = settings.is_on("timestamp", true, complaints);
    tuning.json_boolean_label = settings.is_on("boolean_label", false, complaints);
    let v1 = settings.is_on("eventv1", false, complaints);
    let (line, mode) = settings.text("mode", "file");
    let path = PathBuf::from(settings.text("file", "/var/log/ulogd.json").1);
    let receiver = format!("{}:{}", settings.text("host", "127.0.0.1").1, settings.text("port", "12345").1);
    let address = match mode.as_str() {
        "file" => Address::File(path),
        "tcp" => Address::Tcp(receiver),
        "unix" => Address::UnixStream(path),
        other => {
            complaints
                .push(Complaint::new(line, format!("JSON supports the modes file, tcp and unix, not mode={other}")));
            return None;
        }
    };
    Some((if v1 { Format::JsonV1 } else { Format::JsonV0 }, address))
}

/// Translates `LOG_LOCAL2` and `LOG_INFO` to `local2.info`.
fn priority(settings: &mut Settings<'_>, complaints: &mut Vec<Complaint>) -> Priority {
    let (facility_line, facility) = settings.text("facility", "LOG_KERN");
    let (level_line, level) = settings.text("level", "LOG_NOTICE");
    let word = |text: &str| text.strip_prefix("LOG_").unwrap_or("").to_lowercase();
    let (facility, level) = (word(&facility), word(&level));
    Priority::parse(&format!("{facility}.{level}")).unwrap_or_else(|| {
        let text = format!(
            "facility and level are words like LOG_LOCAL2 and LOG_INFO, not LOG_{} and LOG_{}",
            facility.to_uppercase(),
            level.to_uppercase()
        );
        complaints.push(Complaint::new(facility_line.max(level_line), text));
        Priority::default()
    })
}

#[cfg(test)]
#[path = "stacks_tests.rs"]
mod tests;
