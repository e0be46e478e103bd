// check.mjs - the playground in Chromium and Firefox: the same answers as the program of this machine, the same digest,
// nothing asked of anybody, nothing wider than the window, everything by keyboard, and what Lighthouse says of it.
// SPDX-License-Identifier: MIT
// usage: npm install puppeteer-core lighthouse, in a folder with a copy of this and of pages.js;
//        node check.mjs FOLDER-OF-THE-PAGE PROGRAM QUESTIONS-FILE [chromium] [firefox]
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import puppeteer from "puppeteer-core";

const [folder, program, file, ...named] = process.argv.slice(2);
const home = pathToFileURL(resolve(folder, "index.html")).href;
const questions = readFileSync(file, "utf8").split("\n").filter(Boolean);
const browsers = { chromium: "/usr/bin/chromium", firefox: "/usr/bin/firefox-esr" };
const tools = ["numbers", "product", "collective", "chance", "plan"];
const widths = [400, 1400];
let failures = 0;
const fail = text => {
    failures++;
    console.log(`FAILED: ${text}`);
};
const check = (right, text) => right || fail(text);
const short = text => (text.length > 300 ? `${text.slice(0, 300)} …` : text);

async function open(name) {
    const firefox = name === "firefox";
    return puppeteer.launch({
        browser: firefox ? "firefox" : "chrome",
        executablePath: browsers[name],
        headless: true,
        args: firefox
            ? []
            : ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--allow-file-access-from-files=false"],
        protocolTimeout: 120000,
    });
}

// ---- what a page asks of others, and what it complains of ----

async function watched(browser, said) {
    const page = await browser.newPage();
    page.on("request", request => {
        if (!/^(file|data|blob|about):/.test(request.url())) said.push(`asks for ${request.url()}`);
    });
    page.on("pageerror", error => said.push(`error: ${error.message}`));
    page.on(
        "console",
        message => ["error", "warn"].includes(message.type()) && said.push(`console: ${message.text()}`),
    );
    return page;
}

const answered = (page, tool) =>
    page
        .waitForFunction(
            name => {
                const output = document.querySelector(`#${name} .answer`);
                return (
                    output.dataset.question &&
                    output.getAttribute("aria-busy") === "false" &&
                    output.dataset.question !== output.dataset.seen
                );
            },
            { timeout: 60000 },
            tool,
        )
        .then(() =>
            page.evaluate(name => {
                const output = document.querySelector(`#${name} .answer`);
                output.dataset.seen = output.dataset.question;
            }, tool),
        );

async function visit(page, address) {
    await page.goto("about:blank");
    await page.goto(`${home}#${address}`);
    if (address === "digest") await page.waitForSelector("#digest button", { visible: true });
    else await answered(page, address.split("?")[0]);
}

// ---- the checks ----

async function same_answers(page, name, native) {
    const here = await page.evaluate(list => Promise.all(list.map(question => web.engine.ask(question))), questions);
    const wrong = questions.flatMap((question, i) => (here[i] === native[i] ? [] : [i]));
    wrong
        .slice(0, 4)
        .forEach(i => fail(`${name}: ${questions[i]}\n  here:   ${short(here[i])}\n  native: ${short(native[i])}`));
    if (wrong.length > 4) fail(`${name}: ${wrong.length} answers differ`);
    return questions.length - wrong.length;
}

async function same_digest(page, name) {
    await page.goto("about:blank");
    await page.goto(`${home}#digest`);
    await page.waitForSelector("#digest button:not([disabled])", { visible: true });
    await page.focus("#digest button");
    const began = Date.now();
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => document.querySelector("#digest .answer").dataset.digest, { timeout: 120000 });
    const [state, digest, told] = await page.evaluate(() => [
        document.querySelector("#digest .answer").dataset.digest,
        document.querySelector("#digest tbody tr td:nth-of-type(2)").textContent,
        document.getElementById("digest-told").textContent,
    ]);
    check(state === "equal", `${name}: the digest is ${state}: ${told}`);
    return `digest ${digest} after ${((Date.now() - began) / 1000).toFixed(1)} s`;
}

