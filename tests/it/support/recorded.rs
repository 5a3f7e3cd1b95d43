//! Plays recorded replies of a model, so that prompts and checks are measured on true ones.
//!
//! A recording has a line of JSON for each call, as `model.record` writes them. A request that was recorded gets its
//! very reply. Another one gets what was recorded for its weeks or its month, with the ids of the lines as they are in
//! this request.

use std::{collections::BTreeMap, fs, path::Path};

use serde_json::{Value, json};

use super::server::{Answer, ModelRequest, Server, StopReason, valid_reply};

/// A recorded call.
#[derive(Clone, Debug)]
struct RecordedCall {
    stage: String,
    period: String,
    messages: Vec<String>,
    reply: String,
}

/// The replies of a recording.
#[derive(Clone, Debug)]
pub(crate) struct Recording(Vec<RecordedCall>);

impl Recording {
    pub(crate) fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).unwrap();
        let call = |line: &str| {
            let call: Value = serde_json::from_str(line).unwrap();
            let text = |key: &str| call[key].as_str().unwrap_or_default().to_owned();
            let messages = call["messages"].as_array().into_iter().flatten();
            RecordedCall {
                stage: text("stage"),
                period: text("period"),
                messages: messages.map(|it| it.as_str().unwrap().to_owned()).collect(),
                reply: text("reply"),
            }
        };
        Self(text.lines().map(call).collect())
    }

    /// Starts a server that plays it.
    pub(crate) fn play(self) -> Server {
        Server::answering(move |request| -> Answer {
            request.reply_with(&self.reply(request), StopReason::Complete)
        })
    }

    /// Returns the number of bullets, statements and operations in its replies.
    pub(crate) fn items(&self) -> usize {
        let bullets = |text: &str| text.lines().filter(|it| it.starts_with("- ")).count();
        let list = |value: &Value| value.as_array().map_or(0, Vec::len);
        let of_call = |call: &RecordedCall| {
            let Ok(reply) = serde_json::from_str::<Value>(&call.reply) else {
                return bullets(&call.reply);
            };
            let week = reply["week"].as_str().map_or(0, bullets);
            week + list(&reply["statements"]) + list(&reply["operations"])
        };
        self.0.iter().map(of_call).sum()
    }

    fn reply(&self, request: &ModelRequest) -> String {
        let turns = request.turns();
        if let Some(call) = self.0.iter().find(|it| it.messages == turns) {
            return call.reply.clone();
        }
        if request.is_repair() {
            return self.corrections(&turns[0]);
        }
        let message = &turns[0];
        let of = |stage: &str, period: &str| {
            let call = self.0.iter().find(|it| it.stage == stage && it.period == period)?;
            let recorded = call.messages.first().map_or("", |it| it);
            Some(known_items(&with_ids_of(&call.reply, recorded, message)))
        };
        if request.system().contains("{\"operations\":") {
            let month = message.lines().find_map(|it| of("wisdom", it));
            return month.unwrap_or_else(|| json!({ "operations": [] }).to_string());
        }
        if let Some(month) = message.lines().find_map(|it| of("monthly", it.split_once(" (")?.0)) {
            return month;
        }
        if message.lines().any(|it| it.starts_with("b1 | ")) {
            return valid_reply(request);
        }
        self.weeks(request, message)
    }

    /// Returns the recorded correction of each item of a request, by the words of the item.
    fn corrections(&self, message: &str) -> String {
        let numbered = |message: &str| -> Vec<(u64, Value)> {
            let items = message.lines().filter_map(|it| it.split_once(". {"));
            let item = |(number, item): (&str, &str)| {
                let item = serde_json::from_str(&format!("{{{item}")).ok()?;
                Some((number.parse().ok()?, item))
            };
            items.filter_map(item).collect()
        };
        let mut corrected = BTreeMap::<String, Value>::new();
        for call in self.0.iter().filter(|it| it.stage == "repair") {
            let reply: Value = serde_json::from_str(&call.reply).unwrap();
            for (number, item) in numbered(&call.messages[0]) {
                let mut found = reply["items"].as_array().unwrap().iter();
                if let Some(by) = found.find(|it| it["n"] == number) {
                    let reply = with_ids_of(&by.to_string(), &call.messages[0], message);
                    corrected
                        .insert(item["text"].to_string(), serde_json::from_str(&reply).unwrap());
                }
            }
        }
        let items = numbered(message).into_iter().filter_map(|(number, item)| {
            let mut by = corrected.get(&item["text"].to_string())?.clone();
            by["n"] = json!(number);
            Some(by)
        });
        json!({ "items": items.collect::<Vec<_>>() }).to_string()
    }

    /// Returns the reply about the weeks of a request.
    fn weeks(&self, request: &ModelRequest, message: &str) -> String {
        let days: Vec<&str> = message
            .lines()
            .filter_map(|it| it.strip_prefix("## "))
            .filter(|it| it.starts_with("20"))
            .collect();
        let (mut weeks, mut statements) = (Vec::new(), Vec::new());
        let mut single = None;
        for call in self.0.iter().filter(|it| it.stage == "weekly") {
            let reply: Value = serde_json::from_str(&call.reply).unwrap();
            let is_of_request = |it: &&Value| {
                let cited = it["citations"].as_str().unwrap();
                days.iter().any(|day| cited.contains(&format!("{day}:")))
            };
            let all = reply["statements"].as_array().unwrap();
            statements.extend(all.iter().filter(is_of_request).cloned());
            if message.contains(&format!("- {} (", call.period)) {
                weeks.push(json!({ "week": call.period, "summary": reply["week"] }));
            } else if message.contains(&format!("{} (", call.period)) {
                single = Some(reply["week"].clone());
            }
        }
        let is_combined = request.is_combined();
        let reply = match single {
            Some(week) if is_combined => json!({ "week": week, "statements": statements }),
            Some(week) if !request.system().contains("\"statements\"") => {
                return week.as_str().unwrap().to_owned();
            }
            _ if is_combined => json!({ "weeks": weeks, "statements": statements }),
            _ => json!({ "statements": statements }),
        };
        reply.to_string()
    }
}

