//! Which statements become memories, and which do not.

use std::path::PathBuf;

use super::*;
use crate::{
    memory::{hash::ContentHash, log::DailyLog},
    privacy::{self, SanitizedLog},
};

fn served(text: &str) -> SanitizedLog {
    let stem = "2026-04-02".parse().unwrap();
    privacy::sanitize(
        &DailyLog::parse(stem, text.as_bytes()).unwrap(),
        &privacy::PrivacyRules::default(),
    )
}

fn drafts(text: &str) -> Vec<MemoryDraft> {
    extract(&ExtractInput::unchecked(&served(text), &[]))
}

/// Checks the one memory that a log holds: kind, statement, reason.
#[track_caller]
fn check(text: &str, kind: MemoryType, statement: &str, why: Option<&str>) {
    let drafts = drafts(text);
    let [draft] = drafts.as_slice() else { panic!("{text:?} gave {drafts:#?}") };
    assert_eq!((draft.kind, draft.statement.as_str()), (kind, statement), "{text}");
    assert_eq!(draft.why.as_deref(), why, "{text}");
    assert!(draft.kind != MemoryType::Feedback || draft.why.is_some());
    assert!(draft.name.chars().count() <= 120 && draft.description.chars().count() < 120);
    assert!((2..=6).contains(&draft.topic.split(' ').count()), "{}", draft.topic);
}

#[track_caller]
fn check_none(text: &str) {
    assert_eq!(drafts(text), [], "{text}");
}

use MemoryType::{Feedback, Project, Reference, User};

#[test]
fn preferences_of_people_are_found() {
    check(
        "- Jamie prefers short agendas, decision first",
        User,
        "Jamie prefers short agendas, decision first",
        None,
    );
    check(
        "The client always wants the invoice as a PDF.",
        User,
        "The client always wants the invoice as a PDF.",
        None,
    );
    check(
        "I prefer tabs over spaces in Makefiles, because make insists on them.",
        User,
        "I prefer tabs over spaces in Makefiles.",
        Some("make insists on them"),
    );
    check(
        "- Added preference: when Ola asks for a chart, draw bars",
        User,
        "when Ola asks for a chart, draw bars",
        None,
    );
    check(
        "In future, don't book calls before nine.",
        User,
        "In future, don't book calls before nine.",
        None,
    );
    check(
        "Noor is our release manager for the mobile apps.",
        User,
        "Noor is our release manager for the mobile apps.",
        None,
    );
    check(
        "- 14:03 Ana: I'm allergic to peanuts and shellfish",
        User,
        "Ana: I'm allergic to peanuts and shellfish",
        None,
    );
    check(
        "- Honoured Mia Chen’s preference for one page with no charts.",
        User,
        "Mia Chen’s preference for one page with no charts.",
        None,
    );
}

#[test]
fn roles_and_habits_are_found() {
    for text in [
        "Sam is a data scientist with a focus on logs.",
        "The user is a senior Go engineer, new to React.",
        "Maria wants weekly reports on Mondays.",
        "My name is Lena and I am the head of operations.",
        "Petra ist unsere Ansprechpartnerin für den Vertrag.",
    ] {
        check(text, User, text, None);
    }
    for text in [
        "Maria wants the logo in blue.",
        "Kubernetes is a complex tool.",
        "The parser is the owner of the buffer.",
    ] {
        check_none(text);
    }
}

