"""index.html in a headless Chromium: no errors, tables that sort and filter, figures that grow."""

import json
import re
import shutil
import subprocess
from html import unescape

import pytest

pytestmark = pytest.mark.browser
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
WATCH = """<script>
window.trouble = [];
window.addEventListener("error", (event) => window.trouble.push(String(event.message)), true);
document.addEventListener("securitypolicyviolation", (event) =>
  window.trouble.push("refused " + event.blockedURI));
console.error = (...words) => window.trouble.push(words.join(" "));
</script>"""
ASK = """<script>
window.addEventListener("load", () => {
  const table = document.getElementById("tab:digits-noise").querySelector("table");
  const header = table.tHead.rows[0].cells[2];
  const column = () => [...table.tBodies[0].rows].map((row) => row.cells[2].textContent);
  const outcome = { sorts: [] };
  for (let click = 0; click < 2; click++) {
    header.querySelector("button").click();
    outcome.sorts.push([header.getAttribute("aria-sort"), column()]);
  }
  const filter = table.closest(".table").querySelector("input");
  outcome.filtered = [];
  for (const words of filter ? ["hpg", "no such loss", ""] : []) {
    filter.value = words;
    filter.dispatchEvent(new Event("input"));
    outcome.filtered.push([...table.tBodies[0].rows].filter((row) => !row.hidden).length);
  }
  document.querySelector(".picture").click();
  outcome.large = document.getElementById("large").open;
  document.getElementById("large").click();
  outcome.closed = !document.getElementById("large").open;
  const wide = (picture) => picture.getBoundingClientRect().width;
  outcome.pictures = [...document.querySelectorAll(".picture svg")].map((one) => wide(one) > 100);
  outcome.background = getComputedStyle(document.body).backgroundColor;
  outcome.wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
  outcome.trouble = window.trouble;
  const pre = document.createElement("pre");
  pre.id = "outcome";
  pre.textContent = JSON.stringify(outcome);
  document.body.append(pre);
});
</script>"""


@pytest.fixture(scope="module")
def browser():
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip(f"no browser here: none of {', '.join(BROWSERS)} is installed")
    return found


@pytest.fixture(scope="module")
def look(browser, reported, tmp_path_factory):
    """`look(*flags)`: what the page answers, with its errors from the first script on."""
    folder = tmp_path_factory.mktemp("page")

    def look(*flags, change=lambda text: text):
        text = change((reported / "report" / "index.html").read_text())
        watched = text.replace("<head>", f"<head>{WATCH}", 1).replace("</body>", f"{ASK}</body>")
        (folder / "index.html").write_text(watched)
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        options += [f"--user-data-dir={folder / 'profile'}", "--virtual-time-budget=10000"]
        command = [browser, *options, *flags, "--dump-dom", (folder / "index.html").as_uri()]
        shown = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
        (answer,) = re.findall(r'<pre id="outcome">(.*?)</pre>', shown.stdout, re.DOTALL)
        return json.loads(unescape(answer))

    return look


def test_the_page_loads_sorts_filters_and_enlarges(look):
    found = look()
    assert found["trouble"] == []
    assert found["pictures"] and all(found["pictures"])
    (first, up), (second, down) = found["sorts"]
    assert (first, second) == ("ascending", "descending")
    values = [float(text.split()[0]) for text in up]
    assert values == sorted(values) and down == up[::-1] and len(up) == 2
    assert found["large"] and found["closed"]
    assert found["wide"] <= 0, "nothing sticks out sideways"


def test_a_table_is_filtered(look):
    """By the words that a row must have; tables of a few rows have no filter."""

    def fill(text):
        head, mark, tail = text.partition('<article id="tab:digits-noise">')
        search = '<div class="table"><input type="search" aria-label="Filter">'
        return head + mark + tail.replace('<div class="table">', search, 1)

    assert look(change=fill)["filtered"] == [1, 0, 2]


def test_nothing_sticks_out_on_a_phone(look):
    assert look("--window-size=400,900")["wide"] <= 0


def test_light_and_dark_differ(look):
    dark = "--blink-settings=preferredColorScheme=0"
    light, dark = (look(*flags)["background"] for flags in ((), (dark,)))
    assert light == "rgb(255, 255, 255)" and dark != light


def test_the_test_sees_an_error_and_something_from_elsewhere(look):
    """A page with a broken script and a picture from elsewhere is caught."""

    def broken(text):
        evil = "<script>nowhere()</script>"
        return text.replace("</main>", f'{evil}<img src="https://example.org/a.png"></main>')

    found = look(change=broken)
    assert any("nowhere" in trouble for trouble in found["trouble"])
    assert any("refused https://example.org" in trouble for trouble in found["trouble"])
