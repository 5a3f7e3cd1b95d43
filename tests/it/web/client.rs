//! Starts the server and asks it, as a browser would, but with any header.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    process::{Child, Stdio},
    time::Duration,
};

use crate::support::Root;

/// A running server, which ends with the value.
#[derive(Debug)]
pub(super) struct PageServer {
    child: Child,
    pub(super) port: u16,
    /// The path of all pages.
    pub(super) base: String,
    /// The link as printed.
    pub(super) url: String,
    /// The cookie, once [`Self::enter`] was called.
    pub(super) cookie: String,
}

/// The answer to a request.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: String,
}

impl Answer {
    pub(super) fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|it| it.0 == name);
        found.map_or("", |it| &it.1)
    }
}

impl PageServer {
    /// Starts `memoird serve` on a folder.
    pub(super) fn start(root: &Root, args: &[&str]) -> Self {
        Self::start_with(root, args, &[], Stdio::null())
    }

    /// Starts `memoird serve` with variables of the environment, and with its errors going to `stderr`.
    pub(super) fn start_with(
        root: &Root,
        args: &[&str],
        variables: &[(&str, &str)],
        stderr: Stdio,
    ) -> Self {
        let mut command = root.process(&[&["serve"], args].concat());
        command.envs(variables.iter().copied()).stdout(Stdio::piped()).stderr(stderr);
        let mut child = command.spawn().unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
        let url = url.trim().to_owned();
        let port = url.strip_prefix("http://127.0.0.1:").and_then(|it| it.split_once('/'));
        let port = port.unwrap_or_else(|| panic!("not a link: {url:?}")).0.parse().unwrap();
        let base = format!("/{}", url.split('/').nth(3).unwrap());
        Self { child, port, base, url, cookie: String::new() }
    }

    /// Starts the server, and uses its link.
    pub(super) fn entered(root: &Root, args: &[&str]) -> Self {
        let mut server = Self::start(root, args);
        server.enter();
        server
    }

    /// Returns the path of the link below the base, with its token.
    pub(super) fn token_path(&self) -> String {
        format!("/{}", self.url.rsplit('/').next().unwrap())
    }

    /// Returns the URL of a page of the first folder.
    pub(super) fn page_url(&self, page: &str) -> String {
        format!("http://127.0.0.1:{}{}/r/0/{page}", self.port, self.base)
    }

    /// Uses the link and keeps the cookie.
    pub(super) fn enter(&mut self) {
        let answer = self.ask("GET", &self.token_path(), &[], "");
        assert_eq!(answer.status, 200, "{answer:?}");
        let cookie = answer.header("set-cookie");
        cookie.split(';').next().unwrap().clone_into(&mut self.cookie);
    }

    /// Sends a request with exactly these headers besides the length.
    pub(super) fn ask_as(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
        let mut request = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        for (name, value) in headers {
            request.extend([name, ": ", value, "\r\n"]);
        }
        if method == "POST" {
            request += "Content-Type: application/x-www-form-urlencoded\r\n";
            let length = body.len().to_string();
            request.extend(["Content-Length: ", &length, "\r\n"]);
        }
        stream.write_all(format!("{request}\r\n{body}").as_bytes()).unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let mut lines = head.lines();
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let headers = lines.filter_map(|it| it.split_once(": "));
        let headers = headers.map(|(name, value)| (name.to_lowercase(), value.to_owned()));
        Answer { status, headers: headers.collect(), body: body.to_owned() }
    }

    /// Sends a request with our host, the cookie, and these headers. The answer is as if the base was the root.
    pub(super) fn ask(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        let host = format!("127.0.0.1:{}", self.port);
        let mut all = vec![("Host", &host[..]), ("Cookie", &self.cookie[..])];
        all.retain(|it| !it.1.is_empty());
        all.extend(headers);
        let mut answer = self.ask_as(method, &format!("{}{path}", self.base), &all, body);
        let without = |it: &str| it.replace(&format!("{}/", self.base), "/");
        answer.body = without(&answer.body);
        for (_, value) in answer.headers.iter_mut().filter(|it| it.0 == "location") {
            *value = without(value);
        }
        answer
    }

    /// Returns the beginning of the stream of events.
    pub(super) fn first_event(&self) -> String {
        let mut event = String::new();
        for line in self.events() {
            event.extend([&line[..], "\n"]);
            if line.starts_with("data: ") {
                break;
            }
        }
        event
    }

    /// Returns when the stream of events says that nothing runs.
    pub(super) fn wait_until_idle(&self) {
        assert!(self.events().any(|it| it == "data: idle"), "the stream has ended");
    }

    /// Returns the lines of the stream of events.
    fn events(&self) -> impl Iterator<Item = String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let (port, cookie, base) = (self.port, &self.cookie, &self.base);
        let request = format!(
            "GET {base}/events/0 HTTP/1.1\r\nHost: localhost:{port}\r\nCookie: {cookie}\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).unwrap();
        BufReader::new(stream).lines().map(Result::unwrap)
    }

    /// Returns a page that must be there.
    #[track_caller]
    pub(super) fn get(&self, path: &str) -> String {
        let answer = self.ask("GET", path, &[], "");
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        answer.body
    }

    /// Returns the token of the forms.
    pub(super) fn form_token(&self) -> String {
        let page = self.get("/r/0/runs");
        page.split_once("name=\"csrf\" value=\"").unwrap().1.split('"').next().unwrap().to_owned()
    }

    /// Sends a form with the token, as our pages do.
    pub(super) fn post(&self, path: &str, fields: &[(&str, &str)]) -> Answer {
        let token = self.form_token();
        let mut body = form_urlencoded::Serializer::new(String::new());
        body.append_pair("csrf", &token);
        body.extend_pairs(fields);
        let origin = format!("http://127.0.0.1:{}", self.port);
        self.ask("POST", path, &[("Origin", &origin)], &body.finish())
    }
}

impl Drop for PageServer {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
