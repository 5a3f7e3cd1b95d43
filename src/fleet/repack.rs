//! Which contents a push writes again though they did not change, so that a first pull asks for few objects. Pure.
//!
//! Each push adds an object with what changed. Without more, a root that is pushed every day would have as many objects
//! as days. So small objects are joined:
//!
//! - The logs of a month that has ended become one object. A few that came late may be in a second one, so that a late
//!   line does not write the month again.
//! - All else is in at most [`OPEN_OBJECTS_MAX`] small objects, else these become one. The largest is left as it is if
//!   it is much larger than the others together, so that what rarely changes is rarely written.
//! - An object of which less than half is still used is written again.
//!
//! Only contents that are here are written again: nothing is downloaded for it.

use std::collections::{BTreeMap, BTreeSet};

use super::{manifest::ObjectEntry, pack::PACK_BYTES};

/// How many small objects hold the logs of one month that has ended, …
const MONTH_OBJECTS_MAX: usize = 2;
/// … of which the largest holds all but this part of the bytes.
const LATE_PART_MAX: u64 = 8;
/// How many small objects hold other files.
const OPEN_OBJECTS_MAX: usize = 4;
/// A larger object is not joined with others.
const SMALL_BYTES: u64 = PACK_BYTES as u64 / 2;

/// The pack that a file belongs to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PackGroup {
    /// The logs of a month that has ended, such as `2026-03`.
    Month(String),
    /// The database.
    Database,
    /// All else.
    Open,
}

/// A file whose content is in the store and does not change with this push.
#[derive(Clone, Debug)]
pub(super) struct StoredFile<'a> {
    pub(super) path: &'a str,
    pub(super) object: &'a str,
    /// In bytes.
    pub(super) size: u64,
    pub(super) group: PackGroup,
    /// Whether this root has the same content.
    pub(super) is_here: bool,
}

/// Returns the paths of the files to write again. `written` are the groups to which this push adds an object anyway.
pub(super) fn paths_to_repack(
    files: &[StoredFile<'_>],
    objects: &BTreeMap<String, ObjectEntry>,
    written: &BTreeSet<PackGroup>,
) -> BTreeSet<String> {
    let raw = |object: &str| objects.get(object).map_or(0, |it| it.raw);
    let mut moved: BTreeSet<&str> = BTreeSet::new();
    let mut by_month: BTreeMap<&PackGroup, Vec<&StoredFile<'_>>> = BTreeMap::new();
    for file in files.iter().filter(|it| it.is_here && raw(it.object) < SMALL_BYTES) {
        if matches!(file.group, PackGroup::Month(_)) {
            by_month.entry(&file.group).or_default().push(file);
        }
    }
    for (group, files) in by_month {
        let mut used: BTreeMap<&str, u64> = BTreeMap::new();
        for file in &files {
            *used.entry(file.object).or_default() += file.size;
        }
        let (all, largest): (u64, u64) =
            (used.values().sum(), used.values().max().copied().unwrap_or_default());
        let has_many = used.len() + usize::from(written.contains(group)) > MONTH_OBJECTS_MAX;
        if has_many || (all - largest) * LATE_PART_MAX > all {
            moved.extend(files.iter().map(|it| it.path));
        }
    }
    let mut open = rest_by_object(files, &moved);
    open.retain(|(object, rest)| {
        rest.is_here && rest.is_open && !rest.is_database && raw(object) < SMALL_BYTES
    });
    if open.len() + usize::from(written.contains(&PackGroup::Open)) > OPEN_OBJECTS_MAX {
        open.sort_by_key(|it| it.1.size);
        let largest = open.last().map_or(0, |it| it.1.size);
        let others: u64 = open.iter().rev().skip(1).map(|it| it.1.size).sum();
        if largest > 2 * others {
            open.pop();
        }
        moved.extend(open.iter().flat_map(|it| it.1.paths.iter().copied()));
    }
    for (object, rest) in rest_by_object(files, &moved) {
        if rest.is_here && rest.size * 2 < raw(object) {
            moved.extend(rest.paths);
        }
    }
    moved.into_iter().map(str::to_owned).collect()
}

/// What is left in an object.
struct ObjectRest<'a> {
    /// In bytes.
    size: u64,
    paths: Vec<&'a str>,
    /// Whether this root has all of it.
    is_here: bool,
    /// Whether any of it belongs to no month that has ended.
    is_open: bool,
    is_database: bool,
}

