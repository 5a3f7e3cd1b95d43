//! Which statements become bullets, in which section, and which give way to newer ones.

use super::*;
use crate::{
    memory::log::DailyLog,
    privacy::{self, PrivacyRules},
};

/// Returns one log per day from 1 April 2026 on, with these texts.
fn logs(days: &[&str]) -> Vec<SanitizedLog> {
    (1..)
        .zip(days)
        .map(|(day, text)| {
            let stem = format!("2026-04-{day:02}").parse().unwrap();
            let log = DailyLog::parse(stem, text.as_bytes()).unwrap();
            privacy::sanitize(&log, &PrivacyRules::default())
        })
        .collect()
}

fn held_of(found: &Digest) -> Vec<HeldBullet> {
    found.bullets.iter().map(|it| (it.text.clone(), Some(it.citation.clone()))).collect()
}

/// What bullets are chosen from where nothing is kept out.
fn input_of<'a>(
    logs: &'a [SanitizedLog],
    model: &'a ModelReading,
    notes: &'a SeenStatements,
) -> DigestInput<'a> {
    DigestInput {
        logs,
        states_from: NaiveDate::MIN,
        model,
        held: &[],
        shown: &str::to_owned,
        entries: &[],
        notes,
        kept_out: &|_, _, _| None,
        kept_out_of_memory: &|_, _, _, _| false,
        room: 8_000,
    }
}

fn bullets(
    days: &[&str],
    room: usize,
    is_kept_out: &dyn Fn(&str, &Citation) -> bool,
) -> Vec<String> {
    let logs = logs(days);
    let kept_out = |text: &str, citation: &Citation, _: &Citation| {
        is_kept_out(text, citation).then_some(DigestOutcome::KeptOutByPerson)
    };
    let (model, notes) = Default::default();
    let input = DigestInput {
        kept_out: &kept_out,
        kept_out_of_memory: &|_, text, citation, _| is_kept_out(text, citation),
        room,
        ..input_of(&logs, &model, &notes)
    };
    let found = digest(&input);
    assert_eq!(found, digest(&input), "the same logs give the same bullets");
    let held = held_of(&found);
    let again = digest(&DigestInput { held: &held, ..input });
    assert_eq!(found.bullets, again.bullets, "chosen again from the file, the bullets stay");
    found
        .bullets
        .iter()
        .map(|it| format!("{}: {} [{}]", it.section.title(), it.text, it.citation))
        .collect()
}

#[track_caller]
fn check(days: &[&str], expected: &[&str]) {
    assert_eq!(bullets(days, 8_000, &|_, _| false), expected, "{days:?}");
}

#[test]
fn of_a_list_of_what_was_stopped_what_runs_again_leaves() {
    let open = "## TideBoard\n\n- Mona opened TideBoard on the screen of the pier\n\n\
                ## SandBoard\n\n- Mona opened SandBoard on the screen of the beach\n";
    let jobs = "## Pump house\n\n- TideBoard: disabled\n- Disabled SandBoard\n";
    let stopped = |last: &str| {
        let found = bullets(&[open, open, jobs, last], 8_000, &|_, _| false);
        found.into_iter().filter(|it| it.starts_with("Stopped")).collect::<Vec<_>>()
    };
    assert_eq!(
        stopped("- Fed the cat of the pier and cleaned its bowl\n"),
        [
            "Stopped: Pump house: TideBoard: disabled; Disabled SandBoard (2026-04-03) [2026-04-03:1,3-4]"
        ],
    );
    assert_eq!(
        stopped("- Re-enabled TideBoard\n"),
        ["Stopped: Pump house: Disabled SandBoard (2026-04-03) [2026-04-03:1,4]"],
    );
}

#[test]
fn one_day_is_enough_and_each_statement_has_its_section() {
    check(
        &["# 2026-04-01\n\n\
           - Never push to the mirror without asking Ottilie first\n\
           - Ottilie prefers short reports with the numbers first\n\
           - Decided to keep the ferry timetable in SQLite, because one file is easy to copy\n\
           - The harbour dashboard was deployed with the new tide charts\n\
           - The dashboard lives at https://tides.example/board\n\
           - [ ] Renew the licence of the depth sensor\n"],
        &[
            "How to work: Never push to the mirror without asking Ottilie first [2026-04-01:3]",
            "People: Ottilie prefers short reports with the numbers first [2026-04-01:4]",
            "Decisions: Decided to keep the ferry timetable in SQLite, because one file is easy to copy (2026-04-01) [2026-04-01:5]",
            "Projects: The harbour dashboard was deployed with the new tide charts (2026-04-01) [2026-04-01:6]",
            "Environment: The dashboard lives at https://tides.example/board (2026-04-01) [2026-04-01:7]",
            "Open: Renew the licence of the depth sensor (2026-04-01) [2026-04-01:8]",
        ],
    );
}

