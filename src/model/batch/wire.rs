//! The wire format of batches, as pure functions.
//!
//! Source: the published types of the official clients. Addresses that a server names are never
//! followed: the path of the results is built from the id of the batch or of the file, which must
//! be a plain word.

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use crate::model::http::{HttpResponse, ResponseHeaders};

/// The path of Anthropic's batches, relative to the server's address.
pub(super) const ANTHROPIC_PATH: &str = "/v1/messages/batches";

/// The path of `OpenAI`'s batches, relative to the server's address with its `/v1`.
pub(super) const OPENAI_PATH: &str = "/batches";

/// The path of `OpenAI`'s files.
pub(super) const OPENAI_FILES_PATH: &str = "/files";

/// How many batches are listed to find a lost one.
const BATCHES_LISTED_MAX: usize = 100;

/// The progress of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum BatchProgress {
    /// The provider is processing it.
    Working,
    /// It has ended; its results are at these paths.
    Ended(Vec<String>),
    /// The provider refused all of it.
    Refused,
}

/// The result of one request of a batch.
#[derive(Clone, Debug)]
pub(super) enum BatchResult {
    /// The answer, as it would be without a batch.
    Answer(HttpResponse),
    /// None: the request expired, or the batch was cancelled.
    NotProcessed,
}

/// Returns the body that submits requests to Anthropic, each a name and a body.
pub(super) fn anthropic_body(requests: Vec<(String, Value)>) -> Vec<u8> {
    let one = |(name, body)| json!({ "custom_id": name, "params": body });
    let requests: Vec<Value> = requests.into_iter().map(one).collect();
    json!({ "requests": requests }).to_string().into_bytes()
}

/// Returns the progress of an Anthropic batch; `None` if the answer does not describe one.
pub(super) fn anthropic_progress(body: &Value, remote: &str) -> Option<BatchProgress> {
    match body["processing_status"].as_str()? {
        "ended" => Some(BatchProgress::Ended(vec![format!("{ANTHROPIC_PATH}/{remote}/results")])),
        _ => Some(BatchProgress::Working),
    }
}

/// Reads a line of Anthropic's results: the name of a request, and its result.
pub(super) fn anthropic_line(line: &[u8]) -> Option<(String, BatchResult)> {
    let line: Value = serde_json::from_slice(line).ok()?;
    let name = line["custom_id"].as_str()?.to_owned();
    let result = &line["result"];
    let result = match result["type"].as_str()? {
        "succeeded" => answer(200, &result["message"], None),
        // Read like an error that a gateway sends with status 200.
        "errored" => answer(200, &result["error"], None),
        _ => BatchResult::NotProcessed,
    };
    Some((name, result))
}

/// Returns the path at which Anthropic lists its batches.
pub(super) fn anthropic_list_path() -> String {
    format!("{ANTHROPIC_PATH}?limit={BATCHES_LISTED_MAX}")
}

/// Returns the ids of listed batches with this number of requests, created at `since` or later.
///
/// The list does not contain our names; the results do.
pub(super) fn anthropic_candidates(
    body: &Value,
    requests: usize,
    since: DateTime<Utc>,
) -> Vec<String> {
    let count = |it: &Value| {
        let counts = it["request_counts"].as_object().into_iter().flatten();
        counts.filter_map(|it| it.1.as_u64()).sum::<u64>()
    };
    let is_candidate = |it: &&Value| {
        let at = it["created_at"].as_str().and_then(|it| DateTime::parse_from_rfc3339(it).ok());
        at.is_some_and(|it| it >= since) && count(it) == requests as u64
    };
    let data = body["data"].as_array().into_iter().flatten();
    data.filter(is_candidate).filter_map(|it| safe_id(&it["id"])).collect()
}

/// Returns the content type and the body that upload requests to `OpenAI`.
///
/// `token` is random, so that no request contains the boundary.
pub(super) fn openai_file(requests: Vec<(String, Value)>, token: &str) -> (String, Vec<u8>) {
    let boundary = format!("memoird-{token}");
    let mut body = format!(
        "--{boundary}\r\ncontent-disposition: form-data; name=\"purpose\"\r\n\r\nbatch\r\n\
         --{boundary}\r\ncontent-disposition: form-data; name=\"file\"; filename=\"batch.jsonl\"\r\n\
         content-type: application/jsonl\r\n\r\n"
    );
    for (name, mut request) in requests {
        if let Some(fields) = request.as_object_mut() {
            fields.remove("stream");
        }
        let line = json!({
            "custom_id": name, "method": "POST", "url": "/v1/chat/completions", "body": request,
        });
        body.push_str(&line.to_string());
        body.push('\n');
    }
    body.push_str("\r\n--");
    body.push_str(&boundary);
    body.push_str("--\r\n");
    (format!("multipart/form-data; boundary={boundary}"), body.into_bytes())
}

