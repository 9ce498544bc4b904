//! Filters on cells with several words, or with an address and a port, using rows of connection tracking.
#![allow(clippy::unwrap_used)]

use crate::explain::expr_text;
use crate::filter::{bind, parse};
use crate::order::Sorter;
use crate::predicate::Predicate;
use record::rows::{Conntrack, CtStatus, CtTuple, Nat};
use record::{Addr, Comm, Field, Kind, Lookups, Member, Next, Object, Owner, Schema, Table, Value, field_index};

fn row(client: &str, port: u16, proto: u8, bits: u32) -> Conntrack<'static> {
    let orig = CtTuple { src: client.parse().unwrap(), proto, src_part: port, ..CtTuple::EMPTY };
    Conntrack { orig, status: Some(CtStatus(bits)), ..Conntrack::EMPTY }
}

fn holds(filter: &str, row: &Conntrack<'_>) -> bool {
    let expr = bind(Schema::from_table::<Nat>(), &parse(filter).unwrap()).unwrap();
    // The text that `--explain` prints has the same meaning.
    let again =
        bind(Schema::from_table::<Nat>(), &parse(&expr_text(Schema::from_table::<Nat>(), &expr)).unwrap()).unwrap();
    assert_eq!(expr, again, "{filter}");
    Predicate::<Nat>::new(&expr.into_conjuncts()).unwrap().matches(row, &Lookups::empty())
}

fn error(filter: &str) -> String {
    bind(Schema::from_table::<Nat>(), &parse(filter).unwrap()).unwrap_err().to_string()
}

#[test]
fn one_of_the_words_is_enough_and_none_may_be_under_not_equal() {
    let entry = row("10.0.0.1", 4000, 6, CtStatus::ASSURED | CtStatus::SEEN_REPLY | CtStatus::DST_NAT);
    for yes in [
        "status = assured",
        "status in (offload, assured)",
        "status != offload",
        "status not in (offload, dying)",
        "status ~ \"^dst_\"",
        "status != null",
        "not status = offload",
    ] {
        assert!(holds(yes, &entry), "{yes}");
    }
    for no in ["status = offload", "status != assured", "status !~ \"nat\"", "status = null", "label = audit"] {
        assert!(!holds(no, &entry), "{no}");
    }
    let labelled = Conntrack { label_words: Some(b"audit,web"), ..entry };
    assert!(holds("label = web", &labelled) && holds("label ~ \"^au\" and label != 7", &labelled));
    assert!(!holds("label = \"audit,web\"", &labelled), "a list is not text");
    assert!(error("status > assured").contains("a list of words"));
    assert!(error("status = asured").contains("assured"));
}

#[test]
fn ends_by_address_by_port_by_both() {
    let four = row("10.0.0.1", 4000, 6, 0);
    let six = row("2001:db8::1", 443, 17, 0);
    let ping = row("10.0.0.1", 77, 1, 0);
    for yes in [
        "client = 10.0.0.1",
        "client = 10.0.0.1:4000",
        "client in 10.0.0.0/8",
        "client = :4000",
        "client = :3000-5000",
        "client in (192.0.2.1, 10.0.0.0/24:4000)",
        "client != 10.0.0.1:4001",
        "client != null",
    ] {
        assert!(holds(yes, &four), "{yes}");
    }
    assert!(holds("client = [2001:db8::1]:443 and client in 2001:db8::/32", &six) && !holds("client = :443", &four));
    assert!(holds("client = 10.0.0.1", &ping) && !holds("client = :77", &ping), "an ICMP id is no port");
    assert!(!holds("backend = 10.0.0.1", &Conntrack { status: None, ..ping }));
    assert!(error("client > 10.0.0.1").contains("an address and a port"));
    assert!(error("client ~ \"10\"").contains("in"));
}

#[test]
fn ends_are_ordered_by_address_then_port_and_lists_by_their_words() {
    let cell = |name: &str, row: &Conntrack<'static>| match Nat::FIELDS[field_index::<Nat>(name).unwrap()]
        .cell(row, &Lookups::empty())
    {
        Value::Bits(bits, names) => Value::Bits(bits, names),
        Value::Endpoint(addr, port) => Value::Endpoint(addr, port),
        _ => Value::Null,
    };
    let mut sorter =
        Sorter::new(&crate::order::RowOrder::new(vec![(0, false)], crate::order::TieOrder::Columns), 2, 2, None);
    let rows = [
        row("10.0.0.2", 1, 6, 0),
        row("10.0.0.1", 256, 6, CtStatus::SEEN_REPLY),
        row("10.0.0.1", 9, 6, CtStatus::SEEN_REPLY),
        row("10.0.0.1", 9, 6, CtStatus::ASSURED),
        row("10.0.0.1", 5, 1, 0),
        row("2001:db8::1", 1, 6, 0),
    ];
    for row in &rows {
        sorter.add(&[cell("client", row), cell("status", row)]);
    }
    let mut order = Vec::new();
    sorter.finish(|cells| {
        order.push(match cells {
            [Value::Endpoint(addr, port), Value::Bits(bits, _)] => (*addr, *port, *bits),
            _ => (Addr::ANY4, None, 99),
        });
        Next::More
    });
    let four = |last, port, bits| (Addr::V4([10, 0, 0, last]), port, bits);
    assert_eq!(
        order[..5],
        [four(1, None, 0), four(1, Some(9), 4), four(1, Some(9), 2), four(1, Some(256), 2), four(2, Some(1), 0)]
    );
}

