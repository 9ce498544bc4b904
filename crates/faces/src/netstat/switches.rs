//! Parses netstat's switches into a request.

use crate::getopt::{self, Getopt, Spec, spec};
use crate::netstat::output::{CounterBlocks, RouteColumns, RouteOptions, Show, SocketLayout};
use crate::selinux;
use crate::text::printable;
use sockets::Families;

/// The request that the command line makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NetstatTask {
    /// Sockets.
    List(List),
    /// Counters (`-s`).
    Statistics(StatisticsRequest),
    /// Interfaces (`-i`).
    Interfaces(Interfaces),
    /// Routes (`-r`).
    Routes(Routes),
    /// `-h`
    Help,
    /// `-V`
    Version,
}

/// A list of sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct List {
    pub(super) tcp: bool,
    pub(super) udp: bool,
    pub(super) udplite: bool,
    pub(super) raw: bool,
    pub(super) unix: bool,
    pub(super) families: Families,
    /// Repeat every second (`-c`).
    pub(super) continuous: bool,
    pub(super) options: SocketLayout,
}

/// Counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StatisticsRequest {
    pub(super) blocks: CounterBlocks,
    /// Counters of IPv6.
    pub(super) six: bool,
}

/// A list of interfaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Interfaces {
    /// Includes interfaces that are down (`-a`).
    pub(super) all: bool,
    /// A paragraph for each interface (`-e`).
    pub(super) long: bool,
    /// Repeat every second (`-c`).
    pub(super) continuous: bool,
    pub(super) bug_compatible: bool,
}

/// Routing tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Routes {
    /// Families in the order switches.
    pub(super) families: Vec<RouteFamily>,
    /// Show the table (`-F`, or neither).
    pub(super) fib: bool,
    /// Show the cache (`-C`).
    pub(super) cache: bool,
    /// Repeat every second (`-c`).
    pub(super) continuous: bool,
    pub(super) options: RouteOptions,
}

/// A family whose routes are requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RouteFamily {
    Four,
    Six,
    /// A family without routes.
    Without(&'static str),
}

/// The reason why a command line is rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// getopt's message, or None if netstat prints only its usage.
    Usage(Option<String>),
    /// A switch that this face does not support, and the alternative.
    Unsupported { switch: &'static str, instead: &'static str },
    /// `-Z` while SELinux is off.
    NoSelinux,
    /// An unknown address family.
    UnknownFamily(String),
    /// Families without counters.
    NoStatistics(String),
    /// `-M`: masqueraded connections, which kernels since 2.4 no longer list in that file.
    NoMasquerade,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Switch {
    /// Bits of [`GivenSwitches::on`].
    On(u32),
    Family(&'static str),
    Families,
    Extend,
    Listing(Listing),
    Context,
    /// Has no effect here.
    Nothing,
    Unsupported(&'static str, &'static str),
    Help,
    Usage,
    Version,
}

/// A listing other than sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Listing {
    Statistics,
    Interfaces,
    Routes,
    Masquerade,
}

const ALL: u32 = 1;
const LISTENING: u32 = 1 << 1;
const TCP: u32 = 1 << 2;
const UDP: u32 = 1 << 3;
const UDPLITE: u32 = 1 << 4;
const RAW: u32 = 1 << 5;
const SCTP: u32 = 1 << 6;
const NUMERIC_HOSTS: u32 = 1 << 7;
const NUMERIC_PORTS: u32 = 1 << 8;
const NUMERIC_USERS: u32 = 1 << 9;
const PROGRAMS: u32 = 1 << 10;
const TIMERS: u32 = 1 << 11;
const WIDE: u32 = 1 << 12;
const CONTINUOUS: u32 = 1 << 13;
const GROUPS: u32 = 1 << 14;
const FIB: u32 = 1 << 15;
const CACHE: u32 = 1 << 16;
const SYMBOLIC: u32 = 1 << 17;
const NUMERIC: u32 = NUMERIC_HOSTS | NUMERIC_PORTS | NUMERIC_USERS;

const fn switch(letter: u8, long: &'static str, what: Switch) -> Spec<Switch> {
    spec(letter, long, false, what)
}

const fn family(name: &'static str, means: &'static str) -> Spec<Switch> {
    switch(0, name, Switch::Family(means))
}

const BLUETOOTH: &str = "nothing in netwren";

