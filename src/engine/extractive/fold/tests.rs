//! What a week and a month say, and that it stands on its lines.

use std::fmt::Write as _;

use proptest::prelude::*;

use crate::{
    compaction::ground::{self, Violation},
    engine::{Budget, WeekSource, extractive::counts::Corpus},
    memory::{log::DailyLog, period::Period},
    privacy::{self, ServedLog},
};

use super::*;

fn log(stem: &str, text: &str) -> ServedLog {
    privacy::serve(
        &DailyLog::parse(stem.parse().unwrap(), text.as_bytes()).unwrap(),
        &privacy::Rules::default(),
    )
}

fn budget(target_chars: usize) -> Budget {
    Budget { target_chars, limit_chars: target_chars + target_chars / 6, whole: false }
}

fn folded(
    period: &str,
    logs: &[ServedLog],
    weeks: &[WeekSource],
    budget: Budget,
) -> Result<Draft, EngineError> {
    let period: Period = period.parse().unwrap();
    let mut corpus = Corpus::new();
    for log in logs {
        corpus.add_text(log);
    }
    let draft = fold(&FoldInput { period, logs, weeks, budget, counts: corpus.counts(period) })?;
    for item in draft.sections.iter().flat_map(|(_, items)| items) {
        assert_eq!(ground::check(item, logs), Ok(()), "{item}");
    }
    Ok(draft)
}

fn print(draft: &Draft) -> String {
    let mut text = String::new();
    for (section, items) in &draft.sections {
        text.push_str(&["# ", section.title(), "\n"].concat());
        for item in items {
            text.push_str(&["- ", &item.to_string(), "\n"].concat());
        }
    }
    text
}

#[track_caller]
fn check(logs: &[(&str, &str)], target: usize, expected: &str) {
    let logs: Vec<_> = logs.iter().map(|(stem, text)| log(stem, text)).collect();
    let draft = folded("2026-W14", &logs, &[], budget(target)).unwrap();
    assert_eq!(print(&draft), expected);
}

#[test]
fn structure_and_words_choose_the_section() {
    check(
        &[(
            "2026-04-01",
            "# 2026-04-01\n\n## Decisions\n- SQLite for the index, one file is easier to copy\n\n## Log\n\
             - [ ] write the migration guide for users\n- [x] export of the monthly tables\n\
             - Fixed the race in the importer queue\n- The office was closed for the holiday",
        )],
        900,
        "# Key Outcomes\n\
         - export of the monthly tables; Fixed the race in the importer queue [2026-04-01:8-9]\n\
         # Decisions\n\
         - SQLite for the index, one file is easier to copy [2026-04-01:4]\n\
         # Blockers & Open Items\n\
         - write the migration guide for users [2026-04-01:7]\n\
         # Context\n\
         - The office was closed for the holiday [2026-04-01:10]\n",
    );
}

#[test]
fn a_heading_goes_with_its_bullets_and_is_cited() {
    check(
        &[(
            "2026-04-01",
            "# 2026-04-01\n\n## Task: Tab bar\n### What was done\n- replaced the separator\n- added a test for wrapping",
        )],
        900,
        "# Key Outcomes\n\
         - Task: Tab bar: replaced the separator; added a test for wrapping [2026-04-01:3,5-6]\n",
    );
}

#[test]
fn a_clause_brings_the_beginning_of_its_sentence() {
    let text = "- The paper archive was moved on Monday, and the gateway of Lisbon got version 3.2.1 for €4,100 a year";
    let draft = folded("2026-W14", &[log("2026-04-01", text)], &[], budget(900)).unwrap();
    assert!(print(&draft).contains("Monday, and the gateway"), "{}", print(&draft));
    // What fits may be the beginning alone, never the end alone.
    for target in 60..160 {
        let logs = [log("2026-04-01", text)];
        let printed = print(&folded("2026-W14", &logs, &[], budget(target)).unwrap());
        assert!(printed.contains("- The paper archive"), "{target}: {printed}");
    }
}

#[test]
fn a_sentence_that_points_back_brings_the_one_before() {
    let text = "- Priya visited the weather station 131 above the dam. It had lost 4,118 rows since 2026-03-02. Lunch was fine there.";
    for target in 80..200 {
        let logs = [log("2026-04-01", text)];
        let printed = print(&folded("2026-W14", &logs, &[], budget(target)).unwrap());
        assert!(!printed.contains("- It had"), "{target}: {printed}");
    }
}

#[test]
fn a_heading_goes_only_with_what_needs_it() {
    let text = "## Quarterly thoughts and considerations about various ongoing matters\n\
                - Priya measured 4,118 rows at weather station 131 above the Almada dam\n\n\
                ## Lisbon lease\n- signed by Ottilie\n";
    let printed = print(&folded("2026-W14", &[log("2026-04-01", text)], &[], budget(900)).unwrap());
    assert!(printed.contains("Lisbon lease: signed by Ottilie"), "{printed}");
    assert!(printed.contains("- Priya measured 4,118 rows"), "{printed}");
}

