# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_netwren_global_optspecs
    string join \n c/columns= n/limit= o/output= json csv H/no-header color= w/watch= stats cost N/netns= all-netns replay= h/help V/version
end

function __fish_netwren_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_netwren_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_netwren_using_subcommand
    set -l cmd (__fish_netwren_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c netwren -n "__fish_netwren_needs_command" -s c -l columns -d 'Columns, by name: `a,b`; `+a` adds to the usual ones, `-a` leaves one out, `all` is every field, `help` explains them all' -r
complete -c netwren -n "__fish_netwren_needs_command" -s n -l limit -d 'At most N rows' -r
complete -c netwren -n "__fish_netwren_needs_command" -s o -l output -d 'table: on a terminal aligned within its width, with units and local times; in a pipe tab-separated and exact; wide: the same with more columns; plain: aligned and exact everywhere; json: one object a line; csv: RFC 4180, where text that a spreadsheet would compute (= + - @ in front) gets an apostrophe' -r -f -a "table\t''
wide\t''
plain\t''
json\t''
csv\t''"
complete -c netwren -n "__fish_netwren_needs_command" -l color -d 'Colour; auto: on a terminal unless NO_COLOR is set. Red: lost, or over a limit (accept queue, 90 % of conntrack); yellow: sent again, opening or closing, a guess; green: established, incoming; cyan: listening, outgoing; dim: closed, or nothing' -r -f -a "auto\t''
always\t''
never\t''"
complete -c netwren -n "__fish_netwren_needs_command" -s w -l watch -d 'Again every SECONDS until interrupted' -r
complete -c netwren -n "__fish_netwren_needs_command" -s N -l netns -d 'The network namespace of that name, of that process, at that path or of that container' -r
complete -c netwren -n "__fish_netwren_needs_command" -l replay -d 'The host as it was when it was recorded (`netwren record FILE`)' -r -F
complete -c netwren -n "__fish_netwren_needs_command" -l json -d 'Short for -o json'
complete -c netwren -n "__fish_netwren_needs_command" -l csv -d 'Short for -o csv'
complete -c netwren -n "__fish_netwren_needs_command" -s H -l no-header -d 'No header line'
complete -c netwren -n "__fish_netwren_needs_command" -l stats -d 'The row counts of the run at the end: rows seen, shown, filtered, lost'
complete -c netwren -n "__fish_netwren_needs_command" -l cost -d 'What the run itself cost: CPU, system calls, bytes read, memory, the interface used'
complete -c netwren -n "__fish_netwren_needs_command" -l all-netns -d 'Every network namespace of this host: those with a name, of processes, of containers; adds the column `netns`'
complete -c netwren -n "__fish_netwren_needs_command" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c netwren -n "__fish_netwren_needs_command" -s V -l version -d 'Print version'
complete -c netwren -n "__fish_netwren_needs_command" -f -a "home" -d 'The whole host on one screen; `netwren` without a command is the same'
complete -c netwren -n "__fish_netwren_needs_command" -f -a "sockets" -d 'Sockets of every family with their owners'
complete -c netwren -n "__fish_netwren_needs_command" -f -a "listeners" -d 'Sockets that take what anybody sends: TCP that listens, UDP with a port and no peer'
complete -c netwren -n "__fish_netwren_needs_command" -f -a "flows" -d 'Host-to-host flows: who talks to whom, who opened it, how many connections'
complete -c netwren -n "__fish_netwren_needs_command" -f -a "routes" -d 'Routes of IPv4 and IPv6, of all routing tables: a row for each next hop'
complete -c netwren -n "__fish_netwren_needs_command" -f -a "nat" -d 'Connection tracking: who talks through this host, whose addresses are rewritten, who answers'
complete -c netwren -n "__fish_netwren_needs_command" -f -a "log" -d 'Packets that rules log (nft `log group`, iptables NFLOG), until interrupted'
complete -c netwren -n "__fish_netwren_needs_command" -f -a "capture" -d 'Packets of interfaces, as they come, until interrupted; packets of files'
complete -c netwren -n "__fish_netwren_needs_command" -f -a "drops" -d 'Packets that the kernel drops while it runs: how many, why, where, and what that means'
complete -c netwren -n "__fish_netwren_needs_command" -f -a "doctor" -d 'What is wrong with this host\'s network, what proves it, what would mend it'
complete -c netwren -n "__fish_netwren_needs_command" -f -a "counters" -d 'What the kernel counts, what moved in a second, and what each counter means'
complete -c netwren -n "__fish_netwren_needs_command" -f -a "record" -d 'Save everything that netwren can show of this host to a file, to be asked later'
complete -c netwren -n "__fish_netwren_needs_command" -f -a "support" -d 'What this kernel and these privileges allow, and what is used instead'
complete -c netwren -n "__fish_netwren_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c netwren -n "__fish_netwren_using_subcommand home" -s c -l columns -d 'Columns, by name: `a,b`; `+a` adds to the usual ones, `-a` leaves one out, `all` is every field, `help` explains them all' -r
complete -c netwren -n "__fish_netwren_using_subcommand home" -s n -l limit -d 'At most N rows' -r
complete -c netwren -n "__fish_netwren_using_subcommand home" -s o -l output -d 'table: on a terminal aligned within its width, with units and local times; in a pipe tab-separated and exact; wide: the same with more columns; plain: aligned and exact everywhere; json: one object a line; csv: RFC 4180, where text that a spreadsheet would compute (= + - @ in front) gets an apostrophe' -r -f -a "table\t''
wide\t''
plain\t''
json\t''
csv\t''"
complete -c netwren -n "__fish_netwren_using_subcommand home" -l color -d 'Colour; auto: on a terminal unless NO_COLOR is set. Red: lost, or over a limit (accept queue, 90 % of conntrack); yellow: sent again, opening or closing, a guess; green: established, incoming; cyan: listening, outgoing; dim: closed, or nothing' -r -f -a "auto\t''
always\t''
never\t''"
complete -c netwren -n "__fish_netwren_using_subcommand home" -s w -l watch -d 'Again every SECONDS until interrupted' -r
complete -c netwren -n "__fish_netwren_using_subcommand home" -s N -l netns -d 'The network namespace of that name, of that process, at that path or of that container' -r
complete -c netwren -n "__fish_netwren_using_subcommand home" -l replay -d 'The host as it was when it was recorded (`netwren record FILE`)' -r -F
complete -c netwren -n "__fish_netwren_using_subcommand home" -l json -d 'Short for -o json'
complete -c netwren -n "__fish_netwren_using_subcommand home" -l csv -d 'Short for -o csv'
complete -c netwren -n "__fish_netwren_using_subcommand home" -s H -l no-header -d 'No header line'
complete -c netwren -n "__fish_netwren_using_subcommand home" -l stats -d 'The row counts of the run at the end: rows seen, shown, filtered, lost'
complete -c netwren -n "__fish_netwren_using_subcommand home" -l cost -d 'What the run itself cost: CPU, system calls, bytes read, memory, the interface used'
complete -c netwren -n "__fish_netwren_using_subcommand home" -l all-netns -d 'Every network namespace of this host: those with a name, of processes, of containers; adds the column `netns`'
complete -c netwren -n "__fish_netwren_using_subcommand home" -s h -l help -d 'Print help'
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and not __fish_seen_subcommand_from kill" -s c -l columns -d 'Columns, by name: `a,b`; `+a` adds to the usual ones, `-a` leaves one out, `all` is every field, `help` explains them all' -r
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and not __fish_seen_subcommand_from kill" -l by -d 'One row for each different value of these fields, with `count`, the largest first' -r
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and not __fish_seen_subcommand_from kill" -l sum -d 'With --by: also the sum of these fields' -r
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and not __fish_seen_subcommand_from kill" -l max -d 'With --by: also the largest value of these fields' -r
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and not __fish_seen_subcommand_from kill" -l avg -d 'With --by: also the mean of these fields' -r
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and not __fish_seen_subcommand_from kill" -l sort -d 'Order by these columns, which are shown: `a` ascending, `a:desc` descending. Unsorted rows stream in the kernel\'s order' -r
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and not __fish_seen_subcommand_from kill" -s n -l limit -d 'At most N rows' -r
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and not __fish_seen_subcommand_from kill" -l process -d 'Only what belongs to this process: short for `process = NAME` in the filter; several: `a,b`' -r
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and not __fish_seen_subcommand_from kill" -l pid -d 'Only what belongs to this process, by its number' -r
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and not __fish_seen_subcommand_from kill" -l container -d 'Only what belongs to this container' -r
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and not __fish_seen_subcommand_from kill" -l user -d 'Only what belongs to this user' -r
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and not __fish_seen_subcommand_from kill" -l resolve -d 'Host names for addresses, as many as arrive within SECONDS after the last row' -r
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and not __fish_seen_subcommand_from kill" -s o -l output -d 'table: on a terminal aligned within its width, with units and local times; in a pipe tab-separated and exact; wide: the same with more columns; plain: aligned and exact everywhere; json: one object a line; csv: RFC 4180, where text that a spreadsheet would compute (= + - @ in front) gets an apostrophe' -r -f -a "table\t''
wide\t''
plain\t''
json\t''
csv\t''"
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and not __fish_seen_subcommand_from kill" -l color -d 'Colour; auto: on a terminal unless NO_COLOR is set. Red: lost, or over a limit (accept queue, 90 % of conntrack); yellow: sent again, opening or closing, a guess; green: established, incoming; cyan: listening, outgoing; dim: closed, or nothing' -r -f -a "auto\t''
always\t''
never\t''"
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and not __fish_seen_subcommand_from kill" -s w -l watch -d 'Again every SECONDS until interrupted' -r
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and not __fish_seen_subcommand_from kill" -l follow -d 'Show connections as they open and close, until interrupted; of flows: what opened and closed every SECONDS' -r
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and not __fish_seen_subcommand_from kill" -s N -l netns -d 'The network namespace of that name, of that process, at that path or of that container' -r
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and not __fish_seen_subcommand_from kill" -l via -d 'Read by this kernel interface instead of the best one' -r -f -a "netlink\t''
proc\t''
bpf\t''"
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and not __fish_seen_subcommand_from kill" -l owners-via -d 'Find owners by this interface instead of the cheaper one: bpf needs CAP_BPF and CAP_PERFMON and misses no process' -r -f -a "bpf\t''
proc\t''"
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and not __fish_seen_subcommand_from kill" -l record -d 'Save everything that is read from the kernel; the file is not for strangers: it holds addresses and process names' -r -F
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and not __fish_seen_subcommand_from kill" -l replay -d 'Read a recording instead of the kernel; needs no rights' -r -F
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and not __fish_seen_subcommand_from kill" -l to -d 'Ships rows instead of showing them, as FORMAT:PATH or FORMAT+tcp://HOST:PORT, `+tls`, `+udp`, `+unix:PATH`, as sqlite:PATH or postgres://USER@HOST:PORT/DATABASE (rows of a table, which is made); may be given several times. A wrong TARGET is answered with those that there are. SIGHUP opens files anew' -r
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and not __fish_seen_subcommand_from kill" -l when-full -d 'With --to: what is done with new rows while a receiver is away and its queue is full. Rows that are dropped are counted' -r -f -a "drop-oldest\t''
drop-newest\t''
block\t''"
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and not __fish_seen_subcommand_from kill" -l queue-max -d 'With --to: memory for what waits for one receiver (units of 1024)' -r
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and not __fish_seen_subcommand_from kill" -l spool -d 'With --to: rows wait on disk below DIR instead, also beyond the end of the run: the next one delivers them' -r -F
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and not __fish_seen_subcommand_from kill" -l spool-max -d 'With --spool: bytes on disk for what waits for one receiver (units of 1024)' -r
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and not __fish_seen_subcommand_from kill" -l spool-age -d 'With --spool: rows that wait longer are dropped, and counted; without it none' -r
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and not __fish_seen_subcommand_from kill" -l spool-sync -d 'With --spool: when the disk is made to take what was written, against a power failure' -r -f -a "never\t''
second\t''
always\t''"
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and not __fish_seen_subcommand_from kill" -l rotate-size -d 'With --to FORMAT:PATH: begins a new file before one would be larger (from 1MiB on); PATH becomes PATH.1, that PATH.2' -r
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and not __fish_seen_subcommand_from kill" -l rotate-age -d 'The same once a file is so old: 1m to 3650d, as 90m, 12h or 1d' -r
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and not __fish_seen_subcommand_from kill" -l rotate-keep -d 'How many files are kept beside PATH; older ones are removed' -r
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and not __fish_seen_subcommand_from kill" -l control -d 'With --to: a unix socket, of this user alone, where `netwren log status` asks what has become of the rows' -r -F
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and not __fish_seen_subcommand_from kill" -l tls-ca -d 'With --to …+tls: certificates (PEM) of the authorities that may have signed the receiver\'s; without it those that the system trusts' -r -F
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and not __fish_seen_subcommand_from kill" -l tls-cert -d 'With --to …+tls: our own certificate (PEM), for receivers that demand one. Each connection reads the three files anew' -r -F
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and not __fish_seen_subcommand_from kill" -l tls-key -d 'With --tls-cert: its key (PEM, without a passphrase), if it is in another file' -r -F
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and not __fish_seen_subcommand_from kill" -l no-owner -d 'Leave out the columns of the owning process, and the work of finding it'
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and not __fish_seen_subcommand_from kill" -l json -d 'Short for -o json'
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and not __fish_seen_subcommand_from kill" -l csv -d 'Short for -o csv'
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and not __fish_seen_subcommand_from kill" -s H -l no-header -d 'No header line'
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and not __fish_seen_subcommand_from kill" -l no-hooks -d 'With --follow: attach nothing to the root cgroup\'s getpeername hooks, where others without BPF_F_ALLOW_MULTI are refused meanwhile; who accepted is then known by the first send or receive'
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and not __fish_seen_subcommand_from kill" -l stats -d 'The row counts of the run at the end: rows seen, shown, filtered, lost'
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and not __fish_seen_subcommand_from kill" -l cost -d 'What the run itself cost: CPU, system calls, bytes read, memory, the interface used'
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and not __fish_seen_subcommand_from kill" -l explain -d 'Do not run: say which kernel interface would be read, what the kernel filters and what is left'
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and not __fish_seen_subcommand_from kill" -l exit-code -d 'Exit with 1 if no row was shown'
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and not __fish_seen_subcommand_from kill" -l all-netns -d 'Every network namespace of this host: those with a name, of processes, of containers; adds the column `netns`'
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and not __fish_seen_subcommand_from kill" -l rotate-zstd -d 'Packs them by another process: PATH.1 becomes PATH.1.zst, which zstdcat reads'
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and not __fish_seen_subcommand_from kill" -s h -l help -d 'Print help'
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and not __fish_seen_subcommand_from kill" -a "kill" -d 'Close TCP and UDP sockets of any owner; without --yes only show which'
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and __fish_seen_subcommand_from kill" -s c -l columns -d 'Columns, by name: `a,b`; `+a` adds to the usual ones, `-a` leaves one out, `all` is every field, `help` explains them all' -r
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and __fish_seen_subcommand_from kill" -l sort -d 'Order by these columns, which are shown: `a` ascending, `a:desc` descending. Unsorted rows stream in the kernel\'s order' -r
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and __fish_seen_subcommand_from kill" -s n -l limit -d 'At most N rows' -r
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and __fish_seen_subcommand_from kill" -l process -d 'Only what belongs to this process: short for `process = NAME` in the filter; several: `a,b`' -r
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and __fish_seen_subcommand_from kill" -l pid -d 'Only what belongs to this process, by its number' -r
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and __fish_seen_subcommand_from kill" -l container -d 'Only what belongs to this container' -r
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and __fish_seen_subcommand_from kill" -l user -d 'Only what belongs to this user' -r
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and __fish_seen_subcommand_from kill" -l resolve -d 'Host names for addresses, as many as arrive within SECONDS after the last row' -r
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and __fish_seen_subcommand_from kill" -s o -l output -d 'table: on a terminal aligned within its width, with units and local times; in a pipe tab-separated and exact; wide: the same with more columns; plain: aligned and exact everywhere; json: one object a line; csv: RFC 4180, where text that a spreadsheet would compute (= + - @ in front) gets an apostrophe' -r -f -a "table\t''
wide\t''
plain\t''
json\t''
csv\t''"
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and __fish_seen_subcommand_from kill" -l color -d 'Colour; auto: on a terminal unless NO_COLOR is set. Red: lost, or over a limit (accept queue, 90 % of conntrack); yellow: sent again, opening or closing, a guess; green: established, incoming; cyan: listening, outgoing; dim: closed, or nothing' -r -f -a "auto\t''
always\t''
never\t''"
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and __fish_seen_subcommand_from kill" -s N -l netns -d 'The network namespace of that name, of that process, at that path or of that container' -r
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and __fish_seen_subcommand_from kill" -l no-owner -d 'Leave out the columns of the owning process, and the work of finding it'
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and __fish_seen_subcommand_from kill" -l json -d 'Short for -o json'
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and __fish_seen_subcommand_from kill" -l csv -d 'Short for -o csv'
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and __fish_seen_subcommand_from kill" -s H -l no-header -d 'No header line'
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and __fish_seen_subcommand_from kill" -l stats -d 'The row counts of the run at the end: rows seen, shown, filtered, lost'
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and __fish_seen_subcommand_from kill" -l cost -d 'What the run itself cost: CPU, system calls, bytes read, memory, the interface used'
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and __fish_seen_subcommand_from kill" -l exit-code -d 'Exit with 1 if no row was shown'
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and __fish_seen_subcommand_from kill" -l yes -d 'Close the sockets; each row says in `result` what became of it'
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and __fish_seen_subcommand_from kill" -l all -d 'Every TCP and UDP socket of the namespace, instead of a filter'
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and __fish_seen_subcommand_from kill" -s h -l help -d 'Print help'
complete -c netwren -n "__fish_netwren_using_subcommand listeners" -s c -l columns -d 'Columns, by name: `a,b`; `+a` adds to the usual ones, `-a` leaves one out, `all` is every field, `help` explains them all' -r
complete -c netwren -n "__fish_netwren_using_subcommand listeners" -l by -d 'One row for each different value of these fields, with `count`, the largest first' -r
complete -c netwren -n "__fish_netwren_using_subcommand listeners" -l sum -d 'With --by: also the sum of these fields' -r
complete -c netwren -n "__fish_netwren_using_subcommand listeners" -l max -d 'With --by: also the largest value of these fields' -r
complete -c netwren -n "__fish_netwren_using_subcommand listeners" -l avg -d 'With --by: also the mean of these fields' -r
complete -c netwren -n "__fish_netwren_using_subcommand listeners" -l sort -d 'Order by these columns, which are shown: `a` ascending, `a:desc` descending. Unsorted rows stream in the kernel\'s order' -r
complete -c netwren -n "__fish_netwren_using_subcommand listeners" -s n -l limit -d 'At most N rows' -r
complete -c netwren -n "__fish_netwren_using_subcommand listeners" -l process -d 'Only what belongs to this process: short for `process = NAME` in the filter; several: `a,b`' -r
complete -c netwren -n "__fish_netwren_using_subcommand listeners" -l pid -d 'Only what belongs to this process, by its number' -r
complete -c netwren -n "__fish_netwren_using_subcommand listeners" -l container -d 'Only what belongs to this container' -r
complete -c netwren -n "__fish_netwren_using_subcommand listeners" -l user -d 'Only what belongs to this user' -r
complete -c netwren -n "__fish_netwren_using_subcommand listeners" -l resolve -d 'Host names for addresses, as many as arrive within SECONDS after the last row' -r
complete -c netwren -n "__fish_netwren_using_subcommand listeners" -s o -l output -d 'table: on a terminal aligned within its width, with units and local times; in a pipe tab-separated and exact; wide: the same with more columns; plain: aligned and exact everywhere; json: one object a line; csv: RFC 4180, where text that a spreadsheet would compute (= + - @ in front) gets an apostrophe' -r -f -a "table\t''
wide\t''
plain\t''
json\t''
csv\t''"
complete -c netwren -n "__fish_netwren_using_subcommand listeners" -l color -d 'Colour; auto: on a terminal unless NO_COLOR is set. Red: lost, or over a limit (accept queue, 90 % of conntrack); yellow: sent again, opening or closing, a guess; green: established, incoming; cyan: listening, outgoing; dim: closed, or nothing' -r -f -a "auto\t''
always\t''
never\t''"
complete -c netwren -n "__fish_netwren_using_subcommand listeners" -s w -l watch -d 'Again every SECONDS until interrupted' -r
complete -c netwren -n "__fish_netwren_using_subcommand listeners" -s N -l netns -d 'The network namespace of that name, of that process, at that path or of that container' -r
complete -c netwren -n "__fish_netwren_using_subcommand listeners" -l via -d 'Read by this kernel interface instead of the best one' -r -f -a "netlink\t''
proc\t''
bpf\t''"
complete -c netwren -n "__fish_netwren_using_subcommand listeners" -l owners-via -d 'Find owners by this interface instead of the cheaper one: bpf needs CAP_BPF and CAP_PERFMON and misses no process' -r -f -a "bpf\t''
proc\t''"
complete -c netwren -n "__fish_netwren_using_subcommand listeners" -l record -d 'Save everything that is read from the kernel; the file is not for strangers: it holds addresses and process names' -r -F
complete -c netwren -n "__fish_netwren_using_subcommand listeners" -l replay -d 'Read a recording instead of the kernel; needs no rights' -r -F
complete -c netwren -n "__fish_netwren_using_subcommand listeners" -l no-owner -d 'Leave out the columns of the owning process, and the work of finding it'
complete -c netwren -n "__fish_netwren_using_subcommand listeners" -l json -d 'Short for -o json'
complete -c netwren -n "__fish_netwren_using_subcommand listeners" -l csv -d 'Short for -o csv'
complete -c netwren -n "__fish_netwren_using_subcommand listeners" -s H -l no-header -d 'No header line'
complete -c netwren -n "__fish_netwren_using_subcommand listeners" -l stats -d 'The row counts of the run at the end: rows seen, shown, filtered, lost'
complete -c netwren -n "__fish_netwren_using_subcommand listeners" -l cost -d 'What the run itself cost: CPU, system calls, bytes read, memory, the interface used'
complete -c netwren -n "__fish_netwren_using_subcommand listeners" -l explain -d 'Do not run: say which kernel interface would be read, what the kernel filters and what is left'
complete -c netwren -n "__fish_netwren_using_subcommand listeners" -l exit-code -d 'Exit with 1 if no row was shown'
complete -c netwren -n "__fish_netwren_using_subcommand listeners" -l all-netns -d 'Every network namespace of this host: those with a name, of processes, of containers; adds the column `netns`'
complete -c netwren -n "__fish_netwren_using_subcommand listeners" -s h -l help -d 'Print help'
complete -c netwren -n "__fish_netwren_using_subcommand flows" -s c -l columns -d 'Columns, by name: `a,b`; `+a`, `-a`, `all`, `help`' -r
complete -c netwren -n "__fish_netwren_using_subcommand flows" -l by -d 'One row for each different value of these fields, with `count`, the largest first' -r
complete -c netwren -n "__fish_netwren_using_subcommand flows" -l sum -d 'With --by: also the sum of these fields' -r
complete -c netwren -n "__fish_netwren_using_subcommand flows" -l max -d 'With --by: also the largest value of these fields' -r
complete -c netwren -n "__fish_netwren_using_subcommand flows" -l avg -d 'With --by: also the mean of these fields' -r
complete -c netwren -n "__fish_netwren_using_subcommand flows" -l sort -d 'Order by these columns, which are shown: `a` ascending, `a:desc` descending. Unsorted rows stream in the kernel\'s order' -r
complete -c netwren -n "__fish_netwren_using_subcommand flows" -s n -l limit -d 'At most N rows' -r
complete -c netwren -n "__fish_netwren_using_subcommand flows" -l process -d 'Only what belongs to this process: short for `process = NAME` in the filter; several: `a,b`' -r
complete -c netwren -n "__fish_netwren_using_subcommand flows" -l pid -d 'Only what belongs to this process, by its number' -r
complete -c netwren -n "__fish_netwren_using_subcommand flows" -l container -d 'Only what belongs to this container' -r
complete -c netwren -n "__fish_netwren_using_subcommand flows" -l resolve -d 'Host names for addresses, as many as arrive within SECONDS after the last row' -r
complete -c netwren -n "__fish_netwren_using_subcommand flows" -s o -l output -d 'table: on a terminal aligned within its width, with units and local times; in a pipe tab-separated and exact; wide: the same with more columns; plain: aligned and exact everywhere; json: one object a line; csv: RFC 4180, where text that a spreadsheet would compute (= + - @ in front) gets an apostrophe' -r -f -a "table\t''
wide\t''
plain\t''
json\t''
csv\t''"
complete -c netwren -n "__fish_netwren_using_subcommand flows" -l color -d 'Colour; auto: on a terminal unless NO_COLOR is set. Red: lost, or over a limit (accept queue, 90 % of conntrack); yellow: sent again, opening or closing, a guess; green: established, incoming; cyan: listening, outgoing; dim: closed, or nothing' -r -f -a "auto\t''
always\t''
never\t''"
complete -c netwren -n "__fish_netwren_using_subcommand flows" -s w -l watch -d 'Again every SECONDS until interrupted' -r
complete -c netwren -n "__fish_netwren_using_subcommand flows" -l follow -d 'Show connections as they open and close, until interrupted; of flows: what opened and closed every SECONDS' -r
complete -c netwren -n "__fish_netwren_using_subcommand flows" -s N -l netns -d 'The network namespace of that name, of that process, at that path or of that container' -r
complete -c netwren -n "__fish_netwren_using_subcommand flows" -l via -d 'Read by this kernel interface instead of the best one' -r -f -a "netlink\t''
proc\t''
bpf\t''"
complete -c netwren -n "__fish_netwren_using_subcommand flows" -l owners-via -d 'Find owners by this interface instead of the cheaper one: bpf needs CAP_BPF and CAP_PERFMON and misses no process' -r -f -a "bpf\t''
proc\t''"
complete -c netwren -n "__fish_netwren_using_subcommand flows" -l record -d 'Save everything that is read from the kernel; the file is not for strangers: it holds addresses and process names' -r -F
complete -c netwren -n "__fish_netwren_using_subcommand flows" -l replay -d 'Read a recording instead of the kernel; needs no rights' -r -F
complete -c netwren -n "__fish_netwren_using_subcommand flows" -l to -d 'Ships rows instead of showing them, as FORMAT:PATH or FORMAT+tcp://HOST:PORT, `+tls`, `+udp`, `+unix:PATH`, as sqlite:PATH or postgres://USER@HOST:PORT/DATABASE (rows of a table, which is made); may be given several times. A wrong TARGET is answered with those that there are. SIGHUP opens files anew' -r
complete -c netwren -n "__fish_netwren_using_subcommand flows" -l when-full -d 'With --to: what is done with new rows while a receiver is away and its queue is full. Rows that are dropped are counted' -r -f -a "drop-oldest\t''
drop-newest\t''
block\t''"
complete -c netwren -n "__fish_netwren_using_subcommand flows" -l queue-max -d 'With --to: memory for what waits for one receiver (units of 1024)' -r
complete -c netwren -n "__fish_netwren_using_subcommand flows" -l spool -d 'With --to: rows wait on disk below DIR instead, also beyond the end of the run: the next one delivers them' -r -F
complete -c netwren -n "__fish_netwren_using_subcommand flows" -l spool-max -d 'With --spool: bytes on disk for what waits for one receiver (units of 1024)' -r
complete -c netwren -n "__fish_netwren_using_subcommand flows" -l spool-age -d 'With --spool: rows that wait longer are dropped, and counted; without it none' -r
complete -c netwren -n "__fish_netwren_using_subcommand flows" -l spool-sync -d 'With --spool: when the disk is made to take what was written, against a power failure' -r -f -a "never\t''
second\t''
always\t''"
complete -c netwren -n "__fish_netwren_using_subcommand flows" -l rotate-size -d 'With --to FORMAT:PATH: begins a new file before one would be larger (from 1MiB on); PATH becomes PATH.1, that PATH.2' -r
complete -c netwren -n "__fish_netwren_using_subcommand flows" -l rotate-age -d 'The same once a file is so old: 1m to 3650d, as 90m, 12h or 1d' -r
complete -c netwren -n "__fish_netwren_using_subcommand flows" -l rotate-keep -d 'How many files are kept beside PATH; older ones are removed' -r
complete -c netwren -n "__fish_netwren_using_subcommand flows" -l control -d 'With --to: a unix socket, of this user alone, where `netwren log status` asks what has become of the rows' -r -F
complete -c netwren -n "__fish_netwren_using_subcommand flows" -l tls-ca -d 'With --to …+tls: certificates (PEM) of the authorities that may have signed the receiver\'s; without it those that the system trusts' -r -F
complete -c netwren -n "__fish_netwren_using_subcommand flows" -l tls-cert -d 'With --to …+tls: our own certificate (PEM), for receivers that demand one. Each connection reads the three files anew' -r -F
complete -c netwren -n "__fish_netwren_using_subcommand flows" -l tls-key -d 'With --tls-cert: its key (PEM, without a passphrase), if it is in another file' -r -F
complete -c netwren -n "__fish_netwren_using_subcommand flows" -l no-owner -d 'Leave out the columns of the owning process, and the work of finding it'
complete -c netwren -n "__fish_netwren_using_subcommand flows" -l json -d 'Short for -o json'
complete -c netwren -n "__fish_netwren_using_subcommand flows" -l csv -d 'Short for -o csv'
complete -c netwren -n "__fish_netwren_using_subcommand flows" -s H -l no-header -d 'No header line'
complete -c netwren -n "__fish_netwren_using_subcommand flows" -l no-hooks -d 'With --follow: attach nothing to the root cgroup\'s getpeername hooks, where others without BPF_F_ALLOW_MULTI are refused meanwhile; who accepted is then known by the first send or receive'
complete -c netwren -n "__fish_netwren_using_subcommand flows" -l stats -d 'The row counts of the run at the end: rows seen, shown, filtered, lost'
complete -c netwren -n "__fish_netwren_using_subcommand flows" -l cost -d 'What the run itself cost: CPU, system calls, bytes read, memory, the interface used'
complete -c netwren -n "__fish_netwren_using_subcommand flows" -l explain -d 'Do not run: say which kernel interface would be read, what the kernel filters and what is left'
complete -c netwren -n "__fish_netwren_using_subcommand flows" -l exit-code -d 'Exit with 1 if no row was shown'
complete -c netwren -n "__fish_netwren_using_subcommand flows" -l all-netns -d 'Every network namespace of this host: those with a name, of processes, of containers; adds the column `netns`'
complete -c netwren -n "__fish_netwren_using_subcommand flows" -l rotate-zstd -d 'Packs them by another process: PATH.1 becomes PATH.1.zst, which zstdcat reads'
complete -c netwren -n "__fish_netwren_using_subcommand flows" -s h -l help -d 'Print help'
complete -c netwren -n "__fish_netwren_using_subcommand routes" -s c -l columns -d 'Columns, by name: `a,b`; `+a` adds to the usual ones, `-a` leaves one out, `all` is every field, `help` explains them all' -r
complete -c netwren -n "__fish_netwren_using_subcommand routes" -l by -d 'One row for each different value of these fields, with `count`, the largest first' -r
complete -c netwren -n "__fish_netwren_using_subcommand routes" -l sum -d 'With --by: also the sum of these fields' -r
complete -c netwren -n "__fish_netwren_using_subcommand routes" -l max -d 'With --by: also the largest value of these fields' -r
complete -c netwren -n "__fish_netwren_using_subcommand routes" -l avg -d 'With --by: also the mean of these fields' -r
complete -c netwren -n "__fish_netwren_using_subcommand routes" -l sort -d 'Order by these columns, which are shown: `a` ascending, `a:desc` descending. Unsorted rows stream in the kernel\'s order' -r
complete -c netwren -n "__fish_netwren_using_subcommand routes" -s n -l limit -d 'At most N rows' -r
complete -c netwren -n "__fish_netwren_using_subcommand routes" -l resolve -d 'Host names for addresses, as many as arrive within SECONDS after the last row' -r
complete -c netwren -n "__fish_netwren_using_subcommand routes" -s o -l output -d 'table: on a terminal aligned within its width, with units and local times; in a pipe tab-separated and exact; wide: the same with more columns; plain: aligned and exact everywhere; json: one object a line; csv: RFC 4180, where text that a spreadsheet would compute (= + - @ in front) gets an apostrophe' -r -f -a "table\t''
wide\t''
plain\t''
json\t''
csv\t''"
complete -c netwren -n "__fish_netwren_using_subcommand routes" -l color -d 'Colour; auto: on a terminal unless NO_COLOR is set. Red: lost, or over a limit (accept queue, 90 % of conntrack); yellow: sent again, opening or closing, a guess; green: established, incoming; cyan: listening, outgoing; dim: closed, or nothing' -r -f -a "auto\t''
always\t''
never\t''"
complete -c netwren -n "__fish_netwren_using_subcommand routes" -s w -l watch -d 'Again every SECONDS until interrupted' -r
complete -c netwren -n "__fish_netwren_using_subcommand routes" -s N -l netns -d 'The network namespace of that name, of that process, at that path or of that container' -r
complete -c netwren -n "__fish_netwren_using_subcommand routes" -l record -d 'Save everything that is read from the kernel; the file is not for strangers: it holds addresses and process names' -r -F
complete -c netwren -n "__fish_netwren_using_subcommand routes" -l replay -d 'Read a recording instead of the kernel; needs no rights' -r -F
complete -c netwren -n "__fish_netwren_using_subcommand routes" -l json -d 'Short for -o json'
complete -c netwren -n "__fish_netwren_using_subcommand routes" -l csv -d 'Short for -o csv'
complete -c netwren -n "__fish_netwren_using_subcommand routes" -s H -l no-header -d 'No header line'
complete -c netwren -n "__fish_netwren_using_subcommand routes" -l stats -d 'The row counts of the run at the end: rows seen, shown, filtered, lost'
complete -c netwren -n "__fish_netwren_using_subcommand routes" -l cost -d 'What the run itself cost: CPU, system calls, bytes read, memory, the interface used'
complete -c netwren -n "__fish_netwren_using_subcommand routes" -l explain -d 'Do not run: say which kernel interface would be read, what the kernel filters and what is left'
complete -c netwren -n "__fish_netwren_using_subcommand routes" -l exit-code -d 'Exit with 1 if no row was shown'
complete -c netwren -n "__fish_netwren_using_subcommand routes" -l all-netns -d 'Every network namespace of this host: those with a name, of processes, of containers; adds the column `netns`'
complete -c netwren -n "__fish_netwren_using_subcommand routes" -s h -l help -d 'Print help'
complete -c netwren -n "__fish_netwren_using_subcommand nat; and not __fish_seen_subcommand_from top stats events advise delete stateless" -s c -l columns -d 'Columns, by name: `a,b`; `+a` adds to the usual ones, `-a` leaves one out, `all` is every field, `help` explains them all' -r
complete -c netwren -n "__fish_netwren_using_subcommand nat; and not __fish_seen_subcommand_from top stats events advise delete stateless" -l by -d 'One row for each different value of these fields, with `count`, the largest first' -r
complete -c netwren -n "__fish_netwren_using_subcommand nat; and not __fish_seen_subcommand_from top stats events advise delete stateless" -l sum -d 'With --by: also the sum of these fields' -r
complete -c netwren -n "__fish_netwren_using_subcommand nat; and not __fish_seen_subcommand_from top stats events advise delete stateless" -l max -d 'With --by: also the largest value of these fields' -r
complete -c netwren -n "__fish_netwren_using_subcommand nat; and not __fish_seen_subcommand_from top stats events advise delete stateless" -l avg -d 'With --by: also the mean of these fields' -r
complete -c netwren -n "__fish_netwren_using_subcommand nat; and not __fish_seen_subcommand_from top stats events advise delete stateless" -l sort -d 'Order by these columns, which are shown: `a` ascending, `a:desc` descending. Unsorted rows stream in the kernel\'s order' -r
complete -c netwren -n "__fish_netwren_using_subcommand nat; and not __fish_seen_subcommand_from top stats events advise delete stateless" -s n -l limit -d 'At most N rows' -r
complete -c netwren -n "__fish_netwren_using_subcommand nat; and not __fish_seen_subcommand_from top stats events advise delete stateless" -l process -d 'Only what belongs to this process: short for `process = NAME` in the filter; several: `a,b`' -r
complete -c netwren -n "__fish_netwren_using_subcommand nat; and not __fish_seen_subcommand_from top stats events advise delete stateless" -l pid -d 'Only what belongs to this process, by its number' -r
complete -c netwren -n "__fish_netwren_using_subcommand nat; and not __fish_seen_subcommand_from top stats events advise delete stateless" -l container -d 'Only what belongs to this container' -r
complete -c netwren -n "__fish_netwren_using_subcommand nat; and not __fish_seen_subcommand_from top stats events advise delete stateless" -l resolve -d 'Host names for addresses, as many as arrive within SECONDS after the last row' -r
complete -c netwren -n "__fish_netwren_using_subcommand nat; and not __fish_seen_subcommand_from top stats events advise delete stateless" -s o -l output -d 'table: on a terminal aligned within its width, with units and local times; in a pipe tab-separated and exact; wide: the same with more columns; plain: aligned and exact everywhere; json: one object a line; csv: RFC 4180, where text that a spreadsheet would compute (= + - @ in front) gets an apostrophe' -r -f -a "table\t''
wide\t''
plain\t''
json\t''
csv\t''"
complete -c netwren -n "__fish_netwren_using_subcommand nat; and not __fish_seen_subcommand_from top stats events advise delete stateless" -l color -d 'Colour; auto: on a terminal unless NO_COLOR is set. Red: lost, or over a limit (accept queue, 90 % of conntrack); yellow: sent again, opening or closing, a guess; green: established, incoming; cyan: listening, outgoing; dim: closed, or nothing' -r -f -a "auto\t''
always\t''
never\t''"
complete -c netwren -n "__fish_netwren_using_subcommand nat; and not __fish_seen_subcommand_from top stats events advise delete stateless" -s w -l watch -d 'Again every SECONDS until interrupted' -r
complete -c netwren -n "__fish_netwren_using_subcommand nat; and not __fish_seen_subcommand_from top stats events advise delete stateless" -s N -l netns -d 'The network namespace of that name, of that process, at that path or of that container' -r
complete -c netwren -n "__fish_netwren_using_subcommand nat; and not __fish_seen_subcommand_from top stats events advise delete stateless" -l via -d 'Read by this kernel interface instead of the best one' -r -f -a "netlink\t''
proc\t''
bpf\t''"
complete -c netwren -n "__fish_netwren_using_subcommand nat; and not __fish_seen_subcommand_from top stats events advise delete stateless" -l owners-via -d 'Find owners by this interface instead of the cheaper one: bpf needs CAP_BPF and CAP_PERFMON and misses no process' -r -f -a "bpf\t''
proc\t''"
complete -c netwren -n "__fish_netwren_using_subcommand nat; and not __fish_seen_subcommand_from top stats events advise delete stateless" -l record -d 'Save everything that is read from the kernel; the file is not for strangers: it holds addresses and process names' -r -F
complete -c netwren -n "__fish_netwren_using_subcommand nat; and not __fish_seen_subcommand_from top stats events advise delete stateless" -l replay -d 'Read a recording instead of the kernel; needs no rights' -r -F
complete -c netwren -n "__fish_netwren_using_subcommand nat; and not __fish_seen_subcommand_from top stats events advise delete stateless" -l table -d 'Which of the kernel\'s tables: entries, those that are dying, those whose first packet is on its way, connections that helpers expect' -r -f -a "conntrack\t''
dying\t''
unconfirmed\t''
expect\t''"
complete -c netwren -n "__fish_netwren_using_subcommand nat; and not __fish_seen_subcommand_from top stats events advise delete stateless" -l no-owner -d 'Leave out the columns of the owning process, and the work of finding it'
complete -c netwren -n "__fish_netwren_using_subcommand nat; and not __fish_seen_subcommand_from top stats events advise delete stateless" -l json -d 'Short for -o json'
complete -c netwren -n "__fish_netwren_using_subcommand nat; and not __fish_seen_subcommand_from top stats events advise delete stateless" -l csv -d 'Short for -o csv'
complete -c netwren -n "__fish_netwren_using_subcommand nat; and not __fish_seen_subcommand_from top stats events advise delete stateless" -s H -l no-header -d 'No header line'
complete -c netwren -n "__fish_netwren_using_subcommand nat; and not __fish_seen_subcommand_from top stats events advise delete stateless" -l stats -d 'The row counts of the run at the end: rows seen, shown, filtered, lost'
complete -c netwren -n "__fish_netwren_using_subcommand nat; and not __fish_seen_subcommand_from top stats events advise delete stateless" -l cost -d 'What the run itself cost: CPU, system calls, bytes read, memory, the interface used'
complete -c netwren -n "__fish_netwren_using_subcommand nat; and not __fish_seen_subcommand_from top stats events advise delete stateless" -l explain -d 'Do not run: say which kernel interface would be read, what the kernel filters and what is left'
complete -c netwren -n "__fish_netwren_using_subcommand nat; and not __fish_seen_subcommand_from top stats events advise delete stateless" -l exit-code -d 'Exit with 1 if no row was shown'
complete -c netwren -n "__fish_netwren_using_subcommand nat; and not __fish_seen_subcommand_from top stats events advise delete stateless" -l all-netns -d 'Every network namespace of this host: those with a name, of processes, of containers; adds the column `netns`'
complete -c netwren -n "__fish_netwren_using_subcommand nat; and not __fish_seen_subcommand_from top stats events advise delete stateless" -s h -l help -d 'Print help'
complete -c netwren -n "__fish_netwren_using_subcommand nat; and not __fish_seen_subcommand_from top stats events advise delete stateless" -a "top" -d 'Who and what fills the table: entries counted by some fields, the most first, with their share'
complete -c netwren -n "__fish_netwren_using_subcommand nat; and not __fish_seen_subcommand_from top stats events advise delete stateless" -a "stats" -d 'What connection tracking counts: entries, limits, what was dropped and what could not go in'
complete -c netwren -n "__fish_netwren_using_subcommand nat; and not __fish_seen_subcommand_from top stats events advise delete stateless" -a "events" -d 'Entries of connection tracking as they come, change and go, until interrupted'
complete -c netwren -n "__fish_netwren_using_subcommand nat; and not __fish_seen_subcommand_from top stats events advise delete stateless" -a "advise" -d 'How full the connection-tracking table is, where that leads, what limit it should have, what that costs'
complete -c netwren -n "__fish_netwren_using_subcommand nat; and not __fish_seen_subcommand_from top stats events advise delete stateless" -a "delete" -d 'Delete entries; without --yes only show which'
complete -c netwren -n "__fish_netwren_using_subcommand nat; and not __fish_seen_subcommand_from top stats events advise delete stateless" -a "stateless" -d 'Publish ports without connection tracking: every packet is rewritten by itself'
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from top" -l sum -d 'With --by: also the sum of these fields' -r
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from top" -l max -d 'With --by: also the largest value of these fields' -r
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from top" -l avg -d 'With --by: also the mean of these fields' -r
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from top" -l sort -d 'Order by these columns, which are shown: `a` ascending, `a:desc` descending. Unsorted rows stream in the kernel\'s order' -r
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from top" -s n -l limit -d 'At most N rows' -r
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from top" -l process -d 'Only what belongs to this process: short for `process = NAME` in the filter; several: `a,b`' -r
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from top" -l pid -d 'Only what belongs to this process, by its number' -r
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from top" -l container -d 'Only what belongs to this container' -r
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from top" -l resolve -d 'Host names for addresses, as many as arrive within SECONDS after the last row' -r
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from top" -s o -l output -d 'table: on a terminal aligned within its width, with units and local times; in a pipe tab-separated and exact; wide: the same with more columns; plain: aligned and exact everywhere; json: one object a line; csv: RFC 4180, where text that a spreadsheet would compute (= + - @ in front) gets an apostrophe' -r -f -a "table\t''
wide\t''
plain\t''
json\t''
csv\t''"
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from top" -l color -d 'Colour; auto: on a terminal unless NO_COLOR is set. Red: lost, or over a limit (accept queue, 90 % of conntrack); yellow: sent again, opening or closing, a guess; green: established, incoming; cyan: listening, outgoing; dim: closed, or nothing' -r -f -a "auto\t''
always\t''
never\t''"
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from top" -s w -l watch -d 'Again every SECONDS until interrupted' -r
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from top" -s N -l netns -d 'The network namespace of that name, of that process, at that path or of that container' -r
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from top" -l via -d 'Read by this kernel interface instead of the best one' -r -f -a "netlink\t''
proc\t''
bpf\t''"
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from top" -l owners-via -d 'Find owners by this interface instead of the cheaper one: bpf needs CAP_BPF and CAP_PERFMON and misses no process' -r -f -a "bpf\t''
proc\t''"
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from top" -l record -d 'Save everything that is read from the kernel; the file is not for strangers: it holds addresses and process names' -r -F
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from top" -l replay -d 'Read a recording instead of the kernel; needs no rights' -r -F
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from top" -l table -d 'Which of the kernel\'s tables: entries, those that are dying, those whose first packet is on its way, connections that helpers expect' -r -f -a "conntrack\t''
dying\t''
unconfirmed\t''
expect\t''"
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from top" -l no-owner -d 'Leave out the columns of the owning process, and the work of finding it'
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from top" -l json -d 'Short for -o json'
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from top" -l csv -d 'Short for -o csv'
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from top" -s H -l no-header -d 'No header line'
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from top" -l stats -d 'The row counts of the run at the end: rows seen, shown, filtered, lost'
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from top" -l cost -d 'What the run itself cost: CPU, system calls, bytes read, memory, the interface used'
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from top" -l explain -d 'Do not run: say which kernel interface would be read, what the kernel filters and what is left'
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from top" -l exit-code -d 'Exit with 1 if no row was shown'
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from top" -l all-netns -d 'Every network namespace of this host: those with a name, of processes, of containers; adds the column `netns`'
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from top" -s h -l help -d 'Print help'
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from stats" -s c -l columns -d 'Columns, by name: `a,b`; `+a` adds to the usual ones, `-a` leaves one out, `all` is every field, `help` explains them all' -r
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from stats" -l by -d 'One row for each different value of these fields, with `count`, the largest first' -r
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from stats" -l sum -d 'With --by: also the sum of these fields' -r
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from stats" -l max -d 'With --by: also the largest value of these fields' -r
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from stats" -l avg -d 'With --by: also the mean of these fields' -r
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from stats" -l sort -d 'Order by these columns, which are shown: `a` ascending, `a:desc` descending. Unsorted rows stream in the kernel\'s order' -r
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from stats" -s n -l limit -d 'At most N rows' -r
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from stats" -s o -l output -d 'table: on a terminal aligned within its width, with units and local times; in a pipe tab-separated and exact; wide: the same with more columns; plain: aligned and exact everywhere; json: one object a line; csv: RFC 4180, where text that a spreadsheet would compute (= + - @ in front) gets an apostrophe' -r -f -a "table\t''
wide\t''
plain\t''
json\t''
csv\t''"
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from stats" -l color -d 'Colour; auto: on a terminal unless NO_COLOR is set. Red: lost, or over a limit (accept queue, 90 % of conntrack); yellow: sent again, opening or closing, a guess; green: established, incoming; cyan: listening, outgoing; dim: closed, or nothing' -r -f -a "auto\t''
always\t''
never\t''"
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from stats" -s w -l watch -d 'Again every SECONDS until interrupted' -r
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from stats" -s N -l netns -d 'The network namespace of that name, of that process, at that path or of that container' -r
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from stats" -l via -d 'Read by this kernel interface instead of the best one' -r -f -a "netlink\t''
proc\t''
bpf\t''"
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from stats" -l record -d 'Save everything that is read from the kernel; the file is not for strangers: it holds addresses and process names' -r -F
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from stats" -l replay -d 'Read a recording instead of the kernel; needs no rights' -r -F
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from stats" -l json -d 'Short for -o json'
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from stats" -l csv -d 'Short for -o csv'
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from stats" -s H -l no-header -d 'No header line'
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from stats" -l stats -d 'The row counts of the run at the end: rows seen, shown, filtered, lost'
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from stats" -l cost -d 'What the run itself cost: CPU, system calls, bytes read, memory, the interface used'
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from stats" -l explain -d 'Do not run: say which kernel interface would be read, what the kernel filters and what is left'
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from stats" -l exit-code -d 'Exit with 1 if no row was shown'
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from stats" -l all-netns -d 'Every network namespace of this host: those with a name, of processes, of containers; adds the column `netns`'
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from stats" -l per-cpu -d 'One row a CPU; sizes and settings are the namespace\'s and null then'
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from stats" -s h -l help -d 'Print help'
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from events" -s c -l columns -d 'Columns, by name: `a,b`; `+a` adds to the usual ones, `-a` leaves one out, `all` is every field, `help` explains them all' -r
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from events" -s n -l limit -d 'At most N rows' -r
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from events" -l resolve -d 'Host names for addresses, as many as arrive within SECONDS after the last row' -r
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from events" -s o -l output -d 'table: on a terminal aligned within its width, with units and local times; in a pipe tab-separated and exact; wide: the same with more columns; plain: aligned and exact everywhere; json: one object a line; csv: RFC 4180, where text that a spreadsheet would compute (= + - @ in front) gets an apostrophe' -r -f -a "table\t''
wide\t''
plain\t''
json\t''
csv\t''"
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from events" -l color -d 'Colour; auto: on a terminal unless NO_COLOR is set. Red: lost, or over a limit (accept queue, 90 % of conntrack); yellow: sent again, opening or closing, a guess; green: established, incoming; cyan: listening, outgoing; dim: closed, or nothing' -r -f -a "auto\t''
always\t''
never\t''"
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from events" -s N -l netns -d 'The network namespace of that name, of that process, at that path or of that container' -r
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from events" -l via -d 'Read by this kernel interface instead of the best one' -r -f -a "netlink\t''
proc\t''
bpf\t''"
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from events" -l owners-via -d 'Find owners by this interface instead of the cheaper one: bpf needs CAP_BPF and CAP_PERFMON and misses no process' -r -f -a "bpf\t''
proc\t''"
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from events" -l record -d 'Save everything that is read from the kernel; the file is not for strangers: it holds addresses and process names' -r -F
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from events" -l replay -d 'Read a recording instead of the kernel; needs no rights' -r -F
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from events" -l event -d 'Only these events: new, update, destroy, live. The kernel sends no others; new alone is reported by BPF where that can be' -r
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from events" -l buffer -d 'Room for what waits to be read (512k, 64MiB: units of 1024): 8MiB if not said, 16MiB and more by BPF' -r
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from events" -l to -d 'Ships rows instead of showing them, as FORMAT:PATH or FORMAT+tcp://HOST:PORT, `+tls`, `+udp`, `+unix:PATH`, as sqlite:PATH or postgres://USER@HOST:PORT/DATABASE (rows of a table, which is made); may be given several times. A wrong TARGET is answered with those that there are. SIGHUP opens files anew' -r
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from events" -l when-full -d 'With --to: what is done with new rows while a receiver is away and its queue is full. Rows that are dropped are counted' -r -f -a "drop-oldest\t''
drop-newest\t''
block\t''"
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from events" -l queue-max -d 'With --to: memory for what waits for one receiver (units of 1024)' -r
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from events" -l fold -d 'With --to: rows that are the same but for time, source port and numbers are shipped once, and once more at the end of TIME (1s to 1h) with their count: `folded`, ×1203 in 10 s' -r
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from events" -l rate -d 'With --to: so many rows of a rule are shipped, N/s, N/m or N/h; what is above is counted (`limited`) and said every ten seconds. It is looked at before --fold' -r
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from events" -l rate-by -d 'What --rate is of: the rule (prefix and group; of NAT events, the kind), or each address' -r -f -a "rule\t''
prefix\t''
src\t''
dst\t''"
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from events" -l spool -d 'With --to: rows wait on disk below DIR instead, also beyond the end of the run: the next one delivers them' -r -F
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from events" -l spool-max -d 'With --spool: bytes on disk for what waits for one receiver (units of 1024)' -r
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from events" -l spool-age -d 'With --spool: rows that wait longer are dropped, and counted; without it none' -r
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from events" -l spool-sync -d 'With --spool: when the disk is made to take what was written, against a power failure' -r -f -a "never\t''
second\t''
always\t''"
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from events" -l rotate-size -d 'With --to FORMAT:PATH: begins a new file before one would be larger (from 1MiB on); PATH becomes PATH.1, that PATH.2' -r
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from events" -l rotate-age -d 'The same once a file is so old: 1m to 3650d, as 90m, 12h or 1d' -r
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from events" -l rotate-keep -d 'How many files are kept beside PATH; older ones are removed' -r
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from events" -l control -d 'With --to: a unix socket, of this user alone, where `netwren log status` asks what has become of the rows' -r -F
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from events" -l tls-ca -d 'With --to …+tls: certificates (PEM) of the authorities that may have signed the receiver\'s; without it those that the system trusts' -r -F
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from events" -l tls-cert -d 'With --to …+tls: our own certificate (PEM), for receivers that demand one. Each connection reads the three files anew' -r -F
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from events" -l tls-key -d 'With --tls-cert: its key (PEM, without a passphrase), if it is in another file' -r -F
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from events" -l json -d 'Short for -o json'
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from events" -l csv -d 'Short for -o csv'
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from events" -s H -l no-header -d 'No header line'
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from events" -l stats -d 'The row counts of the run at the end: rows seen, shown, filtered, lost'
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from events" -l cost -d 'What the run itself cost: CPU, system calls, bytes read, memory, the interface used'
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from events" -l explain -d 'Do not run: say which kernel interface would be read, what the kernel filters and what is left'
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from events" -l exit-code -d 'Exit with 1 if no row was shown'
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from events" -l all-netns -d 'Every network namespace of this host: those with a name, of processes, of containers; adds the column `netns`'
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from events" -l rotate-zstd -d 'Packs them by another process: PATH.1 becomes PATH.1.zst, which zstdcat reads'
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from events" -l resync -d 'After events were lost, dump what lives now, until nothing is lost meanwhile: rows whose event is live, whatever --event names'
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from events" -s h -l help -d 'Print help'
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from advise" -l samples -d 'How often counters are read; growth needs two that are a second apart, a forecast three' -r
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from advise" -l interval -d 'Time between samples' -r
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from advise" -l memory -d 'Memory that the advised table may take (512M, 2GiB: units of 1024); otherwise a tenth of the host\'s' -r
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from advise" -s c -l columns -d 'Columns, by name: `a,b`; `+a` adds to the usual ones, `-a` leaves one out, `all` is every field, `help` explains them all' -r
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from advise" -l by -d 'One row for each different value of these fields, with `count`, the largest first' -r
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from advise" -l sum -d 'With --by: also the sum of these fields' -r
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from advise" -l max -d 'With --by: also the largest value of these fields' -r
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from advise" -l avg -d 'With --by: also the mean of these fields' -r
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from advise" -l sort -d 'Order by these columns, which are shown: `a` ascending, `a:desc` descending. Unsorted rows stream in the kernel\'s order' -r
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from advise" -s N -l netns -d 'Only the network namespace of that name, of that process, at that path or of that container' -r
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from advise" -l record -d 'Save everything that is read from the kernel; the file is not for strangers: it holds addresses and process names' -r -F
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from advise" -l replay -d 'Read a recording instead of the kernel; needs no rights' -r -F
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from advise" -s o -l output -d 'table: in words, with a filter or columns as rows; wide: all columns; plain: rows, aligned and exact; json: one object a namespace; csv: RFC 4180' -r -f -a "table\t''
wide\t''
plain\t''
json\t''
csv\t''"
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from advise" -l json -d 'Short for -o json'
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from advise" -l csv -d 'Short for -o csv'
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from advise" -l all-netns -d 'Every network namespace of this host, as without it; with --timeouts they are set in all of them'
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from advise" -l apply -d 'Set limit and buckets as advised and keep them in /etc/sysctl.d; without --yes only show it'
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from advise" -l timeouts -d 'With --apply: also the timeouts that are advised, each in its network namespace'
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from advise" -l yes -d 'With --apply: do it'
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from advise" -s h -l help -d 'Print help'
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from delete" -s c -l columns -d 'Columns, by name: `a,b`; `+a` adds to the usual ones, `-a` leaves one out, `all` is every field, `help` explains them all' -r
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from delete" -l sort -d 'Order by these columns, which are shown: `a` ascending, `a:desc` descending. Unsorted rows stream in the kernel\'s order' -r
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from delete" -s n -l limit -d 'At most N rows' -r
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from delete" -l process -d 'Only what belongs to this process: short for `process = NAME` in the filter; several: `a,b`' -r
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from delete" -l pid -d 'Only what belongs to this process, by its number' -r
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from delete" -l container -d 'Only what belongs to this container' -r
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from delete" -l resolve -d 'Host names for addresses, as many as arrive within SECONDS after the last row' -r
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from delete" -s o -l output -d 'table: on a terminal aligned within its width, with units and local times; in a pipe tab-separated and exact; wide: the same with more columns; plain: aligned and exact everywhere; json: one object a line; csv: RFC 4180, where text that a spreadsheet would compute (= + - @ in front) gets an apostrophe' -r -f -a "table\t''
wide\t''
plain\t''
json\t''
csv\t''"
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from delete" -l color -d 'Colour; auto: on a terminal unless NO_COLOR is set. Red: lost, or over a limit (accept queue, 90 % of conntrack); yellow: sent again, opening or closing, a guess; green: established, incoming; cyan: listening, outgoing; dim: closed, or nothing' -r -f -a "auto\t''
always\t''
never\t''"
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from delete" -s N -l netns -d 'The network namespace of that name, of that process, at that path or of that container' -r
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from delete" -l no-owner -d 'Leave out the columns of the owning process, and the work of finding it'
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from delete" -l json -d 'Short for -o json'
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from delete" -l csv -d 'Short for -o csv'
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from delete" -s H -l no-header -d 'No header line'
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from delete" -l stats -d 'The row counts of the run at the end: rows seen, shown, filtered, lost'
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from delete" -l cost -d 'What the run itself cost: CPU, system calls, bytes read, memory, the interface used'
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from delete" -l exit-code -d 'Exit with 1 if no row was shown'
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from delete" -l yes -d 'Delete the entries; each row says in `result` what became of it'
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from delete" -l all -d 'Every entry of the namespace, instead of a filter'
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from delete" -s h -l help -d 'Print help'
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from stateless" -s h -l help -d 'Print help'
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from stateless" -f -a "plan" -d 'Write the rules; with --apply --yes let nft(8) put them in place'
complete -c netwren -n "__fish_netwren_using_subcommand nat; and __fish_seen_subcommand_from stateless" -f -a "verify" -d 'Look whether packets are rewritten in both directions from now on; exit code 1 if not'
complete -c netwren -n "__fish_netwren_using_subcommand log; and not __fish_seen_subcommand_from check setup tail top status" -s c -l columns -d 'Columns, by name: `a,b`; `+a` adds to the usual ones, `-a` leaves one out, `all` is every field, `help` explains them all' -r
complete -c netwren -n "__fish_netwren_using_subcommand log; and not __fish_seen_subcommand_from check setup tail top status" -s n -l limit -d 'At most N rows' -r
complete -c netwren -n "__fish_netwren_using_subcommand log; and not __fish_seen_subcommand_from check setup tail top status" -l resolve -d 'Host names for addresses, as many as arrive within SECONDS after the last row' -r
complete -c netwren -n "__fish_netwren_using_subcommand log; and not __fish_seen_subcommand_from check setup tail top status" -s o -l output -d 'table: on a terminal aligned within its width, with units and local times; in a pipe tab-separated and exact; wide: the same with more columns; plain: aligned and exact everywhere; json: one object a line; csv: RFC 4180, where text that a spreadsheet would compute (= + - @ in front) gets an apostrophe' -r -f -a "table\t''
wide\t''
plain\t''
json\t''
csv\t''"
complete -c netwren -n "__fish_netwren_using_subcommand log; and not __fish_seen_subcommand_from check setup tail top status" -l color -d 'Colour; auto: on a terminal unless NO_COLOR is set. Red: lost, or over a limit (accept queue, 90 % of conntrack); yellow: sent again, opening or closing, a guess; green: established, incoming; cyan: listening, outgoing; dim: closed, or nothing' -r -f -a "auto\t''
always\t''
never\t''"
complete -c netwren -n "__fish_netwren_using_subcommand log; and not __fish_seen_subcommand_from check setup tail top status" -s N -l netns -d 'The network namespace of that name, of that process, at that path or of that container' -r
complete -c netwren -n "__fish_netwren_using_subcommand log; and not __fish_seen_subcommand_from check setup tail top status" -l record -d 'Save everything that is read from the kernel; the file is not for strangers: it holds addresses and process names' -r -F
complete -c netwren -n "__fish_netwren_using_subcommand log; and not __fish_seen_subcommand_from check setup tail top status" -l replay -d 'Read a recording instead of the kernel; needs no rights' -r -F
complete -c netwren -n "__fish_netwren_using_subcommand log; and not __fish_seen_subcommand_from check setup tail top status" -l group -d 'Log groups, as rules name them: `log group 1` (nft), `-j NFLOG --nflog-group 1` (iptables)' -r
complete -c netwren -n "__fish_netwren_using_subcommand log; and not __fish_seen_subcommand_from check setup tail top status" -l config -d 'Reads what is asked from a TOML file, whose keys are the long names of these flags; flags given beside it win. `netwren log check` looks it over' -r -F
complete -c netwren -n "__fish_netwren_using_subcommand log; and not __fish_seen_subcommand_from check setup tail top status" -l latency -d 'How long records may gather in the kernel: 10ms to 10s. The longer, the cheaper' -r
complete -c netwren -n "__fish_netwren_using_subcommand log; and not __fish_seen_subcommand_from check setup tail top status" -l copy -d 'Bytes of each packet that the kernel copies, from the network header on; --to pcap:FILE and pcapng:FILE take all by default' -r
complete -c netwren -n "__fish_netwren_using_subcommand log; and not __fish_seen_subcommand_from check setup tail top status" -l buffer -d 'Room for what waits to be read, for each group: 16MiB hold some 60,000 records' -r
complete -c netwren -n "__fish_netwren_using_subcommand log; and not __fish_seen_subcommand_from check setup tail top status" -l to -d 'Ships rows instead of showing them, as FORMAT:PATH or FORMAT+tcp://HOST:PORT, `+tls`, `+udp`, `+unix:PATH`, as sqlite:PATH or postgres://USER@HOST:PORT/DATABASE (rows of a table, which is made); may be given several times. A wrong TARGET is answered with those that there are. SIGHUP opens files anew' -r
complete -c netwren -n "__fish_netwren_using_subcommand log; and not __fish_seen_subcommand_from check setup tail top status" -l when-full -d 'With --to: what is done with new rows while a receiver is away and its queue is full. Rows that are dropped are counted' -r -f -a "drop-oldest\t''
drop-newest\t''
block\t''"
complete -c netwren -n "__fish_netwren_using_subcommand log; and not __fish_seen_subcommand_from check setup tail top status" -l queue-max -d 'With --to: memory for what waits for one receiver (units of 1024)' -r
complete -c netwren -n "__fish_netwren_using_subcommand log; and not __fish_seen_subcommand_from check setup tail top status" -l fold -d 'With --to: rows that are the same but for time, source port and numbers are shipped once, and once more at the end of TIME (1s to 1h) with their count: `folded`, ×1203 in 10 s' -r
complete -c netwren -n "__fish_netwren_using_subcommand log; and not __fish_seen_subcommand_from check setup tail top status" -l rate -d 'With --to: so many rows of a rule are shipped, N/s, N/m or N/h; what is above is counted (`limited`) and said every ten seconds. It is looked at before --fold' -r
complete -c netwren -n "__fish_netwren_using_subcommand log; and not __fish_seen_subcommand_from check setup tail top status" -l rate-by -d 'What --rate is of: the rule (prefix and group; of NAT events, the kind), or each address' -r -f -a "rule\t''
prefix\t''
src\t''
dst\t''"
complete -c netwren -n "__fish_netwren_using_subcommand log; and not __fish_seen_subcommand_from check setup tail top status" -l spool -d 'With --to: rows wait on disk below DIR instead, also beyond the end of the run: the next one delivers them' -r -F
complete -c netwren -n "__fish_netwren_using_subcommand log; and not __fish_seen_subcommand_from check setup tail top status" -l spool-max -d 'With --spool: bytes on disk for what waits for one receiver (units of 1024)' -r
complete -c netwren -n "__fish_netwren_using_subcommand log; and not __fish_seen_subcommand_from check setup tail top status" -l spool-age -d 'With --spool: rows that wait longer are dropped, and counted; without it none' -r
complete -c netwren -n "__fish_netwren_using_subcommand log; and not __fish_seen_subcommand_from check setup tail top status" -l spool-sync -d 'With --spool: when the disk is made to take what was written, against a power failure' -r -f -a "never\t''
second\t''
always\t''"
complete -c netwren -n "__fish_netwren_using_subcommand log; and not __fish_seen_subcommand_from check setup tail top status" -l rotate-size -d 'With --to FORMAT:PATH: begins a new file before one would be larger (from 1MiB on); PATH becomes PATH.1, that PATH.2' -r
complete -c netwren -n "__fish_netwren_using_subcommand log; and not __fish_seen_subcommand_from check setup tail top status" -l rotate-age -d 'The same once a file is so old: 1m to 3650d, as 90m, 12h or 1d' -r
complete -c netwren -n "__fish_netwren_using_subcommand log; and not __fish_seen_subcommand_from check setup tail top status" -l rotate-keep -d 'How many files are kept beside PATH; older ones are removed' -r
complete -c netwren -n "__fish_netwren_using_subcommand log; and not __fish_seen_subcommand_from check setup tail top status" -l control -d 'With --to: a unix socket, of this user alone, where `netwren log status` asks what has become of the rows' -r -F
complete -c netwren -n "__fish_netwren_using_subcommand log; and not __fish_seen_subcommand_from check setup tail top status" -l tls-ca -d 'With --to …+tls: certificates (PEM) of the authorities that may have signed the receiver\'s; without it those that the system trusts' -r -F
complete -c netwren -n "__fish_netwren_using_subcommand log; and not __fish_seen_subcommand_from check setup tail top status" -l tls-cert -d 'With --to …+tls: our own certificate (PEM), for receivers that demand one. Each connection reads the three files anew' -r -F
complete -c netwren -n "__fish_netwren_using_subcommand log; and not __fish_seen_subcommand_from check setup tail top status" -l tls-key -d 'With --tls-cert: its key (PEM, without a passphrase), if it is in another file' -r -F
complete -c netwren -n "__fish_netwren_using_subcommand log; and not __fish_seen_subcommand_from check setup tail top status" -l json -d 'Short for -o json'
complete -c netwren -n "__fish_netwren_using_subcommand log; and not __fish_seen_subcommand_from check setup tail top status" -l csv -d 'Short for -o csv'
complete -c netwren -n "__fish_netwren_using_subcommand log; and not __fish_seen_subcommand_from check setup tail top status" -s H -l no-header -d 'No header line'
complete -c netwren -n "__fish_netwren_using_subcommand log; and not __fish_seen_subcommand_from check setup tail top status" -l stats -d 'The row counts of the run at the end: rows seen, shown, filtered, lost'
complete -c netwren -n "__fish_netwren_using_subcommand log; and not __fish_seen_subcommand_from check setup tail top status" -l cost -d 'What the run itself cost: CPU, system calls, bytes read, memory, the interface used'
complete -c netwren -n "__fish_netwren_using_subcommand log; and not __fish_seen_subcommand_from check setup tail top status" -l explain -d 'Do not run: say which kernel interface would be read, what the kernel filters and what is left'
complete -c netwren -n "__fish_netwren_using_subcommand log; and not __fish_seen_subcommand_from check setup tail top status" -l exit-code -d 'Exit with 1 if no row was shown'
complete -c netwren -n "__fish_netwren_using_subcommand log; and not __fish_seen_subcommand_from check setup tail top status" -l all-netns -d 'Every network namespace of this host: those with a name, of processes, of containers; adds the column `netns`'
complete -c netwren -n "__fish_netwren_using_subcommand log; and not __fish_seen_subcommand_from check setup tail top status" -l rotate-zstd -d 'Packs them by another process: PATH.1 becomes PATH.1.zst, which zstdcat reads'
complete -c netwren -n "__fish_netwren_using_subcommand log; and not __fish_seen_subcommand_from check setup tail top status" -l take-over -d 'With --control: takes the bound groups of the run that answers there, which then ends; no record is lost meanwhile'
complete -c netwren -n "__fish_netwren_using_subcommand log; and not __fish_seen_subcommand_from check setup tail top status" -s h -l help -d 'Print help'
complete -c netwren -n "__fish_netwren_using_subcommand log; and not __fish_seen_subcommand_from check setup tail top status" -a "check" -d 'Look a configuration of `log` over, without binding groups, and say what it would do'
complete -c netwren -n "__fish_netwren_using_subcommand log; and not __fish_seen_subcommand_from check setup tail top status" -a "setup" -d 'Write a rule that logs to a group; with --apply --yes let nft(8) put it in place'
complete -c netwren -n "__fish_netwren_using_subcommand log; and not __fish_seen_subcommand_from check setup tail top status" -a "tail" -d 'Packets that rules log, in words: a line each, the same again counted, the rule named'
complete -c netwren -n "__fish_netwren_using_subcommand log; and not __fish_seen_subcommand_from check setup tail top status" -a "top" -d 'Who and what is logged most: records counted by some fields, for 10 seconds'
complete -c netwren -n "__fish_netwren_using_subcommand log; and not __fish_seen_subcommand_from check setup tail top status" -a "status" -d 'What has become of every row that a running netwren ships: the counts of each receiver'
complete -c netwren -n "__fish_netwren_using_subcommand log; and __fish_seen_subcommand_from check" -s h -l help -d 'Print help'
complete -c netwren -n "__fish_netwren_using_subcommand log; and __fish_seen_subcommand_from setup" -l group -d 'Log groups, as rules name them: `log group 1` (nft), `-j NFLOG --nflog-group 1` (iptables)' -r
complete -c netwren -n "__fish_netwren_using_subcommand log; and __fish_seen_subcommand_from setup" -l match -d 'Which packets, as nft says it: `tcp dport 22 ct state new`; without it all of them' -r
complete -c netwren -n "__fish_netwren_using_subcommand log; and __fish_seen_subcommand_from setup" -l hook -d 'Where on their way they are logged' -r -f -a "prerouting\t''
input\t''
forward\t''
output\t''
postrouting\t''"
complete -c netwren -n "__fish_netwren_using_subcommand log; and __fish_seen_subcommand_from setup" -l prefix -d 'What its records begin with; the hook if not said' -r
complete -c netwren -n "__fish_netwren_using_subcommand log; and __fish_seen_subcommand_from setup" -l netns -d 'The network namespace whose packets are logged, instead of one\'s own' -r
complete -c netwren -n "__fish_netwren_using_subcommand log; and __fish_seen_subcommand_from setup" -l apply -d 'Put the rule in place of the one for this group and hook; without --yes only show it'
complete -c netwren -n "__fish_netwren_using_subcommand log; and __fish_seen_subcommand_from setup" -l undo -d 'Take the rules away again; without --yes only show them'
complete -c netwren -n "__fish_netwren_using_subcommand log; and __fish_seen_subcommand_from setup" -l yes -d 'Really change the rules'
complete -c netwren -n "__fish_netwren_using_subcommand log; and __fish_seen_subcommand_from setup" -s h -l help -d 'Print help'
complete -c netwren -n "__fish_netwren_using_subcommand log; and __fish_seen_subcommand_from tail" -s n -l limit -d 'At most N rows' -r
complete -c netwren -n "__fish_netwren_using_subcommand log; and __fish_seen_subcommand_from tail" -l resolve -d 'Host names for addresses, as many as arrive within SECONDS after the last row' -r
complete -c netwren -n "__fish_netwren_using_subcommand log; and __fish_seen_subcommand_from tail" -s o -l output -d 'table: on a terminal aligned within its width, with units and local times; in a pipe tab-separated and exact; wide: the same with more columns; plain: aligned and exact everywhere; json: one object a line; csv: RFC 4180, where text that a spreadsheet would compute (= + - @ in front) gets an apostrophe' -r -f -a "table\t''
wide\t''
plain\t''
json\t''
csv\t''"
complete -c netwren -n "__fish_netwren_using_subcommand log; and __fish_seen_subcommand_from tail" -l color -d 'Colour; auto: on a terminal unless NO_COLOR is set. Red: lost, or over a limit (accept queue, 90 % of conntrack); yellow: sent again, opening or closing, a guess; green: established, incoming; cyan: listening, outgoing; dim: closed, or nothing' -r -f -a "auto\t''
always\t''
never\t''"
complete -c netwren -n "__fish_netwren_using_subcommand log; and __fish_seen_subcommand_from tail" -s N -l netns -d 'The network namespace of that name, of that process, at that path or of that container' -r
complete -c netwren -n "__fish_netwren_using_subcommand log; and __fish_seen_subcommand_from tail" -l record -d 'Save everything that is read from the kernel; the file is not for strangers: it holds addresses and process names' -r -F
complete -c netwren -n "__fish_netwren_using_subcommand log; and __fish_seen_subcommand_from tail" -l replay -d 'Read a recording instead of the kernel; needs no rights' -r -F
complete -c netwren -n "__fish_netwren_using_subcommand log; and __fish_seen_subcommand_from tail" -l group -d 'Log groups, as rules name them: `log group 1` (nft), `-j NFLOG --nflog-group 1` (iptables)' -r
complete -c netwren -n "__fish_netwren_using_subcommand log; and __fish_seen_subcommand_from tail" -l latency -d 'How long records may gather in the kernel: 10ms to 10s. The longer, the cheaper' -r
complete -c netwren -n "__fish_netwren_using_subcommand log; and __fish_seen_subcommand_from tail" -l copy -d 'Bytes of each packet that the kernel copies, from the network header on; --to pcap:FILE and pcapng:FILE take all by default' -r
complete -c netwren -n "__fish_netwren_using_subcommand log; and __fish_seen_subcommand_from tail" -l buffer -d 'Room for what waits to be read, for each group: 16MiB hold some 60,000 records' -r
complete -c netwren -n "__fish_netwren_using_subcommand log; and __fish_seen_subcommand_from tail" -l json -d 'Short for -o json'
complete -c netwren -n "__fish_netwren_using_subcommand log; and __fish_seen_subcommand_from tail" -l csv -d 'Short for -o csv'
complete -c netwren -n "__fish_netwren_using_subcommand log; and __fish_seen_subcommand_from tail" -s H -l no-header -d 'No header line'
complete -c netwren -n "__fish_netwren_using_subcommand log; and __fish_seen_subcommand_from tail" -l stats -d 'The row counts of the run at the end: rows seen, shown, filtered, lost'
complete -c netwren -n "__fish_netwren_using_subcommand log; and __fish_seen_subcommand_from tail" -l cost -d 'What the run itself cost: CPU, system calls, bytes read, memory, the interface used'
complete -c netwren -n "__fish_netwren_using_subcommand log; and __fish_seen_subcommand_from tail" -l explain -d 'Do not run: say which kernel interface would be read, what the kernel filters and what is left'
complete -c netwren -n "__fish_netwren_using_subcommand log; and __fish_seen_subcommand_from tail" -l exit-code -d 'Exit with 1 if no row was shown'
complete -c netwren -n "__fish_netwren_using_subcommand log; and __fish_seen_subcommand_from tail" -l all-netns -d 'Every network namespace of this host: those with a name, of processes, of containers; adds the column `netns`'
complete -c netwren -n "__fish_netwren_using_subcommand log; and __fish_seen_subcommand_from tail" -s h -l help -d 'Print help'
complete -c netwren -n "__fish_netwren_using_subcommand log; and __fish_seen_subcommand_from top" -l by -d 'One row for each different value of these fields, with `count`, the largest first' -r
complete -c netwren -n "__fish_netwren_using_subcommand log; and __fish_seen_subcommand_from top" -l sum -d 'With --by: also the sum of these fields' -r
complete -c netwren -n "__fish_netwren_using_subcommand log; and __fish_seen_subcommand_from top" -l max -d 'With --by: also the largest value of these fields' -r
complete -c netwren -n "__fish_netwren_using_subcommand log; and __fish_seen_subcommand_from top" -l avg -d 'With --by: also the mean of these fields' -r
complete -c netwren -n "__fish_netwren_using_subcommand log; and __fish_seen_subcommand_from top" -l sort -d 'Order by these columns, which are shown: `a` ascending, `a:desc` descending. Unsorted rows stream in the kernel\'s order' -r
complete -c netwren -n "__fish_netwren_using_subcommand log; and __fish_seen_subcommand_from top" -s n -l limit -d 'At most N rows' -r
complete -c netwren -n "__fish_netwren_using_subcommand log; and __fish_seen_subcommand_from top" -l resolve -d 'Host names for addresses, as many as arrive within SECONDS after the last row' -r
complete -c netwren -n "__fish_netwren_using_subcommand log; and __fish_seen_subcommand_from top" -s o -l output -d 'table: on a terminal aligned within its width, with units and local times; in a pipe tab-separated and exact; wide: the same with more columns; plain: aligned and exact everywhere; json: one object a line; csv: RFC 4180, where text that a spreadsheet would compute (= + - @ in front) gets an apostrophe' -r -f -a "table\t''
wide\t''
plain\t''
json\t''
csv\t''"
complete -c netwren -n "__fish_netwren_using_subcommand log; and __fish_seen_subcommand_from top" -l color -d 'Colour; auto: on a terminal unless NO_COLOR is set. Red: lost, or over a limit (accept queue, 90 % of conntrack); yellow: sent again, opening or closing, a guess; green: established, incoming; cyan: listening, outgoing; dim: closed, or nothing' -r -f -a "auto\t''
always\t''
never\t''"
complete -c netwren -n "__fish_netwren_using_subcommand log; and __fish_seen_subcommand_from top" -s N -l netns -d 'The network namespace of that name, of that process, at that path or of that container' -r
complete -c netwren -n "__fish_netwren_using_subcommand log; and __fish_seen_subcommand_from top" -l record -d 'Save everything that is read from the kernel; the file is not for strangers: it holds addresses and process names' -r -F
complete -c netwren -n "__fish_netwren_using_subcommand log; and __fish_seen_subcommand_from top" -l replay -d 'Read a recording instead of the kernel; needs no rights' -r -F
complete -c netwren -n "__fish_netwren_using_subcommand log; and __fish_seen_subcommand_from top" -l group -d 'Log groups, as rules name them: `log group 1` (nft), `-j NFLOG --nflog-group 1` (iptables)' -r
complete -c netwren -n "__fish_netwren_using_subcommand log; and __fish_seen_subcommand_from top" -l latency -d 'How long records may gather in the kernel: 10ms to 10s. The longer, the cheaper' -r
complete -c netwren -n "__fish_netwren_using_subcommand log; and __fish_seen_subcommand_from top" -l copy -d 'Bytes of each packet that the kernel copies, from the network header on; --to pcap:FILE and pcapng:FILE take all by default' -r
complete -c netwren -n "__fish_netwren_using_subcommand log; and __fish_seen_subcommand_from top" -l buffer -d 'Room for what waits to be read, for each group: 16MiB hold some 60,000 records' -r
complete -c netwren -n "__fish_netwren_using_subcommand log; and __fish_seen_subcommand_from top" -l for -d 'How long records are counted (10); Ctrl-C ends it before' -r
complete -c netwren -n "__fish_netwren_using_subcommand log; and __fish_seen_subcommand_from top" -l json -d 'Short for -o json'
complete -c netwren -n "__fish_netwren_using_subcommand log; and __fish_seen_subcommand_from top" -l csv -d 'Short for -o csv'
complete -c netwren -n "__fish_netwren_using_subcommand log; and __fish_seen_subcommand_from top" -s H -l no-header -d 'No header line'
complete -c netwren -n "__fish_netwren_using_subcommand log; and __fish_seen_subcommand_from top" -l stats -d 'The row counts of the run at the end: rows seen, shown, filtered, lost'
complete -c netwren -n "__fish_netwren_using_subcommand log; and __fish_seen_subcommand_from top" -l cost -d 'What the run itself cost: CPU, system calls, bytes read, memory, the interface used'
complete -c netwren -n "__fish_netwren_using_subcommand log; and __fish_seen_subcommand_from top" -l explain -d 'Do not run: say which kernel interface would be read, what the kernel filters and what is left'
complete -c netwren -n "__fish_netwren_using_subcommand log; and __fish_seen_subcommand_from top" -l exit-code -d 'Exit with 1 if no row was shown'
complete -c netwren -n "__fish_netwren_using_subcommand log; and __fish_seen_subcommand_from top" -l all-netns -d 'Every network namespace of this host: those with a name, of processes, of containers; adds the column `netns`'
complete -c netwren -n "__fish_netwren_using_subcommand log; and __fish_seen_subcommand_from top" -s h -l help -d 'Print help'
complete -c netwren -n "__fish_netwren_using_subcommand log; and __fish_seen_subcommand_from status" -l control -d 'The unix socket of the run that is asked, as it was given there' -r -F
complete -c netwren -n "__fish_netwren_using_subcommand log; and __fish_seen_subcommand_from status" -s o -l output -d 'text; json: one object; prometheus: its text format, for a collector that runs this command' -r -f -a "text\t''
json\t''
prometheus\t''"
complete -c netwren -n "__fish_netwren_using_subcommand log; and __fish_seen_subcommand_from status" -s h -l help -d 'Print help'
complete -c netwren -n "__fish_netwren_using_subcommand capture; and not __fish_seen_subcommand_from stats cut merge latency" -s c -l columns -d 'Columns, by name: `a,b`; `+a` adds to the usual ones, `-a` leaves one out, `all` is every field, `help` explains them all' -r
complete -c netwren -n "__fish_netwren_using_subcommand capture; and not __fish_seen_subcommand_from stats cut merge latency" -l by -d 'One row for each different value of these fields, with `count`, the largest first' -r
complete -c netwren -n "__fish_netwren_using_subcommand capture; and not __fish_seen_subcommand_from stats cut merge latency" -l sum -d 'With --by: also the sum of these fields' -r
complete -c netwren -n "__fish_netwren_using_subcommand capture; and not __fish_seen_subcommand_from stats cut merge latency" -l max -d 'With --by: also the largest value of these fields' -r
complete -c netwren -n "__fish_netwren_using_subcommand capture; and not __fish_seen_subcommand_from stats cut merge latency" -l avg -d 'With --by: also the mean of these fields' -r
complete -c netwren -n "__fish_netwren_using_subcommand capture; and not __fish_seen_subcommand_from stats cut merge latency" -l sort -d 'Order by these columns, which are shown: `a` ascending, `a:desc` descending. Unsorted rows stream in the kernel\'s order' -r
complete -c netwren -n "__fish_netwren_using_subcommand capture; and not __fish_seen_subcommand_from stats cut merge latency" -s n -l limit -d 'At most N rows' -r
complete -c netwren -n "__fish_netwren_using_subcommand capture; and not __fish_seen_subcommand_from stats cut merge latency" -l resolve -d 'Host names for addresses, as many as arrive within SECONDS after the last row' -r
complete -c netwren -n "__fish_netwren_using_subcommand capture; and not __fish_seen_subcommand_from stats cut merge latency" -s o -l output -d 'table: on a terminal aligned within its width, with units and local times; in a pipe tab-separated and exact; wide: the same with more columns; plain: aligned and exact everywhere; json: one object a line; csv: RFC 4180, where text that a spreadsheet would compute (= + - @ in front) gets an apostrophe' -r -f -a "table\t''
wide\t''
plain\t''
json\t''
csv\t''"
complete -c netwren -n "__fish_netwren_using_subcommand capture; and not __fish_seen_subcommand_from stats cut merge latency" -l color -d 'Colour; auto: on a terminal unless NO_COLOR is set. Red: lost, or over a limit (accept queue, 90 % of conntrack); yellow: sent again, opening or closing, a guess; green: established, incoming; cyan: listening, outgoing; dim: closed, or nothing' -r -f -a "auto\t''
always\t''
never\t''"
complete -c netwren -n "__fish_netwren_using_subcommand capture; and not __fish_seen_subcommand_from stats cut merge latency" -l watch -d 'With --by: the groups of every SECONDS, with packets and bytes in a second. Without: on stderr, every SECONDS, how many packets were received, dropped by the ring and by interfaces, written, not written and filtered so far, on a terminal in one line; SIGUSR1 asks for the same once' -r
complete -c netwren -n "__fish_netwren_using_subcommand capture; and not __fish_seen_subcommand_from stats cut merge latency" -s N -l netns -d 'The network namespace of that name, of that process, at that path or of that container' -r
complete -c netwren -n "__fish_netwren_using_subcommand capture; and not __fish_seen_subcommand_from stats cut merge latency" -s i -l interface -d 'The interface whose packets are captured; may be given several times. Without it, or with `any`, all of the namespace, those that come later, too' -r
complete -c netwren -n "__fish_netwren_using_subcommand capture; and not __fish_seen_subcommand_from stats cut merge latency" -s w -l write -d 'Write the packets to a file instead of showing them, - for standard output: as pcapng with the interfaces\' names, as pcap if the name ends in .pcap. With --rotate-size, --rotate-age (from 1s on) or --rotate-packets files follow one another: all.pcapng stands for all_00001_20261124080512.pcapng, all_00002_… With --rotate-keep the last N are kept, the one that is written included, else all' -r -F
complete -c netwren -n "__fish_netwren_using_subcommand capture; and not __fish_seen_subcommand_from stats cut merge latency" -l comment -d 'With --write: these fields of both ends (process, pid, container, src_process … and netns) as a comment of the first packet of each connection, and where they change' -r
complete -c netwren -n "__fish_netwren_using_subcommand capture; and not __fish_seen_subcommand_from stats cut merge latency" -s r -l read -d 'The packets of a file instead of those of interfaces: pcap or pcapng of any system, also packed by gzip or zstd; - for standard input' -r -F
complete -c netwren -n "__fish_netwren_using_subcommand capture; and not __fish_seen_subcommand_from stats cut merge latency" -l latency -d 'How late packets may be shown while there are many: auto (0.25 ms), 0 (each wakes us, which costs most), 1ms to 1000ms. While they are rare each is shown at once' -r
complete -c netwren -n "__fish_netwren_using_subcommand capture; and not __fish_seen_subcommand_from stats cut merge latency" -l buffer -d 'Room in each ring for what waits to be shown (64KiB to 1GiB): 16MiB if not said, 64MiB for whole packets' -r
complete -c netwren -n "__fish_netwren_using_subcommand capture; and not __fish_seen_subcommand_from stats cut merge latency" -s s -l snaplen -d 'Bytes of each packet that are captured, 262144 at most: 1918 if not said; --to pcap:FILE and pcapng:FILE take all by default' -r
complete -c netwren -n "__fish_netwren_using_subcommand capture; and not __fish_seen_subcommand_from stats cut merge latency" -s Z -l relinquish-privileges -d 'Belong to this user once interfaces and the files of -r and -w are open. Capabilities are always given up' -r
complete -c netwren -n "__fish_netwren_using_subcommand capture; and not __fish_seen_subcommand_from stats cut merge latency" -s j -l time-stamp-type -d 'Whose clock stamps packets: the host\'s, or that of the network adapter, equal to the host\'s or as it is. Its driver is told to stamp all that it receives, and does so beyond the end of the run. Where there is no such clock that is said, and the host\'s is taken; the column `stamp` tells it of each packet' -r -f -a "host\t''
adapter\t''
adapter_unsynced\t''"
complete -c netwren -n "__fish_netwren_using_subcommand capture; and not __fish_seen_subcommand_from stats cut merge latency" -l for -d 'How long; Ctrl-C ends it before' -r
complete -c netwren -n "__fish_netwren_using_subcommand capture; and not __fish_seen_subcommand_from stats cut merge latency" -l to -d 'Ships rows instead of showing them, as FORMAT:PATH or FORMAT+tcp://HOST:PORT, `+tls`, `+udp`, `+unix:PATH`, as sqlite:PATH or postgres://USER@HOST:PORT/DATABASE (rows of a table, which is made); may be given several times. A wrong TARGET is answered with those that there are. SIGHUP opens files anew' -r
complete -c netwren -n "__fish_netwren_using_subcommand capture; and not __fish_seen_subcommand_from stats cut merge latency" -l when-full -d 'With --to: what is done with new rows while a receiver is away and its queue is full. Rows that are dropped are counted' -r -f -a "drop-oldest\t''
drop-newest\t''
block\t''"
complete -c netwren -n "__fish_netwren_using_subcommand capture; and not __fish_seen_subcommand_from stats cut merge latency" -l queue-max -d 'With --to: memory for what waits for one receiver (units of 1024)' -r
complete -c netwren -n "__fish_netwren_using_subcommand capture; and not __fish_seen_subcommand_from stats cut merge latency" -l fold -d 'With --to: rows that are the same but for time, source port and numbers are shipped once, and once more at the end of TIME (1s to 1h) with their count: `folded`, ×1203 in 10 s' -r
complete -c netwren -n "__fish_netwren_using_subcommand capture; and not __fish_seen_subcommand_from stats cut merge latency" -l rate -d 'With --to: so many rows of a rule are shipped, N/s, N/m or N/h; what is above is counted (`limited`) and said every ten seconds. It is looked at before --fold' -r
complete -c netwren -n "__fish_netwren_using_subcommand capture; and not __fish_seen_subcommand_from stats cut merge latency" -l rate-by -d 'What --rate is of: the rule (prefix and group; of NAT events, the kind), or each address' -r -f -a "rule\t''
prefix\t''
src\t''
dst\t''"
complete -c netwren -n "__fish_netwren_using_subcommand capture; and not __fish_seen_subcommand_from stats cut merge latency" -l spool -d 'With --to: rows wait on disk below DIR instead, also beyond the end of the run: the next one delivers them' -r -F
complete -c netwren -n "__fish_netwren_using_subcommand capture; and not __fish_seen_subcommand_from stats cut merge latency" -l spool-max -d 'With --spool: bytes on disk for what waits for one receiver (units of 1024)' -r
complete -c netwren -n "__fish_netwren_using_subcommand capture; and not __fish_seen_subcommand_from stats cut merge latency" -l spool-age -d 'With --spool: rows that wait longer are dropped, and counted; without it none' -r
complete -c netwren -n "__fish_netwren_using_subcommand capture; and not __fish_seen_subcommand_from stats cut merge latency" -l spool-sync -d 'With --spool: when the disk is made to take what was written, against a power failure' -r -f -a "never\t''
second\t''
always\t''"
complete -c netwren -n "__fish_netwren_using_subcommand capture; and not __fish_seen_subcommand_from stats cut merge latency" -l rotate-size -d 'With --to FORMAT:PATH: begins a new file before one would be larger (from 1MiB on); PATH becomes PATH.1, that PATH.2' -r
complete -c netwren -n "__fish_netwren_using_subcommand capture; and not __fish_seen_subcommand_from stats cut merge latency" -l rotate-age -d 'The same once a file is so old: 1m to 3650d, as 90m, 12h or 1d' -r
complete -c netwren -n "__fish_netwren_using_subcommand capture; and not __fish_seen_subcommand_from stats cut merge latency" -l rotate-keep -d 'How many files are kept beside PATH; older ones are removed' -r
complete -c netwren -n "__fish_netwren_using_subcommand capture; and not __fish_seen_subcommand_from stats cut merge latency" -l rotate-packets -d 'With --write: begins a new file after so many packets' -r
complete -c netwren -n "__fish_netwren_using_subcommand capture; and not __fish_seen_subcommand_from stats cut merge latency" -l rotate-command -d 'With --write: run PROGRAM FILE once a file is complete, without a shell, with the caller\'s rights or those of -Z, behind others for the processor, at most four at a time. Failures are said and counted' -r
complete -c netwren -n "__fish_netwren_using_subcommand capture; and not __fish_seen_subcommand_from stats cut merge latency" -l control -d 'With --to: a unix socket, of this user alone, where `netwren log status` asks what has become of the rows' -r -F
complete -c netwren -n "__fish_netwren_using_subcommand capture; and not __fish_seen_subcommand_from stats cut merge latency" -l tls-ca -d 'With --to …+tls: certificates (PEM) of the authorities that may have signed the receiver\'s; without it those that the system trusts' -r -F
complete -c netwren -n "__fish_netwren_using_subcommand capture; and not __fish_seen_subcommand_from stats cut merge latency" -l tls-cert -d 'With --to …+tls: our own certificate (PEM), for receivers that demand one. Each connection reads the three files anew' -r -F
complete -c netwren -n "__fish_netwren_using_subcommand capture; and not __fish_seen_subcommand_from stats cut merge latency" -l tls-key -d 'With --tls-cert: its key (PEM, without a passphrase), if it is in another file' -r -F
complete -c netwren -n "__fish_netwren_using_subcommand capture; and not __fish_seen_subcommand_from stats cut merge latency" -l json -d 'Short for -o json'
complete -c netwren -n "__fish_netwren_using_subcommand capture; and not __fish_seen_subcommand_from stats cut merge latency" -l csv -d 'Short for -o csv'
complete -c netwren -n "__fish_netwren_using_subcommand capture; and not __fish_seen_subcommand_from stats cut merge latency" -s H -l no-header -d 'No header line'
complete -c netwren -n "__fish_netwren_using_subcommand capture; and not __fish_seen_subcommand_from stats cut merge latency" -l stats -d 'The row counts of the run at the end: rows seen, shown, filtered, lost'
complete -c netwren -n "__fish_netwren_using_subcommand capture; and not __fish_seen_subcommand_from stats cut merge latency" -l cost -d 'What the run itself cost: CPU, system calls, bytes read, memory, the interface used'
complete -c netwren -n "__fish_netwren_using_subcommand capture; and not __fish_seen_subcommand_from stats cut merge latency" -l explain -d 'Do not run: say which kernel interface would be read, what the kernel filters and what is left'
complete -c netwren -n "__fish_netwren_using_subcommand capture; and not __fish_seen_subcommand_from stats cut merge latency" -l exit-code -d 'Exit with 1 if no row was shown'
complete -c netwren -n "__fish_netwren_using_subcommand capture; and not __fish_seen_subcommand_from stats cut merge latency" -l all-netns -d 'Every network namespace of this host: those with a name, of processes, of containers; adds the column `netns`'
complete -c netwren -n "__fish_netwren_using_subcommand capture; and not __fish_seen_subcommand_from stats cut merge latency" -s d -l print-filter -d 'Print the program that the kernel runs on packets of Ethernet, and end: -dd as C, -ddd as numbers'
complete -c netwren -n "__fish_netwren_using_subcommand capture; and not __fish_seen_subcommand_from stats cut merge latency" -l no-promiscuous -d 'Leave interfaces that are named as they are: packets for other hosts are not asked for'
complete -c netwren -n "__fish_netwren_using_subcommand capture; and not __fish_seen_subcommand_from stats cut merge latency" -s v -l verbose -d 'Say on stderr which rights were given up before the first packet was looked at'
complete -c netwren -n "__fish_netwren_using_subcommand capture; and not __fish_seen_subcommand_from stats cut merge latency" -l rotate-zstd -d 'Packs them by another process: PATH.1 becomes PATH.1.zst, which zstdcat reads'
complete -c netwren -n "__fish_netwren_using_subcommand capture; and not __fish_seen_subcommand_from stats cut merge latency" -s h -l help -d 'Print help'
complete -c netwren -n "__fish_netwren_using_subcommand capture; and not __fish_seen_subcommand_from stats cut merge latency" -a "stats" -d 'What is in files of packets: times, rates, sizes, interfaces, drops, and what is broken'
complete -c netwren -n "__fish_netwren_using_subcommand capture; and not __fish_seen_subcommand_from stats cut merge latency" -a "cut" -d 'Write a part of a file of packets into another: by time, FILTER, number, length'
complete -c netwren -n "__fish_netwren_using_subcommand capture; and not __fish_seen_subcommand_from stats cut merge latency" -a "merge" -d 'Write the packets of several files into one, in the order of their times'
complete -c netwren -n "__fish_netwren_using_subcommand capture; and not __fish_seen_subcommand_from stats cut merge latency" -a "latency" -d 'Packet sockets of every program: how late each one\'s ring gives packets out, and why'
complete -c netwren -n "__fish_netwren_using_subcommand capture; and __fish_seen_subcommand_from stats" -s c -l columns -d 'Columns, by name: `a,b`; `+a` adds to the usual ones, `-a` leaves one out, `all` is every field, `help` explains them all' -r
complete -c netwren -n "__fish_netwren_using_subcommand capture; and __fish_seen_subcommand_from stats" -l by -d 'One row for each different value of these fields, with `count`, the largest first' -r
complete -c netwren -n "__fish_netwren_using_subcommand capture; and __fish_seen_subcommand_from stats" -l sum -d 'With --by: also the sum of these fields' -r
complete -c netwren -n "__fish_netwren_using_subcommand capture; and __fish_seen_subcommand_from stats" -l max -d 'With --by: also the largest value of these fields' -r
complete -c netwren -n "__fish_netwren_using_subcommand capture; and __fish_seen_subcommand_from stats" -l avg -d 'With --by: also the mean of these fields' -r
complete -c netwren -n "__fish_netwren_using_subcommand capture; and __fish_seen_subcommand_from stats" -l sort -d 'Order by these columns, which are shown: `a` ascending, `a:desc` descending. Unsorted rows stream in the kernel\'s order' -r
complete -c netwren -n "__fish_netwren_using_subcommand capture; and __fish_seen_subcommand_from stats" -s n -l limit -d 'At most N rows' -r
complete -c netwren -n "__fish_netwren_using_subcommand capture; and __fish_seen_subcommand_from stats" -l resolve -d 'Host names for addresses, as many as arrive within SECONDS after the last row' -r
complete -c netwren -n "__fish_netwren_using_subcommand capture; and __fish_seen_subcommand_from stats" -s o -l output -d 'table: on a terminal aligned within its width, with units and local times; in a pipe tab-separated and exact; wide: the same with more columns; plain: aligned and exact everywhere; json: one object a line; csv: RFC 4180, where text that a spreadsheet would compute (= + - @ in front) gets an apostrophe' -r -f -a "table\t''
wide\t''
plain\t''
json\t''
csv\t''"
complete -c netwren -n "__fish_netwren_using_subcommand capture; and __fish_seen_subcommand_from stats" -l color -d 'Colour; auto: on a terminal unless NO_COLOR is set. Red: lost, or over a limit (accept queue, 90 % of conntrack); yellow: sent again, opening or closing, a guess; green: established, incoming; cyan: listening, outgoing; dim: closed, or nothing' -r -f -a "auto\t''
always\t''
never\t''"
complete -c netwren -n "__fish_netwren_using_subcommand capture; and __fish_seen_subcommand_from stats" -s N -l netns -d 'The network namespace of that name, of that process, at that path or of that container' -r
complete -c netwren -n "__fish_netwren_using_subcommand capture; and __fish_seen_subcommand_from stats" -l json -d 'Short for -o json'
complete -c netwren -n "__fish_netwren_using_subcommand capture; and __fish_seen_subcommand_from stats" -l csv -d 'Short for -o csv'
complete -c netwren -n "__fish_netwren_using_subcommand capture; and __fish_seen_subcommand_from stats" -s H -l no-header -d 'No header line'
complete -c netwren -n "__fish_netwren_using_subcommand capture; and __fish_seen_subcommand_from stats" -l stats -d 'The row counts of the run at the end: rows seen, shown, filtered, lost'
complete -c netwren -n "__fish_netwren_using_subcommand capture; and __fish_seen_subcommand_from stats" -l cost -d 'What the run itself cost: CPU, system calls, bytes read, memory, the interface used'
complete -c netwren -n "__fish_netwren_using_subcommand capture; and __fish_seen_subcommand_from stats" -l exit-code -d 'Exit with 1 if no row was shown'
complete -c netwren -n "__fish_netwren_using_subcommand capture; and __fish_seen_subcommand_from stats" -s h -l help -d 'Print help'
complete -c netwren -n "__fish_netwren_using_subcommand capture; and __fish_seen_subcommand_from cut" -s w -l write -d 'The file that is written, - for standard output: pcapng with all that the input says, pcap if the name ends in .pcap' -r -F
complete -c netwren -n "__fish_netwren_using_subcommand capture; and __fish_seen_subcommand_from cut" -s A -l from -d 'Packets of this time and later: 10:30 (local time today), -5m, 2026-11-22T10:30:00Z' -r
complete -c netwren -n "__fish_netwren_using_subcommand capture; and __fish_seen_subcommand_from cut" -s B -l until -d 'Packets before this time' -r
complete -c netwren -n "__fish_netwren_using_subcommand capture; and __fish_seen_subcommand_from cut" -s s -l snaplen -d 'At most so many bytes of each packet' -r
complete -c netwren -n "__fish_netwren_using_subcommand capture; and __fish_seen_subcommand_from cut" -s n -l limit -d 'At most N packets' -r
complete -c netwren -n "__fish_netwren_using_subcommand capture; and __fish_seen_subcommand_from cut" -s h -l help -d 'Print help'
complete -c netwren -n "__fish_netwren_using_subcommand capture; and __fish_seen_subcommand_from merge" -s w -l write -d 'The file that is written, - for standard output: pcapng with all that the input says, pcap if the name ends in .pcap' -r -F
complete -c netwren -n "__fish_netwren_using_subcommand capture; and __fish_seen_subcommand_from merge" -s h -l help -d 'Print help'
complete -c netwren -n "__fish_netwren_using_subcommand capture; and __fish_seen_subcommand_from latency" -s c -l columns -d 'Columns, by name: `a,b`; `+a` adds to the usual ones, `-a` leaves one out, `all` is every field, `help` explains them all' -r
complete -c netwren -n "__fish_netwren_using_subcommand capture; and __fish_seen_subcommand_from latency" -l by -d 'One row for each different value of these fields, with `count`, the largest first' -r
complete -c netwren -n "__fish_netwren_using_subcommand capture; and __fish_seen_subcommand_from latency" -l sum -d 'With --by: also the sum of these fields' -r
complete -c netwren -n "__fish_netwren_using_subcommand capture; and __fish_seen_subcommand_from latency" -l max -d 'With --by: also the largest value of these fields' -r
complete -c netwren -n "__fish_netwren_using_subcommand capture; and __fish_seen_subcommand_from latency" -l avg -d 'With --by: also the mean of these fields' -r
complete -c netwren -n "__fish_netwren_using_subcommand capture; and __fish_seen_subcommand_from latency" -l sort -d 'Order by these columns, which are shown: `a` ascending, `a:desc` descending. Unsorted rows stream in the kernel\'s order' -r
complete -c netwren -n "__fish_netwren_using_subcommand capture; and __fish_seen_subcommand_from latency" -s n -l limit -d 'At most N rows' -r
complete -c netwren -n "__fish_netwren_using_subcommand capture; and __fish_seen_subcommand_from latency" -l process -d 'Only what belongs to this process: short for `process = NAME` in the filter; several: `a,b`' -r
complete -c netwren -n "__fish_netwren_using_subcommand capture; and __fish_seen_subcommand_from latency" -l pid -d 'Only what belongs to this process, by its number' -r
complete -c netwren -n "__fish_netwren_using_subcommand capture; and __fish_seen_subcommand_from latency" -l container -d 'Only what belongs to this container' -r
complete -c netwren -n "__fish_netwren_using_subcommand capture; and __fish_seen_subcommand_from latency" -l resolve -d 'Host names for addresses, as many as arrive within SECONDS after the last row' -r
complete -c netwren -n "__fish_netwren_using_subcommand capture; and __fish_seen_subcommand_from latency" -s o -l output -d 'table: on a terminal aligned within its width, with units and local times; in a pipe tab-separated and exact; wide: the same with more columns; plain: aligned and exact everywhere; json: one object a line; csv: RFC 4180, where text that a spreadsheet would compute (= + - @ in front) gets an apostrophe' -r -f -a "table\t''
wide\t''
plain\t''
json\t''
csv\t''"
complete -c netwren -n "__fish_netwren_using_subcommand capture; and __fish_seen_subcommand_from latency" -l color -d 'Colour; auto: on a terminal unless NO_COLOR is set. Red: lost, or over a limit (accept queue, 90 % of conntrack); yellow: sent again, opening or closing, a guess; green: established, incoming; cyan: listening, outgoing; dim: closed, or nothing' -r -f -a "auto\t''
always\t''
never\t''"
complete -c netwren -n "__fish_netwren_using_subcommand capture; and __fish_seen_subcommand_from latency" -s w -l watch -d 'Again every SECONDS until interrupted' -r
complete -c netwren -n "__fish_netwren_using_subcommand capture; and __fish_seen_subcommand_from latency" -s N -l netns -d 'The network namespace of that name, of that process, at that path or of that container' -r
complete -c netwren -n "__fish_netwren_using_subcommand capture; and __fish_seen_subcommand_from latency" -l via -d 'Read by this kernel interface instead of the best one' -r -f -a "netlink\t''
proc\t''
bpf\t''"
complete -c netwren -n "__fish_netwren_using_subcommand capture; and __fish_seen_subcommand_from latency" -l owners-via -d 'Find owners by this interface instead of the cheaper one: bpf needs CAP_BPF and CAP_PERFMON and misses no process' -r -f -a "bpf\t''
proc\t''"
complete -c netwren -n "__fish_netwren_using_subcommand capture; and __fish_seen_subcommand_from latency" -l record -d 'Save everything that is read from the kernel; the file is not for strangers: it holds addresses and process names' -r -F
complete -c netwren -n "__fish_netwren_using_subcommand capture; and __fish_seen_subcommand_from latency" -l replay -d 'Read a recording instead of the kernel; needs no rights' -r -F
complete -c netwren -n "__fish_netwren_using_subcommand capture; and __fish_seen_subcommand_from latency" -l for -d 'How long delays are measured (2); 0: not at all. Ctrl-C ends it before' -r
complete -c netwren -n "__fish_netwren_using_subcommand capture; and __fish_seen_subcommand_from latency" -l no-owner -d 'Leave out the columns of the owning process, and the work of finding it'
complete -c netwren -n "__fish_netwren_using_subcommand capture; and __fish_seen_subcommand_from latency" -l json -d 'Short for -o json'
complete -c netwren -n "__fish_netwren_using_subcommand capture; and __fish_seen_subcommand_from latency" -l csv -d 'Short for -o csv'
complete -c netwren -n "__fish_netwren_using_subcommand capture; and __fish_seen_subcommand_from latency" -s H -l no-header -d 'No header line'
complete -c netwren -n "__fish_netwren_using_subcommand capture; and __fish_seen_subcommand_from latency" -l stats -d 'The row counts of the run at the end: rows seen, shown, filtered, lost'
complete -c netwren -n "__fish_netwren_using_subcommand capture; and __fish_seen_subcommand_from latency" -l cost -d 'What the run itself cost: CPU, system calls, bytes read, memory, the interface used'
complete -c netwren -n "__fish_netwren_using_subcommand capture; and __fish_seen_subcommand_from latency" -l explain -d 'Do not run: say which kernel interface would be read, what the kernel filters and what is left'
complete -c netwren -n "__fish_netwren_using_subcommand capture; and __fish_seen_subcommand_from latency" -l exit-code -d 'Exit with 1 if no row was shown'
complete -c netwren -n "__fish_netwren_using_subcommand capture; and __fish_seen_subcommand_from latency" -l all-netns -d 'Every network namespace of this host: those with a name, of processes, of containers; adds the column `netns`'
complete -c netwren -n "__fish_netwren_using_subcommand capture; and __fish_seen_subcommand_from latency" -s h -l help -d 'Print help'
complete -c netwren -n "__fish_netwren_using_subcommand drops" -s c -l columns -d 'Columns, by name: `a,b`; `+a` adds to the usual ones, `-a` leaves one out, `all` is every field, `help` explains them all' -r
complete -c netwren -n "__fish_netwren_using_subcommand drops" -l by -d 'One row for each different value of these fields, with `count`, the largest first' -r
complete -c netwren -n "__fish_netwren_using_subcommand drops" -l sum -d 'With --by: also the sum of these fields' -r
complete -c netwren -n "__fish_netwren_using_subcommand drops" -l max -d 'With --by: also the largest value of these fields' -r
complete -c netwren -n "__fish_netwren_using_subcommand drops" -l avg -d 'With --by: also the mean of these fields' -r
complete -c netwren -n "__fish_netwren_using_subcommand drops" -l sort -d 'Order by these columns, which are shown: `a` ascending, `a:desc` descending. Unsorted rows stream in the kernel\'s order' -r
complete -c netwren -n "__fish_netwren_using_subcommand drops" -s n -l limit -d 'At most N rows' -r
complete -c netwren -n "__fish_netwren_using_subcommand drops" -l process -d 'Only what belongs to this process: short for `process = NAME` in the filter; several: `a,b`' -r
complete -c netwren -n "__fish_netwren_using_subcommand drops" -l pid -d 'Only what belongs to this process, by its number' -r
complete -c netwren -n "__fish_netwren_using_subcommand drops" -l container -d 'Only what belongs to this container' -r
complete -c netwren -n "__fish_netwren_using_subcommand drops" -l user -d 'Only what belongs to this user' -r
complete -c netwren -n "__fish_netwren_using_subcommand drops" -l resolve -d 'Host names for addresses, as many as arrive within SECONDS after the last row' -r
complete -c netwren -n "__fish_netwren_using_subcommand drops" -s o -l output -d 'table: on a terminal aligned within its width, with units and local times; in a pipe tab-separated and exact; wide: the same with more columns; plain: aligned and exact everywhere; json: one object a line; csv: RFC 4180, where text that a spreadsheet would compute (= + - @ in front) gets an apostrophe' -r -f -a "table\t''
wide\t''
plain\t''
json\t''
csv\t''"
complete -c netwren -n "__fish_netwren_using_subcommand drops" -l color -d 'Colour; auto: on a terminal unless NO_COLOR is set. Red: lost, or over a limit (accept queue, 90 % of conntrack); yellow: sent again, opening or closing, a guess; green: established, incoming; cyan: listening, outgoing; dim: closed, or nothing' -r -f -a "auto\t''
always\t''
never\t''"
complete -c netwren -n "__fish_netwren_using_subcommand drops" -l watch -d 'A round of drops every SECONDS until interrupted; the default on a terminal without --for' -r
complete -c netwren -n "__fish_netwren_using_subcommand drops" -s N -l netns -d 'The network namespace of that name, of that process, at that path or of that container' -r
complete -c netwren -n "__fish_netwren_using_subcommand drops" -l via -d 'Read by this kernel interface instead of the best one. tracefs knows reason, place and EtherType alone, of every network namespace, and is used where BPF cannot be had' -r -f -a "bpf\t''
tracefs\t''"
complete -c netwren -n "__fish_netwren_using_subcommand drops" -l owners-via -d 'Find owners by this interface instead of the cheaper one: bpf needs CAP_BPF and CAP_PERFMON and misses no process' -r -f -a "bpf\t''
proc\t''"
complete -c netwren -n "__fish_netwren_using_subcommand drops" -l record -d 'Save everything that is read from the kernel; the file is not for strangers: it holds addresses and process names' -r -F
complete -c netwren -n "__fish_netwren_using_subcommand drops" -l replay -d 'Read a recording instead of the kernel; needs no rights' -r -F
complete -c netwren -n "__fish_netwren_using_subcommand drops" -l for -d 'How long drops are counted; Ctrl-C ends it before. Without it: until interrupted' -r
complete -c netwren -n "__fish_netwren_using_subcommand drops" -s w -l write -d 'Write the dropped packets to a pcapng file instead of showing them, - for standard output; a comment of each says reason, place and hook, or the fields of --columns' -r -F
complete -c netwren -n "__fish_netwren_using_subcommand drops" -l snaplen -d 'With -w: at most so many bytes of each packet, 128 if not said, 4096 at most' -r
complete -c netwren -n "__fish_netwren_using_subcommand drops" -l exit-after -d 'With --events: end after N packets were shown' -r
complete -c netwren -n "__fish_netwren_using_subcommand drops" -l no-owner -d 'Leave out the columns of the owning process, and the work of finding it'
complete -c netwren -n "__fish_netwren_using_subcommand drops" -l json -d 'Short for -o json'
complete -c netwren -n "__fish_netwren_using_subcommand drops" -l csv -d 'Short for -o csv'
complete -c netwren -n "__fish_netwren_using_subcommand drops" -s H -l no-header -d 'No header line'
complete -c netwren -n "__fish_netwren_using_subcommand drops" -l stats -d 'The row counts of the run at the end: rows seen, shown, filtered, lost'
complete -c netwren -n "__fish_netwren_using_subcommand drops" -l cost -d 'What the run itself cost: CPU, system calls, bytes read, memory, the interface used'
complete -c netwren -n "__fish_netwren_using_subcommand drops" -l explain -d 'Do not run: say which kernel interface would be read, what the kernel filters and what is left'
complete -c netwren -n "__fish_netwren_using_subcommand drops" -l exit-code -d 'Exit with 1 if no row was shown'
complete -c netwren -n "__fish_netwren_using_subcommand drops" -l all-netns -d 'Every network namespace of this host: those with a name, of processes, of containers; adds the column `netns`'
complete -c netwren -n "__fish_netwren_using_subcommand drops" -l events -d 'Each dropped packet by itself, as it comes: about a microsecond more for each; with --by the groups of these, of addresses and ports as well'
complete -c netwren -n "__fish_netwren_using_subcommand drops" -l stack -d 'The functions of the kernel that led to the drop, as column `stack`: of the first packet of a row, with --events of each, which costs 3 us more'
complete -c netwren -n "__fish_netwren_using_subcommand drops" -l all -d 'Also drops that are routine, such as unread data of a socket that was closed: their `benign` is true'
complete -c netwren -n "__fish_netwren_using_subcommand drops" -s h -l help -d 'Print help'
complete -c netwren -n "__fish_netwren_using_subcommand doctor; and not __fish_seen_subcommand_from softirq path" -l for -d 'How long the host is watched (default 3); of a recording: time from its first round to the one that is compared with it (default: the last one)' -r
complete -c netwren -n "__fish_netwren_using_subcommand doctor; and not __fish_seen_subcommand_from softirq path" -l baseline -d 'What changed since the host was recorded (`netwren record FILE`) when it was well: findings, settings, listeners, and rates that are three times as high' -r -F
complete -c netwren -n "__fish_netwren_using_subcommand doctor; and not __fish_seen_subcommand_from softirq path" -s c -l columns -d 'Columns, by name: `a,b`; `+a` adds to the usual ones, `-a` leaves one out, `all` is every field, `help` explains them all' -r
complete -c netwren -n "__fish_netwren_using_subcommand doctor; and not __fish_seen_subcommand_from softirq path" -l by -d 'One row for each different value of these fields, with `count`, the largest first' -r
complete -c netwren -n "__fish_netwren_using_subcommand doctor; and not __fish_seen_subcommand_from softirq path" -l sum -d 'With --by: also the sum of these fields' -r
complete -c netwren -n "__fish_netwren_using_subcommand doctor; and not __fish_seen_subcommand_from softirq path" -l max -d 'With --by: also the largest value of these fields' -r
complete -c netwren -n "__fish_netwren_using_subcommand doctor; and not __fish_seen_subcommand_from softirq path" -l avg -d 'With --by: also the mean of these fields' -r
complete -c netwren -n "__fish_netwren_using_subcommand doctor; and not __fish_seen_subcommand_from softirq path" -l sort -d 'Order by these columns, which are shown: `a` ascending, `a:desc` descending. Unsorted rows stream in the kernel\'s order' -r
complete -c netwren -n "__fish_netwren_using_subcommand doctor; and not __fish_seen_subcommand_from softirq path" -s n -l limit -d 'At most N rows' -r
complete -c netwren -n "__fish_netwren_using_subcommand doctor; and not __fish_seen_subcommand_from softirq path" -s o -l output -d 'table: on a terminal aligned within its width, with units and local times; in a pipe tab-separated and exact; wide: the same with more columns; plain: aligned and exact everywhere; json: one object a line; csv: RFC 4180, where text that a spreadsheet would compute (= + - @ in front) gets an apostrophe' -r -f -a "table\t''
wide\t''
plain\t''
json\t''
csv\t''"
complete -c netwren -n "__fish_netwren_using_subcommand doctor; and not __fish_seen_subcommand_from softirq path" -l color -d 'Colour; auto: on a terminal unless NO_COLOR is set. Red: lost, or over a limit (accept queue, 90 % of conntrack); yellow: sent again, opening or closing, a guess; green: established, incoming; cyan: listening, outgoing; dim: closed, or nothing' -r -f -a "auto\t''
always\t''
never\t''"
complete -c netwren -n "__fish_netwren_using_subcommand doctor; and not __fish_seen_subcommand_from softirq path" -s w -l watch -d 'Again every SECONDS until interrupted' -r
complete -c netwren -n "__fish_netwren_using_subcommand doctor; and not __fish_seen_subcommand_from softirq path" -l exit-code -d 'Exit with 1 if there is a finding of this severity or a worse one: critical, warning, hint; before 3 for what could not be seen' -r
complete -c netwren -n "__fish_netwren_using_subcommand doctor; and not __fish_seen_subcommand_from softirq path" -s N -l netns -d 'The network namespace of that name, of that process, at that path or of that container' -r
complete -c netwren -n "__fish_netwren_using_subcommand doctor; and not __fish_seen_subcommand_from softirq path" -l record -d 'Save everything that is read from the kernel; the file is not for strangers: it holds addresses and process names' -r -F
complete -c netwren -n "__fish_netwren_using_subcommand doctor; and not __fish_seen_subcommand_from softirq path" -l replay -d 'Read a recording instead of the kernel; needs no rights' -r -F
complete -c netwren -n "__fish_netwren_using_subcommand doctor; and not __fish_seen_subcommand_from softirq path" -l json -d 'Short for -o json'
complete -c netwren -n "__fish_netwren_using_subcommand doctor; and not __fish_seen_subcommand_from softirq path" -l csv -d 'Short for -o csv'
complete -c netwren -n "__fish_netwren_using_subcommand doctor; and not __fish_seen_subcommand_from softirq path" -s H -l no-header -d 'No header line'
complete -c netwren -n "__fish_netwren_using_subcommand doctor; and not __fish_seen_subcommand_from softirq path" -l stats -d 'The row counts of the run at the end: rows seen, shown, filtered, lost'
complete -c netwren -n "__fish_netwren_using_subcommand doctor; and not __fish_seen_subcommand_from softirq path" -l cost -d 'What the run itself cost: CPU, system calls, bytes read, memory, the interface used'
complete -c netwren -n "__fish_netwren_using_subcommand doctor; and not __fish_seen_subcommand_from softirq path" -l explain -d 'Do not run: say which kernel interface would be read, what the kernel filters and what is left'
complete -c netwren -n "__fish_netwren_using_subcommand doctor; and not __fish_seen_subcommand_from softirq path" -l all-netns -d 'Every network namespace of this host: those with a name, of processes, of containers; adds the column `netns`'
complete -c netwren -n "__fish_netwren_using_subcommand doctor; and not __fish_seen_subcommand_from softirq path" -s h -l help -d 'Print help'
complete -c netwren -n "__fish_netwren_using_subcommand doctor; and not __fish_seen_subcommand_from softirq path" -a "softirq" -d 'What CPUs do in the kernel\'s network code: connection tracking, NAT, rules, TCP, drivers, copying …'
complete -c netwren -n "__fish_netwren_using_subcommand doctor; and not __fish_seen_subcommand_from softirq path" -a "path" -d 'How long packets take from one stage of netfilter to the next, and where they get lost'
complete -c netwren -n "__fish_netwren_using_subcommand doctor; and __fish_seen_subcommand_from softirq" -s c -l columns -d 'Columns, by name: `a,b`; `+a` adds to the usual ones, `-a` leaves one out, `all` is every field, `help` explains them all' -r
complete -c netwren -n "__fish_netwren_using_subcommand doctor; and __fish_seen_subcommand_from softirq" -l by -d 'One row for each different value of these fields, with `count`, the largest first' -r
complete -c netwren -n "__fish_netwren_using_subcommand doctor; and __fish_seen_subcommand_from softirq" -l sum -d 'With --by: also the sum of these fields' -r
complete -c netwren -n "__fish_netwren_using_subcommand doctor; and __fish_seen_subcommand_from softirq" -l max -d 'With --by: also the largest value of these fields' -r
complete -c netwren -n "__fish_netwren_using_subcommand doctor; and __fish_seen_subcommand_from softirq" -l avg -d 'With --by: also the mean of these fields' -r
complete -c netwren -n "__fish_netwren_using_subcommand doctor; and __fish_seen_subcommand_from softirq" -l sort -d 'Order by these columns, which are shown: `a` ascending, `a:desc` descending. Unsorted rows stream in the kernel\'s order' -r
complete -c netwren -n "__fish_netwren_using_subcommand doctor; and __fish_seen_subcommand_from softirq" -s n -l limit -d 'At most N rows' -r
complete -c netwren -n "__fish_netwren_using_subcommand doctor; and __fish_seen_subcommand_from softirq" -s o -l output -d 'table: on a terminal aligned within its width, with units and local times; in a pipe tab-separated and exact; wide: the same with more columns; plain: aligned and exact everywhere; json: one object a line; csv: RFC 4180, where text that a spreadsheet would compute (= + - @ in front) gets an apostrophe' -r -f -a "table\t''
wide\t''
plain\t''
json\t''
csv\t''"
complete -c netwren -n "__fish_netwren_using_subcommand doctor; and __fish_seen_subcommand_from softirq" -l color -d 'Colour; auto: on a terminal unless NO_COLOR is set. Red: lost, or over a limit (accept queue, 90 % of conntrack); yellow: sent again, opening or closing, a guess; green: established, incoming; cyan: listening, outgoing; dim: closed, or nothing' -r -f -a "auto\t''
always\t''
never\t''"
complete -c netwren -n "__fish_netwren_using_subcommand doctor; and __fish_seen_subcommand_from softirq" -s w -l watch -d 'Again every SECONDS until interrupted' -r
complete -c netwren -n "__fish_netwren_using_subcommand doctor; and __fish_seen_subcommand_from softirq" -s N -l netns -d 'The network namespace of that name, of that process, at that path or of that container' -r
complete -c netwren -n "__fish_netwren_using_subcommand doctor; and __fish_seen_subcommand_from softirq" -l record -d 'Save everything that is read from the kernel; the file is not for strangers: it holds addresses and process names' -r -F
complete -c netwren -n "__fish_netwren_using_subcommand doctor; and __fish_seen_subcommand_from softirq" -l replay -d 'Read a recording instead of the kernel; needs no rights' -r -F
complete -c netwren -n "__fish_netwren_using_subcommand doctor; and __fish_seen_subcommand_from softirq" -l for -d 'How long samples are taken (3); Ctrl-C ends it before' -r
complete -c netwren -n "__fish_netwren_using_subcommand doctor; and __fish_seen_subcommand_from softirq" -l hz -d 'Samples a second of each CPU (999): a sample costs it 5 to 20 us in a virtual machine' -r
complete -c netwren -n "__fish_netwren_using_subcommand doctor; and __fish_seen_subcommand_from softirq" -l via -d 'Sample by this interface instead of the best one: bpf counts in the kernel, perf hands every sample over, proc knows softirqs as a whole' -r -f -a "bpf\t''
perf\t''
proc\t''"
complete -c netwren -n "__fish_netwren_using_subcommand doctor; and __fish_seen_subcommand_from softirq" -l json -d 'Short for -o json'
complete -c netwren -n "__fish_netwren_using_subcommand doctor; and __fish_seen_subcommand_from softirq" -l csv -d 'Short for -o csv'
complete -c netwren -n "__fish_netwren_using_subcommand doctor; and __fish_seen_subcommand_from softirq" -s H -l no-header -d 'No header line'
complete -c netwren -n "__fish_netwren_using_subcommand doctor; and __fish_seen_subcommand_from softirq" -l stats -d 'The row counts of the run at the end: rows seen, shown, filtered, lost'
complete -c netwren -n "__fish_netwren_using_subcommand doctor; and __fish_seen_subcommand_from softirq" -l cost -d 'What the run itself cost: CPU, system calls, bytes read, memory, the interface used'
complete -c netwren -n "__fish_netwren_using_subcommand doctor; and __fish_seen_subcommand_from softirq" -l explain -d 'Do not run: say which kernel interface would be read, what the kernel filters and what is left'
complete -c netwren -n "__fish_netwren_using_subcommand doctor; and __fish_seen_subcommand_from softirq" -l exit-code -d 'Exit with 1 if no row was shown'
complete -c netwren -n "__fish_netwren_using_subcommand doctor; and __fish_seen_subcommand_from softirq" -l stack -d 'Call chains in place of groups, those with the most samples first'
complete -c netwren -n "__fish_netwren_using_subcommand doctor; and __fish_seen_subcommand_from softirq" -l per-cpu -d 'Groups of each CPU by itself'
complete -c netwren -n "__fish_netwren_using_subcommand doctor; and __fish_seen_subcommand_from softirq" -l all -d 'Also what is not the network\'s: programs, the rest of the kernel, idle time'
complete -c netwren -n "__fish_netwren_using_subcommand doctor; and __fish_seen_subcommand_from softirq" -s h -l help -d 'Print help'
complete -c netwren -n "__fish_netwren_using_subcommand doctor; and __fish_seen_subcommand_from path" -s c -l columns -d 'Columns, by name: `a,b`; `+a` adds to the usual ones, `-a` leaves one out, `all` is every field, `help` explains them all' -r
complete -c netwren -n "__fish_netwren_using_subcommand doctor; and __fish_seen_subcommand_from path" -l by -d 'One row for each different value of these fields, with `count`, the largest first' -r
complete -c netwren -n "__fish_netwren_using_subcommand doctor; and __fish_seen_subcommand_from path" -l sum -d 'With --by: also the sum of these fields' -r
complete -c netwren -n "__fish_netwren_using_subcommand doctor; and __fish_seen_subcommand_from path" -l max -d 'With --by: also the largest value of these fields' -r
complete -c netwren -n "__fish_netwren_using_subcommand doctor; and __fish_seen_subcommand_from path" -l avg -d 'With --by: also the mean of these fields' -r
complete -c netwren -n "__fish_netwren_using_subcommand doctor; and __fish_seen_subcommand_from path" -l sort -d 'Order by these columns, which are shown: `a` ascending, `a:desc` descending. Unsorted rows stream in the kernel\'s order' -r
complete -c netwren -n "__fish_netwren_using_subcommand doctor; and __fish_seen_subcommand_from path" -s n -l limit -d 'At most N rows' -r
complete -c netwren -n "__fish_netwren_using_subcommand doctor; and __fish_seen_subcommand_from path" -s o -l output -d 'table: on a terminal aligned within its width, with units and local times; in a pipe tab-separated and exact; wide: the same with more columns; plain: aligned and exact everywhere; json: one object a line; csv: RFC 4180, where text that a spreadsheet would compute (= + - @ in front) gets an apostrophe' -r -f -a "table\t''
wide\t''
plain\t''
json\t''
csv\t''"
complete -c netwren -n "__fish_netwren_using_subcommand doctor; and __fish_seen_subcommand_from path" -l color -d 'Colour; auto: on a terminal unless NO_COLOR is set. Red: lost, or over a limit (accept queue, 90 % of conntrack); yellow: sent again, opening or closing, a guess; green: established, incoming; cyan: listening, outgoing; dim: closed, or nothing' -r -f -a "auto\t''
always\t''
never\t''"
complete -c netwren -n "__fish_netwren_using_subcommand doctor; and __fish_seen_subcommand_from path" -s w -l watch -d 'Again every SECONDS until interrupted' -r
complete -c netwren -n "__fish_netwren_using_subcommand doctor; and __fish_seen_subcommand_from path" -s N -l netns -d 'The network namespace of that name, of that process, at that path or of that container' -r
complete -c netwren -n "__fish_netwren_using_subcommand doctor; and __fish_seen_subcommand_from path" -l record -d 'Save everything that is read from the kernel; the file is not for strangers: it holds addresses and process names' -r -F
complete -c netwren -n "__fish_netwren_using_subcommand doctor; and __fish_seen_subcommand_from path" -l replay -d 'Read a recording instead of the kernel; needs no rights' -r -F
complete -c netwren -n "__fish_netwren_using_subcommand doctor; and __fish_seen_subcommand_from path" -l for -d 'How long packets count, and pay for it (2); Ctrl-C ends it before' -r
complete -c netwren -n "__fish_netwren_using_subcommand doctor; and __fish_seen_subcommand_from path" -l json -d 'Short for -o json'
complete -c netwren -n "__fish_netwren_using_subcommand doctor; and __fish_seen_subcommand_from path" -l csv -d 'Short for -o csv'
complete -c netwren -n "__fish_netwren_using_subcommand doctor; and __fish_seen_subcommand_from path" -s H -l no-header -d 'No header line'
complete -c netwren -n "__fish_netwren_using_subcommand doctor; and __fish_seen_subcommand_from path" -l stats -d 'The row counts of the run at the end: rows seen, shown, filtered, lost'
complete -c netwren -n "__fish_netwren_using_subcommand doctor; and __fish_seen_subcommand_from path" -l cost -d 'What the run itself cost: CPU, system calls, bytes read, memory, the interface used'
complete -c netwren -n "__fish_netwren_using_subcommand doctor; and __fish_seen_subcommand_from path" -l explain -d 'Do not run: say which kernel interface would be read, what the kernel filters and what is left'
complete -c netwren -n "__fish_netwren_using_subcommand doctor; and __fish_seen_subcommand_from path" -l exit-code -d 'Exit with 1 if no row was shown'
complete -c netwren -n "__fish_netwren_using_subcommand doctor; and __fish_seen_subcommand_from path" -l all -d 'Also stages that no packet came to'
complete -c netwren -n "__fish_netwren_using_subcommand doctor; and __fish_seen_subcommand_from path" -s h -l help -d 'Print help'
complete -c netwren -n "__fish_netwren_using_subcommand counters" -l for -d 'Time between the two readings that are compared (default 1); of a recording: time from its first round to the one that is compared with it (default: the last one)' -r
complete -c netwren -n "__fish_netwren_using_subcommand counters" -s c -l columns -d 'Columns, by name: `a,b`; `+a` adds to the usual ones, `-a` leaves one out, `all` is every field, `help` explains them all' -r
complete -c netwren -n "__fish_netwren_using_subcommand counters" -l by -d 'One row for each different value of these fields, with `count`, the largest first' -r
complete -c netwren -n "__fish_netwren_using_subcommand counters" -l sum -d 'With --by: also the sum of these fields' -r
complete -c netwren -n "__fish_netwren_using_subcommand counters" -l max -d 'With --by: also the largest value of these fields' -r
complete -c netwren -n "__fish_netwren_using_subcommand counters" -l avg -d 'With --by: also the mean of these fields' -r
complete -c netwren -n "__fish_netwren_using_subcommand counters" -l sort -d 'Order by these columns, which are shown: `a` ascending, `a:desc` descending. Unsorted rows stream in the kernel\'s order' -r
complete -c netwren -n "__fish_netwren_using_subcommand counters" -s n -l limit -d 'At most N rows' -r
complete -c netwren -n "__fish_netwren_using_subcommand counters" -s o -l output -d 'table: on a terminal aligned within its width, with units and local times; in a pipe tab-separated and exact; wide: the same with more columns; plain: aligned and exact everywhere; json: one object a line; csv: RFC 4180, where text that a spreadsheet would compute (= + - @ in front) gets an apostrophe' -r -f -a "table\t''
wide\t''
plain\t''
json\t''
csv\t''"
complete -c netwren -n "__fish_netwren_using_subcommand counters" -l color -d 'Colour; auto: on a terminal unless NO_COLOR is set. Red: lost, or over a limit (accept queue, 90 % of conntrack); yellow: sent again, opening or closing, a guess; green: established, incoming; cyan: listening, outgoing; dim: closed, or nothing' -r -f -a "auto\t''
always\t''
never\t''"
complete -c netwren -n "__fish_netwren_using_subcommand counters" -s w -l watch -d 'Again every SECONDS until interrupted' -r
complete -c netwren -n "__fish_netwren_using_subcommand counters" -s N -l netns -d 'The network namespace of that name, of that process, at that path or of that container' -r
complete -c netwren -n "__fish_netwren_using_subcommand counters" -l record -d 'Save everything that is read from the kernel; the file is not for strangers: it holds addresses and process names' -r -F
complete -c netwren -n "__fish_netwren_using_subcommand counters" -l replay -d 'Read a recording instead of the kernel; needs no rights' -r -F
complete -c netwren -n "__fish_netwren_using_subcommand counters" -l changed -d 'Only counters that changed'
complete -c netwren -n "__fish_netwren_using_subcommand counters" -l json -d 'Short for -o json'
complete -c netwren -n "__fish_netwren_using_subcommand counters" -l csv -d 'Short for -o csv'
complete -c netwren -n "__fish_netwren_using_subcommand counters" -s H -l no-header -d 'No header line'
complete -c netwren -n "__fish_netwren_using_subcommand counters" -l stats -d 'The row counts of the run at the end: rows seen, shown, filtered, lost'
complete -c netwren -n "__fish_netwren_using_subcommand counters" -l cost -d 'What the run itself cost: CPU, system calls, bytes read, memory, the interface used'
complete -c netwren -n "__fish_netwren_using_subcommand counters" -l explain -d 'Do not run: say which kernel interface would be read, what the kernel filters and what is left'
complete -c netwren -n "__fish_netwren_using_subcommand counters" -l exit-code -d 'Exit with 1 if no row was shown'
complete -c netwren -n "__fish_netwren_using_subcommand counters" -l all-netns -d 'Every network namespace of this host: those with a name, of processes, of containers; adds the column `netns`'
complete -c netwren -n "__fish_netwren_using_subcommand counters" -s h -l help -d 'Print help'
complete -c netwren -n "__fish_netwren_using_subcommand record" -l for -d 'How long: a round every second, 10 seconds if nothing is said; Ctrl-C ends it before' -r
complete -c netwren -n "__fish_netwren_using_subcommand record" -l max-size -d 'The largest size of the file, 1GiB if nothing is said: where it is reached the recording stops' -r
complete -c netwren -n "__fish_netwren_using_subcommand record" -l once -d 'One round'
complete -c netwren -n "__fish_netwren_using_subcommand record" -s h -l help -d 'Print help'
complete -c netwren -n "__fish_netwren_using_subcommand support" -s c -l columns -d 'Columns, by name: `a,b`; `+a` adds to the usual ones, `-a` leaves one out, `all` is every field, `help` explains them all' -r
complete -c netwren -n "__fish_netwren_using_subcommand support" -l by -d 'One row for each different value of these fields, with `count`, the largest first' -r
complete -c netwren -n "__fish_netwren_using_subcommand support" -l sort -d 'Order by these columns, which are shown: `a` ascending, `a:desc` descending. Unsorted rows stream in the kernel\'s order' -r
complete -c netwren -n "__fish_netwren_using_subcommand support" -s o -l output -d 'table: on a terminal aligned within its width, with units and local times; in a pipe tab-separated and exact; wide: the same with more columns; plain: aligned and exact everywhere; json: one object a line; csv: RFC 4180, where text that a spreadsheet would compute (= + - @ in front) gets an apostrophe' -r -f -a "table\t''
wide\t''
plain\t''
json\t''
csv\t''"
complete -c netwren -n "__fish_netwren_using_subcommand support" -l bundle -d 'Write all of it, with the tables of the host, to a new file for a bug report: names and addresses are pseudonyms in it' -r -F
complete -c netwren -n "__fish_netwren_using_subcommand support" -l json -d 'Short for -o json'
complete -c netwren -n "__fish_netwren_using_subcommand support" -l csv -d 'Short for -o csv'
complete -c netwren -n "__fish_netwren_using_subcommand support" -s h -l help -d 'Print help'
complete -c netwren -n "__fish_netwren_using_subcommand help; and not __fish_seen_subcommand_from home sockets listeners flows routes nat log capture drops doctor counters record support help" -f -a "home" -d 'The whole host on one screen; `netwren` without a command is the same'
complete -c netwren -n "__fish_netwren_using_subcommand help; and not __fish_seen_subcommand_from home sockets listeners flows routes nat log capture drops doctor counters record support help" -f -a "sockets" -d 'Sockets of every family with their owners'
complete -c netwren -n "__fish_netwren_using_subcommand help; and not __fish_seen_subcommand_from home sockets listeners flows routes nat log capture drops doctor counters record support help" -f -a "listeners" -d 'Sockets that take what anybody sends: TCP that listens, UDP with a port and no peer'
complete -c netwren -n "__fish_netwren_using_subcommand help; and not __fish_seen_subcommand_from home sockets listeners flows routes nat log capture drops doctor counters record support help" -f -a "flows" -d 'Host-to-host flows: who talks to whom, who opened it, how many connections'
complete -c netwren -n "__fish_netwren_using_subcommand help; and not __fish_seen_subcommand_from home sockets listeners flows routes nat log capture drops doctor counters record support help" -f -a "routes" -d 'Routes of IPv4 and IPv6, of all routing tables: a row for each next hop'
complete -c netwren -n "__fish_netwren_using_subcommand help; and not __fish_seen_subcommand_from home sockets listeners flows routes nat log capture drops doctor counters record support help" -f -a "nat" -d 'Connection tracking: who talks through this host, whose addresses are rewritten, who answers'
complete -c netwren -n "__fish_netwren_using_subcommand help; and not __fish_seen_subcommand_from home sockets listeners flows routes nat log capture drops doctor counters record support help" -f -a "log" -d 'Packets that rules log (nft `log group`, iptables NFLOG), until interrupted'
complete -c netwren -n "__fish_netwren_using_subcommand help; and not __fish_seen_subcommand_from home sockets listeners flows routes nat log capture drops doctor counters record support help" -f -a "capture" -d 'Packets of interfaces, as they come, until interrupted; packets of files'
complete -c netwren -n "__fish_netwren_using_subcommand help; and not __fish_seen_subcommand_from home sockets listeners flows routes nat log capture drops doctor counters record support help" -f -a "drops" -d 'Packets that the kernel drops while it runs: how many, why, where, and what that means'
complete -c netwren -n "__fish_netwren_using_subcommand help; and not __fish_seen_subcommand_from home sockets listeners flows routes nat log capture drops doctor counters record support help" -f -a "doctor" -d 'What is wrong with this host\'s network, what proves it, what would mend it'
complete -c netwren -n "__fish_netwren_using_subcommand help; and not __fish_seen_subcommand_from home sockets listeners flows routes nat log capture drops doctor counters record support help" -f -a "counters" -d 'What the kernel counts, what moved in a second, and what each counter means'
complete -c netwren -n "__fish_netwren_using_subcommand help; and not __fish_seen_subcommand_from home sockets listeners flows routes nat log capture drops doctor counters record support help" -f -a "record" -d 'Save everything that netwren can show of this host to a file, to be asked later'
complete -c netwren -n "__fish_netwren_using_subcommand help; and not __fish_seen_subcommand_from home sockets listeners flows routes nat log capture drops doctor counters record support help" -f -a "support" -d 'What this kernel and these privileges allow, and what is used instead'
complete -c netwren -n "__fish_netwren_using_subcommand help; and not __fish_seen_subcommand_from home sockets listeners flows routes nat log capture drops doctor counters record support help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c netwren -n "__fish_netwren_using_subcommand help; and __fish_seen_subcommand_from sockets" -f -a "kill" -d 'Close TCP and UDP sockets of any owner; without --yes only show which'
complete -c netwren -n "__fish_netwren_using_subcommand help; and __fish_seen_subcommand_from nat" -f -a "top" -d 'Who and what fills the table: entries counted by some fields, the most first, with their share'
complete -c netwren -n "__fish_netwren_using_subcommand help; and __fish_seen_subcommand_from nat" -f -a "stats" -d 'What connection tracking counts: entries, limits, what was dropped and what could not go in'
complete -c netwren -n "__fish_netwren_using_subcommand help; and __fish_seen_subcommand_from nat" -f -a "events" -d 'Entries of connection tracking as they come, change and go, until interrupted'
complete -c netwren -n "__fish_netwren_using_subcommand help; and __fish_seen_subcommand_from nat" -f -a "advise" -d 'How full the connection-tracking table is, where that leads, what limit it should have, what that costs'
complete -c netwren -n "__fish_netwren_using_subcommand help; and __fish_seen_subcommand_from nat" -f -a "delete" -d 'Delete entries; without --yes only show which'
complete -c netwren -n "__fish_netwren_using_subcommand help; and __fish_seen_subcommand_from nat" -f -a "stateless" -d 'Publish ports without connection tracking: every packet is rewritten by itself'
complete -c netwren -n "__fish_netwren_using_subcommand help; and __fish_seen_subcommand_from log" -f -a "check" -d 'Look a configuration of `log` over, without binding groups, and say what it would do'
complete -c netwren -n "__fish_netwren_using_subcommand help; and __fish_seen_subcommand_from log" -f -a "setup" -d 'Write a rule that logs to a group; with --apply --yes let nft(8) put it in place'
complete -c netwren -n "__fish_netwren_using_subcommand help; and __fish_seen_subcommand_from log" -f -a "tail" -d 'Packets that rules log, in words: a line each, the same again counted, the rule named'
complete -c netwren -n "__fish_netwren_using_subcommand help; and __fish_seen_subcommand_from log" -f -a "top" -d 'Who and what is logged most: records counted by some fields, for 10 seconds'
complete -c netwren -n "__fish_netwren_using_subcommand help; and __fish_seen_subcommand_from log" -f -a "status" -d 'What has become of every row that a running netwren ships: the counts of each receiver'
complete -c netwren -n "__fish_netwren_using_subcommand help; and __fish_seen_subcommand_from capture" -f -a "stats" -d 'What is in files of packets: times, rates, sizes, interfaces, drops, and what is broken'
complete -c netwren -n "__fish_netwren_using_subcommand help; and __fish_seen_subcommand_from capture" -f -a "cut" -d 'Write a part of a file of packets into another: by time, FILTER, number, length'
complete -c netwren -n "__fish_netwren_using_subcommand help; and __fish_seen_subcommand_from capture" -f -a "merge" -d 'Write the packets of several files into one, in the order of their times'
complete -c netwren -n "__fish_netwren_using_subcommand help; and __fish_seen_subcommand_from capture" -f -a "latency" -d 'Packet sockets of every program: how late each one\'s ring gives packets out, and why'
complete -c netwren -n "__fish_netwren_using_subcommand help; and __fish_seen_subcommand_from doctor" -f -a "softirq" -d 'What CPUs do in the kernel\'s network code: connection tracking, NAT, rules, TCP, drivers, copying …'
complete -c netwren -n "__fish_netwren_using_subcommand help; and __fish_seen_subcommand_from doctor" -f -a "path" -d 'How long packets take from one stage of netfilter to the next, and where they get lost'