/// Returns the body that creates a batch from an uploaded file.
pub(super) fn openai_body(file: &str, token: &str) -> Vec<u8> {
    json!({
        "input_file_id": file, "endpoint": "/v1/chat/completions", "completion_window": "24h",
        "metadata": { "memoird": token },
    })
    .to_string()
    .into_bytes()
}

/// Returns the progress of an `OpenAI` batch; `None` if the answer does not describe one.
pub(super) fn openai_progress(body: &Value) -> Option<BatchProgress> {
    let files = ["output_file_id", "error_file_id"].into_iter().filter_map(|it| safe_id(&body[it]));
    let files = files.map(|it| format!("{OPENAI_FILES_PATH}/{it}/content"));
    match body["status"].as_str()? {
        "completed" | "expired" | "cancelled" => Some(BatchProgress::Ended(files.collect())),
        "failed" => Some(BatchProgress::Refused),
        _ => Some(BatchProgress::Working),
    }
}

/// Reads a line of `OpenAI`'s results.
pub(super) fn openai_line(line: &[u8]) -> Option<(String, BatchResult)> {
    let line: Value = serde_json::from_slice(line).ok()?;
    let name = line["custom_id"].as_str()?.to_owned();
    let response = &line["response"];
    let status = response["status_code"].as_u64().and_then(|it| u16::try_from(it).ok());
    let result = match status {
        Some(status) => answer(status, &response["body"], response["request_id"].as_str()),
        None => BatchResult::NotProcessed,
    };
    Some((name, result))
}

/// Returns the path at which `OpenAI` lists its batches.
pub(super) fn openai_list_path() -> String {
    format!("{OPENAI_PATH}?limit={BATCHES_LISTED_MAX}")
}

/// Returns the ids of listed batches that carry our token.
pub(super) fn openai_candidates(body: &Value, token: &str) -> Vec<String> {
    let data = body["data"].as_array().into_iter().flatten();
    data.filter(|it| it["metadata"]["memoird"] == token)
        .filter_map(|it| safe_id(&it["id"]))
        .collect()
}

/// Returns a server's id if it is safe to use in a path.
pub(super) fn safe_id(name: &Value) -> Option<String> {
    const CHARS_MAX: usize = 128;
    let is_plain = |it: &&str| {
        let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
        !it.is_empty() && it.len() <= CHARS_MAX && it.bytes().all(plain)
    };
    name.as_str().filter(is_plain).map(ToOwned::to_owned)
}

/// Returns the number of the call that one of our names refers to.
pub(super) fn parse_call_name(name: &str, token: &str) -> Option<i64> {
    name.strip_prefix(token)?.strip_prefix('-')?.parse().ok()
}

/// Returns the name of a call in a batch.
pub(super) fn call_name(call: i64, token: &str) -> String {
    format!("{token}-{call}")
}

