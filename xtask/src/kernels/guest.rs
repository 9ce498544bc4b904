//! The content of the emulated machine: busybox, the binary, and a script that compares the backends.

use super::programs::Programs;
use super::{Kernel, must};
use anyhow::{Result, ensure};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The prefix of the script's own lines on the console.
pub(super) const SAYS: &str = "netwren-guest: ";

/// Module folders that the backends need; not every kernel has the folders of the simulated device.
const MODULES: &[&str] =
    &["kernel/net", "kernel/lib", "kernel/crypto", "kernel/drivers/net/netdevsim", "kernel/drivers/ptp"];

const APPLETS: &[&str] = &[
    "sh", "mount", "modprobe", "ifconfig", "poweroff", "nc", "sleep", "sort", "cmp", "cat", "head", "wc", "diff",
    "awk", "grep", "kill", "killall", "pidof", "sysctl", "tr", "tail", "unshare", "mkdir", "mkfifo", "rm", "env",
    "sed", "uniq",
];

/// Makes connections, then reads the same columns with every backend.
const INIT: &str = r#"#!/bin/sh
export PATH=/bin
say() { echo "netwren-guest: $*"; }
mount -t proc proc /proc; mount -t sysfs sysfs /sys; mount -t devtmpfs dev /dev
mkdir -p /sys/fs/cgroup; mount -t cgroup2 cgroup /sys/fs/cgroup
ifconfig lo up
until_true() { n=0; until "$@" || [ $n = 150 ]; do sleep 0.1; n=$((n + 1)); done; }
# State 0A, with the port in hex behind the address.
is_open() { cat /proc/net/tcp /proc/net/tcp6 2> /dev/null | grep -q "$(printf ':%04X [0-9A-F]*:0000 0A ' $1)"; }
listens() { until_true is_open $1; }
for module in tcp_diag udp_diag unix_diag raw_diag af_packet_diag netlink_diag; do modprobe $module 2>/dev/null; done
for port in 81 82 83 84; do
    nc -l -p $port < /dev/zero > /dev/null &
    listens $port
    sleep 1000 | nc 127.0.0.1 $port > /dev/null &
done
nc -l -p 85 < /dev/null > /dev/null & listens 85; nc 127.0.0.1 85 < /dev/null > /dev/null
nc -l -p 86 < /dev/null & listens 86
# Both ends of four connections.
connected() { [ "$(cat /proc/net/tcp /proc/net/tcp6 2> /dev/null | grep -c ' 01 ')" -ge 8 ]; }
until_true connected
netwren support | while read -r line; do say "support: $line"; done
columns=proto,family,state,local_addr,local_port,peer_addr,peer_port,inode
rows() { netwren sockets proto = tcp -H --columns $columns --no-owner "$@" 2> /err | sort; }
owners() { netwren sockets proto = tcp -H --columns local_port,peer_port,state,process,pid,fd "$@" 2> /err | sort; }
compare() {
    if grep -q "this kernel has no" /err; then say "$1: not here: $(head -n 1 /err)"; return; fi
    # A program that the verifier turns away is a mistake of ours, not something that the kernel lacks.
    if grep -q "kernel refused" /err; then say "$1: DIFFERENT from $2: $(cat /err)"; return; fi
    if [ ! -s /b ]; then say "$1: nothing: $(head -n 1 /err)"; return; fi
    if cmp -s /a /b; then say "$1: $(wc -l < /b) rows, as by $2"; return; fi
    say "$1: DIFFERENT from $2: $(head -n 1 /err)"; diff /a /b | head -n 10 | while read -r line; do say "  $line"; done
}
rows --via netlink > /a; rows --via proc > /b; compare "sockets --via proc" netlink
columns=$columns,uid,ifindex,mark,accept_q_max
rows --via netlink > /a; rows --via bpf > /b; compare "sockets --via bpf" netlink
rows > /b; compare "sockets" netlink
owners --owners-via proc > /a; owners --owners-via bpf > /b; compare "owners by bpf" proc
netwren sockets --cost --limit 1 proto = tcp > /dev/null 2> /err; say "cost: $(cat /err)"
# Three connections are opened and closed while we follow; which ends were told of, and how many with their process.
alive() { kill -0 $follower 2> /dev/null; }
begun() { [ -s /rows ] || ! alive; }
all_told() { [ "$(wc -l < /rows)" -gt "$1" ] || ! alive; }
base=90
follow() {
    # A port in TIME_WAIT cannot be listened at again.
    base=$((base + 10)); : > /rows
    columns=event,direction,local_port,process,pid
    $within netwren sockets --follow --cost --columns $columns "$@" > /rows 2> /err & follower=$!
    until_true begun
    for port in $((base + 1)) $((base + 2)) $((base + 3)); do
        nc -l -p $port < /dev/null > /dev/null & listens $port
        nc 127.0.0.1 $port < /dev/null > /dev/null
    done
    until_true all_told 12; kill -TERM $(pidof netwren) 2> /dev/null; wait $follower
    awk '{ n[$1]++ } /nc/ { n[$1 " owned"]++ }
        END { print n["open"] + 0 " opened (" n["open owned"] + 0 " with pid), " \
            n["close"] + 0 " closed (" n["close owned"] + 0 " with pid)" }' /rows
}
judged() {
    if [ "$2" = "$3" ]; then say "$1: $2"; return; fi
    say "$1: $2: DIFFERENT from $3"; while read -r line; do say "  $line"; done < /rows
}
# The same, if the interface is there: without it nothing was written.
judged_if_any() { if [ -s /rows ]; then judged "$@"; else say "$1: nothing: $(head -n 1 /err)"; fi; }
all="6 opened (6 with pid), 6 closed (6 with pid)"
follow > /told; by=$(cat /told)
if ! netwren support | grep -q "^following connections.yes"; then
    # The fallback: closings are told of, short connections' openings not, nobody's owner.
    case $by in
        *" 6 closed (0 with pid)") say "follow: $by, by netlink" ;;
        *) say "follow: $by: DIFFERENT from 6 closed" ;;
    esac
