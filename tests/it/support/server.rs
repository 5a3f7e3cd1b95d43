//! A model's server on this machine that answers as a test tells it, well or badly.
//!
//! It keeps every request, so that a test can count them and look into them.

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

/// A server; it ends with the test.
#[derive(Debug)]
pub(crate) struct Server {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<Asked>>>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// A request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) method: String,
    pub(crate) path: String,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Value,
    /// The body as it came, which may be no JSON.
    pub(crate) bytes: Vec<u8>,
}

/// What the server does with a request.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// An answer as it should be on the wire, whatever it says.
    Http { status: u16, headers: Vec<(&'static str, String)>, body: Vec<u8> },
    /// Half of what was promised, then the connection ends.
    CutOff(Vec<u8>),
    /// Chunks that are none.
    BadChunks,
    /// A few hundred KB that unpack to a hundred MB.
    Bomb,
    /// The connection ends without a byte.
    Close,
    /// A byte at a time.
    Drip(Duration),
    /// Nothing, until the other side has had enough.
    Hang,
}

impl Server {
    /// Answers each request by a function.
    pub(crate) fn answering(answer: impl FnMut(&Asked) -> Answer + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let seen: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let is_over = Arc::new(AtomicBool::new(false));
        let answer = Arc::new(Mutex::new(answer));
        let (kept, over) = (Arc::clone(&seen), Arc::clone(&is_over));
        let thread = thread::spawn(move || {
            for stream in listener.incoming() {
                if over.load(Ordering::SeqCst) {
                    return;
                }
                let Ok(mut stream) = stream else { continue };
                let (answer, kept) = (Arc::clone(&answer), Arc::clone(&kept));
                // A slow answer holds up no other request.
                thread::spawn(move || {
                    let Some(asked) = read(&stream) else { return };
                    let said = {
                        let answer = &mut *answer.lock().unwrap();
                        answer(&asked)
                    };
                    kept.lock().unwrap().push(asked);
                    // Who is not listening any more has had its reasons.
                    drop(give(&mut stream, &said));
                });
            }
        });
        Self { address, seen, is_over, thread: Some(thread) }
    }

    /// Gives these answers in turn; after the last one, that one again and again.
    pub(crate) fn scripted(steps: Vec<Answer>) -> Self {
        let mut at = 0;
        Self::answering(move |_| {
            let step = steps[at.min(steps.len() - 1)].clone();
            at += 1;
            step
        })
    }

    /// Answers well.
    pub(crate) fn fluent() -> Self {
        Self::answering(fluent)
    }

    /// Returns `http://127.0.0.1:PORT`.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the requests so far.
    pub(crate) fn requests(&self) -> Vec<Asked> {
        self.seen.lock().unwrap().clone()
    }

    /// Returns how many requests there were so far.
    pub(crate) fn count(&self) -> usize {
        self.seen.lock().unwrap().len()
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

impl Asked {
    /// Returns a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|it| it.0 == name).map(|it| &it.1[..])
    }

    /// Returns the instructions.
    pub(crate) fn system(&self) -> String {
        let told = self.body["system"][0]["text"].as_str();
        told.or(self.body["messages"][0]["content"].as_str()).unwrap_or_default().to_owned()
    }

    /// Returns the turns after the instructions.
    pub(crate) fn turns(&self) -> Vec<String> {
        let turns = self.body["messages"].as_array().unwrap().iter();
        let turns = turns.filter(|it| it["role"] != "system");
        let text = |it: &Value| {
            let content = &it["content"];
            content.as_str().or(content[0]["text"].as_str()).unwrap().to_owned()
        };
        turns.map(text).collect()
    }

    /// Returns the lines of the data: address and text.
    pub(crate) fn lines(&self) -> Vec<(String, String)> {
        let first = self.turns().remove(0);
        let lines = first.lines().filter_map(|it| it.split_once(" | "));
        lines.map(|(address, text)| (address.to_owned(), text.to_owned())).collect()
    }

    /// Returns the headings that were asked for.
    fn headings(&self) -> Vec<String> {
        self.system().lines().filter(|it| it.starts_with("### ")).map(str::to_owned).collect()
    }

    /// Returns an answer that says `text` and ends for a reason, in the wire format of the request.
    pub(crate) fn saying(&self, text: &str, ends: Ends) -> Answer {
        let mut body = self.message(text, ends);
        let (read, written) = match ends {
            Ends::AtLimit => (self.body.to_string().len() / 4, self.max_tokens()),
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

    /// Returns how many tokens the reply may have.
    fn max_tokens(&self) -> usize {
        let asked = ["/max_tokens", "/max_completion_tokens", "/options/num_predict"];
        let found = asked.iter().find_map(|it| self.body.pointer(it)?.as_u64());
        usize::try_from(found.unwrap()).unwrap()
    }

    /// Returns whether it asks for a week and the memories of its days.
    pub(crate) fn is_combined(&self) -> bool {
        self.system().contains("<SECOND_TASK>")
    }

    /// Returns the body of an answer that does not say what it took.
    pub(crate) fn message(&self, text: &str, ends: Ends) -> Value {
        let model = &self.body["model"];
        match &self.path[..] {
            "/v1/messages" => json!({
                "id": "msg_01", "type": "message", "role": "assistant", "model": model,
                "content": [{ "type": "text", "text": text }],
                "stop_reason": (["end_turn", "max_tokens", "refusal", "max_tokens"][ends as usize]),
            }),
            "/api/chat" => json!({
                "model": model, "message": { "role": "assistant", "content": text }, "done": true,
                "done_reason": (["stop", "length", "stop", "length"][ends as usize]),
            }),
            _ => json!({
                "id": "chatcmpl-01", "object": "chat.completion", "model": model,
                "choices": [{
                    "index": 0, "message": { "role": "assistant", "content": text },
                    "finish_reason": (["stop", "length", "content_filter", "length"][ends as usize]),
                }],
            }),
        }
    }
}

/// Why a reply ends.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ends {
    Well,
    AtLimit,
    Refusing,
    /// The window of the model was full before the limit.
    WithoutRoom,
}

impl Answer {
    /// Returns an answer in JSON.
    pub(crate) fn json(status: u16, body: &Value) -> Self {
        let headers = vec![("content-type", "application/json".to_owned())];
        Self::Http { status, headers, body: body.to_string().into_bytes() }
    }

    /// Returns an answer in text.
    pub(crate) fn text(status: u16, body: &str) -> Self {
        Self::Http { status, headers: Vec::new(), body: body.as_bytes().to_vec() }
    }

    /// Returns the answer with one more header.
    pub(crate) fn with(mut self, name: &'static str, value: &str) -> Self {
        if let Self::Http { headers, .. } = &mut self {
            headers.push((name, value.to_owned()));
        }
        self
    }
}

/// Answers well: bullets made of lines of the data, no memory, no operation.
pub(crate) fn fluent(asked: &Asked) -> Answer {
    asked.saying(&good(asked), Ends::Well)
}

/// Returns a good reply to a request.
pub(crate) fn good(asked: &Asked) -> String {
    let system = asked.system();
    if system.contains("{\"answer\": \"ready\"}") {
        return json!({ "answer": "ready" }).to_string();
    }
    if asked.is_combined() {
        return json!({ "week": week(asked), "memories": [] }).to_string();
    }
    if system.contains("{\"memories\":") {
        return json!({ "memories": [] }).to_string();
    }
    if system.contains("{\"operations\":") {
        return json!({ "operations": [] }).to_string();
    }
    week(asked)
}

/// Returns bullets made of lines of the data, a bullet for each heading.
fn week(asked: &Asked) -> String {
    let lines = asked.lines();
    let says = |it: &&(String, String)| !it.1.starts_with('#') && !it.1.contains(['[', '|']);
    let lines: Vec<_> = lines.iter().filter(says).collect();
    let mut reply = String::new();
    for (heading, (address, text)) in asked.headings().iter().zip(lines) {
        let text = text.trim_start_matches(['-', '*', ' ']);
        reply.extend([heading, "\n- ", text, " [", address, "]\n"]);
    }
    reply
}

/// Reads a request; `None` where the other side went away.
fn read(stream: &TcpStream) -> Option<Asked> {
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
    let mut asked = Asked { method, path, headers, body, bytes };
    let length = asked.header("content-length").and_then(|it| it.parse().ok()).unwrap_or(0);
    asked.bytes = vec![0; length];
    reader.read_exact(&mut asked.bytes).ok()?;
    asked.body = serde_json::from_slice(&asked.bytes).unwrap_or_default();
    Some(asked)
}

fn give(stream: &mut TcpStream, answer: &Answer) -> std::io::Result<()> {
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

/// Packs so many spaces (RFC 1951, fixed codes: one space, then "258 bytes, one back" again and
/// again). The checksum is wrong, which nobody comes to see.
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
    // The last block, fixed codes; a space is 0x30 + 0x20.
    bits("110");
    bits("01010000");
    for _ in 0..bytes / 258 {
        bits("1100010100000");
    }
    bits("000000000000000");
    packed.extend([0; 8]);
    packed
}