#[rustfmt::skip]
const SWITCHES: &[Spec<Switch>] = &[
    family("ax25", "ax25"), family("x25", "x25"), family("ip", "inet"), family("ipx", "ipx"),
    family("appletalk", "ddp"), family("netrom", "netrom"), switch(b'4', "inet", Switch::Family("inet")),
    switch(b'6', "inet6", Switch::Family("inet6")), family("ddp", "ddp"), family("rose", "rose"),
    switch(b'x', "unix", Switch::Family("unix")), family("bluetooth", "bluetooth"), family("tcpip", "inet"),
    switch(b'V', "version", Switch::Version), switch(b'i', "interfaces", Switch::Listing(Listing::Interfaces)),
    switch(b'h', "help", Switch::Help), switch(b'?', "", Switch::Usage),
    switch(b'r', "route", Switch::Listing(Listing::Routes)),
    switch(b'M', "masquerade", Switch::Listing(Listing::Masquerade)),
    spec(b'A', "protocol", true, Switch::Families), switch(b't', "tcp", Switch::On(TCP)),
    switch(b'S', "sctp", Switch::On(SCTP)), switch(b'u', "udp", Switch::On(UDP)),
    switch(b'U', "udplite", Switch::On(UDPLITE)), switch(b'w', "raw", Switch::On(RAW)),
    switch(b'2', "l2cap", Switch::Unsupported("-2", BLUETOOTH)),
    switch(b'f', "rfcomm", Switch::Unsupported("-f", BLUETOOTH)),
    switch(b'l', "listening", Switch::On(LISTENING)), switch(b'a', "all", Switch::On(ALL)),
    switch(b'o', "timers", Switch::On(TIMERS)), switch(b'c', "continuous", Switch::On(CONTINUOUS)),
    switch(b'e', "extend", Switch::Extend), switch(b'p', "programs", Switch::On(PROGRAMS)),
    switch(b'v', "verbose", Switch::Nothing), switch(b's', "statistics", Switch::Listing(Listing::Statistics)),
    switch(b'W', "wide", Switch::On(WIDE)), switch(b'n', "numeric", Switch::On(NUMERIC)),
    switch(0, "numeric-hosts", Switch::On(NUMERIC_HOSTS)), switch(0, "numeric-ports", Switch::On(NUMERIC_PORTS)),
    switch(0, "numeric-users", Switch::On(NUMERIC_USERS)), switch(b'N', "symbolic", Switch::On(SYMBOLIC)),
    switch(b'd', "", Switch::Nothing), switch(b'C', "cache", Switch::On(CACHE)), switch(b'F', "fib", Switch::On(FIB)),
    switch(b'g', "groups", Switch::On(GROUPS)), switch(b'Z', "context", Switch::Context),
];

/// The given switches, before they are checked against each other.
#[derive(Default)]
struct GivenSwitches {
    /// The switches that are only on or off, as bits.
    on: u32,
    /// Families in the order given, including duplicates.
    families: Vec<&'static str>,
    /// Number of times `-e` was switches.
    extended: u32,
    /// More than one is an error.
    listings: Vec<Listing>,
    unsupported: Option<(&'static str, &'static str)>,
}

/// Parses the command line into a request.
pub(super) fn parse(words: Vec<Vec<u8>>, bug_compatible: bool) -> Result<NetstatTask, Refusal> {
    let mut switches = GivenSwitches::default();
    let mut getopt = Getopt::new(SWITCHES, words);
    while let Some((what, value)) = getopt.next().map_err(|message| Refusal::Usage(Some(message)))? {
        match what {
            Switch::Help => return Ok(NetstatTask::Help),
            Switch::Version => return Ok(NetstatTask::Version),
            Switch::Usage => return Err(Refusal::Usage(None)),
            Switch::Context if !selinux::enabled(&sys::Host::live()) => return Err(Refusal::NoSelinux),
            Switch::Context => switches.take(Switch::Unsupported("-Z", "`ss -Z`")),
            Switch::Families => add_families(&mut switches, &value)?,
            other => switches.take(other),
        }
    }
    // netstat ignores operands.
    let _ignored = getopt.into_rest();
    match switches.listings.as_slice() {
        [] => switches.into_list(bug_compatible).map(NetstatTask::List),
        [Listing::Statistics] => switches.into_statistics().map(NetstatTask::Statistics),
        [Listing::Interfaces] => Ok(NetstatTask::Interfaces(switches.into_interfaces(bug_compatible))),
        [Listing::Routes] => switches.into_routes(bug_compatible).map(NetstatTask::Routes),
        [Listing::Masquerade] => Err(Refusal::NoMasquerade),
        _ => Err(Refusal::Usage(None)),
    }
}

