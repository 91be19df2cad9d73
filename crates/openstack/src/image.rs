//! Glance.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::{
    Error, ImageId, Service, Session, Verb,
    lenient::null_as_default,
    session::{Paging, Request, segment},
};

/// Whether an image can be used.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "String")]
pub enum ImageStatus {
    Active,
    /// Not, or not yet: `queued`, `saving`, `deactivated`, `killed`, ...
    Other(String),
}

impl From<String> for ImageStatus {
    fn from(text: String) -> Self {
        if text == "active" { Self::Active } else { Self::Other(text) }
    }
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Image {
    pub id: ImageId,
    #[serde(default, deserialize_with = "null_as_default")]
    pub name: String,
    /// Whether it can be used.
    pub status: ImageStatus,
    #[serde(default)]
    pub tags: Vec<String>,
    /// The smallest root disk in GiB.
    #[serde(default, rename = "min_disk")]
    pub min_disk_gib: u64,
    /// The least memory in MiB.
    #[serde(default, rename = "min_ram")]
    pub min_ram_mib: u64,
    /// Its length in bytes, once it is there.
    #[serde(default, rename = "size")]
    pub size_bytes: Option<u64>,
    /// Everything else that is written on it.
    #[serde(flatten)]
    pub properties: BTreeMap<String, Value>,
}

impl Image {
    /// A property's text.
    pub fn property(&self, name: &str) -> Option<&str> {
        self.properties.get(name).and_then(Value::as_str)
    }
}

/// Which images. Several fields must all match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImageQuery {
    pub name: Option<String>,
    /// With all of these tags.
    pub tags: Vec<String>,
    pub properties: BTreeMap<String, String>,
}

/// Calls to Glance.
#[derive(Clone, Debug)]
pub struct ImageClient {
    session: Session,
}

impl ImageClient {
    pub(crate) fn new(session: Session) -> Self {
        Self { session }
    }

    /// One image; `None` when Glance says that there is none.
    pub async fn image(&self, id: &ImageId) -> Result<Option<Image>, Error> {
        let path = format!("images/{}", segment(id.as_ref()));
        let request = Request::new(Verb::Get, Service::Image, "image", path).id(id.as_ref());
        // One image is the whole body, without a key.
        self.session.get_optional_plain(request).await
    }

    /// All images that match, whole.
    pub async fn images(&self, query: &ImageQuery) -> Result<Vec<Image>, Error> {
        let mut pairs: Vec<(String, String)> = Vec::new();
        pairs.extend(query.name.iter().map(|name| ("name".to_owned(), name.clone())));
        pairs.extend(query.tags.iter().map(|tag| ("tag".to_owned(), tag.clone())));
        pairs.extend(query.properties.clone());
        let request = Request::new(Verb::List, Service::Image, "image", "images".to_owned()).query(pairs);
        let images: Vec<Image> = self.session.list(request, "images", Paging::Next).await?;
        // Glance's database may compare names without regard to case.
        let is_named = |image: &Image| query.name.as_ref().is_none_or(|name| *name == image.name);
        Ok(images.into_iter().filter(is_named).collect())
    }
}
