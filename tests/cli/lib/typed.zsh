# A zsh in a terminal of its own, whose completion is that of the files _PROGRAM here: "LINE" and TAB are typed, and
# what then stands on the line is printed. Usage: zsh -f typed.zsh LINE. Used by tests/cli/completion.sh.
zmodload zsh/zpty
zpty shell "TERM=dumb zsh -f -i"
zpty -w shell "fpath=($PWD \$fpath); autoload -Uz compinit; compinit -u -D; PS1=pro''mpt:" # the echo is no prompt
zpty -r -m shell text '*prompt:*' || exit 1
zpty -w -n shell "$1"$'\t\C-aecho "<\C-e>"\n'
zpty -r -m shell text '*[[:cntrl:]]<*>*' || exit 1
print -r -- $text
zpty -d shell