#[test]
fn feedback_that_orders_is_a_rule_with_its_reason() {
    check(
        &["- Feedback: the depth sensors are tested in real water, never in the tank\n  \
             - Why: the tank had no waves, and the sensor of the pier broke in the first storm.\n  \
             - How to apply: any sensor that gets wet is tested in the harbour.\n\
           - Feedback: Ottilie likes the tide charts of the new dashboard\n"],
        &[
            "How to work: the depth sensors are tested in real water, never in the tank. Why: the tank had no waves, and the sensor of the pier broke in the first storm. [2026-04-01:1-2]",
            "Projects: Feedback: How to apply: any sensor that gets wet is tested in the harbour (2026-04-01) [2026-04-01:1,3]",
            "Projects: Ottilie likes the tide charts of the new dashboard (2026-04-01) [2026-04-01:4]",
        ],
    );
}

#[test]
fn a_decision_that_is_taken_again_is_one() {
    check(
        &[
            "- Decided: SQLite and not Postgres for the tide charts, because one file is easy to copy\n\
             - Decided: Postgres for the mail of the harbour, because it has two writers\n",
            "- Decided once more: SQLite over Postgres for the tide charts, one file is still easy to copy\n",
        ],
        &[
            "Decisions: Decided once more: SQLite over Postgres for the tide charts, one file is still easy to copy (2026-04-02) [2026-04-02:1]",
            "Decisions: Postgres for the mail of the harbour, because it has two writers (2026-04-01) [2026-04-01:2]",
        ],
    );
}

#[test]
fn an_order_may_be_joined_to_what_was_said_before() {
    check(
        &["- And from now on the shed of the harbour is locked at night\n"],
        &["How to work: from now on the shed of the harbour is locked at night [2026-04-01:1]"],
    );
}

#[test]
fn a_rule_that_changed_is_the_new_one() {
    check(
        &[
            "- House rule: no radio in the harbour office at noon\n",
            "- We changed the rule about the radio: on Fridays it may run all day\n",
        ],
        &[
            "How to work: We changed the rule about the radio: on Fridays it may run all day [2026-04-02:1]",
        ],
    );
}

#[test]
fn what_is_about_an_item_of_a_list_is_no_bullet() {
    check(&["## Gap report\n\nNumber 4 must never be left out of the report.\n"], &[]);
}

#[test]
fn a_task_is_open_until_its_day_or_a_person_ticks_it_off() {
    let tasks =
        "- [ ] Paint the hull of the old ferry\n- [ ] Renew the licence of the gauge by 20 April\n";
    let quiet = ["- Mona fed the cat of the pier\n", "- Rain all day at the pier house\n"];
    let open = |first: &str, last: &str| {
        let days = [first, quiet[0], quiet[1], "- The storm took the buoy\n", last];
        let found = bullets(&days, 8_000, &|_, _| false);
        found.into_iter().filter(|it| it.starts_with("Open")).collect::<Vec<_>>()
    };
    let licence = "Open: Renew the licence of the gauge by 20 April (2026-04-01) [2026-04-01:2]";
    assert_eq!(open(tasks, quiet[0]), [licence]);
    let human = format!("---\norigin: human\n---\n{tasks}");
    let licence = "Open: Renew the licence of the gauge by 20 April (2026-04-01) [2026-04-01:5]";
    let hull = "Open: Paint the hull of the old ferry (2026-04-01) [2026-04-01:4]";
    assert_eq!(open(&human, quiet[0]), [licence, hull]);
    assert_eq!(open(&human, "- [x] Paint the hull of the old ferry\n"), [licence]);
}

#[test]
fn a_sentence_of_a_report_may_be_a_rule_and_a_denial_ends_a_fact() {
    let found = bullets(
        &[
            "- Mona scalded her hand at the boiler. From now on wear gloves at both boilers.\n\
             - Piet has a nut allergy, confirmed by the doctor today\n\
             - The lamp of the north pier is broken since the storm\n",
            "- Fed the cat\n",
            "- The lamp of the north pier is not broken, the fuse was\n",
        ],
        8_000,
        &|_, _| false,
    );
    let has = |start: &str| found.iter().any(|it| it.starts_with(start));
    assert!(has("How to work: Mona scalded"), "{found:?}");
    assert!(has("People: Piet has a nut allergy"), "{found:?}");
    assert!(has("Projects: The lamp of the north pier is not broken"), "{found:?}");
    assert!(!has("Projects: The lamp of the north pier is broken"), "{found:?}");
}

