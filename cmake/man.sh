#!/usr/bin/env bash
# cmake/man.sh TEGULA - the manual page tegula.1 on standard output, made of what the command says of itself, so that it
# says nothing else. Run when the command is built.
set -euo pipefail
tegula=$1
version=$("$tegula" --version)

# roff_of PROGRAM: awk whose function `roff` makes text that is no request.
roff_of() {
    awk 'function roff(text) {
            gsub(/\\/, "\\e", text)
            gsub(/-/, "\\-", text)
            return text ~ /^[.\x27]/ ? "\\&" text : text
        }'"$1"
}

# tegula, what it is, how it is called, its commands.
front() {
    "$tegula" help | roff_of '
        NR == 1 { print ".SH NAME\n" roff($0) }
        /^usage: / { print ".SH SYNOPSIS\n.B " roff(substr($0, 8)) "\n.SH DESCRIPTION" }
        /^  [a-z]/ { name = $1; sub(/^ +[^ ]+ +/, ""); print ".TP\n.B " name "\n" roff($0); listed = 1; next }
        listed && /^$/ { print ".PP"; next }
        listed { print roff($0) }'
}

# What a command does, how it is called, its options, and more as it is.
section() {
    "$tegula" help "$1" | roff_of '
        NR == 1 { print ".SS " $1 " " $2; sub(/^[^ ]+ [^ ]+ - /, ""); print roff($0) }
        /^usage: / { print ".PP\n.B " roff(substr($0, 8)) }
        /^  --/ && !more {
            match($0, /^  --[a-z0-9-]+( [^ ]+)? +/)
            option = substr($0, 3, RLENGTH - 2); sub(/ +$/, "", option)
            print ".TP\n.B " roff(option) "\n" roff(substr($0, RLENGTH + 1))
            options = 1; next
        }
        options && !more && /^      +[^ ]/ { sub(/^ +/, ""); print roff($0); next } # what an option says, continued
        !options || /^$/ && !more { next }
        !more { print ".PP\n.nf"; more = 1 }
        { print roff($0) }
        END { if (more) print ".fi" }'
}

echo ".\\\" Made by cmake/man.sh of the help of $version."
echo ".TH TEGULA 1 \"\" \"$version\" \"User Commands\""
front
echo .SH COMMANDS
for name in $("$tegula" help | sed -n 's/^  \([a-z]*\) .*/\1/p'); do
    section "$name"
done