#[test]
fn a_heading_is_said_once_in_its_section() {
    let mut text = "## Moving the office to Lisbon\n".to_owned();
    for (what, n) in [
        ("desks", 11),
        ("lamps", 22),
        ("chairs", 33),
        ("plants", 44),
        ("screens", 55),
        ("shelves", 66),
    ] {
        writeln!(text, "- The movers carried {n} {what} up the narrow stairs while neighbours watched from their {what} window").unwrap();
    }
    let printed =
        print(&folded("2026-W14", &[log("2026-04-01", &text)], &[], budget(2_000)).unwrap());
    assert_eq!(printed.matches("Moving the office").count(), 1, "{printed}");
    assert!(printed.lines().filter(|line| line.starts_with("- ")).count() > 1, "{printed}");
}

#[test]
fn a_decision_with_its_reason_is_in_the_fullest_week() {
    let mut text = String::new();
    for i in 0..300 {
        let word = |k: usize| ["port", "lamp", "dune", "fern", "gate", "hill", "kiln"][(i / k) % 7];
        writeln!(
            text,
            "- The {} of the {} got {} new {}s from vendor {}",
            word(1),
            word(7),
            i * 37,
            word(49),
            i % 13,
        )
        .unwrap();
    }
    text.push_str(
        "- Decided to keep the quarterly review on Thursdays because the auditors need two days\n",
    );
    let printed =
        print(&folded("2026-W14", &[log("2026-04-01", &text)], &[], budget(1_500)).unwrap());
    assert!(printed.contains("auditors need two days"), "{printed}");
}

#[test]
fn speakers_stay_and_times_go() {
    check(
        &[(
            "2026-04-01",
            "- 13:56 Ada: I painted the harbour at sunrise with my brother.\n- 13:57 Bo: Wow, Ada!",
        )],
        900,
        "# Context\n- Ada: I painted the harbour at sunrise with my brother. [2026-04-01:1]\n",
    );
}

#[test]
fn what_was_said_before_is_said_once() {
    let same = "- The nightly backup of the archive ran without a single error";
    let logs = [
        log("2026-04-01", same),
        log("2026-04-02", same),
        log("2026-04-03", &format!("{same} again")),
    ];
    let draft = folded("2026-W14", &logs, &[], budget(900)).unwrap();
    assert_eq!(draft.sections.iter().flat_map(|(_, items)| items).count(), 1);
    let left: Vec<_> = draft.left_out.iter().map(|(a, why)| (a.to_string(), *why)).collect();
    assert_eq!(left.len(), 2);
    assert!(left.iter().all(|(_, why)| *why == LeftOut::Repeat), "{left:?}");
}

#[test]
fn a_new_number_is_news() {
    let logs = [
        log("2026-04-01", "- The nightly backup of the archive took 12 minutes"),
        log("2026-04-02", "- The nightly backup of the archive took 47 minutes"),
    ];
    let text = print(&folded("2026-W14", &logs, &[], budget(900)).unwrap());
    assert!(text.contains("12 minutes") && text.contains("47 minutes"), "{text}");
}

#[test]
fn kept_lines_stand_word_for_word_whatever_the_budget() {
    let kept = "- **Never** deploy on a Friday, said Ada  (ticket #7) #keep";
    let text = format!("{kept}\n> quoted words of a stranger #keep\n- use `#keep` to mark lines\n");
    let logs = [log("2026-04-01", &text)];
    let draft = folded("2026-W14", &logs, &[], budget(90)).unwrap();
    let text = print(&draft);
    assert!(text.contains(&format!("{kept} [2026-04-01:1]\n")), "{text}");
    assert!(!text.contains("stranger"), "{text}");
    // Into the month too, from the week's bullet.
    let items = draft.sections.iter().flat_map(|(s, i)| i.iter().map(|i| (Some(*s), i.clone())));
    let weeks = [WeekSource { period: "2026-W14".parse().unwrap(), items: items.collect() }];
    let month = print(&folded("2026-04", &logs, &weeks, budget(60)).unwrap());
    assert!(month.contains(&format!("{kept} [2026-04-01:1]\n")), "{month}");
    // A person deleted it from the week: it climbs no further.
    let weeks = [WeekSource { period: "2026-W14".parse().unwrap(), items: Vec::new() }];
    assert!(folded("2026-04", &logs, &weeks, budget(60)).is_err());
}