#[test]
fn a_denial_of_one_thing_ends_no_other() {
    let found = bullets(
        &[
            "- Lena is allergic to walnuts and to latex\n",
            "- Fed the cat\n",
            "- Lena is not allergic to latex\n",
        ],
        8_000,
        &|_, _| false,
    );
    for text in ["allergic to walnuts and to latex", "not allergic to latex"] {
        assert!(found.iter().any(|it| it.contains(text)), "{text}: {found:?}");
    }
}

#[test]
fn ones_own_line_below_a_quotation_is_a_statement() {
    let found = bullets(
        &[
            "Rafael said: \"Please stop using emojis in all your messages to me\"\nAsk before each reboot of the attic server.\n",
        ],
        8_000,
        &|_, _| false,
    );
    assert!(found.iter().any(|it| it.contains("Ask before each reboot")), "{found:?}");
    assert!(!found.iter().any(|it| it.contains("emojis")), "{found:?}");
}

#[test]
fn the_line_of_a_project_begins_with_what_it_is() {
    let found = bullets(
        &[
            "- Mona wired the TideBoard to the buoy of the north pier\n",
            "- TideBoard is the screen with the tides of eleven piers\n",
            "- TideBoard: paint of the frame is dry\n",
            "- Mona moved the TideBoard to the hall of the pilots, host 10.0.4.7\n",
        ],
        8_000,
        &|_, _| false,
    );
    let line = found.iter().find(|it| it.starts_with("Projects: TideBoard")).unwrap();
    let begin = "Projects: TideBoard is the screen with the tides of eleven piers (2026-04-02); ";
    assert!(line.starts_with(begin) && line.contains("hall of the pilots"), "{found:?}");
}

#[test]
fn a_newer_value_replaces_the_older_one() {
    check(
        &[
            "- The harbour dashboard server has 12 tide gauges connected\n",
            "- The harbour dashboard server has 15 tide gauges connected\n",
        ],
        &[
            "Projects: The harbour dashboard server has 15 tide gauges connected (2026-04-02) [2026-04-02:1]",
        ],
    );
    check(
        &["## Gateway\n\n- Port: 8080 behind nginx\n", "## Gateway\n\n- Port: 9090 behind nginx\n"],
        &["Projects: Gateway: Port: 9090 behind nginx (2026-04-02) [2026-04-02:1,3]"],
    );
}

#[test]
fn a_finished_item_is_not_open() {
    check(
        &[
            "- [ ] Renew the licence of the depth sensor\n",
            "- Renewed the licence of the depth sensor for two years\n- The depth sensor lives at https://tides.example/depth\n",
        ],
        &[
            "Environment: The depth sensor lives at https://tides.example/depth (2026-04-02) [2026-04-02:2]",
        ],
    );
}

#[test]
fn what_is_made_is_not_open() {
    check(
        &[
            "- [ ] Write the redirect list before the harbour domain moves\n",
            "- Redirect list done\n- The harbour domain moves to the new registrar in June\n",
        ],
        &[
            "Projects: The harbour domain moves to the new registrar in June (2026-04-02) [2026-04-02:2]",
        ],
    );
}

#[test]
fn a_plan_that_is_exchanged_or_moved_is_gone() {
    check(
        &[
            "- Decided: payments for berths go through Quillpay, because the office wants it\n",
            "- Switched from Quillpay to Tidebank, Quillpay pays too late\n",
        ],
        &[
            "Projects: Switched from Quillpay to Tidebank, Quillpay pays too late (2026-04-02) [2026-04-02:1]",
        ],
    );
    check(
        &[
            "## Summer feast\n\n- Pier feast is planned for 1 June at the north pier\n- The stage has room for ten people\n",
            "- Pier feast moved from 1 to 8 June\n",
        ],
        &[
            "Projects: Pier feast moved from 1 to 8 June (2026-04-02) [2026-04-02:1]",
            "Projects: Summer feast: The stage has room for ten people (2026-04-01) [2026-04-01:1,4]",
        ],
    );
}