// Nothing is wider than the window; what scrolls, scrolls in a place of its own that the keyboard reaches.
async function fits(page, name) {
    for (const width of widths) {
        await page.setViewport({ width, height: 900 });
        for (const tool of [
            ...tools,
            "collective?system=trn3-gen2-ultraserver&op=all_reduce",
            "plan?model=deepseek-v3&job=train",
            "digest",
        ]) {
            await visit(page, tool);
            const wide = await page.evaluate(() => {
                const root = document.documentElement,
                    most = root.clientWidth;
                const free = [...document.body.querySelectorAll("*")].filter(
                    e =>
                        !e.closest(".scroll,thead") &&
                        e.checkVisibility() &&
                        e.getBoundingClientRect().right > most + 1,
                );
                return [
                    window.innerWidth,
                    root.scrollWidth - most,
                    free
                        .slice(0, 3)
                        .map(e => `${e.localName}.${e.className}`)
                        .join(" "),
                ];
            });
            check(wide[0] === width, `${name}: the window is ${wide[0]} wide, not ${width}`);
            check(wide[1] <= 0 && !wide[2], `${name}: ${tool} is wider than ${width}: ${wide[1]} ${wide[2]}`);
        }
    }
}

// What the test of all reports finds wrong with a page: letters that are small, faint, cut off or upon each other.
async function looks(page, name) {
    const script = readFileSync("pages.js", "utf8").trim();
    for (const width of widths) {
        await page.setViewport({ width, height: 900 });
        for (const value of ["light", "dark"]) {
            await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value }]);
            for (const tool of [...tools, "digest"]) {
                await visit(page, tool);
                const faults = await page.evaluate(script);
                faults.slice(0, 4).forEach(text => fail(`${name}: ${tool}, ${width}, ${value}: ${text}`));
            }
        }
    }
}

// With Tab alone, every control of a tool gets the focus, is seen to have it, and the focus goes on.
async function tabs(page, name) {
    await page.setViewport({ width: 1400, height: 900 });
    for (const tool of tools) {
        await visit(page, tool);
        const wanted = await page.evaluate(
            () =>
                [...document.querySelectorAll("a[href],button,input,select,textarea,summary,[tabindex='0']")]
                    .filter(e => e.checkVisibility() && !e.disabled && e.type !== "hidden")
                    .map((e, i) => (e.dataset.number = i)).length,
        );
        const reached = new Set();
        await page.bringToFront();
        await page.focus("nav a");
        await page.keyboard.press("Tab"); // and back, so that the browser knows that somebody uses the keyboard
        await page.keyboard.down("Shift");
        await page.keyboard.press("Tab");
        await page.keyboard.up("Shift");
        for (let i = 0; i < wanted; i++) {
            if (i) await page.keyboard.press("Tab");
            const at = await page.evaluate(() => {
                const e = document.activeElement,
                    style = getComputedStyle(e);
                return [e.dataset.number, style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2];
            });
            if (at[0] === null || at[0] === undefined) continue;
            reached.add(at[0]);
            check(at[1], `${name}: ${tool}: control ${at[0]} has the focus, and nothing shows it`);
        }
        check(reached.size === wanted, `${name}: ${tool}: Tab reaches ${reached.size} of ${wanted} controls`);
    }
}

// What is typed is answered; arrows step; Enter chooses; the address keeps it; bad input gets the library's sentence.
async function keys(page, name) {
    await page.bringToFront();
    await visit(page, "numbers");
    await page.focus("#numbers input[name=x]");
    await page.keyboard.down("Control");
    await page.keyboard.press("a");
    await page.keyboard.up("Control");
    await page.keyboard.type("448");
    await page.keyboard.press("Enter");
    await page
        .waitForFunction(() => /binary32.* 448 /.test(document.querySelector("#numbers .answer").textContent), {
            timeout: 20000,
        })
        .catch(() => fail(`${name}: 448 was typed, and is not answered`));
    check(
        await page.evaluate(() => location.hash.includes("x=448")),
        `${name}: the address does not hold what was typed`,
    );
    await page.keyboard.type("x");
    const said = () => page.evaluate(() => document.querySelector("#numbers .told").textContent);
    await page
        .waitForFunction(() => document.querySelector("#numbers .told").textContent, { timeout: 20000 })
        .catch(() => {});
    check(/^x is '448x', expected a number/.test(await said()), `${name}: of 448x the page says '${await said()}'`);
    await visit(page, "product");
    const step = () => page.evaluate(() => document.querySelector(".stepper output").textContent);
    await page.focus("#step");
    await page.keyboard.press("ArrowLeft");
    check(/^step 14 of 15/.test(await step()), `${name}: after an arrow the page says '${await step()}'`);
    await page.keyboard.press("Home");
    check(/^step 0 of 15: 16777216 × 1/.test(await step()), `${name}: after Home the page says '${await step()}'`);
    await page.focus(".stepper button:last-of-type");
    await page.keyboard.press("Enter");
    check(/^step 1 of 15/.test(await step()), `${name}: after Next the page says '${await step()}'`);
    await visit(page, "product?a=1+2;3+4&b=5+6;7+8");
    await page.focus("tr:last-child td:last-child .cell");
    await page.keyboard.press("Enter");
    await page
        .waitForFunction(
            () => location.hash.includes("row=1&column=1") && document.activeElement.textContent === "53",
            { timeout: 20000 },
        )
        .catch(() => fail(`${name}: an element of the product cannot be chosen by Enter`));
    await page.focus("nav a[href='#plan']");
    await page.keyboard.press("Enter");
    await answered(page, "plan");
    check(
        await page.evaluate(() => document.querySelector("nav [aria-current]").textContent === "Plan"),
        `${name}: Enter does not open Plan`,
    );
}

