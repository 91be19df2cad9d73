//! Lists objects page by page, with a limit on pages and objects.

use std::fmt::Debug;

use kube::{Api, api::ListParams};
use serde::de::DeserializeOwned;

/// How much of a collection is read.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// At most this many calls. A server that never ends its pages is given up after them.
    pub pages: usize,
    /// At most this many objects.
    pub items: usize,
}

/// A collection that is larger than its bounds. Reaches callers as `kube::Error::Service`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TooMany {
    #[error("the list has more than {0} objects")]
    Items(usize),
    #[error("the list has more than {0} pages")]
    Pages(usize),
}

/// All objects that the parameters choose, or an error where they are more than the bounds allow. The parameters' limit
/// is the size of a page.
pub async fn list_bounded<K>(api: &Api<K>, parameters: &ListParams, bounds: Bounds) -> kube::Result<Vec<K>>
where
    K: Clone + DeserializeOwned + Debug,
{
    let too_many = |what: TooMany| kube::Error::Service(Box::new(what));
    let mut parameters = parameters.clone();
    let mut items = Vec::new();
    for _ in 0..bounds.pages {
        let page = api.list(&parameters).await?;
        items.extend(page.items);
        if items.len() > bounds.items {
            return Err(too_many(TooMany::Items(bounds.items)));
        }
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => parameters.continue_token = Some(token),
            None => return Ok(items),
        }
    }
    Err(too_many(TooMany::Pages(bounds.pages)))
}