/// Parses the list of `-A inet,unix`.
fn add_families(switches: &mut GivenSwitches, list: &[u8]) -> Result<(), Refusal> {
    for name in list.split(|&b| b == b',') {
        let means = SWITCHES.iter().find_map(|spec| match spec.what {
            Switch::Family(means) if spec.long.as_bytes() == name => Some(means),
            _ => None,
        });
        let means = if name == b"ip6" { Some("inet6") } else { means };
        let Some(means) = means else { return Err(Refusal::UnknownFamily(printable(name))) };
        switches.families.push(means);
    }
    Ok(())
}

impl GivenSwitches {
    fn take(&mut self, switch: Switch) {
        match switch {
            Switch::On(bits) => self.on |= bits,
            Switch::Family(name) => self.families.push(name),
            Switch::Extend => self.extended += 1,
            Switch::Listing(listing) => self.listings.push(listing),
            Switch::Unsupported(switch, instead) => {
                self.unsupported.get_or_insert((switch, instead));
            }
            Switch::Nothing | Switch::Context | Switch::Families | Switch::Help | Switch::Usage | Switch::Version => {}
        }
    }

    /// True if any of the switches is on.
    fn on(&self, bits: u32) -> bool {
        self.on & bits != 0
    }

    fn has(&self, family: &str) -> bool {
        self.families.contains(&family)
    }

    fn into_statistics(self) -> Result<StatisticsRequest, Refusal> {
        let all = !self.on(TCP | UDP | UDPLITE | RAW | SCTP);
        let [raw, tcp, udp, sctp] = [RAW, TCP, UDP, SCTP].map(|table| all || self.on(table));
        let blocks = CounterBlocks { raw, tcp, udp, sctp };
        match self.families.as_slice() {
            [] | ["inet"] => Ok(StatisticsRequest { blocks, six: false }),
            ["inet6"] => Ok(StatisticsRequest { blocks, six: true }),
            others => Err(Refusal::NoStatistics(others.join(","))),
        }
    }

    fn into_interfaces(self, bug_compatible: bool) -> Interfaces {
        Interfaces { all: self.on(ALL), long: self.extended > 0, continuous: self.on(CONTINUOUS), bug_compatible }
    }

    fn into_routes(self, bug_compatible: bool) -> Result<Routes, Refusal> {
        let mut families = Vec::new();
        for name in &self.families {
            families.push(match *name {
                "inet" => RouteFamily::Four,
                "inet6" => RouteFamily::Six,
                "unix" => RouteFamily::Without("unix"),
                other => return Err(Refusal::Unsupported { switch: other, instead: "nothing in netwren" }),
            });
        }
        if families.is_empty() {
            families.push(RouteFamily::Four);
        }
        let options = RouteOptions {
            columns: route_columns(self.extended),
            // `-N` is documented to show names, but 2.10 shows numbers.
            numeric: self.on(NUMERIC_HOSTS) || self.on(SYMBOLIC),
            wide: self.on(WIDE),
            bug_compatible,
        };
        let fib = self.on(FIB) || !self.on(CACHE);
        Ok(Routes { families, fib, cache: self.on(CACHE), continuous: self.on(CONTINUOUS), options })
    }

