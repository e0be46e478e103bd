// page.js - the page: its tools, their forms, and the address, which holds the question.
// SPDX-License-Identifier: MIT
'use strict';

const tools = ['numbers', 'product', 'collective', 'chance', 'plan', 'digest'];
const section_of = tool => document.getElementById(tool);
const form_of = tool => section_of(tool).querySelector('form');
const output_of = tool => section_of(tool).querySelector('.answer');

// ---- lists: the library's own ----

function fill(select, names) {
    const usual = select.dataset.usual,
        texts = { number: 'a number' };
    const all = (select.dataset.first ? [select.dataset.first] : []).concat(names);
    select.replaceChildren(
        ...all.map(name =>
            make(
                'option',
                { value: name, selected: name === usual },
                texts[name] ?? (name === name.toLowerCase() ? web.words(name) : name),
            ),
        ),
    );
}

function fill_all(lists) {
    document.querySelectorAll('select[data-list]').forEach(select => fill(select, lists[select.dataset.list]));
    document
        .querySelectorAll('datalist[data-list]')
        .forEach(list =>
            list.replaceChildren(...lists[list.dataset.list].map(name => make('option', { value: name }))),
        );
    document.getElementById('version').textContent = lists.version;
}

// ---- the question ----

function question_of(tool) {
    const fields = new URLSearchParams();
    for (const [name, value] of new FormData(form_of(tool))) if (value !== '') fields.set(name, value);
    return `${tool}?${fields}`;
}

// The tool of an address. Fields that it has come into the form, the others get the page's own values; without any the
// form stays as it is.
function read_address() {
    const [name, fields] = location.hash.slice(1).split('?');
    const tool = tools.includes(name) ? name : tools[0];
    const form = form_of(tool);
    if (fields !== undefined) form?.reset();
    for (const [key, value] of new URLSearchParams(fields ?? '')) {
        const control = form?.elements.namedItem(key);
        if (!control) continue;
        control.value = value;
        if (control.value !== value && control.localName === 'select') {
            // no such name: the library says so
            control.append(make('option', { value }, value));
            control.value = value;
        }
    }
    return tool;
}

const asked = {}; // of each tool, the number of its latest question

async function ask(tool) {
    const number = (asked[tool] = (asked[tool] ?? 0) + 1),
        output = output_of(tool);
    const question = question_of(tool),
        address = `#${question}`;
    if (location.hash !== address) history.replaceState(null, '', address);
    output.setAttribute('aria-busy', 'true');
    let answer;
    try {
        answer = JSON.parse(await web.engine.ask(question));
    } catch (error) {
        answer = { error: `the program ended: ${error.message}` };
    }
    if (number !== asked[tool]) return; // there is a newer one
    show(tool, answer);
    output.setAttribute('aria-busy', 'false');
    output.dataset.question = question;
    web.first_answer ??= performance.now();
}

function show(tool, answer) {
    const output = output_of(tool),
        told = section_of(tool).querySelector('.told');
    told.textContent = answer.error ? `${answer.error}.` : '';
    told.hidden = !answer.error;
    output.classList.toggle('stale', Boolean(answer.error));
    if (answer.error) return;
    const page = {
        set(values) {
            for (const [name, value] of Object.entries(values)) form_of(tool).elements.namedItem(name).value = value;
            page.asked = ask(tool);
        },
        focus_again: async selector => {
            await page.asked;
            output.querySelector(selector)?.focus();
        },
    };
    output.replaceChildren(...web[`show_${tool}`](answer, page).flat(3).filter(Boolean));
}

// ---- which tool is seen ----

function turn() {
    const tool = read_address();
    for (const name of tools) section_of(name).hidden = name !== tool;
    document.querySelectorAll('nav a').forEach(link => {
        if (link.hash === `#${tool}`) link.setAttribute('aria-current', 'page');
        else link.removeAttribute('aria-current');
    });
    document.title = `${section_of(tool).querySelector('h2').textContent} – trnmath playground`;
    if (form_of(tool)) ask(tool);
}

function listen(tool) {
    let wait;
    const form = form_of(tool);
    form.addEventListener('submit', event => {
        event.preventDefault();
        ask(tool);
    });
    form.addEventListener('input', event => {
        clearTimeout(wait);
        const typed = event.target.matches('input,textarea');
        if (tool === 'product' && !['row', 'column'].includes(event.target.name))
            form.elements.row.value = form.elements.column.value = 0;
        wait = setTimeout(() => ask(tool), typed ? 150 : 0);
    });
    form.querySelectorAll('button[data-set]').forEach(button =>
        button.addEventListener('click', () => {
            for (const [name, value] of new URLSearchParams(button.dataset.set))
                form.elements.namedItem(name).value = value;
            ask(tool);
        }),
    );
}

async function begin() {
    try {
        web.engine = await web.open('playground');
        fill_all(JSON.parse(await web.engine.ask('lists')));
    } catch (error) {
        document.getElementById('trouble').textContent =
            `This browser does not run the program (it needs WebAssembly with SIMD): ${error.message}.`;
        return;
    }
    tools.filter(form_of).forEach(listen);
    web.show_digest(output_of('digest'));
    addEventListener('hashchange', turn);
    let wait;
    addEventListener('resize', () => {
        clearTimeout(wait); // the pictures of chance are as wide as there is room
        if (!section_of('chance').hidden) wait = setTimeout(() => ask('chance'), 200);
    });
    turn();
}
begin();
