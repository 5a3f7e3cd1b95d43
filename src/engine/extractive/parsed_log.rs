//! Parses a log into statements, each with its heads.
//!
//! A statement is a list item, a table row, or a paragraph; a sentence that was wrapped over several
//! lines is one statement that cites them all. Heads are headings, lead-ins that end in a colon or are a
//! bold title above a list, and parent items: they say what a statement below is about, and are cited with
//! it when used.

use super::{
    sections::{self, StatementClass},
    statements::{opening_time::opening_time, terms::is_stop_word},
    table_rows::{self, OpenTable},
};
use crate::{
    engine::keep_mark::has_keep_mark,
    memory::{
        address::{Address, Citation, Stem},
        authorship::{LineShape, OriginReason, Speaker},
        bare_words,
        item::Item,
        log::TextOrigin,
        markdown::LineKind,
    },
    privacy::{SanitizedLine, SanitizedLog},
    text::{
        hash::hash_bytes,
        language::Language,
        pieces::{self, StatementPiece},
        scripts,
    },
};

/// A parsed log, or a bullet treated as one.
pub(super) struct ParsedLog {
    pub(super) stem: Stem,
    pub(super) language: Language,
    pub(super) heads: Vec<StatementHead>,
    pub(super) statements: Vec<LogStatement>,
}

/// A heading, lead-in, or parent item.
pub(super) struct StatementHead {
    /// Its words, cleaned, without a closing colon.
    pub(super) text: String,
    /// Its first line, which identifies it.
    pub(super) line: u32,
    /// All lines with its words; none for the title of a transcript, which is the name of its file.
    pub(super) lines: Vec<u32>,
    /// The level of a heading; 0 for a lead-in or a parent item.
    pub(super) level: u8,
    /// The heading above a heading; the parent or lead-in of a parent item.
    pub(super) parent: Option<usize>,
    /// For a parent item, its statement.
    pub(super) statement: Option<usize>,
    /// A hash of its words without numbers and case.
    pub(super) key: u64,
    /// The class that it gives to the statements below it.
    pub(super) class: Option<StatementClass>,
}

pub(super) struct LogStatement {
    /// Cleaned words: emphasis is cut, white space is single.
    pub(super) text: String,
    /// Bytes of `text` that are a label (`Caroline: `), which goes with each piece.
    pub(super) label: usize,
    pub(super) pieces: Vec<StatementPiece>,
    /// Byte offset at which each source line begins in `text`, and its number.
    pub(super) lines: Vec<(usize, u32)>,
    /// The nearest heading, then the lead-in or parent item.
    pub(super) heading: Option<usize>,
    pub(super) lead: Option<usize>,
    pub(super) form: StatementForm,
    pub(super) origin: TextOrigin,
    /// Whether somebody read it rather than did it: an article, search results.
    pub(super) is_pasted: bool,
    /// Who speaks, in a transcript.
    pub(super) speaker: Option<Speaker>,
    /// The transcript that it is part of, an index of [`SanitizedLog::sessions`].
    pub(super) session: Option<usize>,
    /// The state of a task box.
    pub(super) task: Option<bool>,
    /// Whether a person or agent marked it `#keep`.
    pub(super) keep: bool,
    /// Whether it only introduces what follows.
    pub(super) introduces: bool,
    /// The line that names the columns of a table's row.
    pub(super) header: Option<u32>,
    /// What a bullet of a weekly file cites; a log's statement cites its own lines.
    pub(super) cites: Option<Citation>,
}

