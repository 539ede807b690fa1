#!/bin/sh
# Called by "make check" after everything was compiled, with the list of sources.
# Fails unless nothing is left open or assumed.
set -eu
fail() { echo "check: $1" >&2; exit 1; }

# 1. The sources, less their comments (which nest), hold no word that leaves something unproved.
open=$(for file in "$@" Assumptions.v; do
  awk -v file="$file" '
    { line = $0; code = ""
      while (line != "") {
        two = substr(line, 1, 2)
        if (two == "(*")               { depth++; line = substr(line, 3) }
        else if (two == "*)" && depth) { depth--; line = substr(line, 3) }
        else { if (!depth) code = code substr(line, 1, 1); line = substr(line, 2) }
      }
      if (code ~ /(^|[^A-Za-z_])(Admitted|Axioms?|Parameters?|Conjectures?)([^A-Za-z_]|$)/ ||
          code ~ /(^|[^A-Za-z_])(admit|give_up) *([.;|)\]]|$)/)   # the tactics; "admit" is also a function
        print file ":" FNR ": " $0
    }' "$file"
done)
[ -z "$open" ] || fail "left open:
$open"

# 2. Every theorem is listed in Assumptions.v, proves the statement it is named after, and Coq says that it is closed.
./theorems.sh --coq "$@" > assumptions.out.tmp
diff Assumptions.v assumptions.out.tmp >&2 || {
  rm -f assumptions.out.tmp
  fail "Assumptions.v (<) is not what the theorems ask for (>): run make assumptions"
}
rm -f assumptions.out.tmp
listed=$(sed -n 's/^Print Assumptions \(.*\)\.$/\1/p' Assumptions.v)
number=$(echo "$listed" | wc -l)
closed=$(grep -c '^Closed under the global context$' assumptions.out || true)
lines=$(grep -c . assumptions.out || true)
[ "$number" = "$closed" ] && [ "$number" = "$lines" ] || {
  grep -v '^Closed under the global context$' assumptions.out >&2 || true
  fail "$number theorems, $closed closed"
}

# 3. The independent checker reads all compiled files again, with all that they rest on (the standard library
#    included), and finds no axiom.
modules=$(for file in "$@"; do echo "Justitia.${file%.v}" | tr / .; done)
# shellcheck disable=SC2046,SC2086
coqchk -silent -o $(cat _CoqProject) $modules > coqchk.out 2>&1 || { tail -20 coqchk.out >&2; fail "coqchk"; }
for what in 'Axioms' 'Constants/Inductives relying on type-in-type' \
  'Constants/Inductives relying on unsafe (co)fixpoints' 'Inductives whose positivity is assumed'; do
  grep -qxF "* $what: <none>" coqchk.out || { cat coqchk.out >&2; fail "coqchk: $what"; }
done

echo "$# files, $number theorems, no axioms"
