use super::*;
use crate::{
    memory::{
        address::Stem,
        decision::{Decision, DecisionKind},
        document::SummaryHeader,
        period::Grain,
    },
    store::fs::inventory::{FileStat, LogFile, SummaryFile},
};

/// A root in a few words: `2026-04-02` is a log, `2026-W14` a weekly file that names its logs as
/// they are, `2026-04` a monthly file likewise.
struct PlanFixture {
    inventory: Inventory,
    record: RecordedState,
    settings: PlanSettings,
    selection: Selection,
}

fn log_hash(stem: &Stem, version: u32) -> ContentHash {
    ContentHash::of(format!("{stem} {version}"))
}

impl PlanFixture {
    fn new(names: &str) -> Self {
        let settings = PlanSettings {
            zone: chrono_tz::UTC,
            grace: Duration::hours(2),
            quiet: Duration::seconds(2),
            extract: false,
            digest: false,
            engine: "extractive/1".to_owned(),
        };
        let mut root = Self {
            inventory: Inventory::default(),
            record: RecordedState::default(),
            settings,
            selection: Selection::default(),
        };
        for name in names.split_whitespace() {
            match name.parse::<Period>() {
                Ok(period) if period.grain() != Grain::Day => {
                    root.summarize(period, "extractive/1");
                }
                _ => root.log(name, 1),
            }
        }
        root
    }

    fn log(&mut self, name: &str, version: u32) {
        let stem: Stem = name.parse().unwrap();
        let hash = log_hash(&stem, version);
        let stamp = FileStat { inode: 1, size: 1, mtime_ns: 0 };
        let path = format!("memory/{name}.md");
        self.inventory.logs.insert(stem, LogFile { path, stamp, hash, input_hash: hash });
    }

    fn summarize(&mut self, period: Period, engine: &str) {
        let sources = match period.grain() {
            Grain::Month => {
                let files = period
                    .weeks()
                    .into_iter()
                    .filter_map(|w| Some((w, self.inventory.weekly.get(&w)?)));
                files.map(|(w, file)| (w.to_string(), file.body_hash.clone())).collect()
            }
            _ => self
                .inventory
                .logs_of(period)
                .map(|(s, l)| (s.to_string(), l.hash.hex16()))
                .collect(),
        };
        let header =
            SummaryHeader { engine: engine.to_owned(), sources, ..SummaryHeader::default() };
        let hash = ContentHash::of(format!("{period} {header:?}"));
        let file = SummaryFile {
            path: format!("{period}.md"),
            stamp: FileStat::default(),
            hash,
            body_hash: hash.hex16(),
            chars: 100,
            header: Some(header),
            is_mixed: false,
        };
        let files = match period.grain() {
            Grain::Month => &mut self.inventory.monthly,
            _ => &mut self.inventory.weekly,
        };
        files.insert(period, file);
    }

    fn undo(&mut self, fingerprint: ContentHash) {
        let at = DateTime::UNIX_EPOCH;
        let hashes = vec![fingerprint.hex16()];
        let decision = Decision { at, what: DecisionKind::Undone, path: String::new(), hashes };
        self.inventory.decisions.apply(&decision);
    }

    fn distilled(mut self, months: &str) -> Self {
        let months = months.split_whitespace().map(|it| (it.parse().unwrap(), None));
        self.record.distilled = months.collect();
        self
    }

    fn plan(&self, now: &str) -> CompactionPlan {
        let now = DateTime::parse_from_rfc3339(now).unwrap().with_timezone(&Utc);
        plan(&self.inventory, &self.record, &self.settings, &self.selection, now)
    }

    /// Jobs, then after `|` what is due after them.
    #[track_caller]
    fn check(&self, now: &str, expected: &str) {
        let plan = self.plan(now);
        let jobs: Vec<_> =
            plan.jobs.iter().map(|it| format!("{}:{}", it.tier, it.period)).collect();
        let following: Vec<_> = plan.due_after.iter().map(|(t, p)| format!("{t}:{p}")).collect();
        let mut found = jobs.join(" ");
        if !following.is_empty() {
            found = format!("{found} | {}", following.join(" "));
        }
        assert_eq!(found.trim(), expected, "at {now}");
    }
}

#[test]
fn a_week_with_one_log_is_due_when_it_has_closed_and_grace_has_passed() {
    let root = PlanFixture::new("2026-04-02"); // a Thursday; the week ends with Sunday the 5th
    root.check("2026-04-05T23:59:59Z", "");
    root.check("2026-04-06T01:59:59Z", "");
    root.check("2026-04-06T02:00:00Z", "weekly:2026-W14");
    root.check("2026-05-04T02:00:00Z", "weekly:2026-W14 | monthly:2026-04 wisdom:2026-04");
}

