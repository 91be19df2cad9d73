//! The client of Glance.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::{
    Error, ImageId, Service, Session, Verb,
    lenient::null_as_default,
    session::{Paging, Request, segment},
};

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Image {
    pub id: ImageId,
    #[serde(default, deserialize_with = "null_as_default")]
    pub name: String,
    /// Only an `active` one can be used; others are `queued`, `saving`, `deactivated`, `killed`, ...
    pub status: String,
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
