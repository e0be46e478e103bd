// show_plan.js - the ways to spread a model over a system.
// SPDX-License-Identifier: MIT
'use strict';

const axes = ['tp', 'cp', 'ep', 'dp', 'pp'];
const degrees = plan =>
    (axes
        .filter(axis => plan[axis] > 1)
        .map(axis => `${axis} ${plan[axis]}`)
        .join(' × ') || 'one chip') + (plan.order ? `, ${plan.order}` : '');

// The parts of a step as one bar.
function parts_bar(plan) {
    const total = plan.parts.reduce((sum, part) => sum + part.s, 0);
    const list = [...plan.parts].sort((a, b) => b.s - a.s);
    return make(
        'figure',
        {},
        make('figcaption', {}, 'Where the time of the best plan goes'),
        make(
            'div',
            { class: 'stack', 'aria-hidden': 'true' },
            list.map((part, i) => make('span', { class: `part p${i % 6}`, style: `flex-grow:${part.s / total}` })),
        ),
        make(
            'ul',
            { class: 'legend' },
            list.map((part, i) =>
                make('li', {}, make('i', { class: `p${i % 6}` }), `${part.part}: ${web.seconds(part.s)}`),
            ),
        ),
    );
}

web.show_plan = answer => {
    const best = answer.plans[0];
    const time = plan => (plan.legal ? web.seconds(plan.expected_s) : '');
    const columns = [
        { head: 'plan', cell: degrees },
        { head: 'expected', class: 'main r', cell: time },
        {
            head: 'range',
            class: 'r',
            cell: p => (p.legal ? `${web.seconds(p.low_s)} to ${web.seconds(p.high_s)}` : ''),
        },
        { head: 'ideal', class: 'r', cell: p => (p.legal ? web.seconds(p.ideal_s) : '') },
        { head: 'tokens/s', class: 'r', cell: p => (p.legal ? web.amount(p.tokens_per_s, '') : '') },
        { head: 'HBM', class: 'r', cell: p => (p.legal ? web.percent(p.memory_bytes / answer.hbm_bytes) : '') },
        { head: 'largest part', cell: p => (p.legal ? p.bottleneck : make('span', { class: 'warn' }, p.why)) },
    ];
    const size = ['layers', 'hidden', 'heads', 'kv_heads']
        .filter(name => answer[name])
        .map(name => `${answer[name]} ${web.words(name)}`)
        .join(', ');
    const reasons = answer.reasons.map(r => `${r.count} for ${r.reason}`).join(', ');
    return [
        make(
            'p',
            {},
            make('b', {}, answer.model),
            ` has ${web.count(Number(answer.parameters))} parameters`,
            size ? ` (${size}).` : '.',
        ),
        best?.legal
            ? web.facts([
                  ['best plan', degrees(best), `of ${answer.legal} that are possible`],
                  [
                      answer.job === 'decode'
                          ? 'one token of all'
                          : answer.job === 'train'
                            ? 'one step'
                            : 'all prompts',
                      web.seconds(best.expected_s),
                      `${web.seconds(best.low_s)} to ${web.seconds(best.high_s)}`,
                  ],
                  ['tokens a second', web.amount(best.tokens_per_s, ''), 'of the whole system'],
                  ['nothing is faster than', web.seconds(best.bound_s), 'the bound'],
              ])
            : make('p', { class: 'warn' }, 'No plan is possible.'),
        best?.legal ? parts_bar(best) : null,
        web.table(`the best of ${answer.found} plans on ${answer.chips} chips`, columns, answer.plans),
        make(
            'p',
            { class: 'sub' },
            reasons ? `Not possible: ${reasons}. ` : '',
            'All times are results of a model, never ' +
                'measurements. tp cuts matrices, cp sequences, ep spreads experts, dp cuts the batch, pp the layers.',
        ),
    ];
};
