//! Which items their lines support.

use crate::{memory::log::DailyLog, privacy};

use super::*;

mod pairs;

const LOG: &str = "Shipped v1.2 to Acme for $1,200 on 3 May, see `run.sh`.\n\nAlice measured 15 ms with maxLen and #412.\n\nMaybe we move the database to Fly.io in June. The cache moved in May.";

#[track_caller]
fn check_item(bullet: &str, expected: &str) {
    let log = DailyLog::parse("2026-04-02".parse().unwrap(), LOG.as_bytes()).unwrap();
    let logs = vec![privacy::sanitize(&log, &privacy::PrivacyRules::default())];
    let verdict = check(&Item::parse(bullet), &logs);
    let verdict = verdict.map_or_else(|v| v.to_string(), |()| "ok".to_owned());
    assert_eq!(verdict, expected, "{bullet:?}");
}

#[test]
fn an_item_that_its_lines_support_passes() {
    check_item("Shipped v1.2 for 1200 USD [2026-04-02:1]", "ok");
    check_item("alice and Acme: `run.sh` [2026-04-02:1,3]", "ok");
    check_item("Done by 2 April 2026, in April 2026 [2026-04-02:1]", "ok");
    check_item("Done 2026-04-02, on Thursday [2026-04-02:1]", "ok");
    check_item("Due May 3 [2026-04-02:1]", "ok");
    check_item("We used MaxLen and #412 [2026-04-02:3]", "ok");
}

#[test]
fn a_line_is_its_writers_around_a_quotation() {
    let lines = "- Harbour sync: OBSOLETE, the job table states \"REMOVED. Those tasks are either copies or never finished\"\n\
                 - Mail from Acme: \"Karla moved the ferries late in the month.\"";
    let log = DailyLog::parse("2026-04-02".parse().unwrap(), lines.as_bytes()).unwrap();
    let logs = vec![privacy::sanitize(&log, &privacy::PrivacyRules::default())];
    for (text, line, expected) in [
        ("The harbour sync is obsolete", 1, false),
        ("The tasks are either copies or never finished", 1, true),
        ("The harbour tasks are copies that were never finished", 1, true),
        ("Acme wrote a mail", 2, false),
        ("Karla moved ferries late in the month", 2, true),
        ("Mail from Acme: Karla moved the ferries", 2, true),
    ] {
        let citation: Citation = format!("2026-04-02:{line}").parse().unwrap();
        assert_eq!(is_external(text, &citation, &logs), Some(expected), "{text}");
    }
}

#[test]
fn an_action_that_was_done_is_no_duty() {
    let must = "`must` makes it stronger: the cited lines do not say so";
    for line in ["Restarted the pump before a test", "Restart of the pump took long before a test"]
    {
        assert_eq!(verdict_on_lines(line, "The pump must be restarted before a test"), must);
    }
}

#[test]
fn what_only_looks_alike_is_not_supported() {
    let mut passed = Vec::new();
    for &(lines, bullet) in pairs::LOOKALIKES {
        if verdict_on_lines(lines, bullet) == "ok" {
            passed.push(format!("{bullet}\n    of {lines}"));
        }
    }
    assert!(passed.is_empty(), "{}", passed.join("\n"));
}

#[test]
fn what_other_readers_wrote_passes() {
    let mut refused = Vec::new();
    for &(lines, item) in pairs::WRITTEN {
        let verdict = verdict_on_lines(lines, item);
        if verdict != "ok" {
            refused.push(format!("{item}: {verdict}"));
        }
    }
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}

