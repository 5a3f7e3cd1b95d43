//! A journal in six languages and four scripts, and a day of the same harbour in seven languages, compacted
//! without a model.

use crate::support::Root;

const WEEK: &str = "memory/weekly/2026-W10.md";

/// Returns the bullets of a section.
fn section<'a>(file: &'a str, title: &str) -> Vec<&'a str> {
    let mut lines = file.lines().skip_while(|it| *it != format!("### {title}"));
    lines.next();
    lines.take_while(|it| !it.starts_with("### ")).filter(|it| it.starts_with("- ")).collect()
}

/// Summarizes the week into this share of its logs.
fn compacted(ratio: &str) -> Root {
    let root = Root::new("noor");
    let ratio = format!("compaction.weekly.ratio={ratio}");
    let settings = ["compaction.whole_below_chars=0", "compaction.weekly.max_ratio=0.95", &ratio];
    let mut args = vec!["compact"];
    args.extend(settings.iter().flat_map(|it| ["--set", it]));
    root.run(&args).ok();
    root
}

#[test]
fn figures_and_names_are_preferred_over_chatter_in_every_language() {
    let root = compacted("0.5");
    let week = root.read(WEEK);
    for expected in ["2026-014", "412 €", "Robledo", "10:30", "12,800円", "40 ترسا", "RX-5521-FR"]
    {
        assert!(week.contains(expected), "{expected} is not in\n{week}");
    }
    let chatter = [
        "Kaffee war alle",
        "Il a plu",
        "Comimos en el bar",
        "Погода была",
        "天気がよかった",
        "كان الجو جميلا",
        "which was pleasant",
    ];
    let kept_chatter = chatter.iter().filter(|it| week.contains(**it)).count();
    assert!(kept_chatter <= 1, "{kept_chatter} of {chatter:?} in\n{week}");
}

#[test]
fn decisions_and_open_items_are_in_their_sections() {
    let root = compacted("0.9");
    let week = root.read(WEEK);
    let decisions = section(&week, "Decisions").join("\n");
    for decided in ["Brenner & Sohn statt von Halm", "25 km", "caja 27"] {
        assert!(decisions.contains(decided), "{decided} is not among\n{decisions}\nof\n{week}");
    }
    let open = section(&week, "Blockers & Open Items").join("\n");
    for open_item in ["Lauben", "Saint-Avre", "88-B"] {
        assert!(open.contains(open_item), "{open_item} is not among\n{open}\nof\n{week}");
    }
}

#[test]
fn length_is_counted_in_characters_and_bullets_cite_their_lines() {
    let root = compacted("0.5");
    let logs: usize =
        (2..=8).map(|day| root.read(&format!("memory/2026-03-0{day}.md")).chars().count()).sum();
    let week = root.read(WEEK);
    let body = week.rsplit_once("---\n").unwrap().1;
    let words: usize = body
        .lines()
        .map(|line| line.rsplit_once(" [2026-").map_or(line, |it| it.0).chars().count() + 1)
        .sum();
    assert!(words * 10 <= logs * 5 + 100, "{words} of {logs}:\n{body}");
    assert!(words * 10 >= logs * 4, "the allowed length is used: {words} of {logs}:\n{body}");
    for bullet in body.lines().filter(|it| it.starts_with("- ")) {
        let (text, citation) = bullet.rsplit_once(" [").unwrap();
        let day = &citation[..10];
        let log = root.read(&format!("memory/{day}.md"));
        // Word for word, whatever the script: the log contains each joined part.
        for part in text[2..].split(['…', ';', ':', '.', '。']).map(str::trim) {
            assert!(log.contains(part), "`{part}` of `{bullet}` is not in\n{log}");
        }
    }
}

#[test]
fn words_of_any_script_are_found_by_search() {
    let root = compacted("0.5");
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

/// Compacts the day of the harbour in one language.
fn harbour(language: &str) -> Root {
    let root = Root::empty("harbour");
    root.write("memoird.yaml", "zone: Europe/Berlin\n");
    let day = format!("{}/tests/data/languages/{language}.md", env!("CARGO_MANIFEST_DIR"));
    root.write("memory/2026-03-04.md", &std::fs::read_to_string(day).unwrap());
    let set = ["compaction.whole_below_chars=0", "compaction.weekly.ratio=0.9"];
    let more = "compaction.weekly.max_ratio=0.95";
    root.run(&["compact", "--set", set[0], "--set", set[1], "--set", more]).ok();
    root
}

#[test]
fn headings_and_states_choose_the_section_in_seven_languages() {
    for language in ["zh", "ja", "ru", "es", "pt", "de", "fr"] {
        let week = harbour(language).read(WEEK);
        for (title, held) in [
            ("Key Outcomes", &["84", "320"][..]),
            ("Blockers & Open Items", &["HT-2207", "P-90"]),
            (
                "Decisions",
                &[match language {
                    "zh" => "复制一个文件",
                    "ja" => "1つのファイル",
                    "ru" => "в одном файле",
                    "es" => "un solo archivo",
                    "pt" => "num só ficheiro",
                    "de" => "einer einzigen Datei",
                    _ => "un seul fichier",
                }],
            ),
        ] {
            let bullets = section(&week, title).join("\n");
            for words in held {
                assert!(
                    bullets.contains(words),
                    "{language}: {words} is not in {title} of\n{week}"
                );
            }
        }
    }
}

#[test]
fn rules_decisions_and_preferences_are_kept_in_seven_languages() {
    for (language, rule, why, preference, decision) in [
        ("zh", "删除泊位记录前必须先问港务长", "14 条", "更喜欢用电话", "决定采用单个文件"),
        ("ja", "必ず港長に確認", "14件", "電話で受けるのを好む", "1つのファイル"),
        ("ru", "Всегда спрашивать капитана", "14 записей", "предпочитает телефон", "в одном файле"),
        ("es", "Siempre preguntar", "faltaron 14", "prefiere el teléfono", "un solo archivo"),
        ("pt", "Sempre perguntar", "faltaram 14", "prefere o telefone", "num só ficheiro"),
        (
            "de",
            "Immer die Hafenmeisterin",
            "14 Einträge",
            "bevorzugt das Telefon",
            "einer einzigen Datei",
        ),
        ("fr", "Toujours demander", "14 manquaient", "préfère le téléphone", "un seul fichier"),
    ] {
        let root = harbour(language);
        let files = root.typed_memories();
        let of = |kind: &str| -> String {
            files.iter().filter(|it| it.contains(kind)).map(|it| root.read(it)).collect()
        };
        for (kind, words) in
            [("feedback_", rule), ("feedback_", why), ("user_", preference), ("project_", decision)]
        {
            let text = of(kind);
            assert!(
                text.contains(words),
                "{language}: {words} is not in {kind}: {text}\n{files:?}"
            );
        }
    }
}
