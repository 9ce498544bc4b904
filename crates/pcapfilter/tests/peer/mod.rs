//! The reference: libpcap's compiler, from recordings and from the installed tcpdump.

use pcapfilter::{Instruction, LinkType, NameFiles, Program};
use std::path::Path;
use std::process::Command;

/// libpcap's result for an expression.
pub(crate) enum Said {
    Program(Program),
    Refusal(String),
}

/// Returns the recorded expressions of a link type with libpcap's results.
pub(crate) fn recorded(link: LinkType) -> Vec<(String, Said)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/recorded/{}.txt", link.name()));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.lines().map(line).collect()
}

fn line(line: &str) -> (String, Said) {
    let (expression, said) = line.split_once('\t').expect("a tab");
    let said = match said.split_once(' ').expect("P or R") {
        ("P", program) => {
            let instruction = |text: &str| {
                let mut numbers = text.split(',').map(|number| number.parse::<u32>().expect("a number"));
                let mut next = || numbers.next().expect("four numbers");
                Instruction { code: next() as u16, jt: next() as u8, jf: next() as u8, k: next() }
            };
            Said::Program(Program { instructions: program.split(' ').map(instruction).collect() })
        }
        (_, refusal) => Said::Refusal(refusal.to_owned()),
    };
    (expression.to_owned(), said)
}

/// Runs tcpdump. `source` are its arguments for the link type, file or device.
pub(crate) fn ask(source: &[&str], expression: &str) -> Said {
    let output = Command::new("tcpdump").args(source).args(["-ddd", "--", expression]).output();
    let output = output.expect("tcpdump is installed");
    if let Some(program) = Program::from_numbers(&String::from_utf8_lossy(&output.stdout)) {
        return Said::Program(program);
    }
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    let last = errors.lines().rfind(|line| line.starts_with("tcpdump: ")).unwrap_or_default();
    Said::Refusal(last.trim_start_matches("tcpdump: ").to_owned())
}

/// Names as in Debian's files, as far as expressions use them.
pub(crate) const NAMES: NameFiles<'static> = NameFiles {
    services: "ssh 22/tcp\nsmtp 25/tcp mail\ndomain 53/tcp\ndomain 53/udp\ntftp 69/udp\nhttp 80/tcp www\n\
        https 443/tcp\nhttps 443/udp # HTTP/3\n",
    protocols: "ip 0 IP\nicmp 1 ICMP\nigmp 2 IGMP\ntcp 6 TCP\nudp 17 UDP\nipv6-icmp 58 IPv6-ICMP\nsctp 132 SCTP\n",
    networks: "",
    ethers: "",
    hosts: "127.0.0.1 localhost\n",
};
