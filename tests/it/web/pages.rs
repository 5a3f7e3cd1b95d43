//! Each page is valid, leads nowhere wrong, and is small.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fmt::Write as _,
    fs,
    time::{Duration, Instant},
};

use super::{client::PageServer, compacted, html};
use crate::support::Root;

/// A page of a large folder is at most this long.
const PAGE_BYTES_MAX: usize = 300_000;

/// Pages of single lines and items are many and alike, so only some are read.
fn is_sampled(path: &str, seen: usize) -> bool {
    let is_single =
        ["/line/", "/item/", "/correct/", "/versions/"].iter().any(|it| path.contains(it));
    !is_single || seen.is_multiple_of(12)
}

#[test]
fn every_page_is_valid_and_no_link_is_broken() {
    let root = compacted();
    let server = PageServer::entered(&root, &[]);
    let mut queue: VecDeque<String> = VecDeque::from(["/r/0/".to_owned()]);
    let mut seen: BTreeSet<String> = BTreeSet::new();
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    while let Some(path) = queue.pop_front() {
        let page = server.get(&path);
        assert!(page.len() < PAGE_BYTES_MAX, "{path}: {} bytes", page.len());
        let elements = html::check_page(&page);
        *kinds.entry(path.split('/').nth(3).unwrap().to_owned()).or_default() += 1;
        for link in html::links(&elements) {
            if let Some(id) = link.strip_prefix('#') {
                assert!(elements.iter().any(|it| it.get("id") == Some(id)), "{path}: {link}");
                continue;
            }
            assert!(link.starts_with("/r/0/"), "{path}: {link}");
            let count = seen.len();
            if seen.insert(link.clone()) && is_sampled(&link, count) {
                queue.push_back(link);
            }
        }
    }
    for kind in [
        "", "timeline", "period", "log", "line", "file", "item", "versions", "topics", "search",
        "review", "correct", "runs", "undo", "cost", "sessions",
    ] {
        assert!(kinds.contains_key(kind), "no page of `{kind}` was linked: {kinds:?}");
    }
}

#[test]
fn pages_show_what_the_verbs_show() {
    let root = compacted();
    let server = PageServer::entered(&root, &[]);
    let text = |path: &str| html::text(&server.get(path));

    // Today has every entry of WISDOM.md, with its sources.
    let today = text("/r/0/");
    let wisdom = root.read("WISDOM.md");
    let entries: Vec<&str> = wisdom.lines().filter_map(|it| it.strip_prefix("- ")).collect();
    assert!(entries.len() > 10);
    let plain = |it: &str| it.replace(['`', '*'], "");
    for entry in &entries {
        let words: String = plain(entry).chars().take(40).collect();
        assert!(today.replace(['`', '*'], "").contains(&words), "{entry}");
    }
    assert!(today.contains("why ●○○○○ 1 line, "), "{today}");

    // A week has its summary and its logs, with the reason why a line was left out.
    let week = text("/r/0/period/2026-W14");
    assert!(week.contains("Key Outcomes") && week.contains("Day after."));
    let coverage = root.run(&["coverage", "2026-W14", "--json"]).json();
    let uncovered = coverage["uncovered"].as_array().unwrap();
    assert!(week.contains(&format!("{} are left out", uncovered.len())), "{week}");
    let line = &uncovered[0];
    let stem = line["path"].as_str().unwrap().trim_start_matches("memory/").trim_end_matches(".md");
    let of_line = text(&format!("/r/0/line/{stem}/{}", line["line"]));
    assert!(of_line.contains(line["reason"].as_str().unwrap()), "{of_line}");

    // A line leads up to its items, and an item down to its lines.
    let up = text("/r/0/line/2026-04-02/3");
    for place in ["memory/weekly/2026-W14.md:", "WISDOM.md:"] {
        assert!(up.contains(place), "{up}");
    }
    let at = 1 + wisdom.lines().position(|it| it.starts_with("- Decided once more")).unwrap();
    let item = text(&format!("/r/0/item/{at}/WISDOM.md"));
    assert!(item.contains("memory/2026-04-02.md:3"), "{item}");

    let found = text("/r/0/search?q=battery+tours&tier=weekly");
    assert!(found.contains("memory/2026-04-02.md:7") && found.contains("via "), "{found}");
    let person = text("/r/0/search?q=prefers&person=Henk");
    assert!(person.contains("Henk prefers dates"), "{person}");

    let runs = text("/r/0/runs/1");
    assert!(runs.contains("weekly 2026-W14") && runs.contains("monthly 2026-03"), "{runs}");
    assert!(text("/r/0/cost").contains("extractive: ready"));
    assert!(text("/r/0/topics").contains("Decided once more"));
}

