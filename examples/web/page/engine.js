// engine.js - runs a WebAssembly program of the library: in a worker where there are workers, else here.
// SPDX-License-Identifier: MIT
'use strict';
const web = { engines: {} }; // what the scripts of this page share

// Stands alone: a worker gets its text. `tell` is told each line that the program prints.
function engine(tell) {
    let wasm,
        line = '';
    const view = () => new DataView(wasm.memory.buffer);
    const bytes = (at, size) => new Uint8Array(wasm.memory.buffer, at, size);
    const print = text => {
        const lines = (line + text).split('\n');
        line = lines.pop();
        lines.forEach(tell);
    };
    const write = (file, list, count, written) => {
        let size = 0;
        for (let i = 0; i < count; i++) {
            const at = view().getUint32(list + 8 * i, true),
                part = view().getUint32(list + 8 * i + 4, true);
            print(new TextDecoder().decode(bytes(at, part).slice()));
            size += part;
        }
        view().setUint32(written, size, true);
        return 0;
    };
    const none = (count, size) => {
        view().setUint32(count, 0, true);
        view().setUint32(size, 0, true);
        return 0;
    };
    // What such a program asks of its system: it writes lines, and there are no arguments, variables or files.
    const system = {
        fd_write: write,
        args_sizes_get: none,
        environ_sizes_get: none,
        args_get: () => 0,
        environ_get: () => 0,
        fd_close: () => 0,
        fd_seek: () => 0,
        fd_read: () => 8,
        emscripten_notify_memory_growth: () => {},
        proc_exit: code => {
            throw { code };
        },
    };
    return {
        async start(program) {
            const module = await WebAssembly.compile(program),
                imports = {};
            for (const { module: from, name } of WebAssembly.Module.imports(module))
                (imports[from] ??= {})[name] = system[name];
            wasm = (await WebAssembly.instantiate(module, imports)).exports;
            if (wasm._initialize) wasm._initialize();
        },
        run() {
            // a whole program; its status
            try {
                wasm._start();
                return 0;
            } catch (end) {
                if (end instanceof Error) throw end;
                return end.code;
            }
        },
        ask(question) {
            // one question of plain ASCII
            const room = wasm.question_room(question.length + 1);
            if (!room) throw new Error('there is not enough memory for the question');
            bytes(room, question.length + 1).set([...question].map(c => c.charCodeAt(0)).concat(0));
            const from = wasm.playground(room),
                to = bytes(0, wasm.memory.buffer.byteLength).indexOf(0, from);
            return new TextDecoder().decode(bytes(from, to - from).slice());
        },
    };
}

// In a worker: { start, ask or run } in, { done } or { failed } out, and { line } for what is printed.
function serve() {
    const own = engine(line => postMessage({ line }));
    onmessage = async ({ data }) => {
        try {
            postMessage({ done: await own[data.call](data.with) });
        } catch (error) {
            postMessage({ failed: String(error) });
        }
    };
}

const unpack = text => Uint8Array.from(atob(text), c => c.charCodeAt(0));

// An engine on a thread of its own: calls come back in the order in which they were made.
function engine_aside(tell) {
    const text = `${engine}\n(${serve})()`;
    const worker = new Worker(URL.createObjectURL(new Blob([text], { type: 'text/javascript' })));
    const waiting = [];
    const fail = why => waiting.splice(0).forEach(call => call.fail(new Error(why)));
    worker.onmessage = ({ data }) => {
        if ('line' in data) return tell(data.line);
        const call = waiting.shift();
        if ('failed' in data) call.fail(new Error(data.failed));
        else call.done(data.done);
    };
    worker.onerror = event => fail(event.message || 'the worker did not start');
    const call = name => what =>
        new Promise((done, failed) => {
            waiting.push({ done, fail: failed });
            worker.postMessage({ call: name, with: what });
        });
    return { start: call('start'), ask: call('ask'), run: call('run') };
}

// web.open(name, tell): the engine of a program that a script has put into web.programs, started.
web.programs = {};
web.open = async (name, tell = () => {}) => {
    const program = unpack(web.programs[name]);
    delete web.programs[name]; // as text it takes memory, and is not needed again
    try {
        const aside = engine_aside(tell);
        await aside.start(program);
        return aside;
    } catch (error) {
        // no workers, or none from a file
        const here = engine(tell);
        await here.start(program);
        return here;
    }
};