impl LogStatement {
    /// Returns whether it is in the words of the log's author: no quote, no code, no output of a program.
    pub(super) fn is_own_words(&self) -> bool {
        self.origin != TextOrigin::External
            && !matches!(self.form, StatementForm::Code | StatementForm::Quote)
            && self.speaker != Some(Speaker::Machine)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StatementForm {
    Item,
    Paragraph,
    Row,
    Quote,
    Code,
}

pub(super) fn parse(log: &SanitizedLog) -> ParsedLog {
    parse_with_language(log, |_| None)
}

/// Parses a log; `known` may return its language from the parsed statements.
pub(super) fn parse_with_language(
    log: &SanitizedLog,
    known: impl Fn(&ParsedLog) -> Option<Language>,
) -> ParsedLog {
    let mut page = parse_statements(log);
    page.language = known(&page).unwrap_or_else(|| {
        let prose = log.lines().iter().filter(|it| it.kind() != LineKind::Code);
        Language::detect(prose.map(SanitizedLine::words))
    });
    page
}

/// Parses the statements of a log, without detecting its language.
fn parse_statements(log: &SanitizedLog) -> ParsedLog {
    let day = log.date().to_string();
    let mut reader = LogParser {
        page: ParsedLog {
            stem: log.stem().clone(),
            language: Language::UNKNOWN,
            heads: Vec::new(),
            statements: Vec::new(),
        },
        headings: Vec::new(),
        parents: Vec::new(),
        lead: None,
        is_lead_of_quote: false,
        table: OpenTable::default(),
        timed: has_time_column(log, &day),
        is_wrapped: may_be_wrapped(log),
        day,
        session: None,
        session_head: None,
    };
    let lines = log.lines();
    let mut at = 0;
    while at < lines.len() {
        at += reader.parse_next(&lines[at..]);
    }
    reader.page
}

/// Returns whether a line ends in a word that ends no sentence: `it is not true that`.
fn needs_more(line: &str) -> bool {
    let last = line.split_whitespace().next_back().unwrap_or_default();
    line.ends_with([',', '-', '–', '—', '(', '/']) || is_stop_word(&last.to_lowercase())
}

/// Returns whether the lines of a log may be wrapped at some width: then none of its text is longer.
fn may_be_wrapped(log: &SanitizedLog) -> bool {
    const WIDTH_MAX: usize = 120;
    let is_text =
        |it: &&SanitizedLine| matches!(it.kind(), LineKind::ListItem { .. } | LineKind::Text);
    let mut lines = log.lines().iter().filter(is_text);
    lines.all(|it| it.text().chars().nth(WIDTH_MAX).is_none())
}

/// Returns a page with one bullet of a weekly file whose words occur in no log.
pub(super) fn parse_bullet(week: &Stem, item: &Item) -> ParsedLog {
    let text = strip_markup(&item.text);
    let (label, pieces) = split_after_label(&text, 0);
    let stem = match &item.citation {
        Some(citation) => citation.files().last().map_or(week, |(stem, _)| stem),
        None => week,
    };
    ParsedLog {
        stem: stem.clone(),
        language: Language::detect(std::iter::once(text.as_str())),
        heads: Vec::new(),
        statements: vec![LogStatement {
            keep: false,
            introduces: false,
            text,
            label,
            pieces,
            lines: Vec::new(),
            heading: None,
            lead: None,
            form: StatementForm::Item,
            origin: TextOrigin::Human,
            is_pasted: false,
            speaker: None,
            session: None,
            task: None,
            header: None,
            cites: item.citation.clone(),
        }],
    }
}

struct LogParser {
    page: ParsedLog,
    /// Open headings, outermost first.
    headings: Vec<usize>,
    /// Open list items: indent, statement, and its head once a child needs it.
    parents: Vec<(usize, usize, Option<usize>)>,
    /// The paragraph that introduces what follows.
    lead: Option<usize>,
    /// Whether what it introduces is the quote below it.
    is_lead_of_quote: bool,
    table: OpenTable,
    /// The day of the log, as in the stamps of its entries.
    day: String,
    /// Whether items begin with a time that only orders them.
    timed: bool,
    /// Whether its lines may be wrapped: none is long.
    is_wrapped: bool,
    /// The transcript that is being read, and its title.
    session: Option<usize>,
    session_head: Option<usize>,
}

impl LogParser {
    /// Parses the statement or head at the first of `lines`; returns its number of lines.
    fn parse_next(&mut self, lines: &[SanitizedLine]) -> usize {
        let line = &lines[0];
        if is_machinery(line) {
            return 1;
        }
        if line.session() != self.session && line.kind() != LineKind::Blank {
            self.begin_session(line);
        } else if line.shape() == LineShape::TurnStart {
            self.begin_turn();
        }
        let is_quote = matches!(line.kind(), LineKind::Quote { .. });
        if self.is_lead_of_quote && !is_quote && line.kind() != LineKind::Blank {
            self.lead = None;
        }
        self.is_lead_of_quote &= self.lead.is_some();
        match line.kind() {
            LineKind::Blank | LineKind::Fence | LineKind::Rule | LineKind::Comment => 1,
            LineKind::Heading { level, .. } => {
                self.add_heading(line, level);
                1
            }
            LineKind::ListItem { indent, task, .. } => {
                let taken = self.wrapped_line_count(lines);
                self.add_item(&lines[..taken], indent, task);
                taken
            }
            LineKind::Text | LineKind::AfterComment { .. } => {
                let taken = self.wrapped_line_count(lines);
                self.add_paragraph(&lines[..taken], StatementForm::Paragraph);
                if taken == 1 && is_bold_title(line.words()) && opens_list(&lines[1..]) {
                    self.introduce_with_last(line.number());
                }
                taken
            }
            LineKind::TableRow => {
                self.add_row(line, lines.get(1).is_some_and(|next| next.kind() == LineKind::Rule));
                1
            }
            // A mark without words.
            LineKind::Quote { .. } if !line.is_content() => 1,
            LineKind::Quote { .. } => {
                self.is_lead_of_quote = self.lead.is_some();
                self.add_paragraph(&lines[..1], StatementForm::Quote);
                1
            }
            LineKind::Code => {
                self.add_paragraph(&lines[..1], StatementForm::Code);
                1
            }
        }
    }

    /// Returns how many of the first lines are one wrapped statement.
    fn wrapped_line_count(&self, lines: &[SanitizedLine]) -> usize {
        /// After a shorter line the break was deliberate, and a new statement begins.
        const WRAP_CHARS_MIN: usize = 50;
        let is_task = matches!(lines[0].kind(), LineKind::ListItem { task: Some(_), .. });
        let mut taken = 1;
        while let Some(next) = lines.get(taken) {
            let before = lines[taken - 1].words();
            let is_indented = next.text().starts_with([' ', '\t']);
            let is_filled = || {
                before.chars().count() >= WRAP_CHARS_MIN
                    && !before.ends_with(['.', '!', '?', '。', '！', '？'])
                    && !scripts::is_mostly_spaceless(before)
                    && (is_indented || (self.is_wrapped && !is_task) || needs_more(before))
            };
            // Below a quotation one's own words are a statement of their own.
            let is_external = |it: &SanitizedLine| it.origin() == TextOrigin::External;
            let goes_on = next.kind() == LineKind::Text
                && is_external(next) == is_external(&lines[0])
                && next.shape() != LineShape::TurnStart
                && next.speaker() == lines[0].speaker()
                && !is_machinery(next)
                && !before.ends_with([':', '：'])
                && label_len(next.words()) == 0
                && (next.words().starts_with(char::is_lowercase) || is_filled());
            if !goes_on || has_keep_mark(next.words()) || has_keep_mark(before) {
                break;
            }
            taken += 1;
        }
        taken
    }

    /// Begins or ends a transcript. Its title is the name of the file, since its own heading is a time.
    fn begin_session(&mut self, line: &SanitizedLine) {
        self.session = line.session();
        self.session_head = None;
        if self.session.is_some() {
            let title = session_title(&self.page.stem);
            let lines = (line.number(), Vec::new());
            self.session_head = title.map(|it| self.add_head(&it, lines, 1, None, None));
        }
        self.begin_turn();
    }

    /// Begins a turn: what the one before opened is closed.
    fn begin_turn(&mut self) {
        self.headings = self.session_head.into_iter().collect();
        self.parents.clear();
        self.lead = None;
        self.table = OpenTable::default();
    }

    fn add_heading(&mut self, line: &SanitizedLine, level: u8) {
        while self.headings.last().is_some_and(|&h| self.page.heads[h].level >= level) {
            self.headings.pop();
        }
        self.parents.clear();
        self.lead = None;
        self.table = OpenTable::default();
        let above = self.headings.last().copied();
        let lines = (line.number(), vec![line.number()]);
        let text = strip_markup(line.words());
        let time = opening_time(&text, &self.day).map_or(0, |it| it.len);
        let head = self.add_head(&text[time..], lines, level, above, None);
        self.headings.push(head);
    }

    fn add_head(
        &mut self,
        text: &str,
        (line, lines): (u32, Vec<u32>),
        level: u8,
        above: Option<usize>,
        statement: Option<usize>,
    ) -> usize {
        let text = text.trim_end_matches([':', '：', ' ']).to_owned();
        let (key, class) = (heading_key(&text), sections::class_of_head(&text));
        self.page.heads.push(StatementHead {
            text,
            class,
            line,
            lines,
            level,
            parent: above,
            statement,
            key,
        });
        self.page.heads.len() - 1
    }

    fn add_item(&mut self, lines: &[SanitizedLine], indent: usize, task: Option<bool>) {
        while self.parents.last().is_some_and(|parent| parent.0 >= indent) {
            self.parents.pop();
        }
        self.table = OpenTable::default();
        let lead = self.parent_head().or(self.lead);
        let index = self.add_statement(lines, StatementForm::Item, lead);
        self.page.statements[index].task = task;
        self.parents.push((indent, index, None));
    }

    /// Returns the head that the innermost open item is for its children.
    fn parent_head(&mut self) -> Option<usize> {
        let &(_, statement, head) = self.parents.last()?;
        if head.is_some() {
            return head;
        }
        let parent = &self.page.statements[statement];
        let end = topic_len(parent);
        let mut text = parent.text[..end].trim_end_matches(LEAD_ENDS).to_owned();
        let line = parent.lines.first().map_or(0, |l| l.1);
        let mut lines: Vec<u32> = parent.lines_of(0, end.max(1)).collect();
        let above = parent.lead;
        // One or two words are a topic only together with what they are a part of.
        if let Some(above) = above.map(|it| &self.page.heads[it])
            && text.split_whitespace().count() <= TOPIC_WORDS_MIN
            && above.text.chars().count() + text.chars().count() <= LEAD_CHARS_MAX
            && !sections::is_template_head(&text)
            && !sections::is_template_head(&above.text)
        {
            text = format!("{}: {text}", above.text);
            lines.extend(&above.lines);
        }
        let head = Some(self.add_head(&text, (line, lines), 0, above, Some(statement)));
        if let Some(last) = self.parents.last_mut() {
            last.2 = head;
        }
        head
    }

    fn add_paragraph(&mut self, lines: &[SanitizedLine], form: StatementForm) {
        self.parents.clear();
        self.table = OpenTable::default();
        let lead = self.lead.filter(|_| form != StatementForm::Paragraph);
        let index = self.add_statement(lines, form, lead);
        if form != StatementForm::Paragraph {
            return;
        }
        if self.page.statements[index].introduces {
            self.introduce_with_last(lines[lines.len() - 1].number());
        } else {
            self.lead = None;
        }
    }

    /// Makes the last statement, which ends at `line`, the lead-in of what follows.
    fn introduce_with_last(&mut self, line: u32) {
        let Some(statement) = self.page.statements.last_mut() else { return };
        statement.introduces = true;
        // `Decision:` opens a list; a long lead-in keeps its last sentence for the heads.
        let start = statement.pieces.last().map_or(0, |p| p.start);
        let held_by: Vec<u32> = statement.lines_of(start, statement.text.len()).collect();
        let text = statement.text[start..].to_owned();
        self.lead = Some(self.add_head(&text, (line, held_by), 0, None, None));
    }

    fn add_row(&mut self, line: &SanitizedLine, is_header: bool) {
        let cells: Vec<String> = table_rows::cells(line.words()).map(strip_markup).collect();
        if is_header {
            self.table = OpenTable::with_heads(cells, line.number());
            return;
        }
        let index = self.add_statement(std::slice::from_ref(line), StatementForm::Row, self.lead);
        let row = self.table.read_row(&cells, line.number());
        let statement = &mut self.page.statements[index];
        statement.pieces = single_piece(&row.text);
        statement.text = row.text;
        if let Some((end, group)) = row.group {
            statement.lines = vec![(0, group), (end, line.number())];
        }
        statement.label = 0;
        statement.introduces = false;
        statement.header = row.header_line;
    }

    /// Cuts the time of day that opens an entry, unless it may say when something happens.
    fn drop_time(&self, text: &mut String, starts: &mut [(usize, u32)]) {
        let Some(time) = opening_time(text, &self.day) else { return };
        let words = &text[time.len..];
        let is_labelled = label_len(words) > 0 || bare_words::session_lead(words).is_some();
        if !(self.timed || time.is_stamp || is_labelled) {
            return;
        }
        text.drain(..time.len);
        for (at, _) in starts {
            *at = at.saturating_sub(time.len);
        }
    }

    /// Adds a statement made of `lines`, and returns its index.
    fn add_statement(
        &mut self,
        lines: &[SanitizedLine],
        form: StatementForm,
        lead: Option<usize>,
    ) -> usize {
        let mut text = String::new();
        let mut starts = Vec::with_capacity(lines.len());
        for line in lines {
            if !text.is_empty() {
                text.push(' ');
            }
            starts.push((text.len(), line.number()));
            text.push_str(&if form == StatementForm::Code {
                line.words().trim().to_owned()
            } else {
                strip_markup(without_slant(line.words()))
            });
        }
        if form == StatementForm::Item || form == StatementForm::Paragraph {
            self.drop_time(&mut text, &mut starts);
        }
        let (label, pieces) = match form {
            StatementForm::Row | StatementForm::Code => (label_len(&text), single_piece(&text)),
            _ => split_after_label(&text, titled_len(lines[0].words(), &text)),
        };
        let own = lines.iter().all(|l| l.origin() != TextOrigin::External);
        let statement = LogStatement {
            keep: own && lines.iter().any(|l| has_keep_mark(l.words())),
            introduces: text.ends_with([':', '：']),
            text,
            label,
            pieces,
            lines: starts,
            heading: self.headings.last().copied(),
            lead,
            form,
            origin: lines[0].origin(),
            is_pasted: lines[0].origin_reason() == Some(OriginReason::PastedText),
            speaker: lines[0].speaker(),
            session: lines[0].session(),
            task: None,
            header: None,
            cites: None,
        };
        self.page.statements.push(statement);
        self.page.statements.len() - 1
    }
}

impl LogStatement {
    pub(super) fn piece_text(&self, piece: usize) -> &str {
        let piece = self.pieces[piece];
        &self.text[piece.start..piece.end]
    }

    /// Returns its label with the colon, or an empty text.
    pub(super) fn label_text(&self) -> &str {
        &self.text[..self.label]
    }

    /// Returns the numbers of the lines that hold the bytes from `start` to `end`.
    pub(super) fn lines_of(&self, start: usize, end: usize) -> impl Iterator<Item = u32> + '_ {
        let from = self.lines.partition_point(|&(at, _)| at <= start).saturating_sub(1);
        self.lines[from..].iter().take_while(move |&&(at, _)| at < end).map(|&(_, number)| number)
    }
}

impl ParsedLog {
    /// Returns the first statement below a heading; the number of all if there is none.
    pub(super) fn first_below(&self, head: usize) -> usize {
        // Statements are in the order of their lines, and so are headings.
        let from = self.statements.partition_point(|it| it.heading.is_none_or(|it| it < head));
        let is_below = |it: &LogStatement| it.heading == Some(head) && !it.introduces;
        let below = self.statements[from..].iter().position(is_below);
        below.map_or(self.statements.len(), |it| from + it)
    }

