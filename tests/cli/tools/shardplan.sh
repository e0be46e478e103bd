# What the tests of all tools ask of shardplan. Read by lib/tools.sh; each function is what the test of its name asks.

reads='--topology --calibration --calibrate --chakra-groups' # options that name what is read

collisions() {
    cp "$root/examples/tools/shardplan/models/llama-3-70b.json" in/model.json && add in/model.json
    collide shardplan in/model.json in/model.json
    collide shardplan in/model.json in/model.json --sweep batch=64,128
    unheard shardplan in/model.json
    unheard shardplan --assumptions
    unheard shardplan in/model.json --sweep batch=64
    unheard shardplan in/model.json --chips 4 --tornado --csv -
}

memory() {
    starve "p.csv p.json p.html t.json" shardplan "$models/llama-3-8b.json" --tp 8 --top 1 --csv p.csv --json p.json \
        --html p.html --trace t.json
    starve "s.csv s.html" shardplan "$models/llama-3-8b.json" --chips 4 --sweep link_rate=1,2 --csv s.csv --html s.html
    starve "" shardplan "$models/llama-3-8b.json" --chips 2 --tp 2 --job decode --chakra traces
    python3 - "$root/tests/cli/lib" <<'END'
import sys
sys.path.insert(0, sys.argv[1])
from chakra_bytes import COLLECTIVE, RECEIVE, SEND, WORK, node, write
write('trace', [[node(1, WORK, micros=1), node(2, COLLECTIVE, 'x', (1,), comm_type=0, comm_size=8, pg_name='1'),
                 node(3, SEND if r else RECEIVE, 'x', (2,), comm_src=1, comm_dst=0, comm_size=8)] for r in range(2)])
END
    echo '{"1": [0, 1]}' >groups.json
    starve "c.csv" shardplan --chakra-in "$here/trace" --chakra-groups "$here/groups.json" --csv c.csv
    starve "t.json t.html" shardplan "$models/llama-3-8b.json" --chips 4 --tornado --json t.json --html t.html
}

pages() {
    small=$models/llama-3-8b.json
    decode="--system trn2.48xlarge --job decode --batch 64"
    make plan.html "the ways to spread Llama 3 8B over a Trn2 server, and how the time scales" \
        shardplan "$small" --html plan.html --scaling
    make cluster.html "the best way on an UltraServer: which chips form a group, and why it wins" \
        shardplan "$small" --system trn2-ultraserver --batch 4096 --html cluster.html --why
    make recommender.html "a recommender: which tables lie where" \
        shardplan "$models/dlrm.json" --html recommender.html --why --scaling
    # shellcheck disable=SC2086
    make tornado.html "which fact of the machine moves the time of a token most" \
        shardplan "$small" $decode --tornado --html tornado.html
    # shellcheck disable=SC2086
    make sweep.html "the time of a token while the memory gets faster" \
        shardplan "$small" $decode --sweep hbm_rate=0.5:2:5 --html sweep.html
}
