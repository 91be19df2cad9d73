//! Bodies that anybody posts to the webhooks: a first line with the path, then the body.

use std::sync::LazyLock;

use hangar_api::conversion::NoVersions;
use hangar_kit::metrics::Metrics;
use hangar_kit::webhook::Webhooks;
use hangar_operator::manager::handlers;
use tokio::runtime::Runtime;

use super::admission::Nothing;

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| match Runtime::new() {
    Ok(runtime) => runtime,
    Err(error) => panic!("no runtime: {error}"),
});

static WEBHOOKS: LazyLock<Webhooks> =
    LazyLock::new(|| handlers(Metrics::default().webhook.clone(), NoVersions, Nothing));

pub(super) fn run(input: &[u8]) {
    let Some(end) = input.iter().position(|byte| *byte == b'\n') else { return };
    let Some(path) = super::text(&input[..end]) else { return };
    let (status, body) = RUNTIME.block_on(WEBHOOKS.answer(path, input[end + 1..].to_vec()));
    assert!(status < 500, "{status} {}", String::from_utf8_lossy(&body));
    // A handler that panics answers so.
    assert!(!String::from_utf8_lossy(&body).contains("the webhook panicked"));
}