fn answer(status: u16, body: &Value, request_id: Option<&str>) -> BatchResult {
    let request_id = request_id.and_then(|it| safe_id(&json!(it)));
    let headers = ResponseHeaders { request_id, ..ResponseHeaders::default() };
    BatchResult::Answer(HttpResponse { status, headers, body: body.to_string().into_bytes() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{CallError, ModelReply, anthropic, openai};

    const TOKEN: &str = "0123456789abcdef";

    fn bodies() -> Vec<(String, Value)> {
        let body = |text: &str| json!({ "model": "m", "messages": [text], "stream": false });
        vec![(call_name(7, TOKEN), body("a\nb")), (call_name(8, TOKEN), body("c"))]
    }

    #[test]
    fn requests_are_submitted_with_their_names() {
        let body: Value = serde_json::from_slice(&anthropic_body(bodies())).unwrap();
        assert_eq!(body["requests"][0]["custom_id"], "0123456789abcdef-7");
        assert_eq!(body["requests"][1]["params"]["messages"][0], "c");

        let (kind, body) = openai_file(bodies(), TOKEN);
        let boundary = kind.strip_prefix("multipart/form-data; boundary=").unwrap();
        let body = String::from_utf8(body).unwrap();
        let parts: Vec<&str> = body.split(&format!("--{boundary}")).collect();
        assert_eq!((parts.len(), parts[0], parts[3]), (4, "", "--\r\n"));
        assert!(parts[1].ends_with("name=\"purpose\"\r\n\r\nbatch\r\n"));
        let (_, lines) = parts[2].split_once("\r\n\r\n").unwrap();
        let lines: Vec<Value> =
            lines.trim_end().lines().map(|it| serde_json::from_str(it).unwrap()).collect();
        assert_eq!(
            (lines.len(), &lines[0]["method"], &lines[1]["body"]["messages"][0]),
            (2, &json!("POST"), &json!("c"))
        );
        assert!(lines[0]["body"].get("stream").is_none());
    }

    #[test]
    fn progress_is_read_and_addresses_are_not_followed() {
        let ended =
            json!({ "processing_status": "ended", "results_url": "https://evil.example/x" });
        let at = BatchProgress::Ended(vec!["/v1/messages/batches/b_1/results".to_owned()]);
        assert_eq!(anthropic_progress(&ended, "b_1"), Some(at));
        for (status, expected) in [
            ("in_progress", Some(BatchProgress::Working)),
            ("canceling", Some(BatchProgress::Working)),
        ] {
            assert_eq!(anthropic_progress(&json!({ "processing_status": status }), "b"), expected);
        }
        assert_eq!(anthropic_progress(&json!({ "id": "b" }), "b"), None);
        for (body, expected) in [
            (json!({ "status": "validating" }), Some(BatchProgress::Working)),
            (json!({ "status": "failed" }), Some(BatchProgress::Refused)),
            (
                json!({ "status": "completed", "output_file_id": "f-1", "error_file_id": null }),
                Some(BatchProgress::Ended(vec!["/files/f-1/content".to_owned()])),
            ),
            (
                json!({ "status": "expired", "output_file_id": "../x", "error_file_id": "f-2" }),
                Some(BatchProgress::Ended(vec!["/files/f-2/content".to_owned()])),
            ),
            (json!({}), None),
        ] {
            assert_eq!(openai_progress(&body), expected, "{body}");
        }
    }

    fn anthropic_reply(line: &Value) -> Option<Result<ModelReply, CallError>> {
        match anthropic_line(line.to_string().as_bytes())?.1 {
            BatchResult::Answer(answer) => Some(anthropic::reply("s", &answer)),
            BatchResult::NotProcessed => None,
        }
    }

    fn openai_reply(line: &Value) -> Option<Result<ModelReply, CallError>> {
        match openai_line(line.to_string().as_bytes())?.1 {
            BatchResult::Answer(answer) => Some(openai::reply("s", &answer)),
            BatchResult::NotProcessed => None,
        }
    }

    #[test]
    fn results_are_read_like_answers() {
        let message = json!({
            "type": "message", "content": [{ "type": "text", "text": "good" }],
            "stop_reason": "end_turn", "usage": { "input_tokens": 9, "output_tokens": 2 },
        });
        let line = |result: Value| json!({ "custom_id": "a-1", "result": result });
        let reply = anthropic_reply(&line(json!({ "type": "succeeded", "message": message })));
        assert_eq!(reply.unwrap().unwrap().text, "good");
        let error = json!({ "type": "error", "error": { "type": "invalid_request_error", "message": "no" } });
        let reply = anthropic_reply(&line(json!({ "type": "errored", "error": error })));
        assert!(matches!(reply, Some(Err(CallError::Request { status: 400, .. }))));
        assert!(anthropic_reply(&line(json!({ "type": "expired" }))).is_none());
        assert!(anthropic_line(b"{\"custom_id\": 3}").is_none() && anthropic_line(b"<").is_none());

        let body = json!({
            "choices": [{ "message": { "content": "good" }, "finish_reason": "stop" }],
            "usage": { "prompt_tokens": 9, "completion_tokens": 2 },
        });
        let line = |response: Value, error: Value| json!({ "id": "x", "custom_id": "a-1", "response": response, "error": error });
        let response = json!({ "status_code": 200, "request_id": "r-1", "body": body });
        let reply = openai_reply(&line(response, Value::Null)).unwrap().unwrap();
        assert_eq!((&reply.text[..], reply.id.as_deref()), ("good", Some("r-1")));
        let response = json!({ "status_code": 400, "body": { "error": { "message": "no" } } });
        let reply = openai_reply(&line(response, Value::Null));
        assert!(matches!(reply, Some(Err(CallError::Request { status: 400, .. }))));
        let expired = json!({ "code": "batch_expired", "message": "late" });
        assert!(openai_reply(&line(Value::Null, expired)).is_none());
    }

    #[test]
    fn a_lost_batch_is_found_in_the_list() {
        let since = "2026-04-13T07:00:00Z".parse().unwrap();
        let one = |id: &str, at: &str, n: u64| {
            json!({
                "id": id, "created_at": at, "metadata": { "memoird": id },
                "request_counts": { "processing": n, "succeeded": 1, "expired": 0 },
            })
        };
        let list = json!({ "data": [
            one("old", "2026-04-13T06:59:00Z", 1), one("other", "2026-04-13T07:01:00Z", 2),
            one("it", "2026-04-13T07:01:00Z", 1), one("../it", "2026-04-13T07:01:00Z", 1),
        ] });
        assert_eq!(anthropic_candidates(&list, 2, since), ["it"]);
        assert_eq!(openai_candidates(&list, "other"), ["other"]);
        assert!(openai_candidates(&list, "none").is_empty());
    }

    #[test]
    fn only_our_own_names_are_parsed() {
        assert_eq!(parse_call_name(&call_name(12, TOKEN), TOKEN), Some(12));
        for name in ["12", "0123456789abcdef", "0123456789abcdef-x", "other-12"] {
            assert_eq!(parse_call_name(name, TOKEN), None, "{name}");
        }
    }
}
