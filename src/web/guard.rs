//! Decides who may ask for a page: one browser on this machine.
//!
//! All pages are below a path that nobody can guess, and the cookie is for that path: browsers send a cookie to
//! every port of a host, so that other programs would get it by the other paths.
//! The link that the program prints has a token. The first request with it gets a cookie, and the token is used up.
//! Without the cookie there is no page. Pages of other sites cannot use it: the cookie is `SameSite=Strict`, the
//! `Host` must be ours (against names that resolve to 127.0.0.1), a `POST` must come from our origin and have the
//! token of our forms.

use std::sync::{Mutex, PoisonError};

use axum::http::{HeaderMap, HeaderValue, header};

/// The secrets of one server.
#[derive(Debug)]
pub(super) struct SessionGuard {
    port: u16,
    /// The path of all pages: a slash and 32 hex digits.
    base: String,
    /// The hash of the link's token; `None` once it was used.
    token: Mutex<Option<blake3::Hash>>,
    /// The value of the cookie.
    session: String,
    /// The token of the forms, derived from the cookie.
    csrf: String,
}

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum GuardError {
    /// The request names another host.
    #[error("this server answers only to 127.0.0.1 and localhost with its port")]
    WrongHost,
    /// The request has no valid cookie.
    #[error("this page is open to one browser only; `memoird open` prints a new link")]
    NoSession,
    /// The link was used before, or is not ours.
    #[error(
        "this link has been used already, or is not from this server; `memoird open` prints a new one"
    )]
    UsedToken,
    /// The request comes from another page.
    #[error("the request comes from another site")]
    WrongOrigin,
    /// The form has no valid token.
    #[error("the form is not from this server; reload the page and try again")]
    WrongForm,
}

/// The system has no random bytes.
#[derive(Debug, thiserror::Error)]
#[error("cannot read random bytes from the system: {0}")]
pub(super) struct RandomError(rustix::io::Errno);

impl SessionGuard {
    /// Draws the secrets. Returns also the token for the link.
    pub(super) fn new(port: u16) -> Result<(Self, String), RandomError> {
        let token = random_name()?;
        let session = random_name()?;
        let base: String = ['/'].into_iter().chain(random_name()?.chars().take(32)).collect();
        let csrf = blake3::derive_key("memoird page form token", session.as_bytes());
        let csrf = blake3::Hash::from_bytes(csrf).to_hex().to_string();
        let hash = blake3::hash(token.as_bytes());
        Ok((Self { port, base, token: Mutex::new(Some(hash)), session, csrf }, token))
    }

    /// Returns the token of the forms.
    pub(super) fn csrf(&self) -> &str {
        &self.csrf
    }

    /// Returns the path below which all pages are, without a slash at its end.
    pub(super) fn base(&self) -> &str {
        &self.base
    }

    /// Returns the path of a page without the base; `None` for a path that is not below it.
    pub(super) fn path_below<'p>(&self, path: &'p str) -> Option<&'p str> {
        let (base, rest) = path.split_at_checked(self.base.len())?;
        (is_same(base, &self.base) && rest.starts_with('/')).then_some(rest)
    }

    /// Checks that the request names this server.
    pub(super) fn check_host(&self, headers: &HeaderMap) -> Result<(), GuardError> {
        let mut hosts = headers.get_all(header::HOST).iter();
        let host = hosts.next().and_then(|it| it.to_str().ok()).unwrap_or_default();
        let is_ours = self.names().iter().any(|it| it == host) && hosts.next().is_none();
        is_ours.then_some(()).ok_or(GuardError::WrongHost)
    }

    /// Uses up the token of the link. Returns the cookie to set.
    pub(super) fn exchange(&self, token: &str) -> Result<String, GuardError> {
        let hash = blake3::hash(token.as_bytes());
        let mut valid = self.token.lock().unwrap_or_else(PoisonError::into_inner);
        // The comparison of hashes takes the same time for each value.
        let used = valid.take_if(|it| *it == hash);
        drop(valid);
        if used.is_none() {
            return Err(GuardError::UsedToken);
        }
        let (name, value, base) = (self.cookie_name(), &self.session, &self.base);
        Ok(format!("{name}={value}; Path={base}/; HttpOnly; SameSite=Strict"))
    }

    /// Checks the cookie.
    pub(super) fn check_session(&self, headers: &HeaderMap) -> Result<(), GuardError> {
        let name = self.cookie_name();
        let cookies = headers.get_all(header::COOKIE).iter().filter_map(|it| it.to_str().ok());
        let mut values = cookies.flat_map(|it| it.split(';')).filter_map(|it| {
            let (key, value) = it.trim().split_once('=')?;
            (key == name).then_some(value)
        });
        let is_valid = values.any(|it| is_same(it, &self.session));
        is_valid.then_some(()).ok_or(GuardError::NoSession)
    }

    /// Checks that a request that changes something comes from one of our pages.
    pub(super) fn check_origin(&self, headers: &HeaderMap) -> Result<(), GuardError> {
        let ours = self.names().map(|it| format!("http://{it}"));
        let from_us =
            |it: &HeaderValue| it.to_str().is_ok_and(|it| ours.iter().any(|ours| ours == it));
        let (origins, sites) = (headers.get_all(header::ORIGIN), headers.get_all("sec-fetch-site"));
        let says_whence =
            headers.contains_key(header::ORIGIN) || headers.contains_key("sec-fetch-site");
        let is_ours = origins.iter().all(from_us) && sites.iter().all(|it| it == "same-origin");
        (says_whence && is_ours).then_some(()).ok_or(GuardError::WrongOrigin)
    }

    /// Checks the token of a form.
    pub(super) fn check_form(&self, token: Option<&str>) -> Result<(), GuardError> {
        let is_valid = token.is_some_and(|it| is_same(it, &self.csrf));
        is_valid.then_some(()).ok_or(GuardError::WrongForm)
    }

    fn names(&self) -> [String; 2] {
        ["127.0.0.1", "localhost"].map(|it| format!("{it}:{}", self.port))
    }

    /// Cookies are shared by all ports of a host, so each server has its own.
    fn cookie_name(&self) -> String {
        format!("memoird-{}", self.port)
    }
}

