#!/bin/sh
# trnbench collective as a user meets it: sizes, groups, rules, tables, files, exit codes.
# Usage: tests/cli/collective.sh DIRECTORY-OF-PROGRAMS, from tests/.
set -u
topologies=$(CDPATH= cd -- "$(dirname -- "$0")/../../examples/topologies" && pwd) || exit 1
# shellcheck disable=SC2034
program=$1/trnbench
. "$(dirname -- "$0")/lib/program.sh"

# plain FILE: a CSV whose fields have no commas, for awk
plain() { sed 's/"[^"]*"/quoted/g' "$1"; }

# one FIELD FILE: the values of that column of a CSV, one a line
one() {
    plain "$2" | awk -F, -v name="$1" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) c = i } NR > 1 { print $c }'
}

# ---- usage ----

refuses "--frob is not an option of trnbench collective; trnbench collective --help lists them" collective --frob
refuses "--op sum: no such operation; there are all_gather, reduce_scatter, all_reduce, all_to_all, broadcast, \
permute, send_recv and all" \
    collective --op sum
refuses "sum: no such operation; there are all_gather, reduce_scatter, all_reduce, all_to_all, broadcast, permute, \
send_recv and all" \
    collective sum
refuses "--system trn9: no such system; trnbench spec lists them, and there is all" collective --system trn9
refuses "--algorithm tree: no such algorithm; there are auto, all, ring, bidirectional, multi_ring, dimension_wise, \
rdh, mesh, kangaring, switch_direct and hierarchical" \
    collective --algorithm tree
refuses "--wire e8m0: collectives do not carry it" collective --wire e8m0
refuses "--wire fp8: 'fp8' may be float8_e4m3, which ends at 240 (Trainium's), or float8_e4m3fn, which ends at 448 \
(OCP's), float8_e5m2, float8_e3m4 or cfp8" collective --wire fp8
refuses "--preset best: expected sa, doc or spec, and perhaps /planes=2 or /planes=4 after it" collective --preset best
for size in 0 -1 8Q K 1.5K 2PB 1025T "" 8KBB 8Kii; do
    refuses "-b $size: expected bytes, such as 64, 8KB, 8KiB or 1M, from 1 to 1PiB; K, M, G and T are powers of 1024" \
        collective -b "$size"
done
refuses "-f 1: expected a whole number from 2 to 1048576" collective -f 1
refuses "--minbytes 2048 is more than --maxbytes 1024" collective -b 2K -e 1K
refuses "--ranks excludes --chips and --groups, which say it themselves" collective -r 4 --chips 0-3
refuses "trn2.48xlarge has 4 ranks on each chip, and 6 is no multiple of that (--ranks-per-chip changes it)" \
    collective -r 6
refuses "trn2.48xlarge has 16 chips of 4 ranks, which are fewer than 128" collective -r 128
refuses "--json /nonexistent/x.json: it cannot be created (No such file or directory)" \
    collective --json /nonexistent/x.json

for words in "--help" "--version" "--schema"; do
    works collective $words
    [ -s out ] || fail "trnbench collective $words prints nothing"
    [ ! -s err ] || fail "trnbench collective $words writes to standard error"
done

# ---- groups ----

such="expected the number of a chip, such as 0-3,12-15, but"
refuses "--chips : $such the text ends" collective --chips ""
refuses "--chips 0-3,: $such the text ends" collective --chips 0-3,
refuses "--chips 0,x: $such character 3 is 'x'" collective --chips 0,x
refuses "--chips -3: $such character 1 is '-'" collective --chips -3
refuses "--chips 0-3.5: expected ',' or ';' or '-', such as 0-3,12-15, but character 4 is '.'" collective --chips 0-3.5
refuses "--chips 0-12:0: a step must be 1 or more" collective --chips 0-12:0
refuses "--chips 9999999999: a number is larger than 999999999" collective --chips 9999999999
refuses "--chips 0-99999999: more than 1048576 chips" collective --chips 0-99999999
refuses "--chips 0-3;4-7: one list is expected here; --groups takes several" collective --chips "0-3;4-7"
refuses "--groups 0-3;4-8: group 1 has 5 chips and group 0 has 4: all must be of the same size" \
    collective --groups "0-3;4-8"
refuses "chips[4] = 99, but trn2.48xlarge has chips 0 to 15" collective --chips 0-3,99
refuses "chip 3 is in the groups twice (chips[4])" collective --groups "0-3;3-6"

