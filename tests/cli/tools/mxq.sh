# What the tests of all tools ask of mxq. Read by lib/tools.sh; each function is what the test of its name asks.

collisions() {
    collide mxq "in/a.npy in/b.npy" in/a.npy in/b.npy
    unheard mxq in/a.npy
    unheard mxq --list
    unheard mxq --theory
}

memory() {
    starve "y.json y.html y.svg y.csv" mxq --gaussian 64 --format mxint8 --json y.json --report y.html --svg y.svg \
        --csv y.csv
    starve "y.csv" mxq "$data/a_f4.npy" --format mxfp4 --csv y.csv
}

pages() {
    make mxq.html "what MX formats lose of numbers that are spread evenly" mxq --uniform 65536 --report mxq.html
    for plot in bars histogram crest sigma; do
        make mxq_$plot.svg "MX formats, the picture alone: $plot" mxq --uniform 65536 --svg mxq_$plot.svg --plot $plot
    done
}