else
    judged "follow" "$by" "$all"
fi
while read -r line; do say "  follow: $line"; done < /err
base=120; follow --via netlink > /told; say "follow --via netlink: $(cat /told)"
base=150; follow --via bpf > /told; judged_if_any "follow --via bpf" "$(cat /told)" "$all"
# In a pid namespace of its own it sees none of these processes: it tells of nobody, and of nobody else in their place.
within="unshare -m -p -f --mount-proc"; base=210; follow --via bpf > /told; within=
nobody="6 opened (0 with pid), 6 closed (0 with pid)"
judged_if_any "follow in a pid namespace" "$(cat /told)" "$nobody"
# The same for flows, added up in the kernel: three connections, two ends each.
base=180; : > /rows
netwren flows --follow=1 --via bpf --cost --columns opened,closed > /rows 2> /err & follower=$!
until_true begun
for port in 181 182 183; do
    nc -l -p $port < /dev/null > /dev/null & listens $port
    nc 127.0.0.1 $port < /dev/null > /dev/null
done
summed() { awk '{ o += $1; c += $2 } END { print o + 0 " opened, " c + 0 " closed" }' /rows; }
all_summed() { [ "$(summed)" = "6 opened, 6 closed" ] || ! alive; }
until_true all_summed; kill -TERM $follower 2> /dev/null; wait $follower
judged_if_any "flows --follow" "$(summed)" "6 opened, 6 closed"
# Connection tracking, a module here. Connections through a rule that tracks and one that rewrites, and entries by hand.
# Nothing else: the counters of what still sends would not stand still from one reading to the next.
killall nc
for module in nf_conntrack nf_conntrack_netlink; do modprobe $module 2> /dev/null; done
sysctl -q -w net.netfilter.nf_conntrack_acct=1 net.netfilter.nf_conntrack_timestamp=1
if nft -f /nat.nft 2> /err; then
    : > /rows; columns=event,proto,nat,orig_dport,reply_sport
    netwren nat events --event new --columns $columns --cost > /rows 2> /told & follower=$!
    until_true begun
    for port in 281 282 283; do
        sleep 1000 | nc -l -p $port > /dev/null & listens $port
        sleep 1000 | nc 127.0.0.1 $port > /dev/null &
    done
    sleep 1000 | nc -l -p 285 > /dev/null & listens 285; sleep 1000 | nc 127.0.0.1 284 > /dev/null &
    until_true all_told 4; kill -TERM $follower 2> /dev/null; wait $follower
    awk '$1 == "new" { n++; if ($4 != $5) r++ } END { print n + 0 " new, " r + 0 " rewritten" }' /rows > /a
    judged "nat events" "$(cat /a)" "4 new, 1 rewritten"
    while read -r line; do say "  nat events: $line"; done < /told
