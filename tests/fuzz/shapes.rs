//! Texts of any length that may be slow to read: unclosed, nested, or repeated elements.

/// A kind of text.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) name: &'static str,
    /// Whether it is of what agents and their host programs write.
    pub(crate) is_of_agents: bool,
    head: &'static str,
    unit: Unit,
    tail: &'static str,
}

/// What is repeated between the head and the tail.
#[derive(Clone, Copy)]
enum Unit {
    Same(&'static str),
    /// A text of the number of repetitions before it.
    Numbered(fn(usize) -> String),
}

impl Shape {
    /// Returns a text of this kind, at most `bytes` long but for its last unit.
    pub(crate) fn text(&self, bytes: usize) -> String {
        let mut text = self.head.to_owned();
        for at in 0.. {
            match self.unit {
                Unit::Same(unit) => text.push_str(unit),
                Unit::Numbered(unit) => text.push_str(&unit(at)),
            }
            if text.len() + self.tail.len() >= bytes {
                break;
            }
        }
        text + self.tail
    }
}

const fn fill(
    name: &'static str,
    head: &'static str,
    unit: &'static str,
    tail: &'static str,
) -> Shape {
    Shape { name, is_of_agents: false, head, unit: Unit::Same(unit), tail }
}

const fn count(name: &'static str, head: &'static str, unit: fn(usize) -> String) -> Shape {
    Shape { name, is_of_agents: false, head, unit: Unit::Numbered(unit), tail: "\n" }
}

const fn agent(name: &'static str, head: &'static str, unit: fn(usize) -> String) -> Shape {
    Shape { name, is_of_agents: true, head, unit: Unit::Numbered(unit), tail: "\n" }
}

/// The head of a saved transcript.
const SESSION: &str = "# Session: 2026-04-02 09:00:00 UTC\n\n- **Session Key**: main\n- **Session ID**: 7\n\n\
    ## Conversation Summary\n\n";

fn clock(minutes: usize) -> String {
    format!("{:02}:{:02}", minutes / 60 % 24, minutes % 60)
}

/// All kinds.
pub(crate) const SHAPES: &[Shape] = &[
    fill("front of [", "---\na: ", "[", "\n---\n"),
    fill("front of {a:", "---\na: ", "{a: ", "\n---\n"),
    fill("front of - ", "---\n", "- ", "\n---\n"),
    fill("front of keys", "---\n", "a: b\n", "---\n- x\n"),
    fill("front of quotes", "---\na: ", "\"", "\n---\n"),
    fill("front of aliases", "---\na: &a x\nb: [", "*a,", "]\n---\n"),
    fill("front never closed", "---\n", "a: b\n", ""),
    fill("front of ---x", "---\n", "---x\n", ""),
    fill("documents", "", "---\na: b\n---\n", ""),
    fill("byte-order marks", "", "\u{feff}", ""),
    fill("blank lines", "", "\n", "- x\n"),
    fill("carriage returns", "", "\r", ""),
    fill("spaces", "- a", " ", "b\n"),
    fill("one word", "- ", "a", "\n"),
    fill("words", "- ", "word ", "\n"),
    fill("sentences", "- ", "The pump ran. ", "\n"),
    count("counted sentences", "- ", |i| format!("Pump {i} ran at noon. ")),
    fill("abbreviations", "- ", "Dr. Who met Dr. ", "\n"),
    fill("sentences in an open quote", "- \"", "Alpha ran. ", "\n"),
    fill("sentences in open code", "- `", "Alpha ran. ", "\n"),
    fill("sentences in lower case", "- ", "it ran. ", "\n"),
    fill("days of a month", "- ", "31. Juli war gut. ", "\n"),
    fill("clauses", "- ", "and the pump ran, ", "\n"),
    fill("dashes", "- ", "a — ", "\n"),
    count("clock times", "- ", |i| format!("{}; ", clock(i))),
    count("lines with clock times", "", |i| format!("- {} did thing {i}\n", clock(i))),
    fill("figures", "- ", "12.5 ms, ", "\n"),
    count("numbers", "- ", |i| format!("{i} ")),
    fill("digits", "- ", "7", "\n"),
    fill("percents", "- ", "5% ", "\n"),
    fill("dates", "- ", "2026-04-02 ", "\n"),
    fill("dates in words", "- ", "2 April 2026, ", "\n"),
    count("money", "- ", |i| format!("${i}.50 for Ada, ")),
    count("changed figures", "- ", |i| format!("from {i} to {}, ", i + 1)),
    count("names", "- ", |i| format!("Ada{} met Bob, ", ('a'..='z').nth(i % 26).unwrap_or('a'))),
    count("addresses", "- ", |i| format!("https://a.io/x{i} and a{i}@b.io, ")),
    fill("one address", "- https://a.io/(", "),", "\n"),
    fill("hyphens", "- ", "a-", "\n"),
    fill("one bullet of lines", "- a\n", "b\n", ""),
    fill("one bullet of indented lines", "- a\n", "  b\n", ""),
    count("bullets", "", |i| format!("- item {i} is done\n")),
    count("preferences", "", |i| format!("- Ada prefers tea {i} to coffee.\n")),
    count("decisions of a day", "", |i| format!("- Decided to use tool{i}, not tool{}.\n", i + 1)),
    fill("the same bullet", "", "- the pump ran at noon\n", ""),
    count("tasks", "", |i| format!("- [ ] todo {i}\n")),
    count("bullets in bullets", "", |i| " ".repeat(i % 400) + "- a\n"),
    count("headings", "", |i| format!("## Part {i}\n- did {i}\n")),
    fill("sections", "", "### Decisions\n", ""),
    fill("fences", "", "```\n", ""),
    fill("fences in bullets", "", "- ```\nx\n", ""),
    count("fences of other lengths", "", |i| "`".repeat(i % 400 + 3) + "\n"),
    fill("open comments", "", "<!-- ", ""),
    fill("open comments by line", "", "<!-- \n", ""),
    fill("comments", "", "<!-- a -->", "\n"),
    fill("marks", "", "<!-- memoird: 1a2b3c4d 2026-03 -->\n", ""),
    fill("tags", "- ", "<a ", "\n"),
    fill("entries", "## A\n", "**t** w\n", ""),
    fill("table rows", "| a | b |\n|---|---|\n", "| c | d |\n", ""),
    fill("cells", "", "|", "\n|-|\n"),
    fill("brackets", "- ", "[", "\n"),
    fill("brackets both ways", "- ", "[]", "\n"),
    fill("links in links", "- ", "[a](", "\n"),
    fill("images", "- ", "![a](https://b.io/c.png) ", "\n"),
    fill("parentheses", "- ", "(a) ", "\n"),
    fill("backticks", "- ", "`", "\n"),
    fill("code", "- ", "`a` ", "\n"),
    fill("stars", "- ", "*", "\n"),
    fill("open bold", "- ", "**a ", "\n"),
    fill("quotes in quotes", "", "> ", "a\n"),
    fill("lines of a quote", "", "> a\n", ""),
    fill("one citation", "- a [", "2026-04-02:1; ", "2026-04-02:1]\n"),
    count("citations", "", |i| format!("- fact {i} [2026-04-02:{}]\n", i + 1)),
    fill("lines of one citation", "2026-04-02:1", ",3", ""),
    fill("ranges", "2026-04-02:1", ",1-4294967295", ""),
    fill("stars of a schedule", "* * * * ", "*/1,", "*"),
    fill("numbers of a schedule", "0", ",59", " 3 * * *"),
    fill("fields of a schedule", "", "* ", ""),
    fill("decisions", "", "{\"kind\":\"x\"}\n", ""),
    fill("nested JSON", "- {\"a\":", "[", "\n"),
    fill("JSON", "- ", "{\"a\": \"b\"}, ", "\n"),
    fill("passwords", "- ", "password=", "\n"),
    fill("keys", "- ", "sk-", "\n"),
    fill("base64", "- ", "QUJD", "==\n"),
    fill("sentences without spaces", "- ", "今日は東京で会議。", "\n"),
    fill("sentences without spaces in an open quote", "- “", "会議。", "\n"),
    fill("letters without spaces", "- ", "界", "\n"),
    fill("marks upon marks", "- e", "\u{301}", "\n"),
    fill("emoji", "- ", "👩\u{200d}💻", "\n"),
    fill("zero-width spaces", "- a", "\u{200b}", "\n"),
    agent("turns", SESSION, |i| format!("user: run {i}\nassistant: ran it\n\n")),
    agent("turns with envelopes", SESSION, |i| {
        format!("user: [Discord Guild #general channel id:{i} 2026-04-02 09:30 EST] ada: go\n")
    }),
    agent("prompts", SESSION, |_| {
        "user: A new session was started via /new or /reset. Hi\n\n".into()
    }),
    agent("metadata", SESSION, |i| {
        format!(
            "user: Conversation info (untrusted metadata):\n```json\n{{\"id\": {i}}}\n```\n\ngo\n"
        )
    }),
    agent("headers of transcripts", "", |_| SESSION.into()),
    agent("unclosed recalled memories", SESSION, |_| "user: <relevant-memories>\n- a\n".into()),
    agent("nested elements", "", |_| "<tool_result>\n".into()),
    agent("ends of elements", "<details>\n", |_| "</details>\n".into()),
    agent("quotations in a line", "Mail: ", |_| "<q>a b c d e</q> \"f\" ".into()),
    agent("spans of other ids", "", |at| format!("<<<EXTERNAL_UNTRUSTED_CONTENT id=\"{at}\">>>\n")),
    agent("ends of spans of other ids", "<<<EXTERNAL_UNTRUSTED_CONTENT>>>\n", |at| {
        format!("<<<END_EXTERNAL_UNTRUSTED_CONTENT id=\"{at}\">>>\n")
    }),
    agent("open quotations", "", |_| "- Mail: \"a b c d e\n  f\n".into()),
    agent("one tilde and titles of links", "", |_| "~a [b](c \"d ".into()),
    agent("unclosed untrusted text", "", |_| "<<<EXTERNAL_UNTRUSTED_CONTENT>>>\n".into()),
    agent("queued messages", SESSION, |i| {
        format!("user: [Queued messages while agent was busy]\n\n---\nQueued #{i}\ngo\n")
    }),
    agent("reports of dreams", "", |i| {
        format!("## Light Sleep\n- Candidate: a{i}\n  - confidence: 0.5\n  - evidence: b\n")
    }),
    agent("one report of dreams", "## Light Sleep\n", |_| "- Candidate: a\n".into()),
    agent("heartbeats", "", |i| format!("## Heartbeat {}\n- HEARTBEAT_OK\n", clock(i))),
    agent("research", "", |i| {
        format!(
            "## Research\n- Source: https://a{i}.io/x\n- It scales.\n- It is fast.\n- It is new.\n"
        )
    }),
    agent("lines of research", "## Research\n- Source: https://a.io/x\n", |_| {
        "- It scales.\n".into()
    }),
    agent("headings in headings", "", |i| "#".repeat(i % 6 + 1) + " Research\n"),
    agent("lists of links", "", |i| format!("- [a](https://a{}.io/x{i})\n", i % 7)),
    agent("rows with states", "| Boat | Berth | State |\n|---|---|---|\n", |i| {
        format!("| Boat {i} | {} | ✅ moored |\n", i % 9)
    }),
    agent("tables", "", |i| format!("| Boat | State |\n|---|---|\n| Boat {i} | ❌ adrift |\n\n")),
    agent("cells in a row", "| a | b |\n|---|---|\n|", |i| format!(" cell {i} |")),
    agent("labels in labels", "", |i| {
        format!("{}- **Part {i}** – state: 🟢 runs\n", "  ".repeat(i % 40))
    }),
    agent("numbered steps", "", |i| format!("{i}. **Step {i}:** do it\n   - then this\n")),
    agent("stamped activities", "", |i| format!("- [{}] FILE: wrote a{i}.md\n", clock(i))),
    agent("status blocks", "", |i| {
        format!("**Status {i}**\nStatus: ok\nPID: {i}\nUptime: {i}h\n\n")
    }),
    fill("text from right to left", "- ", "שלום. ", "\n"),
];
