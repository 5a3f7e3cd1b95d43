//! Tests of the text and the citations of weeks and months.

use std::fmt::Write as _;

use proptest::prelude::*;

use crate::{
    compaction::grounding::{self, Violation},
    engine::{LengthBudget, WeekSource, extractive::corpus_stats::Corpus},
    memory::{log::DailyLog, period::Period},
    privacy::{self, SanitizedLog},
};

use super::*;

pub(super) fn log(stem: &str, text: &str) -> SanitizedLog {
    privacy::sanitize(
        &DailyLog::parse(stem.parse().unwrap(), text.as_bytes()).unwrap(),
        &privacy::PrivacyRules::default(),
    )
}

pub(super) fn budget(target_chars: usize) -> LengthBudget {
    LengthBudget { target_chars, limit_chars: target_chars + target_chars / 6, verbatim: false }
}

pub(super) fn summarized(
    period: &str,
    logs: &[SanitizedLog],
    weeks: &[WeekSource],
    budget: LengthBudget,
) -> Result<EngineDraft, EngineError> {
    let period: Period = period.parse().unwrap();
    let mut corpus = Corpus::new();
    for log in logs {
        corpus.add_text(log);
    }
    let draft = summarize(&SummaryInput {
        period,
        logs,
        weeks,
        budget,
        counts: corpus.counts(period),
        check: &|_| None,
    })?;
    for item in draft.sections.iter().flat_map(|(_, items)| items) {
        assert_eq!(grounding::check(item, logs), Ok(()), "{item}");
    }
    Ok(draft)
}