/// Returns a reply without the items that cite lines which are not in the request.
fn known_items(reply: &str) -> String {
    let is_known = |text: &str| !text.contains(UNKNOWN);
    if let Ok(mut value) = serde_json::from_str::<Value>(reply) {
        if let Some(list) = value["operations"].as_array_mut() {
            list.retain(|it| is_known(&it.to_string()));
        }
        return value.to_string();
    }
    let known: Vec<&str> = reply.lines().filter(|it| is_known(it)).collect();
    known.join("\n")
}

/// In place of an id that is not in the request.
const UNKNOWN: &str = "L00";

/// Returns a reply with the ids of lines as they are in another request, by the texts of the lines.
fn with_ids_of(reply: &str, recorded: &str, now: &str) -> String {
    let lines = |message: &str| -> Vec<(String, String)> {
        let lines = message.lines().filter_map(|it| it.split_once(" | "));
        lines.map(|(id, text)| (id.to_owned(), text.to_owned())).collect()
    };
    let ids_now: BTreeMap<String, String> =
        lines(now).into_iter().map(|(id, text)| (text, id)).collect();
    let texts: BTreeMap<String, String> = lines(recorded).into_iter().collect();
    let is_of_id = |c: char| c.is_ascii_alphanumeric();
    let mut text = String::new();
    let mut rest = reply;
    while let Some(at) = rest.find(is_of_id) {
        let (before, word) = rest.split_at(at);
        let (word, after) = word.split_at(word.find(|c| !is_of_id(c)).unwrap_or(word.len()));
        let id = texts.get(word).map(|it| ids_now.get(it).map_or(UNKNOWN, |it| &it[..]));
        text.extend([before, id.unwrap_or(word)]);
        rest = after;
    }
    text + rest
}
