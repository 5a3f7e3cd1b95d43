//! Checks the address of a provider.
//!
//! A key and the text of logs are sent to this address. So it may come from the user's configuration, the command
//! line, or variables, but not from a file that travels with a root. [`check_base_url`] accepts a narrower
//! grammar than a browser: anything that another URL parser could read as another host is refused. Pure.

use std::{
    fmt,
    net::{Ipv4Addr, Ipv6Addr},
};

/// The maximum length of an address.
const CHARS_MAX: usize = 2000;

/// A checked address, without a final slash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaseUrl {
    text: String,
    is_loopback: bool,
}

/// Why an address is not used. No message quotes it, because people put keys and passwords into addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BaseUrlError {
    /// Not a web address.
    #[error("not an address (expected one like http://127.0.0.1:11434/v1)")]
    NotHttp,
    /// `http` to another machine.
    #[error(
        "http sends text and key unencrypted to another machine (expected https; http only to 127.0.0.1, [::1] or localhost)"
    )]
    NotEncrypted,
    /// `user:password@`.
    #[error("contains a user or a password before an @ (the key belongs in model.key_file)")]
    UserInfo,
    /// `?…` or `#…`.
    #[error("contains a ? or a # (expected the address alone; the key belongs in model.key_file)")]
    Query,
    /// An invalid host, or one that URL parsers read differently.
    #[error(
        "the host is not written as a plain name or address (expected one like api.example.com, 127.0.0.1 or [::1])"
    )]
    Host,
    /// An invalid port.
    #[error("the port is not a number from 1 to 65535")]
    Port,
    /// A path that URL parsers could read differently.
    #[error(
        "the path contains something other than letters, digits, and - . _ ~ / (or a step like ..)"
    )]
    Path,
    /// Longer than any address.
    #[error("longer than {CHARS_MAX} characters")]
    TooLong,
}

/// Checks the address of a provider.
///
/// Returns why text and key must not be sent there.
pub(crate) fn check_base_url(text: &str) -> Result<BaseUrl, BaseUrlError> {
    if text.len() > CHARS_MAX {
        return Err(BaseUrlError::TooLong);
    }
    let (is_encrypted, rest) = match text.split_once("://") {
        Some(("https", rest)) => (true, rest),
        Some(("http", rest)) => (false, rest),
        _ => return Err(BaseUrlError::NotHttp),
    };
    if rest.contains('@') {
        return Err(BaseUrlError::UserInfo);
    }
    if rest.contains(['?', '#']) {
        return Err(BaseUrlError::Query);
    }
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let is_loopback = check_authority(authority)?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._~/".contains(c);
    if !path.chars().all(is_plain) || path.split('/').any(|it| it == "." || it == "..") {
        return Err(BaseUrlError::Path);
    }
    if !is_encrypted && !is_loopback {
        return Err(BaseUrlError::NotEncrypted);
    }
    Ok(BaseUrl { text: text.trim_end_matches('/').to_owned(), is_loopback })
}

impl BaseUrl {
    /// Returns the address.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns whether it is on this machine. A client resolves `localhost` to a loopback address without asking
    /// a name server.
    pub fn is_loopback(&self) -> bool {
        self.is_loopback
    }
}

impl fmt::Display for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Checks host and port, and returns whether the host is this machine.
fn check_authority(authority: &str) -> Result<bool, BaseUrlError> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']').ok_or(BaseUrlError::Host)?;
            let address: Ipv6Addr = host.parse().map_err(|_| BaseUrlError::Host)?;
            let port = match rest.strip_prefix(':') {
                Some(port) => Some(port),
                None if rest.is_empty() => None,
                None => return Err(BaseUrlError::Host),
            };
            check_port(port)?;
            return Ok(address.is_loopback());
        }
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    check_port(port)?;
    if let Ok(address) = host.parse::<Ipv4Addr>() {
        return Ok(address.is_loopback());
    }
    let label = |it: &str| {
        let edge = |c: Option<char>| c.is_some_and(|it| it.is_ascii_alphanumeric());
        let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        it.len() <= 63
            && it.chars().all(inner)
            && edge(it.chars().next())
            && edge(it.chars().last())
    };
    // Some parsers read `127.1`, `2130706433` and `0x7f.1` as IPv4 addresses.
    let last = host.rsplit('.').next().unwrap_or_default();
    let is_number = last.starts_with("0x") || last.bytes().all(|it| it.is_ascii_digit());
    if host.len() > 253 || is_number || !host.split('.').all(label) {
        return Err(BaseUrlError::Host);
    }
    Ok(host == "localhost")
}