pub(super) fn print(draft: &EngineDraft) -> String {
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
pub(super) fn check(logs: &[(&str, &str)], target: usize, expected: &str) {
    let logs: Vec<_> = logs.iter().map(|(stem, text)| log(stem, text)).collect();
    let draft = summarized("2026-W14", &logs, &[], budget(target)).unwrap();
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
fn a_heading_precedes_its_bullets_and_is_cited() {
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
fn a_clause_is_chosen_only_with_the_beginning_of_its_sentence() {
    let text = "- The paper archive was moved on Monday, and the gateway of Lisbon got version 3.2.1 for €4,100 a year";
    let draft = summarized("2026-W14", &[log("2026-04-01", text)], &[], budget(900)).unwrap();
    assert!(print(&draft).contains("Monday, and the gateway"), "{}", print(&draft));
    // The beginning may be chosen alone, the end may not.
    for target in 60..160 {
        let logs = [log("2026-04-01", text)];
        let printed = print(&summarized("2026-W14", &logs, &[], budget(target)).unwrap());
        assert!(printed.contains("- The paper archive"), "{target}: {printed}");
    }
}

#[test]
fn a_sentence_that_refers_back_is_chosen_only_with_the_previous_one() {
    let text = "- Priya visited the weather station 131 above the dam. It had lost 4,118 rows since 2026-03-02. Lunch was fine there.";
    for target in 80..200 {
        let logs = [log("2026-04-01", text)];
        let printed = print(&summarized("2026-W14", &logs, &[], budget(target)).unwrap());
        assert!(!printed.contains("- It had"), "{target}: {printed}");
    }
}

#[test]
fn a_self_contained_bullet_omits_its_heading() {
    let text = "## Quarterly thoughts and considerations about various ongoing matters\n\
                - Priya measured 4,118 rows at weather station 131 above the Almada dam\n\n\
                ## Lisbon lease\n- signed by Ottilie\n";
    let printed =
        print(&summarized("2026-W14", &[log("2026-04-01", text)], &[], budget(900)).unwrap());
    assert!(printed.contains("Lisbon lease: signed by Ottilie"), "{printed}");
    assert!(printed.contains("- Priya measured 4,118 rows"), "{printed}");
}

#[test]
fn a_heading_appears_once_per_section() {
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
        print(&summarized("2026-W14", &[log("2026-04-01", &text)], &[], budget(2_000)).unwrap());
    assert_eq!(printed.matches("Moving the office").count(), 1, "{printed}");
    assert!(printed.lines().filter(|line| line.starts_with("- ")).count() > 1, "{printed}");
}

#[test]
fn a_decision_with_its_reason_is_chosen_even_in_a_crowded_week() {
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
        print(&summarized("2026-W14", &[log("2026-04-01", &text)], &[], budget(1_500)).unwrap());
    assert!(printed.contains("auditors need two days"), "{printed}");
}

#[test]
fn speaker_labels_stay_and_times_are_removed() {
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
fn repeated_statements_are_chosen_once() {
    let same = "- The nightly backup of the archive ran without a single error";
    let logs = [
        log("2026-04-01", same),
        log("2026-04-02", same),
        log("2026-04-03", &format!("{same} again")),
    ];
    let draft = summarized("2026-W14", &logs, &[], budget(900)).unwrap();
    assert_eq!(draft.sections.iter().flat_map(|(_, items)| items).count(), 1);
    let left: Vec<_> = draft.omitted.iter().map(|(a, why)| (a.to_string(), *why)).collect();
    assert_eq!(left.len(), 2);
    assert!(left.iter().all(|(_, why)| *why == OmissionReason::Repeat), "{left:?}");
}

#[test]
fn statements_with_different_numbers_are_not_repeats() {
    let logs = [
        log("2026-04-01", "- The nightly backup of the archive took 12 minutes"),
        log("2026-04-02", "- The nightly backup of the archive took 47 minutes"),
    ];
    let text = print(&summarized("2026-W14", &logs, &[], budget(900)).unwrap());
    assert!(text.contains("12 minutes") && text.contains("47 minutes"), "{text}");
}

#[test]
fn keep_lines_are_copied_verbatim_despite_the_budget() {
    let marked = "- **Never** deploy on a Friday, said Ada  (ticket #7) #keep";
    let text =
        format!("{marked}\n> quoted words of a stranger #keep\n- use `#keep` to mark lines\n");
    let logs = [log("2026-04-01", &text)];
    let draft = summarized("2026-W14", &logs, &[], budget(90)).unwrap();
    let text = print(&draft);
    // The mark itself is for the engine.
    let words = marked.trim_end_matches(" #keep");
    assert!(text.contains(&format!("{words} [2026-04-01:1]\n")), "{text}");
    assert!(!text.contains("stranger"), "{text}");
    // The month copies the line of the week's bullet, too.
    let items = draft.sections.iter().flat_map(|(s, i)| i.iter().map(|i| (Some(*s), i.clone())));
    let weeks = [WeekSource { period: "2026-W14".parse().unwrap(), items: items.collect() }];
    let month = print(&summarized("2026-04", &logs, &weeks, budget(60)).unwrap());
    assert!(month.contains(&format!("{words} [2026-04-01:1]\n")), "{month}");
    // A line that a person deleted from the week is not copied into the month.
    let weeks = [WeekSource { period: "2026-W14".parse().unwrap(), items: Vec::new() }];
    assert!(summarized("2026-04", &logs, &weeks, budget(60)).is_err());
}

#[test]
fn a_verbatim_week_cites_every_content_line() {
    let text = "# 2026-04-01\n\n## Notes\nok\n- [ ] call Bo\n\n---\n| a | b |\n|---|---|\n| 1 | 2 |\n```\nls\n```\n## Later";
    let logs = [log("2026-04-01", text)];
    let draft =
        summarized("2026-W14", &logs, &[], LengthBudget { verbatim: true, ..budget(10) }).unwrap();
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
fn a_task_that_is_ticked_off_later_appears_once_and_as_done() {
    let logs = [
        log("2026-04-01", "- [ ] Order new mooring lines\n- [ ] Call the sailmaker\n"),
        log("2026-04-02", "- [x] Order new mooring lines.\n- [x] Wash the sails\n"),
        log("2026-04-03", "- [ ] Wash the sails\n"),
    ];
    let whole = LengthBudget { verbatim: true, ..budget(10_000) };
    let draft = summarized("2026-W14", &logs, &[], whole).unwrap();
    assert_eq!(
        print(&draft),
        "# Key Outcomes\n- Order new mooring lines. [2026-04-01:1; 2026-04-02:1]\n\
         - Wash the sails [2026-04-02:2]\n\
         # Blockers & Open Items\n- Call the sailmaker [2026-04-01:2]\n\
         - Wash the sails [2026-04-03:1]\n"
    );
    let chosen = print(&summarized("2026-W14", &logs, &[], budget(10_000)).unwrap());
    let section = chosen.split("# ").find(|it| it.contains("Order new mooring lines"));
    assert!(section.is_some_and(|it| it.starts_with("Key Outcomes\n")), "{chosen}");
    assert_eq!(chosen.matches("Order new mooring lines").count(), 1, "{chosen}");
}

#[test]
fn a_verbatim_week_has_no_lead_in_alone() {
    let text = "Still open:\n- [ ] call Bo\n\nMail from Acme:\n- the rope comes on Friday";
    let logs = [log("2026-04-01", text)];
    let whole = LengthBudget { verbatim: true, ..budget(10) };
    let draft = summarized("2026-W14", &logs, &[], whole).unwrap();
    assert_eq!(
        print(&draft),
        "# Blockers & Open Items\n- call Bo [2026-04-01:1-2]\n\
         # Context\n- Mail from Acme: the rope comes on Friday [2026-04-01:4-5]\n"
    );
}

#[test]
fn a_row_of_a_verbatim_week_has_the_heads_of_its_columns() {
    let text = "## Ferry\n\n| Day | Trips | Cars |\n|---|---|---|\n| Monday | 4 | 31 |\n| | 5 | 40 |\n| Friday | 6 | 58 |";
    let logs = [log("2026-04-01", text)];
    let whole = LengthBudget { verbatim: true, ..budget(10) };
    let draft = summarized("2026-W14", &logs, &[], whole).unwrap();
    assert_eq!(
        print(&draft),
        "# Context\n- Ferry: Monday: Trips 4, Cars 31 [2026-04-01:1,3,5]\n\
         - Monday: Trips 5, Cars 40 [2026-04-01:3,5-6]\n\
         - Friday: Trips 6, Cars 58 [2026-04-01:3,7]\n"
    );
}

#[test]
fn a_verbatim_week_joins_only_meaningful_headings() {
    let text = "# 2026-04-01\n\n## Lisbon office\n### Notes\nThe landlord lowered the deposit by a third because the lift had stood\nstill all winter.\n## Done\n- signed";
    let logs = [log("2026-04-01", text)];
    let draft =
        summarized("2026-W14", &logs, &[], LengthBudget { verbatim: true, ..budget(10) }).unwrap();
    assert_eq!(
        print(&draft),
        "# Key Outcomes\n- signed [2026-04-01:7-8]\n# Context\n\
         - Lisbon office: The landlord lowered the deposit by a third because the lift had stood still all winter. \
         [2026-04-01:1,3-6]\n"
    );
}

#[test]
fn a_month_selects_from_weekly_bullets_and_cites_daily_logs() {
    let logs = [
        log(
            "2026-03-31",
            "- Signed the lease for the Lisbon office\n- Watered all the plants on the third floor",
        ),
        log("2026-04-08", "- [ ] renew the insurance of the Lisbon office before June"),
    ];
    let week = |name: &str, bullets: &[(SummarySection, &str)]| WeekSource {
        period: name.parse().unwrap(),
        items: bullets.iter().map(|(s, b)| (Some(*s), Item::parse(b))).collect(),
    };
    let weeks = [
        week(
            "2026-W14",
            &[
                (
                    SummarySection::KeyOutcomes,
                    "Signed the lease for the Lisbon office [2026-03-31:1]",
                ),
                (
                    SummarySection::Context,
                    "Landlord was friendly and lowered our deposit by hand [2026-03-31:1]",
                ),
            ],
        ),
        week(
            "2026-W15",
            &[(
                SummarySection::BlockersAndOpenItems,
                "renew the insurance of the Lisbon office before June [2026-04-08:1]",
            )],
        ),
    ];
    let draft = summarized("2026-04", &logs, &weeks, budget(900)).unwrap();
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
fn every_script_can_be_summarized() {
    for text in [
        "今日は新しい輸入ツールを公開しました。明日は東京の事務所で会議があります。",
        "Сегодня мы выпустили новую версию импорта. Завтра встреча в московском офисе.",
        "أطلقنا اليوم أداة الاستيراد الجديدة. غدا لدينا اجتماع في مكتب القاهرة.",
        "วันนี้เราเปิดตัวเครื่องมือนำเข้าใหม่แล้วและพรุ่งนี้มีประชุม",
        "오늘 새로운 가져오기 도구를 출시했습니다. 내일 서울 사무실에서 회의가 있습니다.",
    ] {
        let draft = summarized("2026-W14", &[log("2026-04-01", text)], &[], budget(400)).unwrap();
        assert!(!draft.sections.is_empty(), "{text}");
    }
}

#[test]
fn huge_lines_are_summarized_and_empty_logs_are_refused() {
    let huge = [log("2026-04-01", &"endless words without any mark of an end ".repeat(4_000))];
    assert!(summarized("2026-W14", &huge, &[], budget(3_000)).is_ok());
    for text in ["", "\n\n", "```\n```", "# \n", "---\n***"] {
        assert!(
            summarized("2026-W14", &[log("2026-04-01", text)], &[], budget(300)).is_err(),
            "{text:?}"
        );
    }
}

#[test]
fn every_text_with_words_gives_a_summary() {
    let paragraph = "Es ging den ganzen Tag um das Dach und um nichts sonst ".repeat(40);
    let word = ["x"; 700].concat() + " end of the word that nobody can cut";
    for text in [
        paragraph.as_str(),
        word.as_str(),
        "and so it was what it was",
        "Plan:",
        "| a | b |\n|---|---|\n| it | was |",
    ] {
        let draft = summarized("2026-W14", &[log("2026-04-01", text)], &[], budget(600)).unwrap();
        assert!(!draft.sections.is_empty(), "{text}");
    }
    let short =
        [log("2026-04-01", &["Anna met the whole board of the harbour trust"; 3].join(" again "))];
    let draft = summarized("2026-W14", &short, &[], budget(60)).unwrap();
    assert_eq!(print(&draft), "# Context\n- Anna met the whole board of the [2026-04-01:1]\n",);
}

#[test]
fn bullets_that_a_person_wrote_are_copied_into_the_month() {
    let logs = [log("2026-03-31", "- Signed the lease for the Lisbon office, 4 years, 312 m²")];
    let own = "Nobody but Ottilie may restart the gateway [2026-03-31:1; 2026-W14:9]";
    let mut items: Vec<_> = (0..9)
        .map(|i| {
            let text = format!("Signed the lease for the Lisbon office {i} [2026-03-31:1]");
            (Some(SummarySection::KeyOutcomes), Item::parse(&text))
        })
        .collect();
    items.push((Some(SummarySection::Context), Item::parse(own)));
    let weeks = [WeekSource { period: "2026-W14".parse().unwrap(), items }];
    let period: Period = "2026-04".parse().unwrap();
    let mut corpus = Corpus::new();
    corpus.add_text(&logs[0]);
    let counts = corpus.counts(period);
    let input = SummaryInput {
        period,
        logs: &logs,
        weeks: &weeks,
        budget: budget(90),
        counts,
        check: &|_| None,
    };
    let printed = print(&summarize(&input).unwrap());
    assert!(printed.contains(&format!("# Themes\n- {own}\n")), "{printed}");
}

#[test]
fn a_head_that_spans_two_lines_cites_both() {
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
            let Ok(draft) = summarize(&SummaryInput {
                period,
                logs: &logs,
                weeks: &[],
                budget,
                counts,
                check: &|_| None,
            }) else {
                continue;
            };
            for item in draft.sections.iter().flat_map(|(_, items)| items) {
                assert_eq!(grounding::check(item, &logs[..]), Ok(()), "{item}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_limit_holds_and_summaries_are_deterministic(
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
        let input = SummaryInput { period, logs: &logs, weeks: &[], budget: budget(target), counts, check: &|_| None };
        if let Ok(draft) = summarize(&input) {
            prop_assert!(render::body_chars(period, &draft.sections) <= input.budget.limit_chars);
            prop_assert_eq!(print(&draft), print(&summarize(&input).unwrap()));
            let checked = grounding::check_draft(&draft, grounding::Wording::FromSources, &logs[..], &|_| false);
            // Random text contains words such as `si` and `wenn` where no clause begins.
            let is_noise = |why: &Violation| matches!(why, Violation::HedgeDropped { .. });
            let missed = checked.rejected.iter().find(|(.., why)| !is_noise(why));
            prop_assert!(missed.is_none(), "{:?}", missed);
        }
    }
}

/// Returns the summary of a week whose budget fits everything.
fn summarized_without_cuts(logs: &[(&str, &str)]) -> String {
    let logs: Vec<_> = logs.iter().map(|(stem, text)| log(stem, text)).collect();
    print(&summarized("2026-W14", &logs, &[], budget(4_000)).unwrap())
}

#[test]
fn an_open_item_that_is_done_later_is_marked() {
    #[track_caller]
    fn check(open: &str, later: &str, marked: bool) {
        let text = summarized_without_cuts(&[("2026-03-31", open), ("2026-04-02", later)]);
        let found = text.contains("[resolved 2026-04-02]");
        assert_eq!(found, marked, "{open} / {later}: {text}");
        assert!(!marked || text.contains("2026-03-31:1; 2026-04-02:1]"), "{text}");
    }
    let vendor = "- Blocked on the API key of the weather vendor";
    check(vendor, "- The weather vendor sent the API key: resolved at last", true);
    check("- [ ] renew the insurance of the van", "- [x] renew the insurance of the van", true);
    check("- Waiting for the signature of Priya Nair", "- Priya Nair's signature arrived", true);
    check(vendor, "- The weather vendor has not sent the API key, it is not resolved", false);
    check(vendor, "- The API key of the weather vendor will be delivered on Friday", false);
    check(vendor, "- Is the API key of the weather vendor resolved?", false);
    check(vendor, "- The invoice of the paper vendor was paid", false);
    // The open item itself contains a word for "done".
    let date = "- Await the confirmed date of the dentist before scheduling anything";
    check(date, date, false);
    check(date, "- Confirmed date of the dentist before scheduling anything", false);
    // A long story contains all words of the item by chance.
    check(
        "- Await the papers of Priya Nair",
        "- In the morning the surveyors met at the upper dam and closed the old gate there, while Priya Nair showed \
         them the papers about the spillway that the county had drawn up",
        false,
    );
    check("- Waiting for the signature of Priya Nair", "- Tomas Ruiz's signature arrived", false);
    check(
        "- Warten auf die Freigabe der neuen Schnittstelle",
        "- Freigabe der neuen Schnittstelle erledigt",
        true,
    );
}

#[test]
fn a_reopened_item_stays_open() {
    let open = "- Blocked on the API key of the weather vendor";
    let text = summarized_without_cuts(&[
        ("2026-03-31", open),
        ("2026-04-01", "- API key of the weather vendor received"),
        ("2026-04-02", "- Again blocked on the API key of the weather vendor, revoked"),
    ]);
    assert!(!text.contains("[resolved"), "{text}");
}

#[test]
fn a_replaced_figure_is_noted_after_the_current_one() {
    let text = summarized_without_cuts(&[
        ("2026-03-30", "- Walk-away price: $490M\n- The counsel read the draft"),
        ("2026-03-31", "- Walk-away price: $490M"),
        ("2026-04-01", "- Walk-away price: $650M enterprise value"),
    ]);
    let noted = "- Walk-away price: $650M [was $490M until 2026-04-01] enterprise value";
    assert!(text.contains(noted), "{text}");
    assert!(text.contains("[2026-03-31:1; 2026-04-01:1]"), "{text}");
    assert_eq!(text.matches("$490M").count(), 1, "{text}");
    // The same in sentences.
    let text = summarized_without_cuts(&[
        ("2026-03-30", "- Kept the walk-away floor at $490M. Lenders wait."),
        ("2026-03-31", "- Walk-away floor held at $490M, the range stays $420M to $475M"),
        ("2026-04-01", "- Set the walk-away floor at $650M pending the audit of the plant"),
    ]);
    assert!(text.contains("floor at $650M [was $490M until 2026-04-01] pending"), "{text}");
    // One change is enough if the line itself reports it.
    let text = summarized_without_cuts(&[
        ("2026-03-30", "- Briefing time: 7:00 AM"),
        ("2026-04-01", "- Briefing time: now 6:30 AM, before she looks at her phone"),
    ]);
    assert!(text.contains("6:30 AM [was 7:00 AM until 2026-04-01]"), "{text}");
}

#[test]
fn a_series_of_measurements_is_not_a_revision() {
    for logs in [
        // A new measurement each day.
        [
            ("2026-03-30", "- Share of failed runs: 12%"),
            ("2026-03-31", "- Share of failed runs: 9%"),
            ("2026-04-01", "- Share of failed runs: 11%"),
        ],
        // Back to the first value: two things may share the label.
        [
            ("2026-03-30", "- Offer for the boat: $490"),
            ("2026-03-31", "- Offer for the boat: $650"),
            ("2026-04-01", "- Offer for the boat: $490"),
        ],
        // A label of one word is ambiguous.
        [
            ("2026-03-30", "- Price: $490"),
            ("2026-03-31", "- Price: $490"),
            ("2026-04-01", "- Price: $650"),
        ],
        // Both values on one day.
        [
            ("2026-03-31", "- Walk-away price: $490M"),
            ("2026-04-01", "- Walk-away price: $490M"),
            ("2026-04-01-b", "- Walk-away price: $650M"),
        ],
    ] {
        let text = summarized_without_cuts(&logs);
        assert!(!text.contains("[was"), "{text}");
    }
}

#[test]
fn relative_days_get_their_date() {
    #[track_caller]
    fn check(line: &str, expected: &str) {
        let text = summarized_without_cuts(&[("2026-03-31", line)]);
        assert!(text.contains(expected), "{line}: {text}");
    }
    check(
        "- The vendor delivers the new sensor tomorrow, to the dam",
        "tomorrow [2026-04-01], to the dam [2026-03-31:1]",
    );
    check("- Priya said yesterday that the dam holds", "yesterday [2026-03-30] that");
    check("- Das Wehr wurde gestern nicht geprüft, sagt die Wache", "gestern [2026-03-30] nicht");
    check("- Priya came yesterday, 2026-03-30, to the dam", "yesterday, 2026-03-30, to");
    check("- The script `run yesterday now` prints the dam's level", "`run yesterday now`");
}

#[test]
fn a_month_does_not_repeat_the_notes_of_its_weeks() {
    let logs = [
        log("2026-03-31", "- The vendor delivers the new sensor tomorrow, to the upper dam"),
        log("2026-04-01", "- Blocked on the API key of the weather vendor"),
        log("2026-04-07", "- API key of the weather vendor received"),
    ];
    let weeks: Vec<_> = [("2026-W14", 0..2), ("2026-W15", 2..3)]
        .map(|(week, of)| {
            let draft = summarized(week, &logs[of], &[], budget(2_000)).unwrap();
            let items = draft.sections.into_iter();
            let items = items.flat_map(|(s, items)| items.into_iter().map(move |it| (Some(s), it)));
            WeekSource { period: week.parse().unwrap(), items: items.collect() }
        })
        .into();
    let text = print(&summarized("2026-04", &logs, &weeks, budget(3_000)).unwrap());
    assert!(text.contains("tomorrow [2026-04-01], to the upper dam [2026-03-31:1]"), "{text}");
    assert!(text.contains("weather vendor [resolved 2026-04-07]"), "{text}");
}

#[test]
fn a_short_answer_is_chosen_only_with_its_question() {
    let talk = "Priya: The boat is in the yard again.\nTomas: When does the boat leave the yard of Setúbal?\n\
        Priya: On 14 May!\nTomas: Lovely.\nPriya: The mast was painted by the yard's own painter.";
    for target in 60..300 {
        let logs = [log("2026-04-01", talk)];
        let Ok(draft) = summarized("2026-W14", &logs, &[], budget(target)) else { continue };
        let text = print(&draft);
        let asked = "Tomas: When does the boat leave the yard of Setúbal? Priya: On 14 May!";
        assert!(!text.contains("14 May") || text.contains(asked), "{target}: {text}");
    }
    assert!(summarized_without_cuts(&[("2026-04-01", talk)]).contains("Priya: On 14 May!"));
}

const TRANSCRIPT: &str = "# Session: 2026-04-01 15:02:21 UTC\n\n\
    - **Session Key**: agent:main:main\n\
    - **Session ID**: 0f3c7a52-1d1e-4d52-9a44-5f0f6a3d9b11\n\
    - **Source**: telegram\n\n\
    ## Conversation Summary\n\n\
    user: Can you move the export of the tide tables to the new host in Porto?\n\
    assistant: Let me look at the old host first and see what runs there now.\n\
    assistant: Moved the tide export to porto-2, it runs hourly at minute 12.\n\
    user: Never restart the pump controller without asking Ines first.\n\
    assistant: Understood, I will remember this and be careful with it.\n\
    assistant: Still waiting for the certificate of porto-2 from the registrar.\n\
    user: Read HEARTBEAT.md if it exists (workspace context). Follow it strictly. Do not infer or \
    repeat old tasks from prior chats.\n\
    assistant: HEARTBEAT_OK\n";

#[test]
fn a_transcript_gives_requests_orders_outcomes_and_open_items() {
    check(
        &[("2026-04-01-tide-export", TRANSCRIPT)],
        900,
        "# Key Outcomes\n\
         - Tide export: Can you move the export of the tide tables to the new host in Porto? [asked]; \
         Moved the tide export to porto-2, it runs hourly at minute 12. \
         [2026-04-01-tide-export:9,11]\n\
         # Decisions\n\
         - Tide export: Never restart the pump controller without asking Ines first. \
         [2026-04-01-tide-export:12]\n\
         # Blockers & Open Items\n\
         - Tide export: Still waiting for the certificate of porto-2 from the registrar. \
         [2026-04-01-tide-export:14]\n",
    );
}

#[test]
fn a_short_transcript_is_not_copied_line_by_line() {
    let whole = LengthBudget { verbatim: true, ..budget(10_000) };
    let logs = [
        log("2026-04-01-tide-export", TRANSCRIPT),
        log("2026-04-02", "- The gate is painted\n\nuser: hello"),
    ];
    let text = print(&summarized("2026-W14", &logs, &[], whole).unwrap());
    for part in ["Moved the tide", "Never restart", "waiting for", "gate is painted", "user: hello"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    for part in ["Let me look", "HEARTBEAT", "Session ID", "0f3c7a52", "Understood"] {
        assert!(!text.contains(part), "{part}: {text}");
    }
}