#[test]
fn a_second_run_plans_nothing() {
    let root = PlanFixture::new("2026-04-02 2026-04-09-standup 2026-W14 2026-W15 2026-04")
        .distilled("2026-04");
    root.check("2026-05-10T09:00:00Z", "");
}

#[test]
fn another_engine_makes_nothing_due_unless_asked() {
    let mut root = PlanFixture::new("2026-03-05 2026-04-02 2026-W10 2026-W14 2026-03 2026-04")
        .distilled("2026-03 2026-04");
    root.settings.engine = "extractive/2".to_owned();
    root.check("2026-05-10T09:00:00Z", "");
    assert_eq!(
        root.plan("2026-05-10T09:00:00Z").other_engine,
        [(Tier::Weekly, 2), (Tier::Monthly, 2)].into()
    );
    root.selection.redo = Some(RedoFrom::Beginning);
    root.check(
        "2026-05-10T09:00:00Z",
        "weekly:2026-W10 weekly:2026-W14 | monthly:2026-03 monthly:2026-04",
    );
    root.selection.redo = Some(RedoFrom::Date("2026-04-01".parse().unwrap()));
    root.check("2026-05-10T09:00:00Z", "weekly:2026-W14 | monthly:2026-04");
}

#[test]
fn weeks_across_months_and_years_belong_to_their_thursday() {
    let root = PlanFixture::new("2026-12-31 2027-01-02");
    root.check("2027-01-04T02:00:00Z", "weekly:2026-W53 | monthly:2026-12 wisdom:2026-12");
    let root = PlanFixture::new("2024-12-30");
    root.check("2025-01-06T02:00:00Z", "weekly:2025-W01");
    root.check("2025-02-03T02:00:00Z", "weekly:2025-W01 | monthly:2025-01 wisdom:2025-01");
}

#[test]
fn a_month_waits_for_the_week_of_its_last_thursday() {
    // The last Thursday of April 2026 is the 30th; its week ends on May the 3rd.
    let root = PlanFixture::new("2026-04-02 2026-W14");
    root.check("2026-05-01T09:00:00Z", "");
    root.check("2026-05-04T01:59:00Z", "");
    root.check("2026-05-04T02:00:00Z", "monthly:2026-04 | wisdom:2026-04"); // though W18 has no log
    let root = PlanFixture::new("2026-04-02 2026-04-30 2026-W14");
    root.check("2026-05-04T02:00:00Z", "weekly:2026-W18 | monthly:2026-04 wisdom:2026-04");
}

#[test]
fn late_and_edited_logs_make_only_their_chain_due() {
    let mut root = PlanFixture::new(
        "2026-03-04 2026-04-02 2026-04-15 2026-W10 2026-W14 2026-W16 2026-03 2026-04",
    )
    .distilled("2026-03 2026-04");
    root.log("2026-04-03", 1);
    root.check("2026-05-10T09:00:00Z", "weekly:2026-W14 | monthly:2026-04");
    root.log("2026-04-15", 2);
    let plan = root.plan("2026-05-10T09:00:00Z");
    let reasons: Vec<_> = plan.jobs.iter().map(|it| it.reason.to_string()).collect();
    assert_eq!(reasons, ["changed: 2026-04-03", "changed: 2026-04-15"]);
    root.summarize("2026-W14".parse().unwrap(), "extractive/1");
    root.summarize("2026-W16".parse().unwrap(), "extractive/1");
    root.check("2026-05-10T09:00:00Z", "monthly:2026-04");
}

#[test]
fn a_rewritten_month_is_distilled_again_if_its_hash_is_known() {
    let mut root = PlanFixture::new("2026-04-02 2026-W14 2026-04");
    root.record.distilled.insert("2026-04".parse().unwrap(), Some("0000000000000000".to_owned()));
    root.check("2026-05-10T09:00:00Z", "wisdom:2026-04");
}

