//! Suggestions in command-line errors are right or absent.

use crate::run::{Ran, netwren};

/// Wrong command lines, each with text that the error must contain; an empty text means that it must suggest nothing.
const LINES: &[(&str, &str)] = &[
    ("nat delete --client 10.1.2.3", "netwren nat delete 'client = 10.1.2.3'"),
    ("nat delete --src=10.1.2.3", "netwren nat delete 'src = 10.1.2.3'"),
    ("nat delete -s 10.1.2.3", "netwren nat delete 'src = 10.1.2.3'"),
    ("nat delete --dry-run dport=53", "did you mean: netwren nat delete dport=53"),
    ("nat delete --force dport=53", ""),
    ("nat delete --orig-src 10.1.2.3", "netwren nat delete 'orig_src = 10.1.2.3'"),
    ("nat --client 10.1.2.3", "netwren nat 'client = 10.1.2.3'"),
    ("nat -s 10.1.2.3", "netwren nat 'src = 10.1.2.3'"),
    ("nat -L", "netwren conntrack -L"),
    ("nat --zone 3", "netwren nat 'zone = 3'"),
    ("nat --top", "it is a command: `netwren nat top`"),
    ("nat --events", "netwren nat events"),
    ("nat --flush", ""),
    ("nat events --new", ""),
    ("nat stats --json2", "did you mean --json?"),
    ("nat top --limit2 3", "did you mean --limit?"),
    ("log --groups 1", "did you mean --group?"),
    ("capture -c 5", "--limit 5"),
    ("capture -i lo -c 5 -w x", "--limit 5"),
    ("capture lo", "netwren capture -i lo"),
    ("capture lo port 80", "netwren capture -i lo 'port 80'"),
    ("nat advise --now", ""),
    ("nat stateless plan --port 8080", ""),
    ("sockets kill --dry-run pid=1", "did you mean: netwren sockets kill pid=1"),
    ("sockets kill --yes2 pid=1", "did you mean --yes?"),
    ("sockets kill --force pid=1", ""),
    ("sockets --kill", "it is a command: `netwren sockets kill`"),
    ("sockets --kill pid=1", "did you mean: netwren sockets kill pid=1"),
    ("sockets --proto tcp", "netwren sockets 'proto = tcp'"),
    ("sockets --state=listen", "netwren sockets 'state = listen'"),
    ("sockets --host 10.1.2.3", "netwren sockets 'host = 10.1.2.3'"),
    ("sockets --ports 80", "netwren sockets 'port = 80'"),
    ("sockets --filter listen", "did you mean: netwren sockets listen"),
    ("sockets -tlnp", "netwren ss -tlnp"),
    ("sockets -6", "netwren ss -6"),
    ("sockets -t --json", "did you mean: netwren sockets 'proto = tcp' --json"),
    ("sockets -t -n 5", "did you mean: netwren sockets 'proto = tcp' -n 5"),
    ("sockets -tul -n 5", "did you mean: netwren listeners 'proto in (tcp, udp)' -n 5"),
    ("sockets -t -c a,b", "use `netwren ss`"),
    ("sockets -i", "did you mean: netwren ss -i"),
    ("sockets -p", "did you mean: netwren ss -p"),
    ("sockets -s", "did you mean: netwren ss -s"),
    ("sockets -o", "did you mean: netwren ss -o"),
    ("sockets -tnp", "did you mean: netwren ss -tnp"),
    ("sockets -y", "`netwren sockets --help` lists"),
    ("sockets --proto tcp --json", "did you mean: netwren sockets 'proto = tcp' --json"),
    ("sockets --proto tcp port=80", "did you mean: netwren sockets 'port=80 and proto = tcp'"),
    ("sockets --proto teecp", "'proto = VALUE'"),
    ("flows -p", "did you mean: netwren lstf -p"),
    ("capture -e -n 1 port 80", "did you mean: netwren tcpdump -i any -e -c 1 port 80"),
    ("capture -q --for 5", "use `netwren tcpdump`"),
    ("capture -qi lo -s 64", "did you mean: netwren tcpdump -i lo -q -s 64"),
    ("routes peer=10.1.2.3", "unknown field `peer`; `netwren routes --columns help`"),
    ("sockets --numeric", "did you mean: netwren sockets"),
    ("sockets --column pid", "did you mean --columns?"),
    ("sockets --cont web", "did you mean --container?"),
    ("sockets --pids 1", "did you mean --pid?"),
    ("sockets --group-by state", "--by FIELD"),
    ("sockets --fields pid", "--columns chooses"),
    ("sockets --format json", "-o chooses"),
    ("sockets --user-name root", "did you mean --user?"),
    ("sockets --verbose", ""),
    ("sockets --listening", ""),
    ("sockets --quiet", ""),
    ("sockets lisening", "did you mean: netwren sockets 'state = listen'"),
    ("sockets kill listening", "did you mean: netwren sockets kill 'state = listen'"),
    ("sockets kil pid=1", "did you mean the command: netwren sockets kill"),
    ("nat evnts", "did you mean the command: netwren nat events"),
    ("nat delete lst", "is missing after `lst`"),
    ("nat top clientt", "did you mean `client`?"),
    ("log tial", "did you mean the command: netwren log tail"),
    ("capture sttas", "did you mean the command: netwren capture stats"),
    ("sockets udpp", "did you mean: netwren sockets 'proto = udp'"),
    ("listeners udpp", "did you mean: netwren listeners 'proto = udp'"),
    ("listeners -t", "did you mean: netwren ss -l -t"),
    ("listeners --tcp", ""),
    ("flows --top", ""),
    ("flows --sort-by bytes_out", "did you mean --sort?"),
    ("flows --order bytes_out", "--sort FIELD"),
    ("routes --ipv6", ""),
    ("capture --counts 3", ""),
    ("capture --timeout 3", "--for SECONDS"),
    ("capture --promisc", ""),
    ("capture stats --jsn x", "did you mean --json?"),
    ("capture merge --out x", ""),
    ("drops --duration 3", "--for SECONDS"),
    ("drops --reason x", "netwren drops 'reason = x'"),
    ("log --tail", "it is a command: `netwren log tail`"),
    ("log check --confg x", ""),
    ("counters --zero", ""),
    ("doctor --fix", ""),
    ("doctor --severity critical", "netwren doctor 'severity = critical'"),
    ("doctor nat", ", conntrack, cpu, "),
    ("doctor softirq --dry-run", "did you mean: netwren doctor softirq"),
    ("support --fix", ""),
    ("record --compress", ""),
    ("sokets", "did you mean: netwren sockets"),
    ("top", "did you mean: netwren flows --watch"),
    ("conn", "did you mean: netwren sockets"),
    ("unix", "did you mean: netwren sockets 'proto = unix'"),
    ("stats", "did you mean: netwren counters"),
    ("interfaces", "did you mean: netwren home"),
    ("kill", "did you mean: netwren sockets kill --help"),
    ("retrans", "did you mean: netwren sockets --sort retrans_total:desc --limit 20"),
    ("lsof", "did you mean: netwren sockets"),
    ("tcpdmp", "did you mean: netwren tcpdump"),
    ("xyzzy", "the commands are home, sockets, listeners, flows, "),
    ("--nope", ""),
    ("--watch2", "'--watch'"),
];

