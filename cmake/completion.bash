# Completion of the command's words in bash, installed as .../bash-completion/completions/tegula.
@words@
_tegula() {
    local tegula=$1
    mapfile -t COMPREPLY < <(compgen -W "$(_tegula_candidates "$COMP_CWORD" "${COMP_WORDS[1]}" "$2" "$3")" -- "$2")
}
complete -o default -F _tegula tegula
