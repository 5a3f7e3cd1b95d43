//! A journal in six languages and four scripts, folded without a model.

use crate::support::Root;

const WEEK: &str = "memory/weekly/2026-W10.md";

/// Returns the bullets of a section.
fn section<'a>(file: &'a str, title: &str) -> Vec<&'a str> {
    let mut lines = file.lines().skip_while(|it| *it != format!("### {title}"));
    lines.next();
    lines.take_while(|it| !it.starts_with("### ")).filter(|it| it.starts_with("- ")).collect()
}

/// Folds the week into so large a share of its logs.
fn folded(ratio: &str) -> Root {
    let root = Root::new("noor");
    let ratio = format!("compaction.weekly.ratio={ratio}");
    let settings = ["compaction.whole_below_chars=0", "compaction.weekly.max_ratio=0.95", &ratio];
    let mut args = vec!["compact"];
    args.extend(settings.iter().flat_map(|it| ["--set", it]));
    root.run(&args).ok();
    root
}

#[test]
fn figures_and_names_outlive_the_weather_in_every_language() {
    let root = folded("0.5");
    let week = root.read(WEEK);
    for kept in ["2026-014", "412 €", "Robledo", "10:30", "12,800円", "40 ترسا", "RX-5521-FR"]
    {
        assert!(week.contains(kept), "{kept} is not in\n{week}");
    }
    let talk = [
        "Kaffee war alle",
        "Il a plu",
        "Comimos en el bar",
        "Погода была",
        "天気がよかった",
        "كان الجو جميلا",
        "which was pleasant",
    ];
    let told = talk.iter().filter(|it| week.contains(**it)).count();
    assert!(told <= 1, "{told} of {talk:?} in\n{week}");
}

#[test]
fn decisions_and_what_is_open_stand_where_one_looks_for_them() {
    let root = folded("0.8");
    let week = root.read(WEEK);
    let decisions = section(&week, "Decisions").join("\n");
    for decided in ["Brenner & Sohn statt von Halm", "25 km", "caja 27"] {
        assert!(decisions.contains(decided), "{decided} is not among\n{decisions}\nof\n{week}");
    }
    let open = section(&week, "Blockers & Open Items").join("\n");
    for waits in ["Lauben", "Saint-Avre", "88-B"] {
        assert!(open.contains(waits), "{waits} is not among\n{open}\nof\n{week}");
    }
}

#[test]
fn length_is_counted_in_characters_and_each_bullet_leads_to_its_line() {
    let root = folded("0.5");
    let logs: usize =
        (2..=8).map(|day| root.read(&format!("memory/2026-03-0{day}.md")).chars().count()).sum();
    let week = root.read(WEEK);
    let body = week.rsplit_once("---\n").unwrap().1;
    let words: usize = body
        .lines()
        .map(|line| line.rsplit_once(" [2026-").map_or(line, |it| it.0).chars().count() + 1)
        .sum();
    assert!(words * 10 <= logs * 5 + 100, "{words} of {logs}:\n{body}");
    assert!(words * 10 >= logs * 4, "the room is used: {words} of {logs}:\n{body}");
    for bullet in body.lines().filter(|it| it.starts_with("- ")) {
        let (text, citation) = bullet.rsplit_once(" [").unwrap();
        let day = &citation[..10];
        let log = root.read(&format!("memory/{day}.md"));
        // Word for word, whatever the script: each part that was joined stands in the log.
        for part in text[2..].split(['…', ';', ':', '.', '。']).map(str::trim) {
            assert!(log.contains(part), "`{part}` of `{bullet}` is not in\n{log}");
        }
    }
}

#[test]
fn a_word_of_any_script_is_found_again() {
    let root = folded("0.5");
    for (words, line) in [
        ("Kirchturmuhr Lauben", "2026-03-02"),
        ("balancier Charrier", "2026-03-03"),
        ("музей будильник Слава", "2026-03-05"),
        ("懐中時計", "2026-03-06"),
        ("المسجد النخيل", "2026-03-07"),
    ] {
        let found = root.run(&["search", words, "--json", "--limit", "3"]).ok().json_as("search");
        assert_eq!(found["hits"][0]["date"], line, "{words}: {found:#}");
    }
}