# --rules: a sentence and 2; without it the same group is costed
refuses "trn2.48xlarge: 32 ranks on 8 chips must be rows {0, 3} or {1, 2} of the torus (chips 0-3 and 12-15, or 4-11), \
so that those who hold the same shard are neighbours" \
    collective --rules --chips 0-7
refuses "trn1.32xlarge: a replica group of 12 ranks; Trainium1 with 2 ranks per chip takes 1, 2, 8, 16 or a multiple \
of 32" \
    collective --rules --system trn1.32xlarge -r 12
works collective --chips 0-7 -e 1K
works collective --rules --groups "0-3,12-15;4-11" -b 64MB -e 64MB --csv groups.csv
[ "$(one ranks groups.csv) $(one groups groups.csv) $(one size_b groups.csv)" = "32 2 67108864" ] ||
    fail "--groups: $(cat groups.csv)"
grep -q ',"0-3,12-15;4-11",' groups.csv || fail "--groups: the group is not in the CSV"
works collective --rules --chips 0-12:4 -e 1K --csv column.csv
grep -q ',0-12:4,' column.csv || fail "--chips 0-12:4: $(cat column.csv)"

# an algorithm that does not fit: a sentence and 2; among all of them a row without numbers
refuses "switch_direct needs one switch that all chips of the group share; trn2.48xlarge has none for these 16 chips" \
    collective --algorithm switch_direct
works collective --algorithm all -b 1M -e 1M --csv algorithms.csv
grep -q '^  not here: switch_direct needs one switch' out || fail "--algorithm all does not say what is not here"
[ "$(one algorithm algorithms.csv | sort -u | wc -l)" -eq 9 ] || fail "--algorithm all: not nine algorithms"
[ "$(one auto algorithms.csv | grep -c 1)" -eq 1 ] || fail "--algorithm all: not one choice: $(one auto algorithms.csv)"
[ "$(one time_us algorithms.csv | grep -c .)" -eq 8 ] || fail "--algorithm all: not eight times"

# ---- networks from files, and what is broken ----

refuses "--topology nowhere.txt: it cannot be opened (No such file or directory)" collective --topology nowhere.txt
printf 'name = six\n[level x]\nsize = 6\nwiring = ring\nrate = fast\n' >six.txt
refuses "--topology six.txt: line 5: rate = fast: expected a rate in GB/s, such as 128 (0, or 1e-09 to 1e+09)" \
    collective --topology six.txt
printf 'name = six\n[level x]\nsize = 6\nwiring = ring\nrate = 100 # GB/s\nlatency = 1 # us\n' >six.txt
refuses "--topology excludes --system: one network at a time" collective --topology six.txt --system trn2.48xlarge
refuses "--topology six.txt: one network at a time" collective --topology six.txt --topology six.txt
works collective sendrecv --topology six.txt -b 1000000 -e 1000000 --chips 0-2 --csv six.csv
head -n 1 out | grep -q '^six  send_recv  3 ranks: 3 chips x 1  chips 0-2  from a file$' ||
    fail "the title is: $(head -n 1 out)"
[ "$(one system six.csv) $(one preset six.csv)" = "six file" ] || fail "a file: $(cat six.csv)"
works collective sendrecv --topology six.txt -b 1000000 -e 1000000 --chips 0-2 --down "link 1->2" --slow "chip 4 0.5" \
    --csv six.csv
grep -q '  with down link 1->2, slow chip 4 0.5  from a file$' out || fail "faults are not in the title"
one time_us six.csv | awk '{ exit !($1 > 23.999 && $1 < 24.001) }' || fail "the detour takes $(one time_us six.csv)"
refuses "all_reduce is impossible: chip 5 is down, and it is one of all chips of trn2.48xlarge" \
    collective --down "chip 5"
works collective --down "chip 5" --chips 0-3 -e 1K
refuses '--slow "chip 5": "chip 5" does not end with the share that is left, from 0.000001 to 1, such as 0.5' \
    collective --slow "chip 5"
refuses '--down "link 0->9": no link goes straight from chip 0 to chip 9 of trn2.48xlarge' collective --down "link 0->9"

