//! The unguessable first segment of the webhooks' paths.
//!
//! API servers show no certificate when they call a webhook, and anything in the management network can connect to the
//! port. So each path begins with a random token that only readers of our Secret, of CRDs and of webhook configurations
//! know; whoever does not name it is answered 404 before its body is read.
//!
//! Tokens change with the authority, and like it: replicas accept a new one before the first API server is told of it,
//! and the old one until the next change.

use sha2::{Digest as _, Sha256};
use uuid::Uuid;

/// The first segment of a path.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct PathToken(String);

impl std::fmt::Debug for PathToken {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("PathToken(...)")
    }
}

impl PathToken {
    /// 122 random bits.
    pub(super) fn random() -> Self {
        Self(Uuid::new_v4().simple().to_string())
    }

    /// Reads what [`PathToken::text`] wrote.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let is_token = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_token.then(|| Self(text.to_owned()))
    }

    pub(super) fn text(&self) -> &str {
        &self.0
    }

    /// The path of a handler behind this token.
    pub(super) fn before(&self, handler: &str) -> String {
        format!("/{}/{}", self.0, handler.trim_start_matches('/'))
    }
}

/// Which paths lead to a handler.
#[derive(Clone, Debug)]
pub(super) enum Paths {
    /// Handlers' own paths: where somebody else writes the configurations there is nobody to tell a token to.
    Plain,
    /// Paths behind one of these tokens. Only digests are compared, so that the time it takes says nothing of a token.
    Behind(Vec<[u8; 32]>),
}

impl Paths {
    pub(super) fn behind(tokens: &[PathToken]) -> Self {
        Self::Behind(tokens.iter().map(|token| digest(&token.0)).collect())
    }

    /// The handler's path in a request's, if the caller may know it.
    pub(super) fn handler<'path>(&self, path: &'path str) -> Option<&'path str> {
        let Self::Behind(digests) = self else { return Some(path) };
        let rest = path.strip_prefix('/')?;
        let end = rest.find('/')?;
        let (token, handler) = rest.split_at(end);
        digests.contains(&digest(token)).then_some(handler)
    }
}

fn digest(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_behind_a_known_token_lead_to_a_handler() {
        let (old, new, other) = (PathToken::random(), PathToken::random(), PathToken::random());
        let paths = Paths::behind(&[new.clone(), old.clone()]);
        for known in [&old, &new] {
            assert_eq!(paths.handler(&known.before("/convert")), Some("/convert"));
        }
        for path in ["/convert", "/", "", "//convert", &other.before("/convert"), &format!("/{}", new.text())]
        {
            assert_eq!(paths.handler(path), None, "{path}");
        }
        assert_eq!(Paths::Plain.handler("/convert"), Some("/convert"));
        assert_eq!(PathToken::parse(new.text()), Some(new));
        for text in ["", "0123", "../../../../../../../../../../..", "g0000000000000000000000000000000"] {
            assert_eq!(PathToken::parse(text), None, "{text}");
        }
    }
}