#[test]
fn external_text_code_and_copies_give_no_bullet() {
    check(
        &[
            "> Never push to the mirror without asking Ottilie first\n\n```\nNever push to the mirror at night\n```\n",
        ],
        &[],
    );
    let copied =
        "- Check the mail of the harbour office, the calendar and the weather for tomorrow\n";
    check(&[copied, copied, copied], &[]);
}

#[test]
fn what_depends_on_its_heading_has_it_before_it() {
    check(
        &["## 2. Pump house (02:10 ET)\n\n- Status: waits for two valves\n"],
        &["Projects: Pump house: Status: waits for two valves (2026-04-01) [2026-04-01:1,3]"],
    );
}

#[test]
fn a_number_that_belongs_to_its_word_stays_in_a_title() {
    check(
        &["## 24-hour watch\n\n- The gauge of Brest reports to `brest-01` on port 8090\n"],
        &[
            "Projects: 24-hour watch: The gauge of Brest reports to `brest-01` on port 8090 (2026-04-01) [2026-04-01:1,3]",
        ],
    );
}

#[test]
fn where_a_session_was_is_left_out() {
    check(
        &[
            "- 10:02 Session in tide-board on feature/long-name-of-a-branch: The gauge of Brest reports to `brest-01` on port 8090\n",
            "- Session in tide on main: The user decided: SQLite rather than Postgres, because one file is easier to copy\n",
            "- Session in tide on main: The buoys of Brest are painted yellow by the harbour office\n",
        ],
        &[
            "Decisions: SQLite rather than Postgres, because one file is easier to copy (2026-04-02) [2026-04-02:1]",
            "Projects: The buoys of Brest are painted yellow by the harbour office (2026-04-03) [2026-04-03:1]",
            "Projects: The gauge of Brest reports to `brest-01` on port 8090 (2026-04-01) [2026-04-01:1]",
        ],
    );
}

#[test]
fn what_is_gone_or_only_considered_is_no_state() {
    let state = "- Four accounts of the harbour office at `brest-01`, port 8090\n";
    for title in ["What was lost", "Integration ideas", "Ideas", "Options", "Proposed changes"] {
        check(&[&format!("## Pump house\n\n### {title}\n\n{state}")], &[]);
    }
    assert_eq!(bullets(&[&format!("## Pump house\n\n{state}")], 8_000, &|_, _| false).len(), 1);
}

#[test]
fn a_label_is_no_value_of_rules() {
    check(
        &[
            "- Garden work: never water after ten in the morning\n",
            "- Session in tide on main: From now on never push to main directly\n",
            "- Garden work: raspberries cut today, all of them\n",
            "- Session in tide on main: My name is Lena and I live in Bergen\n",
        ],
        &[
            "How to work: From now on never push to main directly [2026-04-02:1]",
            "How to work: Garden work: never water after ten in the morning [2026-04-01:1]",
            "People: My name is Lena and I live in Bergen [2026-04-04:1]",
            "Projects: Garden work: raspberries cut today, all of them (2026-04-03) [2026-04-03:1]",
        ],
    );
}

#[test]
fn people_mistakes_and_new_habits_have_their_sections() {
    check(
        &[
            "- Piet asked for the tide table of the coming week\n- Piet drives the van of the harbour office and reads no mail\n",
            "- Mistake: I ran the migration without a copy, and 14 test orders were gone\n- In the evening we asked Piet for the list of the gauges\n",
            "- From now on I write the release note first, because on Thursday nobody knew what had changed\n- This morning Piet said that the list of the gauges is fine\n",
        ],
        &[
            "How to work: From now on I write the release note first, because on Thursday nobody knew what had changed [2026-04-03:1]",
            "People: Piet drives the van of the harbour office and reads no mail [2026-04-01:2]",
            "Lessons: I ran the migration without a copy, and 14 test orders were gone [2026-04-02:1]",
            "Projects: In the evening we asked Piet for the list of the gauges (2026-04-02) [2026-04-02:2]",
            "Projects: Piet asked for the tide table of the coming week (2026-04-01) [2026-04-01:1]",
        ],
    );
}

#[test]
fn what_began_or_was_learned_today_holds() {
    check(
        &[
            "- Bea started today as second baker of the harbour office, probation until 31 January\n\
             - We learned today that Mila is allergic to penicillin\n- Bea is ill today and the office is closed\n",
            "",
            "",
            "",
            "- Two jays at the feeder of the harbour office\n",
        ],
        &[
            "Projects: Two jays at the feeder of the harbour office (2026-04-05) [2026-04-05:1]",
            "Projects: Bea started today as second baker of the harbour office, probation until 31 January (2026-04-01) [2026-04-01:1]",
            "Projects: We learned today that Mila is allergic to penicillin (2026-04-01) [2026-04-01:2]",
        ],
    );
}

