// show_chance.js - stochastic rounding, counted.
// SPDX-License-Identifier: MIT
'use strict';

// So wide that letters have the size that they are written in: two pictures beside each other, or one below the other.
web.chart_width = () => {
    const room = document.querySelector('main').clientWidth - 56;
    return Math.max(260, Math.min(640, room >= 854 ? (room - 14) / 2 - 34 : room - 10));
};

// bars: [{ count, text }]; marks: [{ at: 0 to 1, text, class }], from the middle of the first bar to that of the last.
function histogram(title, bars, marks, ends) {
    const wide = web.chart_width(),
        high = 190,
        top = 40,
        base = top + high,
        left = 8,
        each = (wide - 2 * left) / bars.length;
    const most = Math.max(1, ...bars.map(b => b.count)),
        gap = Math.min(6, each / 6);
    const x_of = share => left + each / 2 + share * (wide - 2 * left - each);
    const bar = (b, i) => [
        draw(
            'rect',
            {
                x: left + i * each + gap / 2,
                y: base - (high * b.count) / most,
                width: each - gap,
                height: (high * b.count) / most,
                rx: 2,
                class: 'bar',
            },
            draw('title', {}, `${b.text}: ${b.count}`),
        ),
        bars.length > 4
            ? null
            : draw(
                  'text',
                  {
                      x: left + (i + 0.5) * each,
                      y: base - (high * b.count) / most - 8,
                      class: 'num',
                      'text-anchor': 'middle',
                  },
                  `${b.count} times`,
              ),
    ];
    const line = (m, i) =>
        draw('line', { x1: x_of(m.at), x2: x_of(m.at), y1: top - 24 + 14 * i, y2: base, class: `mark ${m.class}` });
    const name = (m, i) => {
        const left_of = m.at > 0.5,
            x = x_of(m.at) + (left_of ? -6 : 6);
        const about = { x, y: top - 15 + 14 * i, 'text-anchor': left_of ? 'end' : 'start', class: 'name halo' };
        return draw('text', about, m.text);
    };
    return draw(
        'svg',
        { viewBox: `0 0 ${wide} ${base + 26}`, role: 'img', class: 'chart' },
        draw('title', {}, title),
        bars.map(bar),
        draw('line', { x1: left, x2: wide - left, y1: base, y2: base, class: 'axis' }),
        marks.map(line),
        marks.map(name),
        draw('text', { x: left, y: base + 19, class: 'tick' }, ends[0]),
        ends[1] ? draw('text', { x: wide - left, y: base + 19, class: 'tick', 'text-anchor': 'end' }, ends[1]) : null,
    );
}

web.show_chance = answer => {
    const low = answer.outcomes[0],
        high = answer.outcomes[answer.outcomes.length - 1];
    const columns = [
        { head: 'outcome', cell: o => o.value },
        { head: 'times', class: 'r', cell: o => String(o.count) },
        { head: 'share', class: 'r', cell: o => web.percent(o.count / answer.draws) },
    ];
    const facts = web.facts([
        ['mean of all draws', web.short(answer.mean, 8), `off by ${web.short(answer.mean_error)}`],
        ['nearest even, always', web.short(answer.nearest, 8), `off by ${web.short(answer.nearest_error)}`],
        ...(answer.share === undefined
            ? []
            : [['x lies', web.percent(answer.share), 'of the way from the number below to the one above']]),
    ]);
    const table = web.table(`${answer.draws} draws of ${answer.x} in ${answer.format}`, columns, answer.outcomes);
    if (answer.share === undefined)
        return [
            facts,
            table,
            make(
                'p',
                {},
                answer.outcomes.length === 1
                    ? 'There is nothing to choose: all draws are equal.'
                    : 'One of the two is infinite, so there is no mean to look at.',
            ),
        ];
    const nearest = Number(answer.nearest) === Number(low.value) ? 0 : 1;
    const middle = i =>
        web.short(
            String(Number(low.value) + ((Number(high.value) - Number(low.value)) * i) / (answer.bins.length - 1)),
        );
    return [
        facts,
        make(
            'div',
            { class: 'pair' },
            make(
                'figure',
                {},
                make('figcaption', {}, 'How often it became each'),
                histogram(
                    'How often x became each of the two numbers beside it',
                    answer.outcomes.map(o => ({ count: o.count, text: o.value })),
                    [],
                    [low.value, high.value],
                ),
            ),
            make(
                'figure',
                {},
                make('figcaption', {}, `Means of ${answer.group} draws`),
                histogram(
                    `How the means of ${answer.group} draws lie about x`,
                    answer.bins.map((count, i) => ({ count, text: `about ${middle(i)}` })),
                    [
                        { at: answer.share, text: 'x', class: 'x' },
                        { at: nearest, text: 'nearest even', class: 'even' },
                    ],
                    [low.value, high.value],
                ),
            ),
        ),
        table,
    ];
};