else
    say "nat: nothing is tracked: $(head -n 1 /err)"
fi
for n in 1 2 3 4 5 6 7 8; do
    netwren conntrack -I -p udp -s 192.0.2.$n -d 198.51.100.7 --sport 1000$n --dport 53 -t 600 -m $n \
        > /dev/null 2> /err || say "conntrack -I: DIFFERENT from done: $(cat /err)"
done
netwren conntrack -I -p tcp -s 2001:db8::1 -d 2001:db8::2 --sport 1 --dport 2 -t 600 --state ESTABLISHED \
    > /dev/null 2> /err
ends=proto,family,state,nat,client,published,backend,orig_src,orig_sport,orig_dst,orig_dport
ends=$ends,reply_src,reply_sport,reply_dst,reply_dport,mark
entries() { netwren nat -H --columns $ends,$columns --no-owner "$@" 2> /err | sort; }
columns=uses
entries --via netlink > /a; entries --via proc > /b; compare "nat --via proc" netlink
columns=status,zone,bytes_in,bytes_out,packets_in,packets_out,label,helper
entries --via netlink > /a; entries --via bpf > /b; compare "nat --via bpf" netlink
entries 'nat = dnat' --via netlink > /a; entries 'nat = dnat' --via bpf > /b
compare "nat of one kind --via bpf" netlink
netwren nat --cost --limit 1 > /dev/null 2> /err; say "nat cost: $(cat /err)"
netwren nat advise > /rows 2> /err; say "nat advise: $(head -n 3 /rows | tr '\n' ' ')"
"#;

/// Runs the watching commands with each of their backends. They may report that the kernel lacks a feature; a program
/// that the kernel rejects, or an exit code without a reason, is a bug in netwren.
const WATCHING: &str = r#"
answered() {
    if grep -q "kernel refused" /err || [ $code = 1 ] || [ $code = 2 ] || [ $code -gt 4 ]; then
        say "$1: DIFFERENT from an answer: exit $code: $(head -n 2 /err | tr '\n' ' ')"
    elif [ $code = 4 ]; then say "$1: not here: $(head -n 1 /err)"
    else say "$1: exit $code, $(wc -l < /rows) lines $(head -n 1 /err)"; fi
}
tried() { name=$1; shift; "$@" > /rows 2> /err; code=$?; answered "$name"; }
knock() { n=0; while [ $n -lt $1 ]; do nc 127.0.0.1 9 < /dev/null 2> /dev/null; n=$((n + 1)); done; }
# Drops of another kind, at tcp_v6_rcv, until the follower tells of one: from then on it tells of all.
watches() { nc ::1 8 < /dev/null 2> /dev/null; grep -q tcp_v6_rcv $told || ! alive; }
until_it_watches() { told=${1:-/rows}; until_true watches; }
tried "counters" netwren counters --for 0.5 --changed
tried "doctor" netwren doctor --for 1
tried "doctor on a recording" netwren record --for 1 /tape
tried "doctor --replay" netwren doctor --replay /tape
tried "home" netwren
tried "capture latency" netwren capture latency --for 0.5
# Twenty connections to a closed port: a dropped SYN each.
: > /rows; netwren drops --watch=0.5 --columns count,place -H > /rows 2> /err & follower=$!
until_it_watches; knock 20
dropped() { awk '$2 ~ /^tcp_v4_rcv/ { n += $1 } END { print n + 0 }' /rows; }
all_dropped() { [ "$(dropped)" -ge 20 ] || ! alive; }
until_true all_dropped; kill -INT $follower 2> /dev/null; wait $follower; code=$?
if [ $code = 4 ]; then answered "drops"; else judged "drops" "$(dropped) dropped" "20 dropped"; fi
# The same by the drop monitor, whose module the kernel loads by itself; then each packet, with a second user meanwhile
# and a kill -9 at the end, after which it must be to be had again.
monitored() {
    : > /rows; netwren drops --via net-dm --watch=0.5 --columns count,place -H > /rows 2> /err & follower=$!
    until_it_watches; knock 20
    until_true all_dropped; kill -INT $follower 2> /dev/null; wait $follower; code=$?
    if [ $code = 4 ]; then answered "$1"; else judged "$1" "$(dropped) dropped" "20 dropped"; fi
}
monitored "drops --via net-dm"
has_monitor=; [ $code = 4 ] || has_monitor=yes
if [ "$has_monitor" ]; then
    : > /rows; netwren drops --events --via net-dm --columns place,iface,dport -H > /rows 2> /err & follower=$!
    until_it_watches; knock 20
    events() { grep -c "^tcp_v4_rcv.lo.9$" /rows; }
    all_events() { [ "$(events)" -ge 20 ] || ! alive; }
    until_true all_events
    judged "drops --events --via net-dm" "$(events) dropped" "20 dropped"
    netwren drops --via net-dm --for 0.1 > /rows 2> /err; code=$?
    if [ $code = 4 ] && tr -s '\n ' ' ' < /err | grep -q "one user at a time: netlink port $follower (netwren)"; then
        say "drop monitor: one user at a time"
    else say "drop monitor: DIFFERENT from busy: exit $code: $(cat /err)"; fi
    kill -9 $follower; wait $follower 2> /dev/null
    monitored "drops --via net-dm after kill -9"
    # Into a file, where the place of a packet stands in its comment and in an option of its own.
    netwren drops --via net-dm -w /drops.pcapng 2> /err & follower=$!
    noted() { tr '\0' '\n' < /drops.pcapng 2> /dev/null | grep -c "place=$1"; }
    writes() { nc ::1 8 < /dev/null 2> /dev/null; [ "$(noted tcp_v6_rcv)" -gt 0 ] || ! alive; }
    until_true writes; knock 20
    all_noted() { [ "$(noted tcp_v4_rcv)" -ge 40 ] || ! alive; }
    until_true all_noted; kill -INT $follower 2> /dev/null; wait $follower
    netwren capture -r /drops.pcapng -H --columns iface,dport,tcp_flags > /rows 2>> /err
    judged "drops -w --via net-dm" "$(noted tcp_v4_rcv) notes, $(grep -c "^lo.9.syn$" /rows) SYNs" "40 notes, 20 SYNs"