    pub(super) fn address(&self, line: u32) -> Address {
        Address { stem: self.stem.clone(), line }
    }
}

/// Returns whether a program wrote the line, so that it reports nothing that happened.
pub(super) fn is_machinery(line: &SanitizedLine) -> bool {
    line.origin_reason().is_some_and(OriginReason::is_machinery)
}

/// Returns the words of the slug of a log's name: `2026-02-01-ci-setup` gives `Ci setup`. `None` if it
/// has no words, such as a time.
fn session_title(stem: &Stem) -> Option<String> {
    let (_, slug) = stem.as_str().split_at_checked("2026-02-01-".len())?;
    let words = slug.replace(['-', '_'], " ");
    let mut chars = words.trim().chars();
    let first = chars.next().filter(|_| words.contains(char::is_alphabetic))?;
    Some(first.to_uppercase().chain(chars).collect())
}

/// Cuts marks of emphasis and breaks, control characters, and runs of white space.
pub(super) fn strip_markup(words: &str) -> String {
    if has_no_markup(words) {
        return words.to_owned();
    }
    let mut text = String::with_capacity(words.len());
    let mut in_code = false;
    let stray = has_stray_bold(words);
    let mut rest = words;
    while let Some(c) = rest.chars().next() {
        let width = c.len_utf8();
        if c == '`' {
            in_code = !in_code;
        }
        if !in_code && rest.starts_with("**") {
            let after = rest.trim_start_matches('*');
            // `2**8` is no emphasis.
            let glued =
                text.ends_with(char::is_alphanumeric) && after.starts_with(char::is_alphanumeric);
            // Nor would a number meet a word as its unit by itself.
            let parts = stray
                && text.trim_end().ends_with(char::is_numeric)
                && after.trim_start().starts_with(char::is_alphabetic);
            if glued || parts {
                text.push_str(&rest[..rest.len() - after.len()]);
            }
            rest = after;
            continue;
        }
        if !in_code && (rest.starts_with("<br>") || rest.starts_with("<br/>")) {
            rest = &rest[rest.find('>').map_or(width, |i| i + 1)..];
            text.push(' ');
            continue;
        }
        if c.is_whitespace() || c.is_control() {
            // Code stays unchanged, so that it can be found in its line.
            if !text.is_empty() && (in_code || !text.ends_with(' ')) {
                text.push(' ');
            }
        } else {
            text.push(c);
        }
        rest = &rest[width..];
    }
    text.truncate(text.trim_end().len());
    text
}

/// Returns whether a bold mark has no partner, or is where none can be opened or closed.
fn has_stray_bold(words: &str) -> bool {
    let marks = words.match_indices("**");
    let stray = |(number, (at, mark)): (usize, (usize, &str))| {
        let outside = |c: char| !c.is_whitespace();
        if number % 2 == 0 {
            !words[at + mark.len()..].starts_with(outside)
        } else {
            !words[..at].ends_with(outside)
        }
    };
    marks.clone().count() % 2 == 1 || marks.enumerate().any(stray)
}

/// Returns true if a line surely has no markup, as most lines. A fast test.
fn has_no_markup(words: &str) -> bool {
    let mut before = b' ';
    words.is_ascii()
        && words.bytes().all(|b| {
            let doubled = b == before && matches!(b, b' ' | b'*');
            before = b;
            matches!(b, b' '..=b'~') && b != b'<' && !doubled
        })
        && before != b' '
}

/// Returns a key that is the same for headings that differ in numbers, case, or marks.
fn heading_key(text: &str) -> u64 {
    let letters: String =
        text.chars().filter(|c| c.is_alphabetic()).flat_map(char::to_lowercase).collect();
    hash_bytes(letters.as_bytes())
}

/// Returns the length of the label of a text, at least `titled`, and the pieces after it.
fn split_after_label(text: &str, titled: usize) -> (usize, Vec<StatementPiece>) {
    let label = label_len(text).max(titled);
    let mut pieces = pieces::split_pieces(&text[label..]);
    for piece in &mut pieces {
        piece.start += label;
        piece.end += label;
    }
    (label, pieces)
}

fn single_piece(text: &str) -> Vec<StatementPiece> {
    if text.is_empty() {
        Vec::new()
    } else {
        vec![StatementPiece { start: 0, end: text.len(), starts_sentence: true }]
    }
}

/// The longest topic of a parent item, in characters; of a longer one its label or first clause is enough.
const LEAD_CHARS_MAX: usize = 110;

const TOPIC_CHARS_MAX: usize = 60;

/// A topic of no more words is incomplete.
const TOPIC_WORDS_MIN: usize = 2;

/// Marks at the end of a parent that do not precede a colon.
const LEAD_ENDS: [char; 9] = [':', '：', '.', ';', ',', '。', '—', '–', ' '];

/// Returns the bytes of a parent item that say what its children are about.
fn topic_len(parent: &LogStatement) -> usize {
    let text = &parent.text;
    if parent.introduces || text.chars().count() <= TOPIC_CHARS_MAX {
        return text.len();
    }
    let clause = parent.pieces.first().map_or(text.len(), |it| it.end);
    match parent.label {
        0 if text[..clause].chars().count() <= LEAD_CHARS_MAX => clause,
        0 => pieces::truncate_at_clause(text, TOPIC_CHARS_MAX).len(),
        label => label,
    }
}

/// Returns the words of a line that is in italics as a whole, as notes about a note are.
fn without_slant(words: &str) -> &str {
    let inner = ['*', '_'].into_iter().find_map(|mark| {
        let inner = words.strip_prefix(mark)?.strip_suffix(mark)?;
        (!inner.is_empty() && !inner.contains(mark)).then_some(inner)
    });
    inner.unwrap_or(words)
}

/// Returns whether a line is a title in bold, without being a heading.
fn is_bold_title(words: &str) -> bool {
    let title = words.trim().strip_prefix("**").and_then(|it| it.strip_suffix("**"));
    title.is_some_and(|it| {
        !it.contains("**")
            && !it.ends_with(['.', '!', '?', '。', '！', '？'])
            && it.chars().count() <= LEAD_CHARS_MAX
    })
}

/// Returns whether a list or a table begins with the first of `lines` that says something.
fn opens_list(lines: &[SanitizedLine]) -> bool {
    let next = lines.iter().find(|it| it.kind() != LineKind::Blank);
    next.is_some_and(|it| matches!(it.kind(), LineKind::ListItem { .. } | LineKind::TableRow))
}

/// Returns the bytes of `text` that are a title in bold or code with the dash after it: `**Boiler** – off`.
fn titled_len(words: &str, text: &str) -> usize {
    const TITLE_CHARS_MAX: usize = 80;
    let words = words.trim_start();
    let title = match words.strip_prefix("**") {
        Some(inner) => inner.split_once("**").map(|it| strip_markup(it.0)),
        None => words
            .strip_prefix('`')
            .and_then(|it| it.split_once('`'))
            .map(|it| format!("`{}`", it.0)),
    };
    let rest = title.as_ref().filter(|it| it.chars().count() <= TITLE_CHARS_MAX);
    let rest = rest.and_then(|title| text.strip_prefix(title.as_str()));
    let after = rest.and_then(|it| it.strip_prefix([' ', ':'])).map(str::trim_start);
    let value = after.and_then(|it| it.strip_prefix(['–', '—', '-'])?.strip_prefix(' '));
    let value = value.map(str::trim_start).filter(|it| it.contains(char::is_alphanumeric));
    value.map_or(0, |it| text.len() - it.len())
}

/// Returns the length of a label with its colon and space: `Caroline: `, `Root cause: `.
fn label_len(text: &str) -> usize {
    const LABEL_CHARS_MAX: usize = 40;
    const LABEL_WORDS_MAX: usize = 5;
    /// One character of these scripts says what takes others three.
    const UNSPACED_CHARS_MAX: usize = 14;
    let Some(colon) =
        text.char_indices().take(LABEL_CHARS_MAX).find(|(_, c)| matches!(c, ':' | '：'))
    else {
        return 0;
    };
    let label = &text[..colon.0];
    let after = colon.0 + colon.1.len_utf8();
    let spaced = colon.1 == '：'
        || text[after..].starts_with(' ')
        || text[after..].starts_with(scripts::is_spaceless);
    let is_short =
        !scripts::is_mostly_spaceless(label) || label.chars().count() <= UNSPACED_CHARS_MAX;
    let plain = is_short
        && label.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '`' | '@' | '/'))
        && !label.contains(['.', '!', '?', ';', '。', '，', '！', '？'])
        && label.matches('`').count().is_multiple_of(2)
        && label.matches('(').count() == label.matches(')').count()
        && label.split_whitespace().count() <= LABEL_WORDS_MAX;
    let tail = text[after..].trim_start();
    if spaced && plain && !tail.is_empty() { text.len() - tail.len() } else { 0 }
}

/// Returns whether most items of the log begin with a time, which then only orders them.
fn has_time_column(log: &SanitizedLog, day: &str) -> bool {
    let items = log
        .lines()
        .iter()
        .filter(|l| matches!(l.kind(), LineKind::ListItem { .. } | LineKind::Text));
    let (mut timed, mut all) = (0_usize, 0_usize);
    for line in items {
        all += 1;
        let bold = line.words().starts_with("**").then(|| strip_markup(line.words()));
        let words = bold.as_deref().unwrap_or(line.words());
        timed += usize::from(opening_time(words, day).is_some());
    }
    timed >= 2 && timed * 2 > all
}
