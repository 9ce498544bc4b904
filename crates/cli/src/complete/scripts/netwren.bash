# Completion of netwren for bash. `netwren complete` provides the proposals; no part of its output is evaluated.

_netwren() {
    local rest=${COMP_LINE:0:COMP_POINT} words=() i part blank
    # bash splits words at `=` and `:`: adjacent parts form one word.
    for ((i = 0; i <= COMP_CWORD; i++)); do
        part=${COMP_WORDS[i]}
        blank=${rest%%[![:space:]]*}
        rest=${rest#"$blank"}
        if ((i == COMP_CWORD)); then part=$rest; fi
        rest=${rest#"$part"}
        if [[ -z $blank && i -gt 0 ]]; then
            words[${#words[@]} - 1]+=$part
        else
            words+=("$part")
        fi
    done
    local current=${words[${#words[@]} - 1]} quote=
    case $current in
        \'* | \"*) quote=${current:0:1} ;;
        # A quote inside a word: readline would replace another part of the word.
        *[\'\"]*) return ;;
    esac
    local lines=()
    mapfile -t lines < <(command netwren complete -- "${words[@]:1}" 2>/dev/null)
    COMPREPLY=()
    case ${lines[0]-} in
        files) compopt -o default; return ;;
        parts) compopt -o nospace ;;
        words) ;;
        *) return ;;
    esac
    # readline replaces the text after the last character that splits words.
    local signs='' sign kept=''
    if [[ -z $quote ]]; then
        for sign in '=' ':' '@'; do
            if [[ $COMP_WORDBREAKS == *"$sign"* ]]; then signs+=$sign; fi
        done
        if [[ -n $signs ]]; then kept=${current%"${current##*["$signs"]}"}; fi
    fi
    local line word
    for line in "${lines[@]:1}"; do
        word=${line%%$'\t'*}
        word=${word#"$kept"}
        if [[ -z $quote ]]; then
            if [[ $word == *[!A-Za-z0-9_.,:=/@%+-]* ]]; then printf -v word %q "$word"; fi
        elif [[ $quote == \" && $word == *[\"\$\`\\\!]* || $quote == \' && $word == *\'* ]]; then
            # The word cannot be quoted in this way.
            continue
        fi
        COMPREPLY+=("$word")
    done
}

complete -F _netwren netwren
