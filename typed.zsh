zmodload zsh/zpty
zpty shell "TERM=dumb zsh -f -i"
zpty -w shell "PS1=; fpath=($PWD \$fpath); autoload -Uz compinit; compinit -u -D; echo rea''dy"
zpty -m -r shell text '*ready*'
zpty -w -n shell $'mxq --scales ten\t x\C-aecho "<\C-e>"\n'
zpty -r -m shell text '*<mxq*>*'
print -r -- $text
zpty -d shell