    fn into_list(self, bug_compatible: bool) -> Result<List, Refusal> {
        let known = |name: &&str| matches!(*name, "inet" | "inet6" | "unix");
        let unsupported = [
            self.unsupported,
            self.on(SCTP).then_some(("-S", "`ss -S`")),
            self.families.iter().find(|name| !known(name)).map(|name| (*name, "nothing in netwren")),
        ];
        if let Some((switch, instead)) = unsupported.into_iter().flatten().next() {
            return Err(Refusal::Unsupported { switch, instead });
        }
        let (four, six, unix) = (self.has("inet"), self.has("inet6"), self.has("unix"));
        let named = self.on(TCP | UDP | UDPLITE | RAW);
        let some = named || four || six;
        let nothing = !some && !unix && !self.on(GROUPS);
        let families = match (four, six) {
            (true, false) => Families::Only4,
            (false, true) => Families::Only6,
            _ => Families::Both,
        };
        let show = match (self.on(ALL), self.on(LISTENING)) {
            (true, _) => Show::All,
            (false, true) => Show::Listening,
            (false, false) => Show::Connected,
        };
        let options = SocketLayout {
            internet: some || nothing,
            unix: unix || nothing,
            groups: self.on(GROUPS),
            show,
            extended: self.extended > 0,
            programs: self.on(PROGRAMS),
            timers: self.on(TIMERS),
            numeric_hosts: self.on(NUMERIC_HOSTS),
            numeric_ports: self.on(NUMERIC_PORTS),
            numeric_users: self.on(NUMERIC_USERS),
            wide: self.on(WIDE),
            bug_compatible,
        };
        Ok(List {
            tcp: options.internet && (self.on(TCP) || !named),
            udp: options.internet && (self.on(UDP) || !named),
            udplite: options.internet && (self.on(UDPLITE) || !named),
            raw: options.internet && (self.on(RAW) || !named),
            unix: options.unix,
            families,
            continuous: self.on(CONTINUOUS),
            options,
        })
    }
}

/// netstat keeps the number of `-e` plus one in two bits, and swaps the first two.
fn route_columns(extended: u32) -> RouteColumns {
    match extended {
        0 => RouteColumns::Transport,
        1 => RouteColumns::Metric,
        more => match (more + 1) & 3 {
            0 => RouteColumns::Nothing,
            1 => RouteColumns::Metric,
            2 => RouteColumns::Transport,
            _ => RouteColumns::All,
        },
    }
}