#[test]
fn a_forced_period_without_source_is_not_made() {
    let force = |root: &mut PlanFixture, period: &str| {
        root.selection =
            Selection { period: period.parse().ok(), force: true, ..Selection::default() };
        let plan = root.plan("2026-05-20T09:00:00Z");
        (plan.jobs.len(), plan.without_source.map(|it| it.1.to_string()))
    };
    let mut root = PlanFixture::new("2026-04-02 2026-W14 2026-W15 2026-04");
    assert_eq!(force(&mut root, "2026-W14"), (1, None));
    assert_eq!(force(&mut root, "2026-W15"), (0, Some("2026-W15".to_owned())));
    assert_eq!(force(&mut root, "2026-04"), (1, None));
    root.inventory.logs.clear();
    assert_eq!(force(&mut root, "2026-04"), (1, None), "its weeks exist");
    assert_eq!(force(&mut root, "2026-04-02").1, Some("2026-04-02".to_owned()));
    root.inventory.weekly.clear();
    assert_eq!(force(&mut root, "2026-04").1, Some("2026-04".to_owned()));
}

#[test]
fn a_changed_source_line_makes_wisdom_due() {
    let mut root =
        PlanFixture::new("2026-04-02 2026-W14 2026-W15 2026-W16 2026-W17 2026-W18 2026-04");
    let month: Period = "2026-04".parse().unwrap();
    let hash = root.inventory.monthly[&month].body_hash.clone();
    root.record.distilled.insert(month, Some(hash));
    root.record.stale_wisdom = vec![(month, "2026-04-02".to_owned())];
    let jobs = root.plan("2026-05-20T09:00:00Z").jobs;
    let found: Vec<_> = jobs.iter().map(|it| (it.tier, it.reason.to_string())).collect();
    assert_eq!(found, [(Tier::Wisdom, "changed: 2026-04-02".to_owned())]);
}

#[test]
fn a_vanished_log_makes_nothing_due() {
    let mut root = PlanFixture::new("2026-04-02 2026-04-03 2026-W14 2026-04").distilled("2026-04");
    root.inventory.logs.retain(|stem, _| stem.as_str() != "2026-04-03");
    root.check("2026-05-10T09:00:00Z", "");
    root.inventory.logs.clear();
    root.check("2026-05-10T09:00:00Z", "");
    root.selection =
        Selection { period: "2026-W14".parse().ok(), force: true, ..Selection::default() };
    root.check("2026-05-10T09:00:00Z", "");
}

#[test]
fn three_months_of_downtime_are_caught_up_oldest_first() {
    let root = PlanFixture::new("2026-01-07 2026-02-11 2026-03-18");
    root.check(
        "2026-05-10T09:00:00Z",
        "weekly:2026-W02 weekly:2026-W07 weekly:2026-W12 \
         | monthly:2026-01 monthly:2026-02 monthly:2026-03 wisdom:2026-01 wisdom:2026-02 wisdom:2026-03",
    );
}

#[test]
fn a_clock_set_back_plans_nothing_and_names_future_logs() {
    let root = PlanFixture::new("2026-04-02 2026-04-09");
    root.check("2026-04-01T00:00:00Z", "");
    let problems = root.plan("2026-04-01T00:00:00Z").problems;
    assert_eq!(problems.len(), 1, "tomorrow is no problem: {problems:?}");
    assert_eq!(problems[0].path, "memory/2026-04-09.md");
}

#[test]
fn days_end_in_the_zone_of_the_root() {
    for (zone, closes) in [
        ("Etc/GMT+12", "2026-04-06T12:00:00Z"), // UTC-12
        ("America/New_York", "2026-04-06T04:00:00Z"),
        ("UTC", "2026-04-06T00:00:00Z"),
        ("Europe/Berlin", "2026-04-05T22:00:00Z"),
        ("Asia/Kathmandu", "2026-04-05T18:15:00Z"),
        ("Pacific/Kiritimati", "2026-04-05T10:00:00Z"), // UTC+14
    ] {
        let mut root = PlanFixture::new("2026-04-02");
        root.settings.zone = zone.parse().unwrap();
        root.settings.grace = Duration::zero();
        let at = DateTime::parse_from_rfc3339(closes).unwrap();
        root.check(&(at - Duration::seconds(1)).to_rfc3339(), "");
        root.check(&at.to_rfc3339(), "weekly:2026-W14");
    }
}