fi
# dropwatch and its face, by the same commands over equal drops, which makes_drops makes; then Ctrl-C and `exit`.
watched() {
    out=$1; shift; : > $out; mkfifo /commands
    "$@" -l kas < /commands > $out 2> /err & follower=$!
    exec 3> /commands; printf "$commands" >&3
    until_it_watches $out; makes_drops; until_true all_seen; kill -INT $follower 2> /dev/null
    until_true stopped; echo exit >&3; exec 3>&-; wait $follower; rm /commands
}
seen() { awk -v place="$place" '$0 ~ " drops at " place { n += $1 } $0 ~ "^drop at: " place { n++ }
    END { print n + 0 }' ${1:-$out}; }
all_seen() { [ "$(seen)" -ge $enough ] || ! alive; }
# Behind the answer to `stop` before `start`, if there was one.
stopped() { awk '/Issue Ctrl-C/ { on = 1 } on && /Got a stop message/ { off = 1 } END { exit !off }' $out || ! alive; }
# What the text of both must be, however drops are spread over lines and seconds.
told_by() {
    awk -v place="$place" '/Waiting for deactivation/ { next }
        / drops at / { if ($0 !~ place) next; $1 = "N" }
        /^drop at: / { skip = $0 !~ place }
        /^timestamp: / { gsub(/[0-9]/, "0"); sub(/: [A-Z][a-z][a-z] [A-Z][a-z][a-z] [ 0]0/, ": DAY") }
        !skip
        /^$/ { skip = 0 }' $1 | uniq
}
as_by_dropwatch() {
    watched /tool env _STDBUF_O=L LD_PRELOAD=/lib/libstdbuf.so dropwatch
    watched /face netwren dropwatch
    told_by /tool > /a; told_by /face > /b; : > /err; compare "$1" "dropwatch 1.5.4"
}
if [ "$has_monitor" ]; then
    for args in "" "-l list" "-l bfd" "-x"; do dropwatch $args < /dev/null 2> /dev/null; echo $?; done > /a
    for args in "" "-l list" "-l bfd" "-x"; do netwren dropwatch $args < /dev/null 2> /dev/null; echo $?; done > /b
    : > /err; compare "dropwatch switches" "dropwatch 1.5.4"
    makes_drops() { knock 20; }
    place=tcp_v4_rcv; enough=20
    commands='help\nset alertlimit 0\nset alertmode summary\nset nothing\nset queue 16381\nshow\nstats\nstop\nstart\n'
    as_by_dropwatch "dropwatch sums"; judged "dropwatch drops" "$(seen /face) of $(seen /tool)" "20 of 20"
    commands='set alertmode packet\nset trunc 60\nset queue 900\nset sw true\nshow\nstart\n'
    as_by_dropwatch "dropwatch packets"; judged "dropwatch packets shown" "$(seen /face) of $(seen /tool)" "20 of 20"
fi
# A simulated device, which drops by its traps ten times a second while its port is up. What the device itself is said
# to drop grows with each reading, of all traps alike.
modprobe netdevsim 2> /dev/null
device=netdevsim/netdevsim1; trap=source_mac_is_multicast
if echo "1 1" > /sys/bus/netdevsim/new_device 2> /dev/null; then
    has_port() { port=$(grep -l . /sys/bus/netdevsim/devices/netdevsim1/net/*/ifindex 2> /dev/null); [ "$port" ]; }
    until_true has_port; port=${port%/ifindex}; port=${port##*/}
    devlink trap set $device trap $trap action trap
    trapped() { devlink -s trap show $device trap $trap | tr -s ' ' '\n' | grep -A 1 packets | tail -n 1; }
    : > /rows; : > /losses; : > /a
    netwren drops --events --via net-dm --columns reason,place,iface -H > /rows 2> /err & follower=$!
    netwren drops --via counters --watch=0.5 --columns count,reason,place -H > /losses 2> /dev/null & losing=$!
    netwren counters --watch=0.5 -H --columns delta name = $trap.packets > /a 2> /dev/null & counting=$!
    all_begun() { [ -s /losses ] && [ "$(wc -l < /a)" -gt 4 ]; }
    until_true all_begun; until_it_watches
    many() { [ "$(trapped)" -gt 10 ]; }
    ifconfig $port up; until_true many; ifconfig $port down
    # The work that was going on ends.
    stands() { before=$packets; packets=$(trapped); [ "$before" = "$packets" ]; }
    until_true stands
    events() { grep -c "^$trap.devlink l2_drops.$port$" /rows; }
    all_events() { [ "$(events)" -ge "$packets" ] || ! alive; }
    until_true all_events
    lost() { awk -v trap=$1 -v device=$device '$2 == trap && $3 == device { n += $1 } END { print n + 0 }' /losses; }
    counted() { awk '/^[0-9]+$/ { n += $1 } END { print n + 0 }' /a; }
    all_lost() { [ $(($(lost $trap) - $(lost blackhole_route))) -ge "$packets" ] && [ "$(counted)" -ge "$packets" ]; }
    until_true all_lost; kill -INT $follower $losing $counting; wait $follower $losing $counting
    [ "$packets" -gt 5 ] || say "devlink traps: DIFFERENT from some packets: $packets"
    judged "drops by devlink traps" "$(($(lost $trap) - $(lost blackhole_route))) lost" "$packets lost"
    judged "counters of devlink traps" "$(counted) packets" "$packets packets"
    judged "hardware drops by net-dm" "$(events) dropped" "$packets dropped"
    makes_drops() { ifconfig $port up; until_true all_seen; ifconfig $port down; }
    place=$trap; enough=1
    commands='set alertmode summary\nset sw true\nset hw true\nstart\n'
    as_by_dropwatch "dropwatch sums of hardware"
fi
# A rule hands packets to a program that is not there: without the kernel's part for such programs, then with it.
# Ten connections a second: each waits for an answer that never comes, and is given up.
unread() {
    rm -f /stop
    (while [ ! -e /stop ]; do nc 127.0.0.1 9 < /dev/null 2> /dev/null & sleep 0.1; kill $!; wait $!; done) & load=$!
    netwren doctor --for 2 -H --columns id,severity,object,title > /rows 2> /err
    : > /stop; wait $load; judged "doctor with $1" "$(head -n 1 /rows | cut -f 1,2)" "nfqueue	critical"
    while read -r line; do say "  $line"; done < /rows
}
if nft -f /queue.nft 2> /err; then
    unread "an unread queue"
    modprobe nfnetlink_queue; unread "an unread queue and nfnetlink_queue"
    nft delete table ip handed
else say "doctor with an unread queue: nothing: $(head -n 1 /err)"; fi
# Under a load of connections, samples must find TCP at work.
rm -f /stop
(while [ ! -e /stop ]; do knock 10; done) & load=$!
for via in bpf perf proc; do
    tried "doctor softirq --via $via" netwren doctor softirq --for 2 --via $via
    if [ $code = 0 ] && ! grep -q "^tcp" /rows; then say "doctor softirq --via $via: DIFFERENT from tcp at work"; fi
done
: > /stop; wait $load
# Ten connections: a SYN and its refusal each.
: > /rows; netwren doctor path --for 30 --columns hook,stage,packets,lost -H > /rows 2> /err & follower=$!
begun_or_gone() { grep -q "while this runs" /err || ! alive; }
until_true begun_or_gone; knock 10; kill -INT $follower 2> /dev/null; wait $follower; code=$?
if [ $code = 4 ]; then answered "doctor path"; else
    stages=$(awk '{ n[$3 " " $4]++ } END { for (k in n) print n[k] " stages " k }' /rows)
    judged "doctor path" "$stages" "26 stages 20 0"
    while read -r line; do say "  doctor path: $line"; done < /err
fi
say end
poweroff -f
"#;

/// Tracks connections and rewrites one port to another.
const RULES: &str = "table ip guest {
    chain track { type filter hook input priority 0; ct state new counter; }
    chain publish { type nat hook output priority -100; tcp dport 284 redirect to :285; }
}
";

/// Queues packets for a program that is not running.
const QUEUE: &str = "table ip handed {
    chain in { type filter hook input priority 0; tcp dport 9 counter queue num 5; }
}
";