/// The switches with their dashes, for completion.
pub(super) fn written() -> Vec<String> {
    getopt::written(SWITCHES)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;

    fn asked(line: &str) -> Result<NetstatTask, Refusal> {
        parse(line.split(' ').filter(|w| !w.is_empty()).map(|w| w.as_bytes().to_vec()).collect(), false)
    }

    fn list(line: &str) -> List {
        match asked(line).unwrap() {
            NetstatTask::List(list) => list,
            other => panic!("{line}: {other:?}"),
        }
    }

    /// tcp, udp, udplite, raw, unix and the families, one letter each.
    fn tables(line: &str) -> String {
        let list = list(line);
        let flag = |on: bool, letter: &'static str| if on { letter } else { "" };
        let families = match list.families {
            Families::Both => "46",
            Families::Only4 => "4",
            Families::Only6 => "6",
        };
        let both = [flag(list.tcp, "t"), flag(list.udp, "u"), flag(list.udplite, "l"), flag(list.raw, "w")].concat();
        [&both, flag(list.unix, "x"), families].concat()
    }

    #[test]
    fn which_tables() {
        for (line, expected) in [
            ("", "tulwx46"),
            ("-an", "tulwx46"),
            ("-t", "t46"),
            ("-tulpn", "tu46"),
            ("-4", "tulw4"),
            ("--inet6", "tulw6"),
            ("-t -6", "t6"),
            ("-x", "x46"),
            ("-xt4", "tx4"),
            ("-x -4", "tulwx4"),
            ("-A inet,unix", "tulwx4"),
            ("--protocol=ip6", "tulw6"),
            ("-46", "tulw46"),
            ("--tcp --udp --lis", "tu46"),
            ("--tcpip -u", "u4"),
            ("-w", "w46"),
            ("-U6", "l6"),
            ("-wt", "tw46"),
        ] {
            assert_eq!(tables(line), expected, "{line}");
        }
    }

    #[test]
    fn the_layout() {
        let plain = list("").options;
        assert_eq!(plain.show, Show::Connected);
        assert!(!plain.numeric_hosts && !plain.programs && !plain.extended && !plain.timers && !plain.wide);
        let full = list("-lapeoWcn").options;
        assert_eq!(full.show, Show::All);
        assert!(full.numeric_hosts && full.numeric_ports && full.numeric_users);
        assert!(full.programs && full.extended && full.timers && full.wide);
        assert_eq!(list("--listening").options.show, Show::Listening);
        let ports = list("--numeric-ports -vCFN").options;
        assert!(ports.numeric_ports && !ports.numeric_hosts && !ports.numeric_users);
        assert!(list("--conti").continuous);
    }

    #[test]
    fn counters() {
        let all = CounterBlocks { raw: true, tcp: true, udp: true, sctp: true };
        let none = CounterBlocks { raw: false, tcp: false, udp: false, sctp: false };
        for (line, blocks, six) in [
            ("-s", all, false),
            ("-st", CounterBlocks { tcp: true, ..none }, false),
            ("-s4", all, false),
            ("-suw6", CounterBlocks { raw: true, udp: true, ..none }, true),
            ("--statistics --udplite", none, false),
        ] {
            assert_eq!(asked(line), Ok(NetstatTask::Statistics(StatisticsRequest { blocks, six })), "{line}");
        }
        assert_eq!(asked("-s46"), Err(Refusal::NoStatistics("inet,inet6".into())));
        assert_eq!(asked("-sx"), Err(Refusal::NoStatistics("unix".into())));
        assert_eq!(asked("-si"), Err(Refusal::Usage(None)));
    }

    #[test]
    fn routes() {
        let routes = |line: &str| match asked(line).unwrap() {
            NetstatTask::Routes(routes) => routes,
            other => panic!("{line}: {other:?}"),
        };
        use RouteColumns::{All, Metric, Nothing, Transport};
        for (line, columns) in [
            ("-r", Transport),
            ("-re", Metric),
            ("-ree", All),
            ("-reee", Nothing),
            ("-reeee", Metric),
            ("-reeeee", Transport),
            ("-reeeeee", All),
        ] {
            assert_eq!(routes(line).options.columns, columns, "{line}");
        }
        let plain = routes("--route");
        assert!(plain.fib && !plain.cache && !plain.options.numeric && !plain.continuous && !plain.options.wide);
        assert_eq!(plain.families, [RouteFamily::Four]);
        let cache = routes("-rCncWA inet6");
        assert!(!cache.fib && cache.cache && cache.options.numeric && cache.continuous && cache.options.wide);
        assert_eq!(cache.families, [RouteFamily::Six]);
        assert!(routes("-rCF").fib && routes("-rN").options.numeric && routes("-r --numeric-hosts").options.numeric);
        assert!(!routes("-r --numeric-ports").options.numeric);
        let several = [RouteFamily::Six, RouteFamily::Without("unix"), RouteFamily::Four];
        assert_eq!(routes("-6r -x4").families, several);
    }

    #[test]
    fn interfaces_and_groups() {
        let plain = Interfaces { all: false, long: false, continuous: false, bug_compatible: false };
        assert_eq!(asked("-i"), Ok(NetstatTask::Interfaces(plain)));
        assert_eq!(asked("-ig"), Ok(NetstatTask::Interfaces(plain)));
        let full = Interfaces { all: true, long: true, continuous: true, ..plain };
        assert_eq!(asked("--interfaces -ace -6"), Ok(NetstatTask::Interfaces(full)));
        for (line, blocks) in [
            ("-g", (false, true, false)),
            ("-gx", (false, true, true)),
            ("-tg", (true, true, false)),
            ("-g4", (true, true, false)),
            ("-t", (true, false, false)),
        ] {
            let options = list(line).options;
            assert_eq!((options.internet, options.groups, options.unix), blocks, "{line}");
        }
        assert_eq!(tables("-g6"), "tulw6");
        assert_eq!(tables("-g"), "46");
    }

    #[test]
    fn refusals() {
        for (line, expected) in [
            ("--nosuch", Refusal::Usage(Some("unrecognized option '--nosuch'".into()))),
            ("-tj", Refusal::Usage(Some("invalid option -- 'j'".into()))),
            (
                "--cont",
                Refusal::Usage(Some("option '--cont' is ambiguous; possibilities: '--continuous' '--context'".into())),
            ),
            ("-?", Refusal::Usage(None)),
            ("-M", Refusal::NoMasquerade),
            ("-rM", Refusal::Usage(None)),
            ("-rr", Refusal::Usage(None)),
            ("-ir", Refusal::Usage(None)),
            ("-r --ipx", Refusal::Unsupported { switch: "ipx", instead: "nothing in netwren" }),
            ("--ipx", Refusal::Unsupported { switch: "ipx", instead: "nothing in netwren" }),
            ("-A foo", Refusal::UnknownFamily("foo".into())),
        ] {
            assert_eq!(asked(line), Err(expected), "{line}");
        }
        assert_eq!(asked("-t --help -j"), Ok(NetstatTask::Help));
        assert_eq!(asked("-V"), Ok(NetstatTask::Version));
    }
}
