#compdef tegula
# Completion of the command's words in zsh, installed as .../zsh/site-functions/_tegula.
@words@
_tegula() {
    local tegula=$words[1] all
    all=$(_tegula_candidates $((CURRENT - 1)) "$words[2]" "$words[CURRENT]" "$words[CURRENT-1]")
    [[ -n $all ]] && compadd -- ${(f)all} || _files
}
_tegula "$@"