/// A table whose cells are lists and decimals.
enum Findings {}

struct Finding {
    texts: Vec<String>,
    limits: Vec<Limit>,
    mean: u64,
}

struct Limit {
    name: &'static str,
    used: Option<u64>,
}

impl Object for Limit {
    fn for_each(&self, each: &mut dyn FnMut(&'static str, Value<'_>)) {
        each("name", Value::Name(self.name));
        each("used", Value::number(self.used));
    }
}

const OF_LIMITS: &[Member] =
    &[Member { name: "name", kind: Kind::Name(&["low", "high"]) }, Member { name: "used", kind: Kind::Bytes }];

impl Table for Findings {
    type Row<'b> = Finding;
    const NAME: &'static str = "findings";
    const FIELDS: &'static [Field<Findings>] = &[
        Field::own("texts", Kind::Texts, |row| Value::List(&row.texts)),
        Field::own("limits", Kind::Objects(OF_LIMITS), |row| Value::List(&row.limits)),
        Field::own("mean", Kind::Thousandths, |row| Value::Thousandths(row.mean)),
    ];
}

#[test]
fn members_and_texts_of_lists() {
    let row = Finding {
        texts: vec!["full, soon".to_owned(), "other".to_owned()],
        limits: vec![Limit { name: "low", used: Some(1024) }, Limit { name: "high", used: None }],
        mean: 1_250,
    };
    let holds = |filter: &str| {
        let expr = bind(Schema::from_table::<Findings>(), &parse(filter).unwrap()).unwrap();
        let again = bind(
            Schema::from_table::<Findings>(),
            &parse(&expr_text(Schema::from_table::<Findings>(), &expr)).unwrap(),
        )
        .unwrap();
        assert_eq!(expr, again, "{filter}");
        Predicate::<Findings>::new(&expr.into_conjuncts()).unwrap().matches(&row, &Lookups::empty())
    };
    for yes in [
        "texts = other",
        "texts ~ \"^full\"",
        "texts != none",
        "limits.name = low",
        "limits.used = 1KiB",
        "limits.used > 1k and limits.name in (high)",
        "limits.used in (1000-2000)",
        "limits.name ~ ow",
        "limits.used != 7",
        "limits != null",
        "mean > 1.2 and mean <= 1.25 and mean = 1.250",
    ] {
        assert!(holds(yes), "{yes}");
    }
    for no in
        ["texts = full", "limits.name != low", "limits.used < 1k", "limits = null", "mean > 1.25", "mean in (2, 3)"]
    {
        assert!(!holds(no), "{no}");
    }
    let error = |filter: &str| bind(Schema::from_table::<Findings>(), &parse(filter).unwrap()).unwrap_err().to_string();
    assert!(error("limits.size = 1").contains("`limits` has name used"), "{}", error("limits.size = 1"));
    assert!(error("limits = 1").contains("compare a member"));
    assert!(error("limits.name = middle").contains("low high"));
    assert!(error("mean > 1.2345").contains("whole thousandths"));
    assert!(error("texts > a").contains("no order"));
    assert!(error("texts.x = 1").contains("unknown field"));
}

#[test]
fn members_of_owners() {
    let owners =
        [(7, b"sshd"), (9, b"bash")].map(|(pid, name)| Owner { pid, fd: 3, process: Comm::new(name), started: 0 });
    let entry = Conntrack { owners: &owners, ..row("10.0.0.1", 4000, 6, 0) };
    for yes in ["owners.pid = 9", "owners.process = sshd and owners.fd = 3", "owners.pid != 5", "owners.pid > 8"] {
        assert!(holds(yes, &entry), "{yes}");
    }
    for no in ["owners.pid = 5", "owners.pid != 9", "owners.process ~ \"^x\""] {
        assert!(!holds(no, &entry), "{no}");
    }
    assert!(!holds("owners.pid != 5", &row("10.0.0.1", 4000, 6, 0)), "nobody is no other");
    assert!(error("owners.name = sshd").contains("`owners` has pid process fd"));
}
