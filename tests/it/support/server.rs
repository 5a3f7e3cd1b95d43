//! A local model server that answers as a test specifies, correctly or not.
//!
//! It records every request, so that a test can count and inspect them.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use serde_json::{Value, json};

/// A local server; dropping it ends it.
#[derive(Debug)]
pub(crate) struct Server {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<ModelRequest>>>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// A request as it was received.
#[derive(Clone, Debug)]
pub(crate) struct ModelRequest {
    pub(crate) method: String,
    pub(crate) path: String,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Value,
    /// The raw body, which may not be JSON.
    pub(crate) bytes: Vec<u8>,
}

/// How the server answers a request.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// A well-formed HTTP response with any content.
    Http { status: u16, headers: Vec<(&'static str, String)>, body: Vec<u8> },
    /// Half of the announced bytes, then the connection ends.
    CutOff(Vec<u8>),
    /// Invalid chunked encoding.
    BadChunks,
    /// A gzip bomb: a few hundred KB that unpack to 100 MB.
    Bomb,
    /// The connection ends without a byte of response.
    Close,
    /// One byte at a time, with this pause.
    Drip(Duration),
    /// No response until the client gives up.
    Hang,
}

impl Server {
    /// Starts a server that answers each request by a function.
    pub(crate) fn answering(answer: impl FnMut(&ModelRequest) -> Answer + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let requests: Arc<Mutex<Vec<ModelRequest>>> = Arc::default();
        let is_over = Arc::new(AtomicBool::new(false));
        let answer = Arc::new(Mutex::new(answer));
        let (recorded, over) = (Arc::clone(&requests), Arc::clone(&is_over));
        let thread = thread::spawn(move || {
            for stream in listener.incoming() {
                if over.load(Ordering::SeqCst) {
                    return;
                }
                let Ok(mut stream) = stream else { continue };
                let (answer, recorded) = (Arc::clone(&answer), Arc::clone(&recorded));
                // In its own thread, so that a slow answer does not delay other requests.
                thread::spawn(move || {
                    let Some(request) = read_request(&stream) else { return };
                    let answer = {
                        let answer = &mut *answer.lock().unwrap();
                        answer(&request)
                    };
                    recorded.lock().unwrap().push(request);
                    // The client may have gone away on purpose.
                    drop(write_answer(&mut stream, &answer));
                });
            }
        });
        Self { address, requests, is_over, thread: Some(thread) }
    }

    /// Starts a server that gives these answers in turn and then repeats the last one.
    pub(crate) fn scripted(steps: Vec<Answer>) -> Self {
        let mut at = 0;
        Self::answering(move |_| {
            let step = steps[at.min(steps.len() - 1)].clone();
            at += 1;
            step
        })
    }

    /// Starts a server that gives valid answers.
    pub(crate) fn well_behaved() -> Self {
        Self::answering(answer_well)
    }

    /// Returns `http://127.0.0.1:PORT`.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the requests so far.
    pub(crate) fn requests(&self) -> Vec<ModelRequest> {
        self.requests.lock().unwrap().clone()
    }

    /// Returns how many requests there were so far.
    pub(crate) fn count(&self) -> usize {
        self.requests.lock().unwrap().len()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        drop(TcpStream::connect(self.address));
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

impl ModelRequest {
    /// Returns a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|it| it.0 == name).map(|it| &it.1[..])
    }

    /// Returns the system message.
    pub(crate) fn system(&self) -> String {
        let text = self.body["system"][0]["text"].as_str();
        text.or(self.body["messages"][0]["content"].as_str()).unwrap_or_default().to_owned()
    }

    /// Returns the messages after the system message.
    pub(crate) fn turns(&self) -> Vec<String> {
        let turns = self.body["messages"].as_array().unwrap().iter();
        let turns = turns.filter(|it| it["role"] != "system");
        let text = |it: &Value| {
            let content = &it["content"];
            content.as_str().or(content[0]["text"].as_str()).unwrap().to_owned()
        };
        turns.map(text).collect()
    }

    /// Returns the address and text of each log line in the first message.
    pub(crate) fn lines(&self) -> Vec<(String, String)> {
        let first = self.turns().remove(0);
        let lines = first.lines().filter_map(|it| it.split_once(" | "));
        lines.map(|(address, text)| (address.to_owned(), text.to_owned())).collect()
    }

    /// Returns the headings that the system message asks for.
    fn headings(&self) -> Vec<String> {
        self.system().lines().filter(|it| it.starts_with("### ")).map(str::to_owned).collect()
    }

    /// Returns an answer with this text and stop reason, in the wire format of the request.
    pub(crate) fn reply_with(&self, text: &str, stop_reason: StopReason) -> Answer {
        let mut body = self.message(text, stop_reason);
        let (read, written) = match stop_reason {
            StopReason::TokenLimit => (self.body.to_string().len() / 4, self.max_tokens()),
            _ => (self.body.to_string().len() / 4, text.len() / 4),
        };
        match &self.path[..] {
            "/v1/messages" => {
                body["usage"] = json!({
                    "input_tokens": read, "output_tokens": written,
                    "cache_creation_input_tokens": null, "cache_read_input_tokens": null,
                });
            }
            "/api/chat" => {
                body["prompt_eval_count"] = json!(read);
                body["eval_count"] = json!(written);
            }
            _ => {
                body["usage"] = json!({
                    "prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written,
                });
            }
        }
        Answer::json(200, &body)
    }

    /// Returns the token limit of the reply.
    fn max_tokens(&self) -> usize {
        let keys = ["/max_tokens", "/max_completion_tokens", "/options/num_predict"];
        let limit = keys.iter().find_map(|it| self.body.pointer(it)?.as_u64());
        usize::try_from(limit.unwrap()).unwrap()
    }

    /// Returns whether it asks for a week together with the memories of its days.
    pub(crate) fn is_combined(&self) -> bool {
        self.system().contains("<SECOND_TASK>")
    }

    /// Returns whether it asks for corrections of items that failed the checks.
    pub(crate) fn is_repair(&self) -> bool {
        self.system().contains("{\"items\":")
    }

    /// Returns the body of an answer without token usage.
    pub(crate) fn message(&self, text: &str, stop_reason: StopReason) -> Value {
        let model = &self.body["model"];
        match &self.path[..] {
            "/v1/messages" => json!({
                "id": "msg_01", "type": "message", "role": "assistant", "model": model,
                "content": [{ "type": "text", "text": text }],
                "stop_reason": (["end_turn", "max_tokens", "refusal", "max_tokens"][stop_reason as usize]),
            }),
            "/api/chat" => json!({
                "model": model, "message": { "role": "assistant", "content": text }, "done": true,
                "done_reason": (["stop", "length", "stop", "length"][stop_reason as usize]),
            }),
            _ => json!({
                "id": "chatcmpl-01", "object": "chat.completion", "model": model,
                "choices": [{
                    "index": 0, "message": { "role": "assistant", "content": text },
                    "finish_reason": (["stop", "length", "content_filter", "length"][stop_reason as usize]),
                }],
            }),
        }
    }
}

/// Why a reply ends.
#[derive(Clone, Copy, Debug)]
pub(crate) enum StopReason {
    Complete,
    TokenLimit,
    Refusal,
    /// The context window was full before the token limit.
    ContextFull,
}

impl Answer {
    /// Returns a JSON answer.
    pub(crate) fn json(status: u16, body: &Value) -> Self {
        let headers = vec![("content-type", "application/json".to_owned())];
        Self::Http { status, headers, body: body.to_string().into_bytes() }
    }

    /// Returns a plain text answer.
    pub(crate) fn text(status: u16, body: &str) -> Self {
        Self::Http { status, headers: Vec::new(), body: body.as_bytes().to_vec() }
    }

    /// Adds a header.
    pub(crate) fn with(mut self, name: &'static str, value: &str) -> Self {
        if let Self::Http { headers, .. } = &mut self {
            headers.push((name, value.to_owned()));
        }
        self
    }
}

/// Returns a valid answer: bullets copied from log lines, no memories, no operations.
pub(crate) fn answer_well(request: &ModelRequest) -> Answer {
    request.reply_with(&valid_reply(request), StopReason::Complete)
}

/// Returns the text of a valid reply.
pub(crate) fn valid_reply(request: &ModelRequest) -> String {
    let system = request.system();
    if system.contains("{\"answer\": \"ready\"}") {
        return json!({ "answer": "ready" }).to_string();
    }
    let weeks = weeks(request);
    if !weeks.is_empty() {
        return json!({ "weeks": weeks, "statements": [] }).to_string();
    }
    if request.is_combined() {
        return json!({ "week": week(request), "statements": [] }).to_string();
    }
    if request.is_repair() {
        return json!({ "items": [] }).to_string();
    }
    if system.contains("{\"statements\":") {
        return json!({ "statements": [] }).to_string();
    }
    if system.contains("{\"operations\":") {
        return json!({ "operations": [] }).to_string();
    }
    week(request)
}

/// Returns the summary of each week of a request for several, with one bullet.
fn weeks(request: &ModelRequest) -> Vec<Value> {
    let message = request.turns().remove(0);
    let summary = |line: &str| {
        let (week, days) = line.strip_prefix("- ")?.split_once(" (")?;
        let (days, _) = days.split_once("): condense")?;
        let (first, last) = days.split_once(" to ")?;
        let mut day = "";
        let (id, text) = message.lines().find_map(|it| {
            day = it.strip_prefix("## ").unwrap_or(day);
            let is_text = (first..=last).contains(&day.get(..10)?) && !it.contains(['[', '#']);
            it.split_once(" | ").filter(|_| is_text)
        })?;
        let text = text.trim_start_matches(['-', '*', ' ']);
        let summary = format!("### Context\n- {text} [{id}]");
        Some(json!({ "week": week, "summary": summary }))
    };
    message.lines().filter_map(summary).collect()
}

/// Returns one bullet per heading, copied from log lines.
fn week(request: &ModelRequest) -> String {
    let lines = request.lines();
    let is_text = |it: &&(String, String)| !it.1.starts_with('#') && !it.1.contains(['[', '|']);
    let lines: Vec<_> = lines.iter().filter(is_text).collect();
    let mut reply = String::new();
    for (heading, (address, text)) in request.headings().iter().zip(lines) {
        let text = text.trim_start_matches(['-', '*', ' ']);
        reply.extend([heading, "\n- ", text, " [", address, "]\n"]);
    }
    reply
}

/// Reads a request; returns `None` if the client disconnected.
fn read_request(stream: &TcpStream) -> Option<ModelRequest> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split_whitespace();
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        headers.push((name.to_lowercase(), value.to_owned()));
    }
    let (body, bytes) = (Value::Null, Vec::new());
    let mut request = ModelRequest { method, path, headers, body, bytes };
    let length = request.header("content-length").and_then(|it| it.parse().ok()).unwrap_or(0);
    request.bytes = vec![0; length];
    reader.read_exact(&mut request.bytes).ok()?;
    request.body = serde_json::from_slice(&request.bytes).unwrap_or_default();
    Some(request)
}

fn write_answer(stream: &mut TcpStream, answer: &Answer) -> std::io::Result<()> {
    let head = |status: u16, length: usize| {
        format!("HTTP/1.1 {status} Said\r\nconnection: close\r\ncontent-length: {length}\r\n")
    };
    match answer {
        Answer::Http { status, headers, body } => {
            let mut head = head(*status, body.len());
            for (name, value) in headers {
                head.extend([name, ": ", value, "\r\n"]);
            }
            stream.write_all(format!("{head}\r\n").as_bytes())?;
            stream.write_all(body)
        }
        Answer::CutOff(body) => {
            stream.write_all(format!("{}\r\n", head(200, body.len() * 2)).as_bytes())?;
            stream.write_all(body)
        }
        Answer::BadChunks => {
            let head = "HTTP/1.1 200 Said\r\ntransfer-encoding: chunked\r\n\r\n";
            stream.write_all(head.as_bytes())?;
            stream.write_all(b"zz\r\nnothing of the kind\r\n")
        }
        Answer::Bomb => {
            let body = bomb(100_000_000);
            let head = head(200, body.len()) + "content-encoding: gzip\r\n\r\n";
            stream.write_all(head.as_bytes())?;
            stream.write_all(&body)
        }
        Answer::Close => Ok(()),
        Answer::Drip(pause) => {
            stream.write_all(format!("{}\r\n", head(200, 1_000_000)).as_bytes())?;
            loop {
                thread::sleep(*pause);
                stream.write_all(b" ")?;
                stream.flush()?;
            }
        }
        Answer::Hang => stream.read(&mut [0]).map(drop),
    }
}

/// Returns `bytes` spaces in gzip format (RFC 1951, fixed codes: one space, then repeated copies of
/// 258 bytes from distance 1). The checksum is wrong, but the client gives up before it.
fn bomb(bytes: usize) -> Vec<u8> {
    let mut packed = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    let (mut byte, mut used) = (0u8, 0);
    let mut bits = |text: &str| {
        for bit in text.bytes() {
            byte |= (bit - b'0') << used;
            used += 1;
            if used == 8 {
                packed.push(byte);
                (byte, used) = (0, 0);
            }
        }
    };
    // Last block, fixed codes; a space has the code 0x30 + 0x20.
    bits("110");
    bits("01010000");
    for _ in 0..bytes / 258 {
        bits("1100010100000");
    }
    bits("000000000000000");
    packed.extend([0; 8]);
    packed
}