# A graph, link by link: three rings of DGX-1, both ways, with 25 GB/s each; the values are right whatever the way.
works collective allr --topology "$topologies/dgx-1-v100.txt" --uncalibrated -b 1G -e 1G --csv dgx.csv
[ "$(one algorithm dgx.csv)" = multi_ring ] || fail "a graph's rings: $(cat dgx.csv)"
case $(one busbw_gb_per_s dgx.csv) in 149.*) ;; *) fail "six links of 25 GB/s: $(cat dgx.csv)" ;; esac
works collective allr --topology "$topologies/groups-4-6.txt" --algorithm all -b 4K -e 4K --check --csv check.csv
[ "$(one wrong check.csv | sort -u | tr -d '\n')" = 0 ] || fail "values on a graph: $(cat check.csv)"
sed 's/^link = 3-7$/link = 3-8/' "$topologies/dgx-1-v100.txt" >wrong.txt
refuses "--topology wrong.txt: line 22: link 3-8: level gpu has no 8, only 0 to 7" collective --topology wrong.txt

works collective --topology "$topologies/trn2-ultraserver.txt" --op all -b 1K -e 1G --csv file.csv
works collective --system trn2-ultraserver --op all -b 1K -e 1G --csv preset.csv
sed 's/^trn2-ultraserver,file,/trn2-ultraserver,sa,/' file.csv | cmp -s - preset.csv ||
    fail "a preset's file, other times"

# ---- the shape of the outputs ----

# sizes as nccom-test reads them: 1kb is 1024
works collective -r 32 --minbytes 1kb --maxbytes 1mb --stepfactor 8 -d fp32 --csv sizes.csv allg
[ "$(one size_b sizes.csv | tr '\n' ' ')" = "1024 8192 65536 524288 " ] || fail "sizes: $(one size_b sizes.csv)"
[ "$(one count sizes.csv | tr '\n' ' ')" = "256 2048 16384 131072 " ] || fail "counts: $(one count sizes.csv)"
head -n 2 out | tail -n 1 | grep -q 'size(B)  count(elems)  type  *bound(us)  *ideal(us)  *expected(us)  *from  *to ' ||
    fail "the heading is: $(head -n 2 out)"
head -n 1 out | grep -q '^trn2.48xlarge  all_gather  32 ranks: 8 chips x 4  chips 0-7$' ||
    fail "the title is: $(head -n 1 out)"
works collective -b 3 -e 3 --csv odd.csv
[ "$(one size_b odd.csv)" = 4 ] || fail "3 bytes are not rounded up to whole elements"

# algbw is size over time, busbw its factor, both in the unit of the heading
works collective --op all_reduce --op all_gather --op broadcast -b 64M -e 64M --csv gb.csv
awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i; next }
    function off(a, b) { return a < b * 0.99999 || a > b * 1.00001 }
    { factor = $c["op"] == "broadcast" ? 1 : 63 / 64 * ($c["op"] == "all_reduce" ? 2 : 1)
      if (off($c["algbw_gb_per_s"], $c["size_b"] / $c["time_us"] / 1e3) ||
          off($c["busbw_gb_per_s"], $c["algbw_gb_per_s"] * factor)) exit 1
      if (off($c["expected_busbw_gb_per_s"] * $c["expected_us"], $c["busbw_gb_per_s"] * $c["time_us"])) exit 1
      if ($c["expected_low_us"] < $c["time_us"] || $c["expected_us"] < $c["expected_low_us"] ||
          $c["expected_high_us"] < $c["expected_us"]) exit 1
      if ($c["time_us"] < $c["bound_us"] || $c["source"] != "model" || $c["ranks"] != 64) exit 1; n++ }
    END { exit n != 3 }' gb.csv || fail "bandwidths: $(cat gb.csv)"
works collective -b 64M -e 64M --gib --csv gib.csv
grep -q 'ideal algbw(GiB/s)  ideal busbw(GiB/s)' out || fail "--gib: the heading does not say it"
awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i; next }
    { r = $c["size_b"] / $c["time_us"] * 1e6 / 1073741824 / $c["algbw_gib_per_s"]
      if (r < 0.99999 || r > 1.00001) exit 1 }' gib.csv || fail "--gib: $(cat gib.csv)"

# one rank has nothing to send
works collective -r 1 --op all -b 64M -e 64M --csv alone.csv
[ "$(one time_us alone.csv | sort -u)" = 0 ] || fail "one rank: $(one time_us alone.csv)"

