//! Objects in front of the rules of admission, as a request to create or to change them.

use std::sync::LazyLock;

use hangar_plan::admission::{Lookup, Operation, Request, defaulted, validate};
use hangar_plan::flow::Read;
use hangar_plan::limits::Limits;
use serde_json::Value;

static LIMITS: LazyLock<Limits> = LazyLock::new(Limits::default);

/// Nothing else is there.
pub(super) struct Nothing;

impl Lookup for Nothing {
    fn manager(&self) -> Option<String> {
        None
    }

    fn limits(&self) -> &Limits {
        &LIMITS
    }

    fn seen(&self, _: &str, _: &str, _: &str, _: &str) -> Read<Value> {
        Read::Absent
    }

    fn now(&self, _: &str, _: &str, _: &str, _: &str) -> Read<Value> {
        Read::Absent
    }
}

pub(super) fn run(input: &[u8]) {
    // Two documents are the object and what it was before.
    let mut documents = serde_json::Deserializer::from_slice(input).into_iter::<Value>();
    let Some(Ok(object)) = documents.next() else { return };
    let old = documents.next().and_then(Result::ok);
    let group = object["apiVersion"].as_str().and_then(|version| version.split_once('/'));
    let request = Request {
        operation: if old.is_some() { Operation::Update } else { Operation::Create },
        group: group.map_or("", |(group, _)| group),
        kind: object["kind"].as_str().unwrap_or_default(),
        namespace: "default",
        object: &object,
        old: old.as_ref(),
        is_dry_run: false,
        user: "somebody",
    };
    let once = defaulted(&request);
    let again = defaulted(&Request { object: &once, ..request });
    assert_eq!(once, again, "defaults of defaults differ");
    let request = Request { object: &once, ..request };
    for error in validate(&request, &Nothing).errors {
        assert!(!error.path().is_empty(), "a refusal names no field: {error}");
    }
    validate(&Request { operation: Operation::Delete, old: None, ..request }, &Nothing);
}