async function first_result(browser, said) {
    const times = [];
    for (let i = 0; i < 3; i++) {
        const page = await watched(browser, said);
        await page.goto(home);
        await answered(page, "numbers");
        times.push(await page.evaluate(() => web.first_answer / 1000));
        await page.close();
    }
    return `first result after ${times.sort()[1].toFixed(2)} s`;
}

async function in_browser(name, native) {
    const browser = await open(name),
        said = [],
        told = [name];
    try {
        told.push(await first_result(browser, said));
        const page = await watched(browser, said);
        await visit(page, "numbers");
        told.push(`${await same_answers(page, name, native)} of ${questions.length} answers equal`);
        told.push(await same_digest(page, name));
        await fits(page, name);
        if (name === "chromium") await looks(page, name); // Firefox emulates no colours
        await tabs(page, name);
        await keys(page, name);
    } catch (error) {
        fail(`${name}: ${error.stack}`);
    } finally {
        await browser.close();
    }
    [...new Set(said)].slice(0, 5).forEach(text => fail(`${name}: ${text}`));
    console.log(told.join(", "));
}

// ---- accessibility: Lighthouse takes no files, so a server on the loopback, which also notes what is asked for ----

async function accessibility() {
    const { default: lighthouse } = await import("lighthouse");
    const types = { html: "text/html", js: "text/javascript", css: "text/css" };
    const server = createServer((request, response) => {
        const path = request.url.split("?")[0].slice(1) || "index.html";
        try {
            response.setHeader("content-type", types[path.split(".").pop()] ?? "text/plain");
            response.end(readFileSync(resolve(folder, path.replaceAll("..", ""))));
        } catch {
            response.statusCode = 404;
            response.end();
        }
    });
    await new Promise(ready => server.listen(0, "127.0.0.1", ready));
    const browser = await open("chromium"),
        scores = [];
    try {
        for (const tool of [...tools, "digest"]) {
            const page = await browser.newPage();
            const flags = {
                onlyCategories: ["accessibility"],
                logLevel: "silent",
                formFactor: "desktop",
                screenEmulation: { disabled: true },
            };
            const { lhr } = await lighthouse(
                `http://127.0.0.1:${server.address().port}/#${tool}`,
                flags,
                undefined,
                page,
            );
            const score = Math.round(100 * lhr.categories.accessibility.score);
            const bad = Object.values(lhr.audits)
                .filter(a => a.score === 0)
                .map(
                    a =>
                        `${a.id} (${(a.details?.items ?? [])
                            .slice(0, 2)
                            .map(i => i.node?.snippet)
                            .join(" ")})`,
                );
            check(score >= 95, `accessibility of ${tool}: ${score}: ${bad.join("; ")}`);
            scores.push(`${tool} ${score}${bad.length ? ` (${bad.join(", ")})` : ""}`);
            await page.close();
        }
    } finally {
        await browser.close();
        server.close();
    }
    console.log(`accessibility by Lighthouse: ${scores.join(", ")}`);
}

const run = spawnSync(program, { input: `${questions.join("\n")}\n`, encoding: "utf8", maxBuffer: 1 << 28 });
const native = run.stdout.split("\n").slice(0, -1);
check(native.length === questions.length, `${program} answers ${native.length} of ${questions.length} questions`);
const wanted = named.length ? named : ["chromium", "firefox", "accessibility"];
for (const name of wanted) {
    if (name === "accessibility") await accessibility();
    else await in_browser(name, native);
}
process.exit(failures ? 1 : 0);
