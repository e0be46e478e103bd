// draw.js - elements, tables and numbers of the page.
// SPDX-License-Identifier: MIT
'use strict';

// make('p', { class: 'x' }, 'text', child): an element; names with "on" are listeners, children may be nested lists.
web.make_in =
    space =>
    (name, about = {}, ...children) => {
        const element = document.createElementNS(space, name);
        for (const [key, value] of Object.entries(about)) {
            if (key.startsWith('on')) element.addEventListener(key.slice(2), value);
            else if (value !== undefined && value !== false) element.setAttribute(key, value === true ? '' : value);
        }
        element.append(...children.flat(9).filter(child => child !== undefined && child !== null));
        return element;
    };
const make = web.make_in('http://www.w3.org/1999/xhtml'),
    draw = web.make_in('http://www.w3.org/2000/svg');

// A table whose rows become cards where the window is narrow: each cell has the name of its column beside it. Roles are
// told, because a table that is laid out as cards is no table to a reader of screens otherwise.
// columns: [{ head, cell(row), class }]
web.table = (caption, columns, rows, options = {}) => {
    const head = column => make('th', { scope: 'col', role: 'columnheader', class: column.class }, column.head);
    const cell = (column, row, i) => {
        const first = i === 0,
            inside = column.cell(row) ?? '';
        return make(
            first ? 'th' : 'td',
            {
                scope: first ? 'row' : undefined,
                role: first ? 'rowheader' : 'cell',
                class: `${column.class ?? ''} ${inside === '' ? 'none' : ''}`,
                'data-head': column.head,
            },
            make('span', {}, inside),
        );
    };
    const line = row =>
        make(
            'tr',
            { role: 'row', class: options.row ? options.row(row) : undefined },
            columns.map((column, i) => cell(column, row, i)),
        );
    return make(
        'table',
        { role: 'table', class: options.class ?? 'cards' },
        make('caption', {}, caption),
        make('thead', { role: 'rowgroup' }, make('tr', { role: 'row' }, columns.map(head))),
        make('tbody', { role: 'rowgroup' }, rows.map(line)),
    );
};

// Tiles: a number, and what it is.
web.facts = list =>
    make(
        'dl',
        { class: 'facts' },
        list.map(([what, value, more]) =>
            make(
                'div',
                { class: 'fact' },
                make('dt', {}, what),
                make('dd', {}, value, more ? make('small', {}, more) : null),
            ),
        ),
    );

const scaled = (x, unit, sizes) => {
    const [size, prefix] = sizes.find(([least]) => Math.abs(x) >= 0.9995 * least) ?? sizes[sizes.length - 1];
    return `${Number((x / size).toPrecision(3))} ${prefix}${unit}`;
};
const large = [
    [1e15, 'P'],
    [1e12, 'T'],
    [1e9, 'G'],
    [1e6, 'M'],
    [1e3, 'k'],
    [1, ''],
];
const small = [
    [1, ''],
    [1e-3, 'm'],
    [1e-6, 'µ'],
    [1e-9, 'n'],
];
web.seconds = x => (x === 0 ? '0 s' : x >= 3600 ? `${Number((x / 3600).toPrecision(3))} h` : scaled(x, 's', small));
web.amount = (x, unit) => scaled(x, unit, large);
web.percent = x => `${Number((100 * x).toPrecision(3))} %`;
web.short = (text, digits = 3) =>
    Number.isFinite(Number(text)) && text.length > digits + 3
        ? String(Number(Number(text).toPrecision(digits)))
        : text;
web.count = n =>
    n >= 1e9
        ? `${Number((n / 1e9).toPrecision(4))} billion`
        : n >= 1e6
          ? `${Number((n / 1e6).toPrecision(4))} million`
          : String(n);
web.words = name => name.replaceAll('_', ' ');