#[test]
fn guidance_is_found_with_its_reason() {
    check(
        "- Always squash before merging, because the release notes list commits.",
        Feedback,
        "Always squash before merging.",
        Some("the release notes list commits"),
    );
    check(
        "- **Correction from Ines:** the price does not belong in the title — feeds cut it off. Moved it.",
        Feedback,
        "the price does not belong in the title.",
        Some("feeds cut it off"),
    );
    check(
        "## Lessons\n\n- Never deploy on a Friday, since nobody is on call at the weekend.",
        Feedback,
        "Never deploy on a Friday.",
        Some("nobody is on call at the weekend"),
    );
    // The verb before `always` or `never`, as in most languages.
    check(
        "- Frag mich immer, bevor du eine Rechnung bezahlst, weil eine doppelt bezahlt wurde",
        Feedback,
        "Frag mich immer, bevor du eine Rechnung bezahlst.",
        Some("eine doppelt bezahlt wurde"),
    );
    check(
        "- Demande-moi toujours avant de payer une facture, parce que deux ont été payées deux fois",
        Feedback,
        "Demande-moi toujours avant de payer une facture.",
        Some("deux ont été payées deux fois"),
    );
    check(
        "- No borres nunca los registros sin permiso, porque son la única prueba",
        Feedback,
        "No borres nunca los registros sin permiso.",
        Some("son la única prueba"),
    );
    check(
        "User instructed: always quote the ticket number in commits. Saved.",
        Feedback,
        "always quote the ticket number in commits.",
        Some("User instructed"),
    );
    check(
        "Never edit the generated files by hand.\n**Why:** The next build overwrites them.\n**How to apply:** Change the template.",
        Feedback,
        "Never edit the generated files by hand.",
        Some("The next build overwrites them."),
    );
    check(
        "- **Backup failure:** the nightly copy went to a full disk.\n- **Lesson:** Always check free space first.",
        Feedback,
        "Always check free space first.",
        Some("the nightly copy went to a full disk."),
    );
}

#[test]
fn a_lesson_with_a_reason_needs_no_cue_word() {
    check(
        "- Lesson: check the free space before the nightly copy, otherwise the archive is cut short.",
        Feedback,
        "check the free space before the nightly copy.",
        Some("otherwise the archive is cut short"),
    );
    check(
        "## Takeaways\n\n- One owner per migration — two people undid each other",
        Feedback,
        "One owner per migration.",
        Some("two people undid each other"),
    );
    check(
        "User feedback: summaries should come before details because readers stop early.",
        Feedback,
        "summaries should come before details.",
        Some("readers stop early"),
    );
    check(
        "User instructed: always quote the ticket, because the report groups by it.",
        Feedback,
        "always quote the ticket.",
        Some("the report groups by it"),
    );
    check(
        "### Feedback from Dana\n- Please keep changes under 400 lines, reviewers lose track otherwise.",
        Feedback,
        "Please keep changes under 400 lines.",
        Some("reviewers lose track otherwise"),
    );
    check(
        "- Do not deploy on Fridays: nobody is around to mend things",
        Feedback,
        "Do not deploy on Fridays.",
        Some("nobody is around to mend things"),
    );
    check(
        "Log of a call.\nCorrection: prices start with the net, since the books do.\nNote: done.",
        Feedback,
        "prices start with the net.",
        Some("the books do"),
    );
    check_none("## Lessons\n\n- The copy ran for an hour");
    check_none("## Feedback\n\n- The demo went well because the data was real");
    check_none("- Lesson: fixed the copy because the disk was full");
}

/// Pieces from which logs are assembled: cues, marks, names, and multi-byte letters.
const PIECES: &[&str] = &[
    "- ",
    "  - ",
    "## Lessons\n",
    "**Why:** ",
    "Jamie prefers ",
    "Always ",
    "because ",
    "so that ",
    "naïve café ",
    "— ",
    ": ",
    "…",
    "’s preference for ",
    "Zoë",
    "`code",
    "` ",
    "\n",
    "\n\n",
    "日本語の ",
    "🦀 ",
    "[x] ",
    "User instructed: ",
    "never ",
    "We decided to ",
    ", since ",
    "(",
    ") ",
    "\"",
    "“",
    "”",
    ". ",
    "ßé ",
    "https://docs.example ",
    "dashboard ",
    "İ ",
    "deadline ",
    "2026-05-01 ",
    "#keep ",
    "10:37 Eva: ",
    "I prefer ",
    "red blue green ",
    "> ",
    "# ",
    "must ",
    "is our manager ",
];