#[test]
fn names_and_numbers_within_scripts_without_spaces_are_found() {
    for (line, passing, rejected) in [
        (
            "- 港口日报：先转录，再用LLM分析，最后发布MiniTide-v3版",
            &["The harbour daily is transcribed, analysed by an LLM, and published as MiniTide-v3"]
                [..],
            &[("The harbour daily is analysed by a GPT", "GPT"), ("It is published as v4", "v4")][..],
        ),
        (
            "- 看门狗插件连续3次失败，每天4点重启Gateway，离线9小时",
            &[
                "The watchdog failed 3 times in a row",
                "The Gateway restarts at 4 o'clock every day and is offline for 9 hours",
                "看门狗连续3次失败，Gateway离线9小时",
                "每天4点重启Gateway",
            ],
            &[
                ("The watchdog failed 5 times", "5"),
                ("The Gateway is offline for 8 hours", "8"),
                ("Gateway离线8小时", "8"),
                ("The Gateway restarts at 5 o'clock", "5"),
            ],
        ),
        (
            "- 配置里有两个未知字段，下周日再试",
            &["Two fields are unknown; next try on Sunday", "配置有两个未知字段"],
            &[("Three fields are unknown", "Three"), ("Next try on Monday", "Monday")],
        ),
        (
            "- 用户要求：只发布3月30日之后的Tide视频，所有旧视频已删除",
            &[
                "The user wants only Tide videos after 30 March to be published",
                "All old Tide videos are deleted",
            ],
            &[
                ("The user wants only Tide videos after 31 March", "31 March"),
                ("The user never wants Tide videos", "never"),
            ],
        ),
        (
            "- 继续使用OpenTide，不需要迁移到Hermes",
            &["Stay with OpenTide; do not migrate to Hermes"],
            &[],
        ),
        ("- 把OpenTide迁移到Hermes", &["OpenTide is migrated to Hermes"], &[]),
        (
            "- 会话被截断，AGENTS.md的更新未完成",
            &["The update of AGENTS.md is unfinished, because the session was cut off"],
            &[],
        ),
        (
            "- 예약 작업이 3번 실패해서 LLM을 껐다",
            &["The job failed 3 times, the LLM is off"],
            &[("It failed 2 times", "2")],
        ),
        (
            "- 4月2-5日在港口，损耗率41%是旧数，租金71港元，押金30元，明天10:00再测",
            &[
                "At the harbour on April 2-5; the loss rate of 41% is old",
                "The rent is HK$71, the deposit ¥30, next test on 2026-04-03 at 10:00",
            ],
            &[
                ("At the harbour on April 2-6", "6"),
                ("The rent is US$71", "US$71"),
                ("The loss rate is 43%", "43%"),
            ],
        ),
        (
            "- 港口在香港，服务器在新加坡，消息走微信",
            &["The port is in Hong Kong, the server in Singapore, messages go over WeChat"],
            &[("The port is in Shanghai", "Shanghai"), ("Messages go over Feishu", "Feishu")],
        ),
        ("- 避免因stdout静默就kill任务", &["Do not kill a task because stdout is silent"], &[]),
        (
            "- 費用は1.5万円、作業は12時間",
            &["It cost 15,000 yen and took 12 hours"],
            &[("It took 11 hours", "11")],
        ),
    ] {
        passes(line, passing);
        is_rejected(line, rejected);
    }
}

#[test]
fn a_heading_names_the_person_of_its_lines() {
    let log = "### Nina - Timeout Fixed\n\n- Remaining: still showing the state as down on the Board\n\n\
               ### Otto\n\n- Ben said that the outer gate of the North quay is down\n\n\
               ### Mara\n\n- Tjark said that the inner gate of the South quay is down";
    let verdict = |item: &str| verdict_on_log(log, item);
    assert_eq!(verdict("Nina still shows the state as down on the Board [2026-04-02:3]"), "ok");
    for item in [
        "Otto said that the outer gate of the North quay is down [2026-04-02:7]",
        "Mara said that the inner gate of the South quay is down [2026-04-02:11]",
    ] {
        assert_ne!(verdict(item), "ok", "{item}");
    }
}