fn rest_by_object<'a>(
    files: &[StoredFile<'a>],
    moved: &BTreeSet<&str>,
) -> Vec<(&'a str, ObjectRest<'a>)> {
    let mut objects: BTreeMap<&str, ObjectRest<'_>> = BTreeMap::new();
    for file in files.iter().filter(|it| !moved.contains(it.path)) {
        let rest = objects.entry(file.object).or_insert_with(|| ObjectRest {
            size: 0,
            paths: Vec::new(),
            is_here: true,
            is_open: false,
            is_database: false,
        });
        rest.size += file.size;
        rest.paths.push(file.path);
        rest.is_here &= file.is_here;
        rest.is_open |= file.group == PackGroup::Open;
        rest.is_database |= file.group == PackGroup::Database;
    }
    objects.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file as `path object size group`, with `!` before a path that is not here.
    fn parse(line: &str) -> StoredFile<'_> {
        let words: Vec<&str> = line.split(' ').collect();
        let group = match words[3] {
            "open" => PackGroup::Open,
            "database" => PackGroup::Database,
            month => PackGroup::Month(month.to_owned()),
        };
        StoredFile {
            path: words[0].trim_start_matches('!'),
            object: words[1],
            size: words[2].parse().unwrap(),
            group,
            is_here: !words[0].starts_with('!'),
        }
    }

    #[track_caller]
    fn check(lines: &[&str], written: &[PackGroup], expected: &str) {
        let files: Vec<_> = lines.iter().map(|it| parse(it)).collect();
        let mut objects: BTreeMap<String, ObjectEntry> = BTreeMap::new();
        for file in &files {
            let entry = objects.entry(file.object.to_owned());
            entry.or_insert(ObjectEntry { size: 1, raw: 0 }).raw += file.size;
        }
        // Objects named with a number hold more than is used of them.
        for (object, entry) in &mut objects {
            entry.raw = object.parse().unwrap_or(entry.raw);
        }
        let found = paths_to_repack(&files, &objects, &written.iter().cloned().collect());
        assert_eq!(found.into_iter().collect::<Vec<_>>().join(" "), expected);
    }

    #[test]
    fn logs_of_a_month_that_has_ended_are_joined() {
        check(&["a x 9 2026-03", "b y 9 2026-03"], &[], "a b");
        check(&["a x 9 2026-03", "b y 9 2026-02"], &[], "");
        // A late line.
        let late = ["a x 90 2026-03", "b y 9 2026-03"];
        check(&late, &[], "");
        check(&late, &[PackGroup::Month("2026-03".to_owned())], "a b");
        check(&late, &[PackGroup::Month("2026-02".to_owned())], "");
        check(&[late[0], late[1], "c z 1 2026-03"], &[], "a b c");
        // What is not here stays, and so do large objects.
        check(&[late[0], late[1], "!c z 9 2026-03"], &[], "");
        check(&[late[0], late[1], "c z 8388608 2026-03"], &[], "");
        // The rest of an object that held more.
        let mixed = ["a x 9 2026-03", "b y 9 2026-03", "c z 9 2026-03", "w z 2 open"];
        check(&mixed, &[], "a b c w");
    }

    #[test]
    fn other_files_are_joined_without_one_that_is_much_larger() {
        let four = ["a w 9 open", "b x 9 open", "c y 9 open", "d z 9 open"];
        check(&four, &[], "");
        check(&four, &[PackGroup::Open], "a b c d");
        check(&["a w 900 open", four[1], four[2], four[3]], &[PackGroup::Open], "b c d");
        check(&["!a w 9 open", four[1], four[2], four[3]], &[PackGroup::Open], "");
        check(&["a w 9 database", four[1], four[2], four[3]], &[PackGroup::Open], "");
    }

    #[test]
    fn an_object_that_is_hardly_used_is_written_again() {
        check(&["a 100 49 open"], &[], "a");
        check(&["a 100 50 open"], &[], "");
        check(&["!a 100 49 open"], &[], "");
        check(&["a 100 20 open", "!b 100 20 open"], &[], "");
    }

    #[test]
    fn a_root_that_is_pushed_every_day_has_few_objects_and_writes_few_bytes_again() {
        const LOG: u64 = 1200;
        let (mut files, mut objects) = (Vec::<(String, String, u64)>::new(), BTreeMap::new());
        let (mut written_bytes, mut objects_max) = (0, 0);
        let month_of = |day: usize| PackGroup::Month(format!("{:02}", day / 30));
        for day in 0..360 {
            let group_of = |path: &str| {
                let of: usize = path.parse().unwrap();
                if of / 30 < day / 30 { month_of(of) } else { PackGroup::Open }
            };
            let stored: Vec<_> = files
                .iter()
                .map(|(path, object, size)| StoredFile {
                    path,
                    object,
                    size: *size,
                    group: group_of(path),
                    is_here: true,
                })
                .collect();
            let mut packs: BTreeMap<PackGroup, Vec<String>> = BTreeMap::new();
            packs.entry(PackGroup::Open).or_default().push(day.to_string());
            for path in paths_to_repack(&stored, &objects, &[PackGroup::Open].into()) {
                packs.entry(group_of(&path)).or_default().push(path);
            }
            for (number, paths) in packs.into_values().enumerate() {
                let object = format!("object-{day}-{number}");
                let raw = LOG * paths.len() as u64;
                written_bytes += raw;
                objects.insert(object.clone(), ObjectEntry { size: raw, raw });
                for path in paths {
                    files.retain(|it| it.0 != path);
                    files.push((path, object.clone(), LOG));
                }
            }
            objects.retain(|object, _| files.iter().any(|it| it.1 == *object));
            objects_max = objects_max.max(objects.len());
        }
        // Twelve months, and a handful.
        assert!(objects_max <= 17, "{objects_max} objects");
        assert!(written_bytes <= 5 * 360 * LOG, "{} times", written_bytes / (360 * LOG));
    }
}
