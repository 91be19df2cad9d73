//! Names that are allowed, as the operator writes them down.

use std::fmt;

use serde::Deserialize;

/// Exactly this text, or with `*` at its beginning or end everything that ends or begins with the rest.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Pattern(String);

impl TryFrom<String> for Pattern {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let rest = text.strip_prefix('*').or(text.strip_suffix('*')).unwrap_or(&text);
        if text.is_empty() || rest.contains('*') || text.contains(char::is_whitespace) {
            return Err(format!("{text:?} must be a name, with at most one * at its beginning or its end"));
        }
        Ok(Self(text))
    }
}

impl Pattern {
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    pub(super) fn matches(&self, text: &str) -> bool {
        if let Some(end) = self.0.strip_prefix('*') {
            return text.ends_with(end);
        }
        match self.0.strip_suffix('*') {
            Some(beginning) => text.starts_with(beginning),
            None => self.0 == text,
        }
    }
}

/// Everything that one of the patterns matches; nothing without patterns.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Allowed(Vec<Pattern>);

impl Allowed {
    pub(super) fn only(text: &str) -> Self {
        Self::all(&[text])
    }

    pub(super) fn all(texts: &[&str]) -> Self {
        Self(texts.iter().map(|text| Pattern((*text).to_owned())).collect())
    }

    pub(super) fn any(&self, is_met: impl Fn(&Pattern) -> bool) -> bool {
        self.0.iter().any(is_met)
    }
}

impl fmt::Display for Allowed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts: Vec<&str> = self.0.iter().map(Pattern::as_str).collect();
        formatter.write_str(if texts.is_empty() { "none" } else { "" })?;
        formatter.write_str(&texts.join(", "))
    }
}