/// Builds a file system in memory with the script as its first process.
pub(super) fn initrd(kernel: &Kernel, binary: &Path, programs: &Programs, folder: &Path) -> Result<PathBuf> {
    let tree = folder.join("guest");
    if tree.exists() {
        fs::remove_dir_all(&tree)?;
    }
    for dir in ["bin", "proc", "sys", "dev"] {
        fs::create_dir_all(tree.join(dir))?;
    }
    symlink("bin", tree.join("sbin"))?;
    for applet in APPLETS {
        symlink("busybox", tree.join("bin").join(applet))?;
    }
    fs::copy(binary, tree.join("bin/netwren"))?;
    programs.copy_to(&tree)?;
    fs::write(tree.join("nat.nft"), RULES)?;
    fs::write(tree.join("queue.nft"), QUEUE)?;
    copy_modules(kernel, &tree)?;
    let init = tree.join("init");
    fs::write(&init, [INIT, WATCHING].concat())?;
    fs::set_permissions(&init, fs::Permissions::from_mode(0o755))?;
    pack(&tree, &folder.join("initrd.gz"))
}

/// Copies the modules and decompresses them, because busybox may not support their compression.
fn copy_modules(kernel: &Kernel, tree: &Path) -> Result<()> {
    let to = tree.join("lib/modules").join(&kernel.version);
    fs::create_dir_all(to.join("kernel"))?;
    for part in MODULES.iter().filter(|part| kernel.modules.join(part).exists()) {
        must(Command::new("cp").arg("-r").arg(kernel.modules.join(part)).arg(to.join("kernel")))?;
    }
    for file in ["modules.order", "modules.builtin", "modules.builtin.modinfo"] {
        // Old packages lack some of these files; depmod then only warns.
        let _ = fs::copy(kernel.modules.join(file), to.join(file));
    }
    let unpack = "find \"$1\" -name '*.ko.xz' -exec xz -d {} +; find \"$1\" -name '*.ko.zst' -exec zstd -dq --rm {} +";
    must(Command::new("sh").args(["-c", unpack, "sh"]).arg(&to))?;
    must(Command::new("depmod").arg("-b").arg(tree).arg(&kernel.version).stderr(Stdio::null()))
}

fn pack(tree: &Path, to: &Path) -> Result<PathBuf> {
    let script = "cd \"$1\" && find . | cpio --quiet -o -H newc | gzip -1 > \"$2\"";
    must(Command::new("sh").args(["-c", script, "sh"]).arg(tree).arg(to))?;
    ensure!(to.exists(), "{} was not made", to.display());
    Ok(to.to_path_buf())
}
