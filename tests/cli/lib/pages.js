// pages.js - what is wrong with the page that it runs in: a list of sentences. pages.py gives it to a browser.
// SPDX-License-Identifier: MIT
(() => {
    const faults = [], most = 12, told = {};
    const say = (kind, text) => {
        told[kind] = (told[kind] || 0) + 1;
        if (told[kind] <= most) faults.push(kind + ': ' + text);
    };
    const short = text => JSON.stringify(text.trim().slice(0, 48));
    const alone = document.documentElement.localName === 'svg';
    const all = document.querySelectorAll.bind(document);
    all('details').forEach(d => d.open = true);

    // ---- colours: "rgb(1 2 3 / 0.5)" and its older spelling; what lies behind; contrast by WCAG 2.1 ----

    const parse = text => {
        const n = (text.match(/[\d.]+%?/g) || []).map(Number);
        return /^rgb/.test(text) && n.length >= 3 ? [n[0], n[1], n[2], n.length > 3 ? n[3] : 1] : [0, 0, 0, 0];
    };
    const over = (top, under) => [0, 1, 2].map(i => top[i] * top[3] + under[i] * (1 - top[3])).concat(1);
    const light = c => {
        const [r, g, b] = c.map(v => v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const contrast = (a, b) => {
        const [x, y] = [light(a), light(b)].sort((p, q) => q - p);
        return (x + 0.05) / (y + 0.05);
    };
    const dark = matchMedia('(prefers-color-scheme: dark)').matches;
    const behind = element => {
        const stack = [];
        for (let e = element; e; e = e.parentElement) stack.push(parse(getComputedStyle(e).backgroundColor));
        const schemes = getComputedStyle(document.documentElement).colorScheme.includes('dark');
        return stack.reduceRight((under, top) => over(top, under), dark && schemes ? [18, 18, 18, 1] : [255, 255, 255, 1]);
    };
    const needed = (style, scale) => {
        const size = parseFloat(style.fontSize) * scale;
        return size >= 24 || (size >= 18.66 && +style.fontWeight >= 700) ? 3 : 4.5;
    };

    // ---- boxes of text ----

    const shown = e => e.checkVisibility ? e.checkVisibility({ visibilityProperty: true, opacityProperty: true }) : true;
    const inside = (a, b, by) => a.left >= b.left - by && a.right <= b.right + by && a.top >= b.top - by &&
        a.bottom <= b.bottom + by;
    // Pairs that share more than `by` pixels both ways: from top to bottom, each against those that are still open.
    const overlaps = (boxes, by, found) => {
        boxes.sort((a, b) => a.box.top - b.box.top);
        let open = [];
        for (const a of boxes) {
            open = open.filter(b => b.box.bottom - by > a.box.top);
            for (const b of open)
                if (Math.min(a.box.right, b.box.right) - Math.max(a.box.left, b.box.left) > by &&
                    Math.min(a.box.bottom, b.box.bottom) - a.box.top > by) found(a, b);
            open.push(a);
        }
    };
    // Of an upright glyph box, the part that letters use: a line of text is higher than its letters.
    const trim = (r, by) => ({ left: r.left, right: r.right, top: r.top + by * r.height, bottom: r.bottom - by * r.height });

    // ---- text in pictures ----

    const scale_of = e => {
        const m = e.getScreenCTM();
        return m ? Math.hypot(m.b, m.d) : 1;
    };
    const check_svg = svg => {
        const frame = svg.getBoundingClientRect(), texts = [], own = svg.querySelectorAll('text');
        const shapes = [...svg.querySelectorAll('rect,circle')].filter(shown).map(e => {
            const style = getComputedStyle(e);
            const fill = parse(style.fill);
            fill[3] *= style.fillOpacity * style.opacity;
            return { e, fill, box: e.getBoundingClientRect() };
        });
        const ground = behind(svg.parentElement || svg);
        if (!svg.closest('[role=img]')) say('no role', 'a picture without role=img');
        if (!svg.querySelector('title') && !svg.getAttribute('aria-label')) say('no name', 'a picture without a title');
        for (const e of own) {
            if (!shown(e) || !e.textContent.trim()) continue;
            const style = getComputedStyle(e), box = e.getBoundingClientRect(), scale = scale_of(e);
            const size = parseFloat(style.fontSize) * scale, name = short(e.firstChild.textContent || e.textContent);
            texts.push({ name, box: trim(box, 0.12) });
            if (!inside(box, frame, 1.5)) say('outside', 'text ' + name + ' leaves its picture');
            if (size < 10.95) say('small', 'text ' + name + ' is ' + size.toFixed(1) + ' px high');
            const x = (box.left + box.right) / 2, y = (box.top + box.bottom) / 2;
            let under = ground;
            for (const s of shapes)
                if (s.fill[3] > 0 && x >= s.box.left && x <= s.box.right && y >= s.box.top && y <= s.box.bottom &&
                    s.e.compareDocumentPosition(e) & Node.DOCUMENT_POSITION_FOLLOWING) under = over(s.fill, under);
            const c = contrast(over(parse(style.fill), under), under), need = needed(style, scale);
            if (c < need - 0.005) say('contrast', 'text ' + name + ' has ' + c.toFixed(2) + ', not ' + need);
        }
        overlaps(texts, 1, (a, b) => say('overlap', 'text ' + a.name + ' lies on ' + b.name));
    };
    const pictures = alone ? [document.documentElement] : [...all('svg')].filter(s => !s.parentElement.closest('svg'));
    pictures.filter(shown).forEach(check_svg);
    if (alone) return faults;

    // ---- text in the page ----

    const scrolls = e => /auto|scroll/.test(getComputedStyle(e).overflowX);
    const scroller = e => { while (e && !scrolls(e)) e = e.parentElement; return e; };
    const words = [], walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let node; (node = walk.nextNode());) {
        const e = node.parentElement;
        if (!node.data.trim() || e.closest('svg,style,script,title') || !shown(e)) continue;
        const range = document.createRange(), style = getComputedStyle(e), under = behind(e);
        range.selectNodeContents(node);
        for (const box of range.getClientRects()) {
            if (box.width < 1) continue;
            words.push({ name: short(node.data), box: trim(box, 0.15) });
            if (box.right > innerWidth + 1 && !scroller(e)) say('clipped', 'text ' + short(node.data) + ' leaves the page');
        }
        const c = contrast(over(parse(style.color), under), under);
        if (c < needed(style, 1) - 0.005) say('contrast', 'text ' + short(node.data) + ' has ' + c.toFixed(2));
        if (parseFloat(style.fontSize) < 11) say('small', 'text ' + short(node.data) + ' is ' + style.fontSize);
    }
    overlaps(words, 2, (a, b) => say('overlap', 'text ' + a.name + ' lies on ' + b.name));

    // ---- boxes of the page ----

    const page = document.documentElement;
    if (page.scrollWidth > innerWidth) say('overflow', 'the page is ' + page.scrollWidth + ' px wide, not ' + innerWidth);
    for (const e of all('body *')) {
        if (e.closest('svg') && e.localName !== 'svg' || !shown(e)) continue;
        const style = getComputedStyle(e), wide = e.scrollWidth > e.clientWidth + 1;
        if (!wide || style.display === 'inline') continue;
        if (/hidden|clip/.test(style.overflowX) && e.textContent.trim())
            say('clipped', e.localName + '.' + e.className + ' hides a part of ' + short(e.textContent));
        if (scrolls(e) && (e.tabIndex < 0 || !e.getAttribute('role') || !e.getAttribute('aria-label')))
            say('scroll', e.localName + '.' + e.className + ' scrolls, but no key reaches it or it has no name');
        if (scrolls(e) && style.backgroundImage === 'none')
            say('scroll', e.localName + '.' + e.className + ' scrolls, and nothing shows it');
    }
    for (const e of all('.facts')) {
        const rows = new Map();
        for (const tile of e.children) {
            const top = Math.round(tile.getBoundingClientRect().top);
            rows.set(top, (rows.get(top) || 0) + 1);
        }
        const count = [...rows.values()];
        if (count.length > 1 && count[count.length - 1] < 2) say('orphan', 'the last of ' + e.children.length + ' tiles');
    }

    // ---- what every page says of itself ----

    if (!page.lang) say('no lang', 'the page does not say its language');
    if (!document.title) say('no name', 'the page has no title');
    if (!document.querySelector('meta[name=viewport]')) say('no viewport', 'the page does not say how wide it is');
    return faults;
})()
