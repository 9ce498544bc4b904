# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_netwren_global_optspecs
    string join \n h/help V/version
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

complete -c netwren -n "__fish_netwren_needs_command" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c netwren -n "__fish_netwren_needs_command" -s V -l version -d 'Print version'
complete -c netwren -n "__fish_netwren_needs_command" -f -a "sockets" -d 'Sockets of every family with their owners'
complete -c netwren -n "__fish_netwren_needs_command" -f -a "flows" -d 'Host-to-host flows: who talks to whom, who opened it, how many connections'
complete -c netwren -n "__fish_netwren_needs_command" -f -a "support" -d 'What this kernel and these privileges allow, and what is used instead'
complete -c netwren -n "__fish_netwren_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and not __fish_seen_subcommand_from kill" -s c -l columns -d 'Columns, by name: `a,b`; `+a` adds to the usual ones, `-a` leaves one out, `all` is every field, `help` explains them all' -r
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and not __fish_seen_subcommand_from kill" -l by -d 'One row for each different value of these fields, with `count`, the largest first' -r
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and not __fish_seen_subcommand_from kill" -l sum -d 'With --by: also the sum of these fields' -r
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and not __fish_seen_subcommand_from kill" -l max -d 'With --by: also the largest value of these fields' -r
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and not __fish_seen_subcommand_from kill" -l avg -d 'With --by: also the mean of these fields' -r
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and not __fish_seen_subcommand_from kill" -l sort -d 'Order by these columns: `a` ascending, `a:desc` descending. Unsorted rows stream in the kernel\'s order' -r
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and not __fish_seen_subcommand_from kill" -s n -l limit -d 'At most N rows' -r
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and not __fish_seen_subcommand_from kill" -l resolve -d 'Host names for addresses, as many as arrive within SECONDS after the last row' -r
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and not __fish_seen_subcommand_from kill" -s o -l output -d 'table: aligned on a terminal, tab-separated in a pipe; wide: the same with more columns; json: one object a line; csv: RFC 4180' -r -f -a "table\t''
wide\t''
json\t''
csv\t''"
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and not __fish_seen_subcommand_from kill" -l color -d 'Colour; auto: on a terminal unless NO_COLOR is set' -r -f -a "auto\t''
always\t''
never\t''"
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and not __fish_seen_subcommand_from kill" -s w -l watch -d 'Again every SECONDS until interrupted' -r
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and not __fish_seen_subcommand_from kill" -l follow -d 'Show connections as they open and close, until interrupted; of flows: what opened and closed every SECONDS' -r
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and not __fish_seen_subcommand_from kill" -s N -l netns -d 'The network namespace of that name, of that process or behind that path' -r
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and not __fish_seen_subcommand_from kill" -l via -d 'Read by this kernel interface instead of the best one' -r -f -a "netlink\t''
proc\t''
bpf\t''"
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and not __fish_seen_subcommand_from kill" -l owners-via -d 'Find owners by this interface instead of the cheaper one: bpf needs CAP_BPF and CAP_PERFMON and misses nobody' -r -f -a "bpf\t''
proc\t''"
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and not __fish_seen_subcommand_from kill" -l record -d 'Save everything that is read from the kernel; the file is not for strangers: it holds addresses and process names' -r
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and not __fish_seen_subcommand_from kill" -l replay -d 'Read a recording instead of the kernel; needs no rights' -r
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and not __fish_seen_subcommand_from kill" -l no-owner -d 'Leave out the columns of the owning process, and the work of finding it'
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and not __fish_seen_subcommand_from kill" -s H -l no-header -d 'No header line'
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and not __fish_seen_subcommand_from kill" -l stats -d 'The books of the run at the end: rows seen, shown, filtered, lost'
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and not __fish_seen_subcommand_from kill" -l cost -d 'What the run itself cost: CPU, system calls, bytes read, memory, the door used'
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and not __fish_seen_subcommand_from kill" -l explain -d 'Do not run: say which kernel interface would be read, what the kernel filters and what is left'
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and not __fish_seen_subcommand_from kill" -l exit-code -d 'Exit with 1 if no row was shown'
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and not __fish_seen_subcommand_from kill" -l all-netns -d 'Every network namespace of this host: those with a name, of processes, of containers; adds the column `netns`'
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and not __fish_seen_subcommand_from kill" -s h -l help -d 'Print help'
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and not __fish_seen_subcommand_from kill" -a "kill" -d 'Close TCP and UDP sockets, whoever holds them; without --yes only show which'
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and __fish_seen_subcommand_from kill" -s c -l columns -d 'Columns, by name: `a,b`; `+a` adds to the usual ones, `-a` leaves one out, `all` is every field, `help` explains them all' -r
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and __fish_seen_subcommand_from kill" -l sort -d 'Order by these columns: `a` ascending, `a:desc` descending. Unsorted rows stream in the kernel\'s order' -r
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and __fish_seen_subcommand_from kill" -s n -l limit -d 'At most N rows' -r
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and __fish_seen_subcommand_from kill" -l resolve -d 'Host names for addresses, as many as arrive within SECONDS after the last row' -r
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and __fish_seen_subcommand_from kill" -s o -l output -d 'table: aligned on a terminal, tab-separated in a pipe; wide: the same with more columns; json: one object a line; csv: RFC 4180' -r -f -a "table\t''
wide\t''
json\t''
csv\t''"
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and __fish_seen_subcommand_from kill" -l color -d 'Colour; auto: on a terminal unless NO_COLOR is set' -r -f -a "auto\t''
always\t''
never\t''"
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and __fish_seen_subcommand_from kill" -s N -l netns -d 'The network namespace of that name, of that process or behind that path' -r
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and __fish_seen_subcommand_from kill" -l by -d 'One row for each different value of these fields, with `count`, the largest first' -r
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and __fish_seen_subcommand_from kill" -l sum -d 'With --by: also the sum of these fields' -r
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and __fish_seen_subcommand_from kill" -l max -d 'With --by: also the largest value of these fields' -r
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and __fish_seen_subcommand_from kill" -l avg -d 'With --by: also the mean of these fields' -r
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and __fish_seen_subcommand_from kill" -s w -l watch -d 'Again every SECONDS until interrupted' -r
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and __fish_seen_subcommand_from kill" -l follow -d 'Show connections as they open and close, until interrupted; of flows: what opened and closed every SECONDS' -r
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and __fish_seen_subcommand_from kill" -l via -d 'Read by this kernel interface instead of the best one' -r -f -a "netlink\t''
proc\t''
bpf\t''"
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and __fish_seen_subcommand_from kill" -l owners-via -d 'Find owners by this interface instead of the cheaper one: bpf needs CAP_BPF and CAP_PERFMON and misses nobody' -r -f -a "bpf\t''
proc\t''"
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and __fish_seen_subcommand_from kill" -l record -d 'Save everything that is read from the kernel; the file is not for strangers: it holds addresses and process names' -r
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and __fish_seen_subcommand_from kill" -l replay -d 'Read a recording instead of the kernel; needs no rights' -r
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and __fish_seen_subcommand_from kill" -l no-owner -d 'Leave out the columns of the owning process, and the work of finding it'
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and __fish_seen_subcommand_from kill" -s H -l no-header -d 'No header line'
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and __fish_seen_subcommand_from kill" -l stats -d 'The books of the run at the end: rows seen, shown, filtered, lost'
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and __fish_seen_subcommand_from kill" -l cost -d 'What the run itself cost: CPU, system calls, bytes read, memory, the door used'
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and __fish_seen_subcommand_from kill" -l explain -d 'Do not run: say which kernel interface would be read, what the kernel filters and what is left'
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and __fish_seen_subcommand_from kill" -l exit-code -d 'Exit with 1 if no row was shown'
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and __fish_seen_subcommand_from kill" -l all-netns -d 'Every network namespace of this host: those with a name, of processes, of containers; adds the column `netns`'
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and __fish_seen_subcommand_from kill" -l yes -d 'Close the sockets; each row says in `result` what became of it'
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and __fish_seen_subcommand_from kill" -l all -d 'Every TCP and UDP socket of the namespace, instead of a filter'
complete -c netwren -n "__fish_netwren_using_subcommand sockets; and __fish_seen_subcommand_from kill" -s h -l help -d 'Print help'
complete -c netwren -n "__fish_netwren_using_subcommand flows" -l by -d 'One row for each different value of these fields, with `count`, the largest first' -r
complete -c netwren -n "__fish_netwren_using_subcommand flows" -l sum -d 'With --by: also the sum of these fields' -r
complete -c netwren -n "__fish_netwren_using_subcommand flows" -l max -d 'With --by: also the largest value of these fields' -r
complete -c netwren -n "__fish_netwren_using_subcommand flows" -l avg -d 'With --by: also the mean of these fields' -r
complete -c netwren -n "__fish_netwren_using_subcommand flows" -l sort -d 'Order by these columns: `a` ascending, `a:desc` descending. Unsorted rows stream in the kernel\'s order' -r
complete -c netwren -n "__fish_netwren_using_subcommand flows" -s n -l limit -d 'At most N rows' -r
complete -c netwren -n "__fish_netwren_using_subcommand flows" -l resolve -d 'Host names for addresses, as many as arrive within SECONDS after the last row' -r
complete -c netwren -n "__fish_netwren_using_subcommand flows" -s o -l output -d 'table: aligned on a terminal, tab-separated in a pipe; wide: the same with more columns; json: one object a line; csv: RFC 4180' -r -f -a "table\t''
wide\t''
json\t''
csv\t''"
complete -c netwren -n "__fish_netwren_using_subcommand flows" -l color -d 'Colour; auto: on a terminal unless NO_COLOR is set' -r -f -a "auto\t''
always\t''
never\t''"
complete -c netwren -n "__fish_netwren_using_subcommand flows" -s w -l watch -d 'Again every SECONDS until interrupted' -r
complete -c netwren -n "__fish_netwren_using_subcommand flows" -l follow -d 'Show connections as they open and close, until interrupted; of flows: what opened and closed every SECONDS' -r
complete -c netwren -n "__fish_netwren_using_subcommand flows" -s N -l netns -d 'The network namespace of that name, of that process or behind that path' -r
complete -c netwren -n "__fish_netwren_using_subcommand flows" -l via -d 'Read by this kernel interface instead of the best one' -r -f -a "netlink\t''
proc\t''
bpf\t''"
complete -c netwren -n "__fish_netwren_using_subcommand flows" -l owners-via -d 'Find owners by this interface instead of the cheaper one: bpf needs CAP_BPF and CAP_PERFMON and misses nobody' -r -f -a "bpf\t''
proc\t''"
complete -c netwren -n "__fish_netwren_using_subcommand flows" -l record -d 'Save everything that is read from the kernel; the file is not for strangers: it holds addresses and process names' -r
complete -c netwren -n "__fish_netwren_using_subcommand flows" -l replay -d 'Read a recording instead of the kernel; needs no rights' -r
complete -c netwren -n "__fish_netwren_using_subcommand flows" -s c -l columns -d 'Columns, by name: `a,b`; `+a`, `-a`, `all`, `help`' -r
complete -c netwren -n "__fish_netwren_using_subcommand flows" -l no-owner -d 'Leave out the columns of the owning process, and the work of finding it'
complete -c netwren -n "__fish_netwren_using_subcommand flows" -s H -l no-header -d 'No header line'
complete -c netwren -n "__fish_netwren_using_subcommand flows" -l stats -d 'The books of the run at the end: rows seen, shown, filtered, lost'
complete -c netwren -n "__fish_netwren_using_subcommand flows" -l cost -d 'What the run itself cost: CPU, system calls, bytes read, memory, the door used'
complete -c netwren -n "__fish_netwren_using_subcommand flows" -l explain -d 'Do not run: say which kernel interface would be read, what the kernel filters and what is left'
complete -c netwren -n "__fish_netwren_using_subcommand flows" -l exit-code -d 'Exit with 1 if no row was shown'
complete -c netwren -n "__fish_netwren_using_subcommand flows" -l all-netns -d 'Every network namespace of this host: those with a name, of processes, of containers; adds the column `netns`'
complete -c netwren -n "__fish_netwren_using_subcommand flows" -s h -l help -d 'Print help'
complete -c netwren -n "__fish_netwren_using_subcommand support" -s o -l output -d 'table: aligned on a terminal, tab-separated in a pipe; wide: the same with more columns; json: one object a line; csv: RFC 4180' -r -f -a "table\t''
wide\t''
json\t''
csv\t''"
complete -c netwren -n "__fish_netwren_using_subcommand support" -s h -l help -d 'Print help'
complete -c netwren -n "__fish_netwren_using_subcommand help; and not __fish_seen_subcommand_from sockets flows support help" -f -a "sockets" -d 'Sockets of every family with their owners'
complete -c netwren -n "__fish_netwren_using_subcommand help; and not __fish_seen_subcommand_from sockets flows support help" -f -a "flows" -d 'Host-to-host flows: who talks to whom, who opened it, how many connections'
complete -c netwren -n "__fish_netwren_using_subcommand help; and not __fish_seen_subcommand_from sockets flows support help" -f -a "support" -d 'What this kernel and these privileges allow, and what is used instead'
complete -c netwren -n "__fish_netwren_using_subcommand help; and not __fish_seen_subcommand_from sockets flows support help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c netwren -n "__fish_netwren_using_subcommand help; and __fish_seen_subcommand_from sockets" -f -a "kill" -d 'Close TCP and UDP sockets, whoever holds them; without --yes only show which'