fn check_port(port: Option<&str>) -> Result<(), BaseUrlError> {
    let Some(port) = port else { return Ok(()) };
    let is_number = port.len() <= 5 && port.bytes().all(|it| it.is_ascii_digit());
    match port.parse::<u16>() {
        Ok(it) if it > 0 && is_number => Ok(()),
        _ => Err(BaseUrlError::Port),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, is_loopback: bool) {
        let seen = check_base_url(text).unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!(seen.as_str(), text.trim_end_matches('/'));
        assert_eq!(seen.is_loopback(), is_loopback, "{text}");
    }

    #[track_caller]
    fn check_refused(texts: &[&str], expected: BaseUrlError) {
        for text in texts {
            assert_eq!(check_base_url(text), Err(expected), "{text}");
        }
    }

    #[test]
    fn https_to_anywhere_and_http_to_this_machine() {
        for text in [
            "https://api.anthropic.com",
            "https://api.openai.com/v1",
            "https://proxy.example:8443/a/b-c_d~e/v1.2/",
            "https://10.0.0.7/v1",
            "https://[2001:db8::1]:443",
            "https://xn--mnchen-3ya.example",
        ] {
            check(text, false);
        }
        for text in [
            "http://127.0.0.1:11434/v1",
            "http://127.8.9.10",
            "http://[::1]:8080/",
            "http://localhost:1/v1",
            "https://localhost",
        ] {
            check(text, true);
        }
    }

    #[test]
    fn nothing_goes_unencrypted_to_another_machine() {
        check_refused(
            &[
                "http://api.openai.com/v1",
                "http://10.0.0.7",
                "http://0.0.0.0:11434",
                "http://128.0.0.1",
                "http://[::2]",
                "http://[::ffff:127.0.0.1]",
                "http://localhost.evil.example",
                "http://127.0.0.1.evil.example",
                "http://notlocalhost",
            ],
            BaseUrlError::NotEncrypted,
        );
    }

    #[test]
    fn ambiguous_addresses_are_refused() {
        check_refused(
            &[
                "",
                "localhost",
                "ftp://a",
                "HTTPS://a",
                "https:/a",
                " https://a",
                "file:///etc",
                "//a",
            ],
            BaseUrlError::NotHttp,
        );
        check_refused(
            &[
                "https://ada:pw@api.example",
                "https://sk-ant-0123@api.example",
                "http://127.0.0.1@evil.example",
                "http://127.0.0.1:80\\@evil.example/",
                "https://a/b@c",
            ],
            BaseUrlError::UserInfo,
        );
        check_refused(
            &["https://a.example?key=x", "https://a.example/#x", "http://127.0.0.1#.evil.example"],
            BaseUrlError::Query,
        );
        check_refused(
            &[
                "https://",
                "https:///v1",
                "https://:80",
                "https://a..b",
                "https://.a",
                "https://a.",
                "https://-a.example",
                "https://A.example",
                "https://b\u{fc}cher.example",
                "https://evil.example\u{2044}.a.example",
                "https://a b",
                "https://a%2eb",
                "https://a_b",
                "http://127.0.0.1\\.evil.example",
                "http://127.1",
                "http://2130706433",
                "http://0177.0.0.1",
                "http://0x7f.0.0.1",
                "http://0x7f000001",
                "http://[::1",
                "http://[::1]x",
                "http://[127.0.0.1]",
                "http://[fe80::1%eth0]",
                "https://a\n.example",
            ],
            BaseUrlError::Host,
        );
        check_refused(
            &[
                "https://a:0",
                "https://a:65536",
                "https://a:",
                "https://a:+80",
                "https://a:000080",
                "https://a:8:9",
            ],
            BaseUrlError::Port,
        );
        check_refused(
            &[
                "https://a/../b",
                "https://a/./b",
                "https://a/%2e%2e",
                "https://a/b c",
                "https://a/\\b",
                "https://a/v1\n",
            ],
            BaseUrlError::Path,
        );
        check_refused(&[&format!("https://a/{}", "b".repeat(CHARS_MAX))], BaseUrlError::TooLong);
    }

    proptest! {
        /// Nothing that is accepted holds a character that ends a host or a header for anybody.
        #[test]
        fn what_is_accepted_is_plain(text in "https?://[a-z0-9.:@\\[\\]/\\\\?#% \\r\\n\u{e9}-]{0,30}") {
            if let Ok(url) = check_base_url(&text) {
                prop_assert!(!url.as_str().contains(['@', '\\', '?', '#', '%', ' ', '\r', '\n', 'é']));
                prop_assert!(url.as_str().starts_with("https://") || url.is_loopback());
            }
        }
    }
}
