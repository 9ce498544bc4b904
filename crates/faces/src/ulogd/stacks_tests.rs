#![allow(clippy::unwrap_used, clippy::panic)]
use super::*;
use proptest::prelude::*;

const NOW: LocalTime =
    LocalTime { year: 2026, month: 11, day: 3, hour: 5, minute: 6, second: 7, weekday: 2, utc_offset_s: 0 };

fn read_all(text: &str) -> Vec<Output> {
    outputs(text, &NOW).unwrap()
}

fn complaints(text: &str) -> Vec<(usize, String)> {
    let complaints = outputs(text, &NOW).unwrap_err();
    complaints.into_iter().map(|complaint| (complaint.line, complaint.text)).collect()
}

#[test]
fn stacks_of_every_output() {
    let text = "[global]
plugin=\"/usr/lib/ulogd_inppkt_NFLOG.so\"
logfile=\"/var/log/ulogd.log\"
loglevel=3
stack=log1:NFLOG,base1:BASE,ifi1:IFINDEX,ip2str1:IP2STR,print1:PRINTPKT,emu1:LOGEMU
stack=log2:NFLOG,base1:BASE,ifi1:IFINDEX,ip2str1:IP2STR,mac2str1:HWHDR,json1:JSON
stack=log2:NFLOG,base1:BASE,print1:PRINTPKT,sys1:SYSLOG
stack=log1:NFLOG,base1:BASE,gp1:GPRINT
stack=log1:NFLOG,op1:OPRINT
stack=log1:NFLOG,xml1:XML
stack=log1:NFLOG,base1:BASE,pcap1:PCAP
[log1]
group=1
netlink_qthreshold=1
[log2]
group=2 # the second
numeric_label=1
seq_local=1
[emu1]
file=\"/var/log/ulog/syslogemu.log\"
sync=1
[json1]
mode=\"tcp\"
host=\"192.0.2.10\"
port=\"10210\"
eventv1=1
boolean_label=1
device=\"my fw\"
[sys1]
facility=LOG_LOCAL2
[xml1]
directory=\"/tmp/x\"
";
    let outputs = read_all(text);
    let shown: Vec<(u16, String)> =
        outputs.iter().map(|output| (output.tuning.group, output.target.to_string())).collect();
    let wanted = [
        (1, "logemu:/var/log/ulog/syslogemu.log"),
        (2, "json-v1+tcp://192.0.2.10:10210"),
        (2, "syslog-rfc3164+unix:/dev/log"),
        (1, "gprint:/var/log/ulogd_gprint.log"),
        (1, "oprint:/var/log/ulogd_oprint.log"),
        (1, "xml:/tmp/x/ulogd-pkt-03112026-050607.xml"),
        (1, "pcap:/var/log/ulogd.pcap"),
    ];
    assert_eq!(shown, wanted.map(|(group, target)| (group, target.to_owned())));
    let json = &outputs[1].tuning;
    assert_eq!((json.json_device.as_str(), json.json_boolean_label, json.json_timestamp), ("my fw", true, true));
    assert_eq!(json.stages, Stages { label: 1, seq_local: true, ..Stages::ALL });
    assert_eq!(outputs[2].tuning.priority.number(), 149);
    assert_eq!(outputs[4].tuning.stages, Stages::default());
    assert!(!outputs[3].tuning.gprint_timestamp);
}

#[test]
fn unsupported_parts_are_reported_with_their_line() {
    let text = "[global]
stack=ct1:NFCT,ip2str1:IP2STR,print1:PRINTFLOW,emu1:LOGEMU
stack=log1:NFLOG,base1:BASE,mark1:MARK,pg1:PGSQL
stack=log1:NFLOG,base1:BASE,emu2:LOGEMU
stack=log1:NFLOG,base1:BASE,json1:JSON
stack=nonsense
colour=1
[log1]
group=x
[json1]
mode=\"udp\"
[emu2]
rotate=1
";
    let found = complaints(text);
    for (line, words) in [
        (2, "not with NFCT: `netwren nat events --to`"),
        (3, "MARK is not supported"),
        (3, "PGSQL needs `db`"),
        (4, "LOGEMU needs PRINTPKT"),
        (6, "`nonsense` in the stack is not NAME:PLUGIN"),
        (7, "[global] has no `colour`"),
        (9, "group takes a number from 0 to 65535, not `x`"),
        (11, "JSON supports the modes file, tcp and unix, not mode=udp"),
        (13, "LOGEMU has no `rotate`"),
    ] {
        assert!(found.iter().any(|(at, text)| *at == line && text.contains(words)), "{line}: {words}\n{found:#?}");
    }
    assert!(found.is_sorted_by_key(|(line, _)| *line));
}