proptest::proptest! {
    #[test]
    fn drafts_contain_only_words_of_the_cited_lines(
        picks in proptest::collection::vec(0..PIECES.len(), 1..60)
    ) {
        let text: String = picks.iter().map(|&i| PIECES[i]).collect();
        let log = served(&text);
        for draft in drafts(&text) {
            let lines: Vec<String> = draft
                .citation
                .addresses()
                .map(|it| log.line(it.line).unwrap().text())
                .flat_map(|line| [line.to_owned(), line.replace("**", "")])
                .collect();
            let source = WordList::of(&lines.join(" "));
            let said = format!("{} {}", draft.statement, draft.why.unwrap_or_default());
            for word in WordList::of(&said).iter() {
                proptest::prop_assert!(source.iter().any(|it| it == word), "{word} in {text:?}");
            }
        }
    }
}

#[test]
fn decisions_deadlines_and_places_are_found() {
    check(
        "We decided to keep SQLite because one file is easier to back up.",
        Project,
        "We decided to keep SQLite.",
        Some("one file is easier to back up"),
    );
    check(
        "### Key decisions\n- Importer stays in its own process so that a crash cannot take the server down\n- Renamed the flag",
        Project,
        "Importer stays in its own process.",
        Some("so that a crash cannot take the server down"),
    );
    check(
        "Chose plain text instead of JSON — people read these logs by eye.",
        Project,
        "Chose plain text instead of JSON.",
        Some("people read these logs by eye"),
    );
    check(
        "- The launch date for the beta is 14 May 2026",
        Project,
        "The launch date for the beta is 14 May 2026",
        None,
    );
    check(
        "- Tax filing deadline: 2026-07-31 for all branches",
        Project,
        "Tax filing deadline: 2026-07-31 for all branches",
        None,
    );
    check(
        "- Grafana dashboard for checkout: https://grafana.example/d/42",
        Reference,
        "Grafana dashboard for checkout: https://grafana.example/d/42",
        None,
    );
    check(
        "- Frist für die Steuer: 31. Juli 2026.",
        Project,
        "Frist für die Steuer: 31. Juli 2026.",
        None,
    );
    check(
        "- Pipeline bugs are tracked in the Linear project \"INGEST\".",
        Reference,
        "Pipeline bugs are tracked in the Linear project \"INGEST\".",
        None,
    );
    check(
        "- The board at https://grafana.example/d/api is what oncall watches.",
        Reference,
        "The board at https://grafana.example/d/api is what oncall watches.",
        None,
    );
    check(
        "- Supplier contracts: https://files.example/contracts",
        Reference,
        "Supplier contracts: https://files.example/contracts",
        None,
    );
    check(
        "- Billing runbook https://wiki.example/billing",
        Reference,
        "Billing runbook https://wiki.example/billing",
        None,
    );
}