/// Text that begins a suggestion.
const PROPOSING: &[&str] =
    &["did you mean", "tip: ", "similar ", ": netwren ", "--by FIELD", "--sort FIELD", "--for SECONDS"];

#[test]
fn issue_15_a_tip_is_right_or_absent() {
    let mut wrong = Vec::new();
    for (line, right) in LINES {
        let Ran { stderr, code, .. } = netwren(&line.split(' ').collect::<Vec<_>>());
        let stderr: String =
            stderr.lines().filter(|line| !line.contains("Usage: ")).map(|l| format!("{l}\n")).collect();
        let proposes = PROPOSING.iter().any(|words| stderr.contains(words));
        let is_right = if right.is_empty() { !proposes } else { stderr.contains(right) };
        if code != 2 || !is_right {
            wrong.push(format!("netwren {line}: expected `{right}`, exit code {code}: {stderr}"));
        }
    }
    assert!(LINES.len() >= 60 && wrong.is_empty(), "{} of {}\n{}", wrong.len(), LINES.len(), wrong.join("\n"));
}

/// A suggested command must itself be valid. Nothing is changed, because `--yes` is never suggested.
#[test]
fn issue_15_a_proposed_command_is_understood() {
    for (line, right) in LINES {
        let proposed = right.strip_prefix("did you mean: ").unwrap_or(right).strip_prefix("netwren ");
        let Some(proposed) = proposed.filter(|_| right.ends_with('\'')) else { continue };
        assert!(!proposed.contains("--yes"));
        let (before, filter) = proposed.trim_end_matches('\'').split_once('\'').unwrap();
        let args: Vec<&str> = before.split_whitespace().chain([filter, "--explain"]).collect();
        let is_explained = !["delete", "doctor", "kill"].iter().any(|word| before.contains(word));
        let ran = netwren(if is_explained { &args } else { &args[..args.len() - 1] });
        assert_ne!(ran.code, 2, "{line}: {proposed}: {}", ran.stderr);
    }
}