#[test]
fn days_on_which_the_clocks_change_end_once() {
    // Cairo skips midnight of 2024-04-26 (a Friday); Havana repeats midnight of 2026-11-01 (a Sunday).
    let cairo: Tz = "Africa/Cairo".parse().unwrap();
    let day: NaiveDate = "2024-04-26".parse().unwrap();
    assert_eq!(start_of_day(day, cairo).to_rfc3339(), "2024-04-25T22:00:00+00:00");
    let havana: Tz = "America/Havana".parse().unwrap();
    let day: NaiveDate = "2026-11-01".parse().unwrap();
    assert_eq!(start_of_day(day, havana).to_rfc3339(), "2026-11-01T04:00:00+00:00");
    // Berlin's spring week is an hour short, its autumn week an hour long.
    for (log, closes) in
        [("2026-03-29", "2026-03-29T22:00:00Z"), ("2026-10-25", "2026-10-25T23:00:00Z")]
    {
        let mut root = PlanFixture::new(log);
        root.settings.zone = "Europe/Berlin".parse().unwrap();
        root.settings.grace = Duration::zero();
        let at = DateTime::parse_from_rfc3339(closes).unwrap();
        assert!(root.plan(&(at - Duration::seconds(1)).to_rfc3339()).jobs.is_empty());
        assert_eq!(root.plan(closes).jobs.len(), 1, "{log}");
    }
}

#[test]
fn a_log_being_written_holds_up_its_week_and_month() {
    let mut root = PlanFixture::new("2026-04-02 2026-04-09 2026-W15");
    let now = DateTime::parse_from_rfc3339("2026-05-10T09:00:00Z").unwrap();
    let log = root.inventory.logs.values_mut().next().unwrap();
    log.stamp.mtime_ns = now.timestamp_nanos_opt().unwrap() - 1_999_999_999;
    root.check("2026-05-10T09:00:00Z", "| monthly:2026-04 wisdom:2026-04");
    root.check("2026-05-10T09:00:01Z", "weekly:2026-W14 | monthly:2026-04 wisdom:2026-04");
    root.check("2026-05-10T08:59:50Z", "weekly:2026-W14 | monthly:2026-04 wisdom:2026-04"); // written "in the future"
}

#[test]
fn stuck_weeks_do_not_block_their_month() {
    let mut root = PlanFixture::new("2026-04-02 2026-04-09 2026-W15");
    let job = root.plan("2026-05-10T09:00:00Z").jobs.remove(0);
    root.record.stuck.insert(job.fingerprint, "no disk".to_owned());
    root.check("2026-05-10T09:00:00Z", "monthly:2026-04 | wisdom:2026-04");
    root.log("2026-04-02", 2); // changed input is a new piece of work
    root.check("2026-05-10T09:00:00Z", "weekly:2026-W14 | monthly:2026-04 wisdom:2026-04");
}

#[test]
fn undone_work_waits_for_changed_input_and_blocks_nothing() {
    let mut root = PlanFixture::new("2026-04-02 2026-04-09 2026-W15");
    let job = root.plan("2026-05-10T09:00:00Z").jobs.remove(0);
    root.undo(job.fingerprint);
    root.check("2026-05-10T09:00:00Z", "monthly:2026-04 | wisdom:2026-04");
    let waiting = root.plan("2026-05-10T09:00:00Z").waiting;
    assert_eq!((waiting[0].period, &waiting[0].cause), (job.period, &WaitCause::Undone));
    // Also if the last receipt says that there was nothing to do.
    root.record.skipped.insert(job.fingerprint);
    assert_eq!(root.plan("2026-05-10T09:00:00Z").waiting, waiting);
    root.selection = Selection { period: Some(job.period), force: true, ..Selection::default() };
    root.check("2026-05-10T09:00:00Z", "weekly:2026-W14");
    root.selection = Selection::default();
    root.log("2026-04-02", 2);
    root.check("2026-05-10T09:00:00Z", "weekly:2026-W14 | monthly:2026-04 wisdom:2026-04");
}

#[test]
fn wisdom_continues_past_an_undone_month() {
    let mut root = PlanFixture::new("2026-03-04 2026-04-02 2026-W10 2026-W14 2026-03 2026-04");
    let job = root.plan("2026-05-10T09:00:00Z").jobs.remove(0);
    assert_eq!((job.tier, job.period.to_string()), (Tier::Wisdom, "2026-03".to_owned()));
    root.undo(job.fingerprint);
    root.check("2026-05-10T09:00:00Z", "wisdom:2026-04");
}

#[test]
fn foreign_files_are_read_and_left_alone_until_forced() {
    let mut root = PlanFixture::new("2026-04-02 2026-W14");
    root.inventory.weekly.values_mut().next().unwrap().header = None;
    root.check("2026-05-10T09:00:00Z", "monthly:2026-04 | wisdom:2026-04");
    assert_eq!(
        root.plan("2026-05-10T09:00:00Z").foreign,
        [(Tier::Weekly, "2026-W14".parse().unwrap())]
    );
    root.selection =
        Selection { period: "2026-W14".parse().ok(), force: true, ..Selection::default() };
    root.check("2026-05-10T09:00:00Z", "weekly:2026-W14");
}

