#!/bin/sh
# The colours of all pages, by numbers; and every HTML report and every picture, made from small inputs, opened in a
# headless Chromium at 400 and at 1280 pixels, light and dark: nothing overlaps, is cut off, leaves its picture, is too
# small or too faint to read, or scrolls unseen; nor is anything cut off on paper.
# Usage: tests/cli/pages.sh DIRECTORY-OF-PROGRAMS, from tests/.
set -u
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
models=$(CDPATH= cd -- "$here/../../examples/shardplan/models" && pwd)
programs=$(CDPATH= cd -- "$1" && pwd)
program=$programs/pages
. "$here/lib/program.sh"

python3 "$here/lib/check_colours.py" "$here/../../examples/app/colours.c" || fail "colours"

browser=
for candidate in chromium chromium-browser google-chrome; do
    [ -n "$browser" ] || browser=$(command -v $candidate)
done
if [ -z "$browser" ]; then
    case " ${TRN_EXPECT_SKIPS:-} " in
    *" chromium "*)
        echo "SKIP chromium: there is no browser here (expected)"
        exit $failed
        ;;
    esac
    echo "FAILED: there is no browser here (Debian: chromium); if that is so on purpose, put chromium into" \
        "TRN_EXPECT_SKIPS"
    exit 1
fi

# make FILE PROGRAM ARGUMENTS...: the program, if it was built, writes that file.
files=
make() {
    file=$1
    tool=$2
    shift 2
    [ -x "$programs/$tool" ] || { echo "SKIP $file: $tool was not built"; return; }
    "$programs/$tool" "$@" >out 2>err
    status=$?
    [ $status = "${expected:-0}" ] || fail "$tool $*: exit $status: $(cat err)"
    [ -s "$file" ] || { fail "$tool $*: there is no $file"; return; }
    files="$files $file"
}

# Two files of ones and of something else: matrices, a vector, and some that are equal.
python3 - <<'END' || fail "python3 cannot write the arrays"
import struct
def npy(name, rows, columns, value):
    shape = f"{rows}, {columns}" if columns else f"{rows},"
    head = "{'descr': '<f4', 'fortran_order': False, 'shape': (%s), }" % shape
    head += " " * (-(len(head) + 11) % 64) + "\n"
    flat = [value(i // (columns or 1), i % (columns or 1)) for i in range(rows * (columns or 1))]
    with open(name, "wb") as out:
        out.write(b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head.encode())
        out.write(struct.pack(f"<{len(flat)}f", *flat))
def noise(r, c): return ((r * 7919 + c * 104729) % 1009 - 504) / 64 * 2.0 ** ((r + c) % 13 - 6)
def bent(r, c):
    if (r, c) == (100, 300): return float("nan")
    return noise(r, c) * (1 + 2.0 ** -23 * ((r * c) % 5 if c > 200 else 0) + (2.0 ** -12 if r % 64 == 9 else 0))
npy("a.npy", 300, 700, noise)
npy("b.npy", 300, 700, bent)
npy("c.npy", 40, 0, noise)
npy("d.npy", 40, 0, lambda r, c: noise(r, c) * (1 + 2.0 ** -20 * (r % 3)))
END

small=$models/llama-3-8b.json
decode="--system trn2.48xlarge --job decode --batch 64"
make matmul.html trnbench matmul --no-host --model mixtral-8x7b --report matmul.html
make host.html trnbench matmul --shape 256x192x320 --all --format all --seconds 0.02 --report host.html
make activation.html trnbench activation --check --between 0 --format f32 --report activation.html
make convert.html trnbench convert --quick --report convert.html
make conformance.html conformance --only cost.chip --html conformance.html
make mxq.html mxq --uniform 65536 --report mxq.html
for plot in bars histogram crest sigma; do make mxq_$plot.svg mxq --uniform 65536 --svg mxq_$plot.svg --plot $plot; done
expected=1 # a NaN
make ulpdiff.html ulpdiff a.npy b.npy --html ulpdiff.html
expected=0
make vector.html ulpdiff c.npy d.npy --html vector.html
make sums.html srlab sums --html sums.html --svg sums.svg
make sums.svg srlab sums --svg sums.svg
make mlp.html srlab mlp --arms f32,bf16-rne,bf16-sr,bf16-kahan --steps 300 --html mlp.html
make sweep.svg srlab logistic --arms f32,bf16-sr --steps 100 --sweep-lr 1e-4,1e-2 --svg sweep.svg
make plan.html shardplan "$small" --html plan.html --scaling
make cluster.html shardplan "$small" --system trn2-ultraserver --batch 4096 --html cluster.html --why
make recommender.html shardplan "$models/dlrm.json" --html recommender.html --why --scaling
# shellcheck disable=SC2086
make tornado.html shardplan "$small" $decode --tornado --html tornado.html
# shellcheck disable=SC2086
make sweep.html shardplan "$small" $decode --sweep hbm_rate=0.5:2:5 --html sweep.html
cat >tiny.json <<'END'
{ "model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 5, "num_attention_heads": 4,
  "num_key_value_heads": 2, "vocab_size": 96, "max_position_embeddings": 64, "torch_dtype": "bfloat16" }
END
seq 1 48 >tiny.ids
make modelrun.html modelrun --random tiny.json --tokens tiny.ids --context 16 --html modelrun.html
for kernel in flash_attention softmax; do
    make $kernel.svg kernels/run $kernel --generation trn2 --svg $kernel.svg
done

# shellcheck disable=SC2086
python3 "$here/lib/pages.py" "$browser" $files || fail "pages"
[ -z "${KEEP:-}" ] || cp $files "$KEEP" # to look at them
exit $failed