#[test]
fn a_folder_without_anything_has_all_pages() {
    let root = Root::empty("new");
    root.write("memoird.yaml", "zone: Europe/Berlin\n");
    fs::create_dir(root.path("memory")).unwrap();
    let server = PageServer::entered(&root, &[]);
    for path in
        ["", "timeline", "topics", "search", "search?q=x", "review", "runs", "cost", "sessions"]
    {
        html::check_page(&server.get(&format!("/r/0/{path}")));
    }
}

#[test]
fn only_years_with_logs_are_drawn() {
    let root = Root::small();
    root.write("memory/0001-01-01.md", "- A log with a wrong name\n");
    let server = PageServer::entered(&root, &[]);
    let page = server.get("/r/0/timeline");
    assert_eq!(page.matches("<section").count(), 2, "{page}");
    assert!(
        html::links(&html::elements(&server.get("/r/0/timeline/2026")))
            .contains(&"/r/0/timeline/1".to_owned())
    );
    assert_eq!(server.ask("GET", "/r/0/timeline/1000", &[], "").status, 404);
}

#[test]
fn a_page_records_no_edit() {
    let root = compacted();
    let server = PageServer::entered(&root, &["--read-only"]);
    let path = "memory/weekly/2026-W14.md";
    root.write(path, &format!("{}\n- Added by hand\n", root.read(path)));
    let database = || fs::read(root.path(".memoird/lineage.db")).unwrap();
    let before = (root.files(), database());
    for page in ["item/12/memory/weekly/2026-W14.md", "period/2026-W14", "log/2026-04-02", ""] {
        server.ask("GET", &format!("/r/0/{page}"), &[], "");
    }
    assert!((root.files(), database()) == before);
}

#[test]
fn a_week_of_ten_thousand_lines_has_small_pages() {
    let root = Root::empty("large");
    root.write("memoird.yaml", "zone: Europe/Berlin\n");
    for day in 2..9 {
        let mut log = String::new();
        for line in 0..1430 {
            writeln!(
                log,
                "- Measured station {line} of day {day}: {} mV, {} rows, no repeats",
                line * 7,
                line * 31
            )
            .unwrap();
        }
        root.write(&format!("memory/2026-03-0{day}.md"), &log);
    }
    root.run(&["compact"]).ok();
    let server = PageServer::entered(&root, &[]);
    for path in [
        "",
        "timeline",
        "timeline/2026",
        "period/2026-W10",
        "period/2026-03",
        "log/2026-03-03",
        "log/2026-03-03/5",
        "period/2026-03-03",
        "line/2026-03-03/1400",
        "runs",
        "runs/1",
        "topics",
    ] {
        let page = server.get(&format!("/r/0/{path}"));
        assert!(page.len() < PAGE_BYTES_MAX, "{path}: {} bytes", page.len());
        html::check_page(&page);
    }
    // The last line can be reached.
    assert!(server.get("/r/0/log/2026-03-03/5").contains("Measured station 1429"));
}

#[test]
fn what_is_kept_between_requests_ends_with_a_change() {
    const PATIENCE: Duration = Duration::from_secs(60);
    let root = Root::small();
    root.run_with_digest(&["compact"]).ok();
    let log = root.home("log");
    let stderr = fs::File::create(&log).unwrap().into();
    let mut server =
        PageServer::start_with(&root, &[], &[("MEMOIRD_LOG", "memoird=debug")], stderr);
    server.enter();
    let kept = || fs::read_to_string(&log).unwrap().matches("nothing has changed").count();
    let shown = || html::text(&server.get("/r/0/runs"));
    // What changed moments ago may change again within the same tick of the clock, so nothing is kept at first.
    let shown_when_kept = || {
        let (before, deadline) = (kept(), Instant::now() + PATIENCE);
        loop {
            let page = shown();
            if kept() > before {
                return page;
            }
            assert!(Instant::now() < deadline, "nothing is kept");
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    let quiet = shown_when_kept();
    assert!(quiet.contains("nothing due"), "{quiet}");
    root.append("memory/2026-03-10.md", "- The valves of well 4 were replaced by Ines\n");
    let changed = shown();
    assert!(changed.contains("weekly 2026-W11"), "{changed}");
    assert_eq!(shown_when_kept(), changed);
    root.run_with_digest(&["compact"]).ok();
    let compacted = shown();
    assert!(compacted.contains("nothing due"), "{compacted}");
    assert_eq!(shown_when_kept(), compacted);
}