#[test]
fn databases_have_a_table_and_maybe_a_procedure() {
    let read = |settings: &str| {
        read_all(&format!("[global]\nstack=l:NFLOG,b:BASE,pg:PGSQL\n[pg]\ndb=lo-gs\ntable=ulog\nuser=fw\n{settings}"))
            .remove(0)
    };
    let one = read("host=db.example\npass=\"p:@/ %\"\nprocedure=INSERT_PACKET_FULL\nreconnect=5\n");
    assert_eq!(one.target.to_string(), "postgres://fw@db.example:5432/lo-gs?schema=public&table=ulog");
    assert_eq!((&*one.tuning.table, &*one.tuning.procedure), ("ulog", "INSERT_PACKET_FULL"));
    let Address::Postgres(address) = &one.target.address else { panic!("{:?}", one.target) };
    assert!(address.has_password());
    let other = read("host=/run/pg\nport=5433\nschema=log\nprocedure=\"insert\"\n");
    assert_eq!(other.target.to_string(), "postgres://fw@:5433/lo-gs?schema=log&table=ulog&host=/run/pg");
    assert_eq!(other.tuning.procedure, "");
    let injected = "[global]\nstack=l:NFLOG,pg:PGSQL\n[pg]\ndb=a\ntable=t\nuser=u\nprocedure=\"x(); DROP\"\n";
    assert_eq!(complaints(injected), [(2, "PGSQL: `x(); DROP` is not a procedure name".to_owned())]);
}

#[test]
fn nothing_and_twice_the_same() {
    assert_eq!(complaints("[global]\nloglevel=1\n"), [(2, "no stack= in [global]: nothing to do".to_owned())]);
    assert_eq!(complaints("")[0].0, 1);
    let stack = "stack=a:NFLOG,b:BASE,p:PRINTPKT,e:LOGEMU\n";
    let found = complaints(&format!("[global]\n{stack}{stack}[e]\nfile=/x\n"));
    assert_eq!(found, [(3, "two stacks write to logemu:/x: they would be mixed up".to_owned())]);
}

/// An excerpt of Debian's default file, with each of its NFLOG stacks.
#[test]
fn debians_file_in_short() {
    let text = "[global]\nlogfile=\"syslog\"\nloglevel=3\n#plugin=\"/usr/lib/ulogd_inppkt_NFLOG.so\"\n\
                stack=log1:NFLOG,base1:BASE,ifi1:IFINDEX,ip2str1:IP2STR,print1:PRINTPKT,emu1:LOGEMU\n\
                [ct1]\n#pollinterval=10\n[ct2]\nhash_enable=0\n[log1]\ngroup=0\n[nacct1]\nsync = 1\n\
                [emu1]\nfile=\"/var/log/ulog/syslogemu.log\"\nsync=1\n";
    assert_eq!(read_all(text).len(), 1, "sections that no stack names are not read");
}

proptest! {
    #[test]
    fn any_file_is_read_or_refused(lines in prop::collection::vec("[\\[\\]a-zA-Z0-9:,=\"# ]{0,40}", 0..30)) {
        let text = format!("[global]\nstack=a:NFLOG,b:JSON\n{}", lines.join("\n"));
        match outputs(&text, &NOW) {
            Ok(outputs) => prop_assert!(!outputs.is_empty()),
            Err(complaints) => prop_assert!(complaints.iter().all(|one| one.line > 0 && !one.text.is_empty())),
        }
    }
}
