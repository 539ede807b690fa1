#!/bin/sh
# Prints the theorems that the development claims, one a line: qualified name, then file. They are the
# "..._holds" of any file and every Theorem of examples/.
# With --coq: the text of Assumptions.v, which also says of each "X_holds" that it proves X.
set -eu
form=list
if [ "$1" = --coq ]; then form=coq; shift; fi

list() {
  awk '
    FNR == 1              { split(FILENAME, part, "/"); file = part[2]; sub(/\.v$/, "", file); path = file "." }
    /^Module [A-Za-z]/    { name = $2; sub(/\..*/, "", name); path = path name "." }
    /^End [A-Za-z]/       { name = $2; sub(/\..*/, "", name); sub("[.]" name "[.]$", ".", path) }
    /^ *(Theorem|Lemma|Corollary) / {
                            name = $2; sub(/[:(].*/, "", name)
                            if (FILENAME ~ /^examples/ ? $1 == "Theorem" : name ~ /_holds$/)
                              printf "%-50s %s\n", path name, FILENAME }
  ' "$@"
}

if [ $form = list ]; then list "$@"; exit; fi

cat <<'EOT'
(** * What the theorems rest on

    Each line must print "Closed under the global context": no axiom, nothing left open. Written by
    "make assumptions"; "make check" fails when a theorem is missing. *)
EOT
for file in "$@"; do
  case $file in statements/*) basename "$file" .v;; esac
done | sort | xargs echo From Justitia Require Import | sed 's/$/./'
list "$@" | awk '
  { file = $2; sub(/.*\//, "", file); sub(/\.v$/, "", file)
    if (file != last) { printf "\nFrom Justitia Require %s.\n", file; last = file }
    print "Print Assumptions " $1 "."
    if ($1 ~ /_holds$/) {
      statement = $1; sub(/.*[.]/, "", statement); sub(/_holds$/, "", statement)
      printf "Definition checked_%s : %s := %s.\n", statement, statement, $1
    } }'
