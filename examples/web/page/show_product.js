// show_product.js - two matrices in the array, step by step.
// SPDX-License-Identifier: MIT
'use strict';

// One column of the array: a lane for each chain, a cell for each of its rows.
function draw_lanes(answer, step) {
    const lanes = answer.chains || 1,
        rows = 128 / lanes,
        wide = Math.min(rows, 32),
        deep = rows / wide;
    const cell = 14,
        lane = deep * cell + 12,
        left = 76,
        right = 250;
    const at = row =>
        answer.chains === 0
            ? [0, row]
            : answer.blocked
              ? [Math.floor(row / rows), row % rows]
              : [row % lanes, Math.floor(row / lanes)];
    const now = answer.steps[step],
        before = answer.steps.slice(0, step + 1).filter(s => s.tile === now.tile);
    const square = row => {
        const [chain, i] = at(row),
            used = before.some(s => s.row === row);
        return draw('rect', {
            x: left + (i % wide) * cell,
            y: 6 + chain * lane + Math.floor(i / wide) * cell,
            width: cell - 2,
            height: cell - 2,
            rx: 2,
            class: row === now.row ? 'now' : used ? 'used' : 'free',
        });
    };
    const sum = chain => before.filter(s => (s.chain ?? 0) === chain).pop();
    const label = chain => [
        draw('text', { x: 0, y: 17 + chain * lane, class: 'name' }, answer.chains ? `chain ${chain}` : 'rows'),
        draw(
            'text',
            { x: left + wide * cell + 10, y: 17 + chain * lane, class: 'num' },
            (answer.chains ? sum(chain)?.sum : now.total) ?? '0',
        ),
    ];
    const high = lanes * lane + 4,
        width = left + wide * cell + right - (wide < 32 ? 0 : 60);
    return draw(
        'svg',
        { viewBox: `0 0 ${width} ${high}`, role: 'img', class: 'lanes', style: `width:${width}px` },
        draw('title', {}, `The column of 128 rows: row ${now.row} multiplies in this step`),
        [...Array(128).keys()].map(square),
        [...Array(lanes).keys()].map(label),
    );
}

const shown_steps = 16; // the slide leads to those before

function steps_so_far(answer, step) {
    const last = {};
    const rows = answer.steps.slice(0, step + 1).map((s, k) => {
        const chain = `${s.tile}/${s.chain ?? 0}`,
            before = last[chain] ?? '0',
            sum = s.sum ?? s.total;
        last[chain] = sum;
        return { ...s, k, sum, lost: sum === before && Number(s.product) !== 0 };
    });
    const columns = [
        { head: 'step', cell: s => String(s.k) },
        { head: 'row', class: 'r', cell: s => String(s.row) },
        { head: 'a', class: 'r', cell: s => s.a },
        { head: 'b', class: 'r', cell: s => s.b },
        { head: 'product', class: 'r', cell: s => s.product },
        ...(answer.chains ? [{ head: 'chain', class: 'r', cell: s => String(s.chain) }] : []),
        { head: answer.chains ? 'the chain’s sum' : 'sum', class: 'main r', cell: s => s.sum },
        { head: 'note', cell: s => (s.lost ? make('span', { class: 'warn' }, 'rounded away') : '') },
        { head: 'PSUM, if this were all', class: 'r', cell: s => s.total },
    ];
    const shown = rows.slice(-shown_steps).reverse();
    const title = `element [${answer.row}, ${answer.column}], steps ${shown[shown.length - 1].k} to ${step}`;
    const table = web.table(title, columns, shown, { class: 'plain' });
    return make(
        'div',
        { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'steps so far, the latest first' },
        table,
    );
}

function merges(answer) {
    const said = m => (m.first === m.last ? `chain ${m.first}` : `chains ${m.first} to ${m.last}`);
    return answer.tiles.map(tile =>
        make(
            'p',
            {},
            `Rows ${tile.from} to ${tile.to - 1} end: `,
            (tile.merges ?? []).map(m => [
                said(m),
                m.first === m.last ? ' holds ' : ' hold ',
                make('b', {}, m.sum),
                ', ',
            ]),
            'and PSUM is ',
            make('b', {}, tile.psum),
            '.',
        ),
    );
}

function result_matrix(answer, choose) {
    const cell = (value, i, j) =>
        make(
            'td',
            {},
            make(
                'button',
                {
                    type: 'button',
                    class: 'cell',
                    'aria-pressed': String(i === answer.row && j === answer.column),
                    'aria-label': `element ${i}, ${j}: ${value}`,
                    onclick: () => choose(i, j),
                },
                value,
            ),
        );
    return make(
        'table',
        { class: 'matrix' },
        make('caption', {}, `a times b, in ${answer.result}`),
        make(
            'tbody',
            {},
            answer.c.map((row, i) =>
                make(
                    'tr',
                    {},
                    row.map((value, j) => cell(value, i, j)),
                ),
            ),
        ),
    );
}

web.show_product = (answer, page) => {
    const last = answer.steps.length - 1,
        shown = make('div', { class: 'steps' });
    const told = make('output', { for: 'step' }),
        slide = make('input', { type: 'range', id: 'step', min: 0, max: last });
    const go = step => {
        slide.value = Math.max(0, Math.min(last, step));
        const at = Number(slide.value),
            now = answer.steps[at];
        told.textContent = `step ${at} of ${last}: ${now.a} × ${now.b} = ${now.product}`;
        shown.replaceChildren(
            make(
                'div',
                { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'the array' },
                draw_lanes(answer, at),
            ),
            steps_so_far(answer, at),
        );
    };
    slide.addEventListener('input', () => go(Number(slide.value)));
    const button = (text, step) =>
        make('button', { type: 'button', onclick: () => go(step(Number(slide.value))) }, text);
    const choose = (row, column) => {
        page.set({ row, column });
        page.focus_again('.cell[aria-pressed=true]');
    };
    slide.value = last;
    const view = [
        web.facts([
            ['this element', answer.tiles[answer.tiles.length - 1].psum, `before it becomes ${answer.result}`],
            ['in one chain', answer.single_chain, 'a plain sum of floats'],
            ['exact, rounded once', answer.exact, 'to binary32'],
        ]),
        result_matrix(answer, choose),
        make(
            'div',
            { class: 'stepper' },
            make('label', { for: 'step' }, 'Step'),
            slide,
            button('Back', k => k - 1),
            button('Next', k => k + 1),
            told,
        ),
        shown,
        merges(answer),
        make(
            'p',
            { class: 'sub' },
            `Numerics: ${answer.numerics}. Each chain adds its rows in order and rounds after each; ` +
                'then the chains are joined. What is assumed of this order, and why, is in exactness.md.',
        ),
    ];
    go(last);
    return view;
};
