// show_digest.js - the digest, computed here, beside the one that is recorded for every other machine.
// SPDX-License-Identifier: MIT
'use strict';

// A script that is loaded only now: it holds the program.
const load = name =>
    new Promise((done, failed) => {
        const fail = () => failed(new Error(`${name} could not be loaded`));
        document.head.append(make('script', { src: name, onload: done, onerror: fail }));
    });

web.show_digest = output => {
    const recorded = new Map(web.recorded),
        cells = new Map();
    const row = name =>
        make(
            'tr',
            {},
            make('th', { scope: 'row' }, name),
            make('td', {}, make('code', {}, recorded.get(name))),
            cells.set(name, make('td', {}, '–')).get(name),
            make('td', {}),
        );
    const told = make('p', { role: 'status', id: 'digest-told' }, 'Not computed yet.');
    let began = 0,
        equal = 0,
        different = 0;
    const take = line => {
        const [, name, value] = line.match(/^(?:section )?(\S+) ([0-9a-f]{16})$/) ?? [];
        const cell = cells.get(name);
        if (!cell) return;
        const same = value === recorded.get(name);
        equal += same;
        different += !same;
        cell.replaceChildren(make('code', {}, value));
        cell.nextSibling.replaceChildren(make('span', { class: same ? 'good' : 'bad' }, same ? 'equal' : 'different'));
        told.textContent = `${equal + different} of ${recorded.size} …`;
    };
    const run = async () => {
        start.disabled = true;
        told.textContent = 'Loading the program …';
        try {
            await load('digest.js');
            began = performance.now();
            const program = await web.open('digest', take);
            await program.run();
            const seconds = ((performance.now() - began) / 1000).toPrecision(2);
            const all = different === 0 && equal === recorded.size;
            told.textContent = all
                ? `All ${equal} are equal, after ${seconds} s: this browser computes the same bits.`
                : `${different} of ${recorded.size} differ, ${recorded.size - equal - different} are missing.`;
            output.dataset.digest = all ? 'equal' : 'different';
        } catch (error) {
            told.textContent = `It did not run: ${error.message}.`;
            output.dataset.digest = 'failed';
        }
    };
    const start = make('button', { type: 'button', class: 'go', onclick: run }, 'Compute it here');
    output.replaceChildren(
        make('p', {}, start),
        told,
        make(
            'table',
            { class: 'digest' },
            make('caption', {}, 'sections of the digest'),
            make(
                'thead',
                {},
                make(
                    'tr',
                    {},
                    ['section', 'recorded', 'here', 'equal?'].map(head => make('th', { scope: 'col' }, head)),
                ),
            ),
            make(
                'tbody',
                {},
                web.recorded.map(([name]) => row(name)),
            ),
        ),
    );
};
