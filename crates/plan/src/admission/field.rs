//! The error about one field, in the wording that Kubernetes itself uses.

use std::fmt;

use serde_json::Value;

/// What is wrong with one field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldError {
    path: String,
    problem: Problem,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Problem {
    Invalid { value: Value, why: String },
    Required { why: String },
    Forbidden { why: String },
}

impl FieldError {
    /// The field has a value that does not do.
    pub fn invalid(path: impl Into<String>, value: impl Into<Value>, why: impl Into<String>) -> Self {
        Self { path: path.into(), problem: Problem::Invalid { value: value.into(), why: why.into() } }
    }

    /// The field must be set.
    pub fn required(path: impl Into<String>, why: impl Into<String>) -> Self {
        Self { path: path.into(), problem: Problem::Required { why: why.into() } }
    }

    /// The field must not be set, or not be changed.
    pub fn forbidden(path: impl Into<String>, why: impl Into<String>) -> Self {
        Self { path: path.into(), problem: Problem::Forbidden { why: why.into() } }
    }

    /// The same about an object inside of another, such as a template.
    #[must_use]
    pub(super) fn within(mut self, outer: &str) -> Self {
        self.path = format!("{outer}.{}", self.path);
        self
    }

    /// The field, as a path from the object's root.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// What is wrong with it.
    pub fn why(&self) -> &str {
        match &self.problem {
            Problem::Invalid { why, .. } | Problem::Required { why } | Problem::Forbidden { why } => why,
        }
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = &self.path;
        match &self.problem {
            Problem::Invalid { value, why } => write!(formatter, "{path}: Invalid value: {value}: {why}"),
            Problem::Required { why } => write!(formatter, "{path}: Required value: {why}"),
            Problem::Forbidden { why } => write!(formatter, "{path}: Forbidden: {why}"),
        }
    }
}