#[test]
fn another_number_of_an_issue_is_not_supported() {
    let line = "opened https://git.example/tide/issues/6014, since we hide errors in Chrome73";
    is_rejected(
        line,
        &[
            ("We hide errors (#601)", "#601"),
            ("We hide errors (#6015)", "#6015"),
            ("We hide errors in PR 6014", "PR"),
            ("We hide errors in Chrome 74", "74"),
        ],
    );
}

#[test]
fn the_week_the_year_and_the_kind_of_a_value_need_no_line() {
    let line = "The Harbour Cup is live at https://cup.example, 1 boat and 17,250 tested lines";
    passes(
        line,
        &[
            "Harbour Cup 2026 is live at https://cup.example",
            "2026 Harbour Cup: live at https://cup.example",
            "Live URL of the Harbour Cup: https://cup.example",
            "The Harbour Cup is live in W14",
        ],
    );
    is_rejected(
        line,
        &[
            ("Harbour Cup 2025 is live at https://cup.example", "2025"),
            ("The Harbour Cup is live with 2026 boats", "2026"),
            ("The Harbour Cup is live in W15", "W15"),
        ],
    );
    is_rejected("The Harbour Cup is live", &[("Live URL of the Harbour Cup", "URL")]);
    passes("noo dont paint the fence, only fix the gate", &["Do not paint the fence"]);
}

#[test]
fn all_missing_words_are_named_at_once() {
    let check = |text: &str| {
        let missing = ["Zeta", "1"].into_iter().find(|it| text.split(' ').any(|word| word == *it));
        missing.map_or(Ok(()), |it| Err(Violation::AtomNotInSources { atom: it.to_owned() }))
    };
    let faults = faults_of("Zeta sent 1 of 17,250 or 1.5 boats to Zeta", check).unwrap();
    assert_eq!(faults, "`Zeta` is in none of the cited lines; `1` is in none of the cited lines");
    assert_eq!(
        without_words("Zeta sent 1 of 17,250 or 1.5, 1", "1"),
        "Zeta sent  of 17,250 or 1.5, "
    );
}

#[test]
fn what_is_wrong_beside_missing_words_is_named_too() {
    let check = |text: &str| {
        if text.contains("Zeta") {
            return Err(Violation::AtomNotInSources { atom: "Zeta".to_owned() });
        }
        let denied = text.split("; ").find(|it| it.contains("works"));
        denied.map_or(Ok(()), |it| Err(Violation::NegationDropped { words: it.trim().to_owned() }))
    };
    let missing = "`Zeta` is in none of the cited lines";
    let denied = "`the pump works` drops a negation of the cited lines";
    assert_eq!(
        faults_of("Zeta left; the pump works", check).unwrap(),
        format!("{missing}; {denied}")
    );
    // Without the name the clause is another one than that of the text.
    assert_eq!(faults_of("the pump of Zeta works", check).unwrap(), missing);
}

#[test]
fn a_guess_does_not_become_a_fact() {
    let dropped =
        |words: &str| format!("`{words}` is a fact here, but the cited lines only suppose it");
    check_item("Perhaps the database moves to Fly.io in June [2026-04-02:5]", "ok");
    check_item("The cache moved in May [2026-04-02:5]", "ok");
    check_item(
        "The database moves to Fly.io in June [2026-04-02:5]",
        &dropped("The database moves to Fly.io in June"),
    );
    // A memory or an entry is checked as one text: title, statement, and reason.
    check_item(
        "Database move. Maybe we move the database to Fly.io. The cache moved in May [2026-04-02:5]",
        "ok",
    );
    check_item(
        "Where data lives. We move the database to Fly.io [2026-04-02:5]",
        &dropped("We move the database to Fly.io"),
    );
}

/// Returns the verdict on a bullet that cites the only line of the log of Thursday, 2 April 2026.
fn verdict_on(line: &str, bullet: &str) -> String {
    let log = DailyLog::parse("2026-04-02".parse().unwrap(), line.as_bytes()).unwrap();
    let logs = vec![privacy::sanitize(&log, &privacy::PrivacyRules::default())];
    let verdict = check_model_item(&Item::parse(&format!("{bullet} [2026-04-02:1]")), &logs);
    verdict.map_or_else(|v| v.to_string(), |()| "ok".to_owned())
}