#[test]
fn a_small_week_is_carried_over_whole() {
    let text = "# 2026-04-01\n\n## Notes\nok\n- [ ] call Bo\n\n---\n| a | b |\n|---|---|\n| 1 | 2 |\n```\nls\n```\n## Later";
    let logs = [log("2026-04-01", text)];
    let draft = folded("2026-W14", &logs, &[], Budget { whole: true, ..budget(10) }).unwrap();
    let printed = print(&draft);
    let mut cited = BTreeSet::new();
    for item in draft.sections.iter().flat_map(|(_, items)| items) {
        cited.extend(item.citation.iter().flat_map(Citation::addresses).map(|a| a.line));
    }
    assert_eq!(cited.into_iter().collect::<Vec<_>>(), [1, 3, 4, 5, 8, 10, 12, 14]);
    assert!(printed.contains("- ok [2026-04-01:1,3-4]"), "{printed}");
    assert!(printed.contains("# Blockers & Open Items\n- call Bo [2026-04-01:5]"), "{printed}");
}

#[test]
fn a_whole_week_joins_only_headings_that_say_something() {
    let text = "# 2026-04-01\n\n## Lisbon office\n### Notes\nThe landlord lowered the deposit by a third because the lift had stood\nstill all winter.\n## Done\n- signed";
    let logs = [log("2026-04-01", text)];
    let draft = folded("2026-W14", &logs, &[], Budget { whole: true, ..budget(10) }).unwrap();
    assert_eq!(
        print(&draft),
        "# Key Outcomes\n- signed [2026-04-01:7-8]\n# Context\n\
         - Lisbon office: The landlord lowered the deposit by a third because the lift had stood still all winter. \
         [2026-04-01:1,3-6]\n"
    );
}

#[test]
fn a_month_is_made_of_what_its_weeks_kept_and_cites_days() {
    let logs = [
        log(
            "2026-03-31",
            "- Signed the lease for the Lisbon office\n- Watered all the plants on the third floor",
        ),
        log("2026-04-08", "- [ ] renew the insurance of the Lisbon office before June"),
    ];
    let week = |name: &str, bullets: &[(Section, &str)]| WeekSource {
        period: name.parse().unwrap(),
        items: bullets.iter().map(|(s, b)| (Some(*s), Item::parse(b))).collect(),
    };
    let weeks = [
        week(
            "2026-W14",
            &[
                (Section::KeyOutcomes, "Signed the lease for the Lisbon office [2026-03-31:1]"),
                (
                    Section::Context,
                    "Landlord was friendly and lowered our deposit by hand [2026-03-31:1]",
                ),
            ],
        ),
        week(
            "2026-W15",
            &[(
                Section::BlockersAndOpenItems,
                "renew the insurance of the Lisbon office before June [2026-04-08:1]",
            )],
        ),
    ];
    let draft = folded("2026-04", &logs, &weeks, budget(900)).unwrap();
    assert_eq!(
        print(&draft),
        "# Themes\n\
         - Landlord was friendly and lowered our deposit by hand [2026-03-31:1]\n\
         # Milestones\n\
         - Signed the lease for the Lisbon office [2026-03-31:1]\n\
         # Carried Forward\n\
         - renew the insurance of the Lisbon office before June [2026-04-08:1]\n"
    );
}

#[test]
fn every_script_can_be_folded() {
    for text in [
        "今日は新しい輸入ツールを公開しました。明日は東京の事務所で会議があります。",
        "Сегодня мы выпустили новую версию импорта. Завтра встреча в московском офисе.",
        "أطلقنا اليوم أداة الاستيراد الجديدة. غدا لدينا اجتماع في مكتب القاهرة.",
        "วันนี้เราเปิดตัวเครื่องมือนำเข้าใหม่แล้วและพรุ่งนี้มีประชุม",
        "오늘 새로운 가져오기 도구를 출시했습니다. 내일 서울 사무실에서 회의가 있습니다.",
    ] {
        let draft = folded("2026-W14", &[log("2026-04-01", text)], &[], budget(400)).unwrap();
        assert!(!draft.sections.is_empty(), "{text}");
    }
}

#[test]
fn huge_lines_and_empty_logs() {
    let huge = [log("2026-04-01", &"endless words without any mark of an end ".repeat(4_000))];
    assert!(folded("2026-W14", &huge, &[], budget(3_000)).is_ok());
    for text in ["", "\n\n", "```\n```", "# \n", "---\n***"] {
        assert!(
            folded("2026-W14", &[log("2026-04-01", text)], &[], budget(300)).is_err(),
            "{text:?}"
        );
    }
}

