//! A headless Chromium uses the page, where there is one: navigation, forms, keys, without scripts, dark, narrow.
//!
//! It is driven through pipes, by the protocol of its developer tools. With `MEMOIRD_SCREENSHOTS=DIR`, pictures are
//! written to that folder, and with `MEMOIRD_AXE=FILE`, the script of axe-core judges each page, too.

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    os::unix::process::CommandExt as _,
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::{client::PageServer, compacted};
use crate::support::{Root, line_of, skipped};

const CHROMIUM: [&str; 3] =
    ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
/// How long a page may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A browser with one tab.
struct Browser {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    session: Option<String>,
    number: u64,
    /// Errors of the console: blocked content, failed scripts.
    complaints: Vec<String>,
}

impl Browser {
    /// Starts a browser; `None` where there is none.
    fn start(root: &Root) -> Option<Self> {
        let Some(program) = CHROMIUM.into_iter().find(|it| Path::new(it).exists()) else {
            skipped("there is no Chromium on this machine");
            return None;
        };
        let profile = root.home("profile");
        // The browser reads commands from descriptor 3 and writes to 4.
        let mut child = Command::new("/bin/sh")
            .args(["-c", "exec \"$0\" \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>&1", program])
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--remote-debugging-pipe",
                "--no-first-run",
            ])
            .args([
                "--disable-background-networking",
                "--disable-component-update",
                "--no-proxy-server",
            ])
            .arg(format!("--user-data-dir={}", profile.display()))
            .env("HOME", root.home(""))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap();
        let (input, output) =
            (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let mut browser =
            Self { child, input, output, session: None, number: 0, complaints: Vec::new() };
        let tab = browser.call("Target.createTarget", &json!({ "url": "about:blank" }));
        let attach = json!({ "targetId": tab["targetId"], "flatten": true });
        let attached = browser.call("Target.attachToTarget", &attach);
        browser.session = Some(attached["sessionId"].as_str().unwrap().to_owned());
        for domain in ["Page", "Runtime", "Log"] {
            browser.call(&format!("{domain}.enable"), &json!({}));
        }
        Some(browser)
    }

    /// Sends a command and returns its result.
    #[track_caller]
    fn call(&mut self, method: &str, params: &Value) -> Value {
        self.number += 1;
        let number = self.number;
        let mut command = json!({ "id": number, "method": method, "params": params });
        if let Some(session) = &self.session {
            command["sessionId"] = json!(session);
        }
        self.input.write_all(format!("{command}\0").as_bytes()).unwrap();
        loop {
            let message = self.read();
            if message["id"] == json!(number) {
                assert!(message.get("error").is_none(), "{method}: {message}");
                return message["result"].clone();
            }
        }
    }

    /// Reads a message, and keeps complaints.
    fn read(&mut self) -> Value {
        let mut bytes = Vec::new();
        self.output.read_until(0, &mut bytes).unwrap();
        assert_eq!(bytes.pop(), Some(0), "the browser has ended");
        let message: Value = serde_json::from_slice(&bytes).unwrap();
        let is_complaint = message["method"] == "Runtime.exceptionThrown"
            || (message["method"] == "Log.entryAdded"
                && message["params"]["entry"]["level"] == "error");
        if is_complaint {
            self.complaints.push(message["params"].to_string());
        }
        message
    }

    /// Returns the value of an expression in the page.
    #[track_caller]
    fn value(&mut self, expression: &str) -> Value {
        let params = json!({ "expression": expression, "returnByValue": true });
        self.call("Runtime.evaluate", &params)["result"]["value"].clone()
    }

    /// Opens a page and waits until it is there.
    #[track_caller]
    fn open(&mut self, url: &str) {
        self.call("Page.navigate", &json!({ "url": url }));
        self.wait_for("document.readyState === 'complete' && location.href !== 'about:blank'");
    }

    /// Waits until an expression is true.
    #[track_caller]
    fn wait_for(&mut self, expression: &str) {
        let deadline = Instant::now() + PATIENCE;
        while self.value(expression) != json!(true) {
            let page = self.value("location.href + ' ' + document.body?.innerText");
            assert!(Instant::now() < deadline, "not so: {expression} on {page}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Waits until a page is there and its script, too.
    #[track_caller]
    fn wait_for_page(&mut self, path: &str) {
        self.wait_for(&format!(
            "location.pathname.endsWith('/r/0/{path}') && document.readyState === 'complete' \
             && document.querySelector('.keys')?.hidden === false"
        ));
    }

    #[track_caller]
    fn press(&mut self, key: &str) {
        let code = if key.len() == 1 { key } else { "" };
        for (kind, text) in [("keyDown", code), ("keyUp", "")] {
            let params = json!({ "type": kind, "key": key, "text": text });
            self.call("Input.dispatchKeyEvent", &params);
        }
    }

    fn set_view(&mut self, width: u32, scheme: &str) {
        let size =
            json!({ "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600 });
        self.call("Emulation.setDeviceMetricsOverride", &size);
        let media = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        self.call("Emulation.setEmulatedMedia", &media);
    }

    /// Returns the serious findings of axe-core, whose script `MEMOIRD_AXE` names; none without it.
    fn axe_findings(&mut self) -> Value {
        let Some(script) = std::env::var_os("MEMOIRD_AXE") else { return json!([]) };
        self.value(&fs::read_to_string(script).unwrap());
        let run = "axe.run().then((it) => it.violations.filter((v) => ['serious', 'critical'].includes(v.impact)) \
                   .map((v) => v.id + ': ' + v.nodes.map((n) => n.html.slice(0, 150)).join(' | ')))";
        let params = json!({ "expression": run, "returnByValue": true, "awaitPromise": true });
        self.call("Runtime.evaluate", &params)["result"]["value"].clone()
    }

    /// Writes a picture where the caller of the tests wants some.
    fn picture(&mut self, name: &str) {
        if let Some(dir) = std::env::var_os("MEMOIRD_SCREENSHOTS") {
            self.picture_to(&Path::new(&dir).join(format!("{name}.png")));
        }
    }

    fn picture_to(&mut self, path: &Path) {
        let shot = self.call("Page.captureScreenshot", &json!({ "format": "png" }));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let bytes = decoded(shot["data"].as_str().unwrap());
        fs::File::create(path).unwrap().write_all(&bytes).unwrap();
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Decodes Base64.
fn decoded(text: &str) -> Vec<u8> {
    let value = |it: u8| match it {
        b'A'..=b'Z' => it - b'A',
        b'a'..=b'z' => it - b'a' + 26,
        b'0'..=b'9' => it - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let digits: Vec<u8> = text.bytes().filter(|it| *it != b'=').map(value).collect();
    let mut bytes = Vec::new();
    for group in digits.chunks(4) {
        let bits = group.iter().fold(0_u32, |sum, it| (sum << 6) | u32::from(*it))
            << (6 * (4 - group.len()));
        bytes.extend(bits.to_be_bytes()[1..].iter().take(group.len() - 1));
    }
    bytes
}

/// Returns texts whose contrast with what is behind them is below 4.5, and elements without a name.
const DEFECTS: &str = r"
(() => {
  const parse = (color) => {
    const c = (color.match(/[\d.]+/g) || [0, 0, 0, 0]).map(Number);
    const scale = color.startsWith('color(') ? 255 : 1;
    return [c[0] * scale, c[1] * scale, c[2] * scale, c.length > 3 ? c[3] : 1];
  };
  const over = (top, below) => top.slice(0, 3).map((it, i) => it * top[3] + below[i] * (1 - top[3])).concat(1);
  const behind = (element) => {
    const own = parse(getComputedStyle(element).backgroundColor);
    if (own[3] === 1) return own;
    return over(own, element.parentElement ? behind(element.parentElement) : [255, 255, 255, 1]);
  };
  const light = (color) => {
    const [r, g, b] = color.map((it) => it / 255).map((it) => it <= .04045 ? it / 12.92 : ((it + .055) / 1.055) ** 2.4);
    return .2126 * r + .7152 * g + .0722 * b;
  };
  const found = [];
  for (const element of document.querySelectorAll('body *')) {
    const text = [...element.childNodes].some((it) => it.nodeType === 3 && it.textContent.trim());
    const style = getComputedStyle(element);
    if (text && element.getClientRects().length && style.visibility === 'visible') {
      const below = element.closest('svg') ? behind(element.closest('svg').parentElement) : behind(element);
      const front = over(parse(element.closest('svg') ? style.fill : style.color), below);
      const [a, b] = [light(front), light(below)].sort((x, y) => y - x);
      const ratio = (a + .05) / (b + .05);
      if (ratio < 4.5) found.push(`contrast ${ratio.toFixed(2)}: ${element.tagName} ${element.textContent.trim().slice(0, 40)}`);
    }
    const isControl = element.matches('a, button, input:not([type=hidden]), select, textarea, summary');
    const name = element.getAttribute('aria-label') || element.textContent.trim() || element.labels?.[0]?.textContent.trim();
    if (isControl && !name) found.push(`no name: ${element.outerHTML.slice(0, 120)}`);
  }
  return found;
})()";

const PAGES: [&str; 14] = [
    "",
    "timeline",
    "timeline/2026",
    "period/2026-W14",
    "period/2026-03",
    "log/2026-04-02",
    "line/2026-04-02/3",
    "topics",
    "search?q=sqlite",
    "review",
    "runs",
    "runs/1",
    "cost",
    "sessions",
];

#[test]
fn pages_are_legible_on_a_telephone_and_in_the_dark() {
    let root = compacted();
    let server = PageServer::start(&root, &[]);
    let Some(mut browser) = Browser::start(&root) else { return };
    browser.open(&server.url);
    browser.wait_for("location.pathname.endsWith('/r/0/') && !location.search");
    for (width, scheme) in [(360, "light"), (360, "dark"), (1200, "dark"), (1200, "light")] {
        browser.set_view(width, scheme);
        for page in PAGES {
            browser.open(&server.page_url(page));
            let wide = browser.value("document.documentElement.scrollWidth");
            assert!(wide.as_u64().unwrap() <= u64::from(width), "{page} is {wide} wide at {width}");
            let defects = browser.value(DEFECTS);
            assert_eq!(defects, json!([]), "{page} at {width}, {scheme}");
            assert_eq!(browser.axe_findings(), json!([]), "{page} at {width}, {scheme}");
            browser.picture(&format!("{}-{width}-{scheme}", page.replace(['/', '?', '='], "-")));
        }
    }
    assert_eq!(browser.complaints, Vec::<String>::new());
}

#[test]
fn a_browser_uses_keys_and_forms_and_needs_no_script() {
    let root = compacted();
    let server = PageServer::start(&root, &[]);
    let Some(mut browser) = Browser::start(&root) else { return };
    browser.open(&server.url);
    browser.wait_for_page("");

    // Nothing happens by single keys until they are switched on.
    browser.press("o");
    browser.value("document.querySelector('input[name=keys]').click()");
    browser.wait_for_page("");

    // Letters open pages, `j` moves, and `x` and `d` decide.
    browser.press("o");
    browser.wait_for_page("topics");
    browser.press("/");
    browser.wait_for_page("search");
    browser.wait_for("document.activeElement.id === 'q'");
    browser.press("Escape");
    browser.press("r");
    browser.wait_for_page("review");
    browser.press("j");
    browser.wait_for("!!document.querySelector('[data-row].current')");
    browser.press("x");
    browser.wait_for("!!document.querySelector('input[name=id]:checked')");
    browser.press("d");
    browser.wait_for("location.search.startsWith('?done=refuse&')");
    browser.wait_for_page("review");
    browser.wait_for("document.body.innerText.includes('Refused: 1.')");

    // The page of runs follows a stream of events.
    browser.press("u");
    browser.wait_for_page("runs");

    // Without scripts, an item is corrected all the same.
    browser.call("Emulation.setScriptExecutionDisabled", &json!({ "value": true }));
    let line = line_of(&root.read("memory/weekly/2026-W14.md"), "14 weak batteries");
    browser.open(&server.page_url(&format!("correct/{line}/memory/weekly/2026-W14.md")));
    browser.value("document.querySelector('#text').value = '16 weak batteries'");
    browser.value("document.querySelector('button[value=preview]').click()");
    browser.wait_for("!!document.querySelector('button[value=apply]')");
    browser.value("document.querySelector('button[value=apply]').click()");
    browser.wait_for("location.pathname.includes('/r/0/item/')");
    assert!(root.read("memory/weekly/2026-W14.md").contains("- 16 weak batteries ["));
    assert_eq!(browser.complaints, Vec::<String>::new());
}

/// With `MEMOIRD_UPDATE_DOCS=1`, takes the pictures of the documentation again.
#[test]
fn the_documentation_has_pictures_of_the_page() {
    let pictures = [("today", ""), ("week", "period/2026-W14")];
    let path = |name: &str| {
        Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("docs/src/page-{name}.png"))
    };
    if std::env::var_os("MEMOIRD_UPDATE_DOCS").is_some() {
        let root = compacted();
        let server = PageServer::start(&root, &[]);
        let Some(mut browser) = Browser::start(&root) else { return };
        browser.open(&server.url);
        browser.wait_for_page("");
        browser.set_view(1100, "light");
        for (name, page) in pictures {
            browser.open(&server.page_url(page));
            browser.wait_for_page(page);
            browser.picture_to(&path(name));
        }
    }
    for (name, _) in pictures {
        let bytes = fs::read(path(name)).unwrap();
        assert!(bytes.starts_with(b"\x89PNG") && bytes.len() < 300_000, "{name}");
    }
}