#[track_caller]
fn passes(line: &str, bullets: &[&str]) {
    for bullet in bullets {
        assert_eq!(verdict_on(line, bullet), "ok", "{bullet:?} of {line:?}");
    }
}

#[track_caller]
fn is_rejected(line: &str, bullets: &[(&str, &str)]) {
    for (bullet, why) in bullets {
        let verdict = verdict_on(line, bullet);
        assert!(verdict.contains(why), "{bullet:?} of {line:?}: {verdict}");
    }
}

#[test]
fn an_amount_is_equal_in_any_form() {
    let line = "The round raised $420M from three funds in 15 ms, 41% of 1,200 shares at -5 °C";
    passes(
        line,
        &[
            "Three funds raised $420 million in the round",
            "The round raised 420 million dollars from 3 funds",
            "The round raised USD 420,000,000",
            "The round raised 41 % of 1200 shares",
            "The shares were at −5 degrees",
        ],
    );
    is_rejected(
        line,
        &[
            ("The round raised $420B", "`$420B`"),
            ("The round raised €420M", "`€420M`"),
            ("Four funds raised $420M", "`Four`"),
            ("The funds came in 15 s", "`15 s`"),
            ("The round raised 41 of 1,200 shares", "`41`"),
            ("The shares were at 5 °C", "`5 °C`"),
        ],
    );
}

#[test]
fn days_and_times_are_resolved_against_the_log() {
    let line = "Standup at 6:30 PM tomorrow, review next Friday, signed yesterday in Bonn";
    passes(
        line,
        &[
            "Standup at 18:30 on 3 April 2026",
            "Signed in Bonn on April 1",
            "Review on Friday, 2026-04-10",
            "Signed yesterday in Bonn",
        ],
    );
    is_rejected(
        line,
        &[
            ("Standup at 6:30 AM tomorrow", "`6:30 AM`"),
            ("Standup on 4 April", "`4 April`"),
            ("Signed in Bonn on 2 April", "`2 April`"),
            ("Review next Saturday", "`Saturday`"),
        ],
    );
    passes("Montage ab 02.03.2026, 14.800 €", &["Montage ab 2. März 2026 für 14800 Euro"]);
    is_rejected("Montage ab 02.03.2026", &[("Montage ab 3. März 2026", "`3. März 2026`")]);
}

#[test]
fn a_negation_is_neither_lost_nor_added() {
    for (line, bullet) in [
        ("We do not deploy the importer on brisk", "We deploy the importer on brisk"),
        ("Never restart the mail gateway by hand", "Restart the mail gateway by hand"),
        ("The importer doesn't delete raw files", "The importer deletes raw files"),
        ("Wir liefern die Küche nicht im April", "Wir liefern die Küche im April"),
        ("The job runs without the network cache", "The job runs with the network cache"),
    ] {
        is_rejected(line, &[(bullet, "drops a negation")]);
        is_rejected(bullet, &[(line, "denies what")]);
    }
    passes(
        "We do not deploy the importer on a Friday, since nobody is there to watch it",
        &["Importer is never deployed on a Friday", "No deploy of the importer on a Friday"],
    );
    passes("The rows are not lost but late", &["Rows are late rather than lost"]);
}

#[test]
fn what_one_person_did_is_not_attributed_to_another() {
    let line = "Ana asked for a cache, Ben measured the disk with Carl";
    passes(line, &["Ana asked for a cache", "The disk was measured by Ben and Carl"]);
    is_rejected(
        line,
        &[
            ("Ben asked for a cache", "do not say that of `ben`"),
            ("Ana measured the disk", "do not say that of `ana`"),
            ("Tobias asked for a cache", "`Tobias`"),
            ("Xandro wants a cache", "`Xandro`"),
        ],
    );
}

