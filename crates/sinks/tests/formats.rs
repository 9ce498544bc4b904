//! Every native format by example.
#![allow(clippy::unwrap_used)]

use record::{
    Accounting, Addr, Column, Columns, Comm, Hole, Kind, LinkAddr, Next, Object, Owner, Proto, Round, Sink, State,
    Value,
};
use sinks::{Csv, FormatOptions, Json, Out, TableWriter, Text};

const FOLDED: &[(&str, &str)] = &[("peer_port", "many")];

fn columns(of: &[(&str, Kind)]) -> Columns {
    Columns(of.iter().map(|&(name, kind)| Column { name: name.into(), kind }).collect())
}

fn socket_columns() -> Columns {
    columns(&[
        ("proto", Kind::Name(Proto::NAMES)),
        ("state", Kind::Name(State::NAMES)),
        ("recv_q", Kind::Bytes),
        ("local_addr", Kind::Addr),
        ("peer_port", Kind::Port),
        ("mark", Kind::Hex),
        ("v6only", Kind::Bool),
        ("process", Kind::Text),
        ("owners", Kind::Owners),
    ])
}

fn owners() -> [Owner; 2] {
    [(123, b"nginx"), (124, b"a\"b,\n")].map(|(pid, name)| Owner { pid, fd: 7, process: Comm::new(name), started: 0 })
}

fn socket_rows(owners: &[Owner]) -> Vec<Vec<Value<'_>>> {
    let addr = |text: &str| Value::Addr(text.parse::<Addr>().unwrap());
    vec![
        vec![
            Value::Name("tcp"),
            Value::Name("established"),
            Value::U64(12_345_678_901),
            addr("192.0.2.10"),
            Value::U64(50_312),
            Value::U64(0x1f),
            Value::Bool(true),
            Value::Bytes(b"nginx"),
            Value::Owners(owners),
        ],
        vec![
            Value::Name("udp"),
            Value::Name("unconn"),
            Value::U64(0),
            addr("2001:db8::1"),
            Value::Null,
            Value::Null,
            Value::Null,
            Value::Bytes(b"a\x1b[31m\t\"b,"),
            Value::Null,
        ],
        vec![
            Value::Name("tcp"),
            Value::Name("listen"),
            Value::Null,
            addr("::"),
            Value::U64(443),
            Value::U64(u64::MAX),
            Value::Bool(false),
            Value::Bytes(b"-"),
            Value::Owners(&owners[..1]),
        ],
        vec![
            Value::Name("unix"),
            Value::Name("unconn"),
            Value::I64(-5),
            Value::Null,
            Value::Null,
            Value::Null,
            Value::Null,
            Value::Bytes(b""),
            Value::Owners(&[]),
        ],
    ]
}