#[test]
fn an_entry_of_a_session_says_what_was_said() {
    check(
        &[
            "- 08:17 Session in tidepool on main: Update the README\n  - The user decided: drop Redis, because one \
             process needs no cache server\n  - Said last: The README now describes the moka cache of the tidepool\n",
        ],
        &[
            "Decisions: drop Redis, because one process needs no cache server (2026-04-01) [2026-04-01:2]",
            "Projects: The README now describes the moka cache of the tidepool (2026-04-01) [2026-04-01:3]",
        ],
    );
}

#[test]
fn siblings_below_one_title_are_joined() {
    let day = "## Pump house\n\n- Valves: two of steel.\n- Boiler: from 1962\n\
               - Never lend the keys out\n- Keys: with Ottilie\n- Roof: leaks\n";
    check(
        &[day],
        &[
            "How to work: Pump house: Never lend the keys out [2026-04-01:1,5]",
            "Projects: Pump house: Valves: two of steel; Boiler: from 1962; Keys: with Ottilie; Roof: leaks (2026-04-01) [2026-04-01:1,3-4,6-7]",
        ],
    );
    // What a person deleted leaves its siblings, and does not come back with one that follows a longer statement.
    let between = "## Pump house\n\n- Boiler: from 1962\n\
                   - The harbour master of Brest lends the second key of the cellar to nobody\n\
                   - Roof: leaks\n";
    let is_first = |_: &str, it: &Citation| {
        it.lines_of(&"2026-04-01".parse().unwrap()).is_some_and(|it| it.contains(3))
    };
    let left = bullets(&[between], 8_000, &is_first);
    assert!(left.iter().any(|it| it.contains("Pump house: Roof: leaks (")), "{left:?}");
    assert!(!left.iter().any(|it| it.contains("Boiler")), "{left:?}");
    let is_kept_out = |_: &str, it: &Citation| {
        it.lines_of(&"2026-04-01".parse().unwrap()).is_some_and(|it| it.contains(4))
    };
    assert_eq!(
        bullets(&[day], 8_000, &is_kept_out),
        [
            "How to work: Pump house: Never lend the keys out [2026-04-01:1,5]",
            "Projects: Pump house: Valves: two of steel; Keys: with Ottilie; Roof: leaks (2026-04-01) [2026-04-01:1,3,6-7]",
        ]
    );
}

#[test]
fn the_room_is_never_exceeded_and_what_is_kept_out_leaves_room() {
    let day = "- Never push to the mirror without asking Ottilie first\n\
               - Never delete a tide table before the backup has run\n";
    let one = bullets(&[day], 150, &|_, _| false);
    assert_eq!(one.len(), 1, "{one:?}");
    let other = bullets(&[day], 150, &|text, _| one[0].contains(text));
    assert!(other.len() == 1 && other != one, "{other:?}");
}

#[test]
fn steps_of_a_list_are_no_rules() {
    check(
        &[
            "The switch to the new pump house was prepared:\n\n- stop the old pump on Monday morning\n",
        ],
        &[
            "Projects: The switch to the new pump house was prepared: stop the old pump on Monday morning (2026-04-01) [2026-04-01:1,3]",
        ],
    );
    check(
        &["- The run book says how to stop and start the ferry pumps\n"],
        &[
            "Projects: The run book says how to stop and start the ferry pumps (2026-04-01) [2026-04-01:1]",
        ],
    );
}

#[test]
fn rules_that_set_a_boundary_come_first() {
    check(
        &[
            "- Always run the tide tests in the container of the harbour office, it has the tables\n\
             - Never publish the buoy list without asking Ottilie first\n",
            "- Always name the harbour in the title of a report, the office sorts by it\n",
        ],
        &[
            "How to work: Never publish the buoy list without asking Ottilie first [2026-04-01:2]",
            "How to work: Always name the harbour in the title of a report, the office sorts by it [2026-04-02:1]",
            "How to work: Always run the tide tests in the container of the harbour office, it has the tables [2026-04-01:1]",
        ],
    );
}