#[test]
fn an_item_on_another_topic_and_the_prompt_are_rejected() {
    let line = "The importer moved to SQLite";
    is_rejected(
        line,
        &[
            ("A statement belongs where somebody put it", "something else"),
            ("<data-00ff> the importer moved to SQLite", "part of the prompt"),
            ("2026-04-02:1 | The importer moved to SQLite", "part of the prompt"),
        ],
    );
}

/// The text repeats what each rule looks for. A rule that compares each part with each other would not end today.
#[test]
fn long_lines_are_checked_in_time_that_grows_with_their_length() {
    let text = "Ana never moved 3 GB on Friday, 2 May to Ben, not `x`. ";
    let many = text.repeat(1_000);
    let _verdict = verdict_on(&many, &format!("Not {many}"));
}

#[test]
fn the_violation_names_what_the_lines_lack() {
    check_item("Shipped", "the bullet cites no line");
    check_item(" [2026-04-02:1]", "the bullet has no words");
    check_item("Shipped [2026-04-02:2]", "line 2026-04-02:2 is blank");
    check_item("Shipped [2026-04-02:9]", "line 2026-04-02:9 does not exist");
    check_item("Shipped [2026-04-03:1]", "line 2026-04-03:1 does not exist");
    check_item("It cost $200 [2026-04-02:1]", "`$200` is in none of the cited lines");
    check_item("It took 2 ms [2026-04-02:1]", "`2 ms` is in none of the cited lines");
    check_item("The boss of Zeta said so [2026-04-02:1]", "`Zeta` is in none of the cited lines");
    check_item("Due 4 May [2026-04-02:1]", "`4 May` is in none of the cited lines");
    check_item("See #41 [2026-04-02:3]", "`#41` is in none of the cited lines");
}

/// What careful readers of the prompts wrote of true lines, and what is false of the same lines.
#[test]
fn other_words_for_the_same_pass_and_what_is_false_does_not() {
    let lines = [
        "- Changed the fallback role from keeper to guest",
        "- Mac seems happy with the new builder but Linux is not happy: it includes several copies",
        "- 3.5.0 fails to clean the input box",
        "- Moved `load(path)` to the depth reader",
        "- The cache and the index were moved",
        "- https://tides.example/unit-testing-a-depth-store-with-the-pier-runner",
        "- Gives the answer the maximum attention",
        "- trying to build the chart on Windows, ughh build problem",
        "- Der Export läuft aber nicht auf dem Mac. The export runs but not on the Mac",
        "- The gateway works with the new parser but the importer does not work",
        "- The nightly job from last week works on a small box",
        "- Deploys run without problems",
        "- The parser detects broken links in the manual",
        "- Redis is not used by the gateway",
        "- The pier house is open from Monday to Friday",
        "- Moved `reload(path)` to the depth reader",
        "- Deploys of the pier run since the problem of Monday",
    ];
    let log = DailyLog::parse("2026-04-02".parse().unwrap(), lines.join("\n").as_bytes()).unwrap();
    let logs = vec![privacy::sanitize(&log, &privacy::PrivacyRules::default())];
    let check = |text: &str, line: u32| {
        check_model_item(&Item::parse(&format!("{text} [2026-04-02:{line}]")), &logs)
    };
    for (text, line) in [
        ("The fallback role is now guest, not keeper", 1),
        ("Linux is not happy with the new builder: it includes several copies", 2),
        ("Mac seems happy with the new builder, but Linux is not", 2),
        ("3.5.0 does not clear the input box", 3),
        ("`load()` is in the depth reader now", 4),
        ("A post on unit testing a depth store with the pier runner", 6),
        ("Gives the answer the most attention", 7),
        ("The chart does not build on Windows", 8),
    ] {
        assert_eq!(check(text, line), Ok(()), "{text}");
    }
    for (text, line) in [
        ("The fallback role is now keeper, not guest", 1),
        ("Linux is happy with the new builder", 2),
        ("`save()` is in the depth reader now", 4),
        ("Three things were moved: cache and index", 5),
        ("A post on ferry prices of the northern islands", 6),
        ("The export runs on the Mac", 9),
        ("The importer works with the new parser", 10),
        ("The nightly job does not work", 11),
        ("Deploys do not run", 12),
        ("The parser does not detect links in the manual", 13),
        ("There is no Redis", 14),
        ("The pier house is open on Friday, not on Monday", 15),
        ("`load()` was moved", 16),
        ("Deploys of the gateway do not run", 17),
    ] {
        assert!(check(text, line).is_err(), "{text}");
    }
}