#[test]
fn what_holds_words_says_something() {
    let paragraph = "Es ging den ganzen Tag um das Dach und um nichts sonst ".repeat(40);
    let word = ["x"; 700].concat() + " end of the word that nobody can cut";
    for text in [
        paragraph.as_str(),
        word.as_str(),
        "and so it was what it was",
        "Plan:",
        "| a | b |\n|---|---|\n| it | was |",
    ] {
        let draft = folded("2026-W14", &[log("2026-04-01", text)], &[], budget(600)).unwrap();
        assert!(!draft.sections.is_empty(), "{text}");
    }
    let short =
        [log("2026-04-01", &["Anna met the whole board of the harbour trust"; 3].join(" again "))];
    let draft = folded("2026-W14", &short, &[], budget(60)).unwrap();
    assert_eq!(print(&draft), "# Context\n- Anna met the whole board of the [2026-04-01:1]\n",);
}

#[test]
fn words_of_a_person_climb_into_the_month() {
    let logs = [log("2026-03-31", "- Signed the lease for the Lisbon office, 4 years, 312 m²")];
    let own = "Nobody but Ottilie may restart the gateway [2026-03-31:1; 2026-W14:9]";
    let mut items: Vec<_> = (0..9)
        .map(|i| {
            let text = format!("Signed the lease for the Lisbon office {i} [2026-03-31:1]");
            (Some(Section::KeyOutcomes), Item::parse(&text))
        })
        .collect();
    items.push((Some(Section::Context), Item::parse(own)));
    let weeks = [WeekSource { period: "2026-W14".parse().unwrap(), items }];
    let period: Period = "2026-04".parse().unwrap();
    let mut corpus = Corpus::new();
    corpus.add_text(&logs[0]);
    let counts = corpus.counts(period);
    let input = FoldInput { period, logs: &logs, weeks: &weeks, budget: budget(90), counts };
    let printed = print(&fold(&input).unwrap());
    assert!(printed.contains(&format!("# Themes\n- {own}\n")), "{printed}");
}

/// A head may begin in the line before.
#[test]
fn a_head_of_two_lines_is_cited_with_both() {
    let text = "(U1 @é 5d東f東 東aU1hi nX東J) #M9 d1éKC #jéßXßé Tß. 東v) @63KD\n\
                (m4Nß) iy東6 @Ié ß3ß — ß — Kz4éCy (東Ké3pgF:\n\
                * lw東iVE — oZéyI7ro rCpZ s東7ßéoo — Ifßé3éJ 東T東CU ha東東 ßßc3h東6東; mBR\n";
    let parent = "- The importer reads `@63KD` and writes\n  `/srv/in` in these steps:\n  \
                  - it locks the folder that nobody else may see meanwhile\n";
    // `9)` begins no list here.
    let quote =
        "* hé ß FBéß東東é ßj東東6é\n> 東énS FßMdf\n9) (Oéx7) 8G東? — O4 #W東v! seven of them\n";
    for text in [text, parent, quote] {
        let logs = [log("2026-04-02", text)];
        let mut corpus = Corpus::new();
        corpus.add_text(&logs[0]);
        let period: Period = "2026-W14".parse().unwrap();
        let counts = corpus.counts(period);
        for target in [90, 400, 958] {
            let budget = budget(target);
            let Ok(draft) = fold(&FoldInput { period, logs: &logs, weeks: &[], budget, counts })
            else {
                continue;
            };
            for item in draft.sections.iter().flat_map(|(_, items)| items) {
                assert_eq!(ground::check(item, &logs[..]), Ok(()), "{item}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_budget_holds_and_a_repeat_is_the_same(
        lines in prop::collection::vec("(- |\\* |## |> |)(((\\(|\\*\\*|#|@|— )?[A-Za-zéß東0-9]{1,8}(\\)|\\*\\*|[.,;:!?%])? ){0,24})", 1..40),
        target in 150_usize..2_000,
    ) {
        let logs = [
            log("2026-04-01", &lines[..lines.len() / 2].join("\n")),
            log("2026-04-02", &lines[lines.len() / 2..].join("\n")),
        ];
        let period: Period = "2026-W14".parse().unwrap();
        let mut corpus = Corpus::new();
        for log in &logs {
            corpus.add_text(log);
        }
        let counts = corpus.counts(period);
        let input = FoldInput { period, logs: &logs, weeks: &[], budget: budget(target), counts };
        if let Ok(draft) = fold(&input) {
            prop_assert!(render::body_chars(period, &draft.sections) <= input.budget.limit_chars);
            prop_assert_eq!(print(&draft), print(&fold(&input).unwrap()));
            let checked = ground::split(&draft, ground::Words::Theirs, &logs[..], &|_| false);
            // Words such as `si` and `wenn` come up by chance, where no clause begins.
            let is_noise = |why: &Violation| matches!(why, Violation::HedgeDropped { .. });
            let missed = checked.rejected.iter().find(|(.., why)| !is_noise(why));
            prop_assert!(missed.is_none(), "{:?}", missed);
        }
    }
}