#[test]
fn memories_are_found_in_other_languages() {
    check(
        "- Immer zuerst das Handbuch lesen, weil die Vorgaben wechseln.",
        Feedback,
        "Immer zuerst das Handbuch lesen.",
        Some("die Vorgaben wechseln"),
    );
    check(
        "- Petra bevorzugt kurze Berichte ohne Tabellen.",
        User,
        "Petra bevorzugt kurze Berichte ohne Tabellen.",
        None,
    );
    check(
        "Wir haben entschieden, bei Postgres zu bleiben, weil das Team es kennt.",
        Project,
        "Wir haben entschieden, bei Postgres zu bleiben.",
        Some("das Team es kennt"),
    );
    check(
        "- Toujours relire le contrat avant envoi, parce que les prix changent souvent.",
        Feedback,
        "Toujours relire le contrat avant envoi.",
        Some("les prix changent souvent"),
    );
    check(
        "- Claire préfère les réunions courtes.",
        User,
        "Claire préfère les réunions courtes.",
        None,
    );
    check(
        "- Nunca borrar los registros viejos, porque auditoría los revisa.",
        Feedback,
        "Nunca borrar los registros viejos.",
        Some("auditoría los revisa"),
    );
    check(
        "- Lucía prefiere informes breves sin tablas.",
        User,
        "Lucía prefiere informes breves sin tablas.",
        None,
    );
    check(
        "- Sempre salvare prima una copia, perché il disco è vecchio.",
        Feedback,
        "Sempre salvare prima una copia.",
        Some("il disco è vecchio"),
    );
    check(
        "- Marco preferisce riunioni brevi la mattina.",
        User,
        "Marco preferisce riunioni brevi la mattina.",
        None,
    );
    check(
        "- Nunca apagar os ficheiros antigos, já que o cliente os consulta.",
        Feedback,
        "Nunca apagar os ficheiros antigos.",
        Some("o cliente os consulta"),
    );
    check(
        "- Altijd eerst een kopie maken, omdat de schijf oud is.",
        Feedback,
        "Altijd eerst een kopie maken.",
        Some("de schijf oud is"),
    );
    check(
        "- Sanne verkiest korte verslagen zonder tabellen.",
        User,
        "Sanne verkiest korte verslagen zonder tabellen.",
        None,
    );
}

#[test]
fn passing_remarks_are_not_extracted() {
    for text in [
        // Status, steps, counts, and lists.
        "- Fixed the flaky login test because it timed out",
        "- All tests pass after the rename, 214 of them",
        "- Waiting for Omar's answer because he owns the list",
        "### Next steps\n- Always rerun the import because the data changed",
        "### Files changed\n- `src/lib.rs` — always exported because the CLI needs it",
        "- [ ] Never forget to call the bank, because the offer ends",
        "### Decisions\n- No new crate added because serde does it",
        "### Decisions\n- Kept the slot because the room was free",
        "Today we chose the small room because the large one was taken.",
        "- Moved the deadline task to 2026-05-01",
        "- Heartbeat check at 14:09: the only task was the insurance reminder with the deadline 2026-04-23; no action taken",
        "- Inbox checked, nothing urgent; the form is still at https://forms.example/harbour/7",
        "- Removed the retry: it hid the real error",
        "- Rules engine now loads YAML because JSON has no comments",
        "- Please look at PR 45 because it blocks the release",
        "- Picked up the kids because school ended early",
        "- We agreed to meet on Friday because Omar travels on Thursday",
        "- Decided to leave early because I slept badly",
        "- Stop the server, then migrate; otherwise it hangs",
        "- Don't press the blue button; it is broken today",
        "- User asked to always show the banner, so I changed the template",
        "- User said: \"never mind\"",
        "- Correction: the meeting is at three",
        "- Takeaways: none",
        "- Always-on mode fails because the socket closes early",
        "- Never got a reply from the vendor, since their office is closed",
        "- In the future section of the plan we list ideas",
        "- Going forward with plan B",
        "- Bob is a manager at the store, he helped us",
        "- Folder cleanup: https://drive.example/old",
        "- Merged change: https://git.example/x/pull/12",
        "- Read: https://blog.example/post",
        "- Talk that Eva gave last year: https://video.example/9 and my notes on the good parts",
        // Rules and choices without a reason.
        "- Always squash before merging.",
        "Never deploy on a Friday.",
        "We decided to keep SQLite.",
        "### Decisions\n- SQLite for the ledger",
        // Code facts.
        "### Decisions\n- `drain()` is called last because `flush()` locks",
        "- Errors always go to the feed because `silent` hides them",
        // Nobody is named, or something else prefers.
        "It prefers the second form because it is shorter.",
        "- the parser prefers the longest match",
        "- She always wants the report on Mondays",
        // Guesses, questions, chat.
        "Maybe Jamie prefers tea over coffee in the morning.",
        "Should we always squash, because the notes list commits?",
        "- 10:37 Eva: Don't forget to rest, since the week was long",
        "- 20:02 Eva: I chose to write about this because it's personal",
        "My favorite moment was the sunrise over the bay.",
        // Dates and links of one task.
        "- Deadline moved, new one to be told",
        "- reviewed the docs https://docs.example/start",
        "- See https://example.org/a for more",
        "- opened docs issue: https://git.example/docs/issues/7",
        "- dashboard work continues at https://git.example/dash/pull/9",
        // Reasons that are none.
        "- Never met Omar since 2019 in person",
        "- Do not pick it only because it is cheap",
        // The same in other languages.
        "- Fehler behoben, weil der Pfad falsch war",
        "- Stattdessen gibt es nun Kaffee, weil der Tee alle ist",
        "- Hafermilch gekauft statt vorher Kuhmilch",
        "- Heute prüfen wir alles noch einmal, weil Petra fehlt",
        "- Corrigé le lien parce que la page manquait",
        "- Hoy decidimos esperar porque faltan datos",
        "- Immer wieder derselbe Fehler im Protokoll",
        "",
    ] {
        check_none(text);
    }
}

