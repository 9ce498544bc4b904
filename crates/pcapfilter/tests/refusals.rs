//! Errors in addition to libpcap's: the column and the limits. Also the caller's own words.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use pcapfilter::{ExtraWord, FilterError, FilterTarget, LinkType, NameFiles, PacketOrigin, compile, compile_with};

const NAMES: NameFiles<'static> = NameFiles { services: "", protocols: "", networks: "", ethers: "", hosts: "" };

fn target(link: LinkType) -> FilterTarget {
    FilterTarget { link, origin: PacketOrigin::Live { vlan_beside: false }, snaplen: 262_144, netmask: Some(0) }
}

fn refusal(expression: &str) -> FilterError {
    compile(expression, &target(LinkType::Ethernet), &NAMES).expect_err(expression)
}

#[test]
fn the_column_is_where_it_is_wrong() {
    for (expression, column) in [
        ("ip and foo", 8),
        ("tcp port", 9),
        ("host 10.0.0.1 and port 70000", 24),
        ("ip and tcp[0:3] = 1", 8),
        ("ip or (tcp and udp", 19),
        ("net 10.0.0.1/8", 5),
        ("ip @", 4),
    ] {
        let error = refusal(expression);
        assert_eq!(error.column, column, "{expression}: {error}");
    }
}

#[test]
fn what_is_too_long_or_too_deep_is_refused() {
    let deep = |open: &str, close: &str| format!("{}ip{}", open.repeat(20_000), close.repeat(20_000));
    for text in [deep("(", ")"), deep("not ", ""), deep("!(", ")")] {
        let message = refusal(&text).message;
        assert!(message.contains("too deep") || message.contains("longer than"), "{message}");
    }
    let number = format!("{}1 = 1", "(".repeat(5_000));
    assert!(refusal(&number).message.contains("too deep"));
    let sum = format!("{}len = 1", "len + ".repeat(5_000));
    assert_eq!(refusal(&sum).message, "arithmetic expression is too long");
    let index = format!("{}0{} = 1", "ip[".repeat(5_000), "]".repeat(5_000));
    assert!(refusal(&index).message.contains("too deep"));
    let minus = format!("{}1 = 1", "- ".repeat(20_000));
    assert!(refusal(&minus).message.contains("too long"), "{}", refusal(&minus).message);
    let id = format!("host {}1.2.3.4{}", "(".repeat(5_000), ")".repeat(5_000));
    assert!(refusal(&id).message.contains("too deep"));
    let long = "ip or ".repeat(11_000) + "tcp";
    assert!(refusal(&long).message.contains("longer than"));
    let many = (0..5_000).map(|number| format!("ether[{number}] = 1")).collect::<Vec<_>>().join(" or ");
    assert!(refusal(&many[..60_000]).message.len() < 100);
}

#[test]
fn further_words_are_the_callers() {
    let words =
        [ExtraWord { name: "process", takes_argument: true }, ExtraWord { name: "dropped", takes_argument: false }];
    let compile = |text: &str| compile_with(text, &target(LinkType::Ethernet), &NAMES, &words);
    let filter = compile("tcp and process nginx and not dropped").unwrap();
    assert_eq!(filter.extras.len(), 2);
    assert_eq!((filter.extras[0].argument.as_str(), filter.extras[0].column), ("nginx", 9));
    // The kernel accepts everything that may pass: all of TCP.
    let tcp = compile("tcp").unwrap();
    assert_eq!(filter.kernel, tcp.kernel);
    assert!(tcp.rest.is_none());
    let rest = filter.rest.unwrap();
    let mut tcp = [0_u8; 60];
    tcp[12] = 8;
    tcp[23] = 6;
    let packet = pcapfilter::Packet { bytes: &tcp, length: 60, metadata: None };
    for (process, dropped, passes) in
        [(true, false, true), (false, false, false), (true, true, false), (false, true, false)]
    {
        let bytes = pcapfilter::run(&rest, &packet, &mut |number| if number == 0 { process } else { dropped });
        assert_eq!(bytes != 0, passes);
    }
    // Without the list they are names. With it, a backslash makes them names.
    assert!(pcapfilter::compile("process nginx", &target(LinkType::Ethernet), &NAMES).is_err());
    assert_eq!(compile("tcp or \\dropped").unwrap_err().message, "syntax error in filter expression");
    assert!(compile("process").is_err());
}