#[test]
fn a_title_may_ban_what_its_text_replaces() {
    let log = "- `Fetch-Tide` kills the relay by its output; use `tide get` instead.";
    let log = DailyLog::parse("2026-04-02".parse().unwrap(), log.as_bytes()).unwrap();
    let logs = vec![privacy::sanitize(&log, &privacy::PrivacyRules::default())];
    let citation: Citation = "2026-04-02:1".parse().unwrap();
    let text =
        "On the relay, use `tide get` instead of `Fetch-Tide`, which kills it by its output.";
    for (title, passes) in
        [("No Fetch-Tide on the relay", true), ("No tide get on the relay", false)]
    {
        assert_eq!(check_entry(title, text, &citation, &logs).is_ok(), passes, "{title}");
    }
}

#[test]
fn a_title_may_advise_what_its_lines_give_cause_for() {
    let lines = [
        "- The fork did not run its tests, so the error was swallowed",
        "- Deploying on Fridays is fine with the office, but the Monday deploy failed",
        "- The build of the fork failed and its error was swallowed",
        "- Never check secrets into the repository",
    ];
    let log = DailyLog::parse("2026-04-02".parse().unwrap(), lines.join("\n").as_bytes()).unwrap();
    let logs = vec![privacy::sanitize(&log, &privacy::PrivacyRules::default())];
    let check = |title: &str, text: &str, line: u32| {
        let item = Item::parse(&format!("{text} [2026-04-02:{line}]"));
        check_entry(title, &item.text, item.citation.as_ref().unwrap(), &logs)
    };
    let text = "The fork did not run its tests, so the error was swallowed.";
    assert_eq!(check("Verify that a fork runs its tests", text, 1), Ok(()));
    let swallowed = "The build of the fork failed and its error was swallowed.";
    assert_eq!(check("Do not swallow an error of a fork", swallowed, 3), Ok(()));
    let secrets = "Never check secrets into the repository.";
    assert!(check("Check secrets into the repository", secrets, 4).is_err());
    let text = "Deploying on Fridays is fine with the office, but the Monday deploy failed.";
    assert!(check("Never deploy on Fridays", text, 2).is_err());
    assert!(check("Verify 12 forks", text, 2).is_err());
}

#[test]
fn what_was_removed_may_be_said_as_a_ban() {
    let removed = "The exposure of the tide port 11434 was removed on the advice of Ines";
    passes(removed, &["Do not expose the tide port 11434"]);
    // Something else ended, or a ban did.
    for (line, ban) in [
        ("The prohibition of Friday deploys was revoked", "Do not deploy on Fridays"),
        (
            "Port 11434 of the tide relay is open to all boats; the old key of the relay was removed",
            "Do not open port 11434 of the tide relay",
        ),
        (
            "Ines uses the tide relay for the backups; the alarm of the tide relay is disabled at night",
            "Do not use the tide relay for the backups",
        ),
    ] {
        is_rejected(line, &[(ban, "denies")]);
    }
}