#[test]
fn what_was_removed_as_a_whole_ends_what_was_said_about_it() {
    let days = |last: &'static str| {
        let day = "## TideBoard\n\n\
             - Mona opened TideBoard at https://tides.example/board on the screen of the pier\n";
        let bullets = bullets(&[day, day, last], 8_000, &|_, _| false);
        bullets.iter().any(|it| it.contains("tides.example"))
    };
    assert!(days("- Removed TideBoard logs of the winter, they filled the disk\n"));
    assert!(!days("- Removed TideBoard, the office has its own screen now\n"));
}

#[test]
fn posts_of_others_and_removed_rules_give_no_rules() {
    let is_rule = |text: &str| {
        let bullets = bullets(&[text], 8_000, &|_, _| false);
        bullets.iter().any(|it| it.starts_with("How to work"))
    };
    let rule = "- Never answer a harbour master without the tide table of the day\n";
    assert!(is_rule(&format!("## Mooring\n\n{rule}")));
    assert!(!is_rule(&format!("## Removed rules\n\n{rule}")));
    let posts: String = ["pier_ann", "buoy_bob", "gauge_cy"]
        .map(|it| format!("## Prompt (@{it})\n\nPosted at https://posts.example/{it}/status/7\n\n"))
        .concat();
    assert!(!is_rule(&format!("{posts}{rule}")));
    assert!(is_rule(&format!("{}{rule}", posts.replace("/status/", "/pull/"))));
}

#[test]
fn a_label_that_ends_after_the_first_sentence_is_read() {
    let long = "the tide table of the winter with all gauges of the coast and ".repeat(6);
    bullets(&[&format!("- **Shipped v2! Next up** – {long}\n")], 8_000, &|_, _| false);
}

#[test]
fn a_bullet_stays_where_a_new_one_is_only_as_good() {
    let rule = |what: &str, whom: &str| format!("- Never {what} without asking {whom} first\n");
    let days = [
        rule("push to the mirror", "Ottilie") + &rule("restart the tide server", "Mirek"),
        rule("mail the harbour office", "Yusra") + &rule("delete a depth survey", "Benno"),
    ];
    let days: Vec<&str> = days.iter().map(String::as_str).collect();
    let choose = |days: &[&str], held: &[HeldBullet]| {
        let logs = logs(days);
        let (model, notes) = Default::default();
        // There is room for two of the four, and not for a third one.
        digest(&DigestInput { held, room: 300, ..input_of(&logs, &model, &notes) })
    };
    let first = choose(&days[..1], &[]);
    assert_eq!(first.bullets.len(), 2);
    let held = held_of(&first);
    assert_eq!(choose(&days, &held).bullets, first.bullets);
    // Where no citation is left, the words alone say what was there.
    let held: Vec<HeldBullet> = held.into_iter().map(|it| (it.0, None)).collect();
    assert_eq!(choose(&days, &held).bullets, first.bullets);
    let from_nothing = choose(&days, &[]);
    assert_ne!(from_nothing.bullets, first.bullets, "the case must differ without the file");
}

#[test]
fn what_was_to_come_tomorrow_is_no_news_a_week_later() {
    let first = "- The harbour board reads the new tide charts tomorrow at the pump house\n";
    let later = ["cables", "wheels", "a lamp", "a hook", "paint"]
        .map(|it| format!("- The crane of the north pier got {it}\n"));
    let shown_of = |first: &str, count: usize| {
        let days: Vec<&str> =
            std::iter::once(first).chain(later[..count].iter().map(String::as_str)).collect();
        let found = bullets(&days, 8_000, &|_, _| false);
        found.iter().filter(|it| it.contains("day") || it.contains("tomorrow")).count()
    };
    let shown = |count: usize| shown_of(first, count);
    assert_eq!([0, 2, 3, 4, 5].map(shown), [1, 1, 1, 0, 0]);
    let lasting =
        "- The harbour board reads the new tide charts since tomorrow at the pump house\n";
    assert!(shown_of(lasting, 5) == 1);
}

#[test]
fn a_problem_that_its_section_solves_is_not_open() {
    let open = |text: &str| {
        let found = bullets(&[text], 8_000, &|_, _| false);
        found.iter().any(|it| it.starts_with("Open: ") && it.contains("gauge"))
    };
    let problem = "## Tide gauge\n\n- Problem: the gauge on the north pier is blocked by ice\n";
    assert!(open(problem));
    assert!(!open(&format!("{problem}- Solution found: heated with the lamp of the pier\n")));
    assert!(open(&format!("{problem}\n## Crane\n\n- Solution: new cables\n")));
    assert!(open(&format!("{problem}- Solution: none yet, we look for one\n")));
    let other = "- Problem: the crane is blocked\n- Fix: new cables for the crane\n";
    assert!(open(&format!("{problem}{other}")));
}

