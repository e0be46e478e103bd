"""What Doxygen made: dead links, names that the search does not know, pages that are wider than a screen.

    python3 docs.py HTML-FOLDER FILE-OF-NAMES [BROWSER]

A line for each fault, then how much was looked at. Run by docs.sh.
"""
import html.parser
import pathlib
import re
import sys
import tempfile
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli" / "lib"))
WIDTHS = (400, 1400)


class Page(html.parser.HTMLParser):
    """The places of a page, and what it leads to."""

    def __init__(self, path):
        super().__init__()
        self.places, self.links = set(), []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.places.update(values[key] for key in ("id", "name") if values.get(key))
        self.links += [values[key] for key in ("href", "src") if values.get(key)]


def dead_links(folder, pages):
    for name, page in pages.items():
        for link in page.links:
            target, _, place = urllib.parse.unquote(link).partition("#")
            if re.match(r"https?:|data:|javascript:|mailto:", target):
                continue
            file = target or name
            if not (folder / file).is_file():
                yield f"{name} leads to {file}, which is not there"
            elif place and file in pages and place not in pages[file].places:
                yield f"{name} leads to {file}#{place}, and there is no such place"


def search_faults(folder, names, pages):
    text = "".join(path.read_text(encoding="utf-8") for path in sorted((folder / "search").glob("all_*.js")))
    found = {}
    for name, rest in re.findall(r"\['\w+',\['(\w+)',\[(.*?)\]\]\]", text):
        found[name] = re.findall(r"'\.\./([^'#]+)#?([^']*)'", rest) + re.findall(r"\['\.\./([^'#]+)#?([^']*)'", rest)
    for name in names:
        if not found.get(name):
            yield f"the search does not find {name}"
        elif not all(file in pages and (not place or place in pages[file].places) for file, place in found[name]):
            yield f"the search leads from {name} to nowhere"
    for name in found:
        if name.lower().startswith("trni_"):
            yield f"the search finds {name}, which is private"


def wide_pages(browser_program, folder, pages):
    import pages as browsing
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        browser = browsing.Browser(browser_program, home)
        try:
            for name in pages:
                browser.open((folder / name).as_uri())
                for width in WIDTHS:
                    browser.ask("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1,
                                mobile=False)
                    wide = browser.run("document.documentElement.scrollWidth")
                    if wide > width:
                        yield f"{name} is {wide} pixels wide on a screen of {width}"
                for complaint in browser.complaints():
                    yield f"{name}: {complaint}"
        finally:
            browser.close()


def main(folder, names, browser=None):
    folder = pathlib.Path(folder)
    pages = {path.name: Page(path) for path in sorted(folder.glob("*.html"))}
    names = pathlib.Path(names).read_text(encoding="utf-8").split()
    for fault in [*dead_links(folder, pages), *search_faults(folder, names, pages)]:
        print(fault)
    shown = {name for name in pages if name.startswith("group__") or "args" in name or name == "index.html"}
    if browser:
        for fault in wide_pages(browser, folder, sorted(shown)):
            print(fault)
    links = sum(len(page.links) for page in pages.values())
    print(f"looked at {links + len(names)} links and names in {len(pages)} pages; {len(shown)} on {len(WIDTHS)} screens")


if __name__ == "__main__":
    main(*(argument for argument in sys.argv[1:] if argument))
