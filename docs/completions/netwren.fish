# Completion of netwren for fish. `netwren complete` provides the proposals; no part of its output is evaluated.

function __netwren_complete
    set -l words (commandline -opc)
    set -e words[1]
    set -l current (commandline -ct)
    set -l lines (command netwren complete -- $words "$current" 2>/dev/null)
    switch "$lines[1]"
        case files
            __fish_complete_path "$current"
        case words parts
            set -e lines[1]
            test (count $lines) -gt 0; and printf '%s\n' $lines
    end
end

complete -c netwren -e
complete -c netwren -f -a '(__netwren_complete)'
