# cmake/completion.bash - completion of the command's words in bash, installed as .../bash-completion/completions/tegula.
# It asks the command itself: for what `tegula help` lists, the options of the command that is being typed, the values
# that their help names, and the variants.

_tegula_values() { # COMMAND OPTION: the values that its help names: a|b, ": a, b or c", targets; not N, a number
    "$tegula" help "$1" 2>/dev/null | awk -v option="$2" '
        $1 != option { next }
        $2 ~ /[|]/ { gsub(/[|]/, "\n", $2); print $2 }
        /: [a-z0-9]+, .* or / { sub(/.*: /, ""); gsub(/,| or /, "\n"); print }
        { while (match($0, /sm_[0-9]+a?/)) { print substr($0, RSTART, RLENGTH); $0 = substr($0, RSTART + RLENGTH) } }' |
        grep -vx N
}

_tegula_options() { # COMMAND
    "$tegula" help "$1" 2>/dev/null | sed -nE 's/^  (--[a-z0-9-]+) .*/\1/p'
}

_tegula_arguments() { # COMMAND: its variants, if it takes any; files complete themselves
    "$tegula" help "$1" 2>/dev/null | grep -q '^usage: .*VARIANT' &&
        "$tegula" variants 2>/dev/null | sed -nE 's/^([a-z][a-z0-9-]*)($| \(.*|:.*)/\1/p'
}

_tegula() {
    local tegula=$1 word=$2 before=$3 command=${COMP_WORDS[1]} words
    if ((COMP_CWORD == 1)); then
        words=$("$tegula" help 2>/dev/null | sed -nE 's/^  ([a-z]+) .*/\1/p')
    elif [[ $word == -* ]]; then
        words=$(_tegula_options "$command")
    elif [[ $before == --* ]] && words=$(_tegula_values "$command" "$before") && [[ $words ]]; then
        :
    elif [[ $before != -* ]]; then
        words=$(_tegula_arguments "$command")
    fi
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}
complete -o default -F _tegula tegula