# all systems, all operations, 400,000 chips among them
works collective --system all --op all -b 1M -e 1M --csv all.csv --json all.json
awk -F, 'NR == 1 { n = NF; for (i = 1; i <= NF; i++) c[$i] = i; next }
    NF != n || $c["time_us"] <= 0 || $c["time_us"] < $c["bound_us"] { exit 1 }
    END { exit NR != 71 }' all.csv || fail "all systems: $(wc -l all.csv)"
for system in trn1.2xlarge trn1.32xlarge trn1n.32xlarge trn2.48xlarge trn2u.48xlarge trn2-ultraserver \
    trn3-gen1-ultraserver trn3-gen2-ultraserver trn1-ultracluster project-rainier; do
    grep -q "^$system  all_reduce  " out || fail "no table for $system"
done
grep -q '^project-rainier  all_reduce  1,600,000 ranks: 400,000 chips x 4$' out || fail "no table for 400,000 chips"
if command -v python3 >/dev/null 2>&1; then
    python3 -c 'import json, sys
j = json.load(open("all.json"))
sys.exit(j["schema"] != "trnbench.collective" or j["bandwidth_unit"] != "GB/s" or len(j["results"]) != 70
         or len(j["calibration"]) < 3
         or any(r["time_us"] is None or r["checked"] is not None or r["source"] != "model" for r in j["results"]))' ||
             fail "the JSON is not what it should be"
else
    echo "skipped: parsing all.json with python3, which is not installed"
fi
works collective --csv - && head -n 1 out | grep -q '^system,preset,op,' || fail "--csv - mixes text into the CSV"
works collective --json - && [ "$(head -c 1 out)" = "{" ] || fail "--json - mixes text into the JSON"
works collective --system trn2-ultraserver --op all --csv once.csv
works collective --system trn2-ultraserver --op all --csv twice.csv
cmp -s once.csv twice.csv || fail "two runs differ"

# a system that is too small is said to be, and does not spoil the others
works collective --system trn1.2xlarge --system trn1.32xlarge -r 32 -b 1M -e 1M --csv small.csv
grep -q '^  not here: trn1.2xlarge has 1 chips of 2 ranks, which are fewer than 32$' out || fail "too small: $(cat out)"
[ "$(one time_us small.csv | grep -c .)" -eq 1 ] || fail "too small: $(cat small.csv)"

# presets of Trainium3 differ, and are named
for preset in sa doc spec sa/planes=2; do
    works collective --system trn3-gen1-ultraserver --preset $preset -b 64M -e 64M --csv preset.csv
    grep -q "links as in $preset\$" out || fail "--preset $preset is not in the title"
    one time_us preset.csv >>presets
done
[ "$(sort -u presets | wc -l)" -ge 2 ] || fail "presets give the same times: $(cat presets)"
works collective --uncalibrated -b 16M -e 16M --csv bare.csv
works collective -b 16M -e 16M --csv calibrated.csv
[ "$(one calibrated bare.csv) $(one calibrated calibrated.csv)" = "0 1" ] ||
    fail "calibrated: $(cat bare.csv calibrated.csv)"
[ "$(one time_us bare.csv)" != "$(one time_us calibrated.csv)" ] || fail "--uncalibrated changes nothing"

# ---- values ----

# check ARGUMENTS...: all values are compared, none is wrong
check() {
    works collective --check --csv check.csv "$@"
    plain check.csv | awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i; next }
        $c["time_us"] == "" { next } $c["checked"] < 1 || $c["wrong"] != 0 { print; bad = 1 }
        { n++ } END { exit bad || n < 1 }' >bad ||
        fail "--check $*: $(cat bad)"
}
for wire in bf16 f32 e4m3 int8; do check --op all --algorithm all -b 1000 -e 1000 --wire $wire; done
check --system all --op all -b 200 -e 200 --seed 7
check --groups "0-3,12-15;4-11" --op all --algorithm all -b 1001 -e 1001 -d e5m2
check --system trn3-gen2-ultraserver --chips 0-71:4,72-143:4 --op all --algorithm ring -b 700 -e 700
check --system trn1.32xlarge --chips 5,3,9 --op all --algorithm all -b 90 -e 90
works collective --check -b 64M -e 64M --csv large.csv
[ -z "$(one checked large.csv)" ] || fail "64 MB are said to be checked"

[ $failed = 0 ] && echo "collective: all as it should be"
exit $failed