/// Adds the headers that every answer has.
pub(super) fn harden(headers: &mut HeaderMap) {
    const HARDENING: [(header::HeaderName, &str); 7] = [
        (
            header::CONTENT_SECURITY_POLICY,
            "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; \
             form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
        ),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        // With `no-referrer`, browsers would send `Origin: null` with our own forms.
        (header::REFERRER_POLICY, "same-origin"),
        (header::CACHE_CONTROL, "no-store"),
        (header::HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (header::HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ];
    for (name, value) in HARDENING {
        headers.insert(name, HeaderValue::from_static(value));
    }
}

/// Compares two secrets in a time that does not depend on where they differ.
fn is_same(a: &str, b: &str) -> bool {
    blake3::hash(a.as_bytes()) == blake3::hash(b.as_bytes())
}

/// Returns a name that nobody can guess: 64 hex digits.
fn random_name() -> Result<String, RandomError> {
    let mut bytes = [0; 32];
    // Up to 256 bytes come at once.
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
        .map_err(RandomError)?;
    Ok(blake3::Hash::from_bytes(bytes).to_hex().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(list: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in list {
            headers.append(*name, value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn a_token_works_once_and_only_its_cookie_opens_pages() {
        let (guard, token) = SessionGuard::new(4321).unwrap();
        assert_eq!(guard.exchange("other"), Err(GuardError::UsedToken));
        let cookie = guard.exchange(&token).unwrap();
        let base = guard.base();
        assert!(cookie.ends_with(&format!("; Path={base}/; HttpOnly; SameSite=Strict")));
        assert_eq!(base.len(), 33);
        assert_eq!(guard.path_below(&format!("{base}/r/0/")), Some("/r/0/"));
        for other in ["/", "/r/0/", base, &format!("{base}0/"), &format!("/0{base}/")] {
            assert_eq!(guard.path_below(other), None, "{other}");
        }
        assert_eq!(guard.exchange(&token), Err(GuardError::UsedToken));
        let value = cookie.split(';').next().unwrap();
        let check = |cookie: &str| guard.check_session(&headers(&[("cookie", cookie)]));
        assert_eq!(check(value), Ok(()));
        assert_eq!(check(&format!("a=b; {value}; c=d")), Ok(()));
        assert_eq!(check("memoird-4321=x"), Err(GuardError::NoSession));
        assert_eq!(check(&value.replace("4321", "4322")), Err(GuardError::NoSession));
        assert_eq!(guard.check_session(&HeaderMap::new()), Err(GuardError::NoSession));
    }

    #[test]
    fn only_our_own_host_and_origin_are_accepted() {
        let (guard, _) = SessionGuard::new(4321).unwrap();
        for (host, is_ours) in [
            ("127.0.0.1:4321", true),
            ("localhost:4321", true),
            ("127.0.0.1", false),
            ("localhost:80", false),
            ("evil.example:4321", false),
            ("127.0.0.1:4321.evil.example", false),
            ("LOCALHOST:4321", false),
        ] {
            assert_eq!(guard.check_host(&headers(&[("host", host)])).is_ok(), is_ours, "{host}");
        }
        assert!(guard.check_host(&HeaderMap::new()).is_err());
        let two = [("host", "127.0.0.1:4321"), ("host", "evil.example")];
        assert!(guard.check_host(&headers(&two)).is_err());
        for (list, is_ours) in [
            (&[][..], false),
            (&[("sec-fetch-site", "same-origin")][..], true),
            (&[("origin", "http://127.0.0.1:4321")][..], true),
            (&[("origin", "http://localhost:4321"), ("sec-fetch-site", "same-origin")][..], true),
            (&[("origin", "null")][..], false),
            (&[("origin", "https://127.0.0.1:4321")][..], false),
            (&[("origin", "http://127.0.0.1:4322")][..], false),
            (&[("sec-fetch-site", "cross-site")][..], false),
            (&[("sec-fetch-site", "same-site")][..], false),
        ] {
            assert_eq!(guard.check_origin(&headers(list)).is_ok(), is_ours, "{list:?}");
        }
    }

    #[test]
    fn a_form_needs_its_token() {
        let (guard, _) = SessionGuard::new(4321).unwrap();
        assert_eq!(guard.check_form(None), Err(GuardError::WrongForm));
        assert_eq!(guard.check_form(Some("")), Err(GuardError::WrongForm));
        assert_eq!(guard.check_form(Some(guard.csrf())), Ok(()));
    }
}