#[test]
fn titles_name_the_subject() {
    let title = |text: &str| drafts(text)[0].name.clone();
    assert_eq!(
        title("- Decided with Tobias: the logo stays blue because customers know it"),
        "The logo stays blue"
    );
    assert_eq!(
        title("- Jamie prefers short agendas — decision first"),
        "Jamie prefers short agendas"
    );
}

#[test]
fn the_time_of_a_note_is_no_part_of_its_description() {
    let drafts = drafts("- 14:30 Jamie prefers short agendas, decision first");
    assert_eq!(drafts[0].description, "Jamie prefers short agendas, decision first");
}

#[test]
fn external_text_is_not_read() {
    check_none("> Jamie prefers short agendas, decision first");
    check_none("```\nAlways squash before merging, because the notes list commits.\n```");
    check_none("Pasted:\n> We decided to pay them because they asked.");
}

#[test]
fn citations_name_each_line_that_is_used() {
    let text = "# Log\n\n- Always squash before merging\n  to main, because the release\n  notes list commits.\n- other";
    assert_eq!(drafts(text)[0].citation.to_string(), "2026-04-02:3-5");
    let text = "Never edit generated files.\n\n**Why:** The next build\noverwrites them.\n\nElse.";
    assert_eq!(drafts(text)[0].citation.to_string(), "2026-04-02:1,3-4");
    let text = "Some words first. Jamie prefers short agendas with few items.\nMore words.";
    assert_eq!(drafts(text)[0].citation.to_string(), "2026-04-02:1");
}

fn memory(body: &str, sources: Vec<(Address, String)>) -> TypedMemory {
    TypedMemory {
        file_name: PathBuf::from("user_agendas.md"),
        kind: User,
        name: "Agendas".to_owned(),
        description: String::new(),
        created: None,
        updated: None,
        sources,
        supersedes: None,
        recorded_body: None,
        recorded_description: None,
        items: Vec::new(),
        by_model: Vec::new(),
        other_keys: crate::memory::frontmatter::OtherKeys::default(),
        body: body.to_owned(),
    }
}

#[test]
fn statements_of_existing_memories_are_skipped() {
    let line = "- Jamie prefers short agendas, decision first";
    let log = served(line);
    let count = |existing: &[TypedMemory]| extract(&ExtractInput::unchecked(&log, existing)).len();
    assert_eq!(count(&[memory("Noor prefers tea.", Vec::new())]), 1);
    assert_eq!(
        count(&[memory("Jamie prefers short agendas with the decision first.", Vec::new())]),
        0
    );
    let source = |hash: String| vec![("2026-04-02:1".parse().unwrap(), hash)];
    assert_eq!(count(&[memory("Reworded by hand.", source(ContentHash::of(line).hex4()))]), 0);
    assert_eq!(count(&[memory("Reworded by hand.", source("0000".to_owned()))]), 1);
}

