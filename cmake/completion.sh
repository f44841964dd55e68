# What may be typed, asked of the command itself: of what `tegula help` lists, the options of the command that is being typed,
# the values that their help names, and the variants. "$tegula" is the command.

_tegula_commands() {
    "$tegula" help 2>/dev/null | sed -nE 's/^  ([a-z]+) .*/\1/p'
}

_tegula_values() { # COMMAND OPTION: the values that its help names: a|b, ": a, b or c", targets; not N, a number
    "$tegula" help "$1" 2>/dev/null | awk -v option="$2" '
        $1 != option { next }
        $2 ~ /[|]/ { gsub(/[|]/, "\n", $2); print $2 }
        /: [a-z0-9]+, .* or / { sub(/.*: /, ""); gsub(/, | or /, "\n"); print }
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

_tegula_candidates() { # PLACE COMMAND WORD BEFORE: of a line in which WORD, the PLACE-th behind tegula, is being typed
    local found
    if (($1 == 1)); then
        _tegula_commands
    elif [[ $3 == -* ]]; then
        _tegula_options "$2"
    elif [[ $4 == --* ]] && found=$(_tegula_values "$2" "$4") && [[ -n $found ]]; then
        echo "$found"
    elif [[ $4 != -* ]]; then
        _tegula_arguments "$2"
    fi
}