#[test]
fn a_word_for_stopped_may_be_said_of_somebody() {
    let stopped = |text: &str| {
        let found = bullets(&[text], 8_000, &|_, _| false);
        found.iter().any(|it| it.starts_with("Stopped: "))
    };
    assert!(stopped("- Ottilie disabled the morning report of the harbour board\n"));
    assert!(!stopped("- Teaching disabled sailors to read the tide charts of the harbour\n"));
    assert!(stopped("- Boeing removed from the list of the harbour board\n"));
    assert!(!stopped("- Lists for removed buoys are kept at the harbour office by Ottilie\n"));
}

#[test]
fn what_a_person_wants_from_now_on_is_a_rule() {
    let dump = |who: &str| {
        format!(
            "# Session: 2026-04-01 10:00:00 UTC\n\n- **Session Key**: agent:main:main\n\
             - **Session ID**: 7a1f\n- **Source**: telegram\n\n## Conversation Summary\n\n\
             user: Can you look at the tide charts of the pier?\nassistant: I will.\n\
             {who}: I would like to hear the truth about the tide charts going forward\n\
             user: thanks\n"
        )
    };
    let is_rule = |text: &str| {
        let found = bullets(&[text], 8_000, &|_, _| false);
        found.iter().any(|it| it.starts_with("How to work: I would like to hear the truth"))
    };
    assert!(is_rule(&dump("user")));
    assert!(!is_rule(&dump("assistant")));
}

#[test]
fn an_open_item_leaves_after_three_days_of_logs() {
    let task = "- [ ] Renew the licence of the depth sensor of the harbour\n";
    let other =
        |at: usize| format!("- The gauge {at} of the pier {at} belongs to the office of Brest\n");
    let days: Vec<String> = std::iter::once(task.to_owned()).chain((1..=3).map(other)).collect();
    let of = |count: usize| {
        let days: Vec<&str> = days[..count].iter().map(String::as_str).collect();
        bullets(&days, 8_000, &|_, _| false).join("\n")
    };
    assert!(of(3).contains("Renew the licence"), "{}", of(3));
    assert!(!of(4).contains("Renew the licence"), "{}", of(4));
}

#[test]
fn a_state_is_old_after_fourteen_days_of_logs() {
    let state =
        |at: usize| format!("- The gauge {at} of the pier {at} belongs to the office of Brest\n");
    let days: Vec<String> = (1..=15).map(state).collect();
    let logs = logs(&days.iter().map(String::as_str).collect::<Vec<_>>());
    let (model, notes) = Default::default();
    let read = collect_statements(&input_of(&logs, &model, &notes));
    let ages = statement_ages(&read.statements);
    assert_eq!(ages.len(), 15);
    assert_eq!(ages[0], StatementAge::OldState);
    assert!(ages[1..].iter().all(|it| *it == StatementAge::Recent), "{ages:?}");
}

#[test]
fn an_open_item_that_a_model_found_stays_for_two_weeks() {
    let days = ["- Ottilie waits for the permit of the north pier\n"; 20];
    let logs = logs(&days);
    let open = |last: usize| {
        let statement = |kind, topic: &str, text: &str, day: usize| ModelStatement {
            kind,
            topic: topic.to_owned(),
            text: text.to_owned(),
            citation: format!("2026-04-{day:02}:1").parse().unwrap(),
        };
        let permit = "The permit of the harbour office is missing";
        let ferry = |day| {
            statement(StatementKind::State, "Ferry", "The new ferry carries forty bicycles", day)
        };
        let mut statements = vec![statement(StatementKind::Open, "North pier", permit, 1)];
        statements.extend((2..=last).map(ferry));
        let stems = logs[..last].iter().map(|it| it.stem().clone());
        let model = ModelReading { logs: stems.collect(), statements };
        let notes = SeenStatements::default();
        let input = input_of(&logs[..last], &model, &notes);
        digest(&input).bullets.iter().any(|it| it.section == WisdomSection::Open)
    };
    assert!(open(15));
    assert!(!open(16));
}