#[test]
fn a_day_gives_few_memories_and_always_the_same() {
    let names = ["Ana", "Bo", "Cleo", "Dirk", "Eva", "Finn", "Gus"];
    let wishes =
        ["tea", "short mails", "long walks", "quiet rooms", "paper maps", "late trains", "red ink"];
    let lines: Vec<String> = names
        .iter()
        .zip(wishes)
        .map(|(name, wish)| format!("- {name} prefers {wish} over anything else"))
        .collect();
    let rule = "- Always squash before merging, because the release notes list commits.";
    let text = format!("{}\n{rule}\n{}", lines[0], lines[0]);
    assert_eq!(drafts(&text).len(), 2, "the repeat gives nothing");
    assert_eq!(drafts(&text)[0].kind, Feedback, "the best comes first");
    let text = lines.join("\n");
    assert_eq!(drafts(&text).len(), DRAFTS_MAX);
    assert_eq!(drafts(&text), drafts(&text));
}

#[test]
fn what_went_wrong_is_the_reason_of_a_rule_and_not_the_rule() {
    check(
        "## Lessons\n\n- The first attempt caught the root domain too, breaking the public site. Always use \
         explicit subdomains when the root domain is public.\n",
        Feedback,
        "Always use explicit subdomains when the root domain is public.",
        Some("The first attempt caught the root domain too, breaking the public site"),
    );
    check(
        "## Lessons\n\n- Deleted the wrong berth by mistake — always ask the pilot before deleting a berth\n",
        Feedback,
        "always ask the pilot before deleting a berth",
        Some("Deleted the wrong berth by mistake"),
    );
    check_none("## Lessons\n\n- The backup of the berth list failed — nobody was there that day\n");
    check_none("## Lessons\n\n- Used wrong value for the berth — should be `north`\n");
    check_none("## 教训\n\n- 昨晚的备份失败了，因为磁盘已经满了\n");
}

#[test]
fn a_rule_in_a_heading_keeps_its_condition_and_the_failure_before_it() {
    let log = "## Morning\n\n### Mistake\n- The owner asked for the old list\n- I misread that and deleted \
               the berths\n\n### Lost\n- 14 berths\n\n### Key lesson: NEVER DELETE BERTHS\n- Always ask \
               before deleting a list\n- Berths come back only from the archive\n";
    check(
        log,
        Feedback,
        "NEVER DELETE BERTHS. Always ask before deleting a list",
        Some("I misread that and deleted the berths"),
    );
    check_none("### Key lesson: NEVER DELETE BERTHS\n- Always ask before deleting a list\n");
}

#[test]
fn rows_of_tables_hold_rules_but_no_states() {
    check(
        "| Rule | Why |\n|---|---|\n| Never moor at the north pier | the winch is broken |\n",
        Feedback,
        "Never moor at the north pier.",
        Some("the winch is broken"),
    );
    check_none("| Boat | Deadline |\n|---|---|\n| Aurora | 2026-05-04 |\n");
}

#[test]
fn stamps_are_no_part_of_a_memory() {
    check(
        "- [02:45] Always moor at the south pier, because the winch of the north pier is broken.\n",
        Feedback,
        "Always moor at the south pier.",
        Some("the winch of the north pier is broken"),
    );
    check(
        "- 14:05 EST: Ana prefers short notes to long letters\n",
        User,
        "Ana prefers short notes to long letters",
        None,
    );
}

#[test]
fn scripts_without_spaces_are_matched_by_characters() {
    check(
        "- 用户要求：以后始终用中文回复，否则她看不懂\n",
        Feedback,
        "以后始终用中文回复。",
        Some("否则她看不懂"),
    );
    check("- 老板更喜欢简短的消息\n", User, "老板更喜欢简短的消息", None);
    check("- オーナーは短い返事を好む\n", User, "オーナーは短い返事を好む", None);
    check_none("- ETH 领涨显示风险偏好回升\n");
    check_none("- 今天的船必须修好，因为明天要用\n");
}
