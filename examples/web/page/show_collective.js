// show_collective.js - a collective on a picture of its network.
// SPDX-License-Identifier: MIT
'use strict';

// The picture has a style of its own, which stays inside.
function picture(svg) {
    const frame = make('div', { class: 'picture' }),
        inside = frame.attachShadow({ mode: 'open' });
    const parsed = new DOMParser().parseFromString(svg, 'image/svg+xml').documentElement;
    parsed.querySelector('.paper')?.remove();
    inside.append(document.importNode(parsed, true));
    return make('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'the network' }, frame);
}

web.show_collective = answer => {
    const range = c => `${web.seconds(c.low_s)} to ${web.seconds(c.high_s)}`;
    const columns = [
        { head: 'algorithm', cell: c => web.words(c.algorithm) },
        { head: 'steps', class: 'r', cell: c => String(c.steps) },
        { head: 'ideal', class: 'r', cell: c => web.seconds(c.ideal_s) },
        { head: 'expected', class: 'main r', cell: c => web.seconds(c.expected_s) },
        { head: 'range', class: 'r', cell: range },
        { head: 'bus bandwidth, ideal', class: 'r', cell: c => web.amount(c.bus_bytes_per_s, 'B/s') },
        { head: 'what limits it', cell: c => c.bottleneck },
    ];
    const sum =
        answer.sum === undefined
            ? answer.no_sum
                ? make('p', { class: 'sub' }, `No sum: ${answer.no_sum}.`)
                : null
            : make(
                  'p',
                  {},
                  'Added in this order, rounded at every hop, the values give ',
                  make('b', {}, answer.sum),
                  '; their exact sum is ',
                  make('b', {}, answer.exact_sum),
                  '.',
              );
    return [
        web.facts([
            ['expected', web.seconds(answer.expected_s), range(answer)],
            ['ideal', web.seconds(answer.ideal_s), 'at documented rates'],
            ['nothing is faster than', web.seconds(answer.bound_s), 'the bound'],
            ['algorithm', web.words(answer.algorithm), `${answer.steps} steps, ${answer.ranks} ranks`],
        ]),
        sum,
        answer.svg ? picture(answer.svg) : null,
        answer.drawn
            ? null
            : make(
                  'p',
                  { class: 'sub' },
                  `Of ${answer.chips} chips the picture has no loads: each link would ` + 'be a dot.',
              ),
        answer.candidates.length ? web.table('what auto chooses among', columns, answer.candidates) : null,
        make(
            'p',
            { class: 'sub' },
            'All times are results of a model, never measurements. The picture shows what all steps ' +
                'together send over each link, at the end it leaves from.',
        ),
    ];
};
