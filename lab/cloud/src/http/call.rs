//! A call that is being executed: its caller, its request, and the model it changes.

use serde_json::{Map, Value};

use super::request::Request;
use crate::config::Config;
use crate::model::{Caller, Draw, Model, Refusal};

/// A call that is being carried out.
pub(crate) struct Call<'a> {
    pub(crate) model: &'a mut Model,
    pub(crate) config: &'a Config,
    pub(crate) base_url: &'a str,
    pub(crate) request: &'a Request,
    pub(crate) caller: Caller,
    pub(crate) draw: Draw,
    /// The message with which the server that this call creates fails.
    pub(crate) fail_server: Option<String>,
}

impl Call<'_> {
    /// An absolute URL of this cloud.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base_url)
    }

    /// The object under a key of the body.
    pub(crate) fn object(&self, key: &str) -> Result<Map<String, Value>, Refusal> {
        self.request.object(key)
    }
}
