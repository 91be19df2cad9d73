//! The answers of S3, which are XML. All of them are bounded before they are read.

use jiff::Timestamp;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::{Call, Error};

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub(super) struct ErrorAnswer {
    pub(super) code: String,
    pub(super) message: String,
}

impl ErrorAnswer {
    /// An error of S3, and nothing else that happens to be XML.
    pub(super) fn read(body: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(body).ok()?;
        let answer: Self = quick_xml::de::from_str(text).ok()?;
        (!answer.code.is_empty()).then_some(answer)
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub(super) struct ListAnswer {
    pub(super) is_truncated: bool,
    pub(super) next_continuation_token: Option<String>,
    pub(super) contents: Vec<Object>,
}

/// An object in a list.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Object {
    pub(crate) key: String,
    pub(crate) last_modified: Timestamp,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub(super) struct UploadsAnswer {
    pub(super) is_truncated: bool,
    pub(super) next_key_marker: Option<String>,
    pub(super) next_upload_id_marker: Option<String>,
    #[serde(rename = "Upload")]
    pub(super) uploads: Vec<Unfinished>,
}

/// An upload that was begun, and neither completed nor aborted.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Unfinished {
    pub(crate) key: String,
    pub(crate) upload_id: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct BegunAnswer {
    pub(super) upload_id: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct CompletedAnswer {
    #[serde(rename = "ETag")]
    pub(super) entity_tag: String,
}

pub(super) fn read<T: DeserializeOwned>(call: &Call, body: &[u8]) -> Result<T, Error> {
    let malformed = |why: String| Error::Malformed { call: call.clone(), why: crate::text::clean(&why) };
    let text = std::str::from_utf8(body).map_err(|error| malformed(error.to_string()))?;
    quick_xml::de::from_str(text).map_err(|error| malformed(error.to_string()))
}