#[test]
fn a_provisional_week_is_made_again_when_it_closes_and_feeds_no_month() {
    let mut root = PlanFixture::new("2026-04-02 2026-W14");
    root.inventory.weekly.values_mut().next().unwrap().header.as_mut().unwrap().partial = true;
    root.check("2026-04-04T09:00:00Z", "");
    root.check("2026-05-10T09:00:00Z", "weekly:2026-W14 | monthly:2026-04 wisdom:2026-04");
}

#[test]
fn a_selection_narrows_but_does_not_jump_the_queue() {
    let mut root = PlanFixture::new("2026-04-02");
    root.selection.tiers = vec![Tier::Monthly];
    root.check("2026-05-10T09:00:00Z", "| monthly:2026-04");
    root.selection.tiers = vec![Tier::Weekly];
    root.check("2026-05-10T09:00:00Z", "weekly:2026-W14");
    root.selection = Selection { period: "2026-W15".parse().ok(), ..Selection::default() };
    root.check("2026-05-10T09:00:00Z", "");
}

#[test]
fn forcing_an_open_week_makes_it_provisional() {
    let mut root = PlanFixture::new("2026-04-02");
    root.selection =
        Selection { period: "2026-W14".parse().ok(), force: true, ..Selection::default() };
    let plan = root.plan("2026-04-03T09:00:00Z");
    assert_eq!((plan.jobs.len(), plan.jobs[0].partial), (1, true));
}

#[test]
fn the_current_week_is_made_if_enabled_and_its_logs_are_quiet() {
    let mut root = PlanFixture::new("2026-03-31 2026-04-02 2026-04-07");
    root.selection.open_week = true;
    // The week of the 7th has not begun; on the 4th only the week is made.
    let plan = root.plan("2026-04-04T09:00:00Z");
    let made: Vec<_> =
        plan.jobs.iter().map(|it| (it.tier, it.period.to_string(), it.partial)).collect();
    assert!(made.contains(&(Tier::Weekly, "2026-W14".to_owned(), true)), "{made:?}");
    assert!(!made.iter().any(|it| it.1 == "2026-W15"), "{made:?}");
    assert!(plan.due_after.is_empty() && made.iter().all(|it| it.0 <= Tier::Weekly), "{made:?}");
    // It waits for its end all the same.
    assert!(plan.waiting.iter().any(|it| matches!(it.cause, WaitCause::Closes(_))));
    root.selection.open_week = false;
    assert!(root.plan("2026-04-04T09:00:00Z").jobs.iter().all(|it| it.tier == Tier::Extract));
}

#[test]
fn wisdom_takes_months_oldest_first() {
    let mut root = PlanFixture::new("2026-03-04 2026-04-02 2026-W10 2026-W14 2026-04");
    root.check("2026-05-10T09:00:00Z", "monthly:2026-03 | wisdom:2026-03 wisdom:2026-04");
    root.summarize("2026-03".parse().unwrap(), "extractive/1");
    root.check("2026-05-10T09:00:00Z", "wisdom:2026-03 wisdom:2026-04");
}

#[test]
fn a_day_is_extracted_once_it_has_closed_and_again_when_it_changed() {
    let mut root = PlanFixture::new("2026-04-02 2026-04-02-standup");
    root.settings.extract = true;
    root.check("2026-04-03T01:00:00Z", "");
    root.check("2026-04-03T02:00:00Z", "extract:2026-04-02");
    let day: Stem = "2026-04-02".parse().unwrap();
    root.record.extracted.insert("2026-04-02".to_owned(), log_hash(&day, 1).hex16());
    assert_eq!(
        root.plan("2026-04-03T02:00:00Z").jobs[0].reason.to_string(),
        "changed: 2026-04-02-standup"
    );
    // Without the database the week's file says what was extracted.
    root.record.extracted.clear();
    root.summarize("2026-W14".parse().unwrap(), "extractive/1");
    let header = root.inventory.weekly.values_mut().next().unwrap().header.as_mut().unwrap();
    header.extracted = vec!["2026-04-02".to_owned()];
    root.check("2026-04-08T02:00:00Z", "");
    root.log("2026-04-02", 2);
    root.check("2026-04-08T02:00:00Z", "extract:2026-04-02 weekly:2026-W14");
}

#[test]
fn a_job_without_file_is_not_tried_again() {
    let mut root = PlanFixture::new("2026-04-02");
    let job = root.plan("2026-04-08T02:00:00Z").jobs.remove(0);
    root.record.skipped.insert(job.fingerprint);
    root.check("2026-04-08T02:00:00Z", "");
}