#[test]
fn other_forms_of_the_same_words_pass() {
    passes(
        "Team workflow: **no wiki / no extra tools** as default",
        &["Team workflow: no wiki or extra tools by default"],
    );
    passes(
        "No deploys on Friday and Saturday for Brest",
        &["No deploys on Friday or Saturday for Brest"],
    );
    passes(
        "Hotlinks are OK for the first version (unless Ines/Tobias decide otherwise)",
        &["Hotlinks are OK for the first version, unless Ines or Tobias decide otherwise"],
    );
    passes(
        "Altijd `git pull --rebase` voor het pushen (enige uitzondering: de haven)",
        &["Always `git pull --rebase` voor het pushen"],
    );
    passes("The relay moved to Tide Board in Brest", &["The relay moved to TideBoard in Brest"]);
    passes(
        "Ines updated TideBoard to 2.9 after TideBoard 2.2 did not know the model",
        &["TideBoard updated by Ines to 2.9, since TideBoard 2.2 did not know the model"],
    );
    for (line, bullet, why) in [
        (
            "The relay moved to Tide in Brest",
            "The relay moved to TideBoard in Brest",
            "`TideBoard`",
        ),
        ("The sync job runs on Monday", "The sync job runs every Monday", "`every`"),
        (
            "Ines restarts the tide relay in 30 minutes",
            "Ines restarts the tide relay every 30 minutes",
            "`every`",
        ),
        (
            "On Monday McKenna called the office, and Tobias signed the lease of the pier",
            "On Monday McKenna signed the lease of the pier",
            "`mckenna`",
        ),
    ] {
        is_rejected(line, &[(bullet, why)]);
    }
}

/// Returns the verdict on a bullet that cites all lines of the log of Thursday, 2 April 2026.
fn verdict_on_lines(lines: &str, bullet: &str) -> String {
    let last = lines.lines().count();
    verdict_on_log(lines, &format!("{bullet} [2026-04-02:1-{last}]"))
}

/// Returns the verdict on a bullet with a citation of that log.
fn verdict_on_log(lines: &str, bullet: &str) -> String {
    let log = DailyLog::parse("2026-04-02".parse().unwrap(), lines.as_bytes()).unwrap();
    let logs = vec![privacy::sanitize(&log, &privacy::PrivacyRules::default())];
    let verdict = check_model_item(&Item::parse(bullet), &logs);
    verdict.map_or_else(|v| v.to_string(), |()| "ok".to_owned())
}