#[test]
fn of_days_that_a_model_read_bullets_are_what_it_found() {
    let logs = logs(&[
        "- Never restart the tide server without asking Ottilie first\n- Battery of the buoy: 61 percent at noon\n",
        "- Never mail the harbour office without asking Yusra first\n",
    ]);
    let statement = |kind, topic: &str, text: &str, line: &str| ModelStatement {
        kind,
        topic: topic.to_owned(),
        text: text.to_owned(),
        citation: line.parse().unwrap(),
    };
    let model = ModelReading {
        logs: [logs[0].stem().clone()].into(),
        statements: vec![
            statement(
                StatementKind::Rule,
                "Tide server",
                "Ask Ottilie before each restart of it",
                "2026-04-01:1",
            ),
            statement(StatementKind::State, "Buoy 7", "Battery: 61 percent", "2026-04-01:2"),
        ],
    };
    let notes = SeenStatements::default();
    let input = DigestInput {
        // The checks of a line are not those of a model's words.
        kept_out: &|text, _, _| {
            text.contains("restart of it")
                .then_some(DigestOutcome::HeldByChecks(FailedCheck::Unsupported))
        },
        ..input_of(&logs, &model, &notes)
    };
    let texts = |it: Digest| it.bullets.into_iter().map(|it| it.text).collect::<Vec<_>>();
    assert_eq!(
        texts(digest(&input)),
        [
            "Never mail the harbour office without asking Yusra first",
            "Tide server: Ask Ottilie before each restart of it",
            "Buoy 7: Battery: 61 percent (2026-04-01)",
        ]
    );
    let deleted = DigestInput {
        kept_out: &|_, citation, _| {
            (citation.to_string() == "2026-04-01:1").then_some(DigestOutcome::KeptOutByPerson)
        },
        ..input
    };
    assert_eq!(texts(digest(&deleted)).len(), 2);
}

/// Checks the section of the bullet with some words, `None` if there is no such bullet.
#[track_caller]
fn check_section(days: &[&str], words: &str, expected: Option<&str>) {
    let found = bullets(days, 8_000, &|_, _| false);
    let bullet = found.iter().find(|it| it.contains(words));
    let section = bullet.and_then(|it| it.split_once(": ")).map(|it| it.0);
    assert_eq!(section, expected, "{words}: {found:?}");
}

#[test]
fn a_rule_by_its_label_is_no_lesson_and_a_count_no_rule() {
    for (line, words, expected) in [
        ("- Rule: no shoes inside the boathouse\n", "no shoes", Some("How to work")),
        ("- Rule: washed cups go on the upper shelf\n", "washed cups", Some("How to work")),
        ("- Lesson: wet ropes shrink by a tenth\n", "wet ropes", Some("Lessons")),
        ("- Rule: 2 people in each rowing boat\n", "2 people", Some("How to work")),
        ("- Rules: 3 of 7 fail on the new charts\n", "3 of 7", Some("Projects")),
        ("- Lint rules: 12 passed, 2 failed on the charts\n", "12 passed", Some("Projects")),
    ] {
        check_section(&[line], words, expected);
    }
}

#[test]
fn what_concerns_a_person_is_filed_under_people() {
    for (line, words, expected) in [
        ("- Wilma is severely allergic to penicillin\n", "Wilma", Some("People")),
        ("- Odo takes 5 mg of ramipril every morning\n", "Odo", Some("People")),
        ("- Medication: eye drops for Tilda at 8 and 20 o'clock\n", "eye drops", Some("People")),
        ("- Odo takes 5 minutes for each of the buoys\n", "Odo", Some("Projects")),
        // What others prefer is no order.
        ("## Preferences\n- Mira wants the blinds of the cabin closed\n", "Mira", Some("People")),
        ("- Preference: Mira wants the blinds of the cabin closed\n", "Mira", Some("People")),
        ("## Preferences\n- Tom said he prefers short meetings\n", "Tom", Some("People")),
        ("- Tom always prefers the aisle seat on ferries\n", "Tom", Some("People")),
        (
            "## Preferences\n- Always short mails with the numbers first\n",
            "Always",
            Some("How to work"),
        ),
        (
            "## Preferences\n- User wants short mails with numbers first\n",
            "User",
            Some("How to work"),
        ),
    ] {
        check_section(&[line], words, expected);
    }
}

#[test]
fn a_complaint_gives_way_to_what_mended_it() {
    let problem = "- Problem: the label printer prints every second label blank\n";
    let cure = "- New ribbon in the label printer, it prints all labels now\n";
    check_section(&[problem, cure], "every second label", None);
    check_section(&[problem, cure], "New ribbon", Some("Projects"));
    let other = "- New ribbon for the old typewriter of the harbour office\n";
    check_section(&[problem, other], "every second label", Some("Projects"));
}
