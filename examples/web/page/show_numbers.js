// show_numbers.js - one number in every format.
// SPDX-License-Identifier: MIT
'use strict';

web.show_numbers = answer => {
    const bits = row => {
        const parts = row.bits.split(' '),
            kinds = parts.length === 3 ? ['sign', 'exponent', 'mantissa'] : ['mantissa'];
        return make(
            'code',
            { class: 'bits' },
            parts.map((part, i) => make('span', { class: kinds[i] ?? 'exponent' }, part)),
        );
    };
    const beside = row =>
        ['above', 'below']
            .filter(end => row[end])
            .map(end => make('span', { class: 'beside' }, row[end].value, ' ', make('code', {}, row[end].code)));
    const went = { up: '▲ up', down: '▼ down', exact: 'exact', nan: 'NaN' };
    const mode = name => row => {
        const found = row.modes.find(m => m.mode === name);
        if ('chance' in found && found.chance > 0 && found.chance < 1) return web.percent(found.chance);
        return make('span', { class: `way ${found.way}`, title: `${found.value}, ${found.code}` }, went[found.way]);
    };
    const modes = answer.formats[0].modes.map(m => m.mode).filter(name => name !== 'nearest_even');
    const columns = [
        { head: 'format', cell: row => [row.format, row.ocp ? make('small', {}, row.ocp) : null] },
        { head: 'bits', cell: bits },
        { head: 'code', cell: row => make('code', {}, row.code) },
        { head: 'nearest even', class: 'main r', cell: row => row.value },
        { head: 'error, ulp', class: 'r', cell: row => make('span', { title: row.error }, web.short(row.ulps)) },
        { head: 'numbers beside it', class: 'r', cell: beside },
        ...modes.map(name => ({
            head: name === 'stochastic' ? 'stochastic, away from 0' : web.words(name),
            cell: mode(name),
        })),
    ];
    return [
        make(
            'p',
            {},
            'As binary32, which all formats are rounded from, x is ',
            make('b', {}, answer.x),
            ' (',
            make('code', {}, answer.code),
            ').',
        ),
        web.table(`x in ${answer.formats.length} formats`, columns, answer.formats, { class: 'cards wide' }),
        make(
            'p',
            { class: 'sub' },
            'Bits: sign, exponent, mantissa. An ulp is the distance to the next number on the side ' +
                'where x lies. The other modes say which way x goes; stochastic, how often.',
        ),
    ];
};