/// Lines, and what a careful writer makes of them.
const RETOLD: &[(&str, &str)] = &[
    (
        "## 安装完成\n- 已安装技能:\n  - tide-sync: 同步\n  - pier-view: 显示\n  - buoy-log: 记录\n- 根目录: /srv/tide",
        "安装完成，含 tide-sync、pier-view、buoy-log 三个技能，根目录 /srv/tide",
    ),
    (
        "- Normal `foo status` without the App RTX env reads the wrong empty user cache.",
        "Run `foo` with the App RTX variables; without them `foo status` reads the wrong empty user cache",
    ),
    (
        "`https://tide.example/` is listed. The query against the site runs but returns no rows for May.",
        "Queries on `https://tide.example/` return no rows for May",
    ),
    // A measure whose unit the line has beside another number.
    (
        "Der Sockel war mit 12 cm bestellt, gebraucht hätte es 12,4 wegen der Dämmung",
        "Für den Sockel waren 12,4 cm nötig statt der bestellten 12 cm, wegen der Dämmung",
    ),
    (
        "Die Platte kommt erst am 27.04., nicht am 20.04.",
        "Die Platte verspätet sich vom 20. auf den 27. April",
    ),
    (
        "Garderobe: alle 26 Haken lackiert.",
        "Sämtliche 26 Haken der Garderobe sind seit dem 02.04.2026 lackiert.",
    ),
    ("Ergebnis: 1,8. Bester im Jahrgang!", "Ergebnis 1,8, das beste im Jahrgang"),
    ("Failed on April 19, April 22 and April 23", "The run failed on April 19, 22 and 23"),
    ("Batch 1: Mon Mar 24. Batch 2: Mar 31", "Batch 1 Mar 24, batch 2 Mar 31"),
    ("The check is empty on 3 out of 6 boats", "The check is empty for 3 of 6 boats"),
    ("Die Welle wird halbjährlich geschmiert", "Die Welle wird alle sechs Monate geschmiert"),
    (
        "Garderobe Kita: alle 26 Plätze lackiert. Hier doch Lack, weil abwaschbar verlangt ist. Die Regel mit dem Öl gilt für Küchen.",
        "Sämtliche 26 Plätze der Garderobe sind seit dem 02.04.2026 lackiert.",
    ),
    ("- review https://git.example/tide/pull/51, merged", "Reviewed and merged PR 51"),
    ("- review https://git.example/tide/pull/51, merged", "Reviewed and merged #51"),
    ("opened https://git.example/tide/issues/6014, since we hide errors", "We hide errors (#6014)"),
    ("Large lists freeze the page (issue 5929)", "Large lists freeze the page (#5929)"),
    ("Building an image with Chrome73 and FF68", "Building an image with Chrome 73 and Firefox 68"),
    (
        "Seems their login has something odd in its blur handler",
        "Their login seemingly has something odd in its blur handler",
    ),
    // Denials.
    (
        "`mouse()` sends all modes when the screen supports them, and falls back to two when it doesn't (e.g. GNU screen)",
        "Where the modes are not supported (e.g. GNU screen), `mouse()` falls back to two",
    ),
    (
        "### Next\n- Restart the pump before a test, because the old one still runs",
        "The pump must be restarted before a test, because the old one still runs",
    ),
    (
        "Wanted to ship the beta at noon; Tobias shook his head. No release on a Friday, also not a beta. It waits for Monday.",
        "The beta was not shipped on Friday; it waits for Monday",
    ),
    (
        "- the word \"broken\" scares the board. In the report it now reads \"incomplete\"",
        "The report no longer says \"broken\", a word that scares the board",
    ),
    (
        "- page and manual corrected; the old mails stay as they are",
        "Page and manual were corrected, but not the old mails",
    ),
    (
        "Er möchte Esche und kein Geländer aus Stahl",
        "Er möchte Esche und lehnt ein Geländer aus Stahl ab",
    ),
    (
        "dont repaint the whole boat, I just wanted you to fix the mast",
        "Do not repaint the whole boat",
    ),
    ("No boat should point the radar to the mainland", "Do not point the radar to the mainland"),
    ("Test the store against a real file, never a mock", "Test the store against a real file"),
    // Stronger words.
    (
        "Options:\n- raise it for all\n- raise it above 1,000 m only",
        "Options are to raise it for all gauges or only above 1,000 m",
    ),
    (
        "Stop sending \"I ran\" messages. They should only ever go to the log channel. Fix this permanently.",
        "\"I ran\" messages must never go anywhere but only to the log channel, permanently",
    ),
    (
        "Remaining fix for the calendar: sign in again",
        "The calendar account must be signed in again",
    ),
    (
        "Tasks should represent real orders, not adverts",
        "Create tasks only for real orders, not for adverts",
    ),
    // A language code.
    ("Hero text EN changed", "The English hero text changed"),
    // A hedge on the consequence.
    (
        "Since the boat isn't registered: may need a permit",
        "A permit may be needed, since the boat is not registered",
    ),
    (
        "Codes for the buoys are still missing; is there a free set?",
        "Codes for the buoys are still to be found",
    ),
    (
        "The likely cure is for Dave to restart the pump from the desk",
        "Dave likely has to restart the pump from the desk",
    ),
    // Counts.
    ("At this and three other stations the alarm went off", "The alarm went off at four stations"),
    ("Committed in groups:\n- docs\n- tests\n- mast\n- sail", "Committed in four groups"),
];

#[test]
fn what_a_careful_writer_changes_passes() {
    let mut failed = Vec::new();
    for (lines, bullet) in RETOLD {
        let verdict = verdict_on_lines(lines, bullet);
        if verdict != "ok" {
            failed.push(format!("{bullet}\n    of {lines}\n    {verdict}"));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
