"""Opens pages and pictures in a headless Chromium, at 400 and 1280 pixels, light and dark, and as they are printed, and
says what is wrong with them.

    python3 pages.py BROWSER FILE...

The browser is spoken to through two pipes (the DevTools protocol, --remote-debugging-pipe): nothing listens anywhere,
and nothing but Python's own library is used. First, pages that are wrong on purpose must each be found wrong.
Exit status: 0 all is well, 1 something is wrong, 2 the browser does not work.
"""

import base64, json, os, re, select, subprocess, sys, tempfile, time

HERE = os.path.dirname(os.path.abspath(__file__))
SCREENS = [(width, scheme) for width in (400, 1280) for scheme in ("light", "dark")]
PAPER = (1032, "print")  # A4 across, less its margins, in pixels of CSS; there, letters may be smaller
SECONDS = 40  # until an answer has come

# ---- the browser ----


class Browser:
    def __init__(self, program, home):
        to, self.to = os.pipe()
        self.back, back = os.pipe()
        flags = ("--headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run --no-default-browser-check"
                 " --disable-extensions --disable-background-networking --disable-component-update --disable-sync"
                 " --hide-scrollbars --mute-audio --force-device-scale-factor=1 --remote-debugging-pipe")
        line = f'exec "$0" {flags} --user-data-dir="$1" about:blank 3<&{to} 4>&{back}'
        self.log = open(os.path.join(home, "log"), "w+")
        self.process = subprocess.Popen(["sh", "-c", line, program, home], pass_fds=(to, back), stdout=self.log,
                                        stderr=self.log, stdin=subprocess.DEVNULL)
        os.close(to), os.close(back)
        self.number, self.rest, self.events, self.session = 0, b"", [], None
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(domain + ".enable")

    def message(self):
        until = time.monotonic() + SECONDS
        while b"\0" not in self.rest:
            ready, _, _ = select.select([self.back], [], [], max(0, until - time.monotonic()))
            part = os.read(self.back, 1 << 16) if ready else b""
            if not part:
                self.log.seek(0)
                raise OSError("the browser does not answer: " + self.log.read()[-400:])
            self.rest += part
        one, self.rest = self.rest.split(b"\0", 1)
        return json.loads(one)

    def ask(self, method, **parameters):
        self.number += 1
        out = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            out["sessionId"] = self.session
        os.write(self.to, json.dumps(out).encode() + b"\0")
        while True:
            answer = self.message()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise OSError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self.events.append(answer)

    def open(self, url):
        self.events = []
        self.ask("Page.navigate", url=url)
        while not any(e.get("method") == "Page.loadEventFired" for e in self.events):
            self.events.append(self.message())

    def run(self, script):
        answer = self.ask("Runtime.evaluate", expression=script, returnByValue=True)
        if "exceptionDetails" in answer:
            raise OSError(str(answer["exceptionDetails"]))
        return answer["result"]["value"]

    def complaints(self):
        """What the page says on its console, and what it asks of others."""
        for event in self.events:
            method, about = event.get("method"), event.get("params", {})
            if method == "Runtime.exceptionThrown":
                yield "console: " + about["exceptionDetails"]["text"]
            if method == "Runtime.consoleAPICalled" and about["type"] in ("error", "warning", "assert"):
                yield "console: " + " ".join(str(a.get("value")) for a in about["args"])
            if method == "Log.entryAdded" and about["entry"]["level"] in ("error", "warning"):
                yield "console: " + about["entry"]["text"]
            if method == "Network.requestWillBeSent" and not re.match("file:|data:|about:", about["request"]["url"]):
                yield "loads: " + about["request"]["url"]

    def close(self):
        try:
            self.session = None
            self.ask("Browser.close")
            self.process.wait(10)
        except (OSError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()


def faults_of(browser, script, url, places):
    """Of each fault, where it was seen: { "overlap: ...": ["400 light", ...] }"""
    found = {}
    browser.ask("Emulation.setDeviceMetricsOverride", width=places[0][0], height=900, deviceScaleFactor=1, mobile=False)
    browser.open(url)
    for width, scheme in places:
        browser.ask("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        paper = scheme == PAPER[1]
        browser.ask("Emulation.setEmulatedMedia", media=scheme if paper else "",
                    features=[{"name": "prefers-color-scheme", "value": "dark" if paper else scheme}])
        for fault in browser.run(script):
            if paper and fault.startswith("small"):
                continue
            places_of = found.setdefault(fault, [])
            places_of += [f"{width} {scheme}"] * (f"{width} {scheme}" not in places_of)
    for fault in browser.complaints():
        found.setdefault(fault, []).append("loading")
    return found


# ---- pages that are wrong on purpose: the word that each must be found guilty of ----

HEAD = ("<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'><title>t"
        "</title><style>:root{color-scheme:light dark}body{background:#fff;color:#111;font:14px sans-serif}@media("
        "prefers-color-scheme:dark){body{background:#111;color:#eee}}svg text{fill:currentcolor}</style>")
SVG = "<svg role=img width=300 height=80 viewBox='0 0 300 80'><title>t</title>%s</svg>"
GOOD = HEAD + "<p>words</p>" + SVG % "<text x=10 y=20>one</text><text x=10 y=40>two</text>"
BAD = [
    ("overlap", HEAD + SVG % "<text x=10 y=20>one</text><text x=14 y=24>two</text>"),
    ("overlap", HEAD + "<p>words</p><p style='margin-top:-22px'>others</p>"),
    ("outside", HEAD + SVG % "<text x=280 y=20>a long name</text>"),
    ("small", HEAD + SVG.replace("0 0 300 80", "0 0 600 160") % "<text x=10 y=20>one</text>"),
    ("small", HEAD + "<p style='font-size:9px'>words</p>"),
    ("contrast", HEAD + "<p style='color:#888'>words</p>"),
    ("contrast", HEAD + SVG % "<rect width=90 height=40 fill='#777'/><text x=10 y=20 style='fill:#999'>one</text>"),
    ("overflow", HEAD + "<div style='width:1400px'>words</div>"),
    ("clipped", HEAD + "<div style='overflow:hidden;width:40px;white-space:nowrap'>many words here</div>"),
    ("scroll", HEAD + "<div style='overflow-x:auto;width:40px;white-space:nowrap'>many words here</div>"),
    ("orphan", HEAD + "<style>.facts{display:flex;flex-wrap:wrap}.facts div{flex:1 1 40%}</style><div class=facts>"
     "<div>1</div><div>2</div><div>3</div></div>"),
    ("no role", HEAD + (SVG % "").replace("role=img ", "")),
    ("no name", HEAD + (SVG % "").replace("<title>t</title>", "")),
    ("no lang", GOOD.replace(" lang=en", "")),
    ("no viewport", GOOD.replace("name=viewport", "name=other")),
    ("console", HEAD + "<script>console.error('no')</script>"),
    ("console", HEAD + "<script>nothing.there</script>"),
    ("loads", HEAD + "<img alt='' src='http://127.0.0.1:9/x.png'>"),
]


def url_of(page):
    return "data:text/html;base64," + base64.b64encode(page.encode()).decode()


def self_check(browser, script):
    wrong = 0
    for word, page in [(None, GOOD)] + BAD:
        found = faults_of(browser, script, url_of(page), [(400, "light"), (400, "dark")])
        kinds = {fault.split(":")[0] for fault in found}
        if word and word not in kinds or not word and kinds:
            print(f"FAILED: the test of pages finds {sorted(found)} where it should find {word or 'nothing'}")
            wrong += 1
    return wrong


# ---- pages, and the pictures that stand in them as documents of their own ----


def pictures_in(path, home, seen):
    """Each once, on whichever page it comes first."""
    text = open(path, encoding="utf-8").read()
    for i, data in enumerate(re.findall(r"data:image/svg\+xml;base64,([A-Za-z0-9+/=]+)", text)):
        if data in seen:
            continue
        seen.add(data)
        name = os.path.join(home, f"{os.path.basename(path)}.{i}.svg")
        with open(name, "wb") as out:
            out.write(base64.b64decode(data))
        yield name


def check(browser, script, path):
    found = faults_of(browser, script, "file://" + os.path.abspath(path), SCREENS + [PAPER] * path.endswith(".html"))
    for fault, places in found.items():
        print(f"FAILED: {os.path.basename(path)}: {fault} ({', '.join(places)})")
    return len(found)


def main(program, *paths):
    script = open(os.path.join(HERE, "pages.js"), encoding="utf-8").read()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        try:
            browser = Browser(program, home)
        except OSError as error:
            print(f"{program}: {error}")
            return 2
        try:
            wrong = self_check(browser, script)
            seen = set()
            files = [f for path in paths
                     for f in [path, *(pictures_in(path, home, seen) if path.endswith(".html") else ())]]
            for path in files:
                wrong += check(browser, script, path)
        finally:
            browser.close()
    print(f"{len(BAD)} bad pages found, {len(files)} pages and pictures, {wrong} faults")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