fn fill(sink: &mut dyn Sink, columns: &Columns, rows: &[Vec<Value<'_>>]) {
    sink.begin(columns, None).unwrap();
    for row in rows {
        assert_eq!(sink.row(row).unwrap(), Next::More);
    }
    sink.end(&Accounting::default()).unwrap();
}

fn string(out: Out<Vec<u8>>) -> String {
    String::from_utf8(out.into_inner()).unwrap()
}

fn as_text(options: FormatOptions, columns: &Columns, rows: &[Vec<Value<'_>>]) -> String {
    let mut sink = Text::new(Out::new(Vec::new()), options);
    fill(&mut sink, columns, rows);
    string(sink.into_out())
}

fn as_table(options: FormatOptions, columns: &Columns, rows: &[Vec<Value<'_>>]) -> String {
    let mut sink = TableWriter::new(Out::new(Vec::new()), options);
    fill(&mut sink, columns, rows);
    string(sink.into_out())
}

fn as_csv(options: FormatOptions, columns: &Columns, rows: &[Vec<Value<'_>>]) -> String {
    let mut sink = Csv::new(Out::new(Vec::new()), options);
    fill(&mut sink, columns, rows);
    string(sink.into_out())
}

fn as_json(options: FormatOptions, columns: &Columns, rows: &[Vec<Value<'_>>]) -> String {
    let mut sink = Json::new(Out::new(Vec::new()), options);
    fill(&mut sink, columns, rows);
    string(sink.into_out())
}

#[test]
fn text_is_tab_separated_escaped_and_whole() {
    let owners = owners();
    let options = FormatOptions { null_words: FOLDED, ..FormatOptions::default() };
    let want = concat!(
        "proto\tstate\trecv_q\tlocal_addr\tpeer_port\tmark\tv6only\tprocess\towners\n",
        "tcp\testablished\t12345678901\t192.0.2.10\t50312\t0x1f\ttrue\tnginx\tnginx[123].7,a\"b\\x2c\\n[124].7\n",
        "udp\tunconn\t0\t2001:db8::1\tmany\t-\t-\ta\\x1b[31m\\t\"b,\t-\n",
        "tcp\tlisten\t-\t::\t443\t0xffffffffffffffff\tfalse\t\\x2d\tnginx[123].7\n",
        "unix\tunconn\t-5\t-\tmany\t-\t-\t\t\n",
    );
    assert_eq!(as_text(options, &socket_columns(), &socket_rows(&owners)), want);
    let bare = as_text(FormatOptions { header: false, ..options }, &socket_columns(), &socket_rows(&owners));
    assert_eq!(bare, want.split_once('\n').unwrap().1);
}

#[test]
fn csv_is_quoted_where_it_must_be() {
    let owners = owners();
    let mut sink = Csv::new(Out::new(Vec::new()), FormatOptions { null_words: FOLDED, ..FormatOptions::default() });
    fill(&mut sink, &socket_columns(), &socket_rows(&owners));
    assert_eq!(
        string(sink.into_out()),
        concat!(
            "proto,state,recv_q,local_addr,peer_port,mark,v6only,process,owners\n",
            "tcp,established,12345678901,192.0.2.10,50312,0x1f,true,nginx,\"nginx[123].7,a\"\"b\\x2c\\n[124].7\"\n",
            "udp,unconn,0,2001:db8::1,,,,\"a\\x1b[31m\\t\"\"b,\",\n",
            "tcp,listen,,::,443,0xffffffffffffffff,false,'-,nginx[123].7\n",
            "unix,unconn,-5,,,,,\"\",\"\"\n",
        )
    );
}

/// A process chooses its name: no name forges a second owner in text, table and CSV. JSON has fields and needs no
/// escapes.
#[test]
fn issue_10_a_process_name_forges_no_owner() {
    let owners = [Owner { pid: 77, fd: 3, process: Comm::new(b"init[1].3,sshd"), started: 0 }];
    let columns = columns(&[("owners", Kind::Owners)]);
    let rows = [vec![Value::Owners(&owners)]];
    let options = FormatOptions { header: false, ..FormatOptions::default() };
    let want = "init\\x5b1\\x5d.3\\x2csshd[77].3";
    assert_eq!(as_text(options, &columns, &rows).trim_end(), want);
    assert!(as_table(options, &columns, &rows).contains(want));
    let mut csv = Csv::new(Out::new(Vec::new()), options);
    fill(&mut csv, &columns, &rows);
    assert_eq!(string(csv.into_out()).trim_end(), want);
    let mut json = Json::new(Out::new(Vec::new()), options);
    fill(&mut json, &columns, &rows);
    assert!(string(json.into_out()).contains(r#""init[1].3,sshd""#));
}

#[test]
fn issue_10_no_cell_of_csv_is_a_formula() {
    let texts = ["=1+1", "+1", "-bash", "@SUM(A1)", "'=1", "a=1", "=a,b", "\t=1", "\r=1", ""];
    let wants = ["'=1+1", "'+1", "'-bash", "'@SUM(A1)", "''=1", "a=1", "\"'=a,b\"", "\\t=1", "\\x0d=1", "\"\""];
    let (columns, owners_only) =
        (columns(&[("process", Kind::Text), ("recv_q", Kind::Count)]), columns(&[("owners", Kind::Owners)]));
    for (text, want) in texts.iter().zip(wants) {
        let mut csv = Csv::new(Out::new(Vec::new()), FormatOptions { header: false, ..FormatOptions::default() });
        fill(&mut csv, &columns, &[vec![Value::Bytes(text.as_bytes()), Value::I64(-5)]]);
        assert_eq!(string(csv.into_out()), format!("{want},-5\n"), "numbers are not touched");
    }
    let owners = [Owner { pid: 1, fd: 2, process: Comm::new(b"=cmd"), started: 0 }];
    let mut csv = Csv::new(Out::new(Vec::new()), FormatOptions { header: false, ..FormatOptions::default() });
    fill(&mut csv, &owners_only, &[vec![Value::Owners(&owners)]]);
    assert_eq!(string(csv.into_out()), "'=cmd[1].2\n");
}

#[test]
fn json_keeps_types() {
    let owners = owners();
    let mut sink = Json::new(Out::new(Vec::new()), FormatOptions { null_words: FOLDED, ..FormatOptions::default() });
    fill(&mut sink, &socket_columns(), &socket_rows(&owners));
    let want = concat!(
        r#"{"proto":"tcp","state":"established","recv_q":12345678901,"local_addr":"192.0.2.10","peer_port":50312,"#,
        r#""mark":31,"v6only":true,"process":"nginx","#,
        r#""owners":[{"pid":123,"process":"nginx","fd":7,"started_ms":null},"#,
        r#"{"pid":124,"process":"a\"b,\n","fd":7,"started_ms":null}]}"#,
        "\n",
        r#"{"proto":"udp","state":"unconn","recv_q":0,"local_addr":"2001:db8::1","peer_port":null,"mark":null,"#,
        r#""v6only":null,"process":"a\u001b[31m\t\"b,","owners":null}"#,
        "\n",
        r#"{"proto":"tcp","state":"listen","recv_q":null,"local_addr":"::","peer_port":443,"#,
        r#""mark":18446744073709551615,"v6only":false,"process":"-","#,
        r#""owners":[{"pid":123,"process":"nginx","fd":7,"started_ms":null}]}"#,
        "\n",
        r#"{"proto":"unix","state":"unconn","recv_q":-5,"local_addr":null,"peer_port":null,"mark":null,"v6only":null,"#,
        r#""process":"","owners":[]}"#,
        "\n",
    );
    assert_eq!(string(sink.into_out()), want);
}

#[test]
fn no_column_and_no_row_are_no_fault() {
    let none = Columns::default();
    assert_eq!(as_text(FormatOptions::default(), &none, &[vec![], vec![]]), "\n\n\n");
    let mut sink = Json::new(Out::new(Vec::new()), FormatOptions::default());
    fill(&mut sink, &none, &[vec![]]);
    assert_eq!(string(sink.into_out()), "{}\n");
    assert_eq!(as_table(FormatOptions::default(), &socket_columns(), &[]).lines().count(), 1);
    assert_eq!(as_table(FormatOptions::default(), &none, &[vec![]]), "\n");
}

#[test]
fn times_are_rfc_3339_in_every_format() {
    let columns = columns(&[("time", Kind::Time), ("n", Kind::Count)]);
    let time = |ns, n| vec![Value::Time(ns), Value::U64(n)];
    let rows = [
        time(1_795_000_000_123_456_789, 1),
        time(1_795_000_000_999_999_999, 2),
        time(1_795_000_001_000_000_000, 3),
        vec![Value::Null, Value::U64(4)],
        time(u64::MAX, 5),
    ];
    let lines = |null: &str, with: &dyn Fn(&str, u32) -> String| -> String {
        let times = [
            "2026-11-18T11:06:40.123456789Z",
            "2026-11-18T11:06:40.999999999Z",
            "2026-11-18T11:06:41.000000000Z",
            null,
            "2554-07-21T23:34:33.709551615Z",
        ];
        times.iter().zip(1..).map(|(time, n)| with(time, n)).collect()
    };
    let options = FormatOptions { header: false, ..FormatOptions::default() };
    assert_eq!(as_text(options, &columns, &rows), lines("-", &|time, n| format!("{time}\t{n}\n")));
    assert_eq!(as_csv(options, &columns, &rows), lines("", &|time, n| format!("{time},{n}\n")));
    let quoted = |time: &str| if time == "null" { time.to_owned() } else { format!("\"{time}\"") };
    let json = lines("null", &|time, n| format!("{{\"time\":{},\"n\":{n}}}\n", quoted(time)));
    assert_eq!(as_json(options, &columns, &rows), json);
    assert_eq!(as_table(options, &columns, &rows), lines("-", &|time, n| format!("{time:30}  {n}\n")));
}

struct Range {
    proto: &'static str,
    name: &'static [u8],
    used: Option<u64>,
}

impl Object for Range {
    fn for_each(&self, each: &mut dyn FnMut(&'static str, Value<'_>)) {
        each("proto", Value::Name(self.proto));
        each("name", Value::Bytes(self.name));
        each("used", Value::number(self.used));
    }
}

/// Text and CSV write lists and objects like JSON: escaped, and in one cell.
#[test]
fn lists_and_objects_are_json_in_every_format() {
    let columns = columns(&[("texts", Kind::Texts), ("ranges", Kind::Objects(&[])), ("mean", Kind::Thousandths)]);
    let texts = vec!["a, \"b\"".to_owned(), "\u{1b}\t\u{202e}".to_owned()];
    let ranges =
        vec![Range { proto: "tcp", name: b"x", used: Some(5) }, Range { proto: "udp", name: b"\xff\n", used: None }];
    let none = Vec::<Range>::new();
    let rows = [
        vec![Value::List(&texts), Value::List(&ranges), Value::Thousandths(1_250)],
        vec![Value::Null, Value::List(&none), Value::Thousandths(7)],
        vec![Value::List(&texts), Value::Object(&ranges[0]), Value::Null],
    ];
    let options = FormatOptions { header: false, ..FormatOptions::default() };
    let texts = r#"["a, \"b\"","\u001b\t\u202e"]"#;
    let tcp = r#"{"proto":"tcp","name":"x","used":5}"#;
    let udp = "{\"proto\":\"udp\",\"name\":\"\u{fffd}\\n\",\"used\":null}";
    assert_eq!(
        as_json(options, &columns, &rows),
        format!(
            "{{\"texts\":{texts},\"ranges\":[{tcp},{udp}],\"mean\":1.250}}\n\
             {{\"texts\":null,\"ranges\":[],\"mean\":0.007}}\n\
             {{\"texts\":{texts},\"ranges\":{tcp},\"mean\":null}}\n"
        )
    );
    let text = format!("{texts}\t[{tcp},{udp}]\t1.250\n-\t[]\t0.007\n{texts}\t{tcp}\t-\n");
    assert_eq!(as_text(options, &columns, &rows), text);
    let quoted = |json: &str| format!("\"{}\"", json.replace('"', "\"\""));
    let csv = format!(
        "{},{},1.250\n,[],0.007\n{},{},\n",
        quoted(texts),
        quoted(&format!("[{tcp},{udp}]")),
        quoted(texts),
        quoted(tcp)
    );
    assert_eq!(as_csv(options, &columns, &rows), csv);
}

#[test]
fn table_is_aligned_below_the_field_names() {
    let columns = columns(&[
        ("state", Kind::Name(State::NAMES)),
        ("recv_q", Kind::Bytes),
        ("local_addr", Kind::Addr),
        ("peer_port", Kind::Port),
        ("process", Kind::Text),
    ]);
    let addr = Value::Addr("192.0.2.10".parse().unwrap());
    let rows = vec![
        vec![Value::Name("established"), Value::U64(1_234_567), addr, Value::U64(22), Value::Bytes(b"sshd")],
        vec![Value::Name("listen"), Value::Null, addr, Value::Null, Value::Null],
        vec![Value::Name("listen"), Value::U64(0), Value::Null, Value::U64(8), Value::Bytes("größe 表".as_bytes())],
    ];
    let options = FormatOptions { null_words: FOLDED, ..FormatOptions::default() };
    assert_eq!(
        as_table(options, &columns, &rows),
        "\
state         recv_q  local_addr  peer_port  process
established  1234567  192.0.2.10         22  sshd
listen             -  192.0.2.10       many  -
listen             0  -                   8  größe 表
"
    );
    let colored = as_table(FormatOptions { color: true, header: false, ..options }, &columns, &rows[1..2]);
    assert_eq!(colored, "\x1b[36mlisten\x1b[0m  \x1b[2m-\x1b[0m  192.0.2.10  \x1b[2mmany\x1b[0m  \x1b[2m-\x1b[0m\n");
}

/// A table with these rows, in which the columns `iface` and `v6only` are written only if a row needs them.
fn as_table_of_unusual(rows: &[Vec<Value<'_>>]) -> String {
    let columns = columns(&[
        ("local_addr", Kind::Addr),
        ("iface", Kind::Text),
        ("v6only", Kind::Bool),
        ("local_port", Kind::Port),
    ]);
    let table = TableWriter::new(Out::new(Vec::new()), FormatOptions::default());
    let mut sink = table.with_unusual(vec!["iface", "v6only"]);
    fill(&mut sink, &columns, rows);
    string(sink.into_out())
}

#[test]
fn a_table_writes_an_unusual_column_if_a_row_needs_it() {
    let (any, eth0) = (Value::Addr(Addr::ANY6), Value::Bytes(b"eth0"));
    let link = LinkAddr::new("fe80::1".parse().unwrap(), b"eth0").map(Value::LinkAddr).unwrap();
    let usual = vec![any, Value::Null, Value::Bool(false), Value::U64(80)];
    let v6only = vec![any, Value::Null, Value::Bool(true), Value::U64(81)];
    let bound = vec![any, eth0, Value::Null, Value::U64(82)];
    let on_link = vec![link, eth0, Value::Null, Value::U64(83)];
    for (rows, expected) in [
        (vec![&usual], "local_addr  local_port\n::                  80\n"),
        (
            vec![&usual, &v6only],
            "local_addr  v6only  local_port\n::          false           80\n::          true            81\n",
        ),
        (vec![&bound], "local_addr  iface  local_port\n::          eth0           82\n"),
        (vec![&on_link], "local_addr    local_port\nfe80::1%eth0          83\n"),
        (vec![], "local_addr  local_port\n"),
    ] {
        let rows: Vec<Vec<Value<'_>>> = rows.into_iter().cloned().collect();
        assert_eq!(as_table_of_unusual(&rows), expected);
    }
    let mut many = vec![usual; 200];
    many.extend([bound.clone(), bound, v6only, on_link]);
    let text = as_table_of_unusual(&many);
    let mut last = text.lines().rev();
    assert_eq!(last.next().unwrap(), "1 row has v6only, which the first 200 do not; show it with --columns +v6only");
    assert_eq!(last.next().unwrap(), "2 rows have iface, which the first 200 do not; show it with --columns +iface");
    assert_eq!(last.next().unwrap(), "fe80::1%eth0          83");
}

#[test]
fn a_link_local_address_has_its_interface_in_every_format() {
    let columns = columns(&[("peer_addr", Kind::Addr), ("port", Kind::Port)]);
    let link = |name: &[u8]| LinkAddr::new("fe80::2".parse().unwrap(), name).map(Value::LinkAddr).unwrap();
    let rows = [vec![link(b"eth0"), Value::U64(22)], vec![link(b"a\",\x1b"), Value::Null]];
    let options = FormatOptions::default();
    assert_eq!(as_text(options, &columns, &rows), "peer_addr\tport\nfe80::2%eth0\t22\nfe80::2%a\",\\x1b\t-\n");
    assert_eq!(as_csv(options, &columns, &rows), "peer_addr,port\nfe80::2%eth0,22\n\"fe80::2%a\"\",\\x1b\",\n");
    let json = as_json(options, &columns, &rows);
    assert!(
        json.starts_with("{\"peer_addr\":\"fe80::2%eth0\",\"port\":22}\n{\"peer_addr\":\"fe80::2%a\\\",\\u001b\""),
        "{json}"
    );
    assert!(as_table(options, &columns, &rows).contains("\nfe80::2%eth0       22\n"));
}

#[test]
fn wide_characters_count_as_two_columns() {
    let columns = columns(&[("process", Kind::Text), ("pid", Kind::Id)]);
    let rows = [("表", 1u64), ("ab", 2), ("e\u{301}", 3)].map(|(p, n)| vec![Value::Bytes(p.as_bytes()), Value::U64(n)]);
    let options = FormatOptions { header: false, ..FormatOptions::default() };
    assert_eq!(as_table(options, &columns, &rows), "表  1\nab  2\ne\u{301}   3\n");
}

/// The first 200 rows determine the widths; later rows stream and may overflow.
#[test]
fn a_longer_cell_after_the_sample_overflows() {
    let columns = columns(&[("process", Kind::Text), ("pid", Kind::Id)]);
    let mut sink = TableWriter::new(Out::new(Vec::new()), FormatOptions { header: false, ..FormatOptions::default() });
    sink.begin(&columns, None).unwrap();
    let short: [Value<'_>; 2] = [Value::Bytes(b"abc"), Value::U64(12)];
    for _ in 0..200 {
        assert_eq!(sink.row(&short).unwrap(), Next::More);
    }
    let long: [Value<'_>; 2] = [Value::Bytes(b"longer"), Value::U64(7)];
    for row in [&long, &short] {
        assert_eq!(sink.row(row).unwrap(), Next::More);
    }
    sink.end(&Accounting::default()).unwrap();
    let text = string(sink.into_out());
    let lines: Vec<&str> = text.lines().skip(198).collect();
    assert_eq!(lines, ["abc  12", "abc  12", "longer   7", "abc  12"]);
}

/// Renders every row without its cell of one column, then writes it again with that cell.
fn kept(sink: &mut dyn Sink, column: usize) {
    let owners = owners();
    let rows = socket_rows(&owners);
    sink.begin(&socket_columns(), None).unwrap();
    let keep = |row: &Vec<Value<'_>>| {
        let mut bytes = Vec::new();
        let gap = sink.render_row(row, Some(column), &mut bytes).unwrap();
        (bytes, gap)
    };
    let kept: Vec<(Vec<u8>, usize)> = rows.iter().map(keep).collect();
    for other in &rows {
        for (bytes, gap) in &kept {
            let missing = Hole { column, at: *gap, value: other[column] };
            assert_eq!(sink.write_rendered(bytes, Some(missing)).unwrap(), Next::More);
        }
    }
    sink.flush().unwrap();
}

/// Writes the same rows from their cells.
fn made(sink: &mut dyn Sink, column: usize) {
    let owners = owners();
    let (others, mut rows) = (socket_rows(&owners), Vec::new());
    for other in &others {
        rows.extend(others.iter().map(|row| {
            let mut row = row.clone();
            row[column] = other[column];
            row
        }));
    }
    fill(sink, &socket_columns(), &rows);
}

#[test]
fn a_kept_row_takes_another_cell_in_any_place() {
    let out = || Out::new(Vec::new());
    for column in 0..socket_columns().0.len() {
        let (mut again, mut new) =
            (Text::new(out(), FormatOptions::default()), Text::new(out(), FormatOptions::default()));
        kept(&mut again, column);
        made(&mut new, column);
        assert_eq!(string(again.into_out()), string(new.into_out()), "{column}");
        let (mut again, mut new) =
            (Csv::new(out(), FormatOptions::default()), Csv::new(out(), FormatOptions::default()));
        kept(&mut again, column);
        made(&mut new, column);
        assert_eq!(string(again.into_out()), string(new.into_out()), "{column}");
        let (mut again, mut new) =
            (Json::new(out(), FormatOptions::default()), Json::new(out(), FormatOptions::default()));
        kept(&mut again, column);
        made(&mut new, column);
        assert_eq!(string(again.into_out()), string(new.into_out()), "{column}");
    }
}

fn two_rounds(sink: &mut dyn Sink) {
    let columns = columns(&[("pid", Kind::Id)]);
    for n in 1..=2 {
        sink.begin(&columns, Some(Round { n, time_ns: (1_234_567_889 + n) * 1_000_000_000 })).unwrap();
        assert_eq!(sink.row(&[Value::U64(n)]).unwrap(), Next::More);
        sink.end(&Accounting::default()).unwrap();
    }
}

#[test]
fn rounds_are_separated() {
    let mut text = Text::new(Out::new(Vec::new()), FormatOptions::default());
    two_rounds(&mut text);
    assert_eq!(string(text.into_out()), "pid\n1\n\n2009-02-13T23:31:31Z\npid\n2\n");
    let mut table = TableWriter::new(Out::new(Vec::new()), FormatOptions::default());
    two_rounds(&mut table);
    assert_eq!(string(table.into_out()), "pid\n  1\n\n2009-02-13T23:31:31Z\npid\n  2\n");
    let mut csv = Csv::new(Out::new(Vec::new()), FormatOptions::default());
    two_rounds(&mut csv);
    assert_eq!(string(csv.into_out()), "pid\n1\n\n2009-02-13T23:31:31Z\npid\n2\n");
    let mut json = Json::new(Out::new(Vec::new()), FormatOptions::default());
    two_rounds(&mut json);
    assert_eq!(
        string(json.into_out()),
        concat!(
            "{\"round\":{\"n\":1,\"time\":\"2009-02-13T23:31:30Z\"}}\n{\"pid\":1}\n",
            "{\"round\":{\"n\":2,\"time\":\"2009-02-13T23:31:31Z\"}}\n{\"pid\":2}\n",
        )
    );
}

#[test]
fn accounting_comes_when_it_is_asked_for() {
    let ends_with = |options: FormatOptions, totals: &Accounting| {
        let mut sink = Json::new(Out::new(Vec::new()), options);
        sink.begin(&columns(&[("pid", Kind::Id)]), None).unwrap();
        sink.end(totals).unwrap();
        string(sink.into_out())
    };
    let whole = Accounting { seen: 5, emitted: 5, ..Accounting::default() };
    assert_eq!(ends_with(FormatOptions::default(), &whole), "");
    assert_eq!(
        ends_with(FormatOptions { stats: true, cpu_us: Some(|| 12_034), ..FormatOptions::default() }, &whole),
        "{\"accounting\":{\"seen\":5,\"emitted\":5,\"filtered\":0,\"grouped\":0,\"duplicates\":0,\"cut\":0,\
         \"failed\":0,\"lost\":0,\"why\":[],\"via\":[],\"cpu_ms\":12.034}}\n"
    );
    let mut lossy = Accounting { lost: 2, ..whole };
    lossy.add_reason(2, "the socket's \"buffer\" was full");
    lossy.add_backend("netlink");
    lossy.add_backend("proc");
    assert_eq!(ends_with(FormatOptions::default(), &lossy), "");
    assert_eq!(
        ends_with(FormatOptions { stats: true, ..FormatOptions::default() }, &lossy),
        "{\"accounting\":{\"seen\":5,\"emitted\":5,\"filtered\":0,\"grouped\":0,\"duplicates\":0,\"cut\":0,\
         \"failed\":0,\"lost\":2,\"why\":[{\"count\":2,\"text\":\"the socket's \\\"buffer\\\" was full\"}],\
         \"via\":[\"netlink\",\"proc\"],\"cpu_ms\":null}}\n"
    );
}
